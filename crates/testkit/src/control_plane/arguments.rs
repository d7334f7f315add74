//! The command lines of the control plane's processes.

use std::path::Path;

use super::{Options, Ports};

/// Who did what and why it was allowed, without bodies: no Secret's value gets into a log.
pub const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
";

/// Returns the arguments of etcd, which gives up durability for speed.
pub fn etcd(dir: &Path, ports: &Ports) -> Vec<String> {
    let client = format!("http://127.0.0.1:{}", ports.etcd.number());
    let peer = format!("http://127.0.0.1:{}", ports.etcd_peer.number());
    let data = dir.join("etcd");
    vec![
        format!("--data-dir={}", data.display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        "--socket-reuse-port=true".to_owned(),
        "--unsafe-no-fsync=true".to_owned(),
        "--log-level=warn".to_owned(),
    ]
}

/// Returns the arguments of the API server.
pub fn api_server(dir: &Path, ports: &Ports, options: &Options) -> Vec<String> {
    let file = |name: &str| dir.join(name).display().to_string();
    let mut arguments = vec![
        format!("--etcd-servers=http://127.0.0.1:{}", ports.etcd.number()),
        format!("--secure-port={}", ports.api_server.number()),
        "--bind-address=127.0.0.1".to_owned(),
        // Neither a default route nor the endpoints of Service `kubernetes` are needed on loopback.
        "--advertise-address=127.0.0.1".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        "--permit-port-sharing=true".to_owned(),
        format!("--tls-cert-file={}", file("serving.crt")),
        format!("--tls-private-key-file={}", file("serving.key")),
        format!("--client-ca-file={}", file("ca.crt")),
        format!("--service-account-key-file={}", file("sa.pub")),
        format!("--service-account-signing-key-file={}", file("sa.key")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        "--allow-privileged=true".to_owned(),
    ];
    arguments.push(match options.authorization_config {
        Some(_) => format!("--authorization-config={}", file("authorization.yaml")),
        None => "--authorization-mode=Node,RBAC".to_owned(),
    });
    if options.audit {
        arguments.push(format!("--audit-policy-file={}", file("audit-policy.yaml")));
        arguments.push(format!("--audit-log-path={}", file("audit.log")));
    }
    arguments.extend(options.api_server_arguments.iter().cloned());
    arguments
}

/// Returns the arguments of the controller manager, which serves nothing itself.
pub fn controller_manager(dir: &Path, kubeconfig: &Path) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--root-ca-file={}", dir.join("ca.crt").display()),
        format!("--service-account-private-key-file={}", dir.join("sa.key").display()),
        "--use-service-account-credentials=true".to_owned(),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
        // Tests make and delete many namespaces; the usual limits are those of a shared API server.
        "--kube-api-qps=300".to_owned(),
        "--kube-api-burst=600".to_owned(),
    ]
}

/// Returns the arguments of the scheduler, which serves nothing itself.
pub fn scheduler(kubeconfig: &Path) -> Vec<String> {
    let kubeconfig = kubeconfig.display();
    vec![
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
    ]
}
