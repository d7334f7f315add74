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
use std::time::{Duration, SystemTime};

use bailey_oci::status::{Cause, REASON_HEADER};
use bailey_oci::trust::{self, Trust, TrustError};
use bailey_oci::{Registry, Repository, pace};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::Full;
use hyper::body::Incoming;
use rustls::RootCertStore;
use tokio::time::{Instant, timeout_at};
use url::Url;

pub use body::{Body, text};
use breaker::{Admission, Breaker};
use connect::Http;
use credentials::{Secret, Source};
pub use problem::Problem;
use tokens::Tokens;

/// What this cache calls itself.
const USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("bailey-cache/", env!("CARGO_PKG_VERSION")));

/// Where an upstream is and how it is dealt with.
#[derive(Clone, Debug)]
pub struct Settings {
    pub name: Registry,
    /// Scheme, host, port, and what stands before `/v2/`.
    pub url: Url,
    /// What stands between `/v2/` and the repository: the registry's name where another cache is asked.
    pub prefix: Option<String>,
    pub credentials: Source,
    /// Token services and redirect targets that are allowed beyond the rules.
    pub trust: Trust,
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
    /// How long answers took of late, in milliseconds.
    pace: Mutex<f64>,
}

/// A failure that comes sooner says nothing about how slow an upstream is.
const NOTICEABLE_MILLIS: f64 = 1000.0;

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
pub(crate) struct Origin(String);

impl Upstream {
    pub fn new(settings: Settings, roots: Arc<RootCertStore>) -> Self {
        Self {
            home: Origin::of(&settings.url),
            trusted: connect::client(roots.clone(), false),
            public: connect::client(roots, true),
            tokens: Tokens::default(),
            breaker: Mutex::default(),
            pace: Mutex::default(),
            settings,
        }
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
        let asked = Instant::now();
        let result = match timeout_at(deadline, self.exchange(ask)).await {
            Ok(result) => result,
            Err(_) => Err(Problem::unreachable("it took too long")),
        };
        turn.tell(&result);
        // A refused connection is quick, and no answer.
        let is_away = matches!(&result, Err(problem) if problem.cause == Cause::Unreachable);
        self.note_pace(asked.elapsed(), is_away);
        if let Err(problem) = &result {
            let (upstream, repository, rest) = (&self.settings.name, &ask.repository, &ask.rest);
            tracing::debug!(%upstream, %repository, rest, reason = problem.cause.reason(), %problem, "no answer");
        }
        result
    }

