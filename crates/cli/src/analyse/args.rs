//! The analyser's part of the command line.

use std::path::PathBuf;

use bailey_access::answer::{Severity, Verdict};
use bailey_access::{SecretRef, SubjectRef, Subjects};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::select::Filter;
use super::words::{SEVERITIES, VERDICTS};
use crate::args::formats;
use crate::output::Format;

/// Where clusters, and what is whose, are read.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Input, the cluster of the kubeconfig if absent")]
pub struct InputArguments {
    /// Reads a dump, and no cluster: a file, folder or .tar.gz with what `kubectl get -o json` or `bailey snapshot`
    /// writes. With NAME= before it, it is the cluster of that name; repeatable.
    #[arg(long = "dump", value_name = "[NAME=]PATH")]
    pub dumps: Vec<DumpArgument>,
    /// What belongs to which customer and to the platform.
    #[command(flatten)]
    pub whose: WhoseArguments,
    /// Whether values are read.
    #[command(flatten)]
    pub fingerprint: FingerprintArguments,
    /// How lists are read.
    #[command(flatten)]
    pub chunk: ChunkArguments,
}

/// How lists of a live cluster are read.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Input, the cluster of the kubeconfig if absent")]
pub struct ChunkArguments {
    /// How many objects of a list are asked for at once; fewer where the API server is slow.
    #[arg(long, default_value_t = crate::live::PAGE, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub chunk_size: u32,
}

impl Default for ChunkArguments {
    fn default() -> Self {
        Self { chunk_size: crate::live::PAGE }
    }
}

/// Whether values are read, to find credentials that lie in several places.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Shared credentials, not looked for if absent")]
pub struct FingerprintArguments {
    /// Reads the values of Secrets and ConfigMaps and the environment of containers, and finds credentials that lie in
    /// several places, by keyed fingerprints. On a live cluster it takes the right to list secrets and configmaps. No
    /// value is kept, shown or sent anywhere; one that could be guessed is compared in this process alone.
    #[arg(long)]
    pub fingerprint: bool,
    /// Makes fingerprints with the key in this file and shows them, so that those of runs with the same key can be
    /// compared: 32 random bytes or more (`openssl rand -hex 32`), not readable by others. Each run has a key of its
    /// own if absent.
    #[arg(long, value_name = "FILE", requires = "fingerprint")]
    pub fingerprint_key: Option<PathBuf>,
}

/// What belongs to whom.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Input, the cluster of the kubeconfig if absent")]
pub struct WhoseArguments {
    /// Says what belongs to which customer, where there are no Tenant objects.
    #[arg(long, value_name = "FILE")]
    pub tenants: Option<PathBuf>,
    /// Knows the labels by which a platform tells what belongs to whom.
    #[arg(long, value_name = "PRESET", value_parser = presets(), conflicts_with = "tenants")]
    pub preset: Option<String>,
    /// Writes how long each part took as one line of JSON to standard error.
    #[arg(long)]
    pub timings: bool,
}

/// A dump, and perhaps the name of its cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpArgument {
    /// The name.
    pub name: Option<String>,
    /// A file or folder.
    pub path: PathBuf,
}

impl std::str::FromStr for DumpArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A path may have a `=` in it; a name has no `/`.
        let named = text.split_once('=').filter(|(name, path)| {
            !name.is_empty()
                && !path.is_empty()
                && !name.contains(['/', '\\'])
                && !PathBuf::from(text).exists()
        });
        match named {
            Some((name, path)) if !name.contains(':') => {
                Ok(Self { name: Some(name.to_owned()), path: PathBuf::from(path) })
            }
            Some((name, _)) => {
                Err(format!("a cluster cannot be called `{name}`: `:` ends the name of a cluster"))
            }
            None if text.is_empty() => Err("name a file or folder".to_owned()),
            None => Ok(Self { name: None, path: PathBuf::from(text) }),
        }
    }
}

/// When the exit code is 1.
#[derive(Debug, Clone, Args)]
pub struct FailArguments {
    /// The lowest severity that ends with code 1.
    #[arg(long, default_value = "high", value_name = "SEVERITY", value_parser = severities())]
    pub fail_on: Severity,
}

