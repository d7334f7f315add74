//! What was found of controllers in one cluster, and the templates that follow so far.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde_json::{Map, Value, json};

use super::{
    data::{self, Kind, Program},
    process::{self, Process, Setting, Watched},
    select,
};
use crate::{
    Certainty, ClusterFacts, Fact, Gift, Identity, Named, Need, ObjectFact, Place, Power, Sample, Scope,
    SubjectKind, Symbol, Symbols, Template,
};

/// Collects the templates of one cluster.
pub(super) struct Survey<'a> {
    /// The cluster.
    pub cluster: &'a ClusterFacts,
    /// Names of all clusters that were loaded.
    pub clusters: &'a [String],
    /// The names.
    pub symbols: &'a mut Symbols,
    objects: FxHashMap<&'a str, Vec<&'a ObjectFact>>,
    namespaces: Vec<(String, BTreeMap<String, String>)>,
    found: BTreeMap<&'static str, Vec<Process>>,
    guessed: BTreeMap<&'static str, Vec<Process>>,
    cluster_labels: FxHashMap<(Symbol, Symbol), Symbol>,
    workloads_listed: bool,
    definitions: Vec<String>,
    definitions_listed: bool,
    templates: Vec<Template>,
    seen: FxHashMap<String, usize>,
}

/// A template in the making.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    pub edge: &'static str,
    pub gives: Gift,
    pub evidence: String,
    /// Why it is only assumed; empty for proven.
    pub assumed: Vec<String>,
    /// What was looked at and does not prevent it.
    pub looked_at: Vec<String>,
    pub only: Option<Vec<String>>,
    pub except: Vec<String>,
    /// Needs beside the first.
    pub with: Vec<Need>,
    /// `spec` of a request that uses it, what it was before, and the essential pointers.
    pub request: Option<(Value, Value, Vec<String>)>,
}

/// Namespaces that something selects.
#[derive(Debug, Clone, Default)]
pub(super) struct Selected {
    /// The only ones; none for all.
    pub only: Option<Vec<String>>,
    /// What could not be decided.
    pub unknown: Vec<String>,
}

impl<'a> Survey<'a> {
    pub fn new(cluster: &'a ClusterFacts, clusters: &'a [String], symbols: &'a mut Symbols) -> Self {
        let mut found: BTreeMap<&'static str, Vec<Process>> = BTreeMap::new();
        for process in process::find(cluster, symbols) {
            found.entry(&process.program.id).or_default().push(process);
        }
        let absent: Vec<&'static Program> = data::files()
            .iter()
            .flat_map(|file| &file.processes)
            .filter(|program| !found.contains_key(program.id.as_str()))
            .collect();
        let mut guessed: BTreeMap<&'static str, Vec<Process>> = BTreeMap::new();
        for process in process::guess(cluster, symbols, &absent) {
            guessed.entry(&process.program.id).or_default().push(process);
        }
        let mut objects: FxHashMap<&'a str, Vec<&'a ObjectFact>> = FxHashMap::default();
        for object in &cluster.objects {
            objects.entry(&object.kind).or_default().push(object);
        }
        let workloads = ["deployments.apps", "statefulsets.apps", "daemonsets.apps"];
        let crds = cluster.objects_of("apiextensions.k8s.io", "CustomResourceDefinition");
        let definitions: Vec<String> = crds.map(|crd| symbols.name(crd.name).to_owned()).collect();
        Self {
            objects,
            namespaces: namespaces(cluster, symbols),
            cluster_labels: cluster
                .secrets
                .iter()
                .filter_map(|secret| Some(((secret.namespace, secret.name), secret.cluster_name?)))
                .collect(),
            workloads_listed: workloads.iter().all(|kind| cluster.has_listed(kind)),
            definitions,
            definitions_listed: cluster.has_listed("customresourcedefinitions.apiextensions.k8s.io"),
            cluster,
            clusters,
            symbols,
            found,
            guessed,
            templates: Vec::new(),
            seen: FxHashMap::default(),
        }
    }

    pub fn finish(self) -> Vec<Template> {
        self.templates
    }

    /// The processes of a program: those that run, else guesses.
    pub fn processes(&self, program: &str) -> Vec<Process> {
        self.found.get(program).or_else(|| self.guessed.get(program)).cloned().unwrap_or_default()
    }

    /// Whether a workload runs a program.
    pub fn runs(&self, program: &str) -> bool {
        self.found.contains_key(program)
    }

