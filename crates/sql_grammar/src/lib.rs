//! MySQL's statement grammar: text to [`ast::Statement`].
//!
//! ```text
//!   bytes ──lexer──► tokens ──parser──► Statement
//!     └──normalise──► key of the plan cache + literals          └──render──► MySQL's text
//! ```
//!
//! Each meaning has one node: special forms become plain ones where MySQL gives them the same
//! meaning. Forms that are not in the tables below appear in the tree under the names of [`ast`].
//!
//! # Values
//!
//! | text | node |
//! |---|---|
//! | `12`, `1.5`, `1e3` | `Value::Number` with the text as written, never a sign |
//! | `'a'`, `"a"`, `'a' 'b'` | `Value::Text`, unescaped and joined; `\%` and `\_` keep their backslash |
//! | `x'4A'`, `0x4A` | `Value::Hexadecimal("4A")`, an even number of capital digits |
//! | `b'01'`, `0b01` | `Value::Bits("01")`, binary digits |
//! | `_latin1'a'`, `N'a'` | `Expr::Introduced` with the character set in small letters (`_utf8mb3` for `N`) |
//! | `DATE '…'`, `{d '…'}` | `Expr::TypedString` |
//! | `?` | `Value::Parameter`, counted from 0 in the text's order |
//! | a long `'a'` | `Value::LongText` if [`parse_apart`] holds it apart |
//!
//! # Names
//!
//! | text | node |
//! |---|---|
//! | `@a` | `Expr::UserVariable` |
//! | `@@x`, `@@global.x` | `Expr::SystemVariable`, in small letters |
//! | `TIMESTAMPDIFF(DAY, …)` | the unit is an `Expr::Unit` |
//! | `SELECT a + 1` | an item that is no column and has no alias is `SelectItem::NamedAfterText`: the item's text, or what a string says |
//!
//! # Operators
//!
//! `||` is `Or`, under `PIPES_AS_CONCAT` `Concat`; `MOD` is `Modulo`; `REGEXP` and `RLIKE` are
//! `Regexp`; `SOME` is `ANY`. `NOT EXISTS` is `Not` over `Exists`. `a SOUNDS LIKE b` is `soundex(a)
//! = soundex(b)`. Parentheses appear only in the shape of the tree. More than 16 operands of `AND`
//! or `OR` make a balanced tree. `(a, b)` and `ROW(a, b)` are `Tuple`.
//!
//! # Functions
//!
//! | text | node |
//! |---|---|
//! | `CURRENT_TIMESTAMP` | the function without arguments |
//! | `CAST(x AS t)`, `CONVERT(x, t)`, `BINARY x` | `Cast` |
//! | `CONVERT(x USING c)`, `CHAR(… USING c)` | `Convert` |
//! | `CAST(x AT TIME ZONE z AS DATETIME)` | `Cast` over `AtTimeZone` |
//! | `SUBSTRING(x FROM y FOR z)` | the function with three arguments |
//! | `POSITION(a IN b)` | `locate(a, b)` |
//! | `DATE_ADD`, `ADDDATE`, `TIMESTAMPADD`, `DATE_SUB`, `SUBDATE` | `date_add` or `date_sub` of a date and an `Interval` |
//! | `GET_FORMAT(DATE, x)` | the function with a string for the word |
//! | `VALUES(c)`, `DEFAULT(c)` | functions of these names over a column |
//!
//! # Queries
//!
//! `FROM DUAL` means no `FROM`. `JOIN`, `INNER JOIN`, `CROSS JOIN` and commas inside parentheses
//! are `Inner`, with or without a constraint. `LIMIT a, b` is `LIMIT b OFFSET a`. Each table of
//! `FOR UPDATE OF a, b` makes a lock clause; `LOCK IN SHARE MODE` is `Share`. The types of
//! `JSON_TABLE`'s columns are texts: [`parse_column_type`].

pub mod ast;
mod keywords;
mod lexer;
mod literal_rows;
mod node_builders;
mod normalise;
mod parser;
mod placeholders;
mod render;
mod split;
#[cfg(test)]
mod tests;
mod variable_hints;

pub use literal_rows::{LiteralRows, literal_rows};
pub use normalise::{Literal, LiteralKind, LiteralValue, MAX_LITERALS, Normalised, normalise};
pub use placeholders::{Placeholders, placeholders};
pub use render::{render, render_query, render_unqualified};
pub use split::{Split, split};
pub use variable_hints::{HintedValue, VariableHint, variable_hints};

use firn_base::memory;

use ast::{ColumnType, Expr, Statement};
use firn_sql_types::ByteString;
use firn_sql_types::error::{ErrorKind, Result, SqlError};
use firn_sql_types::watch::Watch;
use parser::{Parser, whole_column_type, whole_expression, whole_statement};

/// Flags of `sql_mode` that change the meaning of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Mode {
    /// `ANSI_QUOTES`: double quotes enclose names.
    pub ansi_quotes: bool,
    /// `PIPES_AS_CONCAT`: `||` joins strings.
    pub pipes_as_concat: bool,
    /// `NO_BACKSLASH_ESCAPES`: a backslash in a string is an ordinary character.
    pub no_backslash_escapes: bool,
    /// `HIGH_NOT_PRECEDENCE`: `NOT` binds as `!` does.
    pub high_not_precedence: bool,
    /// `IGNORE_SPACE`: blanks may separate a function's name from its parenthesis. Firn always
    /// accepts them.
    pub ignore_space: bool,
}

