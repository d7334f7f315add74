//! What was compared, and how often analyser and server agreed.

use std::fmt;
use std::ops::AddAssign;

/// Counts. A pair is a subject and a Secret: positive if the analyser says that the one reads the other, true if the
/// server agrees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub scenarios: usize,
    pub clusters: usize,
    /// Rights that were compared with a SubjectAccessReview each.
    pub rights: usize,
    /// Rights that the two decide differently.
    pub wrong_rights: usize,
    /// Pairs that were judged.
    pub pairs: usize,
    pub true_positives: usize,
    pub false_positives: usize,
    pub false_negatives: usize,
    /// Pairs that the analyser only assumes, which count as not claimed.
    pub assumed: usize,
    /// Ways of the analyser that were gone with their own steps only.
    pub walks: usize,
    /// Requests that were sent for all this.
    pub requests: u64,
}

impl Tally {
    /// Of what is claimed, the part that is true; none if nothing is claimed.
    pub fn precision(&self) -> Option<f64> {
        share(self.true_positives, self.false_positives)
    }

    /// Of what is true, the part that is claimed; none if nothing is true.
    pub fn recall(&self) -> Option<f64> {
        share(self.true_positives, self.false_negatives)
    }
}

fn share(hits: usize, misses: usize) -> Option<f64> {
    let float = |number: usize| u32::try_from(number).map(f64::from).unwrap_or(f64::MAX);
    (hits + misses > 0).then(|| float(hits) / float(hits + misses))
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.scenarios += other.scenarios;
        self.clusters += other.clusters;
        self.rights += other.rights;
        self.wrong_rights += other.wrong_rights;
        self.pairs += other.pairs;
        self.true_positives += other.true_positives;
        self.false_positives += other.false_positives;
        self.false_negatives += other.false_negatives;
        self.assumed += other.assumed;
        self.walks += other.walks;
        self.requests += other.requests;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ratio =
            |ratio: Option<f64>| ratio.map_or_else(|| "of nothing".to_owned(), |ratio| format!("{ratio:.4}"));
        let rows = [
            ("scenarios", self.scenarios.to_string()),
            ("random clusters", self.clusters.to_string()),
            ("SubjectAccessReviews compared", self.rights.to_string()),
            ("  of these different", self.wrong_rights.to_string()),
            ("pairs of subject and Secret judged", self.pairs.to_string()),
            ("requests sent", self.requests.to_string()),
            ("reads performed (true positives)", self.true_positives.to_string()),
            ("false positives", self.false_positives.to_string()),
            ("false negatives", self.false_negatives.to_string()),
            ("assumed only", self.assumed.to_string()),
            ("ways gone step by step", self.walks.to_string()),
            ("precision", ratio(self.precision())),
            ("recall", ratio(self.recall())),
        ];
        rows.iter().try_for_each(|(name, value)| writeln!(f, "{name:<36}{value:>10}"))
    }
}
