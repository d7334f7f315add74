//! Findings: for each way out of what is somebody's own, the place where it leaves.
//!
//! A way that goes through another identity of the same customer is a finding of that identity, so each hole is told
//! once, at its root, and names who else gets there.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    Certainty, Fact, Scope, Symbol,
    access::Access,
    answer::{Finding, Severity, Step},
    catalogue,
    graph::{Edge, Node, NodeId, Via},
    judge::Start,
    owners::Whose,
    search::{Hop, Limits, Search},
};

/// How many different ways out of one subject are told.
const WAYS_MAX: usize = 50;
/// How many ends of one subject are looked at.
const ENDS_MAX: usize = 200;
/// How many names a finding lists.
const NAMES_MAX: usize = 50;

/// Stops at identities that have findings of their own.
struct Own<'a> {
    access: &'a Access,
    start: &'a Start,
}

impl Limits for Own<'_> {
    fn edge(&self, _from: NodeId, edge: &Edge) -> bool {
        // What everybody may do is told once, of the group that everybody is in.
        !matches!(edge.via, Via::Plain("member-of")) || self.start.whose == Whose::PLATFORM
    }

    fn expand(&self, node: NodeId) -> bool {
        match self.access.graph.node(node) {
            // Nothing is wider.
            Some((_, Node::Fact(Fact::Everything(Scope::Cluster) | Fact::Secrets(Scope::Cluster)))) => false,
            Some((cluster, Node::Fact(fact @ (Fact::Identity(_) | Fact::Source(_))))) => {
                let whose = self.access.owners.of_fact(*cluster, fact);
                let everyone = whose == Whose::EVERYONE;
                let same = whose == self.start.whose && whose != Whose::UNKNOWN;
                let neighbour = whose == Whose::UNKNOWN
                    && self.start.whose == Whose::UNKNOWN
                    && namespace_of(fact).is_some()
                    && namespace_of(fact) == namespace_of(&self.start.fact);
                !(same || everyone || neighbour)
            }
            _ => true,
        }
    }
}

/// Stays with what a start's own bindings give it.
struct OwnRights<'a>(&'a Access);

impl Limits for OwnRights<'_> {
    fn edge(&self, _from: NodeId, edge: &Edge) -> bool {
        matches!(edge.via, Via::Binding(_) | Via::Rule { .. } | Via::Admitted { .. })
    }

    fn expand(&self, node: NodeId) -> bool {
        matches!(self.0.graph.node(node), Some((_, Node::Fact(Fact::Role { .. }))))
    }
}

fn namespace_of(fact: &Fact) -> Option<Symbol> {
    match fact {
        Fact::Identity(identity) if identity.namespace != Symbol::EMPTY => Some(identity.namespace),
        _ => None,
    }
}

/// All findings about ways, worst first.
pub fn ways(access: &Access) -> Vec<Finding> {
    let mut findings = Vec::new();
    for start in &access.starts {
        let matters = start.whose != Whose::PLATFORM;
        if matters && leaves(access, start) {
            findings.extend(of_start(access, start));
        }
    }
    findings.extend(soft(access));
    sort(&mut findings);
    findings
}

/// Sorts worst first, then by subject and id.
pub fn sort(findings: &mut [Finding]) {
    findings.sort_by(|a, b| {
        b.severity.cmp(&a.severity).then_with(|| (&a.subject, &a.id).cmp(&(&b.subject, &b.id)))
    });
}

/// Whether a start reaches anything that is not its own.
fn leaves(access: &Access, start: &Start) -> bool {
    let ends = access.all.set(start.node);
    ends.is_some_and(|ends| ends.iter().any(|end| foreign_rank(access, start, end).is_some()))
}

