//! Short ways to build nodes.

use super::ast::{Arguments, BinaryOperator, Expr, Function, UnaryOperator, Value};

pub(crate) fn text(text: impl Into<String>) -> Expr {
    Expr::Value(Value::Text(text.into()))
}

pub(crate) fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

pub(crate) fn unary(op: UnaryOperator, expr: Expr) -> Expr {
    Expr::UnaryOp { op, expr: Box::new(expr) }
}

pub(crate) fn function(name: &str, arguments: Vec<Expr>) -> Expr {
    Expr::Function(Function::plain(name.to_owned(), Arguments::List(arguments)))
}

impl Function {
    /// A call with plain arguments only.
    pub(crate) fn plain(name: String, arguments: Arguments) -> Function {
        Function {
            schema: None,
            name,
            distinct: false,
            arguments,
            order_by: Vec::new(),
            separator: None,
            returning: None,
            null_treatment: None,
            over: None,
        }
    }
}
