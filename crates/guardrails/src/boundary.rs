//! From the model to the index that the rails look things up in.

use std::collections::BTreeMap;

use bailey_api::{
    BoundarySpec, NamespaceName, OPERATOR_ACCOUNT, OPERATOR_NAMESPACE, PLATFORM, ServiceAccountRef,
    SubjectSet, TenantBoundary,
};

use crate::Model;

/// Principals of Kubernetes itself. Namespaces of the platform add their accounts.
const SYSTEM_GROUPS: [&str; 2] = ["system:masters", "system:nodes"];
const SYSTEM_USERS: [&str; 4] =
    ["system:apiserver", "system:kube-controller-manager", "system:kube-scheduler", "system:kube-proxy"];

/// The index of a model.
pub fn boundary(model: &Model) -> BoundarySpec {
    let mut index = BoundarySpec {
        management_kubeconfig: format!("{}-kubeconfig", model.installation.management_cluster.name),
        ..BoundarySpec::default()
    };
    add_platform(&mut index, model);
    for (name, tenant) in &model.tenants {
        let owner = name.to_string();
        for namespace in &tenant.namespaces {
            own_namespace(&mut index, namespace, &owner);
        }
        let subjects = &tenant.spec.subjects;
        for set in [&subjects.installers, &subjects.developers, &subjects.viewers] {
            own_subjects(&mut index, set, &owner);
        }
        let crds = tenant.spec.crds.groups.iter().map(|g| g.to_string());
        let crds = crds.chain(tenant.spec.crds.names.iter().map(|n| n.to_string()));
        index.crds.extend(crds.map(|crd| (crd, owner.clone())));
        let paths = |accounts: &[ServiceAccountRef]| accounts.iter().map(ToString::to_string).collect();
        index.tenants.insert(
            owner,
            TenantBoundary {
                namespace_prefix: tenant.spec.namespace_prefix.clone().unwrap_or_default(),
                install_accounts: paths(&tenant.spec.install.accounts),
                control_accounts: paths(&tenant.spec.install.control_accounts),
                control_charts: tenant.spec.install.control_charts.clone(),
                source_namespaces: tenant
                    .spec
                    .install
                    .source_namespaces
                    .iter()
                    .map(ToString::to_string)
                    .collect(),
            },
        );
    }
    // A kind that existed before its group was given to a tenant stays the platform's.
    let group_given =
        |name: &str| name.split_once('.').is_some_and(|(_, group)| index.crds.contains_key(group));
    let kept: Vec<_> = model
        .platform_crds
        .iter()
        .filter(|name| group_given(name) && !index.crds.contains_key(*name))
        .cloned()
        .collect();
    index.crds.extend(kept.into_iter().map(|name| (name, PLATFORM.to_owned())));
    index
}

fn add_platform(index: &mut BoundarySpec, model: &Model) {
    for namespace in &model.platform_namespaces {
        own_namespace(index, namespace, PLATFORM);
    }
    let platform = &model.installation.platform;
    let own = |map: &mut BTreeMap<String, String>, names: &mut dyn Iterator<Item = String>| {
        map.extend(names.map(|name| (name, PLATFORM.to_owned())));
    };
    own(
        &mut index.groups,
        &mut SYSTEM_GROUPS.iter().map(ToString::to_string).chain(platform.groups.iter().cloned()),
    );
    own(
        &mut index.users,
        &mut SYSTEM_USERS.iter().map(ToString::to_string).chain(platform.users.iter().cloned()),
    );
    own(&mut index.users, &mut platform.service_accounts.iter().map(ServiceAccountRef::username));
    own(
        &mut index.users,
        &mut std::iter::once(format!("system:serviceaccount:{OPERATOR_NAMESPACE}:{OPERATOR_ACCOUNT}")),
    );
}

fn own_namespace(index: &mut BoundarySpec, namespace: &NamespaceName, owner: &str) {
    index.namespaces.insert(namespace.to_string(), owner.to_owned());
    index.groups.insert(namespace.accounts_group(), owner.to_owned());
}

fn own_subjects(index: &mut BoundarySpec, set: &SubjectSet, owner: &str) {
    index.groups.extend(set.groups.iter().map(|g| (g.clone(), owner.to_owned())));
    index.users.extend(set.users.iter().map(|u| (u.clone(), owner.to_owned())));
}
