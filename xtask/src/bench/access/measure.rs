//! One size after another: a cluster is generated, each tool is asked in turn, round by round, and what it says is
//! checked against the planted answers.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde::Serialize;
use tokio::runtime::Runtime;

use super::check::{self, Readers, Score};
use super::fixed::Answer;
use super::generate::{self, Generated, Options};
use super::lists::Layout;
use super::peers::{Peers, WHO_CAN};
use super::size::Size;
use super::tool::{Asked, Question};

pub const BAILEY: &str = "bailey";
pub const AUDIT: &str = "audit";
pub const REACH: &str = "reach";
pub const WHO_CAN_READ: &str = "who-can-read";
pub const WHY: &str = "why";
pub const WHAT_IF: &str = "what-if";
pub const INCREMENTAL: &str = "audit, bindings changed one by one";

/// The subject and the Secret that single questions are about: a chain of four steps ends at it.
const SUBJECT: &str = "sa:planted/chain";
const SECRET: &str = "kube-system/planted-one";
/// Bindings that are changed one by one.
const CHANGES: &str = "200";

/// What a whole measurement is made of.
pub struct Bench<'a> {
    pub bailey: &'a Path,
    pub peers: Option<Peers>,
    pub runtime: &'a Runtime,
    pub seed: u64,
    pub repeats: usize,
    pub seconds_max: u64,
    /// Where clusters are generated; each is removed before the next.
    pub folder: &'a Path,
}

/// What was measured at one size.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Measured {
    pub size: &'static str,
    pub objects: usize,
    pub bytes: u64,
    /// Seconds that generating took.
    pub generated: f64,
    pub asked: Vec<Asked>,
    pub checked: Vec<Checked>,
}

/// How a tool did on the planted subjects.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Checked {
    pub tool: &'static str,
    /// By which questions.
    pub by: String,
    pub score: Score,
}

impl Measured {
    /// Finds what a tool was asked.
    pub fn of(&self, tool: &str, what: &str) -> Option<&Asked> {
        self.asked.iter().find(|asked| asked.tool == tool && asked.what == what)
    }

    /// Returns what peers were asked.
    pub fn peers(&self) -> impl Iterator<Item = &Asked> {
        self.asked.iter().filter(|asked| asked.tool != BAILEY)
    }
}

