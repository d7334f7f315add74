//! Who stands for a role of a tenant where a question needs one identity.

use bailey_api::SubjectSet;

/// An identity as the API server sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The user name.
    pub user: String,
    /// All groups, `system:authenticated` included.
    pub groups: Vec<String>,
    /// The subject of the Tenant that it stands for, such as `group:NAME`.
    pub subject: String,
}

/// The first subject of a set: a group's member called `person`, a user, or an account.
pub fn first(set: &SubjectSet, person: &str) -> Option<Identity> {
    let authenticated = "system:authenticated".to_owned();
    if let Some(group) = set.groups.first() {
        return Some(Identity {
            user: person.to_owned(),
            groups: vec![group.clone(), authenticated],
            subject: format!("group:{group}"),
        });
    }
    if let Some(user) = set.users.first() {
        return Some(Identity {
            user: user.clone(),
            groups: vec![authenticated],
            subject: format!("user:{user}"),
        });
    }
    set.service_accounts.first().map(|account| service_account(account.namespace(), account.name()))
}

/// A ServiceAccount with the groups that the API server gives it.
pub fn service_account(namespace: &str, name: &str) -> Identity {
    Identity {
        user: format!("system:serviceaccount:{namespace}:{name}"),
        groups: vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated".to_owned(),
        ],
        subject: format!("sa:{namespace}/{name}"),
    }
}

impl Identity {
    /// Namespace and name, if it is a ServiceAccount.
    pub fn account(&self) -> Option<(&str, &str)> {
        self.user.strip_prefix("system:serviceaccount:")?.split_once(':')
    }
}
