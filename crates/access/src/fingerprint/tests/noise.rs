//! What is weak, and what is no credential.

use serde_json::json;
use zeroize::Zeroizing;

use super::super::names::{Hint, hint, is_reference};
use super::super::strength::{FLOOR_BITS, bits, looks_random, looks_secret};
use super::super::{CredentialKind, Extractor, LocalKey, Origin, fact};
use super::{STRONG, extract, extractor, one, opaque, plain, share};

#[test]
fn two_customers_with_one_weak_password_are_found_and_nothing_of_it_is_exported() {
    let (first, second) = (one("password", "changeme"), one("db-password", "changeme\n"));
    for found in [&first, &second] {
        assert!(found.weak);
        assert!(found.fingerprints.is_empty());
        let written = serde_json::to_value(found).unwrap();
        assert_eq!(written["fingerprints"], json!([]));
        assert_eq!(written.get("local"), None);
    }
    assert!(first.shares_with(&second));
    assert!(!first.shares_with(&one("password", "letmein")));

    // Another process has another key.
    let elsewhere = Extractor { local: LocalKey::new(Zeroizing::new([8; 32])), ..extractor() };
    let data = [("password".to_owned(), b"changeme".to_vec())].into();
    assert!(!share(&elsewhere.credentials(Origin::Secret("Opaque"), &data).credentials, &[first]));
}

#[test]
fn a_weak_password_makes_the_whole_login_weak() {
    let file =
        json!({"auths": {"registry.example": {"username": "admin", "password": "Harbor12345"}}}).to_string();
    let login = one(".dockerconfigjson", &file);
    assert!(login.weak && login.fingerprints.is_empty() && login.local.len() == 2);
    assert!(login.shares_with(&one("password", "Harbor12345")));
    // Nor does base64 make it strong, nor a hash without salt, nor a block around it.
    assert!(one("auth", "alice:{SHA}fEqNCco3Yq9h5ZUglD3CZJT4lBs=\n").weak);
    assert!(one("tls.key", "-----BEGIN PRIVATE KEY-----\nchangeme\n-----END PRIVATE KEY-----\n").weak);
    assert!(one("password", &super::base64("Harbor12345")).shares_with(&login));
}

#[test]
fn guessable_passwords_are_below_the_floor_and_random_ones_above() {
    for weak in [
        "admin",
        "changeme",
        "Password1",
        "P@ssw0rd",
        "P@ssw0rd2024!",
        "Summer2025!",
        "qwertyuiop123",
        "letmein123",
        "aaaaaaaaaaaaaaaaaaaaaaaa",
        "1234567890123456",
        "abcabcabcabcabcabcabc",
        "acme-prod-2026",
        "administrator",
        "postgres",
        "Welcome2Acme",
        "ababababababababab",
        "h2fake",
        "20261130",
        "passwordpassword",
    ] {
        assert!(bits(weak) < FLOOR_BITS, "{weak}: {}", bits(weak));
    }
    for strong in [
        STRONG,
        "kD8#vQ2!xZ",
        "x7k2m9q4w8z1p5v3",
        "e3b0c44298fc1c14",
        "9f86d081884c7d659a2feaa0c55ad015",
        "correct-horse-battery-staple",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzKEY",
        "ghp_x9Kq2LmZ7vTbR4nWc8sYpH3dJf6gA1uE5oQi",
        "0c8b6f2e-7a41-4b19-9d5e-2f6a8c1b3d70",
    ] {
        assert!(bits(strong) >= FLOOR_BITS, "{strong}: {}", bits(strong));
    }
}

