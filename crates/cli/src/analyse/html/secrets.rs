//! Secrets by cluster and namespace. Those that need a look come first where there is no room for all.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};

use bailey_access::Certainty;
use bailey_access::answer::{PLATFORM, SecretEntry, SubjectEntry, Verdict};

use super::budget::{Budget, cost};
use super::words::{Tally, Tone, VERDICTS, Who, grouped, is_foreign, verdict_class, verdict_tone};

/// Namespaces that are open from the start: all of a small document, else some that need a look.
const OPEN_SECRETS_MAX: usize = 30;
const OPEN_MAX: usize = 20;
/// Subjects that are listed of each customer.
const LISTED_MAX: usize = 40;
/// Customers that are listed in an audience.
const AUDIENCE_MAX: usize = 12;

const NAMESPACE_BYTES: usize = 1150;
const ROW_BYTES: usize = 540;
const AUDIENCE_BYTES: usize = 130;
const SUBJECT_BYTES: usize = 60;

/// The Secrets of a document.
#[derive(Debug)]
pub struct Secrets<'a> {
    /// How many there are.
    pub total: usize,
    /// How many have each verdict, the worst first.
    pub verdicts: Vec<Tally<Verdict>>,
    /// How many need a look.
    pub wanting: usize,
    /// Whether the document says who the subjects are.
    pub with_subjects: bool,
    /// The clusters.
    pub clusters: Vec<Cluster<'a>>,
    /// How many Secrets are not in a row of their own.
    pub left_out: usize,
}

/// A cluster.
#[derive(Debug)]
pub struct Cluster<'a> {
    /// Its name.
    pub name: &'a str,
    /// How many Secrets it has.
    pub total: usize,
    /// Its namespaces.
    pub namespaces: Vec<Namespace<'a>>,
    /// How many namespaces are left out.
    pub more: usize,
    /// How many Secrets they have.
    pub more_secrets: usize,
}

/// A namespace.
#[derive(Debug)]
pub struct Namespace<'a> {
    /// Its name.
    pub name: &'a str,
    /// How many Secrets it has.
    pub total: usize,
    /// How many have each verdict, without those that none has.
    pub verdicts: Vec<Tally<Verdict>>,
    /// Whether it is shown unfolded.
    pub open: bool,
    /// Who reaches each of its Secrets.
    pub everybody: Option<Crowd<'a>>,
    /// Its Secrets, as far as they are listed.
    pub rows: Vec<Row<'a>>,
    /// All whom `everybody` stands for, those included that it does not list.
    common: HashSet<Identity<'a>>,
}

/// A Secret.
#[derive(Debug)]
pub struct Row<'a> {
    /// The Secret.
    pub secret: &'a SecretEntry,
    /// Who reaches it, apart from those who reach all of the namespace; none where there was no room.
    pub others: Option<Crowd<'a>>,
}

/// Some subjects.
#[derive(Debug, Default)]
pub struct Crowd<'a> {
    /// How many they are.
    pub total: usize,
    /// By customer; those who have no business there first, and the platform last.
    pub groups: Vec<Group<'a>>,
}

/// Subjects of one customer.
#[derive(Debug)]
pub struct Group<'a> {
    /// The customer.
    pub who: Who<'a>,
    /// Its subjects, as far as they are listed.
    pub shown: Vec<&'a SubjectEntry>,
    /// How many more there are.
    pub more: usize,
}

/// Cluster and namespace.
type Key<'a> = (&'a str, &'a str);
/// What makes two subjects the same.
type Identity<'a> = (&'a str, &'a str, Certainty);

