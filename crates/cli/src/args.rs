//! The command line: verbs, roles and flags, from which help, completion and man pages are made.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Parser, Subcommand};

pub use crate::analyse::args::{
    AuditArguments, DiffArguments, ExplainArguments, ReachArguments, WhatIfArguments, WhoCanReadArguments,
    WhyArguments,
};
use crate::output::{ColorChoice, Format};
pub use crate::snapshot::SnapshotArguments;
use crate::tunnel::{AgentArguments, GatewayArguments, IssuerArguments};

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "bailey",
    version,
    about = "Says yes, narrower: customers' apps on a management cluster, inside native boundaries",
    after_help = crate::examples::TOP,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub struct Cli {
    /// Flags of every verb.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every verb.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// The kubeconfig file; $KUBECONFIG or ~/.kube/config if absent.
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; its current one if absent.
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// Acts as this user.
    #[arg(long = "as", global = true, value_name = "USER")]
    pub as_user: Option<String>,
    /// Acts as a member of this group; repeatable.
    #[arg(long = "as-group", global = true, value_name = "GROUP", requires = "as_user")]
    pub as_group: Vec<String>,
    /// When to colour; NO_COLOR counts in `auto`.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: ColorChoice,
}

/// What to do.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "a process reads one")]
pub enum Command {
    /// One of the verbs that people use.
    #[command(flatten)]
    Verb(Verb),
    /// Runs the operator: Installation and Tenants to native objects.
    Operator(RoleArguments),
    /// Runs the auditor: keeps the answer who reaches which Secret, as metrics and in the status of each Tenant.
    Auditor(RoleArguments),
    /// Runs a pull-through cache of OCI images: gives nodes what registries have, also while those are away.
    #[command(after_help = crate::examples::CACHE, args_conflicts_with_subcommands = true)]
    Cache(CacheArguments),
    /// Runs a gateway: takes agents of workload clusters to the services that their clusters may reach.
    #[command(after_help = crate::examples::GATEWAY)]
    Gateway(GatewayArguments),
    /// Runs an agent: offers services of the management cluster in a workload cluster.
    #[command(after_help = crate::examples::AGENT)]
    Agent(AgentArguments),
    /// Runs the issuer: enrols workload clusters and gives their agents certificates.
    #[command(after_help = crate::examples::ISSUER)]
    Issuer(IssuerArguments),
}

/// What people use.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Shows what the operator would change, and what Enforce would refuse.
    #[command(after_help = crate::examples::PLAN)]
    Plan(PlanArguments),
    /// Shows what tenants' apps asked for, what they were granted, and what was refused and why.
    #[command(
        after_help = crate::examples::REQUESTS,
        args_conflicts_with_subcommands = true,
        subcommand_negates_reqs = true
    )]
    Requests(RequestsArguments),
    /// Tries the attack catalogue on a live cluster as a tenant, and changes nothing.
    #[command(after_help = crate::examples::VERIFY)]
    Verify(VerifyArguments),
    /// Says who reaches which Secret, by which way, and whether that is exactly whose it is.
    #[command(after_help = crate::examples::AUDIT)]
    Audit(AuditArguments),
    /// Says who can read one Secret, and how.
    #[command(after_help = crate::examples::WHO_CAN_READ)]
    WhoCanRead(WhoCanReadArguments),
    /// Says what one subject reaches: Secrets, identities, nodes, clusters.
    #[command(after_help = crate::examples::REACH)]
    Reach(ReachArguments),
    /// Shows the ways from a subject to a Secret.
    #[command(after_help = crate::examples::WHY)]
    Why(WhyArguments),
    /// Says who would reach what if manifests were applied, or taken away.
    #[command(after_help = crate::examples::WHAT_IF)]
    WhatIf(WhatIfArguments),
    /// Explains a finding, or an edge or rule of the catalogue.
    #[command(after_help = crate::examples::EXPLAIN)]
    Explain(ExplainArguments),
    /// Writes what the analyser needs of a cluster to a file, without values of Secrets.
    #[command(after_help = crate::examples::SNAPSHOT)]
    Snapshot(SnapshotArguments),
    /// Compares two audits or dumps: findings that are new or gone, verdicts that changed.
    #[command(after_help = crate::examples::DIFF)]
    Diff(DiffArguments),
    /// Lists workload clusters: how each is connected, and whether the services that it may reach answer.
    #[command(after_help = crate::examples::CLUSTERS)]
    Clusters(ClustersArguments),
    /// Prints everything that installs the operator, as YAML.
    #[command(after_help = crate::examples::INSTALL)]
    Install(InstallArguments),
    /// Prints the CRDs, as YAML.
    #[command(after_help = crate::examples::CRDS)]
    Crds,
    /// Prints the completion script of a shell.
    #[command(after_help = crate::examples::COMPLETION)]
    Completion {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Writes the man pages.
    #[command(after_help = crate::examples::MAN)]
    Man {
        /// The folder to write them to; it is made if absent.
        #[arg(long, value_name = "DIR")]
        dir: PathBuf,
    },
    /// Prints the version.
    Version,
}

