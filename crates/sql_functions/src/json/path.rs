//! MySQL's path language.
//!
//! ```text
//!   path   $ leg*
//!   leg    .name  ."name"  .*  [3]  [last]  [last-2]  [1 to last]  [*]  **
//! ```
//!
//! For cells and ranges, but not for `[*]`, a value that is not an array counts as an array of
//! itself. `**` is everything below, including the value itself; it cannot be last.

use std::ops::RangeInclusive;

use firn_sql_types::JsonValue;
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::json::MAX_DEPTH;

/// A cell of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    /// Distance from its end of the array.
    pub(super) index: u32,
    /// Whether that is the far end.
    pub(super) from_last: bool,
}

impl Cell {
    /// The position in an array of some length: `None` before the first; it may be at or after the
    /// end.
    pub(super) fn position(self, length: usize) -> Option<usize> {
        let index = self.index as usize;
        if self.from_last { length.checked_sub(index + 1) } else { Some(index) }
    }
}

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Leg {
    Member(Box<str>),
    AnyMember,
    Cell(Cell),
    Range(Cell, Cell),
    AnyCell,
    Ellipsis,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path(pub(super) Vec<Leg>);

fn invalid(position: usize) -> SqlError {
    let message =
        format!("Invalid JSON path expression. The error is around character position {position}.");
    SqlError::new(3143, message)
}

impl Path {
    /// Reads a path. Error 3143 if it is invalid.
    pub fn parse(text: &str) -> Result<Path> {
        let mut parser = Parser { text, at: 0 };
        parser.skip_space();
        if !parser.take('$') {
            return Err(invalid(parser.at.max(1)));
        }
        let mut legs = Vec::new();
        loop {
            parser.skip_space();
            if parser.peek().is_none() {
                break;
            }
            legs.push(parser.leg().ok_or_else(|| invalid(parser.at.min(text.len())))?);
            if legs.len() > MAX_DEPTH {
                return Err(SqlError::new(3157, "The JSON document exceeds the maximum depth."));
            }
        }
        if legs.last() == Some(&Leg::Ellipsis) {
            return Err(invalid(text.len()));
        }
        Ok(Path(legs))
    }

    /// Whether the path may select several values.
    pub(super) fn is_multiple(&self) -> bool {
        self.0.iter().any(|leg| !matches!(leg, Leg::Member(_) | Leg::Cell(_)))
    }

    /// The values that the path selects, each once, in document order.
    pub fn find<'a>(&self, document: &'a JsonValue) -> Vec<&'a JsonValue> {
        let mut parts = self.0.split(|leg| *leg == Leg::Ellipsis);
        let mut found = Vec::new();
        seek(document, parts.next().unwrap_or_default(), &mut found);
        for part in parts {
            // What lies below several values is looked at once.
            let (mut seen, mut below) = (Seen::default(), Vec::new());
            found.into_iter().for_each(|value| seek_below(value, part, &mut seen, &mut below));
            let mut is_new = Seen::default();
            below.retain(|value| is_new.insert(std::ptr::from_ref::<JsonValue>(value)));
            found = below;
        }
        found
    }

    /// The first value that the path selects.
    pub fn find_first<'a>(&self, document: &'a JsonValue) -> Option<&'a JsonValue> {
        self.find(document).into_iter().next()
    }

    /// The value that a path without wildcards selects, for changes.
    pub(super) fn find_mut<'a>(
        legs: &[Leg],
        document: &'a mut JsonValue,
    ) -> Option<&'a mut JsonValue> {
        let mut value = document;
        for leg in legs {
            value = match (leg, value) {
                (Leg::Member(name), JsonValue::Object(object)) => object.get_mut(name)?,
                (Leg::Cell(cell), JsonValue::Array(items)) => {
                    let at = cell.position(items.len())?;
                    items.get_mut(at)?
                }
                (Leg::Cell(cell), other) if cell.position(1) == Some(0) => other,
                _ => return None,
            };
        }
        Some(value)
    }
}

/// The positions of a range in an array of some length.
fn range(from: Cell, to: Cell, length: usize) -> RangeInclusive<usize> {
    let start = from.position(length).unwrap_or(0);
    match (to.position(length), length.checked_sub(1)) {
        (Some(end), Some(last)) => start..=end.min(last),
        // Nothing.
        _ => RangeInclusive::new(1, 0),
    }
}

