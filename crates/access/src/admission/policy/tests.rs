use serde_json::{Value, json};

use crate::{
    Sample,
    admission::{
        Admission, Authorizer, Check, Decision, Requester,
        tests::{All, Loaded, shown, somebody},
    },
};

fn policy(spec: &str) -> Value {
    let mut spec: Value = serde_saphyr::from_str(spec).unwrap();
    if spec.get("matchConstraints").is_none() {
        spec["matchConstraints"] = json!({"resourceRules": [
            {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]},
        ]});
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"}, "spec": spec,
    })
}

fn binding(spec: &str) -> Value {
    let mut spec: Value = serde_saphyr::from_str(spec).unwrap();
    spec["policyName"] = json!("p");
    if spec.get("validationActions").is_none() {
        spec["validationActions"] = json!(["Deny"]);
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "b"}, "spec": spec,
    })
}

fn admission(objects: Vec<Value>) -> Admission {
    let namespace = json!({"kind": "Namespace", "metadata": {"name": "one", "labels": {"team": "x"}}});
    Loaded::new(objects.into_iter().chain([namespace])).admission()
}

fn release() -> Sample {
    Sample {
        operation: "CREATE",
        group: "helm.toolkit.fluxcd.io".to_owned(),
        resource: "helmreleases".to_owned(),
        object: json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"labels": {"a": "b"}}, "spec": {"interval": "1m", "chart": {"spec": {"chart": "x"}}},
        }),
        old_object: Value::Null,
        essential: vec!["/spec/serviceAccountName".to_owned()],
    }
}

fn decide(objects: Vec<Value>, sample: &Sample) -> String {
    shown(&admission(objects).decide(sample, &somebody(), Some("one"), "it", &All(false)))
}

fn with(spec: &str) -> String {
    decide(vec![policy(spec), binding("{}")], &release())
}

#[test]
fn what_is_refused_for_an_essential_field_is_blocked() {
    assert_eq!(
        with("{validations: [{expression: has(object.spec.serviceAccountName), message: set it}]}"),
        "blocked by ValidatingAdmissionPolicy p: set it"
    );
    assert_eq!(with("{validations: [{expression: '!has(object.spec.serviceAccountName)'}]}"), "passes");
    assert_eq!(
        with("{validations: [{expression: 'false'}]}"),
        "blocked by ValidatingAdmissionPolicy p: failed expression: false"
    );
    assert_eq!(
        with(
            "{validations: [{expression: 'false', message: m, messageExpression: \"'no ' + object.spec.interval\"}]}"
        ),
        "blocked by ValidatingAdmissionPolicy p: no 1m"
    );
    assert_eq!(
        with("{validations: [{expression: 'false', message: m, messageExpression: object.spec.absent}]}"),
        "blocked by ValidatingAdmissionPolicy p: m"
    );
}

#[test]
fn what_is_refused_for_another_field_proves_nothing() {
    let refused = "unknown for ValidatingAdmissionPolicy p: it refuses a sample (m), but it depends on `interval`, \
                   which such a request may have with any value";
    for expression in [
        "object.spec.interval == \"5m\"",
        "has(object.spec.serviceAccountName) || object.spec.interval == \"5m\"",
    ] {
        let spec = format!("{{validations: [{{expression: '{expression}', message: m}}]}}");
        assert_eq!(with(&spec), refused, "{expression}");
    }
    // As long as it does not decide, it does not matter.
    let spec = "{validations: [{expression: 'has(object.spec.serviceAccountName) && object.spec.interval == \"5m\"', message: m}]}";
    assert_eq!(with(spec), "blocked by ValidatingAdmissionPolicy p: m");
    // Through variables too, and only those that are used.
    let spec = "{variables: [{name: i, expression: object.spec.interval}, {name: b, expression: object.spec.absent.x}, \
                {name: ok, expression: has(object.spec.serviceAccountName)}], validations: [{expression: EXPRESSION, message: m}]}";
    assert_eq!(with(&spec.replace("EXPRESSION", "variables.i == '5m'")), refused);
    assert_eq!(
        with(&spec.replace("EXPRESSION", "variables.ok")),
        "blocked by ValidatingAdmissionPolicy p: m"
    );
    assert!(with(&spec.replace("EXPRESSION", "variables.b")).contains("no such key: absent"));
}

