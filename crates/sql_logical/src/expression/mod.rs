//! Bound expressions: names are slots, types are known, coercions are written out.
//!
//! ```text
//!   a + 1 > b        Compare(Int, >, [Call(+, [Column 3, Literal 1]), Column 4])
//! ```
//!
//! **The frame.** A statement has one frame: an array of [`Datum`]s. It has a slot for each needed
//! column of each table reference, each aggregate and each subquery's output, of the statement and
//! of all its subqueries. A scan fills its slots and an expression reads slots, so a join copies
//! nothing, and a correlated subquery simply reads its outer query's slots. Operators that keep
//! rows (sorts, hash tables) save the slots that are read above them, and restore them row by row.

pub mod equivalence;
pub mod fold;
mod subquery;
pub mod visit;
pub mod volatility;

use std::cmp::Ordering;
use std::sync::Arc;

use firn_format::value::CollationId;

use firn_sql_functions::{AggregateFunction, Function};
use firn_sql_types::error::Result;
use firn_sql_types::{ComparisonKind, Datum, EvaluationContext, SqlType, TypeKind};

pub use subquery::{ComparedRow, Subquery, SubqueryKind};

/// A place in the statement's frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u32);

/// An expression with the type of its value.
#[derive(Debug, Clone)]
pub struct Expression {
    pub kind: ExpressionKind,
    /// The type of its value.
    pub ty: SqlType,
}

impl Expression {
    /// Whether this stands for the default of the column it is assigned to.
    #[must_use]
    pub fn is_default(&self) -> bool {
        matches!(&self.kind, ExpressionKind::Unresolved(name) if &**name == "DEFAULT")
    }

    /// Whether this value may become text: a document made by a function may be too long for that.
    ///
    /// # Errors
    /// 1301 if it is too long, in a strict statement that stores.
    #[inline]
    pub fn fits_as_text(&self, value: &Datum, context: &EvaluationContext) -> Result<bool> {
        let Datum::Json(document) = value else { return Ok(true) };
        match self.maker_of_documents() {
            Some(function) => context.fits_packet(document, &function.to_ascii_lowercase()),
            None => Ok(true),
        }
    }

    /// The number behind the text of a zero-filled column, or of a double with fixed digits after
    /// the point.
    #[must_use]
    pub fn number_behind_text(&self) -> Option<&Expression> {
        let ExpressionKind::Call { function, arguments } = &self.kind else { return None };
        let argument = arguments.first()?;
        match (function.name, &argument.kind) {
            ("ZEROFILL", ExpressionKind::Cast(number)) => Some(number),
            ("FIXED DOUBLE", _) => Some(argument),
            _ => None,
        }
    }

    /// Whether a function made this text, whose number is taken as far as it goes and warns of
    /// nothing; bytes that were combined or shifted bit by bit are such a text as well.
    #[must_use]
    pub fn is_quiet_text(&self) -> bool {
        const FUNCTIONS: &[&str] = &[
            "ANY_VALUE",
            "GREATEST",
            "LEAST",
            "REGEXP_REPLACE",
            "REGEXP_SUBSTR",
            "&",
            "|",
            "^",
            "~",
            "<<",
            ">>",
        ];
        match &self.kind {
            ExpressionKind::Call { function, .. } => FUNCTIONS.contains(&function.name),
            ExpressionKind::Literal(_) => {
                self.ty.before.get().is_some_and(|before| before.is_quiet)
            }
            _ => false,
        }
    }

    /// The function that made these documents.
    fn maker_of_documents(&self) -> Option<&'static str> {
        if self.ty.kind != TypeKind::Json {
            return None;
        }
        match &self.kind {
            ExpressionKind::Call { function, .. } => Some(function.name),
            ExpressionKind::Coalesce(operands) => {
                operands.iter().find_map(Expression::maker_of_documents)
            }
            ExpressionKind::Case { branches, otherwise } => branches
                .iter()
                .map(|(_, value)| value)
                .chain(otherwise.as_deref())
                .find_map(Expression::maker_of_documents),
            _ => None,
        }
    }
}

