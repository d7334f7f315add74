//! Small clusters written as YAML, and questions to them.

use std::collections::BTreeSet;

use bailey_access::answer::{Finding, Step};
use bailey_access::{
    Access, Certainty, Customers, Loader, QuestionError, SecretRef, Snapshot, SubjectRef, Subjects,
};

/// One cluster, closed. It must have been read without a gap.
pub struct Cluster {
    pub access: Access,
}

impl Cluster {
    /// Reads YAML documents of Kubernetes 1.36, of which nobody knows whose anything is.
    pub fn new(objects: &[String]) -> Self {
        Self::of(objects, Customers::default())
    }

    /// Reads YAML documents, with what belongs to whom in the form of a tenants file.
    pub fn with_tenants(objects: &[String], tenants: &str) -> Self {
        Self::of(objects, Customers::from_file(tenants, "tenants.yaml").unwrap().customers)
    }

    fn of(objects: &[String], customers: Customers) -> Self {
        let snapshot = load(objects);
        assert_eq!(snapshot.gaps, [], "{objects:#?}");
        Self { access: Access::new(snapshot, customers) }
    }

    /// Whether a subject reaches a Secret. The three questions that say so must agree.
    pub fn reads(&self, subject: &str, secret: &str) -> bool {
        let (subject, secret): (SubjectRef, SecretRef) = (subject.parse().unwrap(), secret.parse().unwrap());
        let why = match self.access.why(&subject, &secret, 0) {
            Ok(why) => why,
            Err(QuestionError::UnknownSubject { .. }) => return false,
            Err(error) => panic!("{error}"),
        };
        let readers = self.access.who_can_read(&secret).unwrap();
        let listed = readers.subjects.iter().any(|reader| reader.subject == why.subject);
        assert_eq!(why.reached, listed, "why and who-can-read of {subject} and {secret}");
        if readers.exists {
            let reach = self.access.reach(&subject).unwrap();
            let held = reach.secrets.iter().any(|held| {
                held.namespace == secret.namespace
                    && held.name == secret.name
                    && secret.cluster.as_ref().is_none_or(|cluster| *cluster == held.cluster)
            });
            assert_eq!(why.reached, held, "why and reach of {subject} and {secret}");
        }
        why.reached
    }

    /// Everybody who reaches a Secret and is not of Kubernetes itself.
    pub fn readers(&self, secret: &str) -> BTreeSet<String> {
        let answer = self.access.who_can_read(&secret.parse().unwrap()).unwrap();
        let readers = answer.subjects.into_iter().map(|reader| reader.subject);
        readers.filter(|reader| !OF_KUBERNETES.contains(&reader.as_str())).collect()
    }

    /// The steps of the shortest way; it must exist and be proven.
    pub fn steps(&self, subject: &str, secret: &str) -> Vec<Step> {
        let why = self.access.why(&subject.parse().unwrap(), &secret.parse().unwrap(), 0).unwrap();
        let path =
            why.paths.into_iter().next().unwrap_or_else(|| panic!("{subject} does not reach {secret}"));
        assert_eq!(path.certainty, Certainty::Proven, "{:#?}", path.steps);
        path.steps
    }

    /// Ids of the edges of the shortest way.
    pub fn edges(&self, subject: &str, secret: &str) -> Vec<String> {
        self.steps(subject, secret).into_iter().map(|step| step.edge).collect()
    }

    /// The findings of an audit.
    pub fn findings(&self) -> Vec<Finding> {
        self.access.audit(Subjects::None).findings
    }

    /// The findings about one subject.
    pub fn findings_of(&self, subject: &str) -> Vec<Finding> {
        self.findings().into_iter().filter(|finding| finding.subject == subject).collect()
    }
}

/// Subjects that every cluster has and that reach everything.
const OF_KUBERNETES: [&str; 2] = ["group:system:masters", "user:system:kube-controller-manager"];

/// Reads YAML documents with the version of Kubernetes before them.
pub fn load(objects: &[String]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    load_into(&mut snapshot, "mc", objects);
    snapshot
}

