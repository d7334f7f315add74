//! Brings clusters of Cluster API into the installation: each gets a WorkloadCluster, its agent, and the Services that it
//! may reach. What is pushed to a workload cluster holds no secret.
//!
//! `snapshot` is what watches say; `plan` decides, from data alone, what should be; `build` makes objects for a workload
//! cluster; `work` applies them. Clusters are worked on side by side, and one that does not answer holds up itself only.

pub mod build;
pub mod plan;
mod remote;
mod work;

pub use remote::Kubeconfigs;
pub use work::{EnrollerError, Options, run};
