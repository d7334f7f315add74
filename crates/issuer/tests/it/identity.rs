//! Whose certificate somebody gets.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use bailey_identity::enrol::EnrolError;
use bailey_identity::key::Key;
use bailey_issuer::authority::Authority;
use bailey_tunnel::names::Party;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::fixture::{Installation, SigningKey, label, refused, uid};

#[tokio::test]
async fn a_cluster_gets_its_own_certificate_with_a_token_that_its_api_server_signed() {
    let installation = Installation::new(1).await;
    let key = Key::generate().unwrap();
    let token = installation.api_servers[0].token(&installation.applicant(0, &key));
    let (credentials, issued) = installation.ask(0, &key, token).await.unwrap();
    assert_eq!(credentials.certificate.identity.to_string(), format!("spiffe://atlas/cluster/{}", uid(0)));
    assert_eq!(issued.life_seconds, 3600);
    assert_eq!(credentials.certificate.not_after - credentials.certificate.issued, 3600);
    assert_eq!(issued.bundle, installation.kept.bundle);
}

/// A token of one cluster is worth nothing for another, though issuer, key ID and all names are the same.
#[tokio::test]
async fn whose_key_signed_the_token_decides_and_nothing_else() {
    let installation = Installation::new(2).await;
    let key = Key::generate().unwrap();
    // Cluster 0 writes itself a token with the audience of cluster 1.
    let token = installation.api_servers[0].token(&installation.applicant(1, &key));
    assert_eq!(refused(installation.ask(1, &key, token.clone()).await), "TokenSignature");
    // With its own greeting the audience is wrong.
    assert_eq!(refused(installation.ask(0, &key, token).await), "TokenAudience");
    // And a cluster is no gateway.
    let stream = TcpStream::connect(installation.address).await.unwrap();
    let token = installation.api_servers[0].token(&installation.applicant(0, &key));
    let gateway = installation.applying_as(Party::Gateway, "gateway").ask(stream, &key, token).await;
    assert_eq!(refused(gateway), "TokenSignature");
}

#[tokio::test]
async fn a_key_without_its_token_and_a_token_without_its_key_get_nothing() {
    let installation = Installation::new(1).await;
    let (own, stolen) = (Key::generate().unwrap(), Key::generate().unwrap());
    let token = installation.api_servers[0].token(&installation.applicant(0, &own));
    assert_eq!(refused(installation.ask(0, &stolen, token.clone()).await), "TokenKey");
    assert_eq!(refused(installation.ask(0, &own, String::new().into()).await), "TokenMalformed");
    let mut other = installation.api_servers[0].clone();
    other.subject = "system:serviceaccount:default:bailey-agent".to_owned();
    let token = other.token(&installation.applicant(0, &own));
    assert_eq!(refused(installation.ask(0, &own, token).await), "TokenSubject");
}

/// B15: an API server changes its key by itself, and the next certificate comes all the same.
#[tokio::test]
async fn b15_a_signing_key_that_changed_is_fetched_and_a_flood_of_unknown_ones_is_bounded() {
    let installation = Installation::new(1).await;
    let key = Key::generate().unwrap();
    let api_server = &installation.api_servers[0];
    let applicant = installation.applicant(0, &key);
    installation.ask(0, &key, api_server.token(&applicant)).await.unwrap();
    assert_eq!(installation.clusters.1.load(Ordering::Relaxed), 1);
    // Unknown keys: asked for again at most once in ten seconds, however many come.
    let flood = SigningKey::new("made-up");
    for _ in 0..10 {
        let token = flood.sign(&api_server.claims(&applicant.audiences()));
        assert_eq!(refused(installation.ask(0, &key, token).await), "TokenKeyUnknown");
    }
    assert!(installation.clusters.1.load(Ordering::Relaxed) <= 2);
    let next = SigningKey::new("next");
    installation.clusters.0.lock().unwrap().insert(Party::Cluster(uid(0)), next.jwks());
    *api_server.key.lock().unwrap() = next;
    tokio::time::sleep(Duration::from_millis(10_100)).await;
    installation.ask(0, &key, api_server.token(&applicant)).await.unwrap();
}

/// B20: four minutes of skew work where tokens allow it, twenty are told with whose clock it is.
#[tokio::test]
async fn b20_a_clock_that_is_off_is_told_with_the_way_out() {
    let installation = Installation::new(1).await;
    let key = Key::generate().unwrap();
    let applicant = installation.applicant(0, &key);
    let api_server = &installation.api_servers[0];
    for (ahead, expected) in
        [(50, "granted"), (-240, "granted"), (1200, "TokenNotYetValid"), (-1200, "TokenExpired")]
    {
        api_server.ahead.store(ahead, Ordering::Relaxed);
        let answer = installation.ask(0, &key, api_server.token(&applicant)).await;
        if let Err(EnrolError::Refused(refused)) = &answer {
            assert!(refused.message.contains("clock"), "{}", refused.message);
            assert!(refused.now > 0);
        }
        assert_eq!(refused(answer), expected, "{ahead}");
    }
}

