//! Executes attacks for real: real identities, real tokens, real requests.
//!
//! Cleaning up is part of an attack and happens whatever came before. A step that fails ends the attack,
//! as it would for a person, unless the file calls the step optional.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use bailey_attacks::{
    AccountName, Actor, Bindings, Check, Identity, Judgement, RenderedAttack, Request, Response, Review, Step,
};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use kube::Client;
use kube::client::Body;
use kube::config::AuthInfo;
use serde_json::json;

use crate::ControlPlane;

/// How long one request may take.
const REQUEST_SECONDS: u64 = 30;
/// How long to wait before a step is repeated.
const REPEAT_MILLISECONDS: u64 = 150;

/// Holds a client for everyone who takes part in attacks.
///
/// Like any client it belongs to the runtime that it is made on.
pub struct Cast {
    platform: Client,
    installer: Client,
    developer: Client,
    automation: Client,
    /// Carries no credential: requests bring their token themselves.
    bare: Client,
}

/// Says what an attack did and how it ended.
#[derive(Debug, Clone)]
pub struct Report {
    pub id: String,
    pub judgement: Judgement,
    /// What was sent, up to the step that ended the attack.
    pub steps: Vec<StepReport>,
    /// Cleaning requests that failed for another reason than an absent object.
    pub unclean: Vec<String>,
}

/// Says what one step sent and got, without the content.
#[derive(Debug, Clone)]
pub struct StepReport {
    /// `installer`, `developer`, `automation`, `platform` or `NAMESPACE/NAME`.
    pub sender: String,
    pub method: &'static str,
    pub target: String,
    pub status: u16,
}

impl Cast {
    /// Makes the identities that the bindings name.
    pub async fn new(plane: &ControlPlane, bindings: &Bindings) -> Result<Self> {
        let installer = plane.user("iris@acme.example", &[&bindings.tenant_group])?;
        let developer = plane.user("dora@acme.example", &[&bindings.tenant_developers])?;
        let automation = plane.service_account(&bindings.tenant_namespace, "automation").await?;
        let mut bare = plane.admin().config().await?;
        bare.auth_info = AuthInfo::default();
        Ok(Self {
            platform: plane.admin().client().await?,
            installer: installer.client().await?,
            developer: developer.client().await?,
            automation: automation.client().await?,
            bare: Client::try_from(bare).context("make a client without a credential")?,
        })
    }

    fn actor(&self, actor: Actor) -> &Client {
        match actor {
            Actor::Installer => &self.installer,
            Actor::Developer => &self.developer,
            Actor::Automation => &self.automation,
        }
    }
}

/// Executes an attack, cleans up after it, and judges it.
pub async fn run(cast: &Cast, attack: &RenderedAttack) -> Result<Report> {
    let outcome = execute(cast, attack).await;
    let unclean = clean_up(cast, attack).await;
    let (steps, responses) = outcome.with_context(|| format!("execute attack `{}`", attack.id()))?;
    Ok(Report { id: attack.id().to_owned(), judgement: attack.judge(&responses), steps, unclean })
}

/// Asks whether an attack would succeed, by impersonation and without changing anything.
pub async fn verify(cast: &Cast, attack: &RenderedAttack, bindings: &Bindings) -> Result<Judgement> {
    let (user, groups) = attack.definition().actor.subject(bindings, "iris@acme.example");
    let mut impersonation = vec![("Impersonate-User".to_owned(), user.clone())];
    impersonation.extend(groups.iter().map(|group| ("Impersonate-Group".to_owned(), group.clone())));
    let mut responses = Vec::new();
    for check in &attack.definition().verify.steps {
        let response = match check {
            Check::Request(request) => send(&cast.platform, request, &impersonation).await?,
            Check::Review(review) => {
                let request: Request = serde_json::from_value(json!({
                    "method": "POST",
                    "path": Review::PATH,
                    "body": review.body(&user, &groups),
                }))?;
                send(&cast.platform, &request, &[]).await?
            }
        };
        responses.push(response);
    }
    Ok(attack.judge_verify(&responses))
}

