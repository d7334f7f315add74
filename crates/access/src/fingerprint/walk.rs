//! One walk over one object: its bounds, its places, and how what it meets becomes a [`Credential`].

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::MultiGzDecoder;
use zeroize::Zeroizing;

use super::document::Node;
use super::keys::{Canonical, Domain};
use super::names::{self, Hint};
use super::public_key::PublicKey;
use super::siblings::Siblings;
use super::strength::{FLOOR_BITS, is_placeholder, looks_secret, may_be_shown, raw_bits};
use super::{
    Credential, CredentialKind, Extraction, Extractor, Origin, PublicFacts, Unread, UnreadReason, armor,
    certificate, fact, strength, token,
};

/// All text of an object together, after decompression and decoding. A Secret has 1 MiB at most, so this is plenty for
/// a Helm release and little for a bomb.
const BYTES_MAX: usize = 64 << 20;
const NODES_MAX: usize = 200_000;
const CREDENTIALS_MAX: usize = 2000;
const UNREAD_MAX: usize = 100;
/// Levels with documents within documents.
const DEPTH_MAX: usize = 64;
const FACT_CHARACTERS_MAX: usize = 256;
/// Binary files above this size are no keys.
const BINARY_BYTES_MAX: usize = 4096;

/// Where in an object the walk is.
#[derive(Clone)]
pub(super) struct Place {
    key: String,
    depth: usize,
}

impl Place {
    pub(super) fn root() -> Self {
        Self { key: String::new(), depth: 0 }
    }

    /// Goes to a named part. `position` is shown instead of a name that could be secret.
    pub(super) fn child(&self, name: &str, position: usize) -> Self {
        let name = names::shown(name, position);
        let separator = match (self.key.is_empty(), self.key.contains('#')) {
            (true, _) => "",
            (false, false) => "#",
            (false, true) => "/",
        };
        Self { key: format!("{}{separator}{name}", self.key), depth: self.depth + 1 }
    }
}

/// What was met so far.
pub(super) struct Walk<'a> {
    extractor: &'a Extractor,
    credentials: Vec<Credential>,
    certificates: Vec<certificate::Facts>,
    unread: BTreeSet<Unread>,
    /// Values that were taken for secrets. None of them may be shown as a fact.
    secrets: Vec<Zeroizing<String>>,
    /// How much was recognised, as credential or as none.
    pub(super) seen: usize,
    pub(super) nodes: Cell<usize>,
    bytes: usize,
}

impl<'a> Walk<'a> {
    pub(super) fn new(extractor: &'a Extractor) -> Self {
        Self {
            extractor,
            credentials: Vec::new(),
            certificates: Vec::new(),
            unread: BTreeSet::new(),
            secrets: Vec::new(),
            seen: 0,
            nodes: Cell::new(NODES_MAX),
            bytes: BYTES_MAX,
        }
    }

    /// Walks over the decoded values of a Secret or of something like it.
    pub(super) fn data(&mut self, at: &Place, origin: Origin<'_>, data: &[(&str, &[u8])]) {
        let texts =
            || data.iter().filter_map(|(name, bytes)| Some((*name, std::str::from_utf8(bytes).ok()?)));
        if origin == Origin::Secret("bootstrap.kubernetes.io/token") && self.bootstrap_token(at, texts()) {
            return;
        }
        let mut siblings = Siblings::of(texts());
        siblings.argo_cluster(texts());
        let otherwise = if matches!(origin, Origin::Secret(_)) { Hint::Whole } else { Hint::Leaf };
        for (position, (name, bytes)) in data.iter().enumerate() {
            self.bytes(&at.child(name, position), bytes, names::hint(name, otherwise), &siblings.facts(name));
        }
    }

