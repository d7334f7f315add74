//! What is read of a Pod: whose it is, where it runs, which Secrets it takes in, and whether it can take its node over.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{Named, Text, nullable};

/// A Pod.
#[derive(Debug, Deserialize)]
pub(in crate::load) struct Pod<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(in crate::load) metadata: Metadata<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(in crate::load) spec: Spec<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(in crate::load) status: Status<'a>,
}

/// What makes pods: with a template, or for a CronJob with a template of Jobs.
#[derive(Debug, Deserialize)]
pub(in crate::load) struct Workload<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(in crate::load) metadata: Metadata<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(in crate::load) spec: WorkloadSpec<'a>,
}

/// `spec` of a workload.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::load) struct WorkloadSpec<'a> {
    #[serde(default)]
    pub(in crate::load) replicas: Option<i64>,
    #[serde(borrow, default)]
    pub(in crate::load) template: Option<Template<'a>>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(in crate::load) job_template: JobTemplate<'a>,
}

/// `spec.jobTemplate` of a CronJob.
#[derive(Debug, Default, Deserialize)]
pub(in crate::load) struct JobTemplate<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(in crate::load) spec: JobSpec<'a>,
}

/// `spec` of a Job.
#[derive(Debug, Default, Deserialize)]
pub(in crate::load) struct JobSpec<'a> {
    #[serde(borrow, default)]
    pub(in crate::load) template: Option<Template<'a>>,
}

/// A template of pods.
#[derive(Debug, Deserialize)]
pub(in crate::load) struct Template<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(in crate::load) spec: Spec<'a>,
}

/// `metadata`.
#[derive(Debug, Default, Deserialize)]
pub(in crate::load) struct Metadata<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(in crate::load) name: Text<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(in crate::load) namespace: Text<'a>,
    /// Only what an API server wrote has one.
    #[serde(borrow, default)]
    pub(in crate::load) uid: Option<Text<'a>>,
}

/// `status`.
#[derive(Debug, Default, Deserialize)]
pub(in crate::load) struct Status<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(in crate::load) phase: Text<'a>,
}

/// `spec`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::load) struct Spec<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(in crate::load) service_account_name: Text<'a>,
    /// The older name of the same.
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(in crate::load) service_account: Text<'a>,
    #[serde(default)]
    pub(in crate::load) automount_service_account_token: Option<bool>,
    #[serde(borrow, default)]
    pub(in crate::load) node_name: Option<Text<'a>>,
    #[serde(default, deserialize_with = "nullable", rename = "hostPID")]
    pub(in crate::load) host_pid: bool,
    #[serde(default, deserialize_with = "nullable")]
    pub(in crate::load) security_context: SecurityContext,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(in crate::load) image_pull_secrets: Vec<Named<'a>>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(in crate::load) volumes: Vec<Volume<'a>>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(in crate::load) containers: Vec<Container<'a>>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(in crate::load) init_containers: Vec<Container<'a>>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(in crate::load) ephemeral_containers: Vec<Container<'a>>,
}

/// A container of any of the three kinds.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::load) struct Container<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(in crate::load) env: Vec<Env<'a>>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(in crate::load) env_from: Vec<EnvFrom<'a>>,
    #[serde(default, deserialize_with = "nullable")]
    pub(in crate::load) security_context: SecurityContext,
}

/// An entry of `env`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::load) struct Env<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(in crate::load) value_from: ValueFrom<'a>,
}

/// `valueFrom`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::load) struct ValueFrom<'a> {
    #[serde(borrow, default)]
    pub(in crate::load) secret_key_ref: Option<Named<'a>>,
}

/// An entry of `envFrom`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::load) struct EnvFrom<'a> {
    #[serde(borrow, default)]
    pub(in crate::load) secret_ref: Option<Named<'a>>,
}

/// `securityContext` of a pod or a container.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::load) struct SecurityContext {
    #[serde(default, deserialize_with = "nullable")]
    privileged: bool,
    #[serde(default, deserialize_with = "nullable")]
    capabilities: Capabilities,
    #[serde(default, deserialize_with = "nullable")]
    windows_options: WindowsOptions,
}

