//! Functions of the Kubernetes and standard libraries that `kube-cel` has.
//!
//! Only those of the table are called, with as many arguments as they take: the API server checks that when a policy
//! is written, and the crate relies on it. An error of a function makes its answer unknown, since `kube-cel` may fail
//! where the API server does not.

use kube_cel::{KubeCelExt, cel};

use super::{Term, Why};

/// How a function is called, and how many arguments it takes.
#[derive(Clone, Copy)]
enum Shape {
    /// `f(a)`
    Global(usize, usize),
    /// `x.f(a)`
    Member(usize, usize),
    /// Both, the target of the second counting as an argument of the first.
    Either(usize, usize),
}
use Shape::{Either, Global, Member};

/// Names with their shapes: `kube-cel` 0.8 `src/functions`, `cel` 0.13 `src/context.rs`.
const FUNCTIONS: &[(&str, Shape)] = &[
    ("asApproximateFloat", Member(0, 0)),
    ("asInteger", Member(0, 0)),
    ("add", Member(1, 1)),
    ("base64.decode", Global(1, 1)),
    ("base64.encode", Global(1, 1)),
    ("bytes", Global(1, 1)),
    ("charAt", Member(1, 1)),
    ("cidr", Global(1, 1)),
    ("compareTo", Member(1, 1)),
    ("containsCIDR", Member(1, 1)),
    ("containsIP", Member(1, 1)),
    ("distinct", Member(0, 0)),
    ("double", Global(1, 1)),
    ("duration", Global(1, 1)),
    ("family", Member(0, 0)),
    ("find", Member(1, 1)),
    ("findAll", Member(1, 2)),
    ("first", Member(0, 0)),
    ("flatten", Member(0, 1)),
    ("format", Member(1, 1)),
    ("format.byte", Global(0, 0)),
    ("format.date", Global(0, 0)),
    ("format.datetime", Global(0, 0)),
    ("format.dns1035Label", Global(0, 0)),
    ("format.dns1035LabelPrefix", Global(0, 0)),
    ("format.dns1123Label", Global(0, 0)),
    ("format.dns1123LabelPrefix", Global(0, 0)),
    ("format.dns1123Subdomain", Global(0, 0)),
    ("format.dns1123SubdomainPrefix", Global(0, 0)),
    ("format.labelValue", Global(0, 0)),
    ("format.named", Global(1, 1)),
    ("format.qualifiedName", Global(0, 0)),
    ("format.uri", Global(0, 0)),
    ("format.uuid", Global(0, 0)),
    ("getDate", Member(0, 1)),
    ("getDayOfMonth", Member(0, 1)),
    ("getDayOfWeek", Member(0, 1)),
    ("getDayOfYear", Member(0, 1)),
    ("getEscapedPath", Member(0, 0)),
    ("getFullYear", Member(0, 1)),
    ("getHost", Member(0, 0)),
    ("getHostname", Member(0, 0)),
    ("getHours", Member(0, 1)),
    ("getMilliseconds", Member(0, 1)),
    ("getMinutes", Member(0, 1)),
    ("getMonth", Member(0, 1)),
    ("getPort", Member(0, 0)),
    ("getQuery", Member(0, 0)),
    ("getScheme", Member(0, 0)),
    ("getSeconds", Member(0, 1)),
    ("indexOf", Member(1, 2)),
    ("int", Global(1, 1)),
    ("ip", Either(1, 1)),
    ("ip.isCanonical", Global(1, 1)),
    ("isCIDR", Global(1, 1)),
    ("isCIDRv4", Global(1, 1)),
    ("isCIDRv6", Global(1, 1)),
    ("isGlobalUnicast", Member(0, 0)),
    ("isGreaterThan", Member(1, 1)),
    ("isInteger", Member(0, 0)),
    ("isIP", Global(1, 1)),
    ("isIPv4", Global(1, 1)),
    ("isIPv6", Global(1, 1)),
    ("isLessThan", Member(1, 1)),
    ("isLinkLocalMulticast", Member(0, 0)),
    ("isLinkLocalUnicast", Member(0, 0)),
    ("isLoopback", Member(0, 0)),
    ("isQuantity", Global(1, 1)),
    ("isSemver", Global(1, 2)),
    ("isSorted", Member(0, 0)),
    ("isURL", Global(1, 1)),
    ("isUnspecified", Member(0, 0)),
    ("join", Member(0, 1)),
    ("jsonpatch.escapeKey", Global(1, 1)),
    ("last", Member(0, 0)),
    ("lastIndexOf", Member(1, 2)),
    ("lists.range", Global(1, 1)),
    ("lowerAscii", Member(0, 0)),
    ("major", Member(0, 0)),
    ("masked", Member(0, 0)),
    ("matches", Either(2, 2)),
    ("math.abs", Global(1, 1)),
    ("math.ceil", Global(1, 1)),
    ("math.floor", Global(1, 1)),
    ("math.greatest", Global(1, 8)),
    ("math.isFinite", Global(1, 1)),
    ("math.isInf", Global(1, 1)),
    ("math.isNaN", Global(1, 1)),
    ("math.least", Global(1, 8)),
    ("math.round", Global(1, 1)),
    ("math.sign", Global(1, 1)),
    ("math.sqrt", Global(1, 1)),
    ("math.trunc", Global(1, 1)),
    ("max", Member(0, 0)),
    ("min", Member(0, 0)),
    ("minor", Member(0, 0)),
    ("patch", Member(0, 0)),
    ("prefixLength", Member(0, 0)),
    ("quantity", Global(1, 1)),
    ("replace", Member(2, 3)),
    ("reverse", Member(0, 0)),
    ("semver", Global(1, 2)),
    ("sets.contains", Global(2, 2)),
    ("sets.equivalent", Global(2, 2)),
    ("sets.intersects", Global(2, 2)),
    ("sign", Member(0, 0)),
    ("slice", Member(2, 2)),
    ("sort", Member(0, 0)),
    ("split", Member(1, 2)),
    ("string", Global(1, 1)),
    ("strings.quote", Global(1, 1)),
    ("sub", Member(1, 1)),
    ("substring", Member(1, 2)),
    ("sum", Member(0, 0)),
    ("timestamp", Global(1, 1)),
    ("trim", Member(0, 0)),
    ("uint", Global(1, 1)),
    ("upperAscii", Member(0, 0)),
    ("url", Global(1, 1)),
    ("validate", Member(1, 1)),
];

