//! The Secrets of the sample.

use bailey_access::Certainty::{Assumed, Proven};
use bailey_access::answer::*;

use super::strings;

/// Namespace, owner, verdict, audience, names.
type Place = (&'static str, &'static str, Verdict, &'static [&'static str], &'static [&'static str]);

const PLACES: &[Place] = &[
    (
        "acme-apps",
        "acme",
        Verdict::ExactlyOne,
        &["acme"],
        &[
            "db",
            "shipper",
            "shipper-smtp",
            "sh.helm.release.v1.shipper.v1",
            "sh.helm.release.v1.shipper.v2",
            "session-key",
            "sentry",
            "oauth-client",
            "s3-upload",
        ],
    ),
    ("acme-apps", "acme", Verdict::Shared, &["acme", "beta"], &["registry-pull"]),
    (
        "beta-apps",
        "beta",
        Verdict::ExactlyOne,
        &["beta"],
        &["web", "web-tls", "queue", "ci-deploy-key", "mail", "geo-api", "stripe", "redis", "s3-export"],
    ),
    ("beta-apps", "beta", Verdict::Shared, &["acme", "beta"], &["registry-pull"]),
    (
        "flux-system",
        PLATFORM,
        Verdict::PlatformOnly,
        &[],
        &["sops-age", "slack-webhook", "registry", "cosign-pub", "notification-token"],
    ),
    ("flux-system", PLATFORM, Verdict::Exposed, &["beta"], &["git"]),
    (
        "kube-system",
        PLATFORM,
        Verdict::PlatformOnly,
        &[],
        &[
            "bootstrap-token-a1b2c3",
            "cilium-ca",
            "hubble-server-certs",
            "csi-credentials",
            "etcd-encryption",
            "konnectivity-certs",
        ],
    ),
    (
        "org-acme",
        "acme",
        Verdict::ExactlyOne,
        &["acme"],
        &[
            "acme-prod-kubeconfig",
            "acme-prod-ca",
            "acme-prod-etcd",
            "acme-prod-sa",
            "acme-prod-proxy",
            "cloud-credentials",
            "backup-target",
            "oidc",
        ],
    ),
    (
        "org-beta",
        "beta",
        Verdict::ExactlyOne,
        &["beta"],
        &["beta-prod-ca", "beta-prod-etcd", "beta-prod-sa", "beta-prod-proxy", "cloud-credentials", "oidc"],
    ),
    (
        "org-beta",
        "beta",
        Verdict::Shared,
        &["acme", "beta"],
        &[
            "beta-prod-kubeconfig",
            "backup-target-of-the-nightly-job-that-copies-all-volumes-to-another-region",
        ],
    ),
    (
        "platform-monitoring",
        PLATFORM,
        Verdict::PlatformOnly,
        &[],
        &[
            "grafana-admin",
            "thanos-objstore",
            "prometheus-remote-write",
            "alertmanager-config",
            "loki-bucket",
            "tempo-bucket",
            "mimir-bucket",
        ],
    ),
    ("platform-monitoring", PLATFORM, Verdict::Exposed, &["acme", "everyone"], &["alertmanager-webhook"]),
    ("scratch", UNKNOWN, Verdict::Unowned, &["acme", "beta"], &["old", "test-pull"]),
];

pub fn secrets() -> Vec<SecretEntry> {
    let mut secrets: Vec<_> =
        PLACES.iter().flat_map(|place| place.4.iter().map(|name| secret(place, name))).collect();
    for name in ["argocd-cluster-harbour", "vault-unseal"] {
        let place: Place = ("argocd", "acme", Verdict::ExactlyOne, &["acme"], &[]);
        secrets.push(SecretEntry { cluster: "acme-prod".into(), certainty: Assumed, ..secret(&place, name) });
    }
    secrets.sort_by_key(|secret| (secret.cluster.clone(), secret.namespace.clone(), secret.name.clone()));
    secrets
}

fn secret((namespace, customer, verdict, audience, _): &Place, name: &str) -> SecretEntry {
    let subject = |subject: String, customer: &str, certainty| SubjectEntry {
        subject,
        customer: customer.into(),
        certainty,
    };
    let mut subjects = vec![
        subject("group:platform:admins".into(), PLATFORM, Proven),
        subject("sa:flux-system/helm-controller".into(), PLATFORM, Proven),
        subject("sa:flux-system/kustomize-controller".into(), PLATFORM, Proven),
        subject("sa:kube-system/generic-garbage-collector".into(), PLATFORM, Proven),
    ];
    for who in *audience {
        subjects.push(match *who {
            EVERYONE => subject("group:system:authenticated".into(), EVERYONE, Assumed),
            who if who == *customer => subject(format!("group:customer:{who}-admins"), who, Proven),
            who => subject(
                format!("sa:org-{who}/backup-agent"),
                who,
                if name.len() > 20 { Assumed } else { Proven },
            ),
        });
    }
    if name == "db" {
        subjects.push(subject("sa:acme-apps/shipper".into(), "acme", Proven));
    }
    let kind = match name {
        "registry-pull" | "test-pull" => "kubernetes.io/dockerconfigjson",
        "web-tls" => "kubernetes.io/tls",
        _ if name.starts_with("sh.helm") => "helm.sh/release.v1",
        _ if name.starts_with("bootstrap-token") => "bootstrap.kubernetes.io/token",
        _ if name.contains("-prod-") => "cluster.x-k8s.io/secret",
        _ => "Opaque",
    };
    SecretEntry {
        cluster: "harbour".into(),
        namespace: (*namespace).into(),
        name: name.into(),
        kind: kind.into(),
        customer: (*customer).into(),
        verdict: *verdict,
        certainty: Proven,
        audience: strings(audience),
        subjects,
    }
}
