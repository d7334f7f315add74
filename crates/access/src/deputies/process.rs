//! Which controllers run, as whom, and with which settings, read from Deployments, StatefulSets and DaemonSets.
//!
//! INVARIANT: a setting that could not be read is [`Setting::Unknown`], never a default.

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::{
    data::{self, Means, Program, Test, Watch},
    select,
};
use crate::{ClusterFacts, Identity, ObjectFact, SubjectKind, Symbol, Symbols};

/// A program that runs in the cluster, or is taken to.
#[derive(Debug, Clone)]
pub(super) struct Process {
    /// What it is.
    pub program: &'static Program,
    /// Namespace of the workload, and so of the ServiceAccount.
    pub namespace: String,
    /// Name of its ServiceAccount.
    pub account: String,
    /// The workload as `Kind NAMESPACE/NAME`.
    pub object: String,
    /// Why it is only taken to be there.
    pub guess: Option<String>,
    settings: Settings,
    version: Option<Version>,
}

/// A setting of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Setting {
    /// It is not given, so the default holds.
    Absent,
    /// It is this.
    Is(String),
    /// It could not be read; this is why.
    Unknown(String),
}

/// Whether something holds, with a word on what is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Holds {
    Yes,
    No,
    Unknown(String),
}

/// Namespaces that a program looks at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Watched {
    /// The only ones, if it is not all.
    pub only: Option<Vec<String>>,
    /// Those it leaves out.
    pub except: Vec<String>,
    /// What could not be read.
    pub unknown: Vec<String>,
}

type Version = [u32; 3];

#[derive(Debug, Clone, Default)]
struct Settings {
    words: Vec<(String, Option<String>)>,
    env: Vec<(String, Setting)>,
    /// Why a flag that is not here may be set.
    no_words: Option<String>,
    /// Why a variable that is not here may be set.
    no_env: Option<String>,
}

/// The programs that workloads run.
pub(super) fn find(cluster: &ClusterFacts, symbols: &Symbols) -> Vec<Process> {
    let mut found = Vec::new();
    for kind in ["Deployment", "StatefulSet", "DaemonSet"] {
        for object in cluster.objects_of("apps", kind) {
            let Some(pod) = object.body.pointer("/spec/template/spec") else { continue };
            let containers = pod.get("containers").and_then(Value::as_array).into_iter().flatten();
            for container in containers {
                found.extend(of_container(cluster, symbols, object, pod, container));
            }
        }
    }
    found
}

/// ServiceAccounts that bear the usual names of programs: guesses for where no workload was loaded.
pub(super) fn guess(
    cluster: &ClusterFacts,
    symbols: &Symbols,
    programs: &[&'static Program],
) -> Vec<Process> {
    let mut usual: FxHashMap<Symbol, Vec<&'static Program>> = FxHashMap::default();
    for program in programs {
        for name in program.accounts.iter().filter_map(|name| symbols.find(name)) {
            usual.entry(name).or_default().push(program);
        }
    }
    let accounts = cluster.service_accounts.iter().map(|account| (account.namespace, account.name));
    let bound = cluster.bindings.iter().flat_map(|binding| &binding.subjects);
    let bound = bound.filter(|s| s.kind == SubjectKind::ServiceAccount).map(|s| (s.namespace, s.name));
    let mut named: Vec<(Symbol, Symbol)> =
        accounts.chain(bound).filter(|(_, name)| usual.contains_key(name)).collect();
    named.sort_unstable_by_key(|(namespace, name)| (symbols.name(*namespace), symbols.name(*name)));
    named.dedup();
    let mut guesses = Vec::new();
    for (namespace, name) in named {
        let (namespace, account) = (symbols.name(namespace), symbols.name(name));
        guesses.extend(usual.get(&name).into_iter().flatten().map(|program| Process {
            program,
            namespace: namespace.to_owned(),
            account: account.to_owned(),
            object: format!("ServiceAccount {namespace}/{account}"),
            guess: Some(format!(
                "no workload that runs {} was loaded: its account is guessed by the usual name",
                program.id
            )),
            settings: Settings::unknown("its workload was not loaded"),
            version: None,
        }));
    }
    guesses
}

fn of_container(
    cluster: &ClusterFacts,
    symbols: &Symbols,
    object: &ObjectFact,
    pod: &Value,
    container: &Value,
) -> Vec<Process> {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let (repository, tag) = split_image(image);
    let namespace = symbols.name(object.namespace);
    let programs: Vec<&'static Program> = data::files()
        .iter()
        .flat_map(|file| &file.processes)
        .filter(|program| runs(program, &object.body, repository))
        .collect();
    if programs.is_empty() {
        return Vec::new();
    }
    let settings = Settings::read(cluster, symbols, pod, container, namespace);
    let account = ["serviceAccountName", "serviceAccount"]
        .iter()
        .find_map(|field| pod.get(field).and_then(Value::as_str).filter(|name| !name.is_empty()))
        .unwrap_or("default");
    let wanted = |program: &&'static Program| {
        (program.runs.is_empty() || program.runs.iter().any(|word| settings.has_word(word)))
            && !program.not.iter().any(|word| settings.has_word(word))
    };
    let process = |program| Process {
        program,
        namespace: namespace.to_owned(),
        account: account.to_owned(),
        object: format!("{} {namespace}/{}", object.kind, symbols.name(object.name)),
        guess: None,
        settings: settings.clone(),
        version: version(tag),
    };
    programs.into_iter().filter(wanted).map(process).collect()
}

