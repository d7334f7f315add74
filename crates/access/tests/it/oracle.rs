//! Compares the analyser with a real API server: each right, each Secret read, each path walked.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use bailey_access::answer::{Reader, Step};
use bailey_access::{Access, Certainty, Customers, SecretRef};
use proptest::strategy::{Strategy as _, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::case::Case;
use crate::prober::Prober;
use crate::server::Server;
use crate::spec::{Spec, Subject};
use crate::tally::Tally;
use crate::{generate, rights};

/// How many rights of each subject are compared in a cluster.
const RIGHTS: usize = 60;
/// How often a failing cluster is made simpler.
const SIMPLER_MAX: usize = 120;
/// How many differences of a cluster are shown.
const LISTED_MAX: usize = 3;

/// What the analyser claims of a cluster, by subject.
pub type Claims = BTreeMap<Subject, BTreeMap<(String, String), Reader>>;

pub struct Oracle<'a> {
    pub server: &'a Server,
    pub tally: Tally,
}

impl<'a> Oracle<'a> {
    pub fn new(server: &'a Server) -> Self {
        Self { server, tally: Tally::default() }
    }

    /// Compares a random cluster, and makes it as simple as can be if it differs. Says where.
    pub async fn random(&mut self, seed: usize, index: usize) -> Result<Option<String>> {
        let mut runner = runner(seed, index);
        let mut tree = generate::spec().new_tree(&mut runner).map_err(anyhow::Error::msg)?;
        let spec = tree.current();
        let found = self.compare(&spec, None, &mut runner).await.with_context(|| spec.to_string())?;
        self.tally.clusters += 1;
        if found.is_empty() {
            return Ok(None);
        }
        eprintln!("{} differences, made simpler now:\n{}\n{spec}", found.len(), list(&found));
        // Only the cluster as it was drawn counts.
        let tally = self.tally;
        let (spec, found) = self.simplest(spec, found, &mut tree, &mut runner).await?;
        self.tally = tally;
        Ok(Some(format!("{}\n{spec}", list(&found))))
    }

    async fn simplest(
        &mut self,
        mut spec: Spec,
        mut found: Vec<Difference>,
        tree: &mut impl ValueTree<Value = Spec>,
        runner: &mut TestRunner,
    ) -> Result<(Spec, Vec<Difference>)> {
        // One difference is enough to look for, and much faster.
        let subject = found.first().and_then(|difference| difference.subject.clone());
        let mut more = tree.simplify();
        for _ in 0..SIMPLER_MAX {
            if !more {
                break;
            }
            let simpler = tree.current();
            let differences = self.compare(&simpler, subject.as_ref(), runner).await?;
            more = if differences.is_empty() {
                tree.complicate()
            } else {
                (spec, found) = (simpler, differences);
                tree.simplify()
            };
        }
        Ok((spec, found))
    }

    /// Compares one cluster for everybody in it, or for one subject.
    pub async fn compare(
        &mut self,
        spec: &Spec,
        only: Option<&Subject>,
        runner: &mut TestRunner,
    ) -> Result<Vec<Difference>> {
        let case = Case::make(self.server, spec.clone()).await?;
        let snapshot = case.facts().await?;
        let mut subjects: Vec<Subject> = spec.subjects().into_iter().collect();
        let mut wrong = Vec::new();
        match only {
            Some(only) => subjects.retain(|subject| subject == only),
            None => {
                let all: Vec<_> = subjects.iter().map(Subject::who).collect();
                let checks = rights::checks(spec, RIGHTS, runner);
                let (found, compared) = rights::compare(self.server, snapshot.clone(), &all, &checks).await?;
                self.tally.rights += compared;
                self.tally.wrong_rights += found.len();
                wrong.extend(found.into_iter().map(|text| Difference { subject: None, text }));
            }
        }
        let access = Access::new(snapshot, Customers::default());
        let (claims, assumed) = claims(&access, &case, &subjects)?;
        self.tally.assumed += assumed;
        let mut prober = Prober::new(case);
        for subject in &subjects {
            wrong.extend(self.compare_subject(&mut prober, subject, &claims).await?);
        }
        Ok(wrong)
    }

