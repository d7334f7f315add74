use std::os::unix::fs::FileExt as _;

use bailey_oci::Algorithm;
use bailey_oci::status::Cause;
use bytes::Bytes;

use super::fill::{Failure, Fill, Progress};
use super::*;

const ROOM: u64 = 1 << 20;

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn open(&self, bytes_max: u64) -> (Store, Opened) {
        Store::open(self.folder.path().join("store"), bytes_max).unwrap()
    }

    fn files(&self, part: &str) -> Vec<PathBuf> {
        fn walk(folder: &std::path::Path, found: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { walk(&path, found) } else { found.push(path) }
            }
        }
        let mut found = Vec::new();
        walk(&self.folder.path().join("store").join(part), &mut found);
        found
    }
}

fn content(seed: u8, length: usize) -> (Digest, Bytes) {
    let bytes = vec![seed; length];
    (Digest::of(Algorithm::Sha256, &bytes), bytes.into())
}

async fn put(store: &Store, seed: u8, length: usize) -> Digest {
    let (digest, bytes) = content(seed, length);
    let (teller, _) = Fill::new(digest);
    let mut writer = store.begin(digest, Some(length as u64)).await.unwrap();
    if length > 0 {
        writer.write(vec![bytes], &teller).await.unwrap();
    }
    writer.finish(None, &teller).await.unwrap();
    digest
}

fn text(blob: &Blob) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(blob.size).unwrap()];
    blob.file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

#[tokio::test]
async fn what_came_in_is_read_again_also_after_a_restart() {
    let bench = Bench::new();
    let (store, _) = bench.open(ROOM);
    let (one, none) = (put(&store, 1, 5000).await, put(&store, 2, 0).await);
    assert_eq!(text(&store.read(&one).unwrap()), content(1, 5000).1);
    assert_eq!(store.read(&none).unwrap().size, 0);
    drop(store);
    let (store, opened) = bench.open(ROOM);
    assert_eq!(opened, Opened { blobs: 2, ..Opened::default() });
    assert_eq!(text(&store.read(&one).unwrap()), content(1, 5000).1);
}

#[tokio::test]
async fn readers_see_a_fill_grow_and_the_end_only_when_it_is_right() {
    let bench = Bench::new();
    let (store, _) = bench.open(ROOM);
    let (digest, bytes) = content(3, 9000);
    let (teller, mut fill) = Fill::new(digest);
    let mut reader = fill.clone();
    let mut writer = store.begin(digest, Some(9000)).await.unwrap();
    assert!(reader.now().file.is_none(), "the upstream has not answered");
    writer.show(&teller);
    writer.write(vec![bytes.slice(..4000), bytes.slice(4000..6000)], &teller).await.unwrap();
    let seen = reader.started().await;
    assert_eq!((seen.readable, seen.total), (6000, Some(9000)));
    let mut buffer = vec![0; 6000];
    seen.file.unwrap().read_exact_at(&mut buffer, 0).unwrap();
    assert_eq!(buffer, bytes[..6000]);
    writer.write(vec![bytes.slice(6000..)], &teller).await.unwrap();
    assert_eq!(reader.now().readable, 6000, "the last bytes are not checked yet");
    writer.finish(None, &teller).await.unwrap();
    assert_eq!(fill.now().readable, 9000);
    assert!(store.read(&digest).is_some());
}

#[tokio::test]
async fn wrong_bytes_are_never_shown_whole_nor_kept() {
    let bench = Bench::new();
    let (store, _) = bench.open(ROOM);
    let (digest, bytes) = content(4, 100);
    let (teller, mut fill) = Fill::new(digest);
    let mut writer = store.begin(digest, Some(100)).await.unwrap();
    writer.show(&teller);
    writer.write(vec![bytes.slice(..99)], &teller).await.unwrap();
    writer.write(vec![Bytes::from_static(b"x")], &teller).await.unwrap();
    let error = writer.finish(None, &teller).await.unwrap_err();
    assert!(matches!(error, Failure::Upstream(problem) if problem.cause == Cause::WrongContent));
    assert_eq!(fill.now().readable, 99);
    assert!(store.read(&digest).is_none());
    assert!(bench.files("fills").is_empty() && bench.files("blobs").is_empty());
    assert_eq!(store.usage().used_bytes, 0);
}

