use serde_json::{Value, json};

use crate::{
    Sample,
    admission::{
        Decision, Requester,
        tests::{All, Loaded, shown, somebody},
    },
};

mod corpus;

pub(super) fn controller() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "kyverno-admission-controller", "namespace": "kyverno"},
        "spec": {"template": {"spec": {"containers": [{"image": "reg.kyverno.io/kyverno/kyverno:v1.19.0"}]}}},
    })
}

fn policy(spec: &str) -> Value {
    let spec: Value = serde_saphyr::from_str(spec).unwrap();
    json!({"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "p"}, "spec": spec})
}

fn namespace(name: &str) -> Value {
    json!({"kind": "Namespace", "metadata": {"name": name, "labels": {"team": "one"}}})
}

fn sample(operation: &'static str, resource: &str, object: &Value, essential: &[&str]) -> Sample {
    let (group, resource) = resource.split_once('/').unwrap();
    let (object, old_object) = match operation {
        "DELETE" => (Value::Null, object.clone()),
        _ => (object.clone(), Value::Null),
    };
    Sample {
        operation,
        group: group.to_owned(),
        resource: resource.to_owned(),
        object,
        old_object,
        essential: essential.iter().map(|pointer| (*pointer).to_owned()).collect(),
    }
}

fn release() -> Sample {
    let object = json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"labels": {"a": "b"}}, "spec": {"interval": "1m"},
    });
    sample(
        "CREATE",
        "helm.toolkit.fluxcd.io/helmreleases",
        &object,
        &["/spec/serviceAccountName", "/spec/kubeConfig"],
    )
}

fn decide(objects: Vec<Value>, sample: &Sample, who: &Requester, namespace: &str) -> String {
    let admission = Loaded::new(objects).admission();
    let decision = admission.decide(sample, who, Some(namespace), "x", &All(false));
    assert!(admission.concerns(sample) || decision == Decision::Passes);
    match decision {
        Decision::Passes => "passes".to_owned(),
        Decision::Blocked { .. } => "blocked".to_owned(),
        Decision::Unknown { .. } => "unknown".to_owned(),
    }
}

/// A policy that asks for a service account, with more fields of the rule and of the policy.
fn asks(matches: &str, rule: &str, spec: &str) -> Value {
    policy(&format!(
        "{{{spec} rules: [{{name: r, {rule} match: {matches}, validate: {{message: m, pattern: {{spec: {{serviceAccountName: '?*'}}}}}}}}]}}"
    ))
}

