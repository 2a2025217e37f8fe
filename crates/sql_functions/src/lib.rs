//! MySQL's functions and operators that evaluate all their arguments.
//!
//! ```text
//!   name ──find──► Function ──resolve(types)──► Signature {what to cast arguments to, result}
//!                       └────evaluate(values)──► value            one row at a time
//! ```
//!
//! A function is a row of a table ([`Function`]); the tables of all families form one index, built
//! once. Operators are functions whose names are their signs. Operations that may leave an argument
//! unevaluated (`CASE`, `AND`, `COALESCE`, …), comparisons and casts are not functions but nodes of
//! an expression.
//!
//! Invariants:
//! * `evaluate` gets one value for each argument, of the signature's argument type or NULL, and
//!   returns a value of the signature's result type or NULL;
//! * it accepts any such values without panic, and never returns more than `max_allowed_packet`
//!   bytes;
//! * a function that is `strict` returns NULL if any argument is NULL.

mod aggregate;
mod arguments;
mod arithmetic;
mod bits;
mod choose;
mod crypto;
mod digest;
mod information;
mod json;
mod network;
mod numeric;
mod random;
mod regexp;
mod signature;
mod string;
mod temporal;
mod uuid;

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::OnceLock;

use firn_format::value::CollationId;
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{Datum, EvaluationContext, SqlMode, SqlType};
use rustc_hash::FxHashMap;

pub use aggregate::{AggregateFunction, resolve_aggregate};
pub use choose::date_beside_others;
pub use json::{Path as JsonPath, json_value};

/// A function or operator.
pub struct Function {
    /// Its name in capital letters, or its sign.
    pub name: &'static str,
    /// How many arguments it accepts.
    pub arguments: RangeInclusive<usize>,
    /// The types that it wants and returns, for arguments of these types. Check the number of
    /// arguments first, with [`Function::check_arity`].
    pub resolve: fn(&[SqlType], &ResolveContext<'_>) -> Result<Signature>,
    pub evaluate: fn(&[Datum], &Call<'_>) -> Result<Datum>,
    /// What its value depends on besides its arguments.
    pub volatility: Volatility,
    /// Whether it is NULL as soon as one argument is.
    pub strict: bool,
    /// Whether arguments after a NULL one are evaluated too, unless exact numbers are wanted: they
    /// may cause warnings.
    pub evaluates_all: bool,
    /// Whether the function reads the arguments before a NULL one, because they may cause warnings:
    /// it is called, though its value is NULL. Those after the NULL one are NULL too, unless
    /// `evaluates_all`.
    pub reads_before_null: bool,
    /// The arguments in the order in which they are evaluated, which decides what warns before a
    /// NULL; empty if they are evaluated as written. It may name more arguments than there are.
    pub order: &'static [usize],
    /// Whether the next argument is evaluated, given those evaluated before it, of which some may
    /// have been left out and are NULL; `None`: always. What is not evaluated does not warn, and so
    /// a literal and a column are evaluated anyway.
    pub needs: Option<fn(&[Datum]) -> bool>,
    /// Arguments whose literal value takes part in `resolve`: such literals must not be lifted out
    /// of the statement's text.
    pub literal_arguments: &'static [usize],
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// What the value of a function depends on besides its arguments. Each depends on less than the
/// next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Volatility {
    /// On nothing, or only on settings of the session: it may be evaluated when the statement is
    /// planned, if the plan is dropped when a setting changes.
    Pure,
    /// On the statement: its time, its user. Evaluated once per execution.
    Statement,
    /// On the session's state, which the statement itself may change.
    Session,
    /// On everything: each row has its own.
    Row,
}

/// The argument and result types of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The type to which each argument is cast.
    pub arguments: Vec<SqlType>,
    /// The type of the value.
    pub result: SqlType,
}

/// What types depend on besides the types of arguments.
#[derive(Clone, Copy, Debug)]
pub struct ResolveContext<'a> {
    /// The session's modes.
    pub sql_mode: SqlMode,
    /// The collation of text made from values that are not text.
    pub connection_collation: CollationId,
    /// Digits that `/` adds to the scale.
    pub div_precision_increment: u8,
    /// The values of arguments that are literals, by position; shorter if no more follow. They have
    /// the arguments' own types, from before the casts.
    pub constants: &'a [Option<Datum>],
}

impl ResolveContext<'_> {
    /// The value of an argument that is a literal.
    #[must_use]
    pub fn constant(&self, argument: usize) -> Option<&Datum> {
        self.constants.get(argument)?.as_ref()
    }
}

/// A call that is being evaluated.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Session and statement.
    pub context: &'a EvaluationContext,
    /// The types of the arguments, as in the signature.
    pub arguments: &'a [&'a SqlType],
    /// The type of the value. It belongs to the expression that is evaluated: its address
    /// distinguishes the `RAND(1)` calls of a statement.
    pub result: &'a SqlType,
}

impl Function {
    /// Whether the function accepts this many arguments.
    ///
    /// # Errors
    /// 1582
    pub fn check_arity(&self, count: usize) -> Result<()> {
        if self.arguments.contains(&count) {
            return Ok(());
        }
        let name = self.name;
        let message = format!("Incorrect parameter count in the call to native function '{name}'");
        Err(SqlError::new(1582, message))
    }

    const fn volatile(self, volatility: Volatility) -> Function {
        Function { volatility, ..self }
    }

    const fn evaluating_all(self) -> Function {
        Function { evaluates_all: true, ..self }
    }

    /// NULL as soon as one argument is, but called even so: see `reads_before_null`.
    const fn reading_before_null(self) -> Function {
        Function { strict: true, reads_before_null: true, ..self }
    }

    const fn in_order(self, order: &'static [usize]) -> Function {
        Function { order, ..self }
    }

