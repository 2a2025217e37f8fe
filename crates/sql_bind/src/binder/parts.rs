//! Queries that are planned before the statement itself.

use firn_sql_logical::{Part, Query};

/// The parts of a statement, in the order in which they were bound.
#[derive(Default)]
pub(crate) struct Parts {
    list: Vec<Part>,
    /// How many common tables are evaluated once.
    common_tables: usize,
}

impl Parts {
    pub(crate) fn push(&mut self, part: Part) {
        self.list.push(part);
    }

    /// Adds a common table that is evaluated once; returns its number.
    pub(crate) fn push_common_table(&mut self, query: Query) -> usize {
        self.list.push(Part::CommonTable(query));
        self.next_common_table()
    }

    /// Adds the rows with which a recursive common table begins; returns the table's number.
    pub(crate) fn push_seed(&mut self, query: Query) -> usize {
        self.list.push(Part::Seed(query));
        self.next_common_table()
    }

    fn next_common_table(&mut self) -> usize {
        self.common_tables += 1;
        self.common_tables - 1
    }

    pub(crate) fn into_list(self) -> Vec<Part> {
        self.list
    }
}
