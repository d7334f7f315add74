//! External Secrets, cert-manager, Crossplane: whose login an object uses.

use super::support::{edges, lines_of};

fn workload(image: &str, args: &str) -> String {
    format!(
        "
apiVersion: apps/v1
kind: Deployment
metadata: {{name: x, namespace: system}}
spec: {{template: {{spec: {{serviceAccountName: own, containers: [{{name: m, image: '{image}', args: [{args}]}}]}}}}}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: team-a, labels: {{stores: 'yes'}}}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: team-b}}
"
    )
}

fn store(conditions: &str, account: &str) -> String {
    workload("ghcr.io/external-secrets/external-secrets:v2", "--concurrent=1")
        + &format!(
            "---
apiVersion: external-secrets.io/v1
kind: ClusterSecretStore
metadata: {{name: vault}}
spec: {{{conditions}provider: {{kubernetes: {{remoteNamespace: secrets, auth: {{serviceAccount: {{{account}}}}}}}}}}}
"
        )
}

const READER: &str = "name: reader, namespace: secrets";
const MAY_READ: &str = "---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: secrets}
rules: [{apiGroups: [''], resources: [secrets], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: secrets}
roleRef: {kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: secrets}]
";

#[test]
fn a_cluster_store_without_conditions_is_for_everybody() {
    let text = store("", READER) + MAY_READ;
    assert_eq!(
        lines_of(&text, "eso-cluster-store"),
        [
            "eso-cluster-store: create externalsecrets.external-secrets.io -> secrets:secrets",
            "eso-cluster-store: patch,update externalsecrets.external-secrets.io -> secrets:secrets",
        ]
    );
}

#[test]
fn conditions_admit_by_label_name_and_expression() {
    for (conditions, places) in [
        ("conditions: [{namespaceSelector: {matchLabels: {stores: 'yes'}}}], ", "team-a"),
        ("conditions: [{namespaces: [team-b]}], ", "team-b"),
        ("conditions: [{namespaceRegexes: ['^team-.$']}], ", "team-a,team-b"),
        (
            "conditions: [{namespaces: [team-b]}, {namespaceSelector: {matchExpressions: [{key: stores, operator: Exists}]}}], ",
            "team-a,team-b",
        ),
    ] {
        let found = lines_of(&(store(conditions, READER) + MAY_READ), "eso-cluster-store");
        assert!(
            !found.is_empty()
                && found.iter().all(|line| line.ends_with(&format!("secrets:secrets in {places}"))),
            "{found:?}"
        );
    }
}

#[test]
fn conditions_that_admit_nobody_give_nothing() {
    let text = store("conditions: [{namespaceSelector: {matchLabels: {stores: 'no'}}}], ", READER) + MAY_READ;
    assert!(lines_of(&text, "eso-cluster-store").is_empty());
}

#[test]
fn a_login_whose_rights_were_not_found_is_assumed() {
    let found = lines_of(&store("", READER), "eso-cluster-store");
    assert!(found.iter().all(|line| line.ends_with("secrets:secrets (assumed)")), "{found:?}");
    assert_eq!(found.len(), 2);
}

#[test]
fn a_cluster_store_that_acts_as_the_account_beside_the_request_gives_nothing_more() {
    assert!(lines_of(&store("", "name: reader"), "eso-cluster-store").is_empty());
}

#[test]
fn switches_of_the_controller_count() {
    let off = store("", READER).replace("--concurrent=1", "--enable-cluster-store-reconciler=false");
    assert!(!edges(&off).contains("eso-cluster-store") && !edges(&off).contains("eso-cluster-store-write"));
    let on = edges(&store("", READER));
    assert!(on.is_superset(
        &["eso-cluster-store", "eso-cluster-store-write", "eso-store-account", "eso-push-secret"].into()
    ));
}

#[test]
fn a_controller_of_one_namespace_serves_that_only() {
    let scoped = store("", READER).replace("--concurrent=1", "--namespace=team-a");
    let found = lines_of(&scoped, "eso-cluster-store");
    assert!(!found.is_empty() && found.iter().all(|line| line.ends_with(" in team-a")), "{found:?}");
    let found = lines_of(&scoped, "eso-store-account");
    assert!(!found.is_empty() && found.iter().all(|line| line.ends_with("accounts in team-a")), "{found:?}");
}

#[test]
fn webhook_and_certificate_processes_are_not_the_controller() {
    for other in ["webhook", "certcontroller"] {
        let text = workload("ghcr.io/external-secrets/external-secrets:v2", other);
        assert!(!edges(&text).contains("eso-store-account"), "{other}");
    }
}

#[test]
fn a_store_of_a_namespace_serves_its_namespace() {
    let text = workload("ghcr.io/external-secrets/external-secrets:v2", "")
        + MAY_READ
        + "---
apiVersion: external-secrets.io/v1
kind: SecretStore
metadata: {name: other, namespace: secrets}
spec: {provider: {kubernetes: {remoteNamespace: secrets, auth: {serviceAccount: {name: reader}}}}}
";
    let found = lines_of(&text, "eso-store");
    assert!(
        found.contains(
            &"eso-store: create externalsecrets.external-secrets.io -> secrets:secrets in secrets".to_owned()
        ),
        "{found:?}"
    );
}

