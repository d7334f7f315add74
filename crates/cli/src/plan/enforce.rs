//! What stands in the way of Enforce: what exists and would be refused, and rights that reach too far.
//!
//! Rails are evaluated offline, as if the tenant created the object again. Offline nobody asks the
//! authorizer, so an installer is taken to hold `install` where the Tenant lets installers install here.

use std::collections::{BTreeMap, BTreeSet};

use bailey_api::{BindingKind, BoundarySpec, InstallTarget, PLATFORM, TENANT_LABEL, TenantName};
use bailey_guardrails::{
    BindingFact, BindingMode, Discovery, Evaluation, Model, Policy, PolicyKind, Situation, Where, evaluate,
    foreign_grants,
};
use k8s_openapi::api::rbac::v1::{PolicyRule, Subject};
use serde::Serialize;
use serde_json::{Value, json};

use super::load::Unknown;
use crate::actors::{self, Identity};
use crate::live::{map, text};

/// An object that exists, with what a rail looks at.
#[derive(Debug, Clone)]
pub struct Existing {
    pub group: String,
    pub resource: String,
    pub object: Value,
}

/// What kind of finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// A rail would refuse it.
    Refused,
    /// A right reaches beyond the tenant.
    ForeignGrant,
    /// A namespace carries a label that does not fit the Tenants.
    NamespaceLabel,
    /// Somebody who is neither the platform's nor a tenant's holds rights over the platform.
    UnlistedPrincipal,
}

/// Something to settle before Enforce.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// The tenant; absent for what belongs to nobody known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    pub kind: FindingKind,
    /// The object or subject that it is about.
    pub object: String,
    /// The rail, where one refuses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rail: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do, where the message does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// What must be settled before Enforce, and what is good to know.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Readiness {
    pub findings: Vec<Finding>,
    /// Not in the way, but different from now.
    pub notes: Vec<Finding>,
}

/// Looks at everything that exists.
pub struct Survey<'a> {
    pub model: &'a Model,
    pub boundary: &'a BoundarySpec,
    pub policies: &'a [Policy],
    pub discovery: &'a Discovery,
}

