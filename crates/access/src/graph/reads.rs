//! Which nodes were made from which facts, so that a change of facts makes only these anew.
//!
//! Whatever a builder asks the facts while it works on a node goes through one of the functions here, which
//! note the node as a reader. INVARIANT: what is read past them must make the whole graph anew when it changes (see
//! `graph::renew`).

use std::cell::{Cell, RefCell};

use rustc_hash::FxHashMap;

use super::{
    NodeId,
    build::{Builder, ExistingObject},
};
use crate::{
    BindingFact, Identity, Scope, Symbol,
    rbac::{ResolvedRole, RoleKey},
};

/// A part of the facts that may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Read {
    /// The bindings that name an identity.
    Bindings(Identity),
    /// Who is named by any binding.
    Subjects,
    /// The bindings of a scope.
    BindingsIn(Scope),
    /// All bindings.
    AllBindings,
    /// The bindings of a name.
    BindingsNamed(Symbol),
    /// A role, or that there is none.
    Role(RoleKey),
    /// Which roles there are.
    RoleKeys,
    /// The Roles of a namespace.
    RolesIn(Symbol),
    /// All Roles of namespaces.
    AllRoles,
    /// Which ClusterRoles aggregate others.
    Aggregating,
    /// The ServiceAccounts of a namespace, those that exist and those that bindings name.
    Accounts(Symbol),
    /// All ServiceAccounts.
    AllAccounts,
    /// The namespaces with ServiceAccounts of a name.
    AccountsNamed(Symbol),
    /// The group of the ServiceAccounts of a namespace.
    GroupOf(Symbol),
    /// All namespaces.
    Namespaces,
    /// Whether an object exists in a scope.
    Existing(ExistingObject, Scope),
}

/// Who read what.
#[derive(Debug, Clone, Default)]
pub struct Reads {
    readers: RefCell<FxHashMap<Read, Vec<Reader>>>,
    now: Cell<Option<Reader>>,
}

/// For what something is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reader {
    /// To expand a node.
    Node(NodeId),
    /// For what follows at a node from several things.
    Meeting(NodeId),
}

/// Lists of readers are freed of doubles whenever they have doubled from here.
const SMALL: usize = 64;

impl Reads {
    /// Says for what is read from now on. Gives what it was before.
    pub fn set(&self, reader: Option<Reader>) -> Option<Reader> {
        self.now.replace(reader)
    }

    /// For which node is read now.
    pub fn now(&self) -> Option<NodeId> {
        self.now.get().map(|(Reader::Node(node) | Reader::Meeting(node))| node)
    }

    /// Notes that a part is read.
    pub fn note(&self, read: Read) {
        let Some(reader) = self.now.get() else { return };
        let mut readers = self.readers.borrow_mut();
        let of = readers.entry(read).or_default();
        if of.last() == Some(&reader) {
            return;
        }
        of.push(reader);
        if of.len() >= SMALL && of.len().is_power_of_two() {
            of.sort_unstable();
            of.dedup();
        }
    }

    /// Takes out those who read a part: they are made anew and read it again.
    pub fn take(&self, read: &Read) -> Vec<Reader> {
        self.readers.borrow_mut().remove(read).unwrap_or_default()
    }
}

