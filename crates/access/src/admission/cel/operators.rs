//! Equality, order, membership and arithmetic.
//!
//! Equality holds between numbers of all types and is false between other types (cel-spec `langdef.md`, Equality).

use std::{borrow::Cow, cmp::Ordering, rc::Rc};

use super::{Fault, Term, Why, compile::Binary, value::List};
use crate::admission::{truth::Truth, view::Child};

/// What is unknown about either.
fn why<'a>(left: &Term<'a>, right: &Term<'a>) -> Why<'a> {
    [left, right]
        .into_iter()
        .find_map(|term| match term {
            Term::Unknown(why) => Some(why.clone()),
            Term::List(list) => list.open.clone(),
            _ => None,
        })
        .unwrap_or(Why::Field("further fields of an object"))
}

fn answer<'a>(truth: Truth, left: &Term<'a>, right: &Term<'a>) -> Term<'a> {
    match truth {
        Truth::True => Term::Bool(true),
        Truth::False => Term::Bool(false),
        Truth::Unknown => Term::Unknown(why(left, right)),
    }
}

/// `==`
pub(super) fn equal<'a>(left: &Term<'a>, right: &Term<'a>) -> Term<'a> {
    answer(same(left, right), left, right)
}

fn same(left: &Term<'_>, right: &Term<'_>) -> Truth {
    match (left, right) {
        (Term::Unknown(_), _) | (_, Term::Unknown(_)) => Truth::Unknown,
        (Term::Null, Term::Null) => Truth::True,
        (Term::Bool(a), Term::Bool(b)) => (a == b).into(),
        (Term::Text(a), Term::Text(b)) => (a == b).into(),
        (Term::Optional(None), Term::Optional(None)) => Truth::True,
        (Term::Optional(Some(a)), Term::Optional(Some(b))) => same(a, b),
        (Term::Library(a), Term::Library(b)) => (a == b).into(),
        _ => match (number(left), number(right)) {
            (Some(a), Some(b)) => (order_of(a, b) == Some(Ordering::Equal)).into(),
            _ => same_containers(left, right),
        },
    }
}

fn same_containers(left: &Term<'_>, right: &Term<'_>) -> Truth {
    // The common case. What differs as JSON may still be equal: 1 and 1.0.
    if let (Term::Json(a), Term::Json(b)) = (left, right)
        && a.is_certain()
        && b.is_certain()
        && a.value() == b.value()
    {
        return Truth::True;
    }
    if let (Some((a, a_open)), Some((b, b_open))) = (left.items(), right.items()) {
        // Which place an item of a partial list has is not looked at.
        if a_open.is_some() || b_open.is_some() {
            return Truth::Unknown;
        }
        return Truth::from(a.len() == b.len()).and(Truth::all(a.iter().zip(&b).map(|(a, b)| same(a, b))));
    }
    match (left.keys(), right.keys()) {
        (Some((a, a_open)), Some((b, b_open))) => {
            let complete = if a_open.or(b_open).is_some() { Truth::Unknown } else { Truth::True };
            let keys = a.iter().chain(&b).map(|key| match (entry(left, key), entry(right, key)) {
                (Entry::Value(a), Entry::Value(b)) => same(&a, &b),
                (Entry::Absent, Entry::Absent) => Truth::True,
                (Entry::Unknown, _) | (_, Entry::Unknown) => Truth::Unknown,
                _ => Truth::False,
            });
            Truth::all(keys).and(complete)
        }
        _ => Truth::False,
    }
}

/// What a map has at a key.
pub(super) enum Entry<'a> {
    Value(Term<'a>),
    Absent,
    Unknown,
}

/// What a map has at a key; absent if it is no map.
pub(super) fn entry<'a>(map: &Term<'a>, key: &Term<'a>) -> Entry<'a> {
    match (map, key) {
        (_, Term::Unknown(_)) | (Term::Unknown(_), _) => Entry::Unknown,
        (Term::Json(view), Term::Text(key)) if view.value().is_object() => match view.get(key) {
            Child::Present(value) => Entry::Value(Term::of(value)),
            Child::Absent => Entry::Absent,
            Child::Unknown => Entry::Unknown,
        },
        (Term::Map(entries), key) => {
            let mut unknown = false;
            for (name, value) in entries.iter() {
                match same(name, key) {
                    Truth::True => return Entry::Value(value.clone()),
                    Truth::Unknown => unknown = true,
                    Truth::False => {}
                }
            }
            if unknown { Entry::Unknown } else { Entry::Absent }
        }
        _ => Entry::Absent,
    }
}

