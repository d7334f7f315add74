//! From identities to roles, and the rights whose worth depends on who asks: admission decides about some, and some
//! must be held by one requester alone.

use std::cell::Cell;

use super::{
    Blocked, NodeId, Via,
    build::Builder,
    halves::{Entry, Hold},
    matches::{Match, is_everything},
};
use crate::{
    Authorizer, Certainty, Check, ClusterAuthorizer, Decision, Fact, Gift, Identity, Need, Place, Requester,
    Scope, SubjectKind, Symbol, Template,
};

/// Somebody of whom rights are told.
#[derive(Debug, Clone, Copy)]
struct Holder {
    node: NodeId,
    identity: Identity,
    /// Whether it is impersonated, so that it impersonates nobody.
    acting: bool,
    binding: u32,
}

/// Answers what a policy asks, and notes whose bindings and roles that depends on.
struct Noting<'a, 'b> {
    authorizer: ClusterAuthorizer<'a>,
    builder: &'b Builder<'a>,
    is_asked: Cell<bool>,
}

impl Authorizer for Noting<'_, '_> {
    fn allows(&self, who: &Requester, check: &Check) -> bool {
        self.is_asked.set(true);
        for identity in self.authorizer.identities(who) {
            for index in self.builder.bindings_naming(&identity) {
                self.builder.facts.bindings.get(*index).map(|binding| self.builder.role_of(binding));
            }
        }
        self.authorizer.allows(who, check)
    }
}

