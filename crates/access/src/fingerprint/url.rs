//! URLs and connection strings that carry a login.

use zeroize::Zeroizing;

/// The parts of a URL that matter.
pub(super) struct Url<'a> {
    pub(super) scheme: &'a str,
    pub(super) user: Option<Zeroizing<String>>,
    pub(super) password: Option<Zeroizing<String>>,
    /// Host and port, in lower case.
    pub(super) host: String,
    pub(super) path: &'a str,
    /// Names and values, decoded.
    pub(super) query: Vec<(Zeroizing<String>, Zeroizing<String>)>,
}

/// Reads a text that is one URL as a whole (RFC 3986). `jdbc:` may stand before it.
pub(super) fn read(text: &str) -> Option<Url<'_>> {
    let text = text.strip_prefix("jdbc:").unwrap_or(text);
    let (scheme, rest) = text.split_once("://")?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte));
    if !is_scheme || rest.is_empty() || rest.contains(char::is_whitespace) {
        return None;
    }
    let rest = rest.split_once('#').map_or(rest, |(rest, _)| rest);
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (login, host) =
        authority.rsplit_once('@').map_or((None, authority), |(login, host)| (Some(login), host));
    let (user, password) = match login.map(|login| login.split_once(':').unwrap_or((login, ""))) {
        Some((user, password)) => (some(user), some(password)),
        None => (None, None),
    };
    Some(Url { scheme, user, password, host: host.to_ascii_lowercase(), path, query: pairs(query, '&') })
}

/// Returns the names and values of `a=b;c=d` (ADO, Azure) or `a=b c=d` (libpq), if a text is such a list of two or more.
pub(super) fn connection_string(text: &str) -> Option<Vec<(Zeroizing<String>, Zeroizing<String>)>> {
    let separator = if text.contains(';') { ';' } else { ' ' };
    let parts: Vec<_> = text.split(separator).map(str::trim).filter(|part| !part.is_empty()).collect();
    let named = |part: &&str| {
        part.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-. ".contains(&byte))
        })
    };
    let pair = |part: &&str| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        (Zeroizing::new(name.trim().to_owned()), Zeroizing::new(value.trim().trim_matches('\'').to_owned()))
    };
    (parts.len() >= 2 && parts.iter().all(named)).then(|| parts.iter().map(pair).collect())
}

/// Normalises the address of a registry or server: no scheme, no path, no default port, Docker Hub under one name.
pub(super) fn host(address: &str) -> String {
    let address = address.trim().to_ascii_lowercase();
    let address = address.split_once("://").map_or(address.as_str(), |(_, rest)| rest);
    let address = address.split(['/', '?', '#']).next().unwrap_or_default();
    let address = address.rsplit_once('@').map_or(address, |(_, host)| host);
    let address = address.strip_suffix(":443").or_else(|| address.strip_suffix(":80")).unwrap_or(address);
    match address.trim_end_matches('.') {
        "index.docker.io" | "registry-1.docker.io" | "registry.hub.docker.com" | "hub.docker.com" => {
            "docker.io".to_owned()
        }
        address => address.to_owned(),
    }
}

fn pairs(query: &str, separator: char) -> Vec<(Zeroizing<String>, Zeroizing<String>)> {
    query
        .split(separator)
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}

fn some(part: &str) -> Option<Zeroizing<String>> {
    (!part.is_empty()).then(|| decoded(part))
}

/// Undoes percent-encoding. What is no valid encoding stays as it is.
fn decoded(text: &str) -> Zeroizing<String> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(text.len()));
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = (*first == b'%')
            .then(|| after.first_chunk::<2>())
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    Zeroizing::new(std::str::from_utf8(&bytes).map_or_else(|_| text.to_owned(), str::to_owned))
}
