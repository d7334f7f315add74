use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::load::tests::{gaps, lines, load, load_one};
use crate::{Loader, OpenSecret, SecretValues, Snapshot};

fn pod(spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "a", "uid": "1"}, "spec": spec})
}

fn pod_line(object: &Value) -> String {
    lines(&load_one(object)).join("\n")
}

#[test]
fn each_way_in_which_a_pod_takes_a_secret_in_is_found() {
    let volume = |kind: &str, source: Value| json!({"volumes": [{"name": "v", kind: source}]});
    let container = |container: Value| json!({"containers": [container]});
    let cases = [
        volume("secret", json!({"secretName": "x", "items": []})),
        volume("projected", json!({"sources": [{"configMap": {"name": "no"}}, {"secret": {"name": "x"}}]})),
        volume("csi", json!({"driver": "d", "nodePublishSecretRef": {"name": "x"}})),
        volume("azureFile", json!({"secretName": "x", "shareName": "s"})),
        volume("cephfs", json!({"monitors": [], "secretRef": {"name": "x"}})),
        volume("rbd", json!({"image": "i", "secretRef": {"name": "x"}})),
        volume("iscsi", json!({"iqn": "q", "secretRef": {"name": "x"}})),
        volume("flexVolume", json!({"driver": "d", "secretRef": {"name": "x"}})),
        volume("scaleIO", json!({"system": "s", "secretRef": {"name": "x"}})),
        volume("storageos", json!({"secretRef": {"name": "x"}})),
        volume("cinder", json!({"secretRef": {"name": "x"}})),
        volume("ofTheFuture", json!({"secretRef": {"name": "x"}})),
        json!({"imagePullSecrets": [{"name": "x"}, {}]}),
        container(json!({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "x", "key": "k"}}}]})),
        container(json!({"envFrom": [{"configMapRef": {"name": "no"}}, {"secretRef": {"name": "x"}}]})),
        json!({"initContainers": [{"envFrom": [{"secretRef": {"name": "x"}}]}]}),
        json!({"ephemeralContainers": [{"envFrom": [{"secretRef": {"name": "x"}}]}]}),
    ];
    for spec in cases {
        assert_eq!(pod_line(&pod(spec.clone())), "pod a/p default - [x]", "{spec}");
    }
    let none = [
        volume("configMap", json!({"name": "no"})),
        volume("persistentVolumeClaim", json!({"claimName": "no"})),
        volume("secret", Value::Null),
        container(json!({"env": [{"name": "A", "value": "no"}, {"name": "B", "valueFrom": null}]})),
        json!({"volumes": null, "containers": null}),
        Value::Null,
    ];
    for spec in none {
        assert_eq!(pod_line(&pod(spec.clone())), "pod a/p default - []", "{spec}");
    }
}

#[test]
fn a_secret_taken_in_twice_is_named_once_in_order() {
    let spec = json!({
        "imagePullSecrets": [{"name": "pull"}],
        "volumes": [{"name": "v", "secret": {"secretName": "b"}}],
        "containers": [{"envFrom": [{"secretRef": {"name": "pull"}}, {"secretRef": {"name": "c"}}]}],
    });
    assert_eq!(pod_line(&pod(spec)), "pod a/p default - [pull,b,c]");
}

