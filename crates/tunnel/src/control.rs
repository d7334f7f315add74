//! What gateway and agent tell each other beside the streams: lines of JSON on one stream of their own.

use serde::{Deserialize, Serialize};

use crate::directory::Seconds;
use crate::names::ServiceName;

/// What clients and gateways name in ALPN: streams for services.
pub const ALPN: &[u8] = b"bailey-tunnel/1";
/// What clients name in ALPN to get a certificate; the gateway passes it on to the issuer unread.
pub const ALPN_ENROL: &[u8] = b"bailey-enrol/1";
/// What follows the label in SNI.
pub const SNI_SUFFIX: &str = ".bailey";
/// The path of the stream for these lines.
pub const PATH: &str = "/control";
/// The header that says why a stream was refused.
pub const REASON: &str = "bailey-reason";
/// The header of a stream that only asks whether the service answers.
pub const PROBE: &str = "bailey-probe";
/// The longest line.
pub const LINE_MAX: usize = 64 << 10;

/// What the gateway tells an agent, whole each time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    /// What the cluster may reach.
    pub services: Vec<Offer>,
    /// The time of the management cluster.
    pub now: Seconds,
}

/// A service that a cluster may reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    /// Its name.
    pub name: ServiceName,
    /// The port to listen on for it.
    pub port: u16,
}

/// What an agent reports, whole each time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The agent's time.
    pub now: Seconds,
    /// When its certificate is over.
    pub certificate_not_after: Seconds,
    /// The hash of the authorities that it trusts.
    pub bundle: String,
    /// How it came.
    pub path: Path,
    /// How each service answers, through the whole path.
    pub services: Vec<Answer>,
}

/// How an agent reaches the gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Path {
    /// By itself.
    #[default]
    Direct,
    /// Through an HTTP proxy.
    Proxy,
    /// The management cluster came to it, through the API server of the workload cluster.
    ApiServer,
}

/// How a service answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// Its name.
    pub name: ServiceName,
    /// Whether the last probe reached it.
    pub ready: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}
