use bailey_process::{drain::Interrupts, leader::*, readiness::Readiness, tasks::Tasks, *};
#[tokio::main]
async fn main() {
    crypto::install();
    telemetry::init(telemetry::LogFormat::Json, None).unwrap();
    let id = std::env::args().nth(1).unwrap();
    let client = kube::Client::try_default().await.unwrap();
    let interrupts = Interrupts::install().unwrap();
    let admin = admin::bind(
        "127.0.0.1:0".parse().unwrap(),
        Readiness::new(),
        std::sync::Arc::new(metrics::registry("1")),
    )
    .await
    .unwrap();
    let mut tasks = Tasks::new();
    tasks.spawn_last("admin", |l| admin.run(l));
    tasks.spawn("operator", |signal| async move {
        let c = Candidate {
            namespace: "bailey-system".into(),
            lease: "bailey-operator".into(),
            identity: Identity::unique(&id),
            timings: Timings::default(),
        };
        let r = lead(client, c, &signal.clone(), |_| async move { signal.started().await }).await;
        r.map(|_| ())
    });
    if let Err(e) = tasks.run(interrupts, std::time::Duration::from_secs(20)).await {
        println!("EXIT {e} {:?}", e);
    }
}
