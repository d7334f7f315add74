//! The catalogue of edges: what each is, how bad, what to do, and for those that follow from rights, what is needed and
//! what it gives. Data, in `catalogue/*.yaml`; a test holds that each row is used.

mod row;

use std::{collections::BTreeSet, sync::LazyLock};

use serde::Deserialize;

use crate::{Admission, Certainty, ClusterFacts, PodSecurityLevel, Symbols, Template, answer::Severity};

/// What is said of an edge, for people.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Edge {
    /// Stable id, such as `read-secret`.
    pub id: String,
    /// What somebody does, in one line.
    pub title: String,
    /// How bad it is where it leads out of a customer's scope.
    pub severity: Severity,
    /// Whether what is gained depends on what others do, so that verdicts do not count it.
    #[serde(default)]
    pub soft: bool,
    /// How it works.
    #[serde(default)]
    pub explanation: String,
    /// What to do against it.
    #[serde(default)]
    pub remedy: String,
    /// Where this is said.
    #[serde(default)]
    pub references: Vec<String>,
    #[serde(flatten)]
    row: row::Row,
}

static EDGES: LazyLock<Vec<Edge>> = LazyLock::new(|| {
    let mut edges = Vec::new();
    for (file, text) in FILES {
        match serde_saphyr::from_str::<Vec<Edge>>(text) {
            Ok(rows) => edges.extend(rows),
            // A test reads each file; what is built cannot be broken.
            Err(error) => debug_assert!(false, "{file}: {error}"),
        }
    }
    edges
});

const FILES: [(&str, &str); 2] = [
    ("kubernetes.yaml", include_str!("../catalogue/kubernetes.yaml")),
    ("deputies.yaml", include_str!("../catalogue/deputies.yaml")),
];

/// All edges, in the order of the files.
pub fn edges() -> &'static [Edge] {
    &EDGES
}

/// The edge of an id.
pub fn edge(id: &str) -> Option<&'static Edge> {
    EDGES.iter().find(|edge| edge.id == id)
}

/// The edges that follow from rights in a cluster: those of its version, in the namespaces where Pod Security allows
/// them, where what they need exists.
pub(crate) fn templates(
    cluster: &ClusterFacts,
    admission: &Admission,
    symbols: &mut Symbols,
) -> Vec<Template> {
    let mut templates = Vec::new();
    for edge in EDGES.iter() {
        for template in edge.row.templates(edge, cluster.minor, symbols) {
            if edge.id == "relabel-namespace" {
                templates.push(by_label(template, cluster, admission, symbols));
            } else if edge.row.psa {
                templates.extend(by_pod_security(template, cluster, admission, symbols));
            } else if let Some(exists) = &edge.row.exists {
                templates.extend(by_existence(template, exists, cluster, symbols));
            } else {
                templates.push(template);
            }
        }
    }
    templates
}

/// One template for the namespaces where privileged pods are possible, one where it is not known.
fn by_pod_security(
    template: Template,
    cluster: &ClusterFacts,
    admission: &Admission,
    symbols: &Symbols,
) -> Vec<Template> {
    let (mut open, mut unknown) = (Vec::new(), Vec::new());
    let mut why = String::new();
    let names: BTreeSet<_> = cluster.namespaces.iter().map(|namespace| namespace.name).collect();
    for namespace in names {
        let found = admission.pod_security(symbols.name(namespace));
        if found.level != PodSecurityLevel::Privileged {
            continue;
        }
        match found.certainty {
            Certainty::Proven => open.push(namespace),
            Certainty::Assumed => {
                unknown.push(namespace);
                why = found.by;
            }
        }
    }
    let guard = "no Pod Security of at least baseline is enforced in the namespace".to_owned();
    let mut assumed = Template { only: Some(unknown), certainty: Certainty::Assumed, ..template.clone() };
    assumed.guard = Some(format!("{guard}, as far as could be evaluated: {why}"));
    vec![Template { only: Some(open), guard: Some(guard), ..template }, assumed]
}

/// The template where only the namespace's own label holds pods back: a policy stays whatever the label says.
fn by_label(
    template: Template,
    cluster: &ClusterFacts,
    admission: &Admission,
    symbols: &Symbols,
) -> Template {
    let held_by_label = |name: &crate::Symbol| {
        let found = admission.pod_security(symbols.name(*name));
        found.level != PodSecurityLevel::Privileged && found.by.starts_with("label ")
    };
    let namespaces: BTreeSet<_> = cluster.namespaces.iter().map(|namespace| namespace.name).collect();
    Template { only: Some(namespaces.into_iter().filter(held_by_label).collect()), ..template }
}

/// The template where the object exists that it needs; assumed where that cannot be known.
fn by_existence(
    mut template: Template,
    exists: &str,
    cluster: &ClusterFacts,
    symbols: &mut Symbols,
) -> Option<Template> {
    let (kind, name) = ("ConfigMap", symbols.intern(exists));
    if !cluster.objects_of("", kind).any(|object| object.name == name) {
        if cluster.has_listed("configmaps") {
            return None;
        }
        template.certainty = Certainty::Assumed;
        template.guard =
            Some(format!("ConfigMaps were not loaded, so it is not known whether {exists} exists"));
    }
    Some(template)
}
