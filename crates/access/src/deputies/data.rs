//! The known controllers, as data: how each is recognised, which kinds it serves, and what it does for their authors.
//!
//! The format is said at the fields; the files are in `deputies/`. What a rule cannot say is code, in the modules beside
//! this one. A test reads every file, so that what is built cannot be broken.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;
use serde_json::Value;

/// The files, by name.
pub(super) const FILES: [(&str, &str); 13] = [
    ("argo-cd.yaml", include_str!("../../deputies/argo-cd.yaml")),
    ("cert-manager.yaml", include_str!("../../deputies/cert-manager.yaml")),
    ("cluster-api.yaml", include_str!("../../deputies/cluster-api.yaml")),
    ("crossplane.yaml", include_str!("../../deputies/crossplane.yaml")),
    ("external-secrets.yaml", include_str!("../../deputies/external-secrets.yaml")),
    ("flux.yaml", include_str!("../../deputies/flux.yaml")),
    ("giant-swarm.yaml", include_str!("../../deputies/giant-swarm.yaml")),
    ("kyverno.yaml", include_str!("../../deputies/kyverno.yaml")),
    ("olm.yaml", include_str!("../../deputies/olm.yaml")),
    ("pods.yaml", include_str!("../../deputies/pods.yaml")),
    ("prometheus-operator.yaml", include_str!("../../deputies/prometheus-operator.yaml")),
    ("sealed-secrets.yaml", include_str!("../../deputies/sealed-secrets.yaml")),
    ("velero.yaml", include_str!("../../deputies/velero.yaml")),
];

/// One file: controllers of one project.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct File {
    /// Where the rules are known from.
    #[allow(dead_code, reason = "for people who read the file; a test asks for them")]
    pub sources: Vec<String>,
    /// The programs.
    pub processes: Vec<Program>,
    /// The kinds they serve.
    #[serde(default)]
    pub kinds: Vec<Kind>,
    /// What they do.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// Cloud identities that objects may name.
    #[serde(default)]
    pub identities: Vec<CloudIdentity>,
}

/// A program of a controller, recognised by what a workload runs and never by the workload's name.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Program {
    pub id: String,
    /// What the last parts of the image's repository are, `*` for anything within a part. A mirror may put something and
    /// a dash before the last part.
    pub images: Vec<String>,
    /// Words of which one must be in the command line, by the last part of a path.
    #[serde(default)]
    pub runs: Vec<String>,
    /// Words that must not be in the command line.
    #[serde(default)]
    pub not: Vec<String>,
    /// Labels of the workload that say the same as the image.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Names that its ServiceAccount bears by default: a guess where no workload was loaded.
    #[serde(default)]
    pub accounts: Vec<String>,
    /// In which namespaces it looks at objects.
    #[serde(default)]
    pub watch: Vec<Watch>,
}

/// A setting that limits the namespaces a program looks at.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Watch {
    pub flag: Option<String>,
    pub env: Option<String>,
    pub means: Means,
}

/// What such a setting says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Means {
    /// Always only its own namespace.
    Own,
    /// Only its own namespace if it is false.
    OwnIfFalse,
    /// Only its own namespace if it is true.
    OwnIfTrue,
    /// Only those listed; `*` or nothing for all.
    Listed,
    /// All but those listed.
    Denied,
}

/// A kind.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Kind {
    pub id: String,
    pub group: String,
    pub version: String,
    pub kind: String,
    pub plural: String,
    /// Whether it is cluster-scoped.
    #[serde(default)]
    pub cluster: bool,
}

/// What a program does for whoever writes an object.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Rule {
    /// Id in `catalogue/deputies.yaml`.
    pub edge: String,
    pub process: String,
    /// Kinds of which one must be written.
    pub each: Vec<String>,
    /// Kinds that must be written too.
    #[serde(default)]
    pub with: Vec<String>,
    pub gives: Gives,
    /// Where it gives that.
    #[serde(default, rename = "in")]
    pub place: GivesIn,
    /// Settings with which it does not.
    #[serde(default)]
    pub unless: Vec<Test>,
    /// Settings without which it does not.
    #[serde(default)]
    pub only_if: Vec<Test>,
    /// Namespaces that it is limited to, beside those of the process.
    #[serde(default)]
    pub watch: Vec<Watch>,
    /// The version that brought it.
    pub since: Option<String>,
    /// The versions that ended it, one for each line of releases that got the fix.
    #[serde(default)]
    pub fixed: Vec<String>,
    /// Why it is only assumed.
    pub assumed: Option<String>,
    /// What the program does: the end of a sentence that begins with the workload.
    pub says: String,
    /// `spec` of an object that uses it.
    pub sample: Option<Value>,
    /// `spec` of an object that does not use it yet.
    pub before: Option<Value>,
    /// Pointers into the object; see [`Sample::essential`](crate::Sample::essential).
    #[serde(default)]
    pub essential: Vec<String>,
}

/// What a rule gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Gives {
    /// The identity of the process.
    Controller,
    Secrets,
    Accounts,
    Pods,
    Nothing,
}

/// Where a rule gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum GivesIn {
    /// Where the object is written.
    #[default]
    Here,
    /// In the namespace of the process.
    Process,
    /// Everywhere.
    Cluster,
}

/// A setting and what it must be.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Test {
    pub flag: Option<String>,
    pub env: Option<String>,
    /// `set`, `true`, `false`.
    pub is: String,
}

/// A kind of object that stands for a cloud identity.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct CloudIdentity {
    pub kind: String,
    /// Kinds of clusters that name it.
    pub used_by: Vec<String>,
    pub process: String,
    /// Where the name of the cloud's identity is.
    pub cloud: Option<String>,
    /// Whether it stands for the identity of the controller itself.
    #[serde(default)]
    pub own: bool,
    /// What an empty selector of `allowedNamespaces` matches.
    pub empty_selector: Empty,
}

/// What an empty selector matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Empty {
    Nothing,
    Everything,
}

static KNOWN: LazyLock<Vec<File>> = LazyLock::new(|| {
    let mut files = Vec::new();
    for (name, text) in FILES {
        match serde_saphyr::from_str::<File>(text) {
            Ok(file) => files.push(file),
            Err(error) => debug_assert!(false, "{name}: {error}"),
        }
    }
    files
});

static BUILT_IN: LazyLock<[Kind; 2]> = LazyLock::new(|| {
    [("secret", "Secret", "secrets"), ("config-map", "ConfigMap", "configmaps")].map(|(id, kind, plural)| {
        Kind {
            id: id.to_owned(),
            group: String::new(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            cluster: false,
        }
    })
});

/// All files.
pub(super) fn files() -> &'static [File] {
    &KNOWN
}

/// The kind of an id.
pub(super) fn kind(id: &str) -> Option<&'static Kind> {
    KNOWN.iter().flat_map(|file| &file.kinds).chain(BUILT_IN.iter()).find(|kind| kind.id == id)
}

impl Kind {
    /// `apiVersion` of its objects.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Its name among listed kinds: `plural.group`.
    pub fn listed_as(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }
}
