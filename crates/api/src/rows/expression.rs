//! Expressions over one row, as data: what a node evaluates where the rows are.
//!
//! ```text
//!   a + 1 > b AND s LIKE 'x%'
//!     Column a   Literal 1   Call "+"   Column b   Compare >   Column s   Literal 'x%'   Like   And 2
//! ```
//!
//! The steps are in postfix order: each takes its operands from a stack and puts its value there,
//! so a message is a flat list, whatever it holds. An expression needs no session: its literals are
//! values, its types and collations are written out, and a function is a name.
//!
//! The seam gives no meaning to it. [`ExpressionEvaluator`] does, which a node gets when it opens,
//! as it gets the collations.
//!
//! Invariant: an evaluation that raised an error or a warning has no result. What the row means for
//! the statement is then unknown to the node, and the statement evaluates it again.

use firn_format::definition::TableDefinition;
use firn_format::value::{Value, ValueRef};
use serde::{Deserialize, Serialize};

/// The deepest nesting of an expression that is sent; a node does not evaluate deeper ones.
pub const MOST_NESTED: usize = 64;

/// An expression over the columns of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expression {
    /// In postfix order. They leave one value.
    pub steps: Vec<Step>,
}

/// One step of an evaluation. The operands named first are deepest in the stack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Step {
    /// The row's value of a column.
    Column { ordinal: u16, ty: ValueType },
    /// A value in the stored form of the type.
    Literal { value: Value, ty: ValueType },
    /// A function or operator with a stable name, such as `ABS` or `+`.
    Call { function: String, arguments: u32, result: ValueType },
    /// A conversion of one operand.
    Cast { to: ValueType },
    /// Two operands.
    Compare { operator: Comparison, by: ComparedBy },
    /// True, false or NULL of this many operands, evaluated from the first to the first false.
    And { operands: u32 },
    /// The same to the first true.
    Or { operands: u32 },
    /// Two operands.
    Xor,
    /// One operand.
    Not,
    /// One operand; the result is never NULL.
    Is { test: Test, is_negated: bool },
    /// The value to find, and then the list.
    In { items: u32, by: ComparedBy, is_negated: bool },
    /// The text, and then the pattern.
    Like { collation: Collation, escape: Option<char>, is_negated: bool },
    /// Pairs of condition and value, and then the value for no true condition, if there is one.
    Case { branches: u32, has_otherwise: bool, result: ValueType },
    /// The first of this many operands that is not NULL.
    Coalesce { operands: u32, result: ValueType },
    /// Keeps the value of one operand under a number.
    Keep { number: u32 },
    /// The value kept earlier under a number.
    Kept { number: u32, ty: ValueType },
}

/// A collation by its MySQL number.
pub type Collation = u16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueType {
    pub kind: ValueKind,
    /// Whether NULL is one of the values.
    pub is_nullable: bool,
    /// How strongly the collation holds among others: 0 is the strongest.
    pub collation_rank: u8,
}

/// The set of values of a type, with the parameters of a column of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ValueKind {
    /// Only NULL.
    Null,
    Integer {
        /// 1, 2, 3, 4 or 8.
        bytes: u8,
        is_unsigned: bool,
    },
    Decimal {
        precision: u8,
        scale: u8,
        is_unsigned: bool,
    },
    Float,
    Double,
    Char {
        max_chars: u32,
        collation: Collation,
    },
    Varchar {
        max_chars: u32,
        collation: Collation,
    },
    Text {
        max_bytes: u32,
        collation: Collation,
    },
    Binary {
        max_bytes: u32,
    },
    Varbinary {
        max_bytes: u32,
    },
    Blob {
        max_bytes: u32,
    },
    Date,
    Time {
        fsp: u8,
    },
    DateTime {
        fsp: u8,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Comparison {
    Equal,
    /// `<=>`: NULL equals NULL.
    NullSafeEqual,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ComparedBy {
    Integer,
    Decimal,
    Double,
    Text(Collation),
    DateTime,
    Time,
}

/// What `IS` asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Test {
    Null,
    True,
    False,
}

/// The row's value of a column by ordinal; `None` if the row does not have it at hand, such as a
/// value stored out of line.
pub type RowValues<'r, 'v> = dyn Fn(usize) -> Option<ValueRef<'v>> + 'r;

/// Makes expressions ready to be evaluated. Implemented by SQL.
pub trait ExpressionEvaluator: Send + Sync {
    /// The expression over rows of a table. `None`: it reads columns that the table does not have
    /// with these types, or has steps that are unknown here.
    fn compile(
        &self,
        table: &TableDefinition,
        expression: &Expression,
    ) -> Option<Box<dyn RowExpression>>;
}

/// An expression that is ready to be evaluated, row after row.
pub trait RowExpression: Send {
    /// Whether it is true of a row, rather than false or NULL. `None`: the evaluation raised an
    /// error or a warning, or the row does not have a value at hand.
    fn holds(&mut self, row: &RowValues<'_, '_>) -> Option<bool>;
    /// Its value in stored form. Appends bytes to `key` that are equal for rows whose values are
    /// equal to `GROUP BY`. `None` as for [`RowExpression::holds`], or if the stored form says
    /// less.
    fn group_value(&mut self, row: &RowValues<'_, '_>, key: &mut Vec<u8>) -> Option<Value>;
    /// Its value, an integer or a decimal, in units of the last digit of its type; `Some(None)` is
    /// NULL. `None` as for [`RowExpression::holds`], or if it is another number.
    fn number(&mut self, row: &RowValues<'_, '_>) -> Option<Option<i128>>;
}

/// No expressions: a node with this evaluator evaluates ranges only.
pub struct NoExpressions;

impl ExpressionEvaluator for NoExpressions {
    fn compile(
        &self,
        _table: &TableDefinition,
        _expression: &Expression,
    ) -> Option<Box<dyn RowExpression>> {
        None
    }
}
