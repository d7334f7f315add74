//! From roles and bindings to needs: each role is compiled once to what its rules meet.

use std::rc::Rc;

use rustc_hash::FxHashSet;

use super::{Blocked, Node, NodeId, Via, build::Builder};
use crate::{
    Certainty, Decision, Fact, Identity, Named, Need, Place, Requester, RuleFact, Scope, SubjectKind, Symbol,
    rbac::ResolvedRole,
};

/// A need of a template that a rule meets.
#[derive(Debug, Clone, Copy)]
pub struct Match {
    pub template: u32,
    pub need: u8,
    pub rule: u16,
    /// The one name it is met for.
    pub name: Option<Symbol>,
    /// Whether an object of a name must exist for it, and which.
    pub exists: Option<(Symbol, Symbol, Symbol)>,
}

/// Whether a rule is every verb on every resource of every group.
fn is_everything(rule: &RuleFact) -> bool {
    let star = |list: &[Symbol]| list.contains(&Symbol::STAR);
    rule.resource_names.is_empty() && star(&rule.verbs) && star(&rule.api_groups) && star(&rule.resources)
}

impl Builder<'_> {
    /// The edges from a role that is held in a scope.
    pub fn expand_role(&mut self, id: NodeId, namespace: Option<Symbol>, name: Symbol, scope: Scope) {
        let Some(role) = self.state.rbac.roles.find((namespace, name)) else { return };
        let role = u32::try_from(role).unwrap_or(u32::MAX);
        self.role_edges(id, role, scope, false);
    }

    /// A role that was gained on the way: the role, and what admission might refuse if it knew who asks.
    pub fn expand_gained(&mut self, id: NodeId, role: u32, scope: Scope) {
        let Some(resolved) = self.role(role) else { return };
        let (namespace, name) = resolved.key;
        let to = self.fact(Fact::Role { namespace, name, scope });
        self.edge(id, to, Via::Narrow);
        self.role_edges(id, role, scope, true);
    }

    fn role(&self, role: u32) -> Option<&ResolvedRole> {
        usize::try_from(role).ok().and_then(|role| self.state.rbac.roles.all().get(role))
    }

    /// `guarded`: the edges of rights that admission may refuse, as assumed; else only the others.
    fn role_edges(&mut self, id: NodeId, role: u32, scope: Scope, guarded: bool) {
        let Some(resolved) = self.role(role) else { return };
        let certainty = if guarded { Certainty::Assumed } else { Certainty::Proven };
        // In a namespace each right counts by itself, since admission may refuse some of them.
        let everything = resolved.rules.iter().position(is_everything).filter(|_| scope == Scope::Cluster);
        if let (Some(rule), false) = (everything, guarded) {
            let to = self.fact(Fact::Everything(scope));
            let rule = u16::try_from(rule).unwrap_or(u16::MAX);
            self.edge_of(id, to, Via::Rule { template: u32::MAX, role, rule }, certainty);
            return;
        }
        for found in self.matches(role).iter() {
            if self.guarded.get(found.template as usize) != Some(&guarded) {
                continue;
            }
            if let Some((to, sure)) = self.need_node(found, scope) {
                let via = Via::Rule { template: found.template, role, rule: found.rule };
                self.edge_of(id, to, via, sure.max(certainty));
            }
        }
    }

    /// The node of the need that a match meets when its role is held in a scope; none if it is of no use there.
    fn need_node(&mut self, found: &Match, scope: Scope) -> Option<(NodeId, Certainty)> {
        let Some(Need::Right { place, .. }) =
            self.template(found.template).and_then(|t| t.when.get(usize::from(found.need)))
        else {
            return None;
        };
        let at = match (place, scope) {
            (Place::Here, _) => scope,
            (Place::Cluster | Place::In(_), Scope::Cluster) => Scope::Cluster,
            (Place::In(wanted), Scope::Namespace(namespace)) if *wanted == namespace => Scope::Cluster,
            (Place::Cluster | Place::In(_), Scope::Namespace(_)) => return None,
        };
        let certainty = match found.exists {
            None => Certainty::Proven,
            Some((group, resource, name)) => self.exists(group, resource, scope, name)?,
        };
        let node = Node::Need { template: found.template, need: found.need, scope: at, name: found.name };
        Some((self.node(node), certainty))
    }

    /// Whether an object exists: proven, assumed where its kind was not listed, none if it does not.
    fn exists(&self, group: Symbol, resource: Symbol, scope: Scope, name: Symbol) -> Option<Certainty> {
        let (group, plural) = (self.symbols.name(group), self.symbols.name(resource));
        let plural = plural.split('/').next().unwrap_or(plural);
        let here = |namespace: Symbol| match scope {
            Scope::Cluster => true,
            Scope::Namespace(wanted) => wanted == namespace,
        };
        let listed = match group {
            "" => self.facts.has_listed(plural),
            _ => self.facts.has_listed(&format!("{plural}.{group}")),
        };
        let found = match (group, plural) {
            ("", "namespaces") => self.facts.namespaces.iter().any(|n| n.name == name),
            ("", "nodes") => self.facts.nodes.iter().any(|node| node.name == name),
            ("rbac.authorization.k8s.io", "rolebindings") => {
                self.facts.bindings.iter().any(|b| b.name == name && b.namespace.is_some_and(here))
            }
            ("rbac.authorization.k8s.io", "clusterrolebindings") => {
                self.facts.bindings.iter().any(|b| b.name == name && b.namespace.is_none())
            }
            ("rbac.authorization.k8s.io", "clusterroles") => {
                self.facts.roles.iter().any(|r| r.name == name && r.namespace.is_none())
            }
            _ => self.facts.objects.iter().any(|object| {
                object.name == name
                    && (object.namespace == Symbol::EMPTY || here(object.namespace))
                    && object.group() == group
                    && is_plural(&object.kind, plural)
            }),
        };
        match (found, listed) {
            (true, _) => Some(Certainty::Proven),
            (false, true) => None,
            (false, false) => Some(Certainty::Assumed),
        }
    }

    /// What the rules of a role meet, compiled once.
    fn matches(&mut self, role: u32) -> Rc<Vec<Match>> {
        if let Some(found) = self.matches.get(&role) {
            return Rc::clone(found);
        }
        let mut found = Vec::new();
        if let Some(resolved) = self.role(role) {
            for (index, rule) in (0u16..).zip(&resolved.rules) {
                for (template, said) in (0u32..).zip(&self.state.templates) {
                    for (need, wanted) in (0u8..).zip(&said.when) {
                        rule_matches(
                            rule,
                            wanted,
                            &mut |name, exists| {
                                found.push(Match { template, need, rule: index, name, exists });
                            },
                            self.symbols,
                        );
                    }
                }
            }
        }
        let mut seen = FxHashSet::default();
        found.retain(|m: &Match| seen.insert((m.template, m.need, m.name, m.exists)));
        let found = Rc::new(found);
        self.matches.insert(role, Rc::clone(&found));
        found
    }

    /// The edges from an identity to the roles that bindings give it, and those that admission decides for it.
    pub fn bindings_of(&mut self, id: NodeId, identity: Identity) {
        let state = self.state;
        for &index in state.rbac.bindings_of(&identity) {
            let Some(binding) = self.facts.bindings.get(index) else { continue };
            let Some(role) = state.rbac.roles.index_of(binding) else { continue };
            let Some(resolved) = state.rbac.roles.all().get(role) else { continue };
            let (namespace, name) = resolved.key;
            let scope = crate::rbac::binding_scope(binding);
            let to = self.fact(Fact::Role { namespace, name, scope });
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            self.edge(id, to, Via::Binding(index));
            let is_full = scope == Scope::Cluster && resolved.rules.iter().any(is_everything);
            if self.guarded.contains(&true) && !is_full {
                let role = u32::try_from(role).unwrap_or(u32::MAX);
                self.admitted(id, identity, index, role, scope);
            }
        }
    }

    /// Asks admission for each right that it may refuse, in each namespace where the right would hold.
    fn admitted(&mut self, id: NodeId, identity: Identity, binding: u32, role: u32, scope: Scope) {
        for found in self.matches(role).iter() {
            if self.guarded.get(found.template as usize) != Some(&true) {
                continue;
            }
            let Some(said) = self.template(found.template) else { continue };
            let Some(Need::Right { place, .. }) = said.when.get(usize::from(found.need)) else { continue };
            let scopes: Vec<Scope> = match (place, scope) {
                (Place::Here, Scope::Cluster) => {
                    self.index.namespaces.iter().map(|namespace| Scope::Namespace(*namespace)).collect()
                }
                _ => vec![scope],
            };
            let place = *place;
            for at in scopes {
                let asked = match (place, at) {
                    (Place::In(namespace), _) | (_, Scope::Namespace(namespace)) => Some(namespace),
                    _ => None,
                };
                let (certainty, note) = match self.ask(found, identity, asked) {
                    Decision::Passes => (Certainty::Proven, u32::MAX),
                    Decision::Unknown { by, why } => {
                        (Certainty::Assumed, self.note(format!("{by} could not be evaluated: {why}")))
                    }
                    Decision::Blocked { by, .. } => {
                        let (cluster, template) = (self.cluster, found.template);
                        self.made.blocked.push(Blocked { cluster, template, identity: id, scope: at, by });
                        continue;
                    }
                };
                if let Some((to, sure)) = self.need_node(found, at) {
                    let via = Via::Admitted { template: found.template, binding, rule: found.rule, note };
                    self.edge_of(id, to, via, sure.max(certainty));
                }
            }
        }
    }

    /// Whether all samples of a template are refused; the first that is not decides.
    fn ask(&self, found: &Match, identity: Identity, namespace: Option<Symbol>) -> Decision {
        let who = self.requester(identity);
        let authorizer = crate::authorize::ClusterAuthorizer::new(self.facts, self.symbols, &self.state.rbac);
        let namespace = namespace.map(|namespace| self.symbols.name(namespace));
        let name = found.name.map_or("sample", |name| self.symbols.name(name));
        let mut worst = None;
        let samples = self.template(found.template).map_or(&[][..], |template| &template.samples);
        for sample in samples {
            match self.state.admission.decide(sample, &who, namespace, name, &authorizer) {
                Decision::Passes => return Decision::Passes,
                unknown @ Decision::Unknown { .. } => worst = Some(unknown),
                blocked @ Decision::Blocked { .. } => worst = worst.or(Some(blocked)),
            }
        }
        worst.unwrap_or(Decision::Passes)
    }

    fn requester(&self, identity: Identity) -> Requester {
        let name = self.symbols.name(identity.name).to_owned();
        let authenticated = "system:authenticated".to_owned();
        match identity.kind {
            SubjectKind::User => Requester { user: name, groups: vec![authenticated] },
            // Somebody of the group whose own name means nothing.
            SubjectKind::Group => Requester { user: String::new(), groups: vec![name, authenticated] },
            SubjectKind::ServiceAccount => {
                let namespace = self.symbols.name(identity.namespace);
                let groups = vec![
                    "system:serviceaccounts".to_owned(),
                    format!("system:serviceaccounts:{namespace}"),
                    authenticated,
                ];
                Requester { user: format!("system:serviceaccount:{namespace}:{name}"), groups }
            }
        }
    }

    fn note(&mut self, text: String) -> u32 {
        let index = match self.made.notes.iter().rposition(|note| *note == text) {
            Some(index) => index,
            None => {
                self.made.notes.push(text);
                self.made.notes.len() - 1
            }
        };
        u32::try_from(index).unwrap_or(u32::MAX)
    }
}

