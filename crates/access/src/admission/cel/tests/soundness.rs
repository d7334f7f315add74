//! What is answered with only essential fields holds for all other values of the rest.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

const FIELDS: [&str; 4] = ["a", "b", "c", "d"];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![Just(json!("x")), Just(json!("y")), Just(json!(1)), Just(json!(true)), Just(Value::Null)]
}

fn fields() -> impl Strategy<Value = Value> {
    prop::collection::vec(prop::option::of(scalar()), 4).prop_map(|values| {
        let named = FIELDS.iter().zip(values).filter_map(|(name, value)| Some(((*name).to_owned(), value?)));
        Value::Object(named.collect::<Map<_, _>>())
    })
}

/// `spec` with fields, and a list of objects.
fn object() -> impl Strategy<Value = Value> {
    (fields(), prop::option::of(prop::collection::vec(fields(), 1..3))).prop_map(|(mut spec, list)| {
        if let Some(list) = list {
            spec["list"] = list.into();
        }
        json!({ "spec": spec })
    })
}

fn expression() -> impl Strategy<Value = String> {
    let field = prop::sample::select(&FIELDS[..]);
    let leaf = prop_oneof![
        field.clone().prop_map(|f| format!("has(object.spec.{f})")),
        field.clone().prop_map(|f| format!("object.spec.{f} == 'x'")),
        field.clone().prop_map(|f| format!("object.spec.{f} in ['x', 1]")),
        field.clone().prop_map(|f| format!("object.spec.?{f}.orValue('x') == 'x'")),
        field.clone().prop_map(|f| format!("'{f}' in object.spec")),
        field.clone().prop_map(|f| format!("object.spec.list.all(i, has(i.{f}) && i.{f} == 'x')")),
        field.clone().prop_map(|f| format!("object.spec.list.exists(i, i.{f} == 'x')")),
        field.clone().prop_map(|f| format!("object.spec.list.filter(i, has(i.{f})).size() > 1")),
        field.clone().prop_map(|f| format!("(object.spec.list + [object.spec]).exists(i, has(i.{f}))")),
        field.prop_map(|f| format!("object.spec.{f}.startsWith('x')")),
        Just("object.spec == {'a': 'x'}".to_owned()),
        Just("object.spec.list[0].a == 'x'".to_owned()),
        Just("size(object.spec.list) == 1".to_owned()),
        Just("object.spec.exists(k, k == 'a')".to_owned()),
        Just("true".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} && {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} || {b})")),
            inner.clone().prop_map(|a| format!("!({a})")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("({a}) == ({b})")),
        ]
    })
}

fn pointer() -> impl Strategy<Value = String> {
    let field = prop::sample::select(&FIELDS[..]);
    prop_oneof![
        4 => field.clone().prop_map(|f| format!("/spec/{f}")),
        2 => field.prop_map(|f| format!("/spec/list/0/{f}")),
        1 => Just("/spec/list".to_owned()),
        1 => Just("/spec/list/0".to_owned()),
    ]
}

/// What is at a pointer of one object goes to another, so that they agree there.
fn agree(from: &Value, to: &mut Value, pointer: &str) {
    let tokens: Vec<_> = pointer.split('/').skip(1).collect();
    let Some((last, parents)) = tokens.split_last() else { return };
    let (mut source, mut target) = (Some(from), to);
    for token in parents {
        source = source.and_then(|value| match value {
            Value::Array(list) => list.get(token.parse::<usize>().unwrap()),
            value => value.get(token),
        });
        // Where the sample has nothing that the field could lie in, nothing is said.
        let Some(parent) = source else { return };
        if *token == "list" && !target["list"].is_array() {
            target["list"] = json!([]);
        }
        target = match target {
            Value::Array(list) => {
                if list.is_empty() {
                    list.push(json!({}));
                }
                &mut list[0]
            }
            target => &mut target[token],
        };
        if parent.is_object() && !target.is_object() {
            *target = json!({});
        }
    }
    let value = source.and_then(|value| match value {
        Value::Array(list) => list.get(last.parse::<usize>().unwrap()),
        value => value.get(last),
    });
    match (target, value) {
        (Value::Array(list), Some(value)) if list.is_empty() => list.push(value.clone()),
        (Value::Array(list), Some(value)) => list[0] = value.clone(),
        (Value::Array(_), None) => {}
        (target, Some(value)) => target[last] = value.clone(),
        (target, None) => {
            target.as_object_mut().unwrap().remove(*last);
        }
    }
}

proptest! {
    #[test]
    fn an_answer_from_essential_fields_holds_for_every_such_object(
        sample in object(),
        mut other in object(),
        text in expression(),
        essential in prop::collection::vec(pointer(), 0..4),
        errors_refuse in any::<bool>(),
    ) {
        let mut pointers = essential.clone();
        // Parts before wholes: what is in a list follows from the list.
        pointers.sort_by_key(|pointer| std::cmp::Reverse(pointer.len()));
        for pointer in &pointers {
            agree(&sample, &mut other, pointer);
        }
        let parts = Parts::only(essential.iter().map(String::as_str));
        let expression = Expressions::default().get(&text);
        let answer = |view| Scope::new(vec![("object", Term::of(view))], None, &[], errors_refuse).evaluate(&expression).map(|t| shown(Ok(t)));
        let from_essential = answer(View::partial(&sample, &parts));
        let of_other = answer(View::certain(&other));
        if let Ok(value @ ("true" | "false")) = from_essential.as_deref() {
            match of_other {
                Ok(other) => prop_assert_eq!(value, other),
                // A list with unknown items may turn out to be none; that refuses too.
                Err(_) => prop_assert!(errors_refuse, "an error instead of {value}"),
            }
        }
    }

    #[test]
    fn with_everything_essential_nothing_is_unknown(sample in object(), text in expression()) {
        let expression = Expressions::default().get(&text);
        let parts = Parts::only(["/spec"]);
        let answer = |view| shown(Scope::new(vec![("object", Term::of(view))], None, &[], true).evaluate(&expression));
        let whole = answer(View::certain(&sample));
        prop_assert!(!whole.starts_with("unknown"), "{}", whole);
        prop_assert_eq!(answer(View::partial(&sample, &parts)), whole);
    }
}

#[test]
fn many_answers_need_no_more_than_what_is_essential() {
    use proptest::{strategy::ValueTree, test_runner::TestRunner};
    let mut runner = TestRunner::deterministic();
    let cases = (object(), expression(), prop::collection::vec(pointer(), 1..3));
    let (mut decided, mut unknown) = (0, 0);
    for _ in 0..500 {
        let (sample, text, essential) = cases.new_tree(&mut runner).unwrap().current();
        let parts = Parts::only(essential.iter().map(String::as_str));
        let expression = Expressions::default().get(&text);
        let roots = vec![("object", Term::of(View::partial(&sample, &parts)))];
        match Scope::new(roots, None, &[], true).evaluate(&expression) {
            Ok(Term::Bool(_)) if text.contains("object") => decided += 1,
            Ok(Term::Unknown(_)) => unknown += 1,
            _ => {}
        }
    }
    assert!(decided > 50 && unknown > 50, "{decided} decided, {unknown} unknown");
}
