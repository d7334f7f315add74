use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bailey_process::admin::bind;
use bailey_process::drain::Interrupts;
use bailey_process::metrics;
use bailey_process::readiness::Readiness;
use bailey_process::tasks::Tasks;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

fn any_port() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

async fn request(address: SocketAddr, line: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(format!("{line} HTTP/1.1\r\nhost: admin\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(Duration::from_secs(5), stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer)
}

#[tokio::test]
async fn pages_follow_the_life_of_the_process() {
    let readiness = Readiness::new();
    let caches = readiness.register("caches");
    let leases = readiness.register("leases");
    let bound = bind(any_port(), readiness, Arc::new(metrics::registry("9.9.9"))).await.unwrap();
    let address = bound.address();
    let mut tasks = Tasks::new();
    tasks.spawn_last("admin", |last| bound.run(last));
    let (release, released) = tokio::sync::oneshot::channel::<()>();
    tasks.spawn("work", |signal| async move {
        signal.started().await;
        released.await
    });
    let (interrupt, interrupts) = Interrupts::channel();
    let run = tokio::spawn(tasks.run(interrupts, Duration::from_secs(30)));

    assert_eq!(request(address, "GET /livez").await.0, 200);
    let (status, page) = request(address, "GET /readyz").await;
    assert_eq!(status, 503);
    assert!(page.ends_with("not ready: caches, leases\n"), "{page}");
    drop((caches, leases));
    assert_eq!(request(address, "GET /readyz?verbose").await.0, 200);

    let (status, page) = request(address, "GET /metrics").await;
    assert_eq!(status, 200);
    assert!(
        page.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8"),
        "{page}"
    );
    assert!(page.contains("bailey_build_info{version=\"9.9.9\"} 1"), "{page}");
    assert!(page.ends_with("# EOF\n"), "{page}");

    assert_eq!(request(address, "GET /debug").await.0, 404);
    assert_eq!(request(address, "POST /livez").await.0, 405);
    let (status, page) = request(address, "HEAD /livez").await;
    assert!(status == 200 && page.ends_with("\r\n\r\n"), "{page}");

    interrupt.send("SIGTERM").await.unwrap();
    let draining = async {
        while !request(address, "GET /readyz").await.1.ends_with("draining\n") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(5), draining).await.unwrap();
    assert_eq!(request(address, "GET /livez").await.0, 200);
    release.send(()).unwrap();
    timeout(Duration::from_secs(5), run).await.unwrap().unwrap().unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn an_address_in_use_is_named_with_the_way_out() {
    let first = bind(any_port(), Readiness::new(), Arc::default()).await.unwrap();
    let error = bind(first.address(), Readiness::new(), Arc::default()).await.unwrap_err();
    let wanted = format!(
        "cannot listen on {} for the admin server; choose a free address with `--admin`",
        first.address()
    );
    assert_eq!(error.to_string(), wanted);
    assert_eq!(error.reason(), "AdminAddressUnavailable");
}

#[tokio::test]
async fn silent_clients_do_not_keep_others_from_an_answer() {
    let bound = bind(any_port(), Readiness::new(), Arc::default()).await.unwrap();
    let address = bound.address();
    let (interrupt, interrupts) = Interrupts::channel();
    let mut tasks = Tasks::new();
    tasks.spawn_last("admin", |last| bound.run(last));
    let run = tokio::spawn(tasks.run(interrupts, Duration::from_secs(30)));
    let mut silent = Vec::new();
    for _ in 0..40 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    assert_eq!(request(address, "GET /livez").await.0, 200);
    interrupt.send("SIGTERM").await.unwrap();
    timeout(Duration::from_secs(5), run).await.unwrap().unwrap().unwrap();
}
