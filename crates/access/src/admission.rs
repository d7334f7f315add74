//! Is a request, made by a certain identity, provably refused by an admission policy of the cluster?
//!
//! Evaluated: ValidatingAdmissionPolicies, Kyverno's policies as far as their language is simple, and Pod Security. Of
//! Gatekeeper and other webhooks only whether they are asked. Mutating policies and webhooks are not considered: what
//! they might add to an object is taken not to be there.
//!
//! INVARIANT: refused means that each request with the sample's essential fields is refused. A policy that refuses the
//! sample as it is, but could let another one through, leaves the answer unknown. What cannot be evaluated does too.

mod cel;
mod kyverno;
mod loading;
mod matching;
mod params;
mod pod_security;
mod policy;
mod request;
mod selector;
mod truth;
mod view;
mod webhooks;

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

pub use self::pod_security::{PodSecurity, PodSecurityLevel};

use self::{
    loading::Loading,
    request::{Namespaces, Prepared, Request},
};
use crate::{ClusterFacts, Sample, Symbol, Symbols};

/// Somebody who makes a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Requester {
    /// The user name, `system:serviceaccount:NS:NAME` for a ServiceAccount. Empty for somebody whom no policy names.
    pub user: String,
    /// All groups, the implicit ones too.
    pub groups: Vec<String>,
}

impl Requester {
    /// A ServiceAccount, with the groups that the API server gives it.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self {
            user: format!("system:serviceaccount:{namespace}:{name}"),
            groups: vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated".to_owned(),
            ],
        }
    }
}

/// What a policy asks the authorizer. What is empty was not named: the cluster scope, any name, no subresource.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Check {
    /// The verb.
    pub verb: String,
    /// The API group.
    pub group: String,
    /// The plural alone.
    pub resource: String,
    /// The subresource alone.
    pub subresource: String,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// A path such as `/metrics`; then nothing else but the verb counts.
    pub path: Option<String>,
}

/// Answers what policies ask the authorizer.
pub trait Authorizer {
    /// Whether somebody may do something.
    fn allows(&self, who: &Requester, check: &Check) -> bool;
}

/// What admission does with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Nothing that was loaded refuses it.
    Passes,
    /// It is refused, and so is each request with the same essential fields.
    Blocked {
        /// The policy, as `ValidatingAdmissionPolicy NAME`.
        by: String,
        /// What the policy says.
        message: String,
    },
    /// It may be refused.
    Unknown {
        /// The policy or webhook.
        by: String,
        /// Why that is not known.
        why: String,
    },
}

/// What one policy says of one reading of a request. Later ones are worse.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    Passes,
    Unknown(String),
    Denied(String),
}

impl Verdict {
    fn rank(&self) -> u8 {
        match self {
            Self::Passes => 0,
            Self::Unknown(_) => 1,
            Self::Denied(_) => 2,
        }
    }

    /// The worse of two; the first of two equal ones.
    fn worse(self, other: Self) -> Self {
        if other.rank() > self.rank() { other } else { self }
    }

    /// The verdict where it is not known whether the policy is asked.
    fn doubted(self) -> Self {
        match self {
            Self::Denied(message) => Self::Unknown(format!(
                "it is not known whether it concerns the request; it would say: {message}"
            )),
            verdict => verdict,
        }
    }
}

/// The policies of a cluster, compiled.
#[derive(Debug)]
pub struct Admission {
    namespaces: Namespaces,
    judges: Vec<Box<dyn Judge>>,
    /// Indexes of the judges by what they may concern.
    concerned: Mutex<FxHashMap<SortKey, Arc<[usize]>>>,
}

/// What kind of request it is.
#[derive(Debug, Clone, Copy)]
struct Sort<'a> {
    operation: &'a str,
    group: &'a str,
    /// The plural alone.
    resource: &'a str,
    subresource: &'a str,
    /// Kind of the object, where it is known.
    kind: Option<&'a str>,
}

/// Something that may refuse requests.
trait Judge: std::fmt::Debug + Send + Sync {
    /// What it is, for people: kind and name.
    fn by(&self) -> &str;

