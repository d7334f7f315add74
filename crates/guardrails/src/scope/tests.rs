use super::*;

fn resource(group: &str, name: &str, scope: ResourceScope, verbs: &str) -> crate::Resource {
    crate::Resource {
        group: group.into(),
        name: name.into(),
        scope,
        verbs: verbs.split(' ').map(Into::into).collect(),
    }
}

const ALL: &str = "create delete deletecollection get list patch update watch";

fn discovery() -> Discovery {
    use ResourceScope::{Cluster, Namespaced};
    Discovery::new([
        resource("", "pods", Namespaced, ALL),
        resource("", "pods/log", Namespaced, "get"),
        resource("", "secrets", Namespaced, ALL),
        resource("", "endpoints", Namespaced, ALL),
        resource("", "nodes", Cluster, ALL),
        resource("", "namespaces", Cluster, "create delete get list patch update watch"),
        resource("apps", "deployments", Namespaced, ALL),
        resource("storage.k8s.io", "storageclasses", Cluster, ALL),
    ])
}

fn ceilings() -> (Ceiling, Ceiling) {
    let set = |v: &str| v.split(' ').map(str::to_owned).collect::<BTreeSet<_>>();
    let (mut namespace, mut cluster) = (Ceiling::default(), Ceiling::default());
    for (group, name, verbs) in [
        ("", "pods", ALL),
        ("", "pods/log", "get"),
        ("", "secrets", ALL),
        ("", "endpoints", "get list watch"),
        ("", "namespaces", "get patch update delete"),
        ("apps", "deployments", ALL),
    ] {
        namespace.add(group, name, set(verbs));
    }
    cluster.add("storage.k8s.io", "storageclasses", set("get list watch"));
    (namespace, cluster)
}

fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let list = |l: &[&str]| l.iter().map(ToString::to_string).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(list(groups)),
        resources: Some(list(resources)),
        verbs: list(verbs),
        ..PolicyRule::default()
    }
}

/// `SCOPE verbs on group/resources` for granted, `REASON verbs on group/resources` for refused.
fn run(rules: &[PolicyRule], approved: &[ApprovedRule], kind: BindingKind) -> Vec<String> {
    let (namespace, cluster) = ceilings();
    let scoped = scope(rules, approved, kind, &discovery(), &namespace, &cluster);
    let show = |r: &PolicyRule| {
        format!(
            "{} on {}/{}",
            r.verbs.join(","),
            r.api_groups.as_deref().unwrap_or_default().join(","),
            r.resources.as_deref().unwrap_or_default().join(",")
        )
    };
    let granted = scoped.granted.iter().map(|g| format!("{:?} {}", g.scope, show(&g.rule)));
    let refused =
        scoped.refused.iter().map(|r| format!("{} {}", r.reason.as_str(), show(r.rule.as_ref().unwrap())));
    granted.chain(refused).collect()
}

const CRB: BindingKind = BindingKind::ClusterRoleBinding;

#[test]
fn a_namespaced_kind_is_granted_in_the_namespaces() {
    assert_eq!(run(&[rule(&[""], &["pods"], &["get", "list"])], &[], CRB), ["Namespaces get,list on /pods"]);
}

#[test]
fn each_part_outside_the_ceiling_is_refused_with_its_reason() {
    let asked = [
        rule(&[""], &["nodes"], &["list"]),
        rule(&[""], &["endpoints"], &["get", "create"]),
        rule(&["extensions"], &["ingresses"], &["get"]),
        rule(&[""], &["pods/log"], &["get", "list"]),
        rule(&[""], &["pods"], &["impersonate"]),
    ];
    assert_eq!(
        run(&asked, &[], CRB),
        [
            "Namespaces get on /endpoints",
            "Namespaces get on /pods/log",
            "ClusterScoped list on /nodes",
            "ProtectedKind create on /endpoints",
            "NotServed get on extensions/ingresses",
            "UnknownVerb list on /pods/log",
            "EscalatingVerb impersonate on /pods",
        ]
    );
}

#[test]
fn everything_on_everything_becomes_the_ceiling() {
    let answer = run(&[rule(&["*"], &["*"], &["*"])], &[], CRB);
    assert!(answer.contains(&"Namespaces get,list,watch on /endpoints".to_owned()), "{answer:#?}");
    assert!(
        answer.contains(
            &"Namespaces create,delete,deletecollection,get,list,patch,update,watch on apps/deployments"
                .to_owned()
        )
    );
    assert!(answer.contains(&"Cluster get,list,watch on storage.k8s.io/storageclasses".to_owned()));
    assert!(answer.contains(&"EscalatingVerb bind,escalate,impersonate on */*".to_owned()));
    assert!(answer.iter().any(|l| l.starts_with("ClusterScoped") && l.contains("nodes")));
}

#[test]
fn a_role_binding_grants_nothing_in_the_cluster() {
    let asked = [rule(&["storage.k8s.io"], &["storageclasses"], &["get"])];
    assert_eq!(
        run(&asked, &[], BindingKind::RoleBinding),
        ["ClusterScoped get on storage.k8s.io/storageclasses"]
    );
}

