//! A type per kind of name, so that a namespace is never passed where a tenant is meant.
//!
//! INVARIANT: a value of these types satisfies the rule of its kind, which the CRD schema repeats.

use std::{borrow::Borrow, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// Says why a string is not a name of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{value}` is not a {kind}: {rule}")]
pub struct NameError {
    value: String,
    kind: &'static str,
    rule: &'static str,
}

macro_rules! name_type {
    ($(#[$doc:meta])* $type:ident, $kind:literal, max $max:literal, pattern $pattern:literal, $valid:path, $rule:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $type(#[schemars(length(min = 1, max = $max), regex(pattern = $pattern))] String);

        impl $type {
            /// Checks the rule of this kind of name.
            pub fn new(value: impl Into<String>) -> Result<Self, NameError> {
                let value = value.into();
                if value.len() <= $max && $valid(&value) {
                    Ok(Self(value))
                } else {
                    Err(NameError { value, kind: $kind, rule: $rule })
                }
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $type {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }
    };
}

name_type!(
    /// The name of a [`Tenant`](crate::Tenant). Short, because object names are built from it.
    TenantName, "tenant name", max 40, pattern r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    is_dns_label, "use at most 40 lower-case letters, digits and `-`"
);
name_type!(
    /// The name of a Namespace (RFC 1123 label).
    NamespaceName, "namespace name", max 63, pattern r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    is_dns_label, "use at most 63 lower-case letters, digits and `-`"
);
name_type!(
    /// A ServiceAccount as `NAMESPACE/NAME`.
    ServiceAccountRef, "service account", max 317,
    pattern r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-.a-z0-9]*[a-z0-9])?$",
    is_account_ref, "write it as NAMESPACE/NAME"
);
name_type!(
    /// An API group that a customer may define kinds in. Never the core group or one of Kubernetes' own.
    ApiGroup, "API group", max 253, pattern r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$",
    is_dns_domain, "use a dotted lower-case domain"
);
name_type!(
    /// The name of a CustomResourceDefinition, `PLURAL.GROUP`.
    CrdName, "CRD name", max 253, pattern r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$",
    is_dns_domain, "write it as PLURAL.GROUP"
);

impl ServiceAccountRef {
    /// The account of that name in that namespace.
    pub fn in_namespace(namespace: &NamespaceName, name: &str) -> Result<Self, NameError> {
        Self::new(format!("{namespace}/{name}"))
    }

    /// The namespace part.
    pub fn namespace(&self) -> &str {
        self.0.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// The name part.
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or("", |(_, name)| name)
    }

    /// The user name that the API server gives to requests of this account.
    pub fn username(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace(), self.name())
    }
}

impl NamespaceName {
    /// The group that the API server gives to all accounts of this namespace.
    pub fn accounts_group(&self) -> String {
        format!("system:serviceaccounts:{self}")
    }
}

fn is_dns_label(value: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    value.len() <= 63
        && !value.is_empty()
        && value.bytes().all(inner)
        && !value.starts_with('-')
        && !value.ends_with('-')
}

fn is_dns_subdomain(value: &str) -> bool {
    !value.is_empty() && value.len() <= 253 && value.split('.').all(is_dns_label)
}

fn is_dns_domain(value: &str) -> bool {
    value.contains('.') && is_dns_subdomain(value)
}

fn is_account_ref(value: &str) -> bool {
    value.split_once('/').is_some_and(|(namespace, name)| is_dns_label(namespace) && is_dns_subdomain(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rule_of_their_kind() {
        assert!(TenantName::new("acme").is_ok());
        assert!(TenantName::new("Acme").is_err());
        assert!(TenantName::new("a".repeat(41)).is_err());
        assert!(NamespaceName::new("org-acme").is_ok());
        assert!(NamespaceName::new("-org").is_err());
        assert!(NamespaceName::new("org.acme").is_err());
        assert!(ApiGroup::new("argoproj.io").is_ok());
        assert!(ApiGroup::new("apps").is_err(), "a group without a dot is Kubernetes' own");
        assert!(ServiceAccountRef::new("org-acme/automation").is_ok());
        assert!(ServiceAccountRef::new("automation").is_err());
    }

    #[test]
    fn an_error_names_the_value_the_kind_and_the_rule() {
        let error = TenantName::new("ACME").unwrap_err().to_string();
        assert_eq!(error, "`ACME` is not a tenant name: use at most 40 lower-case letters, digits and `-`");
    }

    #[test]
    fn an_account_knows_its_user_name() {
        let account = ServiceAccountRef::new("org-acme/automation").unwrap();
        assert_eq!(account.username(), "system:serviceaccount:org-acme:automation");
    }

    #[test]
    fn a_bad_name_is_refused_while_decoding() {
        assert!(serde_json::from_str::<NamespaceName>("\"Bad_Name\"").is_err());
    }
}
