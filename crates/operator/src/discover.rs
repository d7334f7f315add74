//! Asks the API server what it serves, in two calls (aggregated discovery, KEP-3352).

use std::time::Duration;

use bailey_guardrails::Discovery;
use kube::Client;
use serde_json::Value;

use crate::error::OperatorError;

const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const DEADLINE: Duration = Duration::from_secs(15);

/// Everything that the API server serves now.
pub async fn discover(client: &Client) -> Result<Discovery, OperatorError> {
    let mut documents = Vec::new();
    for path in ["/api", "/apis"] {
        let object = || format!("discovery {path}");
        let request = http::Request::get(path)
            .header(http::header::ACCEPT, ACCEPT)
            .body(Vec::new())
            .map_err(|e| OperatorError::api("get", object(), kube::Error::HttpError(e)))?;
        let answer =
            tokio::time::timeout(DEADLINE, client.request::<Value>(request)).await.map_err(|_| {
                OperatorError::Deadline { verb: "get", object: object(), seconds: DEADLINE.as_secs() }
            })?;
        documents.push(answer.map_err(|source| OperatorError::api("get", object(), source))?);
    }
    Discovery::from_aggregated(&documents)
        .map_err(|source| OperatorError::Discovery { source: Box::new(source) })
}
