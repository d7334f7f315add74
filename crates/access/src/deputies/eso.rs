//! External Secrets: whose login a store uses, and whom it admits.
//!
//! A ClusterSecretStore without conditions admits every namespace; else one condition must match, by label selector, name
//! or regular expression (`validateNamespaceConditions` in `client_manager.go`).

use serde_json::Value;

use super::{
    cloud, data,
    process::{Holds, Process},
    select,
    survey::{Draft, Selected, Survey},
};
use crate::{Fact, Gift, ObjectFact, Power, SubjectKind, Symbol};

#[cfg(test)]
pub(super) const EDGES: &[&str] = &["eso-cluster-store", "eso-store", "eso-cluster-external-secret"];
const PROGRAM: &str = "external-secrets";

/// What a store gives to those that it admits.
struct Store {
    what: String,
    gives: Gift,
    says: String,
    assumed: Option<String>,
}

pub(super) fn add(survey: &mut Survey<'_>) {
    let (Some(cluster_store), Some(store)) = (data::kind("cluster-secret-store"), data::kind("secret-store"))
    else {
        return;
    };
    for object in survey.objects(cluster_store).collect::<Vec<_>>() {
        if switched_off(survey, "enable-cluster-store-reconciler") {
            break;
        }
        let admitted = admitted(survey, object);
        for found in stores(survey, object, None) {
            use_of(survey, &found, "ClusterSecretStore", &admitted);
            everywhere(survey, &found);
        }
    }
    for object in survey.objects(store).collect::<Vec<_>>() {
        let namespace = survey.names(object).0;
        let admitted = Selected { only: Some(vec![namespace.clone()]), unknown: Vec::new() };
        for found in stores(survey, object, Some(&namespace)) {
            use_of(survey, &found, "SecretStore", &admitted);
        }
    }
}

/// Whoever makes an ExternalSecret in an admitted namespace reads what the store's login reads.
fn use_of(survey: &mut Survey<'_>, store: &Store, kind: &str, admitted: &Selected) {
    let Some(external_secret) = data::kind("external-secret") else { return };
    let name = store.what.rsplit(['/', ' ']).next().unwrap_or_default();
    let spec = serde_json::json!({"secretStoreRef": {"kind": kind, "name": name}, "dataFrom": [{"find": {"name": {}}}]});
    let edge = if kind == "SecretStore" { "eso-store" } else { "eso-cluster-store" };
    for process in by(survey) {
        let mut draft = Draft::new(edge, store.gives, format!("{} {}", store.what, store.says))
            .by(PROGRAM, process.as_ref())
            .unless_known(store.assumed.clone())
            .unless_known(admitted.unknown.clone())
            .only(admitted.only.clone())
            .request(spec.clone(), None, &["/spec/secretStoreRef"]);
        if admitted.only.is_none() {
            draft = draft.despite("it has no conditions on namespaces");
        }
        if let Some(process) = &process {
            draft = draft.within(process.watched(&[]));
        }
        survey.write(external_secret, &draft);
    }
}

/// A ClusterExternalSecret makes ExternalSecrets in whichever namespace it selects.
fn everywhere(survey: &mut Survey<'_>, store: &Store) {
    let Some(kind) = data::kind("cluster-external-secret") else { return };
    if switched_off(survey, "enable-cluster-external-secret-reconciler") {
        return;
    }
    for process in by(survey) {
        let evidence = format!(
            "{} {}, for ExternalSecrets that a ClusterExternalSecret makes in any namespace",
            store.what, store.says
        );
        let draft = Draft::new("eso-cluster-external-secret", store.gives, evidence)
            .by(PROGRAM, process.as_ref())
            .unless_known(store.assumed.clone());
        survey.write(kind, &draft);
    }
}

fn by(survey: &Survey<'_>) -> Vec<Option<Process>> {
    let processes = survey.processes(PROGRAM);
    if processes.is_empty() { vec![None] } else { processes.into_iter().map(Some).collect() }
}

/// Whether every process has a switch off.
fn switched_off(survey: &Survey<'_>, flag: &str) -> bool {
    let processes = survey.processes(PROGRAM);
    let test = data::Test { flag: Some(flag.to_owned()), env: None, is: "false".to_owned() };
    !processes.is_empty() && processes.iter().all(|process| process.passes(&test) == Holds::Yes)
}

/// What a store gives. `namespace` is that of a SecretStore, whose references cannot leave it.
fn stores(survey: &mut Survey<'_>, object: &ObjectFact, namespace: Option<&str>) -> Vec<Store> {
    let (own, name) = survey.names(object);
    let what = if own.is_empty() {
        format!("{} {name}", object.kind)
    } else {
        format!("{} {own}/{name}", object.kind)
    };
    let provider = object.body.pointer("/spec/provider").and_then(Value::as_object);
    let Some((provider, config)) = provider.and_then(|provider| provider.iter().next()) else {
        return Vec::new();
    };
    if provider == "kubernetes" {
        return kubernetes(survey, config, &what, namespace).into_iter().collect();
    }
    if ["fake", "webhook"].contains(&provider.as_str()) {
        return Vec::new();
    }
    let cloud = cloud_login(survey, config, namespace).unwrap_or_else(|| what.clone());
    let gives = Fact::Cloud(survey.symbols.intern(&cloud)).into();
    vec![Store { what, gives, says: format!("reads from {provider} as {cloud}"), assumed: None }]
}