/// How clusters are listed.
#[derive(Debug, Clone, Args)]
pub struct ClustersArguments {
    /// The form of the answer.
    #[arg(short, long, default_value = "table", value_name = "FORMAT", value_parser = formats(&["table", "json"]))]
    pub output: Format,
}

/// How a role runs.
#[derive(Debug, Clone, Args)]
pub struct RoleArguments {
    /// The address of the admin port: metrics and probes.
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    pub admin: SocketAddr,
    /// Waits to be the leader before it writes; needed with more than one replica.
    #[arg(long)]
    pub leader_elect: bool,
    /// The name of this replica in the Lease; made from the pod's name if absent.
    #[arg(long, env = "POD_NAME", value_name = "NAME")]
    pub identity: Option<String>,
    /// Writes the log as JSON.
    #[arg(long)]
    pub log_json: bool,
}

/// What else there is to do about an image cache.
#[derive(Debug, Clone, Subcommand)]
pub enum CacheAction {
    /// Writes the files by which containerd finds the cache; touches none that somebody else wrote.
    #[command(after_help = crate::examples::CACHE_HOSTS_TOML)]
    HostsToml(HostsTomlArguments),
    /// Pulls images through a cache that runs, so that it has them.
    #[command(after_help = crate::examples::CACHE_PREFETCH)]
    Prefetch(PrefetchArguments),
    /// Prints what caches of an ImageCache run by, in a workload cluster or here.
    #[command(after_help = crate::examples::CACHE_MANIFESTS)]
    Manifests(CacheManifestsArguments),
    /// Lists the images without which a cluster does not start, or says which of them an ImageCache does not pin.
    #[command(after_help = crate::examples::CACHE_BOOTSTRAP)]
    Bootstrap(CacheBootstrapArguments),
    /// Keeps images in a cache: fetches them ahead and never evicts them.
    #[command(after_help = crate::examples::CACHE_PIN)]
    Pin(PinArguments),
    /// Lists the images that are kept, and whether all of each is here.
    #[command(after_help = crate::examples::CACHE_PINS)]
    Pins(PinsArguments),
    /// Lets images be evicted again.
    #[command(after_help = crate::examples::CACHE_UNPIN)]
    Unpin(UnpinArguments),
    /// Compares where caches may be: for all clusters, in each, both, or none but the nodes' own.
    #[command(after_help = crate::examples::CACHE_PLAN)]
    Plan(CachePlanArguments),
    /// Hands a node's connections on to a cache, and closes them at once when none can be reached.
    #[command(after_help = crate::examples::CACHE_SHIM)]
    Shim(ShimArguments),
    /// Hashes every blob of a cache that does not run, and removes what is damaged.
    #[command(after_help = crate::examples::CACHE_SCRUB)]
    Scrub {
        /// The folder of the cache.
        #[arg(long, value_name = "DIR")]
        store: PathBuf,
    },
}

/// Which images to keep, in which cache.
#[derive(Debug, Clone, Args)]
pub struct PinArguments {
    /// The folder of the cache, which may run or not.
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    /// For this platform, as OS/ARCHITECTURE; repeatable.
    #[arg(long = "platform", value_name = "PLATFORM", default_value = "linux/amd64")]
    pub platforms: Vec<String>,
    /// A file with an image on each line, `-` for standard input; what follows a `#` is passed over.
    #[arg(short, long, value_name = "FILE", required_unless_present = "images")]
    pub file: Option<PathBuf>,
    /// Waits for so many seconds at most until all of them are here; the cache has to run.
    #[arg(long, value_name = "SECONDS")]
    pub wait: Option<u64>,
    /// The images, as REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@DIGEST.
    #[arg(value_name = "IMAGE")]
    pub images: Vec<String>,
}

