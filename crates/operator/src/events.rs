//! Events: what people see in `kubectl describe`, written only when something changed.

use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client,
    runtime::events::{Event, EventType, Recorder, Reporter},
};

const DEADLINE: Duration = Duration::from_secs(5);

/// Writes Events. A lost one is logged and no more: they are for convenience.
pub(crate) struct Events {
    recorder: Recorder,
}

impl Events {
    pub(crate) fn new(client: Client) -> Self {
        let reporter = Reporter { controller: "bailey-operator".to_owned(), instance: None };
        Self { recorder: Recorder::new(client, reporter) }
    }

    /// Writes one, as a warning or as normal.
    pub(crate) async fn publish(
        &self,
        about: &ObjectReference,
        reason: &str,
        note: &str,
        secondary: Option<ObjectReference>,
        warns: bool,
    ) {
        // The API takes 1024 characters (events.k8s.io validation).
        let event = Event {
            type_: if warns { EventType::Warning } else { EventType::Normal },
            reason: reason.to_owned(),
            note: Some(note.chars().take(1000).collect()),
            action: "Reconcile".to_owned(),
            secondary,
        };
        let published = tokio::time::timeout(DEADLINE, self.recorder.publish(&event, about)).await;
        if !matches!(published, Ok(Ok(()))) {
            tracing::debug!(about = ?about.name, reason, "an event was lost");
        }
    }
}
