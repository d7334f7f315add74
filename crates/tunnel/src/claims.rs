//! Whether a ServiceAccount's token may get a certificate.
//!
//! Its signature was checked already, with the keys of one cluster: whose key it was decides whose token it is. What
//! the token says of its issuer is never looked at, since that is the same text in most clusters. The token names the
//! key that it is for, so neither is worth anything without the other.

use std::time::Duration;

use serde::Deserialize;

use crate::directory::Seconds;
use crate::names::{InstallationName, Party};

/// Where the agent lives in a workload cluster.
pub const AGENT_NAMESPACE: &str = "bailey-tunnel";
/// As whom the agent runs.
pub const AGENT_ACCOUNT: &str = "bailey-agent";
/// Where the gateway lives.
pub const GATEWAY_NAMESPACE: &str = "bailey-system";
/// As whom the gateway runs.
pub const GATEWAY_ACCOUNT: &str = "bailey-gateway";
/// What two clocks may differ by.
const LEEWAY: Duration = Duration::from_secs(60);
/// A token is made for one request; the API server makes none for less than ten minutes.
const AGE_MAX: Duration = Duration::from_secs(15 * 60);

/// Who asks for a certificate, and so what its token has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applicant {
    /// The installation.
    pub installation: InstallationName,
    /// Who it wants to be.
    pub party: Party,
    /// The SHA-256 of its public key (SubjectPublicKeyInfo, DER) in hex.
    pub key: String,
}

impl Applicant {
    /// The audiences that the token must have, both: for whom it is, and with which key.
    pub fn audiences(&self) -> [String; 2] {
        let Self { installation, party, key } = self;
        let of = match party {
            Party::Cluster(uid) => uid.to_string(),
            Party::Gateway => "gateway".to_owned(),
            Party::Issuer => "issuer".to_owned(),
        };
        [format!("bailey/{installation}/{of}"), format!("key:{key}")]
    }

    /// The account that the token must be of.
    pub fn subject(&self) -> String {
        let (namespace, account) = match &self.party {
            Party::Cluster(_) => (AGENT_NAMESPACE, AGENT_ACCOUNT),
            Party::Gateway | Party::Issuer => (GATEWAY_NAMESPACE, GATEWAY_ACCOUNT),
        };
        format!("system:serviceaccount:{namespace}:{account}")
    }

    /// Holds what a token says against what it has to.
    pub fn check(&self, claims: &Claims, now: Seconds) -> Result<(), Refusal> {
        let [whom, key] = self.audiences();
        if claims.sub != self.subject() {
            return Err(Refusal::Subject { is: claims.sub.clone(), wants: self.subject() });
        }
        if !claims.aud.contains(&whom) {
            return Err(Refusal::Audience { wants: whom });
        }
        if !claims.aud.contains(&key) {
            return Err(Refusal::Key);
        }
        let leeway = LEEWAY.as_secs();
        let off = |by: u64| i64::try_from(by).unwrap_or(i64::MAX);
        if now >= claims.exp.saturating_add(leeway) {
            return Err(Refusal::Expired { seconds: off(now - claims.exp) });
        }
        let begins = claims.nbf.unwrap_or(0).max(claims.iat);
        if now.saturating_add(leeway) < begins {
            return Err(Refusal::NotYet { seconds: off(begins - now) });
        }
        if now.saturating_sub(claims.iat) > AGE_MAX.as_secs() + leeway {
            return Err(Refusal::Old { seconds: off(now - claims.iat) });
        }
        Ok(())
    }
}

/// What is read of a token (RFC 7519, 4.1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Claims {
    /// The account.
    #[serde(default)]
    pub sub: String,
    /// For whom it is.
    #[serde(default, deserialize_with = "one_or_more")]
    pub aud: Vec<String>,
    /// When it is over.
    #[serde(default)]
    pub exp: Seconds,
    /// When it begins.
    #[serde(default)]
    pub nbf: Option<Seconds>,
    /// When it was made.
    #[serde(default)]
    pub iat: Seconds,
}

fn one_or_more<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Audience {
        One(String),
        More(Vec<String>),
    }
    Ok(match Audience::deserialize(deserializer)? {
        Audience::One(one) => vec![one],
        Audience::More(more) => more,
    })
}

/// Why a token gets no certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another account's.
    #[error("the token is of `{is}`, and only `{wants}` gets a certificate (claim `sub`)")]
    Subject {
        /// Whose it is.
        is: String,
        /// Whose it should be.
        wants: String,
    },
    /// For somebody else.
    #[error("the token is not for `{wants}` (claim `aud`); ask the API server for one with this audience")]
    Audience {
        /// For whom it should be.
        wants: String,
    },
    /// For another key.
    #[error(
        "the token is not for the key of the request (claim `aud`, `key:` and the SHA-256 of the public key)"
    )]
    Key,
    /// Over.
    #[error(
        "the token is over since {seconds} s (claim `exp`); if it is fresh, the clock of its cluster is behind that of the management cluster"
    )]
    Expired {
        /// Since when.
        seconds: i64,
    },
    /// Not begun.
    #[error(
        "the token begins in {seconds} s (claims `nbf`, `iat`): the clock of its cluster is ahead of that of the management cluster"
    )]
    NotYet {
        /// In how long.
        seconds: i64,
    },
    /// Kept.
    #[error("the token is {seconds} s old (claim `iat`), and must be made for the request")]
    Old {
        /// How old.
        seconds: i64,
    },
}

impl Refusal {
    /// Names it for metrics and the other side.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Subject { .. } => "TokenSubject",
            Self::Audience { .. } => "TokenAudience",
            Self::Key => "TokenKey",
            Self::Expired { .. } => "TokenExpired",
            Self::NotYet { .. } => "TokenNotYetValid",
            Self::Old { .. } => "TokenOld",
        }
    }
}

#[cfg(test)]
mod tests;
