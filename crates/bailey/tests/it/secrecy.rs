//! No value of a Secret, and nothing else that may be one, gets into anything that the analyser writes.
//!
//! Each place has a marker of its own, so that a leak says where it came from. Snapshots, and what a live cluster is
//! asked for, are looked at in `analyser.rs`.

use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};

use crate::program;

const FORMATS: [&str; 9] = ["table", "wide", "json", "yaml", "name", "sarif", "junit", "markdown", "html"];

/// What is planted: random enough to be taken for a credential.
pub struct Markers(Vec<(String, &'static str)>);

impl Markers {
    /// None yet.
    pub fn new() -> Self {
        Self(Vec::new())
    }

    /// A marker for a place, the same each time.
    pub fn of(&mut self, place: &'static str) -> String {
        if let Some((marker, _)) = self.0.iter().find(|(_, known)| *known == place) {
            return marker.clone();
        }
        let marker = format!("qT7vXz2m{:02}Lw9RkB4hYd5N", self.0.len());
        self.0.push((marker.clone(), place));
        marker
    }

    /// Where the markers come from that are in some bytes, in whichever form.
    pub fn found(&self, bytes: &[u8]) -> Vec<String> {
        let text = String::from_utf8_lossy(bytes);
        let mut found = Vec::new();
        for (marker, place) in &self.0 {
            for (form, needle) in forms(marker) {
                if text.contains(&needle) {
                    found.push(format!("{place} ({form})"));
                }
            }
        }
        found
    }
}

/// A marker as text, in base64 at each of the three offsets, and in hexadecimal.
fn forms(marker: &str) -> Vec<(&'static str, String)> {
    let hex: String = marker.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut forms = vec![("plain", marker.to_owned()), ("hex", hex.to_uppercase()), ("hex", hex)];
    for offset in 0..3 {
        let mut bytes = vec![0; offset];
        bytes.extend(marker.bytes());
        let text = STANDARD.encode(&bytes);
        // Digits that depend on what is beside it are left out.
        let end = bytes.len() * 8 / 6;
        forms.push(("base64", text[(offset * 8).div_ceil(6)..end].to_owned()));
    }
    forms
}

fn base64(text: &str) -> String {
    STANDARD.encode(text)
}

/// The objects of a cluster: everything in it that may hold a credential holds a marker, the first two the same one.
pub fn objects(markers: &mut Markers) -> Vec<Value> {
    let of = |kind: &str, namespace: &str, name: &str, more: Value| {
        let api_version =
            if ["Secret", "ConfigMap", "Pod", "ServiceAccount"].contains(&kind) { "v1" } else { "apps/v1" };
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}});
        merge(&mut object, more);
        object
    };
    let shared = markers.of("data of a Secret");
    let applied = markers.of("last-applied-configuration");
    let annotated = json!({"kubectl.kubernetes.io/last-applied-configuration": json!({"stringData": {"p": applied}}).to_string()});
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "clusters": [{"name": "c", "cluster": {"server": "https://api.one.example"}}],
        "users": [{"name": "u", "user": {"token": markers.of("kubeconfig")}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}], "current-context": "x",
    });
    let registry = markers.of("registry login");
    let docker = json!({"auths": {"registry.example": {"username": "robot", "password": registry, "auth": base64(&format!("robot:{registry}"))}}});
    let container = |markers: &mut Markers, place: [&'static str; 3]| {
        json!([{"name": "c", "image": "app:1", "env": [{"name": "DB_PASSWORD", "value": markers.of(place[0])}],
            "args": [format!("--db-password={}", markers.of(place[1])), "--token", markers.of(place[1])],
            "command": ["sh", "-c", format!("curl -u admin:{} https://x.example", markers.of(place[2]))]}])
    };
    let pod = container(markers, ["env of a Pod", "arguments of a Pod", "command of a Pod"]);
    let template =
        container(markers, ["env of a Deployment", "arguments of a Deployment", "command of a Deployment"]);
    let weak = json!({"stringData": {"password": "hunter2"}});
    vec![
        of(
            "Secret",
            "org-acme",
            "db",
            json!({"type": "Opaque", "data": {"password": base64(&shared)}, "metadata": {"annotations": annotated}}),
        ),
        of(
            "Secret",
            "org-beta",
            "copy",
            json!({"stringData": {"password": shared, "url": format!("postgres://u:{shared}@db.example/x")}}),
        ),
        of("Secret", "org-acme", "weak", weak.clone()),
        of("Secret", "org-beta", "weak", weak),
        of(
            "Secret",
            "org-beta",
            "one-kubeconfig",
            json!({"type": "cluster.x-k8s.io/secret", "data": {"value": base64(&kubeconfig.to_string())},
            "metadata": {"labels": {"cluster.x-k8s.io/cluster-name": "one"}}}),
        ),
        of(
            "Secret",
            "org-beta",
            "pull",
            json!({"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": base64(&docker.to_string())}}),
        ),
        of(
            "Secret",
            "org-beta",
            "sh.helm.release.v1.app.v1",
            json!({"type": "helm.sh/release.v1", "data": {"release": release(markers)}}),
        ),
        of(
            "ConfigMap",
            "org-beta",
            "conf",
            json!({"data": {"db_password": shared, "app.yaml": format!("token: {}", markers.of("ConfigMap"))},
            "metadata": {"annotations": {"note": markers.of("annotation of a ConfigMap")}}}),
        ),
        of(
            "Pod",
            "org-beta",
            "bare",
            json!({"spec": {"containers": pod}, "metadata": {"annotations": annotated}}),
        ),
        of(
            "Deployment",
            "org-beta",
            "app",
            json!({"spec": {"selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": template}}},
            "metadata": {"annotations": annotated}}),
        ),
    ]
}

