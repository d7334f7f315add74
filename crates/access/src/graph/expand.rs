//! What follows from a single node.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    Node, NodeId, Via,
    build::{Builder, ClusterState},
};
use crate::{
    Certainty, ClusterFacts, Fact, Gift, Identity, Need, Power, Scope, SubjectKind, Symbol, Symbols, Target,
};

/// The facts of a cluster by what they are asked for.
#[derive(Debug, Default)]
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
    /// Pods by node.
    pub pods_by_node: FxHashMap<Symbol, Vec<u32>>,
    /// Accounts that bindings name and that do not exist, by namespace.
    pub absent: FxHashMap<Symbol, Vec<Symbol>>,
    /// The groups of the accounts of a namespace.
    pub groups: FxHashMap<Symbol, Symbol>,
    /// Nodes of the control plane.
    pub control_plane: FxHashSet<Symbol>,
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
            if let Some(node) = pod.node {
                index.pods_by_node.entry(node).or_default().push(id);
            }
        }
        for binding in &facts.bindings {
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
                leading.insert((secret.namespace, secret.name));
            }
        }
        for (namespace, name) in leading {
            self.leading.entry(namespace).or_default().push(name);
        }
        self.leading.values_mut().for_each(|names| names.sort_unstable());
    }

    fn templates(&mut self, state: &ClusterState) {
        for (id, template) in (0u32..).zip(&state.templates) {
            match template.when.as_slice() {
                [Need::Fact(fact)] => self.by_fact.entry(*fact).or_default().push(id),
                [Need::Power(power)] => self.by_power.entry(*power).or_default().push(id),
                _ => {}
            }
        }
    }
}

