//! What other objects than Secrets hold in plain text: the data of ConfigMaps, the environment and the arguments of
//! containers.
//!
//! Pods that a built-in controller makes are passed over, as is what stands between them and what somebody wrote: the
//! same values are in the object that they are made from, which is read, too.

use std::collections::BTreeMap;

use serde::Deserialize;
use zeroize::Zeroizing;

use super::{OpenPlain, SecretValues, decode, owned};
use crate::load::kinds::group_of;
use crate::load::piece::{Fault, Head, Piece};
use crate::load::wire::{Text, nullable};

/// What holds for objects that do not say it.
#[derive(Clone, Copy)]
pub struct Home<'d> {
    /// Name of the cluster.
    pub cluster: Option<&'d str>,
    /// The namespace.
    pub namespace: &'d str,
}

/// What was handed on.
#[derive(Default)]
pub struct Handed {
    /// Namespace and name of the object, if anything of it was.
    pub named: Option<(String, String)>,
    /// What could not be decoded, as `key K of ConfigMap NS/NAME`.
    pub unread: Vec<String>,
}

/// Whether objects of a kind may hold credentials in plain text that are handed on.
pub fn is_looked_into(group: &str, kind: &str) -> bool {
    matches!(
        (group, kind),
        ("", "ConfigMap" | "Pod" | "ReplicationController")
            | ("apps", "Deployment" | "DaemonSet" | "StatefulSet" | "ReplicaSet")
            | ("batch", "CronJob" | "Job")
    )
}

/// Hands what an object holds to the sink: nothing if it is none of these kinds.
pub fn hand_on(
    head: &Head<'_>,
    piece: Piece<'_>,
    home: Home<'_>,
    sink: &mut dyn SecretValues,
) -> Result<Handed, Fault> {
    match head.kind.as_ref() {
        kind if !is_looked_into(group_of(&head.api_version), kind) => Ok(Handed::default()),
        "ConfigMap" => config_map(piece, home, sink),
        kind => workload(kind, piece, home, sink),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConfigMap<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    metadata: Metadata<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    data: BTreeMap<String, Option<Text<'a>>>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    binary_data: BTreeMap<String, Option<Text<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    name: Text<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    namespace: Text<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    owner_references: Vec<OwnerReference<'a>>,
}

impl Metadata<'_> {
    fn namespace<'m>(&'m self, home: Home<'m>) -> &'m str {
        if self.namespace.0.is_empty() { home.namespace } else { &self.namespace.0 }
    }

    /// Whether a built-in controller made the object.
    fn is_made(&self) -> bool {
        self.owner_references.iter().any(|owner| {
            let group = group_of(&owner.api_version.0);
            let is_old = group.is_empty() && owner.kind.0 == "ReplicationController";
            owner.controller == Some(true) && (is_old || ["apps", "batch"].contains(&group))
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OwnerReference<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    api_version: Text<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    kind: Text<'a>,
    #[serde(default)]
    controller: Option<bool>,
}

fn config_map(piece: Piece<'_>, home: Home<'_>, sink: &mut dyn SecretValues) -> Result<Handed, Fault> {
    let map = piece.read::<ConfigMap<'_>>()?;
    let (namespace, name) = (map.metadata.namespace(home), map.metadata.name.0.as_ref());
    let mut handed = Handed::default();
    let mut data = BTreeMap::new();
    for (key, text) in map.binary_data {
        match decode(text.unwrap_or_default()) {
            Some(value) => {
                data.insert(key, value);
            }
            None => handed.unread.push(format!("key `{key}` of ConfigMap {namespace}/{name}")),
        }
    }
    data.extend(map.data.into_iter().map(|(key, text)| (key, owned(text.unwrap_or_default()))));
    if !data.is_empty() {
        let cluster = home.cluster;
        sink.plain(&OpenPlain { cluster, kind: "ConfigMap", namespace, name, container: "", data: &data });
        handed.named = Some((namespace.to_owned(), name.to_owned()));
    }
    Ok(handed)
}

/// A Pod, or what has a template of one.
#[derive(Deserialize)]
struct Workload<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    metadata: Metadata<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    spec: Spec<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    #[serde(borrow, default)]
    job_template: Option<JobTemplate<'a>>,
    #[serde(borrow, default)]
    template: Option<Template<'a>>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    containers: Vec<Container<'a>>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    init_containers: Vec<Container<'a>>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    ephemeral_containers: Vec<Container<'a>>,
}

#[derive(Deserialize)]
struct JobTemplate<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    spec: JobSpec<'a>,
}

#[derive(Default, Deserialize)]
struct JobSpec<'a> {
    #[serde(borrow, default)]
    template: Option<Template<'a>>,
}

