use super::*;
use crate::analyse::samples::{audit, shared};

fn apply(filter: &Filter) -> (Audit, Option<Selection>) {
    let mut audit = audit();
    let selection = filter.apply(&mut audit, &mut Vec::new(), &Names::default()).unwrap();
    (audit, selection)
}

fn shown(filter: &Filter) -> (Vec<String>, Vec<String>) {
    let (audit, _) = apply(filter);
    let secrets = audit.secrets.iter().map(|s| s.name.clone()).collect();
    (secrets, audit.findings.iter().map(|f| f.rule.clone()).collect())
}

fn texts(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn without_a_filter_everything_is_shown() {
    let (unchanged, selection) = apply(&Filter::default());
    assert_eq!((unchanged, selection), (audit(), None));
}

#[test]
fn a_severity_is_the_lowest_that_is_shown_and_leaves_the_secrets() {
    let (secrets, findings) = shown(&Filter { severity: Some(Severity::Medium), ..Filter::default() });
    assert_eq!((secrets.len(), findings), (6, texts(&["read-secret", "exec", "cloud-identity"])));
}

#[test]
fn a_namespace_is_where_a_finding_starts_or_ends() {
    let of = |name: &str| shown(&Filter { namespaces: texts(&[name]), ..Filter::default() });
    assert_eq!(of("org-beta"), (texts(&["db", "tls"]), texts(&["read-secret"])));
    assert_eq!(of("org-acme"), (texts(&["app"]), texts(&["read-secret", "cloud-identity"])));
}

#[test]
fn a_customer_is_who_owns_or_who_reaches() {
    let (secrets, findings) = shown(&Filter { customers: texts(&["beta"]), ..Filter::default() });
    assert_eq!((secrets, findings), (texts(&["db", "tls"]), texts(&["read-secret"])));
    let (secrets, findings) = shown(&Filter { customers: texts(&["acme"]), ..Filter::default() });
    assert_eq!((secrets, findings.len()), (texts(&["alert-receivers", "app", "db"]), 4));
}

#[test]
fn a_verdict_leaves_the_findings_about_its_secrets_and_the_summary_counts_those() {
    let filter = Filter { verdicts: vec![Verdict::Exposed], ..Filter::default() };
    assert_eq!(shown(&filter), (texts(&["alert-receivers"]), texts(&["exec"])));
    let (audit, selection) = apply(&filter);
    assert_eq!(audit.summary, Summary { exposed: 1, high: 1, ..Summary::default() });
    let selection = selection.unwrap();
    assert_eq!((selection.secrets_of, selection.findings_of), (6, 4));
}

#[test]
fn filters_narrow_each_other() {
    let filter = Filter {
        customers: texts(&["acme"]),
        verdicts: vec![Verdict::Shared, Verdict::Exposed],
        namespaces: texts(&["org-beta"]),
        severity: None,
    };
    assert_eq!(shown(&filter), (texts(&["db"]), texts(&["read-secret"])));
}

#[test]
fn a_waived_finding_is_selected_like_others() {
    let waived = |filter: &Filter| {
        let finding = shared();
        let (owner, reason, expires) = ("a".to_owned(), "b".to_owned(), "2027-01-31".to_owned());
        let mut waived = vec![Waived { finding, owner, reason, expires }];
        filter.apply(&mut audit(), &mut waived, &Names::default()).unwrap();
        waived.len()
    };
    assert_eq!(waived(&Filter { namespaces: texts(&["org-beta"]), ..Filter::default() }), 1);
    assert_eq!(waived(&Filter { namespaces: texts(&["monitoring"]), ..Filter::default() }), 0);
}

#[test]
fn a_name_that_nothing_has_is_refused() {
    let refused = |filter: Filter, names: &Names| {
        filter.apply(&mut audit(), &mut Vec::new(), names).map(drop).map_err(|error| error.to_string())
    };
    let typo = Filter { customers: texts(&["acne"]), ..Filter::default() };
    let error = refused(typo.clone(), &Names::default()).unwrap_err();
    assert_eq!(error, "there is no customer `acne`; known: acme, beta, platform, unknown");
    let known = Names { customers: ["acne".to_owned()].into(), ..Names::default() };
    assert_eq!(refused(typo, &known), Ok(()), "a customer that has nothing yet");
    let typo = Filter { namespaces: texts(&["org-acne"]), ..Filter::default() };
    assert!(refused(typo, &Names::default()).unwrap_err().contains("no namespace `org-acne`"));
}

#[test]
fn the_namespace_of_a_subject_is_that_of_its_account() {
    assert_eq!(namespace_of("sa:org-acme/backup"), Some("org-acme"));
    assert_eq!(namespace_of("wc1:sa:org-acme/backup"), Some("org-acme"));
    assert_eq!(namespace_of("user:sa:x/y"), None);
    assert_eq!(namespace_of("group:visa:x/y"), None);
}
