//! A control plane with the rails on it, and requests to it as anybody.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bailey_guardrails::{
    Desired, Discovery, Facts, NamespaceFact, Object, ObjectKind, Policy, build, policies, validate,
};
use bailey_testkit::{ControlPlane, Options, fixture};
use http::header::{ACCEPT, CONTENT_TYPE, WARNING};
use kube::{Client, client::Body};
use serde_json::{Value, json};

/// Holds everything, so that only the rails decide.
pub const EVERYTHING: &str = "rails-test:everything";
/// Holds everything but what cases with `authorized: false` ask the authorizer for.
pub const UNAUTHORIZED: &str = "rails-test:unauthorized";
/// Holds the verb `develop` on tenants.
pub const DEVELOPER: &str = "rails-test:developer";

/// How long a policy may take to act after it is applied; two seconds are usual.
const ACTIVE_SECONDS: u64 = 60;

pub struct Cluster {
    pub plane: ControlPlane,
    pub client: Client,
    policies: Vec<Policy>,
    pub desired: Desired,
}

/// An answer of the API server.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
    pub warnings: Vec<String>,
}

impl Answer {
    pub fn ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

/// One request; with no user it is sent as a member of `system:masters`.
#[derive(Default)]
pub struct Request<'a> {
    pub method: &'a str,
    pub path: String,
    pub content_type: Option<&'a str>,
    pub accept: Option<&'a str>,
    pub body: Option<&'a Value>,
    pub user: Option<(&'a str, Vec<&'a str>)>,
}

impl Cluster {
    pub async fn start() -> Result<Self> {
        let plane = ControlPlane::start(Options::default()).await?;
        let client = plane.admin().client().await?;
        fixture::Fixture::Crds.apply(plane.admin(), &fixture::bindings("marker", "nonce")).await?;
        let mut cluster = Self {
            plane,
            client,
            policies: policies()?,
            desired: build(&model("Enforce"), &[], &Discovery::default()),
        };
        let mut definitions = vec![applications()];
        for crd in bailey_api::crds() {
            definitions.push(serde_json::to_value(crd)?);
        }
        let mut wait = vec!["wait", "--for=condition=Established", "--timeout=30s", "crd"];
        for crd in &definitions {
            let name = crd["metadata"]["name"].as_str().unwrap_or_default();
            let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
            cluster.apply(&path, crd).await?;
            wait.push(name);
        }
        cluster.plane.admin().kubectl(&wait, None).await?.stdout_of_success()?;
        let discovery = cluster.discovery().await?;
        cluster.prepare(&discovery).await?;
        cluster.install("Enforce", |policy| !is_backstop(policy)).await?;
        Ok(cluster)
    }

    /// Puts everything on the server as it is in a mode, with the policies wanted, and takes the others away.
    pub async fn install(&mut self, enforcement: &str, wanted: impl Fn(&Policy) -> bool) -> Result<()> {
        let policies: Vec<_> = self.policies.iter().filter(|p| wanted(p)).cloned().collect();
        let desired = build(&model(enforcement), &policies, &self.discovery().await?);
        for object in desired.objects() {
            self.apply(&object_path(object), &object.content).await?;
        }
        let kept: Vec<_> = desired.rails.iter().map(object_path).collect();
        for path in self.desired.rails.iter().map(object_path).filter(|path| !kept.contains(path)) {
            let answer = self.send(Request { method: "DELETE", path, ..Request::default() }).await?;
            ensure!(answer.ok(), "{}", answer.body);
        }
        self.desired = desired;
        Ok(())
    }

    /// The policies that are bound in the mode of now.
    pub fn bound(&self) -> impl Iterator<Item = &Policy> {
        self.policies.iter().filter(|policy| self.desired.rails.iter().any(|rail| rail.name == policy.name))
    }

    /// Whether a validating policy is bound to deny now; else it warns.
    pub fn denies(&self, policy: &Policy) -> bool {
        let mut bindings = self
            .desired
            .rails
            .iter()
            .filter(|rail| rail.name == policy.name && rail.kind == ObjectKind::ValidatingPolicyBinding);
        bindings.any(|binding| binding.content["spec"]["validationActions"] == json!(["Deny"]))
    }

    /// Everything that the server serves, from its aggregated discovery.
    pub async fn discovery(&self) -> Result<Discovery> {
        let mut answers = Vec::new();
        for path in ["/api", "/apis"] {
            let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
            let request =
                Request { method: "GET", path: path.into(), accept: Some(accept), ..Request::default() };
            answers.push(self.send(request).await?.body);
        }
        Ok(Discovery::from_aggregated(&answers)?)
    }

