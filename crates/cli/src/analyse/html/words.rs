//! The words of the report: verdicts, severities, numbers, and sentences with names in them.

use bailey_access::Certainty;
use bailey_access::answer::{EVERYONE, PLATFORM, Severity, UNKNOWN, Verdict};

/// A sentence in which names are told from words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Phrase {
    /// Words and names, in order.
    pub parts: Vec<Part>,
}

/// A part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Words.
    Words(String),
    /// A name of the cluster's.
    Name(String),
}

impl Phrase {
    /// A sentence of words.
    pub fn of(words: impl Into<String>) -> Self {
        Self::default().words(words)
    }

    /// Goes on with words.
    pub fn words(mut self, words: impl Into<String>) -> Self {
        self.parts.push(Part::Words(words.into()));
        self
    }

    /// Goes on with a name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.parts.push(Part::Name(name.into()));
        self
    }

    /// The sentence without a difference between the two.
    pub fn plain(&self) -> String {
        self.parts
            .iter()
            .map(|part| match part {
                Part::Words(text) | Part::Name(text) => text.as_str(),
            })
            .collect()
    }
}

/// How good news is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// As it should be.
    Good,
    /// Something is wrong.
    Bad,
    /// It cannot be told.
    Unsure,
}

impl Tone {
    /// Class of the style sheet and name of the icon.
    pub fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Unsure => "unsure",
        }
    }
}

/// How many there are of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally<T> {
    /// Of what.
    pub of: T,
    /// How many.
    pub count: usize,
}

/// All verdicts, the worst first.
pub const VERDICTS: [Verdict; 5] =
    [Verdict::Exposed, Verdict::Shared, Verdict::Unowned, Verdict::ExactlyOne, Verdict::PlatformOnly];

/// All severities, the worst first.
pub const SEVERITIES: [Severity; 4] = [Severity::Critical, Severity::High, Severity::Medium, Severity::Low];

/// The verdict as documents spell it; also a class of the style sheet.
pub fn verdict_class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::PlatformOnly => "platform-only",
        Verdict::ExactlyOne => "exactly-one",
        Verdict::Shared => "shared",
        Verdict::Exposed => "exposed",
        Verdict::Unowned => "unowned",
    }
}

/// The verdict for people.
pub fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::PlatformOnly => "platform only",
        Verdict::ExactlyOne => "exactly one",
        Verdict::Shared => "shared",
        Verdict::Exposed => "exposed",
        Verdict::Unowned => "unowned",
    }
}

/// What a verdict means.
pub fn verdict_meaning(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::PlatformOnly => "Only the platform reaches them.",
        Verdict::ExactlyOne => {
            "The customer whose they are reaches them, besides the platform, and nobody else."
        }
        Verdict::Shared => "They are a customer's, and another customer reaches them too.",
        Verdict::Exposed => "They are the platform's, and a customer reaches them.",
        Verdict::Unowned => "Nobody knows whose they are, so nobody can say who should reach them.",
    }
}

/// Whether a verdict is as it should be.
pub fn verdict_tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::PlatformOnly | Verdict::ExactlyOne => Tone::Good,
        Verdict::Shared | Verdict::Exposed => Tone::Bad,
        Verdict::Unowned => Tone::Unsure,
    }
}

/// The severity as documents spell it; also a class of the style sheet.
pub fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Low => "low",
        Severity::Medium => "medium",
        Severity::High => "high",
        Severity::Critical => "critical",
    }
}

/// The severity at the start of a heading.
pub fn severity_title(severity: Severity) -> &'static str {
    match severity {
        Severity::Low => "Low",
        Severity::Medium => "Medium",
        Severity::High => "High",
        Severity::Critical => "Critical",
    }
}

/// What a severity means.
pub fn severity_meaning(severity: Severity) -> &'static str {
    match severity {
        Severity::Low => "worth knowing",
        Severity::Medium => "a detour, or an assumption, leads out of the scope",
        Severity::High => "another customer's Secrets, or one of the platform's",
        Severity::Critical => "the whole cluster, or the Secrets of several customers",
    }
}

/// What a whole scope means where single Secrets are listed.
pub fn scope_meaning(item: &str) -> Option<&'static str> {
    match item.strip_suffix("/*")? {
        "*" => Some("all Secrets of all namespaces"),
        _ => Some("all Secrets of the namespace"),
    }
}

/// How sure.
pub fn certainty(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Proven => "proven",
        Certainty::Assumed => "assumed",
    }
}

/// Whether somebody has no business with what is the owner's. Nobody can say so where one of the two is not known.
pub fn is_foreign(owner: &str, who: &str) -> bool {
    owner != UNKNOWN && ![owner, PLATFORM, UNKNOWN].contains(&who)
}

/// A customer, seen from what belongs to somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Who<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether it has no business there.
    pub foreign: bool,
}

impl<'a> Who<'a> {
    /// A customer at something of the owner's.
    pub fn at(owner: &str, name: &'a str) -> Self {
        Self { name, foreign: is_foreign(owner, name) }
    }
}

/// Whether a label stands for no customer.
pub fn is_special(customer: &str) -> bool {
    [PLATFORM, EVERYONE, UNKNOWN].contains(&customer)
}

/// `1 Secret`, `12,000 Secrets`.
pub fn count(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// `12,000`.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `a`, `a and b`, `a, b and c`.
pub fn joined(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
