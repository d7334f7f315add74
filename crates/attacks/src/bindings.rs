//! The names an attack is aimed at, and their way into its file.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Error, Result};

/// Names what the placeholders of a file stand for, on one management cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Bindings {
    /// The attacking tenant.
    pub tenant: String,
    /// A namespace of the tenant, with a ServiceAccount `automation`.
    pub tenant_namespace: String,
    /// A namespace of the tenant where an app of its own runs, such as Argo CD.
    pub tenant_app_namespace: String,
    /// The group of the tenant's installers.
    pub tenant_group: String,
    /// The group of the tenant's developers.
    pub tenant_developers: String,
    /// Another tenant.
    pub other_tenant: String,
    /// A namespace of the other tenant, holding at least one Secret.
    pub other_namespace: String,
    /// The group of the other tenant's installers.
    pub other_group: String,
    /// A namespace of the platform.
    pub platform_namespace: String,
    /// A Secret in `platform_namespace` whose value is `marker`.
    pub platform_secret: String,
    /// A ServiceAccount in `platform_namespace`.
    pub platform_account: String,
    /// A Pod in `platform_namespace`.
    pub platform_pod: String,
    /// The namespace of the platform's deployer, where its releases and the cluster's kubeconfig are.
    pub platform_deployer_namespace: String,
    /// A person of the platform.
    pub platform_user: String,
    /// A ClusterRole of the platform.
    pub platform_cluster_role: String,
    /// The management cluster's own name.
    pub management_cluster: String,
    /// The text whose appearance shows that a Secret was read.
    pub marker: String,
    /// A suffix of lower-case letters and digits that makes created names unique.
    pub nonce: String,
}

impl Bindings {
    /// Returns the value of a placeholder, or nothing if it is unknown.
    pub fn value(&self, placeholder: &str) -> Option<&str> {
        let value = match placeholder {
            "tenant" => &self.tenant,
            "tenantNamespace" => &self.tenant_namespace,
            "tenantAppNamespace" => &self.tenant_app_namespace,
            "tenantGroup" => &self.tenant_group,
            "tenantDevelopers" => &self.tenant_developers,
            "otherTenant" => &self.other_tenant,
            "otherNamespace" => &self.other_namespace,
            "otherGroup" => &self.other_group,
            "platformNamespace" => &self.platform_namespace,
            "platformSecret" => &self.platform_secret,
            "platformAccount" => &self.platform_account,
            "platformPod" => &self.platform_pod,
            "platformDeployerNamespace" => &self.platform_deployer_namespace,
            "platformUser" => &self.platform_user,
            "platformClusterRole" => &self.platform_cluster_role,
            "managementCluster" => &self.management_cluster,
            "marker" => &self.marker,
            "nonce" => &self.nonce,
            _ => return None,
        };
        Some(value)
    }

    /// Replaces the placeholders of a text; `file` names it in errors.
    pub fn fill(&self, file: &str, text: &str) -> Result<String> {
        Substitution { file, bindings: self }.text("text", text)
    }
}

/// Replaces the placeholders in every string of a document.
pub(crate) fn substitute(file: &str, document: &Value, bindings: &Bindings) -> Result<Value> {
    Substitution { file, bindings }.value("", document)
}

struct Substitution<'a> {
    file: &'a str,
    bindings: &'a Bindings,
}

impl Substitution<'_> {
    fn value(&self, field: &str, value: &Value) -> Result<Value> {
        match value {
            Value::String(text) => self.text(field, text).map(Value::String),
            Value::Array(items) => {
                let items = items.iter().enumerate();
                let items = items.map(|(index, item)| self.value(&format!("{field}[{index}]"), item));
                items.collect::<Result<Vec<_>>>().map(Value::Array)
            }
            Value::Object(fields) => fields
                .iter()
                .map(|(key, value)| {
                    let field = if field.is_empty() { key.clone() } else { format!("{field}.{key}") };
                    if key.contains("{{") {
                        return Err(self.malformed(&field));
                    }
                    Ok((key.clone(), self.value(&field, value)?))
                })
                .collect::<Result<serde_json::Map<_, _>>>()
                .map(Value::Object),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(value.clone()),
        }
    }

    fn text(&self, field: &str, text: &str) -> Result<String> {
        let mut rendered = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, opened)) = rest.split_once("{{") {
            let (name, after) = opened.split_once("}}").ok_or_else(|| self.malformed(field))?;
            let value = self.bindings.value(name.trim()).ok_or_else(|| Error::Placeholder {
                file: self.file.to_owned(),
                field: field.to_owned(),
                name: name.trim().to_owned(),
            })?;
            rendered.push_str(before);
            rendered.push_str(value);
            rest = after;
        }
        rendered.push_str(rest);
        Ok(rendered)
    }

    fn malformed(&self, field: &str) -> Error {
        Error::MalformedPlaceholder { file: self.file.to_owned(), field: field.to_owned() }
    }
}
