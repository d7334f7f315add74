//! Kyverno, Velero, OLM, Sealed Secrets, Prometheus Operator, the app platform, and controllers that run pods.

use super::support::{edges, lines_of};

fn workload(image: &str, args: &str) -> String {
    format!(
        "
apiVersion: apps/v1
kind: Deployment
metadata: {{name: x, namespace: system}}
spec: {{template: {{spec: {{serviceAccountName: own, containers: [{{name: m, image: '{image}', args: [{args}]}}]}}}}}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: org-acme, labels: {{giantswarm.io/organization: acme}}}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: other}}
"
    )
}

#[test]
fn policies_of_the_cluster_act_as_kyverno() {
    let text = workload("reg.kyverno.io/kyverno/background-controller:v1.19.0", "");
    let found = lines_of(&text, "kyverno-cluster-policy");
    assert!(
        found.contains(
            &"kyverno-cluster-policy: create clusterpolicies.kyverno.io everywhere -> sa:system/own"
                .to_owned()
        ),
        "{found:?}"
    );
    assert!(
        lines_of(&text, "kyverno-policy-generate").iter().all(|line| line.ends_with("secrets (assumed)"))
    );
}

#[test]
fn a_namespaced_policy_calls_the_api_until_the_fix() {
    let has = |version: &str| {
        let text = workload(&format!("reg.kyverno.io/kyverno/kyverno:{version}"), "");
        lines_of(&text, "kyverno-policy-api-call")
    };
    for vulnerable in ["v1.15.2", "v1.16.2", "v1.14.4", "1.12.0"] {
        assert!(has(vulnerable).iter().any(|line| line.ends_with("sa:system/own")), "{vulnerable}");
    }
    for fixed in ["v1.15.3", "v1.16.3", "v1.16.4", "v1.17.0", "v1.19.0"] {
        assert!(has(fixed).is_empty(), "{fixed}");
    }
    assert!(
        has("latest").iter().any(|line| line.ends_with("sa:system/own (assumed)")),
        "a version that is not known"
    );
}

#[test]
fn exceptions_can_be_switched_off_or_limited() {
    let image = "reg.kyverno.io/kyverno/kyverno:v1.19.0";
    assert!(edges(&workload(image, "")).contains("kyverno-exception"));
    assert!(!edges(&workload(image, "--enablePolicyException=false")).contains("kyverno-exception"));
    let limited = lines_of(&workload(image, "--exceptionNamespace=system"), "kyverno-exception");
    assert!(!limited.is_empty() && limited.iter().all(|line| line.ends_with(" in system")), "{limited:?}");
    let all = lines_of(&workload(image, "--exceptionNamespace=*"), "kyverno-exception");
    assert!(all.iter().all(|line| line.ends_with("nothing")), "{all:?}");
}

#[test]
fn velero_acts_for_who_writes_in_its_namespace() {
    let found = lines_of(&workload("docker.io/velero/velero:v1.18.1", "server"), "velero-restore");
    assert!(
        found.contains(&"velero-restore: create restores.velero.io -> sa:system/own in system".to_owned()),
        "{found:?}"
    );
    assert!(edges(&workload("docker.io/velero/velero:v1.18.1", "node-agent")).is_empty());
}

#[test]
fn an_operator_group_with_an_account_bounds_operators() {
    let group = |account: &str| {
        workload("quay.io/operator-framework/olm:v0.30", "/bin/olm")
            + &format!(
                "---\napiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {{name: g, namespace: other}}\nspec: {{{account}}}\n"
            )
    };
    let open = lines_of(&group(""), "olm-cluster-service-version");
    assert!(!open.is_empty() && open.iter().all(|line| line.ends_with("sa:system/own in other")), "{open:?}");
    let bound = lines_of(&group("serviceAccountName: scoped"), "olm-cluster-service-version");
    assert!(
        !bound.is_empty() && bound.iter().all(|line| line.ends_with("sa:other/scoped in other")),
        "{bound:?}"
    );
    assert!(edges(&group("serviceAccountName: scoped")).contains("olm-operator-group"));
}

