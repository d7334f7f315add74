//! Names of sources: one name for all ways to write the address of a repository.

/// The name of a source by its URL: host and path, without scheme, login, usual port, `.git` and trailing `/`. OCI
/// repositories keep `oci://`, since a registry and a Git server of one host are two things.
///
/// `ssh://git@ssh.github.com:443/acme/apps.git`, `git@github.com:acme/apps` and `https://github.com/acme/apps` have the
/// same name.
pub fn source_name(url: &str) -> String {
    let url = url.trim();
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
    // `git@HOST:PATH` has a path where a port would be.
    let scp = scheme.is_empty() && !port.is_empty() && !port.bytes().all(|byte| byte.is_ascii_digit());
    let (port, first) = if scp { ("", port) } else { (port, "") };
    let mut name = match host.to_ascii_lowercase().as_str() {
        "ssh.github.com" => "github.com".to_owned(),
        "altssh.gitlab.com" => "gitlab.com".to_owned(),
        host => host.to_owned(),
    };
    if !["", "22", "80", "443"].contains(&port) {
        name = format!("{name}:{port}");
    }
    for part in first.split('/').chain(path.split('/')).filter(|part| !part.is_empty()) {
        name.push('/');
        name.push_str(part);
    }
    let name = name.strip_suffix(".git").map_or(name.as_str(), |name| name);
    if scheme == "oci" { format!("oci://{name}") } else { name.to_owned() }
}

/// Whether a name of a source is another one, or begins with it and goes on with a further part of the path. A prefix
/// without `oci://` covers OCI repositories too.
pub(super) fn covers(prefix: &str, name: &str) -> bool {
    let plain = |name: &str| name.strip_prefix("oci://").unwrap_or(name).to_owned();
    let (prefix, name) = if prefix.starts_with("oci://") {
        (prefix.to_owned(), name.to_owned())
    } else {
        (plain(prefix), plain(name))
    };
    !prefix.is_empty()
        && name.strip_prefix(&prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a name of a source has a part of its host or path that is a word.
pub(super) fn names(name: &str, word: &str) -> bool {
    let name = name.strip_prefix("oci://").unwrap_or(name);
    let (host, path) = name.split_once('/').unwrap_or((name, ""));
    host.split(['.', ':']).chain(path.split('/')).any(|part| part.eq_ignore_ascii_case(word))
}
