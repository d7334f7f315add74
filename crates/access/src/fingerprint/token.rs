//! JSON web tokens (RFC 7519). Signatures are not checked: whoever holds a token holds it.

use std::cell::Cell;

use super::armor::decode;
use super::document::{Node, Parsed, parse};
use super::{PublicFacts, fact};

/// The claims of a token that matter.
pub(super) struct Token {
    pub(super) issuer: String,
    pub(super) subject: String,
    pub(super) id: Option<String>,
    pub(super) facts: PublicFacts,
    expires: Option<i64>,
}

impl Token {
    /// Says whether the token is over at a time in seconds of Unix.
    pub(super) fn is_expired(&self, now_seconds: i64) -> bool {
        self.expires.is_some_and(|expires| expires <= now_seconds)
    }
}

/// Reads a token with its signature.
pub(super) fn read(text: &str) -> Option<Token> {
    let mut parts = text.split('.');
    let (header, claims, signature) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some()
        || !header.starts_with("eyJ")
        || !claims.starts_with("eyJ")
        || !is_base64url(signature)
    {
        return None;
    }
    object(header)?.text_at("alg")?;
    let claims = object(claims)?;
    let claim = |name: &str| claims.text_at(name).unwrap_or_default().to_owned();
    let audience: Vec<&str> = match claims.at("aud") {
        Some(Node::List(items)) => items.iter().filter_map(Node::text).collect(),
        other => other.and_then(Node::text).into_iter().collect(),
    };
    let mut facts = PublicFacts::new();
    for (name, value) in [
        (fact::ISS, claim("iss")),
        (fact::SUB, claim("sub")),
        (fact::AUD, audience.join(", ")),
        (fact::EXP, claim("exp")),
    ] {
        if !value.is_empty() {
            facts.insert(name, value);
        }
    }
    let id = claims.text_at("jti").map(str::to_owned);
    // Some issuers write seconds with a fraction.
    let expires = claim("exp").parse::<f64>().ok().map(|seconds| seconds as i64);
    Some(Token { issuer: claim("iss"), subject: claim("sub"), id, facts, expires })
}

fn object(part: &str) -> Option<Node> {
    let bytes = decode(part)?;
    match parse(std::str::from_utf8(&bytes).ok()?, &Cell::new(10_000)) {
        Parsed::Documents(mut documents) if documents.len() == 1 => documents.pop(),
        _ => None,
    }
}

fn is_base64url(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_=".contains(&byte))
}
