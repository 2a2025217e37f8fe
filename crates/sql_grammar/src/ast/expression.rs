//! Expressions.
//!
//! Only forms that the parser produces have a node; forms with the same meaning share one (see the
//! grammar's module docs). Parentheses appear only in the shape of the tree.

use super::{CastType, Query};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Expr {
    /// A column by its name alone.
    Identifier(String),
    /// `table.column` or `schema.table.column`.
    CompoundIdentifier(Vec<String>),
    /// `@name`, as written.
    UserVariable(String),
    /// `@@name` or `@@scope.name`, both in lower case.
    SystemVariable {
        /// `global`, `session` …; empty if none is written.
        scope: String,
        /// May contain points.
        name: String,
    },
    /// A literal or a placeholder.
    Value(Value),
    /// `_latin1'a'`, `N'a'`: a literal whose bytes are text in a character set.
    Introduced {
        /// In lower case, with its underscore.
        charset: String,
        /// A string, hexadecimal or bits.
        value: Value,
    },
    /// `DATE '…'`, `{ts '…'}`.
    TypedString {
        kind: TypedStringKind,
        /// What is between the quotes.
        text: String,
    },
    /// A unit of time as an argument: `TIMESTAMPDIFF(DAY, …)`.
    Unit(&'static str),
    /// `INTERVAL n unit`; occurs only beside `+` and `-`, in `date_add`, `date_sub` and window
    /// frames.
    Interval(Interval),
    /// A prefix operator.
    UnaryOp {
        op: UnaryOperator,
        expr: Box<Expr>,
    },
    /// An operator between two operands.
    BinaryOp {
        left: Box<Expr>,
        op: BinaryOperator,
        right: Box<Expr>,
    },
    /// `x IS [NOT] NULL | TRUE | FALSE | UNKNOWN`
    Is {
        expr: Box<Expr>,
        test: TruthTest,
        /// `IS NOT`.
        negated: bool,
    },
    /// `x [NOT] LIKE pattern [ESCAPE …]`
    Like {
        /// `NOT LIKE`.
        negated: bool,
        /// The text.
        expr: Box<Expr>,
        pattern: Box<Expr>,
        /// After `ESCAPE`.
        escape: Option<Value>,
    },
    /// `x [NOT] REGEXP pattern`
    Regexp {
        /// `NOT REGEXP`.
        negated: bool,
        /// The text.
        expr: Box<Expr>,
        pattern: Box<Expr>,
    },
    /// `x [NOT] BETWEEN low AND high`
    Between {
        /// What is between.
        expr: Box<Expr>,
        /// `NOT BETWEEN`.
        negated: bool,
        low: Box<Expr>,
        high: Box<Expr>,
    },
    /// `x [NOT] IN (…, …)`
    InList {
        /// The value to find.
        expr: Box<Expr>,
        /// At least one.
        list: Vec<Expr>,
        /// `NOT IN`.
        negated: bool,
    },
    /// `x [NOT] IN (SELECT …)`
    InSubquery {
        /// The value to find.
        expr: Box<Expr>,
        subquery: Box<Query>,
        /// `NOT IN`.
        negated: bool,
    },
    /// `x MEMBER OF (array)`
    MemberOf {
        /// The value to find.
        value: Box<Expr>,
        array: Box<Expr>,
    },
    /// `x op ANY (SELECT …)`, `x op ALL (SELECT …)`
    Quantified {
        left: Box<Expr>,
        /// A comparison.
        op: BinaryOperator,
        /// `ALL`, and not `ANY` or `SOME`.
        all: bool,
        /// The right operand.
        subquery: Box<Query>,
    },
    /// `EXISTS (SELECT …)`
    Exists(Box<Query>),
    /// `(SELECT …)` as a value.
    Subquery(Box<Query>),
    /// `(a, b)`, `ROW(a, b)`
    Tuple(Vec<Expr>),
    Case {
        /// `CASE operand WHEN …`
        operand: Option<Box<Expr>>,
        /// At least one.
        branches: Vec<CaseWhen>,
        /// `ELSE`.
        otherwise: Option<Box<Expr>>,
    },
    Function(Function),
    /// `CAST(x AS t)`, `CONVERT(x, t)`, `BINARY x`
    Cast {
        /// Which of the forms: `BINARY x` is deprecated.
        is_binary_prefix: bool,
        expr: Box<Expr>,
        to: CastType,
        /// `CHARACTER SET`, in lower case.
        charset: Option<String>,
        array: bool,
    },
    /// `CONVERT(x USING c)`, `CHAR(… USING c)`
    Convert {
        expr: Box<Expr>,
        /// In small letters.
        charset: String,
    },
    /// `x AT TIME ZONE z`, only inside a cast.
    AtTimeZone {
        expr: Box<Expr>,
        /// The zone, as written.
        zone: String,
    },
    /// `x COLLATE c`
    Collate {
        expr: Box<Expr>,
        /// The collation, as written.
        collation: String,
    },
    /// `EXTRACT(unit FROM x)`
    Extract {
        /// In capitals.
        unit: &'static str,
        expr: Box<Expr>,
    },
    /// `TRIM([side] [what] FROM x)`
    Trim {
        /// Which side; both if none is written.
        side: Option<TrimSide>,
        /// What is removed; spaces if nothing is written.
        what: Option<Box<Expr>>,
        expr: Box<Expr>,
    },
    /// `MATCH (columns) AGAINST (value …)`
    MatchAgainst {
        /// Each with as many parts as are written.
        columns: Vec<Vec<String>>,
        /// What is searched for.
        value: Value,
        mode: Option<SearchMode>,
    },
}

/// A literal, or a placeholder for one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Value {
    /// A number as written, never with a sign.
    Number(String),
    /// A string, unescaped and joined; `\%` and `\_` keep their backslash.
    Text(String),
    /// `x'4A'`, `0x4A`: an even number of upper-case digits.
    Hexadecimal(String),
    /// `b'01'`, `0b01`: binary digits.
    Bits(String),
    /// `TRUE`, `FALSE`
    Boolean(bool),
    /// `NULL`, `\N`
    Null,
    /// `?`, counted from 0 in text order.
    Parameter(u32),
    /// A long string that [`parse_apart`](crate::parse_apart) stores apart from the tree, by its
    /// number in [`Parsed::long_texts`](crate::Parsed::long_texts).
    LongText(u32),
}

