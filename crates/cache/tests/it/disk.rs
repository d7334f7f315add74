//! The budget: never exceeded, kept by removing what is cold, and no reason to fail a pull.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bailey_oci::Digest;
use bailey_testkit::registry::{Flavour, Image, Layer};
use tokio::task::JoinSet;

use crate::site::{Site, until};

const BUDGET: u64 = 3 << 20;
const LAYER: u64 = 600_000;

fn image(seed: u64) -> Image {
    Image::new(Flavour::Oci, seed, &[Layer::random(seed, LAYER)])
}

fn layer(image: &Image) -> Digest {
    image.layers()[0].digest
}

fn tag(n: u64) -> &'static str {
    ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"][n as usize]
}

/// Ten images, twice as much as the budget holds.
fn fill_up(site: &Site) -> Vec<Image> {
    let images: Vec<_> = (0..10).map(image).collect();
    for (n, image) in (0..).zip(&images) {
        site.upstream.push("acme/app", tag(n), image);
    }
    images
}

/// Looks at what blobs and fills take, over and over, and keeps the most.
struct Watch {
    stop: Arc<AtomicBool>,
    most: Arc<AtomicU64>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Watch {
    fn of(store: &Path) -> Self {
        let (stop, most) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stops, mosts, store) = (stop.clone(), most.clone(), store.to_owned());
        let thread = std::thread::spawn(move || {
            while !stops.load(Ordering::Relaxed) {
                mosts.fetch_max(taken(&store), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        Self { stop, most, thread: Some(thread) }
    }

    fn most(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        self.most.load(Ordering::Relaxed)
    }
}

/// What lies in a store at one moment. Blobs that are evicted, and fills that begin in their room, while this looks are
/// not counted together: a blob counts if it is there before and after the look at fills.
fn taken(store: &Path) -> u64 {
    let blobs = files_below(&store.join("blobs"));
    let fills: u64 = files_below(&store.join("fills")).values().sum();
    let after = files_below(&store.join("blobs"));
    fills + blobs.iter().filter(|(path, _)| after.contains_key(*path)).map(|(_, bytes)| bytes).sum::<u64>()
}

fn files_below(folder: &Path) -> HashMap<PathBuf, u64> {
    let mut files = HashMap::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => files.extend(files_below(&entry.path())),
            Ok(metadata) => drop(files.insert(entry.path(), metadata.len())),
            Err(_) => {}
        }
    }
    files
}

/// Budgets were looked at afterwards, or freed nothing; disks ran full.
#[tokio::test]
async fn more_than_fits_is_pulled_and_the_disk_never_holds_more_than_the_budget() {
    let mut site = Site::sized(BUDGET, |_| {}).await;
    let images = fill_up(&site);
    let watch = Watch::of(site.store());
    for _ in 0..2 {
        for (n, image) in (0..).zip(&images) {
            assert_eq!(site.node().pull("acme/app", tag(n)).await.unwrap().digest, image.digest());
        }
    }
    let mut pulls = JoinSet::new();
    for n in 0..10 {
        let node = site.node();
        pulls.spawn(async move { node.pull("acme/app", tag(n)).await.unwrap() });
    }
    assert_eq!(pulls.join_all().await.len(), 10);
    let most = watch.most();
    assert!(most <= BUDGET, "{most} bytes were on the disk");
    site = site.restarted(|_| {}).await;
    assert!(taken(site.store()) <= BUDGET);
    assert!(taken(site.store()) > BUDGET / 4, "a budget is there to be used");
}

#[tokio::test]
async fn a_smaller_budget_is_kept_from_the_start_on() {
    let mut site = Site::sized(BUDGET, |_| {}).await;
    fill_up(&site);
    for n in 0..4 {
        site.node().pull("acme/app", tag(n)).await.unwrap();
    }
    site = site.restarted(|config| config.bytes_max = 1 << 20).await;
    assert!(taken(site.store()) <= 1 << 20);
    site.node().pull("acme/app", tag(0)).await.unwrap();
}

/// A disk that was full cut pulls off.
#[tokio::test]
async fn a_blob_beyond_the_budget_is_streamed_past_the_disk() {
    let site = Site::sized(1 << 20, |_| {}).await;
    let large = Image::new(Flavour::Oci, 1, &[Layer::random(1, 2 << 20), Layer::random(2, 100_000)]);
    site.upstream.push("acme/app", "large", &large);
    let watch = Watch::of(site.store());
    for round in 0..2 {
        let pulled = site.node().pull("acme/app", "large").await.unwrap();
        assert_eq!(pulled.digest, large.digest(), "{round}");
    }
    site.node().in_chunks(300_000).pull("acme/app", "large").await.unwrap();
    assert!(watch.most() <= 1 << 20);
    assert!(site.holds(large.layers()[1].digest) && !site.file(layer(&large)).exists());
}

/// What files of the store take that are removed and still open: only the disk sees them.
fn open_and_removed(store: &Path) -> u64 {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let bytes = descriptors.filter_map(|descriptor| {
        let target = std::fs::read_link(descriptor.path()).ok()?;
        let removed = target.starts_with(store) && target.to_string_lossy().ends_with("(deleted)");
        removed.then(|| std::fs::metadata(descriptor.path()).map_or(0, |metadata| metadata.len()))
    });
    bytes.sum()
}

/// Files that were removed under slow readers stayed on the disk, and nobody counted them.
#[tokio::test]
async fn what_slow_nodes_still_read_counts_against_the_budget() {
    let budget = 40 << 20;
    let site = Site::sized(budget, |_| {}).await;
    let slow = Image::new(Flavour::Oci, 1, &[Layer::random(1, 16 << 20)]);
    let others: Vec<_> = (2..5).map(|n| Image::new(Flavour::Oci, n, &[Layer::random(n, 12 << 20)])).collect();
    site.upstream.push("acme/app", "slow", &slow);
    for (n, image) in (0..).zip(&others) {
        site.upstream.push("acme/app", tag(n), image);
    }
    let path = format!("/v2/registry.example/acme/app/blobs/{}", layer(&slow));
    // One that began while the blob came in, and one that began when it was here.
    let mut readers = Vec::new();
    for _ in 0..2 {
        let mut reader = site.http().get(&path).await.unwrap();
        reader.piece().await.unwrap();
        readers.push(reader);
        until("it is kept", || site.holds(layer(&slow))).await;
    }
    readers.pop();
    for n in 0..3 {
        assert_eq!(
            site.node().pull("acme/app", tag(n)).await.map(|pulled| pulled.digest),
            Ok(others[n as usize].digest())
        );
        let on_disk = taken(site.store()) + open_and_removed(site.store());
        assert!(on_disk <= budget, "{on_disk} bytes are on the disk");
    }
    for reader in readers {
        let (digest, length, _) = reader.hashed(bailey_oci::Algorithm::Sha256).await;
        // The first piece was read before, so only the rest is hashed.
        assert!(digest != layer(&slow) && length < 16 << 20 && length > 15 << 20);
    }
}

/// Images that were pulled by digest all the time were removed for their age.
#[tokio::test]
async fn what_is_read_by_digest_stays_while_others_come_and_go() {
    let site = Site::sized(BUDGET, |_| {}).await;
    let images = fill_up(&site);
    let hot = &images[0];
    for n in 0..10 {
        // Access times are whole seconds.
        tokio::time::sleep(Duration::from_millis(1100)).await;
        site.node().pull_digest("acme/app", hot.digest()).await.unwrap();
        site.node().pull("acme/app", tag(n)).await.unwrap();
    }
    assert_eq!(site.upstream.bytes_of(layer(hot)), LAYER, "it was fetched once");
    assert!(!site.file(layer(&images[1])).exists(), "others went");
}

#[tokio::test]
async fn pinned_content_stays_cold_as_it_is() {
    let pinned = image(0);
    let pins: Vec<_> = pinned.blobs.iter().map(|blob| blob.digest).chain([pinned.digest()]).collect();
    let site = Site::sized(BUDGET, |config| config.pins = pins.clone()).await;
    fill_up(&site);
    for n in 0..10 {
        site.node().pull("acme/app", tag(n)).await.unwrap();
    }
    until("the pinned image is here", || pins.iter().all(|digest| site.holds(*digest))).await;
    assert_eq!(site.upstream.bytes_of(layer(&pinned)), LAYER);
}

/// A blob that two images share was removed with one of them: 200, a length, and no bytes.
#[tokio::test]
async fn a_file_that_is_gone_or_cut_under_the_cache_is_fetched_again() {
    let site = Site::new().await;
    let (one, two) =
        (image(1), Image::new(Flavour::Oci, 2, &[Layer::random(1, LAYER), Layer::random(3, 10)]));
    site.upstream.push("acme/app", "one", &one);
    site.upstream.push("acme/app", "two", &two);
    let shared = layer(&one);
    let pull = async |tag| {
        site.node().pull("acme/app", tag).await.unwrap();
        until("it is kept", || site.holds(shared)).await;
    };
    pull("one").await;
    std::fs::remove_file(site.file(shared)).unwrap();
    pull("two").await;
    std::fs::write(site.file(shared), b"short").unwrap();
    pull("one").await;
    let manifest = one.digest();
    std::fs::remove_file(site.file(manifest)).unwrap();
    pull("one").await;
}

#[tokio::test]
async fn a_scrub_finds_bytes_that_turned_and_they_are_fetched_again() {
    let site = Site::with(|config| config.scrub = Some(Duration::from_millis(100))).await;
    let image = image(1);
    site.upstream.push("acme/app", "v1", &image);
    site.node().pull("acme/app", "v1").await.unwrap();
    let file = site.file(layer(&image));
    until("it is kept", || site.holds(layer(&image))).await;
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[1000] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    until("the scrub removed it", || !file.exists()).await;
    site.node().pull("acme/app", "v1").await.unwrap();
    until("it is kept again", || site.holds(layer(&image))).await;
}

/// A file system of its own, smaller than the budget; gone when dropped.
struct Small(PathBuf);

impl Small {
    fn mount(at: PathBuf, bytes: u64) -> Option<Self> {
        std::fs::create_dir_all(&at).ok()?;
        let options = format!("size={bytes}");
        let mount = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(&at)
            .output();
        mount.is_ok_and(|output| output.status.success()).then_some(Self(at))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _unmounted = std::process::Command::new("umount").args(["--lazy"]).arg(&self.0).status();
    }
}

#[tokio::test]
async fn a_disk_that_is_full_before_its_budget_fails_no_pull() {
    let folder = tempfile::tempdir().unwrap();
    let Some(small) = Small::mount(folder.path().join("small"), 4 << 20) else {
        eprintln!("skipped: a small file system cannot be mounted here");
        return;
    };
    let store = small.0.join("store");
    let site = Site::with(|config| config.store.clone_from(&store)).await;
    let images = fill_up(&site);
    let mut kept = HashSet::new();
    for round in 0..2 {
        for (n, image) in (0..).zip(&images) {
            let pulled = site.node().pull("acme/app", tag(n)).await;
            assert_eq!(pulled.map(|pulled| pulled.digest), Ok(image.digest()), "{round} {n}");
            kept.insert(layer(image));
        }
    }
    assert_eq!(kept.len(), images.len());
    site.cache.stop().await.unwrap();
}
