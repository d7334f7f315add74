//! Objects from files and folders: YAML streams, JSON, and Lists of either.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::CliError;

/// An object and the file that it is from.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// The file.
    pub path: PathBuf,
    /// The object.
    pub object: Value,
}

impl Manifest {
    /// `KIND NAME`.
    pub fn name(&self) -> String {
        let text = |pointer| self.object.pointer(pointer).and_then(Value::as_str).unwrap_or("?");
        format!("{} {}", text("/kind"), text("/metadata/name"))
    }

    /// Whether it is of this kind of `bailey.dev`.
    pub fn is(&self, kind: &str) -> bool {
        let text = |pointer| self.object.pointer(pointer).and_then(Value::as_str);
        text("/kind") == Some(kind)
            && text("/apiVersion") == Some(&format!("{}/{}", bailey_api::GROUP, bailey_api::VERSION))
    }

    /// An error about it.
    pub fn error(&self, message: impl Into<String>) -> CliError {
        CliError::Manifest { path: self.path.clone(), object: self.name(), message: message.into() }
    }
}

/// Reads all files; those of a folder in the order of their names, without folders inside it.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Manifest>, CliError> {
    let mut manifests = Vec::new();
    for path in paths {
        for file in files(path)? {
            manifests.extend(read_file(&file)?);
        }
    }
    Ok(manifests)
}

/// The files of a folder in the order of their names, without folders inside it; a file by itself.
pub fn files(path: &Path) -> Result<Vec<PathBuf>, CliError> {
    if path.is_dir() { files_of(path) } else { Ok(vec![path.to_owned()]) }
}

fn files_of(folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    let failed = |source| CliError::File { action: "read", path: folder.to_owned(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
        if path.is_file() && ["yaml", "yml", "json"].contains(&extension) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn read_file(path: &Path) -> Result<Vec<Manifest>, CliError> {
    let text = fs::read_to_string(path).map_err(|source| CliError::File {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    parse(path, &text)
}

/// The objects of a text.
pub fn parse(path: &Path, text: &str) -> Result<Vec<Manifest>, CliError> {
    let wrong =
        |object: String, message: String| CliError::Manifest { path: path.to_owned(), object, message };
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| {
        wrong("the text".to_owned(), format!("is not valid YAML or JSON: {}", first_line(&error)))
    })?;
    let mut manifests = Vec::new();
    for (number, document) in documents.into_iter().enumerate() {
        if document.is_null() {
            continue;
        }
        let objects = match document.get("items").and_then(Value::as_array) {
            Some(items) => items.clone(),
            None => vec![document],
        };
        for object in objects {
            let manifest = Manifest { path: path.to_owned(), object };
            if manifest.name().contains('?') {
                let message = "has no `kind` or no `metadata.name`; write a Kubernetes object".to_owned();
                return Err(wrong(format!("document {}", number + 1), message));
            }
            manifests.push(manifest);
        }
    }
    Ok(manifests)
}

/// What is wrong, without the lines around it, which may hold a credential.
fn first_line(error: &serde_saphyr::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_with_a_list_gives_each_object() {
        let text =
            "---\nkind: A\nmetadata: {name: a}\n---\nkind: List\nitems:\n- {kind: B, metadata: {name: b}}\n";
        let names: Vec<_> = parse(Path::new("f"), text).unwrap().iter().map(Manifest::name).collect();
        assert_eq!(names, ["A a", "B b"]);
    }

    #[test]
    fn a_mistake_is_told_without_what_is_beside_it() {
        let error = parse(Path::new("f"), "token: hunter2\nbad:1\nc: d\n").unwrap_err().to_string();
        assert!(error.starts_with("the text in `f`: is not valid YAML or JSON: line "), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[test]
    fn what_is_no_object_is_named_by_its_place() {
        let error = parse(Path::new("f.yaml"), "kind: A\nmetadata: {name: a}\n---\nfoo: 1\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "document 2 in `f.yaml`: has no `kind` or no `metadata.name`; write a Kubernetes object"
        );
    }
}
