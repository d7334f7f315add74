use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use bailey_access::{OpenSecret, SecretValues, Snapshot};
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::{Ending, load_dumps};
use crate::CliError;

fn node(name: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{name}"}}}}"#)
}

fn load(paths: &[&Path]) -> Result<Snapshot, CliError> {
    load_dumps(paths.iter().map(|path| (None, *path)), None, &mut |_, _| {})
}

fn nodes(snapshot: &Snapshot) -> Vec<String> {
    let nodes = snapshot.clusters.iter().flat_map(|cluster| &cluster.nodes);
    nodes.map(|node| snapshot.symbols.name(node.name).to_owned()).collect()
}

fn gaps(snapshot: &Snapshot) -> Vec<String> {
    snapshot.gaps.iter().map(|gap| format!("{}: {}", gap.what, gap.why)).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (name, bytes) in files {
            let path = folder.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

fn tar(files: &[(&str, &[u8])]) -> Builder<Vec<u8>> {
    let mut builder = Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        builder.append_data(&mut header, name, *bytes).unwrap();
    }
    builder
}

#[test]
fn a_folder_is_read_with_its_folders_and_without_what_is_no_dump() {
    let folder = Folder::new(&[
        ("a/nodes.json", format!("[{}]", r#"{"metadata":{"name":"a"}}"#).as_bytes()),
        ("b.yaml", b"apiVersion: v1\nkind: Node\nmetadata: {name: b}\n"),
        ("c.yaml.gz", &gzip(b"apiVersion: v1\nkind: Node\nmetadata: {name: c}\n")),
        ("d.TGZ", &gzip(&tar(&[("x/d.json", node("d").as_bytes())]).into_inner().unwrap())),
        ("a/logs.txt", b"\0\0"),
        (".git/e.json", node("e").as_bytes()),
        ("._b.yaml", b"\0\x05\x16\x07"),
    ]);
    let snapshot = load(&[folder.0.path()]).unwrap();
    assert_eq!(nodes(&snapshot), ["a", "b", "c", "d"]);
    assert_eq!(gaps(&snapshot), [""; 0]);
    assert_eq!(snapshot.sources.last().unwrap(), &folder.path("d.TGZ/x/d.json").display().to_string());
}

#[test]
fn a_file_that_was_named_is_read_whatever_it_is_called() {
    let folder = Folder::new(&[("dump", node("a").as_bytes()), (".hidden", node("b").as_bytes())]);
    assert_eq!(nodes(&load(&[&folder.path("dump"), &folder.path(".hidden")]).unwrap()), ["a", "b"]);
}

#[test]
fn what_was_named_and_cannot_be_read_is_an_error() {
    let folder = Folder::new(&[("empty.json", b""), ("only/log.txt", b"x")]);
    let error = |name: &str| load(&[&folder.path(name)]).unwrap_err().to_string();
    assert!(error("missing.json").starts_with("cannot read `"), "{}", error("missing.json"));
    assert!(error("empty.json").contains("there is no Kubernetes object in"), "{}", error("empty.json"));
    assert!(error("empty.json").contains("it is empty"), "{}", error("empty.json"));
    assert!(error("only").contains("files are taken by their endings"), "{}", error("only"));
}

#[test]
fn what_is_found_and_cannot_be_read_is_a_gap() {
    let folder = Folder::new(&[("a.json", node("a").as_bytes()), ("z.json", node("z").as_bytes())]);
    std::os::unix::fs::symlink("nowhere", folder.path("b.json")).unwrap();
    std::os::unix::fs::symlink(".", folder.path("loop.json")).unwrap();
    std::os::unix::fs::symlink("a.json", folder.path("again.json")).unwrap();
    let snapshot = load(&[folder.0.path()]).unwrap();
    assert_eq!(nodes(&snapshot), ["again", "z"].map(|name| name.replace("again", "a")));
    let gaps = gaps(&snapshot);
    assert!(gaps.len() == 1 && gaps[0].contains("b.json`: it cannot be read"), "{gaps:?}");
}

#[test]
fn dumps_of_one_name_are_of_one_cluster() {
    let folder = Folder::new(&[
        ("a.json", node("a").as_bytes()),
        ("b.json", node("b").as_bytes()),
        ("c.json", node("c").as_bytes()),
        ("d.json", node("d").as_bytes()),
    ]);
    let paths = ["a", "b", "c", "d"].map(|name| folder.path(&format!("{name}.json")));
    let names = [None, Some("wc1"), None, Some("wc1")];
    let dumps = names.into_iter().zip(&paths).map(|(name, path)| (name, path.as_path()));
    let snapshot = load_dumps(dumps, None, &mut |_, _| {}).unwrap();
    let found: Vec<_> = snapshot.clusters.iter().map(|c| (c.name.as_str(), c.nodes.len())).collect();
    assert_eq!(found, [("cluster", 2), ("wc1", 2)]);
}

#[test]
fn an_archive_is_read_without_its_links_and_named_by_its_long_names() {
    let long = format!("{}/nodes.json", "deep/".repeat(40));
    let mut builder = tar(&[
        (&long, br#"[{"metadata":{"name":"long"}}]"#),
        ("notes.txt", b"no"),
        ("inner.json.gz", &gzip(node("packed").as_bytes())),
    ]);
    let mut link = Header::new_gnu();
    link.set_entry_type(EntryType::Symlink);
    link.set_size(0);
    builder.append_link(&mut link, "link.json", "/etc/passwd").unwrap();
    let mut pax = Vec::new();
    pax.extend(b"28 path=a/../nodes.json\n27 other=x");
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::XHeader);
    header.set_size(pax.len() as u64);
    header.set_path("pax").unwrap();
    header.set_cksum();
    builder.append(&header, &pax[..]).unwrap();
    let mut header = Header::new_ustar();
    header.set_size(30);
    header.set_path("short").unwrap();
    header.set_cksum();
    builder.append(&header, &br#"[{"metadata":{"name":"pax1"}}]"#[..]).unwrap();
    let bytes = builder.into_inner().unwrap();
    for (name, bytes) in [("d.tar", bytes.clone()), ("d.tar.gz", gzip(&bytes))] {
        let folder = Folder::new(&[(name, &bytes)]);
        let snapshot = load(&[&folder.path(name)]).unwrap();
        assert_eq!(nodes(&snapshot), ["long", "packed", "pax1"]);
        assert_eq!(gaps(&snapshot).len(), 1, "{:?}", gaps(&snapshot));
        assert!(gaps(&snapshot)[0].contains("links are not followed"), "{:?}", gaps(&snapshot));
        assert!(snapshot.sources[2].ends_with("/a/nodes.json"), "{:?}", snapshot.sources);
    }
}

#[test]
fn an_archive_that_is_cut_off_or_damaged_is_a_gap() {
    let (a, b) = (node("a"), node("b"));
    let whole = tar(&[("a.json", a.as_bytes()), ("b.json", b.as_bytes())]).into_inner().unwrap();
    let mut damaged = whole.clone();
    damaged[1024 + 150] ^= 0xff;
    for bytes in [whole[..1024 + 100].to_vec(), damaged, gzip(&whole)[..120].to_vec()] {
        let folder = Folder::new(&[("ok.json", node("ok").as_bytes()), ("x.tar.gz", &bytes)]);
        let snapshot = load(&[folder.0.path()]).unwrap();
        let gaps = gaps(&snapshot);
        assert!(gaps.len() == 1 && gaps[0].contains("x.tar.gz`"), "{gaps:?}");
        assert!(nodes(&snapshot).contains(&"ok".to_owned()));
        assert!(!nodes(&snapshot).contains(&"b".to_owned()));
    }
}

#[test]
fn progress_tells_how_much_of_each_file_is_read() {
    let folder = Folder::new(&[("a.json", node("a").as_bytes())]);
    let mut last = (PathBuf::new(), 0);
    let path = folder.path("a.json");
    load_dumps([(None, path.as_path())], None, &mut |path, bytes| last = (path.to_owned(), bytes)).unwrap();
    assert_eq!(last, (path, node("a").len() as u64));
}

#[test]
fn values_of_secrets_are_handed_to_who_asks_for_them() {
    struct Count(usize);
    impl SecretValues for Count {
        fn secret(&mut self, secret: &OpenSecret<'_>) {
            self.0 += secret.data.len();
        }
    }
    let secret =
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"a"},"data":{"k":"eA=="}}"#;
    let folder = Folder::new(&[("a.json", secret.as_bytes()), ("b.json", secret.as_bytes())]);
    let paths = ["a.json", "b.json"].map(|name| folder.path(name));
    let dumps = [(Some("a"), paths[0].as_path()), (Some("b"), paths[1].as_path())];
    let mut count = Count(0);
    load_dumps(dumps, Some(&mut count), &mut |_, _| {}).unwrap();
    assert_eq!(count.0, 2);
}

#[test]
fn endings_say_what_is_looked_into() {
    for (name, ending) in [
        ("a.json", Ending::Objects),
        ("a.YAML.gz", Ending::Objects),
        ("a.jsonl", Ending::Objects),
        ("a.tar.gz", Ending::Archive),
        ("a.tgz", Ending::Archive),
        ("a.gz", Ending::Other),
        ("a.log", Ending::Other),
        (".a.json", Ending::Other),
        ("json", Ending::Other),
    ] {
        assert_eq!(Ending::of(Path::new(name)), ending, "{name}");
    }
}
