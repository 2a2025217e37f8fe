//! Tables: their spaces, their long values, and whether entries and rows are the same.
//!
//! Rows and entries are each added up to a number, index by index, in one pass over each tree. Only if the
//! two differ are rows and entries looked up one by one, to say which are wrong.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use firn_base::{IndexId, PageId, PageNo};
use firn_format::definition::IndexState;
use firn_format::key::SecondaryLayout;
use firn_format::overflow::OverflowPage;
use firn_format::row::OverflowReference;
use firn_format::space::SpacePurpose;

use super::Checker;
use super::census::Census;
use crate::dictionary::reclaim::pages_of;
use crate::dictionary::stored::for_each;
use crate::error::EngineError;
use crate::table::{SecondaryIndex, Table};
use crate::transaction::{IsolationLevel, KeyRange, ReadMode, Transaction};

/// What entries add up to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    entries: u64,
    hash: u64,
}

impl Sum {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        let mut hasher = DefaultHasher::new();
        (key, value).hash(&mut hasher);
        self.hash = self.hash.wrapping_add(hasher.finish());
        self.entries += 1;
    }
}

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
                // What is left of it: a crash may have interrupted the freeing.
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

    /// Compares rows with entries, by one snapshot.
    pub(super) fn check_entries(&mut self, table: &Arc<Table>) -> Result<(), EngineError> {
        let mut trx = Transaction::begin(self.dictionary.system(), IsolationLevel::RepeatableRead)?;
        trx.ensure_snapshot();
        let indexes: Vec<_> = table
            .secondary_with_layout()
            .filter(|(index, _)| index.state == IndexState::Ready)
            .collect();
        let of_rows = match sum_rows(&mut trx, table, &indexes) {
            Ok(sums) => sums,
            Err(error) => {
                self.problem(table.clustered().root(), error.to_string());
                return Ok(());
            }
        };
        for ((index, layout), of_rows) in indexes.into_iter().zip(of_rows) {
            let mut of_entries = Sum::default();
            for_each_record(&mut trx, index.id, |key, value| of_entries.add(key, value))?;
            self.report.entries += of_entries.entries;
            if of_entries != of_rows {
                self.find_differences(&mut trx, table, index, layout)?;
            }
        }
        trx.commit()
    }

    /// Says which rows lack their entries and which entries have no row.
    fn find_differences(
        &mut self,
        trx: &mut Transaction,
        table: &Table,
        index: &SecondaryIndex,
        layout: &SecondaryLayout,
    ) -> Result<(), EngineError> {
        let name = &table.secondary_definition(index).name;
        let (mut rows, mut entries) = (Vec::new(), Vec::new());
        for_each_record(trx, table.clustered(), |key, payload| {
            rows.push((key.to_vec(), payload.to_vec()));
        })?;
        for_each_record(trx, index.id, |key, value| entries.push((key.to_vec(), value.to_vec())))?;
        let mut wanted = Vec::new();
        for (key, payload) in &rows {
            let entry = table.entry(trx, layout, key, payload)?;
            wanted.push((entry.key, entry.value));
        }
        wanted.sort_unstable();
        for (key, _) in wanted.iter().filter(|entry| entries.binary_search(entry).is_err()) {
            let what = format!("index {name} lacks the entry {key:02x?}");
            self.problem(index.id.root(), what);
        }
        for (key, _) in entries.iter().filter(|entry| wanted.binary_search(entry).is_err()) {
            let what = format!("index {name} has the entry {key:02x?}, which no row has");
            self.problem(index.id.root(), what);
        }
        Ok(())
    }
}

/// What the entries add up to that the rows ought to have, index by index.
fn sum_rows(
    trx: &mut Transaction,
    table: &Table,
    indexes: &[(&SecondaryIndex, &SecondaryLayout)],
) -> Result<Vec<Sum>, EngineError> {
    let mut sums = vec![Sum::default(); indexes.len()];
    let mut cursor = crate::transaction::Cursor::new(
        table.clustered(),
        KeyRange::all(),
        crate::transaction::Direction::Forward,
        ReadMode::Consistent,
    );
    while cursor.fetch(trx)? {
        for (key, payload) in cursor.rows() {
            for (sum, (_, layout)) in sums.iter_mut().zip(indexes) {
                let entry = table.entry(trx, layout, key, payload)?;
                sum.add(&entry.key, &entry.value);
            }
        }
    }
    Ok(sums)
}

fn for_each_record(
    trx: &mut Transaction,
    tree: IndexId,
    visit: impl FnMut(&[u8], &[u8]),
) -> Result<(), EngineError> {
    for_each(trx, tree, KeyRange::all(), ReadMode::Consistent, visit)
}
