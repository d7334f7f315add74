//! Bindings that somebody may add itself to.

use super::{
    Input, NodeId,
    build::Builder,
    meet::{Meeting, Part, covers},
};
use crate::{
    Gift, Need, Scope, Symbol, Target, Template,
    rbac::{RoleKey, binding_scope},
};

impl Builder<'_> {
    /// Bindings that a requester may change, to roles that it may bind. `usable`: the right to change bindings, and the
    /// right to bind roles.
    pub fn join(&mut self, template: u32, said: &Template, usable: &[Vec<Part>], meeting: &mut Meeting) {
        let ([changes, binds], [change, bind]) = (said.when.as_slice(), usable) else { return };
        let cluster_roles = said.gives == Gift::Target(Target::JoinedClusterRole);
        let in_cluster = said.edge == "join-cluster-binding";
        let mut done: Vec<(Scope, RoleKey)> = Vec::new();
        for index in self.bindings_under(change, in_cluster) {
            let Some(binding) = self.binding(index) else { continue };
            if binding.cluster_role != cluster_roles || binding.namespace.is_none() != in_cluster {
                continue;
            }
            let scope = binding_scope(binding);
            let key = (if cluster_roles { None } else { binding.namespace }, binding.role);
            let pick = |need: &Need, parts: &[Part], name: Symbol| {
                let covering = parts.iter().filter(|part| covers(need, &part.entry, (scope, Some(name))));
                let part = covering.min_by_key(|part| part.entry.certainty)?;
                Some(Input { node: part.node, via: part.entry.via })
            };
            let (Some(change), Some(bind)) =
                (pick(changes, change, binding.name), pick(binds, bind, binding.role))
            else {
                continue;
            };
            if done.contains(&(scope, key)) {
                continue;
            }
            done.push((scope, key));
            let gifts: Vec<NodeId> = self.gained(key, scope).into_iter().map(|(node, _)| node).collect();
            for gives in gifts {
                if !self.is_known(gives) {
                    self.joint(template, vec![change, bind], gives, meeting);
                }
            }
        }
    }

    /// The bindings that rights to change some may be about, by index, sorted.
    fn bindings_under(&self, change: &[Part], in_cluster: bool) -> Vec<u32> {
        let mut found: Vec<u32> = Vec::new();
        for part in change {
            found.extend(self.bindings_about(part.entry.name, part.entry.scope, in_cluster));
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}
