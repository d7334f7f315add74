//! What can end the auditor, or make an answer be tried again.

use bailey_collect::live::LiveError;
use bailey_process::{admin::AdminError, drain::InterruptError, leader::LeaderError, tasks::TaskError};

/// Says what failed.
#[derive(Debug, thiserror::Error)]
pub enum AuditorError {
    /// The process cannot listen for signals.
    #[error("cannot listen for SIGTERM and SIGINT")]
    Signals {
        /// Why.
        #[source]
        source: InterruptError,
    },
    /// The admin port.
    #[error("cannot serve the admin port")]
    Admin {
        /// Why.
        #[source]
        source: AdminError,
    },
    /// Leader election.
    #[error("leader election failed")]
    Leader {
        /// Why.
        #[source]
        source: Box<LeaderError>,
    },
    /// A task of the process ended.
    #[error("the process ended early")]
    Tasks {
        /// Why.
        #[source]
        source: Box<TaskError>,
    },
    /// The API server refuses or does not answer.
    #[error("cannot read the cluster")]
    Live {
        /// Why.
        #[from]
        source: LiveError,
    },
    /// The answer could not be made.
    #[error("the answer could not be made; this is a fault of bailey, please report it")]
    Answer {
        /// Why.
        #[source]
        source: tokio::task::JoinError,
    },
}

impl AuditorError {
    /// The reason for metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Signals { .. } => "Signals",
            Self::Admin { .. } => "Admin",
            Self::Leader { .. } => "Leader",
            Self::Tasks { .. } => "Tasks",
            Self::Live { source } => source.reason(),
            Self::Answer { .. } => "Answer",
        }
    }
}
