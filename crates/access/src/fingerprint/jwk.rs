//! JSON web keys (RFC 7517, 7518 and 8037). Public ones are no credentials.

use zeroize::Zeroizing;

use super::armor::decode;
use super::document::Node;
use super::public_key::PublicKey;
use super::walk::{Place, Walk};
use super::{CredentialKind, PublicFacts};

impl Walk<'_> {
    /// Takes a private or symmetric key.
    pub(super) fn json_web_key(&mut self, at: &Place, key: &Node, facts: &PublicFacts) {
        let member = |name: &str| key.text_at(name);
        match (member("kty"), member("k"), member("d")) {
            (Some("oct"), Some(secret), _) => {
                self.secret(&at.child("k", 0), CredentialKind::Value, secret, &[], facts.clone());
            }
            (_, _, Some(secret)) => match public(key) {
                Some(public) => self.key_pair(at, CredentialKind::PrivateKey, public, facts.clone()),
                None => {
                    self.secret(&at.child("d", 0), CredentialKind::PrivateKey, secret, &[], facts.clone())
                }
            },
            _ => self.public(),
        }
    }
}

fn public(key: &Node) -> Option<PublicKey> {
    let member = |name: &str| key.text_at(name).and_then(decode);
    match key.text_at("kty")? {
        "RSA" => PublicKey::rsa(&member("n")?, &member("e")?),
        "EC" => {
            let point = Zeroizing::new([&[4], member("x")?.as_slice(), member("y")?.as_slice()].concat());
            PublicKey::ec_of_jwk(key.text_at("crv")?, &point)
        }
        "OKP" if key.text_at("crv") == Some("Ed25519") => PublicKey::ed25519(&member("x")?),
        _ => None,
    }
}
