//! Evaluates a compiled expression.

use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
    rc::Rc,
    sync::Arc,
};

use super::{
    Fault, Term, Why,
    authorizer::{self, Asked, Authz},
    compile::{Binary, Call, Expression, Fold, Literal, Node},
    library, operators,
    operators::Entry,
    value::List,
};
use crate::admission::Check;

/// More than any policy that the API server would run on a small object; expressions from elsewhere end too.
const STEPS_MAX: u32 = 1_000_000;

type Answer<'a> = Result<Term<'a>, Fault>;

/// What expressions see.
pub(in crate::admission) struct Scope<'a> {
    /// `object`, `oldObject`, `request`, `params`, `namespaceObject`.
    pub(in crate::admission) roots: Vec<(&'static str, Term<'a>)>,
    /// `authorizer`; none where there is none.
    pub(in crate::admission) asked: Option<Asked<'a>>,
    /// What `authorizer.requestResource` checks.
    pub(in crate::admission) request_resource: Check,
    /// Whether an error of an expression refuses the request (`failurePolicy: Fail`). Then an answer means: this, or an
    /// error; else it means exactly this.
    pub(in crate::admission) errors_refuse: bool,
    /// `variables`, each evaluated when it is used, as on the API server.
    pub(in crate::admission) variables: &'a [(String, Arc<Expression>)],
    values: RefCell<Vec<Option<Answer<'a>>>>,
    steps: Cell<u32>,
}

impl<'a> Scope<'a> {
    pub(in crate::admission) fn new(
        roots: Vec<(&'static str, Term<'a>)>,
        asked: Option<Asked<'a>>,
        variables: &'a [(String, Arc<Expression>)],
        errors_refuse: bool,
    ) -> Self {
        Self {
            roots,
            asked,
            request_resource: Check::default(),
            errors_refuse,
            variables,
            values: RefCell::new(vec![None; variables.len()]),
            steps: Cell::new(0),
        }
    }

