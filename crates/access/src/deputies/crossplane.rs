//! Crossplane providers: what their ProviderConfigs let the authors of managed resources do.
//!
//! With `InjectedIdentity` a provider acts as its own pod's ServiceAccount. A ProviderConfig of the cluster names Secrets
//! of any namespace, and whoever may write it uses any kubeconfig that lies there.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    capi,
    data::{self, Kind},
    process::Process,
    survey::{Draft, Survey},
};
use crate::{Fact, Gift, Named, Need, ObjectFact, Place};

#[cfg(test)]
pub(super) const EDGES: &[&str] =
    &["crossplane-object", "crossplane-release", "crossplane-provider-config", "crossplane-managed-resource"];

/// Managed kind, edge, program, and the kinds of ProviderConfigs that objects of it may name.
const APPLIERS: [(&str, &str, &str, &[&str]); 4] = [
    ("object", "crossplane-object", "provider-kubernetes", &["kubernetes-provider-config"]),
    (
        "namespaced-object",
        "crossplane-object",
        "provider-kubernetes",
        &["namespaced-kubernetes-provider-config", "kubernetes-cluster-provider-config"],
    ),
    ("release", "crossplane-release", "provider-helm", &["helm-provider-config"]),
    (
        "namespaced-release",
        "crossplane-release",
        "provider-helm",
        &["namespaced-helm-provider-config", "helm-cluster-provider-config"],
    ),
];
/// Sources of a login that is the provider's own.
const OWN: [&str; 6] = [
    "InjectedIdentity",
    "IRSA",
    "WebIdentity",
    "PodIdentity",
    "SystemAssignedManagedIdentity",
    "OIDCTokenFile",
];

pub(super) fn add(survey: &mut Survey<'_>) {
    for (id, edge, program, configs) in APPLIERS {
        let Some(kind) = data::kind(id).filter(|kind| survey.matters(kind, program)) else { continue };
        let configs: Vec<&'static Kind> = configs.iter().filter_map(|id| data::kind(id)).collect();
        for config in &configs {
            for object in survey.objects(config).collect::<Vec<_>>() {
                configured(survey, kind, edge, program, object);
            }
            config_authors(survey, kind, program, config);
        }
        let unknown = configs.iter().all(|config| {
            survey.objects(config).next().is_none() && !survey.cluster.has_listed(&config.listed_as())
        });
        if unknown {
            for process in by(survey, program) {
                let gives = survey.controller(process.as_ref());
                let evidence = format!("{program} applies what a {} holds", kind.kind);
                let draft = Draft::new(edge, gives, evidence)
                    .by(program, process.as_ref())
                    .assume("no ProviderConfig was loaded, so it is not known as whom");
                survey.write(kind, &draft);
            }
        }
    }
    clouds(survey);
}

fn by(survey: &Survey<'_>, program: &str) -> Vec<Option<Process>> {
    let processes = survey.processes(program);
    if processes.is_empty() { vec![None] } else { processes.into_iter().map(Some).collect() }
}

/// Whoever writes a managed resource acts as what a ProviderConfig says.
fn configured(
    survey: &mut Survey<'_>,
    kind: &'static Kind,
    edge: &'static str,
    program: &str,
    config: &ObjectFact,
) {
    let (namespace, name) = survey.names(config);
    let what = if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") };
    let what = format!("{} {what}", config.kind);
    let spec = serde_json::json!({"providerConfigRef": {"name": name}, "forProvider": {}});
    let only = (!namespace.is_empty()).then(|| vec![namespace.clone()]);
    let injected = config.text("/spec/credentials/source") == Some("InjectedIdentity");
    for process in by(survey, program) {
        let (gives, says) = if injected {
            (
                survey.controller(process.as_ref()),
                "lets it act as the provider's own ServiceAccount".to_owned(),
            )
        } else {
            let secret = config.text("/spec/credentials/secretRef/name").unwrap_or_default().to_owned();
            let place = config.text("/spec/credentials/secretRef/namespace").unwrap_or(&namespace).to_owned();
            let other = capi::cluster_of(survey, &place, &secret);
            (
                other.unwrap_or(Gift::Nothing),
                format!("lets it act with the kubeconfig of Secret {place}/{secret}"),
            )
        };
        let draft = Draft::new(edge, gives, format!("{what} {says}"))
            .by(program, process.as_ref())
            .only(only.clone())
            .request(spec.clone(), None, &["/spec/providerConfigRef"]);
        survey.write(kind, &draft);
        // References of an object or release to others are read with the provider's own client, whatever the config.
        if !injected && kind.cluster {
            let gives = survey.controller(process.as_ref());
            let draft = Draft::new(
                edge,
                gives,
                format!(
                    "{program} reads what the references of a {} name, in any namespace, with its own rights",
                    kind.kind
                ),
            )
            .by(program, process.as_ref())
            .assume("only reading was looked at");
            survey.write(kind, &draft);
        }
    }
}

