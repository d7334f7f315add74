//! Roles that their holder may give away, since it writes bindings and holds the rules itself.
//!
//! The same goes for whoever writes a role that another of its identities holds: it writes rules that it holds itself.
//!
//! Only roles with rights whose worth depends on who asks are followed: all others are worth the same to whoever holds
//! the identity that holds them.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Input, Node, NodeId, Via, build::Builder, matches::is_everything, meet::Meeting};
use crate::{Certainty, Fact, Identity, Scope, Symbol, Target, rbac::binding_scope};

/// What is not followed in large clusters, or beyond a number.
const WRITING: &str = "rules that somebody who is impersonated writes into roles of others";
/// How many such roles are followed from one node.
const WRITTEN_MAX: usize = 64;

/// A role in the scope of a binding.
type Held = (u32, Scope);

/// Somebody who writes roles without escalate, and holds rules that are worth writing.
#[derive(Debug, PartialEq)]
pub struct Writer {
    /// Which roles: by the template that widens them, where, and of which name.
    writes: Vec<(u32, Target, Scope, Option<Symbol>)>,
    holds: Vec<Held>,
}

impl Builder<'_> {
    /// The roles that an identity holds, itself and by its groups, and may give to another of its holder's.
    pub fn pass_on(&mut self, id: NodeId, identity: Identity) {
        // What comes from groups alone is passed on by the groups.
        if self.bindings_naming(&identity).is_empty() {
            return;
        }
        let held = self.roles_of(identity);
        let writes = |builder: &mut Self, role: u32| {
            let found = builder.matches(role);
            !found.writes.is_empty() || !found.widens.is_empty()
        };
        let is_full = |(role, scope): &Held| {
            let rules = self.role(*role).map_or(&[][..], |role| &role.rules);
            *scope == Scope::Cluster && rules.iter().any(is_everything)
        };
        if held.iter().any(is_full) {
            return;
        }
        if !held.iter().any(|(role, _)| writes(self, *role)) {
            return;
        }
        let worthwhile: Vec<Held> =
            held.iter().copied().filter(|(role, _)| self.is_personal_role(*role)).collect();
        if worthwhile.is_empty() {
            return;
        }
        // Whoever is the identity itself, and is not only impersonated, uses what it holds as that one.
        let acting = matches!(self.made.nodes.get_index(id as usize), Some((_, Node::Acting(_))));
        if acting {
            self.note_writer(id, &held, &worthwhile);
        }
        let mut given: Vec<(Held, Option<Symbol>, u32)> = Vec::new();
        for &(writer, scope) in &held {
            for found in &self.matches(writer).writes {
                let Some(edge) = self.template(found.template).map(|said| said.edge) else { continue };
                let template = found.template;
                match (edge, found.name) {
                    ("bind-role" | "bind-cluster-role", Some(name))
                        if !self.is_patched(&held, template, name) => {}
                    ("bind-role", _) => {
                        let here = worthwhile.iter().flat_map(|role| self.bindable(*role, scope));
                        given.extend(here.map(|role| (role, found.name, template)));
                    }
                    ("bind-cluster-role", _) if scope == Scope::Cluster => {
                        let wide = worthwhile.iter().filter(|(_, scope)| *scope == Scope::Cluster);
                        given.extend(wide.map(|role| (*role, found.name, template)));
                    }
                    ("join-binding" | "join-cluster-binding", name) => {
                        let in_cluster = edge == "join-cluster-binding";
                        let joined = self.joined(&worthwhile, scope, name, in_cluster);
                        given.extend(joined.into_iter().map(|role| (role, None, template)));
                    }
                    _ => {}
                }
            }
        }
        given.sort_unstable();
        // What is given without using a name up comes first.
        given.dedup_by(|(held, ..), (before, used, _)| held == before && used.is_none());
        for ((role, scope), used, template) in given {
            let to = self.node(Node::Passed { role, scope, used });
            let certainty = if self.is_asked(template) { Certainty::Assumed } else { Certainty::Proven };
            self.edge_of(id, to, Via::Plain("pass-on"), certainty);
        }
    }

    fn note_writer(&mut self, node: NodeId, held: &[Held], worthwhile: &[Held]) {
        let mut writes = Vec::new();
        for &(role, scope) in held {
            for (target, found) in &self.matches(role).widens {
                if let Some((at, _)) = self.need_at(found, scope) {
                    writes.push((found.template, *target, at, found.name));
                }
            }
        }
        if !writes.is_empty() && self.is_large() {
            self.limit(WRITING);
        } else if !writes.is_empty() {
            self.writers.insert(node, Rc::new(Writer { writes, holds: worthwhile.to_vec() }));
        }
    }

    /// Whoever holds a role that somebody it reaches may write is given what that one holds where the role is.
    pub fn write_roles(&mut self, meeting: &mut Meeting) {
        let writers: Vec<(NodeId, Rc<Writer>)> = meeting
            .reached
            .carriers
            .iter()
            .filter_map(|node| Some((*node, Rc::clone(self.writers.get(node)?))))
            .collect();
        // Of many who write the same roles and hold the same rules one is enough.
        let mut done: FxHashSet<(Target, Scope, Option<Symbol>, Held)> = FxHashSet::default();
        let mut left = WRITTEN_MAX;
        for (node, writer) in writers {
            for &(template, target, scope, name) in &writer.writes {
                let certainty = if self.is_asked(template) { Certainty::Assumed } else { Certainty::Proven };
                let fresh = writer.holds.iter().filter(|held| done.insert((target, scope, name, **held)));
                let fresh: Vec<Held> = fresh.copied().collect();
                if fresh.is_empty() || certainty > meeting.least {
                    continue;
                }
                // By where it is held and where it is, one role of each.
                let written = self.written(target, (scope, name), meeting);
                let written: FxHashMap<(Scope, Scope), NodeId> =
                    written.into_iter().map(|(role, at, place)| ((at, place), role)).collect();
                for ((at, place), role) in written {
                    let here = |of: Scope| of == Scope::Cluster || of == place;
                    for &(held, _) in fresh.iter().filter(|(_, of)| here(*of)) {
                        let gives = self.node(Node::Passed { role: held, scope: at, used: None });
                        if left == 0 {
                            self.limit(WRITING);
                        } else if !self.is_known(gives) {
                            left -= 1;
                            let inputs = [node, role].map(|node| Input { node, via: None }).to_vec();
                            self.joint(template, inputs, gives, meeting);
                        }
                    }
                }
            }
        }
        self.expand_new();
    }

    /// The roles that were reached and may be written: their nodes, where they are held, and where they are.
    fn written(
        &mut self,
        target: Target,
        spot: (Scope, Option<Symbol>),
        meeting: &Meeting,
    ) -> Vec<(NodeId, Scope, Scope)> {
        let gifts = self.held_roles(target, spot, &meeting.reached);
        let found = gifts.into_iter().filter_map(|(role, ..)| {
            let role = role?;
            match self.made.nodes.get_index(role as usize) {
                Some((_, Node::Fact(Fact::Role { namespace, scope, .. }))) => {
                    Some((role, *scope, namespace.map_or(Scope::Cluster, Scope::Namespace)))
                }
                _ => None,
            }
        });
        found.collect()
    }

    /// The roles of an identity and of its implicit groups.
    pub fn roles_of(&self, identity: Identity) -> Vec<Held> {
        let mut held = Vec::new();
        let mut next = Some(identity);
        while let Some(identity) = next {
            for &index in self.bindings_naming(&identity) {
                let Some(binding) = self.facts.bindings.get(index) else { continue };
                held.extend(self.role_of(binding).map(|role| (role, binding_scope(binding))));
            }
            next = self.group_of(&identity);
        }
        held.sort_unstable();
        held.dedup();
        held
    }

    /// Whether a role has rights whose worth depends on who asks.
    fn is_personal_role(&mut self, role: u32) -> bool {
        self.matches(role).is_personal
    }

    /// Whether bindings of a name may be changed by some of these roles, so that one is made by its name.
    fn is_patched(&mut self, held: &[Held], template: u32, name: Symbol) -> bool {
        held.iter().any(|(role, _)| {
            let found = self.matches(*role);
            found.halves.iter().any(|(_, found)| {
                (found.template, found.need) == (template, 1) && found.name.is_none_or(|of| of == name)
            })
        })
    }

    /// Where RoleBindings to a role can be made by a holder who writes them in a scope.
    fn bindable(&self, (role, held): Held, written: Scope) -> Vec<Held> {
        match (held, written) {
            (Scope::Namespace(held_in), Scope::Namespace(written_in)) if held_in != written_in => Vec::new(),
            (Scope::Namespace(_), _) => vec![(role, held)],
            (Scope::Cluster, Scope::Namespace(_)) => vec![(role, written)],
            (Scope::Cluster, Scope::Cluster) => {
                self.namespaces().iter().map(|namespace| (role, Scope::Namespace(*namespace))).collect()
            }
        }
    }

    /// Bindings to these roles that somebody who changes bindings in a scope, of that name, can give to others.
    fn joined(&self, held: &[Held], scope: Scope, name: Option<Symbol>, in_cluster: bool) -> Vec<Held> {
        let of = self.roles_of_bindings(self.bindings_about(name, scope, in_cluster));
        let changed = of.filter(|(binding, _)| {
            let of = binding_scope(binding);
            (of == Scope::Cluster) == in_cluster && (scope == Scope::Cluster || scope == of)
        });
        let roles = changed.map(|(binding, role)| (role, binding_scope(binding)));
        roles
            .filter(|(role, scope)| {
                held.iter().any(|(of, at)| of == role && (at == scope || *at == Scope::Cluster))
            })
            .collect()
    }
}
