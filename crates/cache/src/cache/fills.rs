//! How a blob comes in: one task for each, from the first request to the commit.
//!
//! A body that breaks off is resumed where it ended, by way of the registry, since signed URLs expire.

use std::sync::Arc;
use std::time::Duration;

use bailey_oci::Digest;
use bailey_oci::range::ContentRange;
use bailey_oci::visibility::Place;
use bytes::Bytes;
use http::{Method, StatusCode, header};
use tokio::time::{Instant, sleep};

use super::{Cache, Remote};
use crate::fairness::Party;
use crate::store::fill::{Failure, Fill, Teller, Writer};
use crate::upstream::{Answer, Ask, Problem, text};

/// How long an upstream may take to answer a fill; clients wait less, and find the fill when they come back.
const HEADERS: Duration = Duration::from_secs(20);
/// How often a body is resumed without getting any further.
const ATTEMPTS_MAX: u32 = 4;
/// Bytes that are at hand are written together, up to so many.
const BATCH: usize = 256 << 10;

impl Cache {
    /// Joins the fill of a blob, or starts one through `place` that counts to the share of `party`. Also says through
    /// which repository it comes.
    ///
    /// None when the blob is in the store.
    pub(super) fn fill(
        self: &Arc<Self>,
        place: &Place,
        digest: Digest,
        party: Party,
    ) -> Option<(Fill, Place)> {
        let (teller, fill) = {
            let mut fills = self.fills();
            if let Some((fill, through)) = fills.get(&digest) {
                return Some((fill.clone(), through.clone()));
            }
            // A fill leaves the list after its blob is in the store.
            if self.store.size(&digest).is_some() {
                return None;
            }
            let (teller, fill) = Fill::new(digest);
            fills.insert(digest, (fill.clone(), place.clone()));
            (teller, fill)
        };
        let (cache, through) = (self.clone(), place.clone());
        // A task that is not started or broken off drops this, and with it the entry and the teller, in this order.
        let entry = Entry { cache: self.clone(), digest, teller };
        self.spawn(async move {
            let result = cache.run(&through, digest, party, &entry.teller).await;
            cache.settle(&through, digest, result, entry);
        });
        Some((fill, place.clone()))
    }

    fn settle(&self, place: &Place, digest: Digest, result: Result<u64, Failure>, entry: Entry) {
        match &result {
            Ok(bytes) => {
                self.index().link(digest, place);
                self.metrics.filled(&place.upstream, *bytes);
                tracing::info!(%place, %digest, bytes, "fetched");
            }
            Err(Failure::NoRoom) => {
                self.metrics.passed.inc();
                tracing::warn!(%place, %digest, "no room for a blob; it is streamed past the store");
            }
            Err(failure) => {
                self.metrics.failed(&place.upstream, failure);
                tracing::warn!(%place, %digest, failure = bailey_process::telemetry::report(failure), "not fetched");
            }
        }
        // First out of the list, so that whoever hears of a failure and comes back starts a new one.
        self.fills().remove(&digest);
        entry.teller.end(result.map(|_| ()));
    }

    async fn run(
        &self,
        place: &Place,
        digest: Digest,
        party: Party,
        teller: &Teller,
    ) -> Result<u64, Failure> {
        let remote = self.remote(place)?;
        let _turn = remote.turns.take(&self.shares, &party).await.ok_or(Failure::Abandoned)?;
        let expected = self.noted_size(place, &digest);
        let mut progress = Attempt { remote, place, digest, writer: None, total: expected };
        let mut attempts = 0;
        loop {
            let before = progress.written();
            let problem = match progress.advance(self, &party, teller).await {
                Ok(()) => break,
                Err(Failure::Upstream(problem)) if progress.writer.is_some() => problem,
                Err(failure) => return Err(failure),
            };
            attempts = if progress.written() > before { 1 } else { attempts + 1 };
            if attempts > ATTEMPTS_MAX || !problem.cause.is_worth_retrying() || is_wrong(&problem) {
                return Err(problem.into());
            }
            self.metrics.resumed.inc();
            tracing::info!(%place, %digest, at = progress.written(), %problem, "resuming");
            sleep(Duration::from_millis(100 << attempts.min(5))).await;
        }
        let writer = progress.writer.ok_or(Failure::Abandoned)?;
        writer.finish(None, teller).await
    }
}