/// What to audit.
#[derive(Debug, Clone, Args)]
pub struct AuditArguments {
    /// Which subjects are listed with each Secret: none, those that are neither the owner's nor the platform's, or all.
    /// A large cluster makes long lists; who-can-read answers for one Secret.
    #[arg(long, default_value = "none", value_name = "WHICH", value_parser = subjects())]
    pub subjects: Subjects,
    /// When the exit code is 1.
    #[command(flatten)]
    pub fail: FailArguments,
    /// A former audit (`-o json`): its findings and verdicts are known and do not count; shows what is gone.
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Findings that somebody answers for until a day; one that is over or for nothing is a finding.
    #[arg(long, value_name = "FILE")]
    pub waivers: Option<PathBuf>,
    /// What to look at.
    #[command(flatten)]
    pub filter: FilterArguments,
    /// The form of the answer.
    #[arg(short, long, default_value = "table", value_name = "FORMAT", value_parser = formats(&WITH_HTML))]
    pub output: Format,
    /// Where to read.
    #[command(flatten)]
    pub input: InputArguments,
    /// For benchmarks: takes so many bindings away one by one, and puts each back, before the answer is made.
    #[arg(long, value_name = "COUNT", hide = true, requires = "timings")]
    pub bench_incremental: Option<usize>,
}

/// What to look at.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Selection, of which the exit code is, too")]
pub struct FilterArguments {
    /// Only findings of at least this severity.
    #[arg(long, value_name = "SEVERITY", value_parser = severities())]
    pub severity: Option<Severity>,
    /// Only what starts or ends in this namespace; repeatable.
    #[arg(short, long = "namespace", value_name = "NAMESPACE")]
    pub namespaces: Vec<String>,
    /// Only what is this customer's or what it reaches; repeatable.
    #[arg(long = "customer", value_name = "CUSTOMER")]
    pub customers: Vec<String>,
    /// Only Secrets of this verdict, and findings about them; repeatable.
    #[arg(long = "verdict", value_name = "VERDICT", value_parser = verdicts())]
    pub verdicts: Vec<Verdict>,
}

impl FilterArguments {
    /// The filter.
    pub fn filter(&self) -> Filter {
        let Self { severity, namespaces, customers, verdicts } = self.clone();
        Filter { severity, namespaces, customers, verdicts }
    }
}

/// Which Secret.
#[derive(Debug, Clone, Args)]
pub struct WhoCanReadArguments {
    /// The Secret, as NAMESPACE/NAME, or CLUSTER:NAMESPACE/NAME where several clusters are read.
    #[arg(value_name = "NAMESPACE/NAME")]
    pub secret: SecretRef,
    /// When the exit code is 1.
    #[command(flatten)]
    pub fail: FailArguments,
    /// The form of the answer.
    #[arg(short, long, default_value = "table", value_name = "FORMAT", value_parser = formats(&WITH_HTML))]
    pub output: Format,
    /// Where to read.
    #[command(flatten)]
    pub input: InputArguments,
}

/// Which subject.
#[derive(Debug, Clone, Args)]
pub struct ReachArguments {
    /// user:NAME, group:NAME, sa:NAMESPACE/NAME or source:URL, perhaps with CLUSTER: before it.
    pub subject: SubjectRef,
    /// When the exit code is 1.
    #[command(flatten)]
    pub fail: FailArguments,
    /// The form of the answer.
    #[arg(short, long, default_value = "table", value_name = "FORMAT", value_parser = formats(&WITH_HTML))]
    pub output: Format,
    /// Where to read.
    #[command(flatten)]
    pub input: InputArguments,
}

/// From where to where.
#[derive(Debug, Clone, Args)]
pub struct WhyArguments {
    /// user:NAME, group:NAME, sa:NAMESPACE/NAME or source:URL, perhaps with CLUSTER: before it.
    pub subject: SubjectRef,
    /// The Secret, as NAMESPACE/NAME, or CLUSTER:NAMESPACE/NAME where several clusters are read.
    #[arg(value_name = "NAMESPACE/NAME")]
    pub secret: SecretRef,
    /// How many other ways are looked for, each starting by another binding.
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=50))]
    pub alternates: u8,
    /// The form of the answer.
    #[arg(short, long, default_value = "table", value_name = "FORMAT", value_parser = formats(&WITH_HTML))]
    pub output: Format,
    /// Where to read.
    #[command(flatten)]
    pub input: InputArguments,
}

