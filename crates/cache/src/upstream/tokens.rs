//! Tokens of registries that want one: asked for when a challenge comes, kept until they expire.
//!
//! The flow is that of the distribution project (`docs/content/spec/auth/token.md`, `oauth.md`): GET first, POST where
//! the service does not know GET or an identity token is to be exchanged.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bailey_oci::challenge::{self, Bearer, Challenge};
use bailey_oci::status::Cause;
use bailey_oci::trust;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use serde::Deserialize;
use tokio::time::Instant;
use url::Url;
use zeroize::Zeroize as _;

use super::body::Body;
use super::credentials::{Credential, Secret, Source};
use super::{Origin, Problem, Upstream, distrust, retry_after, sensitive, uri};

/// The validity of a token whose service does not say it: the least that the specification allows.
const VALID_DEFAULT: u64 = 60;
/// A token is not used in its last seconds, in which it could expire on the way.
const VALID_MARGIN: u64 = 5;
/// The longest answer of a token service.
const ANSWER_LEN_MAX: usize = 256 << 10;
/// As many tokens are kept; one each for a repository.
const TOKENS_MAX: usize = 4096;

type Key = (Origin, String);

/// The tokens of one upstream.
#[derive(Debug, Default)]
pub struct Tokens {
    slots: Mutex<HashMap<Key, Slot>>,
}

/// One token, or none yet. Who asks for it holds the lock, so that a herd of requests asks once; the wait ends with
/// the deadline of each.
type Slot = Arc<tokio::sync::Mutex<Option<Token>>>;

#[derive(Clone, Debug)]
struct Token {
    authorization: Secret,
    until: Instant,
}

/// For whom a token is.
pub struct Context<'a> {
    pub upstream: &'a Upstream,
    /// The URL that asked for a token.
    pub at: &'a Url,
    /// What the token is kept under.
    pub scope: &'a str,
    /// Absent for origins that are not the configured registry: they get to see no credential.
    pub credentials: Option<&'a Source>,
}

impl Tokens {
    /// The value of `Authorization` for a scope, if it is known and holds.
    pub fn known(&self, origin: &Origin, scope: &str) -> Option<Secret> {
        let slot = self.slot(origin, scope);
        let token = slot.try_lock().ok()?;
        token.as_ref().filter(|token| token.until > Instant::now()).map(|token| token.authorization.clone())
    }

    /// Answers a challenge. `refused` is what was sent and not accepted.
    pub async fn obtain(
        &self,
        context: &Context<'_>,
        headers: &HeaderMap,
        refused: Option<&Secret>,
    ) -> Result<Secret, Problem> {
        let slot = self.slot(&Origin::of(context.at), context.scope);
        let mut token = slot.lock().await;
        // Another request may have got a new one while this one waited.
        let newer = token
            .as_ref()
            .filter(|token| token.until > Instant::now() && Some(&token.authorization) != refused);
        if let Some(newer) = newer {
            return Ok(newer.authorization.clone());
        }
        let fresh = answer(context, headers).await?;
        let authorization = fresh.authorization.clone();
        *token = Some(fresh);
        Ok(authorization)
    }

    fn slot(&self, origin: &Origin, scope: &str) -> Slot {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (origin.clone(), scope.to_owned());
        if slots.len() >= TOKENS_MAX && !slots.contains_key(&key) {
            let now = Instant::now();
            let holds = |slot: &Slot| {
                slot.try_lock().is_ok_and(|token| token.as_ref().is_some_and(|t| t.until > now))
            };
            slots.retain(|_, slot| holds(slot));
            if slots.len() >= TOKENS_MAX {
                slots.clear();
            }
        }
        slots.entry(key).or_default().clone()
    }
}