#[derive(Deserialize)]
struct Template<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    spec: PodSpec<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    containers: Vec<Container<'a>>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    init_containers: Vec<Container<'a>>,
}

#[derive(Deserialize)]
struct Container<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    name: Text<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    env: Vec<Variable<'a>>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    command: Vec<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    args: Vec<Text<'a>>,
}

#[derive(Deserialize)]
struct Variable<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    name: Text<'a>,
    #[serde(borrow, default)]
    value: Option<Text<'a>>,
}

fn workload(
    kind: &str,
    piece: Piece<'_>,
    home: Home<'_>,
    sink: &mut dyn SecretValues,
) -> Result<Handed, Fault> {
    let object = piece.read::<Workload<'_>>()?;
    let mut handed = Handed::default();
    if object.metadata.is_made() {
        return Ok(handed);
    }
    let (namespace, name) = (object.metadata.namespace(home), object.metadata.name.0.as_ref());
    let Spec { job_template, template, containers, init_containers, ephemeral_containers } = object.spec;
    let template = job_template.and_then(|job| job.spec.template).or(template);
    let of_template = template.map(|template| template.spec).unwrap_or_default();
    let own = [init_containers, containers, ephemeral_containers];
    let containers = own.into_iter().chain([of_template.init_containers, of_template.containers]).flatten();
    for Container { name: container, env, command, args } in containers {
        let mut data = arguments(command.into_iter().chain(args));
        for Variable { name, value } in env {
            if let Some(value) = value.filter(|value| !value.0.is_empty()) {
                data.insert(name.0.into_owned(), owned(value));
            }
        }
        if !data.is_empty() {
            let cluster = home.cluster;
            let container = container.0.as_ref();
            sink.plain(&OpenPlain { cluster, kind, namespace, name, container, data: &data });
            handed.named = Some((namespace.to_owned(), name.to_owned()));
        }
    }
    Ok(handed)
}

/// Arguments by the flag that they are for, `--flag=value` or `--flag value`; others by their position.
fn arguments<'a>(arguments: impl Iterator<Item = Text<'a>>) -> BTreeMap<String, Zeroizing<Vec<u8>>> {
    let mut data = BTreeMap::new();
    let mut flag: Option<String> = None;
    for (position, text) in (1..).zip(arguments) {
        let (name, value) = match text.0.split_once('=') {
            Some((name, value)) if is_flag(name) => (Some(name), value),
            _ if is_flag(&text.0) => (Some(text.0.as_ref()), ""),
            _ => (None, text.0.as_ref()),
        };
        let named = name.map(|name| name.trim_start_matches('-').to_owned());
        if value.is_empty() {
            flag = named;
            continue;
        }
        let key = named.or_else(|| flag.take()).unwrap_or_else(|| format!("argument {position}"));
        flag = None;
        data.insert(key, Zeroizing::new(value.as_bytes().to_vec()));
    }
    data
}

fn is_flag(text: &str) -> bool {
    let name = text.trim_start_matches('-');
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.starts_with('-')
        && name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(plain)
}
