use super::*;

fn snapshot(text: &str) -> Snapshot {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.yaml");
    std::fs::write(&file, text).unwrap();
    dumps(&[DumpArgument { name: Some("harbour".to_owned()), path: file }], None).unwrap()
}

const NAMESPACES: &str = "\
{kind: Namespace, apiVersion: v1, metadata: {name: org-acme}}
---
{kind: Namespace, apiVersion: v1, metadata: {name: monitoring}}
";
const TENANT: &str = "\
---
{kind: Tenant, apiVersion: bailey.dev/v1alpha1, metadata: {name: acme}, spec: {namespaces: [org-acme]}}
";

fn known(text: &str, whose: &WhoseArguments) -> (Vec<String>, usize) {
    let loaded = Loaded::of(snapshot(text), None, whose).unwrap();
    (loaded.customers.customers.keys().cloned().collect(), loaded.hints.len())
}

#[test]
fn tenants_of_the_cluster_say_what_belongs_to_whom() {
    let text = format!("{NAMESPACES}{TENANT}");
    assert_eq!(known(&text, &WhoseArguments::default()), (vec!["acme".to_owned()], 0));
    let none = WhoseArguments { preset: Some("none".to_owned()), ..WhoseArguments::default() };
    assert_eq!(known(&text, &none), (Vec::new(), 0), "somebody wants to look without them");
}

#[test]
fn a_file_comes_before_the_tenants_of_the_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tenants.yaml");
    std::fs::write(&file, "customers: {beta: {namespaces: [org-beta]}}").unwrap();
    let whose = WhoseArguments { tenants: Some(file.clone()), ..WhoseArguments::default() };
    assert_eq!(known(&format!("{NAMESPACES}{TENANT}"), &whose).0, ["beta"]);

    std::fs::write(&file, "customers: {beta: {namespace: [org-beta]}}\ntoken: hunter2").unwrap();
    let error = Loaded::of(snapshot(NAMESPACES), None, &whose).map(|_| ()).unwrap_err();
    assert_eq!(error.exit(), crate::Exit::Usage);
    assert!(error.to_string().contains("customers.beta"), "{error}");
    std::fs::write(&file, "customers: [\ntoken: hunter2").unwrap();
    let error = Loaded::of(snapshot(NAMESPACES), None, &whose).map(|_| ()).unwrap_err();
    assert!(!report(&error).contains("hunter2"), "{error}");
}

#[test]
fn where_nothing_says_it_that_is_told() {
    assert_eq!(known(NAMESPACES, &WhoseArguments::default()), (Vec::new(), 1));
}

#[test]
fn filters_may_name_what_has_no_secret() {
    let loaded =
        Loaded::of(snapshot(&format!("{NAMESPACES}{TENANT}")), None, &WhoseArguments::default()).unwrap();
    let names = loaded.names();
    assert!(names.namespaces.contains("monitoring") && names.customers.contains("acme"), "{names:?}");
}

#[test]
fn timings_are_one_line_that_sums_up() {
    let mut clock = Clock::start();
    clock.lap("load");
    clock.lap("answer");
    let line = clock.line("audit");
    assert!(!line.contains('\n'));
    let line: Value = serde_json::from_str(&line).unwrap();
    let laps = line["seconds"].as_object().unwrap();
    assert_eq!(laps.keys().collect::<Vec<_>>(), ["load", "answer"]);
    let sum: f64 = laps.values().filter_map(Value::as_f64).sum();
    assert!((sum - line["total"].as_f64().unwrap()).abs() < 1e-5, "{line}");
}
