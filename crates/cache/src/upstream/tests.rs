use std::time::Duration;

use bailey_testkit::registry::{Auth, Fault, Flavour, Image, Layer, On, Upstream as Remote};

use super::*;

const PASSWORD: &str = "hunter2hunter2";

fn settings(remote: &Remote) -> Settings {
    Settings {
        name: "registry.example".parse().unwrap(),
        url: remote.url().parse().unwrap(),
        prefix: None,
        credentials: Source::Anonymous,
        trust: Trust::default(),
    }
}

fn upstream(settings: Settings) -> Upstream {
    bailey_process::crypto::install();
    Upstream::new(settings, Arc::new(RootCertStore::empty()))
}

fn ask() -> Ask {
    Ask {
        method: Method::GET,
        repository: "acme/app".parse().unwrap(),
        rest: "manifests/v1".to_owned(),
        accept: None,
        range: None,
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

async fn remote() -> Remote {
    let remote = Remote::start().await.unwrap();
    remote.push("acme/app", "v1", &Image::new(Flavour::Oci, 1, &[Layer::random(1, 1000)]));
    remote
}

fn password(folder: &tempfile::TempDir, text: &str) -> Source {
    let file = folder.path().join("password");
    std::fs::write(&file, text).unwrap();
    Source::Password { username: "ann".to_owned(), file }
}

fn token_requests(remote: &Remote) -> usize {
    remote.requests().iter().filter(|seen| seen.target.starts_with("/token")).count()
}

#[tokio::test]
async fn a_herd_asks_for_one_token_and_keeps_it() {
    let remote = remote().await;
    remote.require(Auth::token());
    let upstream = Arc::new(upstream(settings(&remote)));
    let mut herd = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let upstream = upstream.clone();
        herd.spawn(async move { upstream.ask(&ask(), soon()).await.unwrap().status });
    }
    assert!(herd.join_all().await.iter().all(|status| *status == StatusCode::OK));
    assert_eq!(token_requests(&remote), 1);
    remote.forget_tokens();
    upstream.ask(&ask(), soon()).await.unwrap();
    assert_eq!(token_requests(&remote), 2, "a token that was revoked is replaced");
}

#[tokio::test]
async fn credentials_go_to_the_token_service_and_tokens_to_the_registry() {
    let folder = tempfile::tempdir().unwrap();
    let remote = remote().await;
    remote.require(Auth::Token {
        realm: None,
        credentials: Some(("ann".to_owned(), PASSWORD.to_owned())),
        expires_in: Duration::from_secs(300),
    });
    let upstream = upstream(Settings { credentials: password(&folder, PASSWORD), ..settings(&remote) });
    upstream.ask(&ask(), soon()).await.unwrap();
    for seen in remote.requests() {
        let is_basic = seen.authorization().is_some_and(|value| value.starts_with("Basic "));
        assert_eq!(is_basic, seen.target.starts_with("/token"), "{}", seen.target);
    }
    assert!(!format!("{upstream:?}").contains(PASSWORD));
}

#[tokio::test]
async fn a_wrong_credential_is_an_answer_about_the_credential_until_its_file_is_right() {
    let folder = tempfile::tempdir().unwrap();
    let remote = remote().await;
    let right = ("ann".to_owned(), PASSWORD.to_owned());
    for auth in [
        Auth::Basic { user: right.0.clone(), password: right.1.clone() },
        Auth::Token { realm: None, credentials: Some(right.clone()), expires_in: Duration::from_secs(300) },
    ] {
        remote.require(auth);
        let upstream = upstream(Settings { credentials: password(&folder, "wrong"), ..settings(&remote) });
        let problem = upstream.ask(&ask(), soon()).await.unwrap_err();
        assert!(matches!(problem.cause, Cause::Unauthorized | Cause::Forbidden), "{problem:?}");
        password(&folder, PASSWORD);
        upstream.ask(&ask(), soon()).await.unwrap();
    }
}

#[tokio::test]
async fn a_service_that_knows_no_get_is_asked_by_post() {
    let folder = tempfile::tempdir().unwrap();
    let remote = remote().await;
    remote.require(Auth::token());
    remote.fault(On::path("/token").method("GET"), Fault::status(404));
    let upstream = upstream(Settings { credentials: password(&folder, PASSWORD), ..settings(&remote) });
    // Whether the testkit's service answers a POST is not the point: it is asked, and no password is in a URL.
    let _answer = upstream.ask(&ask(), soon()).await;
    let seen = remote.requests();
    assert!(seen.iter().any(|seen| seen.method == "POST" && seen.target == "/token"), "{seen:?}");
    assert!(seen.iter().all(|seen| !seen.target.contains(PASSWORD)));
}

#[tokio::test]
async fn a_realm_on_another_domain_gets_nothing_unless_it_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let (remote, other) = (remote().await, Remote::start().await.unwrap());
    let elsewhere = other.url().replace("127.0.0.1", "localhost");
    remote.require(Auth::Token {
        realm: Some(format!("{elsewhere}/token")),
        credentials: None,
        expires_in: Duration::from_secs(60),
    });
    let known = Settings { credentials: password(&folder, PASSWORD), ..settings(&remote) };
    let problem = upstream(known.clone()).ask(&ask(), soon()).await.unwrap_err();
    assert_eq!(problem.cause, Cause::Policy);
    assert!(other.requests().is_empty());
    let trust = Trust { realm_hosts: vec!["localhost".to_owned()], ..Trust::default() };
    let _answer = upstream(Settings { trust, ..known }).ask(&ask(), soon()).await;
    assert!(!other.requests().is_empty());
}