/// Splits `HOST/PATH:TAG@DIGEST` into the repository and the tag, empty for none.
fn split_image(image: &str) -> (&str, &str) {
    let image = image.split('@').next().unwrap_or_default();
    match image.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, tag),
        _ => (image, ""),
    }
}

fn runs_image(pattern: &str, repository: &str) -> bool {
    let mut parts = repository.rsplit('/');
    pattern.rsplit('/').enumerate().all(|(index, wanted)| {
        parts.next().is_some_and(|part| {
            select::glob(wanted, part) || (index == 0 && select::glob(&format!("*-{wanted}"), part))
        })
    })
}

/// Whether a container of a workload runs a known program, so that its flags decide something.
pub(super) fn is_known(workload: &Value, image: &str) -> bool {
    let (repository, _) = split_image(image);
    data::files().iter().flat_map(|file| &file.processes).any(|program| runs(program, workload, repository))
}

fn runs(program: &Program, workload: &Value, repository: &str) -> bool {
    program.images.iter().any(|image| runs_image(image, repository)) || labelled(program, workload)
}

fn labelled(program: &Program, workload: &Value) -> bool {
    let label = |key: &str| workload.get("metadata")?.get("labels")?.get(key)?.as_str();
    !program.labels.is_empty() && program.labels.iter().all(|(key, value)| label(key) == Some(value))
}

fn version(tag: &str) -> Option<Version> {
    let mut numbers = tag.trim_start_matches('v').split('.').map(|part| {
        let digits = part.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        digits.parse::<u32>().ok()
    });
    let major = numbers.next().flatten()?;
    let minor = numbers.next().flatten()?;
    Some([major, minor, numbers.next().flatten().unwrap_or(0)])
}

impl Process {
    /// Who it acts as.
    pub fn identity(&self, symbols: &mut Symbols) -> Identity {
        Identity {
            kind: SubjectKind::ServiceAccount,
            namespace: symbols.intern(&self.namespace),
            name: symbols.intern(&self.account),
        }
    }

    /// A flag of the command line, as `--NAME=VALUE`, `--NAME VALUE` or `--NAME` (then `true`). The last one counts.
    pub fn flag(&self, name: &str) -> Setting {
        self.settings.flag(name)
    }

    /// An environment variable.
    pub fn env(&self, name: &str) -> Setting {
        self.settings.env(name)
    }

    fn setting(&self, flag: Option<&str>, env: Option<&str>) -> Setting {
        let by_flag = flag.map_or(Setting::Absent, |flag| self.flag(flag));
        match (by_flag, env) {
            (Setting::Absent, Some(env)) => self.env(env),
            (setting, _) => setting,
        }
    }

    /// Whether a setting is what a test asks for. An absent one is not.
    pub fn passes(&self, test: &Test) -> Holds {
        match self.setting(test.flag.as_deref(), test.env.as_deref()) {
            Setting::Absent => Holds::No,
            Setting::Unknown(why) => Holds::Unknown(why),
            Setting::Is(value) => {
                let passes = match test.is.as_str() {
                    "set" => !value.is_empty(),
                    "true" => is_true(&value),
                    "false" => is_false(&value),
                    other => value == other,
                };
                if passes { Holds::Yes } else { Holds::No }
            }
        }
    }

