//! Answers about one small installation, made by hand: two customers, one Secret shared, one exposed.

use bailey_access::Certainty::{self, Assumed, Proven};
use bailey_access::answer::{
    AUDIT_SCHEMA, Audit, Change, ClusterEntry, Finding, GapEntry, REACH_SCHEMA, Reach, Reached,
    ReachedSecret, Reader, SecretEntry, Severity, Step, SubjectEntry, Summary, Verdict, VerdictChange,
    WHAT_IF_SCHEMA, WHO_CAN_READ_SCHEMA, WHY_SCHEMA, WhatIf, WhoCanRead, Why, WhyPath,
};

/// The account of acme's backup, bound in beta's namespace by mistake.
pub const BACKUP: &str = "sa:org-acme/backup";
/// The ids of the findings of [`audit`], worst first.
pub const IDS: [&str; 4] =
    ["read-secret-7c1f09ab", "exec-52e8d410", "cloud-identity-0b77a3c9", "pod-logs-e91d6f22"];

/// What is known of the installation.
pub fn audit() -> Audit {
    let secrets = vec![
        secret("flux-system", "deploy-key", "platform", Verdict::PlatformOnly, Proven, &["platform"]),
        secret("legacy", "old-registry", "unknown", Verdict::Unowned, Proven, &["platform"]),
        secret("monitoring", "alert-receivers", "platform", Verdict::Exposed, Proven, &["acme", "platform"]),
        secret("org-acme", "app", "acme", Verdict::ExactlyOne, Proven, &["acme", "platform"]),
        secret("org-beta", "db", "beta", Verdict::Shared, Proven, &["acme", "beta", "platform"]),
        secret("org-beta", "tls", "beta", Verdict::ExactlyOne, Assumed, &["beta", "platform"]),
    ];
    Audit {
        schema: AUDIT_SCHEMA.to_owned(),
        complete: true,
        gaps: Vec::new(),
        clusters: vec![ClusterEntry {
            name: "harbour".to_owned(),
            version: Some("1.36".to_owned()),
            customer: "platform".to_owned(),
            namespaces: 5,
            subjects: 14,
            roles: 21,
            bindings: 18,
            pods: 9,
            secrets: 6,
        }],
        summary: Summary {
            platform_only: 1,
            exactly_one: 2,
            shared: 1,
            exposed: 1,
            unowned: 1,
            critical: 0,
            high: 2,
            medium: 1,
            low: 1,
        },
        secrets,
        findings: vec![shared(), exposed(), cloud(), logs()],
        hints: vec![
            "1 Secret is of nobody known: name its namespace in a Tenant, or with --tenants.".to_owned(),
        ],
    }
}

/// The same, where pods could not be read.
pub fn incomplete() -> Audit {
    let gap = GapEntry {
        cluster: Some("harbour".to_owned()),
        what: "pods".to_owned(),
        why: "jane may not list them; ask for the right to list pods in all namespaces".to_owned(),
    };
    Audit { complete: false, gaps: vec![gap], ..audit() }
}

fn secret(
    namespace: &str,
    name: &str,
    customer: &str,
    verdict: Verdict,
    certainty: Certainty,
    audience: &[&str],
) -> SecretEntry {
    let subjects = match name {
        "db" => vec![(BACKUP, "acme"), ("group:acme-developers", "acme")],
        "alert-receivers" => vec![("group:acme-developers", "acme")],
        _ => Vec::new(),
    };
    let subject = |(subject, customer): (&str, &str)| SubjectEntry {
        subject: subject.to_owned(),
        customer: customer.to_owned(),
        certainty: Proven,
    };
    SecretEntry {
        cluster: "harbour".to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        kind: "Opaque".to_owned(),
        customer: customer.to_owned(),
        verdict,
        certainty,
        audience: audience.iter().map(ToString::to_string).collect(),
        subjects: subjects.into_iter().map(subject).collect(),
    }
}

/// A step of a path: edge, from, to, object, rule, place.
pub fn step(edge: &str, from: &str, to: &str, object: &str, rule: &str, at: Option<&str>) -> Step {
    Step {
        edge: edge.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        object: object.to_owned(),
        rule: rule.to_owned(),
        at: at.map(str::to_owned),
        guard: None,
        certainty: Proven,
    }
}

fn backup_path() -> Vec<Step> {
    let (binding, role) = ("RoleBinding org-beta/backup", "ClusterRole backup-reader");
    let holds = "holds ClusterRole backup-reader in org-beta";
    vec![
        step("bound", BACKUP, holds, binding, "subjects[0]", Some("dump/rolebindings.json:212")),
        step(
            "read-secret",
            holds,
            "reads org-beta/db",
            role,
            "rules[0]: get,list secrets",
            Some("dump/clusterroles.json:88"),
        ),
    ]
}