impl Survey<'_> {
    /// Everything to settle, sorted, with what could not be evaluated.
    pub fn run(
        &self,
        existing: &[Existing],
        bindings: &[BindingFact],
        namespaces: &[Value],
    ) -> (Readiness, Vec<Unknown>) {
        let mut readiness = Readiness::default();
        let mut unknown = Vec::new();
        let params = json!({ "spec": self.boundary });
        for object in existing {
            self.examine(object, &params, &mut readiness, &mut unknown);
        }
        readiness.findings.extend(self.foreign(bindings));
        readiness.findings.extend(namespaces.iter().filter_map(|n| self.namespace(n)));
        readiness.findings.extend(unlisted(self.model, self.boundary, bindings));
        for list in [&mut readiness.findings, &mut readiness.notes] {
            list.sort();
            list.dedup();
        }
        (readiness, unknown)
    }

    fn examine(&self, existing: &Existing, params: &Value, into: &mut Readiness, unknown: &mut Vec<Unknown>) {
        let namespace = text(&existing.object, "/metadata/namespace");
        let by_mark = owner_by_mark(&existing.object, self.model);
        let owner = by_mark.clone().or_else(|| self.model.namespace_owner(&namespace).map(str::to_owned));
        if owner.as_deref() == Some(PLATFORM) || (owner.is_none() && namespace.is_empty()) {
            return;
        }
        let tenant =
            owner.and_then(|o| TenantName::new(o).ok()).filter(|t| self.model.tenants.contains_key(t));
        let is_release =
            existing.group != "rbac.authorization.k8s.io" && existing.resource != "customresourcedefinitions";
        if tenant.is_none() && !is_release {
            return;
        }
        let roles = self.roles(tenant.as_ref(), is_release);
        let mut refused_before = false;
        for (role, identity, authorized) in roles {
            if refused_before {
                break;
            }
            for refusal in self.refusals(existing, &identity, authorized, params, unknown) {
                refused_before = true;
                let mut finding = refusal;
                finding.tenant = tenant.as_ref().map(ToString::to_string);
                let certain = role != "developer" && (is_release || by_mark.is_some());
                if certain {
                    into.findings.push(finding);
                } else {
                    finding.message = match role {
                        "developer" => format!("only installers may change it: {}", finding.message),
                        _ => format!("if the tenant made it, it may not change it: {}", finding.message),
                    };
                    into.notes.push(finding);
                }
            }
        }
    }

    /// Who is taken to try: role, identity, and whether they hold the verb `install`.
    fn roles(&self, tenant: Option<&TenantName>, is_release: bool) -> Vec<(&'static str, Identity, bool)> {
        let Some(model) = tenant.and_then(|t| self.model.tenants.get(t)) else {
            let nobody = Identity {
                user: "somebody outside the platform".to_owned(),
                groups: vec!["system:authenticated".to_owned()],
                subject: String::new(),
            };
            return vec![("nobody", nobody, false)];
        };
        let here = model.spec.install.target == InstallTarget::ManagementCluster;
        let mut roles = Vec::new();
        if let Some(installer) = actors::first(&model.installers(), "an installer") {
            roles.push(("installer", installer, here));
        } else if let Some(namespace) = model.namespaces.first() {
            roles.push(("account", actors::service_account(namespace.as_str(), "default"), false));
        }
        if is_release && let Some(developer) = actors::first(&model.developers(), "a developer") {
            roles.push(("developer", developer, false));
        }
        roles
    }

    fn refusals(
        &self,
        existing: &Existing,
        identity: &Identity,
        authorized: bool,
        params: &Value,
        unknown: &mut Vec<Unknown>,
    ) -> Vec<Finding> {
        let situation = Situation {
            operation: "CREATE".to_owned(),
            group: existing.group.clone(),
            resource: existing.resource.clone(),
            user: identity.user.clone(),
            groups: identity.groups.clone(),
            namespace: text(&existing.object, "/metadata/namespace"),
            object: existing.object.clone(),
            boundary: params.clone(),
            authorized,
            ..Situation::default()
        };
        let mut findings = Vec::new();
        let asked = |p: &&Policy| {
            // What exists in namespaces of the platform is the platform's; a backstop says what its rail says.
            p.kind == PolicyKind::Validating
                && p.mode == BindingMode::ByEnforcement
                && p.place != Where::PlatformNamespaces
        };
        for policy in self.policies.iter().filter(asked) {
            match evaluate(policy, &situation) {
                Ok(Evaluation::Refused(messages)) => {
                    findings.extend(messages.into_iter().map(|message| Finding {
                        tenant: None,
                        kind: FindingKind::Refused,
                        object: name_of(&existing.object),
                        rail: Some(policy.rail.clone()),
                        message,
                        remedy: None,
                    }))
                }
                Ok(Evaluation::NotMatched | Evaluation::Passed) => {}
                Err(error) => {
                    let what = format!("whether {} would be refused", name_of(&existing.object));
                    unknown.push(Unknown { what, why: error.to_string() });
                }
            }
        }
        findings
    }

    fn foreign(&self, bindings: &[BindingFact]) -> Vec<Finding> {
        let grants = foreign_grants(self.model, self.discovery, bindings).into_iter();
        let finding = |grant: bailey_guardrails::ForeignGrant| Finding {
            tenant: Some(grant.tenant),
            kind: FindingKind::ForeignGrant,
            object: grant.subject,
            rail: None,
            message: format!("reaches {} through {} ({})", grant.reaches, grant.binding, grant.role),
            remedy: Some(grant.remedy),
        };
        grants.map(finding).collect()
    }

    fn namespace(&self, namespace: &Value) -> Option<Finding> {
        let name = text(namespace, "/metadata/name");
        let label = map(namespace, "/metadata/labels").remove(TENANT_LABEL)?;
        let owner = self.model.namespace_owner(&name);
        if owner == Some(&label) {
            return None;
        }
        let (message, remedy) = match owner {
            Some(owner) => (
                format!("its label {TENANT_LABEL} says `{label}`, but it belongs to {}", whose(owner)),
                "none if that is right: Bailey sets the label; else move the namespace to the other Tenant"
                    .to_owned(),
            ),
            None => (
                format!(
                    "its label {TENANT_LABEL} says `{label}`, but it is in no Tenant, so it is not bounded"
                ),
                format!(
                    "add it to spec.namespaces of a Tenant, or: kubectl label namespace {name} {TENANT_LABEL}-"
                ),
            ),
        };
        let tenant = self.model.tenants.keys().find(|t| t.as_str() == label).map(ToString::to_string);
        let object = format!("Namespace {name}");
        Some(Finding {
            tenant,
            kind: FindingKind::NamespaceLabel,
            object,
            rail: None,
            message,
            remedy: Some(remedy),
        })
    }
}

fn whose(owner: &str) -> String {
    if owner == PLATFORM { "the platform".to_owned() } else { format!("tenant `{owner}`") }
}

