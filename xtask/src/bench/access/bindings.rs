//! RoleBindings and ClusterRoleBindings: who is drawn to hold what.
//!
//! INVARIANT: groups that everybody is in hold nothing beyond `view`, and no drawn subject is a planted one, so that
//! the answers of planted subjects stay true.

use anyhow::Result;
use serde_json::{Value, json};

use super::lists::List;
use super::objects::metadata;
use super::plan::{Place, Plan};
use super::random::Random;

/// Writes all RoleBindings.
pub fn role_bindings(plan: &Plan, list: &mut List) -> Result<()> {
    let mut random = plan.random("rolebindings");
    let mut fixed = 0;
    for place in &plan.places {
        for role in &place.roles {
            if let Some(to) = &role.to {
                fixed += 1;
                list.add(&binding(&mut random, Some(&place.name), &role.name, ("Role", &role.name), to))?;
            }
        }
    }
    let customers = plan.customers();
    let numbers = numbers(customers.len(), plan.counts.role_bindings.saturating_sub(fixed), &mut random);
    for (place_index, (place, number)) in customers.iter().zip(numbers).enumerate() {
        for index in 0..number {
            let drawn = draw(plan, place_index, place, &mut random);
            let name = format!("{}-{index}", drawn.role.1);
            let role = (drawn.role.0, drawn.role.1.as_str());
            list.add(&binding(&mut random, Some(&place.name), &name, role, &drawn.to))?;
        }
    }
    Ok(())
}

/// Writes all ClusterRoleBindings.
pub fn cluster_role_bindings(plan: &Plan, list: &mut List) -> Result<()> {
    let mut random = plan.random("clusterrolebindings");
    for fixed in &plan.fixed.bindings {
        let name = fixed.name.as_ref().unwrap_or(&fixed.role);
        list.add(&binding(&mut random, None, name, ("ClusterRole", &fixed.role), &fixed.to))?;
    }
    let customers = plan.customers();
    for index in 0..plan.counts.cluster_role_bindings.saturating_sub(plan.fixed.bindings.len()) {
        let role = random.pick(&plan.customer_roles).cloned().unwrap_or_default();
        let place = random.below(customers.len());
        let to: Vec<_> =
            customers.get(place).map(|at| subject(plan, place, at, &mut random)).into_iter().collect();
        list.add(&binding(&mut random, None, &format!("{role}-{index}"), ("ClusterRole", &role), &to))?;
    }
    Ok(())
}

/// Deals a number of things to so many places; returns how many each gets.
pub fn numbers(places: usize, count: usize, random: &mut Random) -> Vec<usize> {
    let mut numbers = vec![0_usize; places];
    for _ in 0..count {
        let at = random.below(places);
        if let Some(number) = numbers.get_mut(at) {
            *number += 1;
        }
    }
    numbers
}

struct Drawn {
    role: (&'static str, String),
    to: Vec<String>,
}

fn draw(plan: &Plan, index: usize, place: &Place, random: &mut Random) -> Drawn {
    // A binding of everybody in the cluster, or of all its accounts.
    if random.percent(1) {
        let group = random.word(&["group:system:authenticated", "group:system:serviceaccounts"]);
        return Drawn { role: ("ClusterRole", "view".to_owned()), to: vec![group.to_owned()] };
    }
    let own = random.pick(&place.roles).filter(|_| random.percent(62)).map(|role| role.name.clone());
    let role = match own {
        Some(name) => ("Role", name),
        None => {
            let name = random.weighted("view", &[(34, "view"), (20, "edit"), (8, "admin"), (38, "")]);
            let app = random.pick(&plan.customer_roles).map_or("view", String::as_str);
            ("ClusterRole", if name.is_empty() { app } else { name }.to_owned())
        }
    };
    let to =
        (0..random.weighted(1, &[(70, 1), (22, 2), (8, 3)])).map(|_| subject(plan, index, place, random));
    Drawn { role, to: to.collect() }
}

/// Draws a subject of a binding in a customer's namespace.
fn subject(plan: &Plan, index: usize, place: &Place, random: &mut Random) -> String {
    let customer = place.customer.unwrap_or_default();
    let account = |place: &Place, random: &mut Random| {
        let name = random.pick(&place.accounts).map_or("default", String::as_str);
        format!("{}/{name}", place.name)
    };
    let customers = plan.customers();
    match random.below(100) {
        0..54 => format!("sa:{}", account(place, random)),
        54..72 => format!("group:c{customer:04}-{}", random.word(&["admins", "developers", "viewers"])),
        72..80 => format!("user:user{}@c{customer:04}.example", random.below(30)),
        // A user of this name is the account.
        80..84 => format!("user:system:serviceaccount:{}", account(place, random).replace('/', ":")),
        84..93 => {
            // Another namespace of the same customer, which stand side by side.
            let sibling = (index & !3) + random.below(4);
            format!("sa:{}", account(customers.get(sibling).unwrap_or(place), random))
        }
        93..97 => format!("group:system:serviceaccounts:{}", place.name),
        97..99 => "sa:flux-system/kustomize-controller".to_owned(),
        _ => format!("sa:{}", account(random.pick(customers).unwrap_or(place), random)),
    }
}

fn binding(
    random: &mut Random,
    namespace: Option<&str>,
    name: &str,
    role: (&str, &str),
    to: &[String],
) -> Value {
    let kind = if namespace.is_some() { "RoleBinding" } else { "ClusterRoleBinding" };
    let mut binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata(random, namespace, name, json!({})),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role.0, "name": role.1},
    });
    if let (Some(binding), false) = (binding.as_object_mut(), to.is_empty()) {
        let subjects: Vec<Value> = to.iter().filter_map(|to| native(to)).collect();
        binding.insert("subjects".to_owned(), subjects.into());
    }
    binding
}

/// Turns `sa:NAMESPACE/NAME`, `user:NAME` or `group:NAME` into a subject of a binding.
fn native(subject: &str) -> Option<Value> {
    let (kind, name) = subject.split_once(':')?;
    let group = "rbac.authorization.k8s.io";
    Some(match kind {
        "sa" => {
            let (namespace, name) = name.split_once('/')?;
            json!({"kind": "ServiceAccount", "name": name, "namespace": namespace})
        }
        "user" => json!({"apiGroup": group, "kind": "User", "name": name}),
        _ => json!({"apiGroup": group, "kind": "Group", "name": name}),
    })
}
