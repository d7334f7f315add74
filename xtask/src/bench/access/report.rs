//! What was measured, as tables for people.

use super::clock::Used;
use super::growth;
use super::measure::{AUDIT, BAILEY, Checked, INCREMENTAL, Measured, REACH, WHAT_IF, WHO_CAN_READ};
use super::peers::{PYTHON, WHO_CAN};
use super::tool::{Asked, Timings};
use crate::bench::table;

/// The tables of one size.
pub fn size(measured: &Measured) -> String {
    let mut text = format!(
        "\n{}: {} objects, {} MB of JSON, written in {:.1} s\n",
        measured.size,
        measured.objects,
        measured.bytes / 1_000_000,
        measured.generated,
    );
    let rows: Vec<Vec<String>> =
        measured.asked.iter().filter(|asked| asked.what != INCREMENTAL).map(row).collect();
    let head =
        ["tool and question", "runs", "cpu s min", "median", "wall s min", "median", "peak MB", "answer MB"];
    text += &table::render(&head, &rows);
    for asked in &measured.asked {
        if let Some(failure) = &asked.failure {
            text += &format!("no answer of {} {}: {failure}\n", asked.tool, asked.what);
        }
    }
    text += &spent(measured);
    for checked in &measured.checked {
        text += &planted(checked);
    }
    text
}

/// How a tool did on the planted subjects; of a peer, that misses most by design, in numbers only.
fn planted(checked: &Checked) -> String {
    let Checked { tool, by, score } = checked;
    let assumed =
        if score.assumed > 0 { format!(" ({} only assumed)", score.assumed) } else { String::new() };
    let mut text = format!(
        "\nplanted, {tool} by {by}: {} of {} that read are found{assumed}, \
         {} of {} that do not read are left alone\n",
        score.found, score.reads, score.spared, score.others,
    );
    if *tool == BAILEY {
        text.extend(score.wrong.iter().map(|wrong| format!("  {wrong}\n")));
    }
    text
}

fn row(asked: &Asked) -> Vec<String> {
    let mut row = vec![format!("{} {}", asked.tool, asked.what), asked.runs.len().to_string()];
    if asked.failure.is_some() {
        row.push("no answer".to_owned());
        return row;
    }
    let seconds = |value: Option<f64>| value.map_or("-".to_owned(), |seconds| format!("{seconds:.2}"));
    row.extend([
        seconds(asked.least(Used::cpu)),
        seconds(asked.median(Used::cpu)),
        seconds(asked.least(|run| run.wall)),
        seconds(asked.median(|run| run.wall)),
        peak(asked).map_or("-".to_owned(), |bytes| format!("{:.0}", bytes / 1e6)),
        format!("{:.2}", asked.bytes as f64 / 1e6),
    ]);
    row
}

/// What Bailey says each question's time went to.
fn spent(measured: &Measured) -> String {
    let asked = || measured.asked.iter().filter(|asked| !asked.timings.is_empty());
    let median = |asked: &Asked, part: &str| asked.timing(|timings| timings.part(part));
    let parts: Vec<&str> = Timings::PARTS
        .into_iter()
        .filter(|part| asked().any(|asked| median(asked, part).is_some()))
        .collect();
    if parts.is_empty() {
        return String::new();
    }
    let ms = |seconds: Option<f64>| seconds.map_or("-".to_owned(), |seconds| format!("{:.2}", seconds * 1e3));
    let rows: Vec<Vec<String>> = asked()
        .map(|asked| {
            let name = format!("{} {}", asked.tool, asked.what);
            std::iter::once(name).chain(parts.iter().map(|part| ms(median(asked, part)))).collect()
        })
        .collect();
    let head: Vec<&str> = std::iter::once("of it, ms (median)").chain(parts.iter().copied()).collect();
    "\n".to_owned() + &table::render(&head, &rows)
}

fn peak(asked: &Asked) -> Option<f64> {
    asked.median(|run| run.peak as f64)
}

