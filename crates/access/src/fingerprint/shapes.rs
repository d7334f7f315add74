//! Documents of known shape: pull secrets, kubeconfigs, cluster Secrets of Argo CD, keys of Google, Helm releases,
//! Secrets within documents.

use zeroize::Zeroizing;

use super::document::Node;
use super::keys::Canonical;
use super::names::Hint;
use super::siblings::Siblings;
use super::strength::{FLOOR_BITS, bits};
use super::walk::{Place, Walk};
use super::{CredentialKind, Origin, PublicFacts, armor, certificate, fact, url};

impl Walk<'_> {
    /// Walks over a map of known shape, and says whether it is one.
    pub(super) fn known_shape(&mut self, at: &Place, map: &Node, facts: &PublicFacts) -> bool {
        if let Some(auths) = map.at("auths").filter(|auths| !auths.entries().is_empty()) {
            self.registry_logins(&at.child("auths", 0), auths);
        } else if is_dockercfg(map) {
            self.registry_logins(at, map);
        } else if map.text_at("kind") == Some("Config") && map.at("users").is_some() {
            self.kubeconfig(at, map);
        } else if map.at("tlsClientConfig").is_some() || map.text_at("bearerToken").is_some() {
            self.argo_cluster(at, map, facts);
        } else if map.text_at("type") == Some("service_account") && map.text_at("private_key").is_some() {
            self.google_key(at, map);
        } else if map.text_at("kty").is_some() {
            self.json_web_key(at, map, facts);
        } else if map.at("chart").is_some() && map.at("manifest").is_some() && map.at("info").is_some() {
            self.helm_release(at, map);
        } else if map.text_at("kind") == Some("Secret")
            && (map.at("data").is_some() || map.at("stringData").is_some())
        {
            self.secret_manifest(at, map);
        } else {
            return false;
        }
        true
    }

    /// Reads `{REGISTRY: {username, password, auth, identitytoken}}`, where `auth` is base64 of `user:password`.
    fn registry_logins(&mut self, at: &Place, auths: &Node) {
        for (position, (address, entry)) in auths.entries().iter().enumerate() {
            let place = at.child(address, position);
            let host = url::host(address);
            let mut seen: Vec<(Zeroizing<String>, Zeroizing<String>)> = Vec::new();
            if let Some(password) = entry.text_at("password") {
                let user = entry.text_at("username").unwrap_or_default();
                seen.push((Zeroizing::new(user.to_owned()), Zeroizing::new(password.to_owned())));
            }
            let auth = entry.text_at("auth").and_then(armor::decode);
            if let Some((user, password)) =
                auth.as_ref().and_then(|auth| std::str::from_utf8(auth).ok()?.split_once(':'))
            {
                let login =
                    (Zeroizing::new(user.to_owned()), Zeroizing::new(password.trim_matches('\0').to_owned()));
                if !seen.contains(&login) {
                    seen.push(login);
                }
            }
            for (user, password) in seen.iter().filter(|(_, password)| !password.is_empty()) {
                let mut facts = PublicFacts::from([(fact::HOST, host.clone())]);
                facts.insert(fact::USER, user.to_string());
                self.secret(&place, CredentialKind::RegistryLogin, password, &[&host, user], facts.clone());
                // `_json_key`: the password is a whole key file.
                self.text(&place, password, Hint::Public, &facts);
            }
            for name in ["identitytoken", "registrytoken"] {
                if let Some(token) = entry.text_at(name) {
                    let facts = PublicFacts::from([(fact::HOST, host.clone())]);
                    self.secret(&place.child(name, 0), CredentialKind::RegistryLogin, token, &[], facts);
                }
            }
        }
    }

    /// Reads a kubeconfig: `clientcmd/api/v1` of Kubernetes.
    fn kubeconfig(&mut self, at: &Place, config: &Node) {
        let users = config.at("users").map(Node::items).unwrap_or_default();
        for (position, entry) in users.iter().enumerate() {
            let name = entry.text_at("name").unwrap_or_default();
            let Some(user) = entry.at("user") else { continue };
            let place = at.child("users", 0).child(name, position);
            let mut facts = clusters_of(config, name);
            facts.insert(fact::USER, name.to_owned());
            self.kube_user(&place, user, &facts, ["token", "client-key-data", "client-certificate-data"]);
            for (position, (name, node)) in user.entries().iter().enumerate() {
                if matches!(name.as_str(), "auth-provider" | "exec") {
                    self.node(&place.child(name, position), node, Hint::Leaf, &facts);
                }
            }
        }
    }

    /// Reads the cluster Secret of Argo CD, whose server stands beside its `config`.
    fn argo_cluster(&mut self, at: &Place, config: &Node, facts: &PublicFacts) {
        let mut facts = facts.clone();
        let tls = config.at("tlsClientConfig");
        if let Some(spki) = tls.and_then(|tls| tls.text_at("caData")).and_then(authority) {
            facts.insert(fact::CA_SPKI, spki);
        }
        self.kube_user(at, config, &facts, ["bearerToken", "", ""]);
        if let Some(tls) = tls {
            self.kube_user(&at.child("tlsClientConfig", 0), tls, &facts, ["", "keyData", "certData"]);
        }
        for name in ["execProviderConfig", "awsAuthConfig"] {
            if let Some(node) = config.at(name) {
                self.node(&at.child(name, 0), node, Hint::Leaf, &facts);
            }
        }
    }

    fn kube_user(
        &mut self,
        at: &Place,
        user: &Node,
        facts: &PublicFacts,
        [token, key, certificate]: [&str; 3],
    ) {
        if let Some(text) = user.text_at(token) {
            self.secret(&at.child(token, 0), CredentialKind::KubeToken, text, &[], facts.clone());
        }
        if let Some(password) = user.text_at("password") {
            let name = user.text_at("username").unwrap_or_default();
            let server = facts.get(fact::SERVER).map(|server| url::host(server)).unwrap_or_default();
            let mut facts = facts.clone();
            facts.insert(fact::USER, name.to_owned());
            self.secret(
                &at.child("password", 0),
                CredentialKind::KubeLogin,
                password,
                &[&server, name],
                facts,
            );
        }
        for text in [user.text_at(certificate)].into_iter().flatten() {
            let pem = plain(text);
            self.blocks(&at.child(certificate, 0), &pem, CredentialKind::KubeClientKey, facts);
        }
        if let Some(text) = user.text_at(key) {
            let (place, pem) = (at.child(key, 0), plain(text));
            if !self.blocks(&place, &pem, CredentialKind::KubeClientKey, facts) {
                self.secret(&place, CredentialKind::KubeClientKey, &pem, &[], facts.clone());
            }
        }
    }

    /// Reads the key file of a Google service account, and goes by its key pair.
    fn google_key(&mut self, at: &Place, file: &Node) {
        let mut facts = PublicFacts::new();
        for (name, key) in [
            (fact::CLIENT_EMAIL, "client_email"),
            (fact::PRIVATE_KEY_ID, "private_key_id"),
            (fact::PROJECT_ID, "project_id"),
        ] {
            if let Some(value) = file.text_at(key) {
                facts.insert(name, value.to_owned());
            }
        }
        let (place, text) = (at.child("private_key", 0), file.text_at("private_key").unwrap_or_default());
        if !self.blocks(&place, text, CredentialKind::GcpServiceAccountKey, &facts) {
            self.secret(&place, CredentialKind::GcpServiceAccountKey, text, &[], facts);
        }
    }

    /// Reads what somebody gave to a release, and the Secrets that came of it. What the chart brings is everybody's.
    fn helm_release(&mut self, at: &Place, release: &Node) {
        if let Some(config) = release.at("config") {
            self.node(&at.child("config", 0), config, Hint::Leaf, &PublicFacts::new());
        }
        let manifest = release.text_at("manifest").unwrap_or_default();
        if manifest.contains("kind: Secret") && self.afford(at, manifest.len()) {
            let place = at.child("manifest", 0);
            for part in manifest.split("\n---").filter(|part| part.contains("kind: Secret")) {
                self.text(&place, part.trim_start_matches('-'), Hint::Public, &PublicFacts::new());
            }
        }
    }

    /// Reads a Secret within a document, such as `last-applied-configuration` or a rendered chart.
    fn secret_manifest(&mut self, at: &Place, manifest: &Node) {
        let name = manifest.at("metadata").and_then(|metadata| metadata.text_at("name")).unwrap_or("Secret");
        let mut data: Vec<(&str, Zeroizing<Vec<u8>>)> = Vec::new();
        for (key, value) in manifest.at("data").map(Node::entries).unwrap_or_default() {
            data.extend(value.text().and_then(armor::decode).map(|bytes| (key.as_str(), bytes)));
        }
        for (key, value) in manifest.at("stringData").map(Node::entries).unwrap_or_default() {
            data.extend(value.text().map(|text| (key.as_str(), Zeroizing::new(text.as_bytes().to_vec()))));
        }
        let kind = manifest.text_at("type").unwrap_or("Opaque");
        let data: Vec<_> = data.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
        self.data(&at.child(name, 0), Origin::Secret(kind), &data);
    }

    /// Takes a bootstrap token as kubeadm writes it, `id.secret`, and its secret half alone.
    pub(super) fn bootstrap_token<'t>(
        &mut self,
        at: &Place,
        data: impl Iterator<Item = (&'t str, &'t str)>,
    ) -> bool {
        let (mut id, mut secret) = (None, None);
        for (name, text) in data {
            match name {
                "token-id" => id = Some(text.trim()),
                "token-secret" => secret = Some(text.trim()),
                _ => {}
            }
        }
        let (Some(id), Some(secret)) = (id, secret) else { return false };
        let token = Zeroizing::new(format!("{id}.{secret}"));
        let facts = PublicFacts::from([(fact::USER, format!("system:bootstrap:{id}"))]);
        let forms = [Canonical::value(&token), Canonical::value(secret)];
        let place = at.child("token-secret", 0);
        self.push(&place, CredentialKind::BootstrapToken, bits(secret) >= FLOOR_BITS, &forms, facts);
        true
    }
}

