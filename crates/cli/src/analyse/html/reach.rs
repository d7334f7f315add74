//! The page of everything that one subject reaches. Secrets that are reached the same way stand together.

use std::collections::BTreeMap;

use askama::Template;
use bailey_access::Certainty;
use bailey_access::answer::{PLATFORM, Reach, Reached, ReachedSecret, UNKNOWN};

use super::budget::{Budget, cost};
use super::page::{Head, Section};
use super::way::{self, Way};
use super::words::{self, Phrase, Tone, Who, count};

/// Groups of foreign Secrets that are unfolded from the start.
const OPEN_MAX: usize = 3;
/// Secrets of a namespace that are listed.
const NAMES_MAX: usize = 100;

/// The page.
#[derive(Debug, Template)]
#[template(path = "reach.html")]
pub struct Page<'a> {
    head: Head<'a>,
    secrets: Vec<Secrets<'a>>,
    others: Vec<Others<'a>>,
}

/// Foreign Secrets, or own ones.
#[derive(Debug)]
struct Secrets<'a> {
    id: &'static str,
    title: String,
    foreign: bool,
    groups: Vec<Group<'a>>,
    /// Secrets whose group is not shown.
    left_out: usize,
}

/// Secrets that are reached the same way.
#[derive(Debug)]
struct Group<'a> {
    total: usize,
    customers: Vec<Who<'a>>,
    certainty: Certainty,
    open: bool,
    /// None where there was no room.
    way: Option<Way<'a>>,
    places: Vec<Place<'a>>,
    /// Namespaces that are not listed.
    more: usize,
}

/// Secrets of one owner in one namespace.
#[derive(Debug)]
struct Place<'a> {
    cluster: &'a str,
    namespace: &'a str,
    customer: &'a str,
    total: usize,
    names: Vec<&'a str>,
}

/// Identities, or powers.
#[derive(Debug)]
struct Others<'a> {
    id: &'static str,
    title: String,
    about: &'static str,
    entries: Vec<(&'a Reached, Who<'a>, Way<'a>)>,
    rows: Vec<&'a Reached>,
    left_out: usize,
}

impl<'a> Page<'a> {
    /// Makes the page.
    pub fn new(answer: &'a Reach) -> Self {
        let mut budget = Budget::of_page();
        let identities = ("identities", "Identities", "Whom it can act as.");
        let powers =
            ("powers", "Powers", "Nodes, clusters, cloud identities and whatever else it gets hold of.");
        let others = budget.lend(25, |budget| {
            [
                budget
                    .lend(50, |budget| Others::new(identities, &answer.identities, &answer.customer, budget)),
                Others::new(powers, &answer.powers, &answer.customer, budget),
            ]
        });
        let secrets = [("foreign", "Secrets of others", true), ("own", "Own Secrets", false)];
        let secrets =
            secrets.map(|(id, title, foreign)| Secrets::new(id, title, foreign, answer, &mut budget));
        let others: Vec<_> = others.into_iter().filter(|list| !list.is_empty()).collect();
        let secrets: Vec<_> = secrets.into_iter().filter(|list| !list.groups.is_empty()).collect();

        let question = Phrase::of("What does ").name(&answer.subject).words(" reach?");
        let mut head = Head::new(&answer.schema, question, answer.complete, &answer.gaps);
        let (tone, sentence) = sentence(answer);
        head.answer(tone, sentence);
        let of_secrets = secrets.iter().map(|list| Section::new(list.id, list.title.as_str()));
        head.sections =
            of_secrets.chain(others.iter().map(|list| Section::new(list.id, list.title.as_str()))).collect();
        Self { head, secrets, others }
    }
}

impl<'a> Secrets<'a> {
    fn new(id: &'static str, title: &str, foreign: bool, answer: &'a Reach, budget: &mut Budget) -> Self {
        let mut alike = BTreeMap::<_, Vec<&ReachedSecret>>::new();
        let mut total = 0;
        for secret in answer.secrets.iter().filter(|secret| secret.foreign == foreign) {
            let steps = secret.path.iter();
            let through: Vec<_> = steps.map(|step| (&*step.edge, &*step.object, &*step.rule)).collect();
            alike.entry((secret.certainty, through)).or_default().push(secret);
            total += 1;
        }
        let mut alike: Vec<_> = alike.into_values().collect();
        alike.sort_by_key(|secrets| std::cmp::Reverse(secrets.len()));
        let (mut groups, mut left_out) = (Vec::new(), 0);
        for (at, secrets) in alike.iter().enumerate() {
            let open = foreign && at < OPEN_MAX;
            match Group::new(&format!("{id}-{}", at + 1), secrets, open, budget) {
                Some(group) => groups.push(group),
                None => left_out += secrets.len(),
            }
        }
        Self { id, title: format!("{title} ({})", words::grouped(total)), foreign, groups, left_out }
    }
}

