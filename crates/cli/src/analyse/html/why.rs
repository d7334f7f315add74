//! The page of the ways from a subject to a Secret.

use askama::Template;
use bailey_access::answer::{Why, WhyPath};

use super::budget::Budget;
use super::page::{Head, Section};
use super::way::{self, Way};
use super::words::{self, Phrase, Tone, count};

/// The page.
#[derive(Debug, Template)]
#[template(path = "why.html")]
pub struct Page<'a> {
    head: Head<'a>,
    answer: &'a Why,
    ways: Vec<(&'a WhyPath, Way<'a>)>,
    left_out: usize,
}

impl<'a> Page<'a> {
    /// Makes the page.
    pub fn new(answer: &'a Why) -> Self {
        let mut budget = Budget::of_page();
        let paths = budget.fitting(&answer.paths, |path| way::bytes(&path.steps, 1));
        let way = |(at, path): (usize, &'a WhyPath)| {
            (
                path,
                Way::new(&format!("way-{}", at + 1), &path.steps, 0, std::slice::from_ref(&answer.secret), 1),
            )
        };
        let mut head = Head::new(&answer.schema, question(answer), answer.complete, &answer.gaps);
        // Whether it is right to reach it is not said by this document.
        head.answer(if answer.reached { Tone::Unsure } else { Tone::Good }, sentence(answer));
        head.sections = if answer.reached {
            vec![Section::counted("ways", "Ways", answer.paths.len())]
        } else {
            Vec::new()
        };
        Self {
            head,
            answer,
            ways: paths.iter().enumerate().map(way).collect(),
            left_out: answer.paths.len() - paths.len(),
        }
    }
}

fn question(answer: &Why) -> Phrase {
    Phrase::of("Why does ").name(&answer.subject).words(" reach Secret ").name(&answer.secret).words("?")
}

fn sentence(answer: &Why) -> Phrase {
    let whose = |sentence: Phrase| sentence.words(" The subject is ").name(&answer.customer).words("'s.");
    if answer.reached {
        let ways = count(answer.paths.len(), "way", "ways");
        return whose(Phrase::of(format!("It does, in {ways} that start by different bindings.")));
    }
    let sentence = if answer.complete {
        "It does not: nothing that was loaded leads there."
    } else {
        "It does not by anything that could be read; not everything could."
    };
    whose(Phrase::of(sentence))
}
