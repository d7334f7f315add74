//! What is at the end of each path: it gives as many bytes as it is asked for, or says back what it hears.

use std::net::SocketAddr;

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const BUFFER: usize = 256 << 10;

/// Answers a number of eight bytes with that many bytes, again and again. Runs until the process ends.
pub async fn source() -> Result<SocketAddr> {
    serve(|mut stream| async move {
        let zeros = vec![0; BUFFER];
        while let Ok(mut left) = stream.read_u64().await {
            while left > 0 {
                let now = usize::try_from(left).unwrap_or(BUFFER).min(BUFFER);
                let Some(part) = zeros.get(..now) else { return };
                if stream.write_all(part).await.is_err() {
                    return;
                }
                left -= now as u64;
            }
        }
    })
    .await
}

/// Says back what it hears.
pub async fn echo() -> Result<SocketAddr> {
    serve(|mut stream| async move {
        let mut buffer = vec![0; 8 << 10];
        while let Ok(count) = stream.read(&mut buffer).await {
            let heard = buffer.get(..count).unwrap_or_default();
            if count == 0 || stream.write_all(heard).await.is_err() {
                return;
            }
        }
    })
    .await
}

async fn serve<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> Result<SocketAddr>
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A socket that cannot be set up is measured as it is.
            let _set = stream.set_nodelay(true);
            tokio::spawn(serve(stream));
        }
    });
    Ok(address)
}