#[test]
fn a_pod_that_can_take_its_node_over_is_privileged() {
    let context = |context: Value| json!({"containers": [{"securityContext": context}]});
    let taking = [
        context(json!({"privileged": true})),
        json!({"initContainers": [{"securityContext": {"privileged": true}}]}),
        json!({"ephemeralContainers": [{"securityContext": {"privileged": true}}]}),
        json!({"hostPID": true}),
        json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}),
        context(json!({"capabilities": {"add": ["NET_BIND_SERVICE", "SYS_ADMIN"]}})),
        context(json!({"capabilities": {"add": ["CAP_SYS_PTRACE"]}})),
        context(json!({"capabilities": {"add": ["all"]}})),
        json!({"securityContext": {"windowsOptions": {"hostProcess": true}}}),
    ];
    for spec in taking {
        assert_eq!(pod_line(&pod(spec.clone())), "pod a/p default - [] privileged", "{spec}");
    }
    let harmless = [
        context(json!({"privileged": false, "capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]}})),
        context(json!({"privileged": null, "capabilities": null, "windowsOptions": {}})),
        json!({"hostNetwork": true, "hostIPC": true}),
        json!({"volumes": [{"name": "v", "hostPath": null}]}),
    ];
    for spec in harmless {
        assert_eq!(pod_line(&pod(spec.clone())), "pod a/p default - []", "{spec}");
    }
}

#[test]
fn a_token_is_mounted_as_the_api_server_left_it_or_would_make_it() {
    let projected = |token: Value| json!({"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": token}]}}]});
    let admitted = |spec: Value| pod_line(&pod(spec)).ends_with(" token");
    assert!(admitted(projected(json!({"path": "token"}))));
    assert!(admitted(projected(json!({"path": "token", "audience": "https://kubernetes.default.svc"}))));
    assert!(!admitted(projected(json!({"path": "token", "audience": "sts.amazonaws.com"}))));
    assert!(!admitted(json!({})), "an admitted pod without the volume has none");
    assert!(!admitted(json!({"automountServiceAccountToken": true})));

    let written = |automount: Value, account: Value| {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "a"},
            "spec": {"automountServiceAccountToken": automount}});
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": "a"}, "automountServiceAccountToken": account});
        lines(&load("f.json", format!("{pod}{account}"))).last().unwrap().ends_with(" token")
    };
    assert!(written(Value::Null, Value::Null));
    assert!(written(true.into(), false.into()));
    assert!(!written(false.into(), Value::Null));
    assert!(!written(Value::Null, false.into()));
}

#[test]
fn a_pod_says_whose_it_is_and_where_it_runs() {
    assert_eq!(
        pod_line(&pod(json!({"serviceAccountName": "s", "serviceAccount": "old", "nodeName": "n"}))),
        "pod a/p s n []"
    );
    assert_eq!(pod_line(&pod(json!({"serviceAccount": "old", "nodeName": ""}))), "pod a/p old - []");
}

#[test]
fn a_pod_that_has_ended_is_left_out_and_counted() {
    for (phase, left) in [("Running", 1), ("Pending", 1), ("Unknown", 1), ("Succeeded", 0), ("Failed", 0)] {
        let mut object = pod(json!({}));
        object["status"] = json!({"phase": phase, "conditions": [{"type": "Ready"}]});
        assert_eq!(load_one(&object).clusters[0].pods.len(), left, "{phase}");
    }
}

fn binding(kind: &str, subjects: Value) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
        "metadata": {"name": "b", "namespace": if kind == "RoleBinding" { "a" } else { "" }},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
        "subjects": subjects})
}

#[test]
fn subjects_are_told_apart_as_the_api_server_does() {
    let cases = [
        (json!({"kind": "User", "name": "u"}), "u:u"),
        (json!({"kind": "Group", "name": "system:masters"}), "g:system:masters"),
        (json!({"kind": "ServiceAccount", "name": "s", "namespace": "b"}), "sa:b/s"),
        (json!({"kind": "ServiceAccount", "name": "s"}), "sa:a/s"),
        (json!({"kind": "User", "name": "system:serviceaccount:b:s"}), "sa:b/s"),
        (json!({"kind": "User", "name": "system:serviceaccount:b"}), "u:system:serviceaccount:b"),
        (json!({"kind": "User", "name": "system:serviceaccount:b:s:x"}), "u:system:serviceaccount:b:s:x"),
        (json!({"kind": "Group", "name": "system:serviceaccount:b:s"}), "g:system:serviceaccount:b:s"),
    ];
    for (subject, expected) in cases {
        let snapshot = load_one(&binding("RoleBinding", json!([subject])));
        assert_eq!(lines(&snapshot), [format!("binding a/b ClusterRole r {expected}")]);
    }
    assert_eq!(lines(&load_one(&binding("ClusterRoleBinding", Value::Null))), ["binding -/b ClusterRole r "]);
}