fn exec_path() -> Vec<Step> {
    let (group, pod) = ("group:acme-developers", "runs code in pod monitoring/alertmanager-0");
    let role = "holds Role monitoring/debug";
    let rule = "rules[1]: create pods/exec";
    let mut exec = step("exec", role, pod, "Role monitoring/debug", rule, Some("dump/roles.json:40"));
    exec.guard = Some("policy no-exec (Kyverno) looks at namespaces org-* only".to_owned());
    let binding = "RoleBinding monitoring/on-call-debug";
    vec![
        step("bound", group, role, binding, "subjects[2]", Some("dump/rolebindings.json:97")),
        exec,
        step(
            "inside-pod",
            pod,
            "reads monitoring/alert-receivers",
            "Pod monitoring/alertmanager-0",
            "",
            None,
        ),
    ]
}

/// A finding with nothing that a test does not name.
pub fn finding(id: &str, severity: Severity, subject: &str, path: Vec<Step>, secrets: &[&str]) -> Finding {
    let rule = path.last().map_or("bound", |step| step.edge.as_str()).to_owned();
    Finding {
        id: id.to_owned(),
        rule,
        severity,
        message: format!("{subject} reaches what is not acme's"),
        subject: subject.to_owned(),
        customer: "acme".to_owned(),
        also: Vec::new(),
        reaches: vec!["beta".to_owned()],
        secrets: secrets.iter().map(ToString::to_string).collect(),
        secret_count: secrets.len(),
        certainty: Proven,
        path,
        remedy: "Take the rule away.".to_owned(),
    }
}

/// acme reads a Secret of beta.
pub fn shared() -> Finding {
    Finding {
        message: "sa:org-acme/backup of acme reads 1 Secret of beta".to_owned(),
        also: vec!["group:acme-developers".to_owned()],
        remedy: "Delete RoleBinding org-beta/backup, or bind an account of beta in it.".to_owned(),
        ..finding(IDS[0], Severity::High, BACKUP, backup_path(), &["org-beta/db"])
    }
}

/// acme reads a Secret of the platform through a pod.
pub fn exposed() -> Finding {
    Finding {
        rule: "exec".to_owned(),
        message: "group:acme-developers of acme runs code in a pod of the platform and reads 1 Secret of the platform".to_owned(),
        reaches: vec!["platform".to_owned()],
        remedy: "Take create on pods/exec out of Role monitoring/debug.".to_owned(),
        ..finding(IDS[1], Severity::High, "group:acme-developers", exec_path(), &["monitoring/alert-receivers"])
    }
}

fn cloud() -> Finding {
    let identity = "arn:aws:iam::111122223333:role/org-acme-<store>";
    let to = format!("acts as {identity}");
    let path = vec![Step {
        certainty: Assumed,
        guard: Some("what the cloud lets this identity do was not read".to_owned()),
        ..step("cloud-identity", "sa:org-acme/store", &to, "ServiceAccount org-acme/store", "", None)
    }];
    Finding {
        message: "sa:org-acme/store of acme carries an identity of the cloud".to_owned(),
        certainty: Assumed,
        reaches: Vec::new(),
        ..finding(IDS[2], Severity::Medium, "sa:org-acme/store", path, &[])
    }
}

fn logs() -> Finding {
    let to = "reads logs of pods in monitoring";
    let path = vec![step(
        "pod-logs",
        "group:acme-developers",
        to,
        "Role monitoring/debug",
        "rules[0]: get pods/log",
        None,
    )];
    Finding {
        message: "group:acme-developers of acme reads logs of the platform's pods".to_owned(),
        reaches: vec!["platform".to_owned()],
        ..finding(IDS[3], Severity::Low, "group:acme-developers", path, &[])
    }
}

fn reader(subject: &str, customer: &str, certainty: Certainty, path: Vec<Step>) -> Reader {
    Reader { subject: subject.to_owned(), customer: customer.to_owned(), certainty, path }
}

/// Who reads beta's Secret.
pub fn who_can_read() -> WhoCanRead {
    let admin = step(
        "all-rights",
        "group:platform-admins",
        "holds everything in the cluster",
        "ClusterRoleBinding admins",
        "rules[0]: * *.*",
        None,
    );
    let own = step(
        "read-secret",
        "sa:org-beta/api",
        "reads org-beta/db",
        "Role org-beta/api",
        "rules[0]: get secrets db",
        None,
    );
    let secrets = audit().secrets;
    let secret = secrets.into_iter().find(|secret| secret.name == "db").unwrap();
    WhoCanRead {
        schema: WHO_CAN_READ_SCHEMA.to_owned(),
        complete: true,
        gaps: Vec::new(),
        secret: SecretEntry { subjects: Vec::new(), ..secret },
        exists: true,
        subjects: vec![
            reader(BACKUP, "acme", Proven, backup_path()),
            reader("sa:org-beta/api", "beta", Proven, vec![own]),
            reader("group:platform-admins", "platform", Proven, vec![admin]),
            reader(
                "user:old-ci",
                "unknown",
                Assumed,
                vec![step(
                    "read-secret",
                    "user:old-ci",
                    "reads org-beta/db",
                    "ClusterRole ci",
                    "rules[4]: get secrets",
                    None,
                )],
            ),
        ],
    }
}

