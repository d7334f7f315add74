//! Scoped roles and bindings, as a customer with nothing but what Bailey grants.

use anyhow::{Context as _, Result};
use bailey_testkit::Access;
use serde_json::{Value, json};

use crate::{
    cases::contained,
    cluster::{Cluster, Request},
};

const RULES: &str = "bailey.dev/requested-rules";
const AGGREGATION: &str = "bailey.dev/requested-aggregation";
const ROLE: &str = "bailey.dev/requested-role";

const MANIFEST: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: demo, labels: {app: demo}}
rules:
- {apiGroups: [''], resources: [secrets, nodes], verbs: ['*']}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: demo-all}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {app: demo, b: b, c: c, d: d}}]}
rules: []
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: demo}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: demo}
subjects: [{kind: ServiceAccount, name: demo, namespace: org-acme}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: demo, namespace: org-acme}
rules:
- {apiGroups: [''], resources: [secrets], verbs: ['*', escalate]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: demo, namespace: org-acme}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: demo}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'system:authenticated'}]
";

pub async fn run(cluster: &Cluster) -> Result<Vec<String>> {
    let ann = cluster.plane.user("ann", &["acme-installers"])?;
    let mut wrong = Vec::new();
    let client_side = (&["apply", "-f", "-"][..], &["diff", "-f", "-"][..]);
    let server_side = (
        &["apply", "--server-side", "--force-conflicts", "-f", "-"][..],
        &["diff", "--server-side", "--force-conflicts", "-f", "-"][..],
    );
    for (apply, diff) in [client_side, server_side] {
        wrong.extend(applies(cluster, &ann, apply, diff).await.with_context(|| apply.join(" "))?);
        let delete = ann.kubectl(&["delete", "--wait", "-f", "-"], Some(MANIFEST)).await?;
        if !delete.success() {
            wrong.push(format!("scoped: delete: {}", delete.stderr));
        }
    }
    wrong.extend(large_role(cluster, &ann).await?);
    Ok(wrong)
}

/// The same manifest twice, its diffs, and small changes by hand, with the record checked after each.
async fn applies(cluster: &Cluster, ann: &Access, apply: &[&str], diff: &[&str]) -> Result<Vec<String>> {
    let label = ["label", "clusterrole/demo", "clusterrolebinding/demo", "extra=yes", "--overwrite"];
    let forge = [
        "annotate",
        "--overwrite",
        "clusterrole/demo",
        "clusterrolebinding/demo",
        "bailey.dev/requested-rules=[9]",
        "bailey.dev/requested-role=ClusterRole/cluster-admin",
    ];
    let erase = [
        "annotate",
        "clusterrole/demo",
        "clusterrolebinding/demo",
        "bailey.dev/requested-rules-",
        "bailey.dev/requested-role-",
    ];
    let mut wrong = Vec::new();
    for step in [apply, apply, diff, &label, &forge, &erase, diff, apply, diff] {
        let stdin = step.contains(&"-").then_some(MANIFEST);
        let output = ann.kubectl(step, stdin).await?;
        let title = format!("scoped: {}: {}", apply.join(" "), step.join(" "));
        if !output.success() {
            wrong.push(format!("{title}: exit code {}: {}{}", output.code, output.stdout, output.stderr));
        }
        wrong.extend(recorded(cluster).await?.map(|fault| format!("{title}: {fault}")));
    }
    Ok(wrong)
}

/// What of the records and of the emptied roles is not as it should be.
async fn recorded(cluster: &Cluster) -> Result<Option<String>> {
    let rules = |rules: &str| json!(rules);
    let wanted = [
        (
            "clusterroles/demo",
            json!({"rules": [], "metadata": {"labels": {"bailey.dev/tenant": "acme"}, "annotations": {RULES: rules(
                r#"[{"apiGroups":[""],"resources":["secrets","nodes"],"resourceNames":[],"nonResourceURLs":[],"verbs":["*"]}]"#)}}}),
        ),
        (
            "clusterroles/demo-all",
            json!({"rules": [], "aggregationRule": null, "metadata": {"annotations": {RULES: rules("[]")}}}),
        ),
        (
            "clusterrolebindings/demo",
            json!({"roleRef": {"kind": "ClusterRole", "name": "bailey:scoped"},
                "metadata": {"labels": {"bailey.dev/tenant": "acme"}, "annotations": {ROLE: "ClusterRole/demo"}}}),
        ),
        (
            "namespaces/org-acme/roles/demo",
            json!({"rules": [], "metadata": {"annotations": {RULES: rules(
                r#"[{"apiGroups":[""],"resources":["secrets"],"resourceNames":[],"nonResourceURLs":[],"verbs":["*","escalate"]}]"#)}}}),
        ),
        (
            "namespaces/org-acme/rolebindings/demo",
            json!({"roleRef": {"kind": "ClusterRole", "name": "bailey:scoped"}, "metadata": {"annotations": {ROLE: "Role/demo"}}}),
        ),
    ];
    for (path, wanted) in wanted {
        let body = get(cluster, path).await?;
        if let Some(fault) = contained(&wanted, &body, path) {
            return Ok(Some(fault));
        }
        if path == "clusterroles/demo-all" {
            let record = body["metadata"]["annotations"][AGGREGATION].as_str().unwrap_or_default();
            let record: Value = serde_json::from_str(record).unwrap_or_default();
            let wanted =
                json!([{"matchLabels": {"app": "demo", "b": "b", "c": "c", "d": "d"}, "expressions": false}]);
            if record != wanted {
                return Ok(Some(format!("{path}: aggregation is recorded as {record}")));
            }
        }
    }
    Ok(None)
}

async fn get(cluster: &Cluster, path: &str) -> Result<Value> {
    let path = format!("/apis/rbac.authorization.k8s.io/v1/{path}");
    Ok(cluster.send(Request { method: "GET", path, ..Request::default() }).await?.body)
}

/// A role of a large operator stays within what an expression may cost.
async fn large_role(cluster: &Cluster, ann: &Access) -> Result<Vec<String>> {
    let rules: Vec<_> = (0..400)
        .map(|i| {
            let resources: Vec<_> = (0..10).map(|j| format!("things-{i}-{j}")).collect();
            json!({"apiGroups": [format!("group-{i}.example.com")], "resources": resources,
                "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"]})
        })
        .collect();
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "large"}, "rules": rules});
    let created = ann.kubectl(&["create", "-f", "-"], Some(&role.to_string())).await?;
    if !created.success() {
        return Ok(vec![format!("scoped: a large role: {}", created.stderr)]);
    }
    let body = get(cluster, "clusterroles/large").await?;
    let record = body["metadata"]["annotations"][RULES].as_str().unwrap_or_default();
    let record: Vec<Value> = serde_json::from_str(record)?;
    let kept = record.iter().zip(&rules).all(|(kept, asked)| contained(asked, kept, "").is_none());
    let whole = record.len() == rules.len() && kept && body["rules"].is_null();
    Ok(if whole { Vec::new() } else { vec![format!("scoped: a large role: kept {} rules", record.len())] })
}
