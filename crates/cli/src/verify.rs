//! `bailey verify`: tries the attack catalogue on a live cluster as a tenant, and changes nothing.
//!
//! Everything is sent by impersonation. INVARIANT: a write is sent only as a dry run (in the query, and in
//! the body of a DELETE), a Secret is never asked for, and an answer that may hold one is not read.

mod guard;
mod render;
mod send;
mod targets;

use bailey_api::{Enforcement, Installation, Tenant};
use bailey_attacks::{Attack, Bindings, Check, Judgement, Outcome, catalogue};
use serde::{Deserialize as _, Serialize};
use serde_json::json;

use crate::actors::Identity;
use crate::args::VerifyArguments;
use crate::live::{Call, Live, path};
use crate::output::{Output, Screen};
use crate::{CliError, Exit};

use targets::Cast;

/// What came of all attacks, as the JSON document shows it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Verification {
    schema: &'static str,
    tenant: String,
    enforcement: Enforcement,
    targets: targets::Shown,
    counts: Counts,
    attacks: Vec<Tried>,
}

/// How many ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    blocked: usize,
    succeeded: usize,
    not_applicable: usize,
    inconclusive: usize,
}

/// What came of one attack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Tried {
    id: String,
    title: String,
    why: String,
    source: String,
    actor: String,
    /// `blocked`, `succeeded`, `not-applicable` or `inconclusive`.
    outcome: &'static str,
    /// The rail, webhook or `rbac` that blocked it, or `no effect` where it was accepted in vain.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    detail: String,
}

impl Verification {
    fn exit(&self) -> Exit {
        match self.counts {
            Counts { succeeded: 1.., .. } => Exit::Findings,
            Counts { inconclusive: 1.., .. } => Exit::Incomplete,
            // Nothing tried shows nothing.
            Counts { blocked: 0, .. } => Exit::Incomplete,
            _ => Exit::Clean,
        }
    }
}

/// Tries the attacks and shows what came of them.
pub async fn run(arguments: &VerifyArguments, live: &Live, screen: &Screen) -> Result<Output, CliError> {
    let attacks = chosen(arguments)?;
    let (installation, tenants) = own_objects(live).await?;
    let tenant =
        tenants.iter().find(|t| t.metadata.name.as_ref() == Some(&arguments.as_tenant)).ok_or_else(|| {
            let names: Vec<_> = tenants.iter().filter_map(|t| t.metadata.name.clone()).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            CliError::Usage(format!(
                "there is no Tenant `{}`; Tenants of this cluster: {known}",
                arguments.as_tenant
            ))
        })?;
    let cast = Cast::of(live, tenant, &arguments.targets).await?;
    may_impersonate(live, &cast).await?;
    let targets = targets::choose(live, &installation, tenant, &tenants, &arguments.targets, cast).await?;
    let tried = send::all(live, &targets, &attacks).await?;
    let verification = Verification {
        schema: "bailey.verify/v1",
        tenant: arguments.as_tenant.clone(),
        enforcement: installation.spec.enforcement,
        targets: targets.shown(),
        counts: counts(&tried),
        attacks: tried,
    };
    let text = render::render(&verification, arguments.output, screen)?;
    Ok(Output::new(text, verification.exit()))
}

fn chosen(arguments: &VerifyArguments) -> Result<Vec<Attack>, CliError> {
    let mut attacks = catalogue().map_err(|e| CliError::internal("cannot read the built-in attacks", e))?;
    if let Some(unknown) = arguments.attacks.iter().find(|id| attacks.iter().all(|a| a.id() != id.as_str())) {
        let close =
            attacks.iter().map(Attack::id).filter(|id| id.split('-').next() == unknown.split('-').next());
        let close: Vec<_> = close.collect();
        let hint =
            if close.is_empty() { String::new() } else { format!("; close to it: {}", close.join(", ")) };
        return Err(CliError::Usage(format!("there is no attack `{unknown}`{hint}")));
    }
    attacks.retain(|a| arguments.attacks.is_empty() || arguments.attacks.iter().any(|id| id == a.id()));
    Ok(attacks)
}

