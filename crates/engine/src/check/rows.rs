//! Tables: their spaces, long values and [entries].

use std::sync::Arc;

use firn_base::{PageId, PageNo};
use firn_format::overflow::OverflowPage;
use firn_format::row::OverflowReference;
use firn_format::space::SpacePurpose;

use super::census::Census;
use super::{Checker, entries};
use crate::dictionary::reclaim::pages_of;
use crate::error::EngineError;
use crate::table::Table;
use crate::transaction::{IsolationLevel, Transaction};

impl Checker<'_> {
    pub(super) fn check_table_space(&mut self, table: &Table) -> Result<(), EngineError> {
        let mut census = Census::new(table.space());
        let Some(header) = self.check_header(&mut census) else { return Ok(()) };
        let header_page = PageId::new(table.space(), PageNo(0));
        if header.purpose != SpacePurpose::Table || header.table != table.id() {
            self.problem(header_page, format!("it is not the header of table {}", table.id()));
        }
        let mut references = Vec::new();
        self.check_tree(&mut census, table.clustered(), |payload| {
            references.extend(table.references(payload).map_err(|error| error.to_string())?);
            Ok(())
        });
        for index in table.secondary() {
            self.check_tree(&mut census, index.id, |_| Ok(()));
        }
        for reference in references {
            self.check_chain(&mut census, reference);
            self.check_cancelled()?;
        }
        self.check_pending_chains(&mut census);
        for drop in self.dictionary.pending_drops() {
            if drop.index.root().space == table.space() {
                // The rest of the tree, if a crash interrupted the freeing.
                let pages = pages_of(self.dictionary.system().pages(), drop.index)?;
                for page in pages {
                    self.visit(&mut census, page, |_| Ok(()));
                }
            }
        }
        self.check_maps(&mut census, &header);
        Ok(())
    }

    fn check_chain(&mut self, census: &mut Census, reference: OverflowReference) {
        self.report.chains += 1;
        let (mut next, mut length) = (reference.first_page, 0);
        while next != PageNo::NONE {
            let part = self.visit(census, PageId::new(census.space, next), |page| {
                let part = OverflowPage::new(page).ok_or("it is not part of a long value")?;
                Ok((part.next, part.bytes.len() as u64))
            });
            let Some((following, bytes)) = part else { return };
            (next, length) = (following, length + bytes);
        }
        if length != reference.length {
            let what = format!("{length} bytes of a long value instead of {}", reference.length);
            self.problem(PageId::new(census.space, reference.first_page), what);
        }
    }

    /// Compares rows with entries by one snapshot.
    pub(super) fn check_entries(&mut self, table: &Arc<Table>) -> Result<(), EngineError> {
        let mut trx = Transaction::begin(self.dictionary.system(), IsolationLevel::RepeatableRead)?;
        trx.ensure_snapshot();
        self.report.entries += entries::check(&mut trx, table, &mut self.report.problems)?;
        trx.commit()
    }
}
