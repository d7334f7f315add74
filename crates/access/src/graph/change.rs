//! A change of roles, bindings and accounts: in the facts, in what they are looked up by, and who has read of it.

use rustc_hash::FxHashSet;

use super::{
    Node,
    build::{BINDINGS_MAX, ClusterState, Kept},
    reads::Read,
};
use crate::{
    BindingFact, ClusterFacts, Fact, Identity, RoleFact, ServiceAccountFact, SubjectKind, Symbol, Symbols,
    deputies,
    rbac::{binding_scope, identity_of},
};

/// One object of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit<T> {
    /// It is there now, perhaps in the place of one of the same name.
    Put(T),
    /// It is gone: the one of this namespace and name.
    Remove(T),
}

impl<T> Edit<T> {
    fn object(&self) -> &T {
        match self {
            Self::Put(object) | Self::Remove(object) => object,
        }
    }
}

/// What changes in one cluster. Names are symbols of the snapshot that is changed.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Index of the cluster.
    pub cluster: u16,
    /// RoleBindings and ClusterRoleBindings.
    pub bindings: Vec<Edit<BindingFact>>,
    /// Roles and ClusterRoles.
    pub roles: Vec<Edit<RoleFact>>,
    /// ServiceAccounts.
    pub service_accounts: Vec<Edit<ServiceAccountFact>>,
}

/// What a change touches.
#[derive(Debug, Default)]
pub struct Touched {
    pub reads: FxHashSet<Read>,
    /// Nodes that are made anew whatever they read; made if they are new.
    pub nodes: Vec<Node>,
    /// Names of bindings and ClusterRoles, some of which may be new or gone.
    pub names: FxHashSet<Symbol>,
    /// Whether what cannot be followed has changed, so that all is made anew.
    pub all: bool,
    /// Whether edges may be others now, since controllers are known by what has changed.
    pub templates: bool,
}

/// What a change is made in.
pub struct Change<'a> {
    pub facts: &'a mut ClusterFacts,
    pub symbols: &'a mut Symbols,
    pub state: &'a mut ClusterState,
    pub kept: &'a mut Kept,
    pub touched: Touched,
}

