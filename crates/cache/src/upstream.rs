//! Asks upstream registries: one request after another until there is an answer that means something.
//!
//! A request goes to the configured registry, gets a token where that asks for one, and follows redirects. Each step
//! has a deadline. Bodies are never decoded: what the upstream stores is what is hashed and kept.
//!
//! INVARIANT: a credential is sent to the configured registry and to the token service that it may name, nowhere else;
//! a token goes to the scheme, host and port that asked for it.
//! INVARIANT: blobs are never asked for by HEAD, which stores behind registries refuse.

mod body;
mod breaker;
pub mod connect;
pub mod credentials;
mod problem;
mod tokens;

use std::error::Error as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bailey_oci::{Registry, Repository, redirect};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::Full;
use hyper::body::Incoming;
use rustls::RootCertStore;
use tokio::time::{Instant, timeout_at};

pub use body::{Body, text};
use breaker::{Admission, Breaker};
use connect::Http;
use credentials::{Secret, Source};
pub use problem::Problem;
use tokens::Tokens;

/// How many redirects are followed in a row.
const REDIRECTS_MAX: usize = 5;
/// What this cache calls itself.
const USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("bailey-cache/", env!("CARGO_PKG_VERSION")));

/// Where an upstream is and how it is dealt with.
#[derive(Clone, Debug)]
pub struct Settings {
    pub name: Registry,
    /// Scheme, host, port, and what stands before `/v2/`.
    pub url: Uri,
    /// What stands between `/v2/` and the repository: the registry's name where another cache is asked.
    pub prefix: Option<String>,
    pub credentials: Source,
    /// Hosts of token services besides those that the registry may name anyway.
    pub realms: Vec<String>,
    /// Whether redirects may lead into private networks.
    pub private_redirects: bool,
}

/// One upstream registry.
#[derive(Debug)]
pub struct Upstream {
    settings: Settings,
    home: Origin,
    trusted: Http,
    public: Http,
    tokens: Tokens,
    breaker: Mutex<Breaker>,
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Ask {
    pub method: Method,
    pub repository: Repository,
    /// What follows the repository, such as `manifests/latest`, with its query.
    pub rest: String,
    pub accept: Option<&'static str>,
    /// The bytes that are wanted: a `Range` header.
    pub range: Option<String>,
}

/// What a good answer says: 200 or 206.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Body,
}

/// Scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    scheme: String,
    host: String,
    port: u16,
}

impl Upstream {
    pub fn new(settings: Settings, roots: Arc<RootCertStore>) -> Option<Self> {
        let home = Origin::of(&settings.url)?;
        Some(Self {
            home,
            trusted: connect::client(roots.clone(), false),
            public: connect::client(roots, true),
            tokens: Tokens::default(),
            breaker: Mutex::default(),
            settings,
        })
    }

    pub fn name(&self) -> &Registry {
        &self.settings.name
    }

    /// For how long the upstream has not answered; None while it does.
    pub fn away_for(&self) -> Option<Duration> {
        self.breaker().away_since().map(|since| since.elapsed())
    }

    /// Asks, and gives an answer with status 200 or 206, or why there is none.
    pub async fn ask(&self, ask: &Ask, deadline: Instant) -> Result<Answer, Problem> {
        let turn = self.admit()?;
        let result = match timeout_at(deadline, self.exchange(ask)).await {
            Ok(result) => result,
            Err(_) => Err(Problem::unreachable("it took too long")),
        };
        turn.tell(&result);
        if let Err(problem) = &result {
            let (upstream, repository, rest) = (&self.settings.name, &ask.repository, &ask.rest);
            tracing::debug!(%upstream, %repository, rest, reason = problem.reason(), %problem, "no answer");
        }
        result
    }

