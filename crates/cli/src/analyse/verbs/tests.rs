//! Each verb from its command line to its exit code, on dumps.

mod fingerprint;

use std::path::PathBuf;

use clap::Parser as _;
use serde_json::Value;

use super::*;
use crate::args::{Cli, Command};

const DUMP: &str = "\
{kind: Namespace, apiVersion: v1, metadata: {name: org-acme}}
---
{kind: Namespace, apiVersion: v1, metadata: {name: org-beta}}
---
{kind: Secret, apiVersion: v1, type: Opaque, metadata: {name: app, namespace: org-acme}}
---
{kind: Secret, apiVersion: v1, type: Opaque, metadata: {name: db, namespace: org-beta}}
---
{kind: ServiceAccount, apiVersion: v1, metadata: {name: backup, namespace: org-acme}}
---
kind: ClusterRole
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: reader}
rules: [{apiGroups: [''], resources: [secrets], verbs: [get, list]}]
---
kind: RoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: backup, namespace: org-acme}
roleRef: {kind: ClusterRole, name: reader, apiGroup: rbac.authorization.k8s.io}
subjects: [{kind: ServiceAccount, name: backup, namespace: org-acme}]
";
const BINDING: &str = "\
kind: RoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: backup, namespace: org-beta}
roleRef: {kind: ClusterRole, name: reader, apiGroup: rbac.authorization.k8s.io}
subjects: [{kind: ServiceAccount, name: backup, namespace: org-acme}]
";
const TENANTS: &str = "\
customers:
  acme: {namespaces: [org-acme]}
  beta: {namespaces: [org-beta]}
platform: {rest: true}
";

/// A folder with `before/` and `after/`, which has one binding more, `tenants.yaml` and `binding.yaml`.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for side in ["before", "after"] {
            std::fs::create_dir(place.path(side)).unwrap();
            place.write(&format!("{side}/dump.yaml"), DUMP);
        }
        place.write("after/binding.yaml", BINDING);
        place.write("binding.yaml", BINDING);
        place.write("tenants.yaml", TENANTS);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Runs a verb; `@NAME` is a file of this place.
    fn call(&self, line: &str) -> Result<Output, CliError> {
        let words = ["bailey", "--color", "never"].into_iter().chain(line.split(' ')).map(|word| {
            let at = word.find('@').filter(|_| !word.starts_with('-'));
            at.map_or(word.to_owned(), |at| {
                format!("{}{}", &word[..at], self.path(&word[at + 1..]).display())
            })
        });
        let cli = Cli::try_parse_from(words).unwrap();
        let Command::Verb(verb) = &cli.command else { panic!("{line}") };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(crate::answer(&cli.global, verb))
    }

    fn json(&self, line: &str) -> (Value, Exit) {
        let output = self.call(&format!("{line} -o json")).unwrap();
        (serde_json::from_str(&output.text).unwrap(), output.exit)
    }
}

const BEFORE: &str = "--dump harbour=@before --tenants @tenants.yaml";
const AFTER: &str = "--dump harbour=@after --tenants @tenants.yaml";

#[test]
fn an_audit_finds_what_another_customer_reaches() {
    let place = Place::new();
    let (clean, exit) = place.json(&format!("audit {BEFORE}"));
    assert_eq!((exit, &clean["summary"]["exactlyOne"]), (Exit::Clean, &1.into()), "{clean}");
    let (found, exit) = place.json(&format!("audit {AFTER}"));
    assert_eq!((exit, &found["summary"]["shared"]), (Exit::Findings, &1.into()), "{found}");
    let finding = &found["findings"][0];
    assert_eq!(
        (&finding["rule"], &finding["subject"]),
        (&"read-secret".into(), &"sa:org-acme/backup".into())
    );
    assert_eq!(found["gate"]["findings"][0], finding["id"]);
    assert!(found["findings"].to_string().contains("binding.yaml:1"), "the place in the dump: {finding}");
}

#[test]
fn a_baseline_and_a_waiver_make_an_audit_clean() {
    let place = Place::new();
    let first = place.call(&format!("audit {AFTER} -o json")).unwrap();
    place.write("audit.json", &first.text);
    let (known, exit) = place.json(&format!("audit {AFTER} --baseline @audit.json"));
    assert_eq!((exit, known["baseline"]["known"].as_array().map(Vec::len)), (Exit::Clean, Some(1)));
    let (gone, exit) = place.json(&format!("audit {BEFORE} --baseline @audit.json"));
    assert_eq!((exit, gone["baseline"]["gone"].as_array().map(Vec::len)), (Exit::Clean, Some(1)));

    let waiver = "waivers:\n- {rule: read-secret, subject: \"sa:org-acme/backup\", owner: a, reason: b, expires: 9999-12-31}\n";
    place.write("waivers.yaml", waiver);
    let (waived, exit) = place.json(&format!("audit {AFTER} --waivers @waivers.yaml --fail-on low"));
    assert_eq!((exit, waived["waived"].as_array().map(Vec::len)), (Exit::Clean, Some(1)), "{waived}");
    let (unused, exit) = place.json(&format!("audit {BEFORE} --waivers @waivers.yaml --fail-on low"));
    assert_eq!((exit, &unused["findings"][0]["rule"]), (Exit::Findings, &"unused-waiver".into()));
}