#[test]
fn sealing_keys_make_findings() {
    let text = workload("docker.io/bitnami/sealed-secrets-controller:0.36.6", "--key-prefix, sealing")
        + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: sealing-x7, namespace: system}\ntype: kubernetes.io/tls\n"
        + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: web, namespace: system}\ntype: kubernetes.io/tls\n";
    assert_eq!(
        lines_of(&text, "sealed-secrets-key"),
        ["sealed-secrets-key: secret:system/sealing-x7 -> nothing"]
    );
}

fn prometheus(spec: &str, args: &str) -> String {
    workload("quay.io/prometheus-operator/prometheus-operator:v0.93.0", args)
        + &format!(
            "---
apiVersion: monitoring.coreos.com/v1
kind: Prometheus
metadata: {{name: p, namespace: monitoring}}
spec: {{serviceAccountName: prometheus, {spec}}}
"
        )
}

#[test]
fn a_monitor_sends_secrets_where_a_prometheus_looks() {
    let monitors = |spec: &str| {
        let found = lines_of(&prometheus(spec, ""), "prometheus-monitor-secret");
        found.into_iter().find(|line| line.contains("create servicemonitors"))
    };
    let place =
        |spec: &str| monitors(spec).map(|line| line.rsplit("-> ").next().unwrap_or_default().to_owned());
    assert_eq!(place("podMonitorSelector: {}"), None, "no selector of ServiceMonitors selects none");
    assert_eq!(place("serviceMonitorSelector: {}").as_deref(), Some("secrets in monitoring"));
    assert_eq!(
        place("serviceMonitorSelector: {}, serviceMonitorNamespaceSelector: {}").as_deref(),
        Some("secrets")
    );
    let selected = "serviceMonitorSelector: {}, serviceMonitorNamespaceSelector: {matchLabels: {giantswarm.io/organization: acme}}";
    assert_eq!(place(selected).as_deref(), Some("secrets in org-acme"));
}

#[test]
fn a_token_file_is_sent_unless_files_are_denied() {
    let open = "serviceMonitorSelector: {}, serviceMonitorNamespaceSelector: {}";
    let found = lines_of(&prometheus(open, ""), "prometheus-bearer-token-file");
    assert!(found.contains(&"prometheus-bearer-token-file: create servicemonitors.monitoring.coreos.com -> sa:monitoring/prometheus".to_owned()), "{found:?}");
    let denied = format!("{open}, arbitraryFSAccessThroughSMs: {{deny: true}}");
    assert!(lines_of(&prometheus(&denied, ""), "prometheus-bearer-token-file").is_empty());
}

#[test]
fn the_operator_sees_the_namespaces_of_its_flags() {
    let open = "serviceMonitorSelector: {}, serviceMonitorNamespaceSelector: {}";
    let found = lines_of(&prometheus(open, "--namespaces=monitoring"), "prometheus-monitor-secret");
    assert!(!found.is_empty() && found.iter().all(|line| line.ends_with(" in monitoring")), "{found:?}");
    assert!(lines_of(&prometheus(open, "--namespaces=other"), "prometheus-monitor-secret").is_empty());
    let denied = lines_of(&prometheus(open, "--deny-namespaces=org-acme"), "prometheus-pods");
    assert!(
        !denied.is_empty() && denied.iter().all(|line| line.ends_with("pods not in org-acme")),
        "{denied:?}"
    );
}

#[test]
fn without_a_prometheus_monitors_are_assumed() {
    let text = workload("quay.io/prometheus-operator/prometheus-operator:v0.93.0", "");
    let found = lines_of(&text, "prometheus-monitor-secret");
    assert!(!found.is_empty() && found.iter().all(|line| line.ends_with("secrets (assumed)")), "{found:?}");
}

#[test]
fn an_in_cluster_app_acts_as_chart_operator_and_that_is_assumed() {
    let text = workload("gsoci.azurecr.io/giantswarm/chart-operator:4.0.0", "");
    let found = lines_of(&text, "app-in-cluster");
    assert!(
        found.contains(
            &"app-in-cluster: create apps.application.giantswarm.io -> sa:system/own (assumed)".to_owned()
        ),
        "{found:?}"
    );
    assert!(!edges(&text).contains("app-config-secret"), "app-operator does not run");
}

