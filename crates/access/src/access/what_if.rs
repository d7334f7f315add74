//! What would change: two analyses compared, subject by subject.

mod ends;
mod verdicts;

use std::collections::BTreeSet;
use std::rc::Rc;

use roaring::RoaringBitmap;
use rustc_hash::{FxHashMap, FxHashSet};

use self::ends::{Numbers, Sets};
use super::Access;
use crate::{
    answer::{self, Change, Finding, WhatIf},
    findings,
    graph::NodeId,
    judge::Start,
    owners::Whose,
};

/// How many Secrets a change lists.
const LISTED_MAX: usize = 100;

impl Access {
    /// What another state of the same clusters would change.
    pub fn what_if(&self, after: &Access, objects: Vec<String>) -> WhatIf {
        let touched = after.touched_since(self);
        let asked = touched.as_ref().map(|touched| Asked::new(self, after, touched));
        let is_touched =
            |start: &Start| asked.as_ref().is_none_or(|asked| asked.reaching.contains(start.node));
        let is_near = |start: &Start| asked.as_ref().is_none_or(|asked| asked.near.contains(start.node));
        let Compared { mut gained, mut lost, ends } = compare_ends(self, after, is_touched);
        for changes in [&mut gained, &mut lost] {
            changes
                .sort_by(|a: &Change, b| (b.foreign_count, &a.subject).cmp(&(a.foreign_count, &b.subject)));
        }
        let ways = |access| findings::ways_of(access, is_near);
        let (mut findings, resolved) = compare(ways(self), ways(after));
        if asked.is_some() {
            findings::tell_before(after, &mut findings);
        }
        WhatIf {
            schema: answer::WHAT_IF_SCHEMA.to_owned(),
            complete: self.is_complete() && after.is_complete(),
            gaps: after.gaps(),
            objects,
            gained,
            lost,
            verdicts: verdicts::changes(self, after, &ends),
            findings,
            resolved,
        }
    }
}

/// Who may reach something else, or by another way, once some nodes lead to others.
struct Asked {
    /// Whoever leads to one of them.
    reaching: RoaringBitmap,
    /// Whoever leads to one of them, or to somebody who reaches something else, by nobody else: findings are told of the
    /// last one before a way leaves.
    near: RoaringBitmap,
}

impl Asked {
    fn new(before: &Access, after: &Access, touched: &[NodeId]) -> Self {
        let is_somebody = |node: NodeId| after.graph.is_somebody(node);
        let mut roots = touched.to_vec();
        let mut pairs: FxHashMap<[*const RoaringBitmap; 2], bool> = FxHashMap::default();
        for (node, ..) in before.graph.nodes().filter(|(node, ..)| is_somebody(*node)) {
            let closures = [(&before.proven, &after.proven), (&before.all, &after.all)];
            let differs =
                closures.into_iter().any(|(before, after)| match (before.set(node), after.set(node)) {
                    (Some(before), Some(after)) => *pairs
                        .entry([Rc::as_ptr(before), Rc::as_ptr(after)])
                        .or_insert_with(|| !Rc::ptr_eq(before, after) && before != after),
                    (before, after) => before.is_some() || after.is_some(),
                });
            if differs {
                roots.push(node);
            }
        }
        let both = |roots: &[NodeId], is_end: &dyn Fn(NodeId) -> bool| {
            before.reverse().cone(roots, is_end) | after.reverse().cone(roots, is_end)
        };
        Self { reaching: both(touched, &|_| false), near: both(&roots, &is_somebody) }
    }
}

/// What subjects gain and lose, and all ends that somebody gains or loses.
struct Compared<'a> {
    gained: Vec<Change>,
    lost: Vec<Change>,
    ends: Vec<ends::End<'a>>,
}

fn compare_ends<'a>(
    before: &'a Access,
    after: &'a Access,
    is_touched: impl Fn(&Start) -> bool,
) -> Compared<'a> {
    let mut numbers = Numbers::default();
    let mut old_sets = Sets::new(before, &mut numbers);
    let mut new_sets = Sets::new(after, &mut numbers);
    let nothing = Rc::new(RoaringBitmap::new());
    let starts = |access: &'a Access| access.starts.iter().filter(|start| is_touched(start));
    let subject = |access: &Access, start: &Start| access.explainer().subject(start.cluster, &start.fact);
    let mut old: FxHashMap<String, &Start> =
        starts(before).filter_map(|start| Some((subject(before, start)?, start))).collect();
    let mut pairs: Vec<(String, Option<&Start>, Option<&Start>)> = Vec::new();
    for start in starts(after) {
        let Some(subject) = subject(after, start) else { continue };
        let was = old.remove(&subject);
        pairs.push((subject, was, Some(start)));
    }
    pairs.extend(old.into_iter().map(|(subject, start)| (subject, Some(start), None)));

    let mut compared = Compared { gained: Vec::new(), lost: Vec::new(), ends: Vec::new() };
    let mut changed = RoaringBitmap::new();
    let (mut gains, mut losses) = (Differences::default(), Differences::default());
    for (subject, was, is) in pairs {
        let old = was.map_or_else(|| Rc::clone(&nothing), |start| old_sets.of(start.node));
        let new = is.map_or_else(|| Rc::clone(&nothing), |start| new_sets.of(start.node));
        let owner =
            |access: &'a Access, start: Option<&Start>| start.map(|start| access.owners.name(start.whose));
        if owner(before, was) != owner(after, is) {
            changed |= old.as_ref() | new.as_ref();
        }
        if Rc::ptr_eq(&old, &new) || old == new {
            continue;
        }
        if let Some(start) = is {
            let difference = gains.of(&numbers, after, &new_sets, &new, &old);
            compared.gained.extend(difference.change(after, start, &subject));
        }
        if let Some(start) = was {
            let difference = losses.of(&numbers, before, &old_sets, &old, &new);
            compared.lost.extend(difference.change(before, start, &subject));
        }
    }
    for difference in gains.0.into_values().chain(losses.0.into_values()) {
        changed |= &difference.ends;
    }
    compared.ends = changed.iter().filter_map(|number| numbers.end(number)).collect();
    compared
}

