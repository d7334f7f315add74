//! TLS for each stream and nothing else: what a tunnel costs at least that opens a connection for each stream.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use bailey_identity::credentials::Credentials;
use bailey_identity::tls;
use rustls::pki_types::ServerName;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// As large as the tunnel's chunks.
const BUFFER: usize = 64 << 10;

#[derive(clap::Args)]
pub struct Arguments {
    /// Where it listens.
    #[arg(long)]
    listen: SocketAddr,
    /// Where it leads.
    #[arg(long)]
    to: SocketAddr,
    /// Speaks TLS to those that come, and not to where it leads.
    #[arg(long)]
    server: bool,
    /// The folder with `tls.crt`, `tls.key` and `ca.crt`.
    #[arg(long)]
    credentials: PathBuf,
}

/// Runs until it is ended.
pub fn run(arguments: &Arguments) -> Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(serve(arguments))
}

async fn serve(arguments: &Arguments) -> Result<()> {
    let read = |name: &str| {
        let path = arguments.credentials.join(name);
        std::fs::read(&path).with_context(|| format!("read `{}`", path.display()))
    };
    let credentials = Credentials::from_pem(&read("tls.crt")?, &read("tls.key")?, &read("ca.crt")?)?;
    let (acceptor, connector) =
        (TlsAcceptor::from(tls::server(&credentials)?), TlsConnector::from(tls::client(&credentials)?));
    let listener = TcpListener::bind(arguments.listen).await?;
    let (to, server) = (arguments.to, arguments.server);
    loop {
        let (mut near, _) = listener.accept().await?;
        let (acceptor, connector) = (acceptor.clone(), connector.clone());
        tokio::spawn(async move {
            near.set_nodelay(true)?;
            let mut far = TcpStream::connect(to).await?;
            far.set_nodelay(true)?;
            if server {
                let mut near = acceptor.accept(near).await?;
                copy_bidirectional_with_sizes(&mut near, &mut far, BUFFER, BUFFER).await?;
            } else {
                let name = ServerName::try_from("gateway.bailey").context("name the server")?;
                let mut far = connector.connect(name, far).await?;
                copy_bidirectional_with_sizes(&mut near, &mut far, BUFFER, BUFFER).await?;
            }
            anyhow::Ok(())
        });
    }
}

/// What a client of TLS says first when it wants a name that belongs to nobody here.
pub fn stranger() -> Result<Vec<u8>> {
    let mut config = rustls::ClientConfig::builder()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    config.alpn_protocols = vec![b"bailey-tunnel/1".to_vec()];
    let name = ServerName::try_from("0123456789abcdef0123456789abcdef.bailey").context("name the server")?;
    let mut client = rustls::ClientConnection::new(Arc::new(config), name)?;
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes)?;
    Ok(bytes)
}