    /// Compares what one subject reads with what is claimed, and walks each claimed path.
    pub async fn compare_subject(
        &mut self,
        prober: &mut Prober<'_>,
        subject: &Subject,
        claims: &Claims,
    ) -> Result<Vec<Difference>> {
        let mut wrong = Vec::new();
        let mut differ = |text| wrong.push(Difference { subject: Some(subject.clone()), text });
        let none = BTreeMap::new();
        let claimed = claims.get(subject).unwrap_or(&none);
        let read = prober.reach(&subject.who()).await?;
        self.tally.pairs += prober.case.goals.len();
        self.tally.true_positives += read.iter().filter(|key| claimed.contains_key(*key)).count();
        self.tally.false_negatives += read.iter().filter(|key| !claimed.contains_key(*key)).count();
        self.tally.false_positives += claimed.keys().filter(|key| !read.contains(*key)).count();
        for key in read.iter().filter(|key| !claimed.contains_key(*key)) {
            differ(format!("{subject} read {}/{}, and that is not claimed", key.0, key.1));
        }
        let mut walked: BTreeSet<BTreeSet<String>> = BTreeSet::new();
        for (key, reader) in claimed {
            if !read.contains(key) {
                differ(format!(
                    "{subject} is said to read {}/{} and does not: {}",
                    key.0,
                    key.1,
                    told(&reader.path)
                ));
                continue;
            }
            let edges: BTreeSet<String> = reader.path.iter().map(|step| step.edge.clone()).collect();
            // Nothing runs pods here. Whoever makes them in these cases reaches the same by itself.
            if edges.contains("mount-any-secret")
                || edges.contains("run-as-account")
                || !walked.insert(edges.clone())
            {
                continue;
            }
            self.tally.walks += 1;
            if !prober.walk(&subject.who(), &edges, key).await? {
                differ(format!(
                    "{subject} reads {}/{}, but not the way that is told: {}",
                    key.0,
                    key.1,
                    told(&reader.path)
                ));
            }
        }
        Ok(wrong)
    }
}

/// Where the analyser and the server do not agree.
#[derive(Clone, Debug)]
pub struct Difference {
    /// About whom, if it is about what somebody reads.
    pub subject: Option<Subject>,
    pub text: String,
}

/// The first few.
pub fn list(differences: &[Difference]) -> String {
    differences
        .iter()
        .take(LISTED_MAX)
        .map(|difference| difference.text.as_str())
        .collect::<Vec<_>>()
        .join("\n")
}

fn told(path: &[Step]) -> String {
    let step =
        |step: &Step| format!("{} → [{}: {} {}] → {}", step.from, step.edge, step.object, step.rule, step.to);
    path.iter().map(step).collect::<Vec<_>>().join("; ")
}

/// What is claimed as proven of these subjects, and how many pairs are only assumed.
pub fn claims(access: &Access, case: &Case<'_>, subjects: &[Subject]) -> Result<(Claims, usize)> {
    let mut claims = Claims::new();
    let mut assumed = 0;
    for secret in &case.goals {
        let reference =
            SecretRef { cluster: None, namespace: secret.namespace.clone(), name: secret.name.clone() };
        for reader in access.who_can_read(&reference)?.subjects {
            let Some(subject) = subjects.iter().find(|subject| subject.to_string() == reader.subject) else {
                continue;
            };
            if reader.certainty == Certainty::Assumed {
                assumed += 1;
                continue;
            }
            claims.entry(subject.clone()).or_default().insert(secret.key(), reader);
        }
    }
    Ok((claims, assumed))
}

/// Draws the same for the same seed and index, on any machine.
pub fn runner(seed: usize, index: usize) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&(seed as u64).to_le_bytes());
    bytes[8..16].copy_from_slice(&(index as u64).to_le_bytes());
    TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}
