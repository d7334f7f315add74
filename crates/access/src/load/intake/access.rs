//! Facts of the kinds that come in large numbers.

use super::Intake;
use crate::load::cursor::Place;
use crate::load::kinds::group_of;
use crate::load::piece::{Fault, Head, Piece};
use crate::load::wire::{self, Pairs, Reference, Text, pod};
use crate::{
    BindingFact, ExpressionFact, NamespaceFact, NodeFact, Origin, PodFact, RoleFact, RuleFact, SecretFact,
    SelectorFact, ServiceAccountFact, SubjectFact, SubjectKind, Symbol,
};

impl Intake<'_> {
    pub(super) fn take_namespace(&mut self, piece: Piece<'_>, origin: Origin) -> Result<(), Fault> {
        let object = piece.read::<wire::Object<'_>>()?;
        let name = self.name(&object.metadata.name)?;
        let labels = self.intern_pairs(&object.metadata.labels);
        self.facts.namespaces.push(NamespaceFact { name, labels, origin });
        Ok(())
    }

    pub(super) fn take_service_account(&mut self, piece: Piece<'_>, origin: Origin) -> Result<(), Fault> {
        let account = piece.read::<wire::ServiceAccount<'_>>()?;
        let name = self.name(&account.metadata.name)?;
        let namespace = self.home(&account.metadata.namespace.0);
        let mut secrets = Vec::new();
        for named in account.image_pull_secrets.iter().chain(&account.secrets) {
            self.add(&mut secrets, &named.name);
        }
        let cloud = account.metadata.annotations;
        let cloud_identity = [cloud.aws, cloud.azure, cloud.google].into_iter().flatten().next();
        let cloud_identity = cloud_identity.filter(|text| !text.0.is_empty()).map(|text| self.intern(&text));
        if account.automount_service_account_token == Some(false) {
            self.unmounted.insert((namespace, name));
        } else {
            self.unmounted.remove(&(namespace, name));
        }
        self.facts.service_accounts.push(ServiceAccountFact { namespace, name, secrets, cloud_identity });
        self.origins.service_accounts.push(origin);
        Ok(())
    }

    pub(super) fn take_role(
        &mut self,
        piece: Piece<'_>,
        origin: Origin,
        namespaced: bool,
    ) -> Result<(), Fault> {
        let role = piece.read::<wire::Role<'_>>()?;
        let name = self.name(&role.metadata.name)?;
        let namespace = namespaced.then(|| self.home(&role.metadata.namespace.0));
        let rules = role.rules.iter().map(|rule| RuleFact {
            api_groups: self.intern_all(&rule.api_groups),
            resources: self.intern_all(&rule.resources),
            resource_names: self.intern_all(&rule.resource_names),
            verbs: self.intern_all(&rule.verbs),
            non_resource_urls: self.intern_all(&rule.non_resource_urls),
        });
        let rules = rules.collect();
        let aggregation = role.aggregation_rule.cluster_role_selectors.iter();
        let aggregation = aggregation.map(|selector| self.selector(selector)).collect();
        let labels = self.intern_pairs(&role.metadata.labels);
        self.facts.roles.push(RoleFact { namespace, name, rules, labels, aggregation, origin });
        Ok(())
    }

    fn selector(&mut self, selector: &wire::Selector<'_>) -> SelectorFact {
        let expressions = selector.match_expressions.iter().map(|expression| ExpressionFact {
            key: self.intern(&expression.key),
            operator: self.intern(&expression.operator),
            values: self.intern_all(&expression.values),
        });
        let expressions = expressions.collect();
        SelectorFact { labels: self.intern_pairs(&selector.match_labels), expressions }
    }

    pub(super) fn take_binding(
        &mut self,
        piece: Piece<'_>,
        place: Place,
        origin: Origin,
        namespaced: bool,
    ) -> Result<(), Fault> {
        let binding = piece.read::<wire::Binding<'_>>()?;
        let name = self.name(&binding.metadata.name)?;
        let cluster_role = match binding.role_ref.kind.0.as_ref() {
            "ClusterRole" => true,
            "Role" if namespaced => false,
            "Role" => return Err(Fault::new("refers to a Role, which only a RoleBinding can")),
            _ => return Err(Fault::new("refers to neither a Role nor a ClusterRole")),
        };
        if binding.role_ref.name.0.is_empty() {
            return Err(Fault::new("has no `roleRef.name`"));
        }
        let role = self.intern(&binding.role_ref.name);
        let namespace = namespaced.then(|| self.home(&binding.metadata.namespace.0));
        let mut subjects = Vec::with_capacity(binding.subjects.len());
        for (index, subject) in binding.subjects.iter().enumerate() {
            match self.subject(subject, namespace) {
                Ok(subject) => subjects.push(subject),
                Err(why) => {
                    let kind = if namespaced { "RoleBinding" } else { "ClusterRoleBinding" };
                    let what = format!("subject {index} of {kind} {}", full_name(&binding.metadata));
                    self.gap(what, place, why);
                }
            }
        }
        self.facts.bindings.push(BindingFact { namespace, name, cluster_role, role, subjects, origin });
        Ok(())
    }

    /// Rules of `ValidateRoleBindingSubject` in kubernetes/kubernetes `pkg/apis/rbac/validation/validation.go`; a user
    /// named like a ServiceAccount is it, since the two authenticate under the same name.
    fn subject(
        &mut self,
        subject: &Reference<'_>,
        namespace: Option<Symbol>,
    ) -> Result<SubjectFact, &'static str> {
        if subject.name.0.is_empty() {
            return Err("it has no name, and the API server would refuse it; give it one");
        }
        let named = |kind, namespace, name| Ok(SubjectFact { kind, namespace, name });
        match subject.kind.0.as_ref() {
            "User" => match service_account(&subject.name.0) {
                Some((namespace, name)) => {
                    let namespace = self.snapshot.symbols.intern(namespace);
                    named(SubjectKind::ServiceAccount, namespace, self.snapshot.symbols.intern(name))
                }
                None => named(SubjectKind::User, Symbol::EMPTY, self.intern(&subject.name)),
            },
            "Group" => named(SubjectKind::Group, Symbol::EMPTY, self.intern(&subject.name)),
            "ServiceAccount" => {
                let home = match (subject.namespace.0.is_empty(), namespace) {
                    (false, _) => self.intern(&subject.namespace),
                    (true, Some(namespace)) => namespace,
                    (true, None) => {
                        return Err(
                            "it is a ServiceAccount without a namespace, and the API server would refuse it; \
                                    name its namespace",
                        );
                    }
                };
                named(SubjectKind::ServiceAccount, home, self.intern(&subject.name))
            }
            _ => {
                Err("its kind is none of User, Group and ServiceAccount, and the API server would refuse it")
            }
        }
    }

    pub(super) fn take_secret(
        &mut self,
        piece: Piece<'_>,
        place: Place,
        origin: Origin,
        whole: bool,
    ) -> Result<(), Fault> {
        let secret = piece.read::<wire::Secret<'_>>()?;
        self.keep_secret(&secret, origin, whole)?;
        if whole { self.open(piece, place) } else { Ok(()) }
    }

    pub(super) fn keep_secret(
        &mut self,
        secret: &wire::Secret<'_>,
        origin: Origin,
        whole: bool,
    ) -> Result<(), Fault> {
        let metadata = &secret.metadata;
        let name = self.name(&metadata.name)?;
        let namespace = self.home(&metadata.namespace.0);
        let kind = match &secret.kind {
            Some(kind) if !kind.0.is_empty() => self.intern(kind),
            // As the API server has it (`SetDefaults_Secret`).
            _ if whole => self.snapshot.symbols.intern("Opaque"),
            _ => {
                self.source.untyped += 1;
                Symbol::EMPTY
            }
        };
        let mut optional = |text: &Option<Text<'_>>| {
            text.as_ref().filter(|text| !text.0.is_empty()).map(|text| self.intern(text))
        };
        let service_account = optional(&metadata.annotations.service_account);
        let cluster_name = optional(&metadata.labels.cluster_name);
        let argocd_type = optional(&metadata.labels.argocd_type);
        self.facts.secrets.push(SecretFact {
            namespace,
            name,
            kind,
            service_account,
            cluster_name,
            argocd_type,
            origin,
        });
        Ok(())
    }

    pub(super) fn take_pod(&mut self, piece: Piece<'_>, origin: Origin) -> Result<(), Fault> {
        let pod = piece.read::<pod::Pod<'_>>()?;
        // Nothing runs in it any more, and nothing can be run in it.
        if matches!(pod.status.phase.0.as_ref(), "Succeeded" | "Failed") {
            return Ok(());
        }
        let name = self.name(&pod.metadata.name)?;
        let namespace = self.home(&pod.metadata.namespace.0);
        let was_admitted = pod.metadata.uid.as_ref().is_some_and(|uid| !uid.0.is_empty());
        self.add_pod(namespace, name, &pod.spec, was_admitted, origin);
        Ok(())
    }

    /// A pod as the controller of a workload will make it, if it makes any.
    pub(super) fn take_would_be_pod(
        &mut self,
        head: &Head<'_>,
        piece: Piece<'_>,
        origin: Origin,
    ) -> Result<(), Fault> {
        let group = group_of(&head.api_version);
        let suffix = match (group, head.kind.as_ref()) {
            ("apps", "StatefulSet") => "0",
            ("apps", "Deployment" | "DaemonSet" | "ReplicaSet")
            | ("batch", "Job" | "CronJob")
            | ("", "ReplicationController") => "(generated)",
            _ => return Ok(()),
        };
        let workload = piece.read::<pod::Workload<'_>>()?;
        if workload.spec.replicas == Some(0) {
            return Ok(());
        }
        let name = workload.metadata.name.0.as_ref();
        let name = self.snapshot.symbols.intern(&format!("{name}-{suffix}"));
        let namespace = self.home(&workload.metadata.namespace.0);
        let template = workload.spec.job_template.spec.template.or(workload.spec.template);
        if let Some(template) = template {
            self.add_pod(namespace, name, &template.spec, false, origin);
        }
        Ok(())
    }

    fn add_pod(
        &mut self,
        namespace: Symbol,
        name: Symbol,
        spec: &pod::Spec<'_>,
        was_admitted: bool,
        origin: Origin,
    ) {
        let account = [&spec.service_account_name, &spec.service_account];
        let service_account = match account.into_iter().find(|text| !text.0.is_empty()) {
            Some(text) => self.intern(text),
            None => self.snapshot.symbols.intern("default"),
        };
        let node = spec.node_name.as_ref().filter(|text| !text.0.is_empty()).map(|text| self.intern(text));
        let mut secrets = Vec::new();
        for named in &spec.image_pull_secrets {
            self.add(&mut secrets, &named.name);
        }
        for secret in spec.volumes.iter().flat_map(|volume| &volume.secrets) {
            self.add(&mut secrets, secret);
        }
        let containers =
            || spec.init_containers.iter().chain(&spec.containers).chain(&spec.ephemeral_containers);
        for container in containers() {
            let env = container.env.iter().filter_map(|env| env.value_from.secret_key_ref.as_ref());
            for named in env.chain(container.env_from.iter().filter_map(|from| from.secret_ref.as_ref())) {
                self.add(&mut secrets, &named.name);
            }
        }
        secrets.shrink_to_fit();
        let privileged = spec.host_pid
            || spec.security_context.takes_node()
            || spec.volumes.iter().any(|volume| volume.host_path)
            || containers().any(|container| container.security_context.takes_node());
        let token = self.token(spec, was_admitted);
        let fact = PodFact { namespace, name, service_account, node, secrets, privileged, token };
        self.facts.pods.push(fact);
        self.origins.pods.push(origin);
    }

    /// Whether a token is mounted. On the way through the API server the admission plugin ServiceAccount adds a
    /// projected volume with one; a pod that has not been there gets it unless the pod or its account says no.
    fn token(&mut self, spec: &pod::Spec<'_>, was_admitted: bool) -> bool {
        if spec.volumes.iter().any(|volume| volume.token) {
            return true;
        }
        match spec.automount_service_account_token {
            _ if was_admitted => false,
            Some(mounted) => mounted,
            None => {
                self.undecided.push(self.facts.pods.len());
                true
            }
        }
    }

    pub(super) fn take_node(&mut self, piece: Piece<'_>, origin: Origin) -> Result<(), Fault> {
        let node = piece.read::<wire::Node<'_>>()?;
        let name = self.name(&node.metadata.name)?;
        let roles = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];
        let control_plane = roles.into_iter().any(|role| node.metadata.labels.find(role).is_some());
        if control_plane {
            // A kubelet is never newer than its API server, and on these nodes the two are upgraded together.
            self.facts.minor = self.facts.minor.max(minor(&node.status.node_info.kubelet_version.0));
        }
        self.facts.nodes.push(NodeFact { name, control_plane });
        self.origins.nodes.push(origin);
        Ok(())
    }

    /// Takes what `/version` or `kubectl version -o json` answers. False if it is something else.
    pub(super) fn take_version(&mut self, piece: Piece<'_>) -> bool {
        if !piece.may_mention("gitVersion") {
            return false;
        }
        let version = piece.read::<wire::Version<'_>>().unwrap_or_default();
        let server = version.server_version.and_then(|server| server.git_version).or(version.git_version);
        let minor = server.and_then(|version| minor(&version.0));
        self.facts.minor = minor.or(self.facts.minor);
        minor.is_some()
    }

    fn intern_all(&mut self, texts: &[Text<'_>]) -> Vec<Symbol> {
        texts.iter().map(|text| self.intern(text)).collect()
    }

    fn intern_pairs(&mut self, pairs: &Pairs<'_>) -> Vec<(Symbol, Symbol)> {
        pairs.0.iter().map(|(key, value)| (self.intern(key), self.intern(value))).collect()
    }

    fn add(&mut self, to: &mut Vec<Symbol>, name: &Text<'_>) {
        let name = self.intern(name);
        if name != Symbol::EMPTY && !to.contains(&name) {
            to.push(name);
        }
    }
}

fn full_name(named: &wire::Named<'_>) -> String {
    match named.namespace.0.as_ref() {
        "" => named.name.0.to_string(),
        namespace => format!("{namespace}/{}", named.name.0),
    }
}

/// Namespace and name in the user name of a ServiceAccount, as `SplitUsername` of k8s.io/apiserver
/// `pkg/authentication/serviceaccount/util.go` takes it apart.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    (!namespace.is_empty() && !name.is_empty() && !name.contains(':')).then_some((namespace, name))
}

/// The minor version in `v1.36.3`.
fn minor(version: &str) -> Option<u16> {
    let minor = version.trim_start_matches('v').strip_prefix("1.")?;
    let digits = minor.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}
