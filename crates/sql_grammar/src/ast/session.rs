//! A session's own state: variables, prepared statements, what a statement would do, diagnostics.

use super::Expr;
use super::Statement;

/// The scope of a system variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VariableScope {
    /// No word, `SESSION` or `LOCAL`.
    Session,
    /// `GLOBAL`.
    Global,
    /// `PERSIST`: global, and kept over restarts.
    Persist,
    /// `PERSIST_ONLY`: only kept for the next start.
    PersistOnly,
}

/// An assignment of `SET`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SetItem {
    /// `@name = …`.
    UserVariable {
        /// The name, without `@`.
        name: String,
        /// Its value.
        value: Expr,
    },
    /// A system variable.
    SystemVariable {
        /// Its scope.
        scope: VariableScope,
        /// Its name; a structured variable's is `instance.name`.
        name: String,
        /// Its value.
        value: SetValue,
    },
    /// `NAMES`.
    Names {
        /// The character set; none for `DEFAULT`.
        charset: Option<String>,
        /// `COLLATE`.
        collation: Option<String>,
    },
    /// `CHARACTER SET`: the character set; none for `DEFAULT`.
    CharacterSet(Option<String>),
}

/// What a system variable is set to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SetValue {
    /// The word `DEFAULT`.
    Default,
    /// A bare word that is no expression where it stands: `ON`, `ALL`, `BINARY`, `ROW`, `SYSTEM`.
    /// Any other bare word stands as an expression that is one identifier, and means its own text.
    Word(String),
    /// An expression.
    Value(Expr),
}

/// Where the text of `PREPARE` comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PrepareSource {
    /// A string.
    Text(String),
    /// A user variable.
    Variable(String),
}

/// The format of `EXPLAIN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ExplainFormat {
    /// Rows; what `explain_format` says unless said.
    #[default]
    Traditional,
    /// One JSON document.
    Json,
    /// A tree of iterators.
    Tree,
}

/// `EXPLAIN`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Explain {
    /// `ANALYZE`: it is executed and timed.
    pub analyze: bool,
    /// `FORMAT = …`; none if not said.
    pub format: Option<ExplainFormat>,
    /// `INTO @variable`.
    pub into: Option<String>,
    /// What.
    pub target: ExplainTarget,
}

/// What `EXPLAIN` explains.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ExplainTarget {
    /// A statement.
    Statement(Statement),
    /// What another connection runs.
    Connection(u64),
}

/// `GET DIAGNOSTICS`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GetDiagnostics {
    /// `STACKED` instead of `CURRENT`.
    pub stacked: bool,
    /// `CONDITION n`: whose items are read; none for the statement's own.
    pub condition: Option<Expr>,
    /// Pairs of user variable and item.
    pub items: Vec<(String, String)>,
}

/// `SIGNAL` and `RESIGNAL`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Signal {
    /// `SQLSTATE '…'`; `RESIGNAL` may go without.
    pub sqlstate: Option<String>,
    /// `SET`: items and their values.
    pub items: Vec<(String, Expr)>,
}
