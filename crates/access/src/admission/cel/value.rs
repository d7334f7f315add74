//! Values of expressions.

use std::{borrow::Cow, fmt, rc::Rc};

use kube_cel::cel;
use serde_json::Value;

use super::authorizer::Authz;
use crate::admission::view::{Child, View};

/// An error of the language, as the API server would have it too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::admission) struct Fault(Rc<str>);

impl Fault {
    pub(super) fn new(text: impl Into<Rc<str>>) -> Self {
        Self(text.into())
    }

    pub(super) fn no_such_overload(what: &str) -> Self {
        Self::new(format!("no such overload: {what}"))
    }

    pub(super) fn no_such_key(key: &str) -> Self {
        Self::new(format!("no such key: {key}"))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a value is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::admission) enum Why<'a> {
    /// It is a field that a request of this kind may have with any value.
    Field(&'a str),
    /// It is not among what was loaded.
    NotLoaded(&'static str),
    /// It takes something that cannot be evaluated here.
    Unsupported(Rc<str>),
    /// It takes too many steps.
    Cost,
}

impl fmt::Display for Why<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => {
                write!(f, "it depends on `{name}`, which such a request may have with any value")
            }
            Self::NotLoaded(what) => write!(f, "it depends on {what}, which was not loaded"),
            Self::Unsupported(what) => write!(f, "it takes {what}, which cannot be evaluated offline"),
            Self::Cost => f.write_str("it takes too many steps to evaluate"),
        }
    }
}

/// A value, or that it is not known.
#[derive(Debug, Clone)]
pub(in crate::admission) enum Term<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Cow<'a, str>),
    /// An object or list of a document; never a scalar.
    Json(View<'a>),
    List(Rc<List<'a>>),
    Map(Rc<Vec<(Term<'a>, Term<'a>)>>),
    Optional(Option<Rc<Term<'a>>>),
    Authz(Rc<Authz>),
    /// A value of a library: a quantity, an address, a time, bytes.
    Library(cel::Value),
    Unknown(Why<'a>),
}

/// A list that was made by an expression.
#[derive(Debug, Clone)]
pub(in crate::admission) struct List<'a> {
    pub(super) items: Vec<Term<'a>>,
    /// Why there may be more items, if so.
    pub(super) open: Option<Why<'a>>,
}

impl<'a> Term<'a> {
    pub(super) fn list(items: Vec<Self>) -> Self {
        Self::List(Rc::new(List { items, open: None }))
    }

    /// The value at a place; scalars are taken out of their document.
    pub(in crate::admission) fn of(view: View<'a>) -> Self {
        match view.value() {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::String(text) => Self::Text(Cow::Borrowed(text)),
            Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(int), _) => Self::Int(int),
                (None, Some(uint)) => Self::Uint(uint),
                (None, None) => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::Array(_) | Value::Object(_) => Self::Json(view),
        }
    }

    /// The value of a member, if there is one.
    pub(super) fn of_child(child: Child<'a>, name: &'a str) -> Option<Self> {
        match child {
            Child::Present(view) => Some(Self::of(view)),
            Child::Absent => None,
            Child::Unknown => Some(Self::Unknown(Why::Field(name))),
        }
    }

    pub(in crate::admission) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn is_map(&self) -> bool {
        matches!(self, Self::Map(_)) || matches!(self, Self::Json(view) if view.value().is_object())
    }

    /// The items of a list and whether there may be more of them; none if it is no list.
    pub(super) fn items(&self) -> Option<(Vec<Term<'a>>, Option<Why<'a>>)> {
        match self {
            Self::List(list) => Some((list.items.clone(), list.open.clone())),
            Self::Json(view) => {
                let list = view.value().as_array()?;
                if view.is_certain() {
                    return Some((list.iter().map(|item| Self::of(View::certain(item))).collect(), None));
                }
                let items = view.members().into_iter().map(|(_, item)| Self::of(item)).collect();
                Some((items, Some(Why::Field("further items of a list"))))
            }
            _ => None,
        }
    }

    /// The keys of a map and whether there may be more of them; none if it is no map.
    pub(super) fn keys(&self) -> Option<(Vec<Term<'a>>, Option<Why<'a>>)> {
        match self {
            Self::Map(entries) => Some((entries.iter().map(|(key, _)| key.clone()).collect(), None)),
            Self::Json(view) => {
                let map = view.value().as_object()?;
                let certain = view.is_certain();
                let known = |key: &&String| certain || matches!(view.get(key), Child::Present(_));
                let keys = map.keys().filter(known).map(|key| Self::Text(Cow::Borrowed(key))).collect();
                Some((keys, (!certain).then_some(Why::Field("further keys of a map"))))
            }
            _ => None,
        }
    }

    /// The name of its type, for errors.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::Json(view) if view.value().is_array() => "list",
            Self::List(_) => "list",
            Self::Json(_) | Self::Map(_) => "map",
            Self::Optional(_) => "optional",
            Self::Authz(_) => "authorizer",
            Self::Library(_) => "library value",
            Self::Unknown(_) => "unknown",
        }
    }

    /// Makes a value for a function of the libraries; none if part of it is unknown or cannot be one.
    pub(super) fn to_cel(&self) -> Option<cel::Value> {
        Some(match self {
            Self::Null => cel::Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Int(value) => (*value).into(),
            Self::Uint(value) => (*value).into(),
            Self::Double(value) => (*value).into(),
            Self::Text(text) => cel::Value::from(text.as_ref()),
            Self::Json(view) if view.is_certain() => cel::to_value(view.value()).ok()?,
            Self::Json(_) | Self::Authz(_) | Self::Unknown(_) => return None,
            Self::List(list) if list.open.is_some() => return None,
            Self::List(list) => list.items.iter().map(Self::to_cel).collect::<Option<Vec<_>>>()?.into(),
            Self::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| {
                    let key: cel::objects::Key = key.to_cel()?.try_into().ok()?;
                    Some((key, value.to_cel()?))
                });
                entries.collect::<Option<std::collections::HashMap<_, _>>>()?.into()
            }
            Self::Optional(None) => {
                cel::Value::Opaque(std::sync::Arc::new(cel::objects::OptionalValue::none()))
            }
            Self::Optional(Some(value)) => {
                cel::Value::Opaque(std::sync::Arc::new(cel::objects::OptionalValue::of(value.to_cel()?)))
            }
            Self::Library(value) => value.clone(),
        })
    }

    /// Takes the answer of a function of the libraries.
    pub(super) fn from_cel(value: cel::Value) -> Self {
        match value {
            cel::Value::Null => Self::Null,
            cel::Value::Bool(value) => Self::Bool(value),
            cel::Value::Int(value) => Self::Int(value),
            cel::Value::UInt(value) => Self::Uint(value),
            cel::Value::Float(value) => Self::Double(value),
            cel::Value::String(text) => Self::Text(Cow::Owned(text.as_ref().clone())),
            cel::Value::List(items) => Self::list(items.iter().cloned().map(Self::from_cel).collect()),
            cel::Value::Map(map) => Self::Map(Rc::new(
                map.map
                    .iter()
                    .map(|(key, value)| (Self::from_cel(key.into()), Self::from_cel(value.clone())))
                    .collect(),
            )),
            other => match <&cel::objects::OptionalValue>::try_from(&other) {
                Ok(optional) => Self::Optional(optional.value().cloned().map(|v| Rc::new(Self::from_cel(v)))),
                Err(_) => Self::Library(other),
            },
        }
    }
}
