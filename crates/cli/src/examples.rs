//! What the help of each verb teaches, as examples that can be copied.

pub(crate) const TOP: &str = "\
Start here:
  bailey install | kubectl apply --server-side -f -    install the operator
  bailey plan -f tenants/                               see what a Tenant would mean
  bailey plan --enforce                                 see what Enforce would refuse
  bailey verify --as-tenant acme                        try the attacks, changing nothing
  bailey audit                                          see who reaches which Secret

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

pub(crate) const AUDIT: &str = "\
Examples:
  bailey audit                                     the cluster of the kubeconfig
  bailey audit --dump snapshot.tar.gz --tenants tenants.yaml
  bailey audit -o json > audit.json                to compare with later
  bailey audit --baseline audit.json --fail-on medium -o sarif > audit.sarif
                                                   only what is new counts
  bailey audit --customer acme --verdict shared --verdict exposed
  bailey audit --fingerprint                       credentials that lie with several customers, too

A file of waivers lists findings that somebody answers for:
  waivers:
  - {id: exec-52e8d410, owner: team-harbour, reason: on call needs it, expires: 2027-01-31}
  - {rule: read-secret, subject: \"sa:org-acme/backup\", secret: org-beta/db, owner: …, reason: …, expires: …}

Exit codes: 0 no finding at or above --fail-on among what is selected, 1 findings, 3 something could not be
read, whatever was found. A finding that is waived, or in the baseline and no worse, does not count.";

pub(crate) const WHO_CAN_READ: &str = "\
Examples:
  bailey who-can-read org-acme/db                  those first who should not
  bailey who-can-read org-acme/db -o wide          with the way of each

Exit codes: 0 only whose it is and the platform, 1 somebody else too (that counts as high, or medium where it
is only assumed), 3 something could not be read.";

pub(crate) const REACH: &str = "\
Examples:
  bailey reach sa:org-acme/backup
  bailey reach group:customer:acme-admins -o markdown
  bailey reach harbour-wc1:user:jane --dump harbour=mc/ --dump harbour-wc1=wc1/

Exit codes: 0 nothing but its own, 1 what is somebody else's (that counts as high, or medium where it is only
assumed; full control of a cluster as critical), 3 something could not be read. The platform may reach all.";

pub(crate) const WHY: &str = "\
Examples:
  bailey why sa:org-acme/backup org-beta/db
  bailey why group:customer:acme-admins flux-system/deploy-key --alternates 10

Exit codes: 0 there is no way, 1 there is one, 3 something could not be read.";

pub(crate) const WHAT_IF: &str = "\
Examples:
  helm template loki grafana/loki -n org-acme | bailey what-if -f - -n org-acme
  bailey what-if -f rbac/ --dump snapshot.tar.gz -o markdown
  bailey what-if -f old-binding.yaml --remove

Nothing is applied. Exit codes: 0 no new finding at or above --fail-on, 1 new findings or a Secret that would be
shared or exposed, 3 something could not be read.";

pub(crate) const EXPLAIN: &str = "\
Examples:
  bailey explain                                   all edges and rules
  bailey explain patch-read                        how an API server behaves, and what to do
  bailey explain exec-52e8d410                     a finding with its whole way, and other ways
  bailey explain exec-52e8d410 --audit audit.json  the same from a former audit";

pub(crate) const DIFF: &str = "\
Examples:
  bailey diff monday.json friday.json              two audits (bailey audit -o json)
  bailey diff before.tar.gz after.tar.gz --tenants tenants.yaml
                                                   two dumps

Exit codes: 0 no finding at or above --fail-on is new or worse, 1 some are, 3 either side is incomplete.";

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

pub(crate) const SNAPSHOT: &str = "\
Examples:
  bailey snapshot -o mc.json.gz                        the cluster of the kubeconfig
  bailey snapshot -o mc.json.gz --context mc --name mc
  bailey audit --dump mc.json.gz                       what it says, on any machine

It holds names, types, rights and references, and no value of any Secret. Exit codes: 0 all was read, 3 something
could not be read; the file says what.";

pub(crate) const CACHE: &str = "\
Examples:
  bailey cache --store /var/lib/bailey/cache --budget 100GiB --upstream docker.io --listen 0.0.0.0:5000
                                        Docker Hub for all nodes that name this as its mirror
  bailey cache --config cache.yaml      several registries, credentials, rules for tags
  bailey cache --store /var/lib/bailey/cache --budget 20GiB --upstream docker.io \\
    --parent https://images.management.example:5000
                                        a cache of a workload cluster, below one that all share

A line of JSON on standard output names the addresses as soon as it serves. SIGTERM lets answers finish.";

pub(crate) const CACHE_HOSTS_TOML: &str = "\
Examples:
  bailey cache hosts-toml --cache http://127.0.0.1:5000 --registry docker.io
                                        what would be written
  bailey cache hosts-toml --cache http://127.0.0.1:5000 --registry docker.io --containerd 2.1 \\
    --dir /etc/containerd/certs.d       write it; containerd reads it with the next pull
  bailey cache hosts-toml --cache http://127.0.0.1:5000 --offline --dir /etc/containerd/certs.d
                                        all registries, and the cache alone
  bailey cache hosts-toml --cache http://127.0.0.1:5000 --registry docker.io --remove --dir /etc/containerd/certs.d

