//! Policies of Kyverno.
//!
//! Evaluated: `validate` rules of `ClusterPolicy` and `Policy` with patterns, conditions on the request, loops over
//! lists of the object, Pod Security and expressions; and `ValidatingPolicy`. Variables that Kyverno looks up elsewhere,
//! signatures and assertions leave the answer open. Rules that mutate or generate refuse nothing.
//!
//! INVARIANT: a policy counts only while Kyverno is seen to run, and not where it stays out by default.

mod conditions;
mod exception;
mod filter;
mod pattern;
mod rule;
mod text;

use serde_json::Value;

use self::{exception::Exception, text::wildcard};
use super::{Judge, Sort, Verdict, loading::Loading, policy::Policy, request::Request};
use crate::{ClusterFacts, ObjectFact, Symbols};

const GROUP: &str = "kyverno.io";
/// The group of the policies that are written like those of Kubernetes.
const NEW_GROUP: &str = "policies.kyverno.io";

/// Everything of Kyverno that may refuse requests.
pub(super) fn judges(loading: &Loading<'_>) -> Vec<Box<dyn Judge>> {
    let (cluster, symbols) = (loading.cluster, loading.symbols);
    let exceptions: Vec<_> =
        cluster.objects_of(GROUP, "PolicyException").map(|e| Exception::new(&e.body, loading)).collect();
    let policies = ["ClusterPolicy", "Policy"].into_iter().flat_map(|kind| cluster.objects_of(GROUP, kind));
    let rules = policies.flat_map(|policy| {
        let namespace = Some(symbols.name(policy.namespace)).filter(|_| policy.kind == "Policy");
        let by = title(policy, symbols);
        rule::rules(&policy.body, &by, namespace, &exceptions, loading)
    });
    let mut judges: Vec<Box<dyn Judge>> = rules.map(|rule| Box::new(rule) as Box<dyn Judge>).collect();
    judges.extend(validating_policies(loading));
    let running = Running::new(cluster, symbols);
    judges
        .into_iter()
        .map(|inner| Box::new(Kept { inner, running: running.clone() }) as Box<dyn Judge>)
        .collect()
}

fn title(policy: &ObjectFact, symbols: &Symbols) -> String {
    match symbols.name(policy.namespace) {
        "" => format!("{} {}", policy.kind, symbols.name(policy.name)),
        namespace => format!("{} {namespace}/{}", policy.kind, symbols.name(policy.name)),
    }
}

/// Those that are evaluated at admission, refuse, and have no exception.
fn validating_policies(loading: &Loading<'_>) -> Vec<Box<dyn Judge>> {
    let (cluster, symbols) = (loading.cluster, loading.symbols);
    let exceptions = cluster.objects_of(NEW_GROUP, "PolicyException");
    let references = exceptions.flat_map(|exception| {
        exception.body.pointer("/spec/policyRefs").and_then(Value::as_array).into_iter().flatten()
    });
    let excepted: Vec<_> = references.filter_map(|reference| reference.get("name")?.as_str()).collect();
    let kinds = ["ValidatingPolicy", "NamespacedValidatingPolicy"];
    let policies = kinds.into_iter().flat_map(|kind| cluster.objects_of(NEW_GROUP, kind));
    let judge = |policy: &ObjectFact| {
        let spec = policy.body.get("spec")?;
        let actions = spec.get("validationActions").and_then(Value::as_array);
        let denies = actions.is_none_or(|actions| actions.iter().any(|action| action == "Deny"));
        let is_off = spec.pointer("/evaluation/admission/enabled") == Some(&Value::Bool(false))
            || spec.pointer("/evaluation/mode").is_some_and(|mode| mode != "Kubernetes");
        let name = symbols.name(policy.name);
        (denies && !is_off).then(|| {
            Box::new(Excepted {
                inner: Policy::unbound(title(policy, symbols), spec, &loading.expressions),
                namespace: Some(symbols.name(policy.namespace).to_owned()).filter(|name| !name.is_empty()),
                has_exception: excepted.iter().any(|pattern| wildcard(pattern, name)),
            }) as Box<dyn Judge>
        })
    };
    policies.filter_map(judge).collect()
}

/// A ValidatingPolicy.
#[derive(Debug)]
struct Excepted {
    inner: Policy,
    /// The only namespace that it is about.
    namespace: Option<String>,
    has_exception: bool,
}

impl Judge for Excepted {
    fn by(&self) -> &str {
        self.inner.by()
    }