#[test]
fn a_subject_that_cannot_be_is_a_gap_and_the_others_stay() {
    let cases = [
        (json!({"kind": "ServiceAccount", "name": "s"}), "a ServiceAccount without a namespace"),
        (json!({"kind": "Robot", "name": "s"}), "none of User, Group and ServiceAccount"),
        (json!({"kind": "User"}), "has no name"),
    ];
    for (subject, why) in cases {
        let other = json!({"kind": "User", "name": "u"});
        let text = binding("ClusterRoleBinding", json!([other, subject])).to_string();
        let snapshot = load("f.json", format!("\n{text}"));
        assert_eq!(lines(&snapshot), ["binding -/b ClusterRole r u:u"]);
        let gaps = gaps(&snapshot);
        assert!(
            gaps[0].starts_with("subject 1 of ClusterRoleBinding b in `f.json`, line 2, byte 1: "),
            "{gaps:?}"
        );
        assert!(gaps[0].contains(why), "{gaps:?}");
    }
}

#[test]
fn a_binding_to_no_role_is_a_gap() {
    for (kind, role, why) in [
        ("ClusterRoleBinding", json!({"kind": "Role", "name": "r"}), "only a RoleBinding can"),
        ("RoleBinding", json!({"kind": "Rule", "name": "r"}), "neither a Role nor a ClusterRole"),
        ("RoleBinding", json!({"kind": "Role"}), "no `roleRef.name`"),
        ("RoleBinding", Value::Null, "neither a Role nor a ClusterRole"),
    ] {
        let mut object = binding(kind, json!([]));
        object["roleRef"] = role;
        let snapshot = load("f.json", object.to_string());
        assert!(lines(&snapshot).is_empty());
        assert!(gaps(&snapshot)[0].contains(why), "{:?}", gaps(&snapshot));
    }
}

#[test]
fn roles_keep_their_rules_and_how_they_aggregate() {
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
    "metadata": {"name": "r", "labels": {"l": "1"}},
    "aggregationRule": {"clusterRoleSelectors": [
        {"matchLabels": {"k": "v"}, "matchExpressions": [{"key": "e", "operator": "In", "values": ["w"]}]},
    ]},
    "rules": [
        {"verbs": ["get"], "apiGroups": ["", "apps"], "resources": ["pods/exec"], "resourceNames": ["n"]},
        {"verbs": ["get"], "nonResourceURLs": ["/x/*"]},
    ]});
    let snapshot = load_one(&role);
    assert_eq!(lines(&snapshot), ["role -/r get|,apps|pods/exec|n| ; get||||/x/*"]);
    let fact = &snapshot.clusters[0].roles[0];
    let name = |symbol| snapshot.symbols.name(symbol);
    assert_eq!(fact.labels.iter().map(|(k, v)| (name(*k), name(*v))).collect::<Vec<_>>(), [("l", "1")]);
    let selector = &fact.aggregation[0];
    assert_eq!((name(selector.labels[0].0), name(selector.labels[0].1)), ("k", "v"));
    let expression = &selector.expressions[0];
    assert_eq!(
        (name(expression.key), name(expression.operator), name(expression.values[0])),
        ("e", "In", "w")
    );
}

#[test]
fn a_role_without_rules_is_a_role() {
    for rules in [Value::Null, json!([])] {
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": rules,
            "aggregationRule": null, "metadata": {"name": "r", "namespace": "a", "labels": null}});
        assert_eq!(lines(&load_one(&role)), ["role a/r "]);
    }
}

#[test]
fn a_secret_keeps_what_says_what_it_is_for() {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": "t", "namespace": "a",
            "annotations": {"kubernetes.io/service-account.name": "s", "other": "1"},
            "labels": {"cluster.x-k8s.io/cluster-name": "wc1", "argocd.argoproj.io/secret-type": "cluster"}}});
    assert_eq!(lines(&load_one(&secret)), ["secret a/t kubernetes.io/service-account-token s wc1 cluster"]);
    let plain = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "t", "namespace": "a"}});
    assert_eq!(lines(&load_one(&plain)), ["secret a/t Opaque - - -"]);
}

#[test]
fn an_account_keeps_its_secrets_and_its_identity_in_a_cloud() {
    for (annotation, value) in [
        ("eks.amazonaws.com/role-arn", "arn:aws:iam::1:role/x"),
        ("azure.workload.identity/client-id", "0-0"),
        ("iam.gke.io/gcp-service-account", "x@y.iam"),
    ] {
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "imagePullSecrets": [{"name": "pull"}],
            "secrets": [{"name": "t"}, {"name": "pull"}],
            "metadata": {"name": "s", "namespace": "a", "annotations": {annotation: value}}});
        assert_eq!(lines(&load_one(&account)), [format!("account a/s [pull,t] {value}")]);
    }
}

