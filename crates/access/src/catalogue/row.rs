//! How a row of the catalogue says what is needed and what it gives.

use serde::Deserialize;
use serde_json::{Value, json};

use super::Edge;
use crate::{Certainty, Fact, Gift, Named, Need, Place, Power, Sample, Scope, Symbols, Target, Template};

/// The part of a row that the closure follows.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    #[serde(default)]
    when: Vec<When>,
    gives: Option<Gives>,
    since: Option<u16>,
    until: Option<u16>,
    certainty: Option<Certainty>,
    /// Pod Security of at least baseline prevents it.
    #[serde(default)]
    pub psa: bool,
    /// An object that must exist: `token-secret`, `aws-auth`.
    pub exists: Option<String>,
    #[serde(default)]
    samples: Vec<RowSample>,
    /// Other sets of needs that give the same.
    #[serde(default)]
    or: Vec<Vec<When>>,
    /// Whether it takes credentials.
    #[serde(default)]
    credentials: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct When {
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    group: String,
    resource: Option<OneOrMany>,
    #[serde(default)]
    names: Vec<String>,
    place: Option<String>,
    named: Option<Named>,
    power: Option<Power>,
    #[serde(default)]
    any_impersonation: bool,
    /// Whether the requester who holds it must hold the others that are so marked, too.
    #[serde(default)]
    alone: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Gives {
    target: Option<Target>,
    power: Option<Power>,
    fact: Option<GivenFact>,
    place: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum GivenFact {
    Nodes,
    AnyUser,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RowSample {
    operation: String,
    #[serde(default)]
    group: String,
    resource: String,
    object: Option<String>,
    old_object: Option<String>,
    #[serde(default)]
    essential: Vec<String>,
}

impl Row {
    /// The templates of a row, one for each set of needs; none if it follows from state only or is of another version.
    pub fn templates(&self, edge: &'static Edge, minor: Option<u16>, symbols: &mut Symbols) -> Vec<Template> {
        let ways = std::iter::once(&self.when).chain(&self.or).filter(|when| !when.is_empty());
        ways.filter_map(|when| self.template(edge, when, minor, symbols)).collect()
    }

    fn template(
        &self,
        edge: &'static Edge,
        when: &[When],
        minor: Option<u16>,
        symbols: &mut Symbols,
    ) -> Option<Template> {
        let bounded = self.since.is_some() || self.until.is_some();
        let outside =
            |minor| self.since.is_some_and(|s| minor < s) || self.until.is_some_and(|until| minor > until);
        if minor.is_some_and(outside) {
            return None;
        }
        let unknown = bounded && minor.is_none();
        let certainty =
            if unknown { Certainty::Assumed } else { self.certainty.unwrap_or(Certainty::Proven) };
        Some(Template {
            edge: &edge.id,
            when: when.iter().map(|when| when.need(symbols)).collect(),
            gives: self.gives.as_ref().map_or(Gift::Nothing, Gives::gift),
            certainty,
            evidence: String::new(),
            guard: unknown.then(|| "the version of Kubernetes is not known".to_owned()),
            except: Vec::new(),
            only: None,
            samples: self.samples.iter().filter_map(RowSample::sample).collect(),
            alone: (0..).zip(when).filter(|(_, when)| when.alone).map(|(index, _)| index).collect(),
            credentials: self.credentials,
        })
    }
}

impl When {
    fn need(&self, symbols: &mut Symbols) -> Need {
        if self.any_impersonation {
            return Need::AnyImpersonation;
        }
        if let Some(power) = self.power {
            return Need::Power(power);
        }
        let resources = match &self.resource {
            Some(OneOrMany::One(resource)) => vec![symbols.intern(resource)],
            Some(OneOrMany::Many(resources)) => resources.iter().map(|r| symbols.intern(r)).collect(),
            None => Vec::new(),
        };
        Need::Right {
            verbs: self.verbs.iter().map(|verb| symbols.intern(verb)).collect(),
            group: symbols.intern(&self.group),
            resources,
            names: self.names.iter().map(|name| symbols.intern(name)).collect(),
            place: match self.place.as_deref() {
                None | Some("here") => Place::Here,
                Some("cluster") => Place::Cluster,
                Some(namespace) => Place::In(symbols.intern(namespace)),
            },
            named: self.named.unwrap_or(Named::Never),
        }
    }
}

impl Gives {
    fn gift(&self) -> Gift {
        let in_cluster = self.place.as_deref() == Some("cluster");
        match (self.target, self.power, self.fact) {
            (Some(target), ..) => Gift::Target(target),
            (_, Some(power), _) if in_cluster => Gift::Fact(power.at(Scope::Cluster)),
            (_, Some(power), _) => Gift::Power(power),
            (_, _, Some(GivenFact::Nodes)) => Gift::Fact(Fact::Nodes),
            (_, _, Some(GivenFact::AnyUser)) => Gift::Fact(Fact::AnyUser),
            _ => Gift::Nothing,
        }
    }
}

impl RowSample {
    fn sample(&self) -> Option<Sample> {
        let object = |name: &Option<String>| name.as_deref().map_or(Some(Value::Null), sample_object);
        Some(Sample {
            operation: ["CREATE", "UPDATE", "DELETE", "CONNECT"]
                .into_iter()
                .find(|o| *o == self.operation)?,
            group: self.group.clone(),
            resource: self.resource.clone(),
            object: object(&self.object)?,
            old_object: object(&self.old_object)?,
            essential: self.essential.clone(),
        })
    }
}

/// Objects that samples are made with, none for an unknown name.
pub fn sample_object(name: &str) -> Option<Value> {
    let metadata = json!({"name": "sample", "namespace": "sample"});
    let pod = |security: Value| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {
            "containers": [{"name": "main", "image": "sample", "securityContext": security}]}})
    };
    let namespace = |level: &str| {
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "sample", "labels": {
            "kubernetes.io/metadata.name": "sample", "pod-security.kubernetes.io/enforce": level}}})
    };
    let binding = |kind: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "sample"}]})
    };
    let role = |kind: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata,
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]})
    };
    Some(match name {
        "secret" => {
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": {}})
        }
        "token-secret" => {
            json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
            "metadata": {"name": "sample", "namespace": "sample",
                "annotations": {"kubernetes.io/service-account.name": "sample"}}})
        }
        "pod" => pod(json!({})),
        "privileged-pod" => pod(json!({"privileged": true})),
        "exec-options" => {
            json!({"apiVersion": "v1", "kind": "PodExecOptions", "command": ["sh"], "container": "main"})
        }
        "token-request" => json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "metadata": metadata, "spec": {}}),
        "privileged-namespace" => namespace("privileged"),
        "baseline-namespace" => namespace("baseline"),
        "rolebinding" => binding("RoleBinding"),
        "clusterrolebinding" => binding("ClusterRoleBinding"),
        "role" => role("Role"),
        "clusterrole" => role("ClusterRole"),
        _ => return None,
    })
}
