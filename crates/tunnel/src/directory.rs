//! Who may connect and what each cluster may reach: all that a gateway knows, as one value.
//!
//! It is made anew whenever anything changes, and everything that lives is held against the new one. What is not
//! in it does not exist: an unknown cluster is refused, and a service that is not granted looks like none.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::gate::{Policy, Source};
use crate::names::{ClusterUid, Identity, InstallationName, Party, ServiceName, SniLabel};

/// Seconds since 1970.
pub type Seconds = u64;

/// What a gateway knows of its installation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Directory {
    /// The installation.
    pub installation: InstallationName,
    /// What strangers may do.
    #[serde(default)]
    pub sources: Policy,
    /// The workload clusters.
    #[serde(default)]
    pub clusters: Vec<Cluster>,
    /// The services.
    #[serde(default)]
    pub services: Vec<Service>,
}

/// A workload cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cluster {
    /// Its UID.
    pub uid: ClusterUid,
    /// What people call it, for logs and metrics.
    pub name: String,
    /// What its agents send as SNI.
    pub sni_label: SniLabel,
    /// Addresses it is known to come from.
    #[serde(default)]
    pub sources: Vec<Source>,
    /// Certificates from before this moment are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_before: Option<Seconds>,
}

/// A service of the installation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Service {
    /// Its name.
    pub name: ServiceName,
    /// Where it is, as HOST:PORT.
    pub backend: String,
    /// On which port agents listen for it; 0 for any that is free.
    pub agent_port: u16,
    /// Who may reach it.
    #[serde(default)]
    pub clusters: BTreeSet<ClusterUid>,
}

/// Why a session or a stream is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Refusal {
    /// The name in the greeting belongs to nobody.
    Stranger,
    /// The certificate is of another installation.
    OtherInstallation,
    /// The certificate is no cluster's.
    NotACluster,
    /// The cluster does not exist, or does no more.
    UnknownCluster,
    /// The name in the greeting is another cluster's.
    OtherCluster,
    /// The certificate was revoked.
    Revoked,
    /// The certificate is over.
    Expired,
    /// The cluster is known to come from elsewhere.
    Source,
    /// The cluster may not reach the service, which may not even exist.
    NotGranted,
}

impl Refusal {
    /// Names it for metrics, logs and the other side.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Stranger => "Stranger",
            Self::OtherInstallation => "OtherInstallation",
            Self::NotACluster => "NotACluster",
            Self::UnknownCluster => "UnknownCluster",
            Self::OtherCluster => "OtherCluster",
            Self::Revoked => "CertificateRevoked",
            Self::Expired => "CertificateExpired",
            Self::Source => "SourceNotListed",
            Self::NotGranted => "NotGranted",
        }
    }
}

/// A certificate that was found to be signed by the installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Who it speaks for.
    pub identity: Identity,
    /// When it was issued: five minutes after it says it begins.
    pub issued: Seconds,
    /// When it is over.
    pub not_after: Seconds,
}

/// A [`Directory`] with its look-ups, made once for each change.
#[derive(Clone, Debug)]
pub struct Index {
    directory: Directory,
    by_uid: HashMap<ClusterUid, usize>,
    by_label: HashMap<SniLabel, usize>,
    services: BTreeMap<ServiceName, usize>,
}

/// A directory that contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} `{name}` is there twice; give each its own")]
pub struct Twice {
    /// What is.
    pub what: &'static str,
    /// Its name.
    pub name: String,
}

impl Index {
    /// Makes the look-ups; two clusters or services must not share what tells them apart.
    pub fn new(directory: Directory) -> Result<Self, Twice> {
        let (mut by_uid, mut by_label, mut services) = (HashMap::new(), HashMap::new(), BTreeMap::new());
        let mut ports = BTreeSet::new();
        let twice = |what, name: &str| Twice { what, name: name.to_owned() };
        for (at, cluster) in directory.clusters.iter().enumerate() {
            if by_uid.insert(cluster.uid.clone(), at).is_some() {
                return Err(twice("the cluster", cluster.uid.as_str()));
            }
            if by_label.insert(cluster.sni_label.clone(), at).is_some() {
                return Err(twice("the SNI label of the cluster", &cluster.name));
            }
        }
        for (at, service) in directory.services.iter().enumerate() {
            if services.insert(service.name.clone(), at).is_some() {
                return Err(twice("the service", service.name.as_str()));
            }
            if service.agent_port != 0 && !ports.insert(service.agent_port) {
                return Err(twice("the agents' port of the service", service.name.as_str()));
            }
        }
        Ok(Self { directory, by_uid, by_label, services })
    }

    /// Gives what it was made of.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Says whether any cluster is known to come from an address.
    pub fn knows(&self, from: IpAddr) -> bool {
        let from = from.to_canonical();
        self.directory.clusters.iter().any(|cluster| cluster.comes_from(from))
    }

    /// Finds the cluster of a name in a greeting, before anything is signed.
    pub fn greeted(&self, label: &str) -> Result<&Cluster, Refusal> {
        let label = SniLabel::new(label).map_err(|_| Refusal::Stranger)?;
        self.by_label.get(&label).and_then(|at| self.directory.clusters.get(*at)).ok_or(Refusal::Stranger)
    }

    /// Says whether an address may go on as a cluster, where only those listed may.
    pub fn may_come(&self, cluster: &Cluster, from: IpAddr) -> Result<(), Refusal> {
        let listed = cluster.sources.is_empty() || cluster.comes_from(from.to_canonical());
        if self.directory.sources == Policy::Strict && !listed { Err(Refusal::Source) } else { Ok(()) }
    }

    /// Holds a session against what is known now.
    pub fn admit(
        &self,
        greeted: &ClusterUid,
        certificate: &Certificate,
        now: Seconds,
    ) -> Result<&Cluster, Refusal> {
        let Identity { installation, party } = &certificate.identity;
        if *installation != self.directory.installation {
            return Err(Refusal::OtherInstallation);
        }
        let Party::Cluster(uid) = party else { return Err(Refusal::NotACluster) };
        if uid != greeted {
            return Err(Refusal::OtherCluster);
        }
        let at = self.by_uid.get(uid).ok_or(Refusal::UnknownCluster)?;
        let cluster = self.directory.clusters.get(*at).ok_or(Refusal::UnknownCluster)?;
        if cluster.revoked_before.is_some_and(|moment| certificate.issued < moment) {
            return Err(Refusal::Revoked);
        }
        if now >= certificate.not_after {
            return Err(Refusal::Expired);
        }
        Ok(cluster)
    }

    /// Finds a service that a cluster may reach. One that it may not is as one that does not exist.
    pub fn grant(&self, cluster: &ClusterUid, service: &str) -> Result<&Service, Refusal> {
        let name = ServiceName::new(service).map_err(|_| Refusal::NotGranted)?;
        let found = self.services.get(&name).and_then(|at| self.directory.services.get(*at));
        found.filter(|service| service.clusters.contains(cluster)).ok_or(Refusal::NotGranted)
    }

    /// Lists what a cluster may reach, by name.
    pub fn granted<'a>(&'a self, cluster: &'a ClusterUid) -> impl Iterator<Item = &'a Service> {
        self.services
            .values()
            .filter_map(|at| self.directory.services.get(*at))
            .filter(move |service| service.clusters.contains(cluster))
    }
}

impl Cluster {
    fn comes_from(&self, from: IpAddr) -> bool {
        self.sources.iter().any(|source| source.cidr.contains(&from))
    }
}

#[cfg(test)]
mod tests;
