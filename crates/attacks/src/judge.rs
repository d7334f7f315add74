//! What the answers say about an attack.
//!
//! Success needs every condition to hold. Otherwise the first step of the attacker that failed decides:
//! refused by authorization or admission means blocked, a missing target or kind means not applicable,
//! anything else is inconclusive and never counted as blocked.

use std::fmt;

use serde_json::Value;

use crate::encoding::base64;
use crate::{Check, Holds, Identity, RenderedAttack, Success, Until};

/// Is an answer of the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub body: String,
}

impl Response {
    /// Returns whether the status is 2xx.
    pub fn is_accepted(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns whether authorization or admission refused the request.
    pub fn is_refused(&self) -> bool {
        let denied = || self.message().is_some_and(|message| message.contains("denied"));
        matches!(self.status, 401 | 403) || (matches!(self.status, 400 | 422) && denied())
    }

    /// Returns the message of a `Status`, and nothing of any other kind of answer.
    pub fn message(&self) -> Option<String> {
        let body = self.json()?;
        let is_status = body.get("kind").and_then(Value::as_str) == Some("Status");
        let message = body.get("message")?.as_str()?;
        is_status.then(|| message.to_owned())
    }

    fn json(&self) -> Option<Value> {
        serde_json::from_str(&self.body).ok()
    }

    fn describe(&self) -> String {
        self.message().unwrap_or_else(|| match self.status {
            404 => "this cluster does not serve the API".to_owned(),
            status => format!("answered with status {status}"),
        })
    }

    fn satisfies(&self, at: Option<&str>, holds: &Holds) -> bool {
        let part = || self.json().and_then(|body| body.pointer(at.unwrap_or_default()).cloned());
        match holds {
            Holds::Accepted(wanted) => self.is_accepted() == *wanted,
            Holds::Authorized(wanted) => self.is_refused() != *wanted,
            Holds::Contains(text) => self.contains(at, text),
            Holds::Equals(wanted) => self.is_accepted() && part().as_ref() == Some(wanted),
            Holds::Absent(wanted) => self.is_accepted() && part().is_none() == *wanted,
            Holds::Allowed(wanted) => {
                let allowed = self.json().and_then(|body| body.pointer("/status/allowed")?.as_bool());
                self.is_accepted() && allowed == Some(*wanted)
            }
        }
    }

    fn contains(&self, at: Option<&str>, text: &str) -> bool {
        let part = match at {
            None => Some(self.body.clone()),
            Some(pointer) => self.json().and_then(|body| body.pointer(pointer).map(Value::to_string)),
        };
        part.is_some_and(|part| part.contains(text) || part.contains(&base64(text.as_bytes())))
    }
}

/// Says how an attack ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The attacker has what it wanted.
    Succeeded,
    /// Refused, or accepted without the effect.
    Blocked,
    /// Its target or kind does not exist here.
    NotApplicable,
    /// The answers decide nothing; never to be read as blocked.
    Inconclusive,
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Succeeded => "succeeded",
            Self::Blocked => "blocked",
            Self::NotApplicable => "not applicable",
            Self::Inconclusive => "inconclusive",
        })
    }
}

/// Is an outcome with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    pub outcome: Outcome,
    /// What decided, in words.
    pub detail: String,
    /// The policy or webhook that refused, `rbac`, or nothing where it was not a refusal.
    pub rule: Option<String>,
}

impl Judgement {
    fn new(outcome: Outcome, detail: impl Into<String>) -> Self {
        Self { outcome, detail: detail.into(), rule: None }
    }

    fn refused(response: &Response) -> Self {
        let detail = response.describe();
        let rule = refusing_rule(&detail);
        Self { outcome: Outcome::Blocked, detail, rule: Some(rule) }
    }
}

/// Says what a step is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    SetUp,
    Attack,
    Tolerated,
    Look,
}

