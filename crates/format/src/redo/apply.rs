//! The one function that changes a page, in every tier: the writer in memory, recovery, replicas
//! and the page store (rule 1 of the design).
//!
//! It is pure: the bytes after depend only on the bytes before and on the change. So a page that
//! was rebuilt from the log equals the one in memory byte for byte (except for the checksum, which
//! only sealing sets). It accepts any bytes as page and any change, never panics, and leaves the
//! page as it was on an error. The caller stamps the LSN, once per group.

use firn_base::PageId;

use super::Change;
use crate::page::{PageBuf, PageKind};

mod headers;
mod overflow;
mod space;
mod tree;
mod tree_builder;
mod undo;

/// Why a change was not applied. In a running node the cause is a bug or damaged memory; in a
/// replay it is a damaged page or log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The bytes are another page.
    #[error("a change of {expected} was applied to {found}")]
    WrongPage {
        /// In the page's header.
        found: PageId,
        /// The page that the change is for.
        expected: PageId,
    },
    /// The page is not of a kind that the change is for.
    #[error("a change of kind {change} cannot be applied to {page}, which is of kind {found:?}")]
    WrongKind {
        page: PageId,
        /// Kind of the page; `None`: unknown to this build.
        found: Option<PageKind>,
        /// The number of the change's kind.
        change: u8,
    },
    /// The page's own fields contradict each other.
    #[error("{page} is damaged: {what}")]
    Damaged { page: PageId, what: &'static str },
    /// The change does not fit the page's content.
    #[error("a change does not fit {page}: {what}")]
    Mismatch {
        page: PageId,
        /// The part that does not fit.
        what: &'static str,
    },
    /// There is not enough room in the page.
    #[error("{page} has no room for a change")]
    NoRoom { page: PageId },
    /// The record is not about a page.
    #[error("a record without a page cannot be applied to {0}")]
    NotAboutAPage(PageId),
}

/// Applies `change` to `page`, whose identity is `id`. A change for which
/// [`Change::initialises_page`] holds accepts any bytes as the page before.
///
/// # Errors
/// The reason; the page is unchanged.
pub fn apply(page: &mut PageBuf, id: PageId, change: &Change<'_>) -> Result<(), ApplyError> {
    let kind = change.kind();
    if !Change::initialises_page(kind) {
        expect_page(page, id, change)?;
    }
    match *change {
        Change::Format { kind } => headers::format(page, id, kind),
        Change::TreeInit { index, level, low, high, right, entries } => {
            let header = tree_builder::TreeHeader { index, level, low, high, right };
            tree::init(page, id, &header, entries)
        }
        Change::TreeInsert { slot, key, value } => tree::insert(page, slot.into(), key, value),
        Change::TreeInsertRun { slot, entries } => tree::insert_run(page, slot.into(), entries),
        Change::TreeSetValue { slot, value } => tree::set_value(page, slot.into(), value),
        Change::TreePatchValue { slot, at, bytes } => {
            tree::patch_value(page, slot.into(), at.into(), bytes)
        }
        Change::TreeRemove { slot } => tree::remove(page, slot.into()),
        Change::TreeTruncate { from_slot, high, right } => {
            tree::truncate(page, from_slot.into(), high, right)
        }
        Change::TreeAbsorb { entries, high, right } => tree::absorb(page, entries, high, right),
        Change::TreeKill => tree::kill(page),
        Change::WriteBytes { at, bytes } => headers::write_bytes(page, at.into(), bytes),
        Change::AllocationSet { index, state } => space::set_state(page, index.into(), state),
        Change::UndoInit { segment, previous } => undo::init(page, id, segment, previous),
        Change::UndoLink { next } => undo::link(page, next),
        Change::UndoAppend { record } => undo::append(page, record),
        Change::OverflowInit { next, owner, bytes } => overflow::init(page, id, next, owner, bytes),
        Change::SpaceDropped | Change::Watermark { .. } | Change::WriterBegins { .. } => {
            Err(ApplyError::NotAboutAPage(id))
        }
    }
}

/// Checks that the bytes are the page, and that its kind fits the change.
fn expect_page(page: &PageBuf, id: PageId, change: &Change<'_>) -> Result<(), ApplyError> {
    if page.page_id() != id {
        return Err(ApplyError::WrongPage { found: page.page_id(), expected: id });
    }
    let found = page.kind();
    let fits = match change {
        Change::WriteBytes { .. } => {
            matches!(found, Some(PageKind::SpaceHeader | PageKind::UndoHeader))
        }
        Change::AllocationSet { .. } => found == Some(PageKind::AllocationMap),
        Change::UndoLink { .. } | Change::UndoAppend { .. } => found == Some(PageKind::Undo),
        _ => matches!(found, Some(PageKind::TreeLeaf | PageKind::TreeInner)),
    };
    if fits || !change.is_about_a_page() {
        Ok(())
    } else {
        Err(ApplyError::WrongKind { page: id, found, change: change.kind() })
    }
}

/// Makes `page` an empty one of `kind`; the LSN stays until the caller stamps it.
fn reformat(page: &mut PageBuf, id: PageId, kind: PageKind) {
    let lsn = page.lsn();
    page.format(id, kind);
    page.set_lsn(lsn);
}

#[cfg(test)]
mod tests;
