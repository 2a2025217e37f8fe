//! Checks everything that is stored (`firn admin check`). [entries] serves `CHECK TABLE` too.
//!
//! ```text
//!   undo space    streams, and what their records say is still to be freed
//!   dictionary    its trees; names, definitions and what is in memory say the same
//!   each table    space header, allocation maps, trees, record versions, overflow chains
//!   each index    the entries are those of the rows, one for one
//! ```
//!
//! Each page is counted by its user. A page with two users is damage, and so is a used page that
//! the map calls free. A page that the map calls used and that has no user has leaked.
//!
//! The structure is checked page by page, so run this while nothing writes. Entries are compared
//! with rows by one snapshot, which is right under writes too.

mod census;
mod definitions;
pub(crate) mod entries;
mod rows;
#[cfg(test)]
mod tests;
mod tree;
mod undo;

use firn_base::{PageId, SpaceId};
use firn_format::page::PageBuf;
use rustc_hash::FxHashMap;

use crate::dictionary::Dictionary;
use crate::error::EngineError;
use crate::lock::LockError;
use census::Census;
use undo::Pending;

/// A fault that the check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The page that shows the fault.
    pub page: PageId,
    pub what: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.page, self.what)
    }
}

/// The faults that the check found: the first ones, and the number of all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems {
    /// At most `MAX_PROBLEMS` of them.
    pub first: Vec<Problem>,
    pub count: u64,
}

impl Problems {
    pub(crate) fn add(&mut self, page: PageId, what: impl Into<String>) {
        self.count += 1;
        if self.first.len() < MAX_PROBLEMS {
            self.first.push(Problem { page, what: what.into() });
        }
    }
}

/// The result of a check, and its progress while it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Pages that were read.
    pub pages: u64,
    /// Pages that the allocation maps call used.
    pub pages_used: u64,
    pub spaces: u64,
    pub trees: u64,
    /// Records of trees, deleted ones included.
    pub records: u64,
    /// Index entries that were compared with their rows.
    pub entries: u64,
    /// Chains of overflow pages that rows refer to.
    pub chains: u64,
    /// Pages that the allocation maps call used and that have no user.
    pub leaked_pages: u64,
    /// Pages whose separator is missing in the parent. Harmless: the next operation that passes
    /// posts it.
    pub unposted_pages: u64,
    pub problems: Problems,
}

impl CheckReport {
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.problems.count == 0
    }
}

/// The most problems that a report lists.
const MAX_PROBLEMS: usize = 1000;
/// Pages between two reports of progress.
const PAGES_PER_PROGRESS: u64 = 1024;

struct Checker<'a> {
    dictionary: &'a Dictionary,
    report: CheckReport,
    progress: &'a mut dyn FnMut(&CheckReport) -> bool,
    is_cancelled: bool,
    pending: FxHashMap<SpaceId, Pending>,
}

/// Checks everything that the dictionary lists. Calls `progress` every `PAGES_PER_PROGRESS`
/// pages; if it returns false, the check ends. Blocks until the check has ended.
///
/// # Errors
/// [`LockError::Cancelled`] if `progress` ended the check, or the error that prevented it. Damage
/// is not an error: it is in the report.
pub fn check(
    dictionary: &Dictionary,
    progress: &mut dyn FnMut(&CheckReport) -> bool,
) -> Result<CheckReport, EngineError> {
    let mut checker = Checker {
        dictionary,
        report: CheckReport::default(),
        progress,
        is_cancelled: false,
        pending: FxHashMap::default(),
    };
    checker.check_undo()?;
    checker.check_dictionary()?;
    for table in dictionary.tables() {
        checker.check_table_space(&table)?;
        checker.check_entries(&table)?;
        checker.check_cancelled()?;
    }
    (checker.progress)(&checker.report);
    Ok(checker.report)
}

impl Checker<'_> {
    fn problem(&mut self, page: PageId, what: impl Into<String>) {
        self.report.problems.add(page, what);
    }

    fn check_cancelled(&self) -> Result<(), EngineError> {
        if self.is_cancelled { Err(LockError::Cancelled.into()) } else { Ok(()) }
    }

    /// Counts a page as used and checks it with `look`. `None`, after a problem was noted, if the
    /// page was counted before, cannot be read, or does not satisfy `look`.
    fn visit<R>(
        &mut self,
        census: &mut Census,
        page: PageId,
        mut look: impl FnMut(&PageBuf) -> Result<R, String>,
    ) -> Option<R> {
        if !census.add(page.page_no) {
            self.problem(page, "the page is used twice");
            return None;
        }
        let pages = self.dictionary.system().pages();
        let seen = pages.run(|| Ok(look(&*pages.pool.shared(page)?)));
        self.count_page();
        match seen {
            Ok(Ok(result)) => return Some(result),
            Ok(Err(what)) => self.problem(page, what),
            Err(error) => self.problem(page, error.to_string()),
        }
        None
    }

    fn count_page(&mut self) {
        self.report.pages += 1;
        if self.report.pages.is_multiple_of(PAGES_PER_PROGRESS) && !(self.progress)(&self.report) {
            self.is_cancelled = true;
        }
    }
}
