//! The same password or token, written in different ways.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use super::super::{CredentialKind, Origin, fact};
use super::{NOW, STRONG, base64, extract, kinds, one, opaque, plain, share};

fn token(claims: &serde_json::Value, signature: &str) -> String {
    let part = |value: &serde_json::Value| {
        base64(value.to_string()).replace('+', "-").replace('/', "_").replace('=', "")
    };
    format!("{}.{}.{signature}", part(&json!({"alg": "RS256", "typ": "JWT"})), part(claims))
}

#[test]
fn a_registry_password_is_the_same_in_both_pull_secrets_in_an_environment_and_in_a_url() {
    let auth = base64(format!("robot:{STRONG}"));
    let new = json!({"auths": {"https://registry.example:443/v2/": {"auth": auth}}}).to_string();
    let old = json!({"registry.example": {"username": "robot", "password": STRONG, "email": "a@b.example"}})
        .to_string();
    let new =
        extract(Origin::Secret("kubernetes.io/dockerconfigjson"), &[(".dockerconfigjson", &new)]).credentials;
    let old = extract(Origin::Secret("kubernetes.io/dockercfg"), &[(".dockercfg", &old)]).credentials;
    let environment = plain(&[("REGISTRY_USER", "robot"), ("REGISTRY_PASSWORD", STRONG)]);
    let url = opaque(&[("mirror", &format!("https://robot:{STRONG}@registry.example/v2/"))]);

    assert_eq!(kinds(&new), [CredentialKind::RegistryLogin]);
    assert_eq!(new[0].key, ".dockerconfigjson#auths/https://registry.example:443/v2/");
    assert_eq!(new[0].facts[fact::HOST], "registry.example");
    assert_eq!(new[0].facts[fact::USER], "robot");
    assert_eq!(environment[0].facts[fact::USER], "robot");
    // The login as a whole, and the password alone.
    assert_eq!(new[0].fingerprints.len(), 2);
    assert_eq!(new[0].fingerprints, old[0].fingerprints);
    assert_eq!(new[0].fingerprints, url[0].fingerprints);
    assert_eq!(environment[0].fingerprints, new[0].fingerprints[1..]);
}

#[test]
fn another_registry_or_user_with_the_same_password_shares_the_password_only() {
    let login = |host: &str, user: &str| {
        let file = json!({"auths": {host: {"username": user, "password": STRONG}}}).to_string();
        one(".dockerconfigjson", &file).fingerprints
    };
    let first = login("registry.example", "robot");
    for other in [login("registry.example:5000", "robot"), login("registry.example", "other")] {
        assert_ne!(first[0], other[0]);
        assert_eq!(first[1], other[1]);
    }
    // Docker pads with zeros.
    let padded = json!({"auths": {"docker.io": {"auth": base64(format!("robot:{STRONG}\0\0"))}}}).to_string();
    assert_eq!(one(".dockerconfigjson", &padded).fingerprints, login("docker.io", "robot"));
    assert_eq!(login("docker.io", "robot"), login("https://index.docker.io/v1/", "robot"));
}

#[test]
fn two_parts_do_not_run_into_each_other() {
    let login = |user: &str, password: &str| {
        let url = format!("https://{user}:{password}@registry.example");
        opaque(&[("url", url.as_str())])[0].fingerprints[0]
    };
    assert_ne!(login("ab", &format!("c{STRONG}")), login("abc", STRONG));
}

#[test]
fn a_password_is_the_same_in_every_kind_of_settings() {
    let expected = one("password", STRONG);
    let azure = format!("Server=db.example;User Id=app;Password={STRONG};");
    for (name, text) in [
        ("newline", format!("{STRONG}\n")),
        ("blanks", format!("  {STRONG}\r\n")),
        ("base64", base64(STRONG)),
        ("base64-newline", base64(format!("{STRONG}\n"))),
        ("app.env", format!("# settings\nexport DB_PASSWORD='{STRONG}'\nDB_HOST=db.example\n")),
        ("app.ini", format!("[database]\nuser = app\npassword = {STRONG}\n")),
        ("app.properties", format!("spring.datasource.password={STRONG}\nspring.datasource.username=app\n")),
        ("values.yaml", format!("database:\n  host: db.example\n  password: {STRONG}\n")),
        ("one-line.yaml", format!("password: {STRONG}\n")),
        ("list.yaml", format!("passwords:\n- {STRONG}\n")),
        ("app.json", json!({"database": {"password": STRONG}}).to_string()),
        ("app.json.b64", base64(json!({"database": {"password": STRONG}}).to_string())),
        ("nested", json!({"files": {"app.yaml": format!("db:\n  password: \"{STRONG}\"\n")}}).to_string()),
        (
            "environment",
            json!({"containers": [{"env": [{"name": "DB_PASSWORD", "value": STRONG}]}]}).to_string(),
        ),
        ("argument", json!({"args": ["--listen=:80", format!("--db-password={STRONG}")]}).to_string()),
        ("url", format!("postgres://app:{STRONG}@db.example:5432/app?sslmode=require")),
        ("jdbc", format!("jdbc:postgresql://db.example/app?user=app&password={STRONG}")),
        ("libpq", format!("host=db.example user=app password={STRONG} sslmode=require")),
        ("ado", azure),
        ("redis.conf", format!("# cache\nport 6379\nrequirepass {STRONG}\nmaxmemory 1gb\n")),
        ("script", format!("set -e\ncurl -fsS https://app:{STRONG}@db.example/ \\\n  -o out\n")),
    ] {
        let found = opaque(&[(name, &text)]);
        assert!(share(&found, std::slice::from_ref(&expected)), "{name}: {found:#?}");
    }
}

