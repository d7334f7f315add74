//! Findings: for each way out of what is somebody's own, the place where it leaves.
//!
//! A way that goes through another identity of the same customer is a finding of that identity, so each hole is told
//! once, at its root, and names who else gets there.

mod ends;
mod limits;
mod soft;

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

pub use self::ends::Counts;
use self::{
    ends::{Widest, foreign_rank, reached},
    limits::{Own, Towards},
};
use crate::{
    Certainty,
    access::Access,
    answer::{Finding, Severity, Step},
    catalogue,
    graph::{Node, NodeId, Via},
    judge::Start,
    owners::Whose,
    search::{Hop, Search},
};

/// How many different ways out of one subject are told.
const WAYS_MAX: usize = 50;
/// How many ends of one subject are looked at.
const ENDS_MAX: usize = 200;
/// How many names a finding lists.
const NAMES_MAX: usize = 50;

/// All findings about ways, worst first.
pub fn ways(access: &Access) -> Vec<Finding> {
    ways_of(access, |_| true)
}

/// Findings about the ways of some, worst first. Who else gets to them is told if these are asked about, too.
pub fn ways_of(access: &Access, is_asked: impl Fn(&Start) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut ways_out = Vec::new();
    let mut widest = Widest::default();
    for start in access.starts.iter().filter(|start| is_asked(start)) {
        if start.whose == Whose::UNKNOWN {
            findings.extend(of_unknown(access, start, &mut widest));
        } else if start.whose != Whose::PLATFORM && widest.of(access, start, start.node).is_some() {
            ways_out.push(ways_out_of(access, start, &mut widest));
        }
    }
    let before = Before::new(&ways_out);
    for of in &ways_out {
        findings.extend(of_start(access, of, &before));
    }
    findings.extend(soft::soft(access));
    sort(&mut findings);
    findings
}

/// Tells of findings who else of the same owner gets to their subjects.
pub fn tell_before(access: &Access, findings: &mut [Finding]) {
    let explainer = access.explainer();
    let name = |start: &&Start| explainer.subject(start.cluster, &start.fact);
    let by_name: FxHashMap<&str, usize> =
        findings.iter().enumerate().map(|(index, finding)| (finding.subject.as_str(), index)).collect();
    let of: Vec<&Start> = access
        .starts
        .iter()
        .filter(|start| {
            start.whose.is_customer() && name(start).is_some_and(|name| by_name.contains_key(name.as_str()))
        })
        .collect();
    let nodes: Vec<NodeId> = of.iter().map(|start| start.node).collect();
    let cone = access.reverse().cone(&nodes, |_| false);
    let owners: BTreeSet<Whose> = of.iter().map(|start| start.whose).collect();
    let mut widest = Widest::default();
    let before =
        access.starts.iter().filter(|start| owners.contains(&start.whose) && cone.contains(start.node));
    let ways_out: Vec<WaysOut<'_>> = before
        .filter(|start| widest.of(access, start, start.node).is_some())
        .collect::<Vec<_>>()
        .into_iter()
        .map(|start| ways_out_of(access, start, &mut widest))
        .collect();
    let before = Before::new(&ways_out);
    let also: FxHashMap<String, Vec<String>> =
        of.iter().filter_map(|start| Some((name(start)?, before.names(access, start)))).collect();
    for finding in findings {
        if let Some(also) = also.get(&finding.subject) {
            finding.also.clone_from(also);
        }
    }
}

/// The widest way out of somebody of whom nobody knows whose it is: of each it is enough to know how far it gets.
fn of_unknown(access: &Access, start: &Start, widest: &mut Widest) -> Option<Finding> {
    let (certainty, rank, end) = widest.of(access, start, start.node)?;
    let path = way(access, start.node, end);
    let own = Own { access, start };
    // What leads through a neighbour, or through what everybody may do, is told there.
    let elsewhere = |hop: &Hop| {
        let somebody = own.somebody(hop.from).filter(|_| hop.from != start.node);
        matches!(hop.edge.via, Via::Plain("member-of"))
            || somebody.is_some_and(|(cluster, fact)| own.is_told_there(cluster, &fact))
    };
    if path.is_empty() || path.iter().any(elsewhere) {
        return None;
    }
    let leaves = path.iter().position(|hop| own.somebody(hop.edge.to).is_some());
    let path = path.split_at(leaves.map_or(path.len(), |at| at + 1));
    Some(finding(access, start, certainty, path, &[(rank, end)], &[]))
}

