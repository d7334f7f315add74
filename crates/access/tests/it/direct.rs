//! What somebody gets from the server by single requests, every known one tried.
//!
//! Nothing is changed here: what would change something is tried as a dry run and kept, for [`crate::prober`] to do.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::case::{Case, Planted};
use crate::changes::{self, Change};
use crate::server::{Answer, Request, Who, token_request};
use crate::spec::{
    ABSENT, ACCOUNTS, GHOST, GROUPS, NAMESPACES, NOBODY, PART, PLACES, SECRETS, STRONG, TOKEN, USERS,
};

/// Where a technique comes from: the ids of the analyser's edges that stand for it.
pub type Edges = BTreeSet<&'static str>;

/// A user whom a stock cluster lets read every Secret.
pub const MANAGER: &str = "system:kube-controller-manager";

/// What somebody gets.
#[derive(Debug, Default)]
pub struct Direct {
    /// Secrets that were seen, by namespace and name.
    pub reads: BTreeMap<(String, String), Edges>,
    /// Accounts of which it was given a token.
    pub tokens: BTreeSet<Who>,
    /// Whom it impersonated.
    pub acts: BTreeMap<Who, Edges>,
    /// What it could change.
    pub changes: Vec<Change>,
    /// Namespaces where it may create Secrets.
    pub makes_secrets: BTreeSet<usize>,
    /// Secrets that do not exist and that it may make by their names only.
    pub makes_named: BTreeSet<(String, String)>,
    /// Namespaces where it may create accounts.
    pub makes_accounts: BTreeSet<usize>,
    /// Secrets that it may delete.
    pub deletes: BTreeSet<(String, String)>,
    /// Names of Secrets that do not exist and that it could read.
    pub awaits: BTreeSet<(String, String)>,
    /// Token Secrets that it may point at another account, and whether by PUT.
    pub points: BTreeMap<(String, String), bool>,
    /// Secrets that it may update, patch or delete, if only as a dry run.
    pub touches: BTreeMap<(String, String), Request>,
    /// Whether it may write policies and their bindings.
    pub makes_policies: (bool, bool),
    /// Whether it may ask for certificates.
    pub asks_certificates: bool,
}

/// Tries everything as somebody with its own credentials. In places that are `owned` it can do everything anyway.
pub async fn direct(case: &Case<'_>, who: &Who, owned: &BTreeSet<Option<usize>>) -> Result<Direct> {
    let mut direct = Direct::default();
    reads(case, who, &mut direct).await?;
    tokens(case, who, &mut direct).await?;
    if who.by.is_none() {
        acts(case, who, &mut direct).await?;
        constrained(case, who, &mut direct).await?;
    }
    secrets(case, who, &mut direct).await?;
    others(case, who, &mut direct).await?;
    direct.changes = changes::possible(case, who, owned).await?;
    Ok(direct)
}

/// The requests that answer with Secrets, each with its edge.
pub fn reading(secrets: &[&Planted]) -> Vec<(Request, &'static str)> {
    let watch = "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let mut requests = Vec::new();
    let by_name = |name: &str| format!("fieldSelector=metadata.name%3D{name}");
    let root = "/api/v1/secrets".to_owned();
    requests.push((Request::get(&root), "read-secret"));
    requests.push((Request::get(format!("{root}?{watch}")), "read-secret"));
    for name in secrets.iter().map(|secret| secret.name.as_str()).collect::<BTreeSet<_>>() {
        requests.push((Request::get(format!("{root}?{}", by_name(name))), "read-secret"));
        requests.push((Request::get(format!("{root}?{}&{watch}", by_name(name))), "read-secret"));
    }
    for namespace in NAMESPACES {
        let path = format!("/api/v1/namespaces/{namespace}/secrets");
        requests.push((Request::get(&path), "read-secret"));
        requests.push((Request::get(format!("{path}?{watch}")), "read-secret"));
        requests.push((Request::delete(&path).dry(), "deletecollection-read"));
    }
    for secret in secrets {
        let path = secret.path();
        let list = format!("/api/v1/namespaces/{}/secrets?{}", secret.namespace, by_name(&secret.name));
        requests.push((Request::get(&path), "read-secret"));
        requests.push((Request::get(&list), "read-secret"));
        requests.push((Request::get(format!("{list}&{watch}")), "read-secret"));
        requests.push((Request::patch(&path, json!({})).dry(), "patch-read"));
        let foreground = format!("{path}?propagationPolicy=Foreground");
        requests.push((Request::delete(foreground).dry(), "delete-read"));
    }
    requests
}

