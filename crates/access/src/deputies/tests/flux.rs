//! Flux: flags, references, and objects that exist.

use super::support::{edges, line, lines, lines_of, templates};

fn controller(image: &str, args: &str) -> String {
    format!(
        "
apiVersion: apps/v1
kind: Deployment
metadata: {{name: x, namespace: flux}}
spec: {{template: {{spec: {{serviceAccountName: {image}, containers: [
  {{name: manager, image: 'ghcr.io/fluxcd/{image}:v1.9.4', args: [{args}]}}]}}}}}}
"
    )
}

const EXTRAS: &str = "---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: extras, namespace: flux}
spec: {url: 'https://git.acme.example/platform/extras.git'}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: extras, namespace: flux}
spec: {path: ./, sourceRef: {kind: GitRepository, name: extras}}
";
const SOURCE: &str = "source:git.acme.example/platform/extras";

#[test]
fn a_default_service_account_ends_the_controllers_own_rights() {
    let open = controller("kustomize-controller", "");
    let shut = controller("kustomize-controller", "--default-service-account=none");
    assert!(edges(&open).contains("flux-kustomization"));
    assert!(!edges(&shut).contains("flux-kustomization"));
    for text in [open, shut] {
        assert_eq!(
            lines_of(&text, "flux-kustomization-account"),
            [
                "flux-kustomization-account: create kustomizations.kustomize.toolkit.fluxcd.io -> accounts",
                "flux-kustomization-account: patch,update kustomizations.kustomize.toolkit.fluxcd.io -> accounts",
            ]
        );
    }
}

#[test]
fn flags_are_read_in_all_their_forms() {
    for args in
        ["--default-service-account=none", "--default-service-account, none", "-default-service-account=none"]
    {
        assert!(!edges(&controller("helm-controller", args)).contains("flux-helm-release"), "{args}");
    }
    for args in ["", "--default-service-account=", "--default-service-account-of-another=x"] {
        assert!(edges(&controller("helm-controller", args)).contains("flux-helm-release"), "{args}");
    }
}

#[test]
fn the_last_of_two_flags_counts() {
    let args = "--default-service-account=none, --default-service-account=";
    assert!(edges(&controller("helm-controller", args)).contains("flux-helm-release"));
}

#[test]
fn a_flag_from_a_variable_that_is_not_known_makes_it_assumed() {
    let text = controller("helm-controller", "--default-service-account=$(ACCOUNT)")
        .replace("args:", "env: [{name: ACCOUNT}], args:");
    let found = lines_of(&text, "flux-helm-release");
    assert!(found.iter().all(|line| line.ends_with("sa:flux/helm-controller (assumed)")), "{found:?}");
    assert_eq!(found.len(), 2);
    let known = controller("helm-controller", "--default-service-account=$(DEFAULT_SERVICE_ACCOUNT)")
        .replace("args:", "env: [{name: DEFAULT_SERVICE_ACCOUNT, value: none}], args:");
    assert!(lines_of(&known, "flux-helm-release").is_empty());
}

#[test]
fn a_controller_of_one_namespace_acts_there_only() {
    let text = controller("kustomize-controller", "--watch-all-namespaces=false");
    assert!(lines(&text).iter().all(|line| line.ends_with(" in flux")), "{:#?}", lines(&text));
}

#[test]
fn values_and_substitutes_are_read_whatever_the_service_account() {
    let text = controller("helm-controller", "--default-service-account=none");
    assert!(lines_of(&text, "flux-values-from").iter().all(|line| line.ends_with("-> secrets")));
    let text = controller("kustomize-controller", "--default-service-account=none");
    assert!(lines_of(&text, "flux-substitute-from").iter().all(|line| line.ends_with("-> secrets")));
}

