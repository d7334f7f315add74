use bailey_access::answer::*;

use super::super::PAGE_BYTES_MAX;
use super::*;

const SECRETS: usize = 50_000;

/// An installation of 300 customers: every 200th Secret is reached by somebody who should not.
fn large(secrets: usize, suffix: &str) -> Audit {
    let mut audit = sample::audit();
    let pattern = audit.secrets.iter().find(|secret| secret.name == "registry-pull").unwrap().clone();
    audit.secrets = (0..secrets)
        .map(|number| {
            let mut secret = pattern.clone();
            let customer = format!("customer-{}", number / 50 % 300);
            secret.namespace = format!("namespace-{:04}{suffix}", number / 50);
            secret.name = format!("secret-{number}{suffix}");
            secret.audience = vec![customer.clone()];
            secret.verdict = Verdict::ExactlyOne;
            if number % 200 == 0 {
                secret.verdict = Verdict::Shared;
                secret.audience.push(format!("customer-{}", (number + 7) % 300));
            }
            secret.customer = customer;
            secret
        })
        .collect();
    let findings = std::mem::take(&mut audit.findings);
    audit.findings = (0..3_000)
        .map(|number| {
            let mut finding = findings[number % 5].clone();
            finding.id = format!("finding-{number}{suffix}");
            finding
        })
        .collect();
    audit.summary =
        Summary { shared: secrets / 200, exactly_one: secrets - secrets / 200, ..Summary::default() };
    audit
}

#[test]
fn a_large_audit_stays_a_page_that_opens_and_counts_what_it_leaves_out() {
    let text = report(&sample::report(large(SECRETS, "")));
    assert!(text.len() < PAGE_BYTES_MAX, "{} bytes", text.len());
    let page = Page::parse(&text);
    // What needs a look is there, all of it.
    assert_eq!(page.all("tr.secret.shared").len(), SECRETS / 200);
    let rows = page.all("tr.secret").len();
    assert!(rows > 1_000, "{rows}");
    let note = page.text("section[aria-labelledby=secrets] > .filter + .more");
    assert!(note.starts_with(&super::super::words::grouped(SECRETS - rows)), "{note} with {rows} rows");
    assert!(page.text(".answer").contains("250 of 50,000 Secrets are reached"));
    assert_eq!(page.all(".matrix tbody tr").len(), 30);

    // Each finding is an article, a row, or counted.
    let articles = page.all("article").len();
    let listed = page.all("section[aria-labelledby=findings] > table tbody tr").len();
    let note = page.text("section[aria-labelledby=findings] > .more");
    assert!(articles > 100 && listed > 100, "{articles} {listed}");
    assert!(note.starts_with(&super::super::words::grouped(3_000 - articles - listed)), "{note}");
    let first = page.texts("article .badge").iter().position(|badge| badge == "High").unwrap_or(articles);
    assert!(first > 100, "the worst have the room: {first}");
}

#[test]
fn long_names_and_escapes_do_not_make_a_page_larger() {
    for suffix in [&"n".repeat(230), &"<".repeat(60), &"\u{202e}".repeat(40)] {
        let text = report(&sample::report(large(10_000, suffix)));
        assert!(text.len() < PAGE_BYTES_MAX, "{} bytes", text.len());
        assert!(text.len() > PAGE_BYTES_MAX / 3, "{} bytes", text.len());
    }
}

#[test]
fn many_subjects_of_one_secret_are_counted() {
    let mut audit = sample::audit();
    let subjects = |customer: &str| {
        let customer = customer.to_owned();
        (0..10_000).map(move |number| SubjectEntry {
            subject: format!("sa:namespace-{number}/account"),
            customer: customer.clone(),
            certainty: bailey_access::Certainty::Proven,
        })
    };
    audit.secrets.truncate(3);
    for secret in &mut audit.secrets {
        secret.subjects = subjects("acme").chain(subjects("beta")).collect();
    }
    let text = super::audit(audit);
    assert!(text.len() < 200_000, "{} bytes", text.len());
    assert!(text.contains("and 9,960 more"), "{text}");
}

#[test]
fn large_answers_of_the_other_verbs_stay_pages_that_open() {
    let mut who = sample::who_can_read();
    who.subjects = who.subjects.iter().cycle().take(50_000).cloned().collect();
    let mut reach = sample::reach();
    let pattern = reach.secrets[0].clone();
    reach.secrets = (0..SECRETS)
        .map(|number| {
            let mut secret = pattern.clone();
            secret.namespace = format!("namespace-{}", number / 20);
            secret.name = format!("secret-{number}");
            // Half of them by a way of its own for each namespace.
            if number % 2 == 0 {
                secret.path[0].object = format!("RoleBinding {}/reader", secret.namespace);
            }
            secret
        })
        .collect();
    reach.identities = reach.identities.iter().cycle().take(20_000).cloned().collect();
    let mut why = sample::why();
    why.paths = why.paths.iter().cycle().take(5_000).cloned().collect();
    let mut what_if = sample::what_if();
    what_if.gained = what_if.gained.iter().cycle().take(20_000).cloned().collect();
    what_if.lost = what_if.lost.iter().cycle().take(20_000).cloned().collect();
    what_if.verdicts = what_if.verdicts.iter().cycle().take(50_000).cloned().collect();
    what_if.resolved = what_if.resolved.iter().cycle().take(50_000).cloned().collect();
    let pages = [super::who_can_read(&who), super::reach(&reach), super::why(&why), super::what_if(&what_if)];
    for text in pages {
        let heading = text.lines().find(|line| line.starts_with("<h1>")).unwrap();
        assert!(text.len() < PAGE_BYTES_MAX, "{heading}: {} bytes", text.len());
        assert!(text.contains("<p class=\"more\">"), "{heading}");
    }
}
