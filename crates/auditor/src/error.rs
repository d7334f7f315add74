//! What makes an answer be tried again.

use bailey_collect::live::LiveError;

/// Says what failed.
#[derive(Debug, thiserror::Error)]
pub enum AuditorError {
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
            Self::Live { source } => source.reason(),
            Self::Answer { .. } => "Answer",
        }
    }
}
