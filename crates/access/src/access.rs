//! The whole analysis of a snapshot, and the questions that it answers.

mod audit;
mod isolation;
mod update;
mod what_if;
mod why;

pub use isolation::Isolation;

use std::sync::OnceLock;

use rustc_hash::FxHashSet;

use crate::{
    Certainty, Customers, Fact, Identity, Scope, SecretFact, Snapshot, SubjectKind, Symbol,
    answer::{self, GapEntry, Reach, Reached, ReachedSecret, Reader, SecretEntry, Step, WhoCanRead},
    close::Closure,
    explain::Explainer,
    findings,
    graph::{self, Graph, Input, Node, NodeId},
    judge::{self, Audiences, Listed, Start},
    owners::{Owners, Whose},
    question::{QuestionError, SecretRef, SubjectName, SubjectRef},
    reverse::{Reverse, Towards},
    search::{Anywhere, Hop, Search},
    shared::{Ledger, Shared},
};

/// Which subjects an audit lists for each Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Subjects {
    /// None: verdicts and audiences only.
    None,
    /// Those that are neither the platform's nor the Secret's owner's.
    Foreign,
    /// All.
    #[default]
    All,
}

/// A snapshot, closed.
#[derive(Debug, Clone)]
pub struct Access {
    pub(crate) snapshot: Snapshot,
    pub(crate) graph: Graph,
    pub(crate) owners: Owners,
    pub(crate) all: Closure,
    pub(crate) proven: Closure,
    pub(crate) starts: Vec<Start>,
    pub(crate) shared: Shared,
    customers: Customers,
    /// What was made of which other state, if this was.
    since: Option<update::Since>,
    id: u64,
    reverse: OnceLock<Reverse>,
    counts: OnceLock<findings::Counts>,
}

impl Access {
    /// Compiles and closes a snapshot. Nothing of it is changed but that names may be added to its table.
    pub fn new(mut snapshot: Snapshot, customers: Customers) -> Self {
        let (graph, proven, all) = graph::build(&mut snapshot);
        let owners = Owners::new(&snapshot, &customers, graph.somebodies());
        let starts = judge::starts(&graph, &owners);
        let shared = Shared::default();
        Self {
            snapshot,
            graph,
            owners,
            all,
            proven,
            starts,
            shared,
            customers,
            since: None,
            id: update::fresh(),
            reverse: OnceLock::new(),
            counts: OnceLock::new(),
        }
    }

    /// The same with what is known of credentials that lie in several places.
    pub fn with_credentials(mut self, ledger: &Ledger) -> Self {
        self.shared = Shared::new(ledger, &self.snapshot);
        let gap = |part: &String| crate::Gap {
            cluster: None,
            what: part.clone(),
            why: "too large or too deep to look for credentials in it".to_owned(),
        };
        let gaps: Vec<_> = ledger.unread().iter().map(gap).collect();
        self.snapshot.gaps.retain(|known| !gaps.contains(known));
        self.snapshot.gaps.extend(gaps);
        self
    }

    /// What was loaded.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Whose is what.
    pub fn customers(&self) -> &Customers {
        &self.customers
    }

    /// How large the graph is: nodes, edges, those of the edges that need several things at once.
    pub fn size(&self) -> (usize, usize, usize) {
        (self.graph.len(), self.graph.edge_count(), self.graph.joint_count())
    }

    /// What admission policies take away: who would do what where, and which policy refuses it.
    pub fn blocked(&self) -> Vec<String> {
        let explainer = self.explainer();
        let text = |blocked: &graph::Blocked| {
            let state = self.graph.clusters.get(usize::from(blocked.cluster));
            let template = state.and_then(|state| state.templates.get(blocked.template as usize));
            let who = explainer.describe(blocked.identity);
            let edge = template.map_or("", |template| template.edge);
            format!(
                "{who}: {edge} {} is refused by {}",
                explainer.scope(blocked.cluster, blocked.scope),
                blocked.by
            )
        };
        self.graph.blocked().map(text).collect()
    }