    /// Whether objects of a kind would do something: it may be served, and its controller may run.
    pub fn matters(&self, kind: &'static Kind, program: &str) -> bool {
        if kind.group.is_empty() || self.objects(kind).next().is_some() {
            return true;
        }
        let listed = self.cluster.has_listed(&kind.listed_as());
        let served = listed || self.definitions.contains(&kind.listed_as());
        let may_be_served = served || !self.definitions_listed;
        if self.runs(program) {
            return may_be_served;
        }
        // Without objects and without a workload it takes a sign that there is more than was loaded.
        !self.workloads_listed && (served || may_be_served && self.guessed.contains_key(program))
    }

    /// The objects of a kind.
    pub fn objects(&self, kind: &'static Kind) -> impl Iterator<Item = &'a ObjectFact> + '_ {
        let of_kind = self.objects.get(kind.kind.as_str()).into_iter().flatten().copied();
        of_kind.filter(|object| object.group() == kind.group)
    }

    /// The object of a kind with a name.
    pub fn object(&self, kind: &'static Kind, namespace: &str, name: &str) -> Option<&'a ObjectFact> {
        let (namespace, name) = (self.symbols.find(namespace)?, self.symbols.find(name)?);
        self.objects(kind).find(|object| object.namespace == namespace && object.name == name)
    }

    /// The cluster that the label of a Secret names.
    pub fn cluster_label(&self, namespace: &str, secret: &str) -> Option<String> {
        let key = (self.symbols.find(namespace)?, self.symbols.find(secret)?);
        self.cluster_labels.get(&key).map(|cluster| self.symbols.name(*cluster).to_owned())
    }

    /// Namespace and name of an object.
    pub fn names(&self, object: &ObjectFact) -> (String, String) {
        (self.symbols.name(object.namespace).to_owned(), self.symbols.name(object.name).to_owned())
    }

    /// The known namespaces.
    pub fn namespaces(&self) -> impl Iterator<Item = (&str, &BTreeMap<String, String>)> {
        self.namespaces.iter().map(|(name, labels)| (name.as_str(), labels))
    }

    /// The known namespaces of which something is true.
    pub fn namespaces_where(&self, wanted: impl Fn(&str, &BTreeMap<String, String>) -> bool) -> Vec<String> {
        self.namespaces()
            .filter(|(name, labels)| wanted(name, labels))
            .map(|(name, _)| name.to_owned())
            .collect()
    }

    /// The namespaces that a label selector selects.
    pub fn selected(&self, selector: &Value) -> Selected {
        if select::is_empty(selector) {
            return Selected::default();
        }
        if self.namespaces.is_empty() {
            let why = "namespaces were not loaded, so it is not known which are selected";
            return Selected { only: None, unknown: vec![why.to_owned()] };
        }
        let only = self.namespaces_where(|_, labels| {
            select::labels(selector, |key| labels.get(key).map(String::as_str))
        });
        Selected { only: Some(only), unknown: Vec::new() }
    }

    /// Acts as a ServiceAccount.
    pub fn account(&mut self, namespace: &str, name: &str) -> Fact {
        Fact::Identity(Identity {
            kind: SubjectKind::ServiceAccount,
            namespace: self.symbols.intern(namespace),
            name: self.symbols.intern(name),
        })
    }

    /// Reads a Secret.
    pub fn secret(&mut self, namespace: &str, name: &str) -> Fact {
        Fact::Secret { namespace: self.symbols.intern(namespace), name: self.symbols.intern(name) }
    }

    /// A power in a namespace.
    pub fn power_in(&mut self, power: Power, namespace: &str) -> Fact {
        power.at(Scope::Namespace(self.symbols.intern(namespace)))
    }

    /// Acts as a process; nothing that can be followed where none is known.
    pub fn controller(&mut self, process: Option<&Process>) -> Gift {
        process.map_or(Gift::Nothing, |process| Gift::Fact(Fact::Identity(process.identity(self.symbols))))
    }

    /// A right on a kind, where an object of it lies.
    pub fn right(&mut self, verbs: &[&str], kind: &Kind, named: Named) -> Need {
        Need::Right {
            verbs: verbs.iter().map(|verb| self.symbols.intern(verb)).collect(),
            group: self.symbols.intern(&kind.group),
            resources: vec![self.symbols.intern(&kind.plural)],
            names: Vec::new(),
            place: if kind.cluster { Place::Cluster } else { Place::Here },
            named,
        }
    }

    /// The right to make or change an object of a kind.
    pub fn write_right(&mut self, kind: &Kind) -> Need {
        self.right(&["create", "patch", "update"], kind, Named::Exists)
    }

    /// The right to change one object of a kind, or its status.
    pub fn change_one(&mut self, kind: &Kind, name: &str) -> Need {
        let status = format!("{}/status", kind.plural);
        Need::Right {
            verbs: ["patch", "update"].map(|verb| self.symbols.intern(verb)).to_vec(),
            group: self.symbols.intern(&kind.group),
            resources: vec![self.symbols.intern(&kind.plural), self.symbols.intern(&status)],
            names: vec![self.symbols.intern(name)],
            place: if kind.cluster { Place::Cluster } else { Place::Here },
            named: Named::Exists,
        }
    }

    /// Says what a draft gives for whoever may create objects of a kind, and for whoever may change one.
    pub fn write(&mut self, kind: &'static Kind, draft: &Draft) {
        let create = self.right(&["create"], kind, Named::Never);
        self.push_sampled(draft, create, kind, "CREATE");
        let change = self.right(&["patch", "update"], kind, Named::Exists);
        if !self.cluster.has_listed(&kind.listed_as()) {
            self.push_sampled(draft, change, kind, "UPDATE");
            return;
        }
        // Without an object there is nothing to change.
        let mut places: Vec<String> = self.objects(kind).map(|object| self.names(object).0).collect();
        places.sort();
        places.dedup();
        if places.is_empty() {
            return;
        }
        let mut draft = draft.clone();
        if !kind.cluster {
            places.retain(|place| draft.only.as_ref().is_none_or(|only| only.contains(place)));
            draft.only = Some(places);
        }
        self.push_sampled(&draft, change, kind, "UPDATE");
    }

    fn push_sampled(&mut self, draft: &Draft, need: Need, kind: &Kind, operation: &'static str) {
        let mut samples = Vec::new();
        if let Some((spec, before, essential)) = &draft.request {
            let object = |spec: &Value| json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata(kind), "spec": spec});
            samples.push(Sample {
                operation,
                group: kind.group.clone(),
                resource: kind.plural.clone(),
                object: object(spec),
                old_object: if operation == "CREATE" { Value::Null } else { object(before) },
                essential: essential.clone(),
            });
        }
        self.push_with(draft, vec![need], samples);
    }

    /// Says what a draft gives for whoever holds these needs.
    pub fn push(&mut self, draft: &Draft, when: Vec<Need>) {
        self.push_with(draft, when, Vec::new());
    }

    fn push_with(&mut self, draft: &Draft, mut when: Vec<Need>, samples: Vec<Sample>) {
        if draft.only.as_ref().is_some_and(Vec::is_empty) {
            return;
        }
        when.extend(draft.with.iter().cloned());
        let mut intern =
            |names: &Vec<String>| names.iter().map(|n| self.symbols.intern(n)).collect::<Vec<Symbol>>();
        let only = draft.only.as_ref().map(&mut intern);
        let except = intern(&draft.except);
        let notes: Vec<&str> = draft.assumed.iter().chain(&draft.looked_at).map(String::as_str).collect();
        let template = Template {
            edge: draft.edge,
            when,
            gives: draft.gives,
            certainty: if draft.assumed.is_empty() { Certainty::Proven } else { Certainty::Assumed },
            evidence: draft.evidence.clone(),
            guard: (!notes.is_empty()).then(|| notes.join("; ")),
            except,
            only,
            samples,
            alone: Vec::new(),
            credentials: false,
        };
        self.add(template);
    }

    /// Adds a template, unless it is there. Of two that differ in certainty only the surer one stays; two that differ in
    /// the names of the objects that one may change become one.
    fn add(&mut self, template: Template) {
        let (names, rest) = split_names(&template.when);
        let certainty = if names.is_empty() { None } else { Some(template.certainty) };
        let key = format!("{}{rest:?}{:?}{:?}{certainty:?}", template.edge, template.gives, template.only);
        match self.seen.get(&key).and_then(|index| self.templates.get_mut(*index)) {
            Some(known) if !names.is_empty() => merge(known, &names, &template.evidence),
            Some(known) if template.certainty < known.certainty => *known = template,
            Some(_) => {}
            None => {
                self.seen.insert(key, self.templates.len());
                self.templates.push(template);
            }
        }
    }
}

