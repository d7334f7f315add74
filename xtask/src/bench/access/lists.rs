//! Writes what `kubectl get KIND -A -o json` prints, an object at a time.
//!
//! Compact Lists have an object a line. Nothing of a List but the object at hand is kept in memory.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

/// What stands before and after the objects of a compact List.
pub const BEFORE: &str = "{\"apiVersion\":\"v1\",\"items\":[\n";
pub const AFTER: &str = "\n],\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"\"}}\n";

/// How Lists are laid out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Without space, an object a line.
    Compact,
    /// As kubectl prints them, about twice as large.
    Indented,
}

/// A List that is being written.
pub struct List {
    path: PathBuf,
    file: BufWriter<File>,
    layout: Layout,
    objects: usize,
}

impl List {
    /// Begins the List of this kind, given as its lower-case plural.
    pub fn create(folder: &Path, plural: &str, layout: Layout) -> Result<Self> {
        let path = folder.join(format!("{plural}.json"));
        let file = File::create(&path).with_context(|| format!("create `{}`", path.display()))?;
        let mut list = Self { path, file: BufWriter::with_capacity(1 << 18, file), layout, objects: 0 };
        list.put(match layout {
            Layout::Compact => BEFORE,
            Layout::Indented => "{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n        ",
        })?;
        Ok(list)
    }

    /// Adds an object.
    pub fn add(&mut self, object: &Value) -> Result<()> {
        if self.objects > 0 {
            self.put(if self.layout == Layout::Compact { ",\n" } else { ",\n        " })?;
        }
        self.objects += 1;
        match self.layout {
            Layout::Compact => {
                serde_json::to_writer(&mut self.file, object).with_context(|| self.failure())?
            }
            Layout::Indented => {
                let text = indented(object).with_context(|| self.failure())?;
                self.put(&text)?;
            }
        }
        Ok(())
    }

    /// Ends the List and returns how many objects it holds.
    pub fn finish(mut self) -> Result<usize> {
        self.put(match self.layout {
            Layout::Compact => AFTER,
            Layout::Indented => concat!(
                "\n    ],\n    \"kind\": \"List\",\n    \"metadata\": {\n",
                "        \"resourceVersion\": \"\"\n    }\n}\n"
            ),
        })?;
        self.file.flush().with_context(|| self.failure())?;
        Ok(self.objects)
    }

    fn put(&mut self, text: &str) -> Result<()> {
        self.file.write_all(text.as_bytes()).with_context(|| self.failure())
    }

    fn failure(&self) -> String {
        format!("write `{}`", self.path.display())
    }
}

/// Lays an object out by four spaces, as deep as it stands in a List.
fn indented(object: &Value) -> serde_json::Result<String> {
    let mut text = Vec::new();
    let layout = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    serde::Serialize::serialize(object, &mut serde_json::Serializer::with_formatter(&mut text, layout))?;
    Ok(String::from_utf8_lossy(&text).replace('\n', "\n        "))
}

/// Puts the Lists of a folder into one `.tar.gz` and removes them; the same Lists give the same bytes.
pub fn pack(folder: &Path, archive: &Path, plurals: &[&str]) -> Result<()> {
    let failure = || format!("write `{}`", archive.display());
    let file = File::create(archive).with_context(failure)?;
    let mut tar = tar::Builder::new(GzEncoder::new(BufWriter::new(file), Compression::fast()));
    for plural in plurals {
        let name = format!("{plural}.json");
        let path = folder.join(&name);
        let mut list = File::open(&path).with_context(|| format!("open `{}`", path.display()))?;
        let mut header = tar::Header::new_gnu();
        header.set_size(list.metadata()?.len());
        header.set_mode(0o644);
        tar.append_data(&mut header, &name, &mut list).with_context(failure)?;
        fs::remove_file(&path).with_context(|| format!("remove `{}`", path.display()))?;
    }
    tar.into_inner().and_then(GzEncoder::finish).and_then(|mut file| file.flush()).with_context(failure)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(layout: Layout, objects: &[Value]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let mut list = List::create(folder.path(), "pods", layout).unwrap();
        for object in objects {
            list.add(object).unwrap();
        }
        assert_eq!(list.finish().unwrap(), objects.len());
        fs::read_to_string(folder.path().join("pods.json")).unwrap()
    }

    #[test]
    fn both_layouts_hold_the_same_list() {
        let objects = [json!({"a": {"b": [1]}}), json!({"c": "line\nend"})];
        let metadata = json!({"resourceVersion": ""});
        let expected = json!({"apiVersion": "v1", "items": objects, "kind": "List", "metadata": metadata});
        for layout in [Layout::Compact, Layout::Indented] {
            let text = written(layout, &objects);
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected, "{text}");
        }
        assert_eq!(written(Layout::Indented, &objects), serde_pretty(&expected));
    }

    #[test]
    fn an_empty_list_is_a_list() {
        let list: Value = serde_json::from_str(&written(Layout::Compact, &[])).unwrap();
        assert_eq!(list["items"], json!([]));
    }

    /// The layout that serde_json gives the whole List, as kubectl does.
    fn serde_pretty(value: &Value) -> String {
        let mut text = Vec::new();
        let layout = serde_json::ser::PrettyFormatter::with_indent(b"    ");
        serde::Serialize::serialize(value, &mut serde_json::Serializer::with_formatter(&mut text, layout))
            .unwrap();
        String::from_utf8(text).unwrap() + "\n"
    }

    #[test]
    fn an_archive_holds_the_lists_and_replaces_them() {
        let folder = tempfile::tempdir().unwrap();
        List::create(folder.path(), "nodes", Layout::Compact).unwrap().finish().unwrap();
        let archive = folder.path().join("dump.tar.gz");
        pack(folder.path(), &archive, &["nodes"]).unwrap();
        assert!(!folder.path().join("nodes.json").exists());
        let file = flate2::read::GzDecoder::new(File::open(&archive).unwrap());
        let names: Vec<PathBuf> = tar::Archive::new(file)
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().into())
            .collect();
        assert_eq!(names, [PathBuf::from("nodes.json")]);
    }
}
