//! Documents as a real installation gives them: the platform, customers acme and beta, 60 Secrets, 6 findings, 3 gaps.

use bailey_access::Certainty::{self, Proven};
use bailey_access::answer::*;

mod findings;
mod secrets;

use super::super::super::document::{Comparison, Gate, Report, Selection, Waived};
use findings::{backup_path, exec_path, findings, kubeconfig_path, release_path, step};
use secrets::secrets;

/// An audit with something of everything.
pub fn audit() -> Audit {
    let secrets = secrets();
    let count = |verdict| secrets.iter().filter(|secret| secret.verdict == verdict).count();
    let summary = Summary {
        platform_only: count(Verdict::PlatformOnly),
        exactly_one: count(Verdict::ExactlyOne),
        shared: count(Verdict::Shared),
        exposed: count(Verdict::Exposed),
        unowned: count(Verdict::Unowned),
        critical: 2,
        high: 2,
        medium: 1,
        low: 1,
    };
    let cluster = |name: &str, customer: &str, numbers: [usize; 6]| ClusterEntry {
        name: name.into(),
        version: Some("1.36".into()),
        customer: customer.into(),
        namespaces: numbers[0],
        subjects: numbers[1],
        roles: numbers[2],
        bindings: numbers[3],
        pods: numbers[4],
        secrets: numbers[5],
    };
    Audit {
        schema: AUDIT_SCHEMA.into(),
        complete: false,
        gaps: gaps(),
        clusters: vec![
            cluster("harbour", PLATFORM, [11, 148, 214, 267, 1_312, 58]),
            ClusterEntry { version: None, ..cluster("acme-prod", "acme", [6, 40, 88, 97, 212, 2]) },
        ],
        summary,
        secrets,
        findings: findings(),
        hints: vec![
            "2 Secrets are in namespaces of which nobody says whose they are: name the owner of scratch in a Tenant or with --customers".into(),
            "Values were not read, so shared credentials are only those that Secrets of the same name suggest: --fingerprints compares them".into(),
        ],
    }
}

/// An audit in which everything is as it should be.
pub fn clean() -> Audit {
    let mut audit = audit();
    audit.secrets.retain(|secret| matches!(secret.verdict, Verdict::PlatformOnly | Verdict::ExactlyOne));
    audit.findings.clear();
    audit.hints.clear();
    audit.gaps.clear();
    audit.complete = true;
    let Summary { platform_only, exactly_one, .. } = audit.summary;
    audit.summary = Summary { platform_only, exactly_one, ..Summary::default() };
    audit
}

/// An audit by itself.
pub fn report(audit: Audit) -> Report {
    let gate = Gate { fail_on: Severity::High, findings: Vec::new() };
    Report { audit, gate, selection: None, baseline: None, waived: Vec::new() }
}

/// With a baseline in which two findings are new or better, a waiver, and a selection.
pub fn compared() -> Report {
    let finding = |id: &str, message: &str| {
        let mut finding = findings().remove(4);
        finding.id = id.into();
        finding.message = message.into();
        finding
    };
    Report {
        selection: Some(Selection {
            severity: Some(Severity::Low),
            customers: strings(&["acme", "beta"]),
            verdicts: vec![Verdict::Shared],
            secrets_of: 90,
            findings_of: 8,
            ..Selection::default()
        }),
        baseline: Some(Comparison {
            complete: false,
            new: strings(&["read-secret-5d1f0a"]),
            worse: strings(&["exec-91c2e7"]),
            known: strings(&["patch-secret-0b77d4"]),
            gone: vec![finding("old-finding-000001", "sa:acme-apps/old of acme read a Secret of beta")],
            verdicts: Vec::new(),
        }),
        waived: vec![Waived {
            finding: finding(
                "mount-secret-4711aa",
                "sa:acme-apps/backup of acme mounts Secrets of platform-monitoring",
            ),
            owner: "team-storage".into(),
            reason: "the backup moves to a namespace of its own in January".into(),
            expires: "2027-01-31".into(),
        }],
        ..report(audit())
    }
}

/// Readers of a Secret that is shared.
pub fn who_can_read() -> WhoCanRead {
    let mut secret =
        audit().secrets.into_iter().find(|secret| secret.name == "beta-prod-kubeconfig").unwrap();
    secret.subjects.clear();
    let reader = |subject: &str, customer: &str, path: Vec<Step>| Reader {
        subject: subject.into(),
        customer: customer.into(),
        certainty: certainty(&path),
        path,
    };
    let own = vec![
        step(
            [
                "binding",
                "group:customer:beta-admins",
                "holds ClusterRole admin in org-beta",
                "RoleBinding org-beta/beta-admins",
                "",
            ],
            "dump/rolebindings.yaml:40",
        ),
        step(
            [
                "read-secret",
                "holds ClusterRole admin in org-beta",
                "reads all Secrets of org-beta",
                "ClusterRole admin",
                "rules[7]: get,list,watch secrets",
            ],
            "dump/clusterroles.yaml:88",
        ),
    ];
    WhoCanRead {
        schema: WHO_CAN_READ_SCHEMA.into(),
        complete: false,
        gaps: gaps(),
        secret,
        exists: true,
        subjects: vec![
            reader("user:ines@acme.example", "acme", kubeconfig_path()),
            reader("sa:org-acme/backup-agent", "acme", backup_path()),
            reader("sa:acme-apps/shipper", "acme", release_path()),
            reader("group:customer:beta-admins", "beta", own.clone()),
            reader("sa:flux-system/kustomize-controller", PLATFORM, exec_path()[4..].to_vec()),
        ],
    }
}

