//! From roles to needs: each role is compiled once to what its rules meet.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{NodeId, Via, build::Builder, reads::Read};
use crate::{
    BindingFact, Certainty, Fact, Gift, Named, Need, ObjectFact, Place, RuleFact, Scope, Symbol, Symbols,
    Target, Template, rbac::ResolvedRole,
};

/// A need of a template that a rule meets.
#[derive(Debug, Clone, Copy)]
pub struct Match {
    pub template: u32,
    pub need: u8,
    pub rule: u16,
    /// The one name it is met for.
    pub name: Option<Symbol>,
    /// Whether an object must exist for it: group, plural and name, any name if none.
    pub exists: Existing,
}

/// Kinds of rights, by whether it matters who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    /// Those that are worth the same to everybody.
    Shared,
    /// All others.
    Own,
    /// Of the others those that must be held together with something else, whatever admission says.
    Personal,
}

/// What the rules of a role meet, by what it is asked for.
#[derive(Debug, Default)]
pub struct RoleMatches {
    /// All that a template needs.
    pub single: Vec<Match>,
    /// The halves of conjunctions.
    pub halves: Vec<(u16, Match)>,
    /// Both again, of rights whose worth depends on who asks.
    pub own: Vec<Match>,
    /// Whether any of these is so whatever admission says.
    pub is_personal: bool,
    /// Rights to write bindings.
    pub writes: Vec<Match>,
    /// Rights to write roles, and which roles that is about.
    pub widens: Vec<(Target, Match)>,
    /// Whether it says as whom one acts by constrained impersonation.
    pub constrained: bool,
}

/// Group, plural and name of an object that must exist, any name if none.
pub type Existing = Option<(Symbol, Symbol, Option<Symbol>)>;

/// The needs of templates that are rights, by API group.
#[derive(Debug, Clone, Default)]
pub struct Needs(FxHashMap<Symbol, Vec<(u32, u8)>>);

impl Needs {
    pub fn new(templates: &[Template]) -> Self {
        let mut needs = Self::default();
        for (template, said) in (0u32..).zip(templates) {
            for (need, wanted) in (0u8..).zip(&said.when) {
                if let Need::Right { group, .. } = wanted {
                    needs.0.entry(*group).or_default().push((template, need));
                }
            }
        }
        needs
    }