/// How many objects the evidence of a merged template names.
const EVIDENCE_MAX: usize = 3;

/// The names that the first need is for, and the needs without them.
fn split_names(when: &[Need]) -> (Vec<Symbol>, Vec<Need>) {
    let mut rest = when.to_vec();
    let names = match rest.first_mut() {
        Some(Need::Right { names, .. }) => std::mem::take(names),
        _ => Vec::new(),
    };
    (names, rest)
}

fn merge(known: &mut Template, more: &[Symbol], evidence: &str) {
    let Some(Need::Right { names, .. }) = known.when.first_mut() else { return };
    let new: Vec<Symbol> = more.iter().filter(|name| !names.contains(name)).copied().collect();
    if new.is_empty() {
        return;
    }
    names.extend(new);
    if names.len() <= EVIDENCE_MAX {
        known.evidence = format!("{}; {evidence}", known.evidence);
    } else if names.len() == EVIDENCE_MAX + 1 {
        known.evidence.push_str("; and others");
    }
}

impl Draft {
    pub fn new(edge: &'static str, gives: Gift, evidence: String) -> Self {
        Self {
            edge,
            gives,
            evidence,
            assumed: Vec::new(),
            looked_at: Vec::new(),
            only: None,
            except: Vec::new(),
            with: Vec::new(),
            request: None,
        }
    }

