//! From text to a tree that is evaluated many times.

use std::{
    cell::RefCell,
    sync::{Arc, OnceLock},
};

use kube_cel::cel::{
    self, IdedExpr,
    common::ast::{CallExpr, EntryExpr, Expr, ListExpr, LiteralValue, MapExpr, SelectExpr, operators},
    parser::Parser,
};
use rustc_hash::FxHashMap;

use super::library;

/// An expression, compiled when it is first evaluated.
#[derive(Debug)]
pub(in crate::admission) struct Expression {
    text: String,
    root: OnceLock<Node>,
}

impl Expression {
    pub(super) fn root(&self) -> &Node {
        self.root.get_or_init(|| compile(&self.text))
    }
}

/// Keeps expressions by their text, since policies share many.
#[derive(Debug, Default)]
pub(in crate::admission) struct Expressions(RefCell<FxHashMap<String, Arc<Expression>>>);

impl Expressions {
    pub(in crate::admission) fn get(&self, text: &str) -> Arc<Expression> {
        let mut known = self.0.borrow_mut();
        let made = || Arc::new(Expression { text: text.to_owned(), root: OnceLock::new() });
        Arc::clone(known.entry(text.to_owned()).or_insert_with(made))
    }
}

/// A part of an expression.
#[derive(Debug)]
pub(super) enum Node {
    Literal(Literal),
    Ident(String),
    /// `variables.name`
    Variable(String),
    /// `authorizer.requestResource`
    RequestResource,
    Select(Box<Node>, String),
    Has(Box<Node>, String),
    OptionalSelect(Box<Node>, String),
    Index(Box<Node>, Box<Node>),
    OptionalIndex(Box<Node>, Box<Node>),
    Conditional(Box<[Node; 3]>),
    Not(Box<Node>),
    NotStrictlyFalse(Box<Node>),
    Negate(Box<Node>),
    Binary(Binary, Box<[Node; 2]>, OnceLock<IdedExpr>),
    /// Items, and whether each is left out if it is an empty optional.
    List(Vec<(Node, bool)>),
    Map(Vec<(Node, Node, bool)>),
    Fold(Box<Fold>),
    /// `cel.bind(name, value, body)`
    Bind(String, Box<[Node; 2]>),
    /// `x.optMap(name, body)`, and whether the body is an optional itself.
    OptionalMap(Box<Node>, String, Box<Node>, bool),
    Call(Box<Call>),
    /// What cannot be evaluated here, for people.
    Unsupported(String),
}

#[derive(Debug)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Other(cel::Value),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binary {
    And,
    Or,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

impl Binary {
    /// Its name in the syntax tree of `cel`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::And => operators::LOGICAL_AND,
            Self::Or => operators::LOGICAL_OR,
            Self::Equal => operators::EQUALS,
            Self::NotEqual => operators::NOT_EQUALS,
            Self::Less => operators::LESS,
            Self::LessEqual => operators::LESS_EQUALS,
            Self::Greater => operators::GREATER,
            Self::GreaterEqual => operators::GREATER_EQUALS,
            Self::In => operators::IN,
            Self::Add => operators::ADD,
            Self::Subtract => operators::SUBSTRACT,
            Self::Multiply => operators::MULTIPLY,
            Self::Divide => operators::DIVIDE,
            Self::Modulo => operators::MODULO,
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        const ALL: [Binary; 14] = [
            Binary::And,
            Binary::Or,
            Binary::Equal,
            Binary::NotEqual,
            Binary::Less,
            Binary::LessEqual,
            Binary::Greater,
            Binary::GreaterEqual,
            Binary::In,
            Binary::Add,
            Binary::Subtract,
            Binary::Multiply,
            Binary::Divide,
            Binary::Modulo,
        ];
        ALL.into_iter().find(|operator| operator.name() == name)
    }
}

/// A macro over a list: `all`, `exists`, `map`, `filter`.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) range: Node,
    pub(super) item: String,
    pub(super) accumulator: String,
    pub(super) init: Node,
    pub(super) condition: Node,
    pub(super) step: Node,
    pub(super) result: Node,
    /// Whether further steps can only bring an answer closer: `all` and `exists`.
    pub(super) is_logical: bool,
}

/// A function.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) target: Option<Node>,
    pub(super) arguments: Vec<Node>,
    /// The same for the libraries, if they have it; its operands are named.
    pub(super) library: Option<IdedExpr>,
}

/// Compiles an expression. What cannot be is kept, and its value is unknown.
fn compile(text: &str) -> Node {
    match without_double_negation(text) {
        None => Node::Unsupported("a doubled minus".to_owned()),
        Some(text) => match Parser::new().enable_optional_syntax(true).parse(&text) {
            Ok(tree) => node(tree),
            Err(errors) => {
                let said = errors.to_string();
                let said = said.lines().next().unwrap_or_default();
                Node::Unsupported(format!("an expression that does not parse ({said})"))
            }
        },
    }
}