#[test]
fn names_and_namespaces_are_as_given() {
    let expression = |text: &str| format!("{{validations: [{{expression: \"{text}\", message: m}}]}}");
    for (text, expected) in [
        ("object.metadata.name == 'other'", "blocked"),
        ("object.metadata.name == 'it'", "passes"),
        ("object.metadata.namespace == 'two'", "blocked"),
        ("request.namespace == 'one' && request.name == 'it'", "passes"),
        ("object.metadata.labels['a'] == 'c'", "unknown"),
        ("namespaceObject.metadata.labels['team'] == 'y'", "blocked"),
        ("namespaceObject.metadata.annotations['team'] == 'y'", "unknown"),
        ("request.userInfo.username == 'ann'", "blocked"),
        ("request.userInfo.extra['k'] == ['v']", "unknown"),
        ("request.dryRun", "unknown"),
        ("request.operation == 'UPDATE'", "blocked"),
        ("request.resource.group == 'apps'", "blocked"),
        ("request.resource.version == 'v2' && request.kind.kind == 'HelmRelease'", "passes"),
        ("!has(request.subResource) && oldObject == null", "passes"),
        ("authorizer.requestResource.check('approve').allowed()", "blocked"),
    ] {
        let decision = with(&expression(text));
        assert!(decision.starts_with(expected), "{text}: {decision}");
    }
    // Any name will do where none is given.
    let objects = vec![policy(&expression("object.metadata.name == 'other'")), binding("{}")];
    let decision = admission(objects).decide(&release(), &somebody(), Some("one"), "", &All(false));
    assert!(shown(&decision).starts_with("unknown"), "{}", shown(&decision));
}

#[test]
fn match_conditions_keep_a_policy_out_or_leave_it_open() {
    let condition = |text: &str| {
        format!(
            "{{matchConditions: [{{name: c, expression: \"{text}\"}}], validations: [{{expression: 'false', message: m}}]}}"
        )
    };
    for (text, expected) in [
        ("request.operation == 'CREATE'", "blocked"),
        ("request.operation == 'UPDATE'", "passes"),
        ("object.spec.interval == '1m'", "unknown"),
        ("object.spec.interval == '5m'", "passes"),
        ("object.spec.absent", "unknown"),
        ("request.operation == 'CREATE' || object.spec != oldObject.spec", "blocked"),
    ] {
        let decision = with(&condition(text));
        assert!(decision.starts_with(expected), "{text}: {decision}");
    }
    // False wins over an error.
    let spec = "{matchConditions: [{name: a, expression: object.spec.absent}, {name: b, expression: 'false'}], \
                validations: [{expression: 'false'}]}";
    assert_eq!(with(spec), "passes");
}

#[test]
fn only_bindings_that_deny_and_match_count() {
    let refuses = || policy("{validations: [{expression: 'false', message: m}]}");
    for (bindings, expected) in [
        (vec![], "passes"),
        (vec!["{validationActions: [Audit]}"], "passes"),
        (vec!["{validationActions: [Warn, Audit]}"], "passes"),
        (vec!["{validationActions: [Deny, Audit]}"], "blocked"),
        (vec!["{matchResources: {namespaceSelector: {matchLabels: {team: x}}}}"], "blocked"),
        (vec!["{matchResources: {namespaceSelector: {matchLabels: {team: y}}}}"], "passes"),
        (vec!["{matchResources: {objectSelector: {matchLabels: {a: b}}}}"], "unknown"),
        (vec!["{matchResources: {objectSelector: {matchLabels: {a: b}}}}", "{}"], "blocked"),
    ] {
        let objects = [refuses()].into_iter().chain(bindings.iter().map(|spec| binding(spec))).collect();
        let decision = decide(objects, &release());
        assert!(decision.starts_with(expected), "{bindings:?}: {decision}");
    }
}

