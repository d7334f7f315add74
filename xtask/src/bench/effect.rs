//! How soon a new binding of a tenant is in effect: rights held in its first and last namespace, and the
//! AccessRequest ready.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bailey_testkit::ManagementCluster;
use kube::Client;
use serde_json::{Value, json};

use super::operator::is_ready;
use super::{requests, scene, stats, table};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const DEADLINE: Duration = Duration::from_secs(120);

/// Milliseconds, one of each for each binding.
#[derive(Default)]
pub struct Effect {
    first: Vec<f64>,
    everywhere: Vec<f64>,
    ready: Vec<f64>,
}

/// Creates so many bindings, one after the other, as an installer of the first tenant.
pub async fn measure(cluster: &ManagementCluster, bindings: usize) -> Result<Effect> {
    let admin = cluster.plane.admin().client().await?;
    let installer = cluster.plane.user("ines@t000.example", &[&scene::installers(0)])?.client().await?;
    let mut effect = Effect::default();
    for number in 0..bindings {
        bind(&admin, &installer, number, &mut effect).await?;
        // Each starts from rest.
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    Ok(effect)
}

async fn bind(admin: &Client, installer: &Client, number: usize, effect: &mut Effect) -> Result<()> {
    let name = format!("bench-app-{number}");
    let home = scene::namespace(0, 0);
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": name },
        "rules": [{ "apiGroups": [""], "resources": ["pods", "configmaps"], "verbs": ["get", "list", "watch"] }],
    });
    requests::create(installer, &format!("{RBAC}/clusterroles"), &role).await?;
    // The role alone changes nothing; a binding that comes with it would be measured with luck.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
        "subjects": [{ "kind": "ServiceAccount", "namespace": home, "name": name }],
    });
    let started = Instant::now();
    requests::create(installer, &format!("{RBAC}/clusterrolebindings"), &binding).await?;
    let last = scene::namespace(0, scene::NAMESPACES - 1);
    let request =
        format!("/apis/bailey.dev/v1alpha1/namespaces/{home}/accessrequests/clusterrolebinding.{name}");
    let (mut first, mut everywhere, mut ready) = (None, None, None);
    while first.is_none() || everywhere.is_none() || ready.is_none() {
        ensure!(
            started.elapsed() < DEADLINE,
            "binding `{name}` has no effect: {first:?} {everywhere:?} {ready:?}"
        );
        let now = || started.elapsed().as_secs_f64() * 1000.0;
        if first.is_none() && may(admin, &home, &name, &home).await? {
            first = Some(now());
        }
        if everywhere.is_none() && may(admin, &home, &name, &last).await? {
            everywhere = Some(now());
        }
        if ready.is_none() && requests::get(admin, &request).await?.is_some_and(|r| is_ready(&r)) {
            ready = Some(now());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    effect.first.extend(first);
    effect.everywhere.extend(everywhere);
    effect.ready.extend(ready);
    Ok(())
}

/// Whether an account may list pods in a namespace.
async fn may(admin: &Client, home: &str, account: &str, namespace: &str) -> Result<bool> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {
            "user": format!("system:serviceaccount:{home}:{account}"),
            "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{home}"), "system:authenticated"],
            "resourceAttributes": { "namespace": namespace, "verb": "list", "resource": "pods" },
        },
    });
    let answer =
        requests::create(admin, "/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await?;
    Ok(answer.pointer("/status/allowed") == Some(&Value::Bool(true)))
}

impl Effect {
    fn rows(&self) -> [(&'static str, &Vec<f64>); 3] {
        [
            ("allowed in the first namespace", &self.first),
            ("allowed in the last namespace", &self.everywhere),
            ("AccessRequest ready", &self.ready),
        ]
    }

    /// Everything as JSON.
    pub fn document(&self) -> Value {
        let row = |(name, values): (&str, &Vec<f64>)| {
            let quantiles = json!({
                "p50Milliseconds": stats::median(values), "p99Milliseconds": stats::quantile(values, 0.99), "all": values,
            });
            (name.to_owned(), quantiles)
        };
        self.rows().map(row).into_iter().collect::<serde_json::Map<_, _>>().into()
    }

    /// Everything as a table.
    pub fn table(&self) -> String {
        let row = |(name, values): (&str, &Vec<f64>)| {
            let cell = |q| format!("{:.0}", stats::quantile(values, q));
            vec![format!("  {name}"), values.len().to_string(), cell(0.5), cell(0.99)]
        };
        table::render(&["  time to effect of a new binding", "n", "p50 ms", "p99 ms"], &self.rows().map(row))
    }
}
