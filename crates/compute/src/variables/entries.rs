//! Constructors for the entries of the lists of variables.

use super::{Definition, Kind, Scope};

/// A variable that can be set.
pub(super) const fn variable(
    name: &'static str,
    scope: Scope,
    kind: Kind,
    default: &'static str,
) -> Definition {
    Definition { name, scope, kind, default, read_only: false }
}

/// `ON` or `OFF`.
pub(super) const fn switch(name: &'static str, scope: Scope, default: &'static str) -> Definition {
    variable(name, scope, Kind::Switch, default)
}

/// A whole number between two.
pub(super) const fn number(
    name: &'static str,
    scope: Scope,
    least: i64,
    greatest: u64,
    default: &'static str,
) -> Definition {
    variable(name, scope, Kind::Number { least, greatest }, default)
}

/// A number between two.
pub(super) const fn real(
    name: &'static str,
    scope: Scope,
    least: f64,
    greatest: f64,
    default: &'static str,
) -> Definition {
    variable(name, scope, Kind::Real { least, greatest }, default)
}

/// One of several words.
pub(super) const fn words(
    name: &'static str,
    scope: Scope,
    words: &'static [&'static str],
    default: &'static str,
) -> Definition {
    variable(name, scope, Kind::Word(words), default)
}

/// Any text.
pub(super) const fn text(name: &'static str, scope: Scope, default: &'static str) -> Definition {
    variable(name, scope, Kind::Text, default)
}

/// A read-only variable.
pub(super) const fn fixed(
    name: &'static str,
    scope: Scope,
    kind: Kind,
    default: &'static str,
) -> Definition {
    Definition { name, scope, kind, default, read_only: true }
}
