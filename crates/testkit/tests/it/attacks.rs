//! Without Bailey every attack of the catalogue works, so what stops it later is Bailey.

use bailey_attacks::{Attack, Bindings, Judgement, Outcome, Rail, Requirement, catalogue};
use bailey_testkit::attack::{self, Cast};
use bailey_testkit::fixture::{Fixture, bindings};
use bailey_testkit::{ControlPlane, Options};

const MARKER: &str = "a-value-that-no-customer-may-see";
/// Argo CD brings its own kinds and is not installed here.
const ABSENT: [&str; 1] = ["argo-application-in-cluster"];

#[tokio::test]
async fn every_attack_succeeds_on_a_stock_management_cluster() {
    let plane = ControlPlane::start(Options::default()).await.unwrap();
    let names = bindings(MARKER, "x");
    for fixture in [Fixture::Crds, Fixture::ManagementCluster, Fixture::Stock] {
        fixture.apply(plane.admin(), &names).await.unwrap();
    }
    let cast = Cast::new(&plane, &names).await.unwrap();
    let mut table = Table::default();
    for (number, attack) in catalogue().unwrap().iter().enumerate() {
        let names = bindings(MARKER, &format!("s{number}"));
        let verified = attack::verify(&cast, &attack.render(&names).unwrap(), &names).await.unwrap();
        let executed = execute(&cast, attack, &names).await;
        let foreign = attack.definition().requires == Some(Requirement::Bailey);
        let wanted = match foreign || ABSENT.contains(&attack.id()) {
            true => Outcome::NotApplicable,
            false => Outcome::Succeeded,
        };
        table.row(attack, "executed", &executed, wanted);
        if !foreign {
            table.row(attack, "verified", &verified, wanted);
        }
    }
    table.check();
}

#[tokio::test]
async fn leftover_grants_alone_reach_the_platform() {
    let plane = ControlPlane::start(Options::default()).await.unwrap();
    let names = bindings(MARKER, "x");
    for fixture in [Fixture::Crds, Fixture::ManagementCluster, Fixture::Leftovers] {
        fixture.apply(plane.admin(), &names).await.unwrap();
    }
    let cast = Cast::new(&plane, &names).await.unwrap();
    let mut table = Table::default();
    for (number, attack) in catalogue().unwrap().iter().enumerate() {
        let rails = &attack.definition().rails;
        let left =
            [Rail::HiddenRead, Rail::PlatformWorkloads, Rail::PlatformConnect, Rail::PlatformIdentities];
        let reaches = rails.iter().all(|rail| left.contains(rail))
            || rails == &[Rail::Namespaces]
            || attack.id().ends_with("-in-platform-namespace");
        let names = bindings(MARKER, &format!("l{number}"));
        let executed = execute(&cast, attack, &names).await;
        if reaches {
            table.row(attack, "executed", &executed, Outcome::Succeeded);
        } else if rails == &[Rail::Rbac] && attack.definition().requires.is_none() {
            table.row(attack, "executed", &executed, Outcome::Blocked);
        }
    }
    table.check();
}

async fn execute(cast: &Cast, attack: &Attack, names: &Bindings) -> Judgement {
    let report = attack::run(cast, &attack.render(names).unwrap()).await.unwrap();
    assert_eq!(report.unclean, Vec::<String>::new(), "{}", attack.id());
    report.judgement
}

#[derive(Default)]
struct Table {
    unexpected: Vec<String>,
}

impl Table {
    fn row(&mut self, attack: &Attack, how: &str, judgement: &Judgement, wanted: Outcome) {
        let Judgement { outcome, detail, .. } = judgement;
        let actor = attack.definition().actor;
        let line = format!("{:<38} {actor:<11} {how:<9} {outcome:<15} {detail}", attack.id());
        println!("{line}");
        if *outcome != wanted {
            self.unexpected.push(format!("{line} (wanted: {wanted})"));
        }
    }

    fn check(&self) {
        assert!(self.unexpected.is_empty(), "unexpected:\n{}", self.unexpected.join("\n"));
    }
}
