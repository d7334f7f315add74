use bailey_api::Enforcement;

use super::super::ShownProblem;
use super::super::load::Unknown;
use super::*;
use crate::Exit;

fn change(action: Action, kind: &'static str, name: &str) -> Change {
    Change { action, kind, namespace: None, name: name.to_owned(), tenant: None, diff: None, note: None }
}

fn finding(tenant: Option<&str>, kind: FindingKind, object: &str) -> Finding {
    Finding {
        tenant: tenant.map(str::to_owned),
        kind,
        object: object.to_owned(),
        rail: None,
        message: "it does what it should not, and this line is long enough to need a second one".to_owned(),
        remedy: Some("do this instead of that, which this line says at some length as well".to_owned()),
    }
}

fn plan() -> Plan {
    let diff = "--- live\n+++ planned\n@@ -1 +1 @@\n-a: 1\n+a: 2\n".to_owned();
    Plan {
        schema: "bailey.plan/v1",
        complete: false,
        enforcement: Enforcement::Audit,
        tenants: 1,
        problems: vec![ShownProblem {
            tenant: "gamma".to_owned(),
            field: "spec.namespaces",
            message: "namespace `org-beta` belongs to tenant `beta`; remove it from one of the two"
                .to_owned(),
        }],
        changes: vec![
            change(Action::Create, "ClusterRole", "bailey:scoped"),
            Change { diff: Some(diff), ..change(Action::Update, "Boundary", "installation") },
            Change {
                namespace: Some("old".to_owned()),
                ..change(Action::Remove, "RoleBinding", "bailey:viewers")
            },
            change(Action::Release, "Namespace", "old"),
        ],
        unchanged: 3,
        enforce: Some(Readiness {
            findings: vec![
                finding(None, FindingKind::UnlistedPrincipal, "user:ci"),
                finding(Some("acme"), FindingKind::Refused, "HelmRelease org-acme/loki"),
            ],
            notes: vec![finding(Some("acme"), FindingKind::Refused, "HelmRelease org-acme/fine")],
        }),
        unknown: vec![Unknown { what: "rolebindings".to_owned(), why: "GET /apis: forbidden".to_owned() }],
    }
}

#[test]
fn a_plan_is_shown_in_each_form() {
    let narrow = Screen { color: false, width: Some(80) };
    insta::assert_snapshot!(render(&plan(), Format::Table, false, &narrow).unwrap());
    insta::assert_snapshot!(render(&plan(), Format::Markdown, false, &narrow).unwrap());
    insta::assert_snapshot!(render(&plan(), Format::Name, false, &narrow).unwrap());
    insta::assert_snapshot!(render(&plan(), Format::Json, false, &narrow).unwrap());
}

#[test]
fn the_exit_code_says_whether_there_is_a_difference_and_whether_all_was_read() {
    let nothing = || Plan {
        complete: true,
        problems: vec![],
        changes: vec![],
        enforce: None,
        unknown: vec![],
        ..plan()
    };
    assert_eq!(nothing().exit(), Exit::Clean);
    assert_eq!(Plan { complete: true, ..plan() }.exit(), Exit::Findings);
    assert_eq!(Plan { enforce: plan().enforce, ..nothing() }.exit(), Exit::Findings);
    assert_eq!(Plan { complete: false, ..nothing() }.exit(), Exit::Incomplete);
    assert_eq!(plan().exit(), Exit::Incomplete);
}
