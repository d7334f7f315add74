//! What can end the operator's work, or make a reconciliation be tried again.

use bailey_guardrails::{DiscoveryError, PolicyError};

/// Says what failed, and on which object.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// A policy file of this build is broken.
    #[error("this build holds a broken policy")]
    Policy {
        /// Why.
        #[source]
        source: Box<PolicyError>,
    },
    /// The API server's discovery is not understood.
    #[error("cannot read what the API server serves")]
    Discovery {
        /// Why.
        #[source]
        source: Box<DiscoveryError>,
    },
    /// A watch ended for good.
    #[error("the watch of {what} ended")]
    Watch {
        /// The resource.
        what: String,
    },
    /// A read or write failed.
    #[error("cannot {verb} {object}")]
    Api {
        /// What was attempted.
        verb: &'static str,
        /// `KIND NAMESPACE/NAME`.
        object: String,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// An object cannot be encoded or decoded.
    #[error("cannot read {object} as JSON")]
    Json {
        /// `KIND NAMESPACE/NAME`.
        object: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The API server did not answer in time.
    #[error("{verb} {object} took longer than {seconds} s")]
    Deadline {
        /// What was attempted.
        verb: &'static str,
        /// `KIND NAMESPACE/NAME`.
        object: String,
        /// The deadline.
        seconds: u64,
    },
}

impl OperatorError {
    /// The reason for metrics and conditions.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Policy { .. } => "Policy",
            Self::Discovery { .. } => "Discovery",
            Self::Watch { .. } => "Watch",
            Self::Api { .. } => "Api",
            Self::Json { .. } => "Json",
            Self::Deadline { .. } => "Deadline",
        }
    }

    pub(crate) fn api(verb: &'static str, object: impl Into<String>, source: kube::Error) -> Self {
        Self::Api { verb, object: object.into(), source: Box::new(source) }
    }
}