    /// The namespaces that it looks at, and a rule of its own too.
    pub fn watched(&self, more: &[Watch]) -> Watched {
        let mut watched = Watched::default();
        for watch in self.program.watch.iter().chain(more) {
            let own = vec![self.namespace.clone()];
            let setting = self.setting(watch.flag.as_deref(), watch.env.as_deref());
            match (watch.means, setting) {
                (Means::Own, _) => watched.limit(own),
                (_, Setting::Absent) => {}
                (_, Setting::Unknown(why)) => watched.unknown.push(why),
                (Means::OwnIfFalse, Setting::Is(value)) if is_false(&value) => watched.limit(own),
                (Means::OwnIfTrue, Setting::Is(value)) if is_true(&value) => watched.limit(own),
                (Means::OwnIfFalse | Means::OwnIfTrue, Setting::Is(_)) => {}
                (Means::Listed, Setting::Is(value)) => {
                    let names = list(&value);
                    if !names.is_empty() && !names.iter().any(|name| name == "*") {
                        watched.limit(names);
                    }
                }
                (Means::Denied, Setting::Is(value)) => watched.except.extend(list(&value)),
            }
        }
        watched
    }

    /// Whether its version is one that has something: from `since` on, and not yet `fixed`.
    pub fn in_versions(&self, since: Option<&str>, fixed: &[String]) -> Holds {
        if since.is_none() && fixed.is_empty() {
            return Holds::Yes;
        }
        let Some(own) = self.version else {
            return Holds::Unknown("its version is not known".to_owned());
        };
        if since.and_then(version).is_some_and(|since| own < since) {
            return Holds::No;
        }
        let fixes: Vec<Version> = fixed.iter().filter_map(|fix| version(fix)).collect();
        let same_line = fixes.iter().find(|fix| fix.iter().take(2).eq(own.iter().take(2)));
        let ended = match same_line {
            Some(fix) => own >= *fix,
            None => fixes.iter().max().is_some_and(|newest| own > *newest),
        };
        if ended { Holds::No } else { Holds::Yes }
    }
}

impl Watched {
    fn limit(&mut self, names: Vec<String>) {
        self.only = Some(match self.only.take() {
            Some(only) => only.into_iter().filter(|name| names.contains(name)).collect(),
            None => names,
        });
    }

    /// Whether it looks at a namespace.
    pub fn sees(&self, namespace: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|name| name == namespace))
            && !self.except.iter().any(|name| name == namespace)
    }
}

impl Settings {
    fn unknown(why: &str) -> Self {
        Self { no_words: Some(why.to_owned()), no_env: Some(why.to_owned()), ..Self::default() }
    }

    fn read(
        cluster: &ClusterFacts,
        symbols: &Symbols,
        pod: &Value,
        container: &Value,
        namespace: &str,
    ) -> Self {
        let mut settings = Self::default();
        settings.read_env(cluster, symbols, pod, container, namespace);
        for field in ["command", "args"] {
            for word in container.get(field).and_then(Value::as_array).into_iter().flatten() {
                let (text, unknown) = settings.expand(word.as_str().unwrap_or_default());
                // A shell's script is one word of the list.
                settings.words.extend(text.split_whitespace().map(|word| (word.to_owned(), unknown.clone())));
            }
        }
        settings
    }

    fn read_env(
        &mut self,
        cluster: &ClusterFacts,
        symbols: &Symbols,
        pod: &Value,
        container: &Value,
        namespace: &str,
    ) {
        let text = |value: &Value, field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
        for source in container.get("envFrom").and_then(Value::as_array).into_iter().flatten() {
            let prefix = text(source, "prefix").unwrap_or_default();
            let Some(name) = source.get("configMapRef").and_then(|r| text(r, "name")) else {
                self.no_env = Some("it takes environment variables from a Secret".to_owned());
                continue;
            };
            match config_map(cluster, symbols, namespace, &name) {
                Some(map) => {
                    let entries = map.body.get("data").and_then(Value::as_object).into_iter().flatten();
                    let entries = entries.filter_map(|(key, value)| Some((key, value.as_str()?)));
                    self.env.extend(
                        entries.map(|(key, value)| (format!("{prefix}{key}"), Setting::Is(value.to_owned()))),
                    );
                }
                None => self.no_env = Some(format!("ConfigMap {namespace}/{name} was not loaded")),
            }
        }
        for entry in container.get("env").and_then(Value::as_array).into_iter().flatten() {
            let Some(name) = text(entry, "name") else { continue };
            let setting = match entry.get("valueFrom") {
                None => match text(entry, "value") {
                    Some(value) => {
                        let (value, unknown) = self.expand(&value);
                        unknown.map_or(Setting::Is(value), Setting::Unknown)
                    }
                    // Values of variables may be secrets, so they need not have been loaded.
                    None => Setting::Unknown(format!("the value of its variable {name} was not loaded")),
                },
                Some(from) => Self::env_from(cluster, symbols, pod, from, namespace),
            };
            self.env.push((name, setting));
        }
    }

