use serde_json::{Value, json};

use super::{authorizer::Asked, *};
use crate::admission::{
    Authorizer, Check, Requester,
    view::{Parts, View},
};

mod soundness;

/// The value of an expression as text: JSON-like, `error: …` or `unknown: …`.
fn shown(answer: Result<Term<'_>, Fault>) -> String {
    match answer {
        Ok(Term::Unknown(why)) => format!("unknown: {why}"),
        Ok(Term::Null) => "null".to_owned(),
        Ok(Term::Bool(value)) => value.to_string(),
        Ok(Term::Int(value)) => value.to_string(),
        Ok(Term::Double(value)) => format!("{value:?}"),
        Ok(Term::Text(text)) => text.into_owned(),
        Ok(Term::Json(view)) => view.value().to_string(),
        Ok(Term::List(list)) => {
            let items: Vec<_> = list.items.iter().map(|item| shown(Ok(item.clone()))).collect();
            format!("[{}]{}", items.join(", "), if list.open.is_some() { "…" } else { "" })
        }
        Ok(other) => format!("{other:?}"),
        Err(fault) => format!("error: {fault}"),
    }
}

fn evaluate(text: &str, object: View<'_>, variables: &[(&str, &str)]) -> String {
    let known = Expressions::default();
    let expression = known.get(text);
    let variables: Vec<_> =
        variables.iter().map(|(name, text)| ((*name).to_owned(), known.get(text))).collect();
    let scope =
        Scope::new(vec![("object", Term::of(object)), ("oldObject", Term::Null)], None, &variables, true);
    shown(scope.evaluate(&expression))
}

fn certain(text: &str) -> String {
    let object = json!({
        "n": 3, "d": 1.5, "s": "añb", "t": true, "nil": null, "namespace": "n",
        "list": [1, 2, 3], "same": [1.0, 2, 3], "names": ["a", "b"], "map": {"a": 1, "b/c": 2}, "empty": {}, "none": [],
    });
    evaluate(text, View::certain(&object), &[])
}

