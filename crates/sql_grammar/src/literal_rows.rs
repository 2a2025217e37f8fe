//! The rows of an `INSERT … VALUES` that consist only of literals, found without a syntax tree for
//! each.
//!
//! ```text
//!   INSERT INTO t (a, b) VALUES (1, 'x'), (-2, NULL), (3, 'y') ON DUPLICATE KEY UPDATE b = 0
//!   └────────── head ──────────┘└─────────── rows ───────────┘└──────────── tail ───────────┘
//! ```
//!
//! Head, one row of `?` and tail form a statement ([`LiteralRows::template`]) whose plan works for
//! any number of such rows. A literal has the same meaning there as in [`super::normalise`]. The
//! parser handles everything else: values that are more than a literal, adjacent strings that are
//! joined, rows of different lengths, `/*! … */`, and a single row.

use super::Mode;
use super::lexer::{Kind, Lexer, Token, unquote, unquoted};
use super::normalise::{LONGEST_NUMBER_IN_HEX, LiteralValue, MAX_DIGITS, hex};

/// The number of literals for which memory is kept between two texts.
const MOST_KEPT: usize = 1 << 16;

/// The kind of a literal in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowLiteral {
    Null,
    Integer,
    Decimal,
    Float,
    Text,
    /// `_binary'…'`: the token of the string.
    Binary,
    Hex,
}

/// A literal and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    kind: RowLiteral,
    start: u32,
    end: u32,
}

/// The result of [`literal_rows`]; the caller keeps and reuses it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct LiteralRows {
    head_end: usize,
    tail: std::ops::Range<usize>,
    columns: usize,
    literals: Vec<Place>,
    /// By column: whether its values include a hexadecimal literal that would be a number in a
    /// numeric column.
    hex_columns: Vec<bool>,
}

/// Finds the rows of an `INSERT` or `REPLACE`. False if there are not at least two rows of
/// literals; the content of `out` is then meaningless.
pub fn literal_rows(text: &str, mode: Mode, out: &mut LiteralRows) -> bool {
    out.literals.clear();
    out.hex_columns.clear();
    out.columns = 0;
    if u32::try_from(text.len()).is_err() {
        return false;
    }
    let pass = Pass { text, lexer: Lexer::new(text, mode), out };
    pass.run().is_some() && out.len() > 1
}

impl LiteralRows {
    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.literals.len().checked_div(self.columns).unwrap_or(0)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.literals.is_empty()
    }

    /// How many values a row has.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Whether a column has values that depend on its type: a short hexadecimal literal is a number
    /// in a numeric column.
    #[must_use]
    pub fn has_short_hex(&self, column: usize) -> bool {
        self.hex_columns.get(column).copied().unwrap_or(false)
    }

    /// Frees memory that a long text used.
    pub fn shrink(&mut self) {
        self.literals.clear();
        self.literals.shrink_to(MOST_KEPT);
    }

    /// The statement with one row of parameters.
    pub fn template(&self, text: &str, into: &mut String) {
        into.clear();
        into.push_str(&text[..self.head_end]);
        into.push_str(" (?");
        (1..self.columns).for_each(|_| into.push_str(",?"));
        into.push(')');
        into.push_str(&text[self.tail.clone()]);
    }

    /// A value, from the text in which the rows were found and under the same mode; `None` is NULL.
    #[must_use]
    #[inline]
    pub fn value<'t>(
        &self,
        text: &'t str,
        mode: Mode,
        row: usize,
        column: usize,
    ) -> Option<LiteralValue<'t>> {
        let literal = self.literals[row * self.columns + column];
        let written = &text[literal.start as usize..literal.end as usize];
        Some(match literal.kind {
            RowLiteral::Null => return None,
            RowLiteral::Integer => LiteralValue::Integer(written.parse().unwrap_or(0)),
            RowLiteral::Decimal => LiteralValue::Decimal(written),
            RowLiteral::Float => LiteralValue::Float(written.parse().unwrap_or(0.0)),
            RowLiteral::Text => LiteralValue::Text(unquoted(written, !mode.no_backslash_escapes)),
            RowLiteral::Binary => {
                LiteralValue::Bytes(unquote(written, !mode.no_backslash_escapes).into_bytes())
            }
            RowLiteral::Hex => LiteralValue::Bytes(hex(written)),
        })
    }
}

