//! What a text is: a key, a token, a document, a file of settings, a URL, something of these in base64, or a value.

use zeroize::Zeroizing;

use super::document::{Parsed, parse};
use super::keys::{Canonical, Domain};
use super::names::{self, Hint};
use super::public_key::PublicKey;
use super::siblings::Siblings;
use super::strength::{
    FLOOR_BITS, bits, is_known_token, is_path, is_placeholder, is_plain_data, is_uuid, is_wordy,
    looks_random, looks_secret, raw_bits,
};
use super::walk::{Place, Walk};
use super::{CredentialKind, PublicFacts, age, armor, certificate, fact, lines, pgp, ssh, token, url};

impl Walk<'_> {
    /// Walks over a text. The first reading that recognises something wins; a value is the last.
    pub(super) fn text(&mut self, at: &Place, text: &str, hint: Hint, facts: &PublicFacts) {
        let text = text
            .trim_matches(|letter: char| letter.is_whitespace() || letter == '\0' || letter == '\u{feff}');
        if text.is_empty() || !self.afford(at, text.len()) {
            return;
        }
        if !self.structure(at, text, hint, facts) && !self.encoded(at, text, hint, facts) {
            if text.contains('\n') {
                self.lines_of_text(at, text, hint, facts);
            } else {
                self.value(at, text, hint, facts);
            }
        }
    }

    /// Reads a text as anything but base64 or a value, and says whether it is.
    fn structure(&mut self, at: &Place, text: &str, hint: Hint, facts: &PublicFacts) -> bool {
        let before = self.seen;
        self.known_format(at, text, facts)
            || self.document(at, text, hint, facts)
            || self.settings(at, text, hint, facts)
            || self.login(at, text, hint, facts)
            // Text around a block, such as what `openssl pkcs12` writes.
            || text.contains("-----BEGIN ") && self.blocks(at, text, CredentialKind::PrivateKey, facts)
            || self.seen > before
    }

    /// Reads keys and tokens.
    fn known_format(&mut self, at: &Place, text: &str, facts: &PublicFacts) -> bool {
        if text.starts_with("-----BEGIN ") {
            return self.blocks(at, text, CredentialKind::PrivateKey, facts);
        }
        if text.lines().any(|line| line.trim_start().starts_with("AGE-SECRET-KEY-")) {
            return self.age_identities(at, text, facts);
        }
        if token::read(text).is_some() {
            self.secret(at, CredentialKind::JsonWebToken, text, &[], facts.clone());
            return true;
        }
        if ["ssh-rsa AAAA", "ssh-ed25519 AAAA", "ecdsa-sha2-", "age1"]
            .iter()
            .any(|start| text.starts_with(start))
        {
            self.public();
            return true;
        }
        false
    }

    /// Reads the PEM blocks of a text, and says whether there was one that is understood.
    pub(super) fn blocks(
        &mut self,
        at: &Place,
        text: &str,
        kind: CredentialKind,
        facts: &PublicFacts,
    ) -> bool {
        let unescaped = (!text.contains('\n')).then(|| armor::unescape(text));
        let before = self.seen;
        for block in armor::blocks(unescaped.as_ref().map_or(text, |text| text.as_str())) {
            match (block.label, block.bytes()) {
                (label, _)
                    if label.ends_with("PUBLIC KEY")
                        || label.contains("PARAMETERS")
                        || label == "X509 CRL" =>
                {
                    self.public();
                }
                (label, Some(bytes)) if label.ends_with("CERTIFICATE") => match certificate::read(&bytes) {
                    Some(certificate) => self.certificate(certificate),
                    None => self.public(),
                },
                ("OPENSSH PRIVATE KEY", Some(bytes)) => self.ssh_key(at, &bytes, facts),
                ("PGP PRIVATE KEY BLOCK", Some(bytes)) => self.pgp_keys(at, &bytes, facts),
                (label, Some(bytes)) if label.ends_with("PRIVATE KEY") => {
                    match PublicKey::of_private(&bytes).filter(|_| !block.is_encrypted()) {
                        Some(key) => self.key_pair(at, kind, key, facts.clone()),
                        None => self.closed_key(at, &bytes, block.is_encrypted(), facts),
                    }
                }
                _ => {}
            }
        }
        self.seen > before
    }

    /// Takes a private key whose public half cannot be read.
    fn closed_key(&mut self, at: &Place, bytes: &[u8], encrypted: bool, facts: &PublicFacts) {
        let kind = if encrypted { CredentialKind::EncryptedKey } else { CredentialKind::PrivateKey };
        // No real key is shorter, and something short could be guessed.
        let strong = bytes.len() >= 32 && raw_bits(bytes) >= FLOOR_BITS;
        self.push(at, kind, strong, &[Canonical::new(Domain::File, &[bytes])], facts.clone());
    }

    fn ssh_key(&mut self, at: &Place, bytes: &[u8], facts: &PublicFacts) {
        let Some(key) = ssh::read(bytes) else { return self.closed_key(at, bytes, false, facts) };
        let mut facts = facts.clone();
        facts.insert(fact::SSH_FINGERPRINT, key.fingerprint());
        match key.public {
            Some(public) => self.key_pair(at, CredentialKind::SshKey, public, facts),
            None => {
                self.push(
                    at,
                    CredentialKind::SshKey,
                    true,
                    &[Canonical::new(Domain::PublicKey, &[&key.blob])],
                    facts,
                );
            }
        }
    }

    fn pgp_keys(&mut self, at: &Place, bytes: &[u8], facts: &PublicFacts) {
        let keys = pgp::read(bytes);
        if keys.is_empty() {
            return self.closed_key(at, bytes, false, facts);
        }
        for key in keys {
            let mut facts = facts.clone();
            facts.insert(fact::PGP_FINGERPRINT, key.fingerprint);
            self.push(
                at,
                CredentialKind::PgpKey,
                true,
                &[Canonical::new(Domain::PublicKey, &[&key.public])],
                facts,
            );
        }
    }

    fn age_identities(&mut self, at: &Place, text: &str, facts: &PublicFacts) -> bool {
        let before = self.seen;
        for word in age::candidates(text) {
            let Some(identity) = age::read(word) else {
                self.secret(at, CredentialKind::AgeIdentity, word, &[], facts.clone());
                continue;
            };
            let mut facts = facts.clone();
            facts.insert(fact::RECIPIENT, identity.recipient);
            let form = Canonical::new(Domain::PublicKey, &[b"age", &identity.public]);
            self.push(at, CredentialKind::AgeIdentity, true, &[form], facts);
        }
        self.seen > before
    }

    /// Reads JSON and YAML. One line counts only if there is something in it.
    fn document(&mut self, at: &Place, text: &str, hint: Hint, facts: &PublicFacts) -> bool {
        let before = self.seen;
        match parse(text, &self.nodes) {
            Parsed::Other => return false,
            Parsed::Cut(reason) => self.unread(at, reason),
            Parsed::Documents(documents) => {
                // The name of a file says less than that of a value, and where a value is public a document is not.
                let hint = if hint == Hint::Secret { Hint::Within } else { Hint::Leaf };
                for document in &documents {
                    self.node(at, document, hint, facts);
                }
            }
        }
        text.contains('\n') || text.starts_with(['{', '[']) || self.seen > before
    }

    /// Reads files of settings and of passwords.
    fn settings(&mut self, at: &Place, text: &str, hint: Hint, facts: &PublicFacts) -> bool {
        if let Some(users) = lines::password_file(text) {
            for (user, hash) in users {
                let mut facts = facts.clone();
                facts.insert(fact::USER, user.to_owned());
                // Without salt, a hash is as easy to guess as its password.
                let salted = !hash.starts_with("{SHA}");
                self.push(at, CredentialKind::PasswordHash, salted, &[Canonical::value(hash)], facts);
            }
            return true;
        }
        // Base64 may end like a setting without a value.
        if !text.trim_end_matches('=').contains(['=', ':']) {
            return false;
        }
        let Some(sections) = lines::sections(text) else { return false };
        let before = self.seen;
        let hint = if hint == Hint::Secret { Hint::Within } else { Hint::Leaf };
        for section in &sections {
            self.map(at, section, hint, facts);
        }
        text.contains('\n') || text.starts_with("--") || self.seen > before
    }

    /// Reads URLs and connection strings.
    fn login(&mut self, at: &Place, text: &str, hint: Hint, facts: &PublicFacts) -> bool {
        let before = self.seen;
        if let Some(url) = url::read(text) {
            self.url(at, text, &url, hint, facts);
        } else if let Some(pairs) = url::connection_string(text) {
            self.pairs(at, &pairs, facts);
        }
        self.seen > before
    }

    fn url(&mut self, at: &Place, text: &str, url: &url::Url<'_>, hint: Hint, facts: &PublicFacts) {
        let mut facts = facts.clone();
        let host = url::host(&url.host);
        facts.insert(fact::HOST, host.clone());
        let marker =
            |password: &str| password.is_empty() || password == "x-oauth-basic" || password == "x-token-auth";
        match (&url.user, &url.password) {
            (user, Some(password)) if !marker(password) => {
                let user = user.as_ref().map_or("", |user| user.as_str());
                facts.insert(fact::USER, user.to_owned());
                self.secret(at, CredentialKind::Login, password, &[&host, user], facts.clone());
            }
            // A token in the place of the user. `ssh://git@…` is none.
            (Some(user), _) if bits(user) >= FLOOR_BITS || looks_secret(user) => {
                self.secret(at, CredentialKind::Login, user, &[], facts.clone());
            }
            _ => {}
        }
        self.pairs(at, &url.query, &facts);
        let known = ["hooks.slack.com", "discord.com", "discordapp.com", "api.telegram.org"]
            .contains(&host.as_str())
            || host.ends_with("webhook.office.com");
        let secret_path =
            url.path.split('/').any(|part| part.len() >= 20 && looks_random(part) && !is_uuid(part));
        if url.scheme.starts_with("http") && (known || hint >= Hint::Whole) && secret_path {
            self.secret(at, CredentialKind::Webhook, text.trim_end_matches('/'), &[], facts);
        }
    }

    fn pairs(&mut self, at: &Place, pairs: &[(Zeroizing<String>, Zeroizing<String>)], outer: &PublicFacts) {
        let siblings = Siblings::of(pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        for (position, (name, value)) in pairs.iter().enumerate() {
            if names::hint(name, Hint::Leaf) == Hint::Secret {
                let mut facts = outer.clone();
                facts.extend(siblings.facts(name));
                self.secret(&at.child(name, position), CredentialKind::Value, value, &[], facts);
            }
        }
    }

    /// Reads base64 of something that is recognised. Base64 of a mere value is left to [`Walk::secret`].
    fn encoded(&mut self, at: &Place, text: &str, hint: Hint, facts: &PublicFacts) -> bool {
        if text.len() < 16 || text.contains(' ') {
            return false;
        }
        let Some(bytes) = armor::decode(text) else { return false };
        let Ok(inside) = std::str::from_utf8(&bytes).map(str::trim) else {
            return self.binary(at, &bytes, facts);
        };
        let readable = inside.chars().all(|letter| !letter.is_control() || letter.is_whitespace());
        if !readable || inside.is_empty() || !self.afford(at, inside.len()) {
            return false;
        }
        let before = self.seen;
        // A line `a: b` or `a=b` may be a password.
        if inside.contains('\n') || inside.starts_with(['{', '[', '-']) || inside.contains("://") {
            self.structure(at, inside, hint, facts);
        } else {
            self.known_format(at, inside, facts);
        }
        self.seen > before
    }

    /// Looks for secrets in a text of lines that has no format that is known as a whole.
    fn lines_of_text(&mut self, at: &Place, text: &str, hint: Hint, facts: &PublicFacts) {
        let before = self.seen;
        for (position, line) in text.lines().enumerate() {
            let place = at.child(&format!("line {}", position + 1), position);
            if let Some((name, value)) =
                lines::pair(line.trim()).filter(|(name, _)| names::hint(name, Hint::Leaf) == Hint::Secret)
            {
                self.value(&place.child(name, 0), value, Hint::Whole, facts);
                continue;
            }
            let mut previous = "";
            for word in line.split(|letter: char| letter.is_whitespace() || "\"'`,;()<>".contains(letter)) {
                let named = ["password", "passwd", "requirepass", "masterauth"].contains(&previous);
                if word.contains("://") {
                    self.login(&place, word, Hint::Leaf, facts);
                } else if token::read(word).is_some() {
                    self.secret(&place, CredentialKind::JsonWebToken, word, &[], facts.clone());
                } else if named || is_known_token(word) {
                    self.value(&place, word, Hint::Whole, facts);
                }
                previous = word;
            }
        }
        // Base64 or digits in lines: one value. Prose and scripts have blanks in their lines.
        if self.seen == before
            && hint >= Hint::Whole
            && !text.lines().any(|line| line.trim().contains(char::is_whitespace))
        {
            let mut joined = Zeroizing::new(String::with_capacity(text.len()));
            joined.extend(text.lines().map(str::trim));
            self.value(at, &joined, hint, facts);
        }
    }

    /// Takes a text that is nothing else, if it counts as a secret where it is.
    fn value(&mut self, at: &Place, text: &str, hint: Hint, facts: &PublicFacts) {
        if is_placeholder(text) {
            return;
        }
        let strong =
            || bits(text) >= FLOOR_BITS && !text.contains(char::is_whitespace) && !is_plain_data(text);
        let counts = match hint {
            Hint::Public => is_known_token(text),
            Hint::Leaf => looks_secret(text) && !is_digest(text),
            Hint::Within => looks_secret(text) || strong() && !is_wordy(text),
            Hint::Whole => looks_secret(text) || strong(),
            Hint::Secret => !is_path(text) && !text.starts_with("http://") && !text.starts_with("https://"),
        };
        if !counts {
            return;
        }
        let kind = if facts.contains_key(fact::ACCESS_KEY_ID) && text.len() == 40 {
            CredentialKind::AwsSecretKey
        } else if facts.contains_key(fact::TENANT_ID) && hint == Hint::Secret {
            CredentialKind::AzureSecret
        } else {
            CredentialKind::Value
        };
        self.secret(at, kind, text, &[], facts.clone());
    }
}

/// Says whether a text is a digest or a commit, of which documents are full.
fn is_digest(text: &str) -> bool {
    [32, 40, 64, 128].contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}
