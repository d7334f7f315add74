//! Takes a connection for a certificate to the issuer, byte for byte: the gateway sees neither token nor request.

use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Shared;
use crate::wire::hello::Hello;
use crate::wire::socket;

const DIAL: Duration = Duration::from_secs(5);
/// One request and its answer, also where the issuer has to ask the workload cluster for its keys first.
const WHOLE: Duration = Duration::from_secs(30);

pub(super) async fn relay(mut stream: TcpStream, hello: Hello, shared: &Shared) {
    let Some(issuer) = &shared.options.issuer else {
        return shared.metrics.refuse("NoIssuer");
    };
    let Ok(Ok(mut upstream)) = timeout(DIAL, TcpStream::connect(issuer)).await else {
        tracing::warn!(issuer, "the issuer cannot be reached");
        return shared.metrics.refuse("IssuerUnreachable");
    };
    for socket in [&stream, &upstream] {
        if let Err(error) = socket::plain(socket) {
            tracing::debug!(%error, "a socket keeps its defaults");
        }
    }
    let first: Bytes = hello.bytes;
    let pass = async {
        upstream.write_all(&first).await?;
        copy_bidirectional(&mut stream, &mut upstream).await
    };
    match timeout(WHOLE, pass).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::debug!(%error, "an enrolment broke off"),
        Err(_) => shared.metrics.refuse("EnrolmentTimeout"),
    }
}
