//! Conjunctions: templates with several needs, made real where each of them could be held.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{And, Node, NodeId, Via, build::Builder};
use crate::{Certainty, Fact, Gift, Named, Need, Place, Power, Scope, Symbol, Target};

type Held = FxHashMap<u8, Vec<(Scope, Option<Symbol>)>>;

impl Builder<'_> {
    /// Makes the conjunctions that became possible by the nodes made so far.
    pub fn conjunctions(&mut self) {
        let state = self.state;
        for (template, said) in (0u32..).zip(&state.templates) {
            if said.when.len() < 2 {
                continue;
            }
            let mut held: Held = FxHashMap::default();
            for (need, scope, name) in self.needs.get(&template).into_iter().flatten() {
                held.entry(*need).or_default().push((*scope, *name));
            }
            for (scope, name) in self.candidates(template, &said.when, &held) {
                self.conjunction(template, scope, name, &held);
            }
        }
    }

    /// The scopes, and names, where each need is held there or in the cluster.
    fn candidates(&self, template: u32, when: &[Need], held: &Held) -> Vec<(Scope, Option<Symbol>)> {
        let mut scopes: FxHashSet<Scope> = FxHashSet::default();
        let mut names: FxHashSet<Option<Symbol>> = FxHashSet::from_iter([None]);
        let mut local = false;
        for (index, need) in (0u8..).zip(when) {
            match need {
                Need::Right { place, named, .. } => {
                    let places = held.get(&index).map_or(&[][..], Vec::as_slice);
                    if places.is_empty() {
                        return Vec::new();
                    }
                    if *place == Place::Here {
                        local = true;
                        scopes.extend(places.iter().map(|(scope, _)| *scope));
                    }
                    if *named == Named::Target {
                        names.extend(places.iter().map(|(_, name)| *name));
                    }
                }
                Need::Power(power) if !when.iter().any(is_local_right) => {
                    local = true;
                    scopes.extend(self.scopes_of(*power));
                }
                Need::Power(_) | Need::Fact(_) | Need::AnyImpersonation => {}
            }
        }
        if !local {
            scopes.insert(Scope::Cluster);
        }
        let possible = |scope: &Scope, name: &Option<Symbol>| {
            (0u8..).zip(when).all(|(index, need)| self.is_possible(template, index, need, *scope, *name))
        };
        let pairs = scopes.iter().flat_map(|scope| names.iter().map(move |name| (*scope, *name)));
        pairs.filter(|(scope, name)| possible(scope, name)).collect()
    }

    fn is_possible(&self, template: u32, index: u8, need: &Need, scope: Scope, name: Option<Symbol>) -> bool {
        match need {
            Need::Right { place, named, .. } => {
                let at = if *place == Place::Here { scope } else { Scope::Cluster };
                let Some(held) = self.needs.get(&template) else { return false };
                [at, Scope::Cluster].iter().any(|at| {
                    held.contains(&(index, *at, None))
                        || (*named == Named::Target && held.contains(&(index, *at, name)))
                })
            }
            Need::Power(power) => {
                let held = |scope| self.made.nodes.contains(&(self.cluster, Node::Fact(power.at(scope))));
                held(scope) || held(Scope::Cluster)
            }
            Need::Fact(fact) => self.made.nodes.contains(&(self.cluster, Node::Fact(*fact))),
            Need::AnyImpersonation => self.made.nodes.contains(&(self.cluster, Node::Impersonates)),
        }
    }

    fn scopes_of(&self, power: Power) -> Vec<Scope> {
        let namespaces = self.index.namespaces.iter().map(|namespace| Scope::Namespace(*namespace));
        namespaces
            .chain([Scope::Cluster])
            .filter(|scope| self.made.nodes.contains(&(self.cluster, Node::Fact(power.at(*scope)))))
            .collect()
    }

    fn conjunction(&mut self, template: u32, scope: Scope, name: Option<Symbol>, held: &Held) {
        let Some(said) = self.template(template) else { return };
        let gifts = match said.gives {
            Gift::Target(Target::HeldClusterRole) => self.held_roles(None, name),
            Gift::Target(Target::HeldRole) => match scope {
                Scope::Namespace(namespace) => self.held_roles(Some(namespace), name),
                Scope::Cluster => self.held_in_any_namespace(name),
            },
            _ => self
                .gifts(template, scope, name)
                .into_iter()
                .map(|(node, certainty)| (None, node, certainty))
                .collect(),
        };
        let inputs: Vec<NodeId> = (0u8..)
            .zip(&said.when)
            .map(|(index, need)| self.input(template, index, need, scope, name, held))
            .collect();
        let new: Vec<_> = gifts
            .into_iter()
            .filter(|(role, gift, _)| {
                self.conjunctions.insert((template, scope, name, role.unwrap_or(*gift)))
            })
            .collect();
        for (held_role, gives, certainty) in new {
            let mut inputs = inputs.clone();
            inputs.extend(held_role);
            inputs.sort_unstable();
            inputs.dedup();
            let certainty = certainty.max(said.certainty);
            self.made.ands.push(And { inputs, gives, template, certainty });
        }
    }

    /// The node of a need in a scope, with edges from wherever it is held more widely.
    fn input(
        &mut self,
        template: u32,
        need: u8,
        wanted: &Need,
        scope: Scope,
        name: Option<Symbol>,
        held: &Held,
    ) -> NodeId {
        let (place, named) = match wanted {
            Need::Power(power) => return self.fact(power.at(scope)),
            Need::Fact(fact) => return self.fact(*fact),
            Need::AnyImpersonation => return self.node(Node::Impersonates),
            Need::Right { place, named, .. } => (*place, *named),
        };
        let at = if place == Place::Here { scope } else { Scope::Cluster };
        let for_name = if named == Named::Target { name } else { None };
        let node = Node::Need { template, need, scope: at, name: for_name };
        let id = self.node(node);
        for &(wide, wide_name) in held.get(&need).into_iter().flatten() {
            let covers =
                (wide == at || wide == Scope::Cluster) && (wide_name == for_name || wide_name.is_none());
            let (wide, narrow) = ((wide, wide_name), (at, for_name));
            if covers && wide != narrow && self.joined.insert((template, need, wide, narrow)) {
                let (wide, wide_name) = wide;
                let from = self.node(Node::Need { template, need, scope: wide, name: wide_name });
                self.edge(from, id, Via::Narrow);
            }
        }
        id
    }

    /// Roles that somebody holds, as inputs, and what widening them gives: everything where they are bound.
    fn held_roles(
        &mut self,
        namespace: Option<Symbol>,
        name: Option<Symbol>,
    ) -> Vec<(Option<NodeId>, NodeId, Certainty)> {
        let fits = |(of, role, _): &&(Option<Symbol>, Symbol, Scope)| {
            *of == namespace && name.is_none_or(|name| name == *role)
        };
        let held: Vec<_> = self.held.iter().filter(fits).copied().collect();
        self.widened(held)
    }

    fn held_in_any_namespace(&mut self, name: Option<Symbol>) -> Vec<(Option<NodeId>, NodeId, Certainty)> {
        let fits = |(of, role, _): &&(Option<Symbol>, Symbol, Scope)| {
            of.is_some() && name.is_none_or(|name| name == *role)
        };
        let held: Vec<_> = self.held.iter().filter(fits).copied().collect();
        self.widened(held)
    }

    fn widened(
        &mut self,
        held: Vec<(Option<Symbol>, Symbol, Scope)>,
    ) -> Vec<(Option<NodeId>, NodeId, Certainty)> {
        held.into_iter()
            .map(|(namespace, name, scope)| {
                let role = self.fact(Fact::Role { namespace, name, scope });
                (Some(role), self.fact(Fact::Everything(scope)), Certainty::Proven)
            })
            .collect()
    }
}

fn is_local_right(need: &Need) -> bool {
    matches!(need, Need::Right { place: Place::Here, .. })
}
