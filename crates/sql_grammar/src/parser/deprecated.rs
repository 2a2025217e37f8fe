//! What of a column's type is deprecated, by the words with which it was written.

use std::ops::Range;

use super::super::ast::{ColumnType, Deprecated, TextAttributes};
use super::super::lexer::Kind;
use super::Parser;

/// What is deprecated of a type that was written with the tokens of a range.
pub(super) fn of_type(
    parser: &Parser<'_>,
    tokens: Range<usize>,
    column_type: &ColumnType,
) -> Vec<Deprecated> {
    let words = Words { parser, tokens };
    let mut found = Vec::new();
    if words.has("ZEROFILL") {
        found.push(Deprecated::Zerofill);
    }
    let is_unsigned = words.has("UNSIGNED");
    match column_type {
        ColumnType::Integer(_, Some(_), _) if words.have_parentheses() => {
            found.push(Deprecated::DisplayWidth);
        }
        ColumnType::Float(digits, _) | ColumnType::Double(digits, _) => {
            found.extend(digits.map(|_| Deprecated::FloatingDigits));
            found.extend(is_unsigned.then_some(Deprecated::UnsignedFraction));
        }
        ColumnType::Decimal(..) => {
            found.extend(is_unsigned.then_some(Deprecated::UnsignedFraction))
        }
        ColumnType::Year => {
            found.extend(words.have_parentheses().then_some(Deprecated::YearWidth));
            found.extend(is_unsigned.then_some(Deprecated::UnsignedYear));
        }
        ColumnType::Char(_, text)
        | ColumnType::Varchar(_, text)
        | ColumnType::Text(_, _, text)
        | ColumnType::Enum(_, text)
        | ColumnType::Set(_, text) => of_text(&words, text, &mut found),
        _ => {}
    }
    found
}

fn of_text(words: &Words<'_, '_>, text: &TextAttributes, found: &mut Vec<Deprecated>) {
    let charset = text.charset.as_deref().unwrap_or_default();
    let is_national = ["NATIONAL", "NCHAR", "NVARCHAR"].iter().any(|word| words.has(word));
    if is_national {
        found.push(Deprecated::National);
    } else if charset.eq_ignore_ascii_case("utf8") {
        found.push(Deprecated::Utf8);
    } else if charset.eq_ignore_ascii_case("utf8mb3") {
        found.push(Deprecated::Utf8mb3);
    }
    for attribute in ["ASCII", "UNICODE"] {
        found.extend(words.has(attribute).then_some(Deprecated::CharsetAttribute(attribute)));
    }
    found.extend(text.binary.then_some(Deprecated::BinaryAttribute));
    let collation = text.collation.as_deref().unwrap_or_default().to_ascii_lowercase();
    let rest = collation.strip_prefix("utf8mb3_").or_else(|| collation.strip_prefix("utf8_"));
    found.extend(rest.map(|rest| Deprecated::Utf8mb3Collation(format!("utf8mb3_{rest}"))));
}

/// The words of a type.
struct Words<'p, 'a> {
    parser: &'p Parser<'a>,
    tokens: Range<usize>,
}

impl Words<'_, '_> {
    fn has(&self, word: &str) -> bool {
        self.tokens.clone().any(|at| {
            let token = self.parser.tokens[at];
            token.kind == Kind::Word && self.parser.text_of(token).eq_ignore_ascii_case(word)
        })
    }

    fn have_parentheses(&self) -> bool {
        self.tokens.clone().any(|at| self.parser.tokens[at].kind == Kind::LeftParen)
    }
}
