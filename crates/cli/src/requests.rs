//! `bailey requests`: what tenants' apps asked for and got; approving what was refused, and taking it back.

mod render;
mod select;

use bailey_api::{AccessRequest, ApprovedRule};
use serde::{Deserialize as _, Serialize};
use serde_json::json;

use crate::args::{ApproveArguments, RequestAction, RequestsArguments, RevokeArguments};
use crate::live::{Call, Live, LiveError, path, text};
use crate::output::{Output, Screen, count};
use crate::{CliError, Exit};

use select::{Selection, Skipped};

/// The field manager of approvals, so that they are told apart from what the operator writes.
const APPROVER: &str = "bailey-approve";

/// The requests, as their JSON document shows them.
#[derive(Debug, Serialize)]
struct Requests<'a> {
    schema: &'static str,
    complete: bool,
    requests: &'a [AccessRequest],
    unreadable: &'a [String],
}

/// Shows requests, or changes what is approved of one.
pub async fn run(arguments: &RequestsArguments, live: &Live, screen: &Screen) -> Result<Output, CliError> {
    match &arguments.action {
        Some(RequestAction::Approve(arguments)) => approve(arguments, live, screen).await,
        Some(RequestAction::Revoke(arguments)) => revoke(arguments, live, screen).await,
        None => show(arguments, live, screen).await,
    }
}

async fn show(arguments: &RequestsArguments, live: &Live, screen: &Screen) -> Result<Output, CliError> {
    let (mut requests, unreadable) = all(live, arguments.namespace.as_deref()).await?;
    if let Some(tenant) = &arguments.tenant {
        requests.retain(|request| &request.spec.tenant == tenant);
    }
    if let Some(name) = &arguments.name {
        requests.retain(|request| request.metadata.name.as_ref() == Some(name));
        if requests.is_empty() && unreadable.is_empty() {
            let place = arguments
                .namespace
                .as_ref()
                .map_or("any namespace".to_owned(), |n| format!("namespace `{n}`"));
            return Err(CliError::Usage(format!(
                "there is no AccessRequest `{name}` in {place}; list them with: bailey requests"
            )));
        }
    }
    let document = Requests {
        schema: "bailey.requests/v1",
        complete: unreadable.is_empty(),
        requests: &requests,
        unreadable: &unreadable,
    };
    let text = render::render(&document, arguments.output, arguments.name.is_some(), screen)?;
    let refused = requests.iter().any(|r| r.status.as_ref().is_some_and(|s| !s.refused.is_empty()));
    let mut output = Output::new(text, Exit::of(arguments.fail_on_refused && refused, document.complete));
    output.notes = unreadable.iter().map(|what| format!("cannot be read: {what}")).collect();
    if requests.is_empty() && unreadable.is_empty() {
        output.notes.push(
            "No requests: no app of a tenant has asked for more than its tenant holds anyway.".to_owned(),
        );
    }
    Ok(output)
}

/// All requests, sorted, with what cannot be read.
async fn all(live: &Live, namespace: Option<&str>) -> Result<(Vec<AccessRequest>, Vec<String>), CliError> {
    let target = path(bailey_api::GROUP, bailey_api::VERSION, "accessrequests", namespace, None);
    let (mut requests, mut unreadable) = (Vec::new(), Vec::new());
    for item in live.list(&target).await? {
        match AccessRequest::deserialize(&item) {
            Ok(mut request) => {
                request.metadata.managed_fields = None;
                requests.push(request);
            }
            Err(error) => unreadable.push(format!(
                "AccessRequest {}/{}: {error}",
                text(&item, "/metadata/namespace"),
                text(&item, "/metadata/name")
            )),
        }
    }
    requests.sort_by(|a, b| {
        (&a.metadata.namespace, &a.metadata.name).cmp(&(&b.metadata.namespace, &b.metadata.name))
    });
    Ok((requests, unreadable))
}