#[test]
fn what_cannot_be_read_makes_an_audit_incomplete() {
    let place = Place::new();
    place.write("after/broken.yaml", "kind: Secret\napiVersion: v1\nmetadata: [");
    let output = place.call(&format!("audit {AFTER} -o json")).unwrap();
    assert_eq!(output.exit, Exit::Incomplete);
    assert!(output.notes.iter().any(|note| note.contains("broken.yaml")), "{:?}", output.notes);
    let error = place.call("audit --dump @nowhere").unwrap_err();
    assert_eq!(error.exit(), Exit::Usage);
    let error = place.call("audit --dump @before --context wc1").unwrap_err();
    assert!(error.to_string().contains("leave them out"), "{error}");
}

#[test]
fn questions_are_answered_with_their_exit_codes() {
    let place = Place::new();
    for (question, before, after) in [
        ("who-can-read org-beta/db", Exit::Clean, Exit::Findings),
        ("reach sa:org-acme/backup", Exit::Clean, Exit::Findings),
        ("why sa:org-acme/backup org-beta/db", Exit::Clean, Exit::Findings),
        ("why sa:org-acme/backup org-acme/app", Exit::Findings, Exit::Findings),
    ] {
        assert_eq!(place.json(&format!("{question} {BEFORE}")).1, before, "{question} before");
        assert_eq!(place.json(&format!("{question} {AFTER}")).1, after, "{question} after");
    }
    let error = place.call(&format!("reach sa:org-acme/nobody {AFTER}")).unwrap_err();
    assert_eq!(error.exit(), Exit::Usage, "{error}");
    let (absent, _) = place.json(&format!("who-can-read org-beta/new {AFTER}"));
    assert_eq!(absent["exists"], false, "{absent}");
}

#[test]
fn a_change_is_tried_both_ways() {
    let place = Place::new();
    let (added, exit) = place.json(&format!("what-if -f @binding.yaml {BEFORE}"));
    assert_eq!((exit, &added["objects"][0]), (Exit::Findings, &"RoleBinding org-beta/backup".into()));
    assert_eq!(added["verdicts"][0]["after"], "shared", "{added}");
    let (removed, exit) = place.json(&format!("what-if -f @binding.yaml --remove {AFTER}"));
    assert_eq!((exit, removed["resolved"].as_array().map(Vec::len)), (Exit::Clean, Some(1)), "{removed}");
    let output = place.call(&format!("what-if -f @binding.yaml --remove {BEFORE}")).unwrap();
    assert_eq!(output.notes, ["not there, so not removed: RoleBinding org-beta/backup"]);
}

#[test]
fn dumps_and_audits_are_compared_in_any_mix() {
    let place = Place::new();
    let audit = place.call("audit --dump @before --tenants @tenants.yaml -o json").unwrap();
    place.write("before.json", &audit.text);
    for line in ["diff @before @after", "diff @before.json @after"] {
        let (diff, exit) = place.json(&format!("{line} --tenants @tenants.yaml"));
        assert_eq!(
            (exit, diff["findings"].as_array().map(Vec::len)),
            (Exit::Findings, Some(1)),
            "{line}: {diff}"
        );
    }
    let (back, exit) = place.json("diff @after @before.json --tenants @tenants.yaml");
    assert_eq!((exit, back["gone"].as_array().map(Vec::len)), (Exit::Clean, Some(1)));
}

#[test]
fn an_id_is_explained_wherever_it_is_from() {
    let place = Place::new();
    let (rule, exit) = place.json("explain patch-read");
    assert_eq!((exit, &rule["rules"][0]["id"]), (Exit::Clean, &"patch-read".into()));
    assert!(place.json("explain").0["rules"].as_array().unwrap().len() > 50);
    let audit = place.call(&format!("audit {AFTER} -o json")).unwrap();
    place.write("audit.json", &audit.text);
    let id = place.call(&format!("audit {AFTER} -o name")).unwrap().text.trim().to_owned();
    for source in [AFTER, "--audit @audit.json"] {
        let (finding, _) = place.json(&format!("explain {id} {source}"));
        assert_eq!(finding["finding"]["id"], id.as_str(), "{finding}");
        assert_eq!(finding["rules"][0]["id"], "read-secret");
    }
    let error = place.call("explain pach-read").unwrap_err();
    assert!(error.to_string().contains("bailey explain lists them"), "{error}");
    let error = place.call(&format!("explain exec-00000000 {AFTER}")).unwrap_err();
    assert_eq!(error.exit(), Exit::Usage);
}

#[test]
fn timings_go_beside_the_answer() {
    let place = Place::new();
    let output = place.call(&format!("audit {AFTER} --timings -o name")).unwrap();
    let line: Value = serde_json::from_str(output.notes.last().unwrap()).unwrap();
    let laps: Vec<_> = line["seconds"].as_object().unwrap().keys().collect();
    assert_eq!(laps, ["load", "close", "answer", "render"]);
    assert!(line["graph"]["nodes"].as_u64() > Some(0), "{line}");
    assert_eq!(line.get("incremental_p99"), None);
}

#[test]
fn changes_that_are_measured_leave_the_answer_as_it_was() {
    let place = Place::new();
    let audit = format!("audit {AFTER} --timings -o json");
    let plain = place.call(&audit).unwrap();
    let measured = place.call(&format!("{audit} --bench-incremental 5")).unwrap();
    assert_eq!(measured.text, plain.text);
    let line: Value = serde_json::from_str(measured.notes.last().unwrap()).unwrap();
    assert!(line["incremental_p50"].as_f64() <= line["incremental_p99"].as_f64(), "{line}");
    assert!(line["incremental_p50"].as_f64() > Some(0.0), "{line}");
}
