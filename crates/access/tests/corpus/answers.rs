//! A whole management cluster with planted leaks, against its answers. The fixture is no part of the repository: without
//! it these tests pass and say so.

use std::collections::{BTreeMap, BTreeSet};

use bailey_access::answer::{Finding, SecretEntry, Severity, Verdict};
use bailey_access::{Access, Certainty, Loader, Preset, Snapshot, Subjects};
use serde_json::Value;

/// A planted leak: the rule and the subject of its finding, a Secret that it exposes, and the object that makes it.
struct Planted {
    id: &'static str,
    rule: &'static str,
    subject: &'static str,
    customer: &'static str,
    secret: &'static str,
    object: [&'static str; 3],
}

const PLANTED: [Planted; 4] = [
    Planted {
        id: "K1",
        rule: "read-secret",
        subject: "sa:org-acme/backup-agent",
        customer: "acme",
        secret: "org-beta/beta-one-kubeconfig",
        object: ["ClusterRoleBinding", "", "backup-agent"],
    },
    Planted {
        id: "K2",
        rule: "write-cronjob",
        subject: "sa:org-beta/reporter",
        customer: "beta",
        secret: "zot/zot-htpasswd",
        object: ["RoleBinding", "zot", "report-cronjobs"],
    },
    Planted {
        id: "K3",
        rule: "bind-role",
        subject: "sa:org-beta/onboarding",
        customer: "beta",
        secret: "org-acme/db-credentials",
        object: ["RoleBinding", "org-acme", "onboarding"],
    },
    Planted {
        id: "K4",
        rule: "flux-source",
        subject: "source:git.acme.example/platform/acme-extras",
        customer: "acme",
        secret: "flux-giantswarm/sops-keys",
        object: ["Kustomization", "flux-giantswarm", "acme-extras"],
    },
];

/// Why a finding of high severity that is only assumed is none of the planted ones: the way is there, and what closes it
/// on a real platform is not in the fixture.
const ASSUMED: [(&str, &str); 3] = [
    ("app-in-cluster", "what the catalogs offer and the checks of app-operator were not looked at"),
    ("app-kubeconfig", "the checks of app-operator on references to other namespaces were not looked at"),
    ("write-cronjob", "the default of the API server is not known"),
];

/// The objects of the fixture, if there are corpora.
fn objects() -> Option<Vec<Value>> {
    let folder = bailey_testkit::corpora("answers about two tenants with planted leaks")?;
    let file = folder.join("mc/mc-two-tenants-known.yaml");
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_nodes: 10_000_000, max_events: 100_000_000 },
    };
    let text = std::fs::read_to_string(file).unwrap();
    let list: Value = serde_saphyr::from_str_with_options(&text, options).unwrap();
    Some(list["items"].as_array().unwrap().clone())
}

fn is(object: &Value, [kind, namespace, name]: [&str; 3]) -> bool {
    let metadata = &object["metadata"];
    object["kind"] == kind
        && metadata["name"] == name
        && metadata["namespace"].as_str().unwrap_or_default() == namespace
}

/// The analysis of objects, with what the labels of the platform say belongs to whom.
fn access(objects: &[Value]) -> Access {
    let mut snapshot = Snapshot::default();
    let mut loader = Loader::new(&mut snapshot, Some("mclab"));
    loader.source("mc-two-tenants-known.yaml");
    objects.iter().for_each(|object| loader.object(object, 1));
    loader.finish();
    assert_eq!(snapshot.gaps, []);
    let customers = Preset::named("giantswarm").unwrap().customers(&snapshot);
    Access::new(snapshot, customers)
}

/// Proven findings of at least high severity, by rule and subject.
fn proven(findings: &[Finding]) -> BTreeSet<(&str, &str)> {
    let severe = findings.iter().filter(|f| f.severity >= Severity::High && f.certainty == Certainty::Proven);
    severe.map(|finding| (finding.rule.as_str(), finding.subject.as_str())).collect()
}

#[test]
fn each_planted_leak_is_proven_and_nothing_else_is() {
    let Some(objects) = objects() else { return };
    let access = access(&objects);
    let findings = access.audit(Subjects::None).findings;
    let planted: BTreeSet<_> = PLANTED.iter().map(|leak| (leak.rule, leak.subject)).collect();
    assert_eq!(proven(&findings), planted);
    for leak in &PLANTED {
        let finding = findings.iter().find(|f| f.rule == leak.rule && f.subject == leak.subject).unwrap();
        assert_eq!(finding.customer, leak.customer, "{}", leak.id);
        let made_by = leak.object.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>();
        let names_it = |step: &bailey_access::answer::Step| {
            step.object.starts_with(&format!("{} {}", made_by[0], made_by[1..].join("/")))
        };
        assert!(finding.path.iter().any(names_it), "{}: {:#?}", leak.id, finding.path);
        let why = access.why(&leak.subject.parse().unwrap(), &leak.secret.parse().unwrap(), 0).unwrap();
        assert_eq!(why.paths.first().map(|path| path.certainty), Some(Certainty::Proven), "{}", leak.id);
    }
    for [leak, who] in [["K1", "sa:org-acme/automation"], ["K1", "group:customer-acme:Admins"]] {
        let planted = PLANTED.iter().find(|planted| planted.id == leak).unwrap();
        let finding =
            findings.iter().find(|f| f.rule == planted.rule && f.subject == planted.subject).unwrap();
        assert!(finding.also.iter().any(|also| also == who), "{leak}: {:?}", finding.also);
    }
}