#[test]
fn the_language_is_evaluated_as_specified() {
    for (text, expected) in [
        // Literals, arithmetic, order, equality across types.
        ("1 + 2 * 3 - 4", "3"),
        ("7 / 2", "3"),
        ("-7 % 3", "-1"),
        ("1 / 0", "error: arithmetic overflow"),
        ("9223372036854775807 + 1", "error: arithmetic overflow"),
        ("1.5 + 1.5", "3.0"),
        ("1 + 1.5", "error: no such overload: int + double"),
        ("1 == 1.0", "true"),
        ("1u == 1", "true"),
        ("object.n == '3'", "false"),
        ("object.n > 2.5", "true"),
        ("'a' < 'b'", "true"),
        ("'a' < 1", "error: no such overload: string and int have no order"),
        ("[1, 2] == [1.0, 2]", "true"),
        ("object.list == [1, 2, 3]", "true"),
        ("object.map == {'b/c': 2, 'a': 1}", "true"),
        ("object.map == {'a': 1}", "false"),
        ("object.list == object.same", "true"),
        ("null == object.nil", "true"),
        ("'a' + 'b'", "ab"),
        ("object.names + ['c']", "[a, b, c]"),
        // Fields. Null is there and is null; what is no object has none.
        ("object.s", "añb"),
        ("object.namespace", "n"),
        ("object.__namespace__", "n"),
        ("object.absent", "error: no such key: absent"),
        ("object.nil.x", "error: no such overload: field x of a null"),
        ("has(object.nil)", "true"),
        ("has(object.absent)", "false"),
        ("has(object.absent.x)", "error: no such key: absent"),
        ("object.map['b/c']", "2"),
        ("object.map['x']", "error: no such key: x"),
        ("object.list[1]", "2"),
        ("object.list[3]", "error: index out of bounds: 3"),
        ("object.list[-1]", "error: invalid index"),
        ("'a' in object.map", "true"),
        ("'x' in object.map", "false"),
        ("2 in object.list", "true"),
        ("'b' in object.names", "true"),
        ("1 in 2", "error: no such overload: in int"),
        // What decides wins over an error, on either side.
        ("object.absent && false", "false"),
        ("false && object.absent", "false"),
        ("true || object.absent", "true"),
        ("object.absent || true", "true"),
        ("object.absent || false", "error: no such key: absent"),
        ("true && 1", "error: no such overload: int as a condition"),
        ("object.t ? 1 : object.absent", "1"),
        ("object.absent ? 1 : 2", "error: no such key: absent"),
        ("!object.t", "false"),
        ("!1", "error: no such overload: !int"),
        ("!!object.t", "true"),
        ("!!!object.t", "false"),
        ("! !(object.n != 3) || '!!' == \"!\"", "false"),
        ("'it\\'s !!'.size() + '!!'.size()", "9"),
        // Macros, errors inside them too.
        ("object.list.all(x, x > 0)", "true"),
        ("object.list.all(x, x > 1)", "false"),
        ("object.list.exists(x, x == 2)", "true"),
        ("object.list.exists_one(x, x > 1)", "false"),
        ("object.list.map(x, x * 2)", "[2, 4, 6]"),
        ("object.list.filter(x, x > 1).map(x, x > 2, x)", "[3]"),
        ("object.map.exists(k, k == 'b/c')", "true"),
        ("object.list.exists(x, object.absent == x || x == 3)", "true"),
        ("object.list.all(x, object.absent == x && x != 3)", "false"),
        ("object.list.all(x, object.absent == x || x != 3)", "error: no such key: absent"),
        ("object.none.all(x, x)", "true"),
        ("object.n.all(x, x)", "error: no such overload: iteration over a int"),
        ("object.list.all(x, object.names.exists(y, y == 'a' && x > 0))", "true"),
        // Optionals.
        ("object.?map.?a.orValue(0)", "1"),
        ("object.?absent.?a.orValue(0)", "0"),
        ("object.?absent.hasValue()", "false"),
        ("object.map[?'b/c'].orValue(0)", "2"),
        ("object.?map.a.orValue(7)", "1"),
        ("object.?s.optMap(x, x + '!').orValue('')", "añb!"),
        ("optional.none().value()", "error: optional.none() dereference"),
        ("optional.of(1).orValue(object.absent)", "1"),
        ("[?object.?absent, 1]", "[1]"),
        // Functions of all kinds.
        ("size(object.s)", "3"),
        ("object.list.size() + size(object.map)", "5"),
        ("object.s.startsWith('a') && object.s.endsWith('b') && object.s.contains('ñ')", "true"),
        ("object.n.startsWith('a')", "error: no such overload: startsWith of a int"),
        ("'a-b'.matches('^[a-z]-b$')", "true"),
        ("'a,b'.split(',').join('+')", "a+b"),
        ("'AbC'.lowerAscii()", "abc"),
        ("string(3) + string(true)", "3true"),
        ("'%s has %d'.format(['a', 2])", "a has 2"),
        ("quantity('1Ki').isGreaterThan(quantity('1k'))", "true"),
        ("sets.contains([1, 2], [2])", "true"),
        ("math.greatest(1, 3, 2)", "3"),
        ("int('12') + 1", "13"),
        ("cel.bind(x, object.n, x * x)", "9"),
        ("dyn(object.n) == 3", "true"),
        ("ip('10.0.0.1').family()", "4"),
        ("duration('1h') > duration('30m')", "true"),
        ("timestamp('2024-01-02T00:00:00Z') - timestamp('2024-01-01T00:00:00Z') == duration('24h')", "true"),
    ] {
        assert_eq!(certain(text), expected, "{text}");
    }
}

#[test]
fn what_cannot_be_evaluated_is_unknown_and_no_error() {
    for text in [
        "1 - --1",
        "object.list.sortBy(x, x)",
        "object.list.all(i, x, x > 0)",
        "unheard(1)",
        "unheardOf",
        "Object{a: 1}",
        "type(1) == int",
        "startsWith()",
        "quantity('x')",
        "(",
        "variables.x",
        "authorizer.group('').resource('a').check('b').allowed()",
    ] {
        assert!(certain(text).starts_with("unknown: it takes "), "{text}: {}", certain(text));
        // What does not depend on it has an answer all the same.
        if !["(", "1 - --1"].contains(&text) {
            assert_eq!(certain(&format!("({text}) == 1 || true")), "true", "{text}");
        }
    }
    assert_eq!(certain("'--'.size()"), "2");
}