#[derive(Debug, Default, Deserialize)]
struct Capabilities {
    #[serde(default, deserialize_with = "nullable")]
    add: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WindowsOptions {
    #[serde(default, deserialize_with = "nullable")]
    host_process: bool,
}

impl SecurityContext {
    /// Whether it is enough to become root on the node: from capabilities(7), and what KubeHound's and Kubernetes' own
    /// lists of dangerous ones (Pod Security "baseline") agree on.
    pub(in crate::load) fn takes_node(&self) -> bool {
        const DANGEROUS: [&str; 7] =
            ["ALL", "BPF", "DAC_READ_SEARCH", "SYS_ADMIN", "SYS_MODULE", "SYS_PTRACE", "SYS_RAWIO"];
        let dangerous = |name: &String| {
            let name = name.to_ascii_uppercase();
            DANGEROUS.contains(&name.strip_prefix("CAP_").unwrap_or(&name))
        };
        self.privileged || self.windows_options.host_process || self.capabilities.add.iter().any(dangerous)
    }
}

/// A volume: what of it matters, whatever its type. A type that is not known yet is looked at for the usual fields.
#[derive(Debug, Default)]
pub(in crate::load) struct Volume<'a> {
    /// Secrets that it is made of or mounted with.
    pub(in crate::load) secrets: Vec<Text<'a>>,
    /// Whether it is a folder of the node.
    pub(in crate::load) host_path: bool,
    /// Whether a token of the account is in it that the API server takes.
    pub(in crate::load) token: bool,
}

impl<'de: 'a, 'a> Deserialize<'de> for Volume<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Types<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Types<'a> {
            type Value = Volume<'a>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a volume")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut volume = Volume::default();
                while let Some(key) = map.next_key::<Text<'a>>()? {
                    match key.0.as_ref() {
                        "name" | "configMap" | "emptyDir" | "downwardAPI" | "persistentVolumeClaim" => {
                            map.next_value::<IgnoredAny>()?;
                        }
                        "hostPath" => volume.host_path |= map.next_value::<Option<IgnoredAny>>()?.is_some(),
                        "projected" => {
                            let projected: Option<Projected<'a>> = map.next_value()?;
                            for source in projected.unwrap_or_default().sources {
                                volume.token |= source.token.is_some_and(|token| token.is_for_the_api());
                                volume.secrets.extend(source.secret.map(|secret| secret.name));
                            }
                        }
                        _ => {
                            let other: Option<Other<'a>> = map.next_value()?;
                            let other = other.unwrap_or_default();
                            volume.secrets.extend(other.secret_name);
                            volume.secrets.extend(other.secret_ref.map(|named| named.name));
                            volume.secrets.extend(other.node_publish_secret_ref.map(|named| named.name));
                        }
                    }
                }
                Ok(volume)
            }
        }
        deserializer.deserialize_map(Types(PhantomData))
    }
}

/// `secret`, `csi`, `azureFile`, `cephfs`, `cinder`, `flexVolume`, `iscsi`, `rbd`, `scaleIO`, `storageos`: each has at
/// most one of these.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Other<'a> {
    #[serde(borrow, default)]
    secret_name: Option<Text<'a>>,
    #[serde(borrow, default)]
    secret_ref: Option<Named<'a>>,
    #[serde(borrow, default)]
    node_publish_secret_ref: Option<Named<'a>>,
}

#[derive(Debug, Default, Deserialize)]
struct Projected<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    sources: Vec<Source<'a>>,
}

#[derive(Debug, Default, Deserialize)]
struct Source<'a> {
    #[serde(borrow, default)]
    secret: Option<Named<'a>>,
    #[serde(borrow, default, rename = "serviceAccountToken")]
    token: Option<Token<'a>>,
}

#[derive(Debug, Default, Deserialize)]
struct Token<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    audience: Text<'a>,
}

impl Token<'_> {
    /// Which audiences an API server takes is its own choice, so only those that are known to be others' are left out.
    fn is_for_the_api(&self) -> bool {
        const OTHERS: [&str; 6] = [
            "sts.amazonaws.com",
            "sts.amazonaws.com.cn",
            "api://AzureADTokenExchange",
            "sigstore",
            "vault",
            "openbao",
        ];
        !OTHERS.contains(&self.audience.0.as_ref())
    }
}
