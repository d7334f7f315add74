use serde_json::{Value, json};

use super::*;
use crate::{NamespaceFact, ObjectFact, Origin, RoleFact, RuleFact, Symbol};

mod rails;

/// A cluster from objects as they would be in a dump.
#[derive(Default)]
pub(super) struct Loaded {
    pub(super) facts: ClusterFacts,
    pub(super) symbols: Symbols,
}

impl Loaded {
    pub(super) fn new(objects: impl IntoIterator<Item = Value>) -> Self {
        let mut loaded = Self::default();
        for object in objects {
            loaded.add(object);
        }
        loaded
    }

    fn intern(&mut self, object: &Value, pointer: &str) -> Symbol {
        self.symbols.intern(object.pointer(pointer).and_then(Value::as_str).unwrap_or_default())
    }

    fn labels(&mut self, object: &Value) -> Vec<(Symbol, Symbol)> {
        let labels =
            object.pointer("/metadata/labels").and_then(Value::as_object).cloned().unwrap_or_default();
        labels
            .iter()
            .map(|(key, value)| {
                (self.symbols.intern(key), self.symbols.intern(value.as_str().unwrap_or_default()))
            })
            .collect()
    }

    pub(super) fn add(&mut self, object: Value) {
        let name = self.intern(&object, "/metadata/name");
        match object["kind"].as_str().unwrap_or_default() {
            "Namespace" => {
                let labels = self.labels(&object);
                self.facts.namespaces.push(NamespaceFact { name, labels, origin: Origin::default() });
            }
            "ClusterRole" => {
                let rules = object["rules"].as_array().cloned().unwrap_or_default();
                let rules = rules.iter().map(|rule| self.rule(rule)).collect();
                let labels = self.labels(&object);
                self.facts.roles.push(RoleFact {
                    namespace: None,
                    name,
                    rules,
                    labels,
                    aggregation: Vec::new(),
                    origin: Origin::default(),
                });
            }
            kind => {
                let object = ObjectFact {
                    api_version: object["apiVersion"].as_str().unwrap_or_default().to_owned(),
                    kind: kind.to_owned(),
                    namespace: self.intern(&object, "/metadata/namespace"),
                    name,
                    body: object,
                    origin: Origin::default(),
                };
                self.facts.objects.push(object);
            }
        }
    }

    fn rule(&mut self, rule: &Value) -> RuleFact {
        let mut list = |field: &str| -> Vec<Symbol> {
            let names = rule[field].as_array().into_iter().flatten().filter_map(Value::as_str);
            names.map(|name| self.symbols.intern(name)).collect()
        };
        RuleFact {
            api_groups: list("apiGroups"),
            resources: list("resources"),
            resource_names: list("resourceNames"),
            verbs: list("verbs"),
            non_resource_urls: list("nonResourceURLs"),
        }
    }

    pub(super) fn admission(&self) -> Admission {
        Admission::new(&self.facts, &self.symbols)
    }
}

/// Allows everything, or nothing.
pub(super) struct All(pub(super) bool);

impl Authorizer for All {
    fn allows(&self, _: &Requester, _: &Check) -> bool {
        self.0
    }
}

pub(super) fn somebody() -> Requester {
    Requester { user: "eve".to_owned(), groups: vec!["system:authenticated".to_owned()] }
}

/// The operation of a sample.
pub(super) fn operation(text: &str) -> &'static str {
    ["CREATE", "UPDATE", "DELETE", "CONNECT"].into_iter().find(|known| *known == text).unwrap()
}

/// `blocked: …`, `passes` or `unknown: …`.
pub(super) fn shown(decision: &Decision) -> String {
    match decision {
        Decision::Passes => "passes".to_owned(),
        Decision::Blocked { by, message } => format!("blocked by {by}: {message}"),
        Decision::Unknown { by, why } => format!("unknown for {by}: {why}"),
    }
}