/// `in`
pub(super) fn contained<'a>(item: &Term<'a>, container: &Term<'a>) -> Result<Term<'a>, Fault> {
    if let Term::Unknown(why) = container {
        return Ok(Term::Unknown(why.clone()));
    }
    // The common case, without copies.
    if let (Term::Json(view), Term::Text(text)) = (container, item)
        && let Some(list) = view.value().as_array().filter(|_| view.is_certain())
    {
        return Ok(Term::Bool(list.iter().any(|item| item.as_str() == Some(text))));
    }
    if let Some((items, open)) = container.items() {
        let found = Truth::any(items.iter().map(|other| same(other, item)));
        return Ok(match (found, open) {
            (Truth::False, Some(why)) => Term::Unknown(why),
            (Truth::Unknown, _) => Term::Unknown(
                items.iter().map(|other| why(other, item)).next().unwrap_or_else(|| why(item, item)),
            ),
            (found, _) => answer(found, item, container),
        });
    }
    match entry(container, item) {
        Entry::Unknown => Ok(Term::Unknown(why(container, item))),
        Entry::Value(_) => Ok(Term::Bool(true)),
        Entry::Absent if container.is_map() => Ok(Term::Bool(false)),
        Entry::Absent => Err(Fault::no_such_overload(&format!("in {}", container.type_name()))),
    }
}

/// `container[key]`; an error if there is nothing.
pub(super) fn index<'a>(container: &Term<'a>, key: &Term<'a>) -> Result<Term<'a>, Fault> {
    if let Term::Unknown(why) = key {
        return Ok(Term::Unknown(why.clone()));
    }
    match (container, number(key)) {
        (Term::Unknown(why), _) => Ok(Term::Unknown(why.clone())),
        (Term::Json(view), Some(number)) if view.value().is_array() => {
            let position = position(number).ok_or_else(|| Fault::new("invalid index"))?;
            match view.get(&position.to_string()) {
                Child::Present(item) => Ok(Term::of(item)),
                Child::Unknown => Ok(Term::Unknown(Why::Field("an item of a list"))),
                Child::Absent => Err(Fault::new(format!("index out of bounds: {position}"))),
            }
        }
        (Term::List(list), Some(number)) => {
            let position = position(number).ok_or_else(|| Fault::new("invalid index"))?;
            match (&list.open, list.items.get(position)) {
                (Some(why), _) => Ok(Term::Unknown(why.clone())),
                (None, Some(item)) => Ok(item.clone()),
                (None, None) => Err(Fault::new(format!("index out of bounds: {position}"))),
            }
        }
        _ => match entry(container, key) {
            Entry::Value(value) => Ok(value),
            Entry::Unknown => Ok(Term::Unknown(why(container, key))),
            Entry::Absent => Err(Fault::no_such_key(key.as_text().unwrap_or("of a container"))),
        },
    }
}

#[derive(Clone, Copy)]
enum Number {
    Int(i64),
    Uint(u64),
    Double(f64),
}

fn number(term: &Term<'_>) -> Option<Number> {
    match term {
        Term::Int(value) => Some(Number::Int(*value)),
        Term::Uint(value) => Some(Number::Uint(*value)),
        Term::Double(value) => Some(Number::Double(*value)),
        _ => None,
    }
}

fn position(number: Number) -> Option<usize> {
    match number {
        Number::Int(value) => usize::try_from(value).ok(),
        Number::Uint(value) => usize::try_from(value).ok(),
        Number::Double(_) => None,
    }
}

fn order_of(left: Number, right: Number) -> Option<Ordering> {
    let double = |number| match number {
        Number::Int(value) => value as f64,
        Number::Uint(value) => value as f64,
        Number::Double(value) => value,
    };
    let wide = |number| match number {
        Number::Int(value) => Some(i128::from(value)),
        Number::Uint(value) => Some(i128::from(value)),
        Number::Double(_) => None,
    };
    match (wide(left), wide(right)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => double(left).partial_cmp(&double(right)),
    }
}

