//! Where log lines go: to stderr, as text for people or as JSON for collectors.

use std::env;
use std::error::Error;
use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

/// The filter when neither the caller nor `RUST_LOG` gives one.
const FILTER_DEFAULT: &str = "info";

/// Says how a log line is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// One line of text, coloured on a terminal.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts logging; `filter` goes before `RUST_LOG`, which goes before `info`.
pub fn init(format: LogFormat, filter: Option<&str>) -> Result<(), TelemetryError> {
    let wanted =
        filter.map(str::to_owned).or_else(|| env::var("RUST_LOG").ok().filter(|text| !text.is_empty()));
    let filter = parse(wanted.as_deref().unwrap_or(FILTER_DEFAULT))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let started = match format {
        LogFormat::Text => builder.with_ansi(coloured(io::stderr().is_terminal())).try_init(),
        LogFormat::Json => {
            builder.json().flatten_event(true).with_current_span(true).with_span_list(false).try_init()
        }
    };
    started.map_err(|source| TelemetryError::Started { source })
}

/// Writes an error and its sources on one line, the outermost first; what a parent already says is left out.
pub fn report(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let said = source.to_string();
        if !line.contains(&said) {
            line.push_str(": ");
            line.push_str(&said);
        }
        next = source.source();
    }
    line
}

/// Why logging could not start.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter is not in the syntax of `RUST_LOG`.
    #[error(
        "log filter `{filter}` cannot be read; write levels and targets such as `info,bailey_operator=debug`"
    )]
    Filter {
        /// What was given.
        filter: String,
        /// What the parser says.
        source: ParseError,
    },
    /// Something else in the process already logs.
    #[error("logging is already started in this process; start it once, before the first role")]
    Started {
        /// What the logging library says.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl TelemetryError {
    /// Names the kind of error for metric labels and logs.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Filter { .. } => "LogFilterInvalid",
            Self::Started { .. } => "LoggingAlreadyStarted",
        }
    }
}

fn parse(filter: &str) -> Result<EnvFilter, TelemetryError> {
    EnvFilter::try_new(filter).map_err(|source| TelemetryError::Filter { filter: filter.to_owned(), source })
}

/// Follows <https://no-color.org>: a value that is set and not empty switches colour off.
fn coloured(terminal: bool) -> bool {
    terminal && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::{TelemetryError, coloured, parse, report};

    #[test]
    fn a_filter_that_cannot_be_read_is_named_with_an_example() {
        let error = parse("bailey=louder").unwrap_err();
        assert!(error.to_string().starts_with("log filter `bailey=louder` cannot be read"), "{error}");
        assert_eq!(error.reason(), "LogFilterInvalid");
    }

    #[test]
    fn a_filter_by_target_is_read() {
        assert_eq!(parse("info,bailey_operator=debug").unwrap().to_string(), "bailey_operator=debug,info");
    }

    #[derive(Debug, thiserror::Error)]
    #[error("outer says inner")]
    struct Outer(#[source] Inner);

    #[derive(Debug, thiserror::Error)]
    #[error("inner")]
    struct Inner(#[source] io::Error);

    #[test]
    fn a_report_says_each_cause_once() {
        let error = Outer(Inner(io::Error::other("disk gone")));
        assert_eq!(report(&error), "outer says inner: disk gone");
    }

    #[test]
    fn a_report_names_every_source() {
        let source = Box::new(io::Error::other("a subscriber is set"));
        let line = report(&TelemetryError::Started { source });
        assert!(line.ends_with("before the first role: a subscriber is set"), "{line}");
    }

    #[test]
    fn a_pipe_is_never_coloured() {
        assert!(!coloured(false));
    }
}
