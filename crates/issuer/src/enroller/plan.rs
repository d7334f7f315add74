//! From Clusters, WorkloadClusters and InternalServices to what should be, without a cluster.

use std::collections::{BTreeMap, BTreeSet};

use bailey_api::{
    ClusterReference, ClusterSelection, InternalService, SourceProvenance, WorkloadCluster,
    WorkloadClusterSpec,
};
use bailey_tunnel::directory::{self, Directory};
use bailey_tunnel::gate::{Policy, Provenance, Source};
use bailey_tunnel::names::{ClusterUid, InstallationName, ServiceName, SniLabel};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt as _;

/// Ports that agents listen on.
const PORTS: std::ops::Range<u16> = 20_000..30_000;
/// Where the platform writes down addresses of a cluster, as networks with commas between them.
pub const SOURCES_ANNOTATION: &str = "bailey.dev/sources";

/// A Cluster object, as far as it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterFact {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: ClusterUid,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// What the platform says of its addresses.
    pub declared: Option<String>,
    /// Whether it is going.
    pub deleting: bool,
}

impl ClusterFact {
    /// Names it for people.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Names its WorkloadCluster.
    pub fn object_name(&self) -> String {
        format!("{}.{}", self.namespace, self.name)
    }
}

/// What should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// WorkloadClusters to write, by name.
    pub write: BTreeMap<String, WorkloadClusterSpec>,
    /// WorkloadClusters to remove, by name.
    pub remove: BTreeSet<String>,
    /// Ports of services that have none yet, by name.
    pub ports: BTreeMap<String, u16>,
    /// What gateways and the issuer know.
    pub directory: Directory,
    /// What was left out, and why.
    pub problems: Vec<String>,
}

/// Decides. `label` gives 128 random bits for each cluster that is new.
pub fn plan(
    installation: &InstallationName,
    sources: Policy,
    clusters: &[ClusterFact],
    existing: &[WorkloadCluster],
    services: &[InternalService],
    mut label: impl FnMut() -> SniLabel,
) -> Plan {
    let mut problems = Vec::new();
    let (mut write, mut remove) = (BTreeMap::new(), BTreeSet::new());
    let by_name: BTreeMap<_, _> = existing.iter().map(|one| (one.name_any(), one)).collect();
    let alive: BTreeMap<_, _> =
        clusters.iter().filter(|one| !one.deleting).map(|one| (one.object_name(), one)).collect();
    for (name, old) in &by_name {
        // A Cluster made again under its name is another one, and gets nothing of the old one.
        if alive.get(name).is_none_or(|cluster| cluster.uid.as_str() != old.spec.cluster.uid) {
            remove.insert(name.clone());
        }
    }
    let mut known = Vec::new();
    for (name, cluster) in alive {
        let old = by_name.get(&name).filter(|_| !remove.contains(&name)).map(|old| &old.spec);
        if remove.contains(&name) {
            // It is made in the next round, when the old one is gone.
            continue;
        }
        let spec = WorkloadClusterSpec {
            cluster: ClusterReference {
                namespace: cluster.namespace.clone(),
                name: cluster.name.clone(),
                uid: cluster.uid.to_string(),
            },
            labels: cluster.labels.clone(),
            sni_label: old.map_or_else(|| label().as_str().to_owned(), |old| old.sni_label.clone()),
            sources: declared(cluster, &mut problems),
            revoked_before: old.and_then(|old| old.revoked_before.clone()),
        };
        match entry(cluster, &spec) {
            Some(entry) => known.push(entry),
            None => {
                problems.push(format!("WorkloadCluster {name}: spec.sniLabel is no 32 hexadecimal digits"))
            }
        }
        if old != Some(&spec) {
            write.insert(name, spec);
        }
    }
    let (ports, services) = published(services, &known, clusters, &mut problems);
    let directory = Directory { installation: installation.clone(), sources, clusters: known, services };
    Plan { write, remove, ports, directory, problems }
}

fn entry(cluster: &ClusterFact, spec: &WorkloadClusterSpec) -> Option<directory::Cluster> {
    let source = |source: &bailey_api::ClusterSource| {
        let from = match source.from {
            SourceProvenance::Crd => Provenance::Crd,
            SourceProvenance::Declared => Provenance::Declared,
        };
        Some(Source { cidr: source.cidr.parse().ok()?, from })
    };
    Some(directory::Cluster {
        uid: cluster.uid.clone(),
        name: cluster.full_name(),
        sni_label: SniLabel::new(spec.sni_label.clone()).ok()?,
        sources: spec.sources.iter().filter_map(source).collect(),
        revoked_before: spec.revoked_before.as_ref().and_then(|time| u64::try_from(time.0.as_second()).ok()),
    })
}

