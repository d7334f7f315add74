//! Lists for clients: tags and referrers, as the upstream has them now, or as they were last seen.

use std::sync::Arc;
use std::time::Duration;

use bailey_oci::status::Cause;
use bailey_oci::visibility::{Client, Place};
use http::{HeaderName, Method, header};
use tokio::time::Instant;

use super::Cache;
use super::manifests::Stale;
use crate::clock;
use crate::index::ListRecord;
use crate::upstream::{Ask, Problem, text};

/// The longest list that is passed on: tens of thousands of tags.
const LENGTH_MAX: usize = 16 << 20;

/// Says which of its filters a registry applied (distribution specification, "Listing Referrers").
pub const FILTERS_APPLIED: HeaderName = HeaderName::from_static("oci-filters-applied");

impl Cache {
    /// Gives a list to a client; `rest` is its path behind the repository, with the query for the upstream.
    pub async fn list(
        self: &Arc<Self>,
        client: &Client,
        place: &Place,
        rest: &str,
        deadline: Instant,
    ) -> Result<(ListRecord, Option<Stale>), Problem> {
        self.may_read(client, place)?;
        let (cache, at, wanted) = (self.clone(), place.clone(), rest.to_owned());
        let ask = || async move { cache.list_once(&at, &wanted).await };
        // Offline, the last one seen has to be found in time, too.
        let asked_by = deadline.min(Instant::now() + Duration::from_secs(4));
        let problem =
            match self.fly(&self.flights.lists, (place.clone(), rest.to_owned()), asked_by, ask).await {
                Ok(record) => return Ok((record, None)),
                Err(problem) if problem.cause == Cause::NotFound => return Err(problem),
                Err(problem) => problem,
            };
        let (cache, key) = (self.clone(), key(place, rest));
        let last = tokio::task::spawn_blocking(move || cache.index().list(&key)).await.ok().flatten();
        let last = last.ok_or_else(|| problem.clone())?;
        self.metrics.stale(&place.upstream);
        let age = Duration::from_secs(clock::now().saturating_sub(last.seen));
        Ok((last, Some(Stale { cause: problem.cause, age })))
    }

    async fn list_once(&self, place: &Place, rest: &str) -> Result<ListRecord, Problem> {
        let deadline = Instant::now() + Duration::from_secs(20);
        let ask = Ask {
            method: Method::GET,
            repository: place.repository.clone(),
            rest: rest.to_owned(),
            accept: Some("application/vnd.oci.image.index.v1+json, application/json"),
            range: None,
        };
        let answer = self.remote(place)?.upstream.ask(&ask, deadline).await?;
        let said = |name: HeaderName| text(&answer.headers, name).map(str::to_owned);
        let (media_type, link, filters_applied) =
            (said(header::CONTENT_TYPE), said(header::LINK), said(FILTERS_APPLIED));
        let body = answer.body.whole(LENGTH_MAX, deadline).await?;
        let body = String::from_utf8(body.into()).map_err(|_| Problem::nonsense("a list that is no text"))?;
        let media_type = media_type.unwrap_or_else(|| "application/json".to_owned());
        let record = ListRecord { media_type, link, filters_applied, body, seen: clock::now() };
        self.index().put_list(key(place, rest), record.clone());
        Ok(record)
    }
}

fn key(place: &Place, rest: &str) -> String {
    format!("{place} {rest}")
}
