use std::convert::Infallible;
use std::future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{TaskError, Tasks};
use crate::drain::{Interrupts, Signal};

const GRACE: Duration = Duration::from_secs(30);

async fn until_drained(signal: Signal) -> Result<(), Infallible> {
    signal.started().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_signal_drains_the_work_before_what_outlives_it() {
    let (sender, interrupts) = Interrupts::channel();
    let worked = Arc::new(AtomicBool::new(false));
    let (work, seen) = (worked.clone(), worked.clone());
    let mut tasks = Tasks::new();
    tasks.spawn("work", |signal| async move {
        signal.started().await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        work.store(true, Ordering::SeqCst);
        Ok::<_, Infallible>(())
    });
    tasks.spawn_last("admin", |last| async move {
        last.ended().await;
        assert!(seen.load(Ordering::SeqCst), "the work must be over");
        Ok::<_, Infallible>(())
    });
    sender.send("SIGTERM").await.unwrap();
    tasks.run(interrupts, GRACE).await.unwrap();
    assert!(worked.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn work_that_is_overdue_is_aborted_and_named() {
    let (sender, interrupts) = Interrupts::channel();
    let mut tasks = Tasks::new();
    tasks.spawn("stuck", |_| future::pending::<Result<(), Infallible>>());
    tasks.spawn("polite", until_drained);
    sender.send("SIGTERM").await.unwrap();
    let error = tasks.run(interrupts, GRACE).await.unwrap_err();
    assert!(matches!(&error, TaskError::Overdue { grace_seconds: 30, tasks } if tasks == "stuck"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_signal_passed_on_keeps_the_drain_open() {
    let (sender, interrupts) = Interrupts::channel();
    let mut tasks = Tasks::new();
    let mut passed = None;
    tasks.spawn("listener", |signal| {
        passed = Some(signal.clone());
        until_drained(signal)
    });
    sender.send("SIGTERM").await.unwrap();
    let error = tasks.run(interrupts, GRACE).await.unwrap_err();
    assert!(matches!(&error, TaskError::Overdue { tasks, .. } if tasks == "connections"), "{error}");
    drop(passed);
}

#[tokio::test]
async fn a_second_signal_forces_the_end() {
    let (sender, interrupts) = Interrupts::channel();
    let mut tasks = Tasks::new();
    tasks.spawn("stuck", |_| future::pending::<Result<(), Infallible>>());
    sender.send("SIGTERM").await.unwrap();
    sender.send("SIGINT").await.unwrap();
    let error = tasks.run(interrupts, GRACE).await.unwrap_err();
    assert_eq!(error.to_string(), "a second signal, SIGINT, broke the drain off while these ran: stuck");
}

#[tokio::test]
async fn a_task_that_fails_drains_the_others_and_is_the_reason() {
    let (_sender, interrupts) = Interrupts::channel();
    let mut tasks = Tasks::new();
    tasks.spawn("polite", until_drained);
    tasks.spawn("watch", |_| async { Err(io::Error::other("the API server closed the stream")) });
    let error = tasks.run(interrupts, GRACE).await.unwrap_err();
    assert!(matches!(error, TaskError::Failed { task: "watch", .. }), "{error}");
}

#[tokio::test]
async fn a_task_that_just_ends_is_an_error() {
    let (_sender, interrupts) = Interrupts::channel();
    let mut tasks = Tasks::new();
    tasks.spawn("short", |_| async { Ok::<_, Infallible>(()) });
    let error = tasks.run(interrupts, GRACE).await.unwrap_err();
    assert!(matches!(error, TaskError::Ended { task: "short" }), "{error}");
}

#[tokio::test]
async fn a_task_that_panics_ends_the_process_in_order() {
    let (_sender, interrupts) = Interrupts::channel();
    let mut tasks = Tasks::new();
    tasks.spawn("polite", until_drained);
    tasks.spawn("broken", |signal| async move {
        assert!(signal.is_started(), "expected in this test");
        Ok::<_, Infallible>(())
    });
    let error = tasks.run(interrupts, GRACE).await.unwrap_err();
    assert!(matches!(error, TaskError::Broken { task: "broken", .. }), "{error}");
}
