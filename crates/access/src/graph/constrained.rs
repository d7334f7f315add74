//! Constrained impersonation (KEP-5284, on since 1.36): one right says as whom, another one what for.
//!
//! The first is `impersonate:MODE` in the group authentication.k8s.io, on the ServiceAccount in its namespace, or on the
//! user and its groups in the cluster. The second is `impersonate-on:MODE:VERB` on what is asked for, where that is. Both
//! are the requester's own. It then does what both it and the impersonated one may do. What the API server checks while
//! it serves the request (bind, escalate, approve, create for a server-side apply) it checks for the impersonated one
//! alone. `system:masters` is never reached, nor accounts and nodes as users.

use super::{
    Node, NodeId, Via,
    build::Builder,
    matches::{Existing, Match, rule_matches},
};
use crate::{
    Certainty, Identity, Named, Need, RuleFact, Scope, SubjectKind, Symbol, Template, rbac::binding_scope,
};

const GROUP: &str = "authentication.k8s.io";
/// Modes with the resource that the first right is about. Those for nodes are not followed.
const MODES: [(&str, &str); 3] =
    [("serviceaccount", "serviceaccounts"), ("user-info", "users"), ("user-info", "groups")];

/// Whom a requester may act as: by mode and resource, where, and of which name.
type Whom = (&'static str, &'static str, Scope, Option<Symbol>);