/// What would change.
#[derive(Debug, Clone, Args)]
pub struct WhatIfArguments {
    /// Objects to add or change: a file or folder of YAML or JSON, or `-` for standard input; repeatable.
    #[arg(short = 'f', long = "filename", value_name = "PATH", required = true)]
    pub files: Vec<PathBuf>,
    /// Takes those objects away instead.
    #[arg(long)]
    pub remove: bool,
    /// The namespace of objects that name none and need one.
    #[arg(short, long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// The cluster that changes, where several are read.
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
    /// When the exit code is 1.
    #[command(flatten)]
    pub fail: FailArguments,
    /// The form of the answer.
    #[arg(short, long, default_value = "table", value_name = "FORMAT", value_parser = formats(&WITH_HTML))]
    pub output: Format,
    /// Where to read.
    #[command(flatten)]
    pub input: InputArguments,
}

/// What to explain.
#[derive(Debug, Clone, Args)]
pub struct ExplainArguments {
    /// An edge or rule, or a finding of an audit; lists all edges and rules if absent.
    pub id: Option<String>,
    /// Takes the finding from an audit (`-o json`) and reads no cluster.
    #[arg(long, value_name = "FILE", conflicts_with = "dumps")]
    pub audit: Option<PathBuf>,
    /// How many other ways are looked for, each starting by another binding.
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=50))]
    pub alternates: u8,
    /// The form of the answer.
    #[arg(short, long, default_value = "table", value_name = "FORMAT", value_parser = formats(&PLAIN))]
    pub output: Format,
    /// Where to read.
    #[command(flatten)]
    pub input: InputArguments,
}

/// What to compare.
#[derive(Debug, Clone, Args)]
pub struct DiffArguments {
    /// The old state: an audit (`-o json`), or a dump.
    pub old: PathBuf,
    /// The new state: an audit (`-o json`), or a dump.
    pub new: PathBuf,
    /// When the exit code is 1.
    #[command(flatten)]
    pub fail: FailArguments,
    /// The form of the answer.
    #[arg(short, long, default_value = "table", value_name = "FORMAT", value_parser = formats(&PLAIN))]
    pub output: Format,
    /// What belongs to whom, for dumps.
    #[command(flatten)]
    pub whose: WhoseArguments,
    /// Whether values are read, of dumps.
    #[command(flatten)]
    pub fingerprint: FingerprintArguments,
}

const PLAIN: [&str; 8] = ["table", "wide", "json", "yaml", "name", "sarif", "junit", "markdown"];
const WITH_HTML: [&str; 9] = ["table", "wide", "json", "yaml", "name", "sarif", "junit", "markdown", "html"];

fn severities() -> impl TypedValueParser<Value = Severity> {
    one_of(SEVERITIES.to_vec())
}

fn verdicts() -> impl TypedValueParser<Value = Verdict> {
    one_of(VERDICTS.iter().map(|(name, verdict, _)| (*name, *verdict)).collect())
}

fn subjects() -> impl TypedValueParser<Value = Subjects> {
    one_of(vec![("none", Subjects::None), ("foreign", Subjects::Foreign), ("all", Subjects::All)])
}

fn presets() -> PossibleValuesParser {
    PossibleValuesParser::new(bailey_access::presets().iter().map(|preset| preset.name.as_str()))
}

/// A value by its name.
fn one_of<T: Copy + Send + Sync + 'static>(
    values: Vec<(&'static str, T)>,
) -> impl TypedValueParser<Value = T> {
    let names: Vec<_> = values.iter().map(|(name, _)| *name).collect();
    PossibleValuesParser::new(names).try_map(move |name| {
        let found = values.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| *value).ok_or_else(|| format!("`{name}` is not known"))
    })
}

#[cfg(test)]
mod tests;
