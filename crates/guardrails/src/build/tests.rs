use bailey_api::{Installation, Tenant};
use serde_json::json;

use super::*;
use crate::{Facts, Resource, ResourceScope, policies, validate};

/// Two customers on a small cluster, in a mode.
fn model(enforcement: &str) -> Model {
    let installation: Installation = serde_json::from_value(json!({
        "apiVersion": "bailey.dev/v1alpha1", "kind": "Installation", "metadata": {"name": "installation"},
        "spec": {
            "managementCluster": {"name": "mc"}, "enforcement": enforcement,
            "platform": {"namespaces": ["monitoring"], "groups": ["ops"], "users": ["pia"]},
        },
    }))
    .unwrap();
    let tenant = |name: &str, spec: Value| -> Tenant {
        serde_json::from_value(json!({
            "apiVersion": "bailey.dev/v1alpha1", "kind": "Tenant", "metadata": {"name": name}, "spec": spec,
        }))
        .unwrap()
    };
    let acme = json!({
        "namespaces": ["org-acme"], "namespacePrefix": "acme-",
        "subjects": {"installers": {"groups": ["acme-admins"]}, "developers": {"users": ["dora"]}},
        "install": {"accounts": ["org-acme/installer"], "controlAccounts": ["org-acme/control"]},
        "crds": {"groups": ["argoproj.io"], "names": ["widgets.acme.example"]},
    });
    let beta = json!({"namespaces": ["org-beta"], "install": {"target": "WorkloadClusters"},
        "subjects": {"installers": {"groups": ["beta-admins"]}}});
    let facts = Facts { crds: [("rollouts.argoproj.io".to_owned(), None)].into(), ..Facts::default() };
    let (model, problems) = validate(&installation, &[tenant("acme", acme), tenant("beta", beta)], &facts);
    assert_eq!(problems, []);
    model
}

fn discovery() -> Discovery {
    use ResourceScope::{Cluster, Namespaced};
    let resource = |group: &str, name: &str, scope, verbs: &str| Resource {
        group: group.into(),
        name: name.into(),
        scope,
        verbs: verbs.split(' ').map(Into::into).collect(),
    };
    let all = "create delete deletecollection get list patch update watch";
    let admission = "admissionregistration.k8s.io";
    Discovery::new([
        resource("", "configmaps", Namespaced, all),
        resource("", "pods", Namespaced, all),
        resource("", "pods/exec", Namespaced, "create get"),
        resource("", "resourcequotas", Namespaced, all),
        resource("", "secrets", Namespaced, all),
        resource("", "nodes", Cluster, all),
        resource("argoproj.io", "rollouts", Cluster, all),
        resource("argoproj.io", "clusteranalyses", Cluster, all),
        resource("helm.toolkit.fluxcd.io", "helmreleases", Namespaced, all),
        resource("storage.k8s.io", "storageclasses", Cluster, all),
        resource(admission, "validatingadmissionpolicies", Cluster, all),
        resource(admission, "mutatingadmissionpolicies", Cluster, all),
    ])
}

#[test]
fn two_customers_become_these_objects() {
    let desired = build(&model("Enforce"), &[], &discovery());
    let objects: Vec<_> = desired.objects().map(|o| &o.content).collect();
    insta::assert_yaml_snapshot!(objects);
}

#[test]
fn the_rails_are_bound_as_the_mode_says() {
    let all = policies().unwrap();
    let bound = |mode: &str| -> Vec<String> {
        let desired = build(&model(mode), &all, &discovery());
        let binding = |o: &&Object| {
            matches!(o.kind, ObjectKind::ValidatingPolicyBinding | ObjectKind::MutatingPolicyBinding)
        };
        let shown = |o: &Object| {
            let spec = &o.content["spec"];
            let actions =
                spec["validationActions"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let missing = spec["paramRef"]["parameterNotFoundAction"].as_str().unwrap_or("-");
            format!(
                "{} [{}] without what it looks up: {missing}",
                o.name,
                actions.collect::<Vec<_>>().join(", ")
            )
        };
        desired.rails.iter().filter(binding).map(shown).collect()
    };
    let modes = ["Audit", "Warn", "Enforce"].map(|mode| (mode, bound(mode)));
    insta::assert_yaml_snapshot!(modes);
}

#[test]
fn without_mutating_policies_what_needs_them_is_absent() {
    let resources = discovery()
        .resources()
        .iter()
        .filter(|r| r.name != "mutatingadmissionpolicies")
        .cloned()
        .collect::<Vec<_>>();
    let desired = build(&model("Enforce"), &policies().unwrap(), &Discovery::new(resources));
    let absent: Vec<_> = desired
        .rail_status
        .iter()
        .filter(|r| r.state == RailState::Absent)
        .map(|r| r.name.as_str())
        .collect();
    assert!(absent.contains(&"scoped-roles") && absent.contains(&"ownership"), "{absent:?}");
    assert!(desired.rails.iter().all(|o| o.kind != ObjectKind::MutatingPolicy));
}

#[test]
fn cluster_wide_writes_are_given_only_while_the_rails_refuse() {
    for (mode, given) in [("Audit", false), ("Warn", false), ("Enforce", true)] {
        let desired = build(&model(mode), &[], &discovery());
        let role = desired.grants.iter().find(|o| o.name == "bailey:tenant:acme").unwrap();
        assert_eq!(role.content.to_string().contains("clusterrolebindings"), given, "{mode}");
    }
}

#[test]
fn pod_security_is_tightened_and_never_loosened() {
    let mut model = model("Enforce");
    let namespace = NamespaceName::new("org-acme").unwrap();
    let acme = model.tenants.get_mut("acme").unwrap();
    acme.pod_security.insert(namespace, [("enforce".to_owned(), PodSecurity::Restricted)].into());
    let labels = |mode| {
        let mut model = model.clone();
        model.installation.enforcement = mode;
        let desired = build(&model, &[], &discovery());
        let object = desired.namespaces.iter().find(|o| o.name == "org-acme").unwrap();
        let labels = &object.content["metadata"]["labels"];
        ["enforce", "warn", "audit"]
            .map(|m| labels[format!("{POD_SECURITY_PREFIX}{m}")].as_str().unwrap_or("-").to_owned())
    };
    assert_eq!(labels(Enforcement::Enforce), ["restricted", "baseline", "baseline"]);
    assert_eq!(labels(Enforcement::Warn), ["-", "baseline", "baseline"]);
    assert_eq!(labels(Enforcement::Audit), ["-", "-", "baseline"]);
}
