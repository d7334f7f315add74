//! Archives that are made to do harm: nothing is written, nothing is read without end, and what is left out is told.

use std::io::{self, Read, Write as _};

use bailey_cli::Exit;
use flate2::{Compression, write::GzEncoder};
use tar::{Builder, Header};

use crate::{Folder, bailey};

fn secret(name: &str) -> String {
    format!(
        "{{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"type\": \"Opaque\", \"metadata\": {{\"namespace\": \"a\", \"name\": \"{name}\"}}}}"
    )
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A header of an entry, with whatever name somebody wrote into it.
fn header(name: &str, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.set_size(size);
    header.set_mode(0o644);
    header.set_cksum();
    header
}

fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, bytes) in files {
        builder.append(&header(name, bytes.len() as u64), *bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

/// The exit, the Secrets found, and what is said to be missing.
fn audit(folder: &Folder, name: &str) -> (Exit, Vec<String>, Vec<String>) {
    let output = bailey(&["audit", "-o", "json"], &folder.path(name)).unwrap();
    let audit: serde_json::Value = serde_json::from_str(&output.text).unwrap();
    let texts = |list: &str, field: &str| -> Vec<String> {
        let list = audit[list].as_array().unwrap();
        list.iter().map(|entry| entry[field].as_str().unwrap().to_owned()).collect()
    };
    let gaps = texts("gaps", "what").into_iter().zip(texts("gaps", "why"));
    (output.exit, texts("secrets", "name"), gaps.map(|(what, why)| format!("{what}: {why}")).collect())
}

#[test]
fn names_that_lead_out_of_the_archive_are_read_and_write_nothing() {
    let entry = |name| secret(name).into_bytes();
    let (up, root, back) = (entry("up"), entry("root"), entry("back"));
    let bytes =
        tar(&[("../../escaped.json", &up), ("/tmp/escaped.json", &root), ("x/../../escaped.json", &back)]);
    let folder = Folder::new(&[("d.tar", &bytes)]);
    let (_, secrets, gaps) = audit(&folder, "d.tar");
    assert_eq!(secrets, ["back", "root", "up"]);
    assert_eq!(gaps, [""; 0]);
    assert_eq!(folder.files(), ["d.tar"]);
    assert!(!folder.0.path().parent().unwrap().join("escaped.json").exists());
}

#[test]
fn an_archive_of_more_entries_than_any_dump_is_stopped_and_told() {
    let folder = Folder::new(&[]);
    let mut file = io::BufWriter::new(std::fs::File::create(folder.path("d.tar")).unwrap());
    file.write_all(&tar(&[("first.json", secret("first").as_bytes())])[..1024]).unwrap();
    let empty = header("x.txt", 0);
    for _ in 0..200_001 {
        file.write_all(empty.as_bytes()).unwrap();
    }
    file.flush().unwrap();
    let (exit, secrets, gaps) = audit(&folder, "d.tar");
    assert_eq!((exit, secrets), (Exit::Incomplete, vec!["first".to_owned()]));
    assert!(gaps.len() == 1 && gaps[0].contains("more than 200000 entries"), "{gaps:?}");
}

#[test]
fn an_entry_that_inflates_without_end_is_stopped_and_told() {
    let bomb = gzip(&[b' '; 1 << 20]).repeat(100);
    let inner = tar(&[("first.json", secret("first").as_bytes()), ("bomb.json.gz", &bomb)]);
    let mut outer = gzip(&tar(&[("first.json", secret("first").as_bytes())])[..1024]);
    outer.extend(gzip(header("bomb.json", 100 << 20).as_bytes()));
    outer.extend(&bomb);
    for (name, bytes) in [("inner.tar", &inner), ("outer.tar.gz", &outer)] {
        assert!(bytes.len() < 1 << 20);
        let folder = Folder::new(&[(name, bytes)]);
        let (exit, secrets, gaps) = audit(&folder, name);
        assert_eq!((exit, secrets), (Exit::Incomplete, vec!["first".to_owned()]), "{name}: {gaps:?}");
        assert!(gaps.iter().any(|gap| gap.contains("far more than a dump would")), "{name}: {gaps:?}");
    }
}

#[test]
fn an_archive_in_an_archive_is_told() {
    let inner = tar(&[("s.json", secret("inner").as_bytes())]);
    let outer = tar(&[
        ("first.json", secret("first").as_bytes()),
        ("inner.tar", &inner),
        ("more.tgz", &gzip(&inner)),
    ]);
    let folder = Folder::new(&[("d.tar", &outer)]);
    let (exit, secrets, gaps) = audit(&folder, "d.tar");
    assert_eq!((exit, secrets), (Exit::Incomplete, vec!["first".to_owned()]));
    assert!(gaps.len() == 1 && gaps[0].starts_with("2 archives in `"), "{gaps:?}");
}

#[test]
fn what_is_packed_again_and_again_is_told() {
    let inner = tar(&[("s.json", secret("inner").as_bytes())]);
    for (name, bytes) in
        [("d.tar.gz", gzip(&gzip(&inner))), ("d.json.gz", gzip(&gzip(&gzip(secret("s").as_bytes()))))]
    {
        let folder = Folder::new(&[(name, &bytes), ("first.json", secret("first").as_bytes())]);
        let (exit, secrets, gaps) = audit(&folder, "");
        assert_eq!((exit, secrets), (Exit::Incomplete, vec!["first".to_owned()]), "{name}");
        assert!(gaps.len() == 1 && gaps[0].contains(name), "{name}: {gaps:?}");
    }
}

#[test]
fn an_archive_that_says_it_is_larger_than_it_is_is_told() {
    let mut bytes = tar(&[("first.json", secret("first").as_bytes())])[..1024].to_vec();
    bytes.extend(header("huge.json", 8 << 30).as_bytes());
    io::repeat(b' ').take(2_000).read_to_end(&mut bytes).unwrap();
    let folder = Folder::new(&[("d.tar", &bytes)]);
    let (exit, secrets, gaps) = audit(&folder, "d.tar");
    assert_eq!((exit, secrets), (Exit::Incomplete, vec!["first".to_owned()]), "{gaps:?}");
    assert!(gaps.iter().any(|gap| gap.contains("d.tar")), "{gaps:?}");
}