/// The type before a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TypedStringKind {
    /// `DATE '…'`
    Date,
    /// `TIME '…'`
    Time,
    /// `TIMESTAMP '…'`
    Timestamp,
}

/// A span of time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Interval {
    /// How many units; a string with several numbers for a compound unit.
    pub value: Box<Expr>,
    /// In capitals.
    pub unit: &'static str,
}

/// What `IS` asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TruthTest {
    Null,
    True,
    False,
    Unknown,
}

/// A prefix operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryOperator {
    Not,
    /// `!`
    BangNot,
    /// `-`
    Minus,
    /// `+`
    Plus,
    /// `~`
    BitwiseNot,
}

/// An operator between two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryOperator {
    /// `OR`, `||`
    Or,
    Xor,
    /// `AND`, `&&`
    And,
    /// `=`
    Eq,
    /// `<=>`
    NullSafeEq,
    /// `<>`, `!=`
    NotEq,
    /// `<`
    Lt,
    /// `<=`
    LtEq,
    /// `>`
    Gt,
    /// `>=`
    GtEq,
    /// `|`
    BitwiseOr,
    /// `&`
    BitwiseAnd,
    /// `^`
    BitwiseXor,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`, `MOD`
    Modulo,
    /// `DIV`
    IntegerDivide,
    /// `||` under `PIPES_AS_CONCAT`
    Concat,
    /// `column -> path`
    Arrow,
    /// `column ->> path`
    LongArrow,
    /// `@variable := value`
    Assignment,
}

impl BinaryOperator {
    /// As it is written.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            BinaryOperator::Or => "or",
            BinaryOperator::Xor => "xor",
            BinaryOperator::And => "and",
            BinaryOperator::Eq => "=",
            BinaryOperator::NullSafeEq => "<=>",
            BinaryOperator::NotEq => "<>",
            BinaryOperator::Lt => "<",
            BinaryOperator::LtEq => "<=",
            BinaryOperator::Gt => ">",
            BinaryOperator::GtEq => ">=",
            BinaryOperator::BitwiseOr => "|",
            BinaryOperator::BitwiseAnd => "&",
            BinaryOperator::BitwiseXor => "^",
            BinaryOperator::ShiftLeft => "<<",
            BinaryOperator::ShiftRight => ">>",
            BinaryOperator::Plus => "+",
            BinaryOperator::Minus => "-",
            BinaryOperator::Multiply => "*",
            BinaryOperator::Divide => "/",
            BinaryOperator::Modulo => "%",
            BinaryOperator::IntegerDivide => "div",
            BinaryOperator::Assignment => ":=",
            BinaryOperator::Concat => "||",
            BinaryOperator::Arrow => "->",
            BinaryOperator::LongArrow => "->>",
        }
    }
}

/// A branch of `CASE`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CaseWhen {
    /// `WHEN`.
    pub condition: Expr,
    /// `THEN`.
    pub result: Expr,
}

/// A side of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrimSide {
    Both,
    Leading,
    Trailing,
}

/// How `MATCH` searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SearchMode {
    /// `IN NATURAL LANGUAGE MODE`
    NaturalLanguage,
    /// `IN NATURAL LANGUAGE MODE WITH QUERY EXPANSION`
    NaturalLanguageWithExpansion,
    /// `IN BOOLEAN MODE`
    Boolean,
    /// `WITH QUERY EXPANSION`
    WithExpansion,
}

/// A call of a function.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Function {
    /// The database, for a function that belongs to one.
    pub schema: Option<String>,
    /// The name, as written.
    pub name: String,
    /// `DISTINCT` before the arguments.
    pub distinct: bool,
    /// In the parentheses.
    pub arguments: Arguments,
    /// `ORDER BY` after the arguments.
    pub order_by: Vec<OrderByExpr>,
    pub separator: Option<String>,
    pub returning: Option<CastType>,
    /// `RESPECT NULLS`, `IGNORE NULLS`.
    pub null_treatment: Option<NullTreatment>,
    pub over: Option<Box<Window>>,
}

/// The arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Arguments {
    /// `*`
    Wildcard,
    /// Expressions; none for `CURRENT_TIMESTAMP` without parentheses.
    List(Vec<Expr>),
}

/// How a window function handles NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NullTreatment {
    RespectNulls,
    IgnoreNulls,
}

/// A key of an order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OrderByExpr {
    /// The key.
    pub expr: Expr,
    /// Whether `ASC` or `DESC` is written.
    pub ascending: Option<bool>,
}

/// What follows `OVER`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Window {
    /// A window of the `WINDOW` clause.
    Named(String),
    /// `(…)`
    Spec(WindowSpec),
}

/// `(name PARTITION BY … ORDER BY … ROWS …)`
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WindowSpec {
    /// The window that this one refines.
    pub name: Option<String>,
    pub partition_by: Vec<Expr>,
    pub order_by: Vec<OrderByExpr>,
    /// The frame, if one is written.
    pub frame: Option<WindowFrame>,
}

/// `ROWS BETWEEN … AND …`
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WindowFrame {
    /// The unit of the bounds.
    pub units: WindowFrameUnits,
    pub start: WindowFrameBound,
    /// The second one, if `BETWEEN` is written.
    pub end: Option<WindowFrameBound>,
}

/// The unit of a frame's bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WindowFrameUnits {
    Rows,
    Range,
    Groups,
}

/// An end of a frame.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum WindowFrameBound {
    CurrentRow,
    /// `n PRECEDING`; `None`: `UNBOUNDED PRECEDING`.
    Preceding(Option<Box<Expr>>),
    /// `n FOLLOWING`; `None`: `UNBOUNDED FOLLOWING`.
    Following(Option<Box<Expr>>),
}
