//! The edges and controllers that the analyser follows, from its data files.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::Value;

use super::markdown::{code, codes, head, row, sentence, table};
use crate::command::root;

const CATALOGUE: &str = "crates/access/catalogue";
const DEPUTIES: &str = "crates/access/deputies";
/// The files of the catalogue, each with the heading and the first words of its part.
const PARTS: [(&str, &str, &str); 2] = [
    (
        "kubernetes.yaml",
        "Kubernetes itself",
        "What a right, or a state of the cluster, is worth by the rules of Kubernetes alone.",
    ),
    (
        "deputies.yaml",
        "Controllers",
        "What somebody gets a controller to do who writes its objects. Each holds only where such a controller was \
         found, with the rights of its own ServiceAccount and the settings of its own command line.",
    ),
];

/// An edge, as far as people read it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Edge {
    id: String,
    title: String,
    severity: String,
    explanation: String,
    remedy: String,
    references: Vec<String>,
    #[serde(default)]
    soft: bool,
    #[serde(default)]
    when: Vec<Need>,
    #[serde(default)]
    or: Vec<Vec<Need>>,
    since: Option<u16>,
    until: Option<u16>,
    certainty: Option<String>,
    #[serde(default)]
    psa: bool,
    #[serde(default)]
    samples: Vec<Value>,
}

/// One thing that must be held.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Need {
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    group: String,
    resource: Option<Value>,
    #[serde(default)]
    names: Vec<String>,
    place: Option<String>,
    power: Option<String>,
    #[serde(default)]
    any_impersonation: bool,
}

/// The controllers of one project.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Project {
    sources: Vec<String>,
    processes: Vec<Program>,
    #[serde(default)]
    kinds: Vec<Kind>,
    #[serde(default)]
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Program {
    id: String,
    images: Vec<String>,
}

#[derive(Deserialize)]
struct Kind {
    id: String,
    group: String,
    plural: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Rule {
    edge: String,
    process: String,
    each: Vec<String>,
    says: String,
    assumed: Option<String>,
    #[serde(default)]
    unless: Vec<Setting>,
    #[serde(default)]
    only_if: Vec<Setting>,
}

#[derive(Deserialize)]
struct Setting {
    flag: Option<String>,
    env: Option<String>,
    is: String,
}

/// The whole page.
pub(super) fn page() -> Result<String> {
    let mut text = head("Edges", "`crates/access/catalogue` and `crates/access/deputies`");
    text.push_str(
        "\nA way from a subject to a Secret is made of edges: what is held gives something more. `bailey explain EDGE` \
         says the same on the command line; [how the answer is made](../explanation/how-the-answer-is-made.md) says what \
         `proven` and `assumed` mean. The severity is that of an edge by itself; a finding is as bad as what is reached.\n",
    );
    for (file, heading, about) in PARTS {
        let edges: Vec<Edge> = read(&format!("{CATALOGUE}/{file}"))?;
        text.push_str(&format!("\n## {heading}\n\n{about}\n"));
        text.push_str(&table(&["edge", "what happens", "severity"]));
        for edge in &edges {
            let link = format!("[{0}](#{0})", edge.id);
            let severity = if edge.soft { "told, not counted" } else { &edge.severity };
            text.push_str(&row(&[&link, &edge.title, severity]));
        }
        edges.iter().for_each(|edge| section(&mut text, edge));
    }
    controllers(&mut text)?;
    Ok(text)
}

fn read<T: for<'de> Deserialize<'de>>(path: &str) -> Result<T> {
    let text = fs::read_to_string(root().join(path)).with_context(|| format!("read `{path}`"))?;
    serde_saphyr::from_str(&text).with_context(|| format!("read `{path}`"))
}

fn section(text: &mut String, edge: &Edge) {
    text.push_str(&format!("\n### {}\n\n", edge.id));
    text.push_str(&format!("**{}** {}\n\n", sentence(&edge.title), sentence(&edge.explanation)));
    let ways: Vec<_> = std::iter::once(&edge.when).chain(&edge.or).filter(|way| !way.is_empty()).collect();
    for (number, way) in ways.iter().enumerate() {
        let needs: Vec<_> = way.iter().map(Need::said).collect();
        let word = if number == 0 { "Needs" } else { "Or needs" };
        text.push_str(&format!("- {word}: {}\n", sentence(&needs.join("; and "))));
    }
    for fact in edge.conditions() {
        text.push_str(&format!("- {fact}\n"));
    }
    text.push_str(&format!("- What to do: {}\n", sentence(&edge.remedy)));
    text.push_str(&format!(
        "- See: {}\n",
        edge.references.iter().map(|url| format!("<{url}>")).collect::<Vec<_>>().join(", ")
    ));
}

impl Edge {
    /// When it holds, and how sure it is.
    fn conditions(&self) -> Vec<String> {
        let mut facts = Vec::new();
        match (self.since, self.until) {
            (Some(since), _) => facts.push(format!("Since Kubernetes 1.{since}.")),
            (_, Some(until)) => facts.push(format!("Until Kubernetes 1.{until}.")),
            _ => {}
        }
        if self.psa {
            facts.push(
                "Closed by Pod Security of at least `baseline`, or by a policy that refuses the pod."
                    .to_owned(),
            );
        } else if !self.samples.is_empty() {
            facts.push("Closed by an admission policy that is shown to refuse the request.".to_owned());
        }
        if self.certainty.as_deref() == Some("assumed") {
            facts.push("Always assumed: more is needed than is looked at.".to_owned());
        }
        if self.soft {
            facts.push(
                "What is gained depends on what others do, so it is told and no verdict counts it."
                    .to_owned(),
            );
        }
        facts
    }
}

impl Need {
    fn said(&self) -> String {
        if self.any_impersonation {
            return "`impersonate` on some subject".to_owned();
        }
        if let Some(power) = &self.power {
            return match power.as_str() {
                "pods" => "[pods of one's own](#create-pod)".to_owned(),
                power => format!("{power} of the namespace"),
            };
        }
        let resources: Vec<&str> = match &self.resource {
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(one)) => vec![one],
            _ => Vec::new(),
        };
        let verbs = match self.verbs.split_last() {
            Some((last, [])) => code(last),
            Some((last, others)) => format!("{} or {}", codes(others.iter().map(String::as_str)), code(last)),
            None => "any verb".to_owned(),
        };
        let mut said = format!("{verbs} on {}", codes(resources));
        if !self.group.is_empty() {
            said.push_str(&format!(" of {}", code(&self.group)));
        }
        if !self.names.is_empty() {
            said.push_str(&format!(", named {}", codes(self.names.iter().map(String::as_str))));
        }
        match self.place.as_deref() {
            Some("cluster") => said.push_str(", in the whole cluster"),
            Some(place) if place != "here" => said.push_str(&format!(", in {}", code(place))),
            _ => {}
        }
        said
    }
}