/// A statement and further properties of its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    pub statement: Statement,
    /// How many `?` it has.
    pub parameter_count: u32,
    /// Whether the text of a parameter is part of a column's name anywhere in the statement.
    pub names_show_parameters: bool,
    /// Long string literals that are not in the tree; always empty except from [`parse_apart`].
    pub long_texts: LongTexts,
}

/// The long string literals of a statement, where the tree has [`ast::Value::LongText`]s.
pub type LongTexts = Vec<ByteString>;

/// Shorter literals are in the tree.
pub const LONG_TEXT_BYTES: usize = 64 << 10;

/// Parses a text of one statement; a semicolon may end it.
///
/// # Errors
/// 1064 with the text from the error on, if it is not a MySQL statement; 1065 if there is none;
/// 1235 for a few forms that have no place in the tree; 1436 if it nests too deeply.
pub fn parse(text: &str, mode: Mode) -> Result<Parsed> {
    parse_watched(text, mode, &Watch::default())
}

/// As [`parse`], for a statement that may be cancelled while it is parsed.
///
/// # Errors
/// As [`parse`]; 1317 or 3024 if the statement must end.
pub fn parse_watched(text: &str, mode: Mode, watch: &Watch<'_>) -> Result<Parsed> {
    let _promise = memory::ask(tree_bytes(text, mode, usize::MAX))?;
    parsed(parser_of(text, mode, watch)?)
}

/// As [`parse_watched`], but for statements that are planned: their long string literals are stored
/// apart from the tree, and the bound statement shares their bytes.
///
/// # Errors
/// As [`parse_watched`].
pub fn parse_apart(text: &str, mode: Mode, watch: &Watch<'_>) -> Result<Parsed> {
    if text.len() < LONG_TEXT_BYTES {
        return parse_watched(text, mode, watch);
    }
    let promise = memory::ask(tree_bytes(text, mode, LONG_TEXT_BYTES))?;
    let apart = parsed(parser_of(text, mode, watch)?.with_long_texts_apart())?;
    drop(promise);
    match apart.long_texts.is_empty() || apart.statement.is_planned() {
        true => Ok(apart),
        false => {
            drop(apart);
            parse_watched(text, mode, watch)
        }
    }
}

/// As [`parse_apart`], with `literals` of the text, as [`normalise`] lifted them out of it, as the
/// statement's parameters. The text stays whole: names and errors show the literals.
///
/// Where the grammar takes a literal and no parameter, no literal is lifted: then
/// [`Parsed::parameter_count`] is 0.
///
/// # Errors
/// As [`parse_apart`], as if no literal were lifted.
pub fn parse_lifted(
    text: &str,
    mode: Mode,
    literals: &[Literal],
    watch: &Watch<'_>,
) -> Result<Parsed> {
    if literals.is_empty() {
        return parse_apart(text, mode, watch);
    }
    let promise = memory::ask(tree_bytes(text, mode, LONG_TEXT_BYTES))?;
    let parser = parser_of(text, mode, watch)?.with_long_texts_apart().with_parameters(literals);
    match parsed(parser) {
        Err(error) if error.kind == ErrorKind::Statement => {
            drop(promise);
            parse_apart(text, mode, watch)
        }
        parsed => parsed,
    }
}

fn parsed(mut parser: Parser<'_>) -> Result<Parsed> {
    let statement = whole_statement(&mut parser)?;
    Ok(Parsed {
        statement,
        parameter_count: parser.parameter_count(),
        names_show_parameters: parser.names_show_parameters(),
        long_texts: parser.take_long_texts(),
    })
}

/// Approximate memory of the tree of a long text, not counting literals of this many bytes.
fn tree_bytes(text: &str, mode: Mode, long_bytes: usize) -> usize {
    /// An expression's node takes more, but not every token makes one.
    const TOKEN_BYTES: usize = 100;
    if text.len() < memory::UNASKED_BYTES / TOKEN_BYTES {
        return 0;
    }
    let mut lexer = lexer::Lexer::new(text, mode);
    let mut size_bytes = 0;
    loop {
        let token = lexer.next();
        let length = (token.end - token.start) as usize;
        match token.kind {
            lexer::Kind::End => return size_bytes,
            lexer::Kind::Text if length >= long_bytes => size_bytes += TOKEN_BYTES,
            _ => size_bytes += TOKEN_BYTES + length,
        }
    }
}

/// Parses a single expression: a default, a check, or a generated column from the catalog.
///
/// # Errors
/// 1064 if it is none.
pub fn parse_expression(text: &str, mode: Mode) -> Result<Expr> {
    whole_expression(&mut parser_of(text, mode, &Watch::default())?)
}

/// Parses a single column type.
///
/// # Errors
/// 1064 if it is none.
pub fn parse_column_type(text: &str, mode: Mode) -> Result<ColumnType> {
    whole_column_type(&mut parser_of(text, mode, &Watch::default())?)
}

/// The parser counts bytes in 32 bits; no MySQL packet is longer.
fn parser_of<'a>(text: &'a str, mode: Mode, watch: &'a Watch<'a>) -> Result<Parser<'a>> {
    if u32::try_from(text.len()).is_err() {
        return Err(SqlError::new(1153, "Got a packet bigger than 'max_allowed_packet' bytes"));
    }
    Parser::new(text, mode, watch)
}