impl Builder<'_> {
    /// The edges from an identity to those that it acts as for certain requests.
    pub fn constrained(&mut self, id: NodeId, identity: Identity) {
        let Some(group) = self.symbols.find(GROUP) else { return };
        if !self.roles_of(identity).iter().any(|(role, _)| self.matches(*role).constrained) {
            return;
        }
        let held = self.rules_of(identity);
        let whom: Vec<Whom> =
            held.iter().flat_map(|(rule, _, _, scope)| self.whom(rule, group, *scope)).collect();
        if whom.is_empty() {
            return;
        }
        for mode in ["serviceaccount", "user-info"] {
            let on: Vec<(RuleFact, Scope)> = held
                .iter()
                .filter_map(|(rule, _, _, scope)| Some((self.allowed_on(rule, mode)?, *scope)))
                .collect();
            if on.is_empty() {
                continue;
            }
            if self.is_large() {
                self.limit("constrained impersonation");
                continue;
            }
            for as_whom in self.candidates_of(&whom, mode) {
                let acting = Node::ActingFor { holder: id, identity: as_whom };
                let node = self.node(acting);
                self.made.forget(node, |_| true);
                self.own.remove(&node);
                self.edge(id, node, Via::Plain("impersonate-constrained"));
                self.act_for(node, as_whom, &on);
                self.note_holds(node, acting);
            }
        }
    }

    /// Whether a role says as whom one may act.
    pub fn is_constrained(&self, role: u32) -> bool {
        let group = self.symbols.find(GROUP);
        let says =
            |verb: &Symbol| *verb == Symbol::STAR || self.symbols.name(*verb).starts_with("impersonate:");
        self.role(role).is_some_and(|role| {
            role.rules.iter().any(|rule| {
                group.is_some_and(|group| rule.api_groups.contains(&group)) && rule.verbs.iter().any(says)
            })
        })
    }

    /// Whom a rule lets one act as.
    fn whom(&self, rule: &RuleFact, group: Symbol, scope: Scope) -> Vec<Whom> {
        let has = |list: &[Symbol], wanted: &str| {
            list.iter().any(|one| *one == Symbol::STAR || self.symbols.name(*one) == wanted)
        };
        // Who may do everything in every group impersonates anyway.
        if !rule.api_groups.contains(&group) {
            return Vec::new();
        }
        let mut whom = Vec::new();
        for (mode, resource) in MODES {
            let fits = has(&rule.verbs, &format!("impersonate:{mode}")) && has(&rule.resources, resource);
            if fits && (mode == "serviceaccount" || scope == Scope::Cluster) {
                let names = rule.resource_names.iter().map(|name| Some(*name));
                let all = rule.resource_names.is_empty().then_some(None);
                whom.extend(names.chain(all).map(|name| (mode, resource, scope, name)));
            }
        }
        whom
    }

    /// What a rule allows while one acts as somebody: the same rule with the bare verbs.
    fn allowed_on(&self, rule: &RuleFact, mode: &str) -> Option<RuleFact> {
        let prefix = format!("impersonate-on:{mode}:");
        let bare = |verb: &Symbol| {
            if *verb == Symbol::STAR {
                return Some(Symbol::STAR);
            }
            self.symbols.find(self.symbols.name(*verb).strip_prefix(&prefix)?)
        };
        let verbs: Vec<Symbol> = rule.verbs.iter().filter_map(bare).collect();
        (!verbs.is_empty()).then(|| RuleFact { verbs, ..rule.clone() })
    }

    /// The identities that hold anything and that one may act as in a mode.
    fn candidates_of(&self, whom: &[Whom], mode: &str) -> Vec<Identity> {
        let cluster_wide = |kind, name| Identity { kind, namespace: Symbol::EMPTY, name };
        let named: Vec<Identity> = self.subjects().filter_map(crate::rbac::identity_of).collect();
        let manager = cluster_wide(SubjectKind::User, self.state.names.controller_manager);
        let users = whom.iter().any(|(_, resource, ..)| *resource == "users");
        let mut all = Vec::new();
        for &(_, resource, scope, name) in whom.iter().filter(|(of, ..)| *of == mode) {
            let kind = match resource {
                "serviceaccounts" => {
                    all.extend(self.accounts_of(scope, name));
                    continue;
                }
                "users" => SubjectKind::User,
                // A group comes with a user.
                _ if !users => continue,
                _ => SubjectKind::Group,
            };
            let known = named.iter().chain([&manager]).filter(|identity| identity.kind == kind);
            all.extend(known.filter(|identity| name.is_none_or(|name| name == identity.name)).copied());
        }
        let masters = self.state.names.masters;
        let node = |identity: &Identity| self.symbols.name(identity.name).starts_with("system:node:");
        all.retain(|identity| match identity.kind {
            SubjectKind::User => !node(identity),
            SubjectKind::Group => identity.name != masters,
            SubjectKind::ServiceAccount => true,
        });
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The rules of an identity and of its implicit groups: with their role, index, and where they are held.
    fn rules_of(&self, identity: Identity) -> Vec<(RuleFact, u32, u16, Scope)> {
        let mut rules = Vec::new();
        let mut next = Some(identity);
        while let Some(identity) = next {
            for &index in self.bindings_naming(&identity) {
                let Some(binding) = self.facts.bindings.get(index) else { continue };
                let Some(role) = self.role_of(binding) else { continue };
                let Some(resolved) = self.role(role) else { continue };
                let indexed = (0u16..).zip(&resolved.rules);
                rules
                    .extend(indexed.map(|(index, rule)| (rule.clone(), role, index, binding_scope(binding))));
            }
            next = self.group_of(&identity);
        }
        rules
    }

    /// What one holds while acting as somebody: what that one's rules allow, as far as one's own allow it too.
    fn act_for(&mut self, node: NodeId, identity: Identity, on: &[(RuleFact, Scope)]) {
        let state = self.state;
        for (rule, role, index, scope) in self.rules_of(identity) {
            for (template, said) in (0u32..).zip(state.templates.iter()).filter(|(_, said)| !said.credentials)
            {
                for (need, wanted) in (0u8..).zip(&said.when) {
                    for (at, name, exists) in self.both(&rule, scope, on, said, (need, wanted)) {
                        let found = Match { template, need, rule: index, name, exists };
                        let Some((at, sure)) = self.need_at(&found, at) else { continue };
                        let asked =
                            if self.is_asked(template) { Certainty::Assumed } else { Certainty::Proven };
                        let via = Via::Rule { template, role, rule: index };
                        self.own_right(node, said, &found, at, via, sure.max(asked));
                    }
                }
            }
        }
    }

    /// Where, and for which names, a need is met by a rule and by one of those that allow it.
    fn both(
        &self,
        rule: &RuleFact,
        scope: Scope,
        on: &[(RuleFact, Scope)],
        said: &Template,
        (index, need): (u8, &Need),
    ) -> Vec<(Scope, Option<Symbol>, Existing)> {
        let Need::Right { verbs, group, resources, names, place, named } = need else { return Vec::new() };
        let mut met = Vec::new();
        for verb in verbs {
            for resource in resources {
                let narrow = Need::Right {
                    verbs: vec![*verb],
                    group: *group,
                    resources: vec![*resource],
                    names: names.clone(),
                    place: *place,
                    named: *named,
                };
                let by = |rule: &RuleFact| {
                    let mut found = Vec::new();
                    rule_matches(rule, &narrow, self.symbols, &mut |name, exists| found.push((name, exists)));
                    found
                };
                let own = by(rule);
                if own.is_empty() {
                    continue;
                }
                if self.is_checked_later(said, index, *verb, *named) {
                    met.extend(own.iter().map(|(name, exists)| (scope, *name, *exists)));
                    continue;
                }
                for (allowed, at) in on {
                    let Some(at) = narrower(scope, *at) else { continue };
                    for (other, other_exists) in by(allowed) {
                        for &(name, exists) in &own {
                            if name.is_none() || other.is_none() || name == other {
                                met.push((at, name.or(other), exists.or(other_exists)));
                            }
                        }
                    }
                }
            }
        }
        met
    }

    /// Whether a right is not the request's own, but asked for while it is served.
    fn is_checked_later(&self, said: &Template, need: u8, verb: Symbol, named: Named) -> bool {
        match self.symbols.name(verb) {
            "bind" | "escalate" | "approve" | "sign" => true,
            // A server-side apply is a patch first.
            "create" => named == Named::Target && said.alone.contains(&usize::from(need)),
            _ => false,
        }
    }
}

fn narrower(one: Scope, other: Scope) -> Option<Scope> {
    match (one, other) {
        (Scope::Cluster, scope) | (scope, Scope::Cluster) => Some(scope),
        (one, other) => (one == other).then_some(one),
    }
}