#[test]
fn a_rule_counts_where_it_matches_and_enforces() {
    let all = "{any: [{resources: {kinds: [HelmRelease]}}]}";
    let enforce = "validationFailureAction: Enforce,";
    let with = |matches: &str, rule: &str, spec: &str| {
        decide(vec![controller(), namespace("a"), asks(matches, rule, spec)], &release(), &somebody(), "a")
    };
    for (matches, rule, spec, expected) in [
        (all, "", enforce, "blocked"),
        (all, "", "validationFailureAction: enforce,", "blocked"),
        (all, "", "validationFailureAction: Audit,", "passes"),
        (all, "", "", "passes"),
        (all, "", "validationFailureAction: Enforce, admission: false,", "passes"),
        (all, "", "validationFailureAction: Enforce, applyRules: One,", "blocked"),
        (
            all,
            "",
            "validationFailureAction: Audit, validationFailureActionOverrides: [{action: Enforce, namespaces: ['a*']}],",
            "blocked",
        ),
        (
            all,
            "",
            "validationFailureAction: Enforce, validationFailureActionOverrides: [{action: Audit, namespaces: [a]}],",
            "passes",
        ),
        (
            all,
            "",
            "validationFailureAction: Enforce, validationFailureActionOverrides: [{action: Audit, namespaceSelector: {matchLabels: {team: two}}}],",
            "blocked",
        ),
        (
            all,
            "",
            "validationFailureAction: Audit, validationFailureActionOverrides: [{action: Enforce, namespaces: [a], namespaceSelector: {matchLabels: {team: two}}}],",
            "passes",
        ),
        ("{resources: {kinds: [HelmRelease]}}", "", enforce, "blocked"),
        ("{resources: {kinds: ['*']}}", "", enforce, "blocked"),
        ("{resources: {kinds: ['Helm*']}}", "", enforce, "blocked"),
        ("{resources: {kinds: ['helm.toolkit.fluxcd.io/v1/HelmRelease']}}", "", enforce, "blocked"),
        ("{resources: {kinds: ['other.io/*/HelmRelease']}}", "", enforce, "passes"),
        ("{resources: {kinds: [HelmRelease/status]}}", "", enforce, "passes"),
        ("{resources: {kinds: [Kustomization]}}", "", enforce, "passes"),
        ("{resources: {kinds: [HelmRelease], namespaces: ['a*']}}", "", enforce, "blocked"),
        ("{resources: {kinds: [HelmRelease], namespaces: [b]}}", "", enforce, "passes"),
        ("{resources: {kinds: [HelmRelease], names: ['x*']}}", "", enforce, "blocked"),
        ("{resources: {kinds: [HelmRelease], name: other}}", "", enforce, "passes"),
        ("{resources: {kinds: [HelmRelease], operations: [UPDATE]}}", "", enforce, "passes"),
        (
            "{resources: {kinds: [HelmRelease], namespaceSelector: {matchLabels: {team: 'o*'}}}}",
            "",
            enforce,
            "blocked",
        ),
        (
            "{resources: {kinds: [HelmRelease], namespaceSelector: {matchLabels: {team: two}}}}",
            "",
            enforce,
            "passes",
        ),
        // Whoever makes it chooses its labels.
        ("{resources: {kinds: [HelmRelease], selector: {matchLabels: {a: b}}}}", "", enforce, "unknown"),
        ("{resources: {kinds: [HelmRelease], selector: {matchLabels: {a: c}}}}", "", enforce, "passes"),
        (
            "{all: [{resources: {kinds: [HelmRelease]}}, {resources: {namespaces: [b]}}]}",
            "",
            enforce,
            "passes",
        ),
        (
            "{any: [{resources: {kinds: [HelmRelease]}, subjects: [{kind: User, name: 'e*'}]}]}",
            "",
            enforce,
            "blocked",
        ),
        (
            "{any: [{resources: {kinds: [HelmRelease]}, subjects: [{kind: Group, name: dev}]}]}",
            "",
            enforce,
            "passes",
        ),
        ("{any: [{resources: {kinds: [HelmRelease]}, clusterRoles: [admin]}]}", "", enforce, "unknown"),
        (all, "exclude: {any: [{resources: {namespaces: ['b', 'a']}}]},", enforce, "passes"),
        (all, "exclude: {any: [{resources: {namespaces: [b]}}]},", enforce, "blocked"),
        (all, "exclude: {resources: {namespaces: [a]}},", enforce, "passes"),
        (all, "exclude: {any: [{clusterRoles: [cluster-admin]}]},", enforce, "unknown"),
        (
            all,
            "exclude: {all: [{resources: {namespaces: [a]}}, {subjects: [{kind: User, name: bob}]}]},",
            enforce,
            "blocked",
        ),
        (
            all,
            "preconditions: {all: [{key: '{{request.operation}}', operator: Equals, value: UPDATE}]},",
            enforce,
            "passes",
        ),
        (
            all,
            "preconditions: {all: [{key: '{{lookup}}', operator: Equals, value: UPDATE}]},",
            enforce,
            "unknown",
        ),
        (
            all,
            "preconditions: [{key: '{{request.operation}}', operator: In, value: [CREATE]}],",
            enforce,
            "blocked",
        ),
    ] {
        assert_eq!(with(matches, rule, spec), expected, "{matches} {rule} {spec}");
    }
}

#[test]
fn a_rule_of_its_own_action_goes_before_the_policy() {
    let rule = |action: &str| {
        policy(&format!(
            "{{validationFailureAction: Audit, rules: [{{name: r, match: {{resources: {{kinds: [HelmRelease]}}}}, validate: {{failureAction: {action}, pattern: {{spec: {{serviceAccountName: '?*'}}}}}}}}]}}"
        ))
    };
    let with =
        |action: &str| decide(vec![controller(), namespace("a"), rule(action)], &release(), &somebody(), "a");
    assert_eq!(with("Enforce"), "blocked");
    assert_eq!(with("Audit"), "passes");
}