impl<'a> Secrets<'a> {
    /// Shows Secrets as far as there is room.
    pub fn new(secrets: &'a [SecretEntry], budget: &mut Budget) -> Self {
        let mut by_namespace = BTreeMap::<Key<'_>, Vec<&SecretEntry>>::new();
        for secret in secrets {
            by_namespace.entry((&secret.cluster, &secret.namespace)).or_default().push(secret);
        }
        let with_subjects = secrets.iter().any(|secret| !secret.subjects.is_empty());
        let mut for_subjects = budget.split(if with_subjects { 35 } else { 0 });
        let mut shown = BTreeMap::<Key<'_>, Namespace<'_>>::new();
        for wanting in [true, false] {
            for (key, secrets) in &by_namespace {
                list(&mut shown, *key, secrets, wanting, budget);
            }
        }
        for_subjects.join(budget);
        if with_subjects {
            for (key, namespace) in &mut shown {
                let secrets = by_namespace.get(key).map_or(&[][..], Vec::as_slice);
                namespace.say_once(secrets, &mut for_subjects);
            }
            for wanting in [true, false] {
                shown.values_mut().for_each(|namespace| namespace.say_who(wanting, &mut for_subjects));
            }
        }
        unfold(&mut shown, secrets.len());
        let listed: usize = shown.values().map(|namespace| namespace.rows.len()).sum();
        Self {
            total: secrets.len(),
            verdicts: verdicts(secrets),
            wanting: secrets.iter().filter(|secret| needs_look(secret)).count(),
            with_subjects,
            clusters: clusters(&by_namespace, shown),
            left_out: secrets.len() - listed,
        }
    }
}

/// Lists the Secrets of a namespace that need a look, or those that do not.
fn list<'a>(
    shown: &mut BTreeMap<Key<'a>, Namespace<'a>>,
    key: Key<'a>,
    secrets: &[&'a SecretEntry],
    wanting: bool,
    budget: &mut Budget,
) {
    let mut wanted = secrets.iter().filter(|secret| needs_look(secret) == wanting).peekable();
    if wanted.peek().is_none() {
        return;
    }
    let namespace = match shown.entry(key) {
        Entry::Occupied(entry) => entry.into_mut(),
        Entry::Vacant(entry) if budget.take(cost(NAMESPACE_BYTES, [key.1])) => {
            entry.insert(Namespace::new(key.1, secrets))
        }
        Entry::Vacant(_) => return,
    };
    for secret in wanted {
        let texts = [&secret.name, &secret.kind, &secret.customer];
        let audience = secret.audience.iter().take(AUDIENCE_MAX);
        let markup = ROW_BYTES + AUDIENCE_BYTES * audience.len();
        if budget.take(cost(markup, texts.into_iter().chain(audience).map(String::as_str))) {
            namespace.rows.push(Row { secret, others: None });
        }
    }
}

fn needs_look(secret: &SecretEntry) -> bool {
    verdict_tone(secret.verdict) != Tone::Good
}

fn verdicts<'a>(secrets: impl IntoIterator<Item = &'a SecretEntry>) -> Vec<Tally<Verdict>> {
    let mut tallies = VERDICTS.map(|of| Tally { of, count: 0 });
    for secret in secrets {
        if let Some(tally) = tallies.iter_mut().find(|tally| tally.of == secret.verdict) {
            tally.count += 1;
        }
    }
    tallies.to_vec()
}

fn identity(subject: &SubjectEntry) -> Identity<'_> {
    (&subject.subject, &subject.customer, subject.certainty)
}

impl<'a> Namespace<'a> {
    fn new(name: &'a str, secrets: &[&SecretEntry]) -> Self {
        let verdicts = verdicts(secrets.iter().copied());
        Self {
            name,
            total: secrets.len(),
            verdicts: verdicts.into_iter().filter(|tally| tally.count > 0).collect(),
            open: false,
            everybody: None,
            rows: Vec::new(),
            common: HashSet::new(),
        }
    }