/// The way from a node to an end that it reaches.
pub fn way(access: &Access, from: NodeId, end: NodeId) -> Vec<Hop> {
    Search::find(&access.graph, from, &Towards(&access.all, end), &[end]).path(&access.graph, end)
}

/// Sorts worst first, then by subject and id.
pub fn sort(findings: &mut [Finding]) {
    findings.sort_by(|a, b| {
        b.severity.cmp(&a.severity).then_with(|| (&a.subject, &a.id).cmp(&(&b.subject, &b.id)))
    });
}

/// The ways out of one start.
struct WaysOut<'a> {
    start: &'a Start,
    /// For each, the way to where it leaves, and what leaves by it.
    groups: Vec<(Vec<Hop>, Vec<Out>)>,
    /// Identities of the same owner that it gets to.
    own: Vec<NodeId>,
}

fn ways_out_of<'a>(access: &Access, start: &'a Start, widest: &mut Widest) -> WaysOut<'a> {
    let own = Own { access, start };
    let search = Search::new(&access.graph, start.node, &own);
    let mut outs: Vec<Out> = Vec::new();
    let mut everywhere: FxHashSet<NodeId> = FxHashSet::default();
    for &node in search.reached().iter().filter(|node| **node != start.node) {
        let Some(certainty) = search.certainty(node) else { continue };
        if let Some(rank) = foreign_rank(access, start, node) {
            outs.push(Out { certainty, rank, end: node, at: node });
        } else if own.is_exit(node) {
            // Of many that one power gives, one that is proven to lead everywhere is enough.
            let before = search.before(node).unwrap_or(node);
            if everywhere.contains(&before) {
                continue;
            }
            if let Some((sure, rank, end)) = widest.of(access, start, node) {
                let certainty = certainty.max(sure);
                if rank == 0 && certainty == Certainty::Proven {
                    everywhere.insert(before);
                }
                outs.push(Out { certainty, rank, end, at: node });
            }
        }
    }
    outs.sort_unstable_by_key(|out| (out.certainty, out.rank, out.end, out.at));
    outs.truncate(ENDS_MAX);
    let mut groups: Vec<(Vec<Hop>, Vec<Out>)> = Vec::new();
    let mut by_first: FxHashMap<(Certainty, NodeId, u64), usize> = FxHashMap::default();
    for out in outs {
        let path = search.path(&access.graph, out.at);
        let (to, by) = first_hop(&path);
        let key = (out.certainty, to, by);
        let proven = by_first.get(&(Certainty::Proven, to, by)).and_then(|index| groups.get(*index));
        let is_all = |(_, outs): &(Vec<Hop>, Vec<Out>)| outs.first().is_some_and(|first| first.rank <= 1);
        if out.certainty == Certainty::Assumed && proven.is_some_and(is_all) {
            // The same way is proven to lead to all there is.
            continue;
        }
        match by_first.get(&key) {
            Some(index) => {
                if let Some((_, outs)) = groups.get_mut(*index) {
                    outs.push(out);
                }
            }
            None if groups.len() < WAYS_MAX => {
                by_first.insert(key, groups.len());
                groups.push((path, vec![out]));
            }
            None => {}
        }
    }
    let told_there =
        search.reached().iter().copied().filter(|node| {
            own.somebody(*node).is_some_and(|(cluster, fact)| own.is_told_there(cluster, &fact))
        });
    WaysOut { start, groups, own: told_there.collect() }
}

fn of_start(access: &Access, of: &WaysOut<'_>, before: &Before) -> Vec<Finding> {
    let start = of.start;
    let also = if of.groups.is_empty() { Vec::new() } else { before.names(access, start) };
    let told = of.groups.iter().filter_map(|(path, outs)| {
        let first = *outs.first()?;
        let beyond = if first.at == first.end { Vec::new() } else { way(access, first.at, first.end) };
        let ends = ends_beyond(access, start, outs);
        Some(finding(access, start, first.certainty, (path, &beyond), &ends, &also))
    });
    told.collect()
}

/// A place where a way leaves, and the widest end that it leads to.
#[derive(Clone, Copy)]
struct Out {
    certainty: Certainty,
    rank: u8,
    end: NodeId,
    /// Where it leaves: the end itself, or somebody else's identity.
    at: NodeId,
}

