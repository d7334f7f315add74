use bailey_access::answer::Step;

use super::super::diagram;
use super::super::layout::{Drawing, shorten};
use super::*;

fn drawn(steps: &[Step], secrets: &[&str]) -> Drawing {
    let secrets: Vec<_> = secrets.iter().map(|secret| (*secret).to_owned()).collect();
    diagram::of("id", steps, 0, &secrets, secrets.len()).unwrap()
}

/// Boxes as `column,row label: text`.
fn boxes(drawing: &Drawing) -> Vec<String> {
    let of = |values: BTreeSet<usize>| values.into_iter().collect::<Vec<_>>();
    let columns = of(drawing.boxes.iter().map(|placed| placed.x).collect());
    let rows = of(drawing.boxes.iter().map(|placed| placed.y).collect());
    let at = |all: &[usize], value| all.iter().position(|other| *other == value).unwrap();
    let text = |placed: &super::super::layout::Placed| {
        let lines: Vec<_> = placed.lines.iter().map(|line| line.text.as_str()).collect();
        format!(
            "{},{} {}: {}",
            at(&columns, placed.x),
            at(&rows, placed.y),
            placed.label.text,
            lines.join("|")
        )
    };
    drawing.boxes.iter().map(text).collect()
}

#[test]
fn a_direct_path_is_one_row_from_subject_to_secret() {
    let audit = sample::audit();
    let drawing = drawn(&audit.findings[2].path, &["org-beta/beta-prod-kubeconfig"]);
    let heads: Vec<_> = drawing.heads.iter().map(|head| head.text.as_str()).collect();
    assert_eq!(heads, ["Subject", "Binding", "Role", "Rule", "Secret"]);
    assert_eq!(
        boxes(&drawing),
        [
            "0,0 User: ines@acme.example",
            "1,0 RoleBinding: org-beta/kubeconfig-|rotator",
            "2,0 Role: org-beta/kubeconfig-|rotator",
            "3,0 rules[2]: patch secrets beta-|prod-kubeconfig",
            "4,0 org-beta: beta-prod-kubeconfig",
        ]
    );
    assert_eq!(drawing.arrows.len(), 4);
    assert_eq!(drawing.boxes[4].note.as_ref().unwrap().text, "patch-secret");
}

#[test]
fn a_path_that_goes_back_goes_on_in_the_row_below() {
    let audit = sample::audit();
    let drawing = drawn(&audit.findings[1].path, &["flux-system/git"]);
    let boxes = boxes(&drawing);
    assert_eq!(boxes[4], "4,0 rule: create pods/exec in|flux-system");
    assert!(boxes[5].starts_with("4,1 Pod: ") && boxes[6].starts_with("4,2 exec: runs code"), "{boxes:?}");
    assert_eq!(boxes[7], "0,3 ServiceAccount: flux-system/|kustomize-controller");
    assert_eq!(boxes.last().unwrap(), "5,3 flux-system: git");
    assert_eq!(drawing.arrows.len(), boxes.len() - 1);
}

#[test]
fn boxes_neither_overlap_nor_leave_the_drawing() {
    for steps in [4, 60] {
        let audit = sample::audit();
        let path: Vec<_> = audit.findings[1].path.iter().cycle().take(steps).cloned().collect();
        let drawing = drawn(&path, &["a/1", "b/1", "c/1", "d/1", "e/1", "f/1"]);
        for (at, one) in drawing.boxes.iter().enumerate() {
            assert!(one.x + one.width <= drawing.width && one.y + one.height <= drawing.height, "{one:?}");
            for other in &drawing.boxes[at + 1..] {
                let apart = one.x + one.width < other.x
                    || other.x + other.width < one.x
                    || one.y + one.height < other.y
                    || other.y + other.height < one.y;
                assert!(apart, "{one:?} {other:?}");
            }
        }
    }
}

#[test]
fn long_paths_and_many_secrets_are_capped_and_say_so() {
    let audit = sample::audit();
    let path: Vec<_> = audit.findings[1].path.iter().cycle().take(60).cloned().collect();
    let secrets: Vec<_> =
        (0..900).map(|number| format!("namespace-{}/secret-{number}", number / 3)).collect();
    let drawing = diagram::of("id", &path, 2, &secrets, secrets.len()).unwrap();
    let boxes = boxes(&drawing);
    assert!(boxes.len() < 60, "{}", boxes.len());
    assert!(boxes.iter().any(|text| text.contains("48 more steps: see|the table")), "{boxes:?}");
    assert!(boxes.last().unwrap().ends_with("…: and 296 more|namespaces, 900|Secrets in all"), "{boxes:?}");
    assert_eq!(drawing.boxes[0].note.as_ref().unwrap().text, "and 2 others");
    assert!(drawing.description.ends_with("48 more steps follow in the table."));
}

