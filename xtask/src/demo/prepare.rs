//! What the demo needs before it can start: real programs, real apps, and Bailey.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use bailey_testkit::{App, Tool, apps, tools};

use crate::command::{self, cargo};

/// The apps that the customer installs.
pub const APPS: [App; 2] = [App::ArgoCd, App::SealedSecrets];

/// What is ready to run.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The `bailey` program.
    pub bailey: PathBuf,
    pub kubectl: PathBuf,
    pub helm: PathBuf,
    /// What each part of the control plane says of its version.
    pub versions: String,
    pub argo_cd: PathBuf,
    pub sealed_secrets: PathBuf,
}

/// Builds and gets whatever is missing; `program` stands in for a build of Bailey.
///
/// Runs before any signal is caught, so Ctrl-C ends it together with the compilers.
pub fn prepare(program: Option<&Path>) -> Result<Prepared> {
    for tool in Tool::ALL {
        tools::path(tool)?;
    }
    for app in APPS {
        apps::source(app).with_context(|| format!("get the source of {}", app.name()))?;
    }
    let bailey = match program {
        Some(program) => program.canonicalize().with_context(|| format!("find `{}`", program.display()))?,
        None => build()?,
    };
    Ok(Prepared {
        bailey,
        kubectl: tools::path(Tool::Kubectl)?,
        helm: tools::path(Tool::Helm)?,
        versions: versions()?,
        argo_cd: apps::source(App::ArgoCd)?,
        sealed_secrets: apps::source(App::SealedSecrets)?,
    })
}

/// Builds Bailey and returns where cargo has put it.
fn build() -> Result<PathBuf> {
    let arguments = ["build", "--locked", "--package", "bailey", "--message-format=json-render-diagnostics"];
    let messages = command::output(&mut cargo(&arguments)).context("build Bailey")?;
    executable(&String::from_utf8_lossy(&messages)).context("cargo names no program for package `bailey`")
}

/// Finds the program among the messages of cargo, one JSON object a line.
fn executable(messages: &str) -> Option<PathBuf> {
    let values = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let named = values.filter(|value| value.pointer("/target/name").is_some_and(|name| name == "bailey"));
    named.filter_map(|value| Some(PathBuf::from(value.get("executable")?.as_str()?))).next_back()
}

fn versions() -> Result<String> {
    let mut all = Vec::new();
    for tool in [Tool::Etcd, Tool::KubeApiserver, Tool::KubeControllerManager] {
        let mut asked = std::process::Command::new(tools::path(tool)?);
        let text = command::output(asked.arg("--version"))?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let Some(version) = text.lines().next().and_then(|line| line.split_whitespace().last()) else {
            bail!("{} does not say its version", tool.name());
        };
        all.push(format!("{} {}", tool.name(), version.trim_start_matches('v')));
    }
    Ok(all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_among_the_messages_of_cargo() {
        let messages = r#"not JSON
{"reason":"compiler-artifact","target":{"name":"bailey_cli"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"bailey"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"bailey"},"executable":"/t/debug/bailey"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(executable(messages), Some(PathBuf::from("/t/debug/bailey")));
        assert_eq!(executable("{}"), None);
    }
}
