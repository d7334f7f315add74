//! Places of one credential, and answers that follow it.

use zeroize::Zeroizing;

use crate::answer::{Audit, Finding, Severity, Verdict};
use crate::fingerprint::{Extractor, FingerprintKey, LocalKey};
use crate::{Access, Customers, Ledger, Loader, SecretRef, Snapshot, SubjectRef, Subjects};

/// A password that nobody guesses.
const STRONG: &str = "qT7vXz2mLw9RkB4h";

const TENANTS: &str = "
customers:
  acme: {namespaces: [org-acme], groups: ['acme:admins']}
  beta: {namespaces: [org-beta], groups: ['beta:admins']}
platform: {namespaces: [kube-system]}
";

/// Each customer's admins read the Secrets of its namespace.
fn cluster(objects: &str) -> String {
    let of = |customer: &str| {
        format!(
            "
---
apiVersion: v1
kind: Namespace
metadata: {{name: org-{customer}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: admin, namespace: org-{customer}}}
rules: [{{apiGroups: [''], resources: [secrets], verbs: [get, list]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: admin, namespace: org-{customer}}}
roleRef: {{kind: Role, name: admin}}
subjects: [{{kind: Group, name: '{customer}:admins'}}]
"
        )
    };
    format!("{}{}{objects}", of("acme"), of("beta"))
}

fn secret(namespace: &str, name: &str, password: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: {namespace}}}\nstringData: {{password: '{password}'}}\n"
    )
}

fn ledger() -> Ledger {
    Ledger::new(Extractor {
        key: FingerprintKey::new("test", Zeroizing::new([7; 32])),
        local: LocalKey::new(Zeroizing::new([9; 32])),
        now_seconds: 1_796_000_000,
    })
}

fn load(text: &str, ledger: &mut Ledger) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let mut loader = Loader::new(&mut snapshot, None).open_secrets(ledger);
    loader.source("cluster.yaml");
    loader.load(text.as_bytes()).unwrap();
    loader.finish();
    assert_eq!(snapshot.gaps, []);
    snapshot
}

fn access(objects: &str) -> Access {
    let mut ledger = ledger();
    let snapshot = load(&cluster(objects), &mut ledger);
    let customers = Customers::from_file(TENANTS, "tenants.yaml").unwrap().customers;
    Access::new(snapshot, customers).with_credentials(&ledger)
}

fn shared(audit: &Audit) -> Vec<&Finding> {
    audit.findings.iter().filter(|finding| finding.rule.ends_with("-credential")).collect()
}

fn verdict(audit: &Audit, name: &str) -> (Verdict, Vec<String>) {
    let secret = audit.secrets.iter().find(|secret| secret.name == name).unwrap();
    (secret.verdict, secret.audience.clone())
}

fn both() -> Access {
    access(&[secret("org-acme", "db", STRONG), secret("org-beta", "copy", STRONG)].concat())
}

#[test]
fn the_same_password_of_two_customers_is_a_finding_that_names_both_secrets() {
    let audit = both().audit(Subjects::None);
    let [finding] = shared(&audit)[..] else { panic!("{:#?}", audit.findings) };
    assert_eq!((finding.rule.as_str(), finding.severity), ("shared-credential", Severity::High));
    assert_eq!(finding.secrets, ["org-acme/db", "org-beta/copy"]);
    assert_eq!(finding.subject, "secret:org-acme/db#password");
    assert_eq!(finding.path[0].to, "Secret org-beta/copy#password");
    let audience = vec!["acme".to_owned(), "beta".to_owned()];
    assert_eq!(verdict(&audit, "db"), (Verdict::Shared, audience.clone()));
    assert_eq!(verdict(&audit, "copy"), (Verdict::Shared, audience));
}

#[test]
fn different_passwords_are_no_finding() {
    let objects = [secret("org-acme", "db", STRONG), secret("org-beta", "copy", "w3Hk9sPq5ZtYc8Ne")].concat();
    let audit = access(&objects).audit(Subjects::None);
    assert_eq!(shared(&audit), Vec::<&Finding>::new());
    assert_eq!(verdict(&audit, "db"), (Verdict::ExactlyOne, vec!["acme".to_owned()]));
}

#[test]
fn a_password_that_can_be_guessed_is_told_apart() {
    let objects = [secret("org-acme", "db", "hunter2"), secret("org-beta", "copy", "hunter2")].concat();
    let audit = access(&objects).audit(Subjects::None);
    let [finding] = shared(&audit)[..] else { panic!("{:#?}", audit.findings) };
    assert_eq!((finding.rule.as_str(), finding.severity), ("weak-credential", Severity::Medium));
}

