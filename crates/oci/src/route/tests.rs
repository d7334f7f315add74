use proptest::prelude::*;

use super::*;
use crate::name::REPOSITORY_LEN_MAX;

const DIGEST: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

fn upstreams() -> Upstreams {
    let names = ["docker.io", "registry.example", "registry.example:5000", "localhost"];
    let names = names.map(|name| name.parse::<Registry>().unwrap());
    let default = names[0].clone();
    Upstreams::new(names, Some(default)).unwrap()
}

fn ask(target: &str) -> Result<Route, RouteError> {
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    route(path, query, &upstreams())
}

/// Upstream, repository and resource, as text.
fn asked(target: &str) -> (String, String, String) {
    match ask(target) {
        Ok(Route::Request(request)) => {
            let resource = request.target();
            let of_name = format!("/v2/{}/", request.repository);
            let resource = resource.strip_prefix(&of_name).unwrap().to_owned();
            (request.upstream.to_string(), request.repository.to_string(), resource)
        }
        other => panic!("{target}: {other:?}"),
    }
}

#[test]
fn the_api_is_announced_with_and_without_a_slash() {
    assert_eq!(ask("/v2/"), Ok(Route::Base));
    assert_eq!(ask("/v2"), Ok(Route::Base));
    assert_eq!(ask("/v2/?ns=registry.example"), Ok(Route::Base));
    for path in ["/", "", "/v1/", "/v20/", "v2/", "/v2x/a/manifests/b"] {
        assert_eq!(ask(path), Err(RouteError::NotApi), "{path}");
    }
}

#[test]
fn the_upstream_is_named_by_ns_by_the_path_or_is_the_default() {
    let cases = [
        ("/v2/acme/app/manifests/v1?ns=registry.example", "registry.example", "acme/app"),
        ("/v2/acme/app/manifests/v1?ns=registry.example%3A5000", "registry.example:5000", "acme/app"),
        ("/v2/registry.example/acme/app/manifests/v1", "registry.example", "acme/app"),
        ("/v2/registry.example:5000/app/manifests/v1", "registry.example:5000", "app"),
        ("/v2/localhost/app/manifests/v1", "localhost", "app"),
        ("/v2/acme/app/manifests/v1", "docker.io", "acme/app"),
        ("/v2/acme/app/manifests/v1?ns=", "docker.io", "acme/app"),
        // Both: the mirror's URL held the registry already.
        ("/v2/registry.example/app/manifests/v1?ns=registry.example", "registry.example", "app"),
        // Another registry's name is then a part of the repository.
        ("/v2/localhost/app/manifests/v1?ns=registry.example", "registry.example", "localhost/app"),
        // One part alone is a repository.
        ("/v2/localhost/manifests/v1?ns=registry.example", "registry.example", "localhost"),
    ];
    for (target, upstream, repository) in cases {
        assert_eq!(asked(target), (upstream.to_owned(), repository.to_owned(), "manifests/v1".to_owned()));
    }
}

#[test]
fn docker_hub_is_found_by_all_its_names_and_gets_its_library() {
    for target in [
        "/v2/debian/manifests/12",
        "/v2/library/debian/manifests/12",
        "/v2/docker.io/debian/manifests/12",
        "/v2/index.docker.io/library/debian/manifests/12",
        "/v2/debian/manifests/12?ns=registry-1.docker.io",
        "/v2/docker.io/debian/manifests/12?ns=index.docker.io",
    ] {
        assert_eq!(asked(target).1, "library/debian", "{target}");
    }
    assert_eq!(asked("/v2/debian/manifests/12?ns=registry.example").1, "debian");
}

#[test]
fn a_registry_that_is_not_listed_is_refused_however_it_is_named() {
    for target in [
        "/v2/app/manifests/v1?ns=evil.example",
        "/v2/app/manifests/v1?ns=http://evil.example/",
        "/v2/app/manifests/v1?ns=registry.example:443",
        "/v2/evil.example/app/manifests/v1",
        "/v2/evil:5000/app/manifests/v1",
        "/v2/127.0.0.1/app/manifests/v1",
    ] {
        let error = ask(target).unwrap_err();
        assert!(matches!(error, RouteError::UnknownUpstream(_)), "{target}: {error}");
        assert_eq!((error.status(), error.code()), (403, Code::Denied));
    }
}

#[test]
fn without_a_default_a_registry_has_to_be_named() {
    let none = Upstreams::new(["registry.example".parse().unwrap()], None).unwrap();
    assert_eq!(route("/v2/app/manifests/v1", None, &none), Err(RouteError::NoUpstream));
    assert!(route("/v2/app/manifests/v1", Some("ns=registry.example"), &none).is_ok());
}

