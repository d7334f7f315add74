//! From what people say (`Installation`, `Tenant`) to native Kubernetes objects, without a cluster.
//!
//! [`validate`] turns raw specs into a [`Model`] that cannot contradict itself and names what it left out;
//! [`build`] turns a model into [`Desired`] objects and cannot fail; [`scope`] decides what a binding of a
//! tenant is granted, and [`Projector`] writes that as objects. [`evaluate`] runs a policy offline.
//!
//! INVARIANT: user strings reach a policy only as data of the `Boundary`, never as text of an expression.

mod boundary;
mod build;
mod ceiling;
mod discovery;
mod evaluate;
mod foreign;
mod image_cache;
mod model;
mod object;
mod policies;
mod project;
mod rbac;
mod scope;

pub use boundary::boundary;
pub use build::{Desired, build};
pub use ceiling::{Ceiling, cluster_ceiling, namespace_ceiling};
pub use discovery::{Discovery, DiscoveryError, Resource, ResourceScope};
pub use evaluate::{Evaluation, EvaluationError, Situation, evaluate};
pub use foreign::{BindingFact, ForeignGrant, foreign_grants};
pub use image_cache::{
    CacheObject, ImageCacheProblem, ManagementCache, NodeFiles, WORKLOAD_NAMESPACE, management_cache,
    workload_manifests,
};
pub use model::{Facts, Model, NamespaceFact, Problem, TenantModel, validate};
pub use object::{Object, ObjectKind};
pub use policies::{BindingMode, Lookup, Policy, PolicyError, PolicyKind, Where, policies};
pub use project::{Projection, Projector, RequestedBinding};
pub use rbac::Rbac;
pub use scope::{RoleSource, Scoped, requested_rules, scope};
