//! The undo space: its streams, and the pages of tables that undo records name.

use firn_base::{PageId, PageNo, TrxId};
use firn_format::overflow::OverflowPage;
use firn_format::space::{SpacePurpose, UNDO_SPACE};
use firn_format::undo::{UndoOperation, UndoPage, UndoSegmentHeader};

use super::Checker;
use super::census::Census;
use crate::error::EngineError;

/// Chains of a space that rollback or purge may have yet to free.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub(super) chains: Vec<(PageNo, TrxId)>,
}

impl Checker<'_> {
    pub(super) fn check_undo(&mut self) -> Result<(), EngineError> {
        let mut census = Census::new(UNDO_SPACE);
        let Some(header) = self.check_header(&mut census) else { return Ok(()) };
        if header.purpose != SpacePurpose::Undo {
            self.problem(
                PageId::new(UNDO_SPACE, PageNo(0)),
                "it is not the header of the undo space",
            );
        }
        let segments = crate::transaction::undo::directory(self.dictionary.system().pages())?;
        for (number, page) in segments.into_iter().enumerate() {
            self.check_segment(&mut census, number as u32, page);
            self.check_cancelled()?;
        }
        self.check_maps(&mut census, &header);
        Ok(())
    }

    fn check_segment(&mut self, census: &mut Census, number: u32, page: PageId) {
        let fields = self.visit(census, page, |page| {
            let fields = UndoSegmentHeader::read(page).ok_or("it is not an undo segment header")?;
            match fields.segment == number {
                true => Ok(fields),
                false => Err(format!("it is segment {} instead of {number}", fields.segment)),
            }
        });
        let Some(fields) = fields else { return };
        let (mut next, mut last) = (fields.first_page, PageNo::NONE);
        while next != PageNo::NONE {
            let mut chains = Vec::new();
            let page = PageId::new(UNDO_SPACE, next);
            let following = self.visit(census, page, |page| {
                chains.clear();
                let undo = UndoPage::new(page).ok_or("it is not an undo page")?;
                if undo.segment() != number {
                    return Err(format!("it belongs to segment {}", undo.segment()));
                }
                for record in undo.records() {
                    let (_, record) = record.map_err(|damage| damage.to_string())?;
                    chains.extend(chain_of(record.trx, &record.operation));
                }
                Ok(undo.next())
            });
            for (chain, owner) in chains {
                let pending = self.pending.entry(chain.space).or_default();
                pending.chains.push((chain.page_no, owner));
            }
            let Some(following) = following else { return };
            (last, next) = (next, following);
        }
        if last != fields.last_page {
            self.problem(page, "the stream does not end where its header says");
        }
    }

    /// Counts the pages of chains that are about to be freed. Pages that were freed, or belong to
    /// another chain by now, do not count.
    pub(super) fn check_pending_chains(&mut self, census: &mut Census) {
        let pending = self.pending.remove(&census.space).unwrap_or_default();
        let pages = self.dictionary.system().pages();
        for (first, owner) in pending.chains {
            let mut next = first;
            while next != PageNo::NONE && !census.has(next) {
                let page = PageId::new(census.space, next);
                let following = pages.run(|| {
                    let guard = pages.pool.shared(page)?;
                    let part = OverflowPage::new(&guard).filter(|part| part.owner == owner);
                    Ok(part.map(|part| part.next))
                });
                let Ok(Some(following)) = following else { break };
                census.add(next);
                self.count_page();
                next = following;
            }
        }
    }
}

/// The chain that an undo record names, and the transaction that wrote it.
fn chain_of(trx: TrxId, operation: &UndoOperation<'_>) -> Option<(PageId, TrxId)> {
    match *operation {
        UndoOperation::OverflowWritten { space, first_page } => {
            Some((PageId::new(space, first_page), trx))
        }
        UndoOperation::OverflowReplaced { space, first_page, owner } => {
            Some((PageId::new(space, first_page), owner))
        }
        _ => None,
    }
}
