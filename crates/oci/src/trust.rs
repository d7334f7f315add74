//! Where an upstream may send this cache: to which token realm, and by which redirect.
//!
//! Both are URLs that a remote party wrote. INVARIANT: credentials go to the upstream itself and to realms of its own
//! registrable domain or of the configured list; a redirect carries `Authorization` only while scheme, host and port
//! stay the same; nothing leads from https to http, and nothing to a private address unless that is configured.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// How many redirects one request follows.
pub const REDIRECTS_MAX: usize = 5;

/// What is allowed beyond the rules.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// Hosts that are token realms of this upstream, in lower case, exactly; of whatever port.
    pub realm_hosts: Vec<String>,
    /// Hosts that redirects may lead to although they are private, in lower case, exactly.
    pub private_hosts: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    #[error("the upstream names `{0}`, which is no URL of http or https without user and password")]
    NotUrl(String),
    #[error("the upstream leads from https to http at `{0}`")]
    Downgrade(String),
    #[error(
        "the upstream `{upstream}` names the token realm `{realm}`, which is not of its domain: if it is right, add it \
         to the upstream's realms"
    )]
    ForeignRealm { upstream: String, realm: String },
    #[error(
        "the upstream redirects to `{0}`, which is a private address: if it is right, add it to the upstream's private \
         hosts"
    )]
    PrivateTarget(String),
}

/// Where a redirect leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    pub url: Url,
    /// Whether `Authorization` may go along: the target is the same scheme, host and port.
    pub keeps_authorization: bool,
}

/// Decides whether to ask `realm` for a token on behalf of the host that `challenger` is at.
///
/// The rule is the one by which registries were fixed that sent credentials wherever they were told: the same
/// registrable domain by the public suffix list. Names that the list does not know, such as those within a cluster,
/// have to be equal.
pub fn realm(challenger: &Url, realm: &str, trust: &Trust) -> Result<Url, TrustError> {
    let url = parse(challenger, realm)?;
    let host = host(&url);
    let own = self::host(challenger);
    if host == own || trust.realm_hosts.contains(&host) || same_domain(&host, &own) {
        return Ok(url);
    }
    Err(TrustError::ForeignRealm { upstream: own, realm: shown(&url) })
}

/// Decides whether to follow `location`, which came in answer to `from`.
///
/// A name that resolves to a private address is found out only when it is dialled: see [`is_private`].
pub fn redirect(from: &Url, location: &str, trust: &Trust) -> Result<Hop, TrustError> {
    let url = parse(from, location)?;
    let own = host(from);
    let target = host(&url);
    let is_local_name = target == "localhost" || target.ends_with(".localhost");
    let leads_inside = literal(&url).map_or(is_local_name, is_private);
    // To itself is no step further, wherever the upstream is.
    if leads_inside && target != own && !may_be_private(&url, trust) {
        return Err(TrustError::PrivateTarget(shown(&url)));
    }
    let same = |of: fn(&Url) -> Option<u16>| of(from) == of(&url);
    let keeps_authorization =
        from.scheme() == url.scheme() && own == target && same(Url::port_or_known_default);
    Ok(Hop { url, keeps_authorization })
}

/// Whether a connection for `url` may go to a private address.
pub fn may_be_private(url: &Url, trust: &Trust) -> bool {
    trust.private_hosts.contains(&host(url))
}

/// Whether an address is not of the public Internet: private, local, shared, reserved or multicast.
pub fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_private_v4(v4),
        IpAddr::V6(v6) => is_private_v6(v6),
    }
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        // This network; shared with a provider (RFC 6598); protocol assignments; benchmarks; reserved.
        || a == 0
        || (a == 100 && (64..128).contains(&b))
        || (a, b, c) == (192, 0, 0)
        || (a == 198 && (18..20).contains(&b))
        || a >= 240
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let inner = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_private_v4(Ipv4Addr::new(a, b, c, d))
    };
    match (a, b, c, d, e, f) {
        // Mapped and compatible IPv4, loopback and unspecified among them.
        (0, 0, 0, 0, 0, 0xffff | 0) => inner(g, h),
        // IPv4 behind NAT64, and in 6to4.
        (0x64, 0xff9b, 0, 0, 0, 0) => inner(g, h),
        (0x2002, high, low, ..) => inner(high, low),
        // Documentation, local NAT64, unique local, link local, site local, multicast.
        (0x2001, 0xdb8, ..) | (0x64, 0xff9b, 1, ..) => true,
        _ => (a & 0xfe00) == 0xfc00 || (a & 0xffc0) == 0xfe80 || (a & 0xffc0) == 0xfec0 || a >= 0xff00,
    }
}

fn parse(from: &Url, text: &str) -> Result<Url, TrustError> {
    // Neither a query nor a password is repeated: both may be secrets.
    let harmless = |c: &char| !matches!(c, '?' | '#' | '@');
    let wrong = || TrustError::NotUrl(text.chars().take(80).take_while(harmless).collect());
    let mut url = from.join(text).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(wrong());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(TrustError::NotUrl(shown(&url)));
    }
    if from.scheme() == "https" && url.scheme() == "http" {
        return Err(TrustError::Downgrade(shown(&url)));
    }
    url.set_fragment(None);
    Ok(url)
}

fn host(url: &Url) -> String {
    url.host_str().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase()
}

fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
        Host::Domain(_) => None,
    }
}

/// Whether two names are below one registrable domain of a suffix that is really listed.
fn same_domain(one: &str, other: &str) -> bool {
    let registrable = |name: &str| {
        let domain = psl::domain(name.as_bytes())?;
        domain.suffix().is_known().then(|| domain.as_bytes().to_vec())
    };
    registrable(one).is_some_and(|domain| registrable(other) == Some(domain))
}

/// What of a URL may stand in an error: a signed one carries its secret in the query.
fn shown(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let text = format!("{}://{}{port}{}", url.scheme(), host(url), url.path());
    text.chars().take(120).collect()
}

#[cfg(test)]
mod tests;
