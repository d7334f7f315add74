use std::path::PathBuf;

use super::*;
use crate::bench::access::check::Score;
use crate::bench::access::measure::Checked;

fn asked(tool: &'static str, what: &str, cpu: f64, timings: &Timings) -> Asked {
    let used = Used {
        wall: cpu / 2.0,
        user: cpu,
        system: 0.0,
        peak: (cpu * 1e8) as u64,
        exit: Some(0),
        capped: false,
    };
    Asked {
        tool,
        what: what.to_owned(),
        runs: vec![used],
        timings: if tool == BAILEY { vec![timings.clone()] } else { Vec::new() },
        bytes: 1000,
        failure: None,
        answer: PathBuf::new(),
    }
}

fn measured(size: &'static str, objects: usize, cpu: f64) -> Measured {
    let line = r#"{"timings":{"compile":0.1,"close":0.05,"query":0.001,"incremental_p99":0.5}}"#;
    let timings = &Timings::find(line).unwrap();
    let own = |what| asked(BAILEY, what, cpu, timings);
    Measured {
        size,
        objects,
        bytes: 1,
        generated: 0.1,
        asked: vec![
            own(AUDIT),
            own(REACH),
            own(WHO_CAN_READ),
            own(WHAT_IF),
            own(INCREMENTAL),
            asked(WHO_CAN, "get secrets -n kube-system", 0.5, timings),
            asked(WHO_CAN, "get secrets -A", 8.0, timings),
            asked(PYTHON, "all Lists, no question", 4.0, timings),
        ],
        checked: vec![Checked {
            tool: BAILEY,
            by: "reach".to_owned(),
            score: Score {
                reads: 3,
                found: 2,
                assumed: 1,
                others: 1,
                spared: 1,
                wrong: vec!["sa:p/x is not said to read a/b: why".to_owned()],
            },
        }],
    }
}

fn line<'a>(text: &'a str, start: &str) -> &'a str {
    text.lines()
        .find(|line| line.starts_with(start))
        .unwrap_or_else(|| panic!("no line `{start}` in\n{text}"))
}

#[test]
fn targets_are_judged_at_l_against_the_best_peer_of_the_same_question() {
    let all = [measured("M", 100, 0.2), measured("L", 1000, 2.0), measured("4L", 4000, 8.0)];
    let text = targets(&all);
    assert!(text.starts_with("\nat L\n"), "{text}");
    let cold = line(&text, "cold, dump to full answer: wall");
    assert!(
        cold.contains("1.00 s") && cold.contains("met") && cold.contains("2.00 (python3 json.load"),
        "{cold}"
    );
    assert!(line(&text, "one binding changed").contains("missed"), "{text}");
    assert!(
        line(&text, "cold, who reads one Secret: cpu").contains("0.25 (kubectl-who-can get secrets -n"),
        "{text}"
    );
    assert!(line(&text, "growth of cpu").contains("1.00"), "{text}");
    assert!(line(&text, "planted answers").contains("9 of 12"), "{text}");
}

#[test]
fn no_answer_is_said_and_not_counted() {
    let mut at = measured("S", 100, 1.0);
    at.asked[0].failure = Some("no answer after 600 s".to_owned());
    let text = targets(std::slice::from_ref(&at));
    assert!(text.starts_with("\nat S\n"), "{text}");
    assert!(line(&text, "cold, dump to full answer: wall").contains("no answer"), "{text}");
    assert!(size(&at).contains("no answer after 600 s"));
}

#[test]
fn wrong_answers_are_listed_by_subject() {
    let text = size(&measured("S", 100, 1.0));
    let expected = "planted, bailey by reach: 2 of 3 that read are found (1 only assumed), \
                    1 of 1 that do not read are left alone\n  sa:p/x is not said";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn growth_needs_two_sizes() {
    assert_eq!(growth(&[measured("S", 100, 1.0)]), "");
    let text = growth(&[measured("S", 100, 1.0), measured("M", 1000, 10.0)]);
    let cells: Vec<&str> = line(&text, "bailey audit: cpu").split_whitespace().collect();
    assert_eq!(cells, ["bailey", "audit:", "cpu", "2", "1.00", "1.00"]);
}
