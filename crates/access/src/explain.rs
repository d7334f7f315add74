//! Ways as steps for people: which object, which rule, what is held after.

use crate::{
    Certainty, Fact, Identity, Need, Origin, Scope, Snapshot, SubjectKind, Symbol,
    answer::Step,
    graph::{Edge, Graph, Match, Node, NodeId, Via},
    search::Hop,
};

/// Writes nodes and hops for people.
#[derive(Debug, Clone, Copy)]
pub struct Explainer<'a> {
    pub snapshot: &'a Snapshot,
    pub graph: &'a Graph,
}

/// What rules say that meet the needs of one step.
#[derive(Default)]
struct Held {
    from: Option<NodeId>,
    objects: Vec<String>,
    rules: Vec<String>,
    at: Option<String>,
    guard: Option<String>,
}

impl<'a> Explainer<'a> {
    /// The steps of a way.
    pub fn steps(&self, hops: &[Hop]) -> Vec<Step> {
        let mut steps = Vec::new();
        for hop in hops {
            self.hop(hop, &mut steps);
        }
        // Halves that come from the same binding tell it twice.
        let mut told: Vec<Step> = Vec::with_capacity(steps.len());
        for step in steps {
            if !told.contains(&step) {
                told.push(step);
            }
        }
        told
    }

    fn hop(&self, Hop { from, edge }: &Hop, steps: &mut Vec<Step>) {
        let from = *from;
        let cluster = self.cluster_of(from);
        let plain = |id: &str, object: String, at: Option<String>| Step {
            edge: id.to_owned(),
            from: self.describe(from),
            to: self.describe(edge.to),
            object,
            rule: String::new(),
            at,
            guard: None,
            certainty: edge.certainty,
        };
        match edge.via {
            Via::Narrow => {}
            Via::Plain(id) => steps.push(plain(id, String::new(), None)),
            Via::Binding(index) => {
                let (object, at) = self.binding(cluster, index);
                steps.push(plain("bound", object, at));
            }
            Via::Pod(id, index) => steps.push(plain(id, self.pod(cluster, index), None)),
            Via::Secret(id, index) => {
                let (object, at) = self.secret(cluster, index);
                steps.push(plain(id, object, at));
            }
            Via::Rule { template: u32::MAX, role, rule } => {
                let (object, at) = self.role(cluster, role);
                steps.push(Step { rule: self.rule(cluster, role, rule), ..plain("all-rights", object, at) });
            }
            via @ Via::Rule { template, .. } | via @ Via::Admitted { template, .. } => {
                let mut held = Held::default();
                self.take(from, via, &mut held, steps);
                steps.push(self.template(template, from, edge, held));
            }
            Via::Joint(index) => {
                let Some(joint) = self.graph.joint(index) else { return };
                let mut held = Held::default();
                for input in &joint.inputs {
                    if let Some(via) = input.via {
                        self.take(input.node, via, &mut held, steps);
                    }
                }
                let first = joint.inputs.first().map_or(from, |input| input.node);
                steps.push(self.template(joint.template, first, edge, held));
            }
            Via::Template(index) => steps.push(self.template(index, from, edge, Held::default())),
        }
    }

    /// Notes what a rule says; that of an identity's own binding is told as a step.
    fn take(&self, from: NodeId, via: Via, held: &mut Held, steps: &mut Vec<Step>) {
        let cluster = self.cluster_of(from);
        match via {
            Via::Rule { role, rule, .. } => {
                held.take(from, self.role(cluster, role), self.rule(cluster, role, rule));
            }
            Via::Admitted { binding, rule, note, .. } => {
                let facts = self.snapshot.clusters.get(usize::from(cluster));
                let fact = facts.and_then(|facts| facts.bindings.get(binding as usize));
                let roles = self.graph.clusters.get(usize::from(cluster)).map(|state| &state.rbac.roles);
                let role = fact.zip(roles).and_then(|(fact, roles)| roles.index_of(fact));
                let role = role.and_then(|role| u32::try_from(role).ok()).unwrap_or(u32::MAX);
                let (object, at) = self.binding(cluster, binding);
                let named = self.role(cluster, role);
                steps.push(Step {
                    edge: "bound".to_owned(),
                    from: self.describe(from),
                    to: named.0.clone(),
                    object,
                    rule: String::new(),
                    at,
                    guard: None,
                    // That it is bound is read from the binding; what is assumed is what the right is worth.
                    certainty: Certainty::Proven,
                });
                held.guard = held.guard.take().or_else(|| self.graph.note(note).map(str::to_owned));
                held.take(from, named, self.rule(cluster, role, rule));
            }
            _ => {}
        }
    }

