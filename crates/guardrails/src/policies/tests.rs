use super::*;

#[test]
fn every_file_parses_and_names_are_unique() {
    let all = policies().unwrap();
    let mut names: Vec<_> = all.iter().map(|p| p.name.as_str()).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(all.iter().all(|p| p.name.starts_with("bailey-")));
}

#[test]
fn every_validation_says_what_to_do() {
    for policy in policies().unwrap().iter().filter(|p| p.kind == PolicyKind::Validating) {
        for validation in policy.spec["validations"].as_array().unwrap() {
            let message = validation["messageExpression"].as_str().unwrap();
            assert!(message.contains(&format!("rail {}: ", policy.rail)), "{}: {message}", policy.name);
            assert_eq!(validation["reason"], "Forbidden", "{}", policy.name);
        }
    }
}

#[test]
fn rails_in_platform_namespaces_let_through_without_a_boundary() {
    // Else a lost Boundary would keep the operator's own pod from starting, and it could never come back.
    for policy in policies().unwrap().iter().filter(|p| p.place == Where::PlatformNamespaces) {
        assert_eq!(policy.denies_without_boundary, Some(false), "{}", policy.name);
    }
}

#[test]
fn no_expression_asks_the_authorizer_more_than_twice() {
    // One check costs 350 000 of the 1 000 000 that an expression may cost (k8s.io/apiserver cel/library/cost.go).
    for policy in policies().unwrap() {
        for validation in policy.spec["validations"].as_array().into_iter().flatten() {
            let expression = validation["expression"].as_str().unwrap();
            assert!(expression.matches(".check(").count() <= 2, "{}", policy.name);
        }
    }
}

#[test]
fn no_policy_matches_by_name() {
    // A deletecollection has no name, so it would pass a rule with resourceNames.
    for policy in policies().unwrap() {
        let rules = policy.spec["matchConstraints"]["resourceRules"].as_array().unwrap();
        assert!(rules.iter().all(|rule| rule.get("resourceNames").is_none()), "{}", policy.name);
    }
}
