//! Flux objects that exist: whoever decides what a source delivers acts as whom a Kustomization or HelmRelease applies
//! it as, and gets the Secrets that it takes in.
//!
//! Source: `getSource`, `reconcile` and `build` of `kustomization_controller.go`; `helmrelease_controller.go`.

use serde_json::Value;

use super::{
    capi,
    data::{self, Kind},
    process::Process,
    survey::{Draft, Survey, known},
};
use crate::{Fact, Gift, Need, ObjectFact, customers::source_name};

#[cfg(test)]
pub(super) const EDGES: &[&str] =
    &["flux-source", "flux-source-object", "flux-values-from", "flux-substitute-from", "flux-kubeconfig"];

/// One thing that Flux applies.
struct Applied<'a> {
    object: &'a ObjectFact,
    what: String,
    namespace: String,
    program: &'static str,
}

/// Something that decides what is applied.
struct Source {
    kind: &'static Kind,
    namespace: String,
    name: String,
    /// The external name, if whoever holds it decides.
    external: Option<String>,
    /// Why holding it may not be enough.
    checked: Option<String>,
}

pub(super) fn add(survey: &mut Survey<'_>) {
    for (id, program) in [("kustomization", "kustomize-controller"), ("helm-release", "helm-controller")] {
        let Some(kind) = data::kind(id) else { continue };
        let objects: Vec<&ObjectFact> = survey.objects(kind).collect();
        for object in objects {
            let (namespace, name) = survey.names(object);
            let what = format!("{} {namespace}/{name}", object.kind);
            existing(survey, &Applied { object, what, namespace, program });
        }
        kubeconfigs(survey, kind, program);
    }
}

fn existing(survey: &mut Survey<'_>, applied: &Applied<'_>) {
    let sources = sources(survey, applied);
    let processes = survey.processes(applied.program);
    if processes.is_empty() {
        by(survey, applied, &sources, None);
    }
    for process in &processes {
        by(survey, applied, &sources, Some(process));
    }
}

fn by(survey: &mut Survey<'_>, applied: &Applied<'_>, sources: &[Source], process: Option<&Process>) {
    let watched = process.map(|process| process.watched(&[])).unwrap_or_default();
    if !watched.sees(&applied.namespace) {
        return;
    }
    let no_cross = process.is_some_and(|process| {
        matches!(known(process.flag("no-cross-namespace-refs")), (Some(value), _) if value != "false")
    });
    for (gives, how, why) in acts_as(survey, applied, process) {
        for source in sources.iter().filter(|source| !no_cross || source.namespace == applied.namespace) {
            let evidence = format!("{} {how}", applied.what);
            let mut draft = Draft::new("flux-source", gives, evidence).by(applied.program, process);
            draft = draft.unless_known(why.clone()).unless_known(watched.unknown.clone());
            if applied.object.body.pointer("/spec/suspend").and_then(Value::as_bool) == Some(true) {
                draft = draft.assume("it is suspended");
            }
            decided_by(survey, source, draft);
        }
    }
    taken_in(survey, applied, sources, process);
}

/// Whoever holds the external source, or may change the object that names it.
fn decided_by(survey: &mut Survey<'_>, source: &Source, draft: Draft) {
    let from = format!("from {} {}/{}", source.kind.kind, source.namespace, source.name);
    let draft = Draft { evidence: format!("{} {from}", draft.evidence), ..draft };
    if let Some(external) = &source.external {
        let fact = Fact::Source(survey.symbols.intern(external));
        survey.push(&draft.clone().unless_known(source.checked.clone()), vec![Need::Fact(fact)]);
    }
    let change = survey.change_one(source.kind, &source.name);
    let draft = Draft { edge: "flux-source-object", ..draft }.in_namespace(&source.namespace);
    survey.push(&draft, vec![change]);
}

/// Whom a Kustomization or HelmRelease acts as, said for people, and what is not known of it.
fn acts_as(
    survey: &mut Survey<'_>,
    applied: &Applied<'_>,
    process: Option<&Process>,
) -> Vec<(Gift, String, Option<String>)> {
    let account = applied.object.text("/spec/serviceAccountName");
    if let Some(secret) = applied.object.text("/spec/kubeConfig/secretRef/name") {
        let Some(other) = capi::cluster_of(survey, &applied.namespace, secret) else { return Vec::new() };
        let limited = account.map(|account| format!("over there it acts as ServiceAccount {account}"));
        return vec![(
            other,
            format!("applies with the kubeconfig of Secret {}/{secret}", applied.namespace),
            limited,
        )];
    }
    if applied.object.body.pointer("/spec/kubeConfig").is_some() {
        return Vec::new();
    }
    if let Some(account) = account {
        let gives = survey.account(&applied.namespace, account).into();
        return vec![(gives, format!("applies as ServiceAccount {}/{account}", applied.namespace), None)];
    }
    let (default, unknown) =
        process.map(|process| known(process.flag("default-service-account"))).unwrap_or_default();
    if let Some(account) = default {
        let gives = survey.account(&applied.namespace, &account).into();
        let how =
            format!("applies as ServiceAccount {}/{account}, the controller's default", applied.namespace);
        return vec![(gives, how, None)];
    }
    let gives = survey.controller(process);
    let who = process.map_or(applied.program.to_owned(), |process| process.object.clone());
    let unknown = unknown.map(|why| format!("--default-service-account is not known: {why}"));
    vec![(gives, format!("has no serviceAccountName, so {who} applies with its own rights"), unknown)]
}

