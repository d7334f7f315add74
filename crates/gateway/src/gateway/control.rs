//! Tells an agent what its cluster may reach, and hears how that works.

use std::time::Duration;

use bailey_tunnel::control::{Offer, Report, Told};
use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::Response;

use super::session::Session;
use crate::wire::lines::{Lines, send};
use bailey_identity::clock::now;

/// Tells the time again, which shows how far the agent's clock is off.
const EVERY: Duration = Duration::from_secs(10);

pub(super) async fn run(body: RecvStream, mut respond: SendResponse<Bytes>, session: &Session) {
    let Ok(mut out) = respond.send_response(Response::new(()), false) else { return };
    let mut known = session.shared.known.clone();
    let mut lines = Lines::new(body);
    let mut every = tokio::time::interval(EVERY);
    let mut told = None;
    let mut leaving = session.leaving.subscribe();
    loop {
        tokio::select! {
            // The end is told in order, so that the agent comes again elsewhere at once.
            _ = leaving.wait_for(|leaving| *leaving) => {
                if let Err(error) = out.send_data(Bytes::new(), true) {
                    tracing::debug!(%error, "the agent is gone already");
                }
                return;
            }
            _ = every.tick() => told = None,
            Ok(()) = known.changed() => {}
            line = lines.next::<Report>() => match line {
                Ok(Some(report)) => {
                    session.shared.roster.report(&session.cluster.uid, report, now());
                    continue;
                }
                Ok(None) => return,
                Err(error) => {
                    tracing::debug!(cluster = session.cluster.name, %error, "what the agent says is not understood");
                    return;
                }
            },
        }
        let services: Vec<_> = {
            let index = known.borrow_and_update();
            let offer = |service: &bailey_tunnel::directory::Service| Offer {
                name: service.name.clone(),
                port: service.agent_port,
            };
            index.granted(&session.cluster.uid).map(offer).collect()
        };
        if told.as_ref() == Some(&services) {
            continue;
        }
        let line = Told { services: services.clone(), now: now() };
        if let Err(error) = send(&mut out, &line).await {
            tracing::debug!(cluster = session.cluster.name, %error, "the agent does not listen");
            return;
        }
        told = Some(services);
    }
}
