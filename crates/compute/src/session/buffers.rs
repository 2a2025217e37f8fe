//! Memory that one statement of a session leaves to the next, so that short ones allocate nothing.

use firn_sql::execute::Scratch;
use firn_sql::grammar;

use super::execution::Arguments;
use crate::plan_cache::RecentPlans;

/// See the module's page.
#[derive(Default)]
pub(super) struct StatementBuffers {
    pub(super) scratch: Option<Box<Scratch>>,
    /// The parameters of the execution.
    pub(super) arguments: Arguments,
    pub(super) normalised: grammar::Normalised,
    pub(super) literal_rows: grammar::LiteralRows,
    /// Long literals of the statement that is planned, which its tree does not have.
    pub(super) long_texts: grammar::LongTexts,
    /// What the plan cache knows the statement by.
    pub(super) key: Vec<u8>,
    /// Plans of the texts that the session ran last.
    pub(super) recent: RecentPlans,
    /// Kinds of the parameters of the execution.
    pub(super) tags: Vec<u8>,
}
