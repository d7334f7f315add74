//! The state after a change: objects of manifests added to what was read, or taken away from it.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use bailey_access::{ClusterFacts, Ledger, Loader, Snapshot, Symbol, Symbols};
use serde_json::Value;

use crate::CliError;

/// Manifests, and what is done with them.
pub struct Change {
    files: Vec<File>,
    /// The namespace of objects that name none and need one.
    pub namespace: Option<String>,
    /// The cluster that changes, the first if absent.
    pub cluster: Option<String>,
}

struct File {
    name: String,
    text: String,
    objects: Vec<Value>,
}

/// A state after a change, and what changed.
pub struct After {
    /// The state.
    pub snapshot: Snapshot,
    /// Which credentials lie where then, if that was asked for.
    pub ledger: Option<Ledger>,
    /// The objects, as `Kind NS/NAME`.
    pub objects: Vec<String>,
    /// Objects that were to be taken away and are not there.
    pub absent: Vec<String>,
}

impl Change {
    /// Reads manifests: files, folders, `-` for standard input.
    pub fn read(paths: &[PathBuf]) -> Result<Self, CliError> {
        let mut files = Vec::new();
        for path in paths {
            if path.as_os_str() == "-" {
                let mut text = String::new();
                let failed =
                    |source| CliError::File { action: "read", path: "standard input".into(), source };
                std::io::stdin().lock().read_to_string(&mut text).map_err(failed)?;
                files.push(File::new(Path::new("standard input"), text)?);
            } else {
                for file in crate::manifests::files(path)? {
                    let text = super::input::read(&file)?;
                    files.push(File::new(&file, text)?);
                }
            }
        }
        if files.iter().all(|file| file.objects.is_empty()) {
            return Err(CliError::Usage(
                "there is no object in what -f names; give manifests of Kubernetes".to_owned(),
            ));
        }
        Ok(Self { files, namespace: None, cluster: None })
    }

    /// The state with the objects added, each in the place of one of the same name.
    pub fn add(&self, before: &Snapshot, mut ledger: Option<Ledger>) -> Result<After, CliError> {
        let mut snapshot = before.clone();
        let cluster = self.cluster_of(before)?;
        let listed =
            before.clusters.iter().find(|known| known.name == cluster).map(|known| known.listed.clone());
        let mut loader = Loader::new(&mut snapshot, Some(&cluster)).would_be_pods();
        if let Some(namespace) = &self.namespace {
            loader = loader.default_namespace(namespace);
        }
        if let Some(ledger) = &mut ledger {
            loader = loader.open_secrets(ledger);
        }
        for file in &self.files {
            loader.source(&file.name);
            loader
                .load(file.text.as_bytes())
                .map_err(|error| CliError::internal("cannot read a text", error))?;
        }
        loader.finish();
        // A list in a manifest is not all that the cluster has.
        if let Some((known, listed)) =
            snapshot.clusters.iter_mut().find(|known| known.name == cluster).zip(listed)
        {
            known.listed = listed;
        }
        let objects = self.objects().map(|object| self.name_of(object).to_string()).collect();
        Ok(After { snapshot, ledger, objects, absent: Vec::new() })
    }

    /// The state without the objects, and without what is in a Namespace that goes.
    pub fn remove(&self, before: &Snapshot, ledger: Option<Ledger>) -> Result<After, CliError> {
        let mut after = After { snapshot: before.clone(), ledger, objects: Vec::new(), absent: Vec::new() };
        let cluster = self.cluster_of(before)?;
        let Snapshot { symbols, clusters, .. } = &mut after.snapshot;
        let Some(facts) = clusters.iter_mut().find(|known| known.name == cluster) else { return Ok(after) };
        for object in self.objects() {
            let name = self.name_of(object);
            let there = name.take_away(facts, symbols);
            if let Some(ledger) = &mut after.ledger {
                match name.kind.as_str() {
                    "Namespace" => ledger.forget(&cluster, &name.name, None),
                    kind => ledger.forget(&cluster, &name.namespace, Some((kind, &name.name))),
                }
            }
            let list = if there { &mut after.objects } else { &mut after.absent };
            list.push(name.to_string());
        }
        Ok(after)
    }

    fn objects(&self) -> impl Iterator<Item = &Value> {
        self.files.iter().flat_map(|file| &file.objects)
    }

    fn name_of(&self, object: &Value) -> Name {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let namespace = text("/metadata/namespace");
        let fallback = self.namespace.clone().unwrap_or_else(|| "default".to_owned());
        Name {
            group: text("/apiVersion")
                .rsplit_once('/')
                .map(|(group, _)| group.to_owned())
                .unwrap_or_default(),
            kind: text("/kind"),
            is_given: !namespace.is_empty(),
            namespace: if namespace.is_empty() { fallback } else { namespace },
            name: text("/metadata/name"),
        }
    }