impl Bench<'_> {
    /// Measures one size.
    pub fn size(&self, size: Size) -> Result<Measured> {
        let folder = tempfile::tempdir_in(self.folder).context("make a folder for a generated cluster")?;
        let start = Instant::now();
        let options = Options { size, seed: self.seed, layout: Layout::Compact, gzip: false };
        let cluster = generate::generate(&options, folder.path())?;
        let generated = start.elapsed().as_secs_f64();
        let answers = check::answers(&cluster.answers)?;
        let (asked, mut checked) = self.rounds(size, &cluster, folder.path(), &answers)?;
        match self.check(size, &cluster, folder.path(), &answers) {
            Ok(more) => checked.extend(more),
            // An answer of another shape is told, and costs nobody the measurement.
            Err(error) => eprintln!("not checked: {error:#}"),
        }
        let objects = size.counts().objects();
        Ok(Measured { size: size.name(), objects, bytes: cluster.bytes(), generated, asked, checked })
    }

    /// Asks every tool as often as wanted, in turn, so that a busy moment of the machine meets all of them.
    fn rounds(
        &self,
        size: Size,
        cluster: &Generated,
        folder: &Path,
        answers: &[Answer],
    ) -> Result<(Vec<Asked>, Vec<Checked>)> {
        let mut questions = self.bailey_questions(cluster);
        // The server lives as long as its questions are asked.
        let mut server = None;
        if let Some(peers) = &self.peers {
            let (started, more) = peers.questions(&cluster.dump, folder, size, self.runtime)?;
            server = Some(started);
            questions.extend(more);
        }
        let mut asked: Vec<Asked> = questions.iter().map(|question| Asked::new(question, folder)).collect();
        for round in 0..self.repeats {
            for (question, asked) in questions.iter().zip(&mut asked) {
                asked.ask(question, self.seconds_max)?;
                if round == 0 {
                    progress(size, asked);
                }
            }
        }
        drop(server);
        let changes =
            ["audit", "--preset", "none", "-o", "json", "--subjects", "none", "--bench-incremental", CHANGES];
        let changes = self.question(INCREMENTAL, &changes, cluster);
        let mut once = Asked::new(&changes, folder);
        once.ask(&changes, self.seconds_max)?;
        asked.push(once);
        let checked = asked.iter().filter(|asked| asked.tool == WHO_CAN && asked.failure.is_none());
        // Only the question about one namespace tells whose Secrets are meant.
        let checked = checked.filter(|asked| asked.what.ends_with("kube-system"));
        let checked = checked.map(|asked| who_can_score(asked, answers)).collect::<Result<Vec<_>>>()?;
        Ok((asked, checked))
    }

    fn bailey_questions(&self, cluster: &Generated) -> Vec<Question> {
        let chart = cluster.chart.display().to_string();
        let json = ["-o", "json"];
        let ask =
            |what: &str, words: &[&str]| self.question(what, &[&[what], words, &json].concat(), cluster);
        vec![
            ask(AUDIT, &["--preset", "none", "--subjects", "none"]),
            ask(REACH, &[SUBJECT]),
            ask(WHO_CAN_READ, &[SECRET]),
            ask(WHY, &[SUBJECT, SECRET]),
            ask(WHAT_IF, &["-f", &chart]),
        ]
    }

    fn question(&self, what: &str, words: &[&str], cluster: &Generated) -> Question {
        let mut arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
        arguments.extend(["--dump".into(), cluster.dump.clone().into_os_string(), "--timings".into()]);
        Question {
            tool: BAILEY,
            what: what.to_owned(),
            program: self.bailey.to_owned(),
            arguments,
            environment: Vec::new(),
            // 1: there is something to look at. 3: the dump does not hold everything that could matter.
            answers: &[0, 1, 3],
            once_above: 60.0,
        }
    }

    /// Checks Bailey's answers about the planted subjects: by Secret at every size, and by subject where that is quick.
    fn check(
        &self,
        size: Size,
        cluster: &Generated,
        folder: &Path,
        answers: &[Answer],
    ) -> Result<Vec<Checked>> {
        let mut readers = Readers::new();
        for secret in check::ASKED {
            let Some(text) = self.once(&[WHO_CAN_READ, secret, "-o", "json"], cluster, folder)? else {
                return Ok(Vec::new());
            };
            readers.insert(secret.to_owned(), check::who_can_read(&text)?);
        }
        let asked: BTreeSet<String> = check::ASKED.map(str::to_owned).into();
        let by_secret = format!("{WHO_CAN_READ} of {} Secrets", asked.len());
        let score = check::judge(answers, &readers, &asked);
        let mut checked = vec![Checked { tool: BAILEY, by: by_secret, score }];
        if size > Size::M {
            return Ok(checked);
        }
        let mut readers = Readers::new();
        for answer in answers {
            let Some(text) = self.once(&[REACH, &answer.subject, "-o", "json"], cluster, folder)? else {
                return Ok(checked);
            };
            check::add_reach(&mut readers, &answer.subject, &text)?;
        }
        let asked = check::secrets_asked(&cluster.dump)?;
        let by_subject = format!("{REACH} of {} subjects", answers.len());
        let score = check::judge(answers, &readers, &asked);
        checked.push(Checked { tool: BAILEY, by: by_subject, score });
        Ok(checked)
    }

    /// Asks Bailey once, unmeasured; none where there is no answer.
    fn once(&self, words: &[&str], cluster: &Generated, folder: &Path) -> Result<Option<Vec<u8>>> {
        let question = self.question("check", words, cluster);
        let mut asked = Asked::new(&question, folder);
        asked.ask(&question, self.seconds_max)?;
        match &asked.failure {
            Some(failure) => {
                eprintln!("not checked: `bailey {}`: {failure}", words.join(" "));
                Ok(None)
            }
            None => asked.text().map(Some),
        }
    }
}

/// Judges kubectl-who-can by what it was asked: who gets Secrets of kube-system, any of them.
fn who_can_score(asked: &Asked, answers: &[Answer]) -> Result<Checked> {
    let bound = check::bound_accounts(&asked.text()?)?;
    let secrets: BTreeSet<String> = check::ASKED
        .iter()
        .filter(|secret| secret.starts_with("kube-system/"))
        .map(ToString::to_string)
        .collect();
    let said = bound.into_iter().map(|subject| (subject, check::Certainty::Proven));
    let said: std::collections::BTreeMap<_, _> = said.collect();
    let readers: Readers = secrets.iter().map(|secret| (secret.clone(), said.clone())).collect();
    let score = check::judge(answers, &readers, &secrets);
    Ok(Checked { tool: WHO_CAN, by: asked.what.clone(), score })
}

fn progress(size: Size, asked: &Asked) {
    let took = asked.runs.last().map_or(0.0, |run| run.wall);
    let end = asked.failure.as_deref().map(|failure| format!(" ({failure})")).unwrap_or_default();
    eprintln!("{}: {} {}: {took:.1} s{end}", size.name(), asked.tool, asked.what);
}
