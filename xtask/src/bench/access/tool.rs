//! A question put to a program some times, and what came of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::super::stats;
use super::clock::{Run, Used};

/// A program with the question that it is asked.
pub struct Question {
    /// Who is asked: `bailey`, or a peer.
    pub tool: &'static str,
    /// What, for people.
    pub what: String,
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub environment: Vec<(&'static str, OsString)>,
    /// Exit codes that come with an answer.
    pub answers: &'static [i32],
    /// Is asked once where that took longer than this many seconds.
    pub once_above: f64,
}

/// All runs of a question.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    pub tool: &'static str,
    pub what: String,
    pub runs: Vec<Used>,
    /// What Bailey says it spent, run by run; empty for others.
    pub timings: Vec<Timings>,
    /// Bytes of the answer.
    pub bytes: u64,
    /// Why there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Where the last answer is.
    #[serde(skip)]
    pub answer: PathBuf,
}

/// Seconds that Bailey says it spent, by part, from the line that `--timings` adds:
/// `{"timings":{"load":1.2,"compile":0.1,"close":0.1,"judge":0.1,"query":0.01}}`, or the same under `seconds`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Timings(BTreeMap<String, f64>);

impl Timings {
    /// The parts in the order in which they come.
    pub const PARTS: [&'static str; 7] = ["load", "compile", "close", "judge", "answer", "query", "render"];

    /// Finds the line among what was printed beside the answer.
    pub fn find(text: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Line {
            #[serde(alias = "seconds")]
            timings: Timings,
            incremental_p50: Option<f64>,
            incremental_p99: Option<f64>,
        }
        impl Line {
            fn all(mut self) -> Timings {
                let changes =
                    [("incremental_p50", self.incremental_p50), ("incremental_p99", self.incremental_p99)];
                let changes = changes.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
                self.timings.0.extend(changes);
                self.timings
            }
        }
        let lines = text.lines().filter_map(|line| line.get(line.find('{')?..));
        lines.filter_map(|line| serde_json::from_str::<Line>(line).ok()).next_back().map(Line::all)
    }

    /// Returns the seconds of a part.
    pub fn part(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Returns the seconds in the graph alone, after decoding and before judging.
    pub fn graph(&self) -> Option<f64> {
        Some(self.part("close")? + self.part("compile").unwrap_or_default())
    }

    /// Returns the seconds that the one question took on the closed graph.
    pub fn query(&self) -> Option<f64> {
        self.part("query").or_else(|| self.part("answer"))
    }
}

impl Asked {
    /// Begins with no run; answers are kept in this folder, each in a file of its own.
    pub fn new(question: &Question, folder: &Path) -> Self {
        let words = question.what.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
        let answer =
            folder.join(format!("{}-{}", question.tool.replace(' ', "-"), words.collect::<String>()));
        let (tool, what) = (question.tool, question.what.clone());
        Self { tool, what, runs: Vec::new(), timings: Vec::new(), bytes: 0, failure: None, answer }
    }

    /// Asks once more, unless there was no answer before or it takes too long to be asked again.
    pub fn ask(&mut self, question: &Question, seconds_max: u64) -> Result<()> {
        if self.failure.is_some() || self.runs.iter().any(|run| run.wall > question.once_above) {
            return Ok(());
        }
        let stderr = self.answer.with_extension("stderr");
        let run = Run {
            program: &question.program,
            arguments: &question.arguments,
            environment: &question.environment,
            stdout: &self.answer,
            stderr: &stderr,
            seconds_max,
        };
        let used = run.measure()?;
        self.runs.push(used);
        self.bytes = fs::metadata(&self.answer).map(|file| file.len()).unwrap_or_default();
        let said = fs::read(&stderr).with_context(|| format!("read `{}`", stderr.display()))?;
        let said = String::from_utf8_lossy(&said);
        self.timings.extend(Timings::find(&said));
        let answered = used.exit.is_some_and(|code| question.answers.contains(&code));
        if used.capped {
            self.failure = Some(format!("no answer after {seconds_max} s"));
        } else if !answered || self.bytes == 0 {
            let code = used.exit.map_or("ended by a signal".to_owned(), |code| format!("exit code {code}"));
            let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("nothing said");
            self.failure = Some(format!("{code}: {first}"));
        }
        Ok(())
    }

    /// Returns the answer of the last run.
    pub fn text(&self) -> Result<Vec<u8>> {
        fs::read(&self.answer).with_context(|| format!("read what {} answered", self.tool))
    }

    /// Returns the median of something over all runs; none where there is no answer.
    pub fn median(&self, of: impl Fn(&Used) -> f64) -> Option<f64> {
        self.over(of, stats::median)
    }

    /// Returns the least of something over all runs.
    pub fn least(&self, of: impl Fn(&Used) -> f64) -> Option<f64> {
        self.over(of, |values| stats::quantile(values, 0.0))
    }

    /// Returns the median of a part of what Bailey says it spent.
    pub fn timing(&self, of: impl Fn(&Timings) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.timings.iter().filter_map(of).collect();
        (self.failure.is_none() && !values.is_empty()).then(|| stats::median(&values))
    }

    fn over(&self, of: impl Fn(&Used) -> f64, fold: impl Fn(&[f64]) -> f64) -> Option<f64> {
        let values: Vec<f64> = self.runs.iter().map(of).collect();
        (self.failure.is_none() && !values.is_empty()).then(|| fold(&values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_timings_is_found() {
        let text = "reading\n{\"timings\":{\"load\":9}}\n{\"other\":1}\n\
                    {\"timings\":{\"load\":1.5,\"compile\":0.2,\"close\":0.1,\"judge\":0,\"query\":0.01}}\n";
        let found = Timings::find(text).unwrap();
        assert_eq!((found.part("load"), found.query()), (Some(1.5), Some(0.01)));
        assert!((found.graph().unwrap() - 0.3).abs() < 1e-9);
        assert_eq!(found.part("incremental_p99"), None);
        assert_eq!(Timings::find("error: no such dump\n"), None);
        let other = "note: {\"verb\":\"reach\",\"seconds\":{\"close\":0.1,\"answer\":0.02},\"total\":1}";
        let found = Timings::find(other).unwrap();
        assert_eq!((found.graph(), found.query()), (Some(0.1), Some(0.02)));
        let with_changes = "{\"seconds\":{\"close\":0.1},\"incremental_p50\":0.002,\"incremental_p99\":0.03}";
        let found = Timings::find(with_changes).unwrap();
        assert_eq!((found.part("incremental_p50"), found.part("incremental_p99")), (Some(0.002), Some(0.03)));
    }

    #[test]
    fn a_failure_has_no_median() {
        let used = Used { wall: 1.0, user: 1.0, system: 0.5, peak: 7, exit: Some(0), capped: false };
        let mut asked = Asked {
            tool: "bailey",
            what: "audit".to_owned(),
            runs: vec![used, Used { wall: 3.0, ..used }, Used { wall: 2.0, ..used }],
            timings: Vec::new(),
            bytes: 0,
            failure: None,
            answer: PathBuf::new(),
        };
        assert_eq!((asked.least(|run| run.wall), asked.median(|run| run.wall)), (Some(1.0), Some(2.0)));
        assert_eq!(asked.median(Used::cpu), Some(1.5));
        assert_eq!(asked.timing(Timings::query), None);
        asked.failure = Some("exit code 2".to_owned());
        assert_eq!(asked.median(|run| run.wall), None);
    }
}
