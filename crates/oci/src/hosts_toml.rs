//! The `hosts.toml` files by which containerd finds this cache (`docs/hosts.md` of containerd).
//!
//! One file for one registry, or `_default` for all others. A file that containerd cannot read is ignored by it, and
//! the node then goes past the cache without a word; so what is written is checked by the same rules, and only keys
//! that the node's containerd understands are used. INVARIANT: a file without the mark is somebody else's.

use std::fmt::Write as _;
use std::time::Duration;

use url::Url;

use crate::registry::Registry;

mod check;

pub use check::{Problem, check};

/// The first line of a file that was written here.
pub const MARK: &str = "# Written by `bailey cache hosts-toml`; changes are overwritten.";

/// Where containerd looks for the files.
pub const DIRECTORY: &str = "/etc/containerd/certs.d";

/// What one file is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Registry(Registry),
    /// All registries that have no file of their own.
    ///
    /// containerd names them by `ns=`, all but Docker Hub: that needs a file of its own, or to be the cache's default.
    Default,
}

/// A version of containerd, by which keys are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContainerdVersion {
    pub major: u32,
    pub minor: u32,
}

/// The content of one file.
#[derive(Clone, Debug)]
pub struct HostsToml {
    pub subject: Subject,
    /// Scheme, host and port of the cache; a path is not used.
    pub cache: Url,
    /// Whether nodes go to the cache alone, and never to the registry itself.
    pub offline: bool,
    /// Whose certificates the node trusts for the cache: the path of a file on the node.
    pub ca: Option<String>,
    /// The node's own certificate and key for the cache: paths on the node.
    pub client: Option<(String, String)>,
    /// How long the node tries to connect before it goes on.
    pub dial_timeout: Duration,
    /// The node's containerd, when it is known.
    pub containerd: Option<ContainerdVersion>,
}

impl ContainerdVersion {
    /// Reads `v2.1.4`, `2.1.4+unknown` and the like.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().trim_start_matches('v').split('.');
        let mut number = || parts.next()?.parse().ok();
        Some(Self { major: number()?, minor: number()? })
    }

    /// Whether a host may be given up on sooner than after 30 s.
    pub fn knows_dial_timeout(self) -> bool {
        self >= Self { major: 2, minor: 1 }
    }
}

impl Subject {
    /// The file's path below containerd's directory.
    pub fn path(&self) -> String {
        match self {
            Self::Registry(registry) => format!("{registry}/hosts.toml"),
            Self::Default => "_default/hosts.toml".to_owned(),
        }
    }
}

/// Whether a file was written here, and so may be overwritten or removed.
pub fn is_ours(text: &str) -> bool {
    text.lines().next().is_some_and(|line| line.trim_end() == MARK)
}

impl HostsToml {
    /// The text of the file.
    pub fn text(&self) -> String {
        let mut text = format!("{MARK}\n");
        let host = self.host();
        if self.offline {
            // The last host is the registry itself unless `server` says another; with the cache as the only one, a
            // node without an uplink does not wait for the Internet.
            let _ = writeln!(text, "server = {}", quoted(&host));
            text.push_str(&self.keys(""));
            // containerd 1.6 takes a file without this table for broken, and goes to the registry.
            text.push_str("\n[host]\n");
            return text;
        }
        if let Subject::Registry(registry) = &self.subject {
            let _ = writeln!(text, "server = {}", quoted(&format!("https://{}", registry.api_host())));
        }
        let _ = writeln!(text, "\n[host.{}]", quoted(&host));
        text.push_str(&self.keys("  "));
        text
    }

    /// The cache's URL, with the registry in its path.
    ///
    /// containerd names the registry by `ns=` for all but Docker Hub, so there the path has to say it.
    fn host(&self) -> String {
        let base = self.cache.origin().ascii_serialization();
        match &self.subject {
            Subject::Registry(registry) => format!("{base}/v2/{registry}"),
            Subject::Default => base,
        }
    }

    fn keys(&self, indent: &str) -> String {
        let mut text = format!("{indent}capabilities = [\"pull\", \"resolve\"]\n");
        if matches!(self.subject, Subject::Registry(_)) {
            let _ = writeln!(text, "{indent}override_path = true");
        }
        if self.containerd.is_some_and(ContainerdVersion::knows_dial_timeout) {
            let _ = writeln!(text, "{indent}dial_timeout = \"{}ms\"", self.dial_timeout.as_millis());
        }
        if let Some(ca) = &self.ca {
            let _ = writeln!(text, "{indent}ca = {}", quoted(ca));
        }
        if let Some((certificate, key)) = &self.client {
            let _ = writeln!(text, "{indent}client = [[{}, {}]]", quoted(certificate), quoted(key));
        }
        text
    }
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests;
