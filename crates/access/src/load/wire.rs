//! What is read of the kinds that come in large numbers: their fields as the API has them, all others passed over.
//!
//! Tolerant like the API server's own clients: what is missing or null is empty. Text is borrowed from the dump where
//! it can be. `data`, `stringData` and `last-applied-configuration` of a Secret are never copied.

pub(super) mod pod;

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Text, borrowed if it holds no escapes.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Any<'a> {
            type Value = Text<'a>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("text")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Any(PhantomData))
    }
}

/// What may be null, as what is missing.
pub(super) fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// A map of names to text, such as labels.
#[derive(Debug, Default)]
pub(super) struct Pairs<'a>(pub(super) Vec<(Text<'a>, Text<'a>)>);

impl<'a> Pairs<'a> {
    /// The value of a key.
    pub(super) fn find(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name.0 == key).map(|(_, value)| value.0.as_ref())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Map<'a> {
            type Value = Pairs<'a>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a map of text")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs: Vec<(Text<'a>, Text<'a>)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<Text<'a>, Option<Text<'a>>>()? {
                    let value = value.unwrap_or_default();
                    // The last of two equal keys counts.
                    match pairs.iter_mut().find(|(name, _)| *name == key) {
                        Some((_, earlier)) => *earlier = value,
                        None => pairs.push((key, value)),
                    }
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Map(PhantomData))
    }
}

/// Anything that is read for its metadata.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Object<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) metadata: Metadata<'a>,
}

/// `metadata` where labels matter.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Metadata<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) name: Text<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) namespace: Text<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) labels: Pairs<'a>,
}

/// A name and where it is; of an object, or of what it refers to.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Named<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) name: Text<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) namespace: Text<'a>,
}

/// A Role or ClusterRole.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Role<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) metadata: Metadata<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) rules: Vec<Rule<'a>>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) aggregation_rule: Aggregation<'a>,
}

/// A PolicyRule.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rule<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) api_groups: Vec<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) resources: Vec<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) resource_names: Vec<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) verbs: Vec<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "nullable", rename = "nonResourceURLs")]
    pub(super) non_resource_urls: Vec<Text<'a>>,
}

/// `aggregationRule`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Aggregation<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) cluster_role_selectors: Vec<Selector<'a>>,
}

/// A label selector.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Selector<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) match_labels: Pairs<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) match_expressions: Vec<Expression<'a>>,
}

/// An entry of `matchExpressions`.
#[derive(Debug, Deserialize)]
pub(super) struct Expression<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) key: Text<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) operator: Text<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) values: Vec<Text<'a>>,
}

/// A RoleBinding or ClusterRoleBinding.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Binding<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) metadata: Named<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) role_ref: Reference<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) subjects: Vec<Reference<'a>>,
}

/// `roleRef`, or a subject.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Reference<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) name: Text<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) namespace: Text<'a>,
}

/// A ServiceAccount.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServiceAccount<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) metadata: AccountMetadata<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) secrets: Vec<Named<'a>>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) image_pull_secrets: Vec<Named<'a>>,
    #[serde(default)]
    pub(super) automount_service_account_token: Option<bool>,
}

/// `metadata` of a ServiceAccount.
#[derive(Debug, Default, Deserialize)]
pub(super) struct AccountMetadata<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) name: Text<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) namespace: Text<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) annotations: AccountAnnotations<'a>,
}

/// Annotations that lend an account an identity of a cloud.
#[derive(Debug, Default, Deserialize)]
pub(super) struct AccountAnnotations<'a> {
    #[serde(borrow, default, rename = "eks.amazonaws.com/role-arn")]
    pub(super) aws: Option<Text<'a>>,
    #[serde(borrow, default, rename = "azure.workload.identity/client-id")]
    pub(super) azure: Option<Text<'a>>,
    #[serde(borrow, default, rename = "iam.gke.io/gcp-service-account")]
    pub(super) google: Option<Text<'a>>,
}

/// A Secret without what it holds; also one of which only the metadata was asked for.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Secret<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) metadata: SecretMetadata<'a>,
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
}

/// `metadata` of a Secret.
#[derive(Debug, Default, Deserialize)]
pub(super) struct SecretMetadata<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) name: Text<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) namespace: Text<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) labels: SecretLabels<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) annotations: SecretAnnotations<'a>,
}

/// Labels that say what a Secret is for.
#[derive(Debug, Default, Deserialize)]
pub(super) struct SecretLabels<'a> {
    #[serde(borrow, default, rename = "cluster.x-k8s.io/cluster-name")]
    pub(super) cluster_name: Option<Text<'a>>,
    #[serde(borrow, default, rename = "argocd.argoproj.io/secret-type")]
    pub(super) argocd_type: Option<Text<'a>>,
}

/// Annotations of a token Secret.
#[derive(Debug, Default, Deserialize)]
pub(super) struct SecretAnnotations<'a> {
    #[serde(borrow, default, rename = "kubernetes.io/service-account.name")]
    pub(super) service_account: Option<Text<'a>>,
}

/// A Node.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Node<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) metadata: Metadata<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) status: NodeStatus<'a>,
}

/// `status` of a Node.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NodeStatus<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) node_info: NodeInfo<'a>,
}

/// `status.nodeInfo`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NodeInfo<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) kubelet_version: Text<'a>,
}

/// A row of a Table (`meta.k8s.io/v1`).
#[derive(Debug, Deserialize)]
pub(super) struct Row<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) cells: Vec<Cell<'a>>,
    #[serde(borrow, default)]
    pub(super) object: Option<Secret<'a>>,
}

/// A cell of a row: its text, or nothing where it is no text.
#[derive(Debug)]
pub(super) struct Cell<'a>(pub(super) Option<Text<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Cell<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either<'a> {
            Text(#[serde(borrow)] Text<'a>),
            Other(de::IgnoredAny),
        }
        Ok(match Either::deserialize(deserializer)? {
            Either::Text(text) => Self(Some(text)),
            Either::Other(_) => Self(None),
        })
    }
}

/// What a list says of itself.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListMetadata<'a> {
    #[serde(borrow, default, rename = "continue")]
    pub(super) goes_on: Option<Text<'a>>,
}

/// A column of a Table.
#[derive(Debug, Deserialize)]
pub(super) struct Column<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) name: Text<'a>,
}

/// What `/version` answers, or `kubectl version -o json`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Version<'a> {
    #[serde(borrow, default)]
    pub(super) git_version: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) server_version: Option<ServerVersion<'a>>,
}

/// `serverVersion`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServerVersion<'a> {
    #[serde(borrow, default)]
    pub(super) git_version: Option<Text<'a>>,
}
