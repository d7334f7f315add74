//! Cluster API: who reads a kubeconfig or a CA holds the whole workload cluster, and so does who writes what its control
//! plane is made of.
//!
//! Names of Secrets are those of the contract (`util/secret/consts.go`): `CLUSTER-kubeconfig`, `-ca`, `-etcd`, `-proxy`,
//! `-sa`, of type `cluster.x-k8s.io/secret`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    data::{self, Kind},
    survey::{Draft, Survey},
};
use crate::{Fact, Gift, Named, Need, Place, Scope, SecretFact};

#[cfg(test)]
pub(super) const EDGES: &[&str] = &[
    "capi-kubeconfig",
    "capi-ca",
    "capi-bootstrap-data",
    "capi-control-plane",
    "capi-machine",
    "capi-cluster-class",
    "capi-resource-set",
    "kamaji-kubeconfig",
];

const TYPE: &str = "cluster.x-k8s.io/secret";
/// What a Secret of a cluster is named after its cluster, whether it is a kubeconfig, and what more it takes.
const SECRETS: [(&str, bool, Option<&str>); 6] = [
    ("-user-kubeconfig", true, None),
    ("-kubeconfig", true, None),
    ("-ca", false, None),
    ("-sa", false, None),
    ("-proxy", false, Some("the API server must accept the name front-proxy-client")),
    ("-etcd", false, Some("etcd of the cluster must be within reach")),
];

pub(super) fn add(survey: &mut Survey<'_>) {
    secrets(survey);
    bootstrap_data(survey);
    for (namespace, cluster) in known_clusters(survey) {
        control_plane(survey, &namespace, &cluster);
        machines(survey, &namespace, &cluster);
        resource_set(survey, &namespace, &cluster);
    }
    cluster_classes(survey);
    kamaji(survey);
}

/// What holding a cluster is: this very one, if it manages itself, else another.
pub(super) fn holds(survey: &mut Survey<'_>, namespace: &str, cluster: &str) -> Gift {
    if own_names(survey).iter().any(|own| own == cluster) {
        return Fact::Everything(Scope::Cluster).into();
    }
    Fact::OtherCluster(survey.symbols.intern(&format!("{namespace}/{cluster}"))).into()
}

/// What the cluster behind a kubeconfig Secret is, if the Secret's name or label says so.
pub(super) fn cluster_of(survey: &mut Survey<'_>, namespace: &str, secret: &str) -> Option<Gift> {
    let by_name =
        || ["-user-kubeconfig", "-kubeconfig"].iter().find_map(|suffix| secret.strip_suffix(suffix));
    let cluster = survey.cluster_label(namespace, secret).or_else(|| by_name().map(str::to_owned))?;
    Some(holds(survey, namespace, &cluster))
}

/// All kubeconfig Secrets of workload clusters: namespace, name, and what they give.
pub(super) fn kubeconfigs(survey: &mut Survey<'_>) -> Vec<(String, String, Gift)> {
    let found = known_secrets(survey);
    let kubeconfigs = found.into_iter().filter(|(_, _, _, kubeconfig, _)| *kubeconfig);
    kubeconfigs
        .map(|(namespace, name, cluster, ..)| {
            let gives = holds(survey, &namespace, &cluster);
            (namespace, name, gives)
        })
        .collect()
}

/// Names of the cluster that was loaded: its own, and what its Installation calls it.
fn own_names(survey: &Survey<'_>) -> Vec<String> {
    let installation = survey.cluster.objects_of("bailey.dev", "Installation");
    let said = installation.filter_map(|object| object.text("/spec/managementCluster/name"));
    std::iter::once(survey.cluster.name.as_str()).chain(said).map(str::to_owned).collect()
}

/// Clusters by Cluster API's objects: namespace and name.
pub(super) fn known_clusters(survey: &Survey<'_>) -> BTreeSet<(String, String)> {
    let Some(kind) = data::kind("cluster") else { return BTreeSet::new() };
    survey.objects(kind).map(|object| survey.names(object)).collect()
}

