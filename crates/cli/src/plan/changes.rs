//! What the operator would write and remove: desired objects against those of the cluster, by dry runs.

use std::collections::{BTreeMap, BTreeSet};

use bailey_api::{COMPONENT_LABEL, TENANT_LABEL};
use bailey_guardrails::{Object, ObjectKind};
use futures::{StreamExt as _, stream};
use serde::Serialize;
use serde_json::{Value, json};

use super::load::{Inputs, Unknown};
use super::predict::{difference, overlay};
use crate::live::{Call, Live, LiveError, map, path, text};

/// The field manager that the operator writes as; a dry run by another name would keep what it takes away.
const OPERATOR: &str = "bailey-operator";
/// Dry runs in flight.
const CONCURRENT: usize = 8;

/// What happens to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// It comes to be.
    Create,
    /// It changes.
    Update,
    /// It is removed.
    Remove,
    /// A namespace leaves its tenant and stays with all that is in it.
    Release,
    /// It stays as it is.
    Unchanged,
}

/// What happens to one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    pub action: Action,
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    pub name: String,
    /// The tenant that it belongs to, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// For an update, a unified diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// What is special about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Change {
    /// `NAMESPACE/NAME`, or the name of a cluster-scoped object.
    pub fn path(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.name),
            None => self.name.clone(),
        }
    }
}

type Key = (ObjectKind, Option<String>, String);

/// All changes, sorted, with what could not be found out.
pub async fn changes(live: &Live, inputs: &Inputs, desired: &[Object]) -> (Vec<Change>, Vec<Unknown>) {
    let mut unknown = Vec::new();
    let known = present(live, inputs, &mut unknown).await;
    let keys: BTreeSet<Key> = desired.iter().map(key).collect();
    let news: BTreeSet<String> = desired
        .iter()
        .filter(|o| o.kind == ObjectKind::Namespace && !known.contains_key(&key(o)))
        .map(|o| o.name.clone())
        .collect();
    let (known_ref, news) = (&known, &news);
    let outcomes: Vec<_> = stream::iter(desired)
        .map(|object| async move { change(live, object, known_ref, news).await })
        .buffered(CONCURRENT)
        .collect()
        .await;
    let mut changes = Vec::new();
    for (change, doubt) in outcomes {
        changes.push(change);
        unknown.extend(doubt);
    }
    changes.extend(
        known.iter().filter(|(key, _)| !keys.contains(key)).filter_map(|(key, object)| gone(key, object)),
    );
    changes.sort_by(|a, b| {
        (a.action, a.kind, &a.namespace, &a.name).cmp(&(b.action, b.kind, &b.namespace, &b.name))
    });
    (changes, unknown)
}

fn key(object: &Object) -> Key {
    (object.kind, object.namespace.clone(), object.name.clone())
}

/// The objects that Bailey may have written, by kind; those of RBAC and the namespaces are known already.
async fn present(live: &Live, inputs: &Inputs, unknown: &mut Vec<Unknown>) -> BTreeMap<Key, Value> {
    let mut known = BTreeMap::new();
    for kind in ObjectKind::ALL {
        let (group, version, name, plural) = kind.resource();
        let listed;
        let items = match inputs.rbac_objects.get(plural) {
            Some(items) => items,
            None if kind == ObjectKind::Namespace => &inputs.namespaces,
            None => {
                let own = kind == ObjectKind::Boundary || kind == ObjectKind::AccessRequest;
                let selector = if own { String::new() } else { format!("?labelSelector={COMPONENT_LABEL}") };
                listed = live.list(&format!("{}{selector}", path(group, version, plural, None, None))).await;
                match &listed {
                    Ok(items) => items,
                    Err(error) => {
                        unknown.push(Unknown::new(format!("existing objects of kind {name}"), error));
                        continue;
                    }
                }
            }
        };
        for item in items {
            let namespace = Some(text(item, "/metadata/namespace")).filter(|n| !n.is_empty());
            let mut item = item.clone();
            if let Some(fields) = item.as_object_mut() {
                // Items of a list carry neither, and metadata carries others.
                fields.insert("apiVersion".to_owned(), json!(kind.api_version()));
                fields.insert("kind".to_owned(), json!(name));
            }
            known.insert((kind, namespace, text(&item, "/metadata/name")), item);
        }
    }
    known
}

