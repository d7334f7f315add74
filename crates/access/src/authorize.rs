//! Answers what a policy asks the authorizer, from the RBAC of the cluster.

use crate::{
    Authorizer, Check, ClusterFacts, Identity, Requester, SubjectKind, Symbol, Symbols,
    rbac::{Rbac, Request},
};

/// The RBAC authorizer of one cluster. Other authorizers, such as that for nodes, are not known.
#[derive(Debug, Clone, Copy)]
pub struct ClusterAuthorizer<'a> {
    facts: &'a ClusterFacts,
    symbols: &'a Symbols,
    rbac: &'a Rbac,
}

impl<'a> ClusterAuthorizer<'a> {
    /// Borrows what it decides from.
    pub fn new(facts: &'a ClusterFacts, symbols: &'a Symbols, rbac: &'a Rbac) -> Self {
        Self { facts, symbols, rbac }
    }

    /// Everybody that a requester is: itself and its groups, as far as any binding could name them.
    pub fn identities(&self, who: &Requester) -> Vec<Identity> {
        let of = |kind, namespace: &str, name: &str| {
            Some(Identity {
                kind,
                namespace: self.symbols.find(namespace)?,
                name: self.symbols.find(name).filter(|name| *name != Symbol::EMPTY)?,
            })
        };
        let account = who.user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
        let user = match account {
            Some((namespace, name)) => of(SubjectKind::ServiceAccount, namespace, name),
            None => of(SubjectKind::User, "", &who.user),
        };
        let groups = who.groups.iter().filter_map(|group| of(SubjectKind::Group, "", group));
        user.into_iter().chain(groups).collect()
    }
}

impl Authorizer for ClusterAuthorizer<'_> {
    fn allows(&self, who: &Requester, check: &Check) -> bool {
        if who.groups.iter().any(|group| group == "system:masters") {
            return true;
        }
        let identities = self.identities(who);
        // A name that no fact holds can be met by a wildcard only.
        let find = |name: &str| self.symbols.find(name).unwrap_or(Symbol::UNKNOWN);
        if let Some(path) = &check.path {
            return self.rbac.allows_path(self.facts, self.symbols, &identities, find(&check.verb), path);
        }
        let Check { verb, group, resource, subresource, namespace, name, .. } = check;
        let with_subresource = |before: &str| match subresource.as_str() {
            "" => Symbol::EMPTY,
            subresource => find(&format!("{before}/{subresource}")),
        };
        let request = Request {
            verb: find(verb),
            group: find(group),
            resource: find(resource),
            subresource: find(subresource),
            full: if subresource.is_empty() { find(resource) } else { with_subresource(resource) },
            any_with_subresource: with_subresource("*"),
            namespace: find(namespace),
            name: find(name),
        };
        self.rbac.allows(self.facts, &identities, &request).is_some()
    }
}
