//! Whose Secrets are reached by whom: customers against customers, in numbers. Off the diagonal it should be empty.

use std::collections::{BTreeMap, BTreeSet};

use bailey_access::answer::{EVERYONE, PLATFORM, SecretEntry, UNKNOWN};

use super::words::{Tone, count, is_foreign, is_special};

/// Customers that are shown, those with something off the diagonal first.
const CUSTOMERS_MAX: usize = 30;

/// The matrix.
#[derive(Debug)]
pub struct Matrix<'a> {
    /// Who reaches: the titles of the columns.
    pub columns: Vec<&'a str>,
    /// Whose Secrets.
    pub rows: Vec<Row<'a>>,
    /// Whether all is empty off the diagonal.
    pub tone: Tone,
    /// What the matrix says.
    pub sentence: String,
    /// Customers that are not shown.
    pub left_out: Option<String>,
}

/// One owner.
#[derive(Debug)]
pub struct Row<'a> {
    /// Whose Secrets.
    pub owner: &'a str,
    /// How many there are.
    pub total: usize,
    /// How many of them each reaches.
    pub cells: Vec<Cell>,
}

/// How many Secrets of one somebody reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// How many.
    pub count: usize,
    /// `own`, `none`, `foreign`, `unsure`, as in the style sheet.
    pub class: &'static str,
}

#[derive(Default)]
struct Counts<'a> {
    owners: BTreeMap<&'a str, usize>,
    reached: BTreeMap<(&'a str, &'a str), usize>,
    foreign: usize,
}

impl<'a> Matrix<'a> {
    /// Counts; none where there is no customer at all.
    pub fn new(secrets: &'a [SecretEntry]) -> Option<Self> {
        let counts = Counts::of(secrets);
        let named: BTreeSet<_> = counts
            .owners
            .keys()
            .chain(counts.reached.keys().map(|(_, who)| who))
            .copied()
            .filter(|name| !is_special(name))
            .collect();
        if named.is_empty() {
            return None;
        }
        let mut customers: Vec<_> = named.iter().copied().collect();
        let involved = counts.involved();
        customers.sort_by_key(|name| !involved.contains(name));
        let more = customers.split_off(customers.len().min(CUSTOMERS_MAX));
        customers.sort_unstable();
        let special = |names: &[&'a str], present: &dyn Fn(&str) -> bool| -> Vec<&'a str> {
            names.iter().copied().filter(|name| present(name)).collect()
        };
        let reaches = |name: &str| counts.reached.keys().any(|(_, who)| *who == name);
        let owns = |name: &str| counts.owners.contains_key(name);
        let columns: Vec<_> =
            customers.iter().copied().chain(special(&[PLATFORM, EVERYONE, UNKNOWN], &reaches)).collect();
        let owners = customers.iter().copied().chain(special(&[PLATFORM, UNKNOWN], &owns));
        let rows = owners.map(|owner| counts.row(owner, &columns)).collect();
        let (tone, sentence) = counts.sentence();
        let left_out = left_out(&more, &involved);
        Some(Self { columns, rows, tone, sentence, left_out })
    }
}

fn left_out(more: &[&str], involved: &BTreeSet<&str>) -> Option<String> {
    if more.is_empty() {
        return None;
    }
    let of_them = more.iter().filter(|name| involved.contains(*name)).count();
    let rest = match of_them {
        0 => "off the diagonal there is nothing of theirs".to_owned(),
        some => format!("{} of them with something off the diagonal", count(some, "one", "ones")),
    };
    Some(format!("{} more are left out: {rest}.", count(more.len(), "customer", "customers")))
}

impl<'a> Counts<'a> {
    fn of(secrets: &'a [SecretEntry]) -> Self {
        let mut counts = Self::default();
        for secret in secrets {
            *counts.owners.entry(&secret.customer).or_default() += 1;
            for who in &secret.audience {
                *counts.reached.entry((&secret.customer, who)).or_default() += 1;
            }
            let foreign = secret.audience.iter().any(|who| is_foreign(&secret.customer, who));
            counts.foreign += usize::from(foreign);
        }
        counts
    }

    /// Those that reach what is not theirs, and those whose Secrets others reach.
    fn involved(&self) -> BTreeSet<&'a str> {
        let off = self.reached.keys().filter(|(owner, who)| is_foreign(owner, who));
        off.flat_map(|(owner, who)| [*owner, *who]).collect()
    }

    fn row(&self, owner: &'a str, columns: &[&'a str]) -> Row<'a> {
        let cell = |who: &&'a str| {
            let count = self.reached.get(&(owner, *who)).copied().unwrap_or(0);
            let class = match () {
                () if count == 0 && owner != *who => "none",
                () if owner == *who || *who == PLATFORM => "own",
                () if is_foreign(owner, who) => "foreign",
                () => "unsure",
            };
            Cell { count, class }
        };
        let total = self.owners.get(owner).copied().unwrap_or(0);
        Row { owner, total, cells: columns.iter().map(cell).collect() }
    }

    fn sentence(&self) -> (Tone, String) {
        if self.foreign == 0 {
            let unknown = self.owners.get(UNKNOWN).copied().unwrap_or(0);
            let sentence =
                "Off the diagonal the matrix is empty: no customer reaches what is not its own".to_owned();
            return match unknown {
                0 => (Tone::Good, format!("{sentence}.")),
                some => {
                    let secrets = count(some, "Secret", "Secrets");
                    (
                        Tone::Unsure,
                        format!("{sentence}, as far as owners are known; of {secrets} they are not."),
                    )
                }
            };
        }
        let secrets = count(self.foreign, "Secret is", "Secrets are");
        (Tone::Bad, format!("{secrets} reached by somebody who has no business there; the cells are marked."))
    }
}