/// Which of these Secrets an answer shows.
pub fn seen<'s>(secrets: &[&'s Planted], answer: &Answer) -> Vec<&'s Planted> {
    let shown = |secret: &&&Planted| {
        answer.text.contains(&secret.marker) || answer.text.contains(&base64(&secret.marker))
    };
    secrets.iter().filter(shown).copied().collect()
}

async fn reads(case: &Case<'_>, who: &Who, direct: &mut Direct) -> Result<()> {
    let secrets: Vec<&Planted> = case.secrets().collect();
    let (requests, edges): (Vec<_>, Vec<_>) = reading(&secrets).into_iter().unzip();
    let answers = case.server.ask_all(who, &requests).await?;
    for ((request, edge), answer) in requests.iter().zip(edges).zip(&answers) {
        for secret in seen(&secrets, answer) {
            direct.reads.entry(secret.key()).or_default().insert(edge);
        }
        let named = secrets.iter().find(|secret| request.path.starts_with(&format!("{}?", secret.path())));
        if let (Some(secret), false) = (named, answer.is_unauthorized()) {
            if request.method == "DELETE" {
                direct.deletes.insert(secret.key());
            }
            direct.touches.entry(secret.key()).or_insert_with(|| request.clone());
        }
    }
    Ok(())
}

async fn tokens(case: &Case<'_>, who: &Who, direct: &mut Direct) -> Result<()> {
    let mut accounts = STRONG.map(|name| (PLACES[NAMESPACES.len()], name)).to_vec();
    for (place, namespace) in NAMESPACES.iter().enumerate() {
        accounts.extend(ACCOUNTS.iter().chain(&["default"]).map(|name| (*namespace, *name)));
        if case.ghosts.contains(&place) {
            accounts.push((*namespace, GHOST));
        }
    }
    let requests: Vec<Request> = accounts
        .iter()
        .map(|(namespace, name)| {
            let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
            Request::post(path, token_request())
        })
        .collect();
    let answers = case.server.ask_all(who, &requests).await?;
    let given = accounts.into_iter().zip(answers).filter(|(_, answer)| answer.status == 201);
    direct.tokens.extend(given.map(|((namespace, name), _)| Who::account(namespace, name)));
    Ok(())
}

/// Asks the server who one is while impersonating: every user, account and group there is a reason for.
async fn acts(case: &Case<'_>, who: &Who, direct: &mut Direct) -> Result<()> {
    let mut users: Vec<Who> = USERS.iter().chain(&[MANAGER]).map(|name| Who::user(name)).collect();
    for namespace in NAMESPACES {
        users.extend(ACCOUNTS.iter().chain(&["default", GHOST]).map(|name| Who::account(namespace, name)));
    }
    users.extend(STRONG.map(|name| Who::account(PLACES[NAMESPACES.len()], name)));
    let review = |acting: &Who| {
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews", body).acting(acting)
    };
    let requests: Vec<Request> = users.iter().map(review).collect();
    let answers = case.server.ask_all(who, &requests).await?;
    let possible: Vec<Who> =
        users.into_iter().zip(&answers).filter(|(_, a)| a.ok()).map(|(who, _)| who).collect();
    let Some(first) = possible.first() else { return Ok(()) };
    let implicit = ["system:masters", "system:authenticated", "system:serviceaccounts"];
    let mut groups: Vec<String> = GROUPS.iter().chain(&implicit).map(ToString::to_string).collect();
    groups.extend(NAMESPACES.map(|namespace| format!("system:serviceaccounts:{namespace}")));
    let with = |user: &Who, groups: &[String]| Who {
        user: user.user.clone(),
        groups: groups.iter().cloned().collect(),
        by: None,
    };
    let requests: Vec<Request> =
        groups.iter().map(|group| review(&with(first, std::slice::from_ref(group)))).collect();
    let answers = case.server.ask_all(who, &requests).await?;
    let joined: Vec<String> =
        groups.into_iter().zip(&answers).filter(|(_, a)| a.ok()).map(|(g, _)| g).collect();
    for user in possible {
        let edge = if user.as_account().is_some() { "impersonate-account" } else { "impersonate-user" };
        if !joined.is_empty() {
            direct.acts.insert(with(&user, &joined), Edges::from(["impersonate-group"]));
        }
        let absent =
            user.as_account().filter(|(_, name)| *name == GHOST).map(|(namespace, _)| namespace.to_owned());
        let user = match absent {
            // Nobody can ask for its token, so it is asked for by its groups.
            Some(namespace) => with(
                &user,
                &["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")],
            ),
            None => user,
        };
        direct.acts.insert(user, Edges::from([edge]));
    }
    Ok(())
}