#[test]
fn percent_signs_in_a_url_are_undone() {
    let password = "qT7v/Xz2m@Lw9R:kB4h";
    let url = one("url", "amqp://app:qT7v%2FXz2m%40Lw9R%3AkB4h@mq.example/");
    assert!(url.shares_with(&one("password", password)));
}

#[test]
fn a_raw_key_is_the_same_as_its_base64() {
    let raw: Vec<u8> = (0u8..32).map(|n| n.wrapping_mul(37) ^ 0xc3).collect();
    let data = [("key".to_owned(), raw.clone())].into();
    let found = super::extractor().credentials(Origin::Secret("Opaque"), &data).credentials;
    assert!(share(&found, &[one("encryption-key", &base64(&raw))]), "{found:#?}");
}

#[test]
fn a_release_of_helm_repeats_what_it_was_given_and_what_it_made() {
    let manifest = format!(
        "---\n# Source: app/templates/secret.yaml\napiVersion: v1\nkind: Secret\nmetadata:\n  name: app\ntype: Opaque\ndata:\n  \
         admin: {}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app\ndata:\n  password: not-looked-at-Xz2mLw9R\n",
        base64(STRONG)
    );
    let release = json!({
        "name": "app", "version": 1, "info": {"status": "deployed"}, "manifest": manifest,
        "chart": {"values": {"password": "dEf4ultOfTheChart99"}},
        "config": {"postgresql": {"auth": {"password": "Hw5nP0cVy8sJ3aZe", "existingSecret": "app-database-credentials"}}},
    });
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(release.to_string().as_bytes()).unwrap();
    let release = base64(gzip.finish().unwrap());
    let found = extract(Origin::Secret("helm.sh/release.v1"), &[("release", &release)]).credentials;

    let keys: Vec<_> = found.iter().map(|credential| credential.key.as_str()).collect();
    assert_eq!(keys, ["release#config/postgresql/auth/password", "release#manifest/app/admin"]);
    assert!(found[0].shares_with(&one("password", "Hw5nP0cVy8sJ3aZe")));
    assert!(found[1].shares_with(&one("password", STRONG)));
}

#[test]
fn an_annotation_that_repeats_a_secret_is_looked_into() {
    let last_applied = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"},
        "data": {"password": base64(STRONG)}, "stringData": {"token": "Hw5nP0cVy8sJ3aZe"},
    });
    let found = plain(&[("kubectl.kubernetes.io/last-applied-configuration", &last_applied.to_string())]);
    assert!(
        share(&found, &[one("password", STRONG)]) && share(&found, &[one("password", "Hw5nP0cVy8sJ3aZe")])
    );
}

#[test]
fn a_token_with_a_newline_is_the_same_token() {
    let claims = json!({"iss": "https://issuer.example", "sub": "system:serviceaccount:a:b", "aud": ["x", "y"], "exp": NOW + 60});
    let token = token(&claims, "c2lnbmF0dXJlLW9mLXRoZS10b2tlbg");
    let (plain, newline) = (one("token", &token), one("other", &format!("{token}\n")));
    assert_eq!(plain.kind, CredentialKind::JsonWebToken);
    assert_eq!(plain.fingerprints, newline.fingerprints);
    assert_eq!(plain.facts[fact::SUB], "system:serviceaccount:a:b");
    assert_eq!(plain.facts[fact::AUD], "x, y");
}

