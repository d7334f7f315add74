//! Presets: whose what is by labels, objects and names.

use super::super::{Preset, presets};
use super::{Customers, Owner, acme, beta, snapshot};
use crate::SubjectKind;

fn by(preset: &str, text: &str) -> Customers {
    Preset::named(preset).expect("a preset").customers(&snapshot(text))
}

#[test]
fn the_presets_can_be_read() {
    let names: Vec<&str> = presets().iter().map(|preset| preset.name.as_str()).collect();
    assert_eq!(names, ["giantswarm", "capsule", "flux", "none"]);
    assert!(presets().iter().all(|preset| !preset.title.is_empty()));
    assert!(Preset::named("other").is_none());
}

const ORGANIZATIONS: &str = "
apiVersion: security.giantswarm.io/v1alpha1
kind: Organization
metadata: {name: acme}
---
apiVersion: security.giantswarm.io/v1alpha1
kind: Organization
metadata: {name: acme-labs}
---
apiVersion: security.giantswarm.io/v1alpha1
kind: Organization
metadata: {name: giantswarm}
---
apiVersion: v1
kind: Namespace
metadata: {name: org-acme, labels: {giantswarm.io/organization: acme}}
---
apiVersion: v1
kind: Namespace
metadata: {name: org-acme-labs}
---
apiVersion: v1
kind: Namespace
metadata: {name: abc12, labels: {giantswarm.io/organization: acme, giantswarm.io/cluster: abc12}}
---
apiVersion: v1
kind: Namespace
metadata: {name: org-giantswarm, labels: {giantswarm.io/organization: giantswarm}}
---
apiVersion: v1
kind: Namespace
metadata: {name: org-unheard-of}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: a, namespace: org-acme}
roleRef: {kind: ClusterRole, name: cluster-admin}
subjects: [{kind: Group, name: 'customer-acme:Admins'}, {kind: Group, name: 'giantswarm-ad:giantswarm-admins'}, {kind: Group, name: 'customer-acme-labs:Admins'}, {kind: Group, name: 'contoso-admins'}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: a, namespace: org-acme-labs}
roleRef: {kind: ClusterRole, name: cluster-admin}
subjects: [{kind: Group, name: 'labs-guests'}, {kind: Group, name: 'megacme:Admins'}]
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: extras, namespace: flux-giantswarm}
spec: {url: 'https://git.acme.example/platform/extras'}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: fleet, namespace: flux-giantswarm}
spec: {url: 'ssh://git@ssh.github.com:443/giantswarm/fleet.git'}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: chart, namespace: org-acme}
spec: {url: 'oci://gsoci.azurecr.io/charts/giantswarm/cluster-aws'}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: public, namespace: org-acme}
spec: {url: 'https://github.com/somebody/charts'}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: acme-prod, namespace: org-acme}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: mc, namespace: org-giantswarm}
";

#[test]
fn organizations_are_customers_but_for_the_platforms_own() {
    let customers = by("giantswarm", ORGANIZATIONS);
    assert_eq!(customers.customers.keys().collect::<Vec<_>>(), ["acme", "acme-labs"]);
    for (namespace, owner) in [
        ("org-acme", acme()),
        ("abc12", acme()),
        ("org-acme-labs", Owner::Customer("acme-labs".to_owned())),
        ("org-giantswarm", Owner::Platform),
        ("org-unheard-of", Owner::Platform),
        ("monitoring", Owner::Platform),
    ] {
        assert_eq!(customers.owner_of_namespace(namespace), owner, "{namespace}");
    }
    assert_eq!(customers.source, "preset giantswarm");
}

#[test]
fn groups_belong_to_the_one_customer_that_they_name_where_they_are_bound() {
    let customers = by("giantswarm", ORGANIZATIONS);
    for (group, owner) in [
        ("customer-acme:Admins", acme()),
        ("giantswarm-ad:giantswarm-admins", Owner::Platform),
        ("customer-acme-labs:Admins", Owner::Unknown),
        ("contoso-admins", Owner::Unknown),
        ("labs-guests", Owner::Unknown),
        ("megacme:Admins", Owner::Unknown),
    ] {
        assert_eq!(customers.owner_of_subject(SubjectKind::Group, "", group), owner, "{group}");
    }
}

#[test]
fn sources_and_clusters_follow() {
    let customers = by("giantswarm", ORGANIZATIONS);
    for (url, owner) in [
        ("https://git.acme.example/platform/extras", acme()),
        ("https://github.com/giantswarm/fleet", Owner::Platform),
        ("oci://gsoci.azurecr.io/charts/giantswarm/cluster-aws", Owner::Platform),
        ("https://github.com/somebody/charts", Owner::Unknown),
    ] {
        assert_eq!(customers.owner_of_source(url), owner, "{url}");
    }
    assert_eq!(customers.owner_of_cluster("acme-prod"), acme());
    assert_eq!(customers.owner_of_cluster("mc"), Owner::Unknown);
}

const CAPSULE: &str = "
apiVersion: capsule.clastix.io/v1beta2
kind: Tenant
metadata: {name: acme}
spec: {owners: [{kind: User, name: jane}, {kind: Group, name: 'acme:devs'}, {kind: ServiceAccount, name: 'system:serviceaccount:ci:acme'}]}
status: {namespaces: [acme-one]}
---
apiVersion: v1
kind: Namespace
metadata: {name: two, labels: {capsule.clastix.io/tenant: acme}}
";

#[test]
fn tenants_of_capsule_have_owners_and_namespaces() {
    let customers = by("capsule", CAPSULE);
    assert_eq!(customers.owner_of_namespace("acme-one"), acme());
    assert_eq!(customers.owner_of_namespace("two"), acme());
    for (kind, namespace, name) in [
        (SubjectKind::User, "", "jane"),
        (SubjectKind::Group, "", "acme:devs"),
        (SubjectKind::ServiceAccount, "ci", "acme"),
    ] {
        assert_eq!(customers.owner_of_subject(kind, namespace, name), acme(), "{name}");
    }
}

const FLUX: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: apps, labels: {toolkit.fluxcd.io/tenant: beta}}
";

#[test]
fn tenants_of_flux_are_labels() {
    let customers = by("flux", FLUX);
    assert_eq!(customers.owner_of_namespace("apps"), beta());
    assert_eq!(customers.owner_of_namespace("other"), Owner::Platform);
}

#[test]
fn a_snapshot_tells_its_preset_if_there_is_one_only() {
    let detected = |text: &str| Preset::detect(&snapshot(text)).map(|preset| preset.name.as_str());
    assert_eq!(detected(ORGANIZATIONS), Some("giantswarm"));
    assert_eq!(detected(CAPSULE), Some("capsule"));
    assert_eq!(detected(FLUX), Some("flux"));
    assert_eq!(detected(&format!("{CAPSULE}---{FLUX}")), None);
    assert_eq!(detected("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n"), None);
}

#[test]
fn with_none_nobody_is_known() {
    let customers = by("none", ORGANIZATIONS);
    assert!(customers.customers.is_empty());
    assert_eq!(customers.owner_of_namespace("org-acme"), Owner::Unknown);
    assert_eq!(customers.owner_of_namespace("kube-system"), Owner::Platform);
}