    /// The needs that a rule may meet.
    fn of(&self, rule: &RuleFact) -> Vec<(u32, u8)> {
        let mut found: Vec<(u32, u8)> = if rule.api_groups.contains(&Symbol::STAR) {
            self.0.values().flatten().copied().collect()
        } else {
            rule.api_groups.iter().filter_map(|group| self.0.get(group)).flatten().copied().collect()
        };
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// What the rules of a role meet.
pub fn role_matches(
    role: &ResolvedRole,
    needs: &Needs,
    templates: &[Template],
    symbols: &Symbols,
) -> Vec<Match> {
    let mut found = Vec::new();
    for (index, rule) in (0u16..).zip(&role.rules) {
        for (template, need) in needs.of(rule) {
            let said = templates.get(template as usize);
            let Some(wanted) = said.and_then(|said| said.when.get(usize::from(need))) else { continue };
            rule_matches(rule, wanted, symbols, &mut |name, exists| {
                found.push(Match { template, need, rule: index, name, exists });
            });
        }
    }
    let mut seen = FxHashSet::default();
    found.retain(|m: &Match| seen.insert((m.template, m.need, m.name, m.exists)));
    found
}

/// Whether a rule is every verb on every resource of every group.
pub fn is_everything(rule: &RuleFact) -> bool {
    let star = |list: &[Symbol]| list.contains(&Symbol::STAR);
    rule.resource_names.is_empty() && star(&rule.verbs) && star(&rule.api_groups) && star(&rule.resources)
}

impl Builder<'_> {
    /// The edges from a role that is held in a scope.
    pub fn expand_role(&mut self, id: NodeId, namespace: Option<Symbol>, name: Symbol, scope: Scope) {
        let Some(role) = self.find_role((namespace, name)) else { return };
        self.role_edges(id, role, scope, Rights::Shared);
    }

    /// A role that was gained on the way, for whomever of its identities one likes: the role, and what is decided by who
    /// asks. What admission might refuse is assumed.
    pub fn expand_gained(&mut self, id: NodeId, role: u32, scope: Scope, rights: Rights) {
        let Some(resolved) = self.role(role) else { return };
        let (namespace, name) = resolved.key;
        let to = self.fact(Fact::Role { namespace, name, scope });
        self.edge(id, to, Via::Narrow);
        self.role_edges(id, role, scope, rights);
    }

    /// The edges of those rights of a role that are all a template needs.
    fn role_edges(&mut self, id: NodeId, role: u32, scope: Scope, rights: Rights) {
        let Some(resolved) = self.role(role) else { return };
        // In a namespace each right counts by itself, since admission may refuse some of them.
        let everything = resolved.rules.iter().position(is_everything).filter(|_| scope == Scope::Cluster);
        if let (Some(rule), Rights::Shared) = (everything, rights) {
            let to = self.fact(Fact::Everything(scope));
            let rule = u16::try_from(rule).unwrap_or(u16::MAX);
            self.edge(id, to, Via::Rule { template: u32::MAX, role, rule });
            return;
        }
        // Of several rules that lead to the same, the surest first one is told.
        let mut done: FxHashMap<NodeId, Certainty> = FxHashMap::default();
        for found in &self.matches(role).single {
            let said = self.template(found.template);
            let Some(said) = said.filter(|_| self.is_among(found, rights)) else { continue };
            let Some((at, sure)) = self.need_at(found, scope) else { continue };
            let asked = rights != Rights::Shared && self.is_asked(found.template);
            let sure = if asked { Certainty::Assumed } else { sure.max(said.certainty) };
            let via = Via::Rule { template: found.template, role, rule: found.rule };
            for (to, certainty) in self.gifts(found.template, at, found.name) {
                let certainty = certainty.max(sure);
                if done.get(&to).is_none_or(|known| certainty < *known) {
                    done.insert(to, certainty);
                    self.edge_of(id, to, via, certainty);
                }
            }
            if said.credentials {
                let somebody = self.node(super::Node::Impersonates);
                self.edge_of(id, somebody, via, sure);
            }
        }
    }

    /// Whether admission may refuse a right that a template needs.
    pub fn is_asked(&self, template: u32) -> bool {
        self.asked.get(template as usize) == Some(&true)
    }

    /// Whether a right is of a kind.
    pub fn is_among(&self, found: &Match, rights: Rights) -> bool {
        match rights {
            Rights::Shared => !self.is_own(found.template, found.need),
            Rights::Own => self.is_own(found.template, found.need),
            Rights::Personal => self.is_personal(found.template, found.need),
        }
    }

    /// Whether it depends on who asks what a right is worth, so that it is no matter of the role alone.
    pub fn is_own(&self, template: u32, need: u8) -> bool {
        self.is_personal(template, need) || self.is_asked(template)
    }

    /// The same by itself, without admission.
    pub fn is_personal(&self, template: u32, need: u8) -> bool {
        let said = self.template(template);
        said.is_some_and(|said| said.credentials || said.alone.contains(&usize::from(need)))
    }

    /// Where a match meets its need when its role is held in a scope; none if it is of no use there.
    pub fn need_at(&self, found: &Match, scope: Scope) -> Option<(Scope, Certainty)> {
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
            Some(of) => {
                self.reads.note(Read::Existing(of, scope));
                let known = self.existing.borrow().get(&(of, scope)).copied();
                known.unwrap_or_else(|| {
                    let found = self.exists(of, scope);
                    self.existing.borrow_mut().insert((of, scope), found);
                    found
                })?
            }
        };
        Some((at, certainty))
    }