impl<'a> Builder<'a> {
    /// Indices of the bindings that name an identity itself.
    pub fn bindings_naming(&self, identity: &Identity) -> &'a [usize] {
        self.reads.note(Read::Bindings(*identity));
        self.state.rbac.bindings_of(identity)
    }

    /// The role of a binding, by index.
    pub fn role_of(&self, binding: &BindingFact) -> Option<u32> {
        let namespace = if binding.cluster_role { None } else { Some(binding.namespace?) };
        self.find_role((namespace, binding.role))
    }

    /// Which of some bindings are to which roles, by index, whatever these hold.
    pub fn roles_of_bindings(
        &self,
        bindings: Vec<u32>,
    ) -> impl Iterator<Item = (&'a BindingFact, u32)> + use<'a> {
        self.reads.note(Read::RoleKeys);
        let (facts, roles) = (self.facts, &self.state.rbac.roles);
        bindings.into_iter().filter_map(move |index| {
            let binding = facts.bindings.get(index as usize)?;
            Some((binding, u32::try_from(roles.index_of(binding)?).ok()?))
        })
    }

    /// A role by its key.
    pub fn find_role(&self, key: RoleKey) -> Option<u32> {
        self.reads.note(Read::Role(key));
        self.state.rbac.roles.find(key).and_then(|role| u32::try_from(role).ok())
    }

    /// A role by its index.
    pub fn role(&self, role: u32) -> Option<&'a ResolvedRole> {
        let found = self.state.rbac.roles.all().get(usize::try_from(role).ok()?)?;
        self.reads.note(Read::Role(found.key));
        Some(found)
    }

    /// A binding by its index.
    pub fn binding(&self, index: u32) -> Option<&'a BindingFact> {
        self.facts.bindings.get(index as usize)
    }

    /// The subjects of all bindings; who asks must look at no more than whom they name.
    pub fn subjects(&self) -> impl Iterator<Item = &'a crate::SubjectFact> + use<'a> {
        self.reads.note(Read::Subjects);
        self.facts.bindings.iter().flat_map(|binding| &binding.subjects)
    }

    /// Indices of the bindings of a name.
    pub fn bindings_named(&self, name: Symbol) -> &[u32] {
        self.reads.note(Read::BindingsNamed(name));
        self.index.bindings_by_name.get(&name).map_or(&[], Vec::as_slice)
    }

    /// Indices of the bindings of a scope.
    pub fn bindings_in(&self, scope: Scope) -> &[u32] {
        self.reads.note(Read::BindingsIn(scope));
        self.index.bindings_in.get(&scope).map_or(&[], Vec::as_slice)
    }

    /// Indices of those that rights to change some may be about: of a name, of a scope, or for the whole cluster all.
    pub fn bindings_about(&self, name: Option<Symbol>, scope: Scope, in_cluster: bool) -> Vec<u32> {
        match (name, scope) {
            (Some(name), _) => self.bindings_named(name).to_vec(),
            (None, Scope::Cluster) if !in_cluster => {
                self.reads.note(Read::AllBindings);
                self.index.bindings_in.values().flatten().copied().collect()
            }
            (None, scope) => self.bindings_in(scope).to_vec(),
        }
    }

    /// All namespaces.
    pub fn namespaces(&self) -> &[Symbol] {
        self.reads.note(Read::Namespaces);
        &self.index.namespaces
    }

    /// Names of the Roles of a namespace.
    pub fn roles_of_namespace(&self, namespace: Symbol) -> &[Symbol] {
        self.reads.note(Read::RolesIn(namespace));
        self.index.roles_in.get(&namespace).map_or(&[], Vec::as_slice)
    }

    /// The Roles of all namespaces.
    pub fn roles_of_namespaces(&self) -> Vec<RoleKey> {
        self.reads.note(Read::AllRoles);
        let all = self.index.roles_in.iter();
        all.flat_map(|(namespace, names)| names.iter().map(|name| (Some(*namespace), *name))).collect()
    }

    /// Whether a ClusterRole aggregates others.
    pub fn is_aggregating(&self, role: Symbol) -> bool {
        self.reads.note(Read::Aggregating);
        self.index.aggregating.contains(&role)
    }

    /// Names of the ServiceAccounts of a namespace that exist.
    pub fn accounts_existing(&self, namespace: Symbol) -> &[Symbol] {
        self.reads.note(Read::Accounts(namespace));
        self.index.accounts.get(&namespace).map_or(&[], Vec::as_slice)
    }

    /// Names of those that only bindings name.
    pub fn accounts_absent(&self, namespace: Symbol) -> &[Symbol] {
        self.reads.note(Read::Accounts(namespace));
        self.index.absent.get(&namespace).map_or(&[], Vec::as_slice)
    }

    /// The namespaces with ServiceAccounts that exist, or with those that only bindings name.
    pub fn account_namespaces(&self, absent: bool) -> Vec<Symbol> {
        self.reads.note(Read::AllAccounts);
        let of = if absent { &self.index.absent } else { &self.index.accounts };
        of.keys().copied().collect()
    }

    /// The namespaces with a ServiceAccount of a name.
    pub fn accounts_named(&self, name: Symbol) -> &[Symbol] {
        self.reads.note(Read::AccountsNamed(name));
        self.index.accounts_by_name.get(&name).map_or(&[], Vec::as_slice)
    }

    /// The group of the ServiceAccounts of a namespace, if there are any.
    pub fn accounts_group(&self, namespace: Symbol) -> Option<Symbol> {
        self.reads.note(Read::GroupOf(namespace));
        self.index.groups.get(&namespace).copied()
    }
}
