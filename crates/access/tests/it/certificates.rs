//! Client certificates by way of signing requests.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::case::Case;
use crate::direct::{base64, fresh};
use crate::server::{Request, Who};
use crate::spec::{ABSENT, LABEL};

pub const PATH: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
/// Signs for users and groups.
pub const CLIENTS: &str = "kubernetes.io/kube-apiserver-client";

/// A request for a certificate of a user, perhaps in a group, and the key.
pub fn request(user: &str, group: Option<&str>) -> Result<(Value, String)> {
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name.push(rcgen::DnType::CommonName, user);
    if let Some(group) = group {
        params.distinguished_name.push(rcgen::DnType::OrganizationName, group);
    }
    let key = rcgen::KeyPair::generate()?;
    let pem = params.serialize_request(&key)?.pem()?;
    let body = json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"generateName": "probe-", "labels": {LABEL: "probe"}},
        "spec": {"request": base64(&pem), "signerName": CLIENTS, "usages": ["client auth"]}});
    Ok((body, key.serialize_pem()))
}

/// Has a certificate issued: one of them asks, one of them approves and takes it from the answer. Whether it then is
/// that user. Who asks chooses the name, so that a right to approve by name will do.
pub async fn issue(case: &Case<'_>, asking: &Who, all: &[Who], wanted: &Who) -> Result<bool> {
    for name in [None, Some(ABSENT)] {
        let (mut body, key) = request(&wanted.user, wanted.groups.first().map(String::as_str))?;
        if let Some(name) = name {
            body["metadata"] = json!({"name": name, "labels": {LABEL: "probe"}});
        }
        let made = case.server.ask(asking, &Request::post(PATH, body)).await?;
        if made.status != 201 {
            continue;
        }
        let made = made.json();
        let path = format!("{PATH}/{}", made["metadata"]["name"].as_str().context("a name")?);
        let issued = approve(case, all, &made, &path).await?;
        case.server.admin(Request::delete(path)).await?;
        if let Some(certificate) = issued {
            return case.server.is_user(&certificate, &key, wanted).await;
        }
    }
    Ok(false)
}

/// The certificate, if one of them may approve.
async fn approve(case: &Case<'_>, all: &[Who], made: &Value, path: &str) -> Result<Option<String>> {
    let condition = json!([{"type": "Approved", "status": "True", "reason": "Probe", "message": "probe"}]);
    for who in all {
        let mut put = fresh(made);
        put["status"] = json!({"conditions": condition});
        let approval = format!("{path}/approval");
        let requests = [
            Request::patch(&approval, json!({"status": {"conditions": condition}})),
            Request::put(&approval, put),
        ];
        for request in requests {
            if !case.server.ask(who, &request).await?.ok() {
                continue;
            }
            // The same request again shows the certificate once it is there.
            let again = async || {
                let answer = case.server.ask(who, &request).await?.json();
                Ok(answer["status"]["certificate"].as_str().map(str::to_owned))
            };
            return case.server.until("a certificate", again).await.map(Some);
        }
    }
    Ok(None)
}
