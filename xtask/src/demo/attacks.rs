//! The attack catalogue, carried out for real, and what became of it.
//!
//! INVARIANT: an attack that decides nothing, or leaves something behind, fails the demo.

use anyhow::{Context as _, Result, bail};
use bailey_attacks::{Attack, Bindings, Judgement, Method, Outcome, Rail, RenderedAttack, catalogue};
use bailey_testkit::attack::{self, Cast};
use futures::{StreamExt as _, TryStreamExt as _, stream};

use super::report::{AttackReport, word};
use super::screen::{Cell, Screen, Tone};

/// How many attacks run at a time; most of their time is spent waiting.
const CONCURRENT: usize = 4;

/// How one attack ended.
#[derive(Debug, Clone)]
pub struct Ended {
    pub id: String,
    pub title: String,
    pub judgement: Judgement,
    /// Everything that should stop it with Bailey.
    rails: Vec<Rail>,
    /// Whether something of the attacker was accepted before the end.
    accepted: bool,
}

/// Carries out every attack, and returns how each ended, ordered by id.
///
/// `round` keeps the names that this round creates apart from those of another.
pub async fn carry_out(cast: &Cast, names: &Bindings, round: &str) -> Result<Vec<Ended>> {
    let all = catalogue()?;
    let numbered: Vec<(usize, &Attack)> = all.iter().enumerate().collect();
    let (alone, mut together): (Vec<_>, Vec<_>) =
        numbered.into_iter().partition(|(_, attack)| runs_alone(attack));
    // Those that wait for an effect take longest, so they begin first.
    together.sort_by_key(|(_, attack)| attack.definition().steps.iter().all(|step| step.until.is_none()));
    let one = |(number, attack): (usize, &Attack)| {
        let names = Bindings { nonce: format!("{round}{number}"), ..names.clone() };
        let rendered = attack.render(&names);
        async move { ended(cast, &rendered?).await }
    };
    let mut done: Vec<Ended> =
        stream::iter(together).map(one).buffer_unordered(CONCURRENT).try_collect().await?;
    for attack in alone {
        done.push(one(attack).await?);
    }
    done.sort_by(|left, right| left.id.cmp(&right.id));
    Ok(done)
}

/// Says whether an attack is on an object that other attacks rely on.
fn runs_alone(attack: &Attack) -> bool {
    let definition = attack.definition();
    let restores = definition.cleanup.iter().any(|request| request.method == Method::Patch);
    restores || definition.requires.is_some()
}

async fn ended(cast: &Cast, attack: &RenderedAttack) -> Result<Ended> {
    let report = attack::run(cast, attack).await?;
    if !report.unclean.is_empty() {
        bail!("attack `{}` left something behind: {}", report.id, report.unclean.join("; "));
    }
    if report.judgement.outcome == Outcome::Inconclusive {
        bail!("attack `{}` decided nothing: {}", report.id, report.judgement.detail);
    }
    let definition = attack.definition();
    Ok(Ended {
        id: report.id,
        title: definition.title.clone(),
        judgement: report.judgement,
        rails: definition.rails.clone(),
        accepted: report
            .steps
            .iter()
            .any(|step| step.sender != "platform" && (200..300).contains(&step.status)),
    })
}

/// Shows what each attack is and how it ended.
pub fn show(screen: &Screen, attacks: &[Ended]) {
    let row = |attack: &Ended| {
        let outcome = attack.judgement.outcome;
        vec![plain(&attack.id), colored(outcome), plain(&attack.title)]
    };
    screen.table(&["ATTACK", "OUTCOME", "WHAT IT TRIES"], &attacks.iter().map(row).collect::<Vec<_>>());
}

/// Shows how each attack ended before and after, and what stopped it.
pub fn compare(screen: &Screen, stock: &[Ended], bailey: &[Ended]) {
    let rows: Vec<Vec<Cell>> = pairs(stock, bailey)
        .map(|(before, after)| {
            vec![
                plain(&after.id),
                colored(before.judgement.outcome),
                colored(after.judgement.outcome),
                (stopped_by(after), Tone::Faint),
            ]
        })
        .collect();
    screen.table(&["ATTACK", "WITHOUT BAILEY", "WITH BAILEY", "STOPPED BY"], &rows);
}

