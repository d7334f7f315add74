use super::*;
use crate::{PolicyKind, policies};

#[path = "../../tests/it/case.rs"]
mod case;

use case::{Case, Expect};

/// What is wrong with the answer to a case, if anything.
fn judge(policy: &Policy, case: &Case, boundary: &Value) -> Option<String> {
    let answer = match evaluate(policy, &case.situation(boundary)) {
        Ok(answer) => answer,
        Err(error) => return Some(error.to_string()),
    };
    let message = case.message.as_deref().unwrap_or_default();
    match (case.expect, &answer) {
        (Expect::Passed, Evaluation::Passed) | (Expect::NotMatched, Evaluation::NotMatched) => None,
        (Expect::Refused, Evaluation::Refused(messages)) if messages.iter().any(|m| m.contains(message)) => {
            None
        }
        (expected, _) => Some(format!("expected {expected:?} {message}, got {answer:?}")),
    }
}

#[test]
fn every_case_is_answered_as_its_file_says() {
    let boundary = case::boundary();
    let (mut run, mut skipped, mut wrong) = (0, Vec::new(), Vec::new());
    for policy in policies().unwrap().iter().filter(|p| p.kind == PolicyKind::Validating) {
        for case in case::cases(policy) {
            let title = format!("{}: {}", policy.name, case.name);
            if let Some(reason) = &case.offline {
                skipped.push(format!("{title}: {}", reason.unsupported));
                continue;
            }
            run += 1;
            wrong.extend(judge(policy, &case, &boundary).map(|fault| format!("{title}: {fault}")));
        }
    }
    println!("{run} cases offline, {} on an API server only: {skipped:#?}", skipped.len());
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_validation_passes_a_case_and_refuses_one() {
    let boundary = case::boundary();
    let all = policies().unwrap();
    for policy in all.iter().filter(|p| p.kind == PolicyKind::Validating) {
        for validation in list(&policy.spec, "validations") {
            let text = validation["expression"].as_str().unwrap();
            // The halves of a split policy share their validations, some of which concern one half only.
            let halves = all.iter().filter(|half| half.cases() == policy.cases());
            let answers: Vec<_> = halves
                .flat_map(|half| {
                    let mut alone = half.clone();
                    alone.spec["validations"] = Value::Array(vec![validation.clone()]);
                    let cases = case::cases(half).into_iter().filter(|c| c.offline.is_none());
                    cases.filter_map(|c| evaluate(&alone, &c.situation(&boundary)).ok()).collect::<Vec<_>>()
                })
                .collect();
            let refuses = answers.iter().any(|a| matches!(a, Evaluation::Refused(_)));
            assert!(refuses, "{}: no case is refused by {text}", policy.name);
            // A rail that refuses whatever it matches lets through by not matching.
            let lets = if text == "false" { Evaluation::NotMatched } else { Evaluation::Passed };
            assert!(answers.contains(&lets), "{}: no case gets past {text}", policy.name);
        }
    }
}

#[test]
fn a_case_file_belongs_to_a_policy() {
    let known: Vec<_> = policies().unwrap().into_iter().map(|p| p.name).collect();
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/policies/cases")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(name == "boundary" || known.contains(&name), "{name}");
    }
}

#[test]
fn the_answer_replaces_each_question_to_the_authorizer() {
    let text =
        "a || authorizer.group('').check('get').allowed() && authorizer.path('/').check('x').allowed()";
    assert_eq!(
        answer_authorizer(text, &Situation { authorized: true, ..Situation::default() }),
        "a || true && true"
    );
    assert_eq!(answer_authorizer(text, &Situation::default()), "a || false && false");
}
