//! What an install becomes with Bailey: its rails and grants, and of the app's roles what the operator would grant.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use bailey_api::{BindingKind, Installation, NamespaceName, Tenant, TenantName};
use bailey_guardrails::{
    Facts, NamespaceFact, Projector, RequestedBinding, RoleSource, build, policies, requested_rules, validate,
};
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::app::{App, is, list, text};
use super::{CUSTOMER, NAMESPACE, served};

/// What lies on the cluster with Bailey after an install.
pub struct Installed {
    /// The app without its roles and bindings, what Bailey makes of those, and what Bailey has on the cluster anyway.
    pub objects: Vec<Value>,
    /// What was asked for and what came of it.
    pub asked: Asked,
}

/// How much an app asks for, and what it gets.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked {
    /// Rules of the roles that it binds.
    pub rules: usize,
    /// Parts that are granted.
    pub granted: usize,
    /// Parts that are refused.
    pub refused: usize,
}

/// Kinds of which a tenant may write none, so that an install goes on without them.
const NOT_FOR_TENANTS: [&str; 7] = [
    "APIService",
    "ClusterRole",
    "ClusterRoleBinding",
    "MutatingWebhookConfiguration",
    "Role",
    "RoleBinding",
    "ValidatingWebhookConfiguration",
];

/// Installs an app with Bailey in Enforce.
pub fn install(cluster: &[Value], crds: &[Value], app: &App) -> Result<Installed> {
    let own_crds: Vec<&Value> = app.of_kind("CustomResourceDefinition").collect();
    let discovery = served::discovery(crds.iter().chain(own_crds.iter().copied()));
    let groups: Vec<_> = own_crds.iter().map(|crd| text(crd, "/spec/group")).collect();
    let facts = facts(cluster, crds)?;
    let tenant = tenant(&groups, crds)?;
    let (model, problems) = validate(&installation()?, &[tenant], &facts);
    ensure!(problems.is_empty(), "the tenant is not valid: {problems:?}");

    let mut objects = Vec::new();
    for object in build(&model, &policies()?, &discovery).objects() {
        objects.push(on(cluster, &object.content));
    }
    let mine = |object: &&Value| {
        !NOT_FOR_TENANTS.contains(&text(object, "/kind"))
            && ["", NAMESPACE].contains(&text(object, "/metadata/namespace"))
    };
    objects.extend(app.objects.iter().filter(mine).cloned());

    let mut asked = Asked::default();
    let projector = Projector::new(&model, &discovery);
    for binding in requested(app, cluster)? {
        let projection = projector.project(&binding).context("the tenant is in effect")?;
        asked.rules += binding.rules.as_ref().map_or(0, Vec::len);
        asked.granted += projection.scoped.granted.len();
        asked.refused += projection.scoped.refused.len();
        objects.extend(projection.objects.into_iter().map(|object| object.content));
    }
    Ok(Installed { objects, asked })
}

/// The cluster without what `bailey plan --enforce` says to settle: bindings by which the customer held everything in its
/// namespace before, in whose place are Bailey's grants now.
pub fn settled(cluster: &[Value]) -> Vec<Value> {
    let from_before = |object: &&Value| {
        text(object, "/kind") == "RoleBinding"
            && text(object, "/metadata/namespace") == NAMESPACE
            && text(object, "/roleRef/name") == "cluster-admin"
    };
    cluster.iter().filter(|object| !from_before(object)).cloned().collect()
}

fn parsed<T: DeserializeOwned>(value: Value) -> Result<T> {
    Ok(serde_json::from_value(value)?)
}

fn installation() -> Result<Installation> {
    parsed(json!({
        "apiVersion": "bailey.dev/v1alpha1", "kind": "Installation", "metadata": {"name": "installation"},
        "spec": {
            "managementCluster": {"name": "mclab"}, "enforcement": "Enforce",
            "platform": {
                "namespaces": ["default", "giantswarm", "flux-giantswarm", "monitoring", "org-giantswarm", "zot", "kyverno",
                    "cert-manager", "mimir"],
                "groups": ["giantswarm-ad:giantswarm-admins"],
            },
        },
    }))
}

/// The customer, entitled to the kinds of the app that are not the platform's.
fn tenant(groups: &[&str], crds: &[Value]) -> Result<Tenant> {
    let taken = |group: &str| crds.iter().any(|crd| text(crd, "/spec/group") == group);
    let mut groups: Vec<_> = groups.iter().filter(|group| !taken(group)).collect();
    groups.sort();
    groups.dedup();
    parsed(json!({
        "apiVersion": "bailey.dev/v1alpha1", "kind": "Tenant", "metadata": {"name": CUSTOMER},
        "spec": {
            "namespaces": [NAMESPACE],
            "subjects": {"installers": {"groups": ["customer-acme:Admins"]}, "viewers": {"groups": ["customer-acme:Readers"]}},
            "install": {"controlAccounts": ["org-acme/automation"]},
            "crds": {"groups": groups},
        },
    }))
}