#[test]
fn what_is_assumed_is_one_of_the_known_ways_and_says_why() {
    let Some(objects) = objects() else { return };
    let findings = access(&objects).audit(Subjects::None).findings;
    for finding in
        findings.iter().filter(|f| f.severity >= Severity::High && f.certainty == Certainty::Assumed)
    {
        let guards: Vec<_> = finding.path.iter().filter_map(|step| step.guard.as_deref()).collect();
        let known = guards.iter().any(|guard| ASSUMED.iter().any(|(_, why)| guard.contains(why)));
        let planted = PLANTED.iter().any(|leak| leak.rule == finding.rule && leak.subject == finding.subject);
        let rule = ASSUMED.iter().any(|(rule, _)| *rule == finding.rule);
        assert!(known && (planted || rule), "{finding:#?}");
    }
}

#[test]
fn without_the_object_that_makes_it_each_leak_is_gone_and_the_others_stay() {
    let Some(objects) = objects() else { return };
    for leak in &PLANTED {
        let rest: Vec<_> = objects.iter().filter(|object| !is(object, leak.object)).cloned().collect();
        assert_eq!(rest.len(), objects.len() - 1, "{}", leak.id);
        let findings = access(&rest).audit(Subjects::None).findings;
        let others = PLANTED.iter().filter(|other| other.id != leak.id);
        let expected: BTreeSet<_> = others.map(|other| (other.rule, other.subject)).collect();
        assert_eq!(proven(&findings), expected, "without {}", leak.id);
    }
}

#[test]
fn without_all_leaks_each_secret_is_proven_to_reach_its_own_customer_only() {
    let Some(objects) = objects() else { return };
    let is_planted = |object: &&Value| PLANTED.iter().any(|leak| is(object, leak.object));
    let rest: Vec<_> = objects.iter().filter(|object| !is_planted(object)).cloned().collect();
    let access = access(&rest);
    let audit = access.audit(Subjects::None);
    assert_eq!(proven(&audit.findings), BTreeSet::new());
    for secret in &audit.secrets {
        let readers = access.who_can_read(&format!("{}/{}", secret.namespace, secret.name).parse().unwrap());
        let sure: BTreeSet<_> = readers
            .unwrap()
            .subjects
            .into_iter()
            .filter(|reader| reader.certainty == Certainty::Proven && reader.customer != "platform")
            .map(|reader| reader.customer)
            .collect();
        let own: BTreeSet<_> =
            Some(secret.customer.clone()).filter(|whose| whose != "platform").into_iter().collect();
        assert!(sure.is_subset(&own), "{secret:?}: {sure:?}");
    }
}

#[test]
fn what_only_looks_like_a_leak_is_none() {
    let Some(objects) = objects() else { return };
    let access = access(&objects);
    // N1: ConfigMaps of another customer.
    let dashboards = access.reach(&"sa:org-acme/dashboards".parse().unwrap()).unwrap();
    assert!(!dashboards.secrets.iter().any(|secret| secret.foreign), "{:#?}", dashboards.secrets);
    // N2: a role that is bound to nobody; N3: view, which holds no Secrets, and logs of pods, which is told and not counted.
    let findings = access.audit(Subjects::None).findings;
    for alike in ["secret-auditor-unused", "reporter-view", "dashboards"] {
        let told: Vec<_> = findings
            .iter()
            .filter(|finding| finding.severity > Severity::Low || finding.secret_count > 0)
            .filter(|finding| {
                finding.path.iter().any(|step| step.object.contains(alike) || step.to.contains(alike))
            })
            .collect();
        assert!(told.is_empty(), "{alike}: {told:#?}");
    }
    let why =
        access.why(&"sa:org-beta/reporter".parse().unwrap(), &"org-acme/db-credentials".parse().unwrap(), 5);
    for path in why.unwrap().paths {
        assert_eq!(path.certainty, Certainty::Assumed, "{path:#?}");
        assert!(!path.steps.iter().any(|step| step.object.contains("reporter-view")), "{path:#?}");
    }
}

#[test]
fn each_verdict_is_explained_by_a_way_of_each_customer_in_the_audience() {
    let Some(objects) = objects() else { return };
    let access = access(&objects);
    let secrets = access.secret_entries(Subjects::None);
    let mut verdicts: BTreeMap<(String, Verdict), usize> = BTreeMap::new();
    for secret in &secrets {
        *verdicts.entry((secret.customer.clone(), secret.verdict)).or_default() += 1;
        explained(&access, secret);
    }
    // Two leaks reach everything, one of each customer, so nothing is left to one.
    let of = |whose: &str, verdict, count| ((whose.to_owned(), verdict), count);
    let expected = [
        of("acme", Verdict::Shared, 17),
        of("beta", Verdict::Shared, 17),
        of("platform", Verdict::Exposed, 20),
    ];
    assert_eq!(verdicts.into_iter().collect::<Vec<_>>(), expected);
}

fn explained(access: &Access, secret: &SecretEntry) {
    let name = format!("{}/{}", secret.namespace, secret.name);
    let readers = access.who_can_read(&name.parse().unwrap()).unwrap();
    for customer in &secret.audience {
        let reader = readers.subjects.iter().find(|reader| reader.customer == *customer);
        let reader = reader.unwrap_or_else(|| panic!("nobody of {customer} reads {name}"));
        let (first, last) = (reader.path.first().unwrap(), reader.path.last().unwrap());
        assert_eq!(first.from, reader.subject, "{name}");
        let ends =
            ["all Secrets in ", "every right in ", "Secret "].iter().any(|end| last.to.starts_with(end));
        assert!(ends, "{name}: {last:?}");
    }
    if secret.certainty == Certainty::Proven {
        let sure = readers.subjects.iter().filter(|reader| reader.certainty == Certainty::Proven);
        let sure: BTreeSet<_> = sure.map(|reader| &reader.customer).collect();
        assert!(secret.audience.iter().all(|customer| sure.contains(customer)), "{name}");
    }
}