#[test]
fn who_decides_what_a_source_delivers_acts_as_the_controller() {
    let text = controller("kustomize-controller", "") + EXTRAS;
    assert_eq!(
        lines_of(&text, "flux-source"),
        [format!("flux-source: {SOURCE} -> sa:flux/kustomize-controller")]
    );
    let object = lines_of(&text, "flux-source-object");
    let change = "patch,update gitrepositories,gitrepositories/status.source.toolkit.fluxcd.io/extras";
    assert_eq!(object, [format!("flux-source-object: {change} -> sa:flux/kustomize-controller in flux")]);
    let (templates, _) = templates(&text);
    let found = templates.iter().find(|template| template.edge == "flux-source").expect("an edge");
    assert!(
        found.evidence.starts_with("Kustomization flux/extras has no serviceAccountName"),
        "{}",
        found.evidence
    );
}

#[test]
fn with_a_service_account_a_source_acts_as_that() {
    let named = EXTRAS.replace("{path: ./,", "{path: ./, serviceAccountName: tenant,");
    let text = controller("kustomize-controller", "") + &named;
    assert_eq!(lines_of(&text, "flux-source"), [format!("flux-source: {SOURCE} -> sa:flux/tenant")]);
    let text = controller("kustomize-controller", "--default-service-account=none") + EXTRAS;
    assert_eq!(lines_of(&text, "flux-source"), [format!("flux-source: {SOURCE} -> sa:flux/none")]);
}

#[test]
fn a_pinned_source_cannot_be_changed_from_outside() {
    let pinned = EXTRAS
        .replace("extras.git'}", "extras.git', ref: {commit: 0123456789abcdef0123456789abcdef01234567}}");
    let text = controller("kustomize-controller", "") + &pinned;
    assert!(lines_of(&text, "flux-source").is_empty());
    assert!(!lines_of(&text, "flux-source-object").is_empty());
}

#[test]
fn a_signed_or_suspended_source_is_assumed() {
    for (from, to) in
        [("extras.git'}", "extras.git', verify: {mode: HEAD}}"), ("{path: ./,", "{path: ./, suspend: true,")]
    {
        let text = controller("kustomize-controller", "") + &EXTRAS.replace(from, to);
        let found = lines_of(&text, "flux-source");
        assert_eq!(found, [format!("flux-source: {SOURCE} -> sa:flux/kustomize-controller (assumed)")]);
    }
}

#[test]
fn references_across_namespaces_end_with_the_flag() {
    let across = EXTRAS.replace(
        "{name: extras, namespace: flux}\nspec: {url",
        "{name: extras, namespace: team}\nspec: {url",
    );
    let across =
        across.replace("GitRepository, name: extras}", "GitRepository, name: extras, namespace: team}");
    let open = controller("kustomize-controller", "") + &across;
    let shut = controller("kustomize-controller", "--no-cross-namespace-refs") + &across;
    assert!(
        edges(&open)
            .is_superset(&["flux-source", "flux-source-object", "flux-cross-namespace-source"].into())
    );
    assert!(
        edges(&shut)
            .is_disjoint(&["flux-source", "flux-source-object", "flux-cross-namespace-source"].into())
    );
}

#[test]
fn includes_of_a_repository_deliver_too() {
    let text = controller("kustomize-controller", "")
        + &EXTRAS.replace("extras.git'}", "extras.git', include: [{repository: {name: shared}}]}")
        + "---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: shared, namespace: flux}
spec: {url: 'ssh://git@ssh.github.com:443/beta/shared.git'}
";
    let found = lines_of(&text, "flux-source");
    assert!(
        found.contains(
            &"flux-source: source:github.com/beta/shared -> sa:flux/kustomize-controller".to_owned()
        ),
        "{found:#?}"
    );
}

const RELEASE: &str = "---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: team}
spec: {type: oci, url: 'oci://registry.example/charts'}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: app, namespace: team}
spec:
  chart: {spec: {chart: app, sourceRef: {kind: HelmRepository, name: charts}}}
  serviceAccountName: installer
  valuesFrom: [{kind: Secret, name: app-values}, {kind: ConfigMap, name: app-values}]
";