#[test]
fn an_answer_needs_only_what_it_depends_on() {
    let object = json!({
        "kind": "Pod",
        "spec": {
            "account": "a", "image": "i",
            "containers": [{"name": "c", "privileged": true}],
            "labels": {"x": "1"},
        },
    });
    let parts = Parts::only(["/kind", "/spec/account", "/spec/target", "/spec/containers/0/privileged"]);
    let view = View::partial(&object, &parts);
    for (text, expected) in [
        ("object.kind == 'Pod'", "true"),
        ("object.spec.account == 'b'", "false"),
        ("has(object.spec.target)", "false"),
        ("has(object.spec)", "true"),
        ("has(object.spec.image)", "unknown: it depends on `image`"),
        ("object.spec.image == 'i'", "unknown: it depends on `image`"),
        ("object.spec.image == 'i' && has(object.spec.target)", "false"),
        ("has(object.spec.target) || object.spec.account == 'b' || object.spec.image == 'x'", "unknown"),
        // Whole objects are unknown unless a certain part differs.
        ("object.spec == object.spec", "unknown"),
        ("object.spec == {'account': 'b'}", "false"),
        ("object == oldObject", "false"),
        ("object.spec in [object.spec]", "unknown"),
        // Other containers may be there.
        ("object.spec.containers.all(c, !c.privileged)", "false"),
        ("object.spec.containers.exists(c, c.privileged)", "true"),
        ("object.spec.containers.exists(c, c.name == 'c')", "unknown"),
        ("object.spec.containers.all(c, c.privileged)", "unknown"),
        ("object.spec.containers.filter(c, c.privileged).size() == 1", "unknown"),
        ("size(object.spec.containers) == 1", "unknown"),
        ("object.spec.containers[0].privileged", "true"),
        ("object.spec.containers[1].privileged", "unknown"),
        (
            "(object.spec.containers + (has(object.spec.more) ? object.spec.more : [])).all(c, !c.privileged)",
            "false",
        ),
        ("(object.spec.containers + object.spec.more).exists(c, c.name == 'd')", "unknown"),
        ("object.spec.?more.orValue([])", "unknown"),
        ("object.spec.?target.orValue('none')", "none"),
        // Both ways give the same.
        ("(has(object.spec.image) ? 'a' : 'a') == object.spec.account", "true"),
        ("object.spec.labels.all(k, k != 'x')", "unknown"),
        ("object.spec.image.startsWith('x')", "unknown"),
        ("'a'.startsWith(object.spec.image)", "unknown"),
        ("object.spec.image.split(',').size() == 1", "unknown"),
        ("sets.contains(object.spec.containers, [])", "unknown"),
        ("['a', object.spec.image].exists(x, x == 'a')", "true"),
        ("object.spec.image in ['a']", "unknown"),
        ("object.spec.account in ['a', object.spec.image]", "true"),
        ("object.spec.account in ['b', object.spec.image]", "unknown"),
    ] {
        let answer = evaluate(text, view, &[]);
        assert!(answer.starts_with(expected), "{text}: {answer}");
    }
}

#[test]
fn variables_are_evaluated_where_they_are_used() {
    let object = json!({"a": 1});
    let view = View::certain(&object);
    let variables = [
        ("fails", "object.absent"),
        ("one", "object.a"),
        ("two", "variables.one + 1"),
        ("loop", "variables.loop"),
    ];
    assert_eq!(evaluate("variables.two", view, &variables), "2");
    assert_eq!(evaluate("variables.fails == 1 || variables.two == 2", view, &variables), "true");
    assert_eq!(evaluate("variables.fails", view, &variables), "error: no such key: absent");
    assert_eq!(evaluate("variables.loop", view, &variables), "error: variable `loop` uses itself");
    assert!(evaluate("variables.undeclared", view, &variables).starts_with("unknown"));
}