impl Siblings {
    /// Adds the server that stands beside the `config` of a cluster Secret of Argo CD.
    pub(super) fn argo_cluster<'t>(&mut self, data: impl Iterator<Item = (&'t str, &'t str)>) {
        let (mut server, mut config) = (None, false);
        for (name, text) in data {
            match name {
                "server" => server = server_of(text),
                "config" => config = true,
                _ => {}
            }
        }
        if let Some(server) = server.filter(|_| config) {
            self.share(fact::SERVER, server);
        }
    }
}

/// The old format has no `auths` around the registries.
fn is_dockercfg(map: &Node) -> bool {
    !map.entries().is_empty()
        && map.entries().iter().all(|(address, entry)| {
            (address.contains('.') || address.contains(':') || address.as_str() == "localhost")
                && (entry.text_at("auth").is_some() || entry.text_at("password").is_some())
        })
}

/// Returns servers and authorities of all clusters that a user goes to.
fn clusters_of(config: &Node, user: &str) -> PublicFacts {
    let list = |name: &str| config.at(name).map(Node::items).unwrap_or_default();
    let clusters = list("clusters");
    let named: Vec<&str> = list("contexts")
        .iter()
        .filter_map(|context| context.at("context"))
        .filter(|context| context.text_at("user") == Some(user))
        .filter_map(|context| context.text_at("cluster"))
        .collect();
    let mut servers: Vec<String> = Vec::new();
    let mut authorities: Vec<String> = Vec::new();
    for cluster in clusters.iter().filter(|cluster| {
        clusters.len() == 1 || cluster.text_at("name").is_some_and(|name| named.contains(&name))
    }) {
        let Some(cluster) = cluster.at("cluster") else { continue };
        servers.extend(cluster.text_at("server").and_then(server_of));
        authorities.extend(cluster.text_at("certificate-authority-data").and_then(authority));
    }
    let mut facts = PublicFacts::new();
    for (name, mut values) in [(fact::SERVER, servers), (fact::CA_SPKI, authorities)] {
        values.sort_unstable();
        values.dedup();
        if !values.is_empty() {
            facts.insert(name, values.join(", "));
        }
    }
    facts
}

/// Returns a server's URL, unless it carries a login.
fn server_of(text: &str) -> Option<String> {
    let text = text.trim().trim_end_matches('/');
    (!text.is_empty() && !text.contains(['@', '?']) && !text.contains(char::is_whitespace))
        .then(|| text.to_owned())
}

/// Returns the keys of the authorities in base64 of PEM.
fn authority(text: &str) -> Option<String> {
    let pem = plain(text);
    let keys: Vec<_> = armor::blocks(&pem)
        .iter()
        .filter_map(|block| Some(certificate::read(&block.bytes()?)?.key.hex()))
        .collect();
    (!keys.is_empty()).then(|| keys.join(", "))
}

/// Undoes the base64 around the PEM in a kubeconfig. What is none stays.
fn plain(text: &str) -> Zeroizing<String> {
    let decoded = armor::decode(text)
        .and_then(|bytes| Some(Zeroizing::new(std::str::from_utf8(&bytes).ok()?.to_owned())));
    decoded.unwrap_or_else(|| Zeroizing::new(text.to_owned()))
}