/// How wide a foreign end is, the widest first; none for what is the start's own or no end.
fn foreign_rank(access: &Access, start: &Start, end: NodeId) -> Option<u8> {
    let (cluster, Node::Fact(fact)) = access.graph.node(end)? else { return None };
    let own = |namespace: Symbol| {
        let whose = access.owners.of_namespace(*cluster, namespace);
        match start.whose {
            Whose::UNKNOWN => namespace_of(&start.fact) == Some(namespace) && start.cluster == *cluster,
            Whose::EVERYONE => false,
            owner => whose == owner,
        }
    };
    let own_cluster = access.owners.of_cluster(*cluster) == Some(start.whose);
    match fact {
        _ if own_cluster => None,
        Fact::Everything(Scope::Cluster) => Some(0),
        Fact::Secrets(Scope::Cluster) => Some(1),
        Fact::OtherCluster(other) => {
            let name = access.snapshot.symbols.name(*other);
            let namespace = name.split_once('/').and_then(|(ns, _)| access.snapshot.symbols.find(ns));
            (!namespace.is_some_and(own)).then_some(4)
        }
        Fact::Secrets(Scope::Namespace(namespace)) => (!own(*namespace)).then_some(2),
        Fact::Everything(Scope::Namespace(namespace)) => (!own(*namespace)).then_some(3),
        Fact::Secret { namespace, .. } => (!own(*namespace)).then_some(5),
        _ => None,
    }
}

fn of_start(access: &Access, start: &Start) -> Vec<Finding> {
    let search = Search::new(&access.graph, start.node, &Own { access, start });
    let mut ends: Vec<(Certainty, u8, NodeId)> = search
        .reached()
        .iter()
        .filter_map(|end| Some((search.certainty(*end)?, foreign_rank(access, start, *end)?, *end)))
        .collect();
    ends.sort_unstable();
    ends.truncate(ENDS_MAX);
    let mut groups: Vec<Group> = Vec::new();
    let mut by_first: FxHashMap<(Certainty, NodeId, u64), usize> = FxHashMap::default();
    for (certainty, rank, end) in ends {
        let path = search.path(&access.graph, end);
        let (to, by) = first_hop(&path);
        let key = (certainty, to, by);
        match by_first.get(&key) {
            Some(index) => {
                if let Some((_, ends)) = groups.get_mut(*index) {
                    ends.push((rank, end));
                }
            }
            None if groups.len() < WAYS_MAX => {
                by_first.insert(key, groups.len());
                groups.push((path, vec![(rank, end)]));
            }
            None => {}
        }
    }
    groups.into_iter().map(|(path, ends)| finding(access, start, &search, &path, &ends)).collect()
}

/// A way, and the ends that are reached by it, with how wide each is.
type Group = (Vec<Hop>, Vec<(u8, NodeId)>);

/// Ways that leave by the same binding, or the same conjunction, are one.
fn first_hop(path: &[Hop]) -> (NodeId, u64) {
    match path.first() {
        Some(Hop::Edge { edge, .. }) => match edge.via {
            Via::Binding(binding) | Via::Admitted { binding, .. } => (0, u64::from(binding)),
            _ => (edge.to, u64::MAX),
        },
        Some(Hop::And(and)) => (u32::MAX, u64::from(*and)),
        None => (u32::MAX, u64::MAX),
    }
}

fn finding(access: &Access, start: &Start, search: &Search, path: &[Hop], ends: &[(u8, NodeId)]) -> Finding {
    let explainer = access.explainer();
    let steps = explainer.steps(path);
    let subject = explainer.subject(start.cluster, &start.fact).unwrap_or_default();
    let widest = ends.iter().min().map_or(5, |(rank, _)| *rank);
    let certainty = ends.first().and_then(|(_, end)| search.certainty(*end)).unwrap_or(Certainty::Assumed);
    let (secrets, secret_count, reaches) = reached(access, start, ends);
    let rule = rule_of(&steps);
    let severity = severity(start.whose, widest, certainty);
    let last = steps.last().map_or_else(String::new, |step| step.to.clone());
    let edge = catalogue::edge(&rule);
    Finding {
        id: id(&rule, &subject, &steps),
        message: format!(
            "{subject} ({}) reaches {last}: {}",
            access.owners.name(start.whose),
            edge.map_or("", |edge| edge.title.as_str()).to_lowercase_first()
        ),
        severity,
        customer: access.owners.name(start.whose).to_owned(),
        also: also(access, start),
        reaches,
        secrets,
        secret_count,
        certainty,
        path: steps,
        remedy: edge.map_or_else(String::new, |edge| edge.remedy.clone()),
        rule,
        subject,
    }
}

/// The rule of a finding: the first step that is more than being bound.
fn rule_of(steps: &[Step]) -> String {
    let first = steps.iter().find(|step| step.edge != "bound" && step.edge != "member-of");
    first.or(steps.last()).map_or_else(|| "bound".to_owned(), |step| step.edge.clone())
}