async fn own_objects(live: &Live) -> Result<(Installation, Vec<Tenant>), CliError> {
    let at = |plural, name| path(bailey_api::GROUP, bailey_api::VERSION, plural, None, name);
    let absent = || {
        CliError::Usage(
            "there is no Installation on this cluster, so nothing says who is a tenant; see: bailey install --help".to_owned(),
        )
    };
    let found =
        live.get(at("installations", Some(bailey_api::INSTALLATION_NAME))).await?.ok_or_else(absent)?;
    let unreadable = |e: serde_json::Error| CliError::internal("cannot read an object of bailey.dev", e);
    let installation = Installation::deserialize(&found).map_err(unreadable)?;
    let mut tenants = Vec::new();
    for item in live.list(&at("tenants", None)).await? {
        tenants.push(Tenant::deserialize(&item).map_err(unreadable)?);
    }
    Ok((installation, tenants))
}

/// Asks whether the caller may do what verification takes, before anything is sent.
async fn may_impersonate(live: &Live, cast: &Cast) -> Result<(), CliError> {
    let mut needed = Vec::new();
    for identity in cast.identities() {
        needed.extend(impersonation(identity));
    }
    needed.sort();
    needed.dedup();
    needed.push(("create", "authorization.k8s.io", "subjectaccessreviews", None, String::new()));
    for (verb, group, resource, namespace, name) in needed {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "verb": verb, "group": group, "resource": resource, "namespace": namespace, "name": name,
            }},
        });
        let answer =
            live.json(Call::post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review)).await?;
        if answer.pointer("/status/allowed") != Some(&json!(true)) {
            let what = if name.is_empty() { resource.to_owned() } else { format!("{resource} `{name}`") };
            return Err(CliError::NotAllowed(format!(
                "verification needs the right to {verb} {what}, which you do not have; use a kubeconfig of the platform's administrators, or ask them for it (nothing was sent)"
            )));
        }
    }
    Ok(())
}

type Right = (&'static str, &'static str, &'static str, Option<String>, String);

fn impersonation(identity: &Identity) -> Vec<Right> {
    if let Some((namespace, name)) = identity.account() {
        return vec![("impersonate", "", "serviceaccounts", Some(namespace.to_owned()), name.to_owned())];
    }
    let mut rights: Vec<Right> = vec![("impersonate", "", "users", None, identity.user.clone())];
    let own = identity.groups.iter().filter(|g| !g.starts_with("system:"));
    rights.extend(own.map(|group| ("impersonate", "", "groups", None, group.clone())));
    rights
}

fn counts(tried: &[Tried]) -> Counts {
    let of = |outcome: &str| tried.iter().filter(|t| t.outcome == outcome).count();
    Counts {
        blocked: of("blocked"),
        succeeded: of("succeeded"),
        not_applicable: of("not-applicable"),
        inconclusive: of("inconclusive"),
    }
}

impl Tried {
    fn new(attack: &Attack, judgement: Judgement) -> Self {
        let definition = attack.definition();
        Self {
            id: attack.id().to_owned(),
            title: definition.title.clone(),
            why: definition.why.clone(),
            source: definition.source.clone(),
            actor: definition.actor.to_string(),
            outcome: match judgement.outcome {
                Outcome::Blocked => "blocked",
                Outcome::Succeeded => "succeeded",
                Outcome::NotApplicable => "not-applicable",
                Outcome::Inconclusive => "inconclusive",
            },
            by: (judgement.outcome == Outcome::Blocked).then(|| blocker(attack, judgement.rule)),
            detail: judgement.detail,
        }
    }
}

/// What blocked an attack: a rail, a webhook, `rbac`, or that it was accepted and had no effect.
fn blocker(attack: &Attack, rule: Option<String>) -> String {
    let asked = attack.definition().verify.steps.iter().all(|step| matches!(step, Check::Review(_)));
    match rule {
        Some(rule) => rule.strip_prefix("bailey-").map_or(rule.clone(), str::to_owned),
        None if asked => "rbac".to_owned(),
        None => "no effect".to_owned(),
    }
}

/// Bindings with a fresh suffix for one attack.
fn with_nonce(bindings: &Bindings, number: usize) -> Bindings {
    Bindings { nonce: format!("{}{number}", bindings.nonce), ..bindings.clone() }
}
