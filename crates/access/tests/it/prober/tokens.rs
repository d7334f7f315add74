//! Tokens of accounts by way of token Secrets: made, made under names that somebody reads, pointed at other accounts.

use std::collections::BTreeSet;
use std::rc::Rc;

use anyhow::Result;
use serde_json::{Value, json};

use super::{Held, Key, Prober};
use crate::case::Planted;
use crate::changes::place_of;
use crate::direct::{Direct, point, reading, seen};
use crate::server::{Request, Who};
use crate::spec::{ACCOUNTS, GHOST, LABEL, NAMESPACES, PLACES, STRONG};

impl Prober<'_> {
    /// The accounts of a namespace that could be had.
    fn accounts(&self, place: usize) -> Vec<String> {
        if place >= NAMESPACES.len() {
            return STRONG.map(str::to_owned).to_vec();
        }
        let mut accounts: Vec<String> =
            ACCOUNTS.iter().chain(&["default"]).map(ToString::to_string).collect();
        if self.case.ghosts.contains(&place) {
            accounts.push(GHOST.to_owned());
        }
        accounts
    }

    /// Makes token Secrets of all accounts; whoever reads them finds the tokens.
    pub(super) async fn make_tokens(&mut self, held: &Held, all: &[(Who, Rc<Direct>)]) -> Result<bool> {
        if !self.may_make_tokens() {
            return Ok(false);
        }
        let mut changed = false;
        for (place, namespace) in PLACES.iter().enumerate() {
            let maker = all.iter().find(|(_, direct)| direct.makes_secrets.contains(&place));
            let Some((who, _)) = maker else { continue };
            for account in self.accounts(place) {
                let secret = token_secret(namespace, &format!("probe-{account}"), &account);
                let known = self.case.made.iter().any(|made| made.key() == secret.key());
                if known || held.has_credentials(&Who::account(namespace, &account)) {
                    continue;
                }
                let path = format!("/api/v1/namespaces/{namespace}/secrets");
                if self.case.server.ask(who, &Request::post(path, body(&secret))).await?.ok() {
                    self.case.filled(&secret).await?;
                    self.case.made.push(secret);
                    changed = true;
                }
            }
        }
        Ok(changed)
    }

    /// Makes a token Secret under a name that somebody reads and that is free, or can be freed.
    pub(super) async fn use_names(&mut self, held: &mut Held, all: &[(Who, Rc<Direct>)]) -> Result<bool> {
        if !self.may_make_tokens() {
            return Ok(false);
        }
        let mut gained = false;
        let keys: BTreeSet<Key> =
            all.iter().flat_map(|(_, d)| d.awaits.iter().chain(&d.deletes).cloned()).collect();
        for key in keys {
            let Some(place) = place_of(&key.0) else { continue };
            let makes =
                |direct: &Direct| direct.makes_secrets.contains(&place) || direct.makes_named.contains(&key);
            let Some((maker, _)) = all.iter().find(|(_, direct)| makes(direct)) else { continue };
            let old = self.case.secrets().find(|secret| secret.key() == key).cloned();
            let deleting = all.iter().find(|(_, direct)| direct.deletes.contains(&key)).map(|(who, _)| who);
            for account in self.accounts(place) {
                let who = Who::account(&key.0, &account);
                if held.has_credentials(&who) || !held.tried.insert((key.clone(), account.clone())) {
                    continue;
                }
                let secret = token_secret(&key.0, &key.1, &account);
                if old.is_some() {
                    let Some(deleting) = deleting else { continue };
                    if !self.case.server.ask(deleting, &Request::delete(secret.path())).await?.ok() {
                        continue;
                    }
                }
                let post = Request::post(format!("/api/v1/namespaces/{}/secrets", key.0), body(&secret));
                let apply = Request::apply(&secret.path(), body(&secret));
                let made = self.case.server.ask(maker, &post).await?.ok()
                    || self.case.server.ask(maker, &apply).await?.ok();
                if made {
                    self.case.filled(&secret).await?;
                    if self.is_read(held, &secret).await? {
                        held.who.insert(who, true);
                        gained = true;
                    }
                }
                match &old {
                    Some(old) => self.case.replant(old).await?,
                    None => drop(self.case.server.admin_if_there(Request::delete(secret.path())).await?),
                }
            }
        }
        Ok(gained)
    }

    /// Points token Secrets at other accounts.
    pub(super) async fn point_tokens(&mut self, held: &mut Held, all: &[(Who, Rc<Direct>)]) -> Result<bool> {
        if !self.may("repoint-token-secret") {
            return Ok(false);
        }
        let mut gained = false;
        let secrets: Vec<Planted> = self.case.secrets().filter(|s| s.account.is_some()).cloned().collect();
        for secret in secrets {
            let pointer =
                all.iter().find_map(|(who, direct)| Some((who, *direct.points.get(&secret.key())?)));
            let (Some((pointer, by_put)), Some(place)) = (pointer, place_of(&secret.namespace)) else {
                continue;
            };
            for account in self.accounts(place) {
                let who = Who::account(&secret.namespace, &account);
                let known = held.has_credentials(&who) || secret.account.as_deref() == Some(account.as_str());
                if known || !held.tried.insert((secret.key(), account.clone())) {
                    continue;
                }
                let pointed = Planted { account: Some(account.clone()), ..secret.clone() };
                let request = point(&secret, &account, by_put);
                if self.case.server.ask(pointer, &request).await?.ok() {
                    self.case.filled(&pointed).await?;
                    if self.is_read(held, &pointed).await? {
                        held.who.insert(who, true);
                        gained = true;
                    }
                }
                self.case.replant(&secret).await?;
            }
        }
        Ok(gained)
    }

    /// Whether anybody held sees a Secret as it is now.
    async fn is_read(&self, held: &Held, secret: &Planted) -> Result<bool> {
        let requests: Vec<Request> = reading(&[secret]).into_iter().map(|(request, _)| request).collect();
        for who in held.who.keys() {
            let answers = self.case.server.ask_all(who, &requests).await?;
            if answers.iter().any(|answer| !seen(&[secret], answer).is_empty()) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn token_secret(namespace: &str, name: &str, account: &str) -> Planted {
    Planted {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        marker: format!("made-{namespace}-{name}-{account}-77aa01"),
        account: Some(account.to_owned()),
    }
}

fn body(secret: &Planted) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": secret.name, "labels": {LABEL: "probe"},
            "annotations": {"kubernetes.io/service-account.name": secret.account}},
        "stringData": {"marker": secret.marker}})
}
