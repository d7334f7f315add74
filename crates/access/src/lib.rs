//! Who reaches which Secret of a cluster or of a whole installation, by which way, and is that audience exactly one
//! customer? Answered from facts alone, without a cluster.
//!
//! INVARIANT: unknown is not clean. What could not be read makes an answer incomplete, what could not be decided makes
//! an edge assumed; neither makes it disappear.

mod about;
mod access;
mod admission;
pub mod answer;
mod authorize;
pub mod catalogue;
mod clause;
mod close;
mod customers;
pub mod deputies;
mod explain;
mod facts;
mod findings;
pub mod fingerprint;
mod graph;
mod judge;
mod load;
mod owners;
mod question;
pub mod rbac;
mod reverse;
mod search;
mod shared;
mod symbols;

pub use about::ABOUT_KIND;
pub use access::{Access, Isolation, Subjects};
pub use admission::{Admission, Authorizer, Check, Decision, PodSecurity, PodSecurityLevel, Requester};
pub use authorize::ClusterAuthorizer;
pub use clause::{
    Certainty, Fact, Gift, Identity, Named, Need, Place, Power, Sample, Scope, Target, Template,
};
pub use customers::{
    Customer, Customers, Owner, Platform, Preset, TenantsError, TenantsFile, Unowned, presets, source_name,
};
pub use deputies::{DeputyKind, deputy_kinds};
pub use facts::{
    BindingFact, ClusterFacts, ExpressionFact, Gap, NamespaceFact, NodeFact, ObjectFact, Origin, PodFact,
    RoleFact, RuleFact, SecretFact, SelectorFact, ServiceAccountFact, Snapshot, SubjectFact, SubjectKind,
};
pub use graph::{Changes, Edit};
pub use load::{
    Inflate, LoadError, Loader, OpenPlain, OpenSecret, SecretValues, drop_values, has_settings, holds_values,
    is_setting, keeps,
};
pub use question::{QuestionError, SecretRef, SubjectName, SubjectRef};
pub use shared::Ledger;
pub use symbols::{Symbol, Symbols};