#[test]
fn who_fills_a_catalog_acts_for_in_cluster_apps() {
    let text = |target: &str| {
        workload("gsoci.azurecr.io/giantswarm/chart-operator:4.0.0", "")
            + &format!(
                "---
apiVersion: application.giantswarm.io/v1alpha1
kind: Catalog
metadata: {{name: acme, namespace: org-acme}}
spec: {{storage: {{type: helm, URL: 'https://charts.acme.example/'}}}}
---
apiVersion: application.giantswarm.io/v1alpha1
kind: App
metadata: {{name: a, namespace: org-acme}}
spec: {{catalog: acme, kubeConfig: {{{target}}}}}
"
            )
    };
    assert_eq!(
        lines_of(&text("inCluster: true"), "app-catalog-source"),
        ["app-catalog-source: source:charts.acme.example -> sa:system/own"]
    );
    assert!(lines_of(&text("inCluster: false"), "app-catalog-source").is_empty());
}

#[test]
fn an_app_may_name_kubeconfigs_of_other_namespaces() {
    let text = workload("gsoci.azurecr.io/giantswarm/app-operator:1.0.0", "")
        + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: prod-kubeconfig, namespace: org-acme}\ntype: cluster.x-k8s.io/secret\n";
    assert_eq!(
        lines_of(&text, "app-kubeconfig"),
        [
            "app-kubeconfig: create apps.application.giantswarm.io -> cluster:org-acme/prod (assumed)",
            "app-kubeconfig: patch,update apps.application.giantswarm.io -> cluster:org-acme/prod (assumed)",
        ]
    );
    assert!(lines_of(&text, "app-config-secret").iter().all(|line| line.ends_with("secrets:* (assumed)")));
}

#[test]
fn a_role_binding_template_is_everything_in_organizations() {
    let text = workload("gsoci.azurecr.io/giantswarm/rbac-operator:1.0.0", "");
    let found = lines_of(&text, "role-binding-template");
    assert!(found.contains(&"role-binding-template: create rolebindingtemplates.auth.giantswarm.io everywhere -> everything:org-acme".to_owned()), "{found:?}");
    assert!(!found.iter().any(|line| line.contains("everything:other")));
}

#[test]
fn custom_resources_run_pods_where_their_controller_runs() {
    for (image, kind) in [
        ("quay.io/argoproj/workflow-controller:v3.6", "workflows.argoproj.io"),
        ("gcr.io/tekton-releases/github.com/tektoncd/pipeline/cmd/controller:v1", "pipelineruns.tekton.dev"),
        ("ghcr.io/tektoncd/pipeline/controller-10a3e32792f33651396d02b6855a6e36:v1", "taskruns.tekton.dev"),
        ("quay.io/kubevirt/virt-controller:v1.5", "virtualmachines.kubevirt.io"),
        ("ghcr.io/kedacore/keda:2.20.2", "scaledjobs.keda.sh"),
    ] {
        let found = lines_of(&workload(image, ""), "pod-producing-resource");
        assert!(
            found.contains(&format!("pod-producing-resource: create {kind} -> pods")),
            "{image}: {found:?}"
        );
    }
    assert!(!edges(&workload("nginx:1", "")).contains("pod-producing-resource"));
}

#[test]
fn keda_reads_secrets_unless_it_is_restricted() {
    let text = workload("ghcr.io/kedacore/keda:2.20.2", "");
    let found = lines_of(&text, "keda-trigger-authentication");
    assert!(found.contains(&"keda-trigger-authentication: create triggerauthentications.keda.sh and create,patch,update scaledobjects.keda.sh -> secrets".to_owned()), "{found:?}");
    let restricted =
        text.replace("args:", "env: [{name: KEDA_RESTRICT_SECRET_ACCESS, value: 'true'}], args:");
    assert!(lines_of(&restricted, "keda-trigger-authentication").is_empty());
    let unread = text.replace("args:", "env: [{name: KEDA_RESTRICT_SECRET_ACCESS}], args:");
    assert!(lines_of(&unread, "keda-trigger-authentication").iter().all(|line| line.ends_with("(assumed)")));
}