impl<'a> Group<'a> {
    fn new(id: &str, secrets: &[&'a ReachedSecret], open: bool, budget: &mut Budget) -> Option<Self> {
        let first = secrets.first()?;
        let mut by_place = BTreeMap::<_, Vec<&str>>::new();
        for secret in secrets {
            let place = (&*secret.cluster, &*secret.namespace, &*secret.customer);
            by_place.entry(place).or_default().push(&secret.name);
        }
        let mut customers: Vec<_> = by_place.keys().map(|(_, _, customer)| *customer).collect();
        customers.sort_unstable();
        customers.dedup();
        if !budget.take(cost(1200 + 130 * customers.len(), customers.iter().copied())) {
            return None;
        }
        let way = budget.take(way::bytes(&first.path, secrets.len())).then(|| {
            let names: Vec<_> =
                secrets.iter().map(|secret| format!("{}/{}", secret.namespace, secret.name)).collect();
            Way::new(id, &first.path, 0, &names, names.len())
        });
        let all = by_place.len();
        let places: Vec<_> = by_place
            .into_iter()
            .map(|((cluster, namespace, customer), mut names)| {
                let total = names.len();
                names.truncate(NAMES_MAX);
                Place { cluster, namespace, customer, total, names }
            })
            .take_while(|place| budget.take(place.bytes()))
            .collect();
        Some(Self {
            total: secrets.len(),
            customers: customers
                .into_iter()
                .map(|name| Who { name, foreign: first.foreign && name != UNKNOWN })
                .collect(),
            certainty: first.certainty,
            open,
            way,
            more: all - places.len(),
            places,
        })
    }

    /// In how many namespaces they are.
    fn namespaces(&self) -> usize {
        self.places.len() + self.more
    }
}

impl Place<'_> {
    fn bytes(&self) -> usize {
        let names: usize = self.names.iter().map(|name| cost(45, [*name])).sum();
        cost(450, [self.cluster, self.namespace, self.customer]) + names
    }
}

impl<'a> Others<'a> {
    fn new(
        (id, title, about): (&'static str, &str, &'static str),
        all: &'a [Reached],
        customer: &str,
        budget: &mut Budget,
    ) -> Self {
        let title = format!("{title} ({})", words::grouped(all.len()));
        let mut list = Self { id, title, about, entries: Vec::new(), rows: Vec::new(), left_out: 0 };
        let mut for_rows = budget.split(20);
        for reached in all {
            let texts = || [reached.what.as_str(), reached.customer.as_str()];
            if budget.take(cost(700, texts()) + way::bytes(&reached.path, 0)) {
                let way = Way::new(&format!("{id}-{}", list.entries.len() + 1), &reached.path, 0, &[], 0);
                list.entries.push((reached, Who::at(customer, &reached.customer), way));
            } else if for_rows.take(cost(300, texts())) {
                list.rows.push(reached);
            } else {
                list.left_out += 1;
            }
        }
        budget.join(&for_rows);
        list
    }

    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.rows.is_empty() && self.left_out == 0
    }
}

fn sentence(answer: &Reach) -> (Tone, Phrase) {
    let foreign = answer.secrets.iter().filter(|secret| secret.foreign).count();
    let (tone, text) = match foreign {
        _ if answer.full_control => (Tone::Bad, "Everything of a cluster: it has full control.".to_owned()),
        0 if answer.secrets.is_empty() => (Tone::Good, "No Secret.".to_owned()),
        0 => (Tone::Good, "Only Secrets of its own customer.".to_owned()),
        1 => (Tone::Bad, "1 Secret that is not its customer's own.".to_owned()),
        some => (Tone::Bad, format!("{} Secrets that are not its customer's own.", words::grouped(some))),
    };
    let totals = format!(
        " In all {}, {} and {}. The subject is ",
        count(answer.secrets.len(), "Secret", "Secrets"),
        count(answer.identities.len(), "identity", "identities"),
        count(answer.powers.len(), "other power", "other powers")
    );
    // The platform is meant to reach what is others'.
    let tone = if answer.customer == PLATFORM { Tone::Unsure } else { tone };
    (tone, Phrase::of(text + &totals).name(&answer.customer).words("'s."))
}
