//! `bailey plan`: what the operator would change, and what stands in the way of Enforce.
//!
//! Reads, validates and builds as the operator does, and asks the API server by dry runs. It never writes.

mod changes;
mod enforce;
mod existing;
mod load;
mod predict;
mod rbac;
mod render;

use bailey_api::Enforcement;
use bailey_guardrails::{
    Desired, Model, Object, ObjectKind, Problem, Projector, boundary, build, policies, validate,
};
use serde::Serialize;

use crate::args::PlanArguments;
use crate::live::Live;
use crate::output::{Output, Screen};
use crate::{CliError, Exit};

use changes::{Action, Change};
use enforce::{Readiness, Survey};
use load::{Inputs, Unknown};

/// A plan, as its JSON document shows it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Plan {
    schema: &'static str,
    complete: bool,
    enforcement: Enforcement,
    tenants: usize,
    problems: Vec<ShownProblem>,
    changes: Vec<Change>,
    unchanged: usize,
    /// Only where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    enforce: Option<Readiness>,
    unknown: Vec<Unknown>,
}

/// Why a tenant is not in effect.
#[derive(Debug, Clone, Serialize)]
struct ShownProblem {
    tenant: String,
    field: &'static str,
    message: String,
}

impl Plan {
    fn exit(&self) -> Exit {
        let findings = self.enforce.as_ref().is_some_and(|readiness| !readiness.findings.is_empty());
        Exit::of(!self.changes.is_empty() || !self.problems.is_empty() || findings, self.complete)
    }
}

/// Makes the plan and shows it.
pub async fn run(arguments: &PlanArguments, live: &Live, screen: &Screen) -> Result<Output, CliError> {
    let plan = make(arguments, live).await?;
    let text = render::render(&plan, arguments.output, arguments.summary, screen)?;
    Ok(Output::new(text, plan.exit()))
}

async fn make(arguments: &PlanArguments, live: &Live) -> Result<Plan, CliError> {
    let mut inputs = load::load(live, &arguments.files).await?;
    let policies = policies().map_err(|e| CliError::internal("cannot read the built-in policies", e))?;
    let (model, problems) = validate(&inputs.installation, &inputs.tenants, &inputs.facts);
    let desired = build(&model, &policies, &inputs.served.discovery);
    let objects = all_objects(&desired, &model, &inputs);
    let (mut changes, doubts) = changes::changes(live, &inputs, &objects).await;
    let mut unknown = std::mem::take(&mut inputs.unknown);
    unknown.extend(doubts);
    let enforce = if arguments.enforce {
        let (existing, unread) = existing::existing(live, &inputs, &model).await;
        let index = boundary(&model);
        let survey = Survey {
            model: &model,
            boundary: &index,
            policies: &policies,
            discovery: &inputs.served.discovery,
        };
        let (readiness, doubts) = survey.run(&existing, &inputs.rbac.unscoped(), &inputs.namespaces);
        unknown.extend(unread);
        unknown.extend(doubts);
        Some(readiness)
    } else {
        None
    };
    // What cannot be read or is invalid keeps what it has.
    let invalid: Vec<_> = problems.iter().map(|problem| problem.tenant.clone()).collect();
    let all_read = !unknown.iter().any(|unknown| unknown.what.starts_with("tenants"));
    changes.retain(|change| match change.action {
        Action::Remove => all_read,
        Action::Release => all_read && !change.tenant.as_ref().is_some_and(|tenant| invalid.contains(tenant)),
        _ => true,
    });
    let all = changes.len();
    changes.retain(|change| change.action != Action::Unchanged);
    Ok(Plan {
        schema: "bailey.plan/v1",
        complete: unknown.is_empty(),
        enforcement: model.installation.enforcement,
        tenants: model.tenants.len(),
        problems: problems.into_iter().map(shown).collect(),
        unchanged: all - changes.len(),
        changes,
        enforce,
        unknown,
    })
}

fn shown(problem: Problem) -> ShownProblem {
    ShownProblem { tenant: problem.tenant, field: problem.field, message: problem.message }
}

/// What follows from Installation and Tenants, and from what tenants' bindings ask for.
fn all_objects(desired: &Desired, model: &Model, inputs: &Inputs) -> Vec<Object> {
    let mut objects: Vec<_> = desired.objects().cloned().collect();
    let projector = Projector::new(model, &inputs.served.discovery);
    for binding in inputs.rbac.requested(model, &inputs.requests) {
        if let Some(projection) = projector.project(&binding) {
            objects.extend(projection.objects);
        }
    }
    objects.sort_by_key(|object| object.kind != ObjectKind::Namespace);
    objects
}
