//! What other programs rely on when they run `cargo xtask control-plane`; and which crate may know what.
#![allow(clippy::unwrap_used, reason = "clippy knows test functions, not the functions that they call")]

mod purity;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn a_control_plane_killed_hard_leaves_no_process() {
    let dir = tempfile::tempdir().unwrap();
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["control-plane", "--user=jane", "--group=acme", "--dir"])
        .arg(dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(xtask.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(ready["ready"], true);
    assert!(dir.path().join("jane.kubeconfig").is_file());

    let children = children(xtask.id());
    assert_eq!(children.len(), 3, "{children:?}");
    xtask.kill().unwrap();
    xtask.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    for id in children {
        while runs(id) {
            assert!(Instant::now() < deadline, "process {id} still runs");
            std::thread::yield_now();
        }
    }
}

fn children(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap();
    let ids = processes.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    ids.filter(|id| status(*id).is_some_and(|(_, of)| of == parent)).collect()
}

/// A dead process that nobody has collected yet runs no more.
fn runs(id: u32) -> bool {
    status(id).is_some_and(|(state, _)| state != 'Z' && state != 'X')
}

/// Returns state and parent, the two fields after the name in `/proc/ID/stat` (proc_pid_stat(5)).
fn status(id: u32) -> Option<(char, u32)> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}