#[tokio::test]
async fn more_or_fewer_bytes_than_announced_are_no_blob() {
    let bench = Bench::new();
    let (store, _) = bench.open(ROOM);
    let (digest, bytes) = content(5, 100);
    for (announced, written) in [(99, 100), (100, 99)] {
        let (teller, _) = Fill::new(digest);
        let mut writer = store.begin(digest, Some(announced)).await.unwrap();
        let written = writer.write(vec![bytes.slice(..written)], &teller).await;
        let result = if written.is_ok() { writer.finish(None, &teller).await.map(drop) } else { written };
        assert!(result.is_err(), "{announced}");
    }
    assert!(store.read(&digest).is_none());
}

#[tokio::test]
async fn a_length_that_is_not_known_is_reserved_as_it_comes() {
    let bench = Bench::new();
    let (store, _) = bench.open(64 << 10);
    let (digest, bytes) = content(6, 40_000);
    let (teller, mut fill) = Fill::new(digest);
    let mut writer = store.begin(digest, None).await.unwrap();
    writer.show(&teller);
    writer.write(vec![bytes.slice(..20_000)], &teller).await.unwrap();
    assert_eq!(fill.now().readable, 0, "it may have been the last");
    writer.write(vec![bytes.slice(20_000..)], &teller).await.unwrap();
    assert_eq!(fill.now().readable, 20_000);
    writer.finish(None, &teller).await.unwrap();
    let Progress { total, readable, .. } = fill.now();
    assert_eq!((total, readable), (Some(40_000), 40_000));
    let (other, bytes) = content(7, 100_000);
    let (teller, _) = Fill::new(other);
    let mut writer = store.begin(other, None).await.unwrap();
    let error = writer.write(vec![bytes], &teller).await.unwrap_err();
    assert!(matches!(error, Failure::NoRoom), "{error:?}");
}

#[tokio::test]
async fn the_coldest_goes_for_what_comes_and_the_budget_is_never_exceeded() {
    let bench = Bench::new();
    let (store, _) = bench.open(ROOM);
    let on_disk = || {
        bench
            .files("")
            .iter()
            .filter(|path| !path.ends_with("index.redb"))
            .map(|path| fs::metadata(path).unwrap().len())
            .sum::<u64>()
    };
    let mut all = Vec::new();
    for seed in 0..12 {
        all.push(put(&store, seed, 200 << 10).await);
        assert!(on_disk() <= ROOM && store.usage().used_bytes <= ROOM);
    }
    assert!(store.read(&all[11]).is_some());
    assert!(store.read(&all[0]).is_none());
}

#[tokio::test]
async fn what_is_read_or_pinned_stays_and_what_does_not_fit_is_refused() {
    let bench = Bench::new();
    let (store, _) = bench.open(ROOM);
    let (read, pinned) = (put(&store, 1, 400 << 10).await, put(&store, 2, 400 << 10).await);
    store.pin(pinned);
    let held = store.read(&read).unwrap();
    let (digest, _) = content(3, 400 << 10);
    let wanted = || store.begin(digest, Some(400 << 10));
    assert!(matches!(wanted().await, Err(Failure::NoRoom)));
    assert!(store.size(&read).is_some() && store.size(&pinned).is_some());
    drop(held);
    drop(wanted().await.unwrap());
    assert!(store.size(&read).is_none() && store.size(&pinned).is_some());
    drop(store);
    let (store, _) = bench.open(ROOM);
    store.unpin(&pinned);
    assert!(store.begin(digest, Some(900 << 10)).await.is_ok());
}

#[tokio::test]
async fn a_fill_that_is_dropped_leaves_no_file_and_no_reservation() {
    let bench = Bench::new();
    let (store, _) = bench.open(ROOM);
    let (digest, bytes) = content(1, 5000);
    let (teller, fill) = Fill::new(digest);
    let mut writer = store.begin(digest, Some(5000)).await.unwrap();
    writer.write(vec![bytes.slice(..100)], &teller).await.unwrap();
    assert_eq!(bench.files("fills").len(), 1);
    drop((writer, teller));
    assert!(bench.files("fills").is_empty());
    assert_eq!(store.usage().reserved_bytes, 0);
    let mut fill = fill;
    assert!(matches!(fill.started().await.end, Some(Err(Failure::Abandoned))));
}

