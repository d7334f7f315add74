//! One connection of the upstream: requests are read, answered, and answered wrongly where a fault says so.

use std::io;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::answer::Reply;
use super::fault::Fault;
use super::record::Seen;
use super::upstream::{Auth, Shared, lock, span};

/// How much of a body is sent at a time.
const PIECE_BYTES: u64 = 32 * 1024;
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Serves requests until one end closes.
pub(super) async fn serve(mut stream: TcpStream, shared: &Shared) {
    let _no_delay = stream.set_nodelay(true);
    let mut buffer = Vec::new();
    while let Ok(Some(seen)) = read_request(&mut stream, &mut buffer).await {
        shared.record.add(seen.clone());
        let fault = shared.fault(&seen.method, &seen.target);
        let reply = reply(&seen, shared, fault.as_ref());
        match send(&mut stream, &seen, shared, reply, fault).await {
            Ok(true) => {}
            Ok(false) | Err(_) => return,
        }
    }
}

/// Reads one head. Bodies are not expected but for the form of a token request, which is read and not looked at.
async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<Seen>> {
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if buffer.len() > HEAD_BYTES_MAX || stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let head: Vec<u8> = buffer.drain(..end).collect();
    let head = String::from_utf8_lossy(&head);
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let seen = Seen::new(method.to_owned(), target.to_owned(), headers);
    let body: usize = seen.header("content-length").and_then(|text| text.parse().ok()).unwrap_or_default();
    while buffer.len() < body {
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    buffer.drain(..body);
    Ok(Some(seen))
}

/// The right answer, or the status that a fault puts in its place.
fn reply(seen: &Seen, shared: &Shared, fault: Option<&Fault>) -> Reply {
    if let Some(Fault::Status { status, headers, body }) = fault {
        let reply = Reply::content("text/plain", super::content::Content::Bytes(body.clone().into()));
        return headers.iter().fold(reply.status(*status), |reply, (name, value)| reply.header(name, value));
    }
    let settings = shared.settings();
    let (path, query) = seen.target.split_once('?').unwrap_or((&seen.target, ""));
    if path == "/token" {
        return token(seen, shared, settings.auth.as_ref());
    }
    if let Some(auth) = &settings.auth
        && !is_known(seen, shared, auth)
    {
        return challenge(seen, auth);
    }
    if matches!(path, "/v2" | "/v2/") {
        return Reply::json(&json!({}));
    }
    if let Some(base) = settings.blobs_at.as_ref().filter(|_| path.contains("/blobs/")) {
        return Reply::empty(307).header("location", format!("{base}{}", seen.target));
    }
    let Some(rest) = path.strip_prefix("/v2/") else { return Reply::empty(404) };
    let reply = lock(&shared.repositories).answer(rest, query, !settings.no_referrers);
    let range = seen.header("range").filter(|_| !matches!(fault, Some(Fault::NoRanges)));
    match fault {
        Some(Fault::Header(name, value)) => reply.narrowed(range).header(name, value),
        Some(Fault::Without(name)) => {
            let mut reply = reply.narrowed(range);
            reply.headers.retain(|(key, _)| key != name);
            reply
        }
        _ => reply.narrowed(range),
    }
}

fn is_known(seen: &Seen, shared: &Shared, auth: &Auth) -> bool {
    let Some(said) = seen.authorization() else { return false };
    match auth {
        Auth::Basic { user, password } => said == basic(user, password),
        Auth::Token { .. } => {
            let tokens = lock(&shared.tokens);
            let expires = said.strip_prefix("Bearer ").and_then(|token| tokens.get(token));
            expires.is_some_and(|expires| *expires > Instant::now())
        }
    }
}

fn challenge(seen: &Seen, auth: &Auth) -> Reply {
    let host = seen.header("host").unwrap_or_default();
    let value = match auth {
        Auth::Basic { .. } => "Basic realm=\"test\"".to_owned(),
        Auth::Token { realm, .. } => {
            let realm = realm.clone().unwrap_or_else(|| format!("http://{host}/token"));
            let name = seen.target.strip_prefix("/v2/").and_then(|rest| {
                ["/manifests/", "/blobs/", "/tags/", "/referrers/"]
                    .iter()
                    .find_map(|part| rest.split_once(part))
            });
            let scope =
                name.map(|(name, _)| format!(",scope=\"repository:{name}:pull\"")).unwrap_or_default();
            format!("Bearer realm=\"{realm}\",service=\"test\"{scope}")
        }
    };
    Reply::json(&json!({ "errors": [{ "code": "UNAUTHORIZED" }] }))
        .status(401)
        .header("www-authenticate", value)
}

fn token(seen: &Seen, shared: &Shared, auth: Option<&Auth>) -> Reply {
    let Some(Auth::Token { credentials, expires_in, .. }) = auth else { return Reply::empty(404) };
    if let Some((user, password)) = credentials
        && seen.authorization() != Some(basic(user, password).as_str())
    {
        return Reply::empty(401);
    }
    let mut tokens = lock(&shared.tokens);
    let token = format!("token-{}", tokens.len() + 1);
    tokens.insert(token.clone(), Instant::now() + *expires_in);
    Reply::json(&json!({ "token": token, "expires_in": expires_in.as_secs() }))
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// Sends an answer; whether the connection can be used again.
async fn send(
    stream: &mut TcpStream,
    seen: &Seen,
    shared: &Shared,
    reply: Reply,
    fault: Option<Fault>,
) -> io::Result<bool> {
    match &fault {
        Some(Fault::Delay(delay)) => tokio::time::sleep(*delay).await,
        Some(Fault::Hang) => return hang(stream).await,
        Some(Fault::Reset) => return reset(stream),
        Some(Fault::SlowHead(pause)) => return slow_head(stream, *pause).await,
        Some(Fault::Garbage) => {
            stream.write_all(b"SSH-2.0-not-a-registry\r\n").await?;
            return Ok(false);
        }
        _ => {}
    }
    let endless = matches!(fault, Some(Fault::Endless));
    let body_len = match &fault {
        Some(Fault::ShortAt(at)) => reply.length.min(*at),
        _ => reply.length,
    };
    stream.write_all(reply.head((!endless).then_some(body_len)).as_bytes()).await?;
    if seen.method == "HEAD" {
        return Ok(true);
    }
    let mut sent = 0u64;
    while sent < body_len || endless {
        let stop = match &fault {
            Some(Fault::FinAt(at) | Fault::ResetAt(at)) => *at,
            _ => u64::MAX,
        };
        if sent >= stop {
            return if matches!(fault, Some(Fault::ResetAt(_))) { reset(stream) } else { Ok(false) };
        }
        let wanted = PIECE_BYTES.min(stop - sent).min(if endless { PIECE_BYTES } else { body_len - sent });
        let piece = piece(&reply, sent, wanted, fault.as_ref());
        let length = piece.len() as u64;
        if let Some(Fault::Rate(rate)) = &fault {
            tokio::time::sleep(span(length, *rate)).await;
        }
        shared.pace(length).await;
        stream.write_all(&piece).await?;
        sent += length;
        seen.add_sent(length);
    }
    Ok(!endless)
}

fn piece(reply: &Reply, sent: u64, wanted: u64, fault: Option<&Fault>) -> Vec<u8> {
    if matches!(fault, Some(Fault::Endless)) {
        return vec![b'x'; usize::try_from(wanted).unwrap_or_default()];
    }
    let mut piece = reply.content.piece(reply.offset + sent, wanted).to_vec();
    if let Some(Fault::WrongByte(at)) = fault
        && let Some(at) = at.checked_sub(sent)
        && let Some(byte) = usize::try_from(at).ok().and_then(|at| piece.get_mut(at))
    {
        *byte ^= 0x40;
    }
    piece
}

/// Says nothing until the other end gives up.
async fn hang(stream: &mut TcpStream) -> io::Result<bool> {
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await? > 0 {}
    Ok(false)
}

fn reset(stream: &TcpStream) -> io::Result<bool> {
    stream.set_zero_linger()?;
    Ok(false)
}

async fn slow_head(stream: &mut TcpStream, pause: Duration) -> io::Result<bool> {
    stream.write_all(b"HTTP/1.1 200 OK\r\nx-slow: ").await?;
    loop {
        stream.write_all(b"x").await?;
        tokio::time::sleep(pause).await;
    }
}
