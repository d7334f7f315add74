//! Who this cache is to an upstream: a user with a password in a file, or what a Docker configuration file says.
//!
//! Files are read each time a credential is needed, so one that was changed is used without a restart. Values are
//! wiped when they are dropped, and are never part of an error or of a log line.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use zeroize::{Zeroize as _, Zeroizing};

/// The largest file that is read for a credential.
const FILE_LEN_MAX: u64 = 1 << 20;

/// Where the credential of an upstream comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nobody in particular.
    Anonymous,
    Password {
        username: String,
        file: PathBuf,
    },
    /// The entry of `registry` in the `auths` of a Docker configuration file.
    DockerConfig {
        file: PathBuf,
        registry: String,
    },
}

/// A credential.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    Password {
        username: String,
        password: Secret,
    },
    /// What is exchanged for access tokens (`identitytoken` in a Docker configuration file).
    IdentityToken(Secret),
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

/// Why a credential cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    #[error("cannot read credentials from `{path}`; check that the file exists and may be read")]
    Read { path: PathBuf, source: io::Error },
    #[error("`{path}` is no Docker configuration file: it needs an object `auths` of registries")]
    Syntax { path: PathBuf },
    #[error(
        "the entry `{registry}` of `{path}` holds no `auth` of the form base64(user:password), and no token"
    )]
    Entry { path: PathBuf, registry: String },
}

impl Source {
    /// Reads the credential; None for nobody, and for a registry that the file does not list.
    pub async fn read(&self) -> Result<Option<Credential>, CredentialError> {
        match self {
            Self::Anonymous => Ok(None),
            Self::Password { username, file } => {
                let text = read(file).await?;
                let password = Secret::new(text.trim_end_matches(['\r', '\n']));
                Ok(Some(Credential::Password { username: username.clone(), password }))
            }
            Self::DockerConfig { file, registry } => docker(file, registry, &read(file).await?),
        }
    }
}

impl Credential {
    /// The value of an `Authorization` header that says it; None for a token that must be exchanged first.
    pub fn basic(&self) -> Option<Secret> {
        let Self::Password { username, password } = self else { return None };
        let pair = Zeroizing::new(format!("{username}:{}", password.expose()));
        Some(Secret(Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())))))
    }
}

impl Secret {
    pub fn new(text: &str) -> Self {
        Self(Zeroizing::new(text.to_owned()))
    }

    /// The text itself; for headers and bodies of requests only.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Password { username, .. } => write!(f, "password of `{username}`"),
            Self::IdentityToken(_) => f.write_str("identity token"),
        }
    }
}

async fn read(path: &Path) -> Result<Zeroizing<String>, CredentialError> {
    let failed = |source| CredentialError::Read { path: path.to_owned(), source };
    let length = tokio::fs::metadata(path).await.map_err(failed)?.len();
    if length > FILE_LEN_MAX {
        return Err(failed(io::Error::new(io::ErrorKind::FileTooLarge, "longer than 1 MiB")));
    }
    Ok(Zeroizing::new(tokio::fs::read_to_string(path).await.map_err(failed)?))
}

#[derive(Deserialize)]
struct DockerConfig {
    #[serde(default)]
    auths: std::collections::BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    #[serde(rename = "identitytoken")]
    identity_token: Option<String>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        for secret in [&mut self.auth, &mut self.password, &mut self.identity_token] {
            secret.zeroize();
        }
    }
}

fn docker(path: &Path, registry: &str, text: &str) -> Result<Option<Credential>, CredentialError> {
    // The parser's own message would repeat parts of the file.
    let config: DockerConfig =
        serde_json::from_str(text).map_err(|_| CredentialError::Syntax { path: path.to_owned() })?;
    let wrong = || CredentialError::Entry { path: path.to_owned(), registry: registry.to_owned() };
    let Some((_, entry)) = config.auths.iter().find(|(key, _)| names(key, registry)) else {
        return Ok(None);
    };
    if let Some(token) = entry.identity_token.as_deref().filter(|token| !token.is_empty()) {
        return Ok(Some(Credential::IdentityToken(Secret::new(token))));
    }
    if let (Some(username), Some(password)) = (&entry.username, &entry.password) {
        return Ok(Some(Credential::Password {
            username: username.clone(),
            password: Secret::new(password),
        }));
    }
    let encoded = entry.auth.as_deref().ok_or_else(wrong)?;
    let decoded = Zeroizing::new(STANDARD.decode(encoded.trim()).map_err(|_| wrong())?);
    let pair = std::str::from_utf8(&decoded).map_err(|_| wrong())?;
    let (username, password) = pair.split_once(':').ok_or_else(wrong)?;
    Ok(Some(Credential::Password { username: username.to_owned(), password: Secret::new(password) }))
}

/// Whether a key of `auths` means this registry: keys are hosts, or URLs as `docker login` wrote them long ago.
fn names(key: &str, registry: &str) -> bool {
    let host = key.trim_start_matches("https://").trim_start_matches("http://");
    let host = host.split('/').next().unwrap_or_default();
    host == registry
        || (registry == "docker.io" && matches!(host, "index.docker.io" | "registry-1.docker.io"))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn of(text: &str, registry: &str) -> Result<Option<Credential>, CredentialError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        std::fs::write(&file, text).unwrap();
        Source::DockerConfig { file, registry: registry.to_owned() }.read().await
    }

    fn password(username: &str, password: &str) -> Credential {
        Credential::Password { username: username.to_owned(), password: Secret::new(password) }
    }

    #[tokio::test]
    async fn entries_of_a_docker_configuration_are_found_by_host_and_by_old_urls() {
        let text = r#"{"auths": {
            "registry.example:5000": {"auth": "YW5uOnNlOmNyZXQ="},
            "https://index.docker.io/v1/": {"username": "bob", "password": "pw"},
            "token.example": {"identitytoken": "tok", "auth": "PGlnbm9yZWQ+"}
        }, "credsStore": "desktop"}"#;
        assert_eq!(of(text, "registry.example:5000").await.unwrap(), Some(password("ann", "se:cret")));
        assert_eq!(of(text, "docker.io").await.unwrap(), Some(password("bob", "pw")));
        let token = of(text, "token.example").await.unwrap().unwrap();
        assert_eq!(token, Credential::IdentityToken(Secret::new("tok")));
        assert_eq!(token.basic(), None);
        assert_eq!(of(text, "registry.example").await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_changed_password_file_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        std::fs::write(&file, "one\n").unwrap();
        let source = Source::Password { username: "ann".to_owned(), file: file.clone() };
        assert_eq!(source.read().await.unwrap().unwrap().basic().unwrap().expose(), "Basic YW5uOm9uZQ==");
        std::fs::write(&file, "two").unwrap();
        assert_eq!(source.read().await.unwrap(), Some(password("ann", "two")));
    }

    #[tokio::test]
    async fn no_error_and_no_debug_text_shows_a_value() {
        let secret = "hunter2hunter2";
        for text in [
            format!(r#"{{"auths": {{"a.example": {{"auth": "{secret}"}}}}}}"#),
            format!(r#"{{"auths": "{secret}"}}"#),
            format!(r#"{{"auths": {{"a.example": {secret}}}}}"#),
        ] {
            let error = of(&text, "a.example").await.unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        }
        let shown =
            format!("{:?} {:?}", password("ann", secret), Credential::IdentityToken(Secret::new(secret)));
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