/// What acme's developers reach.
pub fn reach() -> Reach {
    let reached = |namespace: &str, name: &str, customer: &str, foreign, path: Vec<Step>| ReachedSecret {
        cluster: "harbour".to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        customer: customer.to_owned(),
        foreign,
        certainty: Proven,
        edge: path.last().unwrap().edge.clone(),
        path,
    };
    let group = "group:acme-developers";
    let own = step(
        "read-secret",
        group,
        "reads org-acme/app",
        "Role org-acme/developer",
        "rules[0]: * secrets",
        None,
    );
    let run = step(
        "run-as-account",
        group,
        "acts as sa:org-acme/backup",
        "Role org-acme/developer",
        "rules[1]: create pods",
        None,
    );
    let via = [vec![run.clone()], backup_path()].concat();
    Reach {
        schema: REACH_SCHEMA.to_owned(),
        complete: true,
        gaps: Vec::new(),
        subject: group.to_owned(),
        customer: "acme".to_owned(),
        full_control: false,
        identities: vec![Reached {
            what: BACKUP.to_owned(),
            customer: "acme".to_owned(),
            certainty: Proven,
            path: vec![run],
        }],
        powers: vec![Reached {
            what: "everything in org-acme".to_owned(),
            customer: "acme".to_owned(),
            certainty: Proven,
            path: vec![step(
                "all-rights",
                group,
                "holds everything in org-acme",
                "RoleBinding org-acme/admin",
                "rules[0]: * *.*",
                None,
            )],
        }],
        secrets: vec![
            reached("monitoring", "alert-receivers", "platform", true, exec_path()),
            reached("org-acme", "app", "acme", false, vec![own]),
            reached("org-beta", "db", "beta", true, via),
        ],
    }
}

/// Why acme's backup reads beta's Secret, in two ways.
pub fn why() -> Why {
    let group = step(
        "member-of",
        BACKUP,
        "is in group system:serviceaccounts:org-acme",
        "ServiceAccount org-acme/backup",
        "",
        None,
    );
    let read = Step {
        certainty: Assumed,
        guard: Some("policy secrets-of-beta has an expression that could not be evaluated".to_owned()),
        ..step(
            "patch-read",
            "is in group system:serviceaccounts:org-acme",
            "reads org-beta/db",
            "ClusterRoleBinding patchers",
            "rules[0]: patch secrets",
            None,
        )
    };
    Why {
        schema: WHY_SCHEMA.to_owned(),
        complete: true,
        gaps: Vec::new(),
        subject: BACKUP.to_owned(),
        customer: "acme".to_owned(),
        secret: "org-beta/db".to_owned(),
        reached: true,
        paths: vec![
            WhyPath { certainty: Proven, steps: backup_path() },
            WhyPath { certainty: Assumed, steps: vec![group, read] },
        ],
    }
}

/// What a chart of acme would change.
pub fn what_if() -> WhatIf {
    WhatIf {
        schema: WHAT_IF_SCHEMA.to_owned(),
        complete: true,
        gaps: Vec::new(),
        objects: vec!["ClusterRole backup-reader".to_owned(), "RoleBinding org-beta/backup".to_owned()],
        gained: vec![Change {
            subject: BACKUP.to_owned(),
            customer: "acme".to_owned(),
            secret_count: 2,
            foreign_count: 1,
            secrets: vec!["org-beta/db".to_owned(), "org-acme/app".to_owned()],
            path: backup_path(),
        }],
        lost: vec![Change {
            subject: "sa:org-beta/api".to_owned(),
            customer: "beta".to_owned(),
            secret_count: 1,
            foreign_count: 0,
            secrets: vec!["org-beta/tls".to_owned()],
            path: Vec::new(),
        }],
        verdicts: vec![VerdictChange {
            secret: "org-beta/db".to_owned(),
            before: Some(Verdict::ExactlyOne),
            after: Some(Verdict::Shared),
        }],
        findings: vec![shared()],
        resolved: vec![IDS[3].to_owned()],
    }
}

/// The installation before acme's backup was bound in beta's namespace: one finding is there that is gone now.
pub fn before() -> Audit {
    let mut audit = audit();
    let token = step(
        "token-request",
        "sa:org-acme/ci",
        "acts as sa:flux-system/deployer",
        "Role flux-system/ci",
        "rules[0]: create serviceaccounts/token",
        None,
    );
    let gone = finding(
        "token-request-44aa01fe",
        Severity::High,
        "sa:org-acme/ci",
        vec![token],
        &["flux-system/deploy-key"],
    );
    audit.findings.retain(|finding| finding.id != IDS[0]);
    audit.findings.push(gone);
    for secret in audit.secrets.iter_mut().filter(|secret| secret.name == "db") {
        secret.verdict = Verdict::ExactlyOne;
        secret.audience.retain(|customer| customer != "acme");
    }
    audit
}