fn severity(whose: Whose, widest: u8, certainty: Certainty) -> Severity {
    let severity = if widest <= 1 { Severity::Critical } else { Severity::High };
    let lower = |severity| match severity {
        Severity::Critical => Severity::High,
        Severity::High => Severity::Medium,
        Severity::Medium | Severity::Low => Severity::Low,
    };
    let severity = if certainty == Certainty::Assumed { lower(severity) } else { severity };
    // Of a subject that is nobody's it is not known whether it should.
    if whose == Whose::UNKNOWN { lower(severity) } else { severity }
}

/// A short hash of what makes a finding the same one in each run.
pub fn id(rule: &str, subject: &str, steps: &[Step]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in [rule, subject].into_iter().chain(steps.iter().map(|step| step.object.as_str())) {
        hasher.update(part.as_bytes());
        hasher.update(&[0]);
    }
    let hex = hasher.finalize().to_hex();
    format!("{rule}-{}", hex.get(..8).unwrap_or_default())
}

/// How many Secrets each namespace holds.
#[derive(Debug)]
pub struct Counts(FxHashMap<(u16, Symbol), usize>);

impl Counts {
    /// Counts what was loaded.
    pub fn new(snapshot: &crate::Snapshot) -> Self {
        let mut counts: FxHashMap<(u16, Symbol), usize> = FxHashMap::default();
        for (cluster, facts) in (0u16..).zip(&snapshot.clusters) {
            for secret in &facts.secrets {
                *counts.entry((cluster, secret.namespace)).or_default() += 1;
            }
        }
        Self(counts)
    }
}

/// The foreign Secrets under some ends: as texts, how many, and whose.
fn reached(access: &Access, start: &Start, ends: &[(u8, NodeId)]) -> (Vec<String>, usize, Vec<String>) {
    let counts = access.counts();
    let is_own = |whose: Whose| whose == start.whose && start.whose != Whose::UNKNOWN;
    let mut texts = BTreeSet::new();
    let mut whole: BTreeSet<(u16, Symbol)> = BTreeSet::new();
    let mut single: BTreeSet<(u16, Symbol, Symbol)> = BTreeSet::new();
    for (_, end) in ends {
        let Some((cluster, Node::Fact(fact))) = access.graph.node(*end) else { continue };
        let prefix = access.explainer().prefix(*cluster);
        let name = |symbol: Symbol| access.snapshot.symbols.name(symbol);
        match fact {
            Fact::Everything(Scope::Cluster) | Fact::Secrets(Scope::Cluster) => {
                texts.insert(format!("{prefix}*/*"));
                whole.extend(counts.0.keys().filter(|(of, _)| of == cluster));
            }
            Fact::Everything(Scope::Namespace(ns)) | Fact::Secrets(Scope::Namespace(ns)) => {
                let is_new = whole.insert((*cluster, *ns));
                texts.extend(is_new.then(|| format!("{prefix}{}/*", name(*ns))));
            }
            Fact::Secret { namespace, name: own } => {
                let is_new =
                    !whole.contains(&(*cluster, *namespace)) && single.insert((*cluster, *namespace, *own));
                texts.extend(is_new.then(|| format!("{prefix}{}/{}", name(*namespace), name(*own))));
            }
            _ => {}
        }
    }
    single.retain(|(cluster, namespace, _)| !whole.contains(&(*cluster, *namespace)));
    let owner = |cluster: u16, namespace: Symbol| access.owners.of_namespace(cluster, namespace);
    whole.retain(|(cluster, namespace)| !is_own(owner(*cluster, *namespace)));
    single.retain(|(cluster, namespace, _)| !is_own(owner(*cluster, *namespace)));
    let count = whole.iter().filter_map(|key| counts.0.get(key)).sum::<usize>() + single.len();
    let with_secrets = whole.iter().filter(|key| counts.0.contains_key(key)).copied();
    let places = with_secrets.chain(single.iter().map(|(cluster, namespace, _)| (*cluster, *namespace)));
    let whose: BTreeSet<Whose> = places.map(|(cluster, namespace)| owner(cluster, namespace)).collect();
    let mut texts: Vec<String> = texts.into_iter().collect();
    if texts.len() > NAMES_MAX {
        let more = texts.len() - NAMES_MAX;
        texts.truncate(NAMES_MAX);
        texts.push(format!("… and {more} more"));
    }
    (texts, count, whose.into_iter().map(|whose| access.owners.name(whose).to_owned()).collect())
}

