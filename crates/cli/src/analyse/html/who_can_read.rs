//! The page of who reaches one Secret.

use std::collections::BTreeMap;

use askama::Template;
use bailey_access::answer::{PLATFORM, Reader, Verdict, WhoCanRead};

use super::budget::{Budget, cost};
use super::page::{Head, Section};
use super::way::{self, Way};
use super::words::{self, Phrase, Who, count, is_foreign};

/// Readers whose path is unfolded from the start.
const OPEN_MAX: usize = 5;

/// The page.
#[derive(Debug, Template)]
#[template(path = "who_can_read.html")]
pub struct Page<'a> {
    head: Head<'a>,
    answer: &'a WhoCanRead,
    customers: Vec<Customer<'a>>,
    readers: Vec<Entry<'a>>,
    rows: Vec<(&'a Reader, Who<'a>)>,
    left_out: usize,
}

/// How many subjects of a customer reach it.
#[derive(Debug)]
struct Customer<'a> {
    who: Who<'a>,
    subjects: usize,
}

/// A reader with its path.
#[derive(Debug)]
struct Entry<'a> {
    reader: &'a Reader,
    who: Who<'a>,
    open: bool,
    way: Way<'a>,
}

impl<'a> Page<'a> {
    /// Makes the page.
    pub fn new(answer: &'a WhoCanRead) -> Self {
        let secret = &answer.secret;
        let target = format!("{}/{}", secret.namespace, secret.name);
        let mut budget = Budget::of_page();
        let mut for_rows = budget.split(20);
        let (mut readers, mut rows, mut left_out) = (Vec::new(), Vec::new(), 0);
        for (at, reader) in answer.subjects.iter().enumerate() {
            let who = Who::at(&secret.customer, &reader.customer);
            let texts = || [reader.subject.as_str(), reader.customer.as_str()];
            if budget.take(cost(700, texts()) + way::bytes(&reader.path, 1) + 2 * target.len()) {
                let way = Way::new(
                    &format!("reader-{}", at + 1),
                    &reader.path,
                    0,
                    std::slice::from_ref(&target),
                    1,
                );
                readers.push(Entry { reader, who, open: at < OPEN_MAX, way });
            } else if for_rows.take(cost(250, texts())) {
                rows.push((reader, who));
            } else {
                left_out += 1;
            }
        }
        let mut head = Head::new(&answer.schema, question(answer), answer.complete, &answer.gaps);
        head.answer(words::verdict_tone(secret.verdict), sentence(answer));
        head.sections = vec![
            Section::new("secret", "The Secret"),
            Section::counted("readers", "Who reaches it", answer.subjects.len()),
        ];
        Self { head, answer, customers: customers(answer), readers, rows, left_out }
    }
}

fn question(answer: &WhoCanRead) -> Phrase {
    Phrase::of("Who reaches Secret ")
        .name(format!("{}/{}", answer.secret.namespace, answer.secret.name))
        .words(" of cluster ")
        .name(&answer.secret.cluster)
        .words("?")
}

fn customers(answer: &WhoCanRead) -> Vec<Customer<'_>> {
    let mut counts = BTreeMap::<&str, usize>::new();
    for reader in &answer.subjects {
        *counts.entry(&reader.customer).or_default() += 1;
    }
    let of = |(name, subjects)| Customer { who: Who::at(&answer.secret.customer, name), subjects };
    let mut customers: Vec<_> = counts.into_iter().map(of).collect();
    customers.sort_by_key(|customer| (!customer.who.foreign, customer.who.name == PLATFORM));
    customers
}

fn sentence(answer: &WhoCanRead) -> Phrase {
    let owner = &answer.secret.customer;
    let sentence = match answer.secret.verdict {
        Verdict::PlatformOnly => Phrase::of("Only the platform, as it should be."),
        Verdict::ExactlyOne => {
            Phrase::of("Exactly the customer whose it is, ").name(owner).words(", besides the platform.")
        }
        Verdict::Shared => Phrase::of("It is customer ").name(owner).words("'s, and others reach it too."),
        Verdict::Exposed => Phrase::of("It is the platform's, and a customer reaches it."),
        Verdict::Unowned => Phrase::of("Nobody knows whose it is, so nobody can say whether this is right."),
    };
    let total = answer.subjects.len();
    let foreign = answer.subjects.iter().filter(|reader| is_foreign(owner, &reader.customer)).count();
    let mut numbers = format!(" {} it", count(total, "subject reaches", "subjects reach"));
    if foreign > 0 {
        numbers += &format!(", {} of them without having any business there", words::grouped(foreign));
    }
    sentence.words(numbers + ".")
}
