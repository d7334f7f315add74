//! Deputies: controllers that act for whoever writes their objects.
//!
//! Whoever may write a HelmRelease acts as the helm-controller, or reads what the controller reads for it; whoever
//! decides what a Git repository delivers acts as whom it is applied as. Said here as templates, from the settings and
//! the ServiceAccount that each controller really has. Which rows the edges are is in `catalogue/deputies.yaml`.
//!
//! INVARIANT: a controller is known by what its workload runs, never by a name. Where none was loaded but its kinds are
//! there, what it does is assumed and the guard says so.

mod argocd;
mod capi;
mod cloud;
mod crossplane;
mod data;
mod eso;
mod flux;
mod giantswarm;
mod others;
mod process;
mod prometheus;
mod rules;
mod select;
mod survey;
#[cfg(test)]
pub(crate) mod tests;

use crate::{ClusterFacts, Symbols, Template};

/// The edges by which somebody gets a controller of a cluster to act for them. `clusters` are the names of all clusters
/// that were loaded.
pub fn deputies(cluster: &ClusterFacts, symbols: &mut Symbols, clusters: &[String]) -> Vec<Template> {
    let mut survey = survey::Survey::new(cluster, clusters, symbols);
    for file in data::files() {
        rules::apply(&mut survey, file);
    }
    argocd::add(&mut survey);
    capi::add(&mut survey);
    cloud::add(&mut survey);
    crossplane::add(&mut survey);
    eso::add(&mut survey);
    flux::add(&mut survey);
    giantswarm::add(&mut survey);
    others::add(&mut survey);
    prometheus::add(&mut survey);
    survey.finish()
}

/// Whether deputies are decided by objects of a kind, if only by there being some.
pub(crate) fn names(group: &str, kind: &str) -> bool {
    data::files().iter().flat_map(|file| &file.kinds).any(|known| known.group == group && known.kind == kind)
}

/// Whether a ServiceAccount of this name may be taken for that of a controller.
pub(crate) fn is_usual(name: &str) -> bool {
    let programs = data::files().iter().flat_map(|file| &file.processes);
    programs.flat_map(|program| &program.accounts).any(|usual| usual == name)
}

/// Whether deputies of a cluster are decided by bindings: those of stores that read with an account of theirs.
pub(crate) fn reads_bindings(cluster: &ClusterFacts) -> bool {
    cluster.objects.iter().any(|object| object.group() == "external-secrets.io")
}

/// Whether a container of a workload, by its image, runs a controller whose flags and variables decide something.
pub(crate) fn runs_in(workload: &serde_json::Value, image: &str) -> bool {
    process::is_known(workload, image)
}

/// A kind that deputies are decided by, for a loader to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeputyKind {
    /// API group, empty for core.
    pub group: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural.
    pub plural: &'static str,
}

/// The kinds of which [`deputies`] needs the whole objects. Beside them it looks at `ProviderConfig`s of any group under
/// `crossplane.io` and `upbound.io`.
pub fn deputy_kinds() -> Vec<DeputyKind> {
    let built_in = [
        ("apps", "Deployment", "deployments"),
        ("apps", "StatefulSet", "statefulsets"),
        ("apps", "DaemonSet", "daemonsets"),
        ("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions"),
        ("", "ConfigMap", "configmaps"),
    ];
    let built_in = built_in.map(|(group, kind, plural)| DeputyKind { group, kind, plural });
    let known = data::files().iter().flat_map(|file| &file.kinds);
    built_in
        .into_iter()
        .chain(known.map(|kind| DeputyKind { group: &kind.group, kind: &kind.kind, plural: &kind.plural }))
        .collect()
}
