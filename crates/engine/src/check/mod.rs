//! Checking everything that is stored: `firn admin check`; and [entries] for `CHECK TABLE`.
//!
//! ```text
//!   undo space    streams, and what their records say is still to be freed
//!   dictionary    its trees; names, definitions and what is in memory say the same
//!   each table    space header, allocation maps, trees, record versions, overflow chains
//!   each index    the entries are those of the rows, one for one
//! ```
//!
//! Each page is counted by who uses it: a page that two use, or that is used and called free, is
//! damage; one that is called used and that nobody reaches has leaked.
//!
//! Structure is looked at page by page, so nobody may change it meanwhile: run this at a quiet
//! moment. Entries are compared with rows by one snapshot, which holds under writes too.

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

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The page that shows it.
    pub page: PageId,
    /// What it is.
    pub what: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.page, self.what)
    }
}

/// What is wrong: the first problems, and how many there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems {
    /// The first of them.
    pub first: Vec<Problem>,
    /// How many there are.
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

/// What a check has found. Also says how far it is while it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Pages that were looked at.
    pub pages: u64,
    /// Pages that the allocation maps call used.
    pub pages_used: u64,
    /// Spaces that were looked at.
    pub spaces: u64,
    /// Trees that were looked at.
    pub trees: u64,
    /// Records of trees, deleted ones included.
    pub records: u64,
    /// Index entries that were compared with their rows.
    pub entries: u64,
    /// Chains of overflow pages.
    pub chains: u64,
    /// Pages that are called used and that nobody uses.
    pub leaked_pages: u64,
    /// Pages whose separators are missing in their parents: harmless, posted by whoever comes by.
    pub unposted_pages: u64,
    /// What is wrong.
    pub problems: Problems,
}

impl CheckReport {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.problems.count == 0
    }
}

/// Problems that a report lists at most.
const MAX_PROBLEMS: usize = 1000;
/// Progress is told after so many pages.
const PAGES_PER_PROGRESS: u64 = 1024;

/// A check that is under way.
struct Checker<'a> {
    dictionary: &'a Dictionary,
    report: CheckReport,
    progress: &'a mut dyn FnMut(&CheckReport) -> bool,
    is_cancelled: bool,
    pending: FxHashMap<SpaceId, Pending>,
}

/// Checks all that the dictionary knows. `progress` is called now and then, and ends the check by
/// returning false. Blocks for as long as it takes.
///
/// # Errors
/// [`LockError::Cancelled`] if `progress` ended it, or why the check could not go on at all. Damage
/// is no error: it stands in the report.
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

    /// Counts a page as used, and looks at it. `None` if it was counted before, cannot be read, or
    /// `look` says what is wrong with it; then that is a problem.
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