fn controllers(text: &mut String) -> Result<()> {
    text.push_str(
        "\n## How each controller is known\n\nA controller is known by the image that a workload runs, or by labels that \
         say the same, and never by the workload's name. Where its kinds are there and no workload of it was loaded, what \
         it does is assumed. Rules that need more than a table are code, in `crates/access/src/deputies`; the edges above \
         have those, too.\n",
    );
    let mut projects = BTreeMap::new();
    for entry in fs::read_dir(root().join(DEPUTIES)).with_context(|| format!("read `{DEPUTIES}`"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let project: Project = read(&format!("{DEPUTIES}/{name}"))?;
        projects.insert(name.trim_end_matches(".yaml").to_owned(), project);
    }
    for (name, project) in &projects {
        text.push_str(&format!("\n### {name}\n\n"));
        for program in &project.processes {
            text.push_str(&format!(
                "- `{}` runs {}\n",
                program.id,
                codes(program.images.iter().map(String::as_str))
            ));
        }
        let sources: Vec<_> = project.sources.iter().map(|source| format!("<{source}>")).collect();
        text.push_str(&format!("- Known from: {}\n", sources.join(", ")));
        if !project.rules.is_empty() {
            text.push_str(&table(&["whoever writes", "has this program", "do this", "edge", "condition"]));
            project.rules.iter().for_each(|rule| text.push_str(&rule.row(project)));
        }
    }
    Ok(())
}

impl Rule {
    fn row(&self, project: &Project) -> String {
        let kind = |id: &String| match project.kinds.iter().find(|kind| kind.id == *id) {
            Some(kind) if kind.group.is_empty() => code(&kind.plural),
            Some(kind) => code(&format!("{}.{}", kind.plural, kind.group)),
            None => code(id),
        };
        let kinds = self.each.iter().map(kind).collect::<Vec<_>>().join(", ");
        let settings = |word: &str, settings: &[Setting]| -> Vec<String> {
            settings.iter().map(|setting| format!("{word} {}", setting.said())).collect()
        };
        let mut conditions = settings("unless", &self.unless);
        conditions.extend(settings("only if", &self.only_if));
        conditions.extend(self.assumed.as_ref().map(|why| format!("assumed: {why}")));
        let edge = format!("[{0}](#{0})", self.edge);
        row(&[&kinds, &code(&self.process), &self.says, &edge, &conditions.join("; ")])
    }
}

impl Setting {
    fn said(&self) -> String {
        let name = self.flag.as_ref().map(|flag| format!("--{}", flag.trim_start_matches("--")));
        let name = name.or_else(|| self.env.clone()).unwrap_or_default();
        format!("{} is {}", code(&name), self.is)
    }
}
