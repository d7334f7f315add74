//! Makes templates of the rules that data can say.

use super::{
    data::{self, File, Gives, GivesIn, Kind, Rule, Test},
    process::{Holds, Process},
    survey::{Draft, Survey},
};
use crate::{Gift, Power, Scope};

/// The templates of a file's rules.
pub(super) fn apply(survey: &mut Survey<'_>, file: &'static File) {
    for rule in &file.rules {
        let processes = survey.processes(&rule.process);
        for kind in rule.each.iter().filter_map(|id| data::kind(id)) {
            if !survey.matters(kind, &rule.process) {
                continue;
            }
            if processes.is_empty() {
                one(survey, rule, kind, None);
            }
            for process in &processes {
                one(survey, rule, kind, Some(process));
            }
        }
    }
}

fn one(survey: &mut Survey<'_>, rule: &'static Rule, kind: &'static Kind, process: Option<&Process>) {
    let gives = gift(survey, rule, process);
    let who = process.map_or(rule.process.as_str(), |process| process.object.as_str());
    let mut draft = Draft::new(&rule.edge, gives, format!("{who} {}", rule.says)).by(&rule.process, process);
    draft.assumed.extend(rule.assumed.clone());
    if let Some(process) = process {
        let Some(checked) = settings(draft, rule, process) else { return };
        draft = checked;
        if !kind.cluster {
            draft = draft.within(process.watched(&rule.watch));
        }
    }
    for id in &rule.with {
        let Some(other) = data::kind(id) else { continue };
        let need = survey.write_right(other);
        draft.with.push(need);
    }
    if let Some(sample) = &rule.sample {
        let essential: Vec<&str> = rule.essential.iter().map(String::as_str).collect();
        draft = draft.request(sample.clone(), rule.before.clone(), &essential);
    }
    survey.write(kind, &draft);
}

fn gift(survey: &mut Survey<'_>, rule: &Rule, process: Option<&Process>) -> Gift {
    let power = match rule.gives {
        Gives::Controller => return survey.controller(process),
        Gives::Nothing => return Gift::Nothing,
        Gives::Secrets => Power::Secrets,
        Gives::Accounts => Power::Accounts,
        Gives::Pods => Power::Pods,
    };
    match (rule.place, process) {
        (GivesIn::Here, _) => Gift::Power(power),
        (GivesIn::Cluster, _) => Gift::Fact(power.at(Scope::Cluster)),
        (GivesIn::Process, Some(process)) => Gift::Fact(survey.power_in(power, &process.namespace)),
        (GivesIn::Process, None) => Gift::Nothing,
    }
}

/// Looks at the settings and the version of a process; none if with them the rule does not hold.
fn settings(mut draft: Draft, rule: &Rule, process: &Process) -> Option<Draft> {
    for test in &rule.unless {
        match process.passes(test) {
            Holds::Yes => return None,
            Holds::No => draft = draft.despite(format!("{} is not {}", setting_name(test), test.is)),
            Holds::Unknown(why) => {
                draft = draft.assume(format!("{} is not known: {why}", setting_name(test)))
            }
        }
    }
    for test in &rule.only_if {
        match process.passes(test) {
            Holds::Yes => draft = draft.despite(format!("{} is {}", setting_name(test), test.is)),
            Holds::No => return None,
            // A switch that opens something is taken to be as it comes: shut.
            Holds::Unknown(_) if process.guess.is_some() => return None,
            Holds::Unknown(why) => {
                draft = draft.assume(format!("{} is not known: {why}", setting_name(test)))
            }
        }
    }
    match process.in_versions(rule.since.as_deref(), &rule.fixed) {
        Holds::Yes => Some(draft),
        Holds::No => None,
        Holds::Unknown(why) => Some(draft.assume(why)),
    }
}

fn setting_name(test: &Test) -> String {
    match (&test.flag, &test.env) {
        (Some(flag), _) => format!("--{flag}"),
        (None, Some(env)) => env.clone(),
        (None, None) => "a setting".to_owned(),
    }
}
