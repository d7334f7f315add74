//! Small clusters from YAML, and templates as lines.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    BindingFact, Certainty, ClusterFacts, Fact, Gift, NamespaceFact, Need, ObjectFact, Origin, Place, Power,
    RoleFact, RuleFact, Scope, SecretFact, ServiceAccountFact, Snapshot, SubjectFact, SubjectKind, Symbol,
    Symbols, Template, deputies::deputies,
};

/// The templates of a cluster named `here`.
pub fn templates(text: &str) -> (Vec<Template>, Symbols) {
    templates_listed(text, &[])
}

pub fn templates_listed(text: &str, listed: &[&str]) -> (Vec<Template>, Symbols) {
    let mut snapshot = snapshot(text);
    let mut cluster = snapshot.clusters.remove(0);
    cluster.listed = listed.iter().map(|&kind| kind.to_owned()).collect();
    let templates = deputies(&cluster, &mut snapshot.symbols, &["here".to_owned()]);
    (templates, snapshot.symbols)
}

/// `EDGE: NEEDS -> GIFT (assumed) in NAMESPACES not in NAMESPACES`, sorted.
pub fn lines(text: &str) -> Vec<String> {
    lines_listed(text, &[])
}

pub fn lines_listed(text: &str, listed: &[&str]) -> Vec<String> {
    let (templates, symbols) = templates_listed(text, listed);
    let mut lines: Vec<String> = templates.iter().map(|template| line(template, &symbols)).collect();
    lines.sort();
    lines
}

/// The edges of a cluster.
pub fn edges(text: &str) -> BTreeSet<&'static str> {
    templates(text).0.iter().map(|template| template.edge).collect()
}

/// Lines of one edge.
pub fn lines_of(text: &str, edge: &str) -> Vec<String> {
    lines(text).into_iter().filter(|line| line.starts_with(&format!("{edge}:"))).collect()
}

pub fn line(template: &Template, symbols: &Symbols) -> String {
    let names = |list: &[Symbol]| list.iter().map(|name| symbols.name(*name)).collect::<Vec<_>>().join(",");
    let needs: Vec<String> = template.when.iter().map(|need| need_text(need, symbols)).collect();
    let mut line =
        format!("{}: {} -> {}", template.edge, needs.join(" and "), gift_text(template.gives, symbols));
    if template.certainty == Certainty::Assumed {
        line.push_str(" (assumed)");
    }
    if let Some(only) = &template.only {
        line.push_str(&format!(" in {}", names(only)));
    }
    if !template.except.is_empty() {
        line.push_str(&format!(" not in {}", names(&template.except)));
    }
    line
}

fn need_text(need: &Need, symbols: &Symbols) -> String {
    let names = |list: &[Symbol]| list.iter().map(|name| symbols.name(*name)).collect::<Vec<_>>().join(",");
    match need {
        Need::Right { verbs, group, resources, names: only, place, .. } => {
            let group = symbols.name(*group);
            let group = if group.is_empty() { String::new() } else { format!(".{group}") };
            let only = if only.is_empty() { String::new() } else { format!("/{}", names(only)) };
            let place = match place {
                Place::Here => String::new(),
                Place::Cluster => " everywhere".to_owned(),
                Place::In(namespace) => format!(" of {}", symbols.name(*namespace)),
            };
            format!("{} {}{group}{only}{place}", names(verbs), names(resources))
        }
        Need::Power(power) => power_text(*power).to_owned(),
        Need::AnyImpersonation => "impersonation".to_owned(),
        Need::Fact(fact) => fact_text(*fact, symbols),
    }
}

fn gift_text(gift: Gift, symbols: &Symbols) -> String {
    match gift {
        Gift::Power(power) => power_text(power).to_owned(),
        Gift::Target(target) => format!("{target:?}"),
        Gift::Fact(fact) => fact_text(fact, symbols),
        Gift::Nothing => "nothing".to_owned(),
    }
}

fn power_text(power: Power) -> &'static str {
    match power {
        Power::Secrets => "secrets",
        Power::Accounts => "accounts",
        Power::Pods => "pods",
        Power::Inside => "inside",
        Power::Everything => "everything",
    }
}

