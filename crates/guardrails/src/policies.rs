//! The rails: admission policies kept as files in `policies/`, one concern each.
//!
//! What they share (whose request is it?) is in `policies/common.yaml` and put in front of each policy that
//! asks for it. How a policy is bound is said by its annotations.

use include_dir::{Dir, include_dir};
use serde_json::Value;

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
    /// Whether a missing Boundary refuses (true) or lets through; absent for policies that look nothing up.
    pub denies_without_boundary: Option<bool>,
    /// Its `spec`, with the common part in front.
    pub spec: Value,
}

/// All policies, sorted by file and position.
pub fn policies() -> Result<Vec<Policy>, PolicyError> {
    let common = documents("common.yaml")?.into_iter().next().unwrap_or_default();
    let mut all = Vec::new();
    let mut files: Vec<_> = FILES.files().filter_map(|f| f.path().to_str()).collect();
    files.sort_unstable();
    for file in files.into_iter().filter(|f| f.ends_with(".yaml") && *f != "common.yaml") {
        for document in documents(file)? {
            all.push(parse(file, &document, &common)?);
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
    let denies_without_boundary = match (annotation("bounds"), annotation("without-boundary")) {
        (None, None) => None,
        (Some("everyone-but-platform"), Some("Deny")) => Some(true),
        (Some("everyone-but-platform"), Some("Allow")) => Some(false),
        _ => return Err(missing("bailey.dev/bounds, bailey.dev/without-boundary")),
    };
    if denies_without_boundary.is_some() {
        prepend(&mut spec, common, "matchConditions");
        prepend(&mut spec, common, "variables");
        let api_version = format!("{}/{}", bailey_api::GROUP, bailey_api::VERSION);
        if let Some(spec) = spec.as_object_mut() {
            spec.insert(
                "paramKind".to_owned(),
                serde_json::json!({ "apiVersion": api_version, "kind": "Boundary" }),
            );
        }
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
            Some(_) => return Err(missing("bailey.dev/where")),
        },
        denies_without_boundary,
        spec,
    })
}

fn prepend(spec: &mut Value, common: &Value, field: &str) {
    let mut list = common.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
    list.extend(spec.get(field).and_then(Value::as_array).cloned().unwrap_or_default());
    if let Some(spec) = spec.as_object_mut() {
        spec.insert(field.to_owned(), Value::Array(list));
    }
}

#[cfg(test)]
mod tests;
