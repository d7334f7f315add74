//! Reads the head of an HTTP/1.1 request, and says what of it matters to a cache.
//!
//! Bodies are not taken: a request that announces one is answered and its connection closed. What is ambiguous about
//! where a request ends (RFC 9112, section 6.3) closes the connection, too, so no two readers can disagree.

use http::Method;

/// The longest head, in bytes: names, digests and the headers of honest clients stay far below.
pub const HEAD_LEN_MAX: usize = 16 * 1024;
const HEADERS_MAX: usize = 100;

/// The head of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub method: Method,
    pub path: String,
    pub query: Option<String>,
    pub range: Option<String>,
    pub if_none_match: Option<String>,
    pub if_range: Option<String>,
    /// Whether another request may follow on the connection.
    pub keep_alive: bool,
    /// Whether a body follows, which is not read.
    pub has_body: bool,
}

/// What the first bytes of a connection, or those after the last request, hold.
#[derive(Debug)]
pub enum Read {
    /// A head, and how many bytes it took.
    Whole(Head, usize),
    Partial,
    Wrong(Wrong),
}

/// Why a head is refused; the connection is closed after the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    #[error("the request's head is not HTTP/1.1")]
    Syntax,
    #[error("the request's head is longer than {HEAD_LEN_MAX} bytes or has more than {HEADERS_MAX} headers")]
    TooLong,
    #[error("the request does not say clearly where it ends")]
    Ambiguous,
}

impl Wrong {
    pub fn status(self) -> u16 {
        match self {
            Self::Syntax | Self::Ambiguous => 400,
            Self::TooLong => 431,
        }
    }
}

/// Reads a head from what has arrived so far.
pub fn read(bytes: &[u8]) -> Read {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length <= HEAD_LEN_MAX => match head(&request) {
            Ok(head) => Read::Whole(head, length),
            Err(wrong) => Read::Wrong(wrong),
        },
        Ok(httparse::Status::Partial) if bytes.len() < HEAD_LEN_MAX => Read::Partial,
        Ok(_) | Err(httparse::Error::TooManyHeaders) => Read::Wrong(Wrong::TooLong),
        Err(_) => Read::Wrong(Wrong::Syntax),
    }
}

fn head(request: &httparse::Request<'_, '_>) -> Result<Head, Wrong> {
    let (Some(method), Some(target), Some(version)) = (request.method, request.path, request.version) else {
        return Err(Wrong::Syntax);
    };
    let (path, query) = split(target).ok_or(Wrong::Syntax)?;
    let mut head = Head {
        method: Method::from_bytes(method.as_bytes()).map_err(|_| Wrong::Syntax)?,
        path: path.to_owned(),
        query: query.map(str::to_owned),
        range: None,
        if_none_match: None,
        if_range: None,
        keep_alive: version == 1,
        has_body: false,
    };
    let (mut hosts, mut lengths) = (0, 0);
    for header in request.headers.iter() {
        let name = header.name.to_ascii_lowercase();
        let value = std::str::from_utf8(header.value).map(str::trim);
        match (name.as_str(), value) {
            ("host", _) => hosts += 1,
            ("content-length", Ok(value)) => {
                lengths += 1;
                let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
                if !digits || lengths > 1 {
                    return Err(Wrong::Ambiguous);
                }
                head.has_body |= value.bytes().any(|byte| byte != b'0');
            }
            ("content-length", Err(_)) => return Err(Wrong::Ambiguous),
            ("transfer-encoding", _) => head.has_body = true,
            ("connection", Ok(value)) => {
                let says = |word: &str| value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word));
                head.keep_alive = (head.keep_alive || says("keep-alive")) && !says("close");
            }
            ("range", Ok(value)) => head.range = Some(value.to_owned()),
            ("if-none-match", Ok(value)) => head.if_none_match = Some(value.to_owned()),
            ("if-range", Ok(value)) => head.if_range = Some(value.to_owned()),
            _ => {}
        }
    }
    // RFC 9112, section 3.2: exactly one Host in HTTP/1.1.
    if hosts > 1 || (version == 1 && hosts == 0) {
        return Err(Wrong::Syntax);
    }
    head.keep_alive &= !head.has_body;
    Ok(head)
}

