//! From a request to an answer: routes, asks the cache, and says what came of it in the words of HTTP.

use std::sync::Arc;

use bailey_oci::page::Page;
use bailey_oci::range::{self, Served};
use bailey_oci::status::{self, REASON_HEADER, Wanted};
use bailey_oci::visibility::{Client, Place};
use bailey_oci::{Code, Digest, Reference, Request, Resource, Route, link, route};
use http::Method;
use tokio::time::{Instant, timeout_at};

use super::Front;
use super::answer::{Answer, BlobBody, Body};
use super::head::Head;
use super::multipart::{Extent, lay_out};
use crate::cache::{Source, Stale, answer_by};
use crate::index::ListRecord;
use crate::upstream::Problem;

/// Answers a request. The answer's body may still have to come.
pub async fn respond(front: &Arc<Front>, client: &Client, head: &Head) -> Answer {
    let answer = match head.method {
        Method::GET | Method::HEAD => read(front, client, head).await,
        _ => {
            let message = "this cache is for reading; push to the registry itself";
            let mut answer = Answer::error(405, Code::Unsupported, message).with("allow", "GET, HEAD");
            answer.close = head.has_body;
            answer
        }
    };
    front.cache.metrics.answered(answer.status);
    if head.method == Method::HEAD { answer.without_body() } else { answer }
}

async fn read(front: &Arc<Front>, client: &Client, head: &Head) -> Answer {
    let request = match route::route(&head.path, head.query.as_deref(), &front.upstreams) {
        Ok(Route::Base) => return Answer::bytes(200, "application/json", "{}"),
        Ok(Route::Request(request)) => request,
        Err(error) => return Answer::error(error.status(), error.code(), &error.to_string()),
    };
    let deadline = answer_by();
    let wanted = match request.resource {
        Resource::Manifest(_) => Wanted::Manifest,
        Resource::Blob(_) => Wanted::Blob,
        Resource::Tags(_) | Resource::Referrers { .. } => Wanted::List,
    };
    let upstream = request.upstream.to_string();
    let asked = async {
        match &request.resource {
            Resource::Manifest(reference) => {
                manifest(front, client, head, &request, reference, deadline).await
            }
            Resource::Blob(digest) => blob(front, client, head, &request, *digest, deadline).await,
            Resource::Tags(page) => {
                let rest = with_query("tags/list", &page.query());
                list(front, client, head, &request, &rest, deadline).await
            }
            Resource::Referrers { subject, artifact_type, page } => {
                let rest = with_query(
                    &format!("referrers/{subject}"),
                    &referrers_query(artifact_type.as_deref(), page),
                );
                list(front, client, head, &request, &rest, deadline).await
            }
        }
    };
    // Each way keeps the deadline by itself; this is for the one that somebody adds and forgets it.
    let result = match timeout_at(deadline + std::time::Duration::from_millis(300), asked).await {
        Ok(result) => result,
        Err(_) => Err(Problem::unreachable("it took too long")),
    };
    result.unwrap_or_else(|problem| refusal(&problem, wanted)).with("oci-namespace", upstream)
}

async fn manifest(
    front: &Arc<Front>,
    client: &Client,
    head: &Head,
    request: &Request,
    reference: &Reference,
    deadline: Instant,
) -> Result<Answer, Problem> {
    let served = front.cache.manifest(client, &place(request), reference, deadline).await?;
    let manifest = served.manifest;
    let tag = etag(&manifest.digest);
    let answer = if matches(head.if_none_match.as_deref(), &tag) {
        Answer { status: 304, headers: Vec::new(), length: 0, body: Body::Empty, close: false }
    } else {
        Answer::bytes(200, &manifest.media_type, manifest.bytes)
    };
    let answer = answer.with("docker-content-digest", manifest.digest.to_string()).with("etag", tag);
    Ok(warned(answer, served.stale))
}

