use std::convert::Infallible;
use std::process::{Command, id};
use std::time::Duration;

use bailey_process::drain::Interrupts;
use bailey_process::tasks::{TaskError, Tasks};
use tokio::time::timeout;

fn kill_this_process(signal: &str) {
    let status = Command::new("kill").args([signal, &id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// One test, as signals reach every listener of the process.
#[tokio::test]
async fn sigterm_drains_and_sigint_then_forces() {
    let interrupts = Interrupts::install().unwrap();
    let mut tasks = Tasks::new();
    tasks.spawn("stuck", |signal| async move {
        signal.started().await;
        kill_this_process("-INT");
        std::future::pending::<Result<(), Infallible>>().await
    });
    let run = tokio::spawn(tasks.run(interrupts, Duration::from_secs(30)));
    kill_this_process("-TERM");
    let error = timeout(Duration::from_secs(10), run).await.unwrap().unwrap().unwrap_err();
    assert!(matches!(error, TaskError::Forced { signal: "SIGINT", .. }), "{error}");
}