#[test]
fn only_what_looks_random_is_taken_for_a_secret_without_a_hint() {
    for random in [
        "x9Kq2LmZ7vTbR4nWc8sY",
        "e3b0c44298fc1c149afbf4c8996fb924",
        "c2VjcmV0LXZhbHVlLTEyMzQ1Njc4OTA+",
        STRONG,
    ] {
        assert!(looks_random(random), "{random}: {}", bits(random));
    }
    // A token of a known issuer need not look random.
    let known = "glpat-qwzrtplkhgfdxcvbnmq";
    assert!(looks_secret(known) && !looks_random(known));
    for plain in [
        "kube-prometheus-stack",
        "registry.example/team/app:1.2.3",
        "acme-one-cluster-values",
        "api.acme-one.mclab.cloud.example",
        "/etc/kubernetes/pki/ca.crt",
        "preferredDuringSchedulingIgnoredDuringExecution",
        "system:serviceaccount:a:b",
        "2026-11-30T04:48:05Z",
        "0c8b6f2e-7a41-4b19-9d5e-2f6a8c1b3d70",
        "--http-max-idle-conns-per-host=1000",
        "a sentence of words, 2026",
        "10.244.0.0/16",
    ] {
        assert!(!looks_secret(plain), "{plain}: {}", bits(plain));
    }
}

#[test]
fn names_say_what_a_value_is() {
    for name in ["tls.key", "credentials", "identity", "dsn", "auth", "ca-key.pem", "cookie"] {
        assert_eq!(hint(name, Hint::Leaf), Hint::Within, "{name}");
        assert_eq!(hint(name, Hint::Whole), Hint::Whole, "{name}");
    }
    for name in [
        "password",
        "DB_PASSWORD",
        "adminPassword",
        "admin-password",
        "pgpass",
        "client_secret",
        "clientSecret",
        "secretKey",
        "apiKey",
        "API_KEY",
        "github-token",
        "routing_key",
        "AWS_SECRET_ACCESS_KEY",
        "secret_id",
        "htpasswd",
        "secret.yaml",
    ] {
        assert_eq!(hint(name, Hint::Leaf), Hint::Secret, "{name}");
    }
    for name in [
        "username",
        "admin-user",
        "host",
        "DB_PORT",
        "tls.crt",
        "ca.crt",
        "caPem",
        "client-certificate-data",
        "url",
        "existingSecret",
        "secretName",
        "tokenPath",
        "identity.pub",
        "known_hosts",
        "access_key_id",
        "namespace",
        "checksum/secret",
        "passwordPolicy",
    ] {
        assert_eq!(hint(name, Hint::Leaf), Hint::Public, "{name}");
    }
    for name in [
        "value",
        "key",
        "topologyKey",
        "config",
        "replicas",
        "helm.sh/chart",
        "external-secrets.io/component",
        "mode2",
    ] {
        assert_eq!(hint(name, Hint::Leaf), Hint::Leaf, "{name}");
    }
}

#[test]
fn a_field_with_the_name_of_a_secret_is_none() {
    for (name, value) in [
        ("adminSecret", "harbor-admin"),
        ("passwordKey", "admin-password"),
        ("tls-secret", "wildcard-tls"),
        ("existing-credentials", "db-credentials"),
        ("inject-ca-from-secret", "cert-manager/cert-manager-webhook-ca"),
        ("tokenKey", "token"),
    ] {
        assert!(is_reference(name, value), "{name}: {value}");
    }
    for (name, value) in [
        ("clientSecret", "my-client-secret"),
        ("adminSecret", STRONG),
        ("password", "admin-password"),
        ("apiKey", STRONG),
    ] {
        assert!(!is_reference(name, value), "{name}: {value}");
    }
    let values =
        "auth:\n  existingSecret: app-database\n  secretKeys:\n    adminPasswordKey: postgres-password\n";
    assert_eq!(opaque(&[("values.yaml", values)]), []);
}

