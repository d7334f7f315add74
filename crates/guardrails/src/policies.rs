//! The rails: admission policies kept as files in `policies/`, one concern each.
//!
//! What they share (whose request is it?) is in `policies/common.yaml` and put in front of each policy that
//! asks for it. How a policy is bound is said by its annotations.

use include_dir::{Dir, include_dir};
use serde_json::{Value, json};

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/policies");

/// Says what is wrong with a policy file.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// Not YAML.
    #[error("policy file `{file}` is not valid YAML")]
    Yaml {
        /// The file.
        file: String,
        /// What the parser says.
        #[source]
        source: Box<serde_saphyr::Error>,
    },
    /// A field is absent or has an unknown value.
    #[error("policy file `{file}`: `{field}` is missing or unknown")]
    Field {
        /// The file.
        file: String,
        /// The field.
        field: &'static str,
    },
}

/// Which of the two kinds of policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyKind {
    /// Refuses.
    Validating,
    /// Rewrites.
    Mutating,
}

/// When a policy is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindingMode {
    /// As the Installation's enforcement says.
    ByEnforcement,
    /// In every mode, in full force.
    Always,
    /// In `Enforce` only.
    OnlyEnforce,
    /// In `Warn` only, and only to warn: the audit log keeps one finding per request, which must be that of a
    /// rail that would refuse.
    OnlyWarn,
}

/// Where a policy is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    /// In all namespaces and the cluster scope.
    Everywhere,
    /// In the platform's namespaces.
    PlatformNamespaces,
    /// In namespaces of tenants.
    TenantNamespaces,
    /// In namespaces of nobody or of the platform.
    OutsideTenants,
}

/// What a policy looks up to know whose request it is; see `policies/common.yaml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// Nothing: it asks about rights or places only.
    Nothing,
    /// Exact names of the platform, in the ClusterRole `bailey:platform`.
    Platform,
    /// The owner of a principal, in the Boundary.
    Boundary {
        /// Whether a missing Boundary refuses.
        denies: bool,
    },
}

/// One admission policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The object's name, such as `bailey-hidden-read`.
    pub name: String,
    /// The rail it belongs to, such as `hidden-read`.
    pub rail: String,
    /// What it holds, in a line.
    pub holds: String,
    /// Its kind.
    pub kind: PolicyKind,
    /// When it is bound.
    pub mode: BindingMode,
    /// Where it is bound.
    pub place: Where,
    /// What it looks up.
    pub lookup: Lookup,
    /// Its `spec`, with the common part in front.
    pub spec: Value,
}

impl Policy {
    /// The name of the file of its cases: the halves of a split policy share one.
    pub fn cases(&self) -> &str {
        self.name.strip_suffix(CLUSTER_HALF).unwrap_or(&self.name)
    }
}

/// What the name of the half of a policy that looks at the cluster scope ends with.
const CLUSTER_HALF: &str = "-cluster";
/// Cluster-scoped kinds among those that policies match; subresources go with them.
const CLUSTER_SCOPED: [&str; 4] =
    ["namespaces", "clusterroles", "clusterrolebindings", "customresourcedefinitions"];

/// All policies, sorted by file and position.
pub fn policies() -> Result<Vec<Policy>, PolicyError> {
    let common = documents("common.yaml")?.into_iter().next().unwrap_or_default();
    let mut all = Vec::new();
    let mut files: Vec<_> = FILES.files().filter_map(|f| f.path().to_str()).collect();
    files.sort_unstable();
    for file in files.into_iter().filter(|f| f.ends_with(".yaml") && *f != "common.yaml") {
        for document in documents(file)? {
            all.extend(halves(parse(file, &document, &common)?));
        }
    }
    Ok(all)
}

fn documents(file: &str) -> Result<Vec<Value>, PolicyError> {
    let text = FILES.get_file(file).and_then(|f| f.contents_utf8()).unwrap_or_default();
    serde_saphyr::from_multiple(text)
        .map_err(|source| PolicyError::Yaml { file: file.to_owned(), source: Box::new(source) })
}

