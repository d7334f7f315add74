//! Everything at once: faults at random on requests at random, nodes that leave, a budget that is too small, restarts.
//!
//! Whatever happens, the disk holds right blobs only and no more than it may, nothing is said to be missing, and when the
//! upstream is well again, everything can be pulled. That no single answer is whole and wrong is tested elsewhere.

use std::time::Duration;

use bailey_oci::Digest;
use bailey_testkit::registry::{Containerd, Fault, Flavour, Image, Layer, On, PullError};
use tokio::task::JoinSet;

use crate::site::{REGISTRY, Site, bytes_below};

const BUDGET: u64 = 3 << 20;
const TAGS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

/// The same numbers each time (splitmix64): what fails once fails again, as far as tasks allow.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn one_in(&mut self, limit: u64) -> bool {
        self.below(limit) == 0
    }
}

fn images() -> Vec<Image> {
    let shared = Layer::random(1000, 250_000);
    let image = |n: u64| {
        Image::new(Flavour::Oci, n, &[Layer::random(n, 300_000 + n * 1000), shared, Layer::random(n + 50, n)])
    };
    let mut images: Vec<_> = (0..6).map(image).collect();
    images.push(Image::index(Flavour::Docker, &images[..2]));
    images.push(Image::index(Flavour::Oci, &[images[6].clone(), images[3].clone()]));
    images
}

fn fault(dice: &mut Dice) -> Fault {
    let at = dice.below(320_000);
    match dice.below(16) {
        0 | 1 => Fault::FinAt(at),
        2 => Fault::ResetAt(at),
        3 => Fault::ShortAt(at),
        4 | 5 => Fault::WrongByte(at),
        6 => Fault::status(500),
        7 => Fault::status(503),
        8 => Fault::too_many(1),
        9 => Fault::Reset,
        10 => Fault::Garbage,
        11 => Fault::Delay(Duration::from_millis(at / 2000)),
        12 => Fault::Rate(at * 10 + 100_000),
        13 => Fault::NoRanges,
        14 => Fault::Without("content-length"),
        _ => Fault::Without("docker-content-digest"),
    }
}

/// Pulls, or leaves in the middle.
async fn pull(node: Containerd, tag: &'static str, digest: Digest, leaves_after: Option<Duration>) {
    let pulled = match leaves_after {
        Some(after) => tokio::time::timeout(after, node.pull("acme/app", tag)).await,
        None => Ok(node.pull("acme/app", tag).await),
    };
    match pulled {
        Ok(Ok(pulled)) => assert_eq!(pulled.digest, digest),
        Ok(Err(PullError::Status { status, what, body })) => {
            assert_eq!(status, 503, "{what}: {body}");
        }
        // Wrong bytes are noticed by a node that was cut off because of them, and went on with right ones.
        Ok(Err(PullError::WrongDigest { .. } | PullError::Broken { .. } | PullError::Other { .. }))
        | Err(_) => {}
    }
}

fn check_store(site: &Site) {
    let taken = bytes_below(&site.store().join("blobs")) + bytes_below(&site.store().join("fills"));
    // A blob that is just committed is seen twice, as a fill and under its name.
    assert!(taken <= BUDGET + 320_000, "{taken}");
    for algorithm in ["sha256", "sha512"] {
        for shard in std::fs::read_dir(site.store().join("blobs").join(algorithm)).unwrap().flatten() {
            for file in std::fs::read_dir(shard.path()).unwrap().flatten() {
                let digest: Digest =
                    format!("{algorithm}:{}", file.file_name().to_string_lossy()).parse().unwrap();
                // One that is evicted meanwhile is no longer there to be wrong.
                let Ok(bytes) = std::fs::read(file.path()) else { continue };
                assert_eq!(Digest::of(digest.algorithm(), &bytes), digest, "a wrong blob is kept");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_mixture_of_faults_leaves_a_wrong_blob_or_holds_the_cache_up() {
    let mut dice = Dice(7);
    let mut site = Site::sized(BUDGET, |_| {}).await;
    let images = images();
    for (tag, image) in TAGS.iter().zip(&images) {
        site.upstream.push("acme/app", *tag, image);
    }
    for round in 0..6 {
        for _ in 0..12 {
            let path = ["/manifests/", "/blobs/", ""][dice.below(3) as usize];
            let on = On::path(path).after(dice.below(12) as usize).times(1 + dice.below(3) as usize);
            site.upstream.fault(on, fault(&mut dice));
        }
        let mut nodes = JoinSet::new();
        for _ in 0..16 {
            let n = dice.below(TAGS.len() as u64) as usize;
            let chunk = dice.one_in(3).then(|| 20_000 + dice.below(180_000));
            let node = chunk.map_or(site.node(), |chunk| site.node().in_chunks(chunk));
            let leaves = dice.one_in(3).then(|| Duration::from_millis(1 + dice.below(120)));
            nodes.spawn(pull(node, TAGS[n], images[n].digest(), leaves));
        }
        // A panic of one is a failure of all.
        nodes.join_all().await;
        check_store(&site);
        if round % 2 == 1 {
            site = site.restarted(|_| {}).await;
            assert_eq!((site.cache.opened.damaged, site.cache.opened.fills_swept), (0, 0), "round {round}");
        }
    }
    site.upstream.heal();
    for (tag, image) in TAGS.iter().zip(&images) {
        let mut pulled = site.node().pull("acme/app", tag).await;
        for _ in 0..100 {
            if pulled.is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            pulled = site.node().pull("acme/app", tag).await;
        }
        assert_eq!(pulled.map(|pulled| pulled.digest), Ok(image.digest()), "{REGISTRY}/acme/app:{tag}");
    }
    check_store(&site);
}
