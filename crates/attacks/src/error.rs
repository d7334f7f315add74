//! Why a catalogue file could not be used.

/// Stands for any result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Names the file and the field that could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is not YAML.
    #[error("reading attack `{file}`: not valid YAML")]
    Yaml {
        file: String,
        #[source]
        source: Box<serde_saphyr::Error>,
    },
    /// The file does not follow the schema.
    #[error("reading attack `{file}`: does not follow the schema")]
    Schema {
        file: String,
        #[source]
        source: serde_json::Error,
    },
    /// The file is not named after the attack it holds.
    #[error("reading attack `{file}`: its id is `{id}`, but the file must be named after the id")]
    FileName { file: String, id: String },
    /// A placeholder has no value.
    #[error("reading attack `{file}`: `{field}` names the unknown placeholder `{name}`")]
    Placeholder { file: String, field: String, name: String },
    /// A placeholder is opened and never closed, or stands in a key.
    #[error("reading attack `{file}`: `{field}` holds a placeholder that is not closed or stands in a key")]
    MalformedPlaceholder { file: String, field: String },
    /// A success condition points at a step that does not exist.
    #[error("reading attack `{file}`: `{field}` points at step {step}, but there are {count}")]
    StepNumber { file: String, field: &'static str, step: usize, count: usize },
    /// An attack without a success condition would always succeed.
    #[error("reading attack `{file}`: `{field}` has no condition")]
    NoCondition { file: String, field: &'static str },
}

impl Error {
    /// Returns the fixed name of this kind of error.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Yaml { .. } => "InvalidYaml",
            Self::Schema { .. } => "InvalidSchema",
            Self::FileName { .. } => "FileNameMismatch",
            Self::Placeholder { .. } => "UnknownPlaceholder",
            Self::MalformedPlaceholder { .. } => "MalformedPlaceholder",
            Self::StepNumber { .. } => "UnknownStep",
            Self::NoCondition { .. } => "NoCondition",
        }
    }
}