fn declared(cluster: &ClusterFact, problems: &mut Vec<String>) -> Vec<bailey_api::ClusterSource> {
    let mut sources = Vec::new();
    for text in cluster.declared.iter().flat_map(|text| text.split(',')).map(str::trim) {
        if text.parse::<ipnet::IpNet>().is_ok() {
            sources
                .push(bailey_api::ClusterSource { cidr: text.to_owned(), from: SourceProvenance::Declared });
        } else if !text.is_empty() {
            let cluster = cluster.full_name();
            problems.push(format!(
                "Cluster {cluster}: annotation {SOURCES_ANNOTATION}: `{text}` is no network such as 192.0.2.0/24"
            ));
        }
    }
    sources
}

/// Gives each service its port and its clusters.
fn published(
    services: &[InternalService],
    known: &[directory::Cluster],
    clusters: &[ClusterFact],
    problems: &mut Vec<String>,
) -> (BTreeMap<String, u16>, Vec<directory::Service>) {
    let port = |service: &InternalService| {
        let chosen = service.status.as_ref().and_then(|status| status.agent_port)?;
        u16::try_from(chosen).ok().filter(|port| PORTS.contains(port))
    };
    // The oldest keeps a port that two claim.
    let mut order: Vec<_> = services.iter().filter(|one| one.metadata.deletion_timestamp.is_none()).collect();
    order.sort_by_key(|one| (one.metadata.creation_timestamp.clone(), one.name_any()));
    let mut taken: BTreeMap<u16, String> = BTreeMap::new();
    for service in &order {
        if let Some(port) = port(service) {
            taken.entry(port).or_insert_with(|| service.name_any());
        }
    }
    let (mut ports, mut published) = (BTreeMap::new(), Vec::new());
    for service in order {
        let name = service.name_any();
        let Ok(service_name) = ServiceName::new(name.clone()) else {
            problems.push(format!("InternalService {name}: its name is no label of DNS"));
            continue;
        };
        let chosen = match port(service).filter(|port| taken.get(port) == Some(&name)) {
            Some(port) => port,
            None => {
                let Some(free) = free_port(&name, &taken) else {
                    problems.push(format!("InternalService {name}: no port is free for it"));
                    continue;
                };
                taken.insert(free, name.clone());
                ports.insert(name.clone(), free);
                free
            }
        };
        let backend = &service.spec.backend;
        published.push(directory::Service {
            name: service_name,
            backend: format!("{}.{}.svc:{}", backend.name, backend.namespace, backend.port),
            agent_port: chosen,
            clusters: chosen_clusters(&service.spec.clusters, known, clusters),
        });
    }
    (ports, published)
}

/// Finds a port by name, so that it is the same after everything was lost, if nobody else came first.
fn free_port(name: &str, taken: &BTreeMap<u16, String>) -> Option<u16> {
    // FNV-1a (Fowler, Noll, Vo); it only has to spread.
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let count = u32::from(PORTS.end - PORTS.start);
    (0..count)
        .filter_map(|step| u16::try_from((hash.wrapping_add(step)) % count).ok())
        .map(|offset| PORTS.start + offset)
        .find(|port| !taken.contains_key(port))
}

fn chosen_clusters(
    selection: &ClusterSelection,
    known: &[directory::Cluster],
    clusters: &[ClusterFact],
) -> BTreeSet<ClusterUid> {
    let labels: BTreeMap<_, _> = clusters.iter().map(|cluster| (&cluster.uid, &cluster.labels)).collect();
    known
        .iter()
        .filter(|cluster| {
            let by_labels = selection.selector.as_ref().zip(labels.get(&cluster.uid));
            selection.names.contains(&cluster.name)
                || by_labels.is_some_and(|(selector, labels)| matches(selector, labels))
        })
        .map(|cluster| cluster.uid.clone())
        .collect()
}

/// Says whether labels match a selector (Kubernetes API, `LabelSelector`). An operator that nobody knows matches nothing.
pub fn matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let by_labels = selector.match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    let by_expressions = selector.match_expressions.iter().flatten().all(|expression| {
        let value = labels.get(&expression.key);
        let listed = || value.is_some_and(|value| expression.values.iter().flatten().any(|one| one == value));
        match expression.operator.as_str() {
            "In" => listed(),
            "NotIn" => !listed(),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    });
    by_labels && by_expressions
}

#[cfg(test)]
mod tests;
