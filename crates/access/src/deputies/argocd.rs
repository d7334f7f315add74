//! Argo CD: an Application is applied by the application controller, within what its AppProject allows.
//!
//! Without impersonation (`application.sync.impersonation.enabled` in ConfigMap `argocd-cm`) a project only filters
//! destinations; what is applied is applied with the controller's own rights. The project `default`, which allows
//! everything, is made at the first start.

use serde_json::Value;

use super::{
    data,
    process::{Process, list},
    select,
    survey::{Draft, Survey, known},
};
use crate::{Fact, Gift, Need, ObjectFact, Power, customers::source_name};

#[cfg(test)]
pub(super) const EDGES: &[&str] = &[
    "argocd-application",
    "argocd-application-project",
    "argocd-application-set",
    "argocd-source",
    "argocd-cluster-secret",
    "argocd-admin-secret",
];
const CONTROLLER: &str = "argocd-application-controller";
const SETS: &str = "argocd-applicationset-controller";
const IN_CLUSTER: [&str; 3] =
    ["https://kubernetes.default.svc", "https://kubernetes.default.svc.cluster.local", "in-cluster"];

/// What an AppProject lets its Applications do in this cluster.
struct Project {
    what: String,
    name: String,
    /// Namespaces beside Argo CD's own from which Applications may name it, as globs.
    source_namespaces: Vec<String>,
    gives: Vec<Gift>,
    assumed: Option<String>,
}

pub(super) fn add(survey: &mut Survey<'_>) {
    for process in survey.processes(CONTROLLER) {
        let projects = projects(survey, &process);
        applications(survey, &process, &projects);
        project_authors(survey, &process);
        existing(survey, &process, &projects);
        credentials(survey, &process);
    }
    cluster_secrets(survey);
    if survey.processes(CONTROLLER).is_empty() {
        unknown_controller(survey);
    }
}

/// Applications are there, but nobody that applies them.
fn unknown_controller(survey: &mut Survey<'_>) {
    let Some(kind) = data::kind("application") else { return };
    if survey.matters(kind, CONTROLLER) {
        let evidence = format!("{CONTROLLER} applies an Application with its own rights");
        survey.write(kind, &Draft::new("argocd-application", Gift::Nothing, evidence).by(CONTROLLER, None));
    }
}

fn applications(survey: &mut Survey<'_>, process: &Process, projects: &[Project]) {
    let (patterns, unknown) = source_namespaces(process);
    for project in projects {
        let own = vec![process.namespace.clone()];
        let mut others = survey.namespaces_where(|name, _| allows(&project.source_namespaces, name));
        if unknown.is_none() {
            others.retain(|name| allows(&patterns, name));
        }
        others.retain(|name| *name != process.namespace);
        for gives in &project.gives {
            let evidence = format!("{} applies Applications of project {}", process.object, project.what);
            let draft = Draft::new("argocd-application", *gives, evidence)
                .by(CONTROLLER, Some(process))
                .unless_known(project.assumed.clone());
            application(survey, project, &draft.clone().only(Some(own.clone())));
            application(
                survey,
                project,
                &draft.clone().unless_known(unknown.clone()).only(Some(others.clone())),
            );
            application_set(survey, process, draft);
        }
    }
}

fn application(survey: &mut Survey<'_>, project: &Project, draft: &Draft) {
    let Some(kind) = data::kind("application").filter(|kind| survey.matters(kind, CONTROLLER)) else {
        return;
    };
    let spec = serde_json::json!({"project": project.name,
        "destination": {"server": IN_CLUSTER[0], "namespace": "sample"},
        "source": {"repoURL": "https://sample.example/sample", "path": "."}});
    survey.write(kind, &draft.clone().request(spec, None, &["/spec/project"]));
}