#[test]
fn fingerprints_are_shown_only_under_a_key_that_is_kept_and_never_of_what_can_be_guessed() {
    let objects = [
        secret("org-acme", "db", STRONG),
        secret("org-beta", "copy", STRONG),
        secret("org-acme", "weak", "hunter2"),
        secret("org-beta", "weaker", "hunter2"),
    ];
    let rules = |ledger: Ledger| {
        let mut ledger = ledger;
        let snapshot = load(&cluster(&objects.concat()), &mut ledger);
        let customers = Customers::from_file(TENANTS, "tenants.yaml").unwrap().customers;
        let audit = Access::new(snapshot, customers).with_credentials(&ledger).audit(Subjects::None);
        let steps = shared(&audit).into_iter().flat_map(|finding| &finding.path);
        steps.map(|step| (step.edge.clone(), step.rule.clone())).collect::<Vec<_>>()
    };
    let silent = "the same credential, by its fingerprint".to_owned();
    assert!(rules(ledger()).iter().all(|(_, rule)| *rule == silent));
    for (edge, rule) in rules(ledger().showing_fingerprints()) {
        let shown = rule.strip_prefix("the same credential, fingerprint ");
        assert_eq!(shown.is_some_and(|text| text.len() == 32), edge == "shared-credential", "{edge}: {rule}");
    }
}

#[test]
fn who_reads_the_copy_reads_the_secret() {
    let access = both();
    let secret: SecretRef = "org-acme/db".parse().unwrap();
    let answer = access.who_holds(&secret).unwrap();
    let reader = answer.subjects.iter().find(|reader| reader.subject == "group:beta:admins").unwrap();
    let last = reader.path.last().unwrap();
    assert_eq!((last.edge.as_str(), last.to.as_str()), ("shared-credential", "Secret org-acme/db#password"));
    assert_eq!(answer.subjects[0].subject, "group:beta:admins", "foreign ones come first");
    assert_eq!(answer.secret.verdict, Verdict::Shared);

    let subject: SubjectRef = "group:beta:admins".parse().unwrap();
    let reach = access.reach_with_copies(&subject).unwrap();
    let reached: Vec<_> = reach.secrets.iter().map(|s| (s.name.as_str(), s.foreign)).collect();
    assert_eq!(reached, [("copy", false), ("db", true)]);

    let why = access.why_with_copies(&subject, &secret, 0).unwrap();
    assert!(why.reached);
    assert_eq!(why.paths[0].steps.last().unwrap().edge, "shared-credential");
}

#[test]
fn a_password_in_the_environment_of_another_customer_is_shared_with_it() {
    let deployment = format!(
        "
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: app, namespace: org-beta}}
spec:
  template:
    spec:
      containers:
      - {{name: web, env: [{{name: DB_PASSWORD, value: {STRONG}}}]}}
"
    );
    let audit = access(&(secret("org-acme", "db", STRONG) + &deployment)).audit(Subjects::None);
    let [finding] = shared(&audit)[..] else { panic!("{:#?}", audit.findings) };
    assert_eq!(finding.path[0].to, "Deployment org-beta/app#web/DB_PASSWORD");
    assert_eq!(finding.secrets, ["org-acme/db"]);
    assert_eq!(verdict(&audit, "db").0, Verdict::Shared);
}

#[test]
fn passwords_in_config_maps_cron_jobs_and_arguments_are_compared() {
    let objects = [
        secret("org-acme", "db", STRONG),
        format!(
            "---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: conf, namespace: org-beta}}, data: {{db_password: {STRONG}}}}}\n"
        ),
        format!(
            "---\n{{apiVersion: batch/v1, kind: CronJob, metadata: {{name: cron, namespace: org-beta}}, spec: {{jobTemplate: {{spec: {{template: {{spec: {{containers: [{{name: c, args: ['--db-password={STRONG}']}}]}}}}}}}}}}}}\n"
        ),
        format!(
            "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: bare, namespace: org-beta}}, spec: {{containers: [{{name: c, command: [run, --password, {STRONG}]}}]}}}}\n"
        ),
        format!(
            "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: made, namespace: org-beta, ownerReferences: [{{apiVersion: batch/v1, kind: Job, name: j, controller: true}}]}}, spec: {{containers: [{{name: c, command: [run, --password, {STRONG}]}}]}}}}\n"
        ),
    ];
    let audit = access(&objects.concat()).audit(Subjects::None);
    let [finding] = shared(&audit)[..] else { panic!("{:#?}", audit.findings) };
    let mut places: Vec<_> = finding.path.iter().map(|step| step.to.as_str()).collect();
    places.sort_unstable();
    assert_eq!(
        places,
        [
            "ConfigMap org-beta/conf#db_password",
            "CronJob org-beta/cron#c/db-password",
            "Pod org-beta/bare#c/password"
        ]
    );
}

#[test]
fn a_secret_that_is_replaced_holds_what_it_held_no_more() {
    let mut ledger = ledger();
    let text = cluster(&[secret("org-acme", "db", STRONG), secret("org-beta", "copy", STRONG)].concat());
    let mut snapshot = load(&text, &mut ledger);
    let mut loader = Loader::new(&mut snapshot, Some("cluster")).open_secrets(&mut ledger);
    loader.source("change.yaml");
    loader.load(secret("org-beta", "copy", "w3Hk9sPq5ZtYc8Ne").as_bytes()).unwrap();
    loader.finish();
    let customers = Customers::from_file(TENANTS, "tenants.yaml").unwrap().customers;
    let audit = Access::new(snapshot, customers).with_credentials(&ledger).audit(Subjects::None);
    assert_eq!(shared(&audit), Vec::<&Finding>::new());
}