    /// How long the upstream took to answer of late, in milliseconds; 0 before the first answer. One that was given up
    /// counts with the time it had.
    pub fn answer_millis(&self) -> f64 {
        *self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_pace(&self, took: Duration, is_away: bool) {
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        let took = took.as_secs_f64() * 1000.0;
        if is_away && (took <= *pace || took < NOTICEABLE_MILLIS) {
            return;
        }
        *pace = if *pace == 0.0 { took } else { *pace * 0.8 + took * 0.2 };
    }

    async fn exchange(&self, ask: &Ask) -> Result<Answer, Problem> {
        let scope = format!("repository:{}:pull", ask.repository);
        let mut target = self.url(ask)?;
        let mut authorization = self.tokens.known(&self.home, &scope);
        // A token that was known may have been revoked; one that is fresh and refused is an answer.
        let mut answered = Vec::new();
        let mut redirects = 0;
        loop {
            let origin = Origin::of(&target);
            let response = self.send(&target, ask, authorization.as_ref()).await?;
            if response.status() == StatusCode::UNAUTHORIZED && !answered.contains(&origin) {
                let known = if origin == self.home { Some(&self.settings.credentials) } else { None };
                let context =
                    tokens::Context { upstream: self, at: &target, scope: &scope, credentials: known };
                authorization =
                    Some(self.tokens.obtain(&context, response.headers(), authorization.as_ref()).await?);
                answered.push(origin);
            } else if let Some(location) = location(&response) {
                redirects += 1;
                if redirects > trust::REDIRECTS_MAX {
                    return Err(Problem::refused("too many redirects"));
                }
                let hop = trust::redirect(&target, location, &self.settings.trust)
                    .map_err(|error| distrust(&error))?;
                if !hop.keeps_authorization {
                    authorization = None;
                }
                target = hop.url;
            } else {
                return judge(response, self.settings.prefix.is_some());
            }
        }
    }

    async fn send(
        &self,
        target: &Url,
        ask: &Ask,
        authorization: Option<&Secret>,
    ) -> Result<Response<Incoming>, Problem> {
        let mut request = Request::new(Full::new(Bytes::new()));
        *request.method_mut() = ask.method.clone();
        *request.uri_mut() = uri(target)?;
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
        self.way(target).request(request).await.map_err(|error| Problem::unreachable(cause(&error)))
    }

    /// Which client dials this: any address of hosts that the configuration names, public ones of all others.
    fn way(&self, target: &Url) -> &Http {
        let trust = &self.settings.trust;
        let host = target.host_str();
        let is_home = host == self.settings.url.host_str();
        let is_named = host.is_some_and(|host| trust.realm_hosts.iter().any(|named| named == host));
        if is_home || is_named || trust::may_be_private(target, trust) { &self.trusted } else { &self.public }
    }

    fn url(&self, ask: &Ask) -> Result<Url, Problem> {
        let base = self.settings.url.as_str().trim_end_matches('/');
        let prefix = self.settings.prefix.as_deref().map(|prefix| format!("{prefix}/")).unwrap_or_default();
        let text = format!("{base}/v2/{prefix}{}/{}", ask.repository, ask.rest);
        Url::parse(&text).map_err(|_| Problem::nonsense("a name that makes no URL"))
    }

    fn admit(&self) -> Result<Turn<'_>, Problem> {
        match self.breaker().admit(Instant::now()) {
            Admission::Go => Ok(Turn { upstream: self, probe: false }),
            Admission::Probe => Ok(Turn { upstream: self, probe: true }),
            Admission::Wait(retry_after) => {
                Err(Problem { retry_after: Some(retry_after), ..Problem::of(Cause::BreakerOpen) })
            }
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
            Err(problem) if problem.cause.is_outage() => breaker.failed(Instant::now(), problem.retry_after),
            // A refusal is an answer all the same.
            Ok(_) | Err(_) => breaker.answered(),
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
    pub(crate) fn of(url: &Url) -> Self {
        Self(url.origin().ascii_serialization())
    }
}

/// Makes an answer or a problem of a response that is neither a challenge nor a redirect.
///
/// A tier above says 503 for whatever it cannot give, and in a header why: what one repository is refused for must not
/// look like an outage of them all.
fn judge(response: Response<Incoming>, is_tier: bool) -> Result<Answer, Problem> {
    let (parts, body) = response.into_parts();
    let retry_after = retry_after(&parts.headers);
    match parts.status {
        StatusCode::OK | StatusCode::PARTIAL_CONTENT => {
            let encoding = parts.headers.get(header::CONTENT_ENCODING);
            if encoding.is_some_and(|encoding| encoding != "identity") {
                return Err(Problem::nonsense("it is encoded though that was declined"));
            }
            Ok(Answer { status: parts.status, headers: parts.headers, body: Body::new(body) })
        }
        status => {
            let said = text(&parts.headers, REASON_HEADER).filter(|_| is_tier && status.is_server_error());
            let cause = said.and_then(|said| Cause::ALL.into_iter().find(|cause| cause.reason() == said));
            match cause {
                Some(cause) if cause != Cause::NotFound => Err(Problem { retry_after, ..Problem::of(cause) }),
                _ => Err(Problem::status(status.as_u16(), retry_after)),
            }
        }
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    pace::retry_after(text, SystemTime::now())
}

fn location(response: &Response<Incoming>) -> Option<&str> {
    let follows = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    response.headers().get(header::LOCATION).filter(|_| follows)?.to_str().ok()
}

fn uri(url: &Url) -> Result<Uri, Problem> {
    url.as_str().parse().map_err(|_| Problem::nonsense("a URL that cannot be asked"))
}

fn distrust(error: &TrustError) -> Problem {
    Problem::refused(error.to_string())
}

fn value(text: &str) -> Result<HeaderValue, Problem> {
    HeaderValue::from_str(text).map_err(|_| Problem::nonsense("a header that cannot be written"))
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
