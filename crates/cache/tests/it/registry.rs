//! The registry of the distribution project: a real upstream, and a real cache to stand beside ours.

use std::net::SocketAddr;
use std::path::Path;

use bailey_testkit::{Process, Tool, tools};

use crate::site::until;

/// Starts one in a folder, which can be pushed to, or which is a cache of another; where it listens.
pub async fn start(folder: &Path, cache_of: Option<&str>) -> (Process, SocketAddr) {
    let program = tokio::task::spawn_blocking(|| tools::path(Tool::Registry)).await.unwrap().unwrap();
    let root = folder.join("registry");
    let proxy = cache_of.map(|url| format!("proxy: {{remoteurl: '{url}'}}\n")).unwrap_or_default();
    let config = format!(
        "version: 0.1\nlog: {{level: info}}\nhttp: {{addr: '127.0.0.1:0'}}\n{proxy}\
         storage: {{filesystem: {{rootdirectory: '{}'}}, delete: {{enabled: true}}}}\n",
        root.display()
    );
    std::fs::write(folder.join("registry.yml"), config).unwrap();
    let mut process = Process::start("registry", &program, ["serve", "registry.yml"], folder).unwrap();
    let mut address = None;
    until("the registry listens", || {
        process.check().unwrap();
        let log = process.log();
        address = log.split_once("listening on ").and_then(|(_, rest)| {
            let end = rest.find(|c: char| c.is_whitespace() || c == '"')?;
            rest[..end].parse().ok()
        });
        address.is_some()
    })
    .await;
    (process, address.unwrap())
}