#[test]
fn what_is_public_or_stands_for_nothing_is_no_credential() {
    for (name, value) in [
        ("password", ""),
        ("password", " \n"),
        ("password", "${DB_PASSWORD}"),
        ("password", "{{ .Values.password }}"),
        ("password", "<your-password>"),
        ("token", "null"),
        ("token", "true"),
        ("secret", "xxxxxxxx"),
        ("pin", "42"),
        ("password", "ENC[AES256_GCM,data:qT7vXz2mLw9RkB4h,iv:a,tag:b]"),
        ("password", "vault:secret/data/app#password"),
        ("password", "your-password-here"),
        ("username", "an-unusually-long-user-name-7"),
        ("endpoint", "https://api.one.example:6443/healthz"),
        ("address", "db-0.one.example:5432"),
        ("mail", "someone@one.example"),
        ("cidr", "10.244.0.0/16"),
        (
            "known_hosts",
            "github.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl",
        ),
        (
            "deploy",
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl robot@one.example",
        ),
        ("tokenPath", "/var/run/secrets/kubernetes.io/serviceaccount/token"),
        ("mode", "standalone"),
        ("note", "made by the platform team, do not edit"),
    ] {
        assert_eq!(opaque(&[(name, value)]), [], "{name}: {value}");
    }
}

#[test]
fn ordinary_settings_have_no_credentials() {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {
            "name": "app", "uid": "0c8b6f2e-7a41-4b19-9d5e-2f6a8c1b3d70", "labels": {"pod-template-hash": "7d9f8b6c5d"},
            "annotations": {"checksum/config": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        },
        "spec": {"containers": [{
            "image": "registry.example/app@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "env": [
                {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "app-token", "key": "token"}}},
                {"name": "TOKEN_FILE", "value": "/var/run/token"},
                {"name": "COMMIT", "value": "9f86d081884c7d659a2feaa0c55ad0159f86d081"},
            ],
            "args": ["--listen=:8080", "--token-ttl=3600s", "--leader-elect"],
        }], "imagePullSecrets": [{"name": "registry-pull-secret"}]},
    });
    assert_eq!(plain(&[("object", &deployment.to_string())]), []);
}

#[test]
fn settings_with_the_name_of_a_secret_are_none() {
    let values =
        "auth: basic\nidentity: system-assigned\ncookie: lax\nseed: 42\nlicense: enterprise\nsignature: v4\n";
    assert_eq!(opaque(&[("values.yaml", values), ("auth", "basic"), ("identity", "system")]), []);
    assert_eq!(opaque(&[("values.yaml", &format!("cookie: {STRONG}\n"))]).len(), 1);
}

#[test]
fn a_strong_value_counts_in_a_secret_and_in_a_config_map_if_it_looks_random() {
    let wordy = "correct-horse-battery-staple";
    assert_eq!(opaque(&[("backend", wordy)]).len(), 1);
    assert_eq!(plain(&[("backend", wordy)]), []);
    assert_eq!(plain(&[("backend", STRONG)]).len(), 1);
    // A number or a truth value of a document is none, whatever it is called.
    assert_eq!(opaque(&[("values.yaml", "tokens:\n  enabled: true\n  count: 12\npassword: null\n")]), []);
    // A password may be digits without quotes.
    assert!(one("values.yaml", "password: 048275610384\n").shares_with(&one("password", "048275610384")));
    assert!(one("values.yaml", "password: 948275610384\n").shares_with(&one("password", "948275610384")));
}

#[test]
fn a_token_in_the_place_of_a_user_is_no_public_fact() {
    let token = "ghp_x9Kq2LmZ7vTbR4nWc8sYpH3dJf6gA1uE5oQi";
    for url in [
        format!("https://{token}@github.com/acme/app.git"),
        format!("https://{token}:x-oauth-basic@github.com/acme/app.git"),
    ] {
        let found = one("url", &url);
        assert_eq!((found.kind, found.facts.get(fact::USER)), (CredentialKind::Login, None));
        assert!(found.shares_with(&one("token", token)));
    }
    let basic =
        extract(Origin::Secret("kubernetes.io/basic-auth"), &[("username", token), ("password", "x")])
            .credentials;
    assert!(share(&basic, &[one("token", token)]), "{basic:#?}");
    assert_eq!(opaque(&[("url", "ssh://git@github.com/acme/app.git")]), []);
}
