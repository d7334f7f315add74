//! Cloud identities that Cluster API's cluster objects may name.
//!
//! Who may name one is in its `allowedNamespaces`: none admits nobody, an empty one everybody, else a list of names and a
//! selector (`isClusterPermittedToUsePrincipal` of cluster-api-provider-aws, `pkg/cloud/scope/session.go`).

use serde_json::Value;

use super::{
    data::{self, CloudIdentity, Empty, Kind},
    select,
    survey::{Draft, Selected, Survey},
};
use crate::{Fact, ObjectFact, Symbol};

#[cfg(test)]
pub(super) const EDGES: &[&str] = &["capi-cloud-identity", "capi-cloud-identity-write"];

pub(super) fn add(survey: &mut Survey<'_>) {
    for identity in data::files().iter().flat_map(|file| &file.identities) {
        let Some(kind) = data::kind(&identity.kind) else { continue };
        let objects: Vec<&ObjectFact> = survey.objects(kind).collect();
        let users: Vec<&'static Kind> = identity.used_by.iter().filter_map(|id| data::kind(id)).collect();
        let users: Vec<&'static Kind> =
            users.into_iter().filter(|user| survey.matters(user, &identity.process)).collect();
        for object in &objects {
            use_of(survey, identity, kind, &users, object);
        }
        if objects.is_empty() || !kind.cluster {
            continue;
        }
        write_of(survey, identity, kind, &users, &objects);
    }
}

/// Whoever makes a cluster in an admitted namespace acts in the cloud as what it names.
fn use_of(
    survey: &mut Survey<'_>,
    identity: &'static CloudIdentity,
    kind: &Kind,
    users: &[&'static Kind],
    object: &ObjectFact,
) {
    let Some(mut admitted) = admitted(survey, identity, object) else { return };
    let (namespace, name) = survey.names(object);
    if let (false, Some(only)) = (kind.cluster, &mut admitted.only) {
        only.push(namespace);
    }
    let cloud = cloud_name(survey, identity, object);
    let process = survey.processes(&identity.process).into_iter().next();
    for user in users {
        let who = match &admitted.only {
            Some(only) => only.join(", "),
            None => "every namespace".to_owned(),
        };
        let evidence = format!("{} {name} may be named by a {} of {who}", kind.kind, user.kind);
        let spec = serde_json::json!({"identityRef": {"kind": kind.kind, "name": name}});
        let draft = Draft::new("capi-cloud-identity", Fact::Cloud(cloud).into(), evidence)
            .by(&identity.process, process.as_ref())
            .unless_known(admitted.unknown.clone())
            .only(admitted.only.clone())
            .request(spec, None, &["/spec/identityRef"]);
        survey.write(user, &draft);
    }
}

/// Whoever writes identities admits themselves to any of them.
fn write_of(
    survey: &mut Survey<'_>,
    identity: &'static CloudIdentity,
    kind: &'static Kind,
    users: &[&'static Kind],
    objects: &[&ObjectFact],
) {
    let process = survey.processes(&identity.process).into_iter().next();
    for object in objects {
        let cloud = cloud_name(survey, identity, object);
        for user in users {
            let with = survey.write_right(user);
            let name = survey.names(object).1;
            let evidence = format!("{} {name} says itself which namespaces may name it", kind.kind);
            let draft = Draft::new("capi-cloud-identity-write", Fact::Cloud(cloud).into(), evidence)
                .by(&identity.process, process.as_ref())
                .and([with]);
            let change = survey.change_one(kind, &name);
            survey.push(&draft, vec![change]);
        }
    }
}

/// The namespaces that may name an identity; none if nobody may.
fn admitted(survey: &Survey<'_>, identity: &CloudIdentity, object: &ObjectFact) -> Option<Selected> {
    let allowed = object.body.pointer("/spec/allowedNamespaces").filter(|allowed| !allowed.is_null());
    let Some(allowed) = allowed else {
        // An identity of a namespace is that namespace's own.
        let own = survey.names(object).0;
        return (!own.is_empty()).then(|| Selected { only: Some(vec![own]), unknown: Vec::new() });
    };
    let list = allowed.get("list").and_then(Value::as_array).into_iter().flatten();
    let mut only: Vec<String> = list.filter_map(Value::as_str).map(str::to_owned).collect();
    let selector = allowed.get("selector").filter(|selector| !selector.is_null());
    let mut unknown = Vec::new();
    match selector {
        Some(selector) if !select::is_empty(selector) => {
            let selected = survey.selected(selector);
            unknown = selected.unknown;
            match selected.only {
                Some(names) => only.extend(names),
                None => return Some(Selected { only: None, unknown }),
            }
        }
        Some(_) if identity.empty_selector == Empty::Everything => return Some(Selected::default()),
        _ if only.is_empty() => return Some(Selected::default()),
        _ => {}
    }
    only.sort();
    only.dedup();
    Some(Selected { only: Some(only), unknown })
}

/// The name of what an identity stands for: the cloud's own name for it, else the object's.
fn cloud_name(survey: &mut Survey<'_>, identity: &CloudIdentity, object: &ObjectFact) -> Symbol {
    let said = identity.cloud.as_deref().and_then(|pointer| object.text(pointer)).map(str::to_owned);
    let own = if identity.own { of_controller(survey, &identity.process) } else { None };
    let name = survey.names(object).1;
    let cloud = said.or(own).unwrap_or_else(|| format!("{} {name}", object.kind));
    survey.symbols.intern(&cloud)
}

/// The cloud identity of a process's ServiceAccount.
pub(super) fn of_controller(survey: &Survey<'_>, program: &str) -> Option<String> {
    let processes = survey.processes(program);
    processes.iter().find_map(|process| of_account(survey, &process.namespace, &process.account))
}

/// The cloud identity that a ServiceAccount carries.
pub(super) fn of_account(survey: &Survey<'_>, namespace: &str, name: &str) -> Option<String> {
    let (namespace, name) = (survey.symbols.find(namespace)?, survey.symbols.find(name)?);
    let accounts = &survey.cluster.service_accounts;
    let account = accounts.iter().find(|account| account.namespace == namespace && account.name == name)?;
    account.cloud_identity.map(|identity| survey.symbols.name(identity).to_owned())
}
