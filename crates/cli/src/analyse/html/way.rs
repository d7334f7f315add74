//! A path to be shown: drawn, and as a table of its steps.

use bailey_access::answer::Step;

use super::budget::cost;
use super::diagram::{self, TARGETS_MAX};
use super::escape;
use super::layout::Drawing;

/// A path.
#[derive(Debug)]
pub struct Way<'a> {
    /// Caption of the table.
    pub caption: String,
    /// The steps.
    pub steps: &'a [Step],
    /// The drawing; none for a path without steps.
    pub drawing: Option<Drawing>,
}

impl<'a> Way<'a> {
    /// A path that others take too, to Secrets given as `NS/NAME`, `NS/*` or `*/*`. The id must be one of its own.
    pub fn new(id: &str, steps: &'a [Step], others: usize, secrets: &[String], secret_count: usize) -> Self {
        let drawing = diagram::of(id, steps, others, secrets, secret_count);
        Self { caption: caption(steps.len()), steps, drawing }
    }

    /// Whether a step says in which file its object is.
    pub fn has_evidence(&self) -> bool {
        self.steps.iter().any(|step| step.at.is_some())
    }
}

fn caption(steps: usize) -> String {
    match steps {
        1 => "The path, in 1 step".to_owned(),
        steps => format!("The path, in {steps} steps"),
    }
}

/// Bytes that a path to so many Secrets takes on a page, about.
pub fn bytes(steps: &[Step], secrets: usize) -> usize {
    // Most texts stand in the table, in the words for the drawing, and with a box that does not hold them.
    let of = |step: &Step| {
        let thrice: usize =
            [&step.from, &step.to, &step.object, &step.rule].map(|text| escape::bytes(text)).iter().sum();
        let once = [Some(&step.edge), step.at.as_ref(), step.guard.as_ref()].into_iter().flatten();
        cost(1250 + 3 * thrice, once.map(String::as_str))
    };
    1100 + 350 * secrets.min(TARGETS_MAX) + steps.iter().map(of).sum::<usize>()
}