/// B24: nothing is left that a deleted cluster could use, also while its request is under way.
#[tokio::test]
async fn b24_a_deleted_cluster_gets_nothing() {
    let installation = Installation::new(1).await;
    let key = Key::generate().unwrap();
    let token = installation.api_servers[0].token(&installation.applicant(0, &key));
    installation.change(|directory| directory.clusters.clear());
    assert_eq!(refused(installation.ask(0, &key, token).await), "Stranger");
}

#[tokio::test]
async fn requests_of_one_cluster_are_bounded_and_others_go_on() {
    let installation = Installation::new(2).await;
    let key = Key::generate().unwrap();
    let token = installation.api_servers[0].token(&installation.applicant(0, &key));
    let mut too_many = 0;
    for _ in 0..70 {
        if refused(installation.ask(0, &key, token.clone()).await) == "TooMany" {
            too_many += 1;
        }
    }
    assert!(too_many > 0);
    let token = installation.api_servers[1].token(&installation.applicant(1, &key));
    installation.ask(1, &key, token).await.unwrap();
}

/// B25: an issuer of somebody else, for the very same installation's name, is not believed; nothing is sent to it.
#[tokio::test]
async fn b25_another_authority_is_not_believed() {
    let (installation, other) = (Installation::new(1).await, Installation::new(1).await);
    let key = Key::generate().unwrap();
    let token = installation.api_servers[0].token(&installation.applicant(0, &key));
    let stream = TcpStream::connect(other.address).await.unwrap();
    let error = installation.applying(0).ask(stream, &key, token).await.unwrap_err();
    assert!(matches!(error, EnrolError::Handshake(_)), "{error:?}");
    assert_eq!(other.desk.metrics().refusals("TokenSignature"), 0);
}

/// The authority changes without anybody being cut off: both are published, then the new one signs.
#[tokio::test]
async fn an_authority_is_replaced_in_steps() {
    let installation = Installation::new(1).await;
    let key = Key::generate().unwrap();
    let applicant = installation.applicant(0, &key);
    let next = Authority::create(&installation.name, SystemTime::now()).unwrap();
    let both = format!("{}{}", installation.kept.bundle, next.bundle);
    let mut step = installation.kept.clone();
    step.bundle = both.clone();
    let open = |kept: &_| Arc::new(Authority::open(installation.name.clone(), kept).unwrap());
    installation.authority.send_replace(open(&step));
    let token = installation.api_servers[0].token(&applicant);
    let (credentials, issued) = installation.ask(0, &key, token).await.unwrap();
    assert_eq!(issued.bundle, both);
    let mut applying = installation.applying(0);
    (applying.bundle, applying.bundle_hash) = (credentials.bundle, credentials.bundle_hash);
    // From here on the new one signs, the issuer's own certificate included.
    let mut step = next.clone();
    step.bundle = both;
    installation.authority.send_replace(open(&step));
    tokio::time::sleep(Duration::from_millis(300)).await;
    let stream = TcpStream::connect(installation.address).await.unwrap();
    let token = installation.api_servers[0].token(&applicant);
    applying.ask(stream, &key, token.clone()).await.expect("who knows both goes on");
    let error = installation.ask(0, &key, token).await.unwrap_err();
    assert!(
        matches!(error, EnrolError::Handshake(_)),
        "who knows only the old one is told by TLS: {error:?}"
    );
}

/// What is sent by hand: nothing of the token comes back, whatever is wrong with the request.
#[tokio::test]
async fn a_request_that_is_not_one_is_refused_and_its_token_not_repeated() {
    let installation = Installation::new(1).await;
    let marker = "eyJhbGciOiJFUzI1NiJ9.MARKER-4711.c2ln";
    for body in [
        format!(r#"{{"csr":"x","token":"{marker}","bundle":""}}"#),
        format!(r#"{{"csr":5,"token":"{marker}"}}"#),
        format!(r#"{{"token":"{marker}""#),
        format!(r#"{{"csr":"x","token":"{marker}","bundle":"{}"}}"#, "y".repeat(70_000)),
    ] {
        let applying = installation.applying(0);
        let mut config = bailey_identity::tls::pinned(
            applying.bundle,
            format!("spiffe://{}/issuer", installation.name).parse().unwrap(),
        )
        .unwrap()
        .with_no_client_auth();
        config.alpn_protocols = vec![bailey_tunnel::control::ALPN_ENROL.to_vec()];
        let stream = TcpStream::connect(installation.address).await.unwrap();
        let name = format!("{}.bailey", label(0).as_str()).try_into().unwrap();
        let mut tls = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
        let head =
            format!("POST /v1/certificates HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
        tls.write_all(head.as_bytes()).await.unwrap();
        let _cut = tls.write_all(body.as_bytes()).await;
        let mut answer = Vec::new();
        let _over = tls.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(!answer.contains("MARKER"), "{answer}");
        assert!(!answer.contains("200 OK"), "{answer}");
    }
}

#[test]
fn nothing_that_is_secret_is_shown_for_debugging() {
    let name = bailey_tunnel::names::InstallationName::new("atlas").unwrap();
    let kept = Authority::create(&name, SystemTime::now()).unwrap();
    let authority = Authority::open(name, &kept).unwrap();
    let key = Key::generate().unwrap();
    let shown = format!("{kept:?} {authority:?} {key:?}");
    assert!(!shown.contains("BEGIN"), "{shown}");
    let middle = &kept.key[60..90];
    assert!(!shown.contains(middle));
}
