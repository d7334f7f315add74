use serde_json::{Value, json};

use super::*;
use crate::{
    Sample,
    admission::tests::{All, Loaded, shown, somebody},
};

fn namespace(name: &str, level: &str) -> Value {
    let labels = match level {
        "" => json!({}),
        level => json!({"pod-security.kubernetes.io/enforce": level}),
    };
    json!({"kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

/// A policy of Kubernetes that refuses pods where an expression is false.
fn policy(expression: &str) -> Vec<Value> {
    let group = "admissionregistration.k8s.io/v1";
    vec![
        json!({
            "apiVersion": group, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"},
            "spec": {
                "matchConstraints": {"resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                     "resources": ["pods", "pods/ephemeralcontainers"]},
                ]},
                "variables": [{"name": "containers", "expression":
                    "object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : []) \
                     + (has(object.spec.ephemeralContainers) ? object.spec.ephemeralContainers : [])"}],
                "validations": [{"expression": expression}],
            },
        }),
        json!({
            "apiVersion": group, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "p"},
            "spec": {"policyName": "p", "validationActions": ["Deny"]},
        }),
    ]
}

const STRICT: &str = "!(has(object.spec.hostPID) && object.spec.hostPID) \
    && !(has(object.spec.volumes) && object.spec.volumes.exists(v, has(v.hostPath))) \
    && variables.containers.all(c, !has(c.securityContext) || !has(c.securityContext.privileged) || !c.securityContext.privileged) \
    && variables.containers.all(c, !has(c.securityContext) || !has(c.securityContext.capabilities) \
    || !has(c.securityContext.capabilities.add) || c.securityContext.capabilities.add.all(x, x == 'NET_BIND_SERVICE'))";

#[test]
fn a_label_sets_the_level() {
    let objects = [
        ("none", ""),
        ("open", "privileged"),
        ("some", "baseline"),
        ("most", "restricted"),
        ("typo", "restrcted"),
    ];
    let admission = Loaded::new(objects.map(|(name, level)| namespace(name, level))).admission();
    for (name, level, certainty) in [
        ("none", PodSecurityLevel::Privileged, Certainty::Assumed),
        ("open", PodSecurityLevel::Privileged, Certainty::Proven),
        ("some", PodSecurityLevel::Baseline, Certainty::Proven),
        ("most", PodSecurityLevel::Restricted, Certainty::Proven),
        ("typo", PodSecurityLevel::Restricted, Certainty::Proven),
        ("absent", PodSecurityLevel::Privileged, Certainty::Assumed),
    ] {
        let found = admission.pod_security(name);
        assert_eq!((found.level, found.certainty), (level, certainty), "{name}: {}", found.by);
    }
}

#[test]
fn policies_that_refuse_every_way_make_a_namespace_baseline() {
    let with = |expression: &str| {
        let objects = policy(expression).into_iter().chain([namespace("a", "")]);
        Loaded::new(objects).admission().pod_security("a")
    };
    let found = with(STRICT);
    assert_eq!(
        (found.level, found.certainty),
        (PodSecurityLevel::Baseline, Certainty::Proven),
        "{}",
        found.by
    );
    assert_eq!(found.by, "ValidatingAdmissionPolicy p");
    // One way that is left is enough.
    let found = with(&STRICT.replace("has(v.hostPath)", "has(v.nfs)"));
    assert_eq!(found.level, PodSecurityLevel::Privileged);
    assert!(
        found.by.ends_with("ValidatingAdmissionPolicy p, but nothing refuses a pod with a hostPath volume"),
        "{}",
        found.by
    );
    // Somebody may be let through, or not: that is not known.
    let found =
        with(&format!("({STRICT}) || authorizer.group('').resource('nodes').check('delete').allowed()"));
    assert_eq!((found.level, found.certainty), (PodSecurityLevel::Privileged, Certainty::Assumed));
    assert!(found.by.contains("the rights of whoever asks"), "{}", found.by);
    // What refuses all but controllers leaves their pods.
    let found =
        with(&format!("({STRICT}) || 'system:serviceaccounts:kube-system' in request.userInfo.groups"));
    assert_eq!(found.level, PodSecurityLevel::Privileged);
}

#[test]
fn pods_are_refused_by_the_label_of_their_namespace() {
    let admission =
        Loaded::new([namespace("a", "baseline"), namespace("b", "privileged"), namespace("c", "")])
            .admission();
    let pod = |spec: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": spec});
    let mut sample = Sample {
        operation: "CREATE",
        group: String::new(),
        resource: "pods".to_owned(),
        object: pod(json!({"hostPID": true, "containers": []})),
        old_object: Value::Null,
        essential: vec!["/spec/hostPID".to_owned()],
    };
    let decide = |sample: &Sample, namespace: &str| {
        shown(&admission.decide(sample, &somebody(), Some(namespace), "", &All(true)))
    };
    assert_eq!(
        decide(&sample, "a"),
        "blocked by Pod Security: violates PodSecurity \"baseline\": Host Namespaces"
    );
    assert_eq!(decide(&sample, "b"), "passes");
    assert_eq!(decide(&sample, "c"), "passes");
    sample.essential.clear();
    assert!(decide(&sample, "a").starts_with("unknown for Pod Security"), "{}", decide(&sample, "a"));
    // What makes pods is not looked at, and neither is what was so before.
    sample.resource = "pods/status".to_owned();
    sample.operation = "UPDATE";
    assert_eq!(decide(&sample, "a"), "passes");
    sample.resource = "pods".to_owned();
    sample.essential = vec!["/spec/hostPID".to_owned()];
    sample.old_object = sample.object.clone();
    assert!(decide(&sample, "a").starts_with("unknown for Pod Security"), "{}", decide(&sample, "a"));
    sample.old_object = pod(json!({"containers": []}));
    assert!(decide(&sample, "a").starts_with("blocked by Pod Security"), "{}", decide(&sample, "a"));
}
