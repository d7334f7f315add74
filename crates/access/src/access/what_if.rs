//! What would change: two analyses compared, subject by subject.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::{Access, Subjects};
use crate::{
    Fact, Scope,
    answer::{self, Change, Finding, Verdict, VerdictChange, WhatIf},
    findings,
    graph::{Node, NodeId},
    judge::Start,
    owners::Whose,
    search::{Anywhere, Search},
};

/// How many Secrets a change lists.
const LISTED_MAX: usize = 100;

/// An end by name, the same in two analyses.
type End = (String, String, String);

impl Access {
    /// What another state of the same clusters would change.
    pub fn what_if(&self, after: &Access, objects: Vec<String>) -> WhatIf {
        let mut gained = Vec::new();
        let mut lost = Vec::new();
        let before_by_name = self.ends_by_subject();
        let after_by_name = after.ends_by_subject();
        for (subject, (start, ends)) in &after_by_name {
            let old = before_by_name.get(subject).map(|(_, ends)| ends);
            let new: BTreeSet<&End> = ends.iter().filter(|end| !covers(old, end)).collect();
            gained.extend(after.change(start, &new));
        }
        for (subject, (start, ends)) in &before_by_name {
            let new = after_by_name.get(subject).map(|(_, ends)| ends);
            let gone: BTreeSet<&End> = ends.iter().filter(|end| !covers(new, end)).collect();
            lost.extend(self.change(start, &gone));
        }
        for changes in [&mut gained, &mut lost] {
            changes
                .sort_by(|a: &Change, b| (b.foreign_count, &a.subject).cmp(&(a.foreign_count, &b.subject)));
        }
        let (new_findings, resolved) = compare(findings::ways(self), findings::ways(after));
        WhatIf {
            schema: answer::WHAT_IF_SCHEMA.to_owned(),
            complete: self.is_complete() && after.is_complete(),
            gaps: after.gaps(),
            objects,
            gained,
            lost,
            verdicts: self.verdict_changes(after),
            findings: new_findings,
            resolved,
        }
    }

    /// The ends about Secrets that each subject reaches, by name. Equal sets are named once.
    fn ends_by_subject(&self) -> BTreeMap<String, (Start, std::rc::Rc<BTreeSet<End>>)> {
        let mut named: FxHashMap<*const roaring::RoaringBitmap, std::rc::Rc<BTreeSet<End>>> =
            FxHashMap::default();
        let explainer = self.explainer();
        let mut subjects = BTreeMap::new();
        for start in &self.starts {
            let Some(set) = self.all.set(start.node) else { continue };
            let ends = named.entry(std::rc::Rc::as_ptr(set)).or_insert_with(|| {
                std::rc::Rc::new(set.iter().filter_map(|end| self.end_name(end)).collect())
            });
            if let Some(subject) = explainer.subject(start.cluster, &start.fact) {
                subjects.insert(subject, (*start, std::rc::Rc::clone(ends)));
            }
        }
        subjects
    }

    fn end_name(&self, end: NodeId) -> Option<End> {
        let (cluster, Node::Fact(fact)) = self.graph.node(end)? else { return None };
        let cluster = self.snapshot.clusters.get(usize::from(*cluster))?.name.clone();
        let name = |symbol| self.snapshot.symbols.name(symbol).to_owned();
        match fact {
            Fact::Secrets(Scope::Cluster) => Some((cluster, "*".to_owned(), "*".to_owned())),
            Fact::Secrets(Scope::Namespace(namespace)) => Some((cluster, name(*namespace), "*".to_owned())),
            Fact::Secret { namespace, name: own } => Some((cluster, name(*namespace), name(*own))),
            _ => None,
        }
    }