#[tokio::test]
async fn what_a_killed_process_left_is_swept_and_damage_is_found() {
    let bench = Bench::new();
    let (store, _) = bench.open(ROOM);
    let (whole, cut) = (put(&store, 1, 5000).await, put(&store, 2, 5000).await);
    let (cut_path, empty) = (store.0.layout.blob(&cut), content(9, 7).0);
    let empty_path = store.0.layout.blob(&empty);
    drop(store);
    fs::write(bench.folder.path().join("store/fills/0123"), b"half").unwrap();
    File::options().write(true).open(&cut_path).unwrap().set_len(10).unwrap();
    fs::create_dir_all(empty_path.parent().unwrap()).unwrap();
    fs::write(&empty_path, b"").unwrap();
    fs::write(bench.folder.path().join("store/blobs/sha256/README"), b"not ours").unwrap();
    let (store, opened) = bench.open(ROOM);
    assert_eq!(opened, Opened { blobs: 1, fills_swept: 1, damaged: 2, evicted: 0 });
    assert!(store.read(&whole).is_some() && store.read(&cut).is_none() && store.read(&empty).is_none());
    assert!(bench.files("fills").is_empty());
    assert_eq!(bench.files("blobs").len(), 2, "the blob, and what is not ours");
}

#[tokio::test]
async fn without_its_index_a_store_still_has_its_blobs() {
    let bench = Bench::new();
    let (store, _) = bench.open(ROOM);
    let digest = put(&store, 1, 5000).await;
    drop(store);
    fs::remove_file(bench.folder.path().join("store/index.redb")).unwrap();
    let (store, opened) = bench.open(ROOM);
    assert_eq!(opened.blobs, 1);
    assert_eq!(text(&store.read(&digest).unwrap()), content(1, 5000).1);
}

#[tokio::test]
async fn a_smaller_budget_is_kept_from_the_start() {
    let bench = Bench::new();
    let (store, _) = bench.open(ROOM);
    for seed in 0..4 {
        put(&store, seed, 200 << 10).await;
    }
    drop(store);
    let (store, opened) = bench.open(300 << 10);
    assert!(opened.evicted >= 3, "{opened:?}");
    assert!(store.usage().used_bytes <= 300 << 10);
}

#[tokio::test]
async fn a_file_that_vanishes_or_shrinks_is_forgotten_when_it_is_asked_for() {
    let bench = Bench::new();
    let (store, _) = bench.open(ROOM);
    let (gone, cut) = (put(&store, 1, 5000).await, put(&store, 2, 5000).await);
    fs::remove_file(store.0.layout.blob(&gone)).unwrap();
    File::options().write(true).open(store.0.layout.blob(&cut)).unwrap().set_len(10).unwrap();
    assert!(store.read(&gone).is_none() && store.read(&cut).is_none());
    assert_eq!((store.usage().used_bytes, store.usage().blobs), (0, 0));
    assert_eq!(put(&store, 1, 5000).await, gone);
    assert!(store.read(&gone).is_some());
}

#[tokio::test]
async fn a_scrub_finds_the_flipped_bit() {
    let bench = Bench::new();
    let (store, _) = bench.open(ROOM);
    let (sound, flipped) = (put(&store, 1, 5000).await, put(&store, 2, 5000).await);
    File::options().write(true).open(store.0.layout.blob(&flipped)).unwrap().write_at(b"!", 2500).unwrap();
    assert_eq!([store.scrub(&sound), store.scrub(&flipped)], [Scrubbed::Sound, Scrubbed::Damaged]);
    assert_eq!(store.scrub(&flipped), Scrubbed::Absent);
    assert!(store.read(&flipped).is_none());
}

#[test]
fn a_second_process_is_turned_away() {
    let bench = Bench::new();
    let (_store, _) = bench.open(ROOM);
    let error = Store::open(bench.folder.path().join("store"), ROOM).unwrap_err();
    assert!(error.to_string().contains("is in use by another process"), "{error}");
}