    /// The value of an expression.
    pub(in crate::admission) fn evaluate(&self, expression: &'a Expression) -> Answer<'a> {
        Run { scope: self, locals: Vec::new() }.node(expression.root())
    }

    fn variable(&self, name: &'a str) -> Answer<'a> {
        let Some((index, expression)) =
            self.variables.iter().enumerate().find_map(|(index, (variable, expression))| {
                (variable == name).then_some((index, expression))
            })
        else {
            return Ok(unsupported(format!("the undeclared variable `{name}`")));
        };
        if let Some(Some(value)) = self.values.borrow().get(index) {
            return value.clone();
        }
        // A variable that uses itself has no value.
        let cyclic = Err(Fault::new(format!("variable `{name}` uses itself")));
        self.keep(index, cyclic);
        let value = self.evaluate(expression);
        self.keep(index, value.clone());
        value
    }

    fn keep(&self, index: usize, value: Answer<'a>) {
        if let Some(slot) = self.values.borrow_mut().get_mut(index) {
            *slot = Some(value);
        }
    }
}

fn unsupported<'a>(what: impl Into<Rc<str>>) -> Term<'a> {
    Term::Unknown(Why::Unsupported(what.into()))
}

struct Run<'s, 'a> {
    scope: &'s Scope<'a>,
    locals: Vec<(&'a str, Answer<'a>)>,
}

impl<'a> Run<'_, 'a> {
    fn node(&mut self, node: &'a Node) -> Answer<'a> {
        let steps = self.scope.steps.get();
        if steps >= STEPS_MAX {
            return Ok(Term::Unknown(Why::Cost));
        }
        self.scope.steps.set(steps + 1);
        match node {
            Node::Literal(value) => Ok(literal(value)),
            Node::Ident(name) => self.ident(name),
            Node::Variable(name) => self.scope.variable(name),
            Node::RequestResource => {
                Ok(Term::Authz(Rc::new(Authz::Resource(None, self.scope.request_resource.clone()))))
            }
            Node::Select(operand, field) => {
                let operand = self.node(operand)?;
                select(&operand, field)
            }
            Node::Has(operand, field) => {
                let operand = self.node(operand)?;
                has(&operand, field)
            }
            Node::OptionalSelect(operand, field) => {
                let operand = self.node(operand)?;
                Ok(optional(&operand, &Term::Text(Cow::Borrowed(field))))
            }
            Node::OptionalIndex(operand, key) => {
                let (operand, key) = (self.node(operand)?, self.node(key)?);
                Ok(optional(&operand, &key))
            }
            Node::Index(operand, key) => {
                let (operand, key) = (self.node(operand)?, self.node(key)?);
                match operand {
                    Term::Optional(_) => Ok(optional(&operand, &key)),
                    operand => operators::index(&operand, &key),
                }
            }
            Node::Conditional(nodes) => self.conditional(nodes),
            Node::Not(operand) => negated(self.node(operand)?),
            Node::NotStrictlyFalse(operand) => {
                Ok(Term::Bool(!matches!(self.node(operand), Ok(Term::Bool(false)))))
            }
            Node::Negate(operand) => negative(self.node(operand)?),
            Node::Binary(operator, operands, library) => self.binary(*operator, operands, library),
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Fold(fold) => self.fold(fold),
            Node::Bind(name, nodes) => {
                let [value, body] = nodes.as_ref();
                let value = self.node(value);
                self.with_local(name, value, body)
            }
            Node::OptionalMap(target, name, body, flat) => match self.node(target)? {
                Term::Optional(None) => Ok(Term::Optional(None)),
                Term::Optional(Some(value)) => {
                    let mapped = self.with_local(name, Ok(value.as_ref().clone()), body)?;
                    Ok(if *flat { mapped } else { some(mapped) })
                }
                Term::Unknown(why) => Ok(Term::Unknown(why)),
                other => Err(Fault::no_such_overload(&format!("optMap of a {}", other.type_name()))),
            },
            Node::Call(call) => self.call(call),
            Node::Unsupported(what) => Ok(unsupported(what.as_str())),
        }
    }

    fn ident(&self, name: &'a str) -> Answer<'a> {
        if let Some((_, value)) = self.locals.iter().rev().find(|(local, _)| *local == name) {
            return value.clone();
        }
        if let Some((_, value)) = self.scope.roots.iter().find(|(root, _)| *root == name) {
            return Ok(value.clone());
        }
        if name == "authorizer" && self.scope.asked.is_some() {
            return Ok(Term::Authz(Rc::new(Authz::Root(None))));
        }
        Ok(unsupported(format!("the name `{name}`")))
    }

    fn with_local(&mut self, name: &'a str, value: Answer<'a>, body: &'a Node) -> Answer<'a> {
        self.locals.push((name, value));
        let answer = self.node(body);
        self.locals.pop();
        answer
    }

    fn conditional(&mut self, nodes: &'a [Node; 3]) -> Answer<'a> {
        let [condition, then, otherwise] = nodes;
        match self.node(condition)? {
            Term::Bool(true) => self.node(then),
            Term::Bool(false) => self.node(otherwise),
            // If both ways agree, the condition does not matter, unless it fails.
            Term::Unknown(why) if self.scope.errors_refuse => match (self.node(then), self.node(otherwise)) {
                (Ok(a), Ok(b)) if matches!(operators::equal(&a, &b), Term::Bool(true)) => Ok(a),
                _ => Ok(Term::Unknown(why)),
            },
            Term::Unknown(why) => Ok(Term::Unknown(why)),
            other => Err(Fault::no_such_overload(&format!("{} as a condition", other.type_name()))),
        }
    }

    fn binary(
        &mut self,
        operator: Binary,
        operands: &'a [Node; 2],
        library: &std::sync::OnceLock<kube_cel::cel::IdedExpr>,
    ) -> Answer<'a> {
        let [left, right] = operands;
        if matches!(operator, Binary::And | Binary::Or) {
            return self.logical(operator == Binary::Or, left, right);
        }
        let (left, right) = (self.node(left)?, self.node(right)?);
        match operator {
            Binary::Equal => Ok(operators::equal(&left, &right)),
            Binary::NotEqual => Ok(match operators::equal(&left, &right) {
                Term::Bool(value) => Term::Bool(!value),
                unknown => unknown,
            }),
            Binary::Less | Binary::LessEqual | Binary::Greater | Binary::GreaterEqual => {
                operators::compare(operator, &left, &right)
            }
            Binary::In => operators::contained(&left, &right),
            _ => operators::arithmetic(operator, &left, &right, self.scope.errors_refuse).unwrap_or_else(
                || {
                    let call = library.get_or_init(|| operator.library_call());
                    Ok(library::call(call, operator.name().trim_matches('_'), &[left, right]))
                },
            ),
        }
    }

    /// `&&` and `||`: what decides wins over errors and over what is unknown, on either side.
    fn logical(&mut self, decides: bool, left: &'a Node, right: &'a Node) -> Answer<'a> {
        let left = self.node(left);
        if matches!(left, Ok(Term::Bool(value)) if value == decides) {
            return left;
        }
        let right = self.node(right);
        match (&left, &right) {
            (_, Ok(Term::Bool(value))) if *value == decides => right,
            (Ok(Term::Bool(_)), Ok(Term::Bool(_) | Term::Unknown(_)) | Err(_)) => right,
            (Ok(Term::Unknown(_)), Ok(Term::Bool(_) | Term::Unknown(_)) | Err(_)) => left,
            (Err(_), Ok(Term::Unknown(_))) => right,
            (Err(_), _) => left,
            (Ok(Term::Bool(_) | Term::Unknown(_)), Ok(other)) | (Ok(other), _) => {
                Err(Fault::no_such_overload(&format!("{} as a condition", other.type_name())))
            }
        }
    }

    fn list(&mut self, items: &'a [(Node, bool)]) -> Answer<'a> {
        let mut list = List { items: Vec::with_capacity(items.len()), open: None };
        for (item, is_optional) in items {
            match self.node(item)? {
                Term::Optional(None) if *is_optional => {}
                Term::Optional(Some(value)) if *is_optional => list.items.push(value.as_ref().clone()),
                Term::Unknown(why) if !self.scope.errors_refuse => return Ok(Term::Unknown(why)),
                Term::Unknown(why) if *is_optional => list.open = Some(why),
                value => list.items.push(value),
            }
        }
        Ok(Term::List(Rc::new(list)))
    }

    fn map(&mut self, entries: &'a [(Node, Node, bool)]) -> Answer<'a> {
        let mut map = Vec::with_capacity(entries.len());
        for (key, value, is_optional) in entries {
            let (key, value) = (self.node(key)?, self.node(value)?);
            match value {
                Term::Optional(None) if *is_optional => {}
                Term::Optional(Some(value)) if *is_optional => map.push((key, value.as_ref().clone())),
                Term::Unknown(why) if *is_optional || !self.scope.errors_refuse => {
                    return Ok(Term::Unknown(why));
                }
                value => map.push((key, value)),
            }
        }
        Ok(Term::Map(Rc::new(map)))
    }

    /// Goes over a list, or over the keys of a map. Where more items may be there than are known, the answer of `all`
    /// and `exists` holds if the known ones decide it.
    fn fold(&mut self, fold: &'a Fold) -> Answer<'a> {
        let range = self.node(&fold.range)?;
        if let Term::Unknown(why) = range {
            return Ok(Term::Unknown(why));
        }
        let Some((mut items, open)) = range.items().or_else(|| range.keys()) else {
            return Err(Fault::no_such_overload(&format!("iteration over a {}", range.type_name())));
        };
        match (open, fold.is_logical) {
            (Some(why), true) => items.push(Term::Unknown(why)),
            (Some(why), false) => return Ok(Term::Unknown(why)),
            (None, _) => {}
        }
        let mut accumulated = self.node(&fold.init);
        for item in items {
            self.locals.push((&fold.accumulator, accumulated));
            let stops = matches!(self.node(&fold.condition), Ok(Term::Bool(false)));
            let next = (!stops).then(|| self.with_local(&fold.item, Ok(item), &fold.step));
            let last = self.locals.pop().map(|(_, value)| value);
            accumulated = next.or(last).unwrap_or(Ok(Term::Null));
            if stops {
                break;
            }
        }
        self.with_local(&fold.accumulator, accumulated, &fold.result)
    }

    fn call(&mut self, call: &'a Call) -> Answer<'a> {
        let target = call.target.as_ref().map(|target| self.node(target)).transpose()?;
        match (&target, call.name.as_str()) {
            (Some(Term::Unknown(why)), _) => return Ok(Term::Unknown(why.clone())),
            // The argument is evaluated only where it is needed.
            (Some(Term::Optional(Some(value))), "orValue") => return Ok(value.as_ref().clone()),
            (Some(Term::Optional(Some(_))), "or") => return Ok(target.unwrap_or(Term::Null)),
            _ => {}
        }
        let mut arguments = Vec::with_capacity(call.arguments.len() + 1);
        for argument in &call.arguments {
            arguments.push(self.node(argument)?);
        }
        if let Some(Term::Authz(authz)) = &target {
            return authorizer::call(authz, &call.name, &arguments, self.scope.asked).unwrap_or_else(|| {
                Err(Fault::no_such_overload(&format!("{} of the authorizer", call.name)))
            });
        }
        if let Some(answer) = native(&call.name, target.as_ref(), &arguments) {
            return answer;
        }
        let Some(library) = &call.library else {
            return Ok(unsupported(format!("the function `{}`", call.name)));
        };
        if let Some(target) = target {
            arguments.insert(0, target);
        }
        Ok(library::call(library, &call.name, &arguments))
    }
}

fn negated(operand: Term<'_>) -> Answer<'_> {
    match operand {
        Term::Bool(value) => Ok(Term::Bool(!value)),
        Term::Unknown(why) => Ok(Term::Unknown(why)),
        other => Err(Fault::no_such_overload(&format!("!{}", other.type_name()))),
    }
}

fn negative(operand: Term<'_>) -> Answer<'_> {
    match operand {
        Term::Int(value) => {
            value.checked_neg().map(Term::Int).ok_or_else(|| Fault::new("arithmetic overflow"))
        }
        Term::Double(value) => Ok(Term::Double(-value)),
        Term::Unknown(why) => Ok(Term::Unknown(why)),
        other => Err(Fault::no_such_overload(&format!("-{}", other.type_name()))),
    }
}

fn literal(value: &Literal) -> Term<'_> {
    match value {
        Literal::Null => Term::Null,
        Literal::Bool(value) => Term::Bool(*value),
        Literal::Int(value) => Term::Int(*value),
        Literal::Uint(value) => Term::Uint(*value),
        Literal::Double(value) => Term::Double(*value),
        Literal::Text(text) => Term::Text(Cow::Borrowed(text)),
        Literal::Other(value) => Term::Library(value.clone()),
    }
}

fn some(value: Term<'_>) -> Term<'_> {
    match value {
        Term::Unknown(why) => Term::Unknown(why),
        value => Term::Optional(Some(Rc::new(value))),
    }
}

fn field<'a>(operand: &Term<'a>, name: &'a str) -> Entry<'a> {
    match operand {
        Term::Json(view) => match Term::of_child(view.get(name), name) {
            Some(Term::Unknown(_)) => Entry::Unknown,
            Some(value) => Entry::Value(value),
            None => Entry::Absent,
        },
        operand => operators::entry(operand, &Term::Text(Cow::Borrowed(name))),
    }
}

fn select<'a>(operand: &Term<'a>, name: &'a str) -> Answer<'a> {
    match operand {
        Term::Unknown(why) => Ok(Term::Unknown(why.clone())),
        Term::Optional(_) => Ok(optional(operand, &Term::Text(Cow::Borrowed(name)))),
        operand if operand.is_map() => match field(operand, name) {
            Entry::Value(value) => Ok(value),
            Entry::Unknown => Ok(Term::Unknown(Why::Field(name))),
            Entry::Absent => Err(Fault::no_such_key(name)),
        },
        operand => Err(Fault::no_such_overload(&format!("field {name} of a {}", operand.type_name()))),
    }
}

fn has<'a>(operand: &Term<'a>, name: &'a str) -> Answer<'a> {
    match operand {
        Term::Unknown(why) => Ok(Term::Unknown(why.clone())),
        Term::Optional(None) => Ok(Term::Bool(false)),
        Term::Optional(Some(value)) => has(value, name),
        operand if operand.is_map() => Ok(match field(operand, name) {
            Entry::Value(_) => Term::Bool(true),
            Entry::Unknown => Term::Unknown(Why::Field(name)),
            Entry::Absent => Term::Bool(false),
        }),
        operand => Err(Fault::no_such_overload(&format!("has a field {name} of a {}", operand.type_name()))),
    }
}

/// `x.?name` and `x[?key]`
fn optional<'a>(operand: &Term<'a>, key: &Term<'a>) -> Term<'a> {
    match (operand, key) {
        (Term::Unknown(why), _) | (_, Term::Unknown(why)) => Term::Unknown(why.clone()),
        (Term::Optional(None), _) => Term::Optional(None),
        (Term::Optional(Some(value)), key) => optional(value, key),
        (operand, key) if operand.is_map() => match operators::entry(operand, key) {
            Entry::Value(value) => some(value),
            Entry::Absent => Term::Optional(None),
            Entry::Unknown => Term::Unknown(Why::Field("a field of an object")),
        },
        (operand, key) if operand.items().is_some() => {
            operators::index(operand, key).map_or(Term::Optional(None), some)
        }
        (operand, _) => unsupported(format!("an optional field of a {}", operand.type_name())),
    }
}

/// What needs no library. None for everything else.
fn native<'a>(name: &str, target: Option<&Term<'a>>, arguments: &[Term<'a>]) -> Option<Answer<'a>> {
    let text = |text: String| Ok(Term::Text(Cow::Owned(text)));
    Some(match (name, target, arguments) {
        ("size", Some(of), []) | ("size", None, [of]) => size(of)?,
        ("contains" | "startsWith" | "endsWith", Some(Term::Text(whole)), [part]) => match part {
            Term::Text(part) => Ok(Term::Bool(match name {
                "contains" => whole.contains(part.as_ref()),
                "startsWith" => whole.starts_with(part.as_ref()),
                _ => whole.ends_with(part.as_ref()),
            })),
            Term::Unknown(why) => Ok(Term::Unknown(why.clone())),
            other => Err(Fault::no_such_overload(&format!("{name}({})", other.type_name()))),
        },
        ("contains" | "startsWith" | "endsWith", Some(other), [_]) => {
            Err(Fault::no_such_overload(&format!("{name} of a {}", other.type_name())))
        }
        ("string", None, [Term::Text(value)]) => Ok(Term::Text(value.clone())),
        ("string", None, [Term::Bool(value)]) => text(value.to_string()),
        ("string", None, [Term::Int(value)]) => text(value.to_string()),
        ("string", None, [Term::Uint(value)]) => text(value.to_string()),
        ("bool", None, [Term::Bool(value)]) => Ok(Term::Bool(*value)),
        ("optional.none", None, []) => Ok(Term::Optional(None)),
        ("optional.of", None, [value]) => Ok(some(value.clone())),
        ("hasValue", Some(Term::Optional(value)), []) => Ok(Term::Bool(value.is_some())),
        ("value", Some(Term::Optional(Some(value))), []) => Ok(value.as_ref().clone()),
        ("value", Some(Term::Optional(None)), []) => Err(Fault::new("optional.none() dereference")),
        ("orValue" | "or", Some(Term::Optional(None)), [other]) => Ok(other.clone()),
        _ => return None,
    })
}

fn size<'a>(of: &Term<'a>) -> Option<Answer<'a>> {
    let int = |count: usize| Ok(Term::Int(i64::try_from(count).unwrap_or(i64::MAX)));
    match of {
        Term::Text(text) => Some(int(text.chars().count())),
        Term::Unknown(why) => Some(Ok(Term::Unknown(why.clone()))),
        Term::Library(_) => None,
        of => Some(match of.items().or_else(|| of.keys()) {
            Some((items, None)) => int(items.len()),
            Some((_, Some(why))) => Ok(Term::Unknown(why)),
            None => Err(Fault::no_such_overload(&format!("size of a {}", of.type_name()))),
        }),
    }
}