async fn blob(
    front: &Arc<Front>,
    client: &Client,
    head: &Head,
    request: &Request,
    digest: Digest,
    deadline: Instant,
) -> Result<Answer, Problem> {
    let place = place(request);
    let tag = etag(&digest);
    let whole = head.if_range.as_deref().is_some_and(|wanted| wanted != tag);
    // RFC 9110, section 14.2: a range means something to GET alone.
    let range = head.range.as_deref().filter(|_| !whole && head.method == Method::GET);
    let (size, source) = if head.method == Method::HEAD {
        (front.cache.blob_size(client, &place, digest, deadline).await?, None)
    } else {
        let source = front.cache.blob(client, &place, digest, deadline).await?;
        (source.size(), Some(source))
    };
    let served = match (range::resolve(range, size), &source) {
        // Many small pieces past the store would be as many requests; the whole is an answer, too.
        (Served::Several(_), Some(Source::Past(_))) => Served::Whole,
        (served, _) => served,
    };
    let Extent { status, mut headers, length, parts } = lay_out(served, size, &boundary());
    headers.push(("docker-content-digest", digest.to_string()));
    headers.push(("etag", tag));
    headers.push(("accept-ranges", range::UNIT.to_owned()));
    let body = match (source, parts.pieces.first()) {
        (Some(source), Some((_, span))) => {
            let passing = match &source {
                Source::Past(size) => Some(front.cache.pass(&place, digest, *span, *size).await?),
                Source::Stored(_) | Source::Filling(..) => None,
            };
            Body::Blob(Box::new(BlobBody { place, digest, source, parts, passing }))
        }
        _ => Body::Empty,
    };
    Ok(Answer { status, headers, length, body, close: false })
}

async fn list(
    front: &Arc<Front>,
    client: &Client,
    head: &Head,
    request: &Request,
    rest: &str,
    deadline: Instant,
) -> Result<Answer, Problem> {
    let (record, stale) = front.cache.list(client, &place(request), rest, deadline).await?;
    let next = next_link(&record, head, request);
    let mut answer = Answer::bytes(200, &record.media_type, record.body);
    answer.headers.extend(next.map(|next| ("link", next)));
    answer.headers.extend(record.filters_applied.map(|filters| ("oci-filters-applied", filters)));
    Ok(warned(answer, stale))
}

/// Where the next page is, as this client has to ask for it.
fn next_link(record: &ListRecord, head: &Head, request: &Request) -> Option<String> {
    let next: Page = link::next(record.link.as_deref())?;
    let mut kept = Vec::new();
    let names_upstream =
        head.query.as_deref().is_some_and(|query| query.split('&').any(|part| part.starts_with("ns=")));
    if names_upstream {
        kept.push(("ns", request.upstream.as_str()));
    }
    if let Resource::Referrers { artifact_type: Some(artifact_type), .. } = &request.resource {
        kept.push(("artifactType", artifact_type));
    }
    Some(link::to_next(&head.path, kept, &next))
}

/// What a client is told that gets no content.
fn refusal(problem: &Problem, wanted: Wanted) -> Answer {
    let told = status::answer(problem.cause, wanted, problem.retry_after);
    let mut answer = Answer::error(told.status, told.code, &problem.to_string())
        .with(REASON_HEADER, problem.cause.reason());
    answer.headers.extend(told.retry_after.map(|wait| ("retry-after", wait.as_secs().to_string())));
    answer
}

/// Says that an answer could not be checked (RFC 9111, section 5.5 of its predecessor RFC 7234, which clients show).
fn warned(answer: Answer, stale: Option<Stale>) -> Answer {
    let Some(stale) = stale else { return answer };
    answer
        .with("warning", "110 - \"served as it was; the upstream could not be asked\"")
        .with("age", stale.age.as_secs().to_string())
        .with(REASON_HEADER, stale.cause.reason())
}

fn place(request: &Request) -> Place {
    Place { upstream: request.upstream.clone(), repository: request.repository.clone() }
}

fn etag(digest: &Digest) -> String {
    format!("\"{digest}\"")
}

fn matches(if_none_match: Option<&str>, tag: &str) -> bool {
    if_none_match.is_some_and(|wanted| {
        wanted.split(',').map(str::trim).any(|one| one == "*" || one.trim_start_matches("W/") == tag)
    })
}

fn with_query(path: &str, query: &str) -> String {
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

fn referrers_query(artifact_type: Option<&str>, page: &Page) -> String {
    let mut page = page.clone();
    page.rest.extend(artifact_type.map(|kind| ("artifactType".to_owned(), kind.to_owned())));
    page.query()
}

fn boundary() -> String {
    let mut random = [0; 16];
    // Without randomness the boundary is one that a blob is unlikely to hold all the same.
    let _filled = getrandom::fill(&mut random);
    random.iter().map(|byte| format!("{byte:02x}")).collect()
}
