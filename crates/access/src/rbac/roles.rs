//! Roles with what they really hold: aggregation resolved, built-in ones filled in.

use rustc_hash::{FxHashMap, FxHashSet};

use super::builtin;
use crate::{BindingFact, ClusterFacts, Origin, RoleFact, RuleFact, SelectorFact, Symbol, Symbols};

/// Namespace (none for a ClusterRole) and name of a role.
pub type RoleKey = (Option<Symbol>, Symbol);

/// A role and all its rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedRole {
    /// Namespace and name.
    pub key: RoleKey,
    /// Its own rules, then those that it aggregates.
    pub rules: Vec<RuleFact>,
    /// Where it was read.
    pub origin: Origin,
    /// Whether it was not loaded: each cluster has it, with at least these rules.
    pub built_in: bool,
}

/// All roles of a cluster.
#[derive(Debug, Clone, Default)]
pub struct Roles {
    roles: Vec<ResolvedRole>,
    index: FxHashMap<RoleKey, usize>,
}

impl Roles {
    /// Resolves aggregation from what was loaded, so that static manifests say the same as a live cluster, where a
    /// controller has filled the rules in. A default role that was not loaded is filled in.
    pub fn new(cluster: &ClusterFacts, symbols: &mut Symbols) -> Self {
        let mut roles = Self::default();
        for fact in &cluster.roles {
            roles.insert(ResolvedRole {
                key: (fact.namespace, fact.name),
                rules: fact.rules.clone(),
                origin: fact.origin,
                built_in: false,
            });
        }
        for name in builtin::NAMES {
            let symbol = symbols.intern(name);
            if roles.index.contains_key(&(None, symbol)) {
                continue;
            }
            let (key, rules) = ((None, symbol), builtin::rules(name, symbols));
            roles.insert(ResolvedRole { key, rules, origin: Origin::default(), built_in: true });
        }
        roles.aggregate(cluster, symbols);
        roles
    }

    /// Resolves all again, each role in its old place. Gives those that are new, others or gone, with their places; one
    /// that is gone keeps its place without rules.
    pub(crate) fn renew(&mut self, cluster: &ClusterFacts, symbols: &mut Symbols) -> Vec<(RoleKey, usize)> {
        let fresh = Self::new(cluster, symbols);
        let mut changed = Vec::new();
        let gone: Vec<(RoleKey, usize)> = self
            .index
            .iter()
            .filter(|(key, _)| !fresh.index.contains_key(*key))
            .map(|(key, at)| (*key, *at))
            .collect();
        for (key, at) in gone {
            self.index.remove(&key);
            if let Some(role) = self.roles.get_mut(at) {
                role.rules.clear();
            }
            changed.push((key, at));
        }
        let Self { roles, index } = fresh;
        for (at, role) in roles.into_iter().enumerate() {
            // Of two of one name the last counts.
            if index.get(&role.key) != Some(&at) {
                continue;
            }
            let known = self.index.get(&role.key).copied();
            match known.and_then(|at| Some((at, self.roles.get_mut(at)?))) {
                Some((_, known)) if *known == role => {}
                Some((at, known)) => {
                    changed.push((role.key, at));
                    *known = role;
                }
                None => {
                    changed.push((role.key, self.roles.len()));
                    self.insert(role);
                }
            }
        }
        changed
    }

    fn insert(&mut self, role: ResolvedRole) {
        self.index.insert(role.key, self.roles.len());
        self.roles.push(role);
    }

    /// Adds to each aggregating role the rules of the ClusterRoles that it selects, over any number of steps; a cycle
    /// ends where it comes back.
    fn aggregate(&mut self, cluster: &ClusterFacts, symbols: &Symbols) {
        let facts: FxHashMap<Symbol, &RoleFact> =
            cluster.roles.iter().filter(|r| r.namespace.is_none()).map(|r| (r.name, r)).collect();
        let aggregating: Vec<(Symbol, Vec<SelectorFact>)> = self
            .roles
            .iter()
            .filter(|role| role.key.0.is_none())
            .filter_map(|role| {
                let selectors = match facts.get(&role.key.1) {
                    Some(fact) => fact.aggregation.clone(),
                    None => builtin::aggregation(symbols.name(role.key.1), symbols),
                };
                (!selectors.is_empty()).then_some((role.key.1, selectors))
            })
            .collect();
        let selectors: FxHashMap<Symbol, &Vec<SelectorFact>> =
            aggregating.iter().map(|(name, selectors)| (*name, selectors)).collect();
        let labelled: Vec<&RoleFact> =
            facts.values().copied().filter(|fact| !fact.labels.is_empty()).collect();
        for (name, _) in &aggregating {
            let mut seen = FxHashSet::from_iter([*name]);
            let mut open = vec![*name];
            let mut added = Vec::new();
            while let Some(from) = open.pop() {
                let Some(selectors) = selectors.get(&from) else { continue };
                for fact in &labelled {
                    let selected = selectors.iter().any(|s| selects(s, &fact.labels, symbols));
                    if selected && seen.insert(fact.name) {
                        added.extend(fact.rules.iter().cloned());
                        open.push(fact.name);
                    }
                }
            }
            added.sort();
            if let Some(role) = self.index.get(&(None, *name)).and_then(|i| self.roles.get_mut(*i)) {
                added.retain(|rule| !role.rules.contains(rule));
                added.dedup();
                role.rules.extend(added);
            }
        }
    }

    /// The role that a binding refers to, if there is one: a Role only in the binding's own namespace.
    pub fn of_binding(&self, binding: &BindingFact) -> Option<&ResolvedRole> {
        self.index_of(binding).and_then(|index| self.roles.get(index))
    }

    /// The place of that role in [`Roles::all`].
    pub fn index_of(&self, binding: &BindingFact) -> Option<usize> {
        let namespace = if binding.cluster_role { None } else { Some(binding.namespace?) };
        self.index.get(&(namespace, binding.role)).copied()
    }

    /// The place of a role by its key.
    pub fn find(&self, key: RoleKey) -> Option<usize> {
        self.index.get(&key).copied()
    }

    /// All roles.
    pub fn all(&self) -> &[ResolvedRole] {
        &self.roles
    }
}

/// Whether a label selector selects (apimachinery `LabelSelectorAsSelector`); an empty one selects all.
fn selects(selector: &SelectorFact, labels: &[(Symbol, Symbol)], symbols: &Symbols) -> bool {
    let value = |key: Symbol| labels.iter().find(|(k, _)| *k == key).map(|(_, value)| *value);
    selector.labels.iter().all(|(key, wanted)| value(*key) == Some(*wanted))
        && selector.expressions.iter().all(|expression| {
            let found = value(expression.key);
            match symbols.name(expression.operator) {
                "In" => found.is_some_and(|found| expression.values.contains(&found)),
                "NotIn" => found.is_none_or(|found| !expression.values.contains(&found)),
                "Exists" => found.is_some(),
                "DoesNotExist" => found.is_none(),
                _ => false,
            }
        })
}