async fn change(
    live: &Live,
    object: &Object,
    known: &BTreeMap<Key, Value>,
    new_namespaces: &BTreeSet<String>,
) -> (Change, Option<Unknown>) {
    let mut change = Change {
        action: Action::Create,
        kind: object.kind.resource().2,
        namespace: object.namespace.clone(),
        name: object.name.clone(),
        tenant: map(&object.content, "/metadata/labels").remove(TENANT_LABEL),
        diff: None,
        note: None,
    };
    let present = known.get(&key(object));
    if let Some(present) = present {
        if object.is_said_by(present) {
            return (Change { action: Action::Unchanged, ..change }, None);
        }
        change.action = Action::Update;
    }
    let in_new_namespace = object.namespace.as_ref().is_some_and(|n| new_namespaces.contains(n));
    // The operator writes the Boundary with an update, which nobody else may try.
    if object.kind == ObjectKind::Boundary || in_new_namespace {
        change.diff = present.and_then(|p| difference(p, &overlay(object.kind, p, &object.content)));
        return (change, None);
    }
    match (dry_run(live, object).await, present) {
        (Ok(planned), Some(present)) => {
            change.diff = difference(present, &comparable(object.kind, planned));
            if change.diff.is_none() {
                change.action = Action::Unchanged;
            }
            (change, None)
        }
        (Ok(_), None) => (change, None),
        (Err(error), present) => {
            change.diff = present.and_then(|p| difference(p, &overlay(object.kind, p, &object.content)));
            if is_immutable(&error) {
                change.note = Some("its role cannot change, so it is removed and made again".to_owned());
                return (change, None);
            }
            if error.status() == Some(404) {
                change.note = Some("its kind is not installed yet; see: bailey crds".to_owned());
                return (change, None);
            }
            let what = format!("whether {} {} can be written", change.kind, change.path());
            (change, Some(Unknown::new(what, &error)))
        }
    }
}

/// Namespaces are listed as metadata, so only that is compared.
fn comparable(kind: ObjectKind, mut planned: Value) -> Value {
    if let (ObjectKind::Namespace, Some(fields)) = (kind, planned.as_object_mut()) {
        fields.remove("spec");
    }
    planned
}

async fn dry_run(live: &Live, object: &Object) -> Result<Value, LiveError> {
    let (group, version, _, plural) = object.kind.resource();
    let target = path(group, version, plural, object.namespace.as_deref(), Some(&object.name));
    let target = format!("{target}?dryRun=All&force=true&fieldManager={OPERATOR}");
    live.json(Call::patch(target, "application/apply-patch+yaml", &object.content)).await
}

fn is_immutable(error: &LiveError) -> bool {
    matches!(error, LiveError::Refused { status: 422, message, .. } if message.contains("cannot change roleRef"))
}

/// What happens to an object that is not wanted: only what carries Bailey's label and name is Bailey's.
fn gone(key: &Key, object: &Value) -> Option<Change> {
    let (kind, namespace, name) = key;
    let mut labels = map(object, "/metadata/labels");
    let tenant = labels.remove(TENANT_LABEL);
    let component = labels.remove(COMPONENT_LABEL);
    let action = match kind {
        ObjectKind::Namespace => (component.is_some() && tenant.is_some()).then_some(Action::Release)?,
        ObjectKind::Boundary => return None,
        ObjectKind::AccessRequest => Action::Remove,
        ObjectKind::ClusterRole
        | ObjectKind::ClusterRoleBinding
        | ObjectKind::Role
        | ObjectKind::RoleBinding => {
            (component.is_some() && name.starts_with("bailey:")).then_some(Action::Remove)?
        }
        _ => (component.is_some() && name.starts_with("bailey-")).then_some(Action::Remove)?,
    };
    let (namespace, name) = (namespace.clone(), name.clone());
    Some(Change { action, kind: kind.resource().2, namespace, name, tenant, diff: None, note: None })
}
