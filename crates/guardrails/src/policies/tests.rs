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
fn what_kubernetes_itself_writes_never_waits_for_the_boundary() {
    // The API server refuses whatever a policy matches until it knows what the policy looks up, and it knows
    // custom kinds late. So such a policy matches only the namespaces of tenants, or fails open.
    for policy in policies().unwrap().iter().filter(|p| matches!(p.lookup, Lookup::Boundary { .. })) {
        let rules = policy.spec["matchConstraints"]["resourceRules"].as_array().unwrap();
        let resources = rules.iter().flat_map(|r| r["resources"].as_array().unwrap());
        let cluster: Vec<_> = resources.map(|r| is_cluster_scoped(r.as_str().unwrap())).collect();
        let selector = &policy.spec["matchConstraints"]["namespaceSelector"]["matchExpressions"][0];
        match cluster.iter().all(|c| *c) {
            true => {
                assert_eq!(policy.spec["failurePolicy"], "Ignore", "{}", policy.name);
                assert_eq!(policy.lookup, Lookup::Boundary { denies: false }, "{}", policy.name);
            }
            false => {
                assert!(cluster.iter().all(|c| !c), "{}", policy.name);
                assert_eq!(
                    (&selector["key"], &selector["operator"]),
                    (&json!("bailey.dev/tenant"), &json!("Exists"))
                );
            }
        }
    }
}

#[test]
fn what_fails_open_has_a_backstop() {
    // Behind mutating policies stands RBAC's own check for escalation, and behind subjects the projection,
    // which drops those that are not the tenant's.
    let all = policies().unwrap();
    let open = all
        .iter()
        .filter(|p| p.lookup == Lookup::Boundary { denies: false } && p.kind == PolicyKind::Validating);
    for policy in
        open.filter(|p| !["bailey-rbac-subjects-cluster", "bailey-scoped-notice"].contains(&p.name.as_str()))
    {
        let backstop = all.iter().find(|b| b.rail == policy.rail && b.name.ends_with("-backstop"));
        let backstop = backstop.unwrap_or_else(|| panic!("{} has none", policy.name));
        assert_eq!(
            (backstop.lookup, backstop.spec["failurePolicy"].as_str()),
            (Lookup::Platform, Some("Fail"))
        );
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