    /// Whether it could be asked about any such request: cheap, and never false for one that it is asked about.
    fn may_concern(&self, sort: Sort<'_>) -> bool;

    /// What it says of one reading of a request.
    fn judge(&self, request: &Request<'_>) -> Verdict;
}

impl Admission {
    /// Compiles the policies of a cluster. A kind that was not loaded counts as having no objects.
    pub fn new(cluster: &ClusterFacts, symbols: &Symbols) -> Self {
        let loading = Loading::new(cluster, symbols);
        let policies =
            policy::policies(&loading).into_iter().map(|policy| Box::new(policy) as Box<dyn Judge>);
        let mut judges: Vec<Box<dyn Judge>> = policies.collect();
        let namespaces = Namespaces::new(cluster, symbols);
        judges
            .extend(pod_security::Labels::new(&namespaces).map(|labels| Box::new(labels) as Box<dyn Judge>));
        judges.extend(kyverno::judges(&loading));
        judges.extend(webhooks::judges(&loading));
        Self { namespaces, judges, concerned: Mutex::default() }
    }

    /// Whether a policy may take a role for its parameter, so that what it refuses changes with the role.
    pub(crate) fn may_read_role(
        &self,
        cluster: &ClusterFacts,
        symbols: &Symbols,
        (namespace, name): (Option<Symbol>, Symbol),
    ) -> bool {
        let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
        let group = "admissionregistration.k8s.io";
        let takes = |object: &crate::ObjectFact| object.text("/spec/paramKind/kind") == Some(kind);
        let refers = |object: &crate::ObjectFact| {
            let reference = object.body.pointer("/spec/paramRef");
            reference.is_some_and(|reference| {
                let named = reference.get("name").and_then(serde_json::Value::as_str);
                named.is_none_or(|named| named == symbols.name(name))
            })
        };
        let of = |kind| cluster.objects_of(group, kind);
        !self.judges.is_empty()
            && of("ValidatingAdmissionPolicy").any(takes)
            && of("ValidatingAdmissionPolicyBinding").any(refers)
    }

    /// Whether anything that may refuse could be asked about such a request: cheap; false means that it passes.
    pub fn concerns(&self, sample: &Sample) -> bool {
        !self.concerned_by(sample).is_empty()
    }

    /// Whether a request like the sample is refused. `namespace` is where it goes (none only for what is in the
    /// cluster scope) and `name` that of the object, which takes the place of those in the sample; an empty name on a create is any name.
    pub fn decide(
        &self,
        sample: &Sample,
        who: &Requester,
        namespace: Option<&str>,
        name: &str,
        authorizer: &dyn Authorizer,
    ) -> Decision {
        let concerned = self.concerned_by(sample);
        if concerned.is_empty() {
            return Decision::Passes;
        }
        let prepared = Prepared::new(sample, who, &self.namespaces, namespace, name, Some(authorizer));
        self.decide_prepared(&prepared, &concerned)
    }

    fn decide_prepared(&self, prepared: &Prepared<'_>, concerned: &[usize]) -> Decision {
        let mut unknown = None;
        for judge in concerned.iter().filter_map(|index| self.judges.get(*index)) {
            let of_sample = judge.judge(&prepared.as_sent());
            if of_sample == Verdict::Passes {
                continue;
            }
            let why = match (of_sample, judge.judge(&prepared.as_essential())) {
                (Verdict::Denied(message), Verdict::Denied(_)) | (_, Verdict::Denied(message)) => {
                    return Decision::Blocked { by: judge.by().to_owned(), message };
                }
                (Verdict::Denied(message), Verdict::Unknown(why)) => {
                    format!("it refuses a sample ({message}), but {why}")
                }
                (Verdict::Denied(message), Verdict::Passes) => {
                    format!("it refuses a sample ({message}), but not each such request")
                }
                (Verdict::Unknown(why), _) => why,
                (Verdict::Passes, _) => continue,
            };
            unknown.get_or_insert_with(|| Decision::Unknown { by: judge.by().to_owned(), why });
        }
        unknown.unwrap_or(Decision::Passes)
    }

    /// What may be asked about such requests. Kept, as samples are few and requests many.
    fn concerned_by(&self, sample: &Sample) -> Arc<[usize]> {
        let kind =
            [&sample.object, &sample.old_object].into_iter().find_map(|object| object.get("kind")?.as_str());
        let key = SortKey {
            operation: sample.operation,
            group: sample.group.clone(),
            resource: sample.resource.clone(),
            kind: kind.map(str::to_owned),
        };
        let mut concerned = self.concerned.lock().unwrap_or_else(PoisonError::into_inner);
        let found = concerned.entry(key).or_insert_with(|| {
            let (resource, subresource) = sample.resource.split_once('/').unwrap_or((&sample.resource, ""));
            let sort =
                Sort { operation: sample.operation, group: &sample.group, resource, subresource, kind };
            let concerned = self.judges.iter().enumerate().filter(|(_, judge)| judge.may_concern(sort));
            concerned.map(|(index, _)| index).collect()
        });
        Arc::clone(found)
    }
}

/// [`Sort`], to look it up by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SortKey {
    operation: &'static str,
    group: String,
    resource: String,
    kind: Option<String>,
}

#[cfg(test)]
mod tests;
