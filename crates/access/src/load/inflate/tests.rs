use std::io::{self, Read, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::Inflate;
use crate::Snapshot;
use crate::load::Loader;
use crate::load::tests::{everything, gaps, lines, load};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn gzip_is_read_also_in_several_members() {
    let object = |index: usize| everything()[index].to_string().into_bytes();
    let both = [gzip(&object(0)), gzip(&object(6))].concat();
    assert_eq!(lines(&load("f.json.gz", both)), ["namespace a x=y", "node n false"]);
}

#[test]
fn gzip_that_is_damaged_or_cut_off_is_a_gap_after_what_it_held() {
    let text: String = (0..2000)
        .map(|n| format!("{{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{{\"name\":\"n{n}\"}}}}\n"))
        .collect();
    let packed = gzip(text.as_bytes());
    let cut = load("f.json.gz", &packed[..packed.len() / 2]);
    assert!(
        gaps(&cut)[0].starts_with("the rest in `f.json.gz`: it cannot be inflated: "),
        "{:?}",
        gaps(&cut)
    );
    assert!(!cut.clusters[0].nodes.is_empty());
    let twice = load("f.json.gz", gzip(&packed));
    assert!(gaps(&twice)[0].contains("packed twice"), "{:?}", gaps(&twice));
}

#[test]
fn what_inflates_without_end_is_stopped() {
    let bomb = gzip(&vec![b' '; 4 << 20]);
    let error = io::copy(&mut Inflate::new(&bomb[..]), &mut io::sink()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    let mut snapshot = Snapshot::default();
    let mut loader = Loader::new(&mut snapshot, None);
    loader.source("bomb.gz");
    loader.load(&bomb[..]).unwrap();
    loader.finish();
    assert!(gaps(&snapshot)[0].contains("far more than a dump would"), "{:?}", gaps(&snapshot));
}

#[test]
fn a_dump_of_equal_objects_is_no_bomb() {
    let text: String = (0..10_000)
        .map(|n| format!("{{\"kind\":\"Event\",\"n\":{n},\"message\":\"{}\"}}\n", "x".repeat(200)))
        .collect();
    assert!(text.len() as u64 > 2 * super::FREE_BYTES);
    let mut inflated = Vec::new();
    Inflate::new(&gzip(text.as_bytes())[..]).read_to_end(&mut inflated).unwrap();
    assert_eq!(inflated.len(), text.len());
}
