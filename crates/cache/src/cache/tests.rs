use bailey_testkit::registry::{Fault, Flavour, Http, Image, Layer, On, Upstream as Remote};

use crate::Config;
use crate::config::UpstreamConfig;

async fn start(folder: &std::path::Path, remote: &Remote) -> crate::Bound {
    let registry =
        UpstreamConfig::anonymous("registry.example".parse().unwrap(), remote.url().parse().unwrap());
    crate::start(Config::local(folder, 1 << 30, vec![registry])).await.unwrap()
}

#[tokio::test]
async fn after_a_restart_sizes_are_known_from_the_manifests_that_are_here() {
    let folder = tempfile::tempdir().unwrap();
    let remote = Remote::start().await.unwrap();
    let image = Image::new(Flavour::Oci, 1, &[Layer::random(1, 123_456)]);
    remote.push("acme/app", "v1", &image);
    let manifest = "/v2/registry.example/acme/app/manifests/v1";
    let blob = format!("/v2/registry.example/acme/app/blobs/{}", image.layers()[0].digest);
    let cache = start(folder.path(), &remote).await;
    assert_eq!(Http::new(cache.listen).get(manifest).await.unwrap().status, 200);
    cache.stop().await.unwrap();

    let cache = start(folder.path(), &remote).await;
    let node = Http::new(cache.listen);
    assert_eq!(node.get(manifest).await.unwrap().status, 200);
    remote.fault(On::path("/blobs/"), Fault::ShortAt(1000));
    let head = node.head(&blob).await.unwrap();
    assert_eq!((head.status, head.header("content-length")), (200, Some("123456")));
    assert_eq!(remote.count("GET", "/blobs/"), 0, "nothing was asked for that");
    assert_eq!(node.get(&blob).await.unwrap().status, 503, "the upstream's length is not the manifest's");
    cache.stop().await.unwrap();
}
