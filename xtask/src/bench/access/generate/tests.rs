use std::collections::BTreeSet;
use std::path::Path;

use bailey_access::{Access, Customers, Loader, Snapshot};

use super::*;
use crate::bench::access::check;

fn small(folder: &Path, seed: u64) -> Generated {
    let options = Options { size: Size::S, seed, layout: Layout::Compact, gzip: false };
    generate(&options, folder).unwrap()
}

fn items(generated: &Generated, plural: &str) -> Vec<Value> {
    let text = fs::read(generated.dump.join(format!("{plural}.json"))).unwrap();
    let mut list: Value = serde_json::from_slice(&text).unwrap();
    serde_json::from_value(list["items"].take()).unwrap()
}

fn key(value: &Value, namespace: &str, name: &str) -> String {
    let word = |key: &str| value[key].as_str().unwrap_or_default();
    format!("{}/{}", word(namespace), word(name))
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_other_ones() {
    let (first, second, third) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (a, b, c) = (small(first.path(), 1), small(second.path(), 1), small(third.path(), 2));
    for (plural, ..) in &a.lists {
        let text = |generated: &Generated| fs::read(generated.dump.join(format!("{plural}.json"))).unwrap();
        assert_eq!(text(&a), text(&b), "{plural}");
        assert_ne!(text(&a), text(&c), "{plural}");
    }
    assert_eq!(fs::read(&a.answers).unwrap(), fs::read(&c.answers).unwrap());
}

#[test]
fn every_object_has_a_name_of_its_own_and_names_what_exists() {
    let folder = tempfile::tempdir().unwrap();
    let generated = small(folder.path(), 3);
    let names: std::collections::BTreeMap<&str, BTreeSet<String>> = generated
        .lists
        .iter()
        .map(|(plural, _, objects)| {
            let all = items(&generated, plural);
            let named: BTreeSet<String> =
                all.iter().map(|item| key(&item["metadata"], "namespace", "name")).collect();
            assert_eq!((all.len(), named.len()), (*objects, *objects), "{plural}: two of a name");
            (*plural, named)
        })
        .collect();
    for pod in items(&generated, "pods") {
        let (spec, namespace) = (&pod["spec"], pod["metadata"]["namespace"].as_str().unwrap());
        let account = format!("{namespace}/{}", spec["serviceAccountName"].as_str().unwrap());
        assert!(names["serviceaccounts"].contains(&account), "no account {account}");
        assert!(names["nodes"].contains(&key(spec, "", "nodeName")), "{}", spec["nodeName"]);
        for volume in spec["volumes"].as_array().unwrap() {
            if let Some(secret) = volume["secret"]["secretName"].as_str() {
                assert!(names["secrets"].contains(&format!("{namespace}/{secret}")), "no Secret {secret}");
            }
        }
    }
    for binding in items(&generated, "rolebindings") {
        let role = &binding["roleRef"];
        let of = if role["kind"] == "Role" { &binding["metadata"] } else { &Value::Null };
        let name =
            format!("{}/{}", of["namespace"].as_str().unwrap_or_default(), role["name"].as_str().unwrap());
        let plural = if role["kind"] == "Role" { "roles" } else { "clusterroles" };
        assert!(names[plural].contains(&name), "no {plural} {name}");
    }
}

/// Else the answers of those who read nothing would not hold.
#[test]
fn only_what_is_fixed_is_granted_to_planted_subjects_and_to_everybody() {
    let folder = tempfile::tempdir().unwrap();
    let generated = small(folder.path(), 4);
    let fixed = Plan::new(Size::S, 4).unwrap().fixed.bindings;
    let fixed: BTreeSet<&str> = fixed.iter().map(|binding| binding.role.as_str()).collect();
    for plural in ["rolebindings", "clusterrolebindings"] {
        for binding in items(&generated, plural) {
            let role = binding["roleRef"]["name"].as_str().unwrap();
            for subject in binding["subjects"].as_array().into_iter().flatten() {
                let name = subject["name"].as_str().unwrap();
                if subject["namespace"] == "planted" {
                    assert!(role.starts_with("planted-"), "{subject} holds {role}");
                }
                if ["system:authenticated", "system:serviceaccounts"].contains(&name) {
                    assert!(role == "view" || fixed.contains(role), "{name} holds {role}");
                }
                assert!(!name.contains("system:serviceaccounts:planted"), "{name} holds {role}");
            }
        }
    }
}

#[test]
fn pods_take_secrets_in_all_four_ways() {
    let folder = tempfile::tempdir().unwrap();
    let text = serde_json::to_string(&items(&small(folder.path(), 1), "pods")).unwrap();
    for way in ["\"secretName\"", "{\"secret\":{\"items\"", "\"secretKeyRef\"", "\"secretRef\""] {
        assert!(text.contains(way), "no pod takes a Secret by {way}");
    }
}

#[test]
fn no_secret_has_a_value() {
    let folder = tempfile::tempdir().unwrap();
    for secret in items(&small(folder.path(), 1), "secrets") {
        assert!(secret.get("data").is_none() && secret.get("stringData").is_none(), "{secret}");
        let token = secret["type"] == "kubernetes.io/service-account-token";
        assert_eq!(token, secret["metadata"]["annotations"].is_object(), "{secret}");
    }
}

#[test]
fn a_chart_to_ask_about_has_thirty_objects() {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(small(folder.path(), 1).chart).unwrap();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    assert_eq!(documents.len(), 30);
    assert!(documents.iter().all(|document| document["kind"].is_string()));
}

/// Hundreds of roles, bindings and operators at once are more than a case by hand has.
#[test]
fn the_analyser_answers_for_every_planted_subject_among_hundreds_of_bindings() {
    let folder = tempfile::tempdir().unwrap();
    let generated = small(folder.path(), 1);
    let mut snapshot = Snapshot::default();
    let mut loader = Loader::new(&mut snapshot, Some("mc"));
    for (plural, ..) in &generated.lists {
        let file = generated.dump.join(format!("{plural}.json"));
        loader.source(&file.display().to_string());
        loader.load(fs::File::open(file).unwrap()).unwrap();
    }
    loader.finish();
    let access = Access::new(snapshot, Customers::default());
    let answers = check::answers(&generated.answers).unwrap();
    assert!(answers.len() >= 25, "{}", answers.len());
    let mut readers = check::Readers::new();
    for answer in &answers {
        let reach = access.reach(&answer.subject.parse().unwrap()).unwrap();
        check::add_reach(&mut readers, &answer.subject, &serde_json::to_vec(&reach).unwrap()).unwrap();
    }
    let score = check::judge(&answers, &readers, &check::secrets_asked(&generated.dump).unwrap());
    assert_eq!(score.wrong, Vec::<String>::new());
    assert_eq!((score.assumed, score.right()), (0, score.claims()));
}