/// What Helm keeps of a release.
fn release(markers: &mut Markers) -> String {
    use std::io::Write as _;
    let text = json!({"name": "app", "config": {"password": markers.of("values of a Helm release")},
        "manifest": format!("kind: Secret\nstringData: {{p: {}}}\n", markers.of("manifest of a Helm release"))});
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(text.to_string().as_bytes()).unwrap();
    base64(&STANDARD.encode(gzip.finish().unwrap()))
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

/// Custom resources that hold what somebody configured.
fn resources(markers: &mut Markers) -> Vec<Value> {
    let metadata = |name: &str| json!({"name": name, "namespace": "org-acme"});
    let url = format!("https://u:{}@git.example/acme/apps", markers.of("URL of a source"));
    vec![
        json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": metadata("apps"), "spec": {"url": url}}),
        json!({"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": metadata("app"), "spec": {
            "values": {"password": markers.of("values of a HelmRelease")}, "chart": {"spec": {"chart": "app", "sourceRef": {"kind": "GitRepository", "name": "apps"}}}}}),
        json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": metadata("app"), "spec": {
            "postBuild": {"substitute": {"p": markers.of("substitute of a Kustomization")}}, "sourceRef": {"kind": "GitRepository", "name": "apps"}}}),
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata("argo"), "spec": {
            "project": "default", "destination": {"server": "https://kubernetes.default.svc", "namespace": "org-acme"},
            "source": {"repoURL": url, "helm": {"parameters": [{"name": "p", "value": markers.of("parameters of an Application")}]}}}}),
    ]
}

/// What makes it interesting: each customer's own account, one of which reads the other's Secrets.
pub const RIGHTS: &str = "
{apiVersion: v1, kind: Namespace, metadata: {name: org-acme}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: org-beta}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: backup, namespace: org-acme}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: backup, namespace: org-beta}
rules: [{apiGroups: [''], resources: [secrets], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: backup, namespace: org-beta}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: backup}
subjects: [{kind: ServiceAccount, name: backup, namespace: org-acme}]
";