/// Returns both rounds in the form of the document.
pub fn report(stock: &[Ended], bailey: &[Ended]) -> Result<Vec<AttackReport>> {
    if stock.len() != bailey.len() {
        bail!("the rounds differ: {} attacks and {}", stock.len(), bailey.len());
    }
    pairs(stock, bailey)
        .map(|(before, after)| {
            let word = |ended: &Ended| {
                word(ended.judgement.outcome)
                    .with_context(|| format!("attack `{}` decided nothing", ended.id))
            };
            Ok(AttackReport { id: after.id.clone(), stock: word(before)?, bailey: word(after)? })
        })
        .collect()
}

/// Counts the attacks that ended in a way.
pub fn count(attacks: &[Ended], outcome: Outcome) -> usize {
    attacks.iter().filter(|attack| attack.judgement.outcome == outcome).count()
}

fn pairs<'a>(stock: &'a [Ended], bailey: &'a [Ended]) -> impl Iterator<Item = (&'a Ended, &'a Ended)> {
    bailey.iter().filter_map(|after| Some((stock.iter().find(|before| before.id == after.id)?, after)))
}

/// Returns what stopped an attack: a rail that refused it or left it without effect, or RBAC alone.
fn stopped_by(attack: &Ended) -> String {
    if attack.judgement.outcome != Outcome::Blocked {
        return String::new();
    }
    let refused_by = attack.judgement.rule.as_deref();
    match refused_by.and_then(|rule| rule.strip_prefix("bailey-")) {
        Some(rail) => rail.to_owned(),
        None if refused_by == Some(Rail::PodSecurity.name()) => Rail::PodSecurity.name().to_owned(),
        None if attack.accepted && !attack.rails.contains(&Rail::Rbac) => {
            let rails: Vec<&str> = attack.rails.iter().map(|rail| rail.name()).collect();
            format!("{}: grants nothing", rails.join(", "))
        }
        None => refused_by.map_or("accepted without effect", |_| "RBAC").to_owned(),
    }
}

fn plain(text: &str) -> Cell {
    (text.to_owned(), Tone::Plain)
}

fn colored(outcome: Outcome) -> Cell {
    let tone = match outcome {
        Outcome::Succeeded => Tone::Bad,
        Outcome::Blocked => Tone::Good,
        Outcome::NotApplicable | Outcome::Inconclusive => Tone::Faint,
    };
    (outcome.to_string(), tone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(id: &str, outcome: Outcome, rule: Option<&str>) -> Ended {
        let judgement = Judgement { outcome, detail: String::new(), rule: rule.map(str::to_owned) };
        let rails = vec![Rail::ScopedRoles];
        Ended { id: id.to_owned(), title: String::new(), judgement, rails, accepted: false }
    }

    #[test]
    fn attacks_on_what_others_rely_on_run_alone() {
        let all = catalogue().unwrap();
        let alone: Vec<_> = all.iter().filter(|attack| runs_alone(attack)).map(Attack::id).collect();
        for id in ["namespace-relabel", "bailey-delete-rail", "bailey-installation-audit"] {
            assert!(alone.contains(&id), "{id}");
        }
        assert!(!alone.contains(&"rbac-fresh-account-cluster-admin"));
    }

    #[test]
    fn rounds_are_joined_by_id_and_an_undecided_attack_is_an_error() {
        let stock = [ended("a", Outcome::Succeeded, None), ended("b", Outcome::NotApplicable, None)];
        let bailey = [ended("a", Outcome::Blocked, Some("rbac")), ended("b", Outcome::Blocked, None)];
        let joined = report(&stock, &bailey).unwrap();
        assert_eq!(joined[0], AttackReport { id: "a".to_owned(), stock: "succeeded", bailey: "blocked" });
        assert_eq!(joined[1].stock, "not-applicable");
        let undecided = [ended("a", Outcome::Inconclusive, None), ended("b", Outcome::Blocked, None)];
        assert!(report(&stock, &undecided).is_err());
        assert!(report(&stock, &bailey[..1]).is_err());
    }

    #[test]
    fn what_stopped_an_attack_is_named_only_where_something_did() {
        assert_eq!(stopped_by(&ended("a", Outcome::Blocked, Some("bailey-crds"))), "crds");
        assert_eq!(stopped_by(&ended("a", Outcome::Blocked, Some("rbac"))), "RBAC");
        assert_eq!(stopped_by(&ended("a", Outcome::Blocked, Some("pod-security"))), "pod-security");
        assert_eq!(stopped_by(&ended("a", Outcome::Succeeded, None)), "");
        for rule in [Some("rbac"), None] {
            let narrowed = Ended { accepted: true, ..ended("a", Outcome::Blocked, rule) };
            assert_eq!(stopped_by(&narrowed), "scoped-roles: grants nothing");
        }
    }
}