impl Until {
    /// Returns whether an answer ends the waiting.
    pub fn is_satisfied(&self, response: &Response) -> bool {
        response.satisfies(self.at.as_deref(), &self.holds)
    }
}

impl RenderedAttack {
    /// Judges the answers to the steps, in order; steps after the last answer count as never sent.
    pub fn judge(&self, responses: &[Response]) -> Judgement {
        let mut attacked = false;
        let steps = self.definition().steps.iter();
        let roles = steps.map(|step| {
            let platform = step.identity == Identity::Platform;
            attacked |= !platform;
            match (platform, attacked, step.optional) {
                (_, _, true) => Role::Tolerated,
                (true, false, false) => Role::SetUp,
                (true, true, false) => Role::Look,
                (false, _, false) => Role::Attack,
            }
        });
        judge(&roles.collect::<Vec<_>>(), &self.definition().success, responses)
    }

    /// Judges the answers to the steps of the variant that changes nothing.
    pub fn judge_verify(&self, responses: &[Response]) -> Judgement {
        let verify = &self.definition().verify;
        let roles = verify.steps.iter().map(|check| match check {
            Check::Request(_) => Role::Attack,
            Check::Review(_) => Role::Look,
        });
        judge(&roles.collect::<Vec<_>>(), &verify.success, responses)
    }
}

fn judge(roles: &[Role], success: &[Success], responses: &[Response]) -> Judgement {
    let answer = |condition: &Success| responses.get(condition.step.checked_sub(1)?);
    let unmet = success.iter().find(|condition| {
        !answer(condition).is_some_and(|answer| answer.satisfies(condition.at.as_deref(), &condition.holds))
    });
    let Some(unmet) = unmet else {
        return Judgement::new(Outcome::Succeeded, "every condition of the attacker holds");
    };
    for (role, response) in roles.iter().zip(responses) {
        if let Some(judgement) = judge_step(*role, response) {
            return judgement;
        }
    }
    match answer(unmet) {
        None => Judgement::new(Outcome::Inconclusive, format!("step {} was never answered", unmet.step)),
        Some(response) => Judgement::new(Outcome::Blocked, without_effect(unmet, response)),
    }
}

fn judge_step(role: Role, response: &Response) -> Option<Judgement> {
    if response.is_accepted() || role == Role::Tolerated {
        return None;
    }
    let missing = response.status == 404;
    match role {
        Role::Attack if response.is_refused() => Some(Judgement::refused(response)),
        Role::Look if missing => None,
        Role::Attack | Role::SetUp if missing => {
            Some(Judgement::new(Outcome::NotApplicable, response.describe()))
        }
        _ => Some(Judgement::new(Outcome::Inconclusive, response.describe())),
    }
}

fn without_effect(condition: &Success, response: &Response) -> String {
    if let Holds::Allowed(true) = condition.holds {
        return "no grant allows it".to_owned();
    }
    let place = condition.at.as_deref().unwrap_or("the answer");
    match &condition.holds {
        Holds::Equals(wanted) => {
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let wanted = text(wanted);
            format!("accepted without the effect: {place} of step {} is not `{wanted}`", condition.step)
        }
        _ if !response.is_accepted() => response.describe(),
        _ => format!("accepted without the effect: {place} of step {} is not as wanted", condition.step),
    }
}

/// Finds who refused, from the words that the API server uses.
fn refusing_rule(message: &str) -> String {
    let quoted = |prefix: &str, quote: char| {
        let (_, after) = message.split_once(prefix)?;
        let (name, _) = after.split_once(quote)?;
        Some(name.to_owned())
    };
    quoted("ValidatingAdmissionPolicy '", '\'')
        .or_else(|| quoted("policy '", '\''))
        .or_else(|| quoted("admission webhook \"", '"'))
        .or_else(|| message.contains("violates PodSecurity").then(|| "pod-security".to_owned()))
        .unwrap_or_else(|| "rbac".to_owned())
}

#[cfg(test)]
mod tests;
