//! Whether containerd would take a `hosts.toml`, by the rules of its own reader.

use std::fmt;

use toml::{Table, Value};
use url::Url;

/// What any containerd with such files understands; `push` is no business of a cache.
const CAPABILITIES: [&str; 2] = ["pull", "resolve"];
/// Larger than any honest file.
const BYTES_MAX: usize = 64 * 1024;

/// Something in a file for which containerd, or one of its versions, would pass over the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where in the file, such as `host."http://127.0.0.1:5000".capabilities`.
    pub field: String,
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.what)
    }
}

/// Checks a file; empty when containerd takes it, and only for pulling.
pub fn check(text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    if text.len() > BYTES_MAX {
        return vec![problem("file", format!("it is larger than {BYTES_MAX} bytes"))];
    }
    let table = match text.parse::<Table>() {
        Ok(table) => table,
        Err(error) => return vec![problem("file", format!("it is not TOML: {}", error.message()))],
    };
    for (key, value) in &table {
        match key.as_str() {
            "server" => server(value, "server", &mut problems),
            "host" => match value {
                Value::Table(hosts) => hosts.iter().for_each(|(url, keys)| host(url, keys, &mut problems)),
                _ => problems.push(problem("host", "it is no table")),
            },
            key => of_host(key, value, "", &mut problems),
        }
    }
    let names_hosts = table.get("host").and_then(Value::as_table).is_some_and(|hosts| !hosts.is_empty());
    if !table.contains_key("server") && !names_hosts {
        problems.push(problem("file", "it names neither `server` nor a host"));
    }
    if !table.contains_key("host") {
        problems.push(problem(
            "file",
            "containerd 1.6 passes over a file without a table `[host]`, even an empty one",
        ));
    }
    problems
}

fn host(url: &str, keys: &Value, problems: &mut Vec<Problem>) {
    let field = format!("host.\"{url}\"");
    server(&Value::String(url.to_owned()), &field, problems);
    let Some(keys) = keys.as_table() else {
        problems.push(problem(&field, "it is no table"));
        return;
    };
    if !keys.contains_key("capabilities") {
        problems.push(problem(&field, "without `capabilities` it is also pushed to"));
    }
    for (key, value) in keys {
        of_host(key, value, &format!("{field}."), problems);
    }
}

fn server(value: &Value, field: &str, problems: &mut Vec<Problem>) {
    let url = value.as_str().and_then(|text| Url::parse(text).ok());
    let fits = url.is_some_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    if !fits {
        problems.push(problem(field, "it is no URL of http or https"));
    }
}

fn of_host(key: &str, value: &Value, prefix: &str, problems: &mut Vec<Problem>) {
    let field = format!("{prefix}{key}");
    let strings = |value: &Value| {
        value.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(Value::is_str))
    };
    let wrong = match key {
        "capabilities" => return capabilities(value, &field, problems),
        "override_path" | "skip_verify" => (!value.is_bool()).then_some("it is neither true nor false"),
        "dial_timeout" => {
            (!value.as_str().is_some_and(is_duration)).then_some("it is no duration such as \"2s\"")
        }
        "ca" => (!value.is_str() && !strings(value)).then_some("it is neither a path nor a list of paths"),
        "client" => (!is_client(value)).then_some("it is neither paths nor pairs of paths"),
        "header" => (!value.is_table()).then_some("it is no table"),
        _ => Some("containerd does not know this key"),
    };
    problems.extend(wrong.map(|what| problem(&field, what)));
}

fn capabilities(value: &Value, field: &str, problems: &mut Vec<Problem>) {
    let Some(list) = value.as_array() else {
        problems.push(problem(field, "it is no list"));
        return;
    };
    for entry in list {
        let entry = entry.as_str().unwrap_or_default();
        if !CAPABILITIES.contains(&entry) {
            let what = format!(
                "`{entry}` is not `pull` or `resolve`: one that the node's containerd does not know makes it ignore the \
                 whole file"
            );
            problems.push(problem(field, what));
        }
    }
}

fn is_client(value: &Value) -> bool {
    // Each entry is a file with certificate and key, or one of each.
    let is_pair = |pair: &Value| {
        pair.is_str() || pair.as_array().is_some_and(|pair| pair.len() == 2 && pair.iter().all(Value::is_str))
    };
    value.is_str() || value.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(is_pair))
}

/// A duration as Go reads it: numbers with units, such as `1m30s` or `500ms`.
fn is_duration(text: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let number = rest.len() > after.len();
        let Some(unit) = ["ns", "us", "ms", "s", "m", "h"].into_iter().find(|unit| after.starts_with(unit))
        else {
            return false;
        };
        if !number {
            return false;
        }
        rest = after.get(unit.len()..).unwrap_or_default();
    }
    !text.is_empty()
}

fn problem(field: &str, what: impl Into<String>) -> Problem {
    Problem { field: field.to_owned(), what: what.into() }
}
