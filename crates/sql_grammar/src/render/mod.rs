//! Trees back to text, in MySQL's style: names in backquotes, parentheses around every operator.
//!
//! ```text
//!   a+b*2 > f(x)   ──►   ((`a` + (`b` * 2)) > f(`x`))
//! ```
//!
//! The rendered text parses back, under the default [`super::Mode`], to the same tree. Columns that
//! are named by their text get that name as an alias, so that a view keeps its columns' names.

mod expression;
mod query;

use super::Mode;
use super::ast::{Expr, Query, TableName};
use super::lexer::{Kind, Lexer};

/// An expression as text.
#[must_use]
pub fn render(expr: &Expr) -> String {
    let mut out = String::new();
    expression::expression(expr, &mut out);
    out
}

/// An expression over the columns of one table as text, without the table's name.
#[must_use]
pub fn render_unqualified(expr: &Expr) -> String {
    let text = render(expr);
    let mut lexer = Lexer::new(&text, Mode::default());
    let mut tokens = Vec::new();
    loop {
        let token = lexer.next();
        if token.kind == Kind::End {
            break;
        }
        tokens.push(token);
    }
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for pair in tokens.windows(2) {
        let [before, dot] = pair else { continue };
        if before.kind == Kind::Quoted && dot.kind == Kind::Dot {
            out.push_str(&text[copied..before.start as usize]);
            copied = dot.end as usize;
        }
    }
    out.push_str(&text[copied..]);
    out
}

/// A query as text.
#[must_use]
pub fn render_query(query: &Query) -> String {
    let mut out = String::new();
    query::query(query, &mut out);
    out
}

/// A name in backquotes.
fn name(name: &str, out: &mut String) {
    out.push('`');
    for c in name.chars() {
        if c == '`' {
            out.push('`');
        }
        out.push(c);
    }
    out.push('`');
}

/// The name of a table, optionally with its database's.
fn table_name(table: &TableName, out: &mut String) {
    if let Some(schema) = &table.schema {
        name(schema, out);
        out.push('.');
    }
    name(&table.name, out);
}

/// A string in quotes.
fn quoted(text: &str, out: &mut String) {
    out.push('\'');
    for c in text.chars() {
        match c {
            '\'' => out.push_str("''"),
            '\\' => out.push_str("\\\\"),
            '\0' => out.push_str("\\0"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\u{1a}' => out.push_str("\\Z"),
            c => out.push(c),
        }
    }
    out.push('\'');
}

/// Items with a separator between them.
fn separated<T>(items: &[T], between: &str, out: &mut String, mut f: impl FnMut(&T, &mut String)) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(between);
        }
        f(item, out);
    }
}
