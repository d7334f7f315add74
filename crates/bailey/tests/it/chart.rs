//! The Helm chart on a real control plane: what it installs, what it leaves, and what it refuses.

use std::collections::BTreeMap;
use std::path::Path;

use bailey_testkit::{Access, ControlPlane, Options};
use serde_json::Value;

use crate::program;

const INSTALL: [&str; 5] = ["install", "bailey", "--namespace", "bailey-system", "--create-namespace"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_chart_installs_and_leaves_the_kinds_when_it_goes() {
    let plane = ControlPlane::start(Options::default()).await.unwrap();
    let admin = plane.admin();
    helm(admin, &[&INSTALL[..], &[&chart()]].concat()).await.stdout_of_success().unwrap();
    let manifest = helm(admin, &["get", "manifest", "bailey", "-n", "bailey-system"]).await;
    let manifest = manifest.stdout_of_success().unwrap();
    let there = admin.kubectl(&["get", "-f", "-", "-o", "name"], Some(&manifest)).await.unwrap();
    let there = there.stdout_of_success().unwrap();
    assert_eq!(there.lines().count(), documents(admin, &manifest).await.len(), "{there}");
    for name in ["tenants.bailey.dev", "deployment.apps/bailey-operator", "serviceaccount/bailey-operator"] {
        assert!(there.contains(name), "{name} not in\n{there}");
    }
    what_the_roles_may_do(&plane).await;

    // As a chart of the same version again, and with other values.
    let upgrade = ["upgrade", "bailey", &chart(), "-n", "bailey-system", "--set", "replicas=1"];
    helm(admin, &upgrade).await.stdout_of_success().unwrap();
    helm(admin, &["uninstall", "bailey", "-n", "bailey-system"]).await.stdout_of_success().unwrap();
    let crds = ["get", "crds", "-o", "name"];
    let crds = admin.kubectl(&crds, None).await.unwrap().stdout_of_success().unwrap();
    assert_eq!(crds.matches(".bailey.dev").count(), 7, "{crds}");
    let left = ["get", "deployments,serviceaccounts,clusterroles,networkpolicies", "-A", "-o", "name"];
    let left = admin.kubectl(&left, None).await.unwrap().stdout_of_success().unwrap();
    assert!(!left.contains("bailey"), "{left}");
    // The kinds that stayed are no obstacle to the next installation.
    helm(admin, &[&INSTALL[..], &[&chart()]].concat()).await.stdout_of_success().unwrap();
}

async fn what_the_roles_may_do(plane: &ControlPlane) {
    for (role, answer, question) in [
        ("operator", "yes", "create validatingadmissionpolicies.admissionregistration.k8s.io"),
        ("operator", "yes", "escalate clusterroles.rbac.authorization.k8s.io"),
        ("operator", "yes", "create leases.coordination.k8s.io -n bailey-system"),
        ("operator", "no", "create leases.coordination.k8s.io -n kube-system"),
        ("operator", "no", "get secrets -n bailey-system"),
        ("operator", "no", "list secrets -A"),
        ("operator", "no", "create pods -n bailey-system"),
        ("operator", "no", "impersonate users"),
        ("auditor", "yes", "list secrets -A"),
        ("auditor", "yes", "patch tenants.bailey.dev --subresource=status"),
        ("auditor", "yes", "get configmaps/argocd-cm -n argocd"),
        ("auditor", "no", "get configmaps -n argocd"),
        ("auditor", "no", "get secrets -A"),
        ("auditor", "no", "get nodes --subresource=proxy"),
        ("auditor", "no", "patch tenants.bailey.dev"),
        ("auditor", "no", "create pods -n bailey-system"),
        ("auditor", "no", "bind clusterroles.rbac.authorization.k8s.io"),
    ] {
        let account = plane.service_account("bailey-system", &format!("bailey-{role}")).await.unwrap();
        let words: Vec<_> = ["auth", "can-i"].into_iter().chain(question.split(' ')).collect();
        let output = account.kubectl(&words, None).await.unwrap();
        assert_eq!(output.stdout.trim(), answer, "{role}: {question}: {}", output.stderr);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_namespace_and_wrong_values_are_refused_with_the_way_out() {
    let plane = ControlPlane::start(Options::default()).await.unwrap();
    let admin = plane.admin();
    let lint = ["lint", "--strict", "--namespace", "bailey-system", &chart()];
    helm(admin, &lint).await.stdout_of_success().unwrap();

    let elsewhere = ["install", "bailey", &chart(), "-n", "default"];
    let refused = helm(admin, &elsewhere).await;
    assert!(refused.stderr.contains("--namespace bailey-system --create-namespace"), "{}", refused.stderr);
    for (values, said) in [
        ("replicaz=3", "additional properties 'replicaz' not allowed"),
        ("replicas=many", "got string, want integer"),
        ("image.digest=latest", "/image/digest"),
        ("networkPolicy.apiServer.cidrs={nowhere}", "/networkPolicy/apiServer/cidrs/0"),
    ] {
        let output = helm(admin, &[&INSTALL[..], &[&chart(), "--set", values]].concat()).await;
        assert!(!output.success() && output.stderr.contains(said), "{values}: {}", output.stderr);
    }
    let old = ["template", "bailey", &chart(), "-n", "bailey-system", "--kube-version", "1.32.0"];
    let refused = helm(admin, &old).await;
    assert!(refused.stderr.contains("bailey needs Kubernetes 1.33 or later"), "{}", refused.stderr);
    let listed = helm(admin, &["list", "-A", "-q"]).await.stdout_of_success().unwrap();
    assert_eq!(listed, "", "a refused chart left a release");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bailey_install_prints_what_the_chart_installs() {
    let plane = ControlPlane::start(Options::default()).await.unwrap();
    let admin = plane.admin();
    for (values, flags) in [
        (&[][..], &[][..]),
        (
            &["--set", "replicas=3,image.repository=r.example/b,image.tag=v1"],
            &["--replicas", "3", "--image", "r.example/b:v1"],
        ),
        (&["--set", "auditor.enabled=false"], &["--without-auditor"]),
    ] {
        let template = ["template", "bailey", &chart(), "-n", "bailey-system"];
        let rendered = helm(admin, &[&template[..], values].concat()).await.stdout_of_success().unwrap();
        let of_chart = documents(admin, &rendered).await;
        let printed = admin.run_program(&program(), &[&["install"], flags].concat(), None).await.unwrap();
        let mut of_bailey = documents(admin, &printed.stdout_of_success().unwrap()).await;
        assert!(of_bailey.remove("Namespace bailey-system").is_some(), "helm makes the namespace itself");
        let names = |objects: &BTreeMap<String, Value>| objects.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&of_bailey), names(&of_chart));
        for (name, object) in &of_bailey {
            assert_eq!(Some(object), of_chart.get(name), "{name}");
        }
    }
}

/// The objects of a YAML stream, as helm and kubectl read it, by kind and name.
async fn documents(admin: &Access, yaml: &str) -> BTreeMap<String, Value> {
    let command = ["create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-"];
    let read = admin.kubectl(&command, Some(yaml)).await.unwrap().stdout_of_success().unwrap();
    let mut objects = BTreeMap::new();
    for object in serde_json::Deserializer::from_str(&read).into_iter::<Value>() {
        let mut object = object.unwrap();
        if object["kind"] == "CustomResourceDefinition" {
            // Helm's own marks: whose release it is, and that it stays.
            let metadata = object["metadata"].as_object_mut().unwrap();
            metadata.remove("labels");
            metadata.remove("annotations");
        }
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        objects.insert(format!("{} {}", text("/kind"), text("/metadata/name")), object);
    }
    objects
}

pub async fn helm(admin: &Access, arguments: &[&str]) -> bailey_testkit::Output {
    admin.helm(arguments).await.unwrap()
}

pub fn chart() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/bailey").to_string_lossy().into_owned()
}
