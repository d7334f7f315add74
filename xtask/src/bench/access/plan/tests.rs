use super::*;

#[test]
fn each_size_has_room_for_what_is_fixed() {
    for size in Size::ALL {
        let plan = Plan::new(size, 1).unwrap();
        let count = |of: fn(&Place) -> usize| plan.places.iter().map(of).sum::<usize>();
        assert_eq!(plan.places.len(), plan.counts.namespaces);
        assert_eq!(count(|place| place.accounts.len()), plan.counts.accounts);
        assert_eq!(count(|place| place.roles.len()), plan.counts.roles);
        assert_eq!(count(|place| place.secrets.len()), plan.counts.secrets);
        assert_eq!(plan.cluster_roles.len(), plan.counts.cluster_roles);
        assert!(plan.fixed.bindings.len() < plan.counts.cluster_role_bindings);
    }
}

#[test]
fn roles_that_aggregate_hold_what_they_take() {
    let plan = Plan::new(Size::S, 1).unwrap();
    let rules = |name: &str| &plan.cluster_roles.iter().find(|role| role.name == name).unwrap().rules;
    let holds = |role: &str, resource: &str| {
        rules(role)
            .iter()
            .any(|rule| rule["resources"].as_array().unwrap().iter().any(|found| found == resource))
    };
    assert!(holds("view", "configmaps") && holds("edit", "configmaps") && holds("admin", "configmaps"));
    assert!(!holds("view", "secrets"));
    assert!(holds("edit", "secrets") && holds("admin", "secrets"));
    assert!(!holds("edit", "rolebindings") && holds("admin", "rolebindings"));
    assert!(holds("view", "certificates"), "an operator's role for viewers is not taken");
}
