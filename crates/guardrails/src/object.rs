//! An object to be applied: its kind, where it goes, and its content as JSON.

use serde_json::{Value, json};

/// The kinds that Bailey writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// `bailey.dev` Boundary.
    Boundary,
    /// `bailey.dev` AccessRequest.
    AccessRequest,
    /// Core Namespace.
    Namespace,
    /// ValidatingAdmissionPolicy.
    ValidatingPolicy,
    /// ValidatingAdmissionPolicyBinding.
    ValidatingPolicyBinding,
    /// MutatingAdmissionPolicy.
    MutatingPolicy,
    /// MutatingAdmissionPolicyBinding.
    MutatingPolicyBinding,
    /// RBAC ClusterRole.
    ClusterRole,
    /// RBAC ClusterRoleBinding.
    ClusterRoleBinding,
    /// RBAC Role.
    Role,
    /// RBAC RoleBinding.
    RoleBinding,
}

impl ObjectKind {
    /// All kinds.
    pub const ALL: [Self; 11] = [
        Self::Boundary,
        Self::AccessRequest,
        Self::Namespace,
        Self::ValidatingPolicy,
        Self::ValidatingPolicyBinding,
        Self::MutatingPolicy,
        Self::MutatingPolicyBinding,
        Self::ClusterRole,
        Self::ClusterRoleBinding,
        Self::Role,
        Self::RoleBinding,
    ];

    /// API group, version, kind and plural.
    pub fn resource(self) -> (&'static str, &'static str, &'static str, &'static str) {
        const ADMISSION: &str = "admissionregistration.k8s.io";
        const RBAC: &str = "rbac.authorization.k8s.io";
        match self {
            Self::Boundary => (bailey_api::GROUP, bailey_api::VERSION, "Boundary", "boundaries"),
            Self::AccessRequest => {
                (bailey_api::GROUP, bailey_api::VERSION, "AccessRequest", "accessrequests")
            }
            Self::Namespace => ("", "v1", "Namespace", "namespaces"),
            Self::ValidatingPolicy => {
                (ADMISSION, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies")
            }
            Self::ValidatingPolicyBinding => {
                (ADMISSION, "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings")
            }
            Self::MutatingPolicy => (ADMISSION, "v1", "MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
            Self::MutatingPolicyBinding => {
                (ADMISSION, "v1", "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings")
            }
            Self::ClusterRole => (RBAC, "v1", "ClusterRole", "clusterroles"),
            Self::ClusterRoleBinding => (RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings"),
            Self::Role => (RBAC, "v1", "Role", "roles"),
            Self::RoleBinding => (RBAC, "v1", "RoleBinding", "rolebindings"),
        }
    }

    /// The `apiVersion` of objects of this kind.
    pub fn api_version(self) -> String {
        let (group, version, ..) = self.resource();
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
    }
}

/// An object to be applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Its kind.
    pub kind: ObjectKind,
    /// Its namespace, unless cluster-scoped.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// All of it, ready for a server-side apply.
    pub content: Value,
}

/// What an object is for; the value of its component label, by which the operator finds orphans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Component {
    Rail,
    Grant,
    Projection,
}

impl Component {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Rail => "rail",
            Self::Grant => "grant",
            Self::Projection => "projection",
        }
    }
}

impl Object {
    /// An object with the labels that Bailey puts on everything, and `body` merged at the top level.
    pub(crate) fn new(
        kind: ObjectKind,
        namespace: Option<&str>,
        name: &str,
        component: Component,
        tenant: Option<&str>,
        body: Value,
    ) -> Self {
        let mut labels = serde_json::Map::new();
        labels.insert(bailey_api::COMPONENT_LABEL.to_owned(), json!(component.as_str()));
        if kind != ObjectKind::Namespace {
            // A namespace may be managed by Helm or others, who read this label.
            labels.insert("app.kubernetes.io/managed-by".to_owned(), json!("bailey"));
        }
        if let Some(tenant) = tenant {
            labels.insert(bailey_api::TENANT_LABEL.to_owned(), json!(tenant));
        }
        let mut metadata = json!({ "name": name, "labels": labels });
        if let (Some(namespace), Some(metadata)) = (namespace, metadata.as_object_mut()) {
            metadata.insert("namespace".to_owned(), json!(namespace));
        }
        let mut content = json!({
            "apiVersion": kind.api_version(),
            "kind": kind.resource().2,
            "metadata": metadata,
        });
        if let (Some(content), Value::Object(body)) = (content.as_object_mut(), body) {
            content.extend(body);
        }
        Self { kind, namespace: namespace.map(str::to_owned), name: name.to_owned(), content }
    }

    /// `NAMESPACE/NAME`, or the name of a cluster-scoped object.
    pub fn path(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.name),
            None => self.name.clone(),
        }
    }

    /// Whether what is there already says all that is wanted, so that nothing needs to be written.
    ///
    /// Maps may hold more (the API server fills defaults in), lists may not, and absent is the same as empty.
    /// The Boundary is written whole, so of it the spec must be equal.
    pub fn is_said_by(&self, live: &Value) -> bool {
        match self.kind {
            ObjectKind::Boundary => live.get("spec") == self.content.get("spec"),
            _ => says(live, &self.content),
        }
    }

    /// Says who owns this object, so that it is collected with its owner.
    pub(crate) fn owned_by(mut self, kind: ObjectKind, name: &str, uid: &str) -> Self {
        let owner = json!([{ "apiVersion": kind.api_version(), "kind": kind.resource().2, "name": name, "uid": uid }]);
        if let Some(metadata) = self.content.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("ownerReferences".to_owned(), owner);
        }
        self
    }
}

fn says(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted.iter().all(|(key, wanted)| {
            // Types are known from where an object was found; caches and lists do not keep them.
            let is_type = key == "apiVersion" || key == "kind";
            live.get(key).map_or_else(|| is_type || is_empty(wanted), |live| says(live, wanted))
        }),
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| says(live, wanted))
        }
        (Value::Null, wanted) => is_empty(wanted),
        (live, wanted) => live == wanted,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_may_say_more_but_not_other_things() {
        let wanted = json!({"kind": "X", "spec": {"list": [{"a": 1}], "none": []}});
        assert!(says(&json!({"spec": {"list": [{"a": 1, "default": true}], "more": 2}}), &wanted));
        assert!(says(&json!({"spec": {"list": [{"a": 1}], "none": null}}), &wanted));
        assert!(!says(&json!({"kind": "Y", "spec": {"list": [{"a": 1}]}}), &wanted));
        assert!(!says(&json!({"spec": {"list": [{"a": 2}]}}), &wanted));
        assert!(!says(&json!({"spec": {"list": [{"a": 1}, {"b": 1}]}}), &wanted), "one too many");
        assert!(!says(&json!({}), &wanted));
    }
}