/// The owner that an object's labels or its deployer's marks name.
pub fn owner_by_mark(object: &Value, model: &Model) -> Option<String> {
    let labels = map(object, "/metadata/labels");
    let annotations = map(object, "/metadata/annotations");
    if let Some(tenant) = labels.get(TENANT_LABEL) {
        return Some(tenant.clone());
    }
    let namespace = annotations
        .get("meta.helm.sh/release-namespace")
        .or_else(|| labels.get("helm.toolkit.fluxcd.io/namespace"))
        .or_else(|| labels.get("kustomize.toolkit.fluxcd.io/namespace"))?;
    model.namespace_owner(namespace).map(str::to_owned)
}

/// `KIND NAMESPACE/NAME`.
fn name_of(object: &Value) -> String {
    let namespace = text(object, "/metadata/namespace");
    let slash = if namespace.is_empty() { "" } else { "/" };
    format!("{} {namespace}{slash}{}", text(object, "/kind"), text(object, "/metadata/name"))
}

/// Subjects of no class that may change the platform's namespaces or the whole cluster.
fn unlisted(model: &Model, index: &BoundarySpec, bindings: &[BindingFact]) -> Vec<Finding> {
    let mut ways = BTreeMap::<(String, String), BTreeSet<String>>::new();
    for binding in bindings {
        let place = match (&binding.kind, &binding.namespace) {
            (BindingKind::ClusterRoleBinding, _) => "the whole cluster".to_owned(),
            (_, Some(namespace)) if model.namespace_owner(namespace) == Some(PLATFORM) => {
                format!("namespace {namespace} of the platform")
            }
            _ => continue,
        };
        if !binding.rules.iter().any(writes) {
            continue;
        }
        for subject in &binding.subjects {
            if let Some(known) = unlisted_subject(subject, binding.namespace.as_deref(), index) {
                let way =
                    format!("{place} through {} {} ({})", binding.kind.as_str(), binding.name, binding.role);
                ways.entry(known).or_default().insert(way);
            }
        }
    }
    let finding = |((object, remedy), ways): ((String, String), BTreeSet<String>)| Finding {
        tenant: None,
        kind: FindingKind::UnlistedPrincipal,
        object,
        rail: None,
        message: format!("may change {}", ways.into_iter().collect::<Vec<_>>().join("; ")),
        remedy: Some(remedy),
    };
    ways.into_iter().map(finding).collect()
}

/// How an unlisted subject is shown, and where it would be listed.
fn unlisted_subject(
    subject: &Subject,
    namespace: Option<&str>,
    index: &BoundarySpec,
) -> Option<(String, String)> {
    let field = |field: &str, value: &str| {
        format!(
            "if it is the platform's, add `{value}` to spec.platform.{field} of the Installation; if a customer's, to its Tenant; else remove it from the binding"
        )
    };
    let account = match subject.kind.as_str() {
        "ServiceAccount" => {
            Some((subject.namespace.as_deref().or(namespace).unwrap_or_default(), subject.name.as_str()))
        }
        "User" => subject.name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':')),
        _ => None,
    };
    if let Some((namespace, name)) = account {
        let listed = index.namespaces.contains_key(namespace)
            || index.users.contains_key(&format!("system:serviceaccount:{namespace}:{name}"));
        return (!listed).then(|| (format!("sa:{namespace}/{name}"), field("namespaces", namespace)));
    }
    if subject.name.starts_with("system:") {
        return None;
    }
    match subject.kind.as_str() {
        "Group" => (!index.groups.contains_key(&subject.name))
            .then(|| (format!("group:{}", subject.name), field("groups", &subject.name))),
        _ => (!index.users.contains_key(&subject.name))
            .then(|| (format!("user:{}", subject.name), field("users", &subject.name))),
    }
}

/// Whether a rule changes more than reviews and events, which change nothing of anybody's.
fn writes(rule: &PolicyRule) -> bool {
    const HARMLESS: [&str; 6] = [
        "events",
        "tokenreviews",
        "subjectaccessreviews",
        "localsubjectaccessreviews",
        "selfsubjectaccessreviews",
        "selfsubjectreviews",
    ];
    let changes = rule.verbs.iter().any(|verb| !["get", "list", "watch"].contains(&verb.as_str()));
    let resources = rule.resources.as_deref().unwrap_or_default();
    changes && resources.iter().any(|resource| !HARMLESS.contains(&resource.as_str()))
}

#[cfg(test)]
mod tests;