    async fn exchange(&self, ask: &Ask) -> Result<Answer, Problem> {
        let scope = format!("repository:{}:pull", ask.repository);
        let mut target = self.uri(ask)?;
        let mut authorization = self.tokens.known(&self.home, &scope);
        // A token that was known may have been revoked; one that is fresh and refused is an answer.
        let mut answered = Vec::new();
        let mut redirects = 0;
        loop {
            let origin = Origin::of(&target).ok_or_else(|| Problem::unusable("a redirect without a host"))?;
            let response = self.send(&origin, &target, ask, authorization.as_ref()).await?;
            let status = response.status();
            if status == StatusCode::UNAUTHORIZED && !answered.contains(&origin) {
                let known = if origin == self.home { Some(&self.settings.credentials) } else { None };
                let context = tokens::Context { upstream: self, origin: &origin, scope: &scope, credentials: known };
                authorization = Some(self.tokens.obtain(&context, response.headers(), authorization.as_ref()).await?);
                answered.push(origin);
            } else if let Some(location) = location(&response) {
                redirects += 1;
                if redirects > REDIRECTS_MAX {
                    return Err(Problem::unusable("too many redirects"));
                }
                let next = resolve(&target, location)?;
                let next_origin = Origin::of(&next).ok_or_else(|| Problem::unusable("a redirect without a host"))?;
                if next_origin.scheme != "https" && origin.scheme == "https" {
                    return Err(Problem::unusable("a redirect from https to http"));
                }
                if next_origin != origin {
                    authorization = None;
                }
                target = next;
            } else {
                return judge(response);
            }
        }
    }

    async fn send(
        &self,
        origin: &Origin,
        target: &Uri,
        ask: &Ask,
        authorization: Option<&Secret>,
    ) -> Result<Response<Incoming>, Problem> {
        let http = self.way(origin, *origin == self.home)?;
        let mut request = Request::new(Full::new(Bytes::new()));
        *request.method_mut() = ask.method.clone();
        *request.uri_mut() = target.clone();
        let headers = request.headers_mut();
        headers.insert(header::USER_AGENT, USER_AGENT);
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(accept) = ask.accept {
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        }
        if let Some(range) = &ask.range {
            headers.insert(header::RANGE, value(range)?);
        }
        if let Some(secret) = authorization {
            headers.insert(header::AUTHORIZATION, sensitive(secret)?);
        }
        http.request(request).await.map_err(|error| Problem::unreachable(cause(&error)))
    }

    /// Which client may dial this origin: any address of what the configuration names, public ones of all others.
    fn way(&self, origin: &Origin, named: bool) -> Result<&Http, Problem> {
        if named || self.settings.private_redirects {
            return Ok(&self.trusted);
        }
        let literal = origin.host.trim_start_matches('[').trim_end_matches(']').parse();
        if literal.is_ok_and(redirect::is_private) {
            return Err(Problem::unusable("it points to a private address, and that is not allowed for this upstream"));
        }
        Ok(&self.public)
    }

    fn uri(&self, ask: &Ask) -> Result<Uri, Problem> {
        let base = self.settings.url.path().trim_end_matches('/');
        let prefix = self.settings.prefix.as_deref().map(|prefix| format!("{prefix}/")).unwrap_or_default();
        let path = format!("{base}/v2/{prefix}{}/{}", ask.repository, ask.rest);
        let mut parts = self.settings.url.clone().into_parts();
        parts.path_and_query = Some(path.parse().map_err(|_| Problem::unusable("a name that is no URL"))?);
        Uri::from_parts(parts).map_err(|_| Problem::unusable("a name that is no URL"))
    }

    fn admit(&self) -> Result<Turn<'_>, Problem> {
        match self.breaker().admit(Instant::now()) {
            Admission::Go => Ok(Turn { upstream: self, probe: false }),
            Admission::Probe => Ok(Turn { upstream: self, probe: true }),
            Admission::Wait(retry_after) => Err(Problem::Away { retry_after }),
        }
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that was let through. One that is given up tells the breaker so.
struct Turn<'a> {
    upstream: &'a Upstream,
    probe: bool,
}