fn facts(cluster: &[Value], crds: &[Value]) -> Result<Facts> {
    let mut facts = Facts::default();
    for object in cluster.iter().filter(|object| text(object, "/kind") == "Namespace") {
        let labels: BTreeMap<String, String> =
            parsed(object.pointer("/metadata/labels").cloned().unwrap_or_default()).unwrap_or_default();
        let name = NamespaceName::new(text(object, "/metadata/name"))?;
        facts.namespaces.push(NamespaceFact::new(name, &labels));
    }
    facts.crds = crds.iter().map(|crd| (text(crd, "/metadata/name").to_owned(), None)).collect();
    Ok(facts)
}

/// An object as it is once it is applied: what Bailey says of a Namespace goes over what is there.
fn on(cluster: &[Value], object: &Value) -> Value {
    let name = text(object, "/metadata/name");
    let there = cluster
        .iter()
        .find(|there| text(object, "/kind") == "Namespace" && is(there, ["Namespace", "", name]));
    let Some(mut whole) = there.cloned() else { return object.clone() };
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    if let Some((whole, labels)) =
        whole.pointer_mut("/metadata/labels").and_then(Value::as_object_mut).zip(labels)
    {
        whole.extend(labels.clone());
    }
    whole
}

/// The bindings that the customer can write: those in its namespace and of the cluster.
fn requested(app: &App, cluster: &[Value]) -> Result<Vec<RequestedBinding>> {
    let mut bindings = Vec::new();
    let kinds = [BindingKind::ClusterRoleBinding, BindingKind::RoleBinding];
    for (kind, object) in
        kinds.into_iter().flat_map(|kind| app.of_kind(kind.as_str()).map(move |object| (kind, object)))
    {
        let namespace = text(object, "/metadata/namespace");
        if !["", NAMESPACE].contains(&namespace) {
            continue;
        }
        let role = format!("{}/{}", text(object, "/roleRef/kind"), text(object, "/roleRef/name"));
        bindings.push(RequestedBinding {
            kind,
            namespace: Some(namespace)
                .filter(|namespace| !namespace.is_empty())
                .map(NamespaceName::new)
                .transpose()?,
            name: text(object, "/metadata/name").to_owned(),
            uid: "uid".to_owned(),
            tenant: TenantName::new(CUSTOMER)?,
            subjects: parsed(object.get("subjects").cloned().unwrap_or_else(|| json!([])))?,
            approved: Vec::new(),
            rules: rules(app, cluster, text(object, "/roleRef/kind"), text(object, "/roleRef/name")),
            role,
        });
    }
    Ok(bindings)
}

/// The rules that a role asks for, whose it is notwithstanding: of the app, of Kubernetes, of the cluster.
fn rules(app: &App, cluster: &[Value], kind: &str, name: &str) -> Result<Vec<PolicyRule>, String> {
    let namespace = if kind == "Role" { NAMESPACE } else { "" };
    let roles = || app.of_kind("ClusterRole");
    let own = app.objects.iter().find(|object| is(object, [kind, namespace, name]));
    if let Some(own) = own {
        let others: Vec<_> = roles().filter(|other| *other != own).map(source).collect();
        return requested_rules(&source(own), others.iter());
    }
    if let Some(rules) = served::role(name).filter(|_| kind == "ClusterRole") {
        return serde_json::from_value(rules).map_err(|error| error.to_string());
    }
    let there = cluster.iter().find(|object| is(object, [kind, namespace, name]));
    let there = there.ok_or_else(|| format!("{kind} `{name}` does not exist"))?;
    requested_rules(&source(there), std::iter::empty())
}

/// A role with the record that Bailey's mutating rail makes of it.
fn source(role: &Value) -> RoleSource {
    let labels = role.pointer("/metadata/labels").cloned().unwrap_or_default();
    let selectors: Vec<Value> = list(role, "/aggregationRule/clusterRoleSelectors")
        .map(|selector| json!({"matchLabels": selector.get("matchLabels"), "expressions": selector.get("matchExpressions").is_some()}))
        .collect();
    RoleSource {
        rules: Vec::new(),
        requested: Some(
            role.get("rules")
                .filter(|rules| !rules.is_null())
                .map_or_else(|| "[]".to_owned(), Value::to_string),
        ),
        aggregation: (!selectors.is_empty()).then(|| Value::from(selectors).to_string()),
        labels: serde_json::from_value(labels).unwrap_or_default(),
    }
}
