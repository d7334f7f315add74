//! What the object of a right is, once somebody may use it: the nodes that a template gives.

use super::{Node, NodeId, build::Builder};
use crate::{Certainty, Fact, Identity, Scope, SubjectKind, Symbol, Target, rbac::RoleKey};

type Gifts = Vec<(NodeId, Certainty)>;

impl Builder<'_> {
    /// The nodes of a target in a scope: of the objects of a name, or of all.
    pub fn target(&mut self, target: Target, scope: Scope, name: Option<Symbol>) -> Gifts {
        match name {
            Some(name) => self.target_named(target, scope, name),
            None => self.target_any(target, scope),
        }
    }

    fn target_any(&mut self, target: Target, scope: Scope) -> Gifts {
        let fact = match target {
            Target::Secret => Fact::Secrets(scope),
            Target::Account => Fact::Accounts(scope),
            Target::AnyAccount => {
                let accounts = self.accounts_of(scope, None);
                return self.acting(accounts);
            }
            Target::Pod => Fact::Inside(scope),
            Target::NodePods => Fact::Inside(Scope::Cluster),
            Target::User => return vec![(self.node(Node::ActingAsAnyUser), Certainty::Proven)],
            Target::Group => Fact::Everything(Scope::Cluster),
            Target::ClusterRole | Target::AbsentClusterRole | Target::AbsentRole => Fact::Everything(scope),
            Target::Role => return self.roles_in(scope),
            Target::AbsentAccount => return self.absent_accounts(scope, None),
            Target::TokenSecret => return self.accounts_beside_tokens(scope, None),
            // What is unnamed reads or replaces every Secret, which templates of powers cover.
            Target::AbsentSecret | Target::ReplacedSecret => return Vec::new(),
            Target::HeldClusterRole
            | Target::HeldRole
            | Target::ReplacedClusterRole
            | Target::ReplacedRole
            | Target::NewClusterRole
            | Target::NewRole
            | Target::JoinedClusterRole
            | Target::JoinedRole => return Vec::new(),
        };
        vec![(self.fact(fact), Certainty::Proven)]
    }

    fn target_named(&mut self, target: Target, scope: Scope, name: Symbol) -> Gifts {
        let group = |kind| Identity { kind, namespace: Symbol::EMPTY, name };
        let facts: Vec<Fact> = match target {
            Target::Secret => {
                let places = self.index.secrets_by_name.get(&name);
                self.named(scope, places, |namespace| Fact::Secret { namespace, name })
            }
            Target::Account => return self.account_named(scope, name),
            Target::AnyAccount => {
                let accounts = self.accounts_of(scope, Some(name));
                return self.acting(accounts);
            }
            Target::Pod => {
                let places = self.index.pod_places.get(&name);
                self.named(scope, places, |namespace| Fact::InsidePod { namespace, name })
            }
            Target::NodePods => vec![Fact::Node(name)],
            Target::User => return self.acting(vec![group(SubjectKind::User)]),
            Target::Group => return self.acting(vec![group(SubjectKind::Group)]),
            Target::ClusterRole => return self.gained((None, name), scope),
            Target::Role => match scope {
                Scope::Namespace(namespace) => return self.gained((Some(namespace), name), scope),
                Scope::Cluster => return Vec::new(),
            },
            Target::AbsentAccount => return self.absent_accounts(scope, Some(name)),
            Target::AbsentClusterRole => match self.find_role((None, name)) {
                None => vec![Fact::Everything(scope)],
                Some(_) => Vec::new(),
            },
            Target::AbsentRole => {
                let absent = |namespace: &Symbol| self.find_role((Some(*namespace), name)).is_none();
                let places = self.places(scope).into_iter().filter(absent);
                places.map(|namespace| Fact::Everything(Scope::Namespace(namespace))).collect()
            }
            Target::TokenSecret => return self.accounts_beside_tokens(scope, Some(name)),
            Target::AbsentSecret | Target::ReplacedSecret if !is_object_name(self.symbols.name(name)) => {
                Vec::new()
            }
            Target::AbsentSecret => {
                let taken = self.index.secrets_by_name.get(&name);
                let free = |namespace: &Symbol| taken.is_none_or(|taken| !taken.contains(namespace));
                self.accounts_in(self.places(scope).into_iter().filter(free).collect())
            }
            Target::ReplacedSecret => self.accounts_in(self.places(scope)),
            Target::HeldClusterRole
            | Target::HeldRole
            | Target::ReplacedClusterRole
            | Target::ReplacedRole
            | Target::NewClusterRole
            | Target::NewRole
            | Target::JoinedClusterRole
            | Target::JoinedRole => Vec::new(),
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

    /// The namespaces of a scope.
    fn places(&self, scope: Scope) -> Vec<Symbol> {
        match scope {
            Scope::Namespace(namespace) => vec![namespace],
            Scope::Cluster => self.namespaces().to_vec(),
        }
    }

    fn accounts_in(&self, places: Vec<Symbol>) -> Vec<Fact> {
        places.into_iter().map(|namespace| Fact::Accounts(Scope::Namespace(namespace))).collect()
    }

    /// The accounts of namespaces that hold a token Secret, of that name.
    fn accounts_beside_tokens(&mut self, scope: Scope, name: Option<Symbol>) -> Gifts {
        let named = |tokens: &Vec<Symbol>| name.is_none_or(|name| tokens.contains(&name));
        let mut places: Vec<Symbol> = match scope {
            Scope::Cluster => {
                let all = self.index.tokens_in.iter().filter(|(_, tokens)| named(tokens));
                all.map(|(namespace, _)| *namespace).collect()
            }
            Scope::Namespace(namespace) => {
                let tokens = self.index.tokens_in.get(&namespace).filter(|tokens| named(tokens));
                tokens.map(|_| namespace).into_iter().collect()
            }
        };
        places.sort_unstable();
        let facts = self.accounts_in(places);
        facts.into_iter().map(|fact| (self.fact(fact), Certainty::Proven)).collect()
    }

    /// The accounts of a name that there are; where that is not known, one of that name may be there.
    fn account_named(&mut self, scope: Scope, name: Symbol) -> Gifts {
        let listed = self.facts.has_listed("serviceaccounts");
        let existing = self.accounts_named(name).to_vec();
        let places: Vec<(Symbol, Certainty)> = match scope {
            Scope::Cluster => existing.into_iter().map(|namespace| (namespace, Certainty::Proven)).collect(),
            Scope::Namespace(namespace) if existing.contains(&namespace) => {
                vec![(namespace, Certainty::Proven)]
            }
            Scope::Namespace(namespace) if !listed => vec![(namespace, Certainty::Assumed)],
            Scope::Namespace(_) => Vec::new(),
        };
        places
            .into_iter()
            .map(|(namespace, sure)| (self.identity(SubjectKind::ServiceAccount, namespace, name), sure))
            .collect()
    }

    /// Accounts that exist, or that bindings name, in a scope, of that name.
    pub fn accounts_of(&self, scope: Scope, name: Option<Symbol>) -> Vec<Identity> {
        let all = [false, true].into_iter().flat_map(|absent| self.accounts_in_scope(scope, absent));
        let mut accounts: Vec<(Symbol, Symbol)> =
            all.filter(|(_, account)| name.is_none_or(|name| name == *account)).collect();
        accounts.sort_unstable();
        accounts
            .into_iter()
            .map(|(namespace, name)| Identity { kind: SubjectKind::ServiceAccount, namespace, name })
            .collect()
    }

    /// Namespaces and names of the ServiceAccounts of a scope: of those that exist, or of those that only bindings name.
    fn accounts_in_scope(&self, scope: Scope, absent: bool) -> Vec<(Symbol, Symbol)> {
        let of = |namespace: Symbol| {
            if absent { self.accounts_absent(namespace) } else { self.accounts_existing(namespace) }
        };
        let places = match scope {
            Scope::Cluster => self.account_namespaces(absent),
            Scope::Namespace(wanted) => vec![wanted],
        };
        places.into_iter().flat_map(|place| of(place).iter().map(move |name| (place, *name))).collect()
    }

    fn acting(&mut self, identities: Vec<Identity>) -> Gifts {
        identities
            .into_iter()
            .map(|identity| (self.node(Node::Acting(identity)), Certainty::Proven))
            .collect()
    }

    pub fn gained(&mut self, key: RoleKey, scope: Scope) -> Gifts {
        let role = self.find_role(key);
        role.map(|role| (self.node(Node::Gained { role, scope }), Certainty::Proven)).into_iter().collect()
    }

    fn roles_in(&mut self, scope: Scope) -> Gifts {
        let keys: Vec<RoleKey> = match scope {
            Scope::Cluster => self.roles_of_namespaces(),
            Scope::Namespace(wanted) => {
                self.roles_of_namespace(wanted).iter().map(|name| (Some(wanted), *name)).collect()
            }
        };
        keys.into_iter()
            .flat_map(|key| self.gained(key, key.0.map_or(Scope::Cluster, Scope::Namespace)))
            .collect()
    }

    fn absent_accounts(&mut self, scope: Scope, name: Option<Symbol>) -> Gifts {
        let certainty =
            if self.facts.has_listed("serviceaccounts") { Certainty::Proven } else { Certainty::Assumed };
        let mut absent = self.accounts_in_scope(scope, true);
        absent.retain(|(_, account)| name.is_none_or(|name| name == *account));
        absent.sort_unstable();
        absent
            .into_iter()
            .map(|(namespace, name)| (self.identity(SubjectKind::ServiceAccount, namespace, name), certainty))
            .collect()
    }
}

/// Whether a Secret can be called so: a DNS subdomain. A rule may name what can never be.
fn is_object_name(name: &str) -> bool {
    let fits = |part: &str| {
        part.starts_with(is_alphanumeric)
            && part.ends_with(is_alphanumeric)
            && part.chars().all(|letter| is_alphanumeric(letter) || letter == '-')
    };
    name.len() <= 253 && name.split('.').all(fits)
}

fn is_alphanumeric(letter: char) -> bool {
    letter.is_ascii_lowercase() || letter.is_ascii_digit()
}
