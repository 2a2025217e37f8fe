//! A tier before the pages records latches and changes, and the log says which pages each structure
//! change has changed.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock, Weak};

use firn_api::{
    LocalImages, LogStore, NoTier, PageLease, PageRead, PageStore, PageStoreError, PageTier,
    PageVersion, TierLatch, TierLatchMode,
};
use firn_base::{Lsn, PageId, SpaceId};
use firn_format::page::PageBuf;
use firn_format::redo::{Change, Group};
use parking_lot::Mutex;

use super::*;
use crate::log::RedoLog;
use crate::log::writer::Purpose;
use crate::test_support::{MemoryLog, MemoryPages, create_root, forest_over_store};
use crate::tree::Forest;

/// What a tier was told, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Created(PageId),
    /// The page is about to change, and whether it is latched.
    Changing(PageId, bool),
    Latched(PageId),
    /// Where the log ended when the latch was released.
    Unlatched(PageId, Lsn),
}

#[derive(Default)]
struct Recorder {
    pages: Arc<MemoryPages>,
    told: Arc<Mutex<Record>>,
    log: Arc<OnceLock<Weak<RedoLog>>>,
}

#[derive(Default)]
struct Record {
    events: Vec<Told>,
    latched: BTreeSet<PageId>,
}

struct Latch {
    page: PageId,
    told: Arc<Mutex<Record>>,
    log: Arc<OnceLock<Weak<RedoLog>>>,
}

impl TierLatch for Latch {}

impl Drop for Latch {
    fn drop(&mut self) {
        let log = self.log.get().and_then(Weak::upgrade).expect("the node is still there");
        let mut told = self.told.lock();
        told.latched.remove(&self.page);
        told.events.push(Told::Unlatched(self.page, log.end_lsn()));
    }
}

impl PageTier for Recorder {
    fn created(&self, page: PageId) {
        self.told.lock().events.push(Told::Created(page));
    }

    fn changing(&self, page: PageId) {
        let mut told = self.told.lock();
        let is_latched = told.latched.contains(&page);
        told.events.push(Told::Changing(page, is_latched));
    }

    fn released(&self, _page: PageId, _image: Option<&PageBuf>) {}

    fn latch(
        &self,
        page: PageId,
        mode: TierLatchMode,
    ) -> Result<Box<dyn TierLatch>, PageStoreError> {
        assert_eq!(mode, TierLatchMode::Exclusive);
        let mut told = self.told.lock();
        assert!(told.latched.insert(page), "{page} is latched twice");
        told.events.push(Told::Latched(page));
        let (log, own) = (Arc::clone(&self.log), Arc::clone(&self.told));
        Ok(Box::new(Latch { page, told: own, log }))
    }
}

/// Pages in memory behind a tier.
struct Shared<T>(Arc<MemoryPages>, Arc<T>);

impl<T: PageTier + 'static> PageStore for Shared<T> {
    fn read(
        &self,
        page: PageId,
        version: PageRead,
        into: &mut PageBuf,
    ) -> Result<PageVersion, PageStoreError> {
        self.0.read(page, version, into)
    }

    fn hold(&self, reader: &str, position: Lsn) -> Result<Arc<dyn PageLease>, PageStoreError> {
        self.0.hold(reader, position)
    }

    fn applied_lsn(&self, page: PageId) -> Lsn {
        self.0.applied_lsn(page)
    }

    fn spaces(&self) -> Vec<SpaceId> {
        self.0.spaces()
    }

    fn local_images(self: Arc<Self>) -> Option<Arc<dyn LocalImages>> {
        Arc::clone(&self.0).local_images()
    }

    fn tier(self: Arc<Self>) -> Option<Arc<dyn PageTier>> {
        Some(Arc::clone(&self.1) as _)
    }
}

/// A tree over pages behind a recorder, and where the log was last looked at.
struct Watched {
    forest: Forest,
    index: firn_base::IndexId,
    recorder: Arc<Recorder>,
    log: MemoryLog,
    seen: Lsn,
    structure_changes: usize,
}

impl Watched {
    fn new() -> Watched {
        let (recorder, log) = (Arc::new(Recorder::default()), MemoryLog::default());
        let store = Arc::new(Shared(Arc::clone(&recorder.pages), Arc::clone(&recorder)));
        let forest = forest_over_store(store, &log, 32 << 20);
        recorder.log.set(Arc::downgrade(&forest.pages().log)).expect("set once");
        let index = create_root(&forest);
        let mut watched =
            Watched { forest, index, recorder, log, seen: Lsn::FIRST, structure_changes: 0 };
        let _ = watched.groups();
        watched.recorder.told.lock().events.clear();
        watched
    }

