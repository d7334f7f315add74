//! What follows from a single node.

use rustc_hash::FxHashSet;

use super::{Node, NodeId, Via, build::Builder, matches::Rights};
use crate::{Certainty, Fact, Gift, Identity, Need, Place, Power, Scope, SubjectKind, Symbol};

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
            Node::Gained { role, scope } => self.expand_gained(id, role, scope, Rights::Own),
            Node::Passed { role, scope, .. } => self.expand_gained(id, role, scope, Rights::Personal),
            Node::Acting(identity) => self.expand_identity(id, identity, true),
            Node::ActingAsAnyUser => self.expand_any_user(id, true),
            // Its edges are made with it.
            Node::ActingFor { .. } | Node::Impersonates => {}
        }
    }

    fn expand_fact(&mut self, id: NodeId, fact: Fact) {
        match fact {
            Fact::Identity(identity) => self.expand_identity(id, identity, false),
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
            Fact::AnyUser => self.expand_any_user(id, false),
            Fact::OtherCluster(_) | Fact::Source(_) | Fact::Cloud(_) => {}
        }
    }

    /// `acting`: by impersonation, so that it impersonates nobody in turn, and logs in nowhere else.
    fn expand_identity(&mut self, id: NodeId, identity: Identity, acting: bool) {
        if let Some(group) = self.group_of(&identity) {
            let to = self.identity_node(group, acting);
            self.edge(id, to, Via::Plain("member-of"));
        }
        let names = self.state.names;
        match identity.kind {
            SubjectKind::ServiceAccount if acting => {}
            SubjectKind::ServiceAccount => {
                if let Some(cloud) = self.index.cloud.get(&(identity.namespace, identity.name)).copied() {
                    let to = self.fact(Fact::Cloud(cloud));
                    self.edge(id, to, Via::Plain("cloud-identity"));
                }
            }
            // A node is one by its group, too.
            SubjectKind::User if acting => {}
            SubjectKind::User => self.expand_node_identity(id, identity.name),
            SubjectKind::Group if identity.name == names.masters => {
                let to = self.fact(Fact::Everything(Scope::Cluster));
                self.edge(id, to, Via::Plain("masters"));
            }
            SubjectKind::Group => {}
        }
        self.bindings_of(id, identity, acting);
        self.pass_on(id, identity);
        if !acting {
            self.constrained(id, identity);
        }
    }

    /// The node of an identity, held by credentials or by impersonation only.
    pub fn identity_node(&mut self, identity: Identity, acting: bool) -> NodeId {
        self.node(if acting { Node::Acting(identity) } else { Node::Fact(Fact::Identity(identity)) })
    }

    /// The implicit group that everybody is in who is an identity.
    pub fn group_of(&self, identity: &Identity) -> Option<Identity> {
        let names = self.state.names;
        let name = match identity.kind {
            SubjectKind::ServiceAccount => self.accounts_group(identity.namespace).unwrap_or(names.accounts),
            SubjectKind::User => names.authenticated,
            SubjectKind::Group if [names.authenticated, names.unauthenticated].contains(&identity.name) => {
                return None;
            }
            SubjectKind::Group => {
                let accounts = self.symbols.name(identity.name).starts_with("system:serviceaccounts:");
                if accounts { names.accounts } else { names.authenticated }
            }
        };
        Some(Identity { kind: SubjectKind::Group, namespace: Symbol::EMPTY, name })
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
                if !self.made.incoming_of(id).contains(&wide) {
                    self.edge(wide, id, Via::Narrow);
                }
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
                let existing = self.accounts_existing(namespace).to_vec();
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
            Power::Accounts => self.account_namespaces(false),
            Power::Inside => self.index.pods.keys().copied().collect(),
            Power::Pods | Power::Everything => self.namespaces().to_vec(),
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

    /// Every user that a binding names; by a certificate, which may name a group as well, every group but
    /// `system:masters`.
    fn expand_any_user(&mut self, id: NodeId, acting: bool) {
        let subjects = self.subjects();
        let masters = self.state.names.masters;
        let named: FxHashSet<Identity> = subjects
            .filter(|subject| match subject.kind {
                SubjectKind::User => true,
                SubjectKind::Group => !acting && subject.name != masters,
                SubjectKind::ServiceAccount => false,
            })
            .filter_map(crate::rbac::identity_of)
            .collect();
        for identity in named {
            let to = self.identity_node(identity, acting);
            self.edge(id, to, Via::Narrow);
        }
        // A cluster without this one's binding was loaded in part: its controller manager reads all Secrets.
        let manager = self.state.names.controller_manager;
        let identity = Identity { kind: SubjectKind::User, namespace: Symbol::EMPTY, name: manager };
        if self.bindings_naming(&identity).is_empty() {
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
        for (template, said) in (0u32..).zip(state.templates.iter()) {
            // What needs more is a conjunction, and what is a power follows from those above.
            let [Need::Right { place: Place::Here, .. }] = said.when.as_slice() else { continue };
            if matches!(said.gives, Gift::Power(_) | Gift::Nothing) {
                continue;
            }
            // Who comes here did so by granting itself everything; whom admission would refuse is not known.
            let asked = if self.is_asked(template) { Certainty::Assumed } else { Certainty::Proven };
            for (to, sure) in self.gifts(template, scope, None) {
                self.edge_of(id, to, Via::Template(template), sure.max(asked).max(said.certainty));
            }
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
                let namespaces = self.namespaces().iter().filter(|n| allowed(n));
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
}