    fn cluster_of(&self, snapshot: &Snapshot) -> Result<String, CliError> {
        let names: Vec<_> = snapshot.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
        match &self.cluster {
            Some(wanted) if !names.contains(&wanted.as_str()) => Err(CliError::Usage(format!(
                "cluster `{wanted}` was not loaded; loaded: {}",
                names.join(", ")
            ))),
            Some(wanted) => Ok(wanted.clone()),
            None => Ok(names.first().map_or_else(|| "cluster".to_owned(), ToString::to_string)),
        }
    }
}

impl File {
    fn new(path: &Path, text: String) -> Result<Self, CliError> {
        let manifests = crate::manifests::parse(path, &text)?;
        let objects = manifests.into_iter().map(|manifest| manifest.object).collect();
        Ok(Self { name: path.display().to_string(), text, objects })
    }
}

/// Names an object of a manifest.
struct Name {
    group: String,
    kind: String,
    namespace: String,
    /// Whether the manifest has a namespace.
    is_given: bool,
    name: String,
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cluster_scoped = CLUSTER_SCOPED.contains(&self.kind.as_str());
        if cluster_scoped || (!self.is_given && !NAMESPACED.contains(&self.kind.as_str())) {
            write!(f, "{} {}", self.kind, self.name)
        } else {
            write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
        }
    }
}

/// Kinds that are in no namespace whatever their manifest says.
const CLUSTER_SCOPED: [&str; 4] = ["Namespace", "Node", "ClusterRole", "ClusterRoleBinding"];
/// Kinds that are in a namespace even if their manifest names none.
const NAMESPACED: [&str; 12] = [
    "ConfigMap",
    "CronJob",
    "DaemonSet",
    "Deployment",
    "Job",
    "Pod",
    "Role",
    "RoleBinding",
    "Secret",
    "Service",
    "ServiceAccount",
    "StatefulSet",
];

impl Name {
    /// Takes the object out of what is known of a cluster. Says whether it was there.
    fn take_away(&self, facts: &mut ClusterFacts, symbols: &Symbols) -> bool {
        let Some(name) = symbols.find(&self.name) else { return false };
        let namespace = symbols.find(&self.namespace);
        let here = |of: Symbol, called: Symbol| called == name && Some(of) == namespace;
        match (self.group.as_str(), self.kind.as_str()) {
            ("", "Namespace") => take_namespace(facts, name),
            ("", "Node") => drained(&mut facts.nodes, |fact| fact.name == name),
            ("", "Pod") => drained(&mut facts.pods, |fact| here(fact.namespace, fact.name)),
            ("", "Secret") => drained(&mut facts.secrets, |fact| here(fact.namespace, fact.name)),
            ("", "ServiceAccount") => {
                drained(&mut facts.service_accounts, |fact| here(fact.namespace, fact.name))
            }
            (RBAC, "ClusterRole") => {
                drained(&mut facts.roles, |fact| fact.namespace.is_none() && fact.name == name)
            }
            (RBAC, "Role") => drained(&mut facts.roles, |fact| {
                fact.namespace.is_some_and(|namespace| here(namespace, fact.name))
            }),
            (RBAC, "ClusterRoleBinding") => {
                drained(&mut facts.bindings, |fact| fact.namespace.is_none() && fact.name == name)
            }
            (RBAC, "RoleBinding") => drained(&mut facts.bindings, |fact| {
                fact.namespace.is_some_and(|namespace| here(namespace, fact.name))
            }),
            (group, kind) => drained(&mut facts.objects, |fact| {
                let somewhere = here(fact.namespace, fact.name)
                    || (fact.name == name && fact.namespace == Symbol::EMPTY && !self.is_given);
                fact.kind == kind && fact.group() == group && somewhere
            }),
        }
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";

/// A Namespace goes with everything in it.
fn take_namespace(facts: &mut ClusterFacts, name: Symbol) -> bool {
    let there = drained(&mut facts.namespaces, |fact| fact.name == name);
    facts.service_accounts.retain(|fact| fact.namespace != name);
    facts.roles.retain(|fact| fact.namespace != Some(name));
    facts.bindings.retain(|fact| fact.namespace != Some(name));
    facts.secrets.retain(|fact| fact.namespace != name);
    facts.pods.retain(|fact| fact.namespace != name);
    facts.objects.retain(|fact| fact.namespace != name);
    there
}

/// Takes away what fits. Says whether something did.
fn drained<T>(list: &mut Vec<T>, fits: impl Fn(&T) -> bool) -> bool {
    let before = list.len();
    list.retain(|fact| !fits(fact));
    list.len() < before
}

#[cfg(test)]
mod tests;
