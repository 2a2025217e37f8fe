//! Memory that a session reuses from one statement to the next, so that short ones allocate
//! nothing.

use firn_sql::execute::Scratch;
use firn_sql::grammar;

use super::execution::Arguments;
use crate::plan_cache::RecentPlans;

#[derive(Default)]
pub(super) struct StatementBuffers {
    pub(super) scratch: Option<Box<Scratch>>,
    /// The parameters of the execution.
    pub(super) arguments: Arguments,
    pub(super) normalised: grammar::Normalised,
    pub(super) literal_rows: grammar::LiteralRows,
    /// Long literals of the statement that is being planned, which are not in its tree.
    pub(super) long_texts: grammar::LongTexts,
    /// The statement's key in the plan cache.
    pub(super) key: Vec<u8>,
    /// Plans of the texts that the session ran last.
    pub(super) recent: RecentPlans,
    /// Kinds of the parameters of the execution.
    pub(super) tags: Vec<u8>,
}