/// Which cache to ask.
#[derive(Debug, Clone, Args)]
pub struct PinsArguments {
    /// The folder of the cache, which may run or not.
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    /// The form of the answer.
    #[arg(short, long, default_value = "table", value_name = "FORMAT", value_parser = formats(&["table", "json"]))]
    pub output: Format,
}

/// Which images need not be kept any more.
#[derive(Debug, Clone, Args)]
pub struct UnpinArguments {
    /// The folder of the cache, which may run or not.
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    /// The images, as `bailey cache pins` lists them.
    #[arg(required = true, value_name = "IMAGE")]
    pub images: Vec<String>,
}

/// What to plan for.
#[derive(Debug, Clone, Args)]
pub struct CachePlanArguments {
    /// A YAML file with clusters, what their nodes pull, rates and prices.
    #[arg(short, long, value_name = "FILE")]
    pub filename: PathBuf,
    /// A cache that is asked what images consist of; only manifests are fetched.
    #[arg(long, value_name = "URL")]
    pub cache: Option<String>,
    /// Certificates that the cache is checked by, as PEM.
    #[arg(long, value_name = "FILE", requires = "cache")]
    pub ca: Option<PathBuf>,
    /// The platform of the nodes, as OS/ARCHITECTURE.
    #[arg(long, value_name = "PLATFORM", default_value = "linux/amd64")]
    pub platform: String,
    /// The form of the answer.
    #[arg(short, long, default_value = "table", value_name = "FORMAT", value_parser = formats(&["table", "json"]))]
    pub output: Format,
}

/// Where a shim listens, and where the caches are.
#[derive(Debug, Clone, Args)]
pub struct ShimArguments {
    /// The address that the node asks.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5000")]
    pub listen: SocketAddr,
    /// A cache, as HOST:PORT; repeatable, tried in this order.
    #[arg(long = "cache", value_name = "HOST:PORT", required = true)]
    pub caches: Vec<String>,
}

/// Which files to write for containerd.
#[derive(Debug, Clone, Args)]
pub struct HostsTomlArguments {
    /// Where nodes reach the cache, such as http://127.0.0.1:5000.
    #[arg(long, value_name = "URL")]
    pub cache: String,
    /// A registry to write a file for; repeatable. One file for all registries without their own if absent.
    #[arg(long = "registry", value_name = "NAME")]
    pub registries: Vec<String>,
    /// Never goes to the registry itself, for nodes without an uplink.
    #[arg(long)]
    pub offline: bool,
    /// The version of containerd on the node; newer keys are used only if it is known to understand them.
    #[arg(long, value_name = "VERSION")]
    pub containerd: Option<String>,
    /// How many seconds a node tries to connect before it goes on; needs containerd 2.1.
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=30))]
    pub dial_timeout: u64,
    /// Certificates that the node trusts for the cache: a path on the node.
    #[arg(long, value_name = "FILE")]
    pub ca: Option<String>,
    /// The node's certificate for the cache: a path on the node.
    #[arg(long, value_name = "FILE", requires = "client_key")]
    pub client_cert: Option<String>,
    /// Its key.
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    pub client_key: Option<String>,
    /// The folder to write to, such as /etc/containerd/certs.d; printed if absent.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Takes the files away again.
    #[arg(long, requires = "dir")]
    pub remove: bool,
    /// Takes it for no failure that a file of somebody else was left alone.
    #[arg(long)]
    pub leave_foreign: bool,
}

/// Which ImageCache, and for where.
#[derive(Debug, Clone, Args)]
pub struct CacheManifestsArguments {
    /// The ImageCache: a file or folder of YAML or JSON; repeatable. Other objects in it are passed over.
    #[arg(short = 'f', long = "filename", value_name = "PATH", required = true)]
    pub files: Vec<PathBuf>,
    /// Where the manifests are to be applied.
    #[arg(long = "for", value_name = "WHERE", value_enum, default_value_t = CacheSite::WorkloadCluster)]
    pub site: CacheSite,
    /// The image of Bailey, as the nodes there pull it, unless the ImageCache names one.
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,
    /// Lets the step on each node remove the files of containerd that it wrote, so that the shims can go.
    #[arg(long)]
    pub remove_files: bool,
}

/// The pods to tell it from, and what to compare with.
#[derive(Debug, Clone, Args)]
pub struct CacheBootstrapArguments {
    /// What `kubectl get pods -A -o json` says; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    pub pods: PathBuf,
    /// An ImageCache, as YAML or JSON, that should pin all of them.
    #[arg(long, value_name = "FILE")]
    pub check: Option<PathBuf>,
}

