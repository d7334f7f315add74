//! A path as boxes from left to right: subject, binding, role, rule, resource or power, Secret.
//!
//! A path that comes back to a column on the left of where it is (it acts as another subject, say) goes on in the row
//! below. What is drawn is capped and shortened; the table of the steps beside it is not.

use std::collections::BTreeMap;

use bailey_access::Certainty;
use bailey_access::answer::Step;

use super::layout::{Column, Drawing, Node, draw};
use super::words::{certainty, count, joined};

/// Boxes of a path; longer ones end in a box that says how many steps are in the table only.
const STEPS_MAX: usize = 12;
/// Boxes in the column of Secrets.
pub const TARGETS_MAX: usize = 5;
/// Steps that the text for those who do not see the drawing tells.
const TOLD_MAX: usize = 12;

/// Draws a path to some Secrets, given as `NS/NAME`, `NS/*` or `*/*`, of which there are `secret_count`.
/// Others that go the same way stand with the subject.
pub fn of(
    id: &str,
    steps: &[Step],
    others: usize,
    secrets: &[String],
    secret_count: usize,
) -> Option<Drawing> {
    let first = steps.first()?;
    let mut chain = Chain::default();
    let start = match identity(&first.from) {
        Some((label, name)) => Node::new(Column::Subject, label, name),
        None => object(&first.from, true),
    };
    let mut start = Node { column: Column::Subject, ..start };
    if others > 0 {
        start.note = format!("and {}", count(others, "other", "others"));
    }
    chain.push(start);
    let mut before = None;
    for step in steps.iter().take(STEPS_MAX) {
        // Where two rights of one role are needed, the way to the role may be told twice.
        if before != Some(step) {
            chain.step(step);
        }
        before = Some(step);
    }
    if let Some(more) = steps.len().checked_sub(STEPS_MAX).filter(|more| *more > 0) {
        let text = format!("{}: see the table", count(more, "more step", "more steps"));
        chain.push(Node::new(Column::Power, "…", text));
    }
    let mut targets = targets(secrets, secret_count);
    chain.end(steps, secrets, &mut targets);
    let mut drawing = draw(&chain.nodes, &targets);
    drawing.id = id.to_owned();
    drawing.title = told_short(first, secrets, secret_count);
    drawing.description = told(steps);
    Some(drawing)
}

#[derive(Default)]
struct Chain {
    nodes: Vec<Node>,
}

impl Chain {
    fn step(&mut self, step: &Step) {
        let proven = step.certainty == Certainty::Proven;
        let mut said = step.rule.as_str();
        // One out of several whom the step before gives.
        if let Some((label, name)) = identity(&step.from)
            && self
                .nodes
                .iter()
                .rev()
                .find(|node| node.column == Column::Subject)
                .is_none_or(|last| last.text != name)
        {
            self.push(Node { proven, ..Node::new(Column::Subject, label, name) });
        }
        // A step through a controller says which role let the subject use it, and which controller it is.
        if let Some((role, rest)) = said.split_once(": ").filter(|(role, _)| column(role) == Column::Role) {
            self.push(object(role, proven));
            self.push(rule(rest, proven));
            said = "";
        }
        if !step.object.is_empty() {
            let mut object = object(&step.object, proven);
            // What is no rule of a role reads best with its object: the subject of a binding, a flag of a controller.
            let apart = object.column != Column::Power && said.starts_with("rule");
            if !apart && !said.is_empty() {
                object.note = std::mem::take(&mut said).to_owned();
            }
            self.push(object);
        }
        if !said.is_empty() {
            self.push(rule(said, proven));
        }
        self.push(held(&step.to, &step.edge, proven));
    }

    /// A role that is held, and the object that is this role, are one box.
    fn push(&mut self, node: Node) {
        match self.nodes.last() {
            Some(last) if last.column == node.column && last.text == node.text => {}
            _ => self.nodes.push(node),
        }
    }

    /// Where a path ends with the one Secret that it is to, that is one box, not two.
    fn end(&mut self, steps: &[Step], secrets: &[String], targets: &mut [Node]) {
        let Some(last) = steps.last() else { return };
        let all = steps.len() <= STEPS_MAX;
        if let ([secret], [target]) = (secrets, &mut *targets)
            && all
            && last.to.rsplit(' ').next() == Some(secret)
        {
            self.nodes.pop();
            target.note.clone_from(&last.edge);
        }
        if all {
            targets.iter_mut().for_each(|target| target.proven = last.certainty == Certainty::Proven);
        }
    }
}

/// What is held: an identity, a role, or some power.
fn held(text: &str, edge: &str, proven: bool) -> Node {
    if let Some((label, name)) = identity(text.strip_prefix("acts as ").unwrap_or(text)) {
        return Node { proven, ..Node::new(Column::Subject, label, name) };
    }
    let role = text.strip_prefix("holds ").unwrap_or(text);
    if column(role) == Column::Role {
        return object(role, proven);
    }
    Node { proven, ..Node::new(Column::Power, edge, text) }
}