impl Builder<'_> {
    /// Makes the edges that start at a node, and the nodes they lead to.
    pub fn expand(&mut self, id: NodeId, node: Node) {
        match node {
            Node::Fact(fact) => {
                self.expand_fact(id, fact);
                for template in self.index.by_fact.get(&fact).cloned().unwrap_or_default() {
                    self.give(id, template, Scope::Cluster, None);
                }
            }
            Node::Need { template, scope, name, .. } => self.expand_need(id, template, scope, name),
            Node::Gained { role, scope } => self.expand_gained(id, role, scope),
            Node::Impersonates => {}
        }
    }

    fn expand_fact(&mut self, id: NodeId, fact: Fact) {
        match fact {
            Fact::Identity(identity) => self.expand_identity(id, identity),
            Fact::Role { namespace, name, scope } => self.expand_role(id, namespace, name, scope),
            Fact::Secrets(scope) => self.expand_power(id, Power::Secrets, scope),
            Fact::Accounts(scope) => self.expand_power(id, Power::Accounts, scope),
            Fact::Pods(scope) => self.expand_power(id, Power::Pods, scope),
            Fact::Inside(scope) => self.expand_power(id, Power::Inside, scope),
            Fact::Everything(scope) => self.expand_everything(id, scope),
            Fact::Secret { namespace, name } => self.expand_secret(id, namespace, name),
            Fact::InsidePod { namespace, name } => {
                if let Some(pod) = self.index.pods_by_name.get(&(namespace, name)).copied() {
                    self.inside(id, "inside-pod", &[pod]);
                }
            }
            Fact::Node(node) => self.expand_node(id, node),
            Fact::Nodes => self.expand_nodes(id),
            Fact::AnyUser => self.expand_any_user(id),
            Fact::OtherCluster(_) | Fact::Source(_) | Fact::Cloud(_) => {}
        }
    }

    fn expand_identity(&mut self, id: NodeId, identity: Identity) {
        let names = self.state.names;
        let group = |name| Identity { kind: SubjectKind::Group, namespace: Symbol::EMPTY, name };
        match identity.kind {
            SubjectKind::ServiceAccount => {
                let of_namespace = self.index.groups.get(&identity.namespace).copied();
                let to = self.fact(Fact::Identity(group(of_namespace.unwrap_or(names.accounts))));
                self.edge(id, to, Via::Plain("member-of"));
                if let Some(cloud) = self.index.cloud.get(&(identity.namespace, identity.name)).copied() {
                    let to = self.fact(Fact::Cloud(cloud));
                    self.edge(id, to, Via::Plain("cloud-identity"));
                }
            }
            SubjectKind::User => {
                let to = self.fact(Fact::Identity(group(names.authenticated)));
                self.edge(id, to, Via::Plain("member-of"));
                self.expand_node_identity(id, identity.name);
            }
            SubjectKind::Group if identity.name == names.masters => {
                let to = self.fact(Fact::Everything(Scope::Cluster));
                self.edge(id, to, Via::Plain("masters"));
            }
            SubjectKind::Group if identity.name == names.authenticated => {}
            SubjectKind::Group if identity.name == names.unauthenticated => {}
            SubjectKind::Group => {
                let accounts = self.symbols.name(identity.name).starts_with("system:serviceaccounts:");
                let next = if accounts { names.accounts } else { names.authenticated };
                let to = self.fact(Fact::Identity(group(next)));
                self.edge(id, to, Via::Plain("member-of"));
            }
        }
        self.bindings_of(id, identity);
    }

    /// The node authorizer lets a node read what its pods refer to (`plugin/pkg/auth/authorizer/node`).
    fn expand_node_identity(&mut self, id: NodeId, user: Symbol) {
        let node = self.symbols.name(user).strip_prefix("system:node:");
        let node = node.and_then(|name| self.symbols.find(name));
        if let Some(pods) = node.and_then(|node| self.index.pods_by_node.get(&node)).cloned() {
            self.inside(id, "node-identity", &pods);
        }
    }

    /// Scopes: what holds in the cluster holds in each namespace. Then what pods and accounts are good for.
    fn expand_power(&mut self, id: NodeId, power: Power, scope: Scope) {
        let namespace = match scope {
            Scope::Cluster => {
                self.narrow_power(id, power);
                None
            }
            Scope::Namespace(namespace) => {
                // Made, so that whoever holds the power in the cluster leads here.
                let wide = self.fact(power.at(Scope::Cluster));
                self.edge(wide, id, Via::Narrow);
                Some(namespace)
            }
        };
        for template in self.index.by_power.get(&power).cloned().unwrap_or_default() {
            self.give(id, template, scope, None);
        }
        let Some(namespace) = namespace else { return };
        match power {
            Power::Secrets => {
                for name in self.index.leading.get(&namespace).cloned().unwrap_or_default() {
                    let to = self.fact(Fact::Secret { namespace, name });
                    self.edge(id, to, Via::Narrow);
                }
            }
            Power::Accounts => {
                let existing = self.index.accounts.get(&namespace).cloned().unwrap_or_default();
                for name in existing {
                    let to = self.identity(SubjectKind::ServiceAccount, namespace, name);
                    self.edge(id, to, Via::Narrow);
                }
            }
            Power::Inside => {
                let pods = self.index.pods.get(&namespace).cloned().unwrap_or_default();
                self.inside(id, "inside-pod", &pods);
            }
            Power::Pods | Power::Everything => {}
        }
    }

    /// Makes the nodes of namespaces only where they lead on.
    fn narrow_power(&mut self, id: NodeId, power: Power) {
        let namespaces: Vec<Symbol> = match power {
            Power::Secrets => self.index.leading.keys().copied().collect(),
            Power::Accounts => self.index.accounts.keys().copied().collect(),
            Power::Inside => self.index.pods.keys().copied().collect(),
            Power::Pods | Power::Everything => self.index.namespaces.clone(),
        };
        for namespace in namespaces {
            let to = self.fact(power.at(Scope::Namespace(namespace)));
            // The edge comes with the node of the namespace.
            debug_assert_ne!(to, id);
        }
    }

    /// What pods hold: their accounts, what they mount, and the node of a privileged one. One edge for each thing.
    fn inside(&mut self, id: NodeId, edge: &'static str, pods: &[u32]) {
        let mut seen = FxHashSet::default();
        for &pod_id in pods {
            let Some(pod) = usize::try_from(pod_id).ok().and_then(|i| self.facts.pods.get(i)) else {
                continue;
            };
            let account = Fact::Identity(Identity {
                kind: SubjectKind::ServiceAccount,
                namespace: pod.namespace,
                name: pod.service_account,
            });
            if pod.token && seen.insert(account) {
                let to = self.fact(account);
                self.edge(id, to, Via::Pod(edge, pod_id));
            }
            for &name in &pod.secrets {
                let secret = Fact::Secret { namespace: pod.namespace, name };
                if seen.insert(secret) {
                    let to = self.fact(secret);
                    self.edge(id, to, Via::Pod(edge, pod_id));
                }
            }
            if let (true, Some(node), "inside-pod") = (pod.privileged, pod.node, edge)
                && seen.insert(Fact::Node(node))
            {
                let to = self.fact(Fact::Node(node));
                self.edge(id, to, Via::Pod("container-escape", pod_id));
            }
        }
    }

    fn expand_secret(&mut self, id: NodeId, namespace: Symbol, name: Symbol) {
        let Some(token) = self.index.tokens.get(&(namespace, name)).copied() else { return };
        let fact = usize::try_from(token).ok().and_then(|i| self.facts.secrets.get(i));
        if let Some(account) = fact.and_then(|secret| secret.service_account) {
            let to = self.identity(SubjectKind::ServiceAccount, namespace, account);
            self.edge(id, to, Via::Secret("stored-token", token));
        }
    }

    fn expand_node(&mut self, id: NodeId, node: Symbol) {
        let pods = self.index.pods_by_node.get(&node).cloned().unwrap_or_default();
        self.inside(id, "on-node", &pods);
        if self.index.control_plane.contains(&node) {
            let to = self.fact(Fact::Everything(Scope::Cluster));
            self.edge(id, to, Via::Plain("control-plane-node"));
        }
    }

    /// Any node: all pods, and the control plane if it has nodes here, or may have.
    fn expand_nodes(&mut self, id: NodeId) {
        let inside = self.fact(Fact::Inside(Scope::Cluster));
        self.edge(id, inside, Via::Plain("on-node"));
        let known = self.facts.has_listed("nodes");
        if !self.index.control_plane.is_empty() || !known {
            let to = self.fact(Fact::Everything(Scope::Cluster));
            let certainty = if known { Certainty::Proven } else { Certainty::Assumed };
            self.edge_of(id, to, Via::Plain("control-plane-node"), certainty);
        }
    }

    fn expand_any_user(&mut self, id: NodeId) {
        let bindings = self.facts.bindings.iter();
        let users: FxHashSet<Symbol> = bindings
            .flat_map(|binding| &binding.subjects)
            .filter(|subject| subject.kind == SubjectKind::User)
            .map(|subject| subject.name)
            .collect();
        for user in users {
            let to = self.identity(SubjectKind::User, Symbol::EMPTY, user);
            self.edge(id, to, Via::Narrow);
        }
        // A cluster without this one's binding was loaded in part: its controller manager reads all Secrets.
        let manager = self.state.names.controller_manager;
        let identity = Identity { kind: SubjectKind::User, namespace: Symbol::EMPTY, name: manager };
        if self.state.rbac.bindings_of(&identity).is_empty() {
            let to = self.fact(Fact::Secrets(Scope::Cluster));
            self.edge_of(id, to, Via::Plain("impersonate-user"), Certainty::Assumed);
        }
    }

    /// Everything in a namespace is each power over it and each right in it.
    fn expand_everything(&mut self, id: NodeId, scope: Scope) {
        for power in [Power::Secrets, Power::Accounts, Power::Pods, Power::Inside] {
            let to = self.fact(power.at(scope));
            self.edge(id, to, Via::Plain("all-rights"));
        }
        let Scope::Namespace(_) = scope else {
            for fact in [Fact::Nodes, Fact::AnyUser] {
                let to = self.fact(fact);
                self.edge(id, to, Via::Plain("all-rights"));
            }
            return;
        };
        let to = self.node(Node::Impersonates);
        self.edge(id, to, Via::Plain("all-rights"));
        let state = self.state;
        for (template, said) in (0u32..).zip(&state.templates) {
            let leads_out = said.when.len() > 1 || !matches!(said.gives, Gift::Power(_));
            if !leads_out || matches!(said.gives, Gift::Nothing) {
                continue;
            }
            for (need, wanted) in (0u8..).zip(&said.when) {
                if matches!(wanted, Need::Right { place: crate::Place::Here, .. }) {
                    let to = self.node(Node::Need { template, need, scope, name: None });
                    // Who comes here did so by granting itself everything; whom admission would refuse is not known.
                    let is_guarded = self.guarded.get(template as usize) == Some(&true);
                    let certainty = if is_guarded { Certainty::Assumed } else { Certainty::Proven };
                    self.edge_of(id, to, Via::Plain("all-rights"), certainty);
                }
            }
        }
    }

    /// A need of a template that has no other gives at once; others wait for their conjunction.
    fn expand_need(&mut self, id: NodeId, template: u32, scope: Scope, name: Option<Symbol>) {
        let Some(said) = self.template(template) else { return };
        if said.edge == "impersonate-account" || said.edge == "impersonate-user" {
            let to = self.node(Node::Impersonates);
            self.edge(id, to, Via::Narrow);
        }
        if said.when.len() == 1 {
            self.give(id, template, scope, name);
        }
    }

    /// Makes the edges from a holder of all needs of a template to what it gives.
    pub fn give(&mut self, from: NodeId, template: u32, scope: Scope, name: Option<Symbol>) {
        let Some(said) = self.template(template) else { return };
        for (gift, certainty) in self.gifts(template, scope, name) {
            let certainty = certainty.max(said.certainty);
            self.edge_of(from, gift, Via::Template(template), certainty);
        }
    }

    /// The nodes that a template gives in a scope, for a name.
    pub fn gifts(&mut self, template: u32, scope: Scope, name: Option<Symbol>) -> Vec<(NodeId, Certainty)> {
        let Some(said) = self.template(template) else { return Vec::new() };
        let allowed = |namespace: &Symbol| {
            !said.except.contains(namespace) && said.only.as_ref().is_none_or(|only| only.contains(namespace))
        };
        let limited = said.only.is_some() || !said.except.is_empty();
        let scopes: Vec<Scope> = match scope {
            Scope::Namespace(namespace) if allowed(&namespace) => vec![scope],
            Scope::Namespace(_) => return Vec::new(),
            Scope::Cluster if !limited => vec![scope],
            Scope::Cluster => {
                let namespaces = self.index.namespaces.iter().filter(|n| allowed(n));
                namespaces.map(|namespace| Scope::Namespace(*namespace)).collect()
            }
        };
        let mut nodes = Vec::new();
        for scope in scopes {
            match said.gives {
                Gift::Nothing => {}
                Gift::Fact(fact) => nodes.push((self.fact(fact), Certainty::Proven)),
                Gift::Power(power) => nodes.push((self.fact(power.at(scope)), Certainty::Proven)),
                Gift::Target(target) => nodes.extend(self.target(target, scope, name)),
            }
        }
        nodes.dedup();
        nodes
    }

    fn target(&mut self, target: Target, scope: Scope, name: Option<Symbol>) -> Vec<(NodeId, Certainty)> {
        let proven = |node| vec![(node, Certainty::Proven)];
        let identity = |kind, namespace, name| Fact::Identity(Identity { kind, namespace, name });
        let Some(name) = name else {
            let fact = match target {
                Target::Secret => Fact::Secrets(scope),
                Target::Account => Fact::Accounts(scope),
                Target::AnyAccount => {
                    let existing = self.fact(Fact::Accounts(scope));
                    let mut nodes = self.absent_accounts(scope);
                    nodes.push((existing, Certainty::Proven));
                    return nodes;
                }
                Target::Pod => Fact::Inside(scope),
                Target::NodePods => Fact::Inside(Scope::Cluster),
                Target::User => Fact::AnyUser,
                Target::Group => Fact::Everything(Scope::Cluster),
                Target::ClusterRole => Fact::Everything(scope),
                Target::Role => return self.roles_in(scope),
                Target::AbsentAccount => return self.absent_accounts(scope),
                Target::HeldClusterRole | Target::HeldRole => return Vec::new(),
            };
            return proven(self.fact(fact));
        };
        let facts: Vec<Fact> = match target {
            Target::Secret => self.named(scope, self.index.secrets_by_name.get(&name), |namespace| {
                Fact::Secret { namespace, name }
            }),
            Target::Account | Target::AnyAccount => {
                self.named(scope, self.index.accounts_by_name.get(&name), |namespace| {
                    identity(SubjectKind::ServiceAccount, namespace, name)
                })
            }
            Target::Pod => {
                let pods = self.index.pods_by_name.keys().filter(|(_, pod)| *pod == name);
                let places: Vec<Symbol> = pods.map(|(namespace, _)| *namespace).collect();
                self.named(scope, Some(&places), |namespace| Fact::InsidePod { namespace, name })
            }
            Target::NodePods => vec![Fact::Node(name)],
            Target::User => vec![identity(SubjectKind::User, Symbol::EMPTY, name)],
            Target::Group => vec![identity(SubjectKind::Group, Symbol::EMPTY, name)],
            Target::ClusterRole => return self.gained((None, name), scope),
            Target::Role => match scope {
                Scope::Namespace(namespace) => return self.gained((Some(namespace), name), scope),
                Scope::Cluster => return Vec::new(),
            },
            Target::AbsentAccount | Target::HeldClusterRole | Target::HeldRole => Vec::new(),
        };
        facts.into_iter().map(|fact| (self.fact(fact), Certainty::Proven)).collect()
    }

    /// A name in a namespace is that object, there or not yet; in the cluster it is each object of that name.
    fn named(&self, scope: Scope, places: Option<&Vec<Symbol>>, fact: impl Fn(Symbol) -> Fact) -> Vec<Fact> {
        match scope {
            Scope::Namespace(namespace) => vec![fact(namespace)],
            Scope::Cluster => places.into_iter().flatten().map(|namespace| fact(*namespace)).collect(),
        }
    }

    fn gained(&mut self, key: crate::rbac::RoleKey, scope: Scope) -> Vec<(NodeId, Certainty)> {
        let role = self.state.rbac.roles.find(key).and_then(|role| u32::try_from(role).ok());
        role.map(|role| (self.node(Node::Gained { role, scope }), Certainty::Proven)).into_iter().collect()
    }

    fn roles_in(&mut self, scope: Scope) -> Vec<(NodeId, Certainty)> {
        let of_namespace = |role: &&crate::RoleFact| match (scope, role.namespace) {
            (Scope::Cluster, Some(_)) => true,
            (Scope::Namespace(wanted), Some(namespace)) => wanted == namespace,
            (_, None) => false,
        };
        let keys: Vec<_> =
            self.facts.roles.iter().filter(of_namespace).map(|role| (role.namespace, role.name)).collect();
        keys.into_iter()
            .flat_map(|key| self.gained(key, key.0.map_or(Scope::Cluster, Scope::Namespace)))
            .collect()
    }

    fn absent_accounts(&mut self, scope: Scope) -> Vec<(NodeId, Certainty)> {
        let certainty =
            if self.facts.has_listed("serviceaccounts") { Certainty::Proven } else { Certainty::Assumed };
        let absent = self.index.absent.iter().filter(|(namespace, _)| match scope {
            Scope::Cluster => true,
            Scope::Namespace(wanted) => wanted == **namespace,
        });
        let absent: Vec<(Symbol, Symbol)> =
            absent.flat_map(|(namespace, names)| names.iter().map(|name| (*namespace, *name))).collect();
        absent
            .into_iter()
            .map(|(namespace, name)| (self.identity(SubjectKind::ServiceAccount, namespace, name), certainty))
            .collect()
    }
}