#[test]
fn parameters_are_looked_up_among_what_was_loaded() {
    let refuses = || {
        policy(
            "{paramKind: {apiVersion: example.com/v1, kind: Limit}, validations: \
                [{expression: 'params == null || request.namespace in params.spec.allowed', message: m}]}",
        )
    };
    let limit = |namespace: &str, name: &str, allowed: &str| {
        json!({
            "apiVersion": "example.com/v1", "kind": "Limit",
            "metadata": {"name": name, "namespace": namespace, "labels": {"for": allowed}}, "spec": {"allowed": [allowed]},
        })
    };
    for (reference, limits, expected) in [
        ("{name: l}", vec![limit("", "l", "two")], "blocked"),
        ("{name: l}", vec![limit("", "l", "one")], "passes"),
        ("{name: l}", vec![limit("one", "l", "two")], "blocked"),
        ("{name: l}", vec![limit("two", "l", "two"), limit("one", "l", "one")], "passes"),
        ("{name: l, namespace: two}", vec![limit("two", "l", "two"), limit("one", "l", "one")], "blocked"),
        ("{name: l}", vec![limit("", "other", "two")], "unknown"),
        ("{name: l, parameterNotFoundAction: Allow}", vec![], "unknown"),
        (
            "{selector: {matchLabels: {for: two}}}",
            vec![limit("", "a", "one"), limit("", "b", "two")],
            "blocked",
        ),
        (
            "{selector: {matchLabels: {for: one}}}",
            vec![limit("", "a", "one"), limit("", "b", "two")],
            "passes",
        ),
        ("{selector: {}}", vec![limit("", "a", "one"), limit("", "b", "two")], "blocked"),
    ] {
        let mut loaded = Loaded::new([refuses(), binding(&format!("{{paramRef: {reference}}}"))]);
        limits.into_iter().for_each(|limit| loaded.add(limit));
        let decide = |loaded: &Loaded| {
            shown(&loaded.admission().decide(&release(), &somebody(), Some("one"), "it", &All(false)))
        };
        assert!(decide(&loaded).starts_with(expected), "{reference}: {}", decide(&loaded));
        // Once all of a kind are known, one that is not there does not exist.
        loaded.facts.listed.push("limits.example.com".to_owned());
        let expected = if expected == "unknown" { "passes" } else { expected };
        assert!(decide(&loaded).starts_with(expected), "{reference}: {}", decide(&loaded));
    }
    let without = decide(vec![refuses(), binding("{}")], &release());
    assert_eq!(without, "passes");
}

#[test]
fn a_missing_parameter_refuses_where_the_binding_says_so() {
    let refuses = |failure: &str| {
        policy(&format!(
            "{{failurePolicy: {failure}, paramKind: {{apiVersion: v1, kind: ConfigMap}}, validations: [{{expression: 'true'}}]}}"
        ))
    };
    for (failure, action, expected) in
        [("Fail", "Deny", "blocked"), ("Ignore", "Deny", "passes"), ("Fail", "Allow", "passes")]
    {
        let reference = format!("{{paramRef: {{name: l, parameterNotFoundAction: {action}}}}}");
        let mut loaded = Loaded::new([refuses(failure), binding(&reference)]);
        loaded.facts.listed.push("configmaps".to_owned());
        let decision = loaded.admission().decide(&release(), &somebody(), Some("one"), "it", &All(false));
        assert!(shown(&decision).starts_with(expected), "{failure} {action}: {}", shown(&decision));
    }
}

