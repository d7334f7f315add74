//! The flags of the roles that carry services of the management cluster to workload clusters.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// How a gateway runs.
#[derive(Debug, Clone, Args)]
pub struct GatewayArguments {
    /// The address that agents dial.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8443")]
    pub listen: SocketAddr,
    /// The address of the admin port: metrics and probes.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub admin: SocketAddr,
    /// A file that says which clusters there are and what each may reach, read again when it changes; the cluster's own
    /// ConfigMap if absent.
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub directory: Option<PathBuf>,
    /// The gateway's certificate, as PEM; got from the issuer if absent.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub certificate: Option<PathBuf>,
    /// Its key, as PEM.
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub key: Option<PathBuf>,
    /// The authorities of the installation, as PEM.
    #[arg(long, value_name = "FILE")]
    pub bundle: PathBuf,
    /// The installation, for a certificate from the issuer.
    #[arg(long, value_name = "NAME", required_unless_present = "certificate")]
    pub installation: Option<String>,
    /// Where the issuer is. Agents reach it through the gateway, which does not read what they say to it.
    #[arg(long, value_name = "HOST:PORT", required_unless_present = "certificate")]
    pub issuer: Option<String>,
    /// A network of load balancers that say by PROXY protocol, version 2, whom they speak for; repeatable.
    #[arg(long = "proxy-protocol-from", value_name = "CIDR")]
    pub proxies: Vec<ipnet::IpNet>,
    /// What all clusters together are sent at most, shared evenly: for gateways behind a narrower line.
    #[arg(long, value_name = "BYTES/S")]
    pub rate: Option<u64>,
    /// How long streams may go on after the gateway is asked to stop.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub drain: u64,
    /// Writes the log as JSON.
    #[arg(long)]
    pub log_json: bool,
}

/// How an agent runs.
#[derive(Debug, Clone, Args)]
pub struct AgentArguments {
    /// The file that the issuer gave the cluster: who it is, where gateways are, whom to trust.
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// The agent's certificate, as PEM; got from the issuer if absent.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub certificate: Option<PathBuf>,
    /// Its key, as PEM.
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub key: Option<PathBuf>,
    /// Where services are listened for.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0")]
    pub listen: IpAddr,
    /// The address of the admin port: metrics and probes.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub admin: SocketAddr,
    /// A proxy to try where gateways cannot be reached directly, as `http://[USER:PASSWORD@]HOST:PORT`.
    #[arg(long, value_name = "URL", env = "HTTPS_PROXY", hide_env_values = true)]
    pub proxy: Option<String>,
    /// Connections for streams.
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub connections: u8,
    /// How long streams may go on after the agent is asked to stop.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub drain: u64,
    /// Writes the log as JSON.
    #[arg(long)]
    pub log_json: bool,
}

/// How an issuer runs.
#[derive(Debug, Clone, Args)]
pub struct IssuerArguments {
    /// The name of the installation: a label of DNS that never changes.
    #[arg(long, value_name = "NAME")]
    pub installation: String,
    /// The address that gateways dial.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8444")]
    pub listen: SocketAddr,
    /// The address of the admin port: metrics and probes.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub admin: SocketAddr,
    /// Where workload clusters reach gateways; repeatable.
    #[arg(long = "gateway", value_name = "HOST:PORT", required = true)]
    pub gateways: Vec<String>,
    /// The image that agents run; without it they are configured and not run.
    #[arg(long, value_name = "IMAGE")]
    pub agent_image: Option<String>,
    /// What gateways do with addresses that no cluster is known to have.
    #[arg(long, value_enum, value_name = "POLICY", default_value_t = Sources::Off)]
    pub sources: Sources,
    /// Writes the log as JSON.
    #[arg(long)]
    pub log_json: bool,
}

/// What gateways do with addresses that no cluster is known to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sources {
    /// The same as with any other.
    Off,
    /// They come through a narrow lane, so that they cannot take what others need.
    Prefer,
    /// They come through the lane, and only for clusters whose addresses are not known.
    Strict,
}