    /// Says who reaches all Secrets of a namespace with several, instead of saying so in each row.
    fn say_once(&mut self, secrets: &[&'a SecretEntry], budget: &mut Budget) {
        let Some((first, rest)) = secrets.split_first().filter(|(_, rest)| !rest.is_empty()) else { return };
        let mut common: Vec<_> = first.subjects.iter().collect();
        for secret in rest {
            let theirs: HashSet<_> = secret.subjects.iter().map(identity).collect();
            common.retain(|subject| theirs.contains(&identity(subject)));
            if common.is_empty() {
                return;
            }
        }
        let all = common.iter().copied().map(identity).collect();
        // With several owners in one namespace, who is foreign differs from Secret to Secret.
        let one_owner = rest.iter().all(|secret| secret.customer == first.customer);
        let crowd = Crowd::new(common, |who| one_owner && is_foreign(&first.customer, who));
        if budget.take(crowd.bytes()) {
            self.everybody = Some(crowd);
            self.common = all;
        }
    }

    /// Says who else reaches each Secret that needs a look, or each that does not.
    fn say_who(&mut self, wanting: bool, budget: &mut Budget) {
        for row in self.rows.iter_mut().filter(|row| needs_look(row.secret) == wanting) {
            let others =
                row.secret.subjects.iter().filter(|subject| !self.common.contains(&identity(subject)));
            let crowd = Crowd::new(others.collect(), |who| is_foreign(&row.secret.customer, who));
            if budget.take(crowd.bytes()) {
                row.others = Some(crowd);
            }
        }
    }

    /// Classes by which rows and whole namespaces are filtered.
    pub fn classes(&self) -> String {
        let classes: Vec<_> = self.verdicts.iter().map(|tally| verdict_class(tally.of)).collect();
        classes.join(" ")
    }

    /// How many of its Secrets are not listed.
    pub fn more(&self) -> usize {
        self.total - self.rows.len()
    }

    /// Whether a Secret of it needs a look.
    pub fn wanting(&self) -> bool {
        self.verdicts.iter().any(|tally| verdict_tone(tally.of) != Tone::Good)
    }
}

impl<'a> Row<'a> {
    /// Customers of the audience, as far as they are listed.
    pub fn audience(&self) -> Vec<Who<'a>> {
        let listed = self.secret.audience.iter().take(AUDIENCE_MAX);
        listed.map(|name| Who::at(&self.secret.customer, name)).collect()
    }

    /// How many more customers there are in the audience.
    pub fn audience_more(&self) -> usize {
        self.secret.audience.len().saturating_sub(AUDIENCE_MAX)
    }

    /// How many subjects reach it, where those of the whole namespace are said above.
    pub fn subjects(&self, namespace: &Namespace<'_>) -> String {
        let (total, above) = (self.secret.subjects.len(), namespace.common.len());
        match total.checked_sub(above) {
            Some(0) if above > 0 => format!("{}, as above", grouped(total)),
            Some(more) if above > 0 => {
                format!("{}: {} above, {} more", grouped(total), grouped(above), grouped(more))
            }
            _ => grouped(total),
        }
    }
}

impl<'a> Crowd<'a> {
    fn new(subjects: Vec<&'a SubjectEntry>, foreign: impl Fn(&str) -> bool) -> Self {
        let mut by_customer = BTreeMap::<&str, Vec<&SubjectEntry>>::new();
        let total = subjects.len();
        for subject in subjects {
            by_customer.entry(&subject.customer).or_default().push(subject);
        }
        let group = |(customer, mut shown): (&'a str, Vec<&'a SubjectEntry>)| {
            let more = shown.split_off(shown.len().min(LISTED_MAX)).len();
            Group { who: Who { name: customer, foreign: foreign(customer) }, shown, more }
        };
        let mut groups: Vec<_> = by_customer.into_iter().map(group).collect();
        groups.sort_by_key(|group| (!group.who.foreign, group.who.name == PLATFORM));
        Self { total, groups }
    }

    fn bytes(&self) -> usize {
        let of = |group: &Group<'_>| {
            let subjects = group.shown.iter().map(|subject| cost(SUBJECT_BYTES, [subject.subject.as_str()]));
            cost(200, [group.who.name]) + subjects.sum::<usize>()
        };
        100 + self.groups.iter().map(of).sum::<usize>()
    }
}

fn unfold(shown: &mut BTreeMap<Key<'_>, Namespace<'_>>, secrets: usize) {
    let all = secrets <= OPEN_SECRETS_MAX;
    let open = shown.values_mut().filter(|namespace| all || namespace.wanting());
    open.take(if all { usize::MAX } else { OPEN_MAX }).for_each(|namespace| namespace.open = true);
}

fn clusters<'a>(
    all: &BTreeMap<Key<'a>, Vec<&'a SecretEntry>>,
    mut shown: BTreeMap<Key<'a>, Namespace<'a>>,
) -> Vec<Cluster<'a>> {
    let mut clusters = Vec::<Cluster<'_>>::new();
    for (key, secrets) in all {
        let mut cluster = match clusters.pop_if(|cluster| cluster.name == key.0) {
            Some(cluster) => cluster,
            None => Cluster { name: key.0, total: 0, namespaces: Vec::new(), more: 0, more_secrets: 0 },
        };
        cluster.total += secrets.len();
        match shown.remove(key) {
            Some(namespace) => cluster.namespaces.push(namespace),
            None => {
                cluster.more += 1;
                cluster.more_secrets += secrets.len();
            }
        }
        clusters.push(cluster);
    }
    clusters
}