    fn may_concern(&self, sort: Sort<'_>) -> bool {
        self.inner.may_concern(sort)
    }

    fn judge(&self, request: &Request<'_>) -> Verdict {
        if self.namespace.is_some() && self.namespace.as_deref() != request.namespace {
            return Verdict::Passes;
        }
        match self.inner.judge(request) {
            Verdict::Denied(_) if self.has_exception => {
                Verdict::Unknown("a PolicyException may let it through".to_owned())
            }
            verdict => verdict,
        }
    }
}

/// Whether Kyverno runs, and where.
#[derive(Debug, Clone)]
struct Running {
    is_seen: bool,
    /// Its namespaces, where it stays out.
    namespaces: Vec<String>,
}

/// A policy of Kyverno, as far as Kyverno looks at it.
#[derive(Debug)]
struct Kept {
    inner: Box<dyn Judge>,
    running: Running,
}

impl Running {
    /// Kyverno is seen by the Deployment of its admission controller, or by a webhook configuration that it writes.
    fn new(cluster: &ClusterFacts, symbols: &Symbols) -> Self {
        let is_controller = |deployment: &&ObjectFact| {
            let containers =
                deployment.body.pointer("/spec/template/spec/containers").and_then(Value::as_array);
            let runs = deployment.body.pointer("/spec/replicas") != Some(&Value::from(0));
            runs && containers.into_iter().flatten().filter_map(|c| c.get("image")?.as_str()).any(is_kyverno)
        };
        let deployments: Vec<_> = cluster.objects_of("apps", "Deployment").filter(is_controller).collect();
        let is_webhook = |webhook: &&ObjectFact| is_own_webhook(webhook, symbols);
        let mut webhooks =
            cluster.objects_of("admissionregistration.k8s.io", "ValidatingWebhookConfiguration");
        let mut namespaces: Vec<_> =
            deployments.iter().map(|d| symbols.name(d.namespace).to_owned()).collect();
        namespaces.push("kyverno".to_owned());
        Self { is_seen: !deployments.is_empty() || webhooks.any(|webhook| is_webhook(&webhook)), namespaces }
    }
}

/// Whether an image is that of the admission controller: `kyverno`, whatever the registry and tag.
fn is_kyverno(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or_default();
    name.split([':', '@']).next() == Some("kyverno")
}

/// Whether a webhook configuration is Kyverno's for resources.
pub(super) fn is_own_webhook(webhook: &ObjectFact, symbols: &Symbols) -> bool {
    symbols.name(webhook.name).starts_with("kyverno-")
        || webhook.text("/metadata/labels/webhook.kyverno.io~1managed-by") == Some("kyverno")
}

/// Whether the policies of Kyverno are among what was loaded, so that its webhook itself needs not be counted.
pub(super) fn is_loaded(cluster: &ClusterFacts) -> bool {
    let has = |kind: &str| cluster.objects_of(GROUP, kind).next().is_some();
    has("ClusterPolicy") || has("Policy") || cluster.has_listed("clusterpolicies.kyverno.io")
}

impl Judge for Kept {
    fn by(&self) -> &str {
        self.inner.by()
    }

    fn may_concern(&self, sort: Sort<'_>) -> bool {
        self.inner.may_concern(sort)
    }

    fn judge(&self, request: &Request<'_>) -> Verdict {
        // The defaults of Kyverno's ConfigMap (`resourceFilters`, `excludeGroups`) and webhooks.
        const LEFT_OUT: [&str; 3] = ["kube-system", "kube-public", "kube-node-lease"];
        let is_left_out = |namespace: &str| {
            LEFT_OUT.contains(&namespace) || self.running.namespaces.iter().any(|own| own == namespace)
        };
        match self.inner.judge(request) {
            Verdict::Denied(_) if !self.running.is_seen => Verdict::Unknown(
                "neither Kyverno's Deployment nor its webhook is loaded, so it may not run".to_owned(),
            ),
            Verdict::Denied(_) if request.namespace.is_some_and(is_left_out) => Verdict::Unknown(
                "Kyverno stays out of this namespace unless its configuration says otherwise".to_owned(),
            ),
            Verdict::Denied(_) if request.who.groups.iter().any(|group| group == "system:nodes") => {
                Verdict::Unknown(
                    "Kyverno lets nodes do anything unless its configuration says otherwise".to_owned(),
                )
            }
            verdict => verdict,
        }
    }
}

#[cfg(test)]
mod tests;