/// Reads YAML documents into a cluster of a snapshot.
pub fn load_into(snapshot: &mut Snapshot, cluster: &str, objects: &[String]) {
    let node = "{apiVersion: v1, kind: Node, metadata: {name: n, labels: {node-role.kubernetes.io/control-plane: ''}}, \
                status: {nodeInfo: {kubeletVersion: v1.36.3}}}";
    let mut loader = Loader::new(snapshot, Some(cluster));
    loader.source("objects.yaml");
    let text = objects.iter().fold(node.to_owned(), |text, object| format!("{text}\n---\n{object}"));
    loader.load_yaml(text.as_bytes()).unwrap();
    loader.finish();
}

/// `NS/NAME` in two.
fn split(name: &str) -> (&str, &str) {
    name.split_once('/').unwrap()
}

/// `metadata` of `NS/NAME`, or of a name in the cluster scope.
fn metadata(name: &str) -> String {
    match name.split_once('/') {
        Some((namespace, name)) => format!("{{namespace: {namespace}, name: {name}}}"),
        None => format!("{{name: {name}}}"),
    }
}

pub fn secret(name: &str) -> String {
    format!("{{apiVersion: v1, kind: Secret, type: Opaque, metadata: {}}}", metadata(name))
}

pub fn account(name: &str) -> String {
    format!("{{apiVersion: v1, kind: ServiceAccount, metadata: {}}}", metadata(name))
}

pub fn namespace(name: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}, labels: {{pod-security.kubernetes.io/enforce: restricted}}}}}}"
    )
}

/// A pod `NS/NAME` that runs as an account and mounts Secrets.
pub fn pod(name: &str, account: &str, secrets: &[&str]) -> String {
    let volumes: Vec<_> = secrets
        .iter()
        .map(|secret| format!("{{name: {secret}, secret: {{secretName: {secret}}}}}"))
        .collect();
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {}, spec: {{serviceAccountName: {account}, nodeName: n, containers: [{{name: c}}], volumes: [{}]}}}}",
        metadata(name),
        volumes.join(", ")
    )
}

/// A Role `NS/NAME` or ClusterRole `NAME` with rules `VERBS RESOURCES [in GROUP] [named NAMES]`, or as YAML in braces.
pub fn role(name: &str, rules: &[&str]) -> String {
    let kind = if name.contains('/') { "Role" } else { "ClusterRole" };
    let rules: Vec<_> = rules.iter().map(|text| rule(text)).collect();
    format!(
        "{{apiVersion: rbac.authorization.k8s.io/v1, kind: {kind}, metadata: {}, rules: [{}]}}",
        metadata(name),
        rules.join(", ")
    )
}

fn rule(text: &str) -> String {
    if text.starts_with('{') {
        return text.to_owned();
    }
    let quoted = |list: &str| list.split(',').map(|word| format!("'{word}'")).collect::<Vec<_>>().join(", ");
    let (text, names) = text.split_once(" named ").unwrap_or((text, ""));
    let (text, group) = text.split_once(" in ").unwrap_or((text, ""));
    let (verbs, resources) = text.split_once(' ').unwrap();
    let names =
        if names.is_empty() { String::new() } else { format!(", resourceNames: [{}]", quoted(names)) };
    format!(
        "{{verbs: [{}], apiGroups: ['{group}'], resources: [{}]{names}}}",
        quoted(verbs),
        quoted(resources)
    )
}

/// A RoleBinding `NS/NAME` or ClusterRoleBinding `NAME` to `Role NAME` or `ClusterRole NAME`, of subjects as
/// `sa:NS/NAME`, `user:NAME`, `group:NAME`.
pub fn binding(name: &str, role: &str, subjects: &[&str]) -> String {
    let kind = if name.contains('/') { "RoleBinding" } else { "ClusterRoleBinding" };
    let (role_kind, role) = role.split_once(' ').unwrap();
    let subject = |text: &&str| {
        let (kind, name) = text.split_once(':').unwrap();
        match kind {
            "sa" => {
                let (namespace, name) = split(name);
                format!("{{kind: ServiceAccount, namespace: {namespace}, name: {name}}}")
            }
            "user" => format!("{{apiGroup: rbac.authorization.k8s.io, kind: User, name: '{name}'}}"),
            _ => format!("{{apiGroup: rbac.authorization.k8s.io, kind: Group, name: '{name}'}}"),
        }
    };
    let subjects: Vec<_> = subjects.iter().map(subject).collect();
    format!(
        "{{apiVersion: rbac.authorization.k8s.io/v1, kind: {kind}, metadata: {}, roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {role_kind}, name: {role}}}, subjects: [{}]}}",
        metadata(name),
        subjects.join(", ")
    )
}