    /// Whether an object exists: proven, assumed where its kind was not listed, none if it does not.
    /// What it finds is read by whoever asks for it, as [`Read::Existing`].
    pub fn exists(
        &self,
        (group, resource, name): (Symbol, Symbol, Option<Symbol>),
        scope: Scope,
    ) -> Option<Certainty> {
        let (group, plural) = (self.symbols.name(group), self.symbols.name(resource));
        let plural = plural.split('/').next().unwrap_or(plural);
        let here = |namespace: Symbol| match scope {
            Scope::Cluster => true,
            Scope::Namespace(wanted) => wanted == namespace,
        };
        let called = |found: Symbol| name.is_none_or(|name| name == found);
        let listed = match group {
            "" => self.facts.has_listed(plural),
            _ => self.facts.has_listed(&format!("{plural}.{group}")),
        };
        let facts = self.facts;
        let found = match (group, plural) {
            ("", "namespaces") => facts.namespaces.iter().any(|n| called(n.name) && here(n.name)),
            ("", "nodes") => facts.nodes.iter().any(|node| called(node.name)),
            ("rbac.authorization.k8s.io", "rolebindings") => {
                let mut bindings = self.bindings_called(name, scope);
                bindings.any(|b| b.namespace.is_some_and(here))
            }
            ("rbac.authorization.k8s.io", "clusterrolebindings") => {
                let mut bindings = self.bindings_called(name, scope);
                bindings.any(|b| b.namespace.is_none())
            }
            ("rbac.authorization.k8s.io", "clusterroles") => match name {
                Some(name) => self.state.rbac.roles.find((None, name)).is_some(),
                None => self.state.rbac.roles.all().iter().any(|role| role.key.0.is_none()),
            },
            _ => {
                let mut objects = self.objects_called(name, scope);
                objects.any(|object| {
                    (object.namespace == Symbol::EMPTY || here(object.namespace))
                        && object.group() == group
                        && is_plural(&object.kind, plural)
                })
            }
        };
        match (found, listed) {
            (true, _) => Some(Certainty::Proven),
            (false, true) if is_kept(group, plural) => None,
            (false, _) => Some(Certainty::Assumed),
        }
    }

    /// The bindings of a name, or all that may be in a scope.
    fn bindings_called(
        &self,
        name: Option<Symbol>,
        scope: Scope,
    ) -> Box<dyn Iterator<Item = &BindingFact> + '_> {
        let listed = match (name, scope) {
            (Some(name), _) => self.index.bindings_by_name.get(&name),
            (None, Scope::Namespace(_)) => self.index.bindings_in.get(&scope),
            (None, Scope::Cluster) => return Box::new(self.facts.bindings.iter()),
        };
        let listed = listed.into_iter().flatten();
        Box::new(listed.filter_map(|index| self.facts.bindings.get(*index as usize)))
    }

    /// The objects of a name, or all that may be in a scope.
    fn objects_called(
        &self,
        name: Option<Symbol>,
        scope: Scope,
    ) -> Box<dyn Iterator<Item = &ObjectFact> + '_> {
        let listed = match (name, scope) {
            (Some(name), _) => [self.index.objects_by_name.get(&name), None],
            (None, Scope::Namespace(namespace)) => {
                [&namespace, &Symbol::EMPTY].map(|namespace| self.index.objects_in.get(namespace))
            }
            (None, Scope::Cluster) => return Box::new(self.facts.objects.iter()),
        };
        let listed = listed.into_iter().flatten().flatten();
        Box::new(listed.filter_map(|index| self.facts.objects.get(*index as usize)))
    }

    /// What the rules of a role meet, compiled once.
    pub fn matches(&mut self, role: u32) -> Rc<RoleMatches> {
        if let Some(resolved) = self.state.rbac.roles.all().get(role as usize) {
            self.reads.note(Read::Role(resolved.key));
        }
        if let Some(found) = self.matches.get(&role) {
            return Rc::clone(found);
        }
        let all = self.role(role).map_or_else(Vec::new, |resolved| {
            role_matches(resolved, &self.needs, &self.state.templates, self.symbols)
        });
        let mut found = RoleMatches { constrained: self.is_constrained(role), ..RoleMatches::default() };
        for met in all {
            let Some(said) = self.template(met.template) else { continue };
            let writes = ["bind-role", "bind-cluster-role", "join-binding", "join-cluster-binding"];
            if met.need == 0 && writes.contains(&said.edge) {
                found.writes.push(met);
            }
            let target = match (said.edge, said.when.len()) {
                ("escalate-role", _) => Some(Target::HeldClusterRole),
                ("escalate-namespaced-role", _) => Some(Target::HeldRole),
                // By POST; what is made by its name needs two rights.
                ("new-cluster-role", 2) => Some(Target::NewClusterRole),
                ("new-role", 2) => Some(Target::NewRole),
                _ => None,
            };
            found.widens.extend(target.filter(|_| met.need == 0).map(|target| (target, met)));
            found.is_personal |= self.is_personal(met.template, met.need);
            let own = self.is_own(met.template, met.need);
            if own {
                found.own.push(met);
            }
            match self.halves.of(met.template, met.need) {
                Some(half) => found.halves.push((half, met)),
                None if said.gives != Gift::Nothing && said.when.len() == 1 => found.single.push(met),
                None => {}
            }
        }
        let found = Rc::new(found);
        self.matches.insert(role, Rc::clone(&found));
        found
    }
}

