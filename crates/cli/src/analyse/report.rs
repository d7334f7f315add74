//! From an audit to what is shown of it: what is not explained, then waivers, baseline and selection, then what counts.

use bailey_access::answer::{Audit, Severity};
use jiff::civil::Date;

use super::baseline::compare;
use super::document::Report;
use super::gate::gate;
use super::select::{Filter, Names};
use super::unexplained;
use super::waivers::Waivers;
use crate::CliError;

/// What the user's files and flags say about an audit.
#[derive(Debug, Clone)]
pub struct Wishes {
    /// What somebody answers for, and which day it is.
    pub waivers: Option<(Waivers, Date)>,
    /// A former audit.
    pub baseline: Option<Audit>,
    /// What is looked at.
    pub filter: Filter,
    /// The lowest severity that counts.
    pub fail_on: Severity,
}

/// The report of an audit.
pub fn report(mut audit: Audit, wishes: &Wishes, names: &Names) -> Result<Report, CliError> {
    unexplained::add(&mut audit);
    let mut waived =
        wishes.waivers.as_ref().map(|(waivers, today)| waivers.apply(&mut audit, *today)).unwrap_or_default();
    // Compared before it is narrowed: what was not selected is not gone.
    let mut baseline = wishes.baseline.as_ref().map(|before| compare(&audit, &waived, before));
    let selection = wishes.filter.apply(&mut audit, &mut waived, names)?;
    if let Some(comparison) = baseline.as_mut().filter(|_| selection.is_some()) {
        comparison.narrow(&audit, &wishes.filter);
    }
    let gate = gate(&audit, baseline.as_ref(), wishes.fail_on);
    Ok(Report { audit, gate, selection, baseline, waived })
}

#[cfg(test)]
mod tests;
