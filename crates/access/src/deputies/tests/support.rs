//! Small clusters from YAML, and templates as lines.

use std::collections::BTreeSet;

use crate::{
    Certainty, Fact, Gift, Loader, Need, Place, Power, Scope, Snapshot, Symbol, Symbols, Template,
    deputies::deputies,
};

/// The templates of a cluster named `here`.
pub fn templates(text: &str) -> (Vec<Template>, Symbols) {
    templates_listed(text, &[])
}

pub fn templates_listed(text: &str, listed: &[&str]) -> (Vec<Template>, Symbols) {
    let mut snapshot = snapshot(text);
    let mut cluster = snapshot.clusters.remove(0);
    cluster.listed = listed.iter().map(|&kind| kind.to_owned()).collect();
    let templates = deputies(&cluster, &mut snapshot.symbols, &["here".to_owned()]);
    (templates, snapshot.symbols)
}

/// `EDGE: NEEDS -> GIFT (assumed) in NAMESPACES not in NAMESPACES`, sorted.
pub fn lines(text: &str) -> Vec<String> {
    lines_listed(text, &[])
}

pub fn lines_listed(text: &str, listed: &[&str]) -> Vec<String> {
    let (templates, symbols) = templates_listed(text, listed);
    let mut lines: Vec<String> = templates.iter().map(|template| line(template, &symbols)).collect();
    lines.sort();
    lines
}

/// The edges of a cluster.
pub fn edges(text: &str) -> BTreeSet<&'static str> {
    templates(text).0.iter().map(|template| template.edge).collect()
}

/// Lines of one edge.
pub fn lines_of(text: &str, edge: &str) -> Vec<String> {
    lines(text).into_iter().filter(|line| line.starts_with(&format!("{edge}:"))).collect()
}

pub fn line(template: &Template, symbols: &Symbols) -> String {
    let names = |list: &[Symbol]| list.iter().map(|name| symbols.name(*name)).collect::<Vec<_>>().join(",");
    let needs: Vec<String> = template.when.iter().map(|need| need_text(need, symbols)).collect();
    let mut line =
        format!("{}: {} -> {}", template.edge, needs.join(" and "), gift_text(template.gives, symbols));
    if template.certainty == Certainty::Assumed {
        line.push_str(" (assumed)");
    }
    if let Some(only) = &template.only {
        line.push_str(&format!(" in {}", names(only)));
    }
    if !template.except.is_empty() {
        line.push_str(&format!(" not in {}", names(&template.except)));
    }
    line
}

fn need_text(need: &Need, symbols: &Symbols) -> String {
    let names = |list: &[Symbol]| list.iter().map(|name| symbols.name(*name)).collect::<Vec<_>>().join(",");
    match need {
        Need::Right { verbs, group, resources, names: only, place, .. } => {
            let group = symbols.name(*group);
            let group = if group.is_empty() { String::new() } else { format!(".{group}") };
            let only = if only.is_empty() { String::new() } else { format!("/{}", names(only)) };
            let place = match place {
                Place::Here => String::new(),
                Place::Cluster => " everywhere".to_owned(),
                Place::In(namespace) => format!(" of {}", symbols.name(*namespace)),
            };
            format!("{} {}{group}{only}{place}", names(verbs), names(resources))
        }
        Need::Power(power) => power_text(*power).to_owned(),
        Need::AnyImpersonation => "impersonation".to_owned(),
        Need::Fact(fact) => fact_text(*fact, symbols),
    }
}

fn gift_text(gift: Gift, symbols: &Symbols) -> String {
    match gift {
        Gift::Power(power) => power_text(power).to_owned(),
        Gift::Target(target) => format!("{target:?}"),
        Gift::Fact(fact) => fact_text(fact, symbols),
        Gift::Nothing => "nothing".to_owned(),
    }
}

fn power_text(power: Power) -> &'static str {
    match power {
        Power::Secrets => "secrets",
        Power::Accounts => "accounts",
        Power::Pods => "pods",
        Power::Inside => "inside",
        Power::Everything => "everything",
    }
}

pub fn fact_text(fact: Fact, symbols: &Symbols) -> String {
    let scope = |scope: Scope| match scope {
        Scope::Cluster => "*".to_owned(),
        Scope::Namespace(namespace) => symbols.name(namespace).to_owned(),
    };
    match fact {
        Fact::Identity(identity) => {
            format!("sa:{}/{}", symbols.name(identity.namespace), symbols.name(identity.name))
        }
        Fact::Secret { namespace, name } => {
            format!("secret:{}/{}", symbols.name(namespace), symbols.name(name))
        }
        Fact::Secrets(s) => format!("secrets:{}", scope(s)),
        Fact::Accounts(s) => format!("accounts:{}", scope(s)),
        Fact::Pods(s) => format!("pods:{}", scope(s)),
        Fact::Everything(s) => format!("everything:{}", scope(s)),
        Fact::Source(source) => format!("source:{}", symbols.name(source)),
        Fact::Cloud(cloud) => format!("cloud:{}", symbols.name(cloud)),
        Fact::OtherCluster(cluster) => format!("cluster:{}", symbols.name(cluster)),
        other => format!("{other:?}"),
    }
}

/// A snapshot of one cluster named `here`, as the loader reads it: what it drops, no deputy sees.
pub fn snapshot(text: &str) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let mut loader = Loader::new(&mut snapshot, Some("here"));
    loader.source("cluster.yaml");
    loader.load_yaml(text.as_bytes()).expect("memory that can be read");
    loader.finish();
    assert_eq!(snapshot.gaps, [], "{text}");
    snapshot
}