#[test]
fn policies_count_only_while_kyverno_runs() {
    let asks = asks("{resources: {kinds: [HelmRelease]}}", "", "validationFailureAction: Enforce,");
    let mut off = controller();
    off["spec"]["replicas"] = json!(0);
    let other = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x", "namespace": "kyverno"},
        "spec": {"template": {"spec": {"containers": [{"image": "reg.kyverno.io/kyverno/reports-controller:v1"}]}}},
    });
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "kyverno-resource-validating-webhook-cfg"},
        "webhooks": [{"name": "w", "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]}],
    });
    for (objects, expected) in [
        (vec![controller()], "blocked"),
        (vec![webhook], "blocked"),
        (vec![off], "unknown"),
        (vec![other], "unknown"),
        (vec![], "unknown"),
    ] {
        let objects = objects.into_iter().chain([asks.clone(), namespace("a")]).collect();
        assert_eq!(decide(objects, &release(), &somebody(), "a"), expected);
    }
}

#[test]
fn what_kyverno_leaves_out_by_default_is_not_decided() {
    let objects = || {
        let asks = asks("{resources: {kinds: ['*']}}", "", "validationFailureAction: Enforce,");
        vec![controller(), asks, namespace("a"), namespace("kyverno"), namespace("kube-system")]
    };
    for (namespace, expected) in [("a", "blocked"), ("kyverno", "unknown"), ("kube-system", "unknown")] {
        assert_eq!(decide(objects(), &release(), &somebody(), namespace), expected, "{namespace}");
    }
    let node = Requester { user: "system:node:n".to_owned(), groups: vec!["system:nodes".to_owned()] };
    assert_eq!(decide(objects(), &release(), &node, "a"), "unknown");
}

#[test]
fn exceptions_make_what_they_name_uncertain() {
    let asks = || asks("{resources: {kinds: [HelmRelease]}}", "", "validationFailureAction: Enforce,");
    let exception = |policy: &str, rule: &str, matches: &str| -> Value {
        let spec =
            format!("{{exceptions: [{{policyName: {policy}, ruleNames: ['{rule}']}}], match: {matches}}}");
        let spec: Value = serde_saphyr::from_str(&spec).unwrap();
        json!({"apiVersion": "kyverno.io/v2", "kind": "PolicyException", "metadata": {"name": "e"}, "spec": spec})
    };
    let all = "{any: [{resources: {kinds: [HelmRelease]}}]}";
    for (policy, rule, matches, expected) in [
        ("p", "r", all, "unknown"),
        ("p", "*", all, "unknown"),
        ("p", "autogen-r", all, "unknown"),
        ("q", "r", all, "blocked"),
        ("p", "s", all, "blocked"),
        ("p", "r", "{any: [{resources: {kinds: [HelmRelease], namespaces: [b]}}]}", "blocked"),
        ("p", "r", "{any: [{resources: {kinds: [HelmRelease], names: ['y*']}}]}", "blocked"),
    ] {
        let objects = vec![controller(), asks(), namespace("a"), exception(policy, rule, matches)];
        assert_eq!(decide(objects, &release(), &somebody(), "a"), expected, "{policy} {rule} {matches}");
    }
}

#[test]
fn a_namespaced_policy_is_about_its_namespace() {
    let mut policy = asks("{resources: {kinds: [HelmRelease]}}", "", "validationFailureAction: Enforce,");
    policy["kind"] = json!("Policy");
    policy["metadata"]["namespace"] = json!("a");
    let objects = || vec![controller(), policy.clone(), namespace("a"), namespace("b")];
    assert_eq!(decide(objects(), &release(), &somebody(), "a"), "blocked");
    assert_eq!(decide(objects(), &release(), &somebody(), "b"), "passes");
}

#[test]
fn an_update_may_keep_what_was_there() {
    let asks = || asks("{resources: {kinds: [HelmRelease]}}", "", "validationFailureAction: Enforce,");
    let mut update = release();
    update.operation = "UPDATE";
    update.old_object = update.object.clone();
    let objects = || vec![controller(), asks(), namespace("a")];
    assert_eq!(decide(objects(), &update, &somebody(), "a"), "unknown");
    update.old_object["spec"]["serviceAccountName"] = json!("robot");
    assert_eq!(decide(objects(), &update, &somebody(), "a"), "blocked");
    // A deletion is not compared with a pattern.
    let delete = sample("DELETE", "helm.toolkit.fluxcd.io/helmreleases", &update.object, &[]);
    assert_eq!(decide(objects(), &delete, &somebody(), "a"), "passes");
}