#[test]
fn the_version_is_that_of_control_plane_nodes_or_what_the_server_says() {
    let node = |label: &str, version: &str| {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {label: ""}},
            "status": {"nodeInfo": {"kubeletVersion": version}}})
    };
    let minor = |object: &Value| load_one(object).clusters[0].minor;
    assert_eq!(minor(&node("node-role.kubernetes.io/control-plane", "v1.34.2+k3s1")), Some(34));
    assert_eq!(minor(&node("node-role.kubernetes.io/master", "v1.22.0")), Some(22));
    assert_eq!(minor(&node("worker", "v1.34.2")), None);
    assert_eq!(minor(&json!({"major": "1", "minor": "36", "gitVersion": "v1.36.3"})), Some(36));
    assert_eq!(
        minor(
            &json!({"clientVersion": {"gitVersion": "v1.30.0"}, "serverVersion": {"gitVersion": "v1.35.1-eks"}})
        ),
        Some(35)
    );
    assert_eq!(lines(&load_one(&node("node-role.kubernetes.io/control-plane", ""))), ["node n true"]);
}

#[test]
fn what_names_no_namespace_is_taken_for_default_and_told() {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "s"}});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}});
    let text = format!("{account}{deployment}");
    let snapshot = load("f.json", &text);
    assert_eq!(lines(&snapshot)[0], "account default/s [] -");
    assert_eq!(snapshot.gaps[0].what, "the namespace of 2 objects in `f.json`");

    let mut snapshot = Snapshot::default();
    let mut loader = Loader::new(&mut snapshot, None).default_namespace("org-a");
    loader.source("f.json");
    loader.load(text.as_bytes()).unwrap();
    loader.finish();
    assert_eq!(lines(&snapshot)[0], "account org-a/s [] -");
    assert!(lines(&snapshot)[1].starts_with("object apps/v1 Deployment org-a/d "));
    assert_eq!(snapshot.gaps, []);
}

#[test]
fn what_is_wrong_is_told_with_its_name_and_place() {
    let good = pod(json!({}));
    let bad = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","namespace":"b"},"spec":{"hostPID":"yes"}}"#;
    let snapshot = load("d/f.json", format!("{good}\n{bad}\n{}", pod(json!({"nodeName": "n"}))));
    assert_eq!(snapshot.clusters[0].pods.len(), 1);
    let offset = good.to_string().len() + 1 + bad.find("\"yes\"").unwrap() + 4;
    assert_eq!(
        gaps(&snapshot)[0],
        format!(
            "Pod b/x in `d/f.json`, line 2, byte {offset}: it has a value of the wrong type and is left out; dump or \
             write it again"
        )
    );
}

#[test]
fn an_object_without_a_name_or_kind_is_a_gap() {
    let cases = [
        (
            json!({"apiVersion": "v1", "kind": "Pod", "spec": {}}),
            "Pod in `f.json`, line 1, byte 0: it has no `metadata.name`",
        ),
        (json!({"apiVersion": "v1", "kind": "Pod", "metadata": null}), "it has no `metadata.name`"),
        (json!({"apiVersion": "bailey.dev/v1", "kind": "Tenant"}), "it has no `metadata.name`"),
        (json!({"metadata": {"name": "x"}}), "does not say its `kind`"),
        (json!({}), "does not say its `kind`"),
    ];
    for (object, expected) in cases {
        let gaps = gaps(&load("f.json", object.to_string()));
        assert!(gaps.len() == 1 && gaps[0].contains(expected), "{gaps:?}");
    }
}