    /// The step of a template, with the rules that met its needs.
    fn template(&self, index: u32, from: NodeId, edge: &Edge, held: Held) -> Step {
        let state = self.graph.clusters.get(usize::from(self.cluster_of(from)));
        let template = state.and_then(|state| state.templates.get(index as usize));
        let evidence = template.map(|template| template.evidence.as_str()).filter(|text| !text.is_empty());
        let mut rule = held.rules.join(" and ");
        let object = match (evidence, held.objects.is_empty()) {
            (Some(evidence), true) => evidence.to_owned(),
            (Some(evidence), false) => {
                rule = format!("{}: {rule}", held.objects.join(" and "));
                evidence.to_owned()
            }
            (None, _) => held.objects.join(" and "),
        };
        Step {
            edge: template.map_or_else(String::new, |template| template.edge.to_owned()),
            from: self.describe(held.from.unwrap_or(from)),
            to: self.describe(edge.to),
            object,
            rule,
            at: held.at,
            guard: held.guard.or_else(|| template.and_then(|template| template.guard.clone())),
            certainty: edge.certainty,
        }
    }

    /// A right of a role that only makes a finding.
    pub fn soft_step(&self, from: NodeId, found: &Match, scope: Scope) -> Step {
        let cluster = self.cluster_of(from);
        let state = self.graph.clusters.get(usize::from(cluster));
        let template = state.and_then(|state| state.templates.get(found.template as usize));
        let role = match self.graph.node(from) {
            Some((_, Node::Fact(Fact::Role { namespace, name, .. }))) => {
                state.and_then(|state| state.rbac.roles.find((*namespace, *name)))
            }
            _ => None,
        };
        let role = role.and_then(|role| u32::try_from(role).ok()).unwrap_or(u32::MAX);
        let (object, at) = self.role(cluster, role);
        Step {
            edge: template.map_or_else(String::new, |template| template.edge.to_owned()),
            from: self.describe(from),
            to: self.need(cluster, found.template, found.need, scope, found.name),
            object,
            rule: self.rule(cluster, role, found.rule),
            at,
            guard: None,
            // The right is held; what it leads to depends on others.
            certainty: Certainty::Proven,
        }
    }

    fn cluster_of(&self, node: NodeId) -> u16 {
        self.graph.node(node).map_or(0, |(cluster, _)| *cluster)
    }

    /// The name of a subject as the verbs take it, none for what is no subject.
    pub fn subject(&self, cluster: u16, fact: &Fact) -> Option<String> {
        let name = |symbol: Symbol| self.snapshot.symbols.name(symbol);
        let text = match fact {
            Fact::Identity(Identity { kind, namespace, name: own }) => match kind {
                SubjectKind::User => format!("user:{}", name(*own)),
                SubjectKind::Group => format!("group:{}", name(*own)),
                SubjectKind::ServiceAccount => format!("sa:{}/{}", name(*namespace), name(*own)),
            },
            Fact::Source(source) => format!("source:{}", name(*source)),
            _ => return None,
        };
        Some(format!("{}{text}", self.prefix(cluster)))
    }

    /// `CLUSTER:` where there are several clusters and it is not the first.
    pub fn prefix(&self, cluster: u16) -> String {
        match self.snapshot.clusters.get(usize::from(cluster)) {
            Some(facts) if cluster > 0 => format!("{}:", facts.name),
            _ => String::new(),
        }
    }

    /// What a node is, for people.
    pub fn describe(&self, node: NodeId) -> String {
        let Some((cluster, node)) = self.graph.node(node) else { return String::new() };
        match node {
            Node::Fact(fact) => self.fact(*cluster, fact),
            Node::Impersonates => "impersonates somebody".to_owned(),
            Node::ActingAsAnyUser => "acts as any user".to_owned(),
            Node::Acting(identity) | Node::ActingFor { identity, .. } => {
                self.fact(*cluster, &Fact::Identity(*identity))
            }
            Node::Gained { role, scope } | Node::Passed { role, scope, .. } => {
                format!("{} {}", self.role(*cluster, *role).0, self.scope(*cluster, *scope))
            }
        }
    }

    fn need(&self, cluster: u16, template: u32, need: u8, scope: Scope, name: Option<Symbol>) -> String {
        let symbols = &self.snapshot.symbols;
        let state = self.graph.clusters.get(usize::from(cluster));
        let template = state.and_then(|state| state.templates.get(template as usize));
        let Some(Need::Right { verbs, resources, .. }) =
            template.and_then(|template| template.when.get(usize::from(need)))
        else {
            return String::new();
        };
        let join = |list: &[Symbol]| list.iter().map(|s| symbols.name(*s)).collect::<Vec<_>>().join(",");
        let name = name.map_or_else(String::new, |name| format!(" {}", symbols.name(name)));
        format!("{} {}{name} {}", join(verbs), join(resources), self.scope(cluster, scope))
    }

