//! Deputies of which data says most: cert-manager's authorities, OLM's groups, the keys of Sealed Secrets.

use super::{
    data,
    process::Setting,
    survey::{Draft, Survey, known},
};
use crate::{Fact, Gift, Need, Power};

#[cfg(test)]
pub(super) const EDGES: &[&str] = &[
    "cert-manager-cluster-issuer",
    "cert-manager-ca",
    "olm-cluster-service-version",
    "olm-operator-group",
    "sealed-secrets-key",
];

pub(super) fn add(survey: &mut Survey<'_>) {
    cluster_issuers(survey);
    authorities(survey);
    operators(survey);
    sealing_keys(survey);
}

/// A ClusterIssuer logs in with Secrets of the cluster resource namespace (`--cluster-resource-namespace`, by default
/// `kube-system`).
fn cluster_issuers(survey: &mut Survey<'_>) {
    let Some(kind) = data::kind("cluster-issuer") else { return };
    for process in survey.processes("cert-manager-controller") {
        // With --namespace it does not look at ClusterIssuers.
        if !survey.matters(kind, "cert-manager-controller") || process.watched(&[]).only.is_some() {
            continue;
        }
        let (place, unknown) = match process.flag("cluster-resource-namespace") {
            Setting::Absent => (Some("kube-system".to_owned()), None),
            setting => known(setting),
        };
        let place = place.unwrap_or_else(|| process.namespace.clone());
        let gives = survey.power_in(Power::Secrets, &place).into();
        let evidence = format!(
            "{} logs in at the Vault server that a ClusterIssuer names with any Secret of {place}",
            process.object
        );
        let draft = Draft::new("cert-manager-cluster-issuer", gives, evidence)
            .by("cert-manager-controller", Some(&process))
            .unless_known(unknown.map(|why| format!("--cluster-resource-namespace is not known: {why}")));
        survey.write(kind, &draft);
    }
}

/// A ClusterIssuer with a CA signs whatever a Certificate of any namespace asks for.
fn authorities(survey: &mut Survey<'_>) {
    let (Some(kind), Some(certificate)) = (data::kind("cluster-issuer"), data::kind("certificate")) else {
        return;
    };
    let issuers: Vec<_> = survey.objects(kind).collect();
    for object in issuers {
        let Some(secret) = object.text("/spec/ca/secretName") else { continue };
        let name = survey.names(object).1;
        let evidence =
            format!("ClusterIssuer {name} signs any subject and usage with the CA of Secret {secret}");
        let draft =
            Draft::new("cert-manager-ca", Gift::Nothing, evidence).assume("who trusts that CA is not known");
        survey.write(certificate, &draft);
    }
}

/// OLM gives an operator what its ClusterServiceVersion asks for, unless the OperatorGroup names a ServiceAccount.
fn operators(survey: &mut Survey<'_>) {
    let (Some(version), Some(group)) = (data::kind("cluster-service-version"), data::kind("operator-group"))
    else {
        return;
    };
    if !survey.matters(version, "olm") {
        return;
    }
    let processes = survey.processes("olm");
    let process = processes.first();
    let who = process.map_or("olm".to_owned(), |process| process.object.clone());
    let gives = survey.controller(process);
    let mut open = Vec::new();
    let mut bound = Vec::new();
    for object in survey.objects(group).collect::<Vec<_>>() {
        let namespace = survey.names(object).0;
        match object.text("/spec/serviceAccountName") {
            Some(account) => bound.push((namespace, account.to_owned())),
            None => open.push(namespace),
        }
    }
    let evidence = format!("{who} gives an operator whatever rights its ClusterServiceVersion asks for");
    let draft = Draft::new("olm-cluster-service-version", gives, evidence.clone()).by("olm", process);
    survey
        .write(version, &draft.clone().despite("the OperatorGroup names no ServiceAccount").only(Some(open)));
    for (namespace, account) in bound {
        let gives = survey.account(&namespace, &account).into();
        let evidence = format!("{who} gives an operator what ServiceAccount {namespace}/{account} holds");
        let draft = Draft::new("olm-cluster-service-version", gives, evidence).by("olm", process);
        survey.write(version, &draft.in_namespace(&namespace));
    }
    let with = survey.write_right(version);
    let draft = Draft { edge: "olm-operator-group", ..draft }.and([with]);
    survey.write(group, &draft);
}

/// Whoever reads a sealing key opens every SealedSecret, in Git too. Keys are TLS Secrets beside the controller, named
/// by `--key-prefix`.
fn sealing_keys(survey: &mut Survey<'_>) {
    for process in survey.processes("sealed-secrets") {
        let (prefix, _) = known(process.flag("key-prefix"));
        let prefix = prefix.unwrap_or_else(|| "sealed-secrets-key".to_owned());
        let secrets = survey.cluster.secrets.iter();
        let keys: Vec<(String, String)> = secrets
            .filter(|secret| survey.symbols.name(secret.kind) == "kubernetes.io/tls")
            .map(|secret| {
                (
                    survey.symbols.name(secret.namespace).to_owned(),
                    survey.symbols.name(secret.name).to_owned(),
                )
            })
            .filter(|(namespace, name)| *namespace == process.namespace && name.starts_with(&prefix))
            .collect();
        for (namespace, name) in keys {
            let evidence = format!("Secret {namespace}/{name} opens every SealedSecret of the cluster");
            let draft = Draft::new("sealed-secrets-key", Gift::Nothing, evidence)
                .by("sealed-secrets", Some(&process));
            let fact: Fact = survey.secret(&namespace, &name);
            survey.push(&draft, vec![Need::Fact(fact)]);
        }
    }
}