/// Wrong content does not get right by asking for the rest of it.
fn is_wrong(problem: &Problem) -> bool {
    problem.cause == bailey_oci::status::Cause::WrongContent
}

/// The place of a fill in the list. Dropped early, it takes the fill out.
struct Entry {
    cache: Arc<Cache>,
    digest: Digest,
    teller: Teller,
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !self.teller.has_ended() {
            self.cache.fills().remove(&self.digest);
        }
    }
}

struct Attempt<'a> {
    remote: &'a Remote,
    place: &'a Place,
    digest: Digest,
    writer: Option<Writer>,
    total: Option<u64>,
}

impl Attempt<'_> {
    fn written(&self) -> u64 {
        self.writer.as_ref().map_or(0, Writer::written)
    }

    /// Asks for what is missing and writes it. Ok when nothing is missing any more.
    async fn advance(&mut self, cache: &Cache, party: &Party, teller: &Teller) -> Result<(), Failure> {
        let store = &cache.store;
        let at = self.written();
        if self.writer.is_none()
            && let Some(total) = self.total
        {
            // A blob that finds no room is not asked for at all here: whoever wants it streams it.
            self.writer = Some(store.begin(self.digest, Some(total)).await?);
        }
        let ask = Ask {
            method: Method::GET,
            repository: self.place.repository.clone(),
            rest: format!("blobs/{}", self.digest),
            accept: None,
            range: (at > 0).then(|| format!("bytes={at}-")),
        };
        let mut answer = self.remote.upstream.ask(&ask, Instant::now() + HEADERS).await?;
        let (total, mut skip) = extent(&answer, at)?;
        if let (Some(known), Some(total)) = (self.total, total)
            && known != total
        {
            return Err(Problem::wrong(format!("{total} bytes where {known} were announced")).into());
        }
        self.total = self.total.or(total);
        if self.writer.is_none() {
            self.writer = Some(store.begin(self.digest, self.total).await?);
        }
        let writer = self.writer.as_mut().ok_or(Failure::Abandoned)?;
        writer.show(teller);
        while let Some(first) = answer.body.next().await? {
            let mut batch = Vec::new();
            let (mut length, mut next) = (0, Some(first));
            while let Some(mut bytes) = next.take() {
                let passed = usize::try_from(skip).unwrap_or(usize::MAX).min(bytes.len());
                skip -= passed as u64;
                length += bytes.len() - passed;
                batch.push(bytes.split_off(passed));
                next = if length < BATCH { answer.body.ready() } else { None };
            }
            batch.retain(|bytes: &Bytes| !bytes.is_empty());
            if !batch.is_empty() {
                cache.shares.fetch(party, batch.iter().map(|bytes| bytes.len() as u64).sum()).await;
                writer.write(batch, teller).await?;
            }
        }
        match self.total {
            Some(total) if writer.written() < total => {
                Err(Problem::unreachable("its body ended early").into())
            }
            _ => Ok(()),
        }
    }
}

/// The length of the whole blob, and how many bytes at the start of the body are known already.
fn extent(answer: &Answer, at: u64) -> Result<(Option<u64>, u64), Problem> {
    if answer.status == StatusCode::PARTIAL_CONTENT {
        let range = text(&answer.headers, header::CONTENT_RANGE).and_then(ContentRange::parse);
        return match range {
            Some(range) if range.span.first <= at => Ok((range.length, at - range.span.first)),
            _ => Err(Problem::nonsense("another range than was asked for")),
        };
    }
    // A server that knows no ranges sends everything again.
    Ok((text(&answer.headers, header::CONTENT_LENGTH).and_then(|text| text.parse().ok()), at))
}
