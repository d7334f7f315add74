use super::*;
use crate::analyse::samples::{exposed, why};

#[test]
fn a_finding_is_explained_with_the_rules_of_its_way_each_once() {
    let mut finding = exposed();
    finding.path.push(finding.path[0].clone());
    let explanation = of_finding(finding, why().paths);
    let ids: Vec<_> = explanation.rules.iter().map(|rule| rule.id.as_str()).collect();
    assert_eq!(ids, ["exec", "bound", "inside-pod"]);
    assert_eq!(explanation.alternates.len(), 2);
}

#[test]
fn every_rule_has_a_title_and_is_found_by_its_id() {
    let rules = rules();
    assert!(rules.len() > 2, "the catalogue is there");
    for entry in &rules {
        assert!(!entry.title.is_empty(), "{}", entry.id);
        assert_eq!(rule(&entry.id).as_ref(), Some(entry), "two rules are called {}", entry.id);
    }
    assert_eq!(rule("no-such-rule"), None);
}