#[test]
fn the_platform_approves_what_was_asked_and_no_more() {
    let approve = |resource: &str, verb: &str| ApprovedRule {
        api_groups: vec![String::new()],
        resources: vec![resource.into()],
        verbs: vec![verb.into()],
        ..ApprovedRule::default()
    };
    let asked = [rule(&[""], &["nodes", "endpoints"], &["list", "create"])];
    assert_eq!(
        run(
            &asked,
            &[approve("nodes", "list"), approve("endpoints", "create"), approve("secrets", "get")],
            CRB
        ),
        [
            "Namespaces list on /endpoints",
            "Namespaces create on /endpoints",
            "Cluster list on /nodes",
            "ClusterScoped create on /nodes",
        ]
    );
}

#[test]
fn an_escalating_verb_cannot_be_approved() {
    let approve = ApprovedRule {
        api_groups: vec![String::new()],
        resources: vec!["pods".into()],
        verbs: vec!["impersonate".into()],
        ..ApprovedRule::default()
    };
    assert_eq!(
        run(&[rule(&[""], &["pods"], &["impersonate"])], &[approve], CRB),
        ["EscalatingVerb impersonate on /pods"]
    );
}

#[test]
fn finalizers_go_with_updating_their_object() {
    assert_eq!(
        run(&[rule(&["apps"], &["deployments/finalizers"], &["*"])], &[], CRB),
        ["Namespaces update on apps/deployments/finalizers"]
    );
}

#[test]
fn names_narrow_the_grant() {
    let mut asked = rule(&[""], &["secrets"], &["get"]);
    asked.resource_names = Some(vec!["one".into()]);
    let (namespace, cluster) = ceilings();
    let scoped = scope(&[asked], &[], CRB, &discovery(), &namespace, &cluster);
    assert_eq!(scoped.granted[0].rule.resource_names.as_deref(), Some(&["one".to_owned()][..]));
}

#[test]
fn a_record_is_read_only_from_a_stripped_role() {
    let record = r#"[{"apiGroups":[""],"resources":["pods"],"resourceNames":[],"nonResourceURLs":[],"verbs":["get"]}]"#;
    let stripped = RoleSource { requested: Some(record.into()), ..RoleSource::default() };
    assert_eq!(requested_rules(&stripped, std::iter::empty()).unwrap()[0].verbs, ["get"]);
    let native = RoleSource { rules: vec![rule(&[""], &["pods"], &["list"])], ..stripped };
    assert_eq!(requested_rules(&native, std::iter::empty()).unwrap()[0].verbs, ["list"]);
    let broken = RoleSource { requested: Some("[{".into()), ..RoleSource::default() };
    assert!(requested_rules(&broken, std::iter::empty()).unwrap_err().contains("not valid JSON"));
}

#[test]
fn a_recorded_aggregation_takes_the_tenants_own_roles() {
    let record =
        |verb: &str| Some(format!(r#"[{{"apiGroups":[""],"resources":["pods"],"verbs":["{verb}"]}}]"#));
    let labelled = RoleSource {
        requested: record("list"),
        labels: BTreeMap::from([("agg".into(), "yes".into())]),
        ..RoleSource::default()
    };
    let other = RoleSource { requested: record("watch"), ..RoleSource::default() };
    let aggregating = RoleSource {
        requested: Some("[]".into()),
        aggregation: Some(r#"[{"matchLabels":{"agg":"yes"},"expressions":false}]"#.into()),
        ..RoleSource::default()
    };
    let rules = requested_rules(&aggregating, [labelled, other].iter()).unwrap();
    assert_eq!(rules.iter().map(|r| r.verbs[0].as_str()).collect::<Vec<_>>(), ["list"]);
}

proptest::proptest! {
    /// Whatever is asked, the grant holds nothing that the ceilings do not.
    #[test]
    fn a_grant_never_exceeds_the_ceiling(
        groups in proptest::collection::vec(proptest::sample::select(vec!["", "apps", "*", "storage.k8s.io", "none.example"]), 1..3),
        resources in proptest::collection::vec(proptest::sample::select(vec!["pods", "*", "nodes", "*/log", "pods/log", "endpoints", "namespaces", "storageclasses", "x"]), 1..4),
        verbs in proptest::collection::vec(proptest::sample::select(vec!["get", "*", "create", "list", "escalate", "impersonate", "bind"]), 1..3),
        cluster_binding in proptest::bool::ANY,
    ) {
        let kind = if cluster_binding { CRB } else { BindingKind::RoleBinding };
        let (namespace, cluster) = ceilings();
        let asked = rule(&groups, &resources, &verbs);
        let scoped = scope(std::slice::from_ref(&asked), &[], kind, &discovery(), &namespace, &cluster);
        for granted in &scoped.granted {
            let ceiling = if granted.scope == GrantScope::Cluster { &cluster } else { &namespace };
            for name in granted.rule.resources.iter().flatten() {
                let held = ceiling.verbs(&granted.rule.api_groups.as_ref().unwrap()[0], name);
                proptest::prop_assert!(granted.rule.verbs.iter().all(|v| held.contains(v)), "{granted:?}");
            }
        }
        proptest::prop_assert!(!(scoped.granted.is_empty() && scoped.refused.is_empty()), "{asked:?} vanished");
    }
}