#[test]
fn every_resource_of_the_api_is_understood() {
    let resource = |rest: &str| asked(&format!("/v2/registry.example/app/{rest}")).2;
    for rest in [
        "manifests/v1.2_3".to_owned(),
        format!("manifests/{DIGEST}"),
        format!("blobs/{DIGEST}"),
        "tags/list".to_owned(),
        "tags/list?n=5&last=v1".to_owned(),
        format!("referrers/{DIGEST}"),
        format!("referrers/{DIGEST}?artifactType=application/vnd.example%2Bjson"),
        format!("referrers/{DIGEST}?artifactType=a/b&n=1&last=x"),
    ] {
        assert_eq!(resource(&rest), rest);
    }
    assert_eq!(resource(&format!("manifests/{}", DIGEST.replace(':', "%3A"))), format!("manifests/{DIGEST}"));
    assert_eq!(resource("tags/list?n=5&ns=registry.example"), "tags/list?n=5");
}

#[test]
fn parts_of_a_name_may_be_words_of_the_api() {
    assert_eq!(asked("/v2/localhost/manifests/tags/list/manifests/v1").1, "manifests/tags/list");
    assert_eq!(asked("/v2/localhost/blobs/manifests/tags/list").1, "blobs/manifests");
}

#[test]
fn wrong_names_digests_and_paths_say_so_with_the_code_of_the_specification() {
    let cases = [
        ("/v2/App/manifests/v1", Code::NameInvalid, 400),
        ("/v2/a//b/manifests/v1", Code::NameInvalid, 400),
        ("/v2/a%2Fb/manifests/v1", Code::NameInvalid, 400),
        ("/v2/app/manifests/.v1", Code::NameInvalid, 400),
        ("/v2/app/manifests/sha256:abc", Code::DigestInvalid, 400),
        ("/v2/app/blobs/v1", Code::DigestInvalid, 400),
        ("/v2/app/referrers/v1", Code::DigestInvalid, 400),
        ("/v2/app/tags/list?n=x", Code::NameInvalid, 400),
        ("/v2/app/manifests/%ff", Code::NameInvalid, 400),
        ("/v2/_catalog", Code::Unsupported, 404),
        ("/v2/app/blobs/uploads/", Code::Unsupported, 404),
        ("/v2/manifests/v1", Code::Unsupported, 404),
    ];
    for (target, code, status) in cases {
        let error = ask(target).unwrap_err();
        assert_eq!((error.code(), error.status()), (code, status), "{target}: {error}");
    }
    assert_eq!(ask(&format!("/v2/{}/manifests/v1", "a".repeat(9000))), Err(RouteError::TooLong));
}

#[test]
fn names_are_as_long_as_the_specification_allows_behind_the_registry() {
    let name = "x".repeat(REPOSITORY_LEN_MAX);
    assert_eq!(asked(&format!("/v2/registry.example/{name}/manifests/v1")).1, name);
    let deep = vec!["a"; 128].join("/");
    assert_eq!(asked(&format!("/v2/{deep}/manifests/{}?ns=localhost", "t".repeat(128))).1, deep);
}

#[test]
fn a_cache_above_is_asked_with_the_registry_in_the_path() {
    let Ok(Route::Request(request)) = ask("/v2/debian/manifests/12") else { panic!() };
    assert_eq!(request.target_of_parent(), "/v2/docker.io/library/debian/manifests/12");
    assert_eq!(ask(&request.target_of_parent()), Ok(Route::Request(request)));
}

proptest! {
    #[test]
    fn no_request_makes_the_router_panic(path in "\\PC{0,80}|/v2/[a-z./%0-9:]{0,80}", query in prop::option::of("\\PC{0,40}|[a-z=&%.]{0,40}")) {
        if let Ok(Route::Request(request)) = route(&path, query.as_deref(), &upstreams()) {
            prop_assert!(upstreams().contains(&request.upstream));
            let again = ask(&request.target_of_parent());
            prop_assert_eq!(again, Ok(Route::Request(request)));
        }
    }

    #[test]
    fn what_is_asked_of_a_parent_means_the_same_there(
        name in "[a-z0-9]{1,8}(/[a-z0-9]{1,8}){0,4}", tag in "[a-zA-Z0-9_][a-zA-Z0-9._-]{0,30}", kind in prop::option::of("[a-z/+.]{1,20}"), n in any::<Option<u32>>(), registry in 0usize..4,
    ) {
        let upstream = upstreams().iter().nth(registry).unwrap().clone();
        let repository = upstream.complete(name.parse().unwrap());
        let digest: Digest = DIGEST.parse().unwrap();
        let page = Page { n, last: Some(tag.clone()), rest: Vec::new() };
        for resource in [
            Resource::Manifest(tag.parse().unwrap()),
            Resource::Blob(digest),
            Resource::Tags(page.clone()),
            Resource::Referrers { subject: digest, artifact_type: kind.clone(), page: page.clone() },
        ] {
            let request = Request { upstream: upstream.clone(), repository: repository.clone(), resource };
            prop_assert_eq!(ask(&request.target_of_parent()), Ok(Route::Request(request)));
        }
    }
}
