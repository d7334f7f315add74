//! What the help of each verb teaches, as examples that can be copied.

pub(crate) const TOP: &str = "\
Start here:
  bailey install | kubectl apply --server-side -f -    install the operator
  bailey plan -f tenants/                               see what a Tenant would mean
  bailey plan --enforce                                 see what Enforce would refuse
  bailey verify --as-tenant acme                        try the attacks, changing nothing

Exit codes: 0 nothing to report, 1 differences or findings, 2 usage, 3 incomplete, 4 internal.";

pub(crate) const PLAN: &str = "\
Examples:
  bailey plan                           what the operator would change now
  bailey plan -f installation.yaml -f tenants/ --summary
                                        as if these files were applied
  bailey plan --enforce -o markdown     what must be settled before Enforce, for a ticket

Exit codes: 0 no difference, 1 differences or findings, 3 something could not be read (it is named).";

pub(crate) const REQUESTS: &str = "\
Examples:
  bailey requests                                     all requests of all tenants
  bailey requests clusterrolebinding.loki -n acme     one request, rule by rule
  bailey requests approve clusterrolebinding.loki -n acme --rule 2
                                                      grant its second refused part after all";

pub(crate) const APPROVE: &str = "\
Examples:
  bailey requests approve clusterrolebinding.loki -n acme --rule 1 --rule 3
  bailey requests approve clusterrolebinding.loki -n acme --resource nodes --verb get --verb list
  bailey requests approve clusterrolebinding.loki -n acme --all --dry-run

Verbs such as bind, escalate and impersonate cannot be approved: they reach beyond any boundary.";

pub(crate) const REVOKE: &str = "\
Examples:
  bailey requests revoke clusterrolebinding.loki -n acme --rule 1
  bailey requests revoke clusterrolebinding.loki -n acme --all --dry-run";

pub(crate) const VERIFY: &str = "\
Examples:
  bailey verify --as-tenant acme                          every attack of the catalogue
  bailey verify --as-tenant acme --attack exec-platform-pod --attack secret-read-patch
  bailey verify --as-tenant acme -o junit > verify.xml    for a pipeline

All writes are dry runs and no Secret is read. It takes the right to impersonate the tenant's subjects.
Exit codes: 0 all blocked, 1 something succeeded, 3 something could not be decided.";

pub(crate) const INSTALL: &str = "\
Examples:
  bailey install | kubectl apply --server-side -f -
  bailey install --image registry.example.com/bailey:0.1.0 --replicas 1
The same as the Helm chart with its default values.";

pub(crate) const CRDS: &str = "\
Examples:
  bailey crds | kubectl apply --server-side -f -
  bailey crds | kubectl diff --server-side -f -";

pub(crate) const COMPLETION: &str = "\
Examples:
  source <(bailey completion bash)
  bailey completion zsh > \"${fpath[1]}/_bailey\"";

pub(crate) const MAN: &str = "\
Examples:
  bailey man --dir /usr/local/share/man/man1";