/// An ApplicationSet makes Applications of any project in its own namespace.
fn application_set(survey: &mut Survey<'_>, process: &Process, draft: Draft) {
    let Some(kind) = data::kind("application-set").filter(|kind| survey.matters(kind, SETS)) else { return };
    if survey.processes(SETS).iter().any(|sets| sets.namespace == process.namespace) {
        let draft = Draft { edge: "argocd-application-set", ..draft }.in_namespace(&process.namespace);
        survey.write(kind, &draft);
    }
}

/// Whoever writes projects and Applications lets their own Application do anything.
fn project_authors(survey: &mut Survey<'_>, process: &Process) {
    let (Some(kind), Some(application)) = (data::kind("app-project"), data::kind("application")) else {
        return;
    };
    if !survey.matters(kind, CONTROLLER) || impersonates(survey, process).0 {
        return;
    }
    let gives = survey.controller(Some(process));
    let with = survey.write_right(application);
    let evidence = format!("{} applies Applications within what an AppProject allows", process.object);
    let draft = Draft::new("argocd-application-project", gives, evidence)
        .by(CONTROLLER, Some(process))
        .and([with])
        .in_namespace(&process.namespace);
    survey.write(kind, &draft);
}

/// Whoever decides what the repository of an Application delivers.
fn existing(survey: &mut Survey<'_>, process: &Process, projects: &[Project]) {
    let Some(kind) = data::kind("application") else { return };
    for object in survey.objects(kind).collect::<Vec<_>>() {
        let (namespace, name) = survey.names(object);
        let wanted = object.text("/spec/project").unwrap_or("default");
        let Some(project) = projects.iter().find(|project| project.name == wanted) else { continue };
        if namespace != process.namespace && !allows(&project.source_namespaces, &namespace) {
            continue;
        }
        let gifts =
            destination(survey, object, process).map_or_else(|| project.gives.clone(), |other| vec![other]);
        for url in repositories(object) {
            let need = Need::Fact(Fact::Source(survey.symbols.intern(&source_name(&url))));
            for gives in &gifts {
                let evidence =
                    format!("Application {namespace}/{name} of project {} applies {url}", project.what);
                let draft = Draft::new("argocd-source", *gives, evidence)
                    .by(CONTROLLER, Some(process))
                    .unless_known(project.assumed.clone());
                survey.push(&draft, vec![need.clone()]);
            }
        }
    }
}

fn repositories(object: &ObjectFact) -> Vec<String> {
    let many = object.body.pointer("/spec/sources").and_then(Value::as_array).into_iter().flatten();
    let many = many.filter_map(|source| source.get("repoURL").and_then(Value::as_str));
    object.text("/spec/source/repoURL").into_iter().chain(many).map(str::to_owned).collect()
}

/// The other cluster that an Application goes to, none for this one.
fn destination(survey: &mut Survey<'_>, object: &ObjectFact, process: &Process) -> Option<Gift> {
    let name = object.text("/spec/destination/name");
    let server = object.text("/spec/destination/server");
    let wanted = name.or(server)?;
    if IN_CLUSTER.contains(&wanted) {
        return None;
    }
    let secrets = cluster_secret_names(survey, Some(&process.namespace));
    let found = secrets.into_iter().find(|(_, secret, cluster)| secret == wanted || cluster == wanted);
    Some(match found {
        Some((namespace, _, cluster)) => super::capi::holds(survey, &namespace, &cluster),
        None => Gift::Nothing,
    })
}

/// Secrets that make clusters known to Argo CD hold their credentials.
fn cluster_secrets(survey: &mut Survey<'_>) {
    for (namespace, secret, cluster) in cluster_secret_names(survey, None) {
        let gives = super::capi::holds(survey, &namespace, &cluster);
        let evidence = format!("Secret {namespace}/{secret} is Argo CD's login to cluster {cluster}");
        let need = Need::Fact(survey.secret(&namespace, &secret));
        survey.push(&Draft::new("argocd-cluster-secret", gives, evidence), vec![need]);
    }
}