    /// Walks over bytes that may be text, compressed, a key or a file.
    pub(super) fn bytes(&mut self, at: &Place, bytes: &[u8], hint: Hint, facts: &PublicFacts) {
        if let Ok(text) = std::str::from_utf8(bytes) {
            self.text(at, text, hint, facts);
        } else if !self.binary(at, bytes, facts)
            && (hint == Hint::Secret || hint == Hint::Whole && bytes.len() <= BINARY_BYTES_MAX)
        {
            let text = Zeroizing::new(STANDARD.encode(bytes));
            let strong = raw_bits(bytes).min(strength::bits(&text)) >= FLOOR_BITS;
            // Text formats carry raw bytes as base64, so that is what both are.
            self.push(at, CredentialKind::Value, strong, &[Canonical::value(&text)], facts.clone());
        }
    }

    /// Walks over bytes of a known binary format, and says whether they are of one.
    pub(super) fn binary(&mut self, at: &Place, bytes: &[u8], facts: &PublicFacts) -> bool {
        if bytes.starts_with(&[0x1f, 0x8b]) {
            self.compressed(at, bytes, facts);
        } else if let Some(key) = PublicKey::of_private(bytes) {
            self.key_pair(at, CredentialKind::PrivateKey, key, facts.clone());
        } else if let Some(certificate) = certificate::read(bytes) {
            self.certificate(certificate);
        } else if is_keystore(bytes) {
            self.push(
                at,
                CredentialKind::Keystore,
                true,
                &[Canonical::new(Domain::File, &[bytes])],
                facts.clone(),
            );
        } else {
            return false;
        }
        true
    }

    fn compressed(&mut self, at: &Place, bytes: &[u8], facts: &PublicFacts) {
        let Some(plain) = unpack(bytes, self.bytes).filter(|_| at.depth < DEPTH_MAX) else {
            return self.unread(at, UnreadReason::TooLarge);
        };
        self.bytes -= plain.len();
        let inside = Place { depth: at.depth + 1, ..at.clone() };
        self.bytes(&inside, &plain, Hint::Leaf, facts);
    }

    /// Notes that something was recognised and is no credential.
    pub(super) fn public(&mut self) {
        self.seen += 1;
    }

    /// Takes a certificate, whose facts go to the credential with its key.
    pub(super) fn certificate(&mut self, certificate: certificate::Facts) {
        self.public();
        if self.certificates.len() < CREDENTIALS_MAX {
            self.certificates.push(certificate);
        }
    }

    /// Takes a key pair by its public half.
    pub(super) fn key_pair(
        &mut self,
        at: &Place,
        kind: CredentialKind,
        key: PublicKey,
        mut facts: PublicFacts,
    ) {
        facts.insert(fact::SPKI, key.hex());
        self.push(at, kind, true, &[Canonical::new(Domain::PublicKey, &[&key.0])], facts);
    }

    /// Takes a text that is a secret for sure, unless it is a placeholder or a token that is over.
    ///
    /// `login` makes it a login as well: what goes before the password.
    pub(super) fn secret(
        &mut self,
        at: &Place,
        kind: CredentialKind,
        text: &str,
        login: &[&str],
        mut facts: PublicFacts,
    ) {
        let text = text.trim();
        if is_placeholder(text) {
            return;
        }
        let mut forms = Vec::new();
        if !login.is_empty() {
            let parts: Vec<_> = login.iter().chain([&text]).map(|part| part.as_bytes()).collect();
            forms.push(Canonical::new(Domain::Login, &parts));
        }
        forms.push(Canonical::value(text));
        if let Some(token) = token::read(text) {
            if token.is_expired(self.extractor.now_seconds) {
                return self.public();
            }
            if let Some(id) = &token.id {
                let claims = [token.issuer.as_bytes(), token.subject.as_bytes(), id.as_bytes()];
                forms.push(Canonical::new(Domain::TokenId, &claims));
            }
            facts.extend(token.facts);
        }
        let decoded = armor::decode_text(text);
        let bits = decoded.iter().map(|decoded| strength::bits(decoded)).fold(strength::bits(text), f64::min);
        if let Some(decoded) = decoded.filter(|decoded| !is_placeholder(decoded)) {
            forms.push(Canonical::value(&decoded));
            self.secrets.push(decoded);
        }
        self.secrets.push(Zeroizing::new(text.to_owned()));
        self.push(at, kind, bits >= FLOOR_BITS, &forms, facts);
    }

