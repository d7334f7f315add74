//! Expressions of policies, evaluated on what is known of a request.
//!
//! Parsed by the crate `cel`; functions of the Kubernetes libraries come from `kube-cel`. The language itself is
//! evaluated here, for three reasons: a value may be unknown, and then only what does not depend on it has an answer;
//! errors are absorbed as the specification says; and the `authorizer` is asked. What the API server has and we do not
//! is unknown, never an error.
//!
//! Semantics: the CEL specification (`doc/langdef.md` of google/cel-spec) and `k8s.io/apiserver/pkg/cel`.

mod authorizer;
mod compile;
mod evaluate;
mod library;
mod operators;
mod value;

pub(super) use authorizer::Asked;
pub(super) use compile::{Expression, Expressions};
pub(super) use evaluate::Scope;
pub(super) use value::{Fault, Term, Why};

#[cfg(test)]
mod tests;
