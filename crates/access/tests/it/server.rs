//! A real control plane, and requests to it as anybody, with credentials of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use bailey_testkit::{ControlPlane, Options, Process, Tool, tools};
use futures::StreamExt as _;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http_body_util::BodyExt as _;
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::sync::Mutex;

/// How many requests are under way at once.
pub const AT_ONCE: usize = 12;
/// How long anything may take that the server does later.
const LATER_SECONDS: u64 = 60;
/// How long a watch is listened to.
const WATCH_MILLISECONDS: u64 = 1500;

pub const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// Somebody as the API server sees it. A ServiceAccount without groups is in those of its namespace; everybody but the
/// anonymous is in `system:authenticated`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Who {
    pub user: String,
    pub groups: BTreeSet<String>,
    /// Who acts as this one, with credentials of its own: by constrained impersonation, so that not every request is
    /// let through.
    pub by: Option<Box<Who>>,
}

impl Who {
    pub fn user(name: &str) -> Self {
        Self { user: name.to_owned(), ..Self::default() }
    }

    pub fn account(namespace: &str, name: &str) -> Self {
        Self::user(&format!("system:serviceaccount:{namespace}:{name}"))
    }

    pub fn in_groups(user: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(ToString::to_string).collect();
        Self { user: user.to_owned(), groups, by: None }
    }

    pub fn anonymous() -> Self {
        Self::user("system:anonymous")
    }

    /// Namespace and name of a ServiceAccount.
    pub fn as_account(&self) -> Option<(&str, &str)> {
        self.user.strip_prefix("system:serviceaccount:")?.split_once(':')
    }

    /// All groups, the implicit ones too.
    pub fn all_groups(&self) -> BTreeSet<String> {
        let mut groups = self.groups.clone();
        if *self == Self::anonymous() {
            groups.insert("system:unauthenticated".to_owned());
            return groups;
        }
        groups.insert("system:authenticated".to_owned());
        if let (Some((namespace, _)), true) = (self.as_account(), self.groups.is_empty()) {
            groups.insert("system:serviceaccounts".to_owned());
            groups.insert(format!("system:serviceaccounts:{namespace}"));
        }
        groups
    }

    /// As the subject of a binding.
    pub fn subject(&self) -> Value {
        match self.as_account() {
            Some((namespace, name)) => {
                json!({"kind": "ServiceAccount", "namespace": namespace, "name": name})
            }
            None => {
                json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": self.user})
            }
        }
    }
}

/// A request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub method: &'static str,
    pub path: String,
    pub content_type: Option<&'static str>,
    pub body: Option<Value>,
    /// Whom it is sent as by impersonation.
    pub acting: Option<Who>,
}

impl Request {
    pub fn get(path: impl Into<String>) -> Self {
        Self { method: "GET", path: path.into(), ..Self::default() }
    }

    pub fn delete(path: impl Into<String>) -> Self {
        Self { method: "DELETE", path: path.into(), ..Self::default() }
    }

    pub fn post(path: impl Into<String>, body: Value) -> Self {
        Self { method: "POST", path: path.into(), body: Some(body), ..Self::default() }
    }

    pub fn put(path: impl Into<String>, body: Value) -> Self {
        Self { method: "PUT", path: path.into(), body: Some(body), ..Self::default() }
    }

    /// A merge patch.
    pub fn patch(path: impl Into<String>, body: Value) -> Self {
        let content_type = Some("application/merge-patch+json");
        Self { method: "PATCH", path: path.into(), content_type, body: Some(body), acting: None }
    }

    /// A server-side apply.
    pub fn apply(path: &str, body: Value) -> Self {
        let path = format!("{path}?fieldManager=oracle&force=true");
        let content_type = Some("application/apply-patch+yaml");
        Self { method: "PATCH", path, content_type, body: Some(body), acting: None }
    }

    /// The same as a dry run. Never for a DELETE with a body: the server would overlook it.
    pub fn dry(mut self) -> Self {
        self.path.push(if self.path.contains('?') { '&' } else { '?' });
        self.path.push_str("dryRun=All");
        self
    }

    pub fn acting(mut self, acting: &Who) -> Self {
        self.acting = Some(acting.clone());
        self
    }

    fn is_watch(&self) -> bool {
        self.path.contains("watch=1")
    }
}

/// What the server answered.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub text: String,
}

impl Answer {
    pub fn ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }

    /// Whether the authorizer refused, not something that looks at the object.
    pub fn is_unauthorized(&self) -> bool {
        self.status == 403 && self.text.contains(" cannot ")
    }
}

#[derive(Clone)]
enum Credential {
    Token(String),
    Certificate(Client),
    Nothing,
}

pub struct Server {
    plane: ControlPlane,
    _signer: Process,
    admin: Client,
    bare: Client,
    credentials: Mutex<BTreeMap<Who, Credential>>,
    marks: AtomicU64,
    pub sent: AtomicU64,
}

