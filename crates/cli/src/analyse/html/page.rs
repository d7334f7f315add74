//! What all pages have at their top: the question, the answer in a sentence, what could not be read, where to go.

use bailey_access::answer::GapEntry;

use super::words::{Phrase, Tone, count, grouped};

/// Gaps that a page lists; more are counted.
const GAPS_MAX: usize = 200;

/// Top of a page.
#[derive(Debug)]
pub struct Head<'a> {
    /// The question that the page answers; its first heading.
    pub question: Phrase,
    /// The answer, in a sentence or two.
    pub answer: Phrase,
    /// How good the answer is.
    pub tone: Tone,
    /// Whether everything needed could be read.
    pub complete: bool,
    /// What could not, as far as it is listed.
    pub gaps: &'a [GapEntry],
    /// How many more there are.
    pub gaps_more: usize,
    /// Sections below, in order.
    pub sections: Vec<Section>,
    /// Schema of the document.
    pub schema: &'a str,
}

/// A section, for the list of contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Its id.
    pub id: &'static str,
    /// Its title.
    pub title: String,
}

impl Section {
    /// A section of that id and title.
    pub fn new(id: &'static str, title: impl Into<String>) -> Self {
        Self { id, title: title.into() }
    }

    /// A section about a number of things.
    pub fn counted(id: &'static str, title: &str, number: usize) -> Self {
        Self::new(id, format!("{title} ({})", grouped(number)))
    }
}

impl<'a> Head<'a> {
    /// A head without sections.
    pub fn new(schema: &'a str, question: Phrase, complete: bool, gaps: &'a [GapEntry]) -> Self {
        Self {
            question,
            answer: Phrase::default(),
            tone: Tone::Unsure,
            complete,
            gaps: gaps.get(..GAPS_MAX).unwrap_or(gaps),
            gaps_more: gaps.len().saturating_sub(GAPS_MAX),
            sections: Vec::new(),
            schema,
        }
    }

    /// Gives the answer. Good news of an incomplete answer is not known to be good.
    pub fn answer(&mut self, tone: Tone, answer: Phrase) {
        let incomplete = tone == Tone::Good && !self.complete;
        self.tone = if incomplete { Tone::Unsure } else { tone };
        self.answer = answer;
    }

    /// What is said about things that could not be read.
    pub fn gaps_title(&self) -> String {
        match self.gaps.len() + self.gaps_more {
            0 => "Incomplete: something could not be read".to_owned(),
            gaps => format!("Incomplete: {} could not be read", count(gaps, "thing", "things")),
        }
    }

    /// Whether a gap names its cluster.
    pub fn gaps_have_clusters(&self) -> bool {
        self.gaps.iter().any(|gap| gap.cluster.is_some())
    }

    /// Version of the program.
    pub fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }
}