/// How each tool grows: the exponent over all sizes, and that between the two largest.
pub fn growth(all: &[Measured]) -> String {
    let mut rows = Vec::new();
    let mut questions: Vec<(&str, &str)> = Vec::new();
    for asked in all.iter().flat_map(|measured| &measured.asked).filter(|asked| asked.what != INCREMENTAL) {
        if !questions.contains(&(asked.tool, asked.what.as_str())) {
            questions.push((asked.tool, &asked.what));
        }
    }
    let mut add = |name: String, of: &dyn Fn(&Measured) -> Option<f64>| {
        let points: Vec<(f64, f64)> =
            all.iter().filter_map(|at| Some((at.objects as f64, of(at)?))).collect();
        let last = points.get(points.len().saturating_sub(2)..).unwrap_or_default();
        if let (Some(fitted), Some(end)) = (growth::exponent(&points), growth::exponent(last)) {
            rows.push(vec![name, points.len().to_string(), format!("{fitted:.2}"), format!("{end:.2}")]);
        }
    };
    for (tool, what) in questions {
        add(format!("{tool} {what}: cpu"), &|at| at.of(tool, what)?.median(Used::cpu));
        add(format!("{tool} {what}: memory"), &|at| peak(at.of(tool, what)?));
    }
    add("bailey, graph alone".to_owned(), &|at| at.of(BAILEY, AUDIT)?.timing(Timings::graph));
    if rows.is_empty() {
        return String::new();
    }
    "\n".to_owned()
        + &table::render(&["growth with the number of objects", "sizes", "exponent", "last two"], &rows)
}

/// One wanted number and what it is measured by.
struct Target {
    what: &'static str,
    wanted: f64,
    unit: &'static str,
    of: fn(&Measured) -> Option<f64>,
    /// The peers' number to compare with, where one is of the same thing; the best is taken.
    peer: fn(&Asked) -> Option<f64>,
}

const TARGETS: [Target; 6] = [
    Target {
        what: "cold, dump to full answer: wall",
        wanted: 3.0,
        unit: "s",
        of: |at| at.of(BAILEY, AUDIT)?.median(|run| run.wall),
        peer: |peer| peer.median(|run| run.wall),
    },
    Target {
        what: "cold, dump to full answer: peak memory",
        wanted: 500.0,
        unit: "MB",
        of: |at| Some(peak(at.of(BAILEY, AUDIT)?)? / 1e6),
        peer: |peer| Some(peak(peer)? / 1e6),
    },
    Target {
        what: "graph alone: compile and close",
        wanted: 0.25,
        unit: "s",
        of: |at| at.of(BAILEY, AUDIT)?.timing(Timings::graph),
        peer: |_| None,
    },
    Target {
        what: "one subject, a path to each Secret",
        wanted: 0.020,
        unit: "s",
        of: |at| at.of(BAILEY, REACH)?.timing(Timings::query),
        peer: |_| None,
    },
    Target {
        what: "one binding changed, p99",
        wanted: 0.010,
        unit: "s",
        of: |at| at.of(BAILEY, INCREMENTAL)?.timings.last()?.part("incremental_p99"),
        peer: |_| None,
    },
    Target {
        what: "what-if, 30 objects",
        wanted: 0.4,
        unit: "s",
        of: |at| at.of(BAILEY, WHAT_IF)?.timing(Timings::query),
        peer: |_| None,
    },
];