pub fn fact_text(fact: Fact, symbols: &Symbols) -> String {
    let scope = |scope: Scope| match scope {
        Scope::Cluster => "*".to_owned(),
        Scope::Namespace(namespace) => symbols.name(namespace).to_owned(),
    };
    match fact {
        Fact::Identity(identity) => {
            format!("sa:{}/{}", symbols.name(identity.namespace), symbols.name(identity.name))
        }
        Fact::Secret { namespace, name } => {
            format!("secret:{}/{}", symbols.name(namespace), symbols.name(name))
        }
        Fact::Secrets(s) => format!("secrets:{}", scope(s)),
        Fact::Accounts(s) => format!("accounts:{}", scope(s)),
        Fact::Pods(s) => format!("pods:{}", scope(s)),
        Fact::Everything(s) => format!("everything:{}", scope(s)),
        Fact::Source(source) => format!("source:{}", symbols.name(source)),
        Fact::Cloud(cloud) => format!("cloud:{}", symbols.name(cloud)),
        Fact::OtherCluster(cluster) => format!("cluster:{}", symbols.name(cluster)),
        other => format!("{other:?}"),
    }
}

/// A snapshot of one cluster named `here`.
pub fn snapshot(text: &str) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let mut cluster = ClusterFacts { name: "here".to_owned(), ..ClusterFacts::default() };
    for document in text.split("\n---").filter(|document| !document.trim().is_empty()) {
        let value: Value =
            serde_saphyr::from_str(document).unwrap_or_else(|error| panic!("{document}: {error}"));
        add(&mut cluster, &mut snapshot.symbols, value);
    }
    snapshot.clusters.push(cluster);
    snapshot
}

fn add(cluster: &mut ClusterFacts, symbols: &mut Symbols, value: Value) {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (kind, name, namespace) = (text("/kind"), text("/metadata/name"), text("/metadata/namespace"));
    let (name, namespace) = (symbols.intern(&name), symbols.intern(&namespace));
    let origin = Origin::default();
    let owner = (namespace != Symbol::EMPTY).then_some(namespace);
    let mut label = |key: &str| {
        let found =
            value.pointer("/metadata/labels").and_then(|labels| labels.get(key)).and_then(Value::as_str);
        found.map(|found| symbols.intern(found))
    };
    match kind.as_str() {
        "Namespace" => {
            let labels = value.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
            let labels =
                labels.map(|(k, v)| (symbols.intern(k), symbols.intern(v.as_str().unwrap_or_default())));
            cluster.namespaces.push(NamespaceFact { name, labels: labels.collect(), origin });
        }
        "ServiceAccount" => {
            let cloud = text("/metadata/annotations/eks.amazonaws.com~1role-arn");
            let cloud_identity = (!cloud.is_empty()).then(|| symbols.intern(&cloud));
            cluster.service_accounts.push(ServiceAccountFact {
                namespace,
                name,
                secrets: Vec::new(),
                cloud_identity,
            });
        }
        "Secret" => {
            let (cluster_name, argocd_type) =
                (label("cluster.x-k8s.io/cluster-name"), label("argocd.argoproj.io/secret-type"));
            let kind = symbols.intern(&text("/type"));
            let service_account = None;
            cluster.secrets.push(SecretFact {
                namespace,
                name,
                kind,
                service_account,
                cluster_name,
                argocd_type,
                origin,
            });
        }
        "Role" | "ClusterRole" => {
            let rules = value.get("rules").and_then(Value::as_array).into_iter().flatten();
            let mut list = |rule: &Value, field: &str| {
                let list = rule.get(field).and_then(Value::as_array).into_iter().flatten();
                list.filter_map(Value::as_str).map(|name| symbols.intern(name)).collect()
            };
            let rules = rules
                .map(|rule| RuleFact {
                    api_groups: list(rule, "apiGroups"),
                    resources: list(rule, "resources"),
                    resource_names: list(rule, "resourceNames"),
                    verbs: list(rule, "verbs"),
                    non_resource_urls: Vec::new(),
                })
                .collect();
            let (labels, aggregation) = (Vec::new(), Vec::new());
            cluster.roles.push(RoleFact { namespace: owner, name, rules, labels, aggregation, origin });
        }
        "RoleBinding" | "ClusterRoleBinding" => {
            let subjects = value.get("subjects").and_then(Value::as_array).into_iter().flatten();
            let subjects = subjects.map(|subject| {
                let field = |name: &str| subject.get(name).and_then(Value::as_str).unwrap_or_default();
                SubjectFact {
                    kind: match field("kind") {
                        "User" => SubjectKind::User,
                        "Group" => SubjectKind::Group,
                        _ => SubjectKind::ServiceAccount,
                    },
                    namespace: symbols.intern(field("namespace")),
                    name: symbols.intern(field("name")),
                }
            });
            let subjects = subjects.collect();
            let cluster_role = text("/roleRef/kind") == "ClusterRole";
            let role = symbols.intern(&text("/roleRef/name"));
            cluster.bindings.push(BindingFact {
                namespace: owner,
                name,
                cluster_role,
                role,
                subjects,
                origin,
            });
        }
        _ => {
            let api_version = text("/apiVersion");
            cluster.objects.push(ObjectFact { api_version, kind, namespace, name, body: value, origin });
        }
    }
}