    fn env_from(
        cluster: &ClusterFacts,
        symbols: &Symbols,
        pod: &Value,
        from: &Value,
        namespace: &str,
    ) -> Setting {
        if let Some(field) = from.pointer("/fieldRef/fieldPath").and_then(Value::as_str) {
            let account = pod.get("serviceAccountName").and_then(Value::as_str).unwrap_or("default");
            return match field {
                "metadata.namespace" => Setting::Is(namespace.to_owned()),
                "spec.serviceAccountName" => Setting::Is(account.to_owned()),
                other => Setting::Unknown(format!("it takes a setting from {other} of its pod")),
            };
        }
        let Some(reference) = from.get("configMapKeyRef") else {
            return Setting::Unknown("it takes a setting from a Secret".to_owned());
        };
        let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
        match config_map(cluster, symbols, namespace, text("name")).and_then(|map| map.body.get("data")) {
            Some(data) => {
                let value = data.get(text("key")).and_then(Value::as_str);
                value.map_or(Setting::Absent, |value| Setting::Is(value.to_owned()))
            }
            None => Setting::Unknown(format!("ConfigMap {namespace}/{} was not loaded", text("name"))),
        }
    }

    /// Puts variables in for `$(NAME)`, as the kubelet does. One that is not known makes the whole word unknown.
    fn expand(&self, word: &str) -> (String, Option<String>) {
        let mut out = String::new();
        let mut unknown = None;
        let mut rest = word;
        while let Some((before, after)) = rest.split_once("$(") {
            let Some((name, tail)) = after.split_once(')') else { break };
            out.push_str(before);
            match self.env(name) {
                Setting::Is(value) => out.push_str(&value),
                Setting::Absent => out.push_str(&format!("$({name})")),
                Setting::Unknown(why) => unknown = Some(why),
            }
            rest = tail;
        }
        out.push_str(rest);
        (out, unknown)
    }

    fn has_word(&self, wanted: &str) -> bool {
        self.words.iter().any(|(word, _)| word.rsplit('/').next() == Some(wanted))
    }

    fn flag(&self, name: &str) -> Setting {
        let mut setting = Setting::Absent;
        let mut words = self.words.iter();
        while let Some((word, unknown)) = words.next() {
            let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else { continue };
            let (flag, value) =
                flag.split_once('=').map_or((flag, None), |(flag, value)| (flag, Some(value)));
            if flag != name {
                continue;
            }
            let next = words.clone().next().filter(|(next, _)| !next.starts_with('-'));
            setting = match (value, unknown) {
                (_, Some(why)) => Setting::Unknown(why.clone()),
                (Some(value), None) => Setting::Is(value.trim_matches(['"', '\'']).to_owned()),
                (None, None) => match next {
                    Some((_, Some(why))) => Setting::Unknown(why.clone()),
                    Some((value, None)) => Setting::Is(value.clone()),
                    None => Setting::Is("true".to_owned()),
                },
            };
        }
        match (&setting, &self.no_words) {
            (Setting::Absent, Some(why)) => Setting::Unknown(why.clone()),
            _ => setting,
        }
    }

    fn env(&self, name: &str) -> Setting {
        match self.env.iter().rev().find(|(known, _)| known == name) {
            Some((_, setting)) => setting.clone(),
            None => self.no_env.clone().map_or(Setting::Absent, Setting::Unknown),
        }
    }
}

fn config_map<'a>(
    cluster: &'a ClusterFacts,
    symbols: &Symbols,
    namespace: &str,
    name: &str,
) -> Option<&'a ObjectFact> {
    cluster
        .objects_of("", "ConfigMap")
        .find(|map| symbols.name(map.namespace) == namespace && symbols.name(map.name) == name)
}

/// Go's `strconv.ParseBool`, for a value that is meant to be one; a flag that is merely given is true.
fn is_false(value: &str) -> bool {
    ["0", "f", "F", "false", "False", "FALSE"].contains(&value)
}

fn is_true(value: &str) -> bool {
    !value.is_empty() && !is_false(value)
}

/// The names in a list that is split by commas.
pub(super) fn list(value: &str) -> Vec<String> {
    value.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