/// Where a cache runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum CacheSite {
    /// A cache, and on each node a shim and the files of containerd.
    #[value(alias = "wc")]
    WorkloadCluster,
    /// What the operator makes of it, where no operator runs.
    #[value(alias = "mc")]
    ManagementCluster,
}

/// Which images to pull, and for which platform.
#[derive(Debug, Clone, Args)]
pub struct PrefetchArguments {
    /// Where the cache is.
    #[arg(long, value_name = "URL")]
    pub cache: String,
    /// Only this platform of images that have several, as OS/ARCHITECTURE.
    #[arg(long, value_name = "PLATFORM", default_value = "linux/amd64")]
    pub platform: String,
    /// Certificates that the cache is checked by, as PEM.
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// The images, as REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@DIGEST.
    #[arg(required = true, value_name = "IMAGE")]
    pub images: Vec<String>,
}

/// How the image cache runs. Each flag can also be said in the file.
#[derive(Debug, Clone, Args)]
pub struct CacheArguments {
    /// Something else than to run.
    #[command(subcommand)]
    pub action: Option<CacheAction>,
    /// The address that nodes ask; 127.0.0.1:5000 if absent.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// The address of the admin port: probes, metrics and a page; 127.0.0.1:8080 if absent.
    #[arg(long, value_name = "ADDRESS")]
    pub admin: Option<SocketAddr>,
    /// The folder that blobs are kept in.
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// What blobs and fetches under way may take on the disk, such as 10GiB; never more.
    #[arg(long, value_name = "SIZE")]
    pub budget: Option<String>,
    /// A registry that may be asked, and where it is; repeatable. Nothing else is ever dialled.
    #[arg(long = "upstream", value_name = "NAME=URL")]
    pub upstreams: Vec<String>,
    /// The registry that is meant where a request names none.
    #[arg(long, value_name = "NAME")]
    pub default_upstream: Option<String>,
    /// A YAML file with all of this, credentials, freshness of tags and who may see what.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The certificate to serve with, as PEM.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Its key, as PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Asks nodes for certificates of these authorities.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub client_ca: Option<PathBuf>,
    /// Another cache, which is asked in place of all registries.
    #[arg(long, value_name = "URL")]
    pub parent: Option<String>,
    /// Writes the log as JSON.
    #[arg(long)]
    pub log_json: bool,
}

/// What to plan.
#[derive(Debug, Clone, Args)]
pub struct PlanArguments {
    /// Plans as if these Installation and Tenants were applied: a file or folder of YAML or JSON; repeatable.
    #[arg(short = 'f', long = "filename", value_name = "PATH")]
    pub files: Vec<PathBuf>,
    /// Also lists what exists and would be refused in Enforce, or needs a person before.
    #[arg(long)]
    pub enforce: bool,
    /// Leaves out the single objects.
    #[arg(long)]
    pub summary: bool,
    /// The form of the answer.
    #[arg(short, long, default_value = "table", value_name = "FORMAT", value_parser = formats(&["table", "json", "yaml", "name", "markdown"]))]
    pub output: Format,
}

/// Which requests to show, or what to do with one.
#[derive(Debug, Clone, Args)]
pub struct RequestsArguments {
    /// Approves refused rules, or takes approvals back.
    #[command(subcommand)]
    pub action: Option<RequestAction>,
    /// One request, explained rule by rule.
    pub name: Option<String>,
    /// Only requests in this namespace.
    #[arg(short, long, value_name = "NAMESPACE", conflicts_with = "all_namespaces")]
    pub namespace: Option<String>,
    /// Requests in all namespaces, as without -n.
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
    /// Only requests of this tenant.
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<String>,
    /// Ends with code 1 when something is refused.
    #[arg(long)]
    pub fail_on_refused: bool,
    /// The form of the answer.
    #[arg(short, long, default_value = "table", value_name = "FORMAT", value_parser = formats(&["table", "wide", "json", "yaml", "name", "markdown"]))]
    pub output: Format,
}

/// What to do with a request.
#[derive(Debug, Clone, Subcommand)]
pub enum RequestAction {
    /// Grants refused parts after all; only what was requested takes effect.
    #[command(after_help = crate::examples::APPROVE)]
    Approve(ApproveArguments),
    /// Takes approvals back.
    #[command(after_help = crate::examples::REVOKE)]
    Revoke(RevokeArguments),
}

