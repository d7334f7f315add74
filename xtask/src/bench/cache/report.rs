//! The table: each server's median and minimum, and how Bailey does beside the best cache and beside sendfile.

use super::measure::{Results, Row};
use super::server::Kind;
use crate::bench::stats::{median, quantile};
use crate::bench::table;

const SERVERS: [Kind; 4] = [Kind::Bailey, Kind::Nginx, Kind::Distribution, Kind::Sendfile];

/// What was measured, as text.
pub fn text(results: &Results) -> String {
    let mut head = vec!["median (worst)", "unit"];
    head.extend(SERVERS.map(Kind::name));
    head.extend(["÷ best cache", "÷ sendfile"]);
    let rows: Vec<Vec<String>> = results.rows.iter().map(line).collect();
    table::render(&head, &rows)
}

fn line(row: &Row) -> Vec<String> {
    let mut cells = vec![row.what.clone(), row.unit.to_owned()];
    cells.extend(SERVERS.map(|kind| {
        row.servers.get(kind.name()).map_or_else(
            || "–".to_owned(),
            |values| {
                let worst = quantile(values, if row.less { 1.0 } else { 0.0 });
                format!("{} ({})", number(median(values)), number(worst))
            },
        )
    }));
    cells.extend([ratio(row, &[Kind::Nginx, Kind::Distribution]), ratio(row, &[Kind::Sendfile])]);
    cells
}

/// Bailey's median over the best of others.
fn ratio(row: &Row, others: &[Kind]) -> String {
    let of = |kind: &Kind| row.servers.get(kind.name()).map(|values| median(values));
    let others = others.iter().filter_map(of);
    let best = if row.less { others.reduce(f64::min) } else { others.reduce(f64::max) };
    match (of(&Kind::Bailey), best) {
        (Some(own), Some(best)) if best > 0.0 => format!("{:.2}", own / best),
        _ => "–".to_owned(),
    }
}

fn number(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn row(less: bool, servers: &[(Kind, f64)]) -> Row {
        let servers: BTreeMap<_, _> =
            servers.iter().map(|(kind, value)| (kind.name(), vec![*value])).collect();
        Row { what: "x".to_owned(), unit: "s", less, servers }
    }

    #[test]
    fn bailey_is_compared_with_the_best_of_each_sort() {
        let all = [(Kind::Bailey, 2.0), (Kind::Nginx, 4.0), (Kind::Distribution, 1.0), (Kind::Sendfile, 8.0)];
        assert_eq!(line(&row(true, &all))[6..], ["2.00", "0.25"]);
        assert_eq!(line(&row(false, &all))[6..], ["0.50", "0.25"]);
        assert_eq!(line(&row(true, &all[..1]))[3..], ["–", "–", "–", "–", "–"]);
    }
}