/// What some sets hold that others do not. Many subjects reach the same.
#[derive(Default)]
struct Differences(FxHashMap<[*const RoaringBitmap; 2], Rc<Difference>>);

impl Differences {
    fn of(
        &mut self,
        numbers: &Numbers<'_>,
        access: &Access,
        sets: &Sets<'_>,
        all: &Rc<RoaringBitmap>,
        without: &Rc<RoaringBitmap>,
    ) -> Rc<Difference> {
        let key = [Rc::as_ptr(all), Rc::as_ptr(without)];
        let difference = self
            .0
            .entry(key)
            .or_insert_with(|| Rc::new(Difference::new(numbers, access, sets, all, without)));
        Rc::clone(difference)
    }
}

/// The ends of a set that another neither holds nor covers by a wider one.
struct Difference {
    ends: RoaringBitmap,
    /// The Secrets under them by owner.
    count: FxHashMap<Whose, usize>,
    /// The widest of them, as texts.
    texts: Vec<String>,
    /// The widest of them with some Secret, by whose that is.
    goals: Vec<(Whose, NodeId)>,
}

impl Difference {
    fn new(
        numbers: &Numbers<'_>,
        access: &Access,
        sets: &Sets<'_>,
        all: &RoaringBitmap,
        without: &RoaringBitmap,
    ) -> Self {
        let ends: RoaringBitmap =
            (all - without).iter().filter(|end| !numbers.is_covered(*end, without)).collect();
        let mut widest: Vec<u32> = ends.iter().filter(|end| !numbers.is_covered(*end, &ends)).collect();
        widest.sort_unstable_by_key(|number| numbers.end(*number));
        let mut difference = Self { ends, count: FxHashMap::default(), texts: Vec::new(), goals: Vec::new() };
        let mut whose_seen = FxHashSet::default();
        for (number, node) in widest.iter().filter_map(|number| Some((*number, sets.node(*number)?))) {
            for (whose, count) in access.counts().under(access, node) {
                *difference.count.entry(whose).or_default() += count;
                if whose_seen.insert(whose) {
                    difference.goals.push((whose, node));
                }
            }
            if difference.texts.len() < LISTED_MAX {
                difference.texts.extend(numbers.end(number).map(|end| end.to_string()));
            }
        }
        if let Some(more) = widest.len().checked_sub(LISTED_MAX).filter(|more| *more > 0) {
            difference.texts.push(format!("… and {more} more"));
        }
        if difference.goals.is_empty() {
            let first = widest.first().and_then(|number| sets.node(*number));
            difference.goals.extend(first.map(|node| (Whose::UNKNOWN, node)));
        }
        difference
    }

    fn change(&self, access: &Access, start: &Start, subject: &str) -> Option<Change> {
        if self.ends.is_empty() {
            return None;
        }
        let is_foreign = |whose: Whose| whose != start.whose || whose == Whose::UNKNOWN;
        let foreign =
            self.count.iter().filter(|(whose, _)| is_foreign(**whose)).map(|(_, count)| count).sum();
        let goal = self.goals.iter().find(|(whose, _)| is_foreign(*whose)).or(self.goals.first());
        let path = goal.map_or_else(Vec::new, |(_, goal)| {
            access.explainer().steps(&findings::way(access, start.node, *goal))
        });
        Some(Change {
            subject: subject.to_owned(),
            customer: access.owners.name(start.whose).to_owned(),
            secret_count: self.count.values().sum(),
            foreign_count: foreign,
            secrets: self.texts.clone(),
            path,
        })
    }
}

/// Findings that are new, and ids of those that are gone.
pub fn compare(before: Vec<Finding>, after: Vec<Finding>) -> (Vec<Finding>, Vec<String>) {
    let old: BTreeSet<String> = before.iter().map(|finding| finding.id.clone()).collect();
    let new: BTreeSet<String> = after.iter().map(|finding| finding.id.clone()).collect();
    let resolved = before.into_iter().map(|f| f.id).filter(|id| !new.contains(id)).collect();
    (after.into_iter().filter(|finding| !old.contains(&finding.id)).collect(), resolved)
}
