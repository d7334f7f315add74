//! Real apps, unmodified, install, upgrade and uninstall as a customer who holds nothing cluster-wide.
//! Each rule they ask for is granted or refused with a reason, and their accounts hold just what is granted.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bailey_testkit::{Access, App, ManagementCluster, apps};
use futures::{StreamExt, stream};
use serde_json::{Value, json};

use crate::enforced;

/// What is tried as each app's account beside what the app asked for: what it must never hold outside.
const PROBES: [(&str, &str, &str); 12] = [
    ("", "secrets", "get"),
    ("", "secrets", "list"),
    ("", "secrets", "delete"),
    ("", "pods", "create"),
    ("", "pods/exec", "create"),
    ("", "serviceaccounts/token", "create"),
    ("", "serviceaccounts", "impersonate"),
    ("", "nodes", "list"),
    ("", "namespaces", "list"),
    ("rbac.authorization.k8s.io", "clusterroles", "escalate"),
    ("rbac.authorization.k8s.io", "rolebindings", "create"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", "delete"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_apps_install_upgrade_and_uninstall_as_a_customer() {
    let mut cluster = enforced().await;
    let installer = cluster.installer().unwrap();
    holds_nothing_dangerous(&installer).await;

    for app in App::ALL {
        let install = Install::of(app);
        install.apply(&installer, false).await;
        let requests = requests_of(&mut cluster, &install).await;
        each_rule_of_the_app_is_requested(&install.objects(&installer).await, &requests);
        each_rule_is_answered(&requests);
        accounts_hold_just_what_is_granted(&cluster, &requests).await;
        install.differs_in_nothing(&installer, false).await;

        install.apply(&installer, true).await;
        let again = requests_of(&mut cluster, &install).await;
        assert_eq!(
            rules_by_request(&requests),
            rules_by_request(&again),
            "{app:?}: an upgrade changes no request"
        );
        install.differs_in_nothing(&installer, true).await;

        install.delete(&installer).await;
        nothing_is_left(&mut cluster, &install).await;
    }
}

/// How an app is installed by the words of its own documentation.
struct Install {
    app: App,
    namespace: &'static str,
    /// A manifest, or the folder of a chart.
    source: Source,
}

enum Source {
    Manifest(String),
    Chart { path: String, values: Vec<&'static str> },
}

impl Install {
    fn of(app: App) -> Self {
        let path = apps::source(app).unwrap();
        let manifest = || std::fs::read_to_string(&path).unwrap();
        let chart = |values| Source::Chart { path: path.to_str().unwrap().to_owned(), values };
        let (namespace, source) = match app {
            App::ArgoCd => ("argocd", Source::Manifest(manifest())),
            App::SealedSecrets => ("org-acme", chart(vec![])),
            App::ExternalDns => ("org-acme", chart(vec!["provider.name=aws", "policy=upsert-only"])),
            // Its documentation has the reader put the namespace in.
            App::PrometheusOperator => (
                "org-acme",
                Source::Manifest(manifest().replace("namespace: default", "namespace: org-acme")),
            ),
        };
        Self { app, namespace, source }
    }

    async fn apply(&self, as_customer: &Access, upgrade: bool) {
        match &self.source {
            Source::Manifest(text) => {
                let text = if upgrade { text.replace("replicas: 1", "replicas: 2") } else { text.clone() };
                let apply = ["apply", "--server-side", "--force-conflicts", "-n", self.namespace, "-f", "-"];
                // Objects of kinds that the same manifest defines are accepted once these are served.
                let deadline = Instant::now() + Duration::from_secs(20);
                loop {
                    let output = as_customer.kubectl(&apply, Some(&text)).await.unwrap();
                    if output.success() {
                        return;
                    }
                    let waits = output.stderr.contains("no matches for kind") && Instant::now() < deadline;
                    assert!(waits, "{:?}: {}", self.app, output.stderr);
                    tokio::time::sleep(Duration::from_millis(300)).await;
                }
            }
            Source::Chart { path, values } => {
                let mut arguments = vec!["upgrade", "--install", self.release(), path, "-n", self.namespace];
                let replicas = "replicaCount=2";
                let values = values.iter().copied().chain(upgrade.then_some(replicas));
                arguments.extend(values.flat_map(|v| ["--set", v]));
                let output = as_customer.helm(&arguments).await.unwrap();
                assert!(output.success(), "{:?}: {}", self.app, output.stderr);
            }
        }
    }

    async fn delete(&self, as_customer: &Access) {
        let output = match &self.source {
            Source::Manifest(text) => {
                let delete = ["delete", "--wait=false", "-n", self.namespace, "-f", "-"];
                as_customer.kubectl(&delete, Some(text)).await.unwrap()
            }
            Source::Chart { .. } => {
                as_customer.helm(&["uninstall", self.release(), "-n", self.namespace]).await.unwrap()
            }
        };
        assert!(output.success(), "{:?}: {}", self.app, output.stderr);
    }

    /// The manifest of the app as it is installed.
    async fn manifest(&self, as_customer: &Access, upgraded: bool) -> String {
        match &self.source {
            Source::Manifest(text) if upgraded => text.replace("replicas: 1", "replicas: 2"),
            Source::Manifest(text) => text.clone(),
            Source::Chart { .. } => {
                let get = ["get", "manifest", self.release(), "-n", self.namespace];
                as_customer.helm(&get).await.unwrap().stdout_of_success().unwrap()
            }
        }
    }

    /// The objects that the app brings, read from its manifest and not from the cluster.
    async fn objects(&self, as_customer: &Access) -> Vec<Value> {
        let text = self.manifest(as_customer, false).await;
        let read =
            ["create", "--dry-run=client", "--validate=false", "-n", self.namespace, "-o", "json", "-f", "-"];
        let output = as_customer.kubectl(&read, Some(&text)).await.unwrap().stdout_of_success().unwrap();
        let documents = serde_json::Deserializer::from_str(&output).into_iter::<Value>().map(Result::unwrap);
        documents.flat_map(|d| d["items"].as_array().cloned().unwrap_or_else(|| vec![d])).collect()
    }

    /// Neither a server-side diff nor a second server-side apply sees a difference in RBAC objects: no drift loop.
    async fn differs_in_nothing(&self, as_customer: &Access, upgraded: bool) {
        let text = self.manifest(as_customer, upgraded).await;
        let apply = ["apply", "--server-side", "--force-conflicts", "-n", self.namespace, "-f", "-"];
        // Whoever installed with Helm takes over the fields first, as a GitOps controller would.
        as_customer.kubectl(&apply, Some(&text)).await.unwrap().stdout_of_success().unwrap();
        let diff = ["diff", "--server-side", "--force-conflicts", "-n", self.namespace, "-f", "-"];
        let output = as_customer.kubectl(&diff, Some(&text)).await.unwrap();
        assert_eq!((output.code, output.stdout.as_str()), (0, ""), "{:?}: {}", self.app, output.stderr);
        let versions = || async {
            let get = [
                "get",
                "roles,rolebindings",
                "-n",
                self.namespace,
                "-o",
                "jsonpath={.items[*].metadata.resourceVersion}",
            ];
            as_customer.kubectl(&get, None).await.unwrap().stdout_of_success().unwrap()
        };
        let before = versions().await;
        as_customer.kubectl(&apply, Some(&text)).await.unwrap().stdout_of_success().unwrap();
        assert_eq!(before, versions().await, "{:?}: a second apply changed something", self.app);
    }

    fn release(&self) -> &'static str {
        match self.app {
            App::ArgoCd => "argocd",
            App::SealedSecrets => "sealed-secrets",
            App::ExternalDns => "external-dns",
            App::PrometheusOperator => "prometheus-operator",
        }
    }
}

/// The customer holds neither a right that turns into others nor a Secret outside.
async fn holds_nothing_dangerous(installer: &Access) {
    for question in [
        &["bind", "clusterroles"][..],
        &["escalate", "clusterroles"],
        &["bind", "roles", "-n", "org-acme"],
        &["escalate", "roles", "-n", "org-acme"],
        &["impersonate", "users"],
        &["impersonate", "serviceaccounts", "-n", "org-acme"],
        &["get", "secrets"],
        &["list", "clusterroles"],
        &["*", "*"],
        &["create", "validatingwebhookconfigurations"],
        &["patch", "validatingadmissionpolicies"],
    ] {
        let output = installer.kubectl(&[&["auth", "can-i"], question].concat(), None).await.unwrap();
        assert_eq!(output.stdout.trim(), "no", "{question:?} {}", output.stderr);
    }
    let may =
        installer.kubectl(&["auth", "can-i", "install", "tenants.bailey.dev/acme"], None).await.unwrap();
    assert_eq!(may.stdout.trim(), "yes", "{}", may.stderr);
}

/// The AccessRequests of the app, once each binding has one that is answered.
async fn requests_of(cluster: &mut ManagementCluster, install: &Install) -> Vec<Value> {
    let namespace = install.namespace;
    let bindings = cluster
        .plane
        .admin()
        .kubectl(&["get", "rolebindings,clusterrolebindings", "-n", namespace, "-o", "json"], None)
        .await
        .unwrap();
    let bindings: Value = serde_json::from_str(&bindings.stdout).unwrap();
    let scoped = |b: &&Value| b["roleRef"]["name"] == "bailey:scoped";
    let count = bindings["items"].as_array().unwrap().iter().filter(scoped).count();
    assert!(count > 0, "{:?} made no scoped binding", install.app);
    let answered = |list: &Value| {
        let ready = |r: &Value| r["status"]["conditions"][0]["status"] == "True";
        let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        items.len() == count && items.iter().all(ready)
    };
    // What is granted grows while the kinds of the app come to be served; look when it has stopped.
    let mut last = Value::Null;
    loop {
        let get = ["get", "accessrequests", "-n", namespace, "-o", "json"];
        let list = cluster.until(&get, answered).await.unwrap();
        if list["items"] == last {
            return last.as_array().unwrap().clone();
        }
        last = list["items"].clone();
        tokio::time::sleep(Duration::from_millis(900)).await;
    }
}

fn rules_by_request(requests: &[Value]) -> Vec<(String, Value, Value)> {
    let mut all: Vec<_> = requests
        .iter()
        .map(|r| {
            let name = r["metadata"]["name"].as_str().unwrap().to_owned();
            (name, r["status"]["requested"].clone(), r["status"]["granted"].clone())
        })
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

/// What the app's own manifest binds is what its requests record, rule by rule and in order.
fn each_rule_of_the_app_is_requested(objects: &[Value], requests: &[Value]) {
    let mut compared = 0;
    for binding in objects.iter().filter(|o| o["kind"].as_str().unwrap().ends_with("Binding")) {
        let role = &binding["roleRef"];
        let is_role = |o: &&Value| o["kind"] == role["kind"] && o["metadata"]["name"] == role["name"];
        let stated = objects.iter().find(is_role).unwrap_or_else(|| panic!("{role} is not in the manifest"));
        let asks = |r: &&Value| {
            r["spec"]["binding"]["kind"] == binding["kind"]
                && r["spec"]["binding"]["name"] == binding["metadata"]["name"]
        };
        let request = requests
            .iter()
            .find(asks)
            .unwrap_or_else(|| panic!("nothing is asked by {}", binding["metadata"]));
        assert_eq!(
            plain(&stated["rules"]),
            plain(&request["status"]["requested"]),
            "{}",
            binding["metadata"]["name"]
        );
        compared += 1;
    }
    assert!(compared > 0 && compared == requests.len(), "{compared} bindings, {} requests", requests.len());
}

/// Rules without their empty lists, which mean the same as absent ones.
fn plain(rules: &Value) -> Vec<Value> {
    let mut rules = rules.as_array().cloned().unwrap_or_default();
    for rule in &mut rules {
        rule.as_object_mut().unwrap().retain(|_, list| !list.as_array().is_some_and(Vec::is_empty));
    }
    rules
}

/// Each rule of a request is granted or refused, with its reason.
fn each_rule_is_answered(requests: &[Value]) {
    for request in requests {
        let name = &request["metadata"]["name"];
        let status = &request["status"];
        let requested = status["requested"].as_array().unwrap();
        assert!(!requested.is_empty(), "{name} asks for nothing");
        for index in 0..requested.len() {
            let about = |part: &&Value| part["request"] == index;
            let granted = status["granted"].as_array().unwrap().iter().filter(about).count();
            let refused: Vec<_> = status["refused"].as_array().unwrap().iter().filter(about).collect();
            assert!(granted + refused.len() > 0, "{name}: rule {index} vanished");
            for part in refused {
                for field in ["reason", "message", "remedy"] {
                    assert!(part[field].as_str().is_some_and(|t| !t.is_empty()), "{name}: {part}");
                }
            }
        }
    }
}

/// SubjectAccessReviews as each account, in its own namespaces, elsewhere and cluster-wide, against the grant.
async fn accounts_hold_just_what_is_granted(cluster: &ManagementCluster, requests: &[Value]) {
    let client = cluster.plane.admin().client().await.unwrap();
    let accounts: BTreeSet<String> = requests
        .iter()
        .flat_map(|r| {
            r["status"]["subjects"].as_array().unwrap().iter().map(|s| s.as_str().unwrap().to_owned())
        })
        .filter(|s| s.starts_with("sa:"))
        .collect();
    for account in accounts {
        let grants: Vec<_> = requests
            .iter()
            .filter(|r| r["status"]["subjects"].as_array().unwrap().contains(&json!(account)))
            .collect();
        let questions = questions(&grants);
        let answers = stream::iter(questions)
            .map(|question| {
                let (client, account) = (client.clone(), account.clone());
                async move { (ask(&client, &account, &question).await, question) }
            })
            .buffer_unordered(16)
            .collect::<Vec<_>>()
            .await;
        for (holds, question) in answers {
            let granted = grants.iter().any(|r| is_granted(r, &question));
            assert_eq!(holds, granted, "{account}: {question:?}");
        }
    }
}

#[derive(Debug)]
struct Question {
    namespace: &'static str,
    group: String,
    resource: String,
    verb: String,
    name: String,
}

fn questions(grants: &[&Value]) -> Vec<Question> {
    let mut asked: BTreeSet<(String, String, String, String)> =
        PROBES.iter().map(|(g, r, v)| (g.to_string(), r.to_string(), v.to_string(), String::new())).collect();
    let strings = |v: &Value| {
        v.as_array().into_iter().flatten().map(|s| s.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for rule in grants.iter().flat_map(|r| r["status"]["requested"].as_array().unwrap()) {
        for group in strings(&rule["apiGroups"]).into_iter().filter(|g| g != "*") {
            for resource in strings(&rule["resources"]).into_iter().filter(|r| r != "*") {
                for verb in strings(&rule["verbs"]).into_iter().filter(|v| v != "*") {
                    let mut names = strings(&rule["resourceNames"]);
                    names.push(String::new());
                    asked.extend(
                        names.into_iter().map(|n| (group.clone(), resource.clone(), verb.clone(), n)),
                    );
                }
            }
        }
    }
    let places = ["org-acme", "argocd", "org-beta", "platform-monitoring", "kube-system", ""];
    asked
        .into_iter()
        .flat_map(|(group, resource, verb, name)| {
            places.map(|namespace| Question {
                namespace,
                group: group.clone(),
                resource: resource.clone(),
                verb: verb.clone(),
                name: name.clone(),
            })
        })
        .collect()
}

/// Whether a request says that it grants this, as RBAC would read its rules.
fn is_granted(request: &Value, question: &Question) -> bool {
    let home = request["metadata"]["namespace"].as_str().unwrap();
    let cluster_binding = request["spec"]["binding"]["kind"] == "ClusterRoleBinding";
    let in_reach = |scope: &Value| match (scope.as_str().unwrap(), cluster_binding) {
        ("Cluster", _) => true,
        ("Namespaces", true) => ["org-acme", "argocd"].contains(&question.namespace),
        _ => question.namespace == home,
    };
    let has = |list: &Value, wanted: &str| list.as_array().is_some_and(|l| l.iter().any(|v| v == wanted));
    request["status"]["granted"].as_array().unwrap().iter().any(|granted| {
        let rule = &granted["rule"];
        let names = rule["resourceNames"].as_array().is_none_or(Vec::is_empty);
        in_reach(&granted["scope"])
            && has(&rule["apiGroups"], &question.group)
            && has(&rule["resources"], &question.resource)
            && has(&rule["verbs"], &question.verb)
            && (names || has(&rule["resourceNames"], &question.name))
    })
}

async fn ask(client: &kube::Client, account: &str, question: &Question) -> bool {
    let (namespace, name) = account.trim_start_matches("sa:").split_once('/').unwrap();
    let (resource, subresource) = question.resource.split_once('/').unwrap_or((&question.resource, ""));
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {
            "user": format!("system:serviceaccount:{namespace}:{name}"),
            "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{namespace}"), "system:authenticated"],
            "resourceAttributes": {
                "namespace": question.namespace, "group": question.group, "resource": resource,
                "subresource": subresource, "verb": question.verb, "name": question.name,
            },
        },
    });
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let reply = bailey_testkit::access::send(
        client,
        "POST",
        path,
        Some("application/json"),
        Some(&review.to_string()),
    )
    .await
    .unwrap();
    let answer: Value = serde_json::from_str(&reply.body).unwrap();
    answer["status"]["allowed"].as_bool().unwrap_or_else(|| panic!("{question:?}: {}", reply.body))
}

/// What Bailey wrote for the app goes with it.
async fn nothing_is_left(cluster: &mut ManagementCluster, install: &Install) {
    let kinds = "accessrequests,roles,rolebindings,clusterroles,clusterrolebindings";
    let arguments = ["get", kinds, "-A", "-l", "bailey.dev/component=projection", "-o", "json"];
    let gone = |list: &Value| list["items"].as_array().is_some_and(Vec::is_empty);
    cluster.until(&arguments, gone).await.unwrap_or_else(|e| panic!("{:?}: {e:#}", install.app));
}
