//! `WWW-Authenticate`: how an upstream wants to be asked (RFC 9110, 11.6.1; RFC 6750; the token specification of
//! the distribution project).
//!
//! One header may hold several challenges, several headers may come, and commas separate both challenges and
//! parameters. What cannot be read ends the list; what came before it still counts.

use crate::media::is_token;
use crate::name::Repository;
use crate::page;

/// As much of a header as is read, and as many challenges and parameters.
const VALUE_LEN_MAX: usize = 8 * 1024;
const CHALLENGES_MAX: usize = 16;
const PARAMETERS_MAX: usize = 64;

/// One way to authenticate that an upstream offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Challenge {
    Bearer(Bearer),
    Basic {
        realm: String,
    },
    /// Another scheme, by its name in lower case.
    Other(String),
}

/// Where to get a token, and for what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bearer {
    /// A URL that the upstream names: not to be trusted before [`crate::trust::realm`] was asked.
    pub realm: String,
    pub service: Option<String>,
    /// Several are separated by spaces.
    pub scope: Option<String>,
    /// Why a token that was sent does not do, such as `insufficient_scope`.
    pub error: Option<String>,
}

impl Bearer {
    /// The scope to ask for: what the upstream wants, or else reading this repository.
    pub fn scope_for(&self, repository: &Repository) -> String {
        let said = self.scope.as_deref().map(str::trim).filter(|scope| !scope.is_empty());
        said.map_or_else(|| format!("repository:{repository}:pull"), str::to_owned)
    }

    /// The query of the token request for `scope`, without `?`.
    pub fn query(&self, scope: &str) -> String {
        let service = self.service.as_deref().map(|service| ("service", service));
        let scopes = scope.split(' ').filter(|scope| !scope.is_empty()).map(|scope| ("scope", scope));
        page::write_query(service.into_iter().chain(scopes))
    }
}

/// Reads the values of all `WWW-Authenticate` headers, in their order.
pub fn parse<'a>(values: impl IntoIterator<Item = &'a str>) -> Vec<Challenge> {
    let mut challenges = Vec::new();
    for value in values {
        let mut reader = Reader { rest: value.get(..VALUE_LEN_MAX).unwrap_or(value) };
        while challenges.len() < CHALLENGES_MAX
            && let Some(challenge) = reader.challenge()
        {
            challenges.push(challenge);
        }
    }
    challenges
}

/// The best of what is offered: a token, or else a password.
pub fn choose(challenges: &[Challenge]) -> Option<&Challenge> {
    let bearer = challenges.iter().find(|challenge| matches!(challenge, Challenge::Bearer(_)));
    bearer.or_else(|| challenges.iter().find(|challenge| matches!(challenge, Challenge::Basic { .. })))
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn challenge(&mut self) -> Option<Challenge> {
        self.skip(&[' ', '\t', ',']);
        let scheme = self.token()?.to_ascii_lowercase();
        let parameters = self.parameters();
        let of = |name: &str| {
            parameters.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone())
        };
        Some(match scheme.as_str() {
            "bearer" => match of("realm") {
                Some(realm) => Challenge::Bearer(Bearer {
                    realm,
                    service: of("service"),
                    scope: of("scope"),
                    error: of("error"),
                }),
                // Without a realm there is nowhere to ask.
                None => Challenge::Other(scheme),
            },
            "basic" => Challenge::Basic { realm: of("realm").unwrap_or_default() },
            _ => Challenge::Other(scheme),
        })
    }

    /// Reads `name=value` pairs until what follows is a scheme, or the end.
    fn parameters(&mut self) -> Vec<(&'a str, String)> {
        let mut parameters = Vec::new();
        self.skip(&[' ', '\t']);
        if self.token68() {
            return parameters;
        }
        loop {
            self.skip(&[' ', '\t', ',']);
            let before = self.rest;
            let Some(name) = self.token() else { break };
            self.skip(&[' ', '\t']);
            let Some(rest) = self.rest.strip_prefix('=') else {
                // A name without a value is the scheme of the next challenge.
                self.rest = before;
                break;
            };
            self.rest = rest;
            self.skip(&[' ', '\t']);
            let value = match self.rest.strip_prefix('"') {
                Some(rest) => self.quoted(rest),
                None => self.token().map(str::to_owned),
            };
            let Some(value) = value else {
                // Broken beyond repair: nothing behind it can be told apart.
                self.rest = "";
                break;
            };
            if parameters.len() < PARAMETERS_MAX {
                parameters.push((name, value));
            }
        }
        parameters
    }

    /// Skips the single value that some schemes have in place of parameters, `Negotiate YII=`.
    fn token68(&mut self) -> bool {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-._~+/".contains(c);
        let after = self.rest.trim_start_matches(fits);
        let end = after.trim_start_matches('=').trim_start_matches([' ', '\t']);
        let is_whole = end.is_empty() || end.starts_with(',');
        let is_one = after.len() < self.rest.len() && is_whole;
        if is_one {
            self.rest = end;
        }
        is_one
    }

    fn token(&mut self) -> Option<&'a str> {
        let end = self.rest.find(|c: char| !c.is_ascii() || !is_token(c.encode_utf8(&mut [0; 4])));
        let (token, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        (!token.is_empty()).then_some(token)
    }

    /// Reads a quoted string, whose opening quote is taken already.
    fn quoted(&mut self, text: &'a str) -> Option<String> {
        let mut value = String::new();
        let mut chars = text.chars();
        loop {
            match chars.next()? {
                '"' => break,
                '\\' => value.push(chars.next()?),
                c => value.push(c),
            }
        }
        self.rest = chars.as_str();
        Some(value)
    }

    fn skip(&mut self, these: &[char]) {
        self.rest = self.rest.trim_start_matches(these);
    }
}

#[cfg(test)]
mod tests;