type SecretOf = (String, String, String, bool, Option<&'static str>);

/// Secrets that hold a cluster: namespace, name, cluster, whether it is a kubeconfig, and what more it takes. Those that
/// a Cluster must have are there even if they were not loaded.
fn known_secrets(survey: &Survey<'_>) -> Vec<SecretOf> {
    let clusters = known_clusters(survey);
    let mut found: Vec<SecretOf> = Vec::new();
    for fact in &survey.cluster.secrets {
        let (namespace, name) = (survey.symbols.name(fact.namespace), survey.symbols.name(fact.name));
        for (suffix, kubeconfig, takes) in SECRETS {
            let Some(cluster) = name.strip_suffix(suffix).filter(|cluster| !cluster.is_empty()) else {
                continue;
            };
            let known = clusters.contains(&(namespace.to_owned(), cluster.to_owned()));
            if known || is_of_cluster(survey, fact) {
                found.push((namespace.to_owned(), name.to_owned(), cluster.to_owned(), kubeconfig, takes));
                break;
            }
        }
    }
    if !survey.cluster.has_listed("secrets") {
        for (namespace, cluster) in &clusters {
            for (suffix, kubeconfig, takes) in
                SECRETS.into_iter().filter(|(suffix, ..)| *suffix != "-user-kubeconfig")
            {
                found.push((
                    namespace.clone(),
                    format!("{cluster}{suffix}"),
                    cluster.clone(),
                    kubeconfig,
                    takes,
                ));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

fn is_of_cluster(survey: &Survey<'_>, secret: &SecretFact) -> bool {
    survey.symbols.name(secret.kind) == TYPE || secret.cluster_name.is_some()
}

fn secrets(survey: &mut Survey<'_>) {
    for (namespace, name, cluster, kubeconfig, takes) in known_secrets(survey) {
        let gives = holds(survey, &namespace, &cluster);
        let edge = if kubeconfig { "capi-kubeconfig" } else { "capi-ca" };
        let what =
            if kubeconfig { "is the administrator's kubeconfig" } else { "signs for the control plane" };
        let draft = Draft::new(edge, gives, format!("Secret {namespace}/{name} {what} of cluster {cluster}"));
        let need = Need::Fact(survey.secret(&namespace, &name));
        survey.push(&draft.unless_known(takes.map(str::to_owned)), vec![need]);
    }
}

/// Other Secrets of Cluster API's type: what a machine is started with.
fn bootstrap_data(survey: &mut Survey<'_>) {
    let clusters = known_clusters(survey);
    let mut found: Vec<(String, String, String)> = Vec::new();
    for fact in survey.cluster.secrets.iter().filter(|fact| survey.symbols.name(fact.kind) == TYPE) {
        let (namespace, name) = (survey.symbols.name(fact.namespace), survey.symbols.name(fact.name));
        if SECRETS.iter().any(|(suffix, ..)| name.ends_with(suffix)) {
            continue;
        }
        let label = fact.cluster_name.map(|cluster| survey.symbols.name(cluster));
        let owners = clusters
            .iter()
            .filter(|(ns, cluster)| ns == namespace && name.starts_with(&format!("{cluster}-")));
        let by_name = owners.map(|(_, cluster)| cluster.as_str()).max_by_key(|cluster| cluster.len());
        if let Some(cluster) = label.or(by_name) {
            found.push((namespace.to_owned(), name.to_owned(), cluster.to_owned()));
        }
    }
    for (namespace, name, cluster) in found {
        let gives = holds(survey, &namespace, &cluster);
        let evidence = format!("Secret {namespace}/{name} starts a machine of cluster {cluster}");
        let draft = Draft::new("capi-bootstrap-data", gives, evidence)
            .assume("of a worker it is a join token, good for minutes; of a control plane it holds the CA");
        let need = Need::Fact(survey.secret(&namespace, &name));
        survey.push(&draft, vec![need]);
    }
}

fn control_plane(survey: &mut Survey<'_>, namespace: &str, cluster: &str) {
    let Some(kind) = data::kind("cluster") else { return };
    let Some(object) = survey.object(kind, namespace, cluster) else { return };
    let Some(reference) = object.body.pointer("/spec/controlPlaneRef") else { return };
    let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
    let api_version = text("apiVersion");
    let group = match text("apiGroup") {
        "" => api_version.split_once('/').map_or("", |(group, _)| group),
        group => group,
    };
    let (plane, name) = (text("kind").to_owned(), text("name").to_owned());
    let need = Need::Right {
        verbs: ["patch", "update"].map(|verb| survey.symbols.intern(verb)).to_vec(),
        group: survey.symbols.intern(group),
        resources: vec![survey.symbols.intern(&plural(&plane))],
        names: vec![survey.symbols.intern(&name)],
        place: Place::Here,
        named: Named::Exists,
    };
    let gives = holds(survey, namespace, cluster);
    let evidence =
        format!("{plane} {namespace}/{name} says what the control plane of cluster {cluster} runs");
    let mut draft = Draft::new("capi-control-plane", gives, evidence).in_namespace(namespace);
    if plane != "KubeadmControlPlane" {
        draft = draft.assume(format!("what a {plane} may run was not looked at"));
    }
    survey.push(&draft, vec![need]);
}

/// The plural of a kind, as the API machinery guesses it (`meta.UnsafeGuessKindToResource`).
pub(super) fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if kind.ends_with('s') => format!("{kind}es"),
        None => format!("{kind}s"),
    }
}

fn machines(survey: &mut Survey<'_>, namespace: &str, cluster: &str) {
    let groups = [
        ["machine", "machine-set", "machine-deployment", "machine-pool"].as_slice(),
        ["kubeadm-config", "kubeadm-config-template"].as_slice(),
    ];
    for ids in groups {
        let kinds: Vec<&'static Kind> = ids.iter().filter_map(|id| data::kind(id)).collect();
        let Some(first) = kinds.first() else { continue };
        let Need::Right { verbs, group, place, named, .. } = survey.write_right(first) else { continue };
        let resources = kinds.iter().map(|kind| survey.symbols.intern(&kind.plural)).collect();
        let need = Need::Right { verbs, group, resources, names: Vec::new(), place, named };
        let gives = holds(survey, namespace, cluster);
        let names = kinds.iter().map(|kind| kind.kind.as_str()).collect::<Vec<_>>().join(", ");
        let draft = Draft::new(
            "capi-machine",
            gives,
            format!("{names} of cluster {cluster} say what runs as root on its machines"),
        )
        .assume("root on a worker holds what runs there; the control plane is held from a machine of it")
        .in_namespace(namespace);
        survey.push(&draft, vec![need]);
    }
}

fn resource_set(survey: &mut Survey<'_>, namespace: &str, cluster: &str) {
    let Some(kind) = data::kind("cluster-resource-set") else { return };
    if !survey.matters(kind, "cluster-api-controller") {
        return;
    }
    let Some(config_map) = data::kind("config-map") else { return };
    let content = survey.write_right(config_map);
    let gives = holds(survey, namespace, cluster);
    let process = survey.processes("cluster-api-controller").into_iter().next();
    let evidence = format!(
        "a ClusterResourceSet of {namespace} applies any object to cluster {cluster} as its administrator"
    );
    let draft = Draft::new("capi-resource-set", gives, evidence)
        .by("cluster-api-controller", process.as_ref())
        .and([content])
        .in_namespace(namespace);
    let write = survey.write_right(kind);
    survey.push(&draft, vec![write]);
}

fn cluster_classes(survey: &mut Survey<'_>) {
    let (Some(kind), Some(class_kind)) = (data::kind("cluster"), data::kind("cluster-class")) else { return };
    let mut uses = Vec::new();
    for object in survey.objects(kind) {
        let (namespace, cluster) = survey.names(object);
        let text =
            |pointers: [&str; 2]| pointers.iter().find_map(|pointer| object.text(pointer)).map(str::to_owned);
        let Some(class) = text(["/spec/topology/classRef/name", "/spec/topology/class"]) else { continue };
        let place = text(["/spec/topology/classRef/namespace", "/spec/topology/classNamespace"]);
        uses.push((place.unwrap_or_else(|| namespace.clone()), class, namespace, cluster));
    }
    for (place, class, namespace, cluster) in uses {
        let gives = holds(survey, &namespace, &cluster);
        let evidence =
            format!("ClusterClass {place}/{class} says what the machines of cluster {cluster} run");
        let draft = Draft::new("capi-cluster-class", gives, evidence).in_namespace(&place);
        let change = survey.change_one(class_kind, &class);
        survey.push(&draft, vec![change]);
    }
}

/// Hosted control planes of Kamaji: the Secret is named in the status, by convention `NAME-admin-kubeconfig`.
fn kamaji(survey: &mut Survey<'_>) {
    let Some(kind) = data::kind("tenant-control-plane") else { return };
    let mut found = Vec::new();
    for object in survey.objects(kind) {
        let (namespace, name) = survey.names(object);
        let secret = object.text("/status/kubeconfig/admin/secretName").map(str::to_owned);
        found.push((secret.unwrap_or_else(|| format!("{name}-admin-kubeconfig")), namespace, name));
    }
    for (secret, namespace, name) in found {
        let gives = holds(survey, &namespace, &name);
        let evidence = format!(
            "Secret {namespace}/{secret} is the administrator's kubeconfig of TenantControlPlane {name}"
        );
        let need = Need::Fact(survey.secret(&namespace, &secret));
        survey.push(&Draft::new("kamaji-kubeconfig", gives, evidence), vec![need]);
    }
}