struct Pass<'t, 'o> {
    text: &'t str,
    lexer: Lexer<'t>,
    out: &'o mut LiteralRows,
}

impl Pass<'_, '_> {
    fn run(mut self) -> Option<()> {
        self.head()?;
        let mut end = self.row()?;
        self.out.columns = self.out.literals.len();
        let rest = loop {
            let token = self.lexer.next();
            if token.kind != Kind::Comma {
                break token;
            }
            let before = self.out.literals.len();
            end = self.row()?;
            (self.out.literals.len() - before == self.out.columns).then_some(())?;
        };
        self.tail(rest, end)
    }

    fn is_word(&self, token: Token, word: &str) -> bool {
        let written = &self.text[token.start as usize..token.end as usize];
        token.kind == Kind::Word && written.eq_ignore_ascii_case(word)
    }

    /// Up to `VALUES`.
    fn head(&mut self) -> Option<()> {
        let first = self.lexer.next();
        if !self.is_word(first, "INSERT") && !self.is_word(first, "REPLACE") {
            return None;
        }
        let mut depth = 0_usize;
        let values = loop {
            let token = self.lexer.next();
            match token.kind {
                Kind::LeftParen => depth += 1,
                Kind::RightParen => depth = depth.checked_sub(1)?,
                Kind::Word if depth == 0 => {
                    if self.is_word(token, "VALUES") || self.is_word(token, "VALUE") {
                        break token;
                    }
                    let others = ["SELECT", "SET", "TABLE", "WITH"];
                    if others.iter().any(|other| self.is_word(token, other)) {
                        return None;
                    }
                }
                Kind::Word | Kind::Quoted | Kind::Comma | Kind::Dot | Kind::Hint => {}
                _ => return None,
            }
        };
        self.out.head_end = values.end as usize;
        (!self.text[..self.out.head_end].contains("/*!")).then_some(())
    }

    /// One row; returns where it ends.
    fn row(&mut self) -> Option<usize> {
        if self.lexer.next().kind != Kind::LeftParen {
            return None;
        }
        let mut column = 0;
        loop {
            let token = self.lexer.next();
            let literal = self.literal(token)?;
            self.note_hex(literal, column);
            self.out.literals.push(literal);
            column += 1;
            let behind = self.lexer.next();
            match behind.kind {
                Kind::Comma => {}
                Kind::RightParen => return Some(behind.end as usize),
                _ => return None,
            }
        }
    }

    fn literal(&mut self, token: Token) -> Option<Place> {
        let (start, mut end) = (token.start, token.end);
        let digits = (end - start) as usize;
        let kind = match token.kind {
            Kind::Integer if digits <= MAX_DIGITS => RowLiteral::Integer,
            Kind::Decimal => RowLiteral::Decimal,
            Kind::Float => RowLiteral::Float,
            Kind::Text => RowLiteral::Text,
            Kind::Hex => RowLiteral::Hex,
            Kind::Minus => {
                let number = self.lexer.next();
                let kinds = [Kind::Integer, Kind::Decimal, Kind::Float];
                if number.start != end || !kinds.contains(&number.kind) {
                    return None;
                }
                return Some(Place { start, ..self.literal(number)? });
            }
            Kind::Word if self.is_word(token, "NULL") => RowLiteral::Null,
            Kind::Word if self.is_word(token, "_binary") => {
                let string = self.lexer.next();
                end = string.end;
                let place = Place { kind: RowLiteral::Binary, start: string.start, end };
                return (string.kind == Kind::Text).then_some(place);
            }
            _ => return None,
        };
        Some(Place { kind, start, end })
    }

    fn note_hex(&mut self, literal: Place, column: usize) {
        let length = (literal.end - literal.start) as usize;
        if literal.kind == RowLiteral::Hex && length <= LONGEST_NUMBER_IN_HEX {
            let columns = &mut self.out.hex_columns;
            columns.resize(columns.len().max(column + 1), false);
            columns[column] = true;
        }
    }

    fn tail(&mut self, rest: Token, rows_end: usize) -> Option<()> {
        self.out.tail = match rest.kind {
            Kind::End => self.text.len()..self.text.len(),
            Kind::Semicolon if self.lexer.next().kind == Kind::End => {
                self.text.len()..self.text.len()
            }
            Kind::Word => self.worded_tail(rows_end)?,
            _ => return None,
        };
        Some(())
    }

