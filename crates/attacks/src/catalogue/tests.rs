use std::collections::BTreeSet;

use crate::{Attack, Bindings, Check, Error, Identity, Method, Rail, Request, catalogue};

fn bindings() -> Bindings {
    let text = "{tenant: acme, tenantNamespace: org-acme, tenantAppNamespace: argocd, tenantGroup: 'customer:acme-admins',
        tenantDevelopers: 'customer:acme-developers', otherTenant: beta, otherNamespace: org-beta,
        otherGroup: 'customer:beta-admins', platformNamespace: platform-monitoring, platformSecret: receivers,
        platformAccount: agent, platformPod: agent-0, platformDeployerNamespace: platform-flux, platformUser: pia,
        platformClusterRole: platform-monitoring-agent, managementCluster: mc, marker: seen, nonce: abc}";
    serde_saphyr::from_str(text).unwrap()
}

#[test]
fn every_file_parses_and_every_placeholder_is_known() {
    let attacks = catalogue().unwrap();
    assert!(attacks.len() >= 50, "{} attacks", attacks.len());
    for attack in &attacks {
        let rendered = attack.render(&bindings()).unwrap();
        assert!(!format!("{rendered:?}").contains("{{"), "{}", attack.id());
    }
    let ids: BTreeSet<_> = attacks.iter().map(Attack::id).collect();
    assert_eq!(ids.len(), attacks.len());
}

#[test]
fn the_catalogue_holds_as_many_attacks_as_there_are_files() {
    let files = super::FILES.files().count();
    assert_eq!(catalogue().unwrap().len(), files);
}

#[test]
fn every_rail_stops_at_least_one_attack_alone() {
    let attacks = catalogue().unwrap();
    for rail in Rail::ALL {
        let alone = attacks.iter().any(|attack| attack.definition().rails == [rail]);
        assert!(alone, "no attack is stopped by {rail} alone");
    }
}

#[test]
fn what_is_sent_to_a_live_cluster_changes_nothing() {
    for attack in catalogue().unwrap() {
        let rendered = attack.render(&bindings()).unwrap();
        for check in &rendered.definition().verify.steps {
            if let Check::Request(request) = check {
                assert!(is_harmless(request), "{}: {request:?}", attack.id());
            }
        }
    }
}

fn is_harmless(request: &Request) -> bool {
    let dry = request.query.get("dryRun").is_some_and(|value| value == "All");
    match request.method {
        Method::Get => true,
        // A body without the dry run overrules the query.
        Method::Delete => {
            let body: serde_json::Value = serde_json::from_slice(&request.body()).unwrap_or_default();
            dry && body.get("dryRun") == Some(&serde_json::json!(["All"]))
        }
        // A connection knows no dry run, so it must go to a pod that does not exist.
        Method::Post if request.path.contains("/pods/") => request.path.contains("/pods/absent-"),
        // A token request ignores the dry run, so it must be bound to a pod that does not exist.
        Method::Post if request.path.ends_with("/token") => {
            String::from_utf8(request.body()).unwrap().contains("\"name\":\"absent-")
        }
        Method::Post | Method::Put | Method::Patch => dry,
    }
}

#[test]
fn every_attack_has_a_step_of_the_attacker_and_texts_of_one_line() {
    for attack in catalogue().unwrap() {
        let definition = attack.definition();
        assert!(definition.steps.iter().any(|step| step.identity != Identity::Platform), "{}", attack.id());
        assert!(!definition.title.contains('\n') && definition.title.len() <= 90, "{}", attack.id());
        assert!(definition.why.ends_with('.') && !definition.rails.is_empty(), "{}", attack.id());
    }
}

const MINIMAL: &str = "
id: probe
title: t
why: w.
source: s
actor: installer
rails: [rbac]
steps: [{request: {method: GET, path: '/PATH'}}]
success: [{step: STEP, accepted: true}]
verify: {steps: [{review: {verb: get, resource: pods}}], success: [{step: 1, allowed: true}]}
";

fn minimal(path: &str, step: &str) -> String {
    MINIMAL.replace("PATH", path).replace("STEP", step)
}

#[test]
fn an_unknown_placeholder_names_the_file_and_the_field() {
    let attack = Attack::parse("probe", &minimal("{{tenantt}}", "1")).unwrap();
    let error = attack.render(&bindings()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "reading attack `probe`: `steps[0].request.path` names the unknown placeholder `tenantt`"
    );
}

#[test]
fn mistakes_in_a_file_are_refused() {
    let reason = |stem: &str, text: &str| {
        Attack::parse(stem, text).and_then(|attack| attack.render(&bindings())).map_err(|e| e.reason())
    };
    assert_eq!(reason("probe", "[").unwrap_err(), "InvalidYaml");
    assert_eq!(reason("probe", &MINIMAL.replace("why:", "whence:")).unwrap_err(), "InvalidSchema");
    assert_eq!(reason("other", &minimal("x", "1")).unwrap_err(), "FileNameMismatch");
    assert_eq!(reason("probe", &minimal("x", "2")).unwrap_err(), "UnknownStep");
    assert_eq!(reason("probe", &minimal("{{tenant", "1")).unwrap_err(), "MalformedPlaceholder");
    let empty = minimal("x", "1").replace("[{step: 1, accepted: true}]", "[]");
    let error = Attack::parse("probe", &empty).unwrap_err();
    assert!(matches!(error, Error::NoCondition { field: "success", .. }), "{error}");
}