impl Server {
    pub async fn start() -> Result<Self> {
        let plane = ControlPlane::start(Options::default()).await?;
        let admin = plane.admin().client().await?;
        let mut config = plane.admin().config().await?;
        config.auth_info = kube::config::AuthInfo::default();
        let signer = start_signer(&plane).await?;
        let (marks, sent) = (AtomicU64::new(0), AtomicU64::new(0));
        let bare = Client::try_from(config)?;
        let credentials = Mutex::new(BTreeMap::new());
        Ok(Self { plane, _signer: signer, admin, bare, credentials, marks, sent })
    }

    /// Sends as a member of `system:masters` that no case knows, and fails unless it works.
    pub async fn admin(&self, request: Request) -> Result<Answer> {
        let (method, path) = (request.method, request.path.clone());
        let answer = self.exchange(&self.admin, None, &request).await?;
        ensure!(answer.ok(), "{method} {path} as administrator: {}", answer.text);
        Ok(answer)
    }

    /// The same where the object may be gone.
    pub async fn admin_if_there(&self, request: Request) -> Result<Option<Answer>> {
        let answer = self.exchange(&self.admin, None, &request).await?;
        ensure!(answer.ok() || answer.status == 404, "{} {}: {}", request.method, request.path, answer.text);
        Ok(answer.ok().then_some(answer))
    }

    /// Sends several as administrator, at once.
    pub async fn admin_all(&self, requests: Vec<Request>) -> Result<()> {
        let sent =
            futures::stream::iter(requests).map(|request| self.admin(request)).buffer_unordered(AT_ONCE);
        sent.collect::<Vec<_>>().await.into_iter().try_for_each(|answer| answer.map(|_| ()))
    }