async fn answer(context: &Context<'_>, headers: &HeaderMap) -> Result<Token, Problem> {
    let credential = match context.credentials {
        Some(source) => source.read().await.map_err(|error| {
            tracing::error!(upstream = %context.upstream.name(), %error, "no credential");
            Problem::refused("it wants a credential, and the configured one cannot be read")
        })?,
        None => None,
    };
    let texts = headers.get_all(header::WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    let offered = challenge::parse(texts);
    match challenge::choose(&offered) {
        Some(Challenge::Bearer(bearer)) => {
            let realm = trust::realm(context.at, &bearer.realm, &context.upstream.settings.trust);
            fetch(context, &realm.map_err(|error| distrust(&error))?, bearer, credential.as_ref()).await
        }
        Some(Challenge::Basic { .. }) => match credential.as_ref().and_then(Credential::basic) {
            // Read again now and then, so that a changed file is used.
            Some(authorization) => {
                Ok(Token { authorization, until: Instant::now() + Duration::from_secs(VALID_DEFAULT) })
            }
            None => Err(Problem::of(Cause::Unauthorized)),
        },
        _ => Err(Problem::of(Cause::Unauthorized)),
    }
}

async fn fetch(
    context: &Context<'_>,
    realm: &Url,
    bearer: &Bearer,
    credential: Option<&Credential>,
) -> Result<Token, Problem> {
    let scope = bearer.scope.as_deref().filter(|scope| !scope.trim().is_empty()).unwrap_or(context.scope);
    let mut fields = vec![("scope", scope)];
    fields.extend(bearer.service.as_deref().map(|service| ("service", service)));
    if let Some(Credential::IdentityToken(secret)) = credential {
        let secret_fields = [("grant_type", "refresh_token"), ("refresh_token", secret.expose())];
        return read(post(context, realm, &fields, &secret_fields).await?).await;
    }
    let basic = credential.and_then(Credential::basic);
    let answer = send(context, realm, get(realm, &bearer.query(scope), basic.as_ref())?).await?;
    match (answer.status(), credential) {
        (
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED,
            Some(Credential::Password { username, password }),
        ) => {
            let secret_fields = [
                ("grant_type", "password"),
                ("username", username.as_str()),
                ("password", password.expose()),
            ];
            read(post(context, realm, &fields, &secret_fields).await?).await
        }
        _ => read(answer).await,
    }
}

fn get(realm: &Url, query: &str, basic: Option<&Secret>) -> Result<Request<Full<Bytes>>, Problem> {
    let mut url = realm.clone();
    let own = realm.query().map(|own| format!("{own}&")).unwrap_or_default();
    url.set_query(Some(&format!("{own}{query}")));
    let mut request = Request::new(Full::new(Bytes::new()));
    *request.uri_mut() = uri(&url)?;
    if let Some(secret) = basic {
        request.headers_mut().insert(header::AUTHORIZATION, sensitive(secret)?);
    }
    Ok(request)
}

async fn post(
    context: &Context<'_>,
    realm: &Url,
    fields: &[(&str, &str)],
    secret_fields: &[(&str, &str)],
) -> Result<Response<Incoming>, Problem> {
    let form = {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(fields)
            .extend_pairs(secret_fields)
            .append_pair("client_id", "bailey-cache")
            .finish()
    };
    let mut request = Request::new(Full::new(Bytes::from(form)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri(realm)?;
    let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
    request.headers_mut().insert(header::CONTENT_TYPE, kind);
    send(context, realm, request).await
}

async fn send(
    context: &Context<'_>,
    realm: &Url,
    mut request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, Problem> {
    request.headers_mut().insert(header::USER_AGENT, super::USER_AGENT);
    request.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let sent = context.upstream.way(realm).request(request).await;
    sent.map_err(|error| Problem::unreachable(format!("token service: {}", super::cause(&error))))
}

#[derive(Deserialize)]
struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<u64>,
}

impl Drop for TokenAnswer {
    fn drop(&mut self) {
        self.token.zeroize();
        self.access_token.zeroize();
    }
}

async fn read(response: Response<Incoming>) -> Result<Token, Problem> {
    let (parts, body) = response.into_parts();
    let retry_after = retry_after(&parts.headers);
    match parts.status {
        StatusCode::OK => {}
        status if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS => {
            // Whatever it says about its own path, it is about the credential and not about the image.
            return Err(Problem::of(Cause::Unauthorized));
        }
        status => return Err(Problem::status(status.as_u16(), retry_after)),
    }
    let deadline = Instant::now() + Duration::from_secs(10);
    let body = Body::new(body).whole(ANSWER_LEN_MAX, deadline).await?;
    // The parser's own message would repeat parts of the answer.
    let answer: TokenAnswer =
        serde_json::from_slice(&body).map_err(|_| Problem::nonsense("its token service gave no token"))?;
    let token = [answer.token.as_deref(), answer.access_token.as_deref()];
    let token = token.into_iter().flatten().find(|token| !token.is_empty());
    let token = token.ok_or_else(|| Problem::nonsense("its token service gave no token"))?;
    // A day at most: a service that says more has no say in how long a revoked token is tried.
    let valid = answer.expires_in.unwrap_or(VALID_DEFAULT).clamp(VALID_DEFAULT, 86_400) - VALID_MARGIN;
    Ok(Token {
        authorization: Secret::new(&format!("Bearer {token}")),
        until: Instant::now() + Duration::from_secs(valid),
    })
}