/// Whose what is.
pub const TENANTS: &str =
    "customers: {acme: {namespaces: [org-acme]}, beta: {namespaces: [org-beta]}}\nplatform: {rest: true}\n";

/// What cannot be read, each in its own way.
fn broken(markers: &mut Markers) -> Vec<(&'static str, String)> {
    let mut of = |place| markers.of(place);
    vec![
        (
            "cut.json",
            format!(
                r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"s","namespace":"org-acme"}},"stringData":{{"p":"{}"#,
                of("a Secret that is cut off")
            ),
        ),
        (
            "type.json",
            format!(
                r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"s","namespace":"org-acme"}},"data":["{0}"],"type":{{"{0}":1}}}}"#,
                of("a value of the wrong type")
            ),
        ),
        (
            "base64.json",
            format!(
                r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"s","namespace":"org-acme"}},"data":{{"p":"!{}"}}}}"#,
                of("no base64")
            ),
        ),
        (
            "syntax.yaml",
            format!(
                "apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData:\n  p: \"{}\n q: [\n",
                of("no YAML")
            ),
        ),
        (
            "tag.yaml",
            format!(
                "apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData: !!int {}\n",
                of("a tag that lies")
            ),
        ),
        (
            "alias.yaml",
            format!(
                "apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData: {{p: *{}}}\n",
                of("an alias of nothing")
            ),
        ),
        ("scalar.yaml", format!("{}\n", of("no object"))),
        (
            "nameless.yaml",
            format!("apiVersion: v1\nkind: Secret\nmetadata: {}\n", of("metadata that are none")),
        ),
        (
            "kindless.yaml",
            format!("metadata: {{name: s}}\nstringData: {{p: {}}}\n", of("an object without a kind")),
        ),
        (
            "map.yaml",
            format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c, namespace: org-acme}}\ndata: {}\n",
                of("a ConfigMap that is none")
            ),
        ),
        (
            "pod.yaml",
            format!(
                "apiVersion: v1\nkind: Pod\nmetadata: {{name: p, namespace: org-acme}}\nspec: {{containers: {}}}\n",
                of("a Pod that is none")
            ),
        ),
    ]
}

/// The dumps, manifests and questions of all runs.
struct Place {
    folder: tempfile::TempDir,
    markers: Markers,
}

impl Place {
    fn new() -> Self {
        let mut place = Self { folder: tempfile::tempdir().unwrap(), markers: Markers::new() };
        let mut objects = objects(&mut place.markers);
        objects.extend(resources(&mut place.markers));
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
        let broken = broken(&mut place.markers);
        let change = format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: new, namespace: org-acme}}\nstringData: {{p: {}}}\n",
            place.markers.of("a manifest")
        );
        for (name, text) in [
            ("whole/objects.json", list.as_str()),
            ("whole/rights.yaml", RIGHTS),
            ("broken/objects.json", &list),
            ("broken/rights.yaml", RIGHTS),
            ("tenants.yaml", TENANTS),
            ("change.yaml", &change),
        ] {
            place.write(name, text);
        }
        for (name, text) in broken {
            place.write(&format!("broken/{name}"), &text);
            place.write(&format!("bad/{name}"), &text);
        }
        let (used, none) =
            (place.markers.of("a kubeconfig that is used"), place.markers.of("a kubeconfig that is none"));
        place.write("kubeconfig", &kubeconfig(&used, "}"));
        place.write("no-kubeconfig", &kubeconfig(&none, "]"));
        place
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Runs the program in the folder and says what leaked. Returns standard output.
    fn run(&self, line: &str, leaks: &mut Vec<String>) -> String {
        let output = run(self.folder.path(), line);
        for (name, bytes) in [("standard output", &output.stdout), ("standard error", &output.stderr)] {
            let found = self.markers.found(bytes);
            leaks.extend(found.into_iter().map(|place| format!("{line}: {place} on {name}")));
        }
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// Runs the program with the most talkative log.
pub fn run(folder: &Path, line: &str) -> std::process::Output {
    Command::new(program())
        .args(line.split(' '))
        .current_dir(folder)
        .env_remove("KUBECONFIG")
        .env("HOME", folder)
        .env("RUST_LOG", "trace")
        .env("RUST_BACKTRACE", "1")
        .output()
        .unwrap()
}

/// A kubeconfig for a server that is not there; what ends it decides whether it is one.
fn kubeconfig(token: &str, end: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:1'}}}}]\n\
         contexts: [{{name: x, context: {{cluster: c, user: u}}}}]\nusers: [{{name: u, user: {{token: {token}{end}}}]\n"
    )
}