/// Takes `!!` out, which the parser of cel 0.13 takes for `!`. None where it would do so with `--`.
fn without_double_negation(text: &str) -> Option<String> {
    let mut kept = String::with_capacity(text.len());
    let mut quote = None;
    let mut last = ' ';
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        kept.push(character);
        match quote {
            Some(_) if character == '\\' => kept.extend(characters.next()),
            Some(open) if character == open => quote = None,
            Some(_) => {}
            None if character.is_whitespace() => continue,
            None if character == '-' && last == '-' => return None,
            None if character == '!' && last == '!' => {
                let before = kept.trim_end_matches('!').trim_end();
                kept.truncate(before.trim_end_matches('!').len());
                last = ' ';
                continue;
            }
            None if ['"', '\''].contains(&character) => quote = Some(character),
            None => {}
        }
        last = character;
    }
    Some(kept)
}

fn node(tree: IdedExpr) -> Node {
    match tree.expr {
        Expr::Literal(value) => literal(&value),
        Expr::Ident(name) => Node::Ident(name),
        Expr::Select(select) => selection(select),
        Expr::Call(call) => function(call),
        Expr::List(ListExpr { elements, optional_indices }) => Node::List(
            elements
                .into_iter()
                .enumerate()
                .map(|(index, item)| (node(item), optional_indices.contains(&index)))
                .collect(),
        ),
        Expr::Map(map) => mapping(map),
        Expr::Comprehension(fold) => {
            let accumulates = |step: &Node| {
                matches!(step, Node::Binary(Binary::And | Binary::Or, operands, _)
                    if matches!(operands.as_ref(), [Node::Ident(name), _] if *name == fold.accu_var))
            };
            let step = node(fold.loop_step);
            Node::Fold(Box::new(Fold {
                is_logical: accumulates(&step),
                range: node(fold.iter_range),
                item: fold.iter_var,
                accumulator: fold.accu_var,
                init: node(fold.accu_init),
                condition: node(fold.loop_cond),
                step,
                result: node(fold.result),
            }))
        }
        Expr::Struct(made) => Node::Unsupported(format!("an object of type `{}`", made.type_name)),
        Expr::Unspecified => Node::Unsupported("an empty expression".to_owned()),
    }
}

fn literal(value: &LiteralValue) -> Node {
    Node::Literal(match value {
        LiteralValue::Null => Literal::Null,
        LiteralValue::Boolean(value) => Literal::Bool(*value.inner()),
        LiteralValue::Int(value) => Literal::Int(*value.inner()),
        LiteralValue::UInt(value) => Literal::Uint(*value.inner()),
        LiteralValue::Double(value) => Literal::Double(*value.inner()),
        LiteralValue::String(text) => Literal::Text(text.inner().to_owned()),
        LiteralValue::Bytes(bytes) => Literal::Other(cel::Value::from(bytes.inner().to_vec())),
    })
}

fn selection(select: SelectExpr) -> Node {
    let field = unescaped(&select.field);
    if let Expr::Ident(name) = &select.operand.expr {
        match (name.as_str(), field.as_str()) {
            ("variables", _) if !select.test => return Node::Variable(field),
            ("authorizer", "requestResource") => return Node::RequestResource,
            _ => {}
        }
    }
    let operand = Box::new(node(*select.operand));
    if select.test { Node::Has(operand, field) } else { Node::Select(operand, field) }
}

fn mapping(map: MapExpr) -> Node {
    let entries = map.entries.into_iter().map(|entry| match entry.expr {
        EntryExpr::MapEntry(entry) => Some((node(entry.key), node(entry.value), entry.optional)),
        EntryExpr::StructField(_) => None,
    });
    match entries.collect() {
        Some(entries) => Node::Map(entries),
        None => Node::Unsupported("a map with fields".to_owned()),
    }
}

/// Field names that are no identifiers are escaped (k8s.io/apiserver `pkg/cel/escaping.go`).
fn unescaped(field: &str) -> String {
    const KEYWORDS: [&str; 21] = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ];
    let keyword = field.strip_prefix("__").and_then(|rest| rest.strip_suffix("__"));
    if let Some(keyword) = keyword.filter(|keyword| KEYWORDS.contains(keyword)) {
        return keyword.to_owned();
    }
    let escapes = [("__dot__", "."), ("__dash__", "-"), ("__slash__", "/"), ("__underscores__", "__")];
    escapes.iter().fold(field.to_owned(), |name, (escape, text)| name.replace(escape, text))
}

