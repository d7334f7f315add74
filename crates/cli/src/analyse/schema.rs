//! JSON Schemas (draft 2020-12) of the analyser's documents, made from their types.
//!
//! A document may get further fields within a version of its schema, so the schemas allow them; what a field means stays.

use bailey_access::answer::{
    AUDIT_SCHEMA, REACH_SCHEMA, Reach, WHAT_IF_SCHEMA, WHO_CAN_READ_SCHEMA, WHY_SCHEMA, WhatIf, WhoCanRead,
    Why,
};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use super::document::{DIFF_SCHEMA, Diff, EXPLANATION_SCHEMA, Explanation, Report};

/// All schemas: the file's name, and the schema.
pub fn schemas() -> Vec<(String, Value)> {
    vec![
        schema::<Report>(AUDIT_SCHEMA),
        schema::<WhoCanRead>(WHO_CAN_READ_SCHEMA),
        schema::<Reach>(REACH_SCHEMA),
        schema::<Why>(WHY_SCHEMA),
        schema::<WhatIf>(WHAT_IF_SCHEMA),
        schema::<Diff>(DIFF_SCHEMA),
        schema::<Explanation>(EXPLANATION_SCHEMA),
    ]
}

/// The schema of a document whose field `schema` is this.
fn schema<T: JsonSchema>(id: &str) -> (String, Value) {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema: Schema = generator.into_root_schema_for::<T>();
    if let Some(field) = schema.pointer_mut("/properties/schema") {
        *field = json!({"description": "Which document this is, and its version.", "const": id});
    }
    schema.insert("$id".to_owned(), json!(format!("urn:{}", id.replace('.', ":"))));
    schema.insert("title".to_owned(), json!(id));
    let name = id.trim_start_matches("bailey.").replace('/', ".");
    (format!("{name}.json"), schema.to_value())
}

#[cfg(test)]
mod tests;