/// A store of Kubernetes Secrets of another namespace, read as a ServiceAccount.
fn kubernetes(survey: &mut Survey<'_>, config: &Value, what: &str, namespace: Option<&str>) -> Option<Store> {
    let text =
        |pointer: &str| config.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    let remote = text("/remoteNamespace").unwrap_or("default").to_owned();
    let what = what.to_owned();
    let url = text("/server/url").unwrap_or("kubernetes.default");
    let host = url.split("://").last().unwrap_or_default().split(['/', ':']).next().unwrap_or_default();
    if host != "kubernetes" && !host.starts_with("kubernetes.default") {
        let gives = Fact::Cloud(survey.symbols.intern(&format!("{url} namespace {remote}"))).into();
        let says = format!("reads the Secrets of namespace {remote} at {url}");
        return Some(Store { what, gives, says, assumed: None });
    }
    let gives = Gift::Fact(survey.power_in(Power::Secrets, &remote));
    let Some(account) = text("/auth/serviceAccount/name").map(str::to_owned) else {
        let says = format!("reads the Secrets of namespace {remote} with a login from a Secret");
        return Some(Store {
            what,
            gives,
            says,
            assumed: Some("what that login may read is not known".to_owned()),
        });
    };
    // Without a namespace a ClusterSecretStore acts as the account of that name beside the ExternalSecret.
    let place = namespace.or_else(|| text("/auth/serviceAccount/namespace"))?.to_owned();
    let may = reads_secrets(survey, &place, &account, &remote);
    let says = format!("reads the Secrets of namespace {remote} as ServiceAccount {place}/{account}");
    let assumed =
        (!may).then(|| format!("no right of ServiceAccount {place}/{account} to read them was found"));
    Some(Store { what, gives, says, assumed })
}

/// The cloud's name for what a store logs in as.
fn cloud_login(survey: &Survey<'_>, config: &Value, namespace: Option<&str>) -> Option<String> {
    let text =
        |pointer: &str| config.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let Some(role) = text("/role").filter(|role| role.contains(':')) {
        return Some(role.to_owned());
    }
    let reference =
        ["/auth/jwt/serviceAccountRef", "/auth/workloadIdentity/serviceAccountRef", "/serviceAccountRef"]
            .iter()
            .find_map(|pointer| config.pointer(pointer));
    let Some(reference) = reference else { return cloud::of_controller(survey, PROGRAM) };
    let field = |name: &str| reference.get(name).and_then(Value::as_str);
    cloud::of_account(survey, namespace.or_else(|| field("namespace"))?, field("name")?)
}

/// Whether a binding gives a ServiceAccount all Secrets of a namespace. Only plain bindings are looked at: this decides
/// no more than whether an edge is proven.
fn reads_secrets(survey: &Survey<'_>, namespace: &str, account: &str, place: &str) -> bool {
    let symbols = &survey.symbols;
    let (Some(namespace), Some(account)) = (symbols.find(namespace), symbols.find(account)) else {
        return false;
    };
    let place = symbols.find(place);
    let bindings = survey.cluster.bindings.iter().filter(|binding| {
        (binding.namespace.is_none() || binding.namespace == place)
            && binding.subjects.iter().any(|subject| {
                subject.kind == SubjectKind::ServiceAccount
                    && subject.namespace == namespace
                    && subject.name == account
            })
    });
    let mut roles = bindings.flat_map(|binding| {
        let owner = if binding.cluster_role { None } else { binding.namespace };
        survey.cluster.roles.iter().filter(move |role| role.namespace == owner && role.name == binding.role)
    });
    let named =
        |list: &[Symbol], wanted: &[&str]| list.iter().any(|name| wanted.contains(&symbols.name(*name)));
    roles.any(|role| {
        role.rules.iter().any(|rule| {
            rule.resource_names.is_empty()
                && named(&rule.api_groups, &["", "*"])
                && named(&rule.resources, &["secrets", "*"])
                && named(&rule.verbs, &["get", "list", "*"])
        })
    })
}

/// The namespaces whose ExternalSecrets a ClusterSecretStore admits.
fn admitted(survey: &Survey<'_>, object: &ObjectFact) -> Selected {
    let conditions = object.body.pointer("/spec/conditions").and_then(Value::as_array);
    let Some(conditions) = conditions.filter(|conditions| !conditions.is_empty()) else {
        return Selected::default();
    };
    let mut only: Vec<String> = Vec::new();
    let mut unknown = Vec::new();
    for condition in conditions {
        let texts = |field: &str| {
            condition.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
        };
        only.extend(texts("namespaces").map(str::to_owned));
        if let Some(selector) = condition.get("namespaceSelector").filter(|selector| !selector.is_null()) {
            let selected = survey.selected(selector);
            unknown.extend(selected.unknown);
            match selected.only {
                Some(names) => only.extend(names),
                None => return Selected { only: None, unknown },
            }
        }
        for pattern in texts("namespaceRegexes") {
            if select::regex(pattern, "").is_none() {
                let why = format!(
                    "the regular expression `{pattern}` of {} could not be read",
                    survey.names(object).1
                );
                return Selected { only: None, unknown: vec![why] };
            }
            only.extend(survey.namespaces_where(|name, _| select::regex(pattern, name) == Some(true)));
        }
    }
    only.sort();
    only.dedup();
    Selected { only: Some(only), unknown }
}