/// Whoever writes a ProviderConfig too acts as the provider, and with any kubeconfig of the cluster.
fn config_authors(survey: &mut Survey<'_>, kind: &'static Kind, program: &str, config: &'static Kind) {
    if !survey.matters(config, program) {
        return;
    }
    let with = survey.write_right(kind);
    for process in by(survey, program) {
        let gives = survey.controller(process.as_ref());
        let evidence = format!("{program} acts as itself for a {} with source InjectedIdentity", config.kind);
        let draft = Draft::new("crossplane-provider-config", gives, evidence)
            .by(program, process.as_ref())
            .and([with.clone()]);
        survey.write(config, &draft);
        if !config.cluster {
            continue;
        }
        for (namespace, secret, gives) in capi::kubeconfigs(survey) {
            let evidence = format!(
                "{program} uses the kubeconfig of Secret {namespace}/{secret} for a {} that names it",
                config.kind
            );
            let draft =
                Draft::new("crossplane-provider-config", gives, evidence).by(program, process.as_ref());
            let write = survey.write_right(config);
            survey.push(&draft.and([with.clone()]), vec![write]);
        }
    }
}

/// Managed resources of cloud providers: groups below that of a ProviderConfig, for example `s3.aws.upbound.io`. Only
/// kinds that some role names matter, since a wildcard holds each of them.
fn clouds(survey: &mut Survey<'_>) {
    let configs: Vec<&ObjectFact> = survey
        .cluster
        .objects
        .iter()
        .filter(|object| object.kind == "ProviderConfig" || object.kind == "ClusterProviderConfig")
        .filter(|object| {
            object.group().ends_with(".upbound.io") || object.group().ends_with(".crossplane.io")
        })
        .filter(|object| !["kubernetes.", "helm."].iter().any(|own| object.group().starts_with(own)))
        .collect();
    for config in configs {
        let cloud = login(survey, config);
        let gives = Fact::Cloud(survey.symbols.intern(&cloud)).into();
        let (namespace, name) = survey.names(config);
        let only = (!namespace.is_empty()).then(|| vec![namespace]);
        for (group, resources) in managed(survey, config.group()) {
            let evidence = format!("{} {name} lets managed resources of {group} act as {cloud}", config.kind);
            let draft = Draft::new("crossplane-managed-resource", gives, evidence).only(only.clone());
            // Whether the kinds are cluster-scoped is not known; a right in the whole cluster is one in a namespace too.
            let need = Need::Right {
                verbs: ["create", "patch", "update"].map(|verb| survey.symbols.intern(verb)).to_vec(),
                group: survey.symbols.intern(&group),
                resources: resources.iter().map(|resource| survey.symbols.intern(resource)).collect(),
                names: Vec::new(),
                place: if config.group().contains(".m.") { Place::Here } else { Place::Cluster },
                named: Named::Exists,
            };
            survey.push(&draft, vec![need]);
        }
    }
}

/// What a cloud ProviderConfig logs in as.
fn login(survey: &Survey<'_>, config: &ObjectFact) -> String {
    let chain = config.body.pointer("/spec/assumeRoleChain").and_then(Value::as_array);
    let last =
        chain.and_then(|chain| chain.last()).and_then(|role| role.get("roleARN")).and_then(Value::as_str);
    let web = config.text("/spec/credentials/webIdentity/roleARN");
    let name = survey.names(config).1;
    if let Some(role) = last.or(web) {
        return role.to_owned();
    }
    let source = config.text("/spec/credentials/source").unwrap_or_default();
    let secret = config.text("/spec/credentials/secretRef/name");
    if let (false, Some(secret)) = (OWN.contains(&source), secret) {
        let place = config
            .text("/spec/credentials/secretRef/namespace")
            .map_or_else(|| survey.names(config).0, str::to_owned);
        return format!("the login in Secret {place}/{secret}");
    }
    format!("the identity of the providers of {} ({name})", config.group())
}

/// Groups and resources of managed kinds that roles or definitions name.
fn managed(survey: &Survey<'_>, group: &str) -> Vec<(String, BTreeSet<String>)> {
    let suffix = format!(".{group}");
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for rule in survey.cluster.roles.iter().flat_map(|role| &role.rules) {
        for own in rule
            .api_groups
            .iter()
            .map(|group| survey.symbols.name(*group))
            .filter(|own| own.ends_with(&suffix))
        {
            let resources = rule.resources.iter().map(|resource| survey.symbols.name(*resource));
            let resources = resources.filter(|resource| !resource.contains('/'));
            found.entry(own.to_owned()).or_default().extend(resources.map(str::to_owned));
        }
    }
    let definitions = survey.cluster.objects_of("apiextensions.k8s.io", "CustomResourceDefinition");
    for (plural, own) in definitions.filter_map(|crd| survey.symbols.name(crd.name).split_once('.')) {
        if own.ends_with(&suffix) {
            found.entry(own.to_owned()).or_default().insert(plural.to_owned());
        }
    }
    found.retain(|_, resources| !resources.is_empty());
    found.into_iter().collect()
}