/// The operation of an expression. Arguments have the types that the operation wants: the binder
/// adds casts.
#[derive(Debug, Clone)]
pub enum ExpressionKind {
    /// A constant.
    Literal(Datum),
    /// The value of a placeholder, or of a literal that was lifted out of the text.
    Parameter(u32),
    /// A slot of the frame.
    Slot(Slot),
    /// A function or operator that evaluates all its arguments.
    Call {
        function: &'static Function,
        /// One for each parameter.
        arguments: Vec<Expression>,
    },
    /// A conversion, written as `CAST` or required by MySQL's rules for mixed types.
    Cast(Box<Expression>),
    Compare {
        operator: CompareOperator,
        kind: ComparisonKind,
        /// The left and the right side.
        sides: Box<[Expression; 2]>,
    },
    /// `AND` in three-valued logic; evaluated from the left, ends at the first false.
    And(Vec<Expression>),
    /// `OR` in three-valued logic; evaluated from the left, ends at the first true.
    Or(Vec<Expression>),
    Xor(Box<[Expression; 2]>),
    Not(Box<Expression>),
    /// `IS [NOT] NULL | TRUE | FALSE | UNKNOWN`.
    Is {
        operand: Box<Expression>,
        test: IsTest,
        /// Whether the result is negated.
        negated: bool,
    },
    /// `IN (list)`, with the same type of comparison for all items.
    InList {
        /// The value to find.
        operand: Box<Expression>,
        list: Vec<Expression>,
        kind: ComparisonKind,
        /// `NOT IN`.
        negated: bool,
    },
    /// `[NOT] LIKE … ESCAPE …`.
    Like {
        text: Box<Expression>,
        pattern: Box<Expression>,
        /// The collation that decides which characters are equal.
        collation: CollationId,
        /// The escape character; `None`: no escapes.
        escape: Option<char>,
        /// `NOT LIKE`.
        negated: bool,
    },
    /// `CASE`, `IF`, `IFNULL`, `COALESCE`, `NULLIF`: the first branch whose condition is true.
    Case {
        /// Conditions and values.
        branches: Vec<(Expression, Expression)>,
        /// Otherwise; NULL if there is none.
        otherwise: Option<Box<Expression>>,
    },
    /// A value that is computed here and read again later in the same expression.
    Keep {
        /// Where it is kept.
        slot: Slot,
        value: Box<Expression>,
    },
    /// The value kept by an earlier [`ExpressionKind::Keep`] of the expression.
    Kept(Slot),
    /// The first argument that is not NULL.
    Coalesce(Vec<Expression>),
    /// A subquery in the place of a value.
    Subquery(Arc<Subquery>),
    /// Several values as a row, only under row comparisons and `IN` with subqueries.
    Row(Vec<Expression>),
    /// `@name`.
    UserVariable(Arc<str>),
    /// `@name := value`.
    AssignVariable {
        /// The name without `@`, in lower case.
        name: Arc<str>,
        value: Box<Expression>,
    },
    /// `@@name`, `@@session.name`, `@@global.name`; read when the statement begins.
    SystemVariable {
        /// Its name in lower case.
        name: Arc<str>,
        /// Whether the global value is wanted.
        global: bool,
    },
    /// `VALUES(column)` in `ON DUPLICATE KEY UPDATE`, `DEFAULT(column)`: the binder resolves them
    /// to slots. The variant exists so that unresolved ones are refused by name.
    Unresolved(Arc<str>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompareOperator {
    /// `=`
    Equal,
    /// `<=>`
    NullSafeEqual,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl CompareOperator {
    /// The operator with its sides exchanged: `a < b` is `b > a`.
    #[must_use]
    pub fn mirrored(self) -> CompareOperator {
        match self {
            CompareOperator::Less => CompareOperator::Greater,
            CompareOperator::LessOrEqual => CompareOperator::GreaterOrEqual,
            CompareOperator::Greater => CompareOperator::Less,
            CompareOperator::GreaterOrEqual => CompareOperator::LessOrEqual,
            same => same,
        }
    }

    /// Whether values with this ordering satisfy the comparison.
    #[inline]
    #[must_use]
    pub fn holds(self, ordering: Ordering) -> bool {
        match self {
            CompareOperator::Equal | CompareOperator::NullSafeEqual => ordering.is_eq(),
            CompareOperator::NotEqual => ordering.is_ne(),
            CompareOperator::Less => ordering.is_lt(),
            CompareOperator::LessOrEqual => ordering.is_le(),
            CompareOperator::Greater => ordering.is_gt(),
            CompareOperator::GreaterOrEqual => ordering.is_ge(),
        }
    }

    /// As it is written.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            CompareOperator::Equal => "=",
            CompareOperator::NullSafeEqual => "<=>",
            CompareOperator::NotEqual => "<>",
            CompareOperator::Less => "<",
            CompareOperator::LessOrEqual => "<=",
            CompareOperator::Greater => ">",
            CompareOperator::GreaterOrEqual => ">=",
        }
    }
}

/// What `IS` asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsTest {
    /// `IS NULL`, `IS UNKNOWN`.
    Null,
    /// `IS TRUE`.
    True,
    /// `IS FALSE`.
    False,
}

/// A sort key and its direction.
#[derive(Debug, Clone)]
pub struct SortKey {
    pub expression: Expression,
    /// `DESC`.
    pub descending: bool,
}

/// A call of an aggregate function.
#[derive(Debug, Clone)]
pub struct AggregateCall {
    pub function: AggregateFunction,
    pub arguments: Vec<Expression>,
    pub distinct: bool,
    /// The order inside `GROUP_CONCAT`.
    pub order: Vec<SortKey>,
    /// `SEPARATOR` of `GROUP_CONCAT`.
    pub separator: Arc<[u8]>,
    /// Where the result goes.
    pub output: Slot,
    pub ty: SqlType,
}

/// `a AND b …`; nested ANDs are flattened.
#[must_use]
pub fn and(mut list: Vec<Expression>) -> Expression {
    if list.len() == 1 {
        return list.swap_remove(0);
    }
    let ty = SqlType::boolean().with_nullable(list.iter().any(|one| one.ty.nullable));
    let flat = list.into_iter().flat_map(|one| match one.kind {
        ExpressionKind::And(inner) => inner,
        _ => vec![one],
    });
    Expression { kind: ExpressionKind::And(flat.collect()), ty }
}

/// `a OR b …`; nested ORs are flattened.
#[must_use]
pub fn or(mut list: Vec<Expression>) -> Expression {
    if list.len() == 1 {
        return list.swap_remove(0);
    }
    let ty = SqlType::boolean().with_nullable(list.iter().any(|one| one.ty.nullable));
    let flat = list.into_iter().flat_map(|one| match one.kind {
        ExpressionKind::Or(inner) => inner,
        _ => vec![one],
    });
    Expression { kind: ExpressionKind::Or(flat.collect()), ty }
}