fn pod(spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": spec})
}

#[test]
fn rules_for_pods_hold_for_what_makes_pods() {
    let rule = |more: &str| {
        policy(&format!(
            "{{validationFailureAction: Enforce, rules: [{{name: r, match: {{any: [{{resources: {{kinds: [Pod]{more}}}}}]}}, validate: {{pattern: {{spec: {{=(hostPID): 'false'}}}}}}}}]}}"
        ))
    };
    let spec = json!({"hostPID": true, "containers": []});
    let deployment =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": spec}}});
    let cron = json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "spec": {"jobTemplate": {"spec": {"template": {"spec": spec}}}},
    });
    let pointer = "/spec/template/spec/hostPID";
    let samples = [
        sample("CREATE", "/pods", &pod(spec.clone()), &["/spec/hostPID"]),
        sample("CREATE", "apps/deployments", &deployment, &[pointer]),
        sample("CREATE", "batch/cronjobs", &cron, &["/spec/jobTemplate/spec/template/spec/hostPID"]),
    ];
    let with = |policy: Value| {
        let decide = |sample: &Sample| {
            decide(vec![controller(), policy.clone(), namespace("a")], sample, &somebody(), "a")
        };
        samples.iter().map(decide).collect::<Vec<_>>()
    };
    assert_eq!(with(rule("")), ["blocked"; 3]);
    assert_eq!(with(rule(", names: ['*']")), ["blocked", "passes", "passes"]);
    let annotated = |value: &str| {
        let mut policy = rule("");
        policy["metadata"]["annotations"] = json!({"pod-policies.kyverno.io/autogen-controllers": value});
        policy
    };
    assert_eq!(with(annotated("none")), ["blocked", "passes", "passes"]);
    assert_eq!(with(annotated("Deployment,Job")), ["blocked", "blocked", "passes"]);
}

#[test]
fn a_rule_for_pods_is_about_no_subresource_but_ephemeral_containers() {
    let refuses = policy(
        "{validationFailureAction: Enforce, rules: [{name: r, match: {any: [{resources: {kinds: [Pod, '*']}}]}, \
         validate: {deny: {}}}]}",
    );
    let with = |operation, resource: &str| {
        let options = json!({"apiVersion": "v1", "kind": "PodExecOptions"});
        let sample = sample(operation, resource, &options, &[]);
        decide(vec![controller(), refuses.clone(), namespace("a")], &sample, &somebody(), "a")
    };
    assert_eq!(with("CONNECT", "/pods/exec"), "passes");
    assert_eq!(with("UPDATE", "/pods/ephemeralcontainers"), "blocked");
}

