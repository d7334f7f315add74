//! The names of installations, clusters and services, and the identities made of them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What an identity starts with (SPIFFE ID, section 2).
const SCHEME: &str = "spiffe://";
/// The longest label of DNS (RFC 1035, 2.3.4).
const LABEL_MAX: usize = 63;

/// The name of an installation: a label of DNS, and the trust domain of its identities.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct InstallationName(String);

/// The UID of a Cluster object: it never comes back, unlike a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ClusterUid(String);

/// The name of a service of the installation: a label of DNS, the same in each cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServiceName(String);

/// What a stranger does not know: 128 random bits in hex, one for each cluster, sent as SNI.
///
/// No credential: whoever sees the wire sees it. It makes a scan cost the gateway a parse.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SniLabel(String);

/// Who a certificate speaks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Party {
    /// The agent of a workload cluster.
    Cluster(ClusterUid),
    /// A gateway of the installation.
    Gateway,
    /// The issuer of the installation.
    Issuer,
}

/// An identity, written as `spiffe://INSTALLATION/cluster/UID`, `…/gateway` or `…/issuer`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// The installation it belongs to.
    pub installation: InstallationName,
    /// Who it is there.
    pub party: Party,
}

/// A name that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Not a label of DNS.
    #[error(
        "`{name}` is no name of {what}: it must be a label of DNS (a-z, 0-9 and -, 63 characters at most)"
    )]
    Label {
        /// What was to be named.
        what: &'static str,
        /// What was written.
        name: String,
    },
    /// Not a UID.
    #[error(
        "`{uid}` is no UID of a Cluster: it must be hexadecimal digits and -, as `metadata.uid` has them"
    )]
    Uid {
        /// What was written.
        uid: String,
    },
    /// Not 128 bits.
    #[error("a label for SNI must be 32 hexadecimal digits in lower case")]
    Sni,
    /// Not an identity.
    #[error(
        "`{id}` is no identity of an installation; it should be like `spiffe://INSTALLATION/cluster/UID`"
    )]
    Identity {
        /// What was written.
        id: String,
    },
}

impl InstallationName {
    /// Takes a name.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        label("an installation", name.into()).map(Self)
    }

    /// Gives it as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ServiceName {
    /// Takes a name.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        label("a service", name.into()).map(Self)
    }

    /// Gives it as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ClusterUid {
    /// Takes a UID; upper case is made lower.
    pub fn new(uid: impl Into<String>) -> Result<Self, NameError> {
        let uid = uid.into().to_ascii_lowercase();
        let fits = (8..=64).contains(&uid.len())
            && uid.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
            && !uid.starts_with('-');
        if fits { Ok(Self(uid)) } else { Err(NameError::Uid { uid }) }
    }

    /// Gives it as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl SniLabel {
    /// Writes 128 random bits as a label.
    pub fn from_bits(bits: [u8; 16]) -> Self {
        Self(bits.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Takes a label.
    pub fn new(label: impl Into<String>) -> Result<Self, NameError> {
        let label = label.into();
        let fits = label.len() == 32 && label.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if fits { Ok(Self(label)) } else { Err(NameError::Sni) }
    }

    /// Gives it as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Shows how it starts only: logs need no more to tell clusters apart.
impl fmt::Debug for SniLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}…", self.0.get(..6).unwrap_or_default())
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/", self.installation)?;
        match &self.party {
            Party::Cluster(uid) => write!(f, "cluster/{uid}"),
            Party::Gateway => f.write_str("gateway"),
            Party::Issuer => f.write_str("issuer"),
        }
    }
}

impl FromStr for Identity {
    type Err = NameError;

    fn from_str(id: &str) -> Result<Self, NameError> {
        let wrong = || NameError::Identity { id: id.to_owned() };
        let (installation, path) =
            id.strip_prefix(SCHEME).and_then(|rest| rest.split_once('/')).ok_or_else(wrong)?;
        let party = match path {
            "gateway" => Party::Gateway,
            "issuer" => Party::Issuer,
            other => {
                let uid = other.strip_prefix("cluster/").ok_or_else(wrong)?;
                let taken = ClusterUid::new(uid).map_err(|_| wrong())?;
                // One identity has one spelling.
                if taken.as_str() != uid {
                    return Err(wrong());
                }
                Party::Cluster(taken)
            }
        };
        let installation = InstallationName::new(installation).map_err(|_| wrong())?;
        Ok(Self { installation, party })
    }
}

fn label(what: &'static str, name: String) -> Result<String, NameError> {
    let edge = |byte: Option<u8>| byte.is_some_and(|byte| byte != b'-');
    let fits = name.len() <= LABEL_MAX
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
        && edge(name.bytes().next())
        && edge(name.bytes().last());
    if fits { Ok(name) } else { Err(NameError::Label { what, name }) }
}

macro_rules! text {
    ($($name:ident),*) => {$(
        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }
    )*};
}

macro_rules! shown {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

text!(InstallationName, ClusterUid, ServiceName, SniLabel);
shown!(InstallationName, ClusterUid, ServiceName);

#[cfg(test)]
mod tests;