impl Builder<'_> {
    /// The edges from an identity to the roles that bindings give it, and those whose worth depends on who asks.
    /// `acting`: it is impersonated, so that it impersonates nobody.
    pub fn bindings_of(&mut self, id: NodeId, identity: Identity, acting: bool) {
        for &index in self.bindings_naming(&identity) {
            let Some(binding) = self.facts.bindings.get(index) else { continue };
            let scope = crate::rbac::binding_scope(binding);
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            // A role that does not exist is held as soon as somebody makes it.
            let namespace = if binding.cluster_role { None } else { binding.namespace };
            let to = self.fact(Fact::Role { namespace, name: binding.role, scope });
            self.edge(id, to, Via::Binding(index));
            let Some(role) = self.role_of(binding) else { continue };
            let Some(resolved) = self.role(role) else { continue };
            let is_full = scope == Scope::Cluster && resolved.rules.iter().any(is_everything);
            if !is_full {
                self.own_rights(Holder { node: id, identity, acting, binding: index }, role, scope);
            }
        }
    }

    /// The rights whose worth depends on who asks. Admission is asked for each that it may refuse, in each namespace
    /// where the right would hold.
    fn own_rights(&mut self, holder: Holder, role: u32, scope: Scope) {
        for found in &self.matches(role).own {
            let said = self.template(found.template);
            let Some(said) = said.filter(|said| !(holder.acting && said.credentials)) else { continue };
            let asked = self.is_asked(found.template);
            let Some(Need::Right { place, .. }) = said.when.get(usize::from(found.need)) else { continue };
            let scopes: Vec<Scope> = match (place, scope) {
                (Place::Here, Scope::Cluster) if asked => {
                    self.namespaces().iter().map(|namespace| Scope::Namespace(*namespace)).collect()
                }
                _ => vec![scope],
            };
            for at in scopes {
                let namespace = match (place, at) {
                    (Place::In(namespace), _) => Some(*namespace),
                    (_, Scope::Namespace(namespace)) => Some(namespace),
                    _ => None,
                };
                let decision =
                    if asked { self.ask(found, holder.identity, namespace) } else { Decision::Passes };
                let (certainty, note) = match decision {
                    Decision::Passes => (Certainty::Proven, u32::MAX),
                    Decision::Unknown { by, why } => {
                        (Certainty::Assumed, self.note(format!("{by} could not be evaluated: {why}")))
                    }
                    Decision::Blocked { by, .. } => {
                        let (cluster, template, identity) = (self.cluster, found.template, holder.node);
                        let blocked = Blocked { cluster, template, identity, scope: at, by };
                        self.made.blocked.entry(identity).or_default().push(blocked);
                        continue;
                    }
                };
                let binding = holder.binding;
                let via = Via::Admitted { template: found.template, binding, rule: found.rule, note };
                if let Some((at, sure)) = self.need_at(found, at) {
                    self.own_right(holder.node, said, found, at, via, sure.max(certainty));
                }
            }
        }
    }

    /// One right of an identity: what it gives by itself, or a half.
    pub fn own_right(
        &mut self,
        node: NodeId,
        said: &Template,
        found: &Match,
        scope: Scope,
        via: Via,
        certainty: Certainty,
    ) {
        if let Some(half) = self.halves.of(found.template, found.need) {
            let alone = said.alone.contains(&usize::from(found.need));
            let hold = if alone { Hold::Own } else { Hold::Shared };
            self.hold(node, Entry { half, scope, name: found.name, via: Some(via), certainty, hold });
        } else if said.gives != Gift::Nothing {
            for (to, sure) in self.gifts(found.template, scope, found.name) {
                self.edge_of(node, to, via, sure.max(certainty).max(said.certainty));
            }
        }
        if said.credentials && said.when.len() == 1 {
            self.impersonates(node, via, certainty);
        }
    }

    /// Whether all samples of a template are refused; the first that is not decides.
    fn ask(&self, found: &Match, identity: Identity, namespace: Option<Symbol>) -> Decision {
        let question = (found.template, identity, namespace, found.name);
        if self.passed.borrow().contains(&question) {
            return Decision::Passes;
        }
        let who = self.requester(identity);
        let authorizer = ClusterAuthorizer::new(self.facts, self.symbols, &self.state.rbac);
        let authorizer = Noting { authorizer, builder: self, is_asked: Cell::new(false) };
        let namespace = namespace.map(|namespace| self.symbols.name(namespace));
        let name = found.name.map_or("sample", |name| self.symbols.name(name));
        let mut worst = None;
        let samples = self.template(found.template).map_or(&[][..], |template| &template.samples);
        for sample in samples {
            match self.state.admission.decide(sample, &who, namespace, name, &authorizer) {
                Decision::Passes => {
                    worst = None;
                    break;
                }
                unknown @ Decision::Unknown { .. } => worst = Some(unknown),
                blocked @ Decision::Blocked { .. } => worst = worst.or(Some(blocked)),
            }
        }
        // What the authorizer says may change.
        if worst.is_none() && !authorizer.is_asked.get() {
            self.passed.borrow_mut().insert(question);
        }
        worst.unwrap_or(Decision::Passes)
    }

    fn requester(&self, identity: Identity) -> Requester {
        let name = self.symbols.name(identity.name).to_owned();
        let authenticated = "system:authenticated".to_owned();
        match identity.kind {
            SubjectKind::User => Requester { user: name, groups: vec![authenticated] },
            // Somebody of the group whose own name means nothing.
            SubjectKind::Group => Requester { user: String::new(), groups: vec![name, authenticated] },
            SubjectKind::ServiceAccount => {
                let namespace = self.symbols.name(identity.namespace);
                let groups = vec![
                    "system:serviceaccounts".to_owned(),
                    format!("system:serviceaccounts:{namespace}"),
                    authenticated,
                ];
                Requester { user: format!("system:serviceaccount:{namespace}:{name}"), groups }
            }
        }
    }

    fn note(&mut self, text: String) -> u32 {
        let index = match self.made.notes.iter().rposition(|note| *note == text) {
            Some(index) => index,
            None => {
                self.made.notes.push(text);
                self.made.notes.len() - 1
            }
        };
        u32::try_from(index).unwrap_or(u32::MAX)
    }
}
