//! What a right is worth, one by one: each scenario gives somebody certain rights and says which Secrets that leads to.
//! The server and the analyser must both say so.

use std::collections::BTreeSet;

use anyhow::Result;
use bailey_access::{Access, Customers};

use crate::case::{Case, Planted};
use crate::oracle::{Oracle, claims, list};
use crate::prober::Prober;
use crate::spec::{Binding, NAMESPACES, Role, Spec, Subject, rule};

mod constrained;
mod granting;
mod identities;
mod reading;

/// Who holds which rights. A line is `WHO at PLACE: VERBS RESOURCES [in GROUP] [named NAMES]`:
///
/// - `WHO` is `me` (an account of namespace b), `a/a0`, `user:ann`, `group:dev`;
/// - `PLACE` is a namespace's letter for a Role, `*` for a ClusterRole and ClusterRoleBinding, `@b` for a ClusterRole and
///   a RoleBinding in b;
/// - `GROUP` is `rbac`, `certificates`, `admission`, `authentication`, or as it is.
///
/// Instead of rights, `is NAME` binds the ClusterRole of this name, and `role NAME` a Role.
pub struct Scenario {
    /// What it shows.
    pub name: &'static str,
    pub lines: &'static [&'static str],
    /// The Secrets read, such as `a/s0`; all of a namespace as `a/*`, none for nobody.
    pub reads: &'static [&'static str],
}

/// All of them, whose names must differ.
pub fn all() -> Vec<&'static Scenario> {
    let all =
        [reading::SCENARIOS, granting::SCENARIOS, identities::SCENARIOS, constrained::SCENARIOS].concat();
    let names: BTreeSet<&str> = all.iter().map(|scenario| scenario.name).collect();
    assert_eq!(names.len(), all.len(), "two scenarios have the same name");
    all
}

impl Scenario {
    /// Compares it; says where it differs.
    pub async fn compare(&self, oracle: &mut Oracle<'_>) -> Result<Option<String>> {
        let spec = spec(self.lines);
        let case = Case::make(oracle.server, spec.clone()).await?;
        let access = Access::new(case.facts().await?, Customers::default());
        let me = Subject::Account(1, "a0".to_owned());
        let (claims, _) = claims(&access, &case, std::slice::from_ref(&me))?;
        let wanted: BTreeSet<_> =
            case.goals.iter().map(Planted::key).filter(|key| self.is_read(key)).collect();
        let found = oracle.compare_subject(&mut Prober::new(case), &me, &claims).await?;
        oracle.tally.scenarios += 1;
        let mut wrong: Vec<String> = if found.is_empty() { Vec::new() } else { vec![list(&found)] };
        let claimed: BTreeSet<_> =
            claims.get(&me).into_iter().flat_map(|claims| claims.keys().cloned()).collect();
        if claimed != wanted {
            wrong.push(format!("expected {wanted:?}, claimed {claimed:?}"));
        }
        Ok((!wrong.is_empty()).then(|| format!("{}\n{spec}", wrong.join("\n"))))
    }

    fn is_read(&self, (namespace, name): &(String, String)) -> bool {
        self.reads.iter().any(|read| {
            let (place, wanted) = read.split_once('/').unwrap_or((read, "*"));
            namespace == NAMESPACES[place_of(place)] && (wanted == "*" || wanted == name)
        })
    }
}

fn place_of(letter: &str) -> usize {
    ["a", "b", "c"].iter().position(|known| *known == letter).unwrap_or_else(|| panic!("no place {letter}"))
}

fn subject(text: &str) -> Subject {
    if text == "me" {
        return Subject::Account(1, "a0".to_owned());
    }
    if let Some(name) = text.strip_prefix("user:") {
        return Subject::User(name.to_owned());
    }
    if let Some(name) = text.strip_prefix("group:") {
        return Subject::Group(name.to_owned());
    }
    let (place, name) = text.split_once('/').unwrap_or_else(|| panic!("no subject {text}"));
    Subject::Account(place_of(place), name.to_owned())
}

/// Reads the lines of a scenario.
fn spec(lines: &[&str]) -> Spec {
    let mut spec = Spec::default();
    for (index, line) in lines.iter().enumerate() {
        if let Some(rest) = line.strip_prefix("token ") {
            let (place, account) = rest.split_once('/').unwrap();
            spec.tokens.push((place_of(place), account.to_owned()));
            continue;
        }
        if let Some(rest) = line.strip_prefix("role ") {
            spec.roles.push(bare_role(rest));
            continue;
        }
        let (who, rest) = line.split_once(" at ").unwrap_or_else(|| panic!("{line}"));
        let (place, rights) = rest.split_once(": ").unwrap_or_else(|| panic!("{line}"));
        let in_cluster = place == "*";
        let through = place.strip_prefix('@');
        let at = (!in_cluster).then(|| place_of(through.unwrap_or(place)));
        let mut binding = Binding {
            place: at,
            name: format!("b{index}"),
            cluster_role: in_cluster || through.is_some(),
            role: format!("r{index}"),
            subjects: vec![subject(who)],
        };
        if let Some(name) = rights.strip_prefix("is ") {
            binding.role = name.to_owned();
        } else {
            let rules = rights.split(" + ").map(rights_rule).collect();
            let place = if binding.cluster_role { None } else { at };
            spec.roles.push(Role { place, name: binding.role.clone(), rules, label: None, selects: None });
        }
        spec.bindings.push(binding);
    }
    spec
}

/// `NAME at PLACE: RIGHTS`, bound to nobody; `NAME at * with LABEL: RIGHTS`; `NAME at * selecting LABEL`.
fn bare_role(text: &str) -> Role {
    let (name, rest) = text.split_once(" at ").unwrap();
    let (head, rights) = rest.split_once(": ").unwrap_or((rest, ""));
    let (place, more) = head.split_once(' ').unwrap_or((head, ""));
    let rules = if rights.is_empty() { Vec::new() } else { rights.split(" + ").map(rights_rule).collect() };
    Role {
        place: (place != "*").then(|| place_of(place)),
        name: name.to_owned(),
        rules,
        label: more.strip_prefix("with ").map(str::to_owned),
        selects: more.strip_prefix("selecting ").map(str::to_owned),
    }
}

fn rights_rule(text: &str) -> crate::spec::Rule {
    let (text, names) = text.split_once(" named ").unwrap_or((text, ""));
    let (text, group) = text.split_once(" in ").unwrap_or((text, ""));
    let group = match group {
        "rbac" => "rbac.authorization.k8s.io",
        "certificates" => "certificates.k8s.io",
        "admission" => "admissionregistration.k8s.io",
        "authentication" => "authentication.k8s.io",
        other => other,
    };
    let (verbs, resources) = text.split_once(' ').unwrap_or_else(|| panic!("no right: {text}"));
    rule(verbs, group, resources, names)
}
