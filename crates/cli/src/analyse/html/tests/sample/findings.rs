//! The findings of the sample, and the paths that other answers show too.

use bailey_access::Certainty::{Assumed, Proven};
use bailey_access::answer::*;

use super::strings;

pub fn findings() -> Vec<Finding> {
    let plain = Finding {
        id: String::new(),
        rule: String::new(),
        severity: Severity::Low,
        message: String::new(),
        subject: String::new(),
        customer: "acme".into(),
        also: Vec::new(),
        reaches: Vec::new(),
        secrets: Vec::new(),
        secret_count: 0,
        certainty: Proven,
        path: Vec::new(),
        remedy: String::new(),
    };
    vec![
        Finding {
            id: "read-secret-5d1f0a".into(),
            rule: "read-secret".into(),
            severity: Severity::Critical,
            message: "sa:org-acme/backup-agent of acme reads all Secrets of the cluster, those of beta and of the platform among them".into(),
            subject: "sa:org-acme/backup-agent".into(),
            also: strings(&["group:customer:acme-admins", "group:customer:acme-devs", "sa:acme-apps/shipper"]),
            reaches: strings(&["beta", PLATFORM]),
            secrets: strings(&["*/*"]),
            secret_count: 40,
            path: backup_path(),
            remedy: "bind ClusterRole backup-agent by a RoleBinding in each namespace of acme instead of by ClusterRoleBinding backup-agent".into(),
            ..plain.clone()
        },
        Finding {
            id: "exec-91c2e7".into(),
            rule: "exec".into(),
            severity: Severity::Critical,
            message: "sa:beta-apps/ci-runner of beta runs code in a pod of Flux and so has full control of the cluster".into(),
            subject: "sa:beta-apps/ci-runner".into(),
            customer: "beta".into(),
            reaches: strings(&["acme", PLATFORM]),
            secrets: strings(&["flux-system/git", "org-acme/acme-prod-kubeconfig", "org-acme/cloud-credentials", "kube-system/cilium-ca", "platform-monitoring/grafana-admin", "acme-apps/db", "scratch/old"]),
            secret_count: 41,
            path: exec_path(),
            remedy: "take pods/exec out of Role flux-system/debug, or take sa:beta-apps/ci-runner out of RoleBinding flux-system/debug".into(),
            ..plain.clone()
        },
        Finding {
            id: "patch-secret-0b77d4".into(),
            rule: "patch-secret".into(),
            severity: Severity::High,
            message: "user:ines@acme.example of acme reads Secret org-beta/beta-prod-kubeconfig of beta: a patch that changes nothing is answered with the whole object".into(),
            subject: "user:ines@acme.example".into(),
            reaches: strings(&["beta"]),
            secrets: strings(&["org-beta/beta-prod-kubeconfig"]),
            secret_count: 1,
            path: kubeconfig_path(),
            remedy: "remove `patch` from rules[2] of Role org-beta/kubeconfig-rotator, or remove the subject from its binding".into(),
            ..plain.clone()
        },
        Finding {
            id: "shared-credential-e0931c".into(),
            rule: "shared-credential".into(),
            severity: Severity::High,
            message: "the same registry password lies in Secrets of acme and of beta".into(),
            subject: "acme-apps/registry-pull".into(),
            reaches: strings(&["beta"]),
            secrets: strings(&["acme-apps/registry-pull", "beta-apps/registry-pull"]),
            secret_count: 2,
            path: vec![step(["same-credential", "Secret acme-apps/registry-pull", "holds the credential of Secret beta-apps/registry-pull", "Secret beta-apps/registry-pull", "password for registry.example"], "dump/secrets.yaml:9120")],
            remedy: "give each customer a password of its own for registry.example".into(),
            ..plain.clone()
        },
        Finding {
            id: "deputy-helm-release-77ab01".into(),
            rule: "deputy-helm-release".into(),
            severity: Severity::Medium,
            message: "sa:acme-apps/shipper of acme has Flux read Secrets of platform-monitoring for it".into(),
            subject: "sa:acme-apps/shipper".into(),
            reaches: strings(&[PLATFORM]),
            secrets: strings(&["platform-monitoring/alertmanager-webhook"]),
            secret_count: 1,
            certainty: Assumed,
            path: release_path(),
            remedy: "start helm-controller with --default-service-account=default, so that no release is applied with its own rights".into(),
            ..plain.clone()
        },
        Finding {
            id: "unused-waiver-3f00aa".into(),
            rule: "unused-waiver".into(),
            severity: Severity::Low,
            message: "the waiver for read-secret-aa01bc, owned by team-storage, fits no finding".into(),
            subject: "waivers.yaml".into(),
            customer: PLATFORM.into(),
            remedy: "remove the waiver".into(),
            ..plain
        },
    ]
}

