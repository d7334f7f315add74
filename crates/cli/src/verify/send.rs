//! Sends the attacks, a few at a time, and has the answers judged.

use std::io::IsTerminal as _;

use bailey_attacks::{Actor, Attack, Check, Judgement, Outcome, RenderedAttack, Request, Response, Review};
use futures::{StreamExt as _, stream};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::targets::Targets;
use super::{Tried, guard, with_nonce};
use crate::actors::Identity;
use crate::live::{Call, Live, LiveError};
use crate::{CliError, report};

/// Attacks in flight: few, because the cluster has other work.
const CONCURRENT: usize = 4;

/// Tries all attacks, in order.
pub async fn all(live: &Live, targets: &Targets, attacks: &[Attack]) -> Result<Vec<Tried>, CliError> {
    let bar = progress(attacks.len());
    let outcomes: Vec<_> = stream::iter(attacks.iter().enumerate())
        .map(|(number, attack)| {
            let bar = &bar;
            async move {
                let tried = one(live, targets, attack, number).await;
                bar.inc(1);
                tried
            }
        })
        .buffered(CONCURRENT)
        .collect()
        .await;
    bar.finish_and_clear();
    outcomes.into_iter().collect()
}

fn progress(length: usize) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(u64::try_from(length).ok(), target);
    match ProgressStyle::with_template("trying attacks {bar:30} {pos}/{len}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

async fn one(live: &Live, targets: &Targets, attack: &Attack, number: usize) -> Result<Tried, CliError> {
    let bindings = with_nonce(&targets.bindings, number);
    let rendered =
        attack.render(&bindings).map_err(|e| CliError::internal("cannot fill in a built-in attack", e))?;
    let not_applicable = |detail: String| {
        Tried::new(attack, Judgement { outcome: Outcome::NotApplicable, detail, rule: None })
    };
    let actor = attack.definition().actor;
    let Some(identity) = targets.cast.actor(actor) else {
        return Ok(not_applicable(lacks(actor)));
    };
    if let Some(missing) = targets.missing(&rendered) {
        return Ok(not_applicable(missing));
    }
    let judgement = match answers(live, &rendered, identity).await {
        Ok(responses) => rendered.judge_verify(&responses),
        Err(NotSent::Guard(why)) => inconclusive(format!("not sent: {why}")),
        Err(NotSent::Failed(error)) => inconclusive(report(&error)),
    };
    Ok(Tried::new(attack, judgement))
}

fn inconclusive(detail: String) -> Judgement {
    Judgement { outcome: Outcome::Inconclusive, detail, rule: None }
}

fn lacks(actor: Actor) -> String {
    match actor {
        Actor::Installer => "the Tenant names no installer and no install account".to_owned(),
        Actor::Developer => "the Tenant names no developer and no control account".to_owned(),
        Actor::Automation => {
            "the Tenant names no ServiceAccount, and none called `automation` exists".to_owned()
        }
    }
}

enum NotSent {
    Guard(&'static str),
    Failed(LiveError),
}

async fn answers(
    live: &Live,
    attack: &RenderedAttack,
    identity: &Identity,
) -> Result<Vec<Response>, NotSent> {
    let verify = &attack.definition().verify;
    let mut responses = Vec::new();
    for (index, check) in verify.steps.iter().enumerate() {
        let call = match check {
            Check::Request(request) => {
                if let Some(why) = guard::objection(request) {
                    return Err(NotSent::Guard(why));
                }
                call(request, identity, guard::is_unread(verify, index + 1))
            }
            Check::Review(review) => Call::post(Review::PATH, &review.body(&identity.user, &identity.groups)),
        };
        let answer = live.send(call).await.map_err(NotSent::Failed)?;
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        responses.push(Response { status: answer.status, body });
    }
    Ok(responses)
}

fn call(request: &Request, identity: &Identity, discard: bool) -> Call {
    let mut headers: Vec<_> =
        request.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    headers.push(("Impersonate-User".to_owned(), identity.user.clone()));
    // The API server adds its own groups by itself.
    let own = identity.groups.iter().filter(|group| !group.starts_with("system:"));
    headers.extend(own.map(|group| ("Impersonate-Group".to_owned(), group.clone())));
    Call {
        method: request.method.as_str(),
        target: request.path_and_query(),
        content_type: request.content_type().to_owned(),
        body: request.body(),
        headers,
        discard,
        ..Call::default()
    }
}
