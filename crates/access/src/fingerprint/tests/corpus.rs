//! A management cluster with two customers and five planted exposures, of which one is a shared password.
//!
//! It is not part of the repository: see [`bailey_testkit::corpora`].

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::super::{Mark, Origin};
use super::extractor;

const FILE: &str = "mc/mc-two-tenants-known.yaml";
const CUSTOMERS: [&str; 2] = ["org-acme", "org-beta"];

#[test]
fn two_customers_share_the_planted_password_and_nothing_else() {
    let Some(folder) = bailey_testkit::corpora("fingerprints of a management cluster") else { return };
    let text = std::fs::read_to_string(folder.join(FILE)).unwrap();
    let list: Value = serde_saphyr::from_str(&text).unwrap();
    let mut places: BTreeMap<Mark, BTreeSet<(String, String)>> = BTreeMap::new();
    let mut secrets = 0;
    for item in list["items"].as_array().unwrap().iter().filter(|item| item["kind"] == "Secret") {
        let namespace = item["metadata"]["namespace"].as_str().unwrap();
        let data: BTreeMap<String, Vec<u8>> = item["data"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(key, value)| (key.clone(), STANDARD.decode(value.as_str().unwrap()).unwrap()))
            .collect();
        let found = extractor().credentials(Origin::Secret(item["type"].as_str().unwrap()), &data);
        assert_eq!(found.unread, []);
        secrets += 1;
        for credential in found.credentials {
            let place = format!("{}#{}", item["metadata"]["name"].as_str().unwrap(), credential.key);
            for mark in credential.marks() {
                places.entry(mark).or_default().insert((namespace.to_owned(), place.clone()));
            }
        }
    }
    assert!(secrets > 50);
    let across: Vec<_> = places
        .values()
        .filter(|places| places.iter().map(|(namespace, _)| namespace).collect::<BTreeSet<_>>().len() > 1)
        .collect();
    let [shared] = across.as_slice() else {
        panic!("not one credential lies in several namespaces, but {across:#?}")
    };
    let expected = ["db-credentials#password", "analytics-db#password"];
    assert_eq!(
        **shared,
        CUSTOMERS
            .into_iter()
            .zip(expected)
            .map(|(namespace, place)| (namespace.to_owned(), place.to_owned()))
            .collect()
    );
}