#[test]
fn a_cloud_store_is_the_identity_that_it_logs_in_as() {
    let text = workload("ghcr.io/external-secrets/external-secrets:v2", "")
        + "---
apiVersion: external-secrets.io/v1
kind: ClusterSecretStore
metadata: {name: aws}
spec: {provider: {aws: {service: SecretsManager, role: 'arn:aws:iam::111111111111:role/secrets'}}}
";
    let found = lines_of(&text, "eso-cluster-store");
    assert!(
        found.iter().all(|line| line.ends_with("cloud:arn:aws:iam::111111111111:role/secrets")),
        "{found:?}"
    );
    assert_eq!(found.len(), 2);
}

#[test]
fn an_issuer_reads_its_namespace_and_a_cluster_issuer_the_resource_namespace() {
    let image = "quay.io/jetstack/cert-manager-controller:v1.21.2";
    let text = workload(image, "'--cluster-resource-namespace=$(POD_NAMESPACE)'").replace(
        "args:",
        "env: [{name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}], args:",
    );
    assert!(lines_of(&text, "cert-manager-issuer").iter().all(|line| line.ends_with("-> secrets")));
    let found = lines_of(&text, "cert-manager-cluster-issuer");
    assert!(found.contains(&"cert-manager-cluster-issuer: create clusterissuers.cert-manager.io everywhere -> secrets:system".to_owned()), "{found:?}");
    let default = lines_of(&workload(image, ""), "cert-manager-cluster-issuer");
    assert!(default[0].ends_with("secrets:kube-system"), "{default:?}");
    assert!(lines_of(&workload(image, "--namespace=x"), "cert-manager-cluster-issuer").is_empty());
}

#[test]
fn an_authority_of_the_cluster_makes_a_finding_only() {
    let text = workload("quay.io/jetstack/cert-manager-controller:v1.21.2", "")
        + "---
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: ca}
spec: {ca: {secretName: root}}
---
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: acme}
spec: {acme: {}}
";
    let found = lines_of(&text, "cert-manager-ca");
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|line| line.contains("-> nothing")));
}

fn provider(config: &str) -> String {
    workload("xpkg.upbound.io/crossplane-contrib/provider-kubernetes:v0.18.0", "")
        + &format!(
            "---
apiVersion: kubernetes.crossplane.io/v1alpha1
kind: ProviderConfig
metadata: {{name: default}}
spec: {{credentials: {config}}}
"
        )
}

#[test]
fn an_object_acts_as_the_provider_where_its_identity_is_injected() {
    let found = lines_of(&provider("{source: InjectedIdentity}"), "crossplane-object");
    let (of_cluster, of_namespaces): (Vec<&String>, Vec<&String>) =
        found.iter().partition(|line| line.contains("kubernetes.crossplane.io"));
    assert!(of_namespaces.iter().all(|line| line.ends_with("(assumed)")), "no config of theirs was loaded");
    assert_eq!(
        of_cluster,
        [
            "crossplane-object: create objects.kubernetes.crossplane.io everywhere -> sa:system/own",
            "crossplane-object: patch,update objects.kubernetes.crossplane.io everywhere -> sa:system/own",
        ]
    );
}

#[test]
fn an_object_acts_in_the_cluster_of_a_kubeconfig() {
    let found = lines_of(
        &provider("{source: Secret, secretRef: {namespace: org-acme, name: prod-kubeconfig, key: value}}"),
        "crossplane-object",
    );
    assert!(
        found.contains(
            &"crossplane-object: create objects.kubernetes.crossplane.io everywhere -> cluster:org-acme/prod"
                .to_owned()
        ),
        "{found:?}"
    );
    assert!(found.iter().any(|line| line.ends_with("sa:system/own (assumed)")), "references: {found:?}");
}

#[test]
fn who_writes_provider_configs_too_acts_as_the_provider_and_with_any_kubeconfig() {
    let text = provider("{source: InjectedIdentity}")
        + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: prod-kubeconfig, namespace: org-acme}\ntype: cluster.x-k8s.io/secret\n";
    let found = lines_of(&text, "crossplane-provider-config");
    let with = "and create,patch,update objects.kubernetes.crossplane.io everywhere";
    for gift in ["sa:system/own", "cluster:org-acme/prod"] {
        assert!(found.iter().any(|line| line.contains(with) && line.ends_with(gift)), "{gift}: {found:#?}");
    }
}

#[test]
fn managed_resources_act_as_the_cloud_identity_of_their_config() {
    let text = workload("registry.example/crossplane/crossplane:v2", "core, start")
        + "---
apiVersion: aws.upbound.io/v1beta1
kind: ProviderConfig
metadata: {name: default}
spec: {credentials: {source: IRSA}, assumeRoleChain: [{roleARN: 'arn:aws:iam::1:role/x'}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: tenant}
rules: [{apiGroups: [s3.aws.upbound.io], resources: [buckets], verbs: ['*']}]
";
    assert_eq!(
        lines_of(&text, "crossplane-managed-resource"),
        [
            "crossplane-managed-resource: create,patch,update buckets.s3.aws.upbound.io everywhere -> cloud:arn:aws:iam::1:role/x"
        ]
    );
    assert!(edges(&text).is_superset(&["crossplane-composition", "crossplane-package"].into()));
}
