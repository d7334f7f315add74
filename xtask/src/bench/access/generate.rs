//! Writes a generated cluster: a folder of Lists, the known answers and a chart to ask what-if about.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::bindings;
use super::fixed::Answer;
use super::lists::{self, Layout, List};
use super::objects;
use super::plan::Plan;
use super::pods;
use super::size::Size;

/// What to write.
pub struct Options {
    pub size: Size,
    pub seed: u64,
    pub layout: Layout,
    /// Writes one `.tar.gz` instead of a folder of Lists.
    pub gzip: bool,
}

/// Where a generated cluster is.
pub struct Generated {
    /// The folder of Lists, or the archive of them.
    pub dump: PathBuf,
    /// `planted.json`.
    pub answers: PathBuf,
    /// Thirty objects to ask what-if about.
    pub chart: PathBuf,
    /// The kinds' plurals, with the bytes and the number of objects of each List.
    pub lists: Vec<(&'static str, u64, usize)>,
}

impl Generated {
    /// Returns the size of all Lists in bytes, before they are packed.
    pub fn bytes(&self) -> u64 {
        self.lists.iter().map(|(_, bytes, _)| bytes).sum()
    }
}

/// Writes a cluster below a folder, which is made; Lists of an earlier one are overwritten.
pub fn generate(options: &Options, folder: &Path) -> Result<Generated> {
    let plan = Plan::new(options.size, options.seed)?;
    let dump = folder.join("dump");
    fs::create_dir_all(&dump).with_context(|| format!("make `{}`", dump.display()))?;
    let mut lists = Vec::new();
    for (plural, expected) in plan.counts.by_kind() {
        let mut list = List::create(&dump, plural, options.layout)?;
        write(&plan, plural, &mut list)?;
        let objects = list.finish()?;
        ensure!(objects == expected, "wrote {objects} {plural} instead of {expected}");
        let path = dump.join(format!("{plural}.json"));
        lists.push((plural, fs::metadata(&path)?.len(), objects));
    }
    let answers = folder.join("planted.json");
    let known: Vec<Answer> = plan.fixed.planted.iter().map(|planted| planted.answer()).collect();
    put(&answers, &(serde_json::to_string_pretty(&known)? + "\n"))?;
    let chart = folder.join("chart.yaml");
    put(&chart, &chart_text(&plan))?;
    let dump = if options.gzip {
        let archive = folder.join("dump.tar.gz");
        let plurals: Vec<&str> = lists.iter().map(|(plural, _, _)| *plural).collect();
        lists::pack(&dump, &archive, &plurals)?;
        fs::remove_dir(&dump).with_context(|| format!("remove `{}`", dump.display()))?;
        archive
    } else {
        dump
    };
    Ok(Generated { dump, answers, chart, lists })
}

fn put(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("write `{}`", path.display()))
}

fn write(plan: &Plan, plural: &str, list: &mut List) -> Result<()> {
    let random = &mut plan.random(plural);
    match plural {
        "namespaces" => plan.places.iter().try_for_each(|place| list.add(&objects::namespace(random, place))),
        "nodes" => (0..plan.counts.nodes).try_for_each(|index| list.add(&objects::node(random, index))),
        "clusterroles" => {
            plan.cluster_roles.iter().try_for_each(|role| list.add(&objects::cluster_role(random, role)))
        }
        "rolebindings" => bindings::role_bindings(plan, list),
        "clusterrolebindings" => bindings::cluster_role_bindings(plan, list),
        "pods" => pods::pods(plan, list),
        _ => plan.places.iter().try_for_each(|place| match plural {
            "serviceaccounts" => {
                place.accounts.iter().try_for_each(|name| list.add(&objects::account(random, place, name)))
            }
            "roles" => place.roles.iter().try_for_each(|role| list.add(&objects::role(random, place, role))),
            _ => {
                place.secrets.iter().try_for_each(|secret| list.add(&objects::secret(random, place, secret)))
            }
        }),
    }
}

/// Thirty objects as a chart renders them: six accounts of one customer, each with a role in its namespace and one for
/// the cluster. YAML documents that happen to be JSON.
fn chart_text(plan: &Plan) -> String {
    let namespace = plan.customers().first().map_or("default", |place| place.name.as_str());
    let rbac = "rbac.authorization.k8s.io";
    let version = format!("{rbac}/v1");
    let mut documents: Vec<Value> = Vec::new();
    for index in 0..6 {
        let name = format!("chart-{index}");
        let meta =
            json!({"name": name, "namespace": namespace, "labels": {"app.kubernetes.io/managed-by": "Helm"}});
        let wide = json!({"name": name, "labels": {"app.kubernetes.io/managed-by": "Helm"}});
        let subjects = json!([{"kind": "ServiceAccount", "name": name, "namespace": namespace}]);
        let reads =
            ["get", "list", "patch", "delete", "update", "create"].get(index).copied().unwrap_or("get");
        let rules = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": [reads]}]);
        // One of the six reaches over the cluster.
        let resource = if index == 3 { "pods/exec" } else { "nodes" };
        let wide_rules =
            json!([{"apiGroups": [""], "resources": [resource], "verbs": ["create", "get", "list"]}]);
        let reference = |kind: &str| json!({"apiGroup": rbac, "kind": kind, "name": name});
        documents.extend([
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}),
            json!({"apiVersion": version, "kind": "Role", "metadata": meta, "rules": rules}),
            json!({"apiVersion": version, "kind": "RoleBinding", "metadata": meta,
                   "roleRef": reference("Role"), "subjects": subjects}),
            json!({"apiVersion": version, "kind": "ClusterRole", "metadata": wide, "rules": wide_rules}),
            json!({"apiVersion": version, "kind": "ClusterRoleBinding", "metadata": wide,
                   "roleRef": reference("ClusterRole"), "subjects": subjects}),
        ]);
    }
    documents.iter().map(|document| format!("---\n{document}\n")).collect()
}

#[cfg(test)]
mod tests;
