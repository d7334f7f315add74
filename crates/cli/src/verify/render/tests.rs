use bailey_api::Enforcement;

use super::super::targets::Shown;
use super::super::{Counts, Tried, Verification};
use super::*;
use crate::Exit;

fn tried(id: &str, outcome: &'static str, by: Option<&str>) -> Tried {
    Tried {
        id: id.to_owned(),
        title: format!("Try {id}"),
        why: "It harms <everybody> & all.".to_owned(),
        source: "a CVE".to_owned(),
        actor: "installer".to_owned(),
        outcome,
        by: by.map(str::to_owned),
        detail: "the answer said so".to_owned(),
    }
}

fn verification() -> Verification {
    let text = str::to_owned;
    Verification {
        schema: "bailey.verify/v1",
        tenant: text("acme"),
        enforcement: Enforcement::Audit,
        targets: Shown {
            installer: text("group:acme-admins"),
            developer: text("none"),
            automation: text("sa:org-acme/automation"),
            tenant_namespace: text("org-acme"),
            app_namespace: text("argocd"),
            platform_namespace: text("monitoring"),
            platform_secret: text("alert-receivers"),
            platform_account: text("agent"),
            platform_pod: text("none"),
            deployer_namespace: text("flux"),
            platform_user: text("pia"),
            platform_cluster_role: text("agent"),
            other_tenant: text("beta"),
            other_namespace: text("org-beta"),
        },
        counts: Counts { blocked: 1, succeeded: 1, not_applicable: 1, inconclusive: 1 },
        attacks: vec![
            tried("crd-bailey-group", "blocked", Some("crds")),
            tried("exec-platform-pod", "not-applicable", None),
            tried("secret-read-patch", "succeeded", None),
            tried("token-platform-account", "inconclusive", None),
        ],
    }
}

#[test]
fn the_table_fits_a_small_terminal() {
    let screen = Screen { color: false, width: Some(80) };
    insta::assert_snapshot!(render(&verification(), Format::Table, &screen).unwrap());
}

#[test]
fn pipelines_get_junit_and_sarif() {
    let screen = Screen { color: false, width: None };
    insta::assert_snapshot!(render(&verification(), Format::Junit, &screen).unwrap());
    let sarif = sarif(&verification());
    let levels: Vec<_> =
        sarif["runs"][0]["results"].as_array().unwrap().iter().map(|r| &r["level"]).collect();
    assert_eq!(levels, ["error", "warning"]);
}

#[test]
fn the_exit_code_says_the_worst() {
    let exit = |blocked, succeeded, not_applicable, inconclusive| {
        let counts = Counts { blocked, succeeded, not_applicable, inconclusive };
        Verification { counts, ..verification() }.exit()
    };
    assert_eq!(exit(5, 0, 1, 0), Exit::Clean);
    assert_eq!(exit(5, 1, 0, 1), Exit::Findings);
    assert_eq!(exit(5, 0, 0, 1), Exit::Incomplete);
    assert_eq!(exit(0, 0, 5, 0), Exit::Incomplete, "nothing tried shows nothing");
}
