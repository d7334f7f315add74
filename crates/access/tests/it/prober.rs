//! Tries every known technique as somebody, and again as whomever that gives, until nothing is new.
//!
//! It knows nothing of the analyser: the server's answers alone decide. What a step gives (an identity) is held by its
//! own credentials from then on, once the server has given or accepted one.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use anyhow::Result;
use serde_json::{Value, json};

use crate::case::{Case, Planted};
use crate::changes::{Change, remakes};
use crate::direct::{self, Direct, Edges, MANAGER};
use crate::server::{Request, Who};
use crate::spec::{GHOST, GROUPS, LABEL, NAMESPACES};

mod tokens;

/// How often the world may be changed for one start.
const ROUNDS_MAX: usize = 12;
/// How many choices are tried for one start.
const CHOICES_MAX: usize = 40;

type Key = (String, String);

pub struct Prober<'a> {
    pub case: Case<'a>,
    /// What single requests gave, by version of the case and by who.
    memo: BTreeMap<(u64, Who), Rc<Direct>>,
    /// The only edges that may be used, if not all.
    only: Option<BTreeSet<String>>,
    /// When these are read there is nothing more to find.
    wanted: BTreeSet<Key>,
    serial: usize,
}

/// What one start holds.
#[derive(Debug, Default)]
struct Held {
    /// Whom it acts as; true with credentials, false by impersonation only.
    who: BTreeMap<Who, bool>,
    reads: BTreeSet<Key>,
    /// Changes that somebody may make, found in any version, what is worth most first.
    possible: Vec<(Who, Change)>,
    done: BTreeSet<(Change, usize)>,
    tried: BTreeSet<(Key, String)>,
    certified: BTreeSet<Who>,
    policies: usize,
    /// What names are used for that could be used for several bindings.
    chosen: Choice,
    /// Bindings that could have been made in place of others of their names.
    others: BTreeSet<Choice>,
}

/// Which role the binding of a name is made for, by its place and name.
type Choice = BTreeMap<(Option<usize>, String), Change>;

impl Held {
    fn all(&self) -> Vec<Who> {
        self.who.keys().cloned().collect()
    }

    /// Places where everybody held was given everything.
    fn owned(&self) -> BTreeSet<Option<usize>> {
        let all = |(change, subjects): &(Change, usize)| match change {
            Change::Bind { place, cluster_role: true, role, .. } => {
                (role == "cluster-admin" && *subjects > 0).then_some(*place)
            }
            _ => None,
        };
        self.done.iter().filter_map(all).collect()
    }

    /// Whether a change may be made: a binding of a name is made for one role only, and others are kept for later.
    fn chooses(&mut self, change: &Change) -> bool {
        let Some(name) = change.binding_name() else { return true };
        let chosen = self.chosen.entry(name.clone()).or_insert_with(|| change.clone());
        if chosen == change {
            return true;
        }
        // No other role is worth more.
        if matches!(chosen, Change::Bind { cluster_role: true, role, .. } if role == "cluster-admin") {
            return false;
        }
        let mut other = self.chosen.clone();
        other.insert(name, change.clone());
        self.others.insert(other);
        false
    }

    fn has_credentials(&self, who: &Who) -> bool {
        self.who.get(who) == Some(&true)
    }
}

impl<'a> Prober<'a> {
    pub fn new(case: Case<'a>) -> Self {
        let wanted = case.goals.iter().map(Planted::key).collect();
        Self { case, memo: BTreeMap::new(), only: None, wanted, serial: 0 }
    }

    /// The Secrets that somebody gets to see.
    pub async fn reach(&mut self, start: &Who) -> Result<BTreeSet<Key>> {
        self.search(start, None).await
    }

    /// Whether it gets to see one of them with some edges of the analyser only: a claimed path, walked.
    pub async fn walk(&mut self, start: &Who, edges: &BTreeSet<String>, secret: &Key) -> Result<bool> {
        self.wanted = BTreeSet::from([secret.clone()]);
        let reached = self.search(start, Some(edges.clone())).await;
        self.wanted = self.case.goals.iter().map(Planted::key).collect();
        Ok(reached?.contains(secret))
    }

    async fn search(&mut self, start: &Who, only: Option<BTreeSet<String>>) -> Result<BTreeSet<Key>> {
        self.only = only;
        let mut reads = BTreeSet::new();
        let mut open = vec![Choice::new()];
        let mut seen = BTreeSet::from([Choice::new()]);
        while let Some(chosen) = open.pop() {
            let held = self.follow(start, chosen).await?;
            reads.extend(held.reads);
            if self.wanted.is_subset(&reads) || seen.len() > CHOICES_MAX {
                break;
            }
            open.extend(held.others.into_iter().filter(|other| seen.insert(other.clone())));
        }
        Ok(reads.intersection(&self.wanted).cloned().collect())
    }

