//! Session state: variables, prepared statements, explanations of statements, diagnostics.

use super::Expr;
use super::Statement;

/// The scope of a system variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VariableScope {
    /// No word, `SESSION` or `LOCAL`.
    Session,
    Global,
    /// `PERSIST`: global, and kept over restarts.
    Persist,
    /// `PERSIST_ONLY`: only stored for the next start.
    PersistOnly,
}

/// An assignment of `SET`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SetItem {
    /// `@name = …`.
    UserVariable {
        /// The name, without `@`.
        name: String,
        value: Expr,
    },
    SystemVariable {
        scope: VariableScope,
        /// Its name; a structured variable's is `instance.name`.
        name: String,
        value: SetValue,
    },
    Names {
        /// The character set; none for `DEFAULT`.
        charset: Option<String>,
        /// `COLLATE`.
        collation: Option<String>,
    },
    /// `CHARACTER SET`: the character set; none for `DEFAULT`.
    CharacterSet(Option<String>),
}

/// The new value of a system variable.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SetValue {
    /// The word `DEFAULT`.
    Default,
    /// A bare word that is not an expression in this place: `ON`, `ALL`, `BINARY`, `ROW`, `SYSTEM`.
    /// Any other bare word is an expression of one identifier, and means its own text.
    Word(String),
    Value(Expr),
}

/// The source of the text of `PREPARE`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PrepareSource {
    Text(String),
    /// A user variable.
    Variable(String),
}

/// The format of `EXPLAIN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ExplainFormat {
    /// Rows; the format of `explain_format` unless given.
    #[default]
    Traditional,
    /// One JSON document.
    Json,
    /// A tree of iterators.
    Tree,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Explain {
    /// `ANALYZE`: it is executed and timed.
    pub analyze: bool,
    /// `FORMAT = …`; none if not said.
    pub format: Option<ExplainFormat>,
    /// `INTO @variable`.
    pub into: Option<String>,
    pub target: ExplainTarget,
}

/// What `EXPLAIN` explains.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ExplainTarget {
    Statement(Statement),
    /// The running statement of another connection.
    Connection(u64),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GetDiagnostics {
    /// `STACKED` instead of `CURRENT`.
    pub stacked: bool,
    /// `CONDITION n`: the condition whose items are read; `None` for the statement's own.
    pub condition: Option<Expr>,
    /// Pairs of user variable and item.
    pub items: Vec<(String, String)>,
}

/// `SIGNAL` and `RESIGNAL`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Signal {
    /// `SQLSTATE '…'`; optional for `RESIGNAL`.
    pub sqlstate: Option<String>,
    /// `SET`: items and their values.
    pub items: Vec<(String, Expr)>,
}