    /// The pages of each new group, whether the group changes the tree's structure, and its end.
    fn groups(&mut self) -> Vec<(BTreeSet<PageId>, bool, Lsn)> {
        let log = &self.forest.pages().log;
        log.wait_durable(log.end_lsn()).expect("a log in memory");
        let mut bytes = Vec::new();
        let mut end = self.seen;
        self.seen = self.log.read(self.seen, usize::MAX, &mut bytes).expect("all log is kept");
        let (mut groups, mut rest) = (Vec::new(), &bytes[..]);
        while !rest.is_empty() {
            let group = Group::parse(rest).expect("a good group");
            let (mut pages, mut is_structure) = (BTreeSet::new(), false);
            for record in group.records() {
                let record = record.expect("a good record");
                let change = Change::decode(&record).expect("a good change");
                pages.insert(record.page);
                is_structure |= matches!(
                    change,
                    Change::TreeInit { .. }
                        | Change::TreeTruncate { .. }
                        | Change::TreeAbsorb { .. }
                        | Change::TreeKill
                ) || is_separator(&change);
            }
            end = end.advance(group.length_bytes());
            groups.push((pages, is_structure, end));
            rest = &rest[group.length_bytes() as usize..];
        }
        groups
    }

    /// Compares what the tier was told since the last call with what the log says.
    fn check(&mut self) {
        let groups = self.groups();
        let told = std::mem::take(&mut self.recorder.told.lock().events);
        assert!(self.recorder.told.lock().latched.is_empty(), "a latch is left: {told:?}");
        let created: BTreeSet<PageId> = told.iter().filter_map(created).collect();
        let mut changes = told.iter().enumerate().filter_map(|(at, told)| match told {
            Told::Changing(page, is_latched) => Some((at, *page, *is_latched)),
            _ => None,
        });
        for (pages, is_structure, end) in groups {
            let own: Vec<_> = changes.by_ref().take(pages.len()).collect();
            let changed: BTreeSet<PageId> = own.iter().map(|(_, page, _)| *page).collect();
            assert_eq!(changed, pages, "{told:?}");
            if !is_structure {
                continue;
            }
            self.structure_changes += 1;
            for (at, page, is_latched) in own {
                if created.contains(&page) || !is_tree_page(&self.forest, page) {
                    continue;
                }
                assert!(is_latched, "{page} changes and is not latched: {told:?}");
                let released = told[at..].iter().find_map(|told| match told {
                    Told::Unlatched(other, at) if *other == page => Some(*at),
                    _ => None,
                });
                let released = released.expect("every latch is released");
                assert!(released >= end, "{page} is released at {released}, before {end}");
            }
        }
    }
}

fn created(told: &Told) -> Option<PageId> {
    match told {
        Told::Created(page) => Some(*page),
        _ => None,
    }
}

/// An inner page's entry: its value is a page number.
fn is_separator(change: &Change<'_>) -> bool {
    match change {
        Change::TreeInsert { value, .. } => value.len() == size_of::<firn_base::PageNo>(),
        _ => false,
    }
}

fn is_tree_page(forest: &Forest, page: PageId) -> bool {
    let pool = &forest.pages().pool;
    let guard = pool.shared(page).expect("nothing is evicted");
    firn_format::tree::TreePage::new(&guard).is_ok()
}

const ROWS: u32 = 1_500;

fn key_of(number: u32) -> [u8; 4] {
    number.wrapping_mul(0x9E37_79B1).to_be_bytes()
}

fn set(tree: Tree<'_>, number: u32) {
    let value = [1; 200];
    let done = tree.write(&key_of(number), Purpose::Forward, |leaf| {
        leaf.require_room(value.len())?;
        leaf.set(&value);
        Ok(())
    });
    done.expect("a log in memory");
}

fn remove(tree: Tree<'_>, number: u32) {
    let key = key_of(number);
    let removed = tree.write(&key, Purpose::Forward, |leaf| {
        leaf.remove();
        Ok(())
    });
    if removed.expect("a log in memory").is_underfull {
        tree.merge(&key).expect("a log in memory");
    }
}

#[test]
fn pages_are_latched_among_nodes_before_the_first_changes_and_until_the_last_has() {
    let mut watched = Watched::new();
    for number in 0..ROWS {
        set(watched.forest.tree(watched.index), number);
        watched.check();
    }
    let splits = watched.structure_changes;
    for number in 0..ROWS {
        remove(watched.forest.tree(watched.index), number);
        watched.check();
    }
    // Each split of a leaf is two changes, and each merge is one.
    assert!(splits > 40 && watched.structure_changes > splits + 15, "{splits}");
    let statistics = watched.forest.statistics();
    assert!(statistics.splits.get() > 20 && statistics.merges.get() > 15);
}

#[test]
fn a_tier_that_does_nothing_changes_nothing() {
    let forests = [None, Some(NoTier)].map(|tier| {
        let log = MemoryLog::default();
        let pages = Arc::new(MemoryPages::default());
        let store: Arc<dyn PageStore> = match tier {
            Some(tier) => Arc::new(Shared(pages, Arc::new(tier))),
            None => pages,
        };
        let forest = forest_over_store(store, &log, 32 << 20);
        let index = create_root(&forest);
        for number in 0..ROWS {
            set(forest.tree(index), number);
        }
        let written = &forest.pages().log;
        written.wait_durable(written.end_lsn()).expect("a log in memory");
        let mut bytes = Vec::new();
        log.read(Lsn::FIRST, usize::MAX, &mut bytes).expect("all log is kept");
        assert_eq!(forest.pages().pool.is_shared(), tier.is_some());
        bytes
    });
    assert!(forests[0] == forests[1], "the same log");
}
