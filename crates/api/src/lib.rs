//! The API of Bailey, group `bailey.dev`, version `v1alpha1`.
//!
//! What each kind says is in its own module. The operator writes [`Boundary`] and the status of all
//! kinds; people write the rest. This crate holds no client: it is shared by pure code and servers.
#![warn(missing_docs)]
#![allow(clippy::duplicated_attributes, reason = "each printer column repeats the names of its attributes")]

mod access_request;
mod boundary;
mod conditions;
mod image_cache;
mod installation;
mod internal_service;
mod names;
mod tenant;
mod workload_cluster;

pub use access_request::*;
pub use boundary::*;
pub use conditions::*;
pub use image_cache::*;
pub use installation::*;
pub use internal_service::*;
pub use names::*;
pub use tenant::*;
pub use workload_cluster::*;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

/// The API group of all kinds.
pub const GROUP: &str = "bailey.dev";
/// The version of all kinds.
pub const VERSION: &str = "v1alpha1";
/// The namespace that the operator runs in.
///
/// The rails name the operator's account exactly, so it is not configurable.
pub const OPERATOR_NAMESPACE: &str = "bailey-system";
/// The ServiceAccount of the operator, in [`OPERATOR_NAMESPACE`].
pub const OPERATOR_ACCOUNT: &str = "bailey-operator";
/// The ServiceAccount of the auditor, in [`OPERATOR_NAMESPACE`].
pub const AUDITOR_ACCOUNT: &str = "bailey-auditor";
/// The name of the one [`Installation`] and the one [`Boundary`].
pub const INSTALLATION_NAME: &str = "installation";
/// The label that says which tenant a namespace or object belongs to.
pub const TENANT_LABEL: &str = "bailey.dev/tenant";
/// The label on a tenant's namespace that says in which mode its other labels were written.
pub const ENFORCEMENT_LABEL: &str = "bailey.dev/enforcement";
/// The label that says which part of Bailey wrote an object.
pub const COMPONENT_LABEL: &str = "bailey.dev/component";
/// The annotation on a scoped role that holds the rules it asked for, as JSON.
pub const REQUESTED_RULES: &str = "bailey.dev/requested-rules";
/// The annotation on a scoped cluster role that holds the aggregation it asked for, as JSON.
pub const REQUESTED_AGGREGATION: &str = "bailey.dev/requested-aggregation";
/// The annotation on a scoped binding that holds the role it asked for, as `KIND/NAME`.
pub const REQUESTED_ROLE: &str = "bailey.dev/requested-role";
/// The empty ClusterRole that scoped bindings point to.
pub const SCOPED_ROLE: &str = "bailey:scoped";

/// The definitions of all kinds, in the order to apply them.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![
        Installation::crd(),
        Tenant::crd(),
        Boundary::crd(),
        AccessRequest::crd(),
        ImageCache::crd(),
        InternalService::crd(),
        WorkloadCluster::crd(),
    ]
}
