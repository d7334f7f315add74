use bailey_access::answer::{ClusterEntry, Severity};

use super::*;
use crate::analyse::samples::{audit, finding};

fn ids(found: Vec<&Finding>) -> Vec<&str> {
    found.into_iter().map(|finding| finding.id.as_str()).collect()
}

#[test]
fn a_finding_is_about_the_secrets_and_scopes_that_it_names() {
    let of = |id: &str, secrets: &[&str]| finding(id, Severity::High, "user:jane", Vec::new(), secrets);
    let findings = [
        of("named", &["org-acme/x", "org-beta/db"]),
        of("namespace", &["org-beta/*"]),
        of("all", &["*/*"]),
        of("elsewhere", &["other:org-beta/db", "other:org-beta/*"]),
        of("another", &["org-acme/db", "org-acme/*"]),
    ];
    let mut audit = audit();
    let mut db = audit.secrets.iter().find(|secret| secret.name == "db").unwrap().clone();
    assert_eq!(ids(Cover::new(&audit, &findings).of(&db)), ["named", "namespace", "all"]);

    let other = ClusterEntry { name: "other".to_owned(), ..audit.clusters[0].clone() };
    audit.clusters.push(other);
    db.cluster = "other".to_owned();
    assert_eq!(ids(Cover::new(&audit, &findings).of(&db)), ["elsewhere"]);
}

#[test]
fn a_shortened_list_is_about_all_secrets_of_those_it_reaches() {
    let mut shortened = finding("short", Severity::High, "user:jane", Vec::new(), &["org-beta/a"]);
    shortened.secret_count = 900;
    let audit = audit();
    let about = |finding: &Finding| {
        let cover = Cover::new(&audit, [finding]);
        audit.secrets.iter().filter(|s| !cover.of(s).is_empty()).map(|s| s.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(about(&shortened), ["db", "tls"], "both are beta's");
    shortened.secrets = vec!["org-gamma/*".to_owned(), "… and 7 more".to_owned()];
    assert_eq!(about(&shortened), ["db", "tls"]);
    shortened.secrets.pop();
    assert_eq!(about(&shortened), [""; 0], "a whole scope counts what is in it");
}

#[test]
fn a_pattern_lies_within_a_wider_one_of_the_same_cluster() {
    for (inner, outer, expected) in [
        ("org-beta/db", "org-beta/db", true),
        ("org-beta/db", "org-beta/*", true),
        ("org-beta/*", "org-beta/db", false),
        ("org-beta/*", "*/*", true),
        ("*/*", "org-beta/*", false),
        ("wc1:org-beta/db", "org-beta/db", false),
        ("wc1:org-beta/db", "wc1:org-beta/*", true),
        ("org-beta/db", "org-acme/*", false),
    ] {
        assert_eq!(within(inner, outer), expected, "{inner} within {outer}");
    }
}