fn function(call: CallExpr) -> Node {
    let CallExpr { func_name: name, target, args } = call;
    let Some(target) = target else { return global(name, args) };
    if let Expr::Ident(prefix) = &target.expr {
        if prefix == "cel" && name == "bind" {
            return bind(args);
        }
        let qualified = format!("{prefix}.{name}");
        if library::has(&qualified, false, args.len()) {
            let library = Some(library_call(&name, Some(Expr::Ident(prefix.clone())), args.len(), 0));
            let arguments = args.into_iter().map(node).collect();
            return Node::Call(Box::new(Call { name: qualified, target: None, arguments, library }));
        }
        if prefix == "optional" {
            let arguments = args.into_iter().map(node).collect();
            return Node::Call(Box::new(Call { name: qualified, target: None, arguments, library: None }));
        }
    }
    if ["optMap", "optFlatMap"].contains(&name.as_str()) {
        return match <[IdedExpr; 2]>::try_from(args) {
            Ok([IdedExpr { expr: Expr::Ident(variable), .. }, body]) => {
                let body = Box::new(node(body));
                Node::OptionalMap(Box::new(node(*target)), variable, body, name == "optFlatMap")
            }
            _ => Node::Unsupported(format!("`{name}`")),
        };
    }
    let library = library::has(&name, true, args.len())
        .then(|| library_call(&name, Some(Expr::Ident(library::operand(0))), args.len(), 1));
    let arguments = args.into_iter().map(node).collect();
    Node::Call(Box::new(Call { name, target: Some(node(*target)), arguments, library }))
}

fn bind(args: Vec<IdedExpr>) -> Node {
    match <[IdedExpr; 3]>::try_from(args) {
        Ok([IdedExpr { expr: Expr::Ident(name), .. }, value, body]) => {
            Node::Bind(name, Box::new([node(value), node(body)]))
        }
        _ => Node::Unsupported("`cel.bind`".to_owned()),
    }
}

fn global(name: String, args: Vec<IdedExpr>) -> Node {
    let count = args.len();
    let mut nodes = args.into_iter().map(node);
    let (first, second, third) = (nodes.next(), nodes.next(), nodes.next());
    match (first, second, third) {
        (Some(only), None, None) => match name.as_str() {
            operators::LOGICAL_NOT => Node::Not(Box::new(only)),
            operators::NEGATE => Node::Negate(Box::new(only)),
            operators::NOT_STRICTLY_FALSE => Node::NotStrictlyFalse(Box::new(only)),
            // Without types to check, this changes nothing.
            "dyn" => only,
            _ => call_of(name, vec![only]),
        },
        (Some(left), Some(right), None) => match (name.as_str(), Binary::from_name(&name)) {
            (_, Some(binary)) => Node::Binary(binary, Box::new([left, right]), OnceLock::new()),
            (operators::INDEX, _) => Node::Index(Box::new(left), Box::new(right)),
            (operators::OPT_INDEX, _) => Node::OptionalIndex(Box::new(left), Box::new(right)),
            (operators::OPT_SELECT, _) => match right {
                Node::Literal(Literal::Text(field)) => {
                    Node::OptionalSelect(Box::new(left), unescaped(&field))
                }
                _ => Node::Unsupported("an optional field without a name".to_owned()),
            },
            _ => call_of(name, vec![left, right]),
        },
        (Some(condition), Some(then), Some(otherwise)) if name == operators::CONDITIONAL => {
            Node::Conditional(Box::new([condition, then, otherwise]))
        }
        (first, second, third) => {
            let known: Vec<_> = [first, second, third].into_iter().flatten().chain(nodes).collect();
            debug_assert_eq!(known.len(), count, "every argument is kept");
            call_of(name, known)
        }
    }
}

fn call_of(name: String, arguments: Vec<Node>) -> Node {
    let count = arguments.len();
    let library = library::has(&name, false, count).then(|| library_call(&name, None, count, 0));
    Node::Call(Box::new(Call { name, target: None, arguments, library }))
}

/// A call whose operands are variables; that of the target comes first.
fn library_call(name: &str, target: Option<Expr>, arguments: usize, first: usize) -> IdedExpr {
    let ident = |expr| IdedExpr { id: 0, expr };
    let operands = (first..first + arguments).map(|index| ident(Expr::Ident(library::operand(index))));
    ident(Expr::Call(CallExpr {
        func_name: name.to_owned(),
        target: target.map(|target| Box::new(ident(target))),
        args: operands.collect(),
    }))
}

impl Binary {
    /// The operator on two named operands, for types of the libraries.
    pub(super) fn library_call(self) -> IdedExpr {
        library_call(self.name(), None, 2, 0)
    }
}
