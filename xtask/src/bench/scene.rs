//! The customers that are measured with: any number of tenants, each with 20 namespaces.

use anyhow::{Context as _, Result, ensure};
use bailey_api::{Installation, Tenant};
use bailey_guardrails::{Facts, Model, validate};
use serde_json::{Value, json};

/// Namespaces of each tenant.
pub const NAMESPACES: usize = 20;
/// The platform's namespace that is written to.
pub const PLATFORM_NAMESPACE: &str = "platform-bench";
/// The platform's people.
pub const PLATFORM_GROUP: &str = "platform-admins";

/// The name of a tenant.
pub fn tenant_name(tenant: usize) -> String {
    format!("t{tenant:03}")
}

/// The group of a tenant's installers.
pub fn installers(tenant: usize) -> String {
    format!("t{tenant:03}-installers")
}

/// The name of a tenant's namespace.
pub fn namespace(tenant: usize, number: usize) -> String {
    format!("t{tenant:03}-{number:02}")
}

/// The Installation.
pub fn installation() -> Value {
    json!({
        "apiVersion": format!("{}/{}", bailey_api::GROUP, bailey_api::VERSION),
        "kind": "Installation",
        "metadata": { "name": bailey_api::INSTALLATION_NAME },
        "spec": {
            "managementCluster": { "name": "bench" },
            "tenancy": "Shared",
            "enforcement": "Enforce",
            "platform": { "namespaces": [PLATFORM_NAMESPACE], "groups": [PLATFORM_GROUP] },
        },
    })
}

/// A Tenant with people in all three roles, release accounts and an API group of its own.
pub fn tenant(tenant: usize) -> Value {
    let name = tenant_name(tenant);
    let home = namespace(tenant, 0);
    json!({
        "apiVersion": format!("{}/{}", bailey_api::GROUP, bailey_api::VERSION),
        "kind": "Tenant",
        "metadata": { "name": name },
        "spec": {
            "namespaces": (0..NAMESPACES).map(|n| namespace(tenant, n)).collect::<Vec<_>>(),
            "subjects": {
                "installers": { "groups": [installers(tenant)] },
                "developers": { "groups": [format!("{name}-developers")] },
                "viewers": { "groups": [format!("{name}-viewers")] },
            },
            "install": {
                "accounts": [format!("{home}/installer")],
                "controlAccounts": [format!("{home}/control")],
            },
            "crds": { "groups": [format!("{name}.example.com")] },
        },
    })
}

/// The model of so many tenants.
pub fn model(tenants: usize) -> Result<Model> {
    let installation: Installation =
        serde_json::from_value(installation()).context("read the Installation")?;
    let tenants = (0..tenants)
        .map(|number| serde_json::from_value::<Tenant>(tenant(number)).context("read a Tenant"))
        .collect::<Result<Vec<_>>>()?;
    let (model, problems) = validate(&installation, &tenants, &Facts::default());
    ensure!(problems.is_empty(), "the scene contradicts itself: {problems:?}");
    Ok(model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tenant_is_valid_and_has_its_namespaces() {
        let model = model(100).unwrap();
        assert_eq!(model.tenants.len(), 100);
        assert!(model.tenants.values().all(|tenant| tenant.namespaces.len() == NAMESPACES));
    }
}
