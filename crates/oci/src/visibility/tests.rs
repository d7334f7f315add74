use proptest::prelude::*;

use super::*;

fn place(text: &str) -> Place {
    let (upstream, repository) = text.split_once('/').unwrap();
    Place { upstream: upstream.parse().unwrap(), repository: repository.parse().unwrap() }
}

fn names(names: &[&str]) -> BTreeSet<Arc<str>> {
    names.iter().map(|name| Arc::from(*name)).collect()
}

fn client(cluster: &str, tenants: &[&str]) -> Client {
    Client { cluster: Some(cluster.into()), tenants: names(tenants), guest_of: None }
}

fn only(clusters: &[&str], tenants: &[&str]) -> Audience {
    Audience::Only { clusters: names(clusters), tenants: names(tenants) }
}

/// Acme's repositories are acme's, those below `both` also of cluster `c2`; the rest is public.
fn visibility() -> Visibility {
    let grant = |images: &str, audience| Grant { images: images.parse().unwrap(), audience };
    Visibility {
        grants: vec![
            grant("registry.example/acme/both/*", only(&["c2"], &["acme"])),
            grant("registry.example/acme/*", only(&[], &["acme"])),
        ],
        otherwise: Audience::Everyone,
    }
}

#[test]
fn a_private_repository_is_for_those_it_is_granted_to() {
    let visibility = visibility();
    let may = |client: &Client, text: &str| visibility.may_read(client, &place(text));
    let acme = client("c1", &["acme"]);
    let beta = client("c2", &["beta"]);
    let nobody = Client::default();
    assert!(may(&acme, "registry.example/acme/app") && may(&acme, "registry.example/acme/both/app"));
    assert!(!may(&beta, "registry.example/acme/app") && may(&beta, "registry.example/acme/both/app"));
    assert!(!may(&nobody, "registry.example/acme/app") && may(&nobody, "registry.example/public"));
    assert!(may(&beta, "other.example/acme/app"), "the same name elsewhere is another repository");
}

#[test]
fn a_private_blob_is_not_read_through_another_repository() {
    let visibility = visibility();
    let beta = client("c1", &["beta"]);
    let private = place("registry.example/acme/app");
    let public = place("registry.example/public");
    assert_eq!(visibility.access(&beta, &public, [&private]), Access::AskUpstream);
    assert_eq!(visibility.access(&beta, &private, [&private]), Access::Refuse);
    assert_eq!(visibility.access(&beta, &public, []), Access::AskUpstream);
}

#[test]
fn a_repository_that_is_not_for_the_client_is_refused_whatever_is_here() {
    let visibility = visibility();
    let beta = client("c1", &["beta"]);
    let private = place("registry.example/acme/app");
    let public = place("registry.example/public");
    for links in [vec![], vec![&public], vec![&public, &private]] {
        assert_eq!(visibility.access(&beta, &private, links), Access::Refuse);
    }
}

#[test]
fn a_shared_layer_is_served_from_wherever_the_client_may_read_it() {
    let visibility = visibility();
    let acme = client("c1", &["acme"]);
    let private = place("registry.example/acme/app");
    let public = place("registry.example/public");
    assert_eq!(visibility.access(&acme, &private, [&public]), Access::Serve);
    assert_eq!(visibility.access(&acme, &public, [&private]), Access::Serve);
    assert_eq!(visibility.access(&acme, &private, [&private]), Access::Serve);
}

#[test]
fn where_nothing_is_granted_to_everyone_the_unnamed_see_nothing() {
    let visibility = Visibility { otherwise: Audience::nobody(), ..visibility() };
    assert!(!visibility.may_read(&Client::default(), &place("registry.example/public")));
    assert!(!visibility.may_read(&client("c1", &["beta"]), &place("registry.example/public")));
    assert!(visibility.may_read(&client("c1", &["acme"]), &place("registry.example/acme/app")));
}

proptest! {
    /// Said once more, the other way round: nobody gets what no repository that they may read holds.
    #[test]
    fn nothing_is_served_that_is_known_from_unreadable_repositories_only(
        asked in 0usize..3, links in prop::collection::vec(0usize..3, 0..3), tenants in prop::collection::btree_set(0usize..3, 0..3),
    ) {
        let all = ["registry.example/t0/a", "registry.example/t1/a", "registry.example/t2/a"].map(place);
        let grants = (0..3).map(|n| Grant {
            images: format!("registry.example/t{n}/*").parse().unwrap(),
            audience: only(&[], &[&format!("t{n}")]),
        });
        let visibility = Visibility { grants: grants.collect(), otherwise: Audience::nobody() };
        let tenants_text: Vec<_> = tenants.iter().map(|n| format!("t{n}")).collect();
        let client = client("c", &tenants_text.iter().map(String::as_str).collect::<Vec<_>>());
        let access = visibility.access(&client, &all[asked], links.iter().map(|n| &all[*n]));
        let expected = if !tenants.contains(&asked) {
            Access::Refuse
        } else if links.iter().any(|link| tenants.contains(link)) {
            Access::Serve
        } else {
            Access::AskUpstream
        };
        prop_assert_eq!(access, expected);
    }
}