fn parse(file: &str, document: &Value, common: &Value) -> Result<Policy, PolicyError> {
    let missing = |field| PolicyError::Field { file: file.to_owned(), field };
    let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str);
    let annotation = |key: &str| text(&format!("/metadata/annotations/bailey.dev~1{key}"));
    let kind = match text("/kind") {
        Some("ValidatingAdmissionPolicy") => PolicyKind::Validating,
        Some("MutatingAdmissionPolicy") => PolicyKind::Mutating,
        _ => return Err(missing("kind")),
    };
    let mut spec = document.get("spec").cloned().ok_or_else(|| missing("spec"))?;
    let lookup = match annotation("looks-up") {
        None => Lookup::Nothing,
        Some("platform") => Lookup::Platform,
        Some("boundary") => Lookup::Boundary { denies: true },
        Some(_) => return Err(missing("bailey.dev/looks-up")),
    };
    let boundary = format!("{}/{}", bailey_api::GROUP, bailey_api::VERSION);
    let param = match lookup {
        Lookup::Nothing => None,
        Lookup::Platform => Some(("platform", "rbac.authorization.k8s.io/v1", "ClusterRole")),
        Lookup::Boundary { .. } => Some(("boundary", boundary.as_str(), "Boundary")),
    };
    if let (Some((section, api_version, kind)), Some(spec)) = (param, spec.as_object_mut()) {
        let common = common.get(section).ok_or_else(|| missing("looks-up section of common.yaml"))?;
        prepend(spec, common, "matchConditions");
        prepend(spec, common, "variables");
        spec.insert("paramKind".to_owned(), json!({ "apiVersion": api_version, "kind": kind }));
    }
    Ok(Policy {
        name: text("/metadata/name").ok_or_else(|| missing("metadata.name"))?.to_owned(),
        rail: annotation("rail").ok_or_else(|| missing("bailey.dev/rail"))?.to_owned(),
        holds: annotation("holds").ok_or_else(|| missing("bailey.dev/holds"))?.to_owned(),
        kind,
        mode: match annotation("enforcement") {
            None => BindingMode::ByEnforcement,
            Some("Always") => BindingMode::Always,
            Some("OnlyEnforce") => BindingMode::OnlyEnforce,
            Some("OnlyWarn") => BindingMode::OnlyWarn,
            Some(_) => return Err(missing("bailey.dev/enforcement")),
        },
        place: match annotation("where") {
            None => Where::Everywhere,
            Some("platform") => Where::PlatformNamespaces,
            Some("tenants") => Where::TenantNamespaces,
            Some("outside-tenants") => Where::OutsideTenants,
            Some(_) => return Err(missing("bailey.dev/where")),
        },
        lookup,
        spec,
    })
}

/// Splits a policy that looks the Boundary up into what it matches in namespaces and in the cluster scope.
///
/// In namespaces only tenants write what it matches, so it is held to those of tenants and refuses without a
/// Boundary. In the cluster scope Kubernetes itself writes (at its start, before it knows the Boundary), so a
/// missing one lets through, and a backstop that looks up the platform's names stands behind.
fn halves(policy: Policy) -> Vec<Policy> {
    let (namespaced, cluster) = match policy.lookup {
        Lookup::Boundary { .. } => split(&policy.spec),
        _ => (policy.spec.clone(), Value::Null),
    };
    let mut halves = Vec::new();
    if has_rules(&namespaced) {
        let place = if policy.lookup == (Lookup::Boundary { denies: true }) {
            Where::TenantNamespaces
        } else {
            policy.place
        };
        halves.push(selected(Policy { spec: namespaced, place, ..policy.clone() }));
    }
    if has_rules(&cluster) {
        let mut spec = cluster;
        if let Some(spec) = spec.as_object_mut() {
            spec.insert("failurePolicy".to_owned(), json!("Ignore"));
        }
        let suffix = if halves.is_empty() { "" } else { CLUSTER_HALF };
        let name = format!("{}{suffix}", policy.name);
        halves.push(Policy { name, spec, lookup: Lookup::Boundary { denies: false }, ..policy });
    }
    halves
}

/// Puts the selector of tenants' namespaces into the policy itself: one in the binding is looked at only after
/// the API server knows what the policy looks up.
fn selected(mut policy: Policy) -> Policy {
    let operator = match policy.place {
        Where::TenantNamespaces => "Exists",
        Where::OutsideTenants => "DoesNotExist",
        Where::Everywhere | Where::PlatformNamespaces => return policy,
    };
    if let Some(constraints) = policy.spec.get_mut("matchConstraints").and_then(Value::as_object_mut) {
        let expression = json!({ "key": bailey_api::TENANT_LABEL, "operator": operator });
        constraints.insert("namespaceSelector".to_owned(), json!({ "matchExpressions": [expression] }));
    }
    policy
}

fn split(spec: &Value) -> (Value, Value) {
    let half = |cluster: bool| {
        let mut spec = spec.clone();
        if let Some(rules) = spec.pointer_mut("/matchConstraints/resourceRules").and_then(Value::as_array_mut)
        {
            for rule in rules.iter_mut() {
                if let Some(resources) = rule.get_mut("resources").and_then(Value::as_array_mut) {
                    resources.retain(|r| r.as_str().is_some_and(is_cluster_scoped) == cluster);
                }
            }
            rules.retain(|rule| {
                rule.get("resources").and_then(Value::as_array).is_some_and(|r| !r.is_empty())
            });
        }
        spec
    };
    (half(false), half(true))
}

/// Whether a resource that policies match is cluster-scoped.
pub(crate) fn is_cluster_scoped(resource: &str) -> bool {
    resource.split('/').next().is_some_and(|plural| CLUSTER_SCOPED.contains(&plural))
}

fn has_rules(spec: &Value) -> bool {
    spec.pointer("/matchConstraints/resourceRules").and_then(Value::as_array).is_some_and(|r| !r.is_empty())
}

fn prepend(spec: &mut serde_json::Map<String, Value>, common: &Value, field: &str) {
    let mut list = common.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
    list.extend(spec.get(field).and_then(Value::as_array).cloned().unwrap_or_default());
    spec.insert(field.to_owned(), Value::Array(list));
}

#[cfg(test)]
mod tests;
