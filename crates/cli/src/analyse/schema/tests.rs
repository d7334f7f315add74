use super::*;
use crate::analyse::{diff, explain, report, samples, select};

fn schema_of(id: &Value) -> Value {
    schemas().into_iter().map(|(_, schema)| schema).find(|s| s["title"] == *id).unwrap()
}

/// What a document breaks of its schema.
fn mistakes(document: &Value) -> Vec<String> {
    let validator = jsonschema::draft202012::new(&schema_of(&document["schema"])).unwrap();
    validator.iter_errors(document).map(|error| error.to_string()).collect()
}

fn documents() -> Vec<Value> {
    let wishes = report::Wishes {
        waivers: None,
        baseline: Some(samples::before()),
        filter: select::Filter { customers: vec!["acme".to_owned()], ..select::Filter::default() },
        fail_on: bailey_access::answer::Severity::High,
    };
    let report = report::report(samples::incomplete(), &wishes, &select::Names::default()).unwrap();
    vec![
        serde_json::to_value(report).unwrap(),
        serde_json::to_value(samples::who_can_read()).unwrap(),
        serde_json::to_value(samples::reach()).unwrap(),
        serde_json::to_value(samples::why()).unwrap(),
        serde_json::to_value(samples::what_if()).unwrap(),
        serde_json::to_value(diff::diff(samples::before(), samples::audit())).unwrap(),
        serde_json::to_value(explain::of_finding(samples::exposed(), samples::why().paths)).unwrap(),
    ]
}

#[test]
fn every_document_keeps_to_its_schema() {
    let documents = documents();
    assert_eq!(documents.len(), schemas().len(), "a document of each schema");
    for document in documents {
        assert_eq!(mistakes(&document), [""; 0], "{}", document["schema"]);
    }
}

#[test]
fn a_schema_tells_what_is_wrong() {
    for document in documents() {
        for field in document.as_object().unwrap().keys() {
            let mut without = document.clone();
            without.as_object_mut().unwrap().shift_remove(field);
            let optional = ["selection", "baseline", "waived", "finding", "alternates", "gaps"]
                .contains(&field.as_str());
            if field == "schema" || optional {
                continue;
            }
            assert!(!mistakes(&without).is_empty(), "{} without {field}", document["schema"]);
        }
        let mut wrong = document.clone();
        let sub = if wrong.get("findings").is_some() { "findings" } else { "complete" };
        if wrong.get(sub).is_some() {
            wrong[sub] = json!("many");
            assert!(!mistakes(&wrong).is_empty(), "{}", document["schema"]);
        }
    }
    let mut verdict = documents().remove(0);
    verdict["secrets"][0]["verdict"] = json!("fine");
    assert!(!mistakes(&verdict).is_empty());
}
