use serde_json::json;

use super::*;

fn shown(child: Child<'_>) -> String {
    match child {
        Child::Present(view) if view.is_certain() => view.value().to_string(),
        Child::Present(view) => format!("part of {}", view.value()),
        Child::Absent => "absent".to_owned(),
        Child::Unknown => "unknown".to_owned(),
    }
}

#[test]
fn only_essential_fields_are_certain() {
    let object = json!({"spec": {"account": "a", "image": "i", "list": [{"x": 1, "y": 2}]}});
    let parts =
        Parts::only(["/spec/account", "/spec/target", "/spec/list/0/x", "/status/phase", "/spec/a~1b"]);
    let view = View::partial(&object, &parts);
    for (path, expected) in [
        (&["spec", "account"][..], "\"a\""),
        (&["spec", "target"], "absent"),
        (&["spec", "a/b"], "absent"),
        (&["spec", "image"], "unknown"),
        (&["spec", "absent"], "unknown"),
        (&["spec", "list", "0", "x"], "1"),
        (&["spec", "list", "0", "y"], "unknown"),
        (&["spec", "list", "1"], "unknown"),
        (&["status"], "unknown"),
        (&["kind"], "unknown"),
    ] {
        assert_eq!(shown(view.path(path)), expected, "{path:?}");
    }
    assert!(matches!(view.get("spec"), Child::Present(spec) if !spec.is_certain()));
}

#[test]
fn everything_but_the_exceptions_is_certain() {
    let request = json!({"operation": "CREATE", "userInfo": {"username": "a", "uid": "1"}});
    let parts = Parts::except(["/userInfo/uid", "/dryRun"]);
    let view = View::partial(&request, &parts);
    assert_eq!(shown(view.path(&["operation"])), "\"CREATE\"");
    assert_eq!(shown(view.path(&["userInfo", "username"])), "\"a\"");
    assert_eq!(shown(view.path(&["userInfo", "extra"])), "absent");
    assert_eq!(shown(view.path(&["userInfo", "uid"])), "unknown");
    assert_eq!(shown(view.path(&["dryRun"])), "unknown");
    assert_eq!(shown(view.path(&["name"])), "absent");
}

#[test]
fn the_whole_document_may_be_essential() {
    let object = json!({"spec": {"a": 1}});
    let parts = Parts::only([""]);
    assert!(View::partial(&object, &parts).is_certain());
    // A pointer into what is whole adds nothing, in any order.
    let parts = Parts::only(["/spec", "/spec/a"]);
    assert_eq!(shown(View::partial(&object, &parts).path(&["spec", "b"])), "absent");
}

#[test]
fn members_are_those_that_are_certain() {
    let object = json!({"list": [1, 2, 3]});
    let parts = Parts::only(["/list/1"]);
    let list = View::partial(&object, &parts).get("list").present().unwrap();
    let members: Vec<_> = list.members().into_iter().map(|(name, view)| (name, view.value())).collect();
    assert_eq!(members, [("1".to_owned(), &json!(2))]);
}
