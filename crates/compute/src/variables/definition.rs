//! The definition of a system variable: its name, scope, kind, default, and accepted values.

use std::fmt;
use std::sync::Arc;

use firn_sql::error::{Result, SqlError};

/// Where a variable has values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// One value for all sessions.
    Global,
    /// One for each session.
    Session,
    /// One for each session, and one with which new sessions begin.
    Both,
}

/// The values that a variable accepts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// `ON` and `OFF`.
    Switch,
    /// A whole number between two bounds; a value outside is moved to the nearer bound, with a
    /// warning.
    Number {
        least: i64,
        greatest: u64,
    },
    Real {
        least: f64,
        greatest: f64,
    },
    /// One of several words; a number is an index into the list.
    Word(&'static [&'static str]),
    Text,
    TextOrNull,
}

/// A value of a variable.
#[derive(Debug, Clone, PartialEq)]
pub enum Setting {
    Null,
    /// A whole number; for a switch, 0 or 1.
    Number(i64),
    /// A whole number beyond `i64`.
    Unsigned(u64),
    Real(f64),
    Text(Arc<str>),
}

impl Setting {
    #[must_use]
    pub fn text(text: &str) -> Setting {
        Setting::Text(text.into())
    }

    /// Whether a switch is on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        matches!(self, Setting::Number(number) if *number != 0)
    }

    /// A whole number; 0 for other settings.
    #[must_use]
    pub fn number(&self) -> u64 {
        match self {
            Setting::Number(number) => u64::try_from(*number).unwrap_or(0),
            Setting::Unsigned(number) => *number,
            _ => 0,
        }
    }

    /// The text; empty for other settings.
    #[must_use]
    pub fn as_text(&self) -> &str {
        match self {
            Setting::Text(text) => text,
            _ => "",
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Null => f.write_str("NULL"),
            Setting::Number(number) => number.fmt(f),
            Setting::Unsigned(number) => number.fmt(f),
            Setting::Real(number) => number.fmt(f),
            Setting::Text(text) => f.write_str(text),
        }
    }
}

/// A system variable.
#[derive(Debug)]
pub struct Definition {
    /// Its name, in lower case.
    pub name: &'static str,
    /// Where it has values.
    pub scope: Scope,
    /// The values that it accepts.
    pub kind: Kind,
    /// Its initial value, in the form that `SET` takes.
    pub default: &'static str,
    /// Whether it can only be read.
    pub read_only: bool,
}

impl Definition {
    /// The value at the start.
    #[must_use]
    pub fn initial(&self) -> Setting {
        match self.kind {
            Kind::TextOrNull if self.default == "NULL" => Setting::Null,
            Kind::Number { .. } => match self.default.parse::<i64>() {
                Ok(number) => Setting::Number(number),
                Err(_) => Setting::Unsigned(self.default.parse().unwrap_or(0)),
            },
            Kind::Real { .. } => Setting::Real(self.default.parse().unwrap_or(0.0)),
            Kind::Switch => Setting::Number(i64::from(self.default == "ON")),
            Kind::Word(_) | Kind::Text | Kind::TextOrNull => Setting::text(self.default),
        }
    }

    /// The value in the variable's form, and whether it was moved to a bound.
    ///
    /// # Errors
    /// 1231 for a value that it does not accept, 1232 for the wrong kind.
    pub fn check(&self, given: &Setting) -> Result<(Setting, bool)> {
        match (self.kind, given) {
            (Kind::Switch, _) => self.check_switch(given).map(|on| (on, false)),
            (Kind::Number { least, greatest }, _) => self.check_number(given, least, greatest),
            (Kind::Real { least, greatest }, _) => self.check_real(given, least, greatest),
            (Kind::Word(words), _) => self.check_word(given, words).map(|word| (word, false)),
            (Kind::TextOrNull, Setting::Null) => Ok((Setting::Null, false)),
            (Kind::Text | Kind::TextOrNull, Setting::Text(_)) => Ok((given.clone(), false)),
            (Kind::Text, Setting::Null) => Err(self.wrong_value(given)),
            (Kind::Text | Kind::TextOrNull, _) => Err(self.wrong_type()),
        }
    }

    fn check_switch(&self, given: &Setting) -> Result<Setting> {
        let on = match given {
            Setting::Number(number @ (0 | 1)) => *number == 1,
            Setting::Text(text) if is_one_of(text, &["on", "true"]) => true,
            Setting::Text(text) if is_one_of(text, &["off", "false"]) => false,
            _ => return Err(self.wrong_value(given)),
        };
        Ok(Setting::Number(i64::from(on)))
    }

    fn check_number(&self, given: &Setting, least: i64, greatest: u64) -> Result<(Setting, bool)> {
        let number = match given {
            Setting::Number(number) => i128::from(*number),
            Setting::Unsigned(number) => i128::from(*number),
            Setting::Null => return Err(self.wrong_value(given)),
            Setting::Real(_) | Setting::Text(_) => return Err(self.wrong_type()),
        };
        let kept = number.clamp(i128::from(least), i128::from(greatest));
        let setting = match i64::try_from(kept) {
            Ok(kept) => Setting::Number(kept),
            Err(_) => Setting::Unsigned(greatest),
        };
        Ok((setting, kept != number))
    }

    fn check_real(&self, given: &Setting, least: f64, greatest: f64) -> Result<(Setting, bool)> {
        let number = match given {
            Setting::Number(number) => *number as f64,
            Setting::Unsigned(number) => *number as f64,
            Setting::Real(number) => *number,
            Setting::Null | Setting::Text(_) => return Err(self.wrong_type()),
        };
        let kept = number.clamp(least, greatest);
        Ok((Setting::Real(kept), kept != number))
    }

    fn check_word(&self, given: &Setting, words: &[&str]) -> Result<Setting> {
        let word = match given {
            Setting::Text(text) => words.iter().find(|word| word.eq_ignore_ascii_case(text)),
            Setting::Number(place) => usize::try_from(*place).ok().and_then(|at| words.get(at)),
            _ => None,
        };
        word.map(|word| Setting::text(word)).ok_or_else(|| self.wrong_value(given))
    }

    /// How `SHOW VARIABLES` shows a value.
    #[must_use]
    pub fn shown(&self, value: &Setting) -> String {
        match (self.kind, value) {
            (Kind::Switch, value) => if value.is_on() { "ON" } else { "OFF" }.to_owned(),
            (_, Setting::Null) => String::new(),
            (_, Setting::Number(number)) => number.to_string(),
            (_, Setting::Unsigned(number)) => number.to_string(),
            (_, Setting::Real(number)) => format!("{number:.6}"),
            (_, Setting::Text(text)) => text.to_string(),
        }
    }

    fn wrong_value(&self, given: &Setting) -> SqlError {
        let name = self.name;
        SqlError::new(1231, format!("Variable '{name}' can't be set to the value of '{given}'"))
    }

    fn wrong_type(&self) -> SqlError {
        SqlError::new(1232, format!("Incorrect argument type to variable '{}'", self.name))
    }
}

fn is_one_of(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case(text))
}