async fn execute(cast: &Cast, attack: &RenderedAttack) -> Result<(Vec<StepReport>, Vec<Response>)> {
    let definition = attack.definition();
    let mut steps = Vec::new();
    let mut responses = Vec::new();
    for step in &definition.steps {
        let response = take_step(cast, definition.actor, step).await?;
        let ends = !response.is_accepted() && !step.optional;
        steps.push(StepReport {
            sender: sender(definition.actor, &step.identity),
            method: step.request.method.as_str(),
            target: step.request.path_and_query(),
            status: response.status,
        });
        responses.push(response);
        if ends {
            break;
        }
    }
    Ok((steps, responses))
}

fn sender(actor: Actor, identity: &Identity) -> String {
    match identity {
        Identity::Attacker => actor.to_string(),
        Identity::Platform => "platform".to_owned(),
        Identity::Account(account) => format!("{}/{}", account.namespace, account.name),
    }
}

/// Sends a step, again and again while it waits for something.
async fn take_step(cast: &Cast, actor: Actor, step: &Step) -> Result<Response> {
    let Some(until) = &step.until else { return send_as(cast, actor, step).await };
    let deadline = Instant::now() + Duration::from_secs(until.seconds);
    loop {
        let response = send_as(cast, actor, step).await?;
        if until.is_satisfied(&response) || Instant::now() >= deadline {
            return Ok(response);
        }
        tokio::time::sleep(Duration::from_millis(REPEAT_MILLISECONDS)).await;
    }
}

async fn send_as(cast: &Cast, actor: Actor, step: &Step) -> Result<Response> {
    let account = match &step.identity {
        Identity::Platform => return send(&cast.platform, &step.request, &[]).await,
        Identity::Attacker => return send(cast.actor(actor), &step.request, &[]).await,
        Identity::Account(account) => account,
    };
    match token(cast.actor(actor), account).await? {
        Ok(token) => {
            let bearer = (AUTHORIZATION.to_string(), format!("Bearer {token}"));
            send(&cast.bare, &step.request, &[bearer]).await
        }
        Err(refusal) => Ok(refusal),
    }
}

/// Asks for the token of an account, or returns the answer that holds none.
async fn token(client: &Client, account: &AccountName) -> Result<Result<String, Response>> {
    let AccountName { namespace, name } = account;
    let request: Request = serde_json::from_value(json!({
        "method": "POST",
        "path": format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"),
        "body": {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": { "expirationSeconds": 600 },
        },
    }))?;
    let response = send(client, &request, &[]).await?;
    let body: serde_json::Value = serde_json::from_str(&response.body).unwrap_or_default();
    match body.pointer("/status/token").and_then(serde_json::Value::as_str) {
        Some(token) => Ok(Ok(token.to_owned())),
        None => Ok(Err(response)),
    }
}

async fn clean_up(cast: &Cast, attack: &RenderedAttack) -> Vec<String> {
    let mut unclean = Vec::new();
    for request in &attack.definition().cleanup {
        let target = format!("{} {}", request.method.as_str(), request.path_and_query());
        match send(&cast.platform, request, &[]).await {
            Ok(response) if response.is_accepted() || response.status == 404 => {}
            Ok(response) => unclean.push(format!("{target}: status {}", response.status)),
            Err(error) => unclean.push(format!("{target}: {error:#}")),
        }
    }
    unclean
}

async fn send(client: &Client, request: &Request, headers: &[(String, String)]) -> Result<Response> {
    let target = request.path_and_query();
    let mut message = http::Request::builder().method(request.method.as_str()).uri(&target);
    if request.body.is_some() {
        message = message.header(CONTENT_TYPE, request.content_type());
    }
    let own = request.headers.iter();
    for (name, value) in own.chain(headers.iter().map(|(name, value)| (name, value))) {
        message = message.header(name, value);
    }
    let message = message.body(Body::from(request.body()))?;
    let exchange = async {
        let (head, body) = client.send(message).await?.into_parts();
        let body = body.collect_bytes().await?;
        let body = String::from_utf8_lossy(&body).into_owned();
        anyhow::Ok(Response { status: head.status.as_u16(), body })
    };
    tokio::time::timeout(Duration::from_secs(REQUEST_SECONDS), exchange)
        .await
        .with_context(|| format!("no answer within {REQUEST_SECONDS} s"))
        .flatten()
        .with_context(|| format!("send {} `{target}`", request.method.as_str()))
}