/// What to approve.
#[derive(Debug, Clone, Args)]
#[command(group = clap::ArgGroup::new("selection").required(true).args(["rules", "all", "resource"]))]
pub struct ApproveArguments {
    /// The request.
    pub name: String,
    /// Its namespace.
    #[arg(short, long, value_name = "NAMESPACE")]
    pub namespace: String,
    /// A refused part, by its number in `bailey requests NAME`; repeatable.
    #[arg(long = "rule", value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub rules: Vec<u16>,
    /// All refused parts that can be approved.
    #[arg(long, conflicts_with = "rules")]
    pub all: bool,
    /// A refused resource, as RESOURCE.GROUP, or RESOURCE in the core group.
    #[arg(long, value_name = "RESOURCE", conflicts_with_all = ["rules", "all"])]
    pub resource: Option<String>,
    /// Only these verbs of the resource; repeatable. All refused ones if absent.
    #[arg(long = "verb", value_name = "VERB", requires = "resource")]
    pub verbs: Vec<String>,
    /// Says what would be approved and changes nothing.
    #[arg(long)]
    pub dry_run: bool,
}

/// What to take back.
#[derive(Debug, Clone, Args)]
#[command(group = clap::ArgGroup::new("selection").required(true).args(["rules", "all"]))]
pub struct RevokeArguments {
    /// The request.
    pub name: String,
    /// Its namespace.
    #[arg(short, long, value_name = "NAMESPACE")]
    pub namespace: String,
    /// An approval, by its number in `bailey requests NAME`; repeatable.
    #[arg(long = "rule", value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub rules: Vec<u16>,
    /// All approvals.
    #[arg(long, conflicts_with = "rules")]
    pub all: bool,
    /// Says what would be taken back and changes nothing.
    #[arg(long)]
    pub dry_run: bool,
}

/// Whom to attack as, and what.
#[derive(Debug, Clone, Args)]
pub struct VerifyArguments {
    /// The tenant to attack as.
    #[arg(long, value_name = "TENANT")]
    pub as_tenant: String,
    /// Only these attacks; repeatable. All if absent.
    #[arg(long = "attack", value_name = "ID")]
    pub attacks: Vec<String>,
    /// The form of the answer.
    #[arg(short, long, default_value = "table", value_name = "FORMAT", value_parser = formats(&["table", "json", "yaml", "junit", "sarif", "markdown"]))]
    pub output: Format,
    /// Overrides of what is chosen from the cluster.
    #[command(flatten)]
    pub targets: TargetArguments,
}

/// Overrides of what the attacks aim at.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Targets, chosen from the cluster if absent")]
pub struct TargetArguments {
    /// A namespace of the platform.
    #[arg(long, value_name = "NAMESPACE")]
    pub platform_namespace: Option<String>,
    /// A Secret in that namespace; its value is never read.
    #[arg(long, value_name = "NAME")]
    pub platform_secret: Option<String>,
    /// A ServiceAccount in that namespace.
    #[arg(long, value_name = "NAME")]
    pub platform_account: Option<String>,
    /// A Pod in that namespace.
    #[arg(long, value_name = "NAME")]
    pub platform_pod: Option<String>,
    /// The namespace of the platform's deployer.
    #[arg(long, value_name = "NAMESPACE")]
    pub deployer_namespace: Option<String>,
    /// A user of the platform.
    #[arg(long, value_name = "USER")]
    pub platform_user: Option<String>,
    /// A ClusterRole of the platform.
    #[arg(long, value_name = "NAME")]
    pub platform_cluster_role: Option<String>,
    /// Another tenant.
    #[arg(long, value_name = "TENANT")]
    pub other_tenant: Option<String>,
    /// The namespace of the tenant to attack from.
    #[arg(long, value_name = "NAMESPACE")]
    pub tenant_namespace: Option<String>,
    /// The namespace of the tenant where an app such as Argo CD runs.
    #[arg(long, value_name = "NAMESPACE")]
    pub app_namespace: Option<String>,
}

/// What to install.
#[derive(Debug, Clone, Default, Args)]
pub struct InstallArguments {
    /// The image of Bailey.
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,
    /// The number of replicas of the operator.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub replicas: Option<u16>,
    /// Leaves out the auditor, which may list everything; then Tenants do not say whether they are isolated.
    #[arg(long)]
    pub without_auditor: bool,
}

/// The forms that a verb has.
pub(crate) fn formats(
    names: &'static [&'static str],
) -> impl clap::builder::TypedValueParser<Value = Format> {
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Format>())
}