/// What an account reaches that gets at the whole cluster by a detour.
pub fn reach() -> Reach {
    let exec = exec_path();
    let secrets =
        secrets().into_iter().filter(|secret| secret.cluster == "harbour").map(|secret| ReachedSecret {
            foreign: secret.customer != "beta",
            path: if secret.customer == "beta" { backup_path() } else { exec.clone() },
            certainty: Proven,
            edge: "read-secret".into(),
            cluster: secret.cluster,
            namespace: secret.namespace,
            name: secret.name,
            customer: secret.customer,
        });
    let reached = |what: &str, customer: &str, path: &[Step]| Reached {
        what: what.into(),
        customer: customer.into(),
        certainty: Proven,
        path: path.to_vec(),
    };
    Reach {
        schema: REACH_SCHEMA.into(),
        complete: true,
        gaps: Vec::new(),
        subject: "sa:beta-apps/ci-runner".into(),
        customer: "beta".into(),
        full_control: true,
        identities: vec![reached("sa:flux-system/kustomize-controller", PLATFORM, &exec[..4])],
        powers: vec![reached("everything in the cluster", PLATFORM, &exec)],
        secrets: secrets.collect(),
    }
}

/// Two ways.
pub fn why() -> Why {
    let way = |steps: Vec<Step>| WhyPath { certainty: certainty(&steps), steps };
    Why {
        schema: WHY_SCHEMA.into(),
        complete: true,
        gaps: Vec::new(),
        subject: "sa:acme-apps/shipper".into(),
        customer: "acme".into(),
        secret: "platform-monitoring/alertmanager-webhook".into(),
        reached: true,
        paths: vec![way(starting("sa:acme-apps/shipper", backup_path())), way(release_path())],
    }
}

/// A chart that brings a new finding and settles another.
pub fn what_if() -> WhatIf {
    let change = |subject: &str, foreign: usize, secrets: &[&str], path: Vec<Step>| Change {
        subject: subject.into(),
        customer: "acme".into(),
        secret_count: secrets.len(),
        foreign_count: foreign,
        secrets: strings(secrets),
        path: starting(subject, path),
    };
    let verdict = |secret: &str, before, after| VerdictChange { secret: secret.into(), before, after };
    WhatIf {
        schema: WHAT_IF_SCHEMA.into(),
        complete: true,
        gaps: Vec::new(),
        objects: strings(&[
            "ClusterRole shipper",
            "ClusterRoleBinding shipper",
            "ServiceAccount acme-apps/shipper",
            "Deployment acme-apps/shipper",
        ]),
        gained: vec![
            change("sa:acme-apps/shipper", 2, &["org-beta/db", "org-beta/tls", "org-acme/db"], backup_path()),
            change("group:customer:acme-devs", 0, &["acme-apps/shipper-token"], release_path()),
        ],
        lost: vec![change("sa:org-acme/backup-agent", 1, &["org-beta/*"], Vec::new())],
        verdicts: vec![
            verdict("acme-apps/shipper-token", None, Some(Verdict::ExactlyOne)),
            verdict("org-beta/db", Some(Verdict::ExactlyOne), Some(Verdict::Shared)),
            verdict("flux-system/git", Some(Verdict::Exposed), Some(Verdict::PlatformOnly)),
            verdict("scratch/old", Some(Verdict::Unowned), None),
        ],
        findings: findings().into_iter().take(1).collect(),
        resolved: strings(&["deputy-helm-release-77ab01"]),
    }
}

fn gaps() -> Vec<GapEntry> {
    let gap = |cluster: Option<&str>, what: &str, why: &str| GapEntry {
        cluster: cluster.map(Into::into),
        what: what.into(),
        why: why.into(),
    };
    vec![
        gap(
            Some("acme-prod"),
            "pods in all namespaces",
            "user `auditor` may not list pods there; grant it the ClusterRole bailey:audit",
        ),
        gap(
            Some("harbour"),
            "policies of Kyverno",
            "the engine is installed and its policies are not evaluated; edges that they might close are assumed",
        ),
        gap(None, "cluster beta-prod", "its kubeconfig Secret org-beta/beta-prod-kubeconfig was not read"),
    ]
}

/// The same path, of somebody else.
fn starting(from: &str, mut path: Vec<Step>) -> Vec<Step> {
    path.iter_mut().take(1).for_each(|step| step.from = from.into());
    path
}

fn certainty(steps: &[Step]) -> Certainty {
    steps.iter().map(|step| step.certainty).max().unwrap_or(Proven)
}

fn strings(all: &[&str]) -> Vec<String> {
    all.iter().map(|one| (*one).to_owned()).collect()
}