    /// Follows everything there is from one start, with certain choices made.
    async fn follow(&mut self, start: &Who, chosen: Choice) -> Result<Held> {
        let started = std::time::Instant::now();
        let mut held = Held { chosen, ..Held::default() };
        held.who.insert(start.clone(), true);
        for _ in 0..ROUNDS_MAX {
            self.spread(&mut held).await?;
            if self.has_all(&held) || !self.change(&mut held).await? {
                break;
            }
        }
        if std::env::var_os("BAILEY_ORACLE_TRACE").is_some() {
            let sent = self.case.server.sent.load(std::sync::atomic::Ordering::Relaxed);
            eprintln!(
                "  {} {:?} only {:?}: {} identities, {} Secrets, version {}, {sent} requests, {} ms",
                start.user,
                start.groups,
                self.only,
                held.who.len(),
                held.reads.len(),
                self.case.version,
                started.elapsed().as_millis()
            );
        }
        self.case.restore().await?;
        Ok(held)
    }

    fn has_all(&self, held: &Held) -> bool {
        self.wanted.is_subset(&held.reads)
    }

    /// Whether an edge of this name, or beginning like this, may be used.
    fn may(&self, edge: &str) -> bool {
        // Whoever holds all rights holds those of every edge.
        let all = |only: &BTreeSet<String>| only.contains("all-rights") || only.contains("masters");
        let one = |only: &BTreeSet<String>| only.iter().any(|known| known.starts_with(edge));
        self.only.as_ref().is_none_or(|only| one(only) || all(only))
    }

    fn may_make_tokens(&self) -> bool {
        ["token-secret", "replace-by-token-secret", "repoint-token-secret", "absent-account"]
            .iter()
            .any(|edge| self.may(edge))
    }

    fn may_any(&self, edges: &Edges) -> bool {
        edges.iter().any(|edge| self.may(edge))
    }

    async fn direct(&mut self, who: &Who, held: &Held) -> Result<Rc<Direct>> {
        let key = (self.case.version, who.clone());
        if let Some(known) = self.memo.get(&key) {
            return Ok(Rc::clone(known));
        }
        let direct = Rc::new(direct::direct(&self.case, who, &held.owned()).await?);
        self.memo.insert(key, Rc::clone(&direct));
        Ok(direct)
    }