/// Others of the same owner that get to the start, so through it to what it reaches.
fn also(access: &Access, start: &Start) -> Vec<String> {
    if !start.whose.is_customer() {
        return Vec::new();
    }
    let before = access.reverse().upstream(&access.graph, &access.all, start.node);
    let explainer = access.explainer();
    let mut names: Vec<String> = access
        .starts
        .iter()
        .filter(|other| other.node != start.node && other.whose == start.whose && before.contains(other.node))
        .filter_map(|other| explainer.subject(other.cluster, &other.fact))
        .collect();
    names.sort();
    if names.len() > NAMES_MAX {
        let more = names.len() - NAMES_MAX;
        names.truncate(NAMES_MAX);
        names.push(format!("… and {more} more"));
    }
    names
}

/// Rights of customers that lead somewhere only if others do something: told, never counted.
fn soft(access: &Access) -> Vec<Finding> {
    let mut findings = Vec::new();
    for start in access.starts.iter().filter(|start| start.whose.is_customer()) {
        let Some(state) = access.graph.clusters.get(usize::from(start.cluster)) else { continue };
        let full = access.graph.find(start.cluster, Fact::Secrets(Scope::Cluster));
        let has_all = full.is_some_and(|full| access.proven.reaches(start.node, full));
        if has_all || !state.templates.iter().any(|template| template.gives == crate::Gift::Nothing) {
            continue;
        }
        let search = Search::new(&access.graph, start.node, &OwnRights(access));
        let mut seen = FxHashSet::default();
        for &node in search.reached() {
            let Some((cluster, Node::Need { template, scope, .. })) = access.graph.node(node) else {
                continue;
            };
            let is_foreign = match scope {
                Scope::Cluster => true,
                Scope::Namespace(ns) => access.owners.of_namespace(*cluster, *ns) != start.whose,
            };
            let explainer = access.explainer();
            if !is_foreign || !explainer.is_soft(*cluster, *template) {
                continue;
            }
            let single = access.graph.clusters.get(usize::from(*cluster));
            let single = single.and_then(|state| state.templates.get(*template as usize));
            let Some(said) = single.filter(|said| said.when.len() == 1) else { continue };
            let path = search.path(&access.graph, node);
            let mut steps = explainer.steps(&path);
            if !seen.insert((said.edge, first_hop(&path))) {
                continue;
            }
            let Some(edge) = catalogue::edge(said.edge) else { continue };
            steps.extend(last_rule(access, &path, said.edge, node));
            let subject = explainer.subject(start.cluster, &start.fact).unwrap_or_default();
            findings.push(Finding {
                id: id(said.edge, &subject, &steps),
                rule: said.edge.to_owned(),
                severity: edge.severity.min(Severity::Medium),
                message: format!(
                    "{subject} ({}) {}",
                    access.owners.name(start.whose),
                    edge.title.to_lowercase_first()
                ),
                customer: access.owners.name(start.whose).to_owned(),
                also: Vec::new(),
                reaches: Vec::new(),
                secrets: Vec::new(),
                secret_count: 0,
                certainty: search.certainty(node).unwrap_or(Certainty::Assumed),
                path: steps,
                remedy: edge.remedy.clone(),
                subject,
            });
        }
    }
    findings
}

/// The step of the rule that a way ends with, which leads to nothing that is followed.
fn last_rule(access: &Access, path: &[Hop], edge: &str, node: NodeId) -> Option<Step> {
    let Some(Hop::Edge { from, .. }) = path.last() else { return None };
    let explainer = access.explainer();
    let from = explainer.describe(*from);
    Some(Step {
        edge: edge.to_owned(),
        object: from.clone(),
        from,
        to: explainer.describe(node),
        rule: String::new(),
        at: None,
        guard: None,
        certainty: Certainty::Assumed,
    })
}

trait LowercaseFirst {
    fn to_lowercase_first(&self) -> String;
}

impl LowercaseFirst for str {
    fn to_lowercase_first(&self) -> String {
        let mut letters = self.chars();
        letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
    }
}