#[test]
fn a_role_as_parameter_has_its_rules() {
    let role = json!({
        "kind": "ClusterRole", "metadata": {"name": "names", "labels": {"a": "b"}},
        "rules": [{"apiGroups": [""], "resources": ["users"], "resourceNames": ["ann"], "verbs": ["is"]}],
    });
    let asks = |expression: &str| {
        policy(&format!(
            "{{paramKind: {{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole}}, validations: [{{expression: \"{expression}\"}}]}}"
        ))
    };
    for (expression, expected) in [
        ("request.userInfo.username in params.rules[0].resourceNames", "blocked"),
        ("params.rules[0].verbs == ['is'] && !has(params.rules[0].nonResourceURLs)", "passes"),
        ("params.metadata.labels['a'] == 'c'", "blocked"),
        ("params.metadata.annotations['a'] == 'c'", "unknown"),
    ] {
        let objects = vec![asks(expression), binding("{paramRef: {name: names}}"), role.clone()];
        let decision = decide(objects, &release());
        assert!(decision.starts_with(expected), "{expression}: {decision}");
    }
}

#[test]
fn the_worst_of_all_policies_counts() {
    let named = |name: &str, spec: &str| {
        let (mut policy, mut binding) = (policy(spec), binding("{}"));
        policy["metadata"]["name"] = json!(name);
        binding["spec"]["policyName"] = json!(name);
        [policy, binding]
    };
    let objects = [
        named("passes", "{validations: [{expression: 'true'}]}"),
        named("open", "{validations: [{expression: object.spec.interval == '5m'}]}"),
        named("refuses", "{validations: [{expression: 'false', message: m}]}"),
    ];
    let decision = |objects: &[[Value; 2]]| decide(objects.concat(), &release());
    assert_eq!(decision(&objects), "blocked by ValidatingAdmissionPolicy refuses: m");
    let [passes, open, _] = objects;
    assert!(decision(&[passes.clone(), open]).starts_with("unknown for ValidatingAdmissionPolicy open"));
    assert_eq!(decision(&[passes]), "passes");
}

/// Remembers nothing, allows `get` only.
struct Gets;

impl Authorizer for Gets {
    fn allows(&self, who: &Requester, check: &Check) -> bool {
        who.user == "eve" && check.verb == "get" && check.resource == "secrets" && check.name == "it"
    }
}

#[test]
fn reading_a_secret_through_a_patch_is_decided_by_rights() {
    let rail = "{validations: [{expression: \"authorizer.group('').resource('secrets').namespace(oldObject.metadata.namespace).name(oldObject.metadata.name).check('get').allowed()\", message: m}]}";
    let admission = admission(vec![policy(rail), binding("{}")]);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {}});
    let patch = Sample {
        operation: "UPDATE",
        group: String::new(),
        resource: "secrets".to_owned(),
        object: secret.clone(),
        old_object: secret,
        essential: Vec::new(),
    };
    let decide = |name: &str, authorizer: &dyn Authorizer| {
        admission.decide(&patch, &somebody(), Some("one"), name, authorizer)
    };
    assert_eq!(decide("it", &Gets), Decision::Passes);
    assert!(matches!(decide("other", &Gets), Decision::Blocked { .. }));
    assert!(matches!(decide("it", &All(false)), Decision::Blocked { .. }));
}

#[test]
fn a_cluster_without_policies_concerns_nothing() {
    let admission = admission(Vec::new());
    assert!(!admission.concerns(&release()));
    let pod = Sample { group: String::new(), resource: "pods".to_owned(), ..release() };
    assert!(!admission.concerns(&pod));
    let refuses = policy(
        "{validations: [{expression: 'false'}], matchConstraints: {resourceRules: \
                          [{apiGroups: [apps], apiVersions: ['*'], operations: ['*'], resources: ['*']}]}}",
    );
    let other = self::admission(vec![refuses, binding("{}")]);
    assert!(!other.concerns(&release()));
}