#[test]
fn secrets_of_a_namespace_share_a_box_and_scopes_have_words() {
    let audit = sample::audit();
    let path = &audit.findings[0].path;
    let ends = |secrets: &[&str]| boxes(&drawn(path, secrets)).split_off(5);
    assert_eq!(ends(&["*/*"]), ["5,0 all namespaces: all Secrets"]);
    assert_eq!(ends(&["org-beta/*"]), ["5,0 org-beta: all Secrets"]);
    assert_eq!(ends(&["*/*", "zot/*"]), ["5,0 all namespaces: all Secrets"]);
    assert_eq!(ends(&["a/x", "a/y", "b/z"]), ["5,0 a: x, y", "5,1 b: z"]);
    assert_eq!(ends(&["a/x", "a/y", "a/z"]), ["5,0 a: 3 Secrets"]);
}

#[test]
fn a_subject_of_another_cluster_keeps_it() {
    let mut path = sample::audit().findings[0].path.clone();
    path[0].from = "wc-1:sa:ns/name".into();
    assert_eq!(boxes(&drawn(&path, &[]))[0], "0,0 ServiceAccount: ns/name in wc-1");
    path[0].from = "user:system:sa:x".into();
    assert_eq!(boxes(&drawn(&path, &[]))[0], "0,0 User: system:sa:x");
}

/// As `explain` in bailey-access says steps.
#[test]
fn what_a_step_says_about_roles_and_controllers_gets_boxes_of_its_own() {
    let audit = sample::audit();
    let mut path = audit.findings[0].path.clone();
    path[0].to = "ClusterRole admin in org-beta".into();
    path[0].rule = "subjects[2]".into();
    path[1].object = "ClusterRole admin (a default of Kubernetes)".into();
    let drawing = drawn(&path, &["org-beta/*"]);
    assert_eq!(
        boxes(&drawing)[1..4],
        ["1,0 ClusterRoleBinding: backup-agent", "2,0 ClusterRole: admin", "3,0 rules[0]: get, list secrets"]
    );
    let notes: Vec<_> =
        drawing.boxes.iter().map(|placed| placed.note.as_ref().map(|note| note.text.as_str())).collect();
    assert_eq!(notes[1..3], [Some("subjects[2]"), Some("in org-beta")]);

    path[1].object = "Deployment flux-system/helm-controller".into();
    path[1].rule = "ClusterRole admin: rules[0]: create helmreleases".into();
    path[1].to = "acts as sa:flux-system/helm-controller".into();
    assert_eq!(
        boxes(&drawn(&path, &[]))[2..],
        [
            "2,0 ClusterRole: admin",
            "3,0 rules[0]: create helmreleases",
            "4,0 Deployment: flux-system/helm-|controller",
            "0,1 ServiceAccount: flux-system/helm-|controller",
        ]
    );
}

#[test]
fn rights_that_are_needed_together_are_one_box_and_the_way_to_them_is_drawn_once() {
    let mut path = sample::audit().findings[0].path.clone();
    path.insert(1, path[0].clone());
    path[2].from = path[0].from.clone();
    path[2].rule = "rules[0]: create rolebindings and rules[1]: bind clusterroles named admin".into();
    path[2].to = "ClusterRole admin (a default of Kubernetes) in org-acme".into();
    assert_eq!(
        boxes(&drawn(&path, &[]))[1..],
        [
            "1,0 ClusterRoleBinding: backup-agent",
            "2,0 ClusterRole: backup-agent",
            "3,0 rules[0] and rules[1]: create rolebindings;|bind clusterroles|named admin",
            "2,1 ClusterRole: admin",
        ]
    );
}

#[test]
fn one_out_of_several_identities_is_named_before_it_goes_on() {
    let audit = sample::audit();
    let mut path = audit.findings[0].path.clone();
    path[1].to = "acts as each ServiceAccount in org-beta".into();
    let mut next = path[0].clone();
    next.from = "sa:org-beta/one".into();
    path.push(next);
    let boxes = boxes(&drawn(&path, &[]));
    assert_eq!(
        boxes[4..6],
        ["4,0 read-secret: acts as each|ServiceAccount in|org-beta", "0,1 ServiceAccount: org-beta/one"]
    );
}

#[test]
fn a_path_without_steps_is_not_drawn() {
    assert_eq!(diagram::of("id", &[], 0, &["a/b".to_owned()], 1), None);
}

#[test]
fn the_middle_of_a_long_name_is_left_out() {
    assert_eq!(shorten("short", 10), "short");
    assert_eq!(shorten("aaaaaaaaaabbbbbbbbbb", 11), "aaaaa…bbbbb");
    // What may be drawn twice as wide counts twice.
    assert_eq!(shorten("ああああああああ", 9), "ああ…ああ");
}
