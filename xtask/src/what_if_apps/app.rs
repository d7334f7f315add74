//! An app's rendered manifests, as a customer would apply them to one namespace.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// An app.
pub struct App {
    /// Its name.
    pub name: String,
    /// Its objects, those in namespaces of its own moved to the customer's.
    pub objects: Vec<Value>,
}

/// The only namespace of the platform in which apps ask for something.
const OF_KUBERNETES: &str = "kube-system";

impl App {
    /// The apps of a folder, each in a folder with `manifests.yaml`, moved to a namespace.
    pub fn all(folder: &Path, namespace: &str) -> Result<Vec<Self>> {
        let mut apps = Vec::new();
        for entry in std::fs::read_dir(folder).with_context(|| format!("read `{}`", folder.display()))? {
            let path = entry?.path();
            let manifests = path.join("manifests.yaml");
            if manifests.exists() {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                apps.push(Self { name, objects: moved(documents(&manifests)?, namespace) });
            }
        }
        apps.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(apps)
    }

    /// The objects of a kind.
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.objects.iter().filter(move |object| text(object, "/kind") == kind)
    }

    /// Names of the accounts that it makes, binds or runs as.
    pub fn accounts(&self) -> BTreeSet<String> {
        let made = self.of_kind("ServiceAccount").map(|account| text(account, "/metadata/name"));
        let bound = self.objects.iter().flat_map(|object| list(object, "/subjects"));
        let bound = bound
            .filter(|subject| {
                text(subject, "/kind") == "ServiceAccount" && text(subject, "/namespace") != OF_KUBERNETES
            })
            .map(|subject| text(subject, "/name"));
        made.chain(bound).chain(["default"]).map(str::to_owned).collect()
    }
}

/// Objects with all but those of Kubernetes' own namespace in one, and without the namespaces that they were in.
fn moved(objects: Vec<Value>, namespace: &str) -> Vec<Value> {
    let is_namespace = |object: &Value| text(object, "/kind") == "Namespace";
    let mut objects: Vec<_> = objects.into_iter().filter(|object| !is_namespace(object)).collect();
    for object in &mut objects {
        move_to(object.pointer_mut("/metadata"), namespace);
        let subjects = object.pointer_mut("/subjects").and_then(Value::as_array_mut);
        subjects.into_iter().flatten().for_each(|subject| move_to(Some(subject), namespace));
    }
    objects
}

fn move_to(named: Option<&mut Value>, namespace: &str) {
    let own = named.and_then(|named| named.get_mut("namespace")).filter(|own| *own != OF_KUBERNETES);
    if let Some(own) = own {
        *own = json!(namespace);
    }
}

/// The objects of a file of YAML: its documents, and the items of its lists.
pub fn documents(file: &Path) -> Result<Vec<Value>> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_nodes: 10_000_000, max_events: 100_000_000 },
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::LastWins,
    };
    let context = || format!("read `{}`", file.display());
    let text = std::fs::read_to_string(file).with_context(context)?;
    let documents: Vec<Value> =
        serde_saphyr::from_multiple_with_options(&text, options).with_context(context)?;
    let mut objects = Vec::new();
    for document in documents {
        match document.get("items").and_then(Value::as_array) {
            Some(items) => objects.extend(items.iter().cloned()),
            None if document.is_null() => {}
            None => objects.push(document),
        }
    }
    Ok(objects)
}

/// Whether an object is of this kind, namespace and name.
pub fn is(object: &Value, [kind, namespace, name]: [&str; 3]) -> bool {
    text(object, "/kind") == kind
        && text(object, "/metadata/namespace") == namespace
        && text(object, "/metadata/name") == name
}

/// The text at a pointer, empty if there is none.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The list at a pointer, empty if there is none.
pub fn list<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}
