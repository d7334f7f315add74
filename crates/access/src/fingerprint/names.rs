//! What the name of a value says about it, and which names may be shown.

use super::strength::{is_wordy, looks_secret};

/// How much is known about a value before it is looked at. From least to most.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Hint {
    /// The name says that the value is public: a user, a host, a certificate.
    Public,
    /// A leaf of a document whose name says nothing: only what looks random is a secret.
    Leaf,
    /// The same with a name that may be one of a secret, or inside something that is named like a secret: strong values
    /// count, unless they are words.
    Within,
    /// A whole value of a Secret whose name says nothing: a secret if it is strong and no address or number.
    Whole,
    /// The name, or the place in a known format, says that it is a secret.
    Secret,
}

/// Words that say what the value is, where they come last.
#[rustfmt::skip]
const PUBLIC_LAST: &[&str] = &[
    "account", "address", "alg", "algorithm", "annotation", "annotations", "arn", "at", "audience",
    "audiences", "bucket", "ca", "cert", "certificate", "certificates", "checksum", "cidr", "class",
    "commit", "controller", "count", "crt", "database", "date", "days", "db", "dbname", "description",
    "digest", "dir", "directory", "domain", "duration", "email", "enabled", "endpoint", "environment",
    "expiration", "expires", "expiry", "field", "file", "filename", "fingerprint", "format", "group",
    "groups", "header", "helper", "helpers", "host", "hostname", "hosts", "hours", "id", "image", "index",
    "interval", "ip", "issuer", "kind", "label", "labels", "length", "level", "lifetime", "limit", "login",
    "manager", "max", "min", "minutes", "mode", "mount", "name", "names", "namespace", "namespaces",
    "operator", "path", "paths", "period", "policy", "port", "prefix", "project", "protocol", "provider",
    "providers", "pub", "public", "rate", "ref", "reference", "refs", "region", "repository", "request",
    "requests", "resource", "resources", "retries", "reviewer", "revision", "role", "rotation", "scheme",
    "scope", "scopes", "seconds", "selector", "server", "sha", "sha256", "size", "store", "subject",
    "suffix", "tag", "tenant", "threshold", "time", "timeout", "ttl", "type", "types", "uid", "uri", "url",
    "user", "username", "users", "uuid", "version", "zone",
];

/// Names that are public for what they are as a whole.
const PUBLIC_WHOLE: &[&str] = &["knownhosts", "existingsecret", "publickey", "apiversion"];

/// Words before `key` that make it the key of a map.
const KEYS_OF_MAPS: &[&str] = &[
    "annotation",
    "cache",
    "config",
    "field",
    "foreign",
    "label",
    "map",
    "match",
    "partition",
    "sort",
    "topology",
    "values",
];

/// Words that make the value a secret, wherever they stand.
#[rustfmt::skip]
const SECRET_ANYWHERE: &[&str] = &[
    "accesskey", "accountkey", "apikey", "authkey", "bearertoken", "encryptionkey", "htpasswd", "masterkey", "passphrase", "passwd",
    "password", "privatekey", "routingkey", "secret", "sharedkey", "signingkey", "token",
];

/// Words that make the value a secret as words of their own.
const SECRET_WORDS: &[&str] = &["pwd", "pw", "psk", "pin", "otp", "jwt", "sas", "pat"];

/// Words that are said of secrets and of settings alike: `auth: basic`, `identity: system`. Strong values count.
#[rustfmt::skip]
const LIKELY_WORDS: &[&str] = &[
    "auth", "bearer", "cookie", "credential", "credentials", "creds", "dsn", "hmac", "identity", "license", "pepper", "salt", "seed", "sig",
    "signature", "totp",
];

/// Words before `secret` that make it a value. Others name a Secret: `existingSecret`, `tlsSecret`, `adminSecret`.
const SECRETS_BY_VALUE: &[&str] =
    &["api", "app", "client", "cookie", "hmac", "jwt", "oauth", "oidc", "session", "shared"];

/// Words that say nothing about the value that they follow.
const FILLERS: &[&str] = &[
    "data", "value", "values", "b64", "base64", "text", "txt", "string", "pem", "json", "yaml", "yml",
    "conf", "env", "new",
];

/// Judges a name. `otherwise` is for a name that says nothing.
pub(super) fn hint(name: &str, otherwise: Hint) -> Hint {
    // Labels and annotations have a domain before the name.
    let name = match name.rsplit_once('/') {
        Some(("checksum", _)) => return Hint::Public,
        Some((_, name)) => name,
        None => name,
    };
    let mut words = words(name);
    while words.len() > 1 && words.last().is_some_and(|last| FILLERS.contains(&last.as_str())) {
        words.pop();
    }
    let joined: String = words.iter().map(|word| word.as_str()).collect();
    let last = words.last().map(|word| word.as_str()).unwrap_or_default();
    // Vault calls the secret half of an AppRole `secret_id`.
    if joined.ends_with("secretid") {
        return Hint::Secret;
    }
    if PUBLIC_WHOLE.contains(&joined.as_str()) || PUBLIC_LAST.contains(&last) {
        return Hint::Public;
    }
    let named = SECRET_ANYWHERE.iter().any(|word| joined.contains(word))
        || words.iter().any(|word| SECRET_WORDS.contains(&word.as_str()))
        || last.ends_with("pass") && !["bypass", "compass"].contains(&last);
    if named {
        return Hint::Secret;
    }
    let before = words.iter().rev().nth(1).map(|word| word.as_str());
    let key = ["key", "keys"].contains(&last) && before.is_some_and(|before| !KEYS_OF_MAPS.contains(&before));
    let likely = key || words.iter().any(|word| LIKELY_WORDS.contains(&word.as_str()));
    if likely { otherwise.max(Hint::Within) } else { otherwise }
}

/// Says whether a value in a document is rather the name of a Secret, or of a key in one, than a secret itself.
///
/// Charts have many such fields: `existingSecret`, `tokenSecret`, `passwordKey`.
pub(super) fn is_reference(name: &str, value: &str) -> bool {
    let names = words(name);
    let last = names.last().map(|word| word.as_str()).unwrap_or_default();
    let before = names.iter().rev().nth(1).map(|word| word.as_str()).unwrap_or_default();
    let object_name = value.contains(['-', '/'])
        && value
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-./".contains(&byte))
        && is_wordy(value);
    match last {
        "secret" | "secrets" | "credentials" => object_name && !SECRETS_BY_VALUE.contains(&before),
        "key" | "keys" => is_data_key(value) && is_wordy(value) && hint(value, Hint::Leaf) != Hint::Leaf,
        _ => false,
    }
}

/// Says whether a text could be the name of a value in a Secret.
fn is_data_key(text: &str) -> bool {
    text.len() <= 48 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// Splits a name into lower-case words, at separators, digits and humps.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    let mut open = false;
    for letter in name.chars() {
        let hump = letter.is_uppercase() && before.is_lowercase();
        if !letter.is_alphanumeric() {
            open = false;
        } else if let Some(word) = words.last_mut().filter(|_| open && !hump) {
            word.extend(letter.to_lowercase());
        } else {
            words.push(letter.to_lowercase().collect());
            open = true;
        }
        before = letter;
    }
    words
}

/// Returns a name as it may be shown, or its position where it could be a secret itself.
pub(super) fn shown(name: &str, position: usize) -> String {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-:/@$ ".contains(&byte));
    if plain && (1..=128).contains(&name.len()) && !looks_secret(name) {
        name.to_owned()
    } else {
        format!("({position})")
    }
}
