//! Which pods a namespace takes: Pod Security by label, and policies that come to the same.
//!
//! Semantics of labels: `k8s.io/pod-security-admission/api/helpers.go`. What the API server's own configuration says (its
//! default level, and who is exempt) is in no object, so a namespace without a label is privileged as far as is known.

mod probes;
pub(super) mod standards;

use super::{
    Admission, Decision, Judge, Sort, Verdict,
    request::{InNamespace, Namespaces, Prepared, Request},
    truth::Truth,
    view::{Child, View},
};
use crate::Certainty;

/// A level of the Pod Security Standards; later ones are stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PodSecurityLevel {
    /// Everything goes, pods that take over their node too.
    Privileged,
    /// No pod takes over its node.
    Baseline,
    /// Pods hold no more than they need.
    Restricted,
}

impl PodSecurityLevel {
    /// The level of a label; one that is none counts as the strictest.
    pub(super) fn new(text: &str) -> Self {
        match text {
            "privileged" => Self::Privileged,
            "baseline" => Self::Baseline,
            _ => Self::Restricted,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }
}

/// The level that a namespace is held to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodSecurity {
    /// The level. Privileged means that a pod may take over its node; policies other than labels make it baseline at
    /// most.
    pub level: PodSecurityLevel,
    /// What makes it so, for people.
    pub by: String,
    /// Assumed where there is no label, since the API server may have a default, or where a policy is not decided.
    pub certainty: Certainty,
}

const LABEL: &str = "pod-security.kubernetes.io/enforce";

impl Admission {
    /// The level that pods of a namespace are held to.
    pub fn pod_security(&self, namespace: &str) -> PodSecurity {
        let found = self.namespaces.get(namespace);
        let label = found.and_then(|namespace| label_of(namespace));
        if let Some(level) = label.filter(|level| *level > PodSecurityLevel::Privileged) {
            let by = format!("label {LABEL} of Namespace {namespace}");
            return PodSecurity { level, by, certainty: Certainty::Proven };
        }
        let (by_label, certainty) = match (label, found) {
            (Some(_), _) => {
                (format!("label {LABEL}: privileged of Namespace {namespace}"), Certainty::Proven)
            }
            (None, Some(_)) => (
                format!(
                    "Namespace {namespace} has no label {LABEL}, and the default of the API server is not known"
                ),
                Certainty::Assumed,
            ),
            (None, None) => (format!("Namespace {namespace} was not loaded"), Certainty::Assumed),
        };
        let privileged = |by, certainty| PodSecurity { level: PodSecurityLevel::Privileged, by, certainty };
        let mut refused_by: Vec<String> = Vec::new();
        let mut unknown = None;
        for probe in probes::all() {
            match self.decide_probe(namespace, probe) {
                Decision::Blocked { by, .. } if refused_by.contains(&by) => {}
                Decision::Blocked { by, .. } => refused_by.push(by),
                Decision::Unknown { by, why } => {
                    unknown.get_or_insert_with(|| format!("{by} may refuse {}: {why}", probe.what));
                }
                Decision::Passes if refused_by.is_empty() => return privileged(by_label, certainty),
                Decision::Passes => {
                    let by =
                        format!("{by_label}; {}, but nothing refuses {}", refused_by.join(", "), probe.what);
                    return privileged(by, certainty);
                }
            }
        }
        match unknown {
            Some(why) => privileged(format!("{by_label}; {why}"), Certainty::Assumed),
            None => PodSecurity {
                level: PodSecurityLevel::Baseline,
                by: refused_by.join(", "),
                certainty: Certainty::Proven,
            },
        }
    }

    /// Whether a pod is refused whoever makes it: somebody without any right, and a controller.
    fn decide_probe(&self, namespace: &str, probe: &probes::Probe) -> Decision {
        let concerned = self.concerned_by(&probe.sample);
        let mut worst = None;
        for who in probes::makers() {
            let prepared = Prepared::new(&probe.sample, who, &self.namespaces, Some(namespace), "", None);
            match (self.decide_prepared(&prepared, &concerned), worst.take()) {
                (Decision::Passes, _) => return Decision::Passes,
                (Decision::Blocked { .. }, Some(before)) => worst = Some(before),
                (decision, _) => worst = Some(decision),
            }
        }
        worst.unwrap_or(Decision::Passes)
    }
}

/// The level of a namespace's label.
fn label_of(namespace: View<'_>) -> Option<PodSecurityLevel> {
    match namespace.path(&["metadata", "labels", LABEL]) {
        Child::Present(level) => level.value().as_str().map(PodSecurityLevel::new),
        Child::Absent | Child::Unknown => None,
    }
}

/// The admission plugin itself: refuses pods by the label of their namespace.
#[derive(Debug)]
pub(super) struct Labels(());

impl Labels {
    /// None if no label refuses anything.
    pub(super) fn new(namespaces: &Namespaces) -> Option<Self> {
        let refuses =
            |namespace: View<'_>| label_of(namespace).is_some_and(|l| l > PodSecurityLevel::Privileged);
        namespaces.any(refuses).then_some(Self(()))
    }
}

impl Judge for Labels {
    fn by(&self) -> &str {
        "Pod Security"
    }

    fn may_concern(&self, sort: Sort<'_>) -> bool {
        sort.group.is_empty()
            && sort.resource == "pods"
            && match sort.operation {
                "CREATE" => sort.subresource.is_empty(),
                "UPDATE" => ["", "ephemeralcontainers", "resize"].contains(&sort.subresource),
                _ => false,
            }
    }

    fn judge(&self, request: &Request<'_>) -> Verdict {
        let (InNamespace::Known(namespace), Some(pod)) = (request.in_namespace, request.object) else {
            return Verdict::Passes;
        };
        let Some(level) = label_of(namespace) else { return Verdict::Passes };
        let level_name = level.as_str();
        match standards::violated(pod, level, &[]) {
            None => Verdict::Passes,
            // An update that changes nothing of the kind is not looked at.
            Some((control, Truth::True)) if was_violated(request, level) => {
                Verdict::Unknown(format!("the pod may have violated {control} of level {level_name} before"))
            }
            Some((control, Truth::True)) => {
                Verdict::Denied(format!("violates PodSecurity \"{level_name}\": {control}"))
            }
            Some((control, _)) => Verdict::Unknown(format!(
                "at level {level_name}, {control} depends on fields that such a pod may have with any value"
            )),
        }
    }
}

fn was_violated(request: &Request<'_>, level: PodSecurityLevel) -> bool {
    let before = request.old_object.filter(|_| request.operation == "UPDATE");
    before.is_some_and(|pod| standards::violated(pod, level, &[]).is_some())
}

#[cfg(test)]
mod tests;