    /// Makes it assumed, for this reason.
    pub fn assume(mut self, why: impl Into<String>) -> Self {
        self.assumed.push(why.into());
        self
    }

    /// Makes it assumed if the process is only guessed, or none is known.
    pub fn by(mut self, program: &str, process: Option<&Process>) -> Self {
        match process {
            Some(process) => self.assumed.extend(process.guess.clone()),
            None => {
                self.assumed.push(format!("nothing that runs {program} was loaded: it may run elsewhere"))
            }
        }
        self
    }

    /// Makes it assumed for each of these reasons.
    pub fn unless_known(mut self, unknown: impl IntoIterator<Item = String>) -> Self {
        self.assumed.extend(unknown);
        self
    }

    /// Notes what was looked at and does not prevent it.
    pub fn despite(mut self, what: impl Into<String>) -> Self {
        self.looked_at.push(what.into());
        self
    }

    /// Adds needs.
    pub fn and(mut self, needs: impl IntoIterator<Item = Need>) -> Self {
        self.with.extend(needs);
        self
    }

    /// Limits it to namespaces.
    pub fn only(mut self, names: Option<Vec<String>>) -> Self {
        self.only = match (self.only.take(), names) {
            (Some(only), Some(names)) => Some(only.into_iter().filter(|name| names.contains(name)).collect()),
            (only, names) => only.or(names),
        };
        self
    }

    /// Limits it to one namespace.
    pub fn in_namespace(self, name: &str) -> Self {
        self.only(Some(vec![name.to_owned()]))
    }

    /// Limits it to what a process looks at.
    pub fn within(mut self, watched: Watched) -> Self {
        self.except.extend(watched.except);
        self.assumed.extend(watched.unknown);
        self.only(watched.only)
    }

    /// Adds the request by which it is used.
    pub fn request(mut self, spec: Value, before: Option<Value>, essential: &[&str]) -> Self {
        let before = before.unwrap_or_else(|| spec.clone());
        self.request = Some((spec, before, essential.iter().map(|&pointer| pointer.to_owned()).collect()));
        self
    }
}

/// The value of a setting, none if it is absent or empty, and what is not known.
pub(super) fn known(setting: Setting) -> (Option<String>, Option<String>) {
    match setting {
        Setting::Absent => (None, None),
        Setting::Is(value) => (Some(value).filter(|value| !value.is_empty()), None),
        Setting::Unknown(why) => (None, Some(why)),
    }
}

fn metadata(kind: &Kind) -> Value {
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), json!("sample"));
    if !kind.cluster {
        metadata.insert("namespace".to_owned(), json!("sample"));
    }
    Value::Object(metadata)
}

fn namespaces(cluster: &ClusterFacts, symbols: &Symbols) -> Vec<(String, BTreeMap<String, String>)> {
    let namespace = |fact: &crate::NamespaceFact| {
        let name = symbols.name(fact.name).to_owned();
        let labels = fact.labels.iter().map(|(key, value)| (symbols.name(*key), symbols.name(*value)));
        let mut labels: BTreeMap<String, String> =
            labels.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        // The API server sets this label on every namespace.
        labels.insert("kubernetes.io/metadata.name".to_owned(), name.clone());
        (name, labels)
    };
    cluster.namespaces.iter().map(namespace).collect()
}

impl From<Fact> for Gift {
    fn from(fact: Fact) -> Self {
        Self::Fact(fact)
    }
}
