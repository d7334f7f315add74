//! What the rails cost, as tables, as JSON, and in words.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Cell, Results, Seen, Tenants, VARIANTS};
use crate::bench::{stats, table};

/// What the rails may cost at 10 tenants.
const WANTED_RATIO: f64 = 0.95;
const WANTED_ADDED_MS: f64 = 1.0;
const WANTED_AT: Tenants = Some(10);

/// One variant against `none` of the same rounds: medians, and quartiles of ratios.
struct Compared {
    rate: f64,
    ratio: [f64; 3],
    processor: f64,
    processor_ratio: [f64; 3],
    p50: f64,
    added_p50: f64,
    p99: f64,
    added_p99: f64,
    /// How far apart the quartiles of p99 without rails are: what is below cannot be told from noise.
    noise_p99: f64,
}

fn compare(results: &Results, cell: Cell, variant: Tenants) -> Option<Compared> {
    let (seen, none) = (results.get(&(cell, variant))?, results.get(&(cell, None))?);
    let ratio =
        |pick: fn(&Seen) -> &Vec<f64>| quartiles(&stats::paired(pick(seen), pick(none), |a, b| a / b));
    let added =
        |pick: fn(&Seen) -> &Vec<f64>| stats::median(&stats::paired(pick(seen), pick(none), |a, b| a - b));
    Some(Compared {
        rate: stats::median(&seen.rate),
        ratio: ratio(|s| &s.rate),
        processor: stats::median(&seen.processor),
        processor_ratio: ratio(|s| &s.processor),
        p50: stats::median(&seen.all),
        added_p50: added(|s| &s.p50),
        p99: stats::quantile(&seen.all, 0.99),
        added_p99: added(|s| &s.p99),
        noise_p99: stats::quantile(&none.p99, 0.75) - stats::quantile(&none.p99, 0.25),
    })
}

fn quartiles(values: &[f64]) -> [f64; 3] {
    [0.25, 0.5, 0.75].map(|q| stats::quantile(values, q))
}

fn name(tenants: Tenants) -> String {
    tenants.map_or("none".to_owned(), |n| n.to_string())
}

fn cells(results: &Results) -> BTreeSet<Cell> {
    results.keys().map(|(cell, _)| *cell).collect()
}

/// The table of everything, the table of principals, and what is missed.
pub fn text(results: &Results) -> String {
    let mut text = everything(results) + "\n" + &principals(results) + "\n";
    for line in verdict(results) {
        text += &line;
        text.push('\n');
    }
    text
}

fn everything(results: &Results) -> String {
    let mut rows = Vec::new();
    for cell in cells(results) {
        for variant in VARIANTS {
            let Some(c) = compare(results, cell, variant) else { continue };
            let (who, kind, verb) = cell;
            rows.push(vec![
                format!("{who} {verb} {kind:?}"),
                name(variant),
                format!("{:.0}", c.rate),
                ranged(c.ratio),
                format!("{:.2}", c.processor),
                ranged(c.processor_ratio),
                format!("{:.2}", c.p50),
                format!("{:+.2}", c.added_p50),
                format!("{:.1}", c.p99),
                format!("{:+.1}", c.added_p99),
            ]);
        }
    }
    let head = [
        "who does what",
        "tenants",
        "writes/s",
        "ratio (quartiles)",
        "CPU ms",
        "ratio (quartiles)",
        "p50 ms",
        "added",
        "p99 ms",
        "added",
    ];
    table::render(&head, &rows)
}

fn ranged([low, middle, high]: [f64; 3]) -> String {
    format!("{middle:.2} ({low:.2}-{high:.2})")
}