#[test]
fn who_decides_what_a_chart_is_gets_the_values() {
    let text = controller("helm-controller", "") + RELEASE;
    let source = "source:oci://registry.example/charts/app";
    assert_eq!(lines_of(&text, "flux-source"), [format!("flux-source: {source} -> sa:team/installer")]);
    assert!(
        lines_of(&text, "flux-values-from")
            .contains(&format!("flux-values-from: {source} -> secret:team/app-values"))
    );
    assert!(!lines(&text).iter().any(|line| line.contains("secret:team/app-values-config")));
}

#[test]
fn a_kubeconfig_makes_it_another_cluster() {
    let remote =
        RELEASE.replace("serviceAccountName: installer", "kubeConfig: {secretRef: {name: prod-kubeconfig}}");
    let text = controller("helm-controller", "") + &remote;
    let source = "source:oci://registry.example/charts/app";
    assert_eq!(lines_of(&text, "flux-source"), [format!("flux-source: {source} -> cluster:team/prod")]);
}

#[test]
fn kubeconfigs_beside_a_release_can_be_used() {
    let text = controller("helm-controller", "")
        + "---
apiVersion: v1
kind: Secret
metadata: {name: prod-kubeconfig, namespace: team}
type: cluster.x-k8s.io/secret
";
    assert_eq!(
        lines_of(&text, "flux-kubeconfig"),
        [
            "flux-kubeconfig: create,patch,update helmreleases.helm.toolkit.fluxcd.io -> cluster:team/prod in team"
        ]
    );
}

#[test]
fn a_config_map_as_kubeconfig_is_assumed_from_its_version_on_and_ends_with_a_flag() {
    let new = controller("kustomize-controller", "");
    let found = lines_of(&new, "flux-kubeconfig-config-map");
    assert!(!found.is_empty() && found.iter().all(|line| line.contains("(assumed)")), "{found:?}");
    let old = new.replace("v1.9.4", "v1.6.1");
    assert!(lines_of(&old, "flux-kubeconfig-config-map").is_empty());
    let shut = controller("kustomize-controller", "--default-kubeconfig-service-account=none");
    assert!(lines_of(&shut, "flux-kubeconfig-config-map").is_empty());
}

#[test]
fn requests_show_admission_the_field_that_matters() {
    let (found, symbols) = templates(&controller("kustomize-controller", ""));
    let edge = found.iter().find(|template| template.edge == "flux-kustomization").expect("an edge");
    let [sample] = edge.samples.as_slice() else { panic!("{}", line(edge, &symbols)) };
    assert_eq!((sample.operation, sample.resource.as_str()), ("CREATE", "kustomizations"));
    assert!(sample.essential.contains(&"/spec/serviceAccountName".to_owned()));
    assert!(sample.object.pointer("/spec/serviceAccountName").is_none());
    assert!(sample.object.pointer("/metadata/namespace").is_some());
    let change = found.iter().find(|t| t.edge == "flux-kustomization" && t.samples[0].operation == "UPDATE");
    let sample = &change.expect("the other half").samples[0];
    assert_eq!(
        sample.old_object.pointer("/spec/serviceAccountName").and_then(|v| v.as_str()),
        Some("sample")
    );
}

#[test]
fn a_resource_set_is_applied_by_flux_operator() {
    let text = controller("flux-operator", "");
    assert!(
        edges(&text).is_superset(&["flux-resource-set", "flux-resource-set-account", "flux-instance"].into())
    );
    assert!(
        !edges(&controller("flux-operator", "--default-service-account=x")).contains("flux-resource-set")
    );
}

#[test]
fn sources_that_act_as_the_same_are_one_edge_with_several_names() {
    let second = EXTRAS.replace("name: extras", "name: more").replace("platform/extras", "platform/more");
    let text = controller("kustomize-controller", "") + EXTRAS + &second;
    let found = lines_of(&text, "flux-source-object");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("/extras,more -> sa:flux/kustomize-controller"), "{found:?}");
    assert_eq!(lines_of(&text, "flux-source").len(), 2);
    let (templates, _) = templates(&text);
    let edge = templates.iter().find(|template| template.edge == "flux-source-object").expect("an edge");
    assert!(
        edge.evidence.contains("flux/extras") && edge.evidence.contains("flux/more"),
        "{}",
        edge.evidence
    );
}
