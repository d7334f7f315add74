//! The fields of each kind, from the schemas that the API server gets.

use anyhow::{Context as _, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use serde_json::Value;

use super::markdown::{code, codes, head, row, sentence, table};

/// The whole page.
pub(super) fn page() -> Result<String> {
    let mut text = head("API", "`crates/api`");
    text.push_str(&format!(
        "\nGroup {}, version {}. `[]` stands for each element of a list and `{{}}` for each value of a map. Rules are \
         checked by the API server; a refusal shows their text.\n",
        code(bailey_api::GROUP),
        code(bailey_api::VERSION)
    ));
    for crd in bailey_api::crds() {
        kind(&mut text, &crd)?;
    }
    Ok(text)
}

fn kind(text: &mut String, crd: &CustomResourceDefinition) -> Result<()> {
    let names = &crd.spec.names;
    let version = crd.spec.versions.first().context("a CRD has a version")?;
    let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
    let schema = serde_json::to_value(schema.context("a CRD has a schema")?)?;
    text.push_str(&format!("\n## {}\n\n{}\n\n", names.kind, sentence(string(&schema, "description"))));
    text.push_str(&format!("- Scope: {}\n", crd.spec.scope));
    let short = names.short_names.iter().flatten().chain(names.categories.iter().flatten());
    let all = std::iter::once(&names.plural).chain(short).map(String::as_str);
    text.push_str(&format!("- For kubectl: {}\n", codes(all)));
    text.push_str(&format!("- Columns: {}\n", columns(version)));
    for rule in rules(&schema) {
        text.push_str(&format!("- Rule: {}\n", sentence(rule)));
    }
    text.push_str(&table(&["field", "type", "meaning"]));
    for part in ["spec", "status"] {
        if let Some(of_part) = schema.pointer(&format!("/properties/{part}")) {
            field(text, part, of_part, list(&schema, "required").contains(&part));
        }
    }
    Ok(())
}

fn columns(version: &CustomResourceDefinitionVersion) -> String {
    let columns = version.additional_printer_columns.iter().flatten().map(|column| column.name.as_str());
    std::iter::once("Name").chain(columns).collect::<Vec<_>>().join(", ")
}

/// A row for the field and for all that lies below it.
fn field(text: &mut String, path: &str, schema: &Value, required: bool) {
    text.push_str(&row(&[&code(path), &type_of(schema), &meaning(schema, required)]));
    below(text, path, schema);
}

fn below(text: &mut String, path: &str, schema: &Value) {
    if is_conditions(schema) {
        return;
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, of_field) in properties.into_iter().flatten() {
        let required = list(schema, "required").contains(&name.as_str());
        field(text, &format!("{path}.{name}"), of_field, required);
    }
    if let Some(items) = schema.get("items") {
        below(text, &format!("{path}[]"), items);
    }
    if let Some(values) = schema.get("additionalProperties") {
        below(text, &format!("{path}{{}}"), values);
    }
}

/// Conditions look the same everywhere in Kubernetes.
fn is_conditions(schema: &Value) -> bool {
    schema.pointer("/items/properties/lastTransitionTime").is_some()
}

fn type_of(schema: &Value) -> String {
    if is_conditions(schema) {
        return "list of Condition".to_owned();
    }
    match (string(schema, "type"), schema.get("items"), schema.get("additionalProperties")) {
        ("array", Some(items), _) => format!("list of {}", type_of(items)),
        ("object", _, Some(values)) => format!("map of {}", type_of(values)),
        (name, _, _) => name.to_owned(),
    }
}

fn meaning(schema: &Value, required: bool) -> String {
    let mut parts = Vec::new();
    if !string(schema, "description").is_empty() {
        parts.push(sentence(string(schema, "description")));
    }
    if required {
        parts.push("Required.".to_owned());
    }
    parts.extend(bounds(schema, ""));
    if let Some(items) = schema.get("items").filter(|_| !is_conditions(schema)) {
        parts.extend(bounds(items, "Each: "));
    }
    if let Some(default) = schema.get("default").filter(|default| !default.is_object()) {
        let shown = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
        parts.push(format!("Default {}.", code(&shown)));
    }
    parts.extend(rules(schema).into_iter().map(|rule| format!("Rule: {}", sentence(rule))));
    parts.join(" ")
}

/// What the schema itself bounds, in words.
fn bounds(schema: &Value, of: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let values = list(schema, "enum");
    if !values.is_empty() {
        parts.push(format!("{of}One of {}.", codes(values)));
    }
    for (least, most, unit) in
        [("minItems", "maxItems", "elements"), ("minLength", "maxLength", "characters")]
    {
        let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
        match (bound(least), bound(most)) {
            (Some(least), Some(most)) => parts.push(format!("{of}{least} to {most} {unit}.")),
            (None, Some(most)) => parts.push(format!("{of}At most {most} {unit}.")),
            (Some(least), None) => parts.push(format!("{of}At least {least} {unit}.")),
            (None, None) => {}
        }
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
        parts.push(format!("{of}Matches {}.", code(pattern)));
    }
    parts
}

/// The messages of the CEL rules on a schema.
fn rules(schema: &Value) -> Vec<&str> {
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    rules.into_iter().flatten().filter_map(|rule| rule.get("message").and_then(Value::as_str)).collect()
}

fn string<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> Vec<&'a str> {
    value.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}