/// All kinds and verbs of a principal together: each round of each cell is one comparison.
fn principals(results: &Results) -> String {
    let mut rows = Vec::new();
    for who in names(results) {
        for (variant, base) in
            [(Some(1), None), (Some(10), None), (Some(100), None), (Some(10), Some(1)), (Some(100), Some(1))]
        {
            rows.push(vec![
                who.to_owned(),
                format!("{} against {}", name(variant), name(base)),
                ranged(quartiles(&pooled(results, who, variant, base, |s| &s.rate, |a, b| a / b))),
                ranged(quartiles(&pooled(results, who, variant, base, |s| &s.processor, |a, b| a / b))),
                ranged(quartiles(&pooled(results, who, variant, base, |s| &s.p50, |a, b| a - b))),
            ]);
        }
    }
    let head = ["all kinds, both verbs", "tenants", "throughput ratio", "CPU ratio", "added p50 ms"];
    table::render(&head, &rows)
}

fn names(results: &Results) -> BTreeSet<&'static str> {
    results.keys().map(|((who, ..), _)| *who).collect()
}

fn pooled(
    results: &Results,
    who: &str,
    variant: Tenants,
    base: Tenants,
    pick: fn(&Seen) -> &Vec<f64>,
    combine: fn(f64, f64) -> f64,
) -> Vec<f64> {
    let of = |cell: Cell| {
        let (seen, base) = (results.get(&(cell, variant))?, results.get(&(cell, base))?);
        Some(stats::paired(pick(seen), pick(base), combine))
    };
    cells(results).into_iter().filter(|(name, ..)| *name == who).filter_map(of).flatten().collect()
}

/// Says where the rails cost more than wanted, and where this machine was too busy to tell.
pub fn verdict(results: &Results) -> Vec<String> {
    let mut lines = Vec::new();
    for cell in cells(results) {
        let Some(c) = compare(results, cell, WANTED_AT) else { continue };
        let what = format!("{} {} {:?} at 10 tenants", cell.0, cell.2, cell.1);
        let [_, ratio, high] = c.ratio;
        if ratio < WANTED_RATIO {
            lines.push(format!(
                "{}: {what}: throughput ratio {ratio:.3}, wanted {WANTED_RATIO}",
                word(high < WANTED_RATIO)
            ));
        }
        let [low, ratio, _] = c.processor_ratio;
        if ratio > 1.0 / WANTED_RATIO {
            let missed = word(low > 1.0 / WANTED_RATIO);
            lines.push(format!(
                "{missed}: {what}: processor time ratio {ratio:.3}, wanted {:.3}",
                1.0 / WANTED_RATIO
            ));
        }
        if c.added_p99 > WANTED_ADDED_MS {
            let missed = word(c.added_p99 - c.noise_p99 > WANTED_ADDED_MS);
            let (added, noise) = (c.added_p99, c.noise_p99);
            lines.push(format!(
                "{missed}: {what}: p99 {added:+.1} ms, wanted {WANTED_ADDED_MS:+}; noise {noise:.1} ms"
            ));
        }
    }
    lines
}

fn word(sure: bool) -> &'static str {
    if sure { "missed" } else { "missed or noise" }
}

/// Every line of the table with its rounds.
pub fn lines(results: &Results) -> Vec<Value> {
    let line = |(&(cell, variant), seen): (&(Cell, Tenants), &Seen)| {
        let c = compare(results, cell, variant)?;
        Some(json!({
            "principal": cell.0, "kind": format!("{:?}", cell.1), "verb": cell.2, "tenants": name(variant),
            "writesPerSecond": c.rate, "throughputRatioQuartiles": c.ratio,
            "processorMilliseconds": c.processor, "processorRatioQuartiles": c.processor_ratio,
            "p50Milliseconds": c.p50, "addedP50Milliseconds": c.added_p50,
            "p99Milliseconds": c.p99, "addedP99Milliseconds": c.added_p99, "noiseP99Milliseconds": c.noise_p99,
            "rounds": {
                "writesPerSecond": seen.rate, "processorMilliseconds": seen.processor,
                "p50Milliseconds": seen.p50, "p99Milliseconds": seen.p99,
            },
        }))
    };
    results.iter().filter_map(line).collect()
}
