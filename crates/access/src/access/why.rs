//! The ways from one subject to one Secret.

use rustc_hash::FxHashSet;

use super::Access;
use crate::{
    Symbol,
    answer::{self, Why, WhyPath},
    graph::{Edge, NodeId},
    judge,
    question::{QuestionError, SecretRef, SubjectRef},
    search::{Hop, Limits, Search, is_choice},
};

impl Access {
    /// Ways from a subject to a Secret: the shortest, and others that start by another binding.
    pub fn why(
        &self,
        subject: &SubjectRef,
        secret: &SecretRef,
        alternates: usize,
    ) -> Result<Why, QuestionError> {
        let start = self.start(subject)?;
        let cluster = self.cluster(secret.cluster.as_deref())?;
        let find = |name: &str| self.snapshot.symbols.find(name).unwrap_or(Symbol::UNKNOWN);
        let goals: Vec<NodeId> =
            judge::ends_of(&self.graph, cluster, find(&secret.namespace), find(&secret.name)).collect();
        let explainer = self.explainer();
        let mut banned = Banned::default();
        let mut paths: Vec<WhyPath> = Vec::new();
        while paths.len() <= alternates {
            let search = Search::new(&self.graph, start.node, &banned);
            let best = goals
                .iter()
                .filter_map(|goal| {
                    let certainty = search.certainty(*goal)?;
                    let path = search.path(&self.graph, *goal);
                    Some((certainty, path.len(), path))
                })
                .min_by_key(|(certainty, length, _)| (*certainty, *length));
            let Some((certainty, _, path)) = best else { break };
            let steps = explainer.steps(&path);
            if !banned.ban(start.node, &path) {
                paths.push(WhyPath { certainty, steps });
                break;
            }
            paths.push(WhyPath { certainty, steps });
        }
        Ok(Why {
            schema: answer::WHY_SCHEMA.to_owned(),
            complete: self.is_complete(),
            gaps: self.gaps(),
            subject: explainer.subject(start.cluster, &start.fact).unwrap_or_default(),
            customer: self.owners.name(start.whose).to_owned(),
            secret: secret.to_string(),
            reached: !paths.is_empty(),
            paths,
        })
    }
}

/// Edges that an alternate way may not use.
#[derive(Debug, Default)]
struct Banned(FxHashSet<(NodeId, NodeId)>);

impl Banned {
    /// Bans the first edge of a way that is a choice: a binding, else whatever comes first. Whether one was.
    fn ban(&mut self, start: NodeId, path: &[Hop]) -> bool {
        let choice = path.iter().find(|hop| is_choice(&hop.edge));
        let chosen = choice.or_else(|| path.iter().find(|hop| hop.from == start));
        chosen.is_some_and(|hop| self.0.insert((hop.from, hop.edge.to)))
    }
}

impl Limits for Banned {
    fn edge(&self, from: NodeId, edge: &Edge) -> bool {
        !self.0.contains(&(from, edge.to))
    }

    fn inputs_beyond(&self) -> bool {
        false
    }
}
