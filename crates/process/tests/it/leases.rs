//! A server that holds one Lease, with resourceVersions as the API server has them, and can be muted.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub struct Leases {
    pub client: Client,
    state: Arc<Mutex<State>>,
    _server: JoinSet<()>,
}

#[derive(Default)]
struct State {
    lease: Option<Value>,
    version: u64,
    mute: bool,
}

impl Leases {
    pub async fn start() -> Self {
        bailey_process::crypto::install();
        let state = Arc::new(Mutex::new(State::default()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut server = JoinSet::new();
        server.spawn(serve(listener, state.clone()));
        let client = Client::try_from(Config::new(url.parse().unwrap())).unwrap();
        Self { client, state, _server: server }
    }

    pub fn holder(&self) -> Option<String> {
        let state = self.state.lock().unwrap();
        state.lease.as_ref()?.pointer("/spec/holderIdentity")?.as_str().map(str::to_owned)
    }

    pub fn transitions(&self) -> Option<i64> {
        self.state.lock().unwrap().lease.as_ref()?.pointer("/spec/leaseTransitions")?.as_i64()
    }

    pub fn exists(&self) -> bool {
        self.state.lock().unwrap().lease.is_some()
    }

    pub fn take(&self, holder: &str) {
        let mut state = self.state.lock().unwrap();
        state.version += 1;
        let version = state.version.to_string();
        let lease = state.lease.as_mut().unwrap();
        lease["spec"]["holderIdentity"] = json!(holder);
        lease["metadata"]["resourceVersion"] = json!(version);
    }

    pub fn mute(&self) {
        self.state.lock().unwrap().mute = true;
    }
}

async fn serve(listener: TcpListener, state: Arc<Mutex<State>>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let state = state.clone();
        connections.spawn(async move {
            let service = service_fn(move |request| answer(request, state.clone()));
            // A client that goes away is no failure of the server.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    state: Arc<Mutex<State>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let method = request.method().clone();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    if state.lock().unwrap().mute {
        std::future::pending::<()>().await;
    }
    let (status, answer) = state.lock().unwrap().apply(&method, &body);
    let mut response = Response::new(Full::new(Bytes::from(answer.to_string())));
    *response.status_mut() = status;
    Ok(response)
}

impl State {
    fn apply(&mut self, method: &Method, body: &[u8]) -> (StatusCode, Value) {
        match (method, &self.lease) {
            (&Method::GET, None) => failure(StatusCode::NOT_FOUND, "NotFound"),
            (&Method::GET, Some(lease)) => (StatusCode::OK, lease.clone()),
            (&Method::POST, Some(_)) => failure(StatusCode::CONFLICT, "AlreadyExists"),
            (&Method::PUT, None) => failure(StatusCode::NOT_FOUND, "NotFound"),
            _ => {
                let mut wanted: Value = serde_json::from_slice(body).unwrap();
                let read = wanted.pointer("/metadata/resourceVersion").cloned();
                let current =
                    self.lease.as_ref().and_then(|lease| lease.pointer("/metadata/resourceVersion"));
                if read.as_ref() != current {
                    return failure(StatusCode::CONFLICT, "Conflict");
                }
                self.version += 1;
                wanted["metadata"]["resourceVersion"] = json!(self.version.to_string());
                self.lease = Some(wanted.clone());
                (StatusCode::OK, wanted)
            }
        }
    }
}

fn failure(code: StatusCode, reason: &str) -> (StatusCode, Value) {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": reason, "reason": reason, "code": code.as_u16(),
    });
    (code, status)
}