#[tokio::test]
async fn a_redirect_elsewhere_carries_no_authorization_and_none_leads_into_a_private_network() {
    let folder = tempfile::tempdir().unwrap();
    let (remote, store) = (remote().await, remote().await);
    remote.require(Auth::Basic { user: "ann".to_owned(), password: PASSWORD.to_owned() });
    let known = Settings { credentials: password(&folder, PASSWORD), ..settings(&remote) };
    let target = format!("{}/v2/acme/app/manifests/v1?signature=secret", store.url());
    let redirect = |to: &str| remote.fault(On::path("/v2/").after(1).once(), Fault::redirect(307, to));

    redirect(&target);
    upstream(known.clone()).ask(&ask(), soon()).await.unwrap();
    assert_eq!(store.requests().iter().filter_map(|seen| seen.authorization()).count(), 0);
    assert_eq!(store.requests().len(), 1);

    let inside = target.replace("127.0.0.1", "127.0.0.2");
    for to in
        [inside.as_str(), &target.replace("127.0.0.1", "localhost"), &target.replace("127.0.0.1", "[::1]")]
    {
        remote.heal();
        redirect(to);
        let problem = upstream(known.clone()).ask(&ask(), soon()).await.unwrap_err();
        assert_eq!(problem.cause, Cause::Policy, "{to}: {problem}");
        assert!(!problem.to_string().contains("secret"), "{problem}");
    }
    assert_eq!(store.requests().len(), 1);
}

#[tokio::test]
async fn redirects_in_a_circle_end() {
    let remote = remote().await;
    remote.fault(On::path("/v2/"), Fault::redirect(302, "/v2/acme/app/manifests/v1"));
    let problem = upstream(settings(&remote)).ask(&ask(), soon()).await.unwrap_err();
    assert_eq!((problem.cause, remote.requests().len()), (Cause::Policy, trust::REDIRECTS_MAX + 1));
}

#[tokio::test]
async fn an_upstream_that_limits_is_left_alone_for_as_long_as_it_says() {
    let remote = remote().await;
    remote.fault(On::path("/v2/"), Fault::too_many(60));
    let upstream = upstream(settings(&remote));
    assert_eq!(upstream.ask(&ask(), soon()).await.unwrap_err().cause, Cause::RateLimited);
    let problem = upstream.ask(&ask(), soon()).await.unwrap_err();
    assert_eq!(problem.cause, Cause::BreakerOpen);
    assert!(problem.retry_after > Some(Duration::from_secs(50)), "{problem:?}");
    assert_eq!(remote.requests().len(), 1);
    assert!(upstream.away_for().is_some());
}

#[tokio::test]
async fn an_upstream_that_says_nothing_is_given_up_at_the_deadline() {
    let remote = remote().await;
    remote.fault(On::path("/v2/"), Fault::Hang);
    let deadline = Instant::now() + Duration::from_millis(100);
    let problem = upstream(settings(&remote)).ask(&ask(), deadline).await.unwrap_err();
    assert_eq!(problem.cause, Cause::Unreachable);
}

#[tokio::test]
async fn what_a_tier_above_refuses_one_repository_for_is_no_outage() {
    let remote = remote().await;
    let says = |reason: &str| {
        let headers = vec![("bailey-reason".to_owned(), reason.to_owned())];
        remote.heal();
        remote.fault(On::path("/v2/"), Fault::Status { status: 503, headers, body: String::new() });
    };
    let tier = upstream(Settings { prefix: Some("registry.example".to_owned()), ..settings(&remote) });
    for _ in 0..5 {
        says("UpstreamForbidden");
        assert_eq!(tier.ask(&ask(), soon()).await.unwrap_err().cause, Cause::Forbidden);
        says("UpstreamNotFound");
        assert_eq!(tier.ask(&ask(), soon()).await.unwrap_err().cause, Cause::UpstreamError);
    }
    says("UpstreamForbidden");
    let registry = upstream(settings(&remote));
    assert_eq!(registry.ask(&ask(), soon()).await.unwrap_err().cause, Cause::UpstreamError, "it is no tier");
}

#[tokio::test]
async fn what_is_encoded_though_that_was_declined_is_not_taken() {
    let remote = remote().await;
    let headers = vec![("content-encoding".to_owned(), "gzip".to_owned())];
    remote.fault(On::path("/v2/"), Fault::Status { status: 200, headers, body: "x".to_owned() });
    let problem = upstream(settings(&remote)).ask(&ask(), soon()).await.unwrap_err();
    assert_eq!(problem.cause, Cause::UpstreamError);
}
