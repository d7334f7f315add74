//! How questions name subjects and Secrets.

use std::{fmt, str::FromStr};

use thiserror::Error;

/// A Secret: `NS/NAME`, in another cluster than the first `CLUSTER:NS/NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRef {
    /// The cluster, the first one if absent.
    pub cluster: Option<String>,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// A subject: `sa:NS/NAME`, `user:NAME`, `group:NAME` or `source:URL`, perhaps after `CLUSTER:`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectRef {
    /// The cluster, the first one if absent.
    pub cluster: Option<String>,
    /// Who.
    pub subject: SubjectName,
}

/// Who, by kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubjectName {
    /// A user.
    User(String),
    /// A group.
    Group(String),
    /// A ServiceAccount by namespace and name.
    ServiceAccount(String, String),
    /// An external source by its URL.
    Source(String),
}

/// A question that cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum QuestionError {
    /// Not of the form wanted.
    #[error("`{text}` is no Secret: write NAMESPACE/NAME, or CLUSTER:NAMESPACE/NAME")]
    NoSecret {
        /// What was given.
        text: String,
    },
    /// Not of the form wanted.
    #[error("`{text}` is no subject: write sa:NAMESPACE/NAME, user:NAME, group:NAME or source:URL")]
    NoSubject {
        /// What was given.
        text: String,
    },
    /// No such cluster was loaded.
    #[error("cluster `{cluster}` was not loaded; loaded: {known}")]
    NoCluster {
        /// What was asked for.
        cluster: String,
        /// What there is.
        known: String,
    },
    /// Nothing names this subject.
    #[error("nothing that was loaded names {subject}{hint}")]
    UnknownSubject {
        /// What was asked for.
        subject: String,
        /// Something alike, or nothing.
        hint: String,
    },
    /// No such finding.
    #[error("there is no finding `{id}`; bailey audit -o name lists them")]
    UnknownFinding {
        /// What was asked for.
        id: String,
    },
}

impl QuestionError {
    /// A word for reasons and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NoSecret { .. } => "NoSecret",
            Self::NoSubject { .. } => "NoSubject",
            Self::NoCluster { .. } => "NoCluster",
            Self::UnknownSubject { .. } => "UnknownSubject",
            Self::UnknownFinding { .. } => "UnknownFinding",
        }
    }
}

impl FromStr for SecretRef {
    type Err = QuestionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || QuestionError::NoSecret { text: text.to_owned() };
        let (cluster, rest) = match text.rsplit_once(':') {
            Some((cluster, rest)) if !cluster.is_empty() => (Some(cluster.to_owned()), rest),
            Some(_) => return Err(error()),
            None => (None, text),
        };
        let (namespace, name) = rest.split_once('/').ok_or_else(error)?;
        if namespace.is_empty() || name.is_empty() || name.contains('/') {
            return Err(error());
        }
        Ok(Self { cluster, namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

impl FromStr for SubjectRef {
    type Err = QuestionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || QuestionError::NoSubject { text: text.to_owned() };
        if let Some(subject) = subject_name(text) {
            return Ok(Self { cluster: None, subject });
        }
        let (cluster, rest) = text.split_once(':').filter(|(c, _)| !c.is_empty()).ok_or_else(error)?;
        let subject = subject_name(rest).ok_or_else(error)?;
        Ok(Self { cluster: Some(cluster.to_owned()), subject })
    }
}

fn subject_name(text: &str) -> Option<SubjectName> {
    let (kind, name) = text.split_once(':').filter(|(_, name)| !name.is_empty())?;
    match kind {
        "user" => match name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':')) {
            Some((namespace, name)) => {
                Some(SubjectName::ServiceAccount(namespace.to_owned(), name.to_owned()))
            }
            None => Some(SubjectName::User(name.to_owned())),
        },
        "group" => Some(SubjectName::Group(name.to_owned())),
        "source" => Some(SubjectName::Source(name.to_owned())),
        "sa" => name
            .split_once('/')
            .filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty())
            .map(|(namespace, name)| SubjectName::ServiceAccount(namespace.to_owned(), name.to_owned())),
        _ => None,
    }
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(cluster) = &self.cluster {
            write!(f, "{cluster}:")?;
        }
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl fmt::Display for SubjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(cluster) = &self.cluster {
            write!(f, "{cluster}:")?;
        }
        match &self.subject {
            SubjectName::User(name) => write!(f, "user:{name}"),
            SubjectName::Group(name) => write!(f, "group:{name}"),
            SubjectName::ServiceAccount(namespace, name) => write!(f, "sa:{namespace}/{name}"),
            SubjectName::Source(url) => write!(f, "source:{url}"),
        }
    }
}
