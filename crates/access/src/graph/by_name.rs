//! Bindings that are made by their names, where create is allowed for certain names only.
//!
//! A POST is never allowed by a name; a PUT or a server-side apply is, for whoever holds update or patch of the name as
//! well. The name is used up by that: what two identities hold does not add up, as the one cannot first give the other
//! its own rights. INVARIANT: all needs of such a template are held by one requester; the first two are for the name of
//! the binding, the third for that of the role.

use rustc_hash::FxHashSet;

use super::{
    Input,
    build::Builder,
    meet::{Meeting, Part, covers},
};
use crate::{Gift, Named, Need, Place, Scope, Symbol, Template, rbac::binding_scope};

/// Whether a template makes a binding by its name.
pub fn is_by_name(said: &Template) -> bool {
    let first = said.when.first();
    said.edge.starts_with("bind-") && matches!(first, Some(Need::Right { named: Named::Target, .. }))
}

impl Builder<'_> {
    /// Bindings under free names that a requester may make, to roles that it may bind. `usable`: by need, the parts that
    /// count for its requests.
    pub fn bind_by_name(
        &mut self,
        template: u32,
        said: &Template,
        usable: &[Vec<Part>],
        meeting: &mut Meeting,
    ) {
        let Gift::Target(target) = said.gives else { return };
        let [creates, _, binds, ..] = usable else { return };
        let pick = |need: &Need, parts: &[Part], at: Scope, name: Option<Symbol>| {
            let covering = parts.iter().filter(|part| covers(need, &part.entry, (at, name)));
            let part = covering.min_by_key(|part| part.entry.certainty)?;
            Some(Input { node: part.node, via: part.entry.via })
        };
        for (scope, name) in self.free_names(said, creates) {
            let here = |at: Scope| at == scope || at == Scope::Cluster;
            let roles: FxHashSet<Option<Symbol>> =
                binds.iter().filter(|part| here(part.entry.scope)).map(|part| part.entry.name).collect();
            for role in roles {
                let names = [Some(name), Some(name), role, None, None];
                let wanted = said.when.iter().zip(usable).zip(names);
                let inputs: Option<Vec<Input>> =
                    wanted.map(|((need, parts), name)| pick(need, parts, scope, name)).collect();
                let Some(inputs) = inputs else { continue };
                for (gives, certainty) in self.target(target, scope, role) {
                    if certainty <= meeting.least && !self.is_known(gives) {
                        self.joint(template, inputs.clone(), gives, meeting);
                    }
                }
            }
        }
    }

    /// Where bindings may be made under which names that are free.
    fn free_names(&self, said: &Template, creates: &[Part]) -> Vec<(Scope, Symbol)> {
        let in_cluster = matches!(said.when.first(), Some(Need::Right { place: Place::Cluster, .. }));
        let mut free = Vec::new();
        for part in creates {
            // Who creates bindings of any name does not need this.
            let Some(name) = part.entry.name else { continue };
            match part.entry.scope {
                Scope::Cluster if !in_cluster => {
                    let all = self.namespaces().iter();
                    free.extend(all.map(|namespace| (Scope::Namespace(*namespace), name)));
                }
                scope => free.push((scope, name)),
            }
        }
        let taken = |scope: Scope, name: Symbol| {
            let of_name = self.bindings_named(name).iter();
            let mut bindings = of_name.filter_map(|index| self.binding(*index));
            bindings.any(|binding| binding_scope(binding) == scope)
        };
        free.retain(|(scope, name)| !taken(*scope, *name));
        free.sort_unstable();
        free.dedup();
        free
    }
}