/// Whom it may act as for certain requests only. Which these are is seen when they are sent.
async fn constrained(case: &Case<'_>, who: &Who, direct: &mut Direct) -> Result<()> {
    if !case.is_constrained() {
        return Ok(());
    }
    let may = async |mode: &str, resource: &str, namespace: &str, name: &str| {
        let attributes = json!({"verb": format!("impersonate:{mode}"), "group": "authentication.k8s.io",
            "resource": resource, "namespace": namespace, "name": name});
        case.server.is_allowed(who, &attributes).await
    };
    let by = || Some(Box::new(who.clone()));
    let mut users = Vec::new();
    for name in USERS.iter().chain(&[MANAGER, NOBODY]) {
        // Whom it impersonates for all requests is known already.
        let known = direct.acts.contains_key(&Who::user(name));
        if !known && may("user-info", "users", "", name).await? {
            users.push(Who { by: by(), ..Who::user(name) });
        }
    }
    let mut groups = BTreeSet::new();
    for name in GROUPS {
        if !users.is_empty() && may("user-info", "groups", "", name).await? {
            groups.insert(name.to_owned());
        }
    }
    let mut all: Vec<Who> = users.iter().map(|user| Who { groups: groups.clone(), ..user.clone() }).collect();
    all.extend(users);
    for (place, namespace) in PLACES.iter().enumerate() {
        let names = if place < NAMESPACES.len() { &["a0", "a1", "default", GHOST][..] } else { &STRONG[..] };
        for name in names {
            let known = direct.acts.contains_key(&Who::account(namespace, name));
            if !known && may("serviceaccount", "serviceaccounts", namespace, name).await? {
                all.push(Who { by: by(), ..Who::account(namespace, name) });
            }
        }
    }
    direct.acts.extend(all.into_iter().map(|who| (who, Edges::from(["impersonate-constrained"]))));
    Ok(())
}

/// What it may do with Secrets but read them.
async fn secrets(case: &Case<'_>, who: &Who, direct: &mut Direct) -> Result<()> {
    let empty = |name: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
    let post = |namespace: &str| {
        Request::post(format!("/api/v1/namespaces/{namespace}/secrets"), empty("oracle-probe")).dry()
    };
    let answers = case.server.ask_all(who, &PLACES.map(post)).await?;
    direct.makes_secrets = (0..PLACES.len()).filter(|place| answers[*place].ok()).collect();
    absent_secrets(case, who, direct).await?;
    for secret in case.secrets().filter(|secret| secret.account.is_some()) {
        let other =
            ACCOUNTS.iter().find(|name| secret.account.as_deref() != Some(**name)).unwrap_or(&"default");
        for by_put in [false, true] {
            let answer = case.server.ask(who, &point(secret, other, by_put).dry()).await?;
            if !answer.is_unauthorized() && by_put {
                let request = point(secret, other, true).dry();
                direct.touches.entry(secret.key()).or_insert(request);
            }
            if answer.ok() {
                direct.points.entry(secret.key()).or_insert(by_put);
            }
        }
    }
    Ok(())
}

