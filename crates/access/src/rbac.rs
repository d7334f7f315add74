//! RBAC exactly as the API server decides it: which rule of which binding allows a request.
//!
//! Rules come from upstream: matching of verbs, groups, resources and names from `pkg/apis/rbac/v1/
//! evaluation_helpers.go`, subjects and scopes from `plugin/pkg/auth/authorizer/rbac/rbac.go` and
//! `pkg/registry/rbac/validation/rule.go` of kubernetes/kubernetes. A real API server is the judge in the tests.

mod builtin;
mod roles;

use rustc_hash::FxHashMap;

pub use roles::{ResolvedRole, RoleKey, Roles};

use crate::{BindingFact, ClusterFacts, Identity, RuleFact, SubjectFact, SubjectKind, Symbol, Symbols};

/// What somebody asks the API server for. Empty symbols stand for absent parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Request {
    /// The verb.
    pub verb: Symbol,
    /// The API group.
    pub group: Symbol,
    /// The plural alone.
    pub resource: Symbol,
    /// The subresource alone.
    pub subresource: Symbol,
    /// `resource/subresource`, or the resource alone.
    pub full: Symbol,
    /// `*/subresource`, empty without one.
    pub any_with_subresource: Symbol,
    /// The namespace; for a Namespace object its own name.
    pub namespace: Symbol,
    /// The object's name.
    pub name: Symbol,
}

/// What allows a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowed {
    /// Index into the cluster's bindings.
    pub binding: usize,
    /// Index into the role's rules.
    pub rule: usize,
}

/// Whether a rule covers a resource request.
pub fn rule_allows(rule: &RuleFact, request: &Request) -> bool {
    has(&rule.verbs, request.verb)
        && has(&rule.api_groups, request.group)
        && rule.resources.iter().any(|r| {
            *r == Symbol::STAR
                || *r == request.full
                || (request.subresource != Symbol::EMPTY && *r == request.any_with_subresource)
        })
        && (rule.resource_names.is_empty() || rule.resource_names.contains(&request.name))
}

/// Whether a rule covers a request for a path: equal, or a prefix before a final `*`.
pub fn rule_allows_path(rule: &RuleFact, verb: Symbol, path: &str, symbols: &Symbols) -> bool {
    has(&rule.verbs, verb)
        && rule.non_resource_urls.iter().any(|url| {
            let url = symbols.name(*url);
            url == path || url.strip_suffix('*').is_some_and(|prefix| path.starts_with(prefix))
        })
}

fn has(list: &[Symbol], wanted: Symbol) -> bool {
    list.iter().any(|entry| *entry == Symbol::STAR || *entry == wanted)
}

/// The RBAC state of one cluster, indexed by subject.
#[derive(Debug, Clone)]
pub struct Rbac {
    /// The roles, aggregated ones resolved.
    pub roles: Roles,
    by_subject: FxHashMap<Identity, Vec<usize>>,
}

impl Rbac {
    /// Indexes a cluster.
    pub fn new(cluster: &ClusterFacts, symbols: &mut Symbols) -> Self {
        let roles = Roles::new(cluster, symbols);
        let mut by_subject: FxHashMap<Identity, Vec<usize>> = FxHashMap::default();
        for (index, binding) in cluster.bindings.iter().enumerate() {
            for identity in binding.subjects.iter().filter_map(identity_of) {
                let bindings = by_subject.entry(identity).or_default();
                if bindings.last() != Some(&index) {
                    bindings.push(index);
                }
            }
        }
        Self { roles, by_subject }
    }

    /// The bindings that name an identity itself, none of its groups.
    pub fn bindings_of(&self, identity: &Identity) -> &[usize] {
        self.by_subject.get(identity).map_or(&[], Vec::as_slice)
    }

    /// Notes that a binding names an identity. Says whether none did before.
    pub(crate) fn bind(&mut self, identity: Identity, binding: usize) -> bool {
        let bindings = self.by_subject.entry(identity).or_default();
        match bindings.binary_search(&binding) {
            Ok(_) => false,
            Err(at) => {
                bindings.insert(at, binding);
                bindings.len() == 1
            }
        }
    }

    /// Notes that a binding names an identity no longer. Says whether none does now.
    pub(crate) fn unbind(&mut self, identity: Identity, binding: usize) -> bool {
        let Some(bindings) = self.by_subject.get_mut(&identity) else { return false };
        bindings.retain(|known| *known != binding);
        let gone = bindings.is_empty();
        if gone {
            self.by_subject.remove(&identity);
        }
        gone
    }

    /// Every identity that a binding names.
    pub fn subjects(&self) -> impl Iterator<Item = &Identity> {
        self.by_subject.keys()
    }

    /// The first binding and rule that allow a request to somebody who is all these identities (itself, its groups).
    /// `system:masters` is not looked at: the API server lets it through before any authorizer is asked.
    pub fn allows(&self, cluster: &ClusterFacts, who: &[Identity], request: &Request) -> Option<Allowed> {
        who.iter().flat_map(|identity| self.bindings_of(identity)).find_map(|&binding| {
            let fact = cluster.bindings.get(binding)?;
            if fact.namespace.is_some_and(|namespace| namespace != request.namespace) {
                return None;
            }
            let role = self.roles.of_binding(fact)?;
            let rule = role.rules.iter().position(|rule| rule_allows(rule, request))?;
            Some(Allowed { binding, rule })
        })
    }

    /// The same for a path such as `/metrics`; RoleBindings never count.
    pub fn allows_path(
        &self,
        cluster: &ClusterFacts,
        symbols: &Symbols,
        who: &[Identity],
        verb: Symbol,
        path: &str,
    ) -> bool {
        who.iter().flat_map(|identity| self.bindings_of(identity)).any(|&binding| {
            let fact = cluster.bindings.get(binding).filter(|fact| fact.namespace.is_none());
            let role = fact.and_then(|fact| self.roles.of_binding(fact));
            role.is_some_and(|role| role.rules.iter().any(|rule| rule_allows_path(rule, verb, path, symbols)))
        })
    }
}

/// The identity that a subject names; none for a ServiceAccount without a namespace, which matches nobody.
pub fn identity_of(subject: &SubjectFact) -> Option<Identity> {
    let is_account = subject.kind == SubjectKind::ServiceAccount;
    if is_account && subject.namespace == Symbol::EMPTY {
        return None;
    }
    let namespace = if is_account { subject.namespace } else { Symbol::EMPTY };
    Some(Identity { kind: subject.kind, namespace, name: subject.name })
}

impl Request {
    /// A request for an object or a list; `resource` may hold a subresource as `pods/exec`.
    pub fn new(
        symbols: &mut Symbols,
        verb: &str,
        group: &str,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Self {
        let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let any = if subresource.is_empty() { String::new() } else { format!("*/{subresource}") };
        Self {
            verb: symbols.intern(verb),
            group: symbols.intern(group),
            resource: symbols.intern(plural),
            subresource: symbols.intern(subresource),
            full: symbols.intern(resource),
            any_with_subresource: symbols.intern(&any),
            namespace: symbols.intern(namespace),
            name: symbols.intern(name),
        }
    }
}

/// The scope of a binding.
pub fn binding_scope(binding: &BindingFact) -> crate::Scope {
    binding.namespace.map_or(crate::Scope::Cluster, crate::Scope::Namespace)
}