#[test]
fn other_objects_are_kept_in_the_shape_of_their_kind() {
    let kept = |object: Value| {
        let snapshot = load_one(&object);
        snapshot.clusters[0].objects.first().map(|object| object.body.clone())
    };
    let named = |api_version: &str, kind: &str, name: &str| {
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "a"},
            "spec": {"x": 1}, "status": {"y": 2}, "data": {"z": "3"}})
    };
    let existence = |object: &Value| {
        let mut object = object.clone();
        for field in ["spec", "status", "data"] {
            object.as_object_mut().unwrap().remove(field);
        }
        object
    };
    let whole = named("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "k");
    assert_eq!(kept(whole.clone()), Some(whole));
    let application = named("argoproj.io/v1alpha1", "Application", "k");
    let mut expected = application.clone();
    expected.as_object_mut().unwrap().remove("status");
    assert_eq!(kept(application), Some(expected));
    let trusted = named("v1", "ConfigMap", "aws-auth");
    let mut expected = existence(&trusted);
    expected["data"] = json!({});
    assert_eq!(kept(trusted), Some(expected));
    let settings = |name: &str, data: Value| {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "cd"}, "data": data});
        kept(map).map(|map| map["data"].clone())
    };
    let set = json!({"application.namespaces": "team-*", "password": "hidden"});
    assert_eq!(settings("params", set), Some(json!({"application.namespaces": "team-*"})));
    assert_eq!(settings("params", json!({"password": "application.namespaces"})), None);
    assert_eq!(settings("argocd-cm", json!({"dex.config": "hidden"})), Some(json!({})));
    assert_eq!(settings("argocd-cm", Value::Null), Some(json!({})), "nothing is set, which is not unknown");
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "aws-auth"},
        "metadata": {"name": "c", "namespace": "a"}});
    assert_eq!(kept(other), None);
    assert_eq!(kept(named("v1", "Service", "s")), None);
    assert_eq!(kept(named("example.com/v1", "Thing", "t")), None);
    let managed = json!({"apiVersion": "s3.aws.upbound.io/v1", "kind": "Bucket", "metadata": {"name": "b"},
        "spec": {"providerConfigRef": {"name": "p"}, "forProvider": {}}});
    assert_eq!(kept(managed).unwrap()["spec"], json!({"providerConfigRef": {"name": "p"}}));
    let mentioned = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "b"},
        "spec": {"template": {"providerConfigRef": {}}}});
    assert_eq!(kept(mentioned), None);
    let volume = |spec: Value| json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": spec});
    assert!(kept(volume(json!({"hostPath": {"path": "/"}, "capacity": {}}))).is_some());
    assert!(kept(volume(json!({"csi": {"driver": "hostPath"}}))).is_none());
}

#[test]
fn an_item_of_a_typed_list_is_kept_with_its_kind() {
    let list = json!({"kind": "GitRepositoryList", "apiVersion": "source.toolkit.fluxcd.io/v1", "metadata": {},
        "items": [{"metadata": {"name": "g", "namespace": "a"}}]});
    let snapshot = load_one(&list);
    let object = &snapshot.clusters[0].objects[0];
    assert_eq!((object.group(), object.kind.as_str()), ("source.toolkit.fluxcd.io", "GitRepository"));
    assert_eq!(object.text("/kind"), Some("GitRepository"));
    assert_eq!(object.text("/apiVersion"), Some("source.toolkit.fluxcd.io/v1"));
}

/// Takes everything down.
#[derive(Default)]
struct Notes(Vec<(String, BTreeMap<String, String>)>);

impl SecretValues for Notes {
    fn secret(&mut self, secret: &OpenSecret<'_>) {
        let data = secret.data.iter();
        let data = data.map(|(key, value)| (key.clone(), String::from_utf8_lossy(value).into_owned()));
        let OpenSecret { cluster, namespace, name, kind, .. } = secret;
        self.0.push((format!("{} {namespace}/{name} {kind}", cluster.unwrap_or("-")), data.collect()));
    }
}

#[test]
fn values_of_secrets_are_handed_over_only_to_who_asks() {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "a"},
        "type": "Opaque", "data": {"a": "aGVs\nbG8=", "b": "b2xk", "c": null, "d": "!"}, "stringData": {"b": "new"}});
    for text in [secret.to_string(), serde_saphyr::to_string(&secret).unwrap()] {
        let mut notes = Notes::default();
        let mut snapshot = Snapshot::default();
        let mut loader = Loader::new(&mut snapshot, Some("mc")).open_secrets(&mut notes);
        loader.source("f");
        loader.load(text.as_bytes()).unwrap();
        loader.finish();
        let data = [("a", "hello"), ("b", "new"), ("c", "")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(notes.0, [("mc a/s Opaque".to_owned(), BTreeMap::from(data))]);
        assert_eq!(lines(&snapshot), ["secret a/s Opaque - - -"]);
        let gaps = gaps(&snapshot);
        assert!(gaps.len() == 1 && gaps[0].starts_with("key `d` of Secret a/s in `f`"), "{gaps:?}");
    }
}