    /// Takes a credential in its canonical forms.
    pub(super) fn push(
        &mut self,
        at: &Place,
        kind: CredentialKind,
        strong: bool,
        forms: &[Canonical],
        facts: PublicFacts,
    ) {
        self.seen += 1;
        if self.credentials.len() >= CREDENTIALS_MAX {
            return self.unread(at, UnreadReason::TooMany);
        }
        let (mut fingerprints, mut local) = (Vec::new(), Vec::new());
        for form in forms {
            if strong {
                fingerprints.push(self.extractor.key.fingerprint(form));
            } else {
                local.push(self.extractor.local.mark(form));
            }
        }
        self.credentials.push(Credential {
            key: at.key.clone(),
            kind,
            fingerprints,
            local,
            weak: !strong,
            facts,
        });
    }

    /// Takes text off the budget, and says whether there was enough.
    pub(super) fn afford(&mut self, at: &Place, bytes: usize) -> bool {
        let reason = if at.depth > DEPTH_MAX { UnreadReason::TooDeep } else { UnreadReason::TooLarge };
        match self.bytes.checked_sub(bytes).filter(|_| at.depth <= DEPTH_MAX) {
            Some(left) => {
                self.bytes = left;
                true
            }
            None => {
                self.unread(at, reason);
                false
            }
        }
    }

    /// Notes that a part was not looked into. What is left of an object with too much in it is said once.
    pub(super) fn unread(&mut self, at: &Place, reason: UnreadReason) {
        let said =
            reason == UnreadReason::TooMany && self.unread.iter().any(|unread| unread.reason == reason);
        if !said && self.unread.len() < UNREAD_MAX {
            self.unread.insert(Unread { key: at.key.clone(), reason });
        }
    }

    /// Walks over a part of a document.
    pub(super) fn node(&mut self, at: &Place, node: &Node, hint: Hint, facts: &PublicFacts) {
        if at.depth > DEPTH_MAX {
            return self.unread(at, UnreadReason::TooDeep);
        }
        match node {
            Node::Text(text) => self.text(at, text, hint, facts),
            Node::List(items) => {
                for (position, item) in items.iter().enumerate() {
                    self.node(&at.child(&position.to_string(), position), item, hint, facts);
                }
            }
            Node::Map(entries) => {
                if !self.known_shape(at, node, facts) {
                    self.map(at, entries, hint, facts);
                }
            }
            Node::Nothing => {}
        }
    }

    /// Walks over names and values that belong together. `hint` is what the name of the map itself says.
    pub(super) fn map(
        &mut self,
        at: &Place,
        entries: &[(Zeroizing<String>, Node)],
        hint: Hint,
        outer: &PublicFacts,
    ) {
        // A name that says nothing inside `passwords:` has a secret; but so have `secret: {name: …}` and others not.
        let otherwise = match hint {
            Hint::Secret | Hint::Whole | Hint::Within => Hint::Within,
            Hint::Leaf | Hint::Public => Hint::Leaf,
        };
        let siblings =
            Siblings::of(entries.iter().filter_map(|(name, node)| Some((name.as_str(), node.text()?))));
        let own_name =
            entries.iter().find(|(name, _)| name.as_str() == "name").and_then(|(_, node)| node.text());
        for (position, (name, node)) in entries.iter().enumerate() {
            if looks_secret(name) {
                self.secret(&at.child("", position), CredentialKind::Value, name, &[], outer.clone());
            }
            let mut facts = outer.clone();
            facts.extend(siblings.facts(name));
            // The environment of containers, and much else, has `{name: TOKEN, value: …}`.
            let (name, place) = match own_name {
                Some(own_name) if name.as_str() == "value" => (own_name, at.child(own_name, position)),
                _ => (name.as_str(), at.child(name, position)),
            };
            let hint = names::hint(name, otherwise);
            match node {
                Node::Text(text) if hint == Hint::Secret && names::is_reference(name, text) => {}
                // What a whole map shares is said to the values right beside it only.
                Node::Map(_) | Node::List(_) => self.node(&place, node, hint, &siblings.facts("")),
                _ => self.node(&place, node, hint, &facts),
            }
        }
    }