    fn fact(&self, cluster: u16, fact: &Fact) -> String {
        let name = |symbol: Symbol| self.snapshot.symbols.name(symbol);
        let prefix = self.prefix(cluster);
        let at = |scope: Scope| self.scope(cluster, scope);
        match fact {
            Fact::Identity(_) | Fact::Source(_) => self.subject(cluster, fact).unwrap_or_default(),
            Fact::Role { namespace: None, name: role, scope } => {
                format!("ClusterRole {} {}", name(*role), at(*scope))
            }
            Fact::Role { namespace: Some(namespace), name: role, .. } => {
                format!("Role {}/{}", name(*namespace), name(*role))
            }
            Fact::Secrets(scope) => format!("all Secrets {}", at(*scope)),
            Fact::Secret { namespace, name: own } => {
                format!("Secret {prefix}{}/{}", name(*namespace), name(*own))
            }
            Fact::Accounts(scope) => format!("acts as each ServiceAccount {}", at(*scope)),
            Fact::Pods(scope) => format!("pods of its own {}", at(*scope)),
            Fact::Inside(scope) => format!("code in each pod {}", at(*scope)),
            Fact::InsidePod { namespace, name: own } => {
                format!("code in pod {}/{}", name(*namespace), name(*own))
            }
            Fact::Node(node) => format!("root on node {}", name(*node)),
            Fact::Nodes => "root on any node".to_owned(),
            Fact::AnyUser => "acts as any user".to_owned(),
            Fact::Everything(scope) => format!("every right {}", at(*scope)),
            Fact::Cloud(identity) => format!("cloud identity {}", name(*identity)),
            Fact::OtherCluster(other) => format!("controls cluster {}", name(*other)),
        }
    }

    /// Where, for people.
    pub fn scope(&self, cluster: u16, scope: Scope) -> String {
        match scope {
            Scope::Namespace(namespace) => {
                format!("in {}{}", self.prefix(cluster), self.snapshot.symbols.name(namespace))
            }
            Scope::Cluster if cluster > 0 => {
                let name = self.snapshot.clusters.get(usize::from(cluster)).map_or("", |facts| &facts.name);
                format!("in cluster {name}")
            }
            Scope::Cluster => "in the cluster".to_owned(),
        }
    }

    fn binding(&self, cluster: u16, index: u32) -> (String, Option<String>) {
        let facts = self.snapshot.clusters.get(usize::from(cluster));
        let Some(binding) = facts.and_then(|facts| facts.bindings.get(index as usize)) else {
            return Default::default();
        };
        let name = |symbol: Symbol| self.snapshot.symbols.name(symbol);
        let text = match binding.namespace {
            Some(namespace) => format!("RoleBinding {}/{}", name(namespace), name(binding.name)),
            None => format!("ClusterRoleBinding {}", name(binding.name)),
        };
        (text, self.place(binding.origin))
    }

    fn role(&self, cluster: u16, index: u32) -> (String, Option<String>) {
        let state = self.graph.clusters.get(usize::from(cluster));
        let Some(role) = state.and_then(|state| state.rbac.roles.all().get(index as usize)) else {
            return Default::default();
        };
        let name = |symbol: Symbol| self.snapshot.symbols.name(symbol);
        let text = match role.key {
            (Some(namespace), own) => format!("Role {}/{}", name(namespace), name(own)),
            (None, own) if role.built_in => format!("ClusterRole {} (a default of Kubernetes)", name(own)),
            (None, own) => format!("ClusterRole {}", name(own)),
        };
        (text, self.place(role.origin))
    }

    fn rule(&self, cluster: u16, role: u32, rule: u16) -> String {
        let state = self.graph.clusters.get(usize::from(cluster));
        let role = state.and_then(|state| state.rbac.roles.all().get(role as usize));
        let Some(said) = role.and_then(|role| role.rules.get(usize::from(rule))) else {
            return String::new();
        };
        let join = |list: &[Symbol]| {
            list.iter().map(|s| self.snapshot.symbols.name(*s)).collect::<Vec<_>>().join(",")
        };
        let names = match said.resource_names.as_slice() {
            [] => String::new(),
            names => format!(" named {}", join(names)),
        };
        format!("rules[{rule}]: {} {}{names}", join(&said.verbs), join(&said.resources))
    }

    fn pod(&self, cluster: u16, index: u32) -> String {
        let facts = self.snapshot.clusters.get(usize::from(cluster));
        let name = |symbol: Symbol| self.snapshot.symbols.name(symbol);
        facts
            .and_then(|facts| facts.pods.get(index as usize))
            .map_or_else(String::new, |pod| format!("Pod {}/{}", name(pod.namespace), name(pod.name)))
    }

    fn secret(&self, cluster: u16, index: u32) -> (String, Option<String>) {
        let facts = self.snapshot.clusters.get(usize::from(cluster));
        let name = |symbol: Symbol| self.snapshot.symbols.name(symbol);
        facts.and_then(|facts| facts.secrets.get(index as usize)).map_or_else(Default::default, |secret| {
            (format!("Secret {}/{}", name(secret.namespace), name(secret.name)), self.place(secret.origin))
        })
    }

    /// `file:line`, none for what came from an API server.
    fn place(&self, origin: Origin) -> Option<String> {
        let source = self.snapshot.sources.get(origin.source as usize)?;
        (origin.line > 0).then(|| format!("{source}:{}", origin.line))
    }
}

impl Held {
    fn take(&mut self, from: NodeId, (object, at): (String, Option<String>), rule: String) {
        self.from = self.from.or(Some(from));
        if !self.objects.contains(&object) {
            self.objects.push(object);
        }
        if !self.rules.contains(&rule) {
            self.rules.push(rule);
        }
        self.at = self.at.take().or(at);
    }
}