/// Names of Secrets that are free: which of them it could read, and make by the name only.
async fn absent_secrets(case: &Case<'_>, who: &Who, direct: &mut Direct) -> Result<()> {
    let is_free =
        |namespace: &str, name: &str| !case.secrets().any(|s| s.namespace == namespace && s.name == name);
    let names = SECRETS.iter().chain(&[ABSENT, TOKEN, PART]);
    let all = PLACES.iter().flat_map(|namespace| names.clone().map(move |name| (*namespace, *name)));
    let mut requests = Vec::new();
    for (namespace, name) in all.filter(|(namespace, name)| is_free(namespace, name)) {
        let secret = Planted {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            marker: "-".to_owned(),
            account: None,
        };
        let about_it = |request: &Request| {
            let named =
                request.path.contains("metadata.name") && !request.path.starts_with("/api/v1/secrets");
            (named || request.path.contains(&secret.path())) && !request.path.contains("watch=")
        };
        let mut listed = Request::get(format!("/api/v1/namespaces/{namespace}/secrets"));
        listed.path.push_str(&format!("?fieldSelector=metadata.name%3D{name}&watch=1&timeoutSeconds=1"));
        let reading = reading(&[&secret]).into_iter().map(|(request, _)| request).filter(about_it);
        requests.extend(reading.chain([listed]).map(|request| (secret.key(), request, false)));
        let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
        requests.push((secret.key(), Request::apply(&secret.path(), body).dry(), true));
    }
    let sent: Vec<Request> = requests.iter().map(|(_, request, _)| request.clone()).collect();
    let answers = case.server.ask_all(who, &sent).await?;
    for ((key, _, makes), answer) in requests.into_iter().zip(answers) {
        if makes && answer.ok() {
            direct.makes_named.insert(key);
        } else if !makes && !answer.is_unauthorized() {
            direct.awaits.insert(key);
        }
    }
    Ok(())
}

/// Points a token Secret at another account of its namespace, for a controller to fill it again.
pub fn point(secret: &Planted, account: &str, by_put: bool) -> Request {
    let annotations = json!({"kubernetes.io/service-account.name": account,
        "kubernetes.io/service-account.uid": null});
    if !by_put {
        let body = json!({"metadata": {"annotations": annotations}, "data": {"token": null}});
        return Request::patch(secret.path(), body);
    }
    let body = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": secret.name, "annotations": {"kubernetes.io/service-account.name": account},
            "labels": {crate::spec::LABEL: "case"}},
        "stringData": {"marker": secret.marker}});
    Request::put(secret.path(), body)
}

async fn others(case: &Case<'_>, who: &Who, direct: &mut Direct) -> Result<()> {
    let mut requests = Vec::new();
    for namespace in NAMESPACES {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        let body =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "oracle-probe"}});
        requests.push(Request::post(path, body).dry());
    }
    requests
        .push(Request::post(crate::certificates::PATH, crate::certificates::request("probe", None)?.0).dry());
    for (kind, object) in crate::policies::objects() {
        requests.push(Request::post(format!("{}/{kind}", crate::case::POLICIES), object).dry());
    }
    let answers = case.server.ask_all(who, &requests).await?;
    direct.makes_accounts = (0..NAMESPACES.len()).filter(|place| answers[*place].ok()).collect();
    direct.asks_certificates = answers[NAMESPACES.len()].ok();
    direct.makes_policies = (answers[NAMESPACES.len() + 1].ok(), answers[NAMESPACES.len() + 2].ok());
    Ok(())
}

/// As the server writes values of Secrets.
pub fn base64(text: &str) -> String {
    STANDARD.encode(text)
}

/// The body of an object as it is sent anew.
pub fn fresh(body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(metadata) = body["metadata"].as_object_mut() {
        for field in ["resourceVersion", "uid", "creationTimestamp", "managedFields", "generation"] {
            metadata.remove(field);
        }
    }
    body
}
