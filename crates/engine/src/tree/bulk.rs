//! Bulk load: builds a tree from sorted input, page by page from left to right, and writes each
//! page once.
//!
//! Each full page is written in one mini-transaction, together with the allocation of its right
//! neighbour, whose number it needs for its link. The separators of one level are the input of the
//! next. The tree is invisible until [`BulkLoad::finish`] has written the root.

use firn_base::{IndexId, PageId, PageNo};
use firn_format::redo::Change;
use firn_format::tree::{
    ENTRY_OVERHEAD_BYTES, EntryList, MAX_ENTRY_BYTES, MAX_KEY_BYTES, TREE_BODY_BYTES, separator,
};

use crate::error::EngineError;
use crate::log::writer::Purpose;
use crate::mini_transaction::MiniTransaction;
use crate::tree::{Forest, Tree};

pub struct BulkLoad<'f> {
    tree: Tree<'f>,
    forest: &'f Forest,
    fill_bytes: usize,
    levels: Vec<Level>,
}

/// The page of one level that is being filled.
struct Level {
    /// The page's number; known once a page to its left was written.
    page: Option<PageNo>,
    low: Vec<u8>,
    entries: EntryList,
    count: usize,
    /// Bytes of the entries if no prefix were cut off.
    bytes: usize,
    last: Vec<u8>,
}

impl Level {
    fn empty(page: Option<PageNo>, low: Vec<u8>) -> Level {
        Level { page, low, entries: EntryList::new(), count: 0, bytes: 0, last: Vec::new() }
    }

    /// The size of the page after its prefix is cut off, if `next` is its high fence.
    fn page_bytes(&self, next: &[u8]) -> usize {
        let prefix = self.low.iter().zip(next).take_while(|(a, b)| a == b).count();
        self.bytes - self.count * prefix + self.low.len() + next.len()
    }

    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.entries.push(key, value);
        self.count += 1;
        self.bytes += ENTRY_OVERHEAD_BYTES + key.len() + value.len();
        self.last.clear();
        self.last.extend_from_slice(key);
    }
}

impl<'f> BulkLoad<'f> {
    /// Starts to load the empty tree `index`. Pages are filled to `fill_percent` of their size.
    ///
    /// # Panics
    /// If the percentage is not between 10 and 100.
    #[must_use]
    pub fn new(forest: &'f Forest, index: IndexId, fill_percent: usize) -> BulkLoad<'f> {
        assert!((10..=100).contains(&fill_percent), "pages are filled to 10 to 100 per cent");
        BulkLoad {
            tree: forest.tree(index),
            forest,
            fill_bytes: TREE_BODY_BYTES * fill_percent / 100,
            levels: vec![Level::empty(None, Vec::new())],
        }
    }

    /// Appends an entry.
    ///
    /// # Errors
    /// The key is not greater than the last one, the entry is too long, or the log or a page was
    /// not available. The caller must then drop the tree.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), EngineError> {
        if key.len() > MAX_KEY_BYTES {
            return Err(EngineError::KeyTooLong { length: key.len(), limit: MAX_KEY_BYTES });
        }
        let length = key.len() + value.len();
        if length > MAX_ENTRY_BYTES {
            return Err(EngineError::RecordTooLong { length, limit: MAX_ENTRY_BYTES });
        }
        let leaf = &self.levels[0];
        if leaf.count > 0 && key <= leaf.last.as_slice() {
            return Err(EngineError::DuplicateKey { index: self.tree.index(), key: key.into() });
        }
        self.push_at(0, key, value)
    }

    fn push_at(&mut self, level: usize, key: &[u8], value: &[u8]) -> Result<(), EngineError> {
        if level == self.levels.len() {
            self.levels.push(Level::empty(None, Vec::new()));
        }
        let filling = &self.levels[level];
        let entry_bytes = ENTRY_OVERHEAD_BYTES + key.len() + value.len();
        let is_full = filling.page_bytes(key) + entry_bytes > self.fill_bytes;
        if filling.count > 0 && is_full {
            self.write_full(level, key)?;
        }
        self.levels[level].push(key, value);
        Ok(())
    }

    /// Writes the page of `level`, whose right neighbour will begin with `next`.
    fn write_full(&mut self, level: usize, next: &[u8]) -> Result<(), EngineError> {
        let high = match level {
            0 => separator(&self.levels[0].last, next).to_vec(),
            _ => next.to_vec(),
        };
        let (page, right) = self.write(level, Some(&high))?;
        let full = std::mem::replace(&mut self.levels[level], Level::empty(Some(right), high));
        self.push_at(level + 1, &full.low, &page.0.to_le_bytes())
    }

    /// Writes a page that is not the root; if it has a high fence, also allocates its right
    /// neighbour.
    fn write(&self, level: usize, high: Option<&[u8]>) -> Result<(PageNo, PageNo), EngineError> {
        let filled = &self.levels[level];
        let (pages, space) = (self.forest.pages(), self.tree.index().root().space);
        self.forest.spaces().prepare(space)?;
        let mut frames = pages.pool.reserve(1);
        pages.run(|| {
            let mut mtr = MiniTransaction::begin_large(pages, Purpose::Forward)?;
            let spaces = self.forest.spaces();
            let (page, right) = match (filled.page, high) {
                (Some(page), Some(_)) => (page, spaces.allocate(&mut mtr, space)?),
                (Some(page), None) => (page, PageNo::NONE),
                (None, Some(_)) => {
                    let [page, right] = spaces.allocate_pair(&mut mtr, space)?;
                    (page, right)
                }
                (None, None) => (spaces.allocate(&mut mtr, space)?, PageNo::NONE),
            };
            let held = mtr.create(&mut frames, PageId::new(space, page));
            mtr.change(held, &self.init(level, high, right));
            let _ = mtr.commit();
            Ok((page, right))
        })
    }

    fn init<'a>(&'a self, level: usize, high: Option<&'a [u8]>, right: PageNo) -> Change<'a> {
        let filled = &self.levels[level];
        Change::TreeInit {
            index: self.tree.index(),
            level: level as u8,
            low: &filled.low,
            high,
            right,
            entries: filled.entries.as_entries(),
        }
    }

    /// Writes the last page of each level and then the root.
    ///
    /// # Errors
    /// Errors of the page store and the log. The caller must then drop the tree.
    pub fn finish(mut self) -> Result<(), EngineError> {
        let mut level = 0;
        while self.levels[level].page.is_some() {
            let (page, _) = self.write(level, None)?;
            let low = self.levels[level].low.clone();
            self.push_at(level + 1, &low, &page.0.to_le_bytes())?;
            level += 1;
        }
        let (pages, root) = (self.forest.pages(), self.tree.index().root());
        pages.run(|| {
            let mut mtr = MiniTransaction::begin_large(pages, Purpose::Forward)?;
            let held = mtr.exclusive(root)?;
            mtr.change(held, &self.init(level, None, PageNo::NONE));
            let _ = mtr.commit();
            Ok(())
        })
    }
}
