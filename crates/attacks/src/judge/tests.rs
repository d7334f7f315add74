use crate::{Attack, Bindings, Outcome, RenderedAttack, Response};

fn attack(steps: &str, success: &str) -> RenderedAttack {
    let text = format!(
        "{{id: probe, title: t, why: w., source: s, actor: installer, rails: [rbac],\n steps: {steps},\n success: {success},\n \
         verify: {{steps: [{{review: {{verb: get, resource: pods}}}}], success: [{{step: 1, allowed: true}}]}}}}"
    );
    let bindings: Bindings = serde_saphyr::from_str(
        "{tenant: a, tenantNamespace: a, tenantAppNamespace: a, tenantGroup: a, tenantDevelopers: a, otherTenant: a,
          otherNamespace: a, otherGroup: a, platformNamespace: a, platformSecret: a, platformAccount: a, platformPod: a,
          platformDeployerNamespace: a, platformUser: a, platformClusterRole: a, managementCluster: a, marker: a, nonce: a}",
    )
    .unwrap();
    Attack::parse("probe", &text).unwrap().render(&bindings).unwrap()
}

fn response(status: u16, body: &str) -> Response {
    Response { status, body: body.to_owned() }
}

fn status(code: u16, message: &str) -> Response {
    response(code, &format!(r#"{{"kind":"Status","message":"{message}","code":{code}}}"#))
}

const ONE: &str = "[{request: {method: GET, path: /x}}]";
const PREPARED: &str = "[{as: platform, request: {method: GET, path: /x}}, {request: {method: GET, path: /x}}, {as: platform, request: {method: GET, path: /x}}]";

#[test]
fn conditions_look_at_the_answer_as_the_attacker_does() {
    let secret = response(200, r#"{"data":{"password":"bWFya2Vy"},"roleRef":{"name":"cluster-admin"}}"#);
    let table = [
        ("{step: 1, accepted: true}", true),
        ("{step: 1, accepted: false}", false),
        ("{step: 1, contains: marker}", true),
        ("{step: 1, at: /roleRef, contains: marker}", false),
        ("{step: 1, at: /roleRef/name, equals: cluster-admin}", true),
        ("{step: 1, at: /roleRef/name, equals: cluster}", false),
        ("{step: 1, at: /metadata/labels, absent: true}", true),
        ("{step: 1, at: /data, absent: true}", false),
    ];
    for (condition, holds) in table {
        let judgement = attack(ONE, &format!("[{condition}]")).judge(std::slice::from_ref(&secret));
        assert_eq!(judgement.outcome == Outcome::Succeeded, holds, "{condition}: {judgement:?}");
    }
}

#[test]
fn a_refusal_names_who_refused() {
    let policy = "secrets \\\"t\\\" is forbidden: ValidatingAdmissionPolicy 'bailey-hidden-read' with binding \
                  'bailey-hidden-read' denied request: rail hidden-read";
    let table = [
        (status(403, policy), "bailey-hidden-read"),
        (status(422, policy), "bailey-hidden-read"),
        (status(403, "secrets is forbidden: User \\\"u\\\" cannot get resource"), "rbac"),
        (status(400, "admission webhook \\\"v.example\\\" denied the request: no"), "v.example"),
        (response(401, "Unauthorized"), "rbac"),
        (
            status(
                403,
                "pods \\\"p\\\" is forbidden: violates PodSecurity \\\"baseline:latest\\\": host namespaces",
            ),
            "pod-security",
        ),
    ];
    for (answer, rule) in table {
        let judgement = attack(ONE, "[{step: 1, accepted: true}]").judge(&[answer]);
        assert_eq!((judgement.outcome, judgement.rule.as_deref()), (Outcome::Blocked, Some(rule)));
    }
}

#[test]
fn only_a_refusal_or_a_missing_effect_counts_as_blocked() {
    let judge =
        |answer| attack(ONE, "[{step: 1, at: /roleRef/name, equals: cluster-admin}]").judge(&[answer]);
    let narrowed = judge(response(201, r#"{"roleRef":{"name":"bailey:scoped"}}"#));
    assert_eq!(narrowed.outcome, Outcome::Blocked);
    assert_eq!(narrowed.rule, None);
    assert_eq!(
        narrowed.detail,
        "accepted without the effect: /roleRef/name of step 1 is not `cluster-admin`"
    );
    assert_eq!(judge(response(404, "404 page not found")).outcome, Outcome::NotApplicable);
    for code in [400, 409, 422, 429, 500, 503] {
        assert_eq!(judge(status(code, "busy")).outcome, Outcome::Inconclusive, "{code}");
    }
}

#[test]
fn a_failed_preparation_decides_and_a_failed_look_does_not_hide_a_refusal() {
    let judge = |codes: [u16; 3]| {
        let answers = codes.map(|code| status(code, "m"));
        attack(PREPARED, "[{step: 3, accepted: true}]").judge(&answers).outcome
    };
    assert_eq!(judge([404, 200, 404]), Outcome::NotApplicable);
    assert_eq!(judge([403, 200, 404]), Outcome::Inconclusive);
    assert_eq!(judge([200, 403, 404]), Outcome::Blocked);
    assert_eq!(judge([200, 200, 404]), Outcome::Blocked);
    assert_eq!(judge([200, 200, 500]), Outcome::Inconclusive);
    let unsent = attack(PREPARED, "[{step: 3, accepted: true}]").judge(&[status(200, "m")]);
    assert_eq!(unsent.outcome, Outcome::Inconclusive);
}

#[test]
fn an_authorized_request_may_fail_for_other_reasons() {
    let judge = |answer| attack(ONE, "[{step: 1, authorized: true}]").judge(&[answer]).outcome;
    assert_eq!(judge(status(400, "pod a does not have a host assigned")), Outcome::Succeeded);
    assert_eq!(judge(status(404, "pods \\\"absent\\\" not found")), Outcome::Succeeded);
    assert_eq!(judge(status(403, "no")), Outcome::Blocked);
}

#[test]
fn a_review_decides_without_a_request() {
    let judge = |body| attack(ONE, "[{step: 1, accepted: true}]").judge_verify(&[response(201, body)]);
    assert_eq!(judge(r#"{"status":{"allowed":true}}"#).outcome, Outcome::Succeeded);
    let refused = judge(r#"{"status":{"allowed":false}}"#);
    assert_eq!((refused.outcome, refused.detail.as_str()), (Outcome::Blocked, "no grant allows it"));
}

#[test]
fn a_judgement_quotes_nothing_but_status_messages() {
    for answer in [response(500, r#"{"kind":"Secret","message":"marker"}"#), response(200, "marker")] {
        let judgement = attack(ONE, "[{step: 1, at: /x, equals: y}]").judge(&[answer]);
        assert!(!judgement.detail.contains("marker"), "{judgement:?}");
    }
}