/// Legs without an ellipsis.
fn seek<'a>(value: &'a JsonValue, legs: &[Leg], found: &mut Vec<&'a JsonValue>) {
    let Some((leg, rest)) = legs.split_first() else { return found.push(value) };
    match (leg, value) {
        (Leg::Member(name), JsonValue::Object(object)) => {
            if let Some(member) = object.get(name) {
                seek(member, rest, found);
            }
        }
        (Leg::AnyMember, JsonValue::Object(object)) => {
            object.values().for_each(|member| seek(member, rest, found));
        }
        (Leg::Cell(cell), JsonValue::Array(items)) => {
            if let Some(item) = cell.position(items.len()).and_then(|at| items.get(at)) {
                seek(item, rest, found);
            }
        }
        (Leg::Cell(cell), _) if cell.position(1) == Some(0) => seek(value, rest, found),
        (Leg::Range(from, to), JsonValue::Array(items)) => {
            let items = items.get(range(*from, *to, items.len())).unwrap_or_default();
            items.iter().for_each(|item| seek(item, rest, found));
        }
        (Leg::Range(from, to), _) if range(*from, *to, 1).contains(&0) => seek(value, rest, found),
        (Leg::AnyCell, JsonValue::Array(items)) => {
            items.iter().for_each(|item| seek(item, rest, found));
        }
        _ => (),
    }
}

/// Values, by where they are.
pub(super) type Seen = rustc_hash::FxHashSet<*const JsonValue>;

/// Finds what the legs select in the value and in all below it that has not been seen yet.
fn seek_below<'a>(
    value: &'a JsonValue,
    legs: &[Leg],
    seen: &mut Seen,
    found: &mut Vec<&'a JsonValue>,
) {
    if !seen.insert(value) {
        return;
    }
    seek(value, legs, found);
    match value {
        JsonValue::Array(items) => {
            items.iter().for_each(|item| seek_below(item, legs, seen, found));
        }
        JsonValue::Object(object) => {
            object.values().for_each(|member| seek_below(member, legs, seen, found));
        }
        _ => (),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let taken = self.peek() == Some(wanted);
        if taken {
            self.at += wanted.len_utf8();
        }
        taken
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|c| c.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn leg(&mut self) -> Option<Leg> {
        match self.peek()? {
            '.' => {
                self.at += 1;
                self.skip_space();
                self.member()
            }
            '[' => {
                self.at += 1;
                self.skip_space();
                let leg = self.cells()?;
                self.skip_space();
                self.take(']').then_some(leg)
            }
            '*' => {
                self.at += 1;
                // Three stars in a row are not a leg.
                let taken = self.take('*') && self.peek() != Some('*');
                taken.then_some(Leg::Ellipsis)
            }
            _ => None,
        }
    }

    fn member(&mut self) -> Option<Leg> {
        match self.peek()? {
            '*' => {
                self.at += 1;
                Some(Leg::AnyMember)
            }
            '"' => self.quoted_name(),
            _ => {
                let start = self.at;
                while let Some(c) = self.peek().filter(|&c| is_name_character(c)) {
                    self.at += c.len_utf8();
                }
                let name = &self.text[start..self.at];
                let good = name.chars().next().is_some_and(|first| !first.is_ascii_digit());
                good.then(|| Leg::Member(name.into()))
            }
        }
    }

    fn quoted_name(&mut self) -> Option<Leg> {
        let start = self.at;
        self.at += 1;
        loop {
            let c = self.peek()?;
            self.at += c.len_utf8();
            match c {
                '\\' => self.at += self.peek()?.len_utf8(),
                '"' => break,
                _ => (),
            }
        }
        match JsonValue::parse(&self.text[start..self.at]).ok()? {
            JsonValue::String(name) => Some(Leg::Member(name)),
            _ => None,
        }
    }

    fn cells(&mut self) -> Option<Leg> {
        if self.take('*') {
            return Some(Leg::AnyCell);
        }
        let from = self.cell()?;
        let behind = self.at;
        self.skip_space();
        let rest = &self.text[self.at..];
        if behind == self.at || !rest.starts_with("to") {
            return Some(Leg::Cell(from));
        }
        self.at += "to".len();
        if !self.peek()?.is_ascii_whitespace() {
            return None;
        }
        self.skip_space();
        let to = self.cell()?;
        let comparable = from.from_last == to.from_last;
        let backwards = if from.from_last { from.index < to.index } else { from.index > to.index };
        (!comparable || !backwards).then_some(Leg::Range(from, to))
    }

    fn cell(&mut self) -> Option<Cell> {
        if !self.text[self.at..].starts_with("last") {
            return Some(Cell { index: self.number()?, from_last: false });
        }
        self.at += "last".len();
        let behind = self.at;
        self.skip_space();
        if !self.take('-') {
            self.at = behind;
            return Some(Cell { index: 0, from_last: true });
        }
        self.skip_space();
        Some(Cell { index: self.number()?, from_last: true })
    }

    fn number(&mut self) -> Option<u32> {
        let digits = self.text[self.at..].bytes().take_while(u8::is_ascii_digit).count();
        let number = self.text[self.at..self.at + digits].parse().ok()?;
        self.at += digits;
        Some(number)
    }
}

fn is_name_character(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$')
}

/// Appends the leg of a member as `JSON_SEARCH()` prints it.
pub(super) fn write_member(name: &str, out: &mut String) {
    out.push('.');
    let plain = name.chars().all(is_name_character)
        && name.chars().next().is_some_and(|first| !first.is_ascii_digit());
    if plain {
        out.push_str(name);
    } else {
        out.push_str(&JsonValue::string(name).to_text());
    }
}