impl Change<'_> {
    /// Makes the change, and says what it touches.
    pub fn make(mut self, changes: Changes) -> Touched {
        let large = self.facts.bindings.len() > BINDINGS_MAX;
        for edit in changes.service_accounts {
            self.account(edit);
        }
        if !changes.roles.is_empty() {
            self.roles(changes.roles);
        }
        for edit in changes.bindings {
            self.binding(edit);
        }
        self.touched.all |= large != (self.facts.bindings.len() > BINDINGS_MAX);
        self.touched
    }

    fn read(&mut self, read: Read) {
        self.touched.reads.insert(read);
    }

    fn account(&mut self, edit: Edit<ServiceAccountFact>) {
        let (namespace, name) = (edit.object().namespace, edit.object().name);
        let accounts = &mut self.facts.service_accounts;
        let known = accounts.iter().position(|known| (known.namespace, known.name) == (namespace, name));
        let cloud = known.and_then(|at| accounts.get(at)).and_then(|known| known.cloud_identity);
        let index = &mut self.kept.index;
        match (edit, known) {
            (Edit::Put(new), known) => {
                self.touched.templates |= new.cloud_identity != cloud;
                match new.cloud_identity {
                    Some(cloud) => index.cloud.insert((namespace, name), cloud),
                    None => index.cloud.remove(&(namespace, name)),
                };
                match known.and_then(|at| accounts.get_mut(at)) {
                    Some(known) => *known = new,
                    None => {
                        accounts.push(new);
                        index.accounts.entry(namespace).or_default().push(name);
                        index.accounts_by_name.entry(name).or_default().push(namespace);
                    }
                }
            }
            (Edit::Remove(_), Some(at)) => {
                self.touched.templates |= cloud.is_some();
                accounts.swap_remove(at);
                index.cloud.remove(&(namespace, name));
                without(&mut index.accounts, namespace, &name);
                without(&mut index.accounts_by_name, name, &namespace);
                self.left(namespace);
            }
            (Edit::Remove(_), None) => return,
        }
        self.entered(namespace);
        self.read(Read::AccountsNamed(name));
        self.presence(namespace, name);
        let identity = Identity { kind: SubjectKind::ServiceAccount, namespace, name };
        self.touched.nodes.push(Node::Fact(Fact::Identity(identity)));
    }

    /// Puts right whether an account exists, or is only named by bindings.
    fn presence(&mut self, namespace: Symbol, name: Symbol) {
        let identity = Identity { kind: SubjectKind::ServiceAccount, namespace, name };
        let index = &mut self.kept.index;
        let exists = index.accounts_by_name.get(&name).is_some_and(|places| places.contains(&namespace));
        let absent = !exists && !self.state.rbac.bindings_of(&identity).is_empty();
        let was = index.absent.get(&namespace).is_some_and(|names| names.contains(&name));
        match (absent, was) {
            (true, false) => index.absent.entry(namespace).or_default().push(name),
            (false, true) => without(&mut index.absent, namespace, &name),
            _ => {}
        }
        let with = [&index.accounts, &index.absent].into_iter().any(|of| of.contains_key(&namespace));
        if with != index.groups.contains_key(&namespace) {
            if with {
                let group = format!("system:serviceaccounts:{}", self.symbols.name(namespace));
                index.groups.insert(namespace, self.symbols.intern(&group));
            } else {
                index.groups.remove(&namespace);
            }
            self.read(Read::GroupOf(namespace));
        }
        self.read(Read::Accounts(namespace));
        self.read(Read::AllAccounts);
        self.touched.templates |= deputies::is_usual(self.symbols.name(name));
    }

    fn roles(&mut self, edits: Vec<Edit<RoleFact>>) {
        // Some controllers are known by what roles name.
        self.touched.templates = true;
        for edit in edits {
            let key = (edit.object().namespace, edit.object().name);
            self.touched.all |= self.state.admission.may_read_role(self.facts, self.symbols, key);
            let roles = &mut self.facts.roles;
            let known = roles.iter().position(|known| (known.namespace, known.name) == key);
            match (edit, known) {
                (Edit::Put(new), Some(at)) => {
                    roles.get_mut(at).into_iter().for_each(|old| *old = new.clone())
                }
                (Edit::Put(new), None) => roles.push(new),
                (Edit::Remove(_), Some(at)) => drop(roles.swap_remove(at)),
                (Edit::Remove(_), None) => {}
            }
        }
        let index = &mut self.kept.index;
        let clusters = self.facts.roles.iter().filter(|role| role.namespace.is_none());
        let aggregating: FxHashSet<Symbol> =
            clusters.filter(|role| !role.aggregation.is_empty()).map(|role| role.name).collect();
        let aggregates = aggregating != index.aggregating;
        index.aggregating = aggregating;
        for (key, at) in self.state.rbac.roles.renew(self.facts, self.symbols) {
            let (namespace, name) = key;
            self.read(Read::RoleKeys);
            if let Ok(at) = u32::try_from(at) {
                self.kept.matches.remove(&at);
            }
            let exists = self.facts.roles.iter().any(|role| (role.namespace, role.name) == key);
            match namespace {
                Some(namespace) => {
                    let names = self.kept.index.roles_in.entry(namespace).or_default();
                    match (exists, names.iter().position(|known| *known == name)) {
                        (true, None) => names.push(name),
                        (false, Some(at)) => drop(names.swap_remove(at)),
                        _ => {}
                    }
                    if names.is_empty() {
                        self.kept.index.roles_in.remove(&namespace);
                    }
                    self.read(Read::RolesIn(namespace));
                    self.read(Read::AllRoles);
                }
                None => drop(self.touched.names.insert(name)),
            }
            self.read(Read::Role(key));
        }
        if aggregates {
            self.read(Read::Aggregating);
        }
    }

    fn binding(&mut self, edit: Edit<BindingFact>) {
        let (namespace, name) = (edit.object().namespace, edit.object().name);
        let of_name = self.kept.index.bindings_by_name.get(&name).into_iter().flatten();
        let known = of_name.copied().find(|at| {
            self.facts.bindings.get(*at as usize).is_some_and(|known| known.namespace == namespace)
        });
        if known.is_none() && matches!(edit, Edit::Remove(_)) {
            return;
        }
        self.touched.names.insert(name);
        for read in
            [Read::BindingsNamed(name), Read::AllBindings, Read::BindingsIn(binding_scope(edit.object()))]
        {
            self.read(read);
        }
        let mut subjects = self.subjects(edit.object());
        if let Some(at) = known {
            let old = self.take_binding(at);
            subjects.extend(old.map(|old| self.subjects(&old)).unwrap_or_default());
        }
        if let Edit::Put(new) = edit {
            self.put_binding(new);
            if let Some(namespace) = namespace {
                self.entered(namespace);
            }
        } else if let Some(namespace) = namespace {
            self.left(namespace);
        }
        for identity in subjects {
            self.read(Read::Bindings(identity));
            self.touched.nodes.push(Node::Fact(Fact::Identity(identity)));
            if identity.kind == SubjectKind::ServiceAccount {
                self.presence(identity.namespace, identity.name);
            }
        }
        self.touched.templates |= deputies::reads_bindings(self.facts);
    }

    fn subjects(&self, binding: &BindingFact) -> Vec<Identity> {
        binding.subjects.iter().filter_map(identity_of).collect()
    }

    /// Takes a binding out. The last one takes its place, so that whoever is bound by that is touched as well.
    fn take_binding(&mut self, at: u32) -> Option<BindingFact> {
        let last = u32::try_from(self.facts.bindings.len()).ok()?.checked_sub(1)?;
        let old = self.facts.bindings.get(at as usize)?.clone();
        self.unlist(at, &old);
        if at != last
            && let Some(moved) = self.facts.bindings.get(last as usize).cloned()
        {
            self.unlist(last, &moved);
            self.list(at, &moved);
            for identity in self.subjects(&moved) {
                self.read(Read::Bindings(identity));
            }
        }
        Some(self.facts.bindings.swap_remove(at as usize))
    }

    fn put_binding(&mut self, new: BindingFact) {
        if let Ok(at) = u32::try_from(self.facts.bindings.len()) {
            self.list(at, &new);
            self.facts.bindings.push(new);
        }
    }

    fn list(&mut self, at: u32, binding: &BindingFact) {
        let index = &mut self.kept.index;
        index.bindings_by_name.entry(binding.name).or_default().push(at);
        index.bindings_in.entry(binding_scope(binding)).or_default().push(at);
        for identity in binding.subjects.iter().filter_map(identity_of) {
            if self.state.rbac.bind(identity, at as usize) {
                self.touched.reads.insert(Read::Subjects);
            }
        }
    }

    fn unlist(&mut self, at: u32, binding: &BindingFact) {
        let index = &mut self.kept.index;
        without(&mut index.bindings_by_name, binding.name, &at);
        without(&mut index.bindings_in, binding_scope(binding), &at);
        for identity in binding.subjects.iter().filter_map(identity_of) {
            if self.state.rbac.unbind(identity, at as usize) {
                self.touched.reads.insert(Read::Subjects);
            }
        }
    }

    /// Something is in a namespace now.
    fn entered(&mut self, namespace: Symbol) {
        let all = &mut self.kept.index.namespaces;
        if let Err(at) = all.binary_search(&namespace)
            && namespace != Symbol::EMPTY
        {
            all.insert(at, namespace);
            self.read(Read::Namespaces);
        }
    }

    /// Something is no longer in a namespace; whether anything else is, is not counted.
    fn left(&mut self, namespace: Symbol) {
        self.touched.all |= !self.facts.namespaces.iter().any(|known| known.name == namespace);
    }
}

/// Takes one out of a list, and the list out of the map if it is empty then.
fn without<K: std::hash::Hash + Eq + Copy, V: PartialEq>(
    lists: &mut rustc_hash::FxHashMap<K, Vec<V>>,
    key: K,
    value: &V,
) {
    let Some(list) = lists.get_mut(&key) else { return };
    if let Some(at) = list.iter().position(|known| known == value) {
        list.swap_remove(at);
    }
    if list.is_empty() {
        lists.remove(&key);
    }
}
