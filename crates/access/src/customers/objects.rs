//! Customers as the Tenants and the Installation of a cluster say them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{ACCOUNT, Customer, Customers, Owner};
use crate::{ClusterFacts, ObjectFact, Snapshot};

/// The group of Bailey's own kinds.
const GROUP: &str = "bailey.dev";

impl Customers {
    /// What the Tenants and Installations of all clusters say; none if there is no Tenant.
    pub fn from_objects(snapshot: &Snapshot) -> Option<Self> {
        let mut customers = Self { source: "Tenant objects".to_owned(), ..Self::default() };
        for cluster in &snapshot.clusters {
            for tenant in cluster.objects_of(GROUP, "Tenant") {
                let name = snapshot.symbols.name(tenant.name).to_owned();
                add_tenant(customers.customers.entry(name).or_default(), tenant);
            }
            for installation in cluster.objects_of(GROUP, "Installation") {
                add_installation(&mut customers, installation);
            }
        }
        customers.tidy();
        (!customers.customers.is_empty()).then_some(customers)
    }

    /// Adds the clusters whose Cluster API objects lie in a customer's namespaces.
    pub fn add_clusters(&mut self, snapshot: &Snapshot) {
        let mut found: Vec<(String, String)> = Vec::new();
        for object in snapshot.clusters.iter().flat_map(clusters) {
            let namespace = snapshot.symbols.name(object.namespace);
            if let Owner::Customer(customer) = self.owner_of_namespace(namespace) {
                found.push((customer, snapshot.symbols.name(object.name).to_owned()));
            }
        }
        for (customer, cluster) in found {
            // A cluster that was given to somebody by hand stays there.
            if self.owner_of_cluster(&cluster) == Owner::Unknown
                && let Some(of) = self.customers.get_mut(&customer)
            {
                of.clusters.push(cluster);
            }
        }
        self.tidy();
    }

    /// Sorts all lists and takes out what is there twice.
    pub(super) fn tidy(&mut self) {
        let of_customers = self.customers.values_mut().flat_map(|of| {
            [&mut of.namespaces, &mut of.groups, &mut of.users, &mut of.sources, &mut of.clusters]
        });
        let platform = &mut self.platform;
        let of_platform =
            [&mut platform.namespaces, &mut platform.groups, &mut platform.users, &mut platform.sources];
        for list in of_customers.chain(of_platform) {
            let names: BTreeSet<String> = list.drain(..).collect();
            list.extend(names);
        }
    }
}

/// Cluster API's Cluster objects.
pub(super) fn clusters(cluster: &ClusterFacts) -> impl Iterator<Item = &ObjectFact> {
    cluster.objects_of("cluster.x-k8s.io", "Cluster")
}

fn add_tenant(customer: &mut Customer, tenant: &ObjectFact) {
    customer.namespaces.extend(texts(tenant, "/spec/namespaces"));
    // Those that the tenant made itself, under its prefix.
    customer.namespaces.extend(texts(tenant, "/status/namespaces"));
    customer.namespace_prefix = tenant.text("/spec/namespacePrefix").map(str::to_owned);
    customer.sources.extend(texts(tenant, "/spec/sources"));
    for role in ["installers", "developers", "viewers"] {
        customer.groups.extend(texts(tenant, &format!("/spec/subjects/{role}/groups")));
        customer.users.extend(texts(tenant, &format!("/spec/subjects/{role}/users")));
        let accounts = texts(tenant, &format!("/spec/subjects/{role}/serviceAccounts"));
        customer.users.extend(accounts.iter().filter_map(|account| user_of(account)));
    }
}

fn add_installation(customers: &mut Customers, installation: &ObjectFact) {
    let platform = &mut customers.platform;
    platform.namespaces.extend(texts(installation, "/spec/platform/namespaces"));
    platform.groups.extend(texts(installation, "/spec/platform/groups"));
    platform.users.extend(texts(installation, "/spec/platform/users"));
    let accounts = texts(installation, "/spec/platform/serviceAccounts");
    platform.users.extend(accounts.iter().filter_map(|account| user_of(account)));
}

/// The user name of a ServiceAccount that is written `NAMESPACE/NAME`.
fn user_of(account: &str) -> Option<String> {
    account.split_once('/').map(|(namespace, name)| format!("{ACCOUNT}{namespace}:{name}"))
}

pub(super) fn texts(object: &ObjectFact, pointer: &str) -> Vec<String> {
    let list = object.body.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}
