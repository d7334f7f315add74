use bailey_oci::{Algorithm, Digest};

use super::*;

fn place(repository: &str) -> Place {
    Place { upstream: "registry.example:5000".parse().unwrap(), repository: repository.parse().unwrap() }
}

fn digest(text: &str) -> Digest {
    Digest::of(Algorithm::Sha512, text.as_bytes())
}

fn list(body: &str) -> ListRecord {
    ListRecord {
        media_type: "application/json".to_owned(),
        link: None,
        filters_applied: None,
        body: body.to_owned(),
        seen: 7,
    }
}

#[test]
fn everything_is_known_again_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.redb");
    let (one, two) = (digest("one"), Digest::of(Algorithm::Sha256, b"two"));
    let (app, tag) = (place("acme/app"), "v1".parse().unwrap());
    let index = Index::open(&path);
    index.put_blob(one, 11, Some("application/vnd.oci.image.manifest.v1+json".into()), 5);
    index.put_blob(two, 22, None, 6);
    index.accessed(vec![(two, 60), (digest("unknown"), 1)]);
    index.link(one, &app);
    index.link(one, &place("acme/other"));
    index.put_tag(&app, &tag, Some(TagRecord { digest: one, checked: 9 }));
    index.put_list("tags".to_owned(), list("[]"));
    assert!(index.pin(two) && !index.pin(two));
    drop(index);

    let index = Index::open(&path);
    assert_eq!(
        index.blob(&one).unwrap().media_type.as_deref(),
        Some("application/vnd.oci.image.manifest.v1+json")
    );
    assert_eq!((index.blob(&two).unwrap().accessed, index.blob(&digest("unknown"))), (60, None));
    assert!(index.is_linked(&one, &app) && !index.is_linked(&two, &app));
    assert_eq!(index.links(&one).len(), 2);
    assert_eq!(index.tag(&app, &tag), Some(TagRecord { digest: one, checked: 9 }));
    assert_eq!(index.tags(&app), [tag]);
    assert_eq!(index.list("tags"), Some(list("[]")));
    assert_eq!(index.pins(), [two]);
}

#[test]
fn a_forgotten_blob_takes_its_links_with_it_and_leaves_its_pin() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.redb");
    let one = digest("one");
    let index = Index::open(&path);
    index.put_blob(one, 1, None, 0);
    index.link(one, &place("acme/app"));
    index.pin(one);
    index.retain_blobs(|_| false);
    drop(index);
    let index = Index::open(&path);
    assert_eq!((index.blob(&one), index.links(&one).len(), index.pins()), (None, 0, vec![one]));
}

#[test]
fn a_damaged_file_is_put_aside_and_the_index_starts_empty() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.redb");
    std::fs::write(&path, vec![b'x'; 8192]).unwrap();
    let index = Index::open(&path);
    let one = digest("one");
    assert_eq!(index.blob(&one), None);
    index.put_blob(one, 1, None, 0);
    index.flush();
    drop(index);
    assert!(Index::open(&path).blob(&one).is_some());
    assert!(path.with_extension("damaged").exists());
}

#[test]
fn in_memory_nothing_waits_for_a_disk() {
    let index = Index::in_memory();
    index.put_blob(digest("one"), 1, None, 0);
    index.flush();
    assert!(index.blob(&digest("one")).is_some());
    assert_eq!(index.list("tags"), None);
}