/// Takes a target apart, in its short form or, as RFC 9112 section 3.2.2 asks of servers, with scheme and host.
fn split(target: &str) -> Option<(&str, Option<&str>)> {
    let local = if target.starts_with('/') {
        target
    } else {
        let rest = target.strip_prefix("http://").or_else(|| target.strip_prefix("https://"))?;
        rest.get(rest.find('/')?..)?
    };
    Some(match local.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (local, None),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Head {
        match read(text.as_bytes()) {
            Read::Whole(head, length) => {
                assert_eq!(length, text.len());
                head
            }
            other => panic!("{other:?}"),
        }
    }

    fn wrong(text: &str) -> Wrong {
        match read(text.as_bytes()) {
            Read::Wrong(wrong) => wrong,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_matters_is_read_and_the_rest_passed_over() {
        let head = whole(
            "GET /v2/a/blobs/sha256:00?ns=docker.io HTTP/1.1\r\nHost: x\r\nrange: bytes=5- \r\nAccept-Encoding: gzip\r\n\r\n",
        );
        assert_eq!(
            (head.path.as_str(), head.query.as_deref()),
            ("/v2/a/blobs/sha256:00", Some("ns=docker.io"))
        );
        assert_eq!(head.range.as_deref(), Some("bytes=5-"));
        assert!(head.keep_alive && !head.has_body);
    }

    #[test]
    fn connections_end_as_the_client_and_its_version_say() {
        assert!(!whole("GET / HTTP/1.1\r\nhost: x\r\nConnection: Close\r\n\r\n").keep_alive);
        assert!(!whole("GET / HTTP/1.0\r\n\r\n").keep_alive);
        assert!(whole("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").keep_alive);
        let head = whole("PUT /v2/a/manifests/b HTTP/1.1\r\nhost: x\r\nContent-Length: 7\r\n\r\n");
        assert!(head.has_body && !head.keep_alive);
        assert!(whole("GET / HTTP/1.1\r\nhost: x\r\nContent-Length: 0\r\n\r\n").keep_alive);
    }

    #[test]
    fn a_target_with_scheme_and_host_is_understood() {
        let head = whole("GET http://x:5000/v2/?a=b HTTP/1.1\r\nhost: x\r\n\r\n");
        assert_eq!((head.path.as_str(), head.query.as_deref()), ("/v2/", Some("a=b")));
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        assert_eq!(
            wrong("GET / HTTP/1.1\r\nhost: x\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n"),
            Wrong::Ambiguous
        );
        assert_eq!(wrong("GET / HTTP/1.1\r\nhost: x\r\nContent-Length: +5\r\n\r\n"), Wrong::Ambiguous);
        assert_eq!(wrong("GET / HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n"), Wrong::Syntax);
        assert_eq!(wrong("GET / HTTP/1.1\r\n\r\n"), Wrong::Syntax);
        assert_eq!(wrong("\u{16}\u{3}\u{1}"), Wrong::Syntax);
    }

    #[test]
    fn a_head_is_bounded() {
        assert!(matches!(read(b"GET / HTTP/1.1\r\nhost: x\r\n"), Read::Partial));
        let long = format!("GET / HTTP/1.1\r\nhost: x\r\na: {}", "b".repeat(HEAD_LEN_MAX));
        assert_eq!(wrong(&long), Wrong::TooLong);
        let many = format!("GET / HTTP/1.1\r\nhost: x\r\n{}\r\n", "a: b\r\n".repeat(HEADERS_MAX));
        assert_eq!(wrong(&many), Wrong::TooLong);
        assert_eq!((Wrong::TooLong.status(), Wrong::Syntax.status()), (431, 400));
    }
}