    /// Sends with the own credentials of somebody.
    pub async fn ask(&self, who: &Who, request: &Request) -> Result<Answer> {
        if let Some(by) = &who.by {
            let request = request.clone().acting(&Who { by: None, ..who.clone() });
            return Box::pin(self.ask(by, &request)).await;
        }
        let credential = self.credential(who).await?;
        let started = Instant::now();
        loop {
            let answer = match &credential {
                Credential::Token(token) => self.exchange(&self.bare, Some(token), request).await?,
                Credential::Certificate(client) => self.exchange(client, None, request).await?,
                Credential::Nothing => self.exchange(&self.bare, None, request).await?,
            };
            // A new account is not known at once.
            let early = answer.status == 401 && *who != Who::anonymous();
            if !early || started.elapsed() > Duration::from_secs(5) {
                return Ok(answer);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Sends several as somebody, at once; the answers are in their order.
    pub async fn ask_all(&self, who: &Who, requests: &[Request]) -> Result<Vec<Answer>> {
        let sent = futures::stream::iter(requests).map(|request| self.ask(who, request)).buffered(AT_ONCE);
        sent.collect::<Vec<_>>().await.into_iter().collect()
    }

    /// Whether a certificate logs in as somebody.
    pub async fn is_user(&self, certificate: &str, key: &str, who: &Who) -> Result<bool> {
        let mut config = self.plane.admin().config().await?;
        config.auth_info = kube::config::AuthInfo::default();
        config.auth_info.client_certificate_data = Some(certificate.to_owned());
        config.auth_info.client_key_data = Some(crate::direct::base64(key).into());
        let client = Client::try_from(config)?;
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let request = Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews", review);
        let answer = self.exchange(&client, None, &request).await?;
        let found = &answer.json()["status"]["userInfo"];
        let groups: BTreeSet<String> = found["groups"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        Ok(found["username"] == who.user.as_str() && groups == who.all_groups())
    }

    async fn credential(&self, who: &Who) -> Result<Credential> {
        if *who == Who::anonymous() {
            return Ok(Credential::Nothing);
        }
        let mut credentials = self.credentials.lock().await;
        if let Some(known) = credentials.get(who) {
            return Ok(known.clone());
        }
        let new = match who.as_account() {
            Some((namespace, name)) if who.groups.is_empty() => {
                let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
                let answer = self.admin(Request::post(path, token_request())).await?.json();
                let token = answer["status"]["token"].as_str().context("an answer with a token")?;
                Credential::Token(token.to_owned())
            }
            _ => {
                let groups: Vec<&str> = who.groups.iter().map(String::as_str).collect();
                Credential::Certificate(self.plane.user(&who.user, &groups)?.client().await?)
            }
        };
        credentials.insert(who.clone(), new.clone());
        Ok(new)
    }

    /// Forgets all credentials. The API server remembers for some seconds, by the credential, for which requests somebody
    /// may act as whom.
    pub async fn forget_all(&self) {
        self.credentials.lock().await.clear();
    }

    /// Forgets the token of an account that was deleted.
    pub async fn forget(&self, who: &Who) {
        self.credentials.lock().await.remove(who);
    }

    async fn exchange(&self, client: &Client, token: Option<&str>, request: &Request) -> Result<Answer> {
        self.sent.fetch_add(1, Ordering::Relaxed);
        let mut builder = http::Request::builder().method(request.method).uri(&request.path);
        builder = builder.header(CONTENT_TYPE, request.content_type.unwrap_or("application/json"));
        if let Some(token) = token {
            builder = builder.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        if let Some(acting) = &request.acting {
            builder = builder.header("Impersonate-User", &acting.user);
            for group in &acting.groups {
                builder = builder.header("Impersonate-Group", group);
            }
        }
        let body = request.body.as_ref().map(Value::to_string).unwrap_or_default();
        let message = builder.body(Body::from(body.into_bytes()))?;
        let exchange = async {
            let (head, body) = client.send(message).await?.into_parts();
            let status = head.status.as_u16();
            let text = if request.is_watch() && status == 200 {
                listen(body).await
            } else {
                String::from_utf8_lossy(&body.collect_bytes().await?).into_owned()
            };
            anyhow::Ok(Answer { status, text })
        };
        tokio::time::timeout(Duration::from_secs(LATER_SECONDS), exchange)
            .await
            .with_context(|| format!("no answer to {} {}", request.method, request.path))?
            .with_context(|| format!("send {} {}", request.method, request.path))
    }

    /// What the authorizers say of a request of somebody.
    pub async fn is_allowed(&self, who: &Who, attributes: &Value) -> Result<bool> {
        let kind =
            if attributes.get("path").is_some() { "nonResourceAttributes" } else { "resourceAttributes" };
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": who.user, "groups": who.all_groups(), kind: attributes}});
        let answer = self.admin(Request::post(REVIEWS, review)).await?.json();
        ensure!(
            answer["status"].get("evaluationError").is_none(),
            "review of {attributes}: {}",
            answer["status"]
        );
        answer["status"]["allowed"].as_bool().context("an answer with a decision")
    }

    /// Waits until the authorizer has seen every write so far: each kind of RBAC object comes to it in order.
    pub async fn settle(&self) -> Result<()> {
        let mark = format!("mark-{}", self.marks.fetch_add(1, Ordering::Relaxed));
        let kinds = [
            ("ClusterRole", format!("{RBAC}/clusterroles/oracle-mark")),
            ("ClusterRoleBinding", format!("{RBAC}/clusterrolebindings/oracle-mark")),
            ("Role", format!("{RBAC}/namespaces/default/roles/oracle-mark")),
            ("RoleBinding", format!("{RBAC}/namespaces/default/rolebindings/oracle-mark")),
        ];
        let requests = kinds.map(|(kind, path)| {
            let mut object = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
                "metadata": {"name": "oracle-mark"}});
            if let Some(role) = kind.strip_suffix("Binding") {
                object["roleRef"] =
                    json!({"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": "oracle-mark"});
                object["subjects"] = json!([Who::user(&mark).subject()]);
            } else {
                object["rules"] =
                    json!([{"apiGroups": ["oracle"], "resources": [kind.to_lowercase()], "verbs": [mark]}]);
            }
            Request::apply(&path, object)
        });
        self.admin_all(requests.to_vec()).await?;
        let who = Who::user(&mark);
        for resource in ["clusterrole", "role"] {
            let attributes =
                json!({"verb": mark, "group": "oracle", "resource": resource, "namespace": "default"});
            let seen = async || Ok(self.is_allowed(&who, &attributes).await?.then_some(()));
            self.until("the authorizer to see what was written", seen).await?;
        }
        Ok(())
    }

    /// Asks again and again until there is an answer.
    pub async fn until<T>(&self, what: &str, ask: impl AsyncFn() -> Result<Option<T>>) -> Result<T> {
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(LATER_SECONDS) {
            if let Some(answer) = ask().await? {
                return Ok(answer);
            }
            tokio::time::sleep(Duration::from_millis(15)).await;
        }
        bail!("waited {LATER_SECONDS} s for {what}")
    }
}

pub fn token_request() -> Value {
    json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
}

/// What a watch says at first; it would go on for ever.
async fn listen(mut body: Body) -> String {
    let mut text = Vec::new();
    let until = tokio::time::Instant::now() + Duration::from_millis(WATCH_MILLISECONDS);
    while let Ok(Some(Ok(frame))) = tokio::time::timeout_at(until, body.frame()).await {
        if let Some(data) = frame.data_ref() {
            text.extend_from_slice(data);
        }
        if text.windows(BOOKMARK.len()).any(|part| part == BOOKMARK) {
            break;
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Ends the initial events of a watch with `sendInitialEvents`.
const BOOKMARK: &[u8] = br#""type":"BOOKMARK""#;

/// The controller that issues certificates, which the control plane's own is not given the key for.
async fn start_signer(plane: &ControlPlane) -> Result<Process> {
    let program = tokio::task::spawn_blocking(|| tools::path(Tool::KubeControllerManager)).await??;
    let file = |name: &str| plane.dir().join(name).display().to_string();
    let arguments = [
        format!("--kubeconfig={}", plane.admin().kubeconfig_path().display()),
        "--controllers=certificatesigningrequest-signing-controller".to_owned(),
        format!("--cluster-signing-cert-file={}", file("ca.crt")),
        format!("--cluster-signing-key-file={}", file("ca.key")),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
    ];
    Process::start("certificate-signer", &program, arguments, plane.dir())
}