    /// `AS new ON DUPLICATE KEY UPDATE …`, as written.
    fn worded_tail(&mut self, rows_end: usize) -> Option<std::ops::Range<usize>> {
        let mut end = self.text.len();
        loop {
            let token = self.lexer.next();
            match token.kind {
                Kind::End => break,
                Kind::Semicolon => {
                    end = token.start as usize;
                    (self.lexer.next().kind == Kind::End).then_some(())?;
                    break;
                }
                Kind::Parameter | Kind::Invalid => return None,
                _ => {}
            }
        }
        (!self.text[rows_end..end].contains("/*!")).then_some(rows_end..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<(String, Vec<Vec<String>>)> {
        let (mut rows, mut template) = (LiteralRows::default(), String::new());
        if !literal_rows(text, Mode::default(), &mut rows) {
            return None;
        }
        rows.template(text, &mut template);
        let value = |row, column| match rows.value(text, Mode::default(), row, column) {
            None => "NULL".to_owned(),
            Some(value) => format!("{value:?}"),
        };
        let row = |row| (0..rows.columns()).map(|column| value(row, column)).collect();
        Some((template, (0..rows.len()).map(row).collect()))
    }

    #[test]
    fn rows_of_literals_are_found() {
        let text = "insert ignore into `a``b`.t (x, y) /* ( */ VALUES (1, 'it''s'), (-2,NULL),\n(0.50,\"\\n\");";
        let (template, rows) = found(text).unwrap();
        assert_eq!(template, "insert ignore into `a``b`.t (x, y) /* ( */ VALUES (?,?)");
        assert_eq!(rows[0], ["Integer(1)", "Text(\"it's\")"]);
        assert_eq!(rows[1], ["Integer(-2)", "NULL"]);
        assert_eq!(rows[2], ["Decimal(\"0.50\")", "Text(\"\\n\")"]);
    }

    #[test]
    fn what_stands_behind_the_rows_is_kept() {
        let text =
            "REPLACE t VALUE (1e3,_binary 'x'),(-1e-3,x'4A')  ON DUPLICATE KEY UPDATE b = 7 ; ";
        let (template, rows) = found(text).unwrap();
        assert_eq!(template, "REPLACE t VALUE (?,?)  ON DUPLICATE KEY UPDATE b = 7 ");
        assert_eq!(rows[0], ["Float(1000.0)", "Bytes([120])"]);
        assert_eq!(rows[1], ["Float(-0.001)", "Bytes([74])"]);
    }

    #[test]
    fn short_hexadecimal_literals_are_noted_by_column() {
        let mut rows = LiteralRows::default();
        let text = "INSERT t VALUES (1, 2, 0x4A), (1, x'00112233445566778899', 3)";
        assert!(literal_rows(text, Mode::default(), &mut rows));
        let noted: Vec<bool> = (0..3).map(|column| rows.has_short_hex(column)).collect();
        assert_eq!(noted, [false, false, true]);
    }

    #[test]
    fn everything_else_is_the_parsers() {
        for text in [
            "INSERT INTO t VALUES (1)",
            "INSERT INTO t VALUES (1), (2, 3)",
            "INSERT INTO t VALUES (1), (2 + 3)",
            "INSERT INTO t VALUES (1), (DEFAULT)",
            "INSERT INTO t VALUES (1), (- 2)",
            "INSERT INTO t VALUES (1), (--2)",
            "INSERT INTO t VALUES (), ()",
            "INSERT INTO t VALUES (1), ()",
            "INSERT INTO t VALUES ('a' 'b'), ('c')",
            "INSERT INTO t VALUES (?), (1)",
            "INSERT INTO t VALUES (1), (2), ",
            "INSERT INTO t VALUES (1), (2); SELECT 1",
            "INSERT INTO t VALUES (1), (2) ON DUPLICATE KEY UPDATE a = ?",
            "INSERT INTO t VALUES (1), (12345678901234567890)",
            "INSERT INTO t VALUES (_utf8mb4'a'), ('b')",
            "INSERT INTO t /*! VALUES (1), (2) */",
            "INSERT INTO t /*!99999 VALUES */ VALUES (1), (2)",
            "INSERT INTO t SET a = 1",
            "INSERT INTO t SELECT 1 UNION VALUES ROW(1), ROW(2)",
            "INSERT INTO t VALUES ROW(1), ROW(2)",
            "SELECT 1",
            "",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