    fn change(&self, start: &Start, ends: &BTreeSet<&End>) -> Option<Change> {
        if ends.is_empty() {
            return None;
        }
        let explainer = self.explainer();
        let mut count = 0;
        let mut foreign = 0;
        let mut first: Option<(bool, NodeId)> = None;
        for (cluster, facts) in (0u16..).zip(&self.snapshot.clusters) {
            for secret in &facts.secrets {
                let name = |symbol| self.snapshot.symbols.name(symbol).to_owned();
                let key = (facts.name.clone(), name(secret.namespace), name(secret.name));
                if !ends.iter().any(|end| is_under(&key, end)) {
                    continue;
                }
                let owner = self.owners.of_namespace(cluster, secret.namespace);
                let is_foreign = owner != start.whose || owner == Whose::UNKNOWN;
                count += 1;
                foreign += usize::from(is_foreign);
                if first.is_none_or(|(was_foreign, _)| is_foreign && !was_foreign) {
                    let goals = crate::judge::ends_of(&self.graph, cluster, secret.namespace, secret.name);
                    let goal = goals.filter(|goal| self.all.reaches(start.node, *goal)).last();
                    first = goal.map(|goal| (is_foreign, goal)).or(first);
                }
            }
        }
        let path = first.map_or_else(Vec::new, |(_, goal)| {
            let search = Search::new(&self.graph, start.node, &Anywhere);
            explainer.steps(&search.path(&self.graph, goal))
        });
        let is_covered = |end: &&&End| {
            let star = || "*".to_owned();
            let wider = [(end.0.clone(), star(), star()), (end.0.clone(), end.1.clone(), star())];
            wider.iter().any(|wide| wide != **end && ends.contains(wide))
        };
        let widest = ends.iter().filter(|end| !is_covered(end));
        let mut secrets: Vec<String> = widest.map(|(_, ns, name)| format!("{ns}/{name}")).collect();
        if secrets.len() > LISTED_MAX {
            let more = secrets.len() - LISTED_MAX;
            secrets.truncate(LISTED_MAX);
            secrets.push(format!("… and {more} more"));
        }
        Some(Change {
            subject: explainer.subject(start.cluster, &start.fact)?,
            customer: self.owners.name(start.whose).to_owned(),
            secret_count: count,
            foreign_count: foreign,
            secrets,
            path,
        })
    }

    fn verdict_changes(&self, after: &Access) -> Vec<VerdictChange> {
        let verdicts = |access: &Access| -> BTreeMap<String, Verdict> {
            let entries = access.secret_entries(Subjects::None).into_iter();
            let first = access.snapshot.clusters.first().map(|cluster| cluster.name.clone());
            entries
                .map(|secret| {
                    let prefix = match &first {
                        Some(first) if *first != secret.cluster => format!("{}:", secret.cluster),
                        _ => String::new(),
                    };
                    (format!("{prefix}{}/{}", secret.namespace, secret.name), secret.verdict)
                })
                .collect()
        };
        let (before, after) = (verdicts(self), verdicts(after));
        let all: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        all.into_iter()
            .map(|secret| VerdictChange {
                secret: secret.clone(),
                before: before.get(secret).copied(),
                after: after.get(secret).copied(),
            })
            .filter(|change| change.before != change.after)
            .collect()
    }
}

fn is_under(secret: &End, end: &End) -> bool {
    secret.0 == end.0 && (end.1 == "*" || (end.1 == secret.1 && (end.2 == "*" || end.2 == secret.2)))
}

/// Whether an end was reached already, itself or by what is wider.
fn covers(ends: Option<&std::rc::Rc<BTreeSet<End>>>, end: &End) -> bool {
    let star = || "*".to_owned();
    ends.is_some_and(|ends| {
        ends.contains(end)
            || ends.contains(&(end.0.clone(), star(), star()))
            || ends.contains(&(end.0.clone(), end.1.clone(), star()))
    })
}

/// Findings that are new, and ids of those that are gone.
pub fn compare(before: Vec<Finding>, after: Vec<Finding>) -> (Vec<Finding>, Vec<String>) {
    let old: BTreeSet<String> = before.iter().map(|finding| finding.id.clone()).collect();
    let new: BTreeSet<String> = after.iter().map(|finding| finding.id.clone()).collect();
    let resolved = before.into_iter().map(|f| f.id).filter(|id| !new.contains(id)).collect();
    (after.into_iter().filter(|finding| !old.contains(&finding.id)).collect(), resolved)
}
