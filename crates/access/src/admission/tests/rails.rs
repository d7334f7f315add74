//! Bailey's own rails, on their case files: the same answers as an API server gives.

use std::{fs, path::PathBuf};

use bailey_guardrails::{
    BindingMode, Desired, Discovery, Facts, Model, Policy, PolicyKind, build, policies, validate,
};

use super::*;

fn model(enforcement: &str) -> Model {
    let object = |kind: &str, name: &str, spec: Value| json!({"apiVersion": "bailey.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    let installation = object(
        "Installation",
        "installation",
        json!({
            "managementCluster": {"name": "mc"}, "enforcement": enforcement,
            "platform": {"namespaces": ["platform-flux"], "groups": ["platform-admins"], "users": ["pia@platform.example"]},
        }),
    );
    let acme = object(
        "Tenant",
        "acme",
        json!({
            "namespaces": ["org-acme", "acme-apps"], "namespacePrefix": "acme-",
            "subjects": {
                "installers": {"groups": ["acme-installers"], "users": ["robot@acme.example"]},
                "developers": {"groups": ["acme-developers"]},
            },
            "install": {
                "accounts": ["org-acme/installer"], "controlAccounts": ["org-acme/control"],
                "controlCharts": ["cluster-aws"], "sourceNamespaces": ["platform-flux"],
            },
            "crds": {"groups": ["argoproj.io"]},
        }),
    );
    let beta = object(
        "Tenant",
        "beta",
        json!({
            "namespaces": ["org-beta"], "subjects": {"installers": {"groups": ["beta-installers"]}},
            "crds": {"names": ["widgets.beta.example"]},
        }),
    );
    let facts = Facts { crds: [("rollouts.argoproj.io".to_owned(), None)].into(), ..Facts::default() };
    let read = |tenant| serde_json::from_value(tenant).unwrap();
    let tenants = [read(acme), read(beta)];
    let (model, problems) = validate(&serde_json::from_value(installation).unwrap(), &tenants, &facts);
    assert_eq!(problems, []);
    model
}

/// A server that has both kinds of policy.
fn discovery() -> Discovery {
    let resource = |plural: &str, kind: &str| {
        json!({
            "resource": plural, "scope": "Cluster", "verbs": ["create"],
            "responseKind": {"group": "admissionregistration.k8s.io", "version": "v1", "kind": kind},
        })
    };
    let list = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
        "items": [{"metadata": {"name": "admissionregistration.k8s.io"}, "versions": [{"version": "v1", "resources": [
            resource("validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
            resource("mutatingadmissionpolicies", "MutatingAdmissionPolicy"),
        ]}]}],
    });
    Discovery::from_aggregated(&[list]).unwrap()
}

/// What Bailey puts on a server for these policies, each bound to refuse.
fn desired(policies: &[Policy]) -> Desired {
    let only_warn = policies.iter().all(|policy| policy.mode == BindingMode::OnlyWarn);
    let mut desired = build(&model(if only_warn { "Warn" } else { "Enforce" }), policies, &discovery());
    for object in &mut desired.rails {
        if let Some(actions) = object.content.pointer_mut("/spec/validationActions") {
            *actions = json!(["Deny"]);
        }
    }
    desired
}

fn cluster(policies: &[Policy]) -> Loaded {
    let desired = desired(policies);
    let mut loaded = Loaded::new(desired.objects().map(|object| object.content.clone()));
    for name in ["platform-flux", "bailey-system", "kube-system", "default", "nobodys"] {
        loaded.add(json!({"kind": "Namespace", "metadata": {"name": name}}));
    }
    loaded
}

fn cases(policy: &Policy) -> Vec<Value> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../guardrails/policies/cases");
    let text = fs::read_to_string(folder.join(format!("{}.yaml", policy.cases()))).unwrap();
    let mut cases: Vec<Value> = serde_saphyr::from_str(&text).unwrap();
    // The halves of a split policy share a file.
    if policies().unwrap().iter().filter(|other| other.cases() == policy.cases()).count() > 1 {
        cases.retain(|case| case["namespace"].is_null() == (policy.name != policy.cases()));
    }
    cases
}

/// The case's answers to what the policy asks the authorizer.
struct Answers {
    authorized: bool,
    develops: bool,
}

impl Authorizer for Answers {
    fn allows(&self, _: &Requester, check: &Check) -> bool {
        if check.verb == "develop" { self.develops } else { self.authorized }
    }
}