async fn one(live: &Live, namespace: &str, name: &str) -> Result<AccessRequest, CliError> {
    let target = path(bailey_api::GROUP, bailey_api::VERSION, "accessrequests", Some(namespace), Some(name));
    let found = live.get(target.clone()).await?.ok_or_else(|| {
        CliError::Usage(format!(
            "there is no AccessRequest `{namespace}/{name}`; list them with: bailey requests"
        ))
    })?;
    AccessRequest::deserialize(&found)
        .map_err(|source| LiveError::Invalid { request: format!("GET {target}"), source }.into())
}

async fn approve(arguments: &ApproveArguments, live: &Live, screen: &Screen) -> Result<Output, CliError> {
    let request = one(live, &arguments.namespace, &arguments.name).await?;
    let selection = match &arguments.resource {
        Some(resource) => Selection::Resource { resource: resource.clone(), verbs: arguments.verbs.clone() },
        None if arguments.all => Selection::All,
        None => Selection::Parts(arguments.rules.iter().map(|n| usize::from(*n)).collect()),
    };
    let choice = select::approve(&request, &selection).map_err(CliError::Usage)?;
    let mut wanted = request.spec.approved.clone();
    wanted.extend(choice.add.iter().cloned());
    if !choice.add.is_empty() {
        write(live, &request, &wanted, arguments.dry_run).await?;
    }
    let done = if arguments.dry_run { "would approve" } else { "approved" };
    let text = told(done, &request, &choice.add, &choice.skipped, screen);
    // With --all, what cannot be approved was not asked for by name.
    let missed = !arguments.all && choice.skipped.iter().any(|skipped| !skipped.harmless);
    let exit = if missed { Exit::Findings } else { Exit::Clean };
    Ok(Output::new(text, exit))
}

async fn revoke(arguments: &RevokeArguments, live: &Live, screen: &Screen) -> Result<Output, CliError> {
    let request = one(live, &arguments.namespace, &arguments.name).await?;
    let numbers: Vec<_> = arguments.rules.iter().map(|n| usize::from(*n)).collect();
    let (kept, removed) = select::revoke(&request, if arguments.all { None } else { Some(&numbers) })
        .map_err(CliError::Usage)?;
    if !removed.is_empty() {
        write(live, &request, &kept, arguments.dry_run).await?;
    }
    let done = if arguments.dry_run { "would revoke" } else { "revoked" };
    Ok(Output::new(told(done, &request, &removed, &[], screen), Exit::Clean))
}

/// Writes what is approved, unless somebody changed the request meanwhile.
async fn write(
    live: &Live,
    request: &AccessRequest,
    approved: &[ApprovedRule],
    dry_run: bool,
) -> Result<(), CliError> {
    let namespace = request.metadata.namespace.as_deref();
    let name = request.metadata.name.as_deref();
    let target = path(bailey_api::GROUP, bailey_api::VERSION, "accessrequests", namespace, name);
    let dry = if dry_run { "&dryRun=All" } else { "" };
    let patch = json!({
        "metadata": { "resourceVersion": request.metadata.resource_version },
        "spec": { "approved": approved },
    });
    let call =
        Call::patch(format!("{target}?fieldManager={APPROVER}{dry}"), "application/merge-patch+json", &patch);
    match live.json(call).await {
        Err(error) if error.status() == Some(409) => {
            Err(CliError::NotAllowed("the request changed meanwhile; look at it and try again".to_owned()))
        }
        other => Ok(other.map(drop)?),
    }
}

fn told(
    done: &str,
    request: &AccessRequest,
    rules: &[ApprovedRule],
    skipped: &[Skipped],
    screen: &Screen,
) -> String {
    let namespace = request.metadata.namespace.clone().unwrap_or_default();
    let name = request.metadata.name.clone().unwrap_or_default();
    let mut text = if rules.is_empty() {
        format!("accessrequest {namespace}/{name}: nothing to change\n")
    } else {
        format!("accessrequest {namespace}/{name}: {done} {}\n", count(rules.len(), "rule", "rules"))
    };
    for rule in rules {
        text.push_str(&screen.wrap(2, &render::approved_text(rule)));
    }
    for skipped in skipped {
        let what = skipped.number.map(|number| format!("not {number}: ")).unwrap_or_default();
        text.push_str(&screen.wrap(2, &format!("{what}{}", skipped.why)));
    }
    text
}
