//! Which credentials lie in a Secret, as fingerprints that can be compared without showing a value.
//!
//! One credential has one fingerprint, whatever it is encoded as: a registry password in a pull secret, in an
//! environment variable and in a URL; a key as PKCS#1, PKCS#8, OpenSSH or within a kubeconfig. So two places that
//! share a fingerprint share a credential.
//!
//! INVARIANT: no output holds, shows or serialises a secret value, or anything of a weak one that could be tried
//! against guesses outside this process. Copies made here are zeroised; buffers inside the parsers of JSON, YAML and
//! gzip are not ours to clear.
//!
//! Not opened, and compared as whole files: PKCS#12 and Java keystores, and encrypted keys but those of OpenSSH and
//! OpenPGP, which show their public half.

mod age;
mod armor;
mod certificate;
mod document;
mod jwk;
mod keys;
mod lines;
mod names;
mod pgp;
mod public_key;
mod shapes;
mod siblings;
mod ssh;
mod strength;
#[cfg(test)]
mod tests;
mod text;
mod token;
mod url;
mod walk;

use std::collections::BTreeMap;

use serde::Serialize;

pub use keys::{Fingerprint, FingerprintKey, LocalKey, LocalMark, NotAFingerprint, WeakKey};

/// Finds credentials and fingerprints them under one pair of keys.
#[derive(Debug)]
pub struct Extractor {
    /// Makes what is exported.
    pub key: FingerprintKey,
    /// Makes what stays in this process.
    pub local: LocalKey,
    /// The time in seconds of Unix, by which tokens are over. This crate reads no clock.
    pub now_seconds: i64,
}

/// Where values come from, which decides how much is taken for a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin<'a> {
    /// A Secret of this type, as in its field `type`. A strong value counts even if its name says nothing.
    Secret(&'a str),
    /// A ConfigMap, the environment of a container, annotations. Only what is named like a secret, has a format of
    /// one, or looks random counts.
    Plain,
}

impl Extractor {
    /// Returns the credentials in the decoded values of one object, by their names.
    ///
    /// Never fails: what is malformed is a plain value. The caller zeroises `data`.
    pub fn credentials<V: AsRef<[u8]>>(&self, origin: Origin<'_>, data: &BTreeMap<String, V>) -> Extraction {
        let data: Vec<_> = data.iter().map(|(name, value)| (name.as_str(), value.as_ref())).collect();
        let mut walk = walk::Walk::new(self);
        walk.data(&walk::Place::root(), origin, &data);
        walk.finish()
    }
}

/// What was found in one object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Extraction {
    /// In the order of the data.
    pub credentials: Vec<Credential>,
    /// What was not looked into. If there is any, the answer is not complete.
    pub unread: Vec<Unread>,
}

/// A part of an object that was not looked into.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Unread {
    /// Where, as in [`Credential::key`].
    pub key: String,
    /// Why.
    pub reason: UnreadReason,
}

/// Why a part was not looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnreadReason {
    /// More than 64 MiB of text in one object, where each decoding and unpacking counts again.
    TooLarge,
    /// More than 40 levels in a document, or 64 with documents within documents.
    TooDeep,
    /// More than 2000 credentials or 200000 nodes in one object.
    TooMany,
}

/// One credential, without its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Credential {
    /// The name of the value it was found in, with the place inside after a `#`:
    /// `.dockerconfigjson#auths/registry.example`. A part that could be secret itself is shown as its position, `(2)`.
    pub key: String,
    /// What it is.
    pub kind: CredentialKind,
    /// What stands for it: first for the whole (a login, a key pair, a value), then for parts under which it is met
    /// elsewhere (the password alone). Empty if it is weak.
    pub fingerprints: Vec<Fingerprint>,
    /// The same for a weak one, for comparison inside this process alone.
    #[serde(skip)]
    pub local: Vec<LocalMark>,
    /// Too easy to guess (below about 40 bits) for a fingerprint to be exported.
    pub weak: bool,
    /// What is public about it, by the names in [`fact`].
    pub facts: PublicFacts,
}

impl Credential {
    /// Says whether both are, or contain, the same credential.
    pub fn shares_with(&self, other: &Self) -> bool {
        self.marks().any(|mark| other.marks().any(|others| mark == others))
    }