/// Whether there is such a function, called in this way. The name of one with a prefix is `math.abs`.
pub(super) fn has(name: &str, is_member: bool, arguments: usize) -> bool {
    FUNCTIONS.iter().any(|(function, shape)| {
        let (fits, least, most) = match (*shape, is_member) {
            (Global(least, most), false) | (Member(least, most), true) | (Either(least, most), false) => {
                (true, least, most)
            }
            (Either(least, most), true) => (true, least.saturating_sub(1), most.saturating_sub(1)),
            _ => (false, 0, 0),
        };
        *function == name && fits && (least..=most).contains(&arguments)
    })
}

/// Calls a function, or an operator of the library types. `call` names its operands [`operand`].
pub(super) fn call<'a>(call: &cel::IdedExpr, name: &str, operands: &[Term<'a>]) -> Term<'a> {
    thread_local! {
        static LIBRARY: cel::Context<'static> = cel::Context::default().with_all();
    }
    let unsupported = |what: String| Term::Unknown(Why::Unsupported(what.into()));
    let unknown = operands.iter().find_map(|operand| match operand {
        Term::Unknown(why) => Some(why.clone()),
        Term::List(list) => list.open.clone(),
        _ => None,
    });
    if let Some(why) = unknown {
        return Term::Unknown(why);
    }
    let mut values = Vec::with_capacity(operands.len());
    for value in operands {
        match value.to_cel() {
            Some(value) => values.push(value),
            None if matches!(value, Term::Json(_) | Term::List(_) | Term::Map(_)) => {
                return Term::Unknown(Why::Field("further fields of an object"));
            }
            None => return unsupported(format!("`{name}` of a {}", value.type_name())),
        }
    }
    LIBRARY.with(|library| {
        let mut context = library.new_inner_scope();
        for (index, value) in values.into_iter().enumerate() {
            context.add_variable_from_value(operand(index), value);
        }
        match cel::Value::resolve(call, &context) {
            Ok(value) => Term::from_cel(value),
            Err(error) => unsupported(format!("`{name}` ({error})")),
        }
    })
}

/// The name of an operand in a call.
pub(super) fn operand(index: usize) -> String {
    format!("operand_{index}")
}
