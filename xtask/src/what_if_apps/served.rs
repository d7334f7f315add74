//! What the API server of a management cluster serves, and the default roles that apps bind, from Kubernetes 1.36.

use bailey_guardrails::{Discovery, Resource, ResourceScope};
use serde_json::{Value, json};

use super::app::{list, text};

/// Namespaced and cluster-scoped plurals by group, subresources included.
const BUILT_IN: [(&str, &str, &str); 17] = [
    (
        "",
        "bindings configmaps endpoints events limitranges persistentvolumeclaims persistentvolumeclaims/status pods \
         pods/attach pods/binding pods/ephemeralcontainers pods/eviction pods/exec pods/log pods/portforward pods/proxy \
         pods/status podtemplates replicationcontrollers replicationcontrollers/scale replicationcontrollers/status \
         resourcequotas resourcequotas/status secrets serviceaccounts serviceaccounts/token services services/proxy \
         services/status",
        "namespaces namespaces/finalize namespaces/status nodes nodes/metrics nodes/proxy nodes/stats nodes/status \
         persistentvolumes persistentvolumes/status",
    ),
    (
        "apps",
        "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets \
         replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status",
        "",
    ),
    ("batch", "cronjobs cronjobs/status jobs jobs/status", ""),
    ("autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status", ""),
    ("policy", "poddisruptionbudgets poddisruptionbudgets/status", ""),
    ("networking.k8s.io", "ingresses ingresses/status networkpolicies", "ingressclasses"),
    ("discovery.k8s.io", "endpointslices", ""),
    ("coordination.k8s.io", "leases", ""),
    ("events.k8s.io", "events", ""),
    ("rbac.authorization.k8s.io", "roles rolebindings", "clusterroles clusterrolebindings"),
    ("storage.k8s.io", "csistoragecapacities", "csidrivers csinodes storageclasses volumeattachments"),
    ("apiextensions.k8s.io", "", "customresourcedefinitions customresourcedefinitions/status"),
    ("apiregistration.k8s.io", "", "apiservices apiservices/status"),
    (
        "admissionregistration.k8s.io",
        "",
        "mutatingadmissionpolicies mutatingadmissionpolicybindings mutatingwebhookconfigurations \
         validatingadmissionpolicies validatingadmissionpolicybindings validatingwebhookconfigurations",
    ),
    (
        "certificates.k8s.io",
        "",
        "certificatesigningrequests certificatesigningrequests/approval certificatesigningrequests/status",
    ),
    ("authentication.k8s.io", "", "tokenreviews selfsubjectreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews", "subjectaccessreviews selfsubjectaccessreviews"),
];
/// Verbs are those of an object's life; more than a server has is granted rather than less.
const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// What a server serves with these definitions.
pub fn discovery<'a>(crds: impl Iterator<Item = &'a Value>) -> Discovery {
    let resource = |group: &str, name: &str, scope| Resource {
        group: group.to_owned(),
        name: name.to_owned(),
        scope,
        verbs: VERBS.map(str::to_owned).to_vec(),
    };
    let mut resources = Vec::new();
    for (group, namespaced, cluster) in BUILT_IN {
        for (names, scope) in [(namespaced, ResourceScope::Namespaced), (cluster, ResourceScope::Cluster)] {
            resources.extend(names.split_whitespace().map(|name| resource(group, name, scope)));
        }
    }
    for crd in crds {
        let (group, plural) = (text(crd, "/spec/group"), text(crd, "/spec/names/plural"));
        let scope = match text(crd, "/spec/scope") {
            "Cluster" => ResourceScope::Cluster,
            _ => ResourceScope::Namespaced,
        };
        resources.push(resource(group, plural, scope));
        // Status and scale of any version; the stubs of the fixture have none.
        for part in ["status", "scale"] {
            let has = list(crd, "/spec/versions")
                .any(|version| version.pointer(&format!("/subresources/{part}")).is_some());
            resources.extend(has.then(|| resource(group, &format!("{plural}/{part}"), scope)));
        }
    }
    Discovery::new(resources)
}

/// The rules of a default ClusterRole that apps bind (`bootstrappolicy/policy.go`), as far as they matter here.
pub fn role(name: &str) -> Option<Value> {
    let read = ["get", "list", "watch"];
    Some(match name {
        "cluster-admin" => json!([
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
            {"nonResourceURLs": ["*"], "verbs": ["*"]},
        ]),
        "system:auth-delegator" => json!([
            {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
            {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
        ]),
        "view" => json!([
            {"apiGroups": [""], "resources": ["configmaps", "endpoints", "events", "persistentvolumeclaims", "pods", "pods/log",
                "replicationcontrollers", "serviceaccounts", "services", "namespaces"], "verbs": read},
            {"apiGroups": ["apps"], "resources": ["daemonsets", "deployments", "replicasets", "statefulsets"], "verbs": read},
            {"apiGroups": ["batch"], "resources": ["cronjobs", "jobs"], "verbs": read},
            {"apiGroups": ["networking.k8s.io"], "resources": ["ingresses", "networkpolicies"], "verbs": read},
        ]),
        _ => return None,
    })
}