    pub(crate) fn explainer(&self) -> Explainer<'_> {
        Explainer { snapshot: &self.snapshot, graph: &self.graph }
    }

    pub(crate) fn counts(&self) -> &findings::Counts {
        self.counts.get_or_init(|| findings::Counts::new(&self.snapshot, &self.owners))
    }

    pub(crate) fn reverse(&self) -> &Reverse {
        self.reverse.get_or_init(|| Reverse::new(&self.graph))
    }

    pub(crate) fn gaps(&self) -> Vec<GapEntry> {
        let entry = |gap: &crate::Gap| GapEntry {
            cluster: gap.cluster.clone(),
            what: gap.what.clone(),
            why: gap.why.clone(),
        };
        let limit = |(cluster, what): (u16, &'static str)| GapEntry {
            cluster: self.snapshot.clusters.get(usize::from(cluster)).map(|facts| facts.name.clone()),
            what: what.to_owned(),
            why: "the cluster holds too many bindings to follow each of them".to_owned(),
        };
        let limits = self.graph.limits().into_iter().map(limit);
        self.snapshot.gaps.iter().map(entry).chain(limits).collect()
    }

    fn is_complete(&self) -> bool {
        self.snapshot.gaps.is_empty() && self.graph.limits().is_empty()
    }

    fn cluster(&self, wanted: Option<&str>) -> Result<u16, QuestionError> {
        let Some(wanted) = wanted else { return Ok(0) };
        let found = self.snapshot.clusters.iter().position(|cluster| cluster.name == wanted);
        found.and_then(|index| u16::try_from(index).ok()).ok_or_else(|| QuestionError::NoCluster {
            cluster: wanted.to_owned(),
            known: self.snapshot.clusters.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", "),
        })
    }

    /// Everybody who reaches a Secret, with the shortest way of each. A Secret that was not loaded is answered for, too:
    /// who would read it if it existed.
    pub fn who_can_read(&self, secret: &SecretRef) -> Result<WhoCanRead, QuestionError> {
        let cluster = self.cluster(secret.cluster.as_deref())?;
        let symbols = &self.snapshot.symbols;
        let (namespace, name) = (symbols.find(&secret.namespace), symbols.find(&secret.name));
        let facts = self.snapshot.clusters.get(usize::from(cluster));
        let loaded = facts.and_then(|facts| {
            facts.secrets.iter().find(|s| Some(s.namespace) == namespace && Some(s.name) == name)
        });
        // Names that nothing holds are met by what covers the namespace or the cluster.
        let (namespace, name) = (namespace.unwrap_or(Symbol::UNKNOWN), name.unwrap_or(Symbol::UNKNOWN));
        let goals: Vec<NodeId> = judge::ends_of(&self.graph, cluster, namespace, name).collect();
        let next = self.reverse().towards(&goals);
        let owner = self.owners.of_namespace(cluster, namespace);
        let mut readers: Vec<(bool, Reader)> = Vec::new();
        for start in &self.starts {
            if !next.contains_key(&start.node) {
                continue;
            }
            let proven = goals.iter().any(|goal| self.proven.reaches(start.node, *goal));
            let certainty = if proven { Certainty::Proven } else { Certainty::Assumed };
            let foreign = start.whose != owner && start.whose != Whose::PLATFORM;
            readers.push((!foreign, self.reader(start, certainty, self.follow(&next, start.node))));
        }
        readers.sort_by(|a, b| (a.0, &a.1.subject).cmp(&(b.0, &b.1.subject)));
        let placeholder = SecretFact {
            namespace,
            name,
            kind: Symbol::EMPTY,
            service_account: None,
            cluster_name: None,
            argocd_type: None,
            origin: crate::Origin::default(),
        };
        let all = Audiences::new(&self.all, &self.graph, &self.starts, &Listed::default());
        let proven = Audiences::new(&self.proven, &self.graph, &self.starts, &Listed::default());
        let mut entry = self.secret_entry(
            cluster,
            loaded.unwrap_or(&placeholder),
            &all,
            &proven,
            (Subjects::None, &Listed::default()),
        );
        entry.namespace.clone_from(&secret.namespace);
        entry.name.clone_from(&secret.name);
        Ok(WhoCanRead {
            schema: answer::WHO_CAN_READ_SCHEMA.to_owned(),
            complete: self.is_complete(),
            gaps: self.gaps(),
            secret: entry,
            exists: loaded.is_some(),
            subjects: readers.into_iter().map(|(_, reader)| reader).collect(),
        })
    }

    fn reader(&self, start: &Start, certainty: Certainty, hops: Vec<Hop>) -> Reader {
        let explainer = self.explainer();
        Reader {
            subject: explainer.subject(start.cluster, &start.fact).unwrap_or_default(),
            customer: self.owners.name(start.whose).to_owned(),
            certainty,
            path: explainer.steps(&hops),
        }
    }

    /// The hops from a node to the goal that a backward search found.
    pub(crate) fn follow(&self, next: &Towards, start: NodeId) -> Vec<Hop> {
        let mut hops: Vec<Hop> = Vec::new();
        let mut at = start;
        let mut seen = FxHashSet::default();
        while let Some((edge, _)) = next.get(&at).filter(|_| seen.insert(at)) {
            let inputs = self.graph.inputs_of(edge);
            if !inputs.is_empty() {
                let goals: Vec<NodeId> = inputs.iter().map(|input| input.node).collect();
                let search = Search::find(&self.graph, at, &Anywhere, &goals);
                let (rights, rest): (Vec<&Input>, Vec<&Input>) =
                    inputs.iter().partition(|input| input.via.is_some());
                let mut done = FxHashSet::default();
                for input in rest.into_iter().chain(rights) {
                    let path = search.path(&self.graph, input.node);
                    hops.extend(path.into_iter().filter(|hop| done.insert((hop.from, hop.edge.to))));
                }
            }
            hops.push(Hop { from: at, edge: *edge });
            at = edge.to;
        }
        hops
    }

    pub(crate) fn secret_entry(
        &self,
        cluster: u16,
        secret: &SecretFact,
        all: &Audiences,
        proven: &Audiences,
        subjects: (Subjects, &Listed),
    ) -> SecretEntry {
        let owner = self.owners.of_namespace(cluster, secret.namespace);
        let audience = self.audience(all, cluster, secret);
        let sure = self.audience(proven, cluster, secret);
        let name = |symbol| self.snapshot.symbols.name(symbol).to_owned();
        SecretEntry {
            cluster: self
                .snapshot
                .clusters
                .get(usize::from(cluster))
                .map_or_else(String::new, |c| c.name.clone()),
            namespace: name(secret.namespace),
            name: name(secret.name),
            kind: name(secret.kind),
            customer: self.owners.name(owner).to_owned(),
            verdict: judge::verdict(owner, &audience),
            certainty: judge::certainty(owner, &audience, &sure),
            audience: audience.customers.iter().map(|whose| self.owners.name(*whose).to_owned()).collect(),
            subjects: self.subject_entries(cluster, secret, all, proven, subjects, owner),
        }
    }

    /// Who reaches a Secret, or another that holds the same credential.
    fn audience(&self, audiences: &Audiences, cluster: u16, secret: &SecretFact) -> judge::Audience {
        let mut audience = audiences.of(&self.graph, &self.owners, cluster, secret);
        for (cluster, namespace, name) in self.shared.others(cluster, secret.namespace, secret.name) {
            let other = SecretFact { namespace, name, ..secret.clone() };
            let reached = audiences.of(&self.graph, &self.owners, cluster, &other);
            audience.customers.extend(reached.customers);
            audience
                .customers
                .extend(Some(self.owners.of_namespace(cluster, namespace)).filter(|w| w.is_customer()));
            audience.unknown |= reached.unknown;
        }
        audience
    }

    fn subject_entries(
        &self,
        cluster: u16,
        secret: &SecretFact,
        all: &Audiences,
        proven: &Audiences,
        (subjects, listed): (Subjects, &Listed),
        owner: Whose,
    ) -> Vec<answer::SubjectEntry> {
        if subjects == Subjects::None {
            return Vec::new();
        }
        let sure = proven.starts_of(&self.graph, cluster, secret);
        let reached = all.starts_of(&self.graph, cluster, secret);
        let entry = |rank| {
            let (index, subject) = listed.get(rank)?;
            let start = self.starts.get(index)?;
            (subjects == Subjects::All || start.whose != owner).then(|| answer::SubjectEntry {
                subject: subject.to_owned(),
                customer: self.owners.name(start.whose).to_owned(),
                certainty: if sure.contains(rank) { Certainty::Proven } else { Certainty::Assumed },
            })
        };
        reached.iter().filter_map(entry).collect()
    }

    /// The start that a question names. A user or group that nothing names is what everybody is.
    fn start(&self, subject: &SubjectRef) -> Result<Start, QuestionError> {
        let cluster = self.cluster(subject.cluster.as_deref())?;
        let symbols = &self.snapshot.symbols;
        let unknown = |hint: &str| QuestionError::UnknownSubject {
            subject: subject.to_string(),
            hint: hint.to_owned(),
        };
        let find = |name: &str| symbols.find(name);
        let identity = |kind, namespace, name| Fact::Identity(Identity { kind, namespace, name });
        let fact = match &subject.subject {
            SubjectName::User(name) => find(name).map(|n| identity(SubjectKind::User, Symbol::EMPTY, n)),
            SubjectName::Group(name) => find(name).map(|n| identity(SubjectKind::Group, Symbol::EMPTY, n)),
            SubjectName::ServiceAccount(namespace, name) => find(namespace)
                .zip(find(name))
                .map(|(namespace, name)| identity(SubjectKind::ServiceAccount, namespace, name)),
            SubjectName::Source(url) => find(url).map(Fact::Source),
        };
        let start = fact.and_then(|fact| {
            let node = self.graph.find(cluster, fact)?;
            self.starts.iter().find(|start| start.node == node)
        });
        start.copied().ok_or_else(|| {
            unknown(match subject.subject {
                SubjectName::ServiceAccount(..) => {
                    ": no ServiceAccount and no binding of that name was loaded"
                }
                SubjectName::Source(_) => ": no source with this URL was loaded",
                _ => ": no binding names it, so it holds what group:system:authenticated holds",
            })
        })
    }

    /// Everything that one subject reaches.
    pub fn reach(&self, subject: &SubjectRef) -> Result<Reach, QuestionError> {
        let start = self.start(subject)?;
        let search = Search::new(&self.graph, start.node, &Anywhere);
        let explainer = self.explainer();
        let mut reach = Reach {
            schema: answer::REACH_SCHEMA.to_owned(),
            complete: self.is_complete(),
            gaps: self.gaps(),
            subject: explainer.subject(start.cluster, &start.fact).unwrap_or_default(),
            customer: self.owners.name(start.whose).to_owned(),
            full_control: false,
            identities: Vec::new(),
            powers: Vec::new(),
            secrets: Vec::new(),
        };
        let mut goals: Vec<NodeId> = Vec::new();
        for &node in search.reached().iter().skip(1) {
            let Some((cluster, of)) = self.graph.node(node) else { continue };
            let fact = match of {
                Node::Fact(fact) => *fact,
                Node::Acting(identity) | Node::ActingFor { identity, .. } => Fact::Identity(*identity),
                Node::ActingAsAnyUser => Fact::AnyUser,
                _ => continue,
            };
            let reached = || Reached {
                what: explainer.describe(node),
                customer: self.owners.name(self.owners.of_fact(*cluster, &fact)).to_owned(),
                certainty: search.certainty(node).unwrap_or(Certainty::Assumed),
                path: explainer.steps(&search.path(&self.graph, node)),
            };
            match fact {
                Fact::Identity(identity) if identity.kind == SubjectKind::Group => {}
                Fact::Identity(_) => reach.identities.push(reached()),
                Fact::Everything(scope) => {
                    reach.full_control |= scope == Scope::Cluster;
                    reach.powers.push(reached());
                }
                Fact::Node(_) | Fact::Nodes | Fact::AnyUser | Fact::Cloud(_) | Fact::OtherCluster(_) => {
                    reach.powers.push(reached());
                }
                Fact::Secrets(_) | Fact::Secret { .. } => goals.push(node),
                _ => {}
            }
        }
        reach.secrets = self.reached_secrets(&start, &search, &goals);
        Ok(reach)
    }

    /// Each loaded Secret under some ends, with the way to the nearest.
    fn reached_secrets(&self, start: &Start, search: &Search, goals: &[NodeId]) -> Vec<ReachedSecret> {
        let explainer = self.explainer();
        let mut ways: rustc_hash::FxHashMap<NodeId, Vec<Step>> = rustc_hash::FxHashMap::default();
        let reached: FxHashSet<NodeId> = goals.iter().copied().collect();
        let mut secrets = Vec::new();
        for (cluster, facts) in (0u16..).zip(&self.snapshot.clusters) {
            for secret in &facts.secrets {
                let ends = judge::ends_of(&self.graph, cluster, secret.namespace, secret.name);
                let mut ends: Vec<(Certainty, NodeId)> = ends
                    .filter(|end| reached.contains(end))
                    .filter_map(|end| Some((search.certainty(end)?, end)))
                    .collect();
                ends.sort_by_key(|(certainty, _)| *certainty);
                let Some((certainty, end)) = ends.first().copied() else { continue };
                let path = ways
                    .entry(end)
                    .or_insert_with(|| explainer.steps(&search.path(&self.graph, end)))
                    .clone();
                let owner = self.owners.of_namespace(cluster, secret.namespace);
                secrets.push(ReachedSecret {
                    cluster: facts.name.clone(),
                    namespace: self.snapshot.symbols.name(secret.namespace).to_owned(),
                    name: self.snapshot.symbols.name(secret.name).to_owned(),
                    customer: self.owners.name(owner).to_owned(),
                    foreign: owner != start.whose || owner == Whose::UNKNOWN,
                    certainty,
                    edge: path.last().map_or_else(String::new, |step| step.edge.clone()),
                    path,
                });
            }
        }
        secrets
    }
}
