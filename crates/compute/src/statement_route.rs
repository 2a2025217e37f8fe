//! Where a statement may run when a session has two places: at the node that writes, or at a
//! replica. Judged by the parsed text alone, before the statement runs.
//!
//! ```text
//!   text ─normalise─► known? ──yes──────────────────────► route
//!                       └─no─► parse ─► walk the tree ─────┘
//! ```
//!
//! Invariant: what is [`StatementRoute::Reads`] changes no data and nothing of the session except
//! the results of the last statement, takes no lock, and shows nothing that belongs to one server.
//! [`StatementRoute::Begins`] and [`StatementRoute::Ends`] do nothing but to the transaction.

mod walk;

use firn_sql::grammar::ast::{Completion, ExplainTarget, Show, Statement};
use firn_sql::grammar::{self, Mode, Normalised};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use self::walk::Walk;

/// Where a statement may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementRoute {
    /// At any node that has the data.
    Reads,
    /// Where the statement before it has run: it asks for its conditions.
    Follows,
    /// At any node: it begins a transaction, and does nothing else.
    Begins,
    /// Where the open transaction is: it ends that, and does nothing else.
    Ends,
    /// At the node that writes.
    Writer,
}

/// Routes of this many texts are remembered.
const MOST_REMEMBERED: usize = 4096;
/// A longer text is not remembered.
const LONGEST_REMEMBERED_BYTES: usize = 4 << 10;

/// Finds routes, and remembers those of recent texts by what is left of them without literals.
#[derive(Default)]
pub struct StatementRoutes {
    known: RwLock<FxHashMap<Box<str>, StatementRoute>>,
}

impl StatementRoutes {
    /// The route of a text. Several statements are [`StatementRoute::Writer`], and so is what could
    /// not be parsed.
    #[must_use]
    pub fn of(&self, text: &[u8]) -> StatementRoute {
        let Ok(text) = std::str::from_utf8(text) else { return StatementRoute::Writer };
        let mut normalised = Normalised::default();
        if !grammar::normalise(text, Mode::default(), &mut normalised)
            || normalised.text().len() > LONGEST_REMEMBERED_BYTES
        {
            return route_of(text);
        }
        let key = normalised.text();
        if let Some(route) = self.known.read().get(key) {
            return *route;
        }
        let route = route_of(text);
        let mut known = self.known.write();
        if known.len() >= MOST_REMEMBERED {
            known.clear();
        }
        known.insert(key.into(), route);
        route
    }
}

fn route_of(text: &str) -> StatementRoute {
    grammar::parse(text, Mode::default())
        .map_or(StatementRoute::Writer, |parsed| route_of_statement(&parsed.statement))
}

fn route_of_statement(statement: &Statement) -> StatementRoute {
    match statement {
        Statement::Select(select) if select.into.is_none() => Walk::of_query(&select.query),
        Statement::Explain(explain) if explain.into.is_none() => match &explain.target {
            ExplainTarget::Statement(statement @ Statement::Select(_)) => {
                route_of_statement(statement)
            }
            _ => StatementRoute::Writer,
        },
        Statement::Show(show) => match **show {
            Show::Warnings(_) | Show::WarningCount | Show::Errors(_) | Show::ErrorCount => {
                StatementRoute::Follows
            }
            _ => StatementRoute::Writer,
        },
        // The user variables that it sets go on with the session.
        Statement::GetDiagnostics(_) => StatementRoute::Follows,
        Statement::Begin(_) => StatementRoute::Begins,
        Statement::Commit(completion) | Statement::Rollback(completion)
            if *completion == Completion::default() =>
        {
            StatementRoute::Ends
        }
        _ => StatementRoute::Writer,
    }
}

#[cfg(test)]
mod tests;