    /// Ends the walk: certificates go to their keys, and no fact repeats a secret.
    pub(super) fn finish(mut self) -> Extraction {
        let mut judged: HashMap<String, bool> = HashMap::new();
        let secrets: Vec<_> =
            self.secrets.iter().map(|secret| Zeroizing::new(secret.to_lowercase())).collect();
        let certificates: HashMap<_, _> =
            self.certificates.iter().map(|certificate| (certificate.key.hex(), &certificate.facts)).collect();
        for credential in &mut self.credentials {
            let certificate = credential.facts.get(fact::SPKI).and_then(|spki| certificates.get(spki));
            credential.facts.extend(certificate.into_iter().flat_map(|facts| (*facts).clone()));
            credential.facts.retain(|name, value| {
                let judge = |value: &String| secrets.iter().any(|secret| tells(value, secret));
                may_be_published(name, value)
                    && !*judged.entry(value.to_lowercase()).or_insert_with_key(judge)
            });
            for value in credential.facts.values_mut() {
                *value = value
                    .chars()
                    .take(FACT_CHARACTERS_MAX)
                    .map(|c| if c.is_control() { '\u{fffd}' } else { c })
                    .collect();
            }
        }
        let mut kept = BTreeSet::new();
        self.credentials.retain(|credential| {
            let marks: Vec<_> = credential.marks().collect();
            kept.insert((credential.key.clone(), credential.kind, marks))
        });
        Extraction { credentials: self.credentials, unread: self.unread.into_iter().collect() }
    }
}

/// Unpacks gzip up to a limit; nothing if there is more. What comes before an error is still looked at.
fn unpack(bytes: &[u8], limit: usize) -> Option<Zeroizing<Vec<u8>>> {
    let mut reader = MultiGzDecoder::new(bytes);
    let mut plain = Zeroizing::new(Vec::with_capacity(bytes.len().saturating_mul(8).min(1 << 20)));
    let mut chunk = Zeroizing::new(vec![0; 16 << 10]);
    while let Ok(length @ 1..) = reader.read(&mut chunk) {
        if plain.len() + length > limit {
            return None;
        }
        if plain.len() + length > plain.capacity() {
            // A vector that grows by itself leaves its old content behind.
            let mut larger = Zeroizing::new(Vec::with_capacity(2 * plain.capacity() + length));
            larger.extend_from_slice(&plain);
            plain = larger;
        }
        plain.extend_from_slice(chunk.get(..length)?);
    }
    Some(plain)
}

/// What people typed may be a secret in a place for something else. Facts of other names have a form of their own, or
/// are what an issuer signed.
fn may_be_published(name: &str, value: &str) -> bool {
    match name {
        fact::USER | fact::HOST | fact::SERVER | fact::CLIENT_EMAIL | fact::PROJECT_ID => {
            !value.is_empty() && may_be_shown(value)
        }
        fact::PRIVATE_KEY_ID => value.len() == 40 && value.bytes().all(|byte| byte.is_ascii_hexdigit()),
        _ => !value.is_empty(),
    }
}

/// Hosts are shown in lower case, so that is how both are compared.
fn tells(value: &str, secret: &str) -> bool {
    value == secret || secret.len() >= 8 && value.contains(secret)
}

/// JKS and JCEKS begin with a number of their own, PKCS#12 (RFC 7292) with a sequence whose version is 3.
fn is_keystore(bytes: &[u8]) -> bool {
    let pkcs12 = bytes.first() == Some(&0x30)
        && bytes.get(..12).is_some_and(|head| head.windows(3).any(|w| w == [2, 1, 3]));
    bytes.starts_with(&[0xfe, 0xed, 0xfe, 0xed]) || bytes.starts_with(&[0xce, 0xce, 0xce, 0xce]) || pkcs12
}
