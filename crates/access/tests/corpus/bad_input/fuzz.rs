//! Any bytes, damaged real documents, and any rules: nothing panics, and rules match as they are defined.

use std::sync::LazyLock;

use bailey_access::rbac::{Request, rule_allows};
use bailey_access::{RuleFact, Symbols};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::{audit, good, read};

/// Documents to damage: small ones, and real ones where there are corpora.
static DOCUMENTS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut documents = vec![good().into_bytes()];
    let Some(folder) = bailey_testkit::corpora("damage to manifests of real apps") else { return documents };
    let mut folders: Vec<_> =
        std::fs::read_dir(folder.join("apps")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    for file in folders.into_iter().map(|folder| folder.join("manifests.yaml")) {
        let Ok(text) = std::fs::read_to_string(file) else { continue };
        let rbac = |document: &&str| {
            document.len() < 8_000
                && ["\nkind: Role", "\nkind: ClusterRole", "\nkind: Deployment"]
                    .iter()
                    .any(|k| document.contains(k))
        };
        let some: Vec<_> = text.split("\n---\n").filter(rbac).take(6).collect();
        documents.push(format!("{}\n---\n{}", good(), some.join("\n---\n")).into_bytes());
    }
    documents
});

/// How bytes are damaged.
#[derive(Debug, Clone)]
enum Damage {
    Cut(Index),
    Set(Index, u8),
    Insert(Index, &'static str),
    Repeat(Index, Index),
    Drop(Index, Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let words = select(vec![
        "{",
        "}",
        "[",
        "]",
        "\n",
        "\n---\n",
        "- ",
        ": ",
        "&a ",
        "*a ",
        "'",
        "\"",
        "\t",
        "null",
        "*",
        "!!binary ",
        "|\n",
        "#",
        "items:\n",
        "kind: List\n",
        "\u{0}",
        "\u{feff}",
        "resourceNames: ['']\n",
        "aggregationRule: {}\n",
        "0x",
        "9".repeat(40).leak(),
    ]);
    prop_oneof![
        any::<Index>().prop_map(Damage::Cut),
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        (any::<Index>(), words).prop_map(|(at, word)| Damage::Insert(at, word)),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Damage::Repeat(from, to)),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Damage::Drop(from, to)),
    ]
}

fn damaged(mut bytes: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages {
        let length = bytes.len().max(1);
        match damage {
            Damage::Cut(at) => bytes.truncate(at.index(length)),
            Damage::Set(at, byte) => {
                let at = at.index(length);
                bytes.iter_mut().skip(at).take(1).for_each(|old| *old = *byte);
            }
            Damage::Insert(at, word) => {
                let at = at.index(length).min(bytes.len());
                bytes.splice(at..at, word.bytes());
            }
            Damage::Repeat(a, b) | Damage::Drop(a, b) => {
                let (a, b) = (a.index(length).min(bytes.len()), b.index(length).min(bytes.len()));
                let range = a.min(b)..a.max(b);
                if matches!(damage, Damage::Drop(..)) {
                    bytes.drain(range);
                } else {
                    let again = bytes[range.clone()].to_vec();
                    bytes.splice(range.end..range.end, again);
                }
            }
        }
    }
    bytes
}

const VERBS: &[&str] = &["get", "list", "create", "*", "GET", "", "get,list"];
const GROUPS: &[&str] = &["", "apps", "*", "v1", "apps/v1"];
const RESOURCES: &[&str] = &[
    "secrets",
    "pods",
    "pods/exec",
    "*/exec",
    "*",
    "*/*",
    "pods/*",
    "/exec",
    "pods/",
    "",
    "/",
    "secrets/exec",
    "*/",
];
const NAMES: &[&str] = &["a", "b", "*", "a.b", "", "axb"];

type Words = (Vec<&'static str>, Vec<&'static str>, Vec<&'static str>, Vec<&'static str>);

fn rule() -> impl Strategy<Value = Words> {
    let some = |words: &'static [&'static str]| vec(select(words), 0..4);
    (some(VERBS), some(GROUPS), some(RESOURCES), some(NAMES))
}

/// What `evaluation_helpers.go` of Kubernetes says, word by word.
fn defined(
    (verbs, groups, resources, names): &Words,
    verb: &str,
    group: &str,
    resource: &str,
    name: &str,
) -> bool {
    let any = |list: &[&str], wanted: &str| list.iter().any(|entry| *entry == "*" || *entry == wanted);
    let subresource = resource.split_once('/').map_or("", |(_, subresource)| subresource);
    let covers = |entry: &&str| {
        *entry == "*"
            || *entry == resource
            || (!subresource.is_empty() && entry.strip_prefix("*/") == Some(subresource))
    };
    any(verbs, verb)
        && any(groups, group)
        && resources.iter().any(covers)
        && (names.is_empty() || names.contains(&name))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn no_bytes_make_an_audit_panic(bytes in vec(any::<u8>(), 0..2_000)) {
        audit(read(&bytes[..]).snapshot);
    }

    #[test]
    fn any_rule_covers_what_it_is_defined_to_cover(
        words in rule(),
        verb in select(&["get", "list", "create", "patch", "GET"][..]),
        group in select(&["", "apps", "v1"][..]),
        resource in select(&["secrets", "pods", "pods/exec", "secrets/exec", "exec", "services/proxy"][..]),
        name in select(NAMES),
    ) {
        let mut symbols = Symbols::default();
        let mut intern = |words: &[&str]| words.iter().map(|word| symbols.intern(word)).collect::<Vec<_>>();
        let fact = RuleFact {
            verbs: intern(&words.0),
            api_groups: intern(&words.1),
            resources: intern(&words.2),
            resource_names: intern(&words.3),
            non_resource_urls: Vec::new(),
        };
        let request = Request::new(&mut symbols, verb, group, resource, "a", name);
        prop_assert_eq!(rule_allows(&fact, &request), defined(&words, verb, group, resource, name), "{:?}", words);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn no_damage_to_a_real_document_makes_an_audit_panic(
        which in any::<Index>(),
        damages in vec(damage(), 1..4),
    ) {
        let bytes = damaged(DOCUMENTS[which.index(DOCUMENTS.len())].clone(), &damages);
        audit(read(&bytes[..]).snapshot);
    }

    #[test]
    fn a_role_of_any_rules_makes_no_audit_panic(rules in vec(rule(), 0..5), scope in select(&["a/r", "r"][..])) {
        let list = |words: &[&str]| words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(", ");
        let rules: Vec<_> = rules
            .iter()
            .map(|(verbs, groups, resources, names)| {
                format!(
                    "{{verbs: [{}], apiGroups: [{}], resources: [{}], resourceNames: [{}]}}",
                    list(verbs), list(groups), list(resources), list(names)
                )
            })
            .collect();
        let rules: Vec<_> = rules.iter().map(String::as_str).collect();
        let kind = if scope.contains('/') { "Role r" } else { "ClusterRole r" };
        let objects = [
            crate::cluster::secret("a/s"),
            crate::cluster::role(scope, &rules),
            crate::cluster::binding(scope, kind, &["sa:a/x", "group:system:authenticated"]),
        ];
        let snapshot = crate::cluster::load(&objects);
        audit(snapshot);
    }
}
