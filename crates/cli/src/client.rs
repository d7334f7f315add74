//! From the flags to a client of one cluster, and how far reading it is.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::args::Global;
use crate::live::Live;
use crate::{CliError, report};

/// The API server that the flags name.
pub async fn connect(global: &Global) -> Result<Live, CliError> {
    Ok(Live::new(client(global).await?))
}

/// A client of the cluster that the flags name; a role in a pod gets that of its account.
pub async fn client(global: &Global) -> Result<kube::Client, CliError> {
    let mut config = config(global).await?;
    if let Some(user) = &global.as_user {
        config.auth_info.impersonate = Some(user.clone());
        config.auth_info.impersonate_groups =
            Some(global.as_group.clone()).filter(|groups| !groups.is_empty());
    }
    kube::Client::try_from(config).map_err(|e| unusable(global, e))
}

async fn config(global: &Global) -> Result<Config, CliError> {
    let options = KubeConfigOptions { context: global.context.clone(), ..KubeConfigOptions::default() };
    match (&global.kubeconfig, &global.context) {
        (Some(path), _) => {
            let kubeconfig = Kubeconfig::read_from(path).map_err(|e| unusable(global, e))?;
            Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|e| unusable(global, e))
        }
        (None, Some(_)) => Config::from_kubeconfig(&options).await.map_err(|e| unusable(global, e)),
        (None, None) => Config::infer().await.map_err(|e| unusable(global, e)),
    }
}

fn unusable(global: &Global, source: impl std::error::Error) -> CliError {
    let mut place = match &global.kubeconfig {
        Some(path) => format!("kubeconfig `{}`", path.display()),
        None => "the current kubeconfig".to_owned(),
    };
    if let Some(context) = &global.context {
        place.push_str(&format!(" with context `{context}`"));
    }
    // The parser quotes the lines around a mistake, which may hold a credential.
    let message = report(&source).lines().next().unwrap_or_default().to_owned();
    CliError::Kubeconfig { place, source: message.into() }
}

/// Shows how much of the cluster was read, where standard error is a terminal.
pub fn progress() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("reading the cluster {pos}/{len} {msg}") {
        bar.set_style(style);
    }
    bar
}

/// Shows how far it is.
pub fn advance(bar: &ProgressBar, done: usize, all: usize, what: &str) {
    bar.set_length(u64::try_from(all).unwrap_or(u64::MAX));
    bar.set_message(what.to_owned());
    bar.set_position(u64::try_from(done).unwrap_or(u64::MAX));
}
