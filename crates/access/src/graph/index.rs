//! The facts of a cluster by what they are asked for.

use rustc_hash::{FxHashMap, FxHashSet};

use super::build::ClusterState;
use crate::{ClusterFacts, Fact, Need, Power, Scope, SubjectKind, Symbol, Symbols, rbac::binding_scope};

/// The facts of a cluster by what they are asked for.
#[derive(Debug, Clone, Default)]
pub struct Index {
    /// Every namespace that anything is in.
    pub namespaces: Vec<Symbol>,
    /// ServiceAccounts by namespace.
    pub accounts: FxHashMap<Symbol, Vec<Symbol>>,
    /// Namespaces of ServiceAccounts by name.
    pub accounts_by_name: FxHashMap<Symbol, Vec<Symbol>>,
    /// Namespaces of Secrets by name.
    pub secrets_by_name: FxHashMap<Symbol, Vec<Symbol>>,
    /// Secrets whose reading leads on, by namespace.
    pub leading: FxHashMap<Symbol, Vec<Symbol>>,
    /// Token Secrets by namespace and name.
    pub tokens: FxHashMap<(Symbol, Symbol), u32>,
    /// Pods by namespace, by namespace and name, by node.
    pub pods: FxHashMap<Symbol, Vec<u32>>,
    /// Pods by namespace and name.
    pub pods_by_name: FxHashMap<(Symbol, Symbol), u32>,
    /// Namespaces of pods by name.
    pub pod_places: FxHashMap<Symbol, Vec<Symbol>>,
    /// Pods by node.
    pub pods_by_node: FxHashMap<Symbol, Vec<u32>>,
    /// Accounts that bindings name and that do not exist, by namespace.
    pub absent: FxHashMap<Symbol, Vec<Symbol>>,
    /// The groups of the accounts of a namespace.
    pub groups: FxHashMap<Symbol, Symbol>,
    /// Nodes of the control plane.
    pub control_plane: FxHashSet<Symbol>,
    /// Bindings by name.
    pub bindings_by_name: FxHashMap<Symbol, Vec<u32>>,
    /// Bindings by scope.
    pub bindings_in: FxHashMap<Scope, Vec<u32>>,
    /// Roles of namespaces.
    pub roles_in: FxHashMap<Symbol, Vec<Symbol>>,
    /// Objects by name.
    pub objects_by_name: FxHashMap<Symbol, Vec<u32>>,
    /// Objects by namespace, empty for those of the cluster.
    pub objects_in: FxHashMap<Symbol, Vec<u32>>,
    /// Namespaces with token Secrets, and the names of these.
    pub tokens_in: FxHashMap<Symbol, Vec<Symbol>>,
    /// ClusterRoles that aggregate others.
    pub aggregating: FxHashSet<Symbol>,
    /// Templates that need one fact, by it.
    pub by_fact: FxHashMap<Fact, Vec<u32>>,
    /// Templates that need one power only.
    pub by_power: FxHashMap<Power, Vec<u32>>,
    /// Accounts with an identity of the cloud.
    pub cloud: FxHashMap<(Symbol, Symbol), Symbol>,
}

impl Index {
    pub fn new(facts: &ClusterFacts, symbols: &Symbols, state: &ClusterState) -> Self {
        let mut index = Self::default();
        let mut namespaces: FxHashSet<Symbol> = facts.namespaces.iter().map(|n| n.name).collect();
        let mut existing = FxHashSet::default();
        for account in &facts.service_accounts {
            namespaces.insert(account.namespace);
            existing.insert((account.namespace, account.name));
            index.accounts.entry(account.namespace).or_default().push(account.name);
            index.accounts_by_name.entry(account.name).or_default().push(account.namespace);
            if let Some(identity) = account.cloud_identity {
                index.cloud.insert((account.namespace, account.name), identity);
            }
        }
        index.secrets(facts, state, &mut namespaces);
        for (id, pod) in (0u32..).zip(&facts.pods) {
            namespaces.insert(pod.namespace);
            index.pods.entry(pod.namespace).or_default().push(id);
            index.pods_by_name.insert((pod.namespace, pod.name), id);
            index.pod_places.entry(pod.name).or_default().push(pod.namespace);
            if let Some(node) = pod.node {
                index.pods_by_node.entry(node).or_default().push(id);
            }
        }
        for (id, binding) in (0u32..).zip(&facts.bindings) {
            index.bindings_by_name.entry(binding.name).or_default().push(id);
            index.bindings_in.entry(binding_scope(binding)).or_default().push(id);
            namespaces.extend(binding.namespace);
            for subject in &binding.subjects {
                let key = (subject.namespace, subject.name);
                if subject.kind == SubjectKind::ServiceAccount && existing.insert(key) {
                    index.absent.entry(subject.namespace).or_default().push(subject.name);
                }
            }
        }
        namespaces.remove(&Symbol::EMPTY);
        index.namespaces = namespaces.into_iter().collect();
        index.namespaces.sort_unstable();
        let with_accounts = index.accounts.keys().chain(index.absent.keys());
        let groups = with_accounts.filter_map(|namespace| {
            let group = format!("system:serviceaccounts:{}", symbols.name(*namespace));
            Some((*namespace, symbols.find(&group)?))
        });
        index.groups = groups.collect();
        for role in &facts.roles {
            if let Some(namespace) = role.namespace {
                index.roles_in.entry(namespace).or_default().push(role.name);
            }
        }
        for (id, object) in (0u32..).zip(&facts.objects) {
            index.objects_by_name.entry(object.name).or_default().push(id);
            index.objects_in.entry(object.namespace).or_default().push(id);
        }
        let aggregating =
            facts.roles.iter().filter(|role| role.namespace.is_none() && !role.aggregation.is_empty());
        index.aggregating = aggregating.map(|role| role.name).collect();
        index.control_plane = facts.nodes.iter().filter(|n| n.control_plane).map(|n| n.name).collect();
        index.templates(state);
        index
    }

    fn secrets(&mut self, facts: &ClusterFacts, state: &ClusterState, namespaces: &mut FxHashSet<Symbol>) {
        let needs = state.templates.iter().flat_map(|template| &template.when);
        let mut leading: FxHashSet<(Symbol, Symbol)> = needs
            .filter_map(|need| match need {
                Need::Fact(Fact::Secret { namespace, name }) => Some((*namespace, *name)),
                _ => None,
            })
            .collect();
        for (id, secret) in (0u32..).zip(&facts.secrets) {
            namespaces.insert(secret.namespace);
            self.secrets_by_name.entry(secret.name).or_default().push(secret.namespace);
            if secret.kind == state.names.token_type && secret.service_account.is_some() {
                self.tokens.insert((secret.namespace, secret.name), id);
                self.tokens_in.entry(secret.namespace).or_default().push(secret.name);
                leading.insert((secret.namespace, secret.name));
            }
        }
        for (namespace, name) in leading {
            self.leading.entry(namespace).or_default().push(name);
        }
        self.leading.values_mut().for_each(|names| names.sort_unstable());
    }

    fn templates(&mut self, state: &ClusterState) {
        for (id, template) in (0u32..).zip(state.templates.iter()) {
            match template.when.as_slice() {
                [Need::Fact(fact)] => self.by_fact.entry(*fact).or_default().push(id),
                [Need::Power(power)] => self.by_power.entry(*power).or_default().push(id),
                _ => {}
            }
        }
    }
}