/// Namespace, name and cluster of Secrets with the label `argocd.argoproj.io/secret-type: cluster`. The cluster is that
/// of Cluster API's label, else one whose name the Secret's begins with, else a loaded one that it names.
fn cluster_secret_names(survey: &Survey<'_>, place: Option<&str>) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    let clusters = super::capi::known_clusters(survey);
    for secret in &survey.cluster.secrets {
        let namespace = survey.symbols.name(secret.namespace);
        let is_cluster = secret.argocd_type.is_some_and(|kind| survey.symbols.name(kind) == "cluster");
        if !is_cluster || place.is_some_and(|place| place != namespace) {
            continue;
        }
        let name = survey.symbols.name(secret.name);
        let label = secret.cluster_name.map(|cluster| survey.symbols.name(cluster).to_owned());
        let begins = |cluster: &str| name.strip_prefix(cluster).is_some_and(|rest| rest.starts_with('-'));
        let beside = clusters.iter().filter(|(other, cluster)| other == namespace && begins(cluster));
        let beside = beside.map(|(_, cluster)| cluster.clone()).max_by_key(String::len);
        let loaded = survey.clusters.iter().find(|cluster| name.contains(cluster.as_str())).cloned();
        let cluster = label.or(beside).or(loaded).unwrap_or_else(|| name.to_owned());
        found.push((namespace.to_owned(), name.to_owned(), cluster));
    }
    found
}

/// Secrets with which one is an administrator of Argo CD itself: their names are part of its code.
fn credentials(survey: &mut Survey<'_>, process: &Process) {
    let gives = survey.controller(Some(process));
    for (name, what) in [
        ("argocd-initial-admin-secret", "is the password of Argo CD's administrator"),
        ("argocd-secret", "holds the key that signs Argo CD's sessions"),
    ] {
        let (namespace, symbol) = (survey.symbols.find(&process.namespace), survey.symbols.find(name));
        let exists =
            |secret: &crate::SecretFact| Some(secret.namespace) == namespace && Some(secret.name) == symbol;
        if !survey.cluster.secrets.iter().any(exists) {
            continue;
        }
        let evidence = format!("Secret {}/{name} {what}", process.namespace);
        let draft = Draft::new("argocd-admin-secret", gives, evidence)
            .assume("its administrator may be switched off, and what the server lets an administrator do was not looked at");
        let need = Need::Fact(survey.secret(&process.namespace, name));
        survey.push(&draft, vec![need]);
    }
}

/// Globs of namespaces beside its own in which Applications count, and why they are not known.
fn source_namespaces(process: &Process) -> (Vec<String>, Option<String>) {
    let (value, unknown) = match known(process.flag("application-namespaces")) {
        (None, None) => known(process.env("ARGOCD_APPLICATION_NAMESPACES")),
        found => found,
    };
    let why = unknown.map(|why| format!("the namespaces of Applications are not known: {why}"));
    (list(&value.unwrap_or_default()), why)
}

/// Whether a list of globs names something; `/EXPRESSION/` is a regular expression.
fn allows(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_prefix('/').and_then(|p| p.strip_suffix('/')) {
        Some(expression) => select::regex(expression, name).unwrap_or(true),
        None => select::glob(pattern, name),
    })
}

/// Whether syncs are impersonated, and why that is not known.
fn impersonates(survey: &Survey<'_>, process: &Process) -> (bool, Option<String>) {
    let mut maps = survey.cluster.objects_of("", "ConfigMap");
    let found = maps.find(|map| survey.names(map) == (process.namespace.clone(), "argocd-cm".to_owned()));
    match found.and_then(|map| map.body.get("data")) {
        Some(data) => {
            let enabled = data.get("application.sync.impersonation.enabled").and_then(Value::as_str);
            (enabled == Some("true"), None)
        }
        None => (
            false,
            Some(format!(
                "ConfigMap {}/argocd-cm was not loaded: it may switch impersonation on",
                process.namespace
            )),
        ),
    }
}