    /// Follows everything that changes nothing.
    async fn spread(&mut self, held: &mut Held) -> Result<()> {
        let mut open = held.all();
        while let Some(who) = open.pop() {
            let direct = self.direct(&who, held).await?;
            for change in &direct.changes {
                let possible = (who.clone(), change.clone());
                if !held.possible.contains(&possible) {
                    held.possible.push(possible);
                }
            }
            let mut gained = Vec::new();
            for (key, edges) in &direct.reads {
                let may_read = self.may_any(edges);
                if may_read {
                    held.reads.insert(key.clone());
                }
                let token = self.case.secrets().find(|secret| secret.key() == *key);
                if let Some(account) = token.and_then(|secret| secret.account.as_deref())
                    && ((may_read && self.may("stored-token")) || self.may_make_tokens())
                {
                    gained.push((Who::account(&key.0, account), true));
                }
            }
            if self.may("token-request") || self.may("absent-account") {
                gained.extend(direct.tokens.iter().map(|who| (who.clone(), true)));
            }
            if held.has_credentials(&who) {
                let acts = direct.acts.iter().filter(|(_, edges)| edges.iter().all(|edge| self.may(edge)));
                gained.extend(acts.map(|(who, _)| (who.clone(), false)));
            }
            for (who, credentials) in gained {
                let known = held.who.get(&who).copied();
                if known.is_none() || (known == Some(false) && credentials) {
                    held.who.insert(who.clone(), credentials);
                    open.push(who);
                }
            }
            if self.has_all(held) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Makes every change that anybody held may make, once for everybody held. Whether there were any.
    async fn change(&mut self, held: &mut Held) -> Result<bool> {
        let mut all = Vec::new();
        for who in held.all() {
            let direct = self.direct(&who, held).await?;
            all.push((who, direct));
        }
        let mut changed = self.change_roles(held).await?;
        changed |= self.make_accounts(&all).await?;
        changed |= self.make_tokens(held, &all).await?;
        if changed {
            self.case.written().await?;
            return Ok(true);
        }
        // What needs Secrets to be replaced is done alone, one after the other, and undone.
        let mut gained = self.use_names(held, &all).await?;
        gained |= self.point_tokens(held, &all).await?;
        gained |= self.issue(held, &all).await?;
        gained |= self.read_by_policy(held, &all).await?;
        Ok(gained)
    }

    async fn change_roles(&mut self, held: &mut Held) -> Result<bool> {
        let subjects: Vec<Value> = held.who.keys().map(Who::subject).collect();
        let may = |change: &Change| change.edges().iter().any(|edge| self.may(edge));
        let possible: Vec<(Who, Change)> =
            held.possible.iter().filter(|(_, change)| may(change)).cloned().collect();
        let mut changed = false;
        for (who, change) in &possible {
            if matches!(change, Change::Delete { .. }) || !held.chooses(change) {
                continue;
            }
            let again = if change.has_subjects() { subjects.len() } else { 0 };
            if held.done.insert((change.clone(), again)) {
                changed |= self.make(who, change, &subjects).await?;
            }
        }
        for (deleting, delete) in &possible {
            let Change::Delete { path } = delete else { continue };
            for (who, change) in &possible {
                let Some(made) = remakes(change, path) else { continue };
                if held.done.insert((made.clone(), 0)) {
                    let deleted = self.make(deleting, delete, &[]).await?;
                    changed |= deleted && self.make(who, &made, &[]).await?;
                }
            }
        }
        Ok(changed)
    }

    async fn make(&mut self, who: &Who, change: &Change, subjects: &[Value]) -> Result<bool> {
        self.serial += 1;
        let Some(request) = change.request(&self.case, subjects, self.serial) else { return Ok(false) };
        if let Some(path) = change.path() {
            self.case.remember(path);
        }
        let answer = self.case.server.ask(who, &request).await?;
        if std::env::var_os("BAILEY_ORACLE_TRACE").is_some() {
            eprintln!("    {} {change:?} as {}: {}", request.path, who.user, answer.status);
            if !answer.ok() {
                eprintln!("      {}", answer.text);
            }
        }
        Ok(answer.ok())
    }

    /// Makes accounts that bindings name.
    async fn make_accounts(&mut self, all: &[(Who, Rc<Direct>)]) -> Result<bool> {
        let mut changed = false;
        for (place, namespace) in NAMESPACES.iter().enumerate() {
            let maker = all.iter().find(|(_, direct)| direct.makes_accounts.contains(&place));
            let (Some((who, _)), true) = (maker, self.may("absent-account")) else { continue };
            if self.case.ghosts.contains(&place) || !self.is_named(namespace) {
                continue;
            }
            let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
            let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": GHOST, "labels": {LABEL: "probe"}}});
            if self.case.server.ask(who, &Request::post(path, account)).await?.ok() {
                self.case.ghosts.insert(place);
                changed = true;
            }
        }
        Ok(changed)
    }

    fn is_named(&self, namespace: &str) -> bool {
        self.case.objects.bindings.iter().any(|binding| {
            binding.body["subjects"].as_array().into_iter().flatten().any(|subject| {
                (subject["kind"] == "ServiceAccount"
                    && subject["namespace"] == namespace
                    && subject["name"] == GHOST)
                    || subject["name"] == format!("system:serviceaccount:{namespace}:{GHOST}").as_str()
            })
        })
    }

    /// Has certificates issued for a strong user and for members of each group.
    async fn issue(&mut self, held: &mut Held, all: &[(Who, Rc<Direct>)]) -> Result<bool> {
        let asking = all.iter().find(|(_, direct)| direct.asks_certificates);
        let (Some((asking, _)), true) = (asking, self.may("sign-certificate")) else { return Ok(false) };
        let mut wanted = vec![Who::user(MANAGER)];
        wanted.extend(GROUPS.map(|group| Who::in_groups("oracle-certified", &[group])));
        let mut gained = false;
        for wanted in wanted {
            let again = Who { user: format!("{}/{}", wanted.user, held.who.len()), ..wanted.clone() };
            if held.has_credentials(&wanted) || !held.certified.insert(again) {
                continue;
            }
            if crate::certificates::issue(&self.case, asking, &held.all(), &wanted).await? {
                held.who.insert(wanted, true);
                gained = true;
            }
        }
        Ok(gained)
    }

    async fn read_by_policy(&mut self, held: &mut Held, all: &[(Who, Rc<Direct>)]) -> Result<bool> {
        let writer = |half: fn(&Direct) -> bool| all.iter().find(|(_, d)| half(d)).map(|(who, _)| who);
        let (Some(first), Some(second), true) = (
            writer(|direct| direct.makes_policies.0),
            writer(|direct| direct.makes_policies.1),
            self.may("policy-message-read"),
        ) else {
            return Ok(false);
        };
        if held.policies == held.who.len() {
            return Ok(false);
        }
        held.policies = held.who.len();
        let found = crate::policies::read(&self.case, [first, second], &held.all()).await?;
        let before = held.reads.len();
        held.reads.extend(found.iter().map(Planted::key));
        Ok(held.reads.len() > before)
    }
}
