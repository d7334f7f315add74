//! The management cluster that attacks, tests and the demo start from: two customers and a platform.
//!
//! Its files hold no tenant of Bailey's and no policy; those who need them add them.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use bailey_attacks::Bindings;

use crate::Access;

/// How long the objects may take to be accepted, while controllers make what they need.
const APPLY_SECONDS: u64 = 30;
const RETRY_MILLISECONDS: u64 = 200;

/// Names one file of the fixture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fixture {
    /// The kinds of the deployers, with open schemas.
    Crds,
    /// Namespaces, Secrets, accounts and roles.
    ManagementCluster,
    /// What customers hold before Bailey: cluster-admin.
    Stock,
    /// Grants believed to be harmless, which stay when Bailey comes.
    Leftovers,
    /// The Installation, in `Audit`, and the Tenants.
    Bailey,
}

impl Fixture {
    fn file(self) -> (&'static str, &'static str) {
        match self {
            Self::Crds => ("crds", include_str!("../fixtures/crds.yaml")),
            Self::ManagementCluster => {
                ("management-cluster", include_str!("../fixtures/management-cluster.yaml"))
            }
            Self::Stock => ("stock", include_str!("../fixtures/stock.yaml")),
            Self::Leftovers => ("leftovers", include_str!("../fixtures/leftovers.yaml")),
            Self::Bailey => ("bailey", include_str!("../fixtures/bailey.yaml")),
        }
    }

    /// Returns the objects as YAML documents, placeholders filled in.
    pub fn manifests(self, bindings: &Bindings) -> Result<String> {
        let (name, text) = self.file();
        Ok(bindings.fill(name, text)?)
    }

    /// Applies the objects server-side, and waits until the kinds among them are served.
    pub async fn apply(self, admin: &Access, bindings: &Bindings) -> Result<()> {
        let manifests = self.manifests(bindings)?;
        let arguments = ["apply", "--server-side", "--force-conflicts", "--field-manager=fixture", "-f", "-"];
        retried(admin, &arguments, &manifests).await.with_context(|| format!("apply fixture {self:?}"))?;
        if self == Self::Crds {
            let wait = ["wait", "--for=condition=Established", "--timeout=30s", "-f", "-"];
            retried(admin, &wait, &manifests).await.context("wait for the kinds of the fixture")?;
        }
        Ok(())
    }
}

/// A pod is refused until its account is seen, so the first attempt may fail.
async fn retried(admin: &Access, arguments: &[&str], stdin: &str) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(APPLY_SECONDS);
    loop {
        let output = admin.kubectl(arguments, Some(stdin)).await?;
        if output.success() {
            return Ok(());
        }
        if Instant::now() >= deadline {
            bail!("kubectl {}: {}", arguments.join(" "), output.stderr);
        }
        tokio::time::sleep(Duration::from_millis(RETRY_MILLISECONDS)).await;
    }
}

/// Returns the names of this fixture for the attack catalogue; `nonce` makes created names unique.
pub fn bindings(marker: &str, nonce: &str) -> Bindings {
    let text = str::to_owned;
    Bindings {
        tenant: text("acme"),
        tenant_namespace: text("org-acme"),
        tenant_app_namespace: text("argocd"),
        tenant_group: text("customer:acme-admins"),
        tenant_developers: text("customer:acme-developers"),
        other_tenant: text("beta"),
        other_namespace: text("org-beta"),
        other_group: text("customer:beta-admins"),
        platform_namespace: text("platform-monitoring"),
        platform_secret: text("alert-receivers"),
        platform_account: text("monitoring-agent"),
        platform_pod: text("monitoring-agent-0"),
        platform_deployer_namespace: text("platform-flux"),
        platform_user: text("pia@platform.example"),
        platform_cluster_role: text("platform-monitoring-agent"),
        management_cluster: text("harbour"),
        marker: text(marker),
        nonce: text(nonce),
    }
}