    const fn needing(self, needs: fn(&[Datum]) -> bool) -> Function {
        Function { needs: Some(needs), ..self }
    }

    const fn shaped_by(self, literal_arguments: &'static [usize]) -> Function {
        Function { literal_arguments, ..self }
    }
}

/// The function with a name, in any case.
#[must_use]
pub fn find(name: &str) -> Option<&'static Function> {
    static INDEX: OnceLock<FxHashMap<&'static str, &'static Function>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let mut index: FxHashMap<_, _> = all().map(|function| (function.name, function)).collect();
        for (alias, name) in ALIASES {
            let function = index[name];
            index.insert(alias, function);
        }
        index
    });
    index.get(name.to_ascii_uppercase().as_str()).copied()
}

pub fn all() -> impl Iterator<Item = &'static Function> {
    FAMILIES.iter().copied().flatten().copied().flatten()
}

const FAMILIES: &[&[&[Function]]] = &[
    json::FAMILIES,
    &[
        arithmetic::FUNCTIONS,
        bits::FUNCTIONS,
        choose::FUNCTIONS,
        crypto::FUNCTIONS,
        digest::FUNCTIONS,
        information::FUNCTIONS,
        network::FUNCTIONS,
        numeric::FUNCTIONS,
        random::FUNCTIONS,
        regexp::FUNCTIONS,
        uuid::FUNCTIONS,
    ],
    string::FAMILIES,
    temporal::FAMILIES,
];

/// Other names of functions.
const ALIASES: &[(&str, &str)] = &[
    ("ADDDATE", "DATE_ADD"),
    ("CURRENT_DATE", "CURDATE"),
    ("CURRENT_TIME", "CURTIME"),
    ("CURRENT_TIMESTAMP", "NOW"),
    ("DAY", "DAYOFMONTH"),
    ("LOCALTIME", "NOW"),
    ("LOCALTIMESTAMP", "NOW"),
    ("SUBDATE", "DATE_SUB"),
    ("CEIL", "CEILING"),
    ("CHARACTER_LENGTH", "CHAR_LENGTH"),
    ("JSON_MERGE", "JSON_MERGE_PRESERVE"),
    ("LCASE", "LOWER"),
    ("MEMBER_OF", "MEMBER OF"),
    ("MID", "SUBSTRING"),
    ("MOD", "%"),
    ("OCTET_LENGTH", "LENGTH"),
    ("POSITION", "LOCATE"),
    ("POWER", "POW"),
    ("REGEXP", "REGEXP_LIKE"),
    ("RLIKE", "REGEXP_LIKE"),
    ("SCHEMA", "DATABASE"),
    ("SESSION_USER", "USER"),
    ("SHA", "SHA1"),
    ("SOUNDS_LIKE", "SOUNDS LIKE"),
    ("SUBSTR", "SUBSTRING"),
    ("SYSTEM_USER", "USER"),
    ("TRIM_BOTH", "TRIM"),
    ("TRIM_LEADING", "TRIM LEADING"),
    ("TRIM_TRAILING", "TRIM TRAILING"),
    ("UCASE", "UPPER"),
];

/// A function that is NULL if an argument is NULL.
macro_rules! strict {
    ($name:literal, $arity:expr, joined [$($want:ident),*] => $result:expr, $evaluate:expr) => {
        $crate::Function {
            resolve: |types: &[firn_sql_types::SqlType], context: &$crate::ResolveContext<'_>| {
                $crate::signature::joined(types, context, &[$($crate::signature::Want::$want),*], $result)
            },
            ..$crate::strict!($name, $arity, [] => $crate::signature::bigint, $evaluate)
        }
    };
    ($name:literal, $arity:expr, [$($want:ident),*] => $result:expr, $evaluate:expr) => {
        $crate::Function {
            name: $name,
            arguments: $arity,
            resolve: |types: &[firn_sql_types::SqlType], context: &$crate::ResolveContext<'_>| {
                $crate::signature::fixed(types, context, &[$($crate::signature::Want::$want),*], $result)
            },
            evaluate: |arguments: &[firn_sql_types::Datum], call: &$crate::Call<'_>| {
                if arguments.iter().any(firn_sql_types::Datum::is_null) {
                    return Ok(firn_sql_types::Datum::Null);
                }
                $evaluate(arguments, call)
            },
            volatility: $crate::Volatility::Pure,
            strict: true,
            evaluates_all: false,
            reads_before_null: false,
            order: &[],
            needs: None,
            literal_arguments: &[],
        }
    };
    ($name:literal, $arity:expr, $resolve:expr, $evaluate:expr) => {
        $crate::Function {
            resolve: $resolve,
            ..$crate::strict!($name, $arity, [] => $crate::signature::bigint, $evaluate)
        }
    };
}

/// A function that handles NULL itself.
macro_rules! lenient {
    ($name:literal, $arity:expr, joined [$($want:ident),*] => $result:expr, $evaluate:expr) => {
        $crate::Function {
            evaluate: $evaluate,
            strict: false,
            ..$crate::strict!($name, $arity, joined [$($want),*] => $result, $evaluate)
        }
    };
    ($name:literal, $arity:expr, [$($want:ident),*] => $result:expr, $evaluate:expr) => {
        $crate::Function {
            evaluate: $evaluate,
            strict: false,
            ..$crate::strict!($name, $arity, [$($want),*] => $result, $evaluate)
        }
    };
    ($name:literal, $arity:expr, $resolve:expr, $evaluate:expr) => {
        $crate::Function {
            resolve: $resolve,
            ..$crate::lenient!($name, $arity, [] => $crate::signature::bigint, $evaluate)
        }
    };
}

use {lenient, strict};

#[cfg(test)]
mod tests;
