//! The body of an upstream's answer, piece by piece, each with a deadline.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout, timeout_at};

use super::Problem;

/// For how long an upstream may send nothing in the middle of a body.
const STALL: Duration = Duration::from_secs(20);

/// A body that is read from the network as it comes.
#[derive(Debug)]
pub struct Body(Incoming);

impl Body {
    pub fn new(incoming: Incoming) -> Self {
        Self(incoming)
    }

    /// Gives the next piece; None at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        loop {
            match timeout(STALL, self.0.frame()).await {
                Err(_) => return Err(Problem::unreachable("it stopped in the middle of a body")),
                Ok(None) => return Ok(None),
                Ok(Some(Err(_))) => return Err(Problem::unreachable("it broke off in the middle of a body")),
                Ok(Some(Ok(frame))) => {
                    // Trailers say nothing that is needed.
                    if let Ok(bytes) = frame.into_data()
                        && !bytes.is_empty()
                    {
                        return Ok(Some(bytes));
                    }
                }
            }
        }
    }

    /// Gives a piece that is there already, without waiting.
    pub fn ready(&mut self) -> Option<Bytes> {
        use futures::FutureExt as _;
        let frame = self.0.frame().now_or_never()??.ok()?;
        frame.into_data().ok()
    }

    /// Reads the whole body, at most `length_max` bytes.
    pub async fn whole(mut self, length_max: usize, deadline: Instant) -> Result<Bytes, Problem> {
        let read = async {
            let mut whole = Vec::new();
            while let Some(bytes) = self.next().await? {
                if whole.len() + bytes.len() > length_max {
                    return Err(Problem::nonsense(format!("it is longer than {length_max} bytes")));
                }
                whole.extend_from_slice(&bytes);
            }
            Ok(Bytes::from(whole))
        };
        match timeout_at(deadline, read).await {
            Ok(result) => result,
            Err(_) => Err(Problem::unreachable("its body took too long")),
        }
    }
}

/// The text of a header.
pub fn text(headers: &http::HeaderMap, name: impl http::header::AsHeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