    /// Namespaces of the platform and of nobody, and the rights of those whom the cases name.
    async fn prepare(&self, discovery: &Discovery) -> Result<()> {
        for name in ["bailey-system", "platform-flux", "nobodys", "org-acme", "acme-apps", "org-beta"] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            self.apply(&format!("/api/v1/namespaces/{name}"), &namespace).await?;
        }
        let rule = |groups: Vec<&str>, resources: Vec<&str>, verbs: &[&str]| json!({"apiGroups": groups, "resources": resources, "verbs": verbs});
        let mut rules = vec![rule(
            vec![""],
            vec!["secrets"],
            &["create", "update", "patch", "delete", "deletecollection"],
        )];
        let others = |r: &&bailey_guardrails::Resource| {
            r.group != bailey_api::GROUP && (r.group.as_str(), r.name.as_str()) != ("", "secrets")
        };
        rules.extend(
            discovery.resources().iter().filter(others).map(|r| rule(vec![&r.group], vec![&r.name], &["*"])),
        );
        let rbac = "rbac.authorization.k8s.io";
        let role = json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": {"name": UNAUTHORIZED}, "rules": rules});
        self.apply(&format!("/apis/{rbac}/v1/clusterroles/{UNAUTHORIZED}"), &role).await?;
        let rules = json!([rule(vec![bailey_api::GROUP], vec!["tenants"], &["develop"])]);
        let role = json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": {"name": DEVELOPER}, "rules": rules});
        self.apply(&format!("/apis/{rbac}/v1/clusterroles/{DEVELOPER}"), &role).await?;
        let all = [(EVERYTHING, "cluster-admin"), (UNAUTHORIZED, UNAUTHORIZED), (DEVELOPER, DEVELOPER)];
        for (group, role) in all {
            let binding = json!({
                "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": group},
                "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role},
                "subjects": [{"apiGroup": rbac, "kind": "Group", "name": group}],
            });
            self.apply(&format!("/apis/{rbac}/v1/clusterrolebindings/{group}"), &binding).await?;
        }
        Ok(())
    }

    pub async fn send(&self, request: Request<'_>) -> Result<Answer> {
        let mut builder = http::Request::builder().method(request.method).uri(&request.path);
        let content_type = request.content_type.unwrap_or("application/json");
        builder = builder.header(CONTENT_TYPE, content_type);
        if let Some(accept) = request.accept {
            builder = builder.header(ACCEPT, accept);
        }
        if let Some((user, groups)) = &request.user {
            builder = builder.header("Impersonate-User", *user);
            for group in groups {
                builder = builder.header("Impersonate-Group", *group);
            }
        }
        let body = request.body.map(Value::to_string).unwrap_or_default();
        let exchange = async {
            let (head, body) =
                self.client.send(builder.body(Body::from(body.into_bytes()))?).await?.into_parts();
            let body = body.collect_bytes().await?;
            let text = String::from_utf8_lossy(&body).into_owned();
            let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
            let warnings = head.headers.get_all(WARNING).iter();
            let warnings = warnings.map(|w| String::from_utf8_lossy(w.as_bytes()).into_owned()).collect();
            Ok(Answer { status: head.status.as_u16(), body, warnings })
        };
        tokio::time::timeout(Duration::from_secs(30), exchange)
            .await
            .with_context(|| format!("no answer to {} {}", request.method, request.path))?
    }

    /// Applies an object server-side as a member of `system:masters`.
    pub async fn apply(&self, path: &str, object: &Value) -> Result<()> {
        let answer = self
            .send(Request {
                method: "PATCH",
                path: format!("{path}?fieldManager=bailey&force=true"),
                content_type: Some("application/apply-patch+yaml"),
                body: Some(object),
                ..Request::default()
            })
            .await?;
        ensure!(answer.ok(), "apply {path}: {}", answer.body);
        Ok(())
    }
}

/// Whether a policy stands behind another, whose refusal would hide its own.
pub fn is_backstop(policy: &Policy) -> bool {
    policy.name.ends_with("-backstop")
}

/// A stand-in for the kind of Argo CD.
fn applications() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "applications.argoproj.io"},
        "spec": {
            "group": "argoproj.io", "scope": "Namespaced",
            "names": {"plural": "applications", "singular": "application", "kind": "Application", "listKind": "ApplicationList"},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
}

/// Asks again and again until there is an answer.
pub async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
    let started = Instant::now();
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    loop {
        ticks.tick().await;
        if let Some(answer) = ask().await? {
            return Ok(answer);
        }
        ensure!(started.elapsed() < Duration::from_secs(ACTIVE_SECONDS), "waited in vain for {what}");
    }
}

fn object_path(object: &Object) -> String {
    let (group, version, _, plural) = object.kind.resource();
    let root = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    match &object.namespace {
        Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}/{}", object.name),
        None => format!("{root}/{plural}/{}", object.name),
    }
}

fn model(enforcement: &str) -> bailey_guardrails::Model {
    let object = |kind: &str, name: &str, spec: Value| json!({"apiVersion": "bailey.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    let installation = object(
        "Installation",
        "installation",
        json!({
            "managementCluster": {"name": "mc"}, "enforcement": enforcement,
            "platform": {"namespaces": ["platform-flux"], "groups": ["platform-admins"], "users": ["pia@platform.example"]},
        }),
    );
    let acme = object(
        "Tenant",
        "acme",
        json!({
            "namespaces": ["org-acme"], "namespacePrefix": "acme-",
            "subjects": {
                "installers": {"groups": ["acme-installers"], "users": ["robot@acme.example"]},
                "developers": {"groups": ["acme-developers"]},
            },
            "install": {
                "accounts": ["org-acme/installer"], "controlAccounts": ["org-acme/control"],
                "controlCharts": ["cluster-aws"], "sourceNamespaces": ["platform-flux"],
            },
            "crds": {"groups": ["argoproj.io"]},
        }),
    );
    let beta = object(
        "Tenant",
        "beta",
        json!({
            "namespaces": ["org-beta"], "subjects": {"installers": {"groups": ["beta-installers"]}},
            "crds": {"names": ["widgets.beta.example"]},
        }),
    );
    let facts = Facts {
        namespaces: vec![NamespaceFact {
            name: bailey_api::NamespaceName::new("acme-apps").unwrap(),
            tenant: Some("acme".into()),
            pod_security: Default::default(),
        }],
        crds: [("rollouts.argoproj.io".to_owned(), None)].into(),
    };
    let read = |tenant| serde_json::from_value(tenant).unwrap();
    let (model, problems) =
        validate(&serde_json::from_value(installation).unwrap(), &[read(acme), read(beta)], &facts);
    assert_eq!(problems, []);
    model
}

/// The policies that the server was given.
pub fn validating(desired: &Desired) -> impl Iterator<Item = &Object> {
    desired.rails.iter().filter(|object| object.kind == ObjectKind::ValidatingPolicy)
}
