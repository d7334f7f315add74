//! The app platform: catalogs decide what an in-cluster App installs, an App may name any kubeconfig, and a
//! RoleBindingTemplate binds roles in every organization.

use serde_json::{Value, json};

use super::{
    capi, data,
    survey::{Draft, Survey},
};
use crate::{Fact, Gift, Need, ObjectFact, Power, customers::source_name};

#[cfg(test)]
pub(super) const EDGES: &[&str] = &["app-catalog-source", "app-kubeconfig", "role-binding-template"];

pub(super) fn add(survey: &mut Survey<'_>) {
    existing(survey);
    kubeconfigs(survey);
    role_binding_templates(survey);
}

/// In-cluster Apps that exist: whoever fills the catalog acts as chart-operator.
fn existing(survey: &mut Survey<'_>) {
    let Some(kind) = data::kind("app") else { return };
    let process = survey.processes("chart-operator").into_iter().next();
    let gives = survey.controller(process.as_ref());
    for object in survey.objects(kind).collect::<Vec<_>>() {
        if object.body.pointer("/spec/kubeConfig/inCluster").and_then(Value::as_bool) != Some(true) {
            continue;
        }
        let (namespace, name) = survey.names(object);
        let catalog = object.text("/spec/catalog").unwrap_or_default().to_owned();
        for url in catalog_urls(survey, object, &catalog) {
            let need = Need::Fact(Fact::Source(survey.symbols.intern(&source_name(&url))));
            let evidence =
                format!("App {namespace}/{name} is installed in this cluster from catalog {catalog}");
            let draft =
                Draft::new("app-catalog-source", gives, evidence).by("chart-operator", process.as_ref());
            survey.push(&draft, vec![need]);
        }
    }
}

/// Where a catalog's charts come from. A catalog lies in the namespace that the App names, or in `default` or
/// `giantswarm`.
fn catalog_urls(survey: &Survey<'_>, app: &ObjectFact, catalog: &str) -> Vec<String> {
    let Some(kind) = data::kind("catalog") else { return Vec::new() };
    let own = survey.names(app).0;
    let said = app.text("/spec/catalogNamespace").map(str::to_owned);
    let places = match &said {
        Some(place) => vec![place.as_str()],
        None => vec!["default", "giantswarm", own.as_str()],
    };
    let Some(object) = places.into_iter().find_map(|place| survey.object(kind, place, catalog)) else {
        return Vec::new();
    };
    let many = object.body.pointer("/spec/repositories").and_then(Value::as_array).into_iter().flatten();
    let many = many.filter_map(|repository| repository.get("URL").and_then(Value::as_str));
    let mut urls: Vec<String> = many.chain(object.text("/spec/storage/URL")).map(str::to_owned).collect();
    urls.sort();
    urls.dedup();
    urls
}

/// An App may name a kubeconfig Secret of any namespace.
fn kubeconfigs(survey: &mut Survey<'_>) {
    let Some(kind) = data::kind("app").filter(|kind| survey.matters(kind, "app-operator")) else { return };
    let process = survey.processes("app-operator").into_iter().next();
    for (namespace, secret, gives) in capi::kubeconfigs(survey) {
        let evidence = format!(
            "app-operator uses the kubeconfig of Secret {namespace}/{secret} for an App of any namespace"
        );
        let spec = |namespace: &str, secret: &str| {
            json!({
                "name": "sample", "namespace": "sample", "catalog": "sample", "version": "1.0.0",
                "kubeConfig": {"inCluster": false, "secret": {"name": secret, "namespace": namespace}},
            })
        };
        let before = spec("sample", "sample-kubeconfig");
        let draft = Draft::new("app-kubeconfig", gives, evidence)
            .by("app-operator", process.as_ref())
            .request(spec(&namespace, &secret), Some(before), &["/spec/kubeConfig/secret"])
            .assume("the checks of app-operator on references to other namespaces were not looked at");
        survey.write(kind, &draft);
    }
}

/// A RoleBindingTemplate binds any role in the namespaces of organizations.
fn role_binding_templates(survey: &mut Survey<'_>) {
    let Some(kind) = data::kind("role-binding-template") else { return };
    if !survey.matters(kind, "rbac-operator") {
        return;
    }
    let process = survey.processes("rbac-operator").into_iter().next();
    let organizations =
        survey.namespaces_where(|_, labels| labels.contains_key("giantswarm.io/organization"));
    for namespace in organizations {
        let gives: Gift = survey.power_in(Power::Everything, &namespace).into();
        let evidence =
            format!("rbac-operator binds the role that a RoleBindingTemplate names in {namespace}");
        let draft =
            Draft::new("role-binding-template", gives, evidence).by("rbac-operator", process.as_ref());
        survey.write(kind, &draft);
    }
}