#[test]
fn no_verb_writes_a_value_in_any_format_whether_it_reads_values_or_not() {
    let place = Place::new();
    let mut leaks = Vec::new();
    for fingerprint in ["", " --fingerprint"] {
        for dump in ["whole", "broken"] {
            let input = format!("--dump {dump} --tenants tenants.yaml{fingerprint}");
            let audit = place.run(&format!("audit {input} -o json --subjects all"), &mut leaks);
            place.write("audit.json", &audit);
            let audit: Value = serde_json::from_str(&audit).unwrap();
            let findings = audit["findings"].as_array().unwrap();
            let rules: Vec<_> = findings.iter().map(|finding| finding["rule"].as_str().unwrap()).collect();
            // So that there is something to leak.
            assert_eq!(rules.contains(&"shared-credential"), !fingerprint.is_empty(), "{rules:?}");
            assert_eq!(rules.contains(&"weak-credential"), !fingerprint.is_empty(), "{rules:?}");
            assert_eq!(audit["complete"], dump == "whole", "{}", audit["gaps"]);
            let id = findings[0]["id"].as_str().unwrap();
            for format in FORMATS {
                for verb in [
                    "audit --timings",
                    "audit --baseline audit.json",
                    "who-can-read org-acme/db",
                    "reach sa:org-acme/backup",
                    "why sa:org-acme/backup org-acme/db",
                    "what-if -f change.yaml",
                    "what-if -f whole/objects.json --remove",
                ] {
                    place.run(&format!("{verb} {input} -o {format}"), &mut leaks);
                }
                if format != "html" {
                    place.run(&format!("explain {id} {input} -o {format}"), &mut leaks);
                    let diff = format!("diff whole {dump} --tenants tenants.yaml{fingerprint} -o {format}");
                    place.run(&diff, &mut leaks);
                }
            }
        }
        for (name, _) in broken(&mut Markers::new()) {
            place.run(&format!("audit --dump bad/{name}{fingerprint} -o json"), &mut leaks);
            let change = format!("what-if -f bad/{name} --dump whole{fingerprint} -o json");
            place.run(&change, &mut leaks);
        }
        for file in ["kubeconfig", "no-kubeconfig"] {
            place.run(&format!("audit --kubeconfig {file}{fingerprint}"), &mut leaks);
            place.run(&format!("snapshot -o s.json --kubeconfig {file}"), &mut leaks);
        }
        let key = format!("audit --dump whole --fingerprint --fingerprint-key {}", "kubeconfig");
        place.run(&key, &mut leaks);
    }
    assert!(leaks.is_empty(), "{leaks:#?}");
}

#[test]
fn a_marker_is_found_in_each_form() {
    let mut markers = Markers::new();
    let marker = markers.of("here");
    for text in [
        format!("x{marker}y"),
        base64(&marker),
        base64(&format!("a{marker}")),
        base64(&format!("ab{marker}c")),
        marker.bytes().map(|byte| format!("{byte:02x}")).collect(),
    ] {
        assert!(!markers.found(text.as_bytes()).is_empty(), "{text}");
    }
    assert!(markers.found(b"nothing").is_empty());
}