/// Takes `sa:NS/NAME` apart, and what else a subject looks like; the cluster before it stays with the name.
fn identity(text: &str) -> Option<(&'static str, String)> {
    let kinds = [("sa:", "ServiceAccount"), ("user:", "User"), ("group:", "Group"), ("source:", "Source")];
    let here = kinds.iter().find_map(|(prefix, label)| Some((*label, text.strip_prefix(prefix)?.to_owned())));
    here.or_else(|| {
        let (cluster, rest) = text.split_once(':')?;
        let (prefix, label) = kinds.iter().find(|(prefix, _)| rest.starts_with(prefix))?;
        let name = rest.strip_prefix(prefix)?;
        (!cluster.contains([' ', '/'])).then(|| (*label, format!("{name} in {cluster}")))
    })
}

/// Takes `Kind NS/NAME` apart, with what may follow: `in NS`, `(what it is)`, a sentence.
fn object(text: &str, proven: bool) -> Node {
    let (kind, name) = text.split_once(' ').unwrap_or(("", text));
    let (name, note) = name.split_once(' ').unwrap_or((name, ""));
    let note = match note.strip_prefix('(').and_then(|note| note.split_once(')')) {
        Some((what, "")) => what,
        Some((_, place)) => place.trim_start(),
        None => note,
    };
    Node { note: note.to_owned(), proven, ..Node::new(column(text), kind, name) }
}

fn column(text: &str) -> Column {
    match text.split(' ').next() {
        Some("RoleBinding" | "ClusterRoleBinding") => Column::Binding,
        Some("Role" | "ClusterRole") => Column::Role,
        _ => Column::Power,
    }
}

/// Takes `rules[0]: get,list secrets and rules[1]: create pods` apart.
fn rule(text: &str, proven: bool) -> Node {
    let (mut labels, mut texts) = (Vec::new(), Vec::new());
    for (at, part) in text.split(" and rules[").enumerate() {
        let part = if at == 0 { part.to_owned() } else { format!("rules[{part}") };
        let (label, said) = match part.split_once(": ") {
            Some((label, said)) if !label.contains(' ') => (label, said),
            _ => ("rule", part.as_str()),
        };
        labels.push(label.to_owned());
        texts.push(said.replace(", ", ",").replace(',', ", "));
    }
    Node { proven, ..Node::new(Column::Rule, joined(&labels), texts.join("; ")) }
}

/// One box for each namespace, and one for the rest.
fn targets(secrets: &[String], secret_count: usize) -> Vec<Node> {
    let mut by_namespace = BTreeMap::<&str, Vec<&str>>::new();
    for secret in secrets {
        let (namespace, name) = secret.rsplit_once('/').unwrap_or(("", secret));
        by_namespace.entry(namespace).or_default().push(name);
    }
    if by_namespace.contains_key("*") {
        by_namespace.retain(|namespace, _| *namespace == "*");
    }
    let many = by_namespace.len();
    // A box for one more is worth no less than a box that says that there is one more.
    let shown = if many > TARGETS_MAX { TARGETS_MAX - 1 } else { many };
    let mut nodes: Vec<_> = by_namespace
        .iter()
        .take(shown)
        .map(|(namespace, names)| {
            let (label, text) = match (*namespace, names.as_slice()) {
                ("*", _) => ("all namespaces", "all Secrets".to_owned()),
                (namespace, ["*"]) => (namespace, "all Secrets".to_owned()),
                (namespace, [a]) => (namespace, (*a).to_owned()),
                (namespace, [a, b]) => (namespace, format!("{a}, {b}")),
                (namespace, names) => (namespace, count(names.len(), "Secret", "Secrets")),
            };
            Node::new(Column::Secret, label, text)
        })
        .collect();
    if many > shown {
        let text = format!(
            "and {} more namespaces, {} in all",
            many - shown,
            count(secret_count, "Secret", "Secrets")
        );
        nodes.push(Node::new(Column::Secret, "…", text));
    }
    nodes
}

fn told_short(first: &Step, secrets: &[String], secret_count: usize) -> String {
    match secrets {
        [] => format!("Path from {}", first.from),
        [one] => format!("Path from {} to {one}", first.from),
        _ => format!("Path from {} to {}", first.from, count(secret_count, "Secret", "Secrets")),
    }
}

fn told(steps: &[Step]) -> String {
    let mut text = String::new();
    for (at, step) in steps.iter().take(TOLD_MAX).enumerate() {
        let by = if step.object.is_empty() { &step.edge } else { &step.object };
        text +=
            &format!("{}. {} {} by {by}, {}. ", at + 1, step.from, gets(&step.to), certainty(step.certainty));
    }
    if steps.len() > TOLD_MAX {
        text += &format!("{} follow in the table.", count(steps.len() - TOLD_MAX, "more step", "more steps"));
    }
    text.trim_end().to_owned()
}

fn gets(to: &str) -> String {
    if identity(to).is_some() { format!("acts as {to}") } else { format!("gets {to}") }
}