#[test]
fn an_expression_that_does_not_end_is_unknown() {
    let list: Vec<Value> = (0..300).map(Value::from).collect();
    let object = json!({ "list": list });
    let text = "object.list.all(a, object.list.all(b, object.list.all(c, a + b + c >= 0)))";
    assert_eq!(evaluate(text, View::certain(&object), &[]), "unknown: it takes too many steps to evaluate");
}

/// Allows what it was told to.
struct Allows(Vec<(Requester, Check)>);

impl Authorizer for Allows {
    fn allows(&self, who: &Requester, check: &Check) -> bool {
        self.0.iter().any(|(allowed, what)| allowed == who && what == check)
    }
}

#[test]
fn the_authorizer_is_asked_for_exactly_what_the_expression_says() {
    let ann = Requester { user: "ann".to_owned(), groups: vec!["g".to_owned()] };
    let robot = Requester::service_account("ns", "robot");
    let full = Check {
        verb: "get".to_owned(),
        group: "apps".to_owned(),
        resource: "deployments".to_owned(),
        subresource: "scale".to_owned(),
        namespace: "ns".to_owned(),
        name: "x".to_owned(),
        path: None,
    };
    let listed = Check { verb: "list".to_owned(), resource: "pods".to_owned(), ..Check::default() };
    let path = Check { verb: "get".to_owned(), path: Some("/metrics".to_owned()), ..Check::default() };
    let requested = Check { verb: "approve".to_owned(), resource: "things".to_owned(), ..Check::default() };
    let allows =
        Allows(vec![(ann.clone(), full), (robot, listed), (ann.clone(), path), (ann.clone(), requested)]);
    for (text, expected) in [
        (
            "authorizer.group('apps').resource('deployments').subresource('scale').namespace('ns').name('x').check('get').allowed()",
            "true",
        ),
        (
            "authorizer.group('apps').resource('deployments').namespace('ns').name('x').check('get').allowed()",
            "false",
        ),
        ("authorizer.group('').resource('pods').check('list').allowed()", "false"),
        (
            "authorizer.serviceAccount('ns', 'robot').group('').resource('pods').check('list').allowed()",
            "true",
        ),
        (
            "authorizer.serviceAccount('ns', 'robot').group('').resource('pods').labelSelector('a=b').check('list').allowed()",
            "true",
        ),
        ("authorizer.path('/metrics').check('get').allowed()", "true"),
        ("authorizer.path('/metrics').check('post').allowed()", "false"),
        ("authorizer.path(' ').check('get').allowed()", "error: path must not be empty"),
        ("authorizer.group('').resource('').check('get').allowed()", "error: resource must not be empty"),
        ("authorizer.requestResource.check('approve').allowed()", "true"),
        ("authorizer.requestResource.name('x').check('approve').allowed()", "false"),
        ("authorizer.path('/metrics').check('get').errored()", "false"),
        ("authorizer.path('/metrics').check('get').reason() == ''", "unknown: it depends on the reason"),
        ("authorizer.path('/metrics').allowed()", "error: no such overload: allowed of the authorizer"),
        ("cel.bind(a, authorizer.path('/metrics'), a.check('get').allowed())", "true"),
        (
            "authorizer.group('').resource('pods').name(object.spec.x).check('list').allowed()",
            "unknown: it depends on `x`",
        ),
    ] {
        let expression = Expressions::default().get(text);
        let object = json!({"spec": {}});
        let parts = Parts::only(["/kind"]);
        let roots = vec![("object", Term::of(View::partial(&object, &parts)))];
        let mut scope = Scope::new(roots, Some(Asked { who: &ann, authorizer: Some(&allows) }), &[], true);
        scope.request_resource = Check { resource: "things".to_owned(), ..Check::default() };
        let answer = shown(scope.evaluate(&expression));
        let expected = expected.replace("`x`", "`spec`");
        assert!(answer.starts_with(&expected), "{text}: {answer}");
    }
}
