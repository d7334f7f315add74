use serde_json::json;

use super::*;

fn cache(spec: Value) -> ImageCache {
    serde_json::from_value(json!({
        "apiVersion": "bailey.dev/v1alpha1", "kind": "ImageCache",
        "metadata": { "name": "images", "namespace": "bailey-system", "uid": "u" }, "spec": spec,
    }))
    .unwrap()
}

fn full() -> Value {
    json!({
        "replicas": 2,
        "storage": { "size": "200Gi", "storageClass": "fast" },
        "upstreams": [
            { "name": "docker.io", "dockerConfigSecret": "docker-hub" },
            {
                "name": "registry.example:5000", "url": "https://registry.example:5000",
                "basicAuth": { "username": "cache", "passwordSecret": "registry" },
                "caConfigMap": "registry-ca", "realms": ["login.example"], "privateHosts": ["objects.example"],
            },
        ],
        "defaultUpstream": "docker.io",
        "freshness": {
            "tags": "30s", "staleIfError": "7d", "gone": "Follow",
            "rules": [{ "images": "registry.example:5000/acme/*", "tags": "edge-*", "fresh": "10s" }],
        },
        "pins": ["sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
        "bootstrap": ["registry.example:5000/platform/dns:1"], "pinPlatforms": ["linux/arm64"],
        "tls": { "secret": "images-tls", "clientCertificates": true },
        "clients": ["10.0.0.0/8"],
        "workloadClusters": {
            "parent": "https://images.example:5000", "parentCaConfigMap": "images-ca",
            "storage": { "size": "50Gi", "budget": "40Gi" },
            "registries": ["docker.io"], "offline": true, "containerd": "2.1",
        },
    })
}

fn find<'a>(objects: &'a [CacheObject], kind: &str) -> &'a Value {
    &objects.iter().find(|object| object.resource.2 == kind).unwrap().content
}

fn text(objects: &[CacheObject]) -> String {
    objects
        .iter()
        .map(|object| format!("---\n{}", serde_saphyr::to_string(&object.content).unwrap()))
        .collect()
}

#[test]
fn the_cache_of_the_management_cluster() {
    let built = management_cache(&cache(full()), Some("registry.example/bailey:1")).unwrap();
    assert_eq!(
        (built.budget.as_str(), built.address.as_str()),
        ("184320MiB", "https://images.bailey-system.svc:5000")
    );
    insta::assert_snapshot!(text(&built.objects));
}

#[test]
fn what_a_workload_cluster_needs() {
    insta::assert_snapshot!(text(
        &workload_manifests(&cache(full()), Some("registry.example/bailey:1"), NodeFiles::Written).unwrap()
    ));
}

#[test]
fn secrets_are_mounted_in_the_management_cluster_and_unknown_in_workload_clusters() {
    let management = management_cache(&cache(full()), Some("b")).unwrap().objects;
    let volumes =
        find(&management, "StatefulSet").pointer("/spec/template/spec/volumes").unwrap().to_string();
    for secret in ["docker-hub", "registry", "images-tls"] {
        assert!(volumes.contains(&format!("\"secretName\":\"{secret}\"")), "{volumes}");
    }
    let workload = text(&workload_manifests(&cache(full()), Some("b"), NodeFiles::Written).unwrap());
    for word in ["docker-hub", "images-tls", "secret", "passwordFile", "registry-ca"] {
        assert!(!workload.contains(word), "{word} is in\n{workload}");
    }
}

#[test]
fn pods_start_again_when_the_configuration_changes_and_only_then() {
    let template = |spec: Value| {
        let objects = management_cache(&cache(spec), Some("b")).unwrap().objects;
        find(&objects, "StatefulSet").pointer("/spec/template").unwrap().clone()
    };
    let (mut fresher, mut more) = (full(), full());
    fresher["freshness"]["tags"] = json!("10s");
    more["replicas"] = json!(5);
    more["clients"] = json!(["10.0.0.0/16"]);
    assert_ne!(template(full()), template(fresher));
    assert_eq!(template(full()), template(more));
}

#[test]
fn what_cannot_be_put_into_effect_is_said_with_the_way_out() {
    let mut elsewhere = cache(full());
    elsewhere.metadata.namespace = Some("default".to_owned());
    assert_eq!(management_cache(&elsewhere, Some("b")), Err(ImageCacheProblem::Namespace));
    assert_eq!(management_cache(&cache(full()), None), Err(ImageCacheProblem::Image));
    let mut small = full();
    small["storage"] = json!({ "size": "200G" });
    let error = management_cache(&cache(small), Some("b")).unwrap_err().to_string();
    assert!(error.contains("spec.storage: `200G`") && error.contains("200Gi"), "{error}");
    let mut alone = full();
    alone.as_object_mut().unwrap().remove("workloadClusters");
    assert_eq!(
        workload_manifests(&cache(alone), Some("b"), NodeFiles::Written),
        Err(ImageCacheProblem::NoWorkloadClusters)
    );
}

#[test]
fn without_a_parent_caches_of_workload_clusters_ask_the_registries() {
    let mut spec = full();
    spec["workloadClusters"].as_object_mut().unwrap().retain(|key, _| !key.starts_with("parent"));
    let objects = workload_manifests(&cache(spec), Some("b"), NodeFiles::Written).unwrap();
    let config = find(&objects, "ConfigMap").pointer("/data/cache.yaml").unwrap().as_str().unwrap();
    assert!(config.contains("https://registry.example:5000") && !config.contains("parent"), "{config}");
}

#[test]
fn files_of_nodes_are_removed_by_the_same_step_that_writes_them() {
    let objects = workload_manifests(&cache(full()), Some("b"), NodeFiles::Removed).unwrap();
    let step =
        find(&objects, "DaemonSet").pointer("/spec/template/spec/initContainers/0/args").unwrap().to_string();
    assert!(
        step.contains("\"--remove\"") && !step.contains("offline") && step.contains("\"docker.io\""),
        "{step}"
    );
}