/// All ends that are reached by some ways out.
fn ends_beyond(access: &Access, start: &Start, outs: &[Out]) -> Vec<(u8, NodeId)> {
    let mut ends: BTreeSet<(u8, NodeId)> = outs.iter().map(|out| (out.rank, out.end)).collect();
    if ends.first().is_none_or(|(rank, _)| *rank > 1) {
        let exits = outs.iter().filter(|out| out.at != out.end);
        let sets = exits.filter_map(|out| match out.certainty {
            Certainty::Proven => access.proven.set(out.at),
            Certainty::Assumed => access.all.set(out.at),
        });
        for end in sets.flat_map(|set| set.iter()) {
            ends.extend(foreign_rank(access, start, end).map(|rank| (rank, end)));
            if ends.len() >= ENDS_MAX {
                break;
            }
        }
    }
    ends.into_iter().collect()
}

/// Ways that leave by the same binding are one.
fn first_hop(path: &[Hop]) -> (NodeId, u64) {
    match path.first() {
        Some(Hop { edge, .. }) => match edge.via {
            Via::Binding(binding) | Via::Admitted { binding, .. } => (0, u64::from(binding)),
            _ => (edge.to, u64::MAX),
        },
        None => (u32::MAX, u64::MAX),
    }
}

/// The finding of a way: up to where it leaves, by which the finding is known again, and beyond.
fn finding(
    access: &Access,
    start: &Start,
    certainty: Certainty,
    (own, beyond): (&[Hop], &[Hop]),
    ends: &[(u8, NodeId)],
    also: &[String],
) -> Finding {
    let explainer = access.explainer();
    let steps = explainer.steps(&[own, beyond].concat());
    let subject = explainer.subject(start.cluster, &start.fact).unwrap_or_default();
    let widest = ends.iter().min().map_or(5, |(rank, _)| *rank);
    let (secrets, secret_count, reaches) = reached(access, start, ends);
    let rule = rule_of(&steps);
    let severity = severity(start.whose, widest, certainty);
    let last = steps.last().map_or_else(String::new, |step| step.to.clone());
    let edge = catalogue::edge(&rule);
    Finding {
        id: id(&rule, &subject, &explainer.steps(own)),
        message: format!(
            "{subject} ({}) reaches {last}: {}",
            access.owners.name(start.whose),
            edge.map_or("", |edge| edge.title.as_str()).to_lowercase_first()
        ),
        severity,
        customer: access.owners.name(start.whose).to_owned(),
        also: also.to_vec(),
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

/// A short hash of what makes a finding the same one in each run: by which objects the way leads, and where it leaves.
pub fn id(rule: &str, subject: &str, steps: &[Step]) -> String {
    let mut hasher = blake3::Hasher::new();
    let objects = steps.iter().map(|step| step.object.as_str());
    let last = steps.last().map(|step| step.to.as_str());
    for part in [rule, subject].into_iter().chain(objects).chain(last) {
        hasher.update(part.as_bytes());
        hasher.update(&[0]);
    }
    let hex = hasher.finalize().to_hex();
    format!("{rule}-{}", hex.get(..8).unwrap_or_default())
}

/// Who of the same owner gets to an identity directly, by the identity.
struct Before(FxHashMap<NodeId, Vec<NodeId>>);

impl Before {
    fn new(ways_out: &[WaysOut<'_>]) -> Self {
        let mut before: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
        for of in ways_out {
            for node in of.own.iter().filter(|node| **node != of.start.node) {
                before.entry(*node).or_default().push(of.start.node);
            }
        }
        Self(before)
    }

    /// Others of the same owner that get to the start, so through it to what it reaches.
    fn names(&self, access: &Access, start: &Start) -> Vec<String> {
        if !start.whose.is_customer() {
            return Vec::new();
        }
        let mut found = FxHashSet::from_iter([start.node]);
        let mut open = vec![start.node];
        while let Some(node) = open.pop() {
            let fresh = self.0.get(&node).into_iter().flatten().filter(|node| found.insert(**node));
            open.extend(fresh.copied().collect::<Vec<_>>());
        }
        found.remove(&start.node);
        let explainer = access.explainer();
        let subject = |node: NodeId| match access.graph.node(node)? {
            (cluster, Node::Fact(fact)) => explainer.subject(*cluster, fact),
            _ => None,
        };
        let mut names: Vec<String> = found.into_iter().filter_map(subject).collect();
        names.sort();
        if names.len() > NAMES_MAX {
            let more = names.len() - NAMES_MAX;
            names.truncate(NAMES_MAX);
            names.push(format!("… and {more} more"));
        }
        names
    }
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
