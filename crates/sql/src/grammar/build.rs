//! Short ways to build `sqlparser`'s nodes, and the marks by which Firn's own forms stand in them.

use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, UnaryOperator, Value,
};
use sqlparser::tokenizer::Span;

/// The quote mark of an identifier that is a user or system variable.
pub(crate) const VARIABLE_MARK: char = '@';

/// The quote mark of an identifier that no text can give: the unit of a function, the name of a
/// column after its expression's text.
pub(crate) const OWN_MARK: char = '%';

pub(crate) fn ident(name: impl Into<String>) -> Ident {
    Ident { value: name.into(), quote_style: None, span: Span::empty() }
}

pub(crate) fn marked(mark: char, name: impl Into<String>) -> Ident {
    Ident { value: name.into(), quote_style: Some(mark), span: Span::empty() }
}

pub(crate) fn object(parts: impl IntoIterator<Item = String>) -> ObjectName {
    ObjectName::from(parts.into_iter().map(ident).collect::<Vec<_>>())
}

pub(crate) fn value(value: Value) -> Expr {
    Expr::Value(value.with_empty_span())
}

pub(crate) fn text(text: impl Into<String>) -> Expr {
    value(Value::SingleQuotedString(text.into()))
}

pub(crate) fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

pub(crate) fn unary(op: UnaryOperator, expr: Expr) -> Expr {
    Expr::UnaryOp { op, expr: Box::new(expr) }
}

pub(crate) fn argument(expr: Expr) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
}

/// A function whose arguments are a list without anything special.
pub(crate) fn call(name: ObjectName, arguments: Vec<Expr>) -> Function {
    let args = arguments.into_iter().map(argument).collect();
    with_arguments(
        name,
        FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() },
    )
}

pub(crate) fn with_arguments(name: ObjectName, arguments: FunctionArgumentList) -> Function {
    Function {
        name,
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(arguments),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }
}

pub(crate) fn function(name: &str, arguments: Vec<Expr>) -> Expr {
    Expr::Function(call(object([name.to_owned()]), arguments))
}
