use super::*;

fn answer(subject: &str, reads: &[&str], does_not_read: &[&str]) -> Answer {
    let list = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    Answer {
        subject: subject.to_owned(),
        reads: list(reads),
        does_not_read: list(does_not_read),
        why: "so it is".to_owned(),
    }
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn a_right_answer_is_right_and_each_wrong_one_is_named() {
    let answers = [
        answer("sa:p/reader", &["kube-system/*"], &["vault/one"]),
        answer("sa:p/outsider", &[], &["kube-system/*"]),
    ];
    let asked = set(&["kube-system/one", "kube-system/two", "vault/one"]);
    let mut readers = Readers::new();
    for secret in ["kube-system/one", "kube-system/two"] {
        readers.entry(secret.to_owned()).or_default().insert("sa:p/reader".to_owned(), Certainty::Proven);
    }
    let right = Score { reads: 1, found: 1, others: 2, spared: 2, ..Score::default() };
    assert_eq!(judge(&answers, &readers, &asked), right);

    // One Secret of the namespace is missed, and somebody is wrongly said to read another.
    readers.get_mut("kube-system/one").unwrap().clear();
    readers.get_mut("kube-system/two").unwrap().insert("sa:p/outsider".to_owned(), Certainty::Assumed);
    let score = judge(&answers, &readers, &asked);
    assert_eq!((score.found, score.spared, score.right(), score.claims()), (0, 1, 1, 3));
    assert_eq!(
        score.wrong,
        [
            "sa:p/reader is not said to read kube-system/one: so it is",
            "sa:p/outsider is said to read (assumed) kube-system/two: so it is",
        ]
    );
}

#[test]
fn what_was_not_asked_is_not_judged() {
    let answers = [answer("sa:p/reader", &["kube-system/one"], &["vault/*"])];
    assert_eq!(judge(&answers, &Readers::new(), &set(&["other/one"])).claims(), 0);
    assert_eq!(judge(&answers, &Readers::new(), &set(&["vault/one"])).spared, 1);
}

#[test]
fn an_assumed_reader_counts_and_is_told() {
    let answers = [answer("sa:p/reader", &["kube-system/one"], &[])];
    let readers = who_can_read(
        br#"{"subjects":[{"subject":"mc:sa:p/reader","certainty":"assumed"},{"subject":"user:x"}]}"#,
    );
    let readers = Readers::from([("kube-system/one".to_owned(), readers.unwrap())]);
    let score = judge(&answers, &readers, &set(&["kube-system/one"]));
    assert_eq!((score.found, score.assumed), (1, 1));
}

#[test]
fn reach_adds_to_who_reads_what() {
    let mut readers = Readers::new();
    let text = br#"{"schema":"x","secrets":[{"namespace":"a","name":"b","certainty":"proven","path":[]}]}"#;
    add_reach(&mut readers, "sa:p/x", text).unwrap();
    assert_eq!(readers["a/b"]["sa:p/x"], Certainty::Proven);
    assert!(add_reach(&mut readers, "sa:p/x", b"{}").is_err(), "an answer without Secrets is no answer");
}

#[test]
fn accounts_are_found_among_bindings() {
    let text =
        br#"{"roleBindings":[{"name":"x","subjects":[{"kind":"ServiceAccount","name":"a","namespace":"n"},
                   {"kind":"User","name":"u"}]}],"clusterRoleBindings":null}"#;
    assert_eq!(bound_accounts(text).unwrap(), set(&["sa:n/a"]));
}