/// The Secrets that are put into what is applied: whoever decides that gets them.
fn taken_in(survey: &mut Survey<'_>, applied: &Applied<'_>, sources: &[Source], process: Option<&Process>) {
    let (edge, list) = match applied.program {
        "helm-controller" => ("flux-values-from", "/spec/valuesFrom"),
        _ => ("flux-substitute-from", "/spec/postBuild/substituteFrom"),
    };
    let entries = applied.object.body.pointer(list).and_then(Value::as_array).into_iter().flatten();
    let secrets: Vec<&str> = entries
        .filter(|entry| entry.get("kind").and_then(Value::as_str) == Some("Secret"))
        .filter_map(|entry| entry.get("name").and_then(Value::as_str))
        .collect();
    for name in secrets {
        let gives = survey.secret(&applied.namespace, name).into();
        for source in sources {
            let evidence =
                format!("{} puts Secret {}/{name} into what it applies", applied.what, applied.namespace);
            let draft = Draft::new(edge, gives, evidence).by(applied.program, process);
            decided_by_as(survey, source, draft);
        }
    }
}

fn decided_by_as(survey: &mut Survey<'_>, source: &Source, draft: Draft) {
    let Some(external) = &source.external else { return };
    let fact = Fact::Source(survey.symbols.intern(external));
    survey.push(&draft.unless_known(source.checked.clone()), vec![Need::Fact(fact)]);
}

fn sources(survey: &Survey<'_>, applied: &Applied<'_>) -> Vec<Source> {
    let body = &applied.object.body;
    let reference = ["/spec/sourceRef", "/spec/chartRef", "/spec/chart/spec/sourceRef"]
        .iter()
        .find_map(|pointer| body.pointer(pointer));
    let Some(reference) = reference else { return Vec::new() };
    let text = |field: &str| reference.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let chart = applied.object.text("/spec/chart/spec/chart");
    let namespace = text("namespace").unwrap_or(&applied.namespace);
    follow(survey, text("kind").unwrap_or_default(), namespace, text("name").unwrap_or_default(), chart, 4)
}

/// A source object and what it takes from others. `depth` bounds how far includes of includes are followed.
fn follow(
    survey: &Survey<'_>,
    kind: &str,
    namespace: &str,
    name: &str,
    chart: Option<&str>,
    depth: u8,
) -> Vec<Source> {
    let id = match kind {
        "GitRepository" => "git-repository",
        "OCIRepository" => "oci-repository",
        "HelmRepository" => "helm-repository",
        "HelmChart" => "helm-chart",
        "Bucket" => "bucket",
        "ExternalArtifact" => "external-artifact",
        _ => return Vec::new(),
    };
    let Some(kind) = data::kind(id) else { return Vec::new() };
    let object = survey.object(kind, namespace, name);
    let mut found = vec![Source {
        kind,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        external: object.and_then(|object| external(object, chart)),
        checked: object.and_then(checked),
    }];
    let Some(object) = object.filter(|_| depth > 0) else { return found };
    if id == "helm-chart" {
        let kind = object.text("/spec/sourceRef/kind").unwrap_or_default();
        let name = object.text("/spec/sourceRef/name").unwrap_or_default();
        found.extend(follow(survey, kind, namespace, name, object.text("/spec/chart"), depth - 1));
    }
    for include in object.body.pointer("/spec/include").and_then(Value::as_array).into_iter().flatten() {
        let name = include.pointer("/repository/name").and_then(Value::as_str).unwrap_or_default();
        found.extend(follow(survey, "GitRepository", namespace, name, None, depth - 1));
    }
    found
}

/// The external name of what a source object fetches; none if it is pinned to content that nobody can change.
fn external(object: &ObjectFact, chart: Option<&str>) -> Option<String> {
    if object.text("/spec/ref/commit").or_else(|| object.text("/spec/ref/digest")).is_some() {
        return None;
    }
    let url = match object.kind.as_str() {
        "Bucket" => {
            format!("https://{}/{}", object.text("/spec/endpoint")?, object.text("/spec/bucketName")?)
        }
        "HelmRepository" => {
            let url = object.text("/spec/url")?.trim_end_matches('/');
            match chart {
                Some(chart) if url.starts_with("oci://") => format!("{url}/{chart}"),
                _ => url.to_owned(),
            }
        }
        _ => object.text("/spec/url")?.to_owned(),
    };
    Some(source_name(&url))
}

fn checked(object: &ObjectFact) -> Option<String> {
    object.body.pointer("/spec/verify").map(|_| "what it delivers must be signed".to_owned())
}

/// Whoever writes a Kustomization or HelmRelease uses the kubeconfigs that lie in its namespace.
fn kubeconfigs(survey: &mut Survey<'_>, kind: &'static Kind, program: &'static str) {
    if !survey.matters(kind, program) {
        return;
    }
    let processes = survey.processes(program);
    for (namespace, secret, gives) in capi::kubeconfigs(survey) {
        let process = processes.iter().find(|process| process.watched(&[]).sees(&namespace));
        if process.is_none() && !processes.is_empty() {
            continue;
        }
        let evidence =
            format!("{} uses the kubeconfig of Secret {namespace}/{secret} for a {}", program, kind.kind);
        let draft =
            Draft::new("flux-kubeconfig", gives, evidence).by(program, process).in_namespace(&namespace);
        let write = survey.write_right(kind);
        survey.push(&draft, vec![write]);
    }
}
