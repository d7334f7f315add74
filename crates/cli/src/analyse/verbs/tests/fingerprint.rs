//! Shared credentials, from the command line to the exit code.

use super::*;

const PASSWORD: &str = "qT7vXz2mLw9RkB4h";

/// Both customers hold the same password in a Secret.
fn shared() -> Place {
    let place = Place::new();
    for side in ["before", "after"] {
        let text = ["org-acme", "org-beta"].map(|namespace| secret(namespace, "twin", PASSWORD));
        place.write(&format!("{side}/twins.yaml"), &text.concat());
    }
    place
}

fn secret(namespace: &str, name: &str, password: &str) -> String {
    format!(
        "---\n{{kind: Secret, apiVersion: v1, metadata: {{name: {name}, namespace: {namespace}}}, stringData: {{password: {password}}}}}\n"
    )
}

fn rules(audit: &Value) -> Vec<&str> {
    audit["findings"].as_array().unwrap().iter().map(|finding| finding["rule"].as_str().unwrap()).collect()
}

#[test]
fn a_shared_password_is_found_only_if_values_may_be_read() {
    let place = shared();
    let (silent, exit) = place.json(&format!("audit {BEFORE}"));
    assert_eq!((rules(&silent), exit), (vec![], Exit::Clean));
    let (told, exit) = place.json(&format!("audit {BEFORE} --fingerprint"));
    assert_eq!((rules(&told), exit), (vec!["shared-credential"], Exit::Findings), "{told}");
    assert_eq!(told["findings"][0]["secrets"], serde_json::json!(["org-acme/twin", "org-beta/twin"]));
    assert!(!told.to_string().contains(PASSWORD));
    let id = told["findings"][0]["id"].as_str().unwrap();
    let (explained, _) = place.json(&format!("explain {id} {BEFORE} --fingerprint"));
    assert_eq!(explained["finding"]["id"], id);
}

#[test]
fn whoever_reads_the_copy_is_told_for_the_secret() {
    let place = shared();
    let question = format!("who-can-read org-beta/twin {BEFORE}");
    let (silent, exit) = place.json(&question);
    assert_eq!((exit, silent["secret"]["verdict"].as_str()), (Exit::Clean, Some("platform-only")));
    let (told, exit) = place.json(&format!("{question} --fingerprint"));
    assert_eq!((exit, told["secret"]["verdict"].as_str()), (Exit::Findings, Some("shared")), "{told}");
    assert_eq!(told["subjects"][0]["subject"], "sa:org-acme/backup", "{told}");
    let why = format!("why sa:org-acme/backup org-beta/twin {BEFORE}");
    assert_eq!(place.json(&why).1, Exit::Clean);
    assert_eq!(place.json(&format!("{why} --fingerprint")).1, Exit::Findings);
}

#[test]
fn fingerprints_of_two_runs_compare_with_the_same_key_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = shared();
    for (name, text) in [("one", "0123456789abcdef"), ("other", "fedcba9876543210")] {
        place.write(name, &text.repeat(4));
        std::fs::set_permissions(place.path(name), std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let run = |flags: &str| {
        let (audit, _) = place.json(&format!("audit {BEFORE} --fingerprint{flags}"));
        audit["findings"][0]["path"][0]["rule"].as_str().unwrap().to_owned()
    };
    let one = run(" --fingerprint-key @one");
    assert!(one.contains("fingerprint ") && one == run(" --fingerprint-key @one"), "{one}");
    assert_ne!(one, run(" --fingerprint-key @other"));
    assert_eq!(run(""), run(""), "what has another key each time is not shown");
}

#[test]
fn a_change_that_copies_a_password_is_a_finding_and_taking_it_away_resolves_it() {
    let place = Place::new();
    place.write("before/db.yaml", &secret("org-beta", "source", PASSWORD));
    place.write("copy.yaml", &secret("org-acme", "copy", PASSWORD));
    let (silent, exit) = place.json(&format!("what-if -f @copy.yaml {BEFORE}"));
    assert_eq!(exit, Exit::Clean, "{silent}");
    let (told, exit) = place.json(&format!("what-if -f @copy.yaml {BEFORE} --fingerprint"));
    assert_eq!((rules(&told), exit), (vec!["shared-credential"], Exit::Findings), "{told}");
    place.write("before/copy.yaml", &secret("org-acme", "copy", PASSWORD));
    let (gone, exit) = place.json(&format!("what-if -f @copy.yaml --remove {BEFORE} --fingerprint"));
    assert_eq!((exit, gone["resolved"].as_array().map(Vec::len)), (Exit::Clean, Some(1)), "{gone}");
    place.write("after/db.yaml", &secret("org-beta", "source", PASSWORD));
    let (diff, exit) = place.json("diff @after @before --tenants @tenants.yaml --fingerprint");
    assert_eq!((rules(&diff), exit), (vec!["shared-credential"], Exit::Findings), "{diff}");
}

#[test]
fn a_dump_without_values_is_no_answer() {
    let place = Place::new();
    let output = place.call(&format!("audit {BEFORE} --fingerprint -o json")).unwrap();
    assert_eq!(output.exit, Exit::Incomplete);
    assert!(output.notes.iter().any(|note| note.contains("values of 2 of 2 Secrets")), "{:?}", output.notes);
}

#[test]
fn a_key_without_fingerprints_is_a_mistake() {
    let words = ["bailey", "audit", "--fingerprint-key", "k"];
    assert!(Cli::try_parse_from(words).unwrap_err().to_string().contains("--fingerprint"));
}

/// `mc/mc-two-tenants-known.answers.yaml` of the corpora, K5.
#[test]
fn the_planted_password_of_a_management_cluster_is_found_and_no_other() {
    let Some(folder) = bailey_testkit::corpora("shared credentials of a management cluster") else { return };
    let dump = folder.join("mc/mc-two-tenants-known.yaml");
    let line = format!("audit --dump {} --preset giantswarm --fingerprint", dump.display());
    let (audit, _) = Place::new().json(&line);
    let findings = audit["findings"].as_array().unwrap().iter();
    let shared: Vec<_> =
        findings.filter(|finding| finding["rule"].as_str().unwrap().ends_with("-credential")).collect();
    let [finding] = shared[..] else { panic!("{shared:#?}") };
    assert_eq!(finding["secrets"], serde_json::json!(["org-acme/db-credentials", "org-beta/analytics-db"]));
    assert_eq!(finding["path"][0]["from"], "Secret org-acme/db-credentials#password");
    assert_eq!(finding["path"][0]["to"], "Secret org-beta/analytics-db#password");
}