fn projects(survey: &mut Survey<'_>, process: &Process) -> Vec<Project> {
    let Some(kind) = data::kind("app-project") else { return Vec::new() };
    let (impersonated, unknown) = impersonates(survey, process);
    let mut projects = Vec::new();
    for object in survey.objects(kind).collect::<Vec<_>>() {
        let (namespace, name) = survey.names(object);
        if namespace != process.namespace {
            continue;
        }
        let texts = |field: &str| {
            let list = object.body.get("spec").and_then(|spec| spec.get(field)).and_then(Value::as_array);
            list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
        };
        let gives =
            if impersonated { impersonated_as(survey, object) } else { within(survey, object, process) };
        projects.push(Project {
            what: format!("AppProject {namespace}/{name}"),
            source_namespaces: texts("sourceNamespaces"),
            gives,
            assumed: unknown.clone(),
            name,
        });
    }
    if !projects.iter().any(|project| project.name == "default") && !impersonated {
        projects.push(Project {
            what: "default".to_owned(),
            name: "default".to_owned(),
            source_namespaces: Vec::new(),
            gives: vec![survey.controller(Some(process))],
            assumed: Some(
                "AppProject default was not loaded: Argo CD makes one that allows everything".to_owned(),
            ),
        });
    }
    projects
}

/// What a project lets through, applied with the controller's rights: all of it, or what may be done in some namespaces.
fn within(survey: &mut Survey<'_>, object: &ObjectFact, process: &Process) -> Vec<Gift> {
    let destinations = object.body.pointer("/spec/destinations").and_then(Value::as_array);
    let mut namespaces: Vec<String> = Vec::new();
    let mut denied: Vec<String> = Vec::new();
    let mut all = false;
    for destination in destinations.into_iter().flatten() {
        let text =
            |field: &str| destination.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
        let here = |pattern: &str| IN_CLUSTER.iter().any(|own| select::glob(pattern, own));
        if !text("server").or_else(|| text("name")).is_some_and(here) {
            continue;
        }
        let namespace = text("namespace").unwrap_or_default();
        match namespace.strip_prefix('!') {
            Some(pattern) => denied.push(pattern.to_owned()),
            None if namespace == "*" => all = true,
            None if namespace.contains('*') => {
                namespaces.extend(survey.namespaces_where(|name, _| select::glob(namespace, name)));
            }
            None => namespaces.push(namespace.to_owned()),
        }
    }
    let cluster_kinds = object.body.pointer("/spec/clusterResourceWhitelist").and_then(Value::as_array);
    let any_cluster_kind = cluster_kinds.is_some_and(|kinds| !kinds.is_empty());
    if (all || any_cluster_kind && !namespaces.is_empty()) && denied.is_empty() {
        return vec![survey.controller(Some(process))];
    }
    if all {
        namespaces = survey.namespaces_where(|_, _| true);
    }
    namespaces.retain(|name| !denied.iter().any(|pattern| select::glob(pattern, name)));
    namespaces.sort();
    namespaces.dedup();
    namespaces.iter().map(|namespace| survey.power_in(Power::Everything, namespace).into()).collect()
}

/// The ServiceAccounts that a project's syncs act as.
fn impersonated_as(survey: &mut Survey<'_>, object: &ObjectFact) -> Vec<Gift> {
    let list = object.body.pointer("/spec/destinationServiceAccounts").and_then(Value::as_array);
    let mut gifts = Vec::new();
    for entry in list.into_iter().flatten() {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        let account = text("defaultServiceAccount");
        match account.split_once(':') {
            Some((namespace, name)) => gifts.push(survey.account(namespace, name).into()),
            None => {
                let pattern = text("namespace").to_owned();
                for namespace in survey.namespaces_where(|name, _| select::glob(&pattern, name)) {
                    gifts.push(survey.account(&namespace, account).into());
                }
            }
        }
    }
    gifts
}