type Existing = Option<(Symbol, Symbol, Symbol)>;

/// Says for which names a rule meets a need.
fn rule_matches(
    rule: &RuleFact,
    need: &Need,
    say: &mut dyn FnMut(Option<Symbol>, Existing),
    symbols: &crate::Symbols,
) {
    let Need::Right { verbs, group, resources, names, named, .. } = need else { return };
    let has = |list: &[Symbol], wanted: Symbol| list.contains(&Symbol::STAR) || list.contains(&wanted);
    if !has(&rule.api_groups, *group) || !verbs.iter().any(|verb| has(&rule.verbs, *verb)) {
        return;
    }
    let covered = |resource: &&Symbol| {
        rule.resources.iter().any(|r| {
            *r == Symbol::STAR || *r == **resource || is_any_with_subresource(*r, **resource, symbols)
        })
    };
    let Some(resource) = resources.iter().find(covered) else { return };
    if rule.resource_names.is_empty() {
        say(None, None);
        return;
    }
    for &name in &rule.resource_names {
        if !names.is_empty() {
            if names.contains(&name) {
                say(None, None);
            }
            continue;
        }
        match named {
            Named::Never => {}
            Named::Target => say(Some(name), None),
            Named::Exists => say(None, Some((*group, *resource, name))),
        }
    }
}

fn is_any_with_subresource(rule: Symbol, resource: Symbol, symbols: &crate::Symbols) -> bool {
    let Some(subresource) = symbols.name(rule).strip_prefix("*/") else { return false };
    symbols.name(resource).split_once('/').is_some_and(|(_, wanted)| wanted == subresource)
}

/// Whether a kind has this plural, by the rules of English that Kubernetes' kinds follow.
fn is_plural(kind: &str, plural: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    [format!("{kind}s"), format!("{kind}es"), format!("{}ies", kind.strip_suffix('y').unwrap_or(&kind))]
        .iter()
        .any(|candidate| candidate == plural)
}