#[test]
fn each_kind_of_check_is_evaluated() {
    let with = |validate: &str, sample: &Sample| {
        let policy = policy(&format!(
            "{{validationFailureAction: Enforce, rules: [{{name: r, match: {{any: [{{resources: {{kinds: ['*']}}}}]}}, validate: {validate}}}]}}"
        ));
        decide(vec![controller(), policy, namespace("a")], sample, &somebody(), "a")
    };
    let privileged = json!({
        "containers": [{"securityContext": {"privileged": true}}],
        "list": [{"namespace": "a"}, {"namespace": "b"}],
    });
    let essential = ["/spec/containers/0/securityContext/privileged", "/spec/list"];
    let pod = sample("CREATE", "/pods", &pod(privileged), &essential);
    for (validate, expected) in [
        ("{podSecurity: {level: baseline}}", "blocked"),
        ("{podSecurity: {level: restricted, version: latest}}", "blocked"),
        ("{podSecurity: {level: privileged}}", "passes"),
        (
            "{podSecurity: {level: baseline, exclude: [{controlName: Privileged Containers, images: ['*']}]}}",
            "passes",
        ),
        (
            "{anyPattern: [{spec: {x: 1}}, {spec: {containers: [{=(securityContext): {=(privileged): false}}]}}]}",
            "unknown",
        ),
        (
            "{anyPattern: [{spec: {list: x}}, {spec: {containers: [{=(securityContext): {=(privileged): false}}]}}]}",
            "blocked",
        ),
        ("{anyPattern: [{spec: {list: x}}, {kind: Pod}]}", "passes"),
        (
            "{deny: {conditions: {all: [{key: '{{request.operation}}', operator: Equals, value: CREATE}]}}}",
            "blocked",
        ),
        (
            "{deny: {conditions: {all: [{key: '{{request.object.spec.image}}', operator: Equals, value: x}]}}}",
            "unknown",
        ),
        (
            "{deny: {conditions: {any: [{key: '{{request.userInfo.username}}', operator: AnyNotIn, value: [eve]}]}}}",
            "passes",
        ),
        ("{deny: {}}", "blocked"),
        (
            "{foreach: [{list: request.object.spec.list, pattern: {namespace: '{{request.namespace}}'}}]}",
            "blocked",
        ),
        ("{foreach: [{list: request.object.spec.list, pattern: {namespace: 'a | b'}}]}", "passes"),
        (
            "{foreach: [{list: request.object.spec.list, deny: {conditions: {all: [{key: '{{element.namespace}}', operator: Equals, value: b}]}}}]}",
            "blocked",
        ),
        ("{foreach: [{list: 'request.object.spec.list[?x]', pattern: {namespace: a}}]}", "unknown"),
        ("{foreach: [{list: request.object.spec.none, pattern: {namespace: a}}]}", "passes"),
        (
            "{cel: {expressions: [{expression: '!object.spec.containers.exists(c, c.securityContext.privileged)'}]}}",
            "blocked",
        ),
        ("{cel: {expressions: [{expression: 'object.spec.image == \"x\"'}]}}", "unknown"),
        (
            "{cel: {paramKind: {apiVersion: v1, kind: ConfigMap}, expressions: [{expression: 'false'}]}}",
            "unknown",
        ),
        ("{assert: {object: {spec: 1}}}", "unknown"),
        ("{manifests: {}}", "unknown"),
    ] {
        assert_eq!(with(validate, &pod), expected, "{validate}");
    }
}

#[test]
fn validating_policies_are_evaluated_as_those_of_kubernetes() {
    let policy = |more: &str| -> Value {
        let spec = format!(
            "{{{more} matchConstraints: {{resourceRules: [{{apiGroups: [helm.toolkit.fluxcd.io], apiVersions: ['*'], operations: [CREATE], resources: [helmreleases]}}]}}, validations: [{{expression: has(object.spec.serviceAccountName)}}]}}"
        );
        let spec: Value = serde_saphyr::from_str(&spec).unwrap();
        json!({"apiVersion": "policies.kyverno.io/v1", "kind": "ValidatingPolicy", "metadata": {"name": "p"}, "spec": spec})
    };
    let exception = json!({
        "apiVersion": "policies.kyverno.io/v1", "kind": "PolicyException", "metadata": {"name": "e"},
        "spec": {"policyRefs": [{"name": "p", "kind": "ValidatingPolicy"}]},
    });
    let with = |more: &str, others: Vec<Value>| {
        let objects = others.into_iter().chain([controller(), policy(more), namespace("a")]).collect();
        decide(objects, &release(), &somebody(), "a")
    };
    assert_eq!(with("", vec![]), "blocked");
    assert_eq!(with("validationActions: [Deny],", vec![]), "blocked");
    assert_eq!(with("validationActions: [Audit],", vec![]), "passes");
    assert_eq!(with("evaluation: {admission: {enabled: false}},", vec![]), "passes");
    assert_eq!(with("", vec![exception]), "unknown");
}

#[test]
fn a_decision_names_the_rule_and_what_it_says() {
    let asks = asks("{resources: {kinds: [HelmRelease]}}", "", "validationFailureAction: Enforce,");
    let admission = Loaded::new([controller(), asks, namespace("a")]).admission();
    let decision = admission.decide(&release(), &somebody(), Some("a"), "x", &All(false));
    assert_eq!(shown(&decision), "blocked by ClusterPolicy p, rule r: m");
}
