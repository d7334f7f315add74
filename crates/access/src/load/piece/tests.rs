use serde_json::{Value, json};

use super::{Fault, Head, Piece};

fn head<'h>(api_version: &'h str, kind: &'h str) -> Head<'h> {
    Head { api_version: api_version.into(), kind: kind.into() }
}

#[test]
fn the_head_of_json_is_found_wherever_it_is() {
    for (text, expected) in [
        (r#"{"apiVersion":"v1","kind":"Pod","spec":"#, head("v1", "Pod")),
        (r#"{ "kind" : "Pod" , "spec":{"kind":"No"}, "apiVersion":"v1"}"#, head("v1", "Pod")),
        (r#"{"spec":{"kind":"No"},"n":1.5,"s":"\"kind\":","l":[1,{}],"kind":"Pod"}"#, head("", "Pod")),
        (r#"{"kind":"P\u006fd","apiVersion":"v1"}"#, head("v1", "Pod")),
        (r#"{"kind":5,"apiVersion":null}"#, head("", "")),
        (r#"{}"#, head("", "")),
        (r#"{"kind""#, head("", "")),
    ] {
        assert_eq!(Piece::Json(text.as_bytes()).head(), expected, "{text}");
    }
}

#[test]
fn the_head_of_yaml_is_found_in_each_style() {
    for (text, expected) in [
        ("apiVersion: v1\nkind: Pod\n", head("v1", "Pod")),
        ("# c\n---\nspec:\n  kind: No\nkind: 'Pod'\napiVersion: \"v1\" \n", head("v1", "Pod")),
        ("  apiVersion: v1\n  spec:\n    kind: No\n  kind: Pod\n", head("v1", "Pod")),
        ("{kind: Pod, apiVersion: v1}", head("v1", "Pod")),
        ("kind: &k Pod\napiVersion: v1 # c\n", head("v1", "Pod")),
        ("kind: Pod\n", head("", "Pod")),
        ("- a\n", head("", "")),
        ("a: [", head("", "")),
    ] {
        assert_eq!(Piece::Yaml(text).head(), expected, "{text}");
    }
}

#[test]
fn a_fault_says_where_and_quotes_nothing() {
    let text = "{\n \"kind\": \"Pod\",\n \"spec\": hunter2}";
    let fault = Piece::Json(text.as_bytes()).read::<Value>().unwrap_err();
    let bytes = text.find("hunter2").unwrap() as u64;
    assert_eq!(fault, Fault { what: "is not valid JSON", lines: 2, bytes });
    let fault = Piece::Json(b"[\"\xff\"]").read::<Value>().unwrap_err();
    assert_eq!(fault.what, "is nested too deep or not in UTF-8");
    let deep = "[".repeat(200) + &"]".repeat(200);
    assert_eq!(
        Piece::Json(deep.as_bytes()).read::<Value>().unwrap_err().what,
        "is nested too deep or not in UTF-8"
    );
    assert_eq!(Piece::Yaml(&deep).read::<Value>().unwrap_err().what, "is too large or nested too deep");
    let fault = Piece::Yaml("a: 1\nb: [hunter2\n").read::<Value>().unwrap_err();
    assert_eq!(fault.what, "is not valid YAML");
    let fault = Piece::Yaml("a: 1\nkind: [hunter2]\n").read::<Head<'_>>().unwrap_err();
    assert_eq!((fault.what, fault.lines), ("has a value of the wrong type", 1));
    let fault = Piece::Value(&json!({"kind": []})).read::<Head<'_>>().unwrap_err();
    assert_eq!(fault.what, "has a value of the wrong type");
}

#[test]
fn the_last_of_two_equal_keys_counts_in_yaml() {
    let value: Value = Piece::Yaml("a: 1\nb: 2\na: 3\n").read().unwrap();
    assert_eq!(value, json!({"a": 3, "b": 2}));
    let text = "apiVersion: a\nkind: A\nkind: [B]\nkind: C\n";
    assert_eq!(Piece::Yaml(text).read::<Head<'_>>().unwrap(), head("a", "C"));
    let labels: super::super::wire::Pairs<'_> = Piece::Yaml("a: 1\nb: 2\na: 3\n").read().unwrap();
    assert_eq!((labels.0.len(), labels.find("a")), (2, Some("3")));
}

#[test]
fn text_stays_as_it_was_written() {
    let value: super::super::wire::Named<'_> = Piece::Yaml("name: 1.10\nnamespace: true\n").read().unwrap();
    assert_eq!((value.name.0.as_ref(), value.namespace.0.as_ref()), ("1.10", "true"));
}
