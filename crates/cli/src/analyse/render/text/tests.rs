use super::*;
use crate::analyse::samples::step;

const PLAIN: Screen = Screen { color: false, width: None };

#[test]
fn a_way_that_needs_two_things_branches_where_it_does() {
    let path = [
        step("bound", "user:jane", "role a", "RoleBinding a", "", None),
        step("create-pod", "role a", "pods of its own", "Role a", "rules[0]", None),
        step("bound", "user:jane", "role b", "RoleBinding b", "", None),
        step("relabel", "role b", "any label", "Role b", "", None),
        step("node", "pods of its own", "root on any node", "", "", None),
    ];
    assert_eq!(depths(&path), [0, 1, 0, 1, 2]);
    let text = Page { screen: &PLAIN, wide: true }.chain(0, &path);
    assert_eq!(
        text,
        "\
user:jane
└─ bound: role a
   │  RoleBinding a
   └─ create-pod: pods of its own
         Role a, rules[0]
└─ bound: role b
   │  RoleBinding b
   └─ relabel: any label
      │  Role b
      └─ node: root on any node
"
    );
}

#[test]
fn a_step_whose_need_is_nowhere_follows_the_one_before_it() {
    let path = [
        step("bound", "user:jane", "role a", "", "", None),
        step("and", "role a and role b", "more", "", "", None),
    ];
    assert_eq!(depths(&path), [0, 1]);
    assert_eq!(depths(&[]), [0; 0]);
}

#[test]
fn a_long_way_keeps_room_beside_it() {
    let name = |n: usize| format!("subject {n}");
    let path: Vec<_> =
        (0..40).map(|n| step("bound", &name(n), &name(n + 1), "RoleBinding a", "", None)).collect();
    let screen = Screen { color: false, width: Some(80) };
    let text = Page { screen: &screen, wide: true }.chain(4, &path);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("subject 40"));
}

#[test]
fn lists_are_cut_for_people_and_whole_on_demand() {
    let names: Vec<_> = (0..9).map(|n| format!("n{n}")).collect();
    let page = |wide| Page { screen: &PLAIN, wide };
    assert_eq!(page(false).names(&names), "n0, n1, n2, n3, n4, n5, … and 3 more");
    assert!(page(true).names(&names).ends_with("n7, n8"));
    assert_eq!(page(false).more(2, 20), "");
    assert_eq!(page(false).more(2, 21), "  … and 1 more, -o wide shows all\n");
    assert_eq!(page(true).more(2, 9000), "");
}
