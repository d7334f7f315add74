//! The tables: each path's median and worst, how the tunnel does beside TLS and nginx, and what it does alone.

use super::measure::{Results, Row};
use super::path::Kind;
use crate::bench::stats::{median, quantile};
use crate::bench::table;

/// What was measured, as text.
pub fn text(results: &Results) -> String {
    let mut head = vec!["median (worst)", "unit"];
    head.extend(Kind::ALL.map(Kind::name));
    head.extend(["÷ TLS", "÷ nginx"]);
    let rows: Vec<Vec<String>> = results.rows.iter().map(line).collect();
    let own: Vec<Vec<String>> = results
        .own
        .iter()
        .map(|own| vec![own.what.clone(), number(own.value), own.unit.to_owned(), own.wanted.to_owned()])
        .collect();
    table::render(&head, &rows)
        + "\n"
        + &table::render(&["the tunnel alone", "measured", "unit", "wanted"], &own)
}

fn line(row: &Row) -> Vec<String> {
    let mut cells = vec![row.what.clone(), row.unit.to_owned()];
    cells.extend(Kind::ALL.map(|kind| {
        row.paths.get(kind.name()).map_or_else(
            || "–".to_owned(),
            |values| {
                let worst = quantile(values, if row.less { 1.0 } else { 0.0 });
                format!("{} ({})", number(median(values)), number(worst))
            },
        )
    }));
    cells.extend([ratio(row, Kind::Tls), ratio(row, Kind::Nginx)]);
    cells
}

/// The tunnel's median over another path's.
fn ratio(row: &Row, other: Kind) -> String {
    let of = |kind: Kind| row.paths.get(kind.name()).map(|values| median(values));
    match (of(Kind::Bailey), of(other)) {
        (Some(own), Some(other)) if other > 0.0 => format!("{:.2}", own / other),
        _ => "–".to_owned(),
    }
}

fn number(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_tunnel_is_compared_with_what_is_there() {
        let paths = BTreeMap::from([(Kind::Bailey.name(), vec![2.0, 4.0]), (Kind::Tls.name(), vec![6.0])]);
        let row = Row { what: "x".to_owned(), unit: "s", less: true, paths };
        assert_eq!(line(&row), ["x", "s", "3.00 (4.00)", "6.00 (6.00)", "–", "–", "0.50", "–"]);
    }
}
