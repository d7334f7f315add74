//! Reads roles and bindings from the lists that the API server answers.

use std::collections::HashMap;

use bailey_guardrails::Rbac;
use serde_json::Value;

use crate::live::text;

/// Reads the lists of all four kinds, by plural; names what cannot be read.
pub fn read(lists: &HashMap<&str, Vec<Value>>) -> (Rbac, Vec<String>) {
    let mut rbac = Rbac::default();
    let mut unreadable = Vec::new();
    for (plural, items) in lists {
        for item in items {
            if let Err(error) = add(&mut rbac, plural, item) {
                let namespace = text(item, "/metadata/namespace");
                let name = text(item, "/metadata/name");
                let path = if namespace.is_empty() { name } else { format!("{namespace}/{name}") };
                unreadable.push(format!("{plural} {path}: {error}"));
            }
        }
    }
    (rbac, unreadable)
}

fn add(rbac: &mut Rbac, plural: &str, item: &Value) -> Result<(), serde_json::Error> {
    let item = item.clone();
    match plural {
        "clusterroles" => rbac.add_cluster_role(&serde_json::from_value(item)?),
        "roles" => rbac.add_role(&serde_json::from_value(item)?),
        "clusterrolebindings" => rbac.add_cluster_role_binding(&serde_json::from_value(item)?),
        _ => rbac.add_role_binding(&serde_json::from_value(item)?),
    }
    Ok(())
}
