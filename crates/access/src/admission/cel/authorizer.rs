//! What an expression asks the authorizer: `authorizer.group('').resource('secrets').check('get').allowed()`.
//!
//! Semantics: `k8s.io/apiserver/pkg/cel/library/authz.go`. Selectors are left out, since RBAC does not look at them.

use std::{borrow::Cow, rc::Rc};

use super::{Fault, Term, Why};
use crate::admission::{Authorizer, Check, Requester};

/// A value that leads to a check.
#[derive(Debug, Clone)]
pub(in crate::admission) enum Authz {
    /// For the requester, or for the account named.
    Root(Option<Requester>),
    Group(Option<Requester>, String),
    /// Without a verb.
    Resource(Option<Requester>, Check),
    /// Without a verb.
    Path(Option<Requester>, Check),
    Decision(Option<Requester>, Check),
}

/// Who asks, and who answers.
#[derive(Clone, Copy)]
pub(in crate::admission) struct Asked<'a> {
    pub(in crate::admission) who: &'a Requester,
    pub(in crate::admission) authorizer: Option<&'a dyn Authorizer>,
}

/// Calls a method of such a value. None if it has no such method.
pub(super) fn call<'a>(
    target: &Authz,
    method: &str,
    arguments: &[Term<'a>],
    asked: Option<Asked<'a>>,
) -> Option<Result<Term<'a>, Fault>> {
    let mut texts: Vec<&str> = Vec::with_capacity(arguments.len());
    for argument in arguments {
        match argument {
            Term::Text(text) => texts.push(text),
            Term::Unknown(why) => return Some(Ok(Term::Unknown(why.clone()))),
            other => return Some(Err(Fault::no_such_overload(&format!("{method}({})", other.type_name())))),
        }
    }
    let next = match (target, method, texts.as_slice()) {
        (Authz::Root(_), "path", [path]) if path.trim().is_empty() => {
            return Some(Err(Fault::new("path must not be empty")));
        }
        (Authz::Group(..), "resource", [resource]) if resource.trim().is_empty() => {
            return Some(Err(Fault::new("resource must not be empty")));
        }
        (Authz::Root(who), "path", [path]) => {
            Authz::Path(who.clone(), Check { path: Some((*path).to_owned()), ..Check::default() })
        }
        (Authz::Root(who), "group", [group]) => Authz::Group(who.clone(), (*group).to_owned()),
        (Authz::Root(_), "serviceAccount", [namespace, name]) => {
            Authz::Root(Some(Requester::service_account(namespace, name)))
        }
        (Authz::Group(who, group), "resource", [resource]) => {
            let check = Check { group: group.clone(), resource: (*resource).to_owned(), ..Check::default() };
            Authz::Resource(who.clone(), check)
        }
        (Authz::Resource(who, check) | Authz::Path(who, check), "check", [verb]) => {
            Authz::Decision(who.clone(), Check { verb: (*verb).to_owned(), ..check.clone() })
        }
        (Authz::Resource(who, check), _, [text]) => Authz::Resource(who.clone(), with(check, method, text)?),
        (Authz::Decision(who, check), "allowed", []) => return Some(Ok(decide(who.as_ref(), check, asked))),
        (Authz::Decision(..), "errored", []) => return Some(Ok(Term::Bool(false))),
        (Authz::Decision(..), "error", []) => return Some(Ok(Term::Text(Cow::Borrowed("")))),
        (Authz::Decision(..), "reason", []) => {
            return Some(Ok(Term::Unknown(Why::NotLoaded("the reason that the authorizer gives"))));
        }
        _ => return None,
    };
    Some(Ok(Term::Authz(Rc::new(next))))
}

fn decide<'a>(who: Option<&Requester>, check: &Check, asked: Option<Asked<'a>>) -> Term<'a> {
    match asked {
        Some(Asked { who: requester, authorizer: Some(authorizer) }) => {
            Term::Bool(authorizer.allows(who.unwrap_or(requester), check))
        }
        _ => Term::Unknown(Why::NotLoaded("the rights of whoever asks")),
    }
}

fn with(check: &Check, method: &str, text: &str) -> Option<Check> {
    let mut check = check.clone();
    match method {
        "subresource" => check.subresource = text.to_owned(),
        "namespace" => check.namespace = text.to_owned(),
        "name" => check.name = text.to_owned(),
        "fieldSelector" | "labelSelector" => {}
        _ => return None,
    }
    Some(check)
}
