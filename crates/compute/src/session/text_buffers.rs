//! Memory for texts that a session reuses from one to the next, so that short ones allocate
//! nothing.

use firn_sql::grammar;

use super::arguments::Arguments;
use crate::plan_cache::RecentPlans;

#[derive(Default)]
pub(super) struct TextBuffers {
    pub(super) normalised: grammar::Normalised,
    /// The literals of the text that was normalised.
    pub(super) literals: Arguments,
    pub(super) literal_rows: grammar::LiteralRows,
    /// The text's key in the plan cache.
    pub(super) key: Vec<u8>,
    /// Plans of the texts that the session ran last: all cores share the reference counts in the
    /// cache.
    pub(super) recent: RecentPlans,
}

impl TextBuffers {
    /// Frees what a long text left.
    pub(super) fn shrink(&mut self) {
        self.normalised = grammar::Normalised::default();
        self.literal_rows = grammar::LiteralRows::default();
        self.literals = Arguments::default();
        self.key = Vec::new();
    }
}