/// What is wanted at size L, what was measured there or at the largest size below, and how peers compare: more than 1
/// means that Bailey needs less.
pub fn targets(all: &[Measured]) -> String {
    let Some(at) = all.iter().rev().find(|at| at.size == "L").or(all.last()) else { return String::new() };
    let mut rows: Vec<Vec<String>> = TARGETS
        .iter()
        .map(|target| {
            let measured = (target.of)(at);
            let best = at
                .peers()
                .filter(|peer| whole_cluster(peer))
                .filter_map(|peer| Some((peer, (target.peer)(peer)?)));
            let best = best.min_by(|(_, a), (_, b)| a.total_cmp(b));
            vec![
                target.what.to_owned(),
                amount(target.wanted, target.unit),
                measured.map_or("no answer".to_owned(), |value| amount(value, target.unit)),
                measured
                    .map_or("-", |value| if value <= target.wanted { "met" } else { "missed" })
                    .to_owned(),
                measured.zip(best).map_or("-".to_owned(), |(value, (peer, best))| {
                    format!("{:.2} ({} {})", best / value, peer.tool, peer.what)
                }),
            ]
        })
        .collect();
    rows.push(compared(at, "cold, dump to full answer: cpu", AUDIT, &whole_cluster));
    rows.push(compared(at, "cold, who reads one Secret: cpu", WHO_CAN_READ, &|peer| {
        peer.tool == WHO_CAN && !whole_cluster(peer)
    }));
    rows.push(grows(all, "cpu", &|asked| asked.median(Used::cpu)));
    rows.push(grows(all, "memory", &peak));
    rows.push(right(all));
    format!("\nat {}\n", at.size)
        + &table::render(&["target", "wanted at L", "measured", "", "best peer / bailey"], &rows)
}

/// Writes a number with its unit; less than half a second in milliseconds.
fn amount(value: f64, unit: &str) -> String {
    match unit {
        "s" if value < 0.5 => format!("{:.1} ms", value * 1e3),
        "s" => format!("{value:.2} s"),
        _ => format!("{value:.0} {unit}"),
    }
}

/// Whether a peer's question is about the whole cluster.
fn whole_cluster(peer: &Asked) -> bool {
    peer.tool == PYTHON || peer.what.ends_with("-A")
}

fn compared(at: &Measured, what: &str, question: &str, fits: &dyn Fn(&Asked) -> bool) -> Vec<String> {
    let own = at.of(BAILEY, question).and_then(|asked| asked.median(Used::cpu));
    let best = at.peers().filter(|peer| fits(peer)).filter_map(|peer| Some((peer, peer.median(Used::cpu)?)));
    let best = best.min_by(|(_, a), (_, b)| a.total_cmp(b));
    vec![
        what.to_owned(),
        "-".to_owned(),
        own.map_or("no answer".to_owned(), |value| amount(value, "s")),
        "-".to_owned(),
        own.zip(best).map_or("-".to_owned(), |(own, (peer, best))| {
            format!("{:.2} ({} {})", best / own, peer.tool, peer.what)
        }),
    ]
}

fn grows(all: &[Measured], what: &str, of: &dyn Fn(&Asked) -> Option<f64>) -> Vec<String> {
    let point = |at: &Measured| Some((at.objects as f64, of(at.of(BAILEY, AUDIT)?)?));
    let exponent = growth::exponent(&all.iter().filter_map(point).collect::<Vec<_>>());
    vec![
        format!("growth of {what}, exponent over all sizes"),
        "near 1".to_owned(),
        exponent.map_or("-".to_owned(), |value| format!("{value:.2}")),
        // An n log n between the sizes here comes to 1.1.
        exponent.map_or("-", |value| if value <= 1.1 { "met" } else { "missed" }).to_owned(),
        "-".to_owned(),
    ]
}

fn right(all: &[Measured]) -> Vec<String> {
    let checks = || all.iter().flat_map(|at| &at.checked);
    let share = |tool: &str| {
        let of_tool = || checks().filter(|checked| checked.tool == tool);
        let (right, claims) = (
            of_tool().map(|c| c.score.right()).sum::<usize>(),
            of_tool().map(|c| c.score.claims()).sum::<usize>(),
        );
        (claims > 0).then_some((right, claims))
    };
    let text = |(right, claims): (usize, usize)| format!("{right} of {claims}");
    vec![
        "planted answers right, all sizes".to_owned(),
        "all".to_owned(),
        share(BAILEY).map_or("no answer".to_owned(), text),
        share(BAILEY)
            .map_or("-", |(right, claims)| if right == claims { "met" } else { "missed" })
            .to_owned(),
        share(WHO_CAN).map_or("-".to_owned(), |share| format!("{} ({WHO_CAN})", text(share))),
    ]
}

#[cfg(test)]
mod tests;