/// `<`, `<=`, `>`, `>=`
pub(super) fn compare<'a>(operator: Binary, left: &Term<'a>, right: &Term<'a>) -> Result<Term<'a>, Fault> {
    let ordering = match (left, right) {
        (Term::Unknown(why), _) | (_, Term::Unknown(why)) => return Ok(Term::Unknown(why.clone())),
        (Term::Text(a), Term::Text(b)) => Some(a.cmp(b)),
        (Term::Bool(a), Term::Bool(b)) => Some(a.cmp(b)),
        (Term::Library(a), Term::Library(b)) => a.partial_cmp(b),
        _ => match (number(left), number(right)) {
            (Some(a), Some(b)) => order_of(a, b),
            _ => None,
        },
    };
    let Some(ordering) = ordering else {
        let types = format!("{} and {} have no order", left.type_name(), right.type_name());
        return Err(Fault::no_such_overload(&types));
    };
    Ok(Term::Bool(match operator {
        Binary::Less => ordering.is_lt(),
        Binary::LessEqual => ordering.is_le(),
        Binary::Greater => ordering.is_gt(),
        _ => ordering.is_ge(),
    }))
}

/// `+`, `-`, `*`, `/`, `%` on what the language itself has; none for types of the libraries.
///
/// Where an error refuses anyway (`errors_refuse`), a list and something unknown make a list with unknown items:
/// if it is no list after all, that is an error.
pub(super) fn arithmetic<'a>(
    operator: Binary,
    left: &Term<'a>,
    right: &Term<'a>,
    errors_refuse: bool,
) -> Option<Result<Term<'a>, Fault>> {
    if operator == Binary::Add {
        let partial = errors_refuse && (left.items().is_some() || right.items().is_some());
        match (left, right) {
            (Term::Text(a), Term::Text(b)) => return Some(Ok(Term::Text(Cow::Owned(format!("{a}{b}"))))),
            (Term::Unknown(_), Term::Unknown(_)) => {}
            (Term::Unknown(why), list) | (list, Term::Unknown(why)) if partial => {
                let (items, _) = list.items().unwrap_or_default();
                return Some(Ok(Term::List(Rc::new(List { items, open: Some(why.clone()) }))));
            }
            _ => {}
        }
        if let (Some((mut items, a)), Some((more, b))) = (left.items(), right.items()) {
            items.extend(more);
            return Some(Ok(Term::List(Rc::new(List { items, open: a.or(b) }))));
        }
    }
    if let (Term::Unknown(why), _) | (_, Term::Unknown(why)) = (left, right) {
        return Some(Ok(Term::Unknown(why.clone())));
    }
    let overflow = || Fault::new("arithmetic overflow");
    Some(match (left, right) {
        (Term::Int(a), Term::Int(b)) => match operator {
            Binary::Add => a.checked_add(*b),
            Binary::Subtract => a.checked_sub(*b),
            Binary::Multiply => a.checked_mul(*b),
            Binary::Divide => a.checked_div(*b),
            _ => a.checked_rem(*b),
        }
        .map(Term::Int)
        .ok_or_else(overflow),
        (Term::Uint(a), Term::Uint(b)) => match operator {
            Binary::Add => a.checked_add(*b),
            Binary::Subtract => a.checked_sub(*b),
            Binary::Multiply => a.checked_mul(*b),
            Binary::Divide => a.checked_div(*b),
            _ => a.checked_rem(*b),
        }
        .map(Term::Uint)
        .ok_or_else(overflow),
        (Term::Double(a), Term::Double(b)) => match operator {
            Binary::Add => Ok(a + b),
            Binary::Subtract => Ok(a - b),
            Binary::Multiply => Ok(a * b),
            Binary::Divide => Ok(a / b),
            _ => Err(Fault::no_such_overload("double % double")),
        }
        .map(Term::Double),
        (Term::Library(_), _) | (_, Term::Library(_)) => return None,
        _ => Err(Fault::no_such_overload(&format!(
            "{} {} {}",
            left.type_name(),
            operator.name().trim_matches('_'),
            right.type_name()
        ))),
    })
}
