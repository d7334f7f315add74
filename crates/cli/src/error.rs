//! Why a command could not answer, and how that is told.

use std::error::Error;
use std::path::PathBuf;

use crate::{Exit, live::LiveError};

/// Says why a command could not answer.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The kubeconfig cannot be used.
    #[error("cannot use {place}; name another with --kubeconfig or --context")]
    Kubeconfig {
        /// Which kubeconfig and context.
        place: String,
        /// What is wrong with it.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A request to the API server failed.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// A file cannot be read or written.
    #[error("cannot {action} `{}`", path.display())]
    File {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A given object is refused or cannot be understood.
    #[error("{object} in `{}`: {message}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// The object, as `KIND NAME`, or its position.
        object: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// What was asked for does not fit what is there.
    #[error("{0}")]
    Usage(String),
    /// The user may not do what the command needs.
    #[error("{0}")]
    NotAllowed(String),
    /// A fault of Bailey's own.
    #[error("{what}; this is a fault of bailey, please report it")]
    Internal {
        /// What failed.
        what: &'static str,
        /// Why.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// Standard output does not take the answer.
    #[error("cannot write the answer to standard output")]
    Print(#[source] std::io::Error),
}

impl CliError {
    /// Wraps a fault of Bailey's own.
    pub fn internal(what: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Internal { what, source: source.into() }
    }

    /// How the process ends with this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Kubeconfig { .. } | Self::File { .. } | Self::Manifest { .. } | Self::Usage(_) => {
                Exit::Usage
            }
            Self::Live(_) | Self::NotAllowed(_) => Exit::Incomplete,
            Self::Internal { .. } | Self::Print(_) => Exit::Internal,
        }
    }

    /// The fixed name of this kind of error.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Kubeconfig { .. } => "InvalidKubeconfig",
            Self::Live(error) => error.reason(),
            Self::File { .. } => "FileFailed",
            Self::Manifest { .. } => "InvalidManifest",
            Self::Usage(_) => "InvalidUsage",
            Self::NotAllowed(_) => "NotAllowed",
            Self::Internal { .. } => "Internal",
            Self::Print(_) => "PrintFailed",
        }
    }
}