impl Turn<'_> {
    fn tell(mut self, result: &Result<Answer, Problem>) {
        self.probe = false;
        let mut breaker = self.upstream.breaker();
        match result {
            // What cannot be used was an answer all the same.
            Ok(_) | Err(Problem::NotFound | Problem::Denied { .. } | Problem::Unusable { .. }) => breaker.answered(),
            Err(problem) => breaker.failed(Instant::now(), problem.retry_after()),
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.probe {
            self.upstream.breaker().forgone();
        }
    }
}

impl Origin {
    pub(crate) fn of(uri: &Uri) -> Option<Self> {
        let scheme = uri.scheme_str()?.to_ascii_lowercase();
        let port = match (uri.port_u16(), scheme.as_str()) {
            (Some(port), _) => port,
            (None, "https") => 443,
            (None, "http") => 80,
            (None, _) => return None,
        };
        Some(Self { host: uri.host()?.to_ascii_lowercase(), scheme, port })
    }
}

/// Makes an answer or a problem of a response that is neither a challenge nor a redirect.
fn judge(response: Response<Incoming>) -> Result<Answer, Problem> {
    let (parts, body) = response.into_parts();
    let retry_after = retry_after(&parts.headers);
    match parts.status {
        StatusCode::OK | StatusCode::PARTIAL_CONTENT => {
            let encoding = parts.headers.get(header::CONTENT_ENCODING);
            if encoding.is_some_and(|encoding| encoding != "identity") {
                return Err(Problem::unusable("it is encoded though that was declined"));
            }
            Ok(Answer { status: parts.status, headers: parts.headers, body: Body::new(body) })
        }
        StatusCode::NOT_FOUND => Err(Problem::NotFound),
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Err(Problem::Denied { status: status.as_u16() }),
        StatusCode::TOO_MANY_REQUESTS => Err(Problem::Limited { retry_after }),
        status => Err(Problem::Failed { status: status.as_u16(), retry_after }),
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    redirect::retry_after(text, crate::clock::now())
}

fn location(response: &Response<Incoming>) -> Option<&str> {
    let follows = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    response.headers().get(header::LOCATION).filter(|_| follows)?.to_str().ok()
}

/// Takes a `Location` for what it means at `base` (RFC 3986, section 5, as far as registries use it).
fn resolve(base: &Uri, location: &str) -> Result<Uri, Problem> {
    let wrong = || Problem::unusable("a redirect to what is no URL");
    // The text itself is never shown: signed URLs carry their own credential.
    let location = location.split('#').next().unwrap_or_default();
    let scheme = base.scheme_str().unwrap_or("https");
    let authority = base.authority().map(|authority| authority.as_str()).unwrap_or_default();
    let absolute = if location.starts_with("http://") || location.starts_with("https://") {
        location.to_owned()
    } else if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else if location.starts_with('/') {
        format!("{scheme}://{authority}{location}")
    } else {
        let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{scheme}://{authority}{folder}/{location}")
    };
    let uri: Uri = absolute.parse().map_err(|_| wrong())?;
    // A user in a URL would be a credential that nobody configured.
    let named = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
    if named { Ok(uri) } else { Err(wrong()) }
}

fn value(text: &str) -> Result<HeaderValue, Problem> {
    HeaderValue::from_str(text).map_err(|_| Problem::unusable("a header that cannot be written"))
}

fn sensitive(secret: &Secret) -> Result<HeaderValue, Problem> {
    let mut value = value(secret.expose())?;
    value.set_sensitive(true);
    Ok(value)
}

/// Says what a failed request died of, in the words of its innermost cause.
fn cause(error: &hyper_util::client::legacy::Error) -> String {
    let mut cause = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        cause = source.to_string();
        next = source.source();
    }
    cause
}

/// The header in which registries name the digest of what they send.
pub const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");

#[cfg(test)]
mod tests;
