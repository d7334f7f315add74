//! Lines of JSON on a stream of HTTP/2.

use std::future::poll_fn;
use std::time::Duration;

use bailey_tunnel::control::LINE_MAX;
use bytes::{Bytes, BytesMut};
use h2::{RecvStream, SendStream};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

/// Whoever does not take a line for this long is gone.
const SEND: Duration = Duration::from_secs(20);

/// A line that did not go, or did not come.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// The stream broke.
    #[error("the stream broke")]
    Stream(#[from] h2::Error),
    /// The other side takes nothing.
    #[error("no room for a line within {} s", SEND.as_secs())]
    Timeout,
    /// Too long.
    #[error("a line of more than {LINE_MAX} bytes")]
    TooLong,
    /// Not what was expected.
    #[error("a line that is not understood")]
    Json(#[from] serde_json::Error),
}

/// Sends a line.
pub async fn send(stream: &mut SendStream<Bytes>, line: &impl Serialize) -> Result<(), LineError> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    if bytes.len() > LINE_MAX {
        return Err(LineError::TooLong);
    }
    let mut bytes = Bytes::from(bytes);
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len());
        while stream.capacity() == 0 {
            let more = timeout(SEND, poll_fn(|cx| stream.poll_capacity(cx))).await;
            match more.map_err(|_| LineError::Timeout)? {
                Some(capacity) => capacity?,
                None => return Err(LineError::Timeout),
            };
        }
        let part = bytes.split_to(stream.capacity().min(bytes.len()));
        stream.send_data(part, false)?;
    }
    Ok(())
}

/// The lines of a stream, in order.
#[derive(Debug)]
pub struct Lines {
    stream: RecvStream,
    buffer: BytesMut,
}

impl Lines {
    /// Reads lines of a stream.
    pub fn new(stream: RecvStream) -> Self {
        Self { stream, buffer: BytesMut::new() }
    }

    /// Gives the next line; None at the end. What has come of a line is kept if the wait is broken off.
    pub async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, LineError> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(end + 1);
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            if self.buffer.len() > LINE_MAX {
                return Err(LineError::TooLong);
            }
            let Some(data) = self.stream.data().await else { return Ok(None) };
            let data = data?;
            self.buffer.extend_from_slice(&data);
            self.stream.flow_control().release_capacity(data.len())?;
        }
    }
}