/// Says for which names a rule meets a need.
pub fn rule_matches(
    rule: &RuleFact,
    need: &Need,
    symbols: &Symbols,
    say: &mut dyn FnMut(Option<Symbol>, Existing),
) {
    let Need::Right { verbs, group, resources, names, named, .. } = need else { return };
    let has = |list: &[Symbol], wanted: Symbol| list.contains(&Symbol::STAR) || list.contains(&wanted);
    if !has(&rule.api_groups, *group) {
        return;
    }
    let covered = |resource: &&Symbol| {
        rule.resources.iter().any(|r| {
            *r == Symbol::STAR || *r == **resource || is_any_with_subresource(*r, **resource, symbols)
        })
    };
    let covered: Vec<Symbol> = resources.iter().filter(covered).copied().collect();
    let Some(resource) = covered.first() else { return };
    // A rule with names never grants `create` or `deletecollection` of objects: their requests hold no name. But for
    // `create` it is asked by name where a PUT or a server-side apply makes the object.
    let nameless = |verb: &Symbol| match symbols.name(*verb) {
        "create" => *named != Named::Target && !symbols.name(*resource).contains('/'),
        verb => verb == "deletecollection",
    };
    let names_some = !rule.resource_names.is_empty();
    if !verbs.iter().any(|verb| has(&rule.verbs, *verb) && !(names_some && nameless(verb))) {
        return;
    }
    if rule.resource_names.is_empty() {
        // Without create there must be something to change.
        let makes = |verb: &Symbol| symbols.name(*verb) == "create" && has(&rule.verbs, *verb);
        let changes = *named == Named::Exists && !verbs.iter().any(makes);
        match changes {
            true => covered.iter().for_each(|resource| say(None, Some((*group, *resource, None)))),
            false => say(None, None),
        }
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
            Named::Exists => {
                covered.iter().for_each(|resource| say(None, Some((*group, *resource, Some(name)))));
            }
        }
    }
}

fn is_any_with_subresource(rule: Symbol, resource: Symbol, symbols: &Symbols) -> bool {
    let Some(subresource) = symbols.name(rule).strip_prefix("*/") else { return false };
    symbols.name(resource).split_once('/').is_some_and(|(_, wanted)| wanted == subresource)
}

/// Whether objects of a kind are among the facts, so that one that is not there does not exist.
fn is_kept(group: &str, plural: &str) -> bool {
    match group {
        "" => ["namespaces", "nodes"].contains(&plural),
        "apps" => ["deployments", "daemonsets", "statefulsets"].contains(&plural),
        "batch" => false,
        _ => true,
    }
}

/// Whether a kind has this plural, by the rules of English that Kubernetes' kinds follow.
fn is_plural(kind: &str, plural: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    [format!("{kind}s"), format!("{kind}es"), format!("{}ies", kind.strip_suffix('y').unwrap_or(&kind))]
        .iter()
        .any(|candidate| candidate == plural)
}