    /// Returns all that stands for it, to index credentials by.
    pub fn marks(&self) -> impl Iterator<Item = Mark> + '_ {
        let exported = self.fingerprints.iter().copied().map(Mark::Exported);
        exported.chain(self.local.iter().copied().map(Mark::Local))
    }
}

/// What credentials are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mark {
    /// May leave the process.
    Exported(Fingerprint),
    /// May not, and cannot be written.
    Local(LocalMark),
}

/// What a credential is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CredentialKind {
    /// An age identity.
    AgeIdentity,
    /// The secret half of an AWS access key.
    AwsSecretKey,
    /// A client secret of Azure, beside its tenant.
    AzureSecret,
    /// A bootstrap token of a cluster.
    BootstrapToken,
    /// A private key that is encrypted and has no readable public half.
    EncryptedKey,
    /// A key of a Google service account.
    GcpServiceAccountKey,
    /// A JSON web token, such as that of a ServiceAccount.
    JsonWebToken,
    /// A PKCS#12 or Java keystore, as a whole.
    Keystore,
    /// A client key in a kubeconfig or in a cluster Secret of Argo CD.
    KubeClientKey,
    /// A user and password there.
    KubeLogin,
    /// A token there.
    KubeToken,
    /// A user and password for a host, from a URL.
    Login,
    /// The salted hash of a password. Equal ones are copies.
    PasswordHash,
    /// An OpenPGP secret key.
    PgpKey,
    /// A private key of TLS or signing, also as a JSON web key.
    PrivateKey,
    /// A login of a container registry.
    RegistryLogin,
    /// A private key in OpenSSH's format.
    SshKey,
    /// A password, token or other value.
    Value,
    /// A URL that is a secret as a whole.
    Webhook,
}

/// What is public about a credential: names from [`fact`], values as text of at most 256 characters.
pub type PublicFacts = BTreeMap<&'static str, String>;

/// The names of public facts.
pub mod fact {
    /// `AKIA…` or `ASIA…`.
    pub const ACCESS_KEY_ID: &str = "accessKeyId";
    /// `aud` of a token, joined by commas.
    pub const AUD: &str = "aud";
    /// SHA-256 of the SubjectPublicKeyInfo of a cluster's CA, in hexadecimal. Who holds that CA's private key has the
    /// same value under [`SPKI`].
    pub const CA_SPKI: &str = "caSpki";
    /// Of a Google service account.
    pub const CLIENT_EMAIL: &str = "clientEmail";
    /// Of an application in Azure.
    pub const CLIENT_ID: &str = "clientId";
    /// `exp` of a token, in seconds of Unix.
    pub const EXP: &str = "exp";
    /// The registry, database or other server, normalised.
    pub const HOST: &str = "host";
    /// `true` or `false`: whether the certificate of a key may sign others.
    pub const IS_CA: &str = "isCa";
    /// `iss` of a token.
    pub const ISS: &str = "iss";
    /// The issuer of the certificate of a key (RFC 4514).
    pub const ISSUER: &str = "issuer";
    /// The end of the certificate of a key (RFC 3339).
    pub const NOT_AFTER: &str = "notAfter";
    /// The fingerprint of an OpenPGP key, as `.sops.yaml` has it.
    pub const PGP_FINGERPRINT: &str = "pgpFingerprint";
    /// The id of a key of Google.
    pub const PRIVATE_KEY_ID: &str = "privateKeyId";
    /// The project of a Google service account.
    pub const PROJECT_ID: &str = "projectId";
    /// The recipient of an age identity, as `.sops.yaml` has it.
    pub const RECIPIENT: &str = "recipient";
    /// The API server that a kubeconfig goes to.
    pub const SERVER: &str = "server";
    /// SHA-256 of the SubjectPublicKeyInfo of a key pair, in hexadecimal.
    pub const SPKI: &str = "spki";
    /// The fingerprint of a key as `ssh-keygen -l` prints it.
    pub const SSH_FINGERPRINT: &str = "sshFingerprint";
    /// `sub` of a token.
    pub const SUB: &str = "sub";
    /// The subject of the certificate of a key (RFC 4514).
    pub const SUBJECT: &str = "subject";
    /// Of Azure.
    pub const TENANT_ID: &str = "tenantId";
    /// Who logs in.
    pub const USER: &str = "user";
}
