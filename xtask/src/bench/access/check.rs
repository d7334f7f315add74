//! Whether an answer is right: the planted subjects against what a tool says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fixed::Answer;

/// Reads `planted.json`.
pub fn answers(path: &Path) -> Result<Vec<Answer>> {
    let text = fs::read(path).with_context(|| format!("read `{}`", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("read `{}`", path.display()))
}

/// Secrets that one planted answer speaks about and that tell the others apart; asked for one by one.
pub const ASKED: [&str; 4] = [
    "kube-system/planted-one",
    "kube-system/planted-two",
    "planted-vault/planted-one",
    "planted-vault/planted-two",
];

/// How sure an answer is of what it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    #[default]
    Proven,
    Assumed,
}

/// Who reads which Secret, as far as a tool was asked: Secret as `NAMESPACE/NAME`, then subject as `sa:NAMESPACE/NAME`.
pub type Readers = BTreeMap<String, BTreeMap<String, Certainty>>;

/// The part of `bailey who-can-read -o json` that is looked at.
#[derive(Deserialize)]
struct WhoCanRead {
    subjects: Vec<Reader>,
}

#[derive(Deserialize)]
struct Reader {
    subject: String,
    #[serde(default)]
    certainty: Certainty,
}

/// The part of `bailey reach -o json` that is looked at.
#[derive(Deserialize)]
struct Reach {
    secrets: Vec<Reached>,
}

#[derive(Deserialize)]
struct Reached {
    namespace: String,
    name: String,
    #[serde(default)]
    certainty: Certainty,
}

/// Reads who reads a Secret from what `who-can-read` printed.
pub fn who_can_read(text: &[u8]) -> Result<BTreeMap<String, Certainty>> {
    let answer: WhoCanRead = serde_json::from_slice(text).context("read the answer of who-can-read")?;
    // A dump is of one cluster, whose name may stand before a subject.
    let plain = |subject: String| match subject.find("sa:") {
        Some(at) => subject.get(at..).unwrap_or_default().to_owned(),
        None => subject,
    };
    Ok(answer.subjects.into_iter().map(|reader| (plain(reader.subject), reader.certainty)).collect())
}

/// Adds what one subject reads, from what `reach` printed.
pub fn add_reach(readers: &mut Readers, subject: &str, text: &[u8]) -> Result<()> {
    let answer: Reach = serde_json::from_slice(text).context("read the answer of reach")?;
    for secret in answer.secrets {
        let name = format!("{}/{}", secret.namespace, secret.name);
        readers.entry(name).or_default().insert(subject.to_owned(), secret.certainty);
    }
    Ok(())
}

/// Finds subjects among the bindings that kubectl-who-can prints as JSON; it says the same of each Secret.
pub fn bound_accounts(text: &[u8]) -> Result<BTreeSet<String>> {
    let answer: Value = serde_json::from_slice(text).context("read the answer of kubectl-who-can")?;
    let mut found = BTreeSet::new();
    let mut left = vec![&answer];
    while let Some(value) = left.pop() {
        match value {
            Value::Array(values) => left.extend(values),
            Value::Object(fields) => {
                let text = |key: &str| fields.get(key).and_then(Value::as_str);
                if let (Some("ServiceAccount"), Some(namespace), Some(name)) =
                    (text("kind"), text("namespace"), text("name"))
                {
                    found.insert(format!("sa:{namespace}/{name}"));
                }
                left.extend(fields.values());
            }
            _ => {}
        }
    }
    Ok(found)
}

/// How a tool did on the planted subjects. A claim is one Secret, or one namespace, that a subject reads or not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Score {
    /// Claims that something is read, and how many of them the tool found.
    pub reads: usize,
    pub found: usize,
    /// Of those found, the ones that the tool only assumes.
    pub assumed: usize,
    /// Claims that something is not read, and how many of them the tool left alone.
    pub others: usize,
    pub spared: usize,
    /// What does not hold, in words.
    pub wrong: Vec<String>,
}

impl Score {
    /// Returns how many claims hold.
    pub fn right(&self) -> usize {
        self.found + self.spared
    }

    /// Returns how many claims were looked at.
    pub fn claims(&self) -> usize {
        self.reads + self.others
    }
}

/// Judges what a tool said about the Secrets that it was asked about; claims about others are left out.
pub fn judge(answers: &[Answer], readers: &Readers, asked: &BTreeSet<String>) -> Score {
    let mut score = Score::default();
    for answer in answers {
        for (claims, should) in [(&answer.reads, true), (&answer.does_not_read, false)] {
            for claim in claims {
                one(&mut score, answer, claim, should, readers, asked);
            }
        }
    }
    score
}

fn one(
    score: &mut Score,
    answer: &Answer,
    claim: &str,
    should: bool,
    readers: &Readers,
    asked: &BTreeSet<String>,
) {
    let about = asked.iter().filter(|secret| match claim.strip_suffix('*') {
        Some(namespace) => secret.starts_with(namespace),
        None => *secret == claim,
    });
    let said: Vec<(&String, Option<Certainty>)> = about
        .map(|secret| (secret, readers.get(secret).and_then(|by| by.get(&answer.subject)).copied()))
        .collect();
    if said.is_empty() {
        return;
    }
    let against: Vec<&str> =
        said.iter().filter(|(_, read)| read.is_some() != should).map(|(secret, _)| secret.as_str()).collect();
    let (all, right) =
        if should { (&mut score.reads, &mut score.found) } else { (&mut score.others, &mut score.spared) };
    *all += 1;
    let said_assumed = said.iter().any(|(_, read)| *read == Some(Certainty::Assumed));
    if against.is_empty() {
        *right += 1;
        score.assumed += usize::from(said_assumed);
        return;
    }
    let verb = if should { "is not said to read" } else { "is said to read" };
    let assumed = if said_assumed && !should { " (assumed)" } else { "" };
    let named: Vec<&str> = against.iter().take(3).copied().collect();
    let more = if against.len() > named.len() {
        format!(" and {} more", against.len() - named.len())
    } else {
        String::new()
    };
    score.wrong.push(format!(
        "{} {verb}{assumed} {}{more}: {}",
        answer.subject,
        named.join(", "),
        answer.why
    ));
}

/// Finds all Secrets of the namespaces that planted answers speak about, in a compact List.
pub fn secrets_asked(dump: &Path) -> Result<BTreeSet<String>> {
    let path = dump.join("secrets.json");
    let file = fs::File::open(&path).with_context(|| format!("open `{}`", path.display()))?;
    let list: Secrets = serde_json::from_reader(std::io::BufReader::with_capacity(1 << 18, file))
        .with_context(|| format!("read `{}`", path.display()))?;
    let spoken = ["kube-system", "planted-vault"];
    let wanted =
        list.items.into_iter().map(|item| item.metadata).filter(|at| spoken.contains(&at.namespace.as_str()));
    Ok(wanted.map(|at| format!("{}/{}", at.namespace, at.name)).collect())
}

#[derive(Deserialize)]
struct Secrets {
    items: Vec<SecretItem>,
}

#[derive(Deserialize)]
struct SecretItem {
    metadata: SecretName,
}

#[derive(Deserialize)]
struct SecretName {
    namespace: String,
    name: String,
}

#[cfg(test)]
mod tests;
