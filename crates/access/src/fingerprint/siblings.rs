//! What stands beside a secret: its user, its host, the public id of its cloud key.

use super::strength::is_uuid;
use super::url;
use super::{PublicFacts, fact};

/// Public neighbours of the values of one map.
#[derive(Default)]
pub(super) struct Siblings {
    /// Names and values of users; a map may have several.
    users: Vec<(String, String)>,
    shared: PublicFacts,
}

impl Siblings {
    /// Collects from names and texts of one map.
    pub(super) fn of<'a>(entries: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut siblings = Self::default();
        for (name, text) in entries {
            let text = text.trim();
            if !text.is_empty() && text.len() <= 256 && !text.contains(['\n', '\0']) {
                siblings.take(name, text);
            }
        }
        siblings
    }

    /// Adds a fact that all share.
    pub(super) fn share(&mut self, name: &'static str, value: String) {
        self.shared.insert(name, value);
    }

    fn take(&mut self, name: &str, text: &str) {
        let packed: String =
            name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        let ends = |endings: &[&str]| endings.iter().any(|ending| packed.ends_with(ending));
        let found = if is_access_key_id(text) {
            Some(fact::ACCESS_KEY_ID)
        } else if ends(&["tenantid", "tenant"]) && is_uuid(text) {
            Some(fact::TENANT_ID)
        } else if ends(&["clientid", "appid", "applicationid"]) && is_uuid(text) {
            Some(fact::CLIENT_ID)
        } else {
            None
        };
        if let Some(found) = found {
            self.shared.entry(found).or_insert_with(|| text.to_owned());
        } else if ends(&["user", "username", "login", "uid", "userid", "accountname"]) {
            self.users.push((name.to_owned(), text.to_owned()));
        } else if ends(&["host", "hostname", "server", "endpoint", "registry"]) {
            self.shared.entry(fact::HOST).or_insert_with(|| url::host(text));
        }
    }

    /// Returns the facts for one name: what all share, and the user whose name is most like it.
    pub(super) fn facts(&self, name: &str) -> PublicFacts {
        let mut facts = self.shared.clone();
        let likeness = |other: &str| {
            name.chars().zip(other.chars()).take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count()
        };
        if let Some((_, user)) = self.users.iter().rev().max_by_key(|(other, _)| likeness(other)) {
            facts.insert(fact::USER, user.clone());
        }
        facts
    }
}

fn is_access_key_id(text: &str) -> bool {
    text.len() == 20
        && (text.starts_with("AKIA") || text.starts_with("ASIA"))
        && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}
