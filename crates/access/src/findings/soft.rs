//! Rights of customers that lead somewhere only if others do something: told, never counted.

use rustc_hash::FxHashSet;

use super::{LowercaseFirst as _, id, limits::OwnRights};
use crate::{
    Certainty, Fact, Gift, Need, Place, Scope,
    access::Access,
    answer::{Finding, Severity, Step},
    catalogue,
    graph::{ClusterState, Match, Needs, Node, NodeId, role_matches},
    judge::Start,
    search::Search,
};

/// Rights of customers that lead somewhere only if others do something: told, never counted.
pub fn soft(access: &Access) -> Vec<Finding> {
    let mut findings = Vec::new();
    let needs: Vec<Needs> = access.graph.clusters.iter().map(|state| Needs::new(&state.templates)).collect();
    for start in access.starts.iter().filter(|start| start.whose.is_customer()) {
        let Some(needs) = needs.get(usize::from(start.cluster)) else { continue };
        let Some(state) = access.graph.clusters.get(usize::from(start.cluster)) else { continue };
        let full = access.graph.find(start.cluster, Fact::Secrets(Scope::Cluster));
        let has_all = full.is_some_and(|full| access.proven.reaches(start.node, full));
        if has_all || !state.templates.iter().any(|template| template.gives == crate::Gift::Nothing) {
            continue;
        }
        let search = Search::new(&access.graph, start.node, &OwnRights(access));
        let mut seen = FxHashSet::default();
        for &node in search.reached() {
            for (found, scope) in soft_rights(access, state, needs, node) {
                let is_foreign = match scope {
                    Scope::Cluster => true,
                    Scope::Namespace(ns) => access.owners.of_namespace(start.cluster, ns) != start.whose,
                };
                let Some(said) = state.templates.get(found.template as usize).filter(|_| is_foreign) else {
                    continue;
                };
                let path = search.path(&access.graph, node);
                let first = path.first().map(|hop| hop.edge.to);
                if seen.insert((said.edge, first)) {
                    let mut steps = access.explainer().steps(&path);
                    steps.push(access.explainer().soft_step(node, &found, scope));
                    let certainty = search.certainty(node).unwrap_or(Certainty::Assumed);
                    findings.extend(soft_finding(access, start, said.edge, steps, certainty));
                }
            }
        }
    }
    findings
}

/// The rights of a role that only make findings, and where each is held.
fn soft_rights(access: &Access, state: &ClusterState, needs: &Needs, node: NodeId) -> Vec<(Match, Scope)> {
    let Some((_, Node::Fact(Fact::Role { namespace, name, scope }))) = access.graph.node(node) else {
        return Vec::new();
    };
    let roles = &state.rbac.roles;
    let role = roles.find((*namespace, *name)).and_then(|role| roles.all().get(role));
    let is_soft = |found: &Match| {
        let said = state.templates.get(found.template as usize);
        said.is_some_and(|said| said.gives == Gift::Nothing && said.when.len() == 1)
    };
    let found = role
        .map_or_else(Vec::new, |role| role_matches(role, needs, &state.templates, &access.snapshot.symbols));
    let at = |found: Match| {
        let need = state.templates.get(found.template as usize)?.when.get(usize::from(found.need))?;
        let Need::Right { place, .. } = need else { return None };
        match (place, scope) {
            (Place::Here, _) | (_, Scope::Cluster) => Some((found, *scope)),
            (Place::In(wanted), Scope::Namespace(at)) if wanted == at => Some((found, Scope::Cluster)),
            _ => None,
        }
    };
    found.into_iter().filter(is_soft).filter_map(at).collect()
}

fn soft_finding(
    access: &Access,
    start: &Start,
    rule: &str,
    steps: Vec<Step>,
    certainty: Certainty,
) -> Option<Finding> {
    let edge = catalogue::edge(rule)?;
    let subject = access.explainer().subject(start.cluster, &start.fact).unwrap_or_default();
    let customer = access.owners.name(start.whose);
    Some(Finding {
        id: id(rule, &subject, &steps),
        rule: rule.to_owned(),
        severity: edge.severity.min(Severity::Medium),
        message: format!("{subject} ({customer}) {}", edge.title.to_lowercase_first()),
        customer: customer.to_owned(),
        also: Vec::new(),
        reaches: Vec::new(),
        secrets: Vec::new(),
        secret_count: 0,
        certainty,
        path: steps,
        remedy: edge.remedy.clone(),
        subject,
    })
}