pub fn backup_path() -> Vec<Step> {
    vec![
        step(
            [
                "binding",
                "sa:org-acme/backup-agent",
                "holds ClusterRole backup-agent in the cluster",
                "ClusterRoleBinding backup-agent",
                "",
            ],
            "dump/clusterrolebindings.yaml:118",
        ),
        step(
            [
                "read-secret",
                "holds ClusterRole backup-agent in the cluster",
                "reads all Secrets of the cluster",
                "ClusterRole backup-agent",
                "rules[0]: get,list secrets",
            ],
            "dump/clusterroles.yaml:2041",
        ),
    ]
}

pub fn exec_path() -> Vec<Step> {
    let role = "holds Role flux-system/debug in flux-system";
    let admin = "holds ClusterRole cluster-admin in the cluster";
    let account = "sa:flux-system/kustomize-controller";
    let pod = "runs code in pod flux-system/kustomize-controller-6f9c7d5b8c-x2x7p";
    vec![
        step(
            ["binding", "sa:beta-apps/ci-runner", role, "RoleBinding flux-system/debug", ""],
            "dump/rolebindings.yaml:2207",
        ),
        step(
            [
                "rule",
                role,
                "create pods/exec in flux-system",
                "Role flux-system/debug",
                "rules[1]: create pods/exec",
            ],
            "dump/roles.yaml:310",
        ),
        step(
            [
                "exec",
                "create pods/exec in flux-system",
                pod,
                "Pod flux-system/kustomize-controller-6f9c7d5b8c-x2x7p",
                "",
            ],
            "dump/pods.yaml:55012",
        ),
        step(["token-in-pod", pod, account, "", ""], ""),
        step(
            ["binding", account, admin, "ClusterRoleBinding cluster-reconciler-flux-system", ""],
            "dump/clusterrolebindings.yaml:871",
        ),
        step(
            [
                "everything",
                admin,
                "reads all Secrets of the cluster",
                "ClusterRole cluster-admin",
                "rules[0]: * *.*",
            ],
            "dump/clusterroles.yaml:12",
        ),
    ]
}

pub fn kubeconfig_path() -> Vec<Step> {
    let role = "holds Role org-beta/kubeconfig-rotator in org-beta";
    vec![
        step(
            ["binding", "user:ines@acme.example", role, "RoleBinding org-beta/kubeconfig-rotator", ""],
            "dump/rolebindings.yaml:77",
        ),
        step(
            [
                "patch-secret",
                role,
                "reads Secret org-beta/beta-prod-kubeconfig",
                "Role org-beta/kubeconfig-rotator",
                "rules[2]: patch secrets beta-prod-kubeconfig",
            ],
            "dump/roles.yaml:1204",
        ),
    ]
}

pub fn release_path() -> Vec<Step> {
    let held = "holds Role acme-apps/releases in acme-apps";
    let mut steps = vec![
        step(
            ["binding", "sa:acme-apps/shipper", held, "RoleBinding acme-apps/shipper-releases", ""],
            "dump/rolebindings.yaml:19",
        ),
        step(
            [
                "rule",
                held,
                "create helmreleases.helm.toolkit.fluxcd.io in acme-apps",
                "Role acme-apps/releases",
                "rules[0]: create,patch helmreleases.helm.toolkit.fluxcd.io",
            ],
            "dump/roles.yaml:33",
        ),
        step(
            [
                "deputy-helm-release",
                "create helmreleases.helm.toolkit.fluxcd.io in acme-apps",
                "sa:flux-system/helm-controller",
                "Deployment flux-system/helm-controller",
                "--watch-all-namespaces",
            ],
            "dump/deployments.yaml:204",
        ),
        step(
            [
                "binding",
                "sa:flux-system/helm-controller",
                "reads all Secrets of the cluster",
                "ClusterRoleBinding crd-controller-flux-system",
                "rules[3]: get,list,watch secrets",
            ],
            "dump/clusterrolebindings.yaml:902",
        ),
    ];
    steps[2].certainty = Assumed;
    steps[2].guard =
        Some("policies of Kyverno, which were not evaluated, may demand spec.serviceAccountName".into());
    steps
}

/// Edge, from, to, object, rule; and where the object is.
pub fn step([edge, from, to, object, rule]: [&str; 5], at: &str) -> Step {
    Step {
        edge: edge.into(),
        from: from.into(),
        to: to.into(),
        object: object.into(),
        rule: rule.into(),
        at: (!at.is_empty()).then(|| at.into()),
        guard: None,
        certainty: Proven,
    }
}