#[test]
fn tokens_with_one_id_are_one_token_and_those_that_are_over_are_none() {
    let claims = |exp: i64| json!({"iss": "i", "sub": "s", "jti": "0b5c", "exp": exp});
    let first = one("token", &token(&claims(NOW + 60), "Zmlyc3Qtc2lnbmF0dXJl"));
    let again = one("token", &token(&claims(NOW + 90), "c2Vjb25kLXNpZ25hdHVyZQ"));
    assert!(first.shares_with(&again) && first.fingerprints[0] != again.fingerprints[0]);
    let over = token(&claims(NOW), "Zmlyc3Qtc2lnbmF0dXJl");
    for text in [over.clone(), format!("token: {over}\n"), base64(&over), json!({"token": over}).to_string()]
    {
        assert_eq!(opaque(&[("token", &text)]), []);
    }
}

#[test]
fn a_kubeconfig_and_a_cluster_secret_of_argo_cd_share_their_token() {
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster:\n    server: https://api.one.example:443\nusers:\n- name: u\n  \
         user:\n    token: {STRONG}\ncontexts:\n- name: x\n  context: {{cluster: c, user: u}}\n"
    );
    let argo = json!({"bearerToken": STRONG, "tlsClientConfig": {"insecure": true}}).to_string();
    let kubeconfig = opaque(&[("value", &kubeconfig)]);
    let argo = opaque(&[("name", "one"), ("server", "https://api.one.example:443"), ("config", &argo)]);
    assert_eq!(
        (kinds(&kubeconfig), kinds(&argo)),
        (vec![CredentialKind::KubeToken], vec![CredentialKind::KubeToken])
    );
    assert_eq!(kubeconfig[0].fingerprints, argo[0].fingerprints);
    assert_eq!(kubeconfig[0].key, "value#users/u/token");
    for found in [&kubeconfig[0], &argo[0]] {
        assert_eq!(found.facts[fact::SERVER], "https://api.one.example:443");
    }
}

#[test]
fn a_bootstrap_token_is_the_one_in_the_configuration_of_a_node() {
    let data = [
        ("token-id", "h2fa3e"),
        ("token-secret", "x7k2m9q4w8z1p5v3"),
        ("usage-bootstrap-authentication", "true"),
    ];
    let secret = extract(Origin::Secret("bootstrap.kubernetes.io/token"), &data).credentials;
    assert_eq!(kinds(&secret), [CredentialKind::BootstrapToken]);
    assert!(share(
        &secret,
        &opaque(&[("value", "discovery:\n  bootstrapToken:\n    token: h2fa3e.x7k2m9q4w8z1p5v3\n")])
    ));
}

#[test]
fn keys_of_clouds_go_by_their_secret_half_and_show_their_public_one() {
    let (id, secret) = ("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzKEY");
    let file = format!("[default]\naws_access_key_id = {id}\naws_secret_access_key = {secret}\n");
    let found = [
        opaque(&[("credentials", &file)]),
        opaque(&[("AWS_ACCESS_KEY_ID", id), ("AWS_SECRET_ACCESS_KEY", secret)]),
    ];
    for found in &found {
        assert_eq!(kinds(found), [CredentialKind::AwsSecretKey]);
        assert_eq!(found[0].facts[fact::ACCESS_KEY_ID], id);
    }
    assert!(share(&found[0], &found[1]));

    let tenant = "0c8b6f2e-7a41-4b19-9d5e-2f6a8c1b3d70";
    let azure = json!({"tenantId": tenant, "clientId": "5e1f9a3c-8b2d-4f70-a6c4-1d9e7b5f3a28", "clientSecret": STRONG});
    let azure = one("azure.json", &azure.to_string());
    assert_eq!((azure.kind, azure.facts[fact::TENANT_ID].as_str()), (CredentialKind::AzureSecret, tenant));
}

#[test]
fn hashes_of_passwords_and_webhooks_are_credentials() {
    let hash = "$2y$05$WVCnVO1pCX7uRKmzDPjWtuT1QKxSqcVdLyBoNvnuX4SoiEItQUaNK";
    let file = opaque(&[("auth", &format!("alice:{hash}\nbob:$apr1$x1y2z3$Kp0mqT9vXz2mLw9RkB4hE.\n"))]);
    assert_eq!(kinds(&file), [CredentialKind::PasswordHash, CredentialKind::PasswordHash]);
    assert_eq!(file[0].facts[fact::USER], "alice");

    let hook = "https://hooks.slack.com/services/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";
    let alertmanager = format!("receivers:\n- slack_configs:\n  - api_url: {hook}\n    channel: '#alerts'\n");
    let alertmanager = one("alertmanager.yaml", &alertmanager);
    assert_eq!(alertmanager.kind, CredentialKind::Webhook);
    assert!(alertmanager.shares_with(&one("url", hook)));
}
