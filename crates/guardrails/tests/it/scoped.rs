//! Scoped roles and bindings, as a customer with nothing but what Bailey grants.
use crate::cluster::Cluster;

pub async fn run(_cluster: &Cluster) -> anyhow::Result<Vec<String>> {
    Ok(Vec::new())
}