Exit codes: 0 all is as wanted, 1 a file of somebody else was left alone (it is named).";

pub(crate) const CACHE_PREFETCH: &str = "\
Examples:
  bailey cache prefetch --cache http://127.0.0.1:5000 docker.io/library/debian:13
  bailey cache prefetch --cache http://127.0.0.1:5000 --platform linux/arm64 registry.example/acme/app:v2

Exit codes: 0 all are there, 3 some could not be pulled (they are named).";

pub(crate) const CACHE_BOOTSTRAP: &str = "\
Examples:
  kubectl get pods -A -o json | bailey cache bootstrap --pods -
                                        the list, for `bootstrap` of an ImageCache
  kubectl get pods -A -o json | bailey cache bootstrap --pods - --check image-cache.yaml

Counted are pods of kube-system and of critical priority. The image of pods' first container, `pause`, is of no pod: add
it by hand. Exit codes: 0 listed, or all are pinned, 1 some are not (they are named).";

pub(crate) const CACHE_MANIFESTS: &str = "\
Examples:
  bailey cache manifests -f docs/examples/cache/image-cache.yaml --image registry.example/bailey:1
                                        what a workload cluster needs; --for wc is the same
  bailey cache manifests -f docs/examples/cache/image-cache.yaml --for mc
                                        what the operator makes of it
  bailey cache manifests -f docs/examples/cache/image-cache.yaml --image registry.example/bailey:1 --remove-files
                                        the same, but nodes forget the cache: apply it before all of it is deleted

Nothing is read from a cluster. What must be true of the objects is checked by the API server when they are applied.";

pub(crate) const CACHE_PIN: &str = "\
Examples:
  bailey cache pin --store /var/lib/bailey/cache registry.k8s.io/pause:3.10
  bailey cache pin --store /var/lib/bailey/cache --file images.txt --platform linux/amd64 --platform linux/arm64
  kubectl get pods -A -o jsonpath='{range .items[*].spec.containers[*]}{.image}{\"\\n\"}{end}' | sort -u |
    bailey cache pin --store /var/lib/bailey/cache --file - --wait 600

A cache that runs is asked by a socket in its folder and fetches at once; one that does not, when it starts. Pins
outlive restarts. Exit codes: 0 pinned, and with --wait all are here, 3 some were not here in time (they are named).";

pub(crate) const CACHE_PINS: &str = "\
Examples:
  bailey cache pins --store /var/lib/bailey/cache
  bailey cache pins --store /var/lib/bailey/cache -o json

Exit codes: 0 all that is pinned is here, 3 some is not.";

pub(crate) const CACHE_UNPIN: &str = "\
Examples:
  bailey cache unpin --store /var/lib/bailey/cache registry.k8s.io/pause:3.10

Nothing is removed by it: what nobody asks for is evicted when room is needed.";

pub(crate) const CACHE_PLAN: &str = "\
Examples:
  bailey cache plan -f plan.yaml
  bailey cache plan -f plan.yaml --cache http://127.0.0.1:5000 -o json
  kubectl get pods -A -o jsonpath='{range .items[*]}{.spec.nodeName} {.spec.containers[0].image}{\"\\n\"}{end}' \\
    > one.log                           what nodes pulled, for `pulls` of a cluster

Bytes are exact for caches that start empty; times are the least that the links allow, when all nodes start at once.";

pub(crate) const CACHE_SCRUB: &str = "\
Examples:
  bailey cache scrub --store /var/lib/bailey/cache

A cache that runs scrubs itself: see scrubEvery in its file. Exit codes: 0 all sound, 1 something was removed.";

pub(crate) const CACHE_SHIM: &str = "\
Examples:
  bailey cache shim --listen 127.0.0.1:5000 --cache images.example:5000 --cache 10.0.0.5:5000

It keeps nothing and knows no credential; TLS of the cache goes through it unread.";

pub(crate) const GATEWAY: &str = "\
Examples:
  bailey gateway --installation atlas --issuer bailey-issuer:8444 --bundle /etc/bailey/ca.crt
  bailey gateway --directory directory.yaml --certificate tls.crt --key tls.key --bundle ca.crt

Nobody gets further than a look at its first message without the name that its cluster sends,
or further than a handshake without a certificate of the installation. A cluster reaches what
it was granted, and cannot tell a service that it may not reach from one that is not there.";

pub(crate) const AGENT: &str = "\
Examples:
  bailey agent --config /etc/bailey/agent.json
  bailey agent --config agent.json --certificate tls.crt --key tls.key --proxy http://proxy.example:3128

It dials gateways and is dialled by nobody but clients in its own cluster. It keeps nothing on
disk: the key is made in memory, and a certificate lives for an hour.";

pub(crate) const ISSUER: &str = "\
Examples:
  bailey issuer --installation atlas --gateway gateway.example:443 --agent-image registry.example/bailey:1.2.3

It finds Clusters of Cluster API, reaches each by the kubeconfig that Cluster API made, and
gives it an agent, where gateways are and whom to trust: nothing secret. Who gets a certificate
follows from whose API server signed the agent's token.";

pub(crate) const CLUSTERS: &str = "\
Examples:
  bailey clusters                every cluster, by name
  bailey clusters -o json | jq '.clusters[] | select(.ready | not)'

Exit code 1 says that one is not ready: no agent has a session, or a service does not answer
through the whole path.";