struct Case {
    sample: Sample,
    who: Requester,
    namespace: Option<String>,
    name: String,
    answers: Answers,
}

/// A merge patch of RFC 7396.
fn merged(old: &Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    let mut object = old.as_object().cloned().unwrap_or_default();
    for (name, value) in patch {
        let old = object.remove(name).unwrap_or_default();
        if !value.is_null() {
            object.insert(name.clone(), merged(&old, value));
        }
    }
    Value::Object(object)
}

fn case(case: &Value) -> Case {
    let text = |pointer: &str| case.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let object = case.get("object").cloned().unwrap_or_default();
    let old_object = case.get("oldObject").cloned().unwrap_or_default();
    let object = if text("/verb") == "patch" { merged(&old_object, &object) } else { object };
    let name =
        [&old_object, &object].iter().find_map(|o| o.pointer("/metadata/name")?.as_str().map(str::to_owned));
    let subresource = text("/resource/subresource");
    let groups = case["groups"].as_array().into_iter().flatten();
    Case {
        sample: Sample {
            operation: operation(&text("/operation")),
            group: text("/resource/group"),
            resource: match subresource.as_str() {
                "" => text("/resource/plural"),
                subresource => format!("{}/{subresource}", text("/resource/plural")),
            },
            object,
            old_object,
            essential: vec![String::new()],
        },
        who: Requester {
            user: text("/user"),
            groups: groups.filter_map(Value::as_str).map(str::to_owned).collect(),
        },
        namespace: Some(text("/namespace")).filter(|namespace| !namespace.is_empty()),
        name: name.unwrap_or_default(),
        answers: Answers {
            authorized: case["authorized"].as_bool().unwrap_or(true),
            develops: case["develops"].as_bool().unwrap_or_default(),
        },
    }
}

impl Case {
    fn decide(&self, admission: &Admission) -> Decision {
        admission.decide(&self.sample, &self.who, self.namespace.as_deref(), &self.name, &self.answers)
    }
}

#[test]
fn every_case_of_a_rail_is_answered_as_its_file_says() {
    let (mut right, mut offline, mut wrong) = (0, Vec::new(), Vec::new());
    for policy in policies().unwrap().iter().filter(|policy| policy.kind == PolicyKind::Validating) {
        let loaded = cluster(std::slice::from_ref(policy));
        let admission = loaded.admission();
        for described in cases(policy) {
            let title = format!("{}: {}", policy.name, described["name"]);
            let case = case(&described);
            let decision = case.decide(&admission);
            let message = described["message"].as_str().unwrap_or_default();
            let is_right = match (described["expect"].as_str().unwrap(), &decision) {
                ("refused", Decision::Blocked { by, message: said }) => {
                    by.ends_with(&policy.name) && said.contains(message)
                }
                ("passed" | "not-matched", Decision::Passes) => true,
                _ => false,
            };
            // Asked or not is the same for a request that passes.
            if described["expect"] == "refused" {
                assert!(admission.concerns(&case.sample), "{title}");
            }
            match (is_right, described["offline"].is_null()) {
                (true, _) => right += 1,
                (false, true) => wrong.push(format!("{title}: {}", shown(&decision))),
                (false, false) => offline.push(format!("{title}: {}", described["offline"]["unsupported"])),
            }
        }
    }
    println!("{right} cases as on an API server; not: {offline:#?}");
    assert!(wrong.is_empty(), "{} wrong of {}\n{}", wrong.len(), wrong.len() + right, wrong.join("\n"));
}

#[test]
fn all_rails_together_answer_no_case_as_unknown() {
    let all: Vec<_> = policies().unwrap().into_iter().filter(|p| p.mode != BindingMode::OnlyWarn).collect();
    let admission = cluster(&all).admission();
    let (mut count, mut unknown) = (0_u32, Vec::new());
    for policy in all.iter().filter(|policy| policy.kind == PolicyKind::Validating) {
        for described in cases(policy).iter().filter(|case| case["offline"].is_null()) {
            count += 1;
            let decision = case(described).decide(&admission);
            if matches!(decision, Decision::Unknown { .. }) {
                unknown.push(format!("{}: {}: {}", policy.name, described["name"], shown(&decision)));
            }
        }
    }
    assert!(count > 200, "{count} cases");
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}
