use proptest::prelude::*;

use super::*;

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

fn listed(realms: &[&str], private: &[&str]) -> Trust {
    let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Trust { realm_hosts: all(realms), private_hosts: all(private) }
}

#[test]
fn a_realm_is_of_the_upstreams_own_domain_or_of_the_list() {
    let none = Trust::default();
    let list = listed(&["auth.elsewhere.com"], &[]);
    let allowed = [
        ("https://registry-1.docker.io/v2/", "https://auth.docker.io/token", &none),
        ("https://registry.acme.co.uk/v2/", "https://login.acme.co.uk/token", &none),
        ("https://registry.example/v2/", "https://registry.example/token", &none),
        ("https://registry.example/v2/", "https://registry.example:8443/token", &none),
        ("https://registry.acme.com/v2/", "/token", &none),
        ("https://registry.acme.com/v2/", "https://auth.elsewhere.com/token", &list),
        ("http://registry.svc.cluster.local/v2/", "http://registry.svc.cluster.local/token", &none),
        ("http://10.0.0.1:5000/v2/", "http://10.0.0.1:5001/token", &none),
    ];
    for (from, to, trust) in allowed {
        assert!(realm(&url(from), to, trust).is_ok(), "{from} {to}");
    }
    let refused = [
        ("https://registry.acme.com/v2/", "https://evil.com/token", &none),
        ("https://registry.acme.com/v2/", "https://acme.com.evil.com/token", &none),
        ("https://registry.acme.com/v2/", "https://notacme.com/token", &none),
        // Two customers below one public suffix are strangers.
        ("https://registry.acme.co.uk/v2/", "https://evil.co.uk/token", &none),
        ("https://acme.github.io/v2/", "https://evil.github.io/token", &none),
        // Names that no list knows, as within a cluster.
        ("http://registry.acme.svc.cluster.local/v2/", "http://evil.svc.cluster.local/token", &none),
        ("https://registry.example/v2/", "https://auth.registry.example/token", &none),
        ("http://10.0.0.1/v2/", "http://10.0.0.2/token", &none),
        ("https://registry.acme.com/v2/", "https://sub.auth.elsewhere.com/token", &list),
    ];
    for (from, to, trust) in refused {
        assert!(matches!(realm(&url(from), to, trust), Err(TrustError::ForeignRealm { .. })), "{from} {to}");
    }
}

#[test]
fn authorization_goes_along_to_the_same_scheme_host_and_port_only() {
    let cases = [
        ("https://r.acme.com/v2/a", "https://r.acme.com/v2/b", true),
        ("https://r.acme.com/v2/a", "/v2/b", true),
        ("https://r.acme.com/v2/a", "https://R.ACME.com.:443/v2/b", true),
        ("https://r.acme.com/v2/a", "https://r.acme.com:8443/v2/b", false),
        ("https://r.acme.com/v2/a", "https://cdn.acme.com/v2/b", false),
        ("http://r.acme.com/v2/a", "https://r.acme.com/v2/b", false),
        ("http://r.acme.com:443/v2/a", "https://r.acme.com/v2/b", false),
    ];
    for (from, to, keeps) in cases {
        let hop = redirect(&url(from), to, &Trust::default()).unwrap();
        assert_eq!(hop.keeps_authorization, keeps, "{from} {to}");
    }
}

#[test]
fn a_redirect_never_leads_to_http_from_https_or_to_what_is_no_url() {
    let from = url("https://r.acme.com/v2/a");
    let none = Trust::default();
    assert!(matches!(redirect(&from, "http://r.acme.com/b", &none), Err(TrustError::Downgrade(_))));
    for to in [
        "ftp://r.acme.com/",
        "file:///etc/passwd",
        "data:text/plain,x",
        "https://",
        "https://user:word@cdn.acme.com/",
    ] {
        assert!(matches!(redirect(&from, to, &none), Err(TrustError::NotUrl(_))), "{to}");
    }
}

#[test]
fn a_redirect_leads_to_a_private_address_only_if_that_is_listed() {
    let from = url("https://r.acme.com/v2/a");
    let private = [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "[::1]",
        "[fd00::1]",
        "[fe80::1]",
        "[::ffff:10.0.0.1]",
        "[64:ff9b::a00:1]",
        "localhost",
        "x.localhost",
        "2130706433",
        "0x7f.1",
    ];
    for host in private {
        let to = format!("https://{host}:8443/b?signature=secret");
        let error = redirect(&from, &to, &Trust::default()).unwrap_err();
        assert!(matches!(error, TrustError::PrivateTarget(_)), "{host}: {error}");
        assert!(!error.to_string().contains("secret"));
    }
    assert!(redirect(&from, "https://10.1.2.3/b", &listed(&[], &["10.1.2.3"])).is_ok());
    assert!(redirect(&url("http://10.1.2.3/a"), "http://10.1.2.3/b", &Trust::default()).is_ok());
    assert!(redirect(&url("http://10.1.2.3/a"), "http://10.1.2.4/b", &Trust::default()).is_err());
    assert!(redirect(&from, "https://8.8.8.8/b", &Trust::default()).is_ok());
}

#[test]
fn addresses_of_the_public_internet_are_told_from_all_others() {
    for address in [
        "8.8.8.8",
        "100.128.0.1",
        "172.32.0.1",
        "198.20.0.1",
        "2606:4700::1",
        "64:ff9b::808:808",
        "::ffff:8.8.8.8",
    ] {
        assert!(!is_private(address.parse().unwrap()), "{address}");
    }
    for address in [
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "2002:0a00:0001::1",
        "2001:db8::1",
        "ff02::1",
        "255.255.255.255",
        "224.0.0.1",
        "198.18.0.1",
        "192.0.0.8",
    ] {
        assert!(is_private(address.parse().unwrap()), "{address}");
    }
}

#[test]
fn a_signature_in_a_refused_url_is_not_repeated() {
    let from = url("https://r.acme.com/v2/a");
    for to in ["http://cdn.acme.com/b?sig=secret", "ftp://x/?secret#secret"] {
        let error = redirect(&from, to, &Trust::default()).unwrap_err().to_string();
        assert!(!error.contains("sig=secret") && !error.contains("?secret"), "{error}");
    }
}

proptest! {
    #[test]
    fn no_location_makes_the_rules_panic(to in "\\PC{0,60}|https?://[a-z0-9.:@\\[\\]/?#]{0,40}") {
        let from = url("https://r.acme.com/v2/a");
        let _either = realm(&from, &to, &Trust::default());
        if let Ok(hop) = redirect(&from, &to, &Trust::default()) {
            prop_assert_eq!(hop.url.scheme(), "https");
            prop_assert!(literal(&hop.url).is_none_or(|address| !is_private(address)));
        }
    }
}
