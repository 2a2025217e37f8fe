//! One suite for every page store: random log, reads of all kinds, leases, batches, dropped spaces
//! and restarts, against a model that has every version of every page.
//!
//! An implementation wraps itself in a [`Subject`] and calls [`check`] with some seeds. The suite's
//! own tests show which broken promises it notices ([`super::page_service::Fault`]).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use firn_base::random::{RandomSource, SplitMix};
use firn_base::{Lsn, PageId, PageNo, SpaceId, task};
use firn_format::page::{PAGE_HEADER_BYTES, PageBuf, PageKind};
use firn_format::redo::change::no_page;
use firn_format::redo::{Change, GroupBuilder, apply};
use firn_format::space::PageState;

use super::{PageLease, PageRead, PageRequest, PageSink, PageStore, PageStoreError, PageVersion};

/// A page store under test, with the log that it follows.
pub trait Subject {
    /// The store. The suite asks again after each restart.
    fn store(&self) -> Arc<dyn PageStore>;

    /// Appends a group to the log and returns where it ends. The group is durable when this
    /// returns.
    fn append(&mut self, group: &[u8]) -> Lsn;

    /// Lets the store do some of its background work.
    fn work(&mut self);

    /// Removes the log before `position`; the store has reported that its newest versions do not
    /// need it.
    fn truncate_log(&mut self, position: Lsn);

    /// Makes the store lose what is not durable, and start again.
    fn restart(&mut self);
}

/// A lease of a store in memory: the position from which on its holder needs versions.
#[derive(Debug)]
pub struct PositionLease(AtomicU64);

impl PositionLease {
    /// A lease on `position` and all that follows.
    #[must_use]
    pub fn new(position: Lsn) -> PositionLease {
        PositionLease(AtomicU64::new(position.0))
    }
}

impl PageLease for PositionLease {
    fn position(&self) -> Lsn {
        Lsn(self.0.load(Ordering::SeqCst))
    }

    fn advance(&self, to: Lsn) {
        self.0.fetch_max(to.0, Ordering::SeqCst);
    }
}

/// Pages of a space that the suite uses.
const PAGES: u32 = 40;
/// Spaces that exist at a time.
const SPACES: u32 = 2;
/// How often a retryable read is repeated.
const PATIENCE: usize = 1000;

/// Runs `steps` random steps against a store whose log is empty.
///
/// # Panics
/// If the store breaks a promise.
pub fn check(subject: &mut dyn Subject, seed: u64, steps: usize) {
    let mut run = Run {
        subject,
        random: SplitMix::new(seed),
        model: Model::default(),
        leases: Vec::new(),
        covered: BTreeMap::new(),
    };
    run.append();
    for _ in 0..steps {
        run.step();
    }
    run.check_everything();
}

/// Every version of every page.
#[derive(Default)]
struct Model {
    versions: BTreeMap<PageId, Vec<Box<PageBuf>>>,
    dropped: BTreeMap<SpaceId, Lsn>,
    durable: Lsn,
    next_space: u32,
    spaces: Vec<SpaceId>,
}

struct Run<'a> {
    subject: &'a mut dyn Subject,
    random: SplitMix,
    model: Model,
    leases: Vec<Arc<dyn PageLease>>,
    /// What the store has reported for each page.
    covered: BTreeMap<PageId, Lsn>,
}

impl Model {
    fn as_of(&self, page: PageId, position: Lsn) -> Option<&PageBuf> {
        if self.dropped.get(&page.space).is_some_and(|end| *end <= position) {
            return None;
        }
        let versions = self.versions.get(&page)?;
        versions.iter().rev().find(|version| version.lsn() <= position).map(|version| &**version)
    }

    fn newest_lsn(&self, page: PageId) -> Lsn {
        self.as_of(page, Lsn::MAX).map_or(Lsn(0), PageBuf::lsn)
    }

    /// Applies a change of the group that is being built; the group's end is not known yet.
    fn change(&mut self, page: PageId, change: &Change<'_>, is_first: bool) {
        let versions = self.versions.entry(page).or_default();
        if is_first {
            versions.push(versions.last().map_or_else(PageBuf::boxed, Clone::clone));
        }
        let version = versions.last_mut().expect("just pushed");
        apply(version, page, change).expect("the suite's own changes fit");
    }

    fn is_live(&self, page: PageId) -> bool {
        !self.dropped.contains_key(&page.space)
    }
}

impl Run<'_> {
    fn below(&self, limit: u64) -> u64 {
        self.random.next_u64() % limit
    }

    fn step(&mut self) {
        match self.below(100) {
            0..40 => self.append(),
            40..60 => self.read_newest(),
            60..72 => self.read_batch(),
            72..84 => self.read_past(),
            84..90 => self.change_leases(),
            90..96 => self.subject.work(),
            96 | 97 => self.check_covered(),
            98 => self.drop_space(),
            _ => self.restart(),
        }
    }

    // ---- the log ----

    fn append(&mut self) {
        while self.model.spaces.len() < SPACES as usize {
            self.model.next_space += 1;
            self.model.spaces.push(SpaceId(self.model.next_space));
        }
        let mut group = GroupBuilder::new();
        let mut pages: Vec<PageId> = Vec::new();
        while pages.is_empty() || (pages.len() < 4 && self.below(3) > 0) {
            let page = self.live_page();
            if !pages.contains(&page) {
                self.change_page(page, &mut group);
                pages.push(page);
            }
        }
        let end = self.subject.append(group.finish());
        for page in pages {
            let versions = self.model.versions.get_mut(&page).expect("just changed");
            versions.last_mut().expect("just changed").set_lsn(end);
        }
        self.model.durable = end;
    }

    fn change_page(&mut self, page: PageId, group: &mut GroupBuilder) {
        let is_header = page.page_no.0.is_multiple_of(2);
        let is_new = self.model.as_of(page, Lsn::MAX).is_none();
        let formats = is_new || self.below(12) == 0;
        if formats {
            let kind = if is_header { PageKind::SpaceHeader } else { PageKind::AllocationMap };
            let change = Change::Format { kind };
            change.encode(page, group);
            self.model.change(page, &change, true);
        }
        let bytes = self.random.next_u64().to_le_bytes();
        let at = PAGE_HEADER_BYTES as u16 + 8 * self.below(1000) as u16;
        let state = if self.below(2) == 0 { PageState::Used } else { PageState::Free };
        let change = match is_header {
            true => Change::WriteBytes { at, bytes: &bytes },
            false => Change::AllocationSet { index: self.below(1000) as u16, state },
        };
        change.encode(page, group);
        self.model.change(page, &change, !formats);
    }

    fn drop_space(&mut self) {
        let space = self.model.spaces.remove(self.below(u64::from(SPACES)) as usize);
        let mut group = GroupBuilder::new();
        Change::SpaceDropped.encode(no_page(space), &mut group);
        let end = self.subject.append(group.finish());
        self.model.dropped.insert(space, end);
        self.model.durable = end;
        self.append();
    }

    fn live_page(&self) -> PageId {
        let space = self.model.spaces[self.below(self.model.spaces.len() as u64) as usize];
        PageId::new(space, PageNo(self.below(u64::from(PAGES)) as u32))
    }

    /// Usually a page that exists.
    fn any_page(&self) -> PageId {
        let spaces = u64::from(self.model.next_space);
        if self.below(4) > 0 || spaces == 0 {
            return self.live_page();
        }
        let space = SpaceId(1 + self.below(spaces + 1) as u32);
        PageId::new(space, PageNo(self.below(u64::from(PAGES)) as u32))
    }

    fn any_position(&self, from: Lsn) -> Lsn {
        let steps = (self.model.durable.0 - from.0.min(self.model.durable.0)) / Lsn::ALIGNMENT;
        from.advance(self.below(steps + 1) * Lsn::ALIGNMENT)
    }

    // ---- reads ----

    fn newest(&self, page: PageId) -> PageRead {
        let at_least = match self.below(4) {
            0 => Lsn(0),
            1 => self.any_position(Lsn::FIRST),
            2 => self.model.newest_lsn(page),
            _ => self.model.durable,
        };
        PageRead::Latest { at_least }
    }

    /// A read at a position where the store must answer, or at one where it may.
    fn past(&self) -> PageRead {
        let held = self.leases.iter().map(|lease| lease.position()).min();
        PageRead::AsOf(self.any_position(held.unwrap_or(Lsn::FIRST)))
    }

    fn read_newest(&mut self) {
        let page = self.any_page();
        self.check_read(page, self.newest(page));
    }

    fn read_past(&mut self) {
        self.check_read(self.any_page(), self.past());
    }

    fn check_read(&self, page: PageId, version: PageRead) {
        let mut into = PageBuf::boxed();
        for _ in 0..PATIENCE {
            let reply = self.subject.store().read(page, version, &mut into);
            if !is_transient(&reply) {
                return self.judge(PageRequest { page, version }, &reply, &into);
            }
            task::yield_now();
        }
        panic!("{page} is not to be had as of {version:?}");
    }

    fn read_batch(&mut self) {
        let mut requests = Vec::new();
        for _ in 0..1 + self.below(12) {
            let page = self.any_page();
            let version = if self.below(3) == 0 { self.past() } else { self.newest(page) };
            requests.push(PageRequest { page, version });
        }
        let buffers = requests.iter().map(|_| PageBuf::boxed()).collect();
        let replies = requests.iter().map(|_| None).collect();
        let mut batch = Batch { buffers, replies };
        self.subject.store().read_many(&requests, &mut batch);
        for ((request, reply), into) in requests.iter().zip(batch.replies).zip(&batch.buffers) {
            let reply = reply.unwrap_or_else(|| panic!("{request:?} was not completed"));
            match is_transient(&reply) {
                true => self.check_read(request.page, request.version),
                false => self.judge(*request, &reply, into),
            }
        }
    }

    fn judge(
        &self,
        PageRequest { page, version }: PageRequest,
        reply: &Result<PageVersion, PageStoreError>,
        into: &PageBuf,
    ) {
        match reply {
            Ok(reply) => {
                assert!(reply.as_of >= version.position(), "{page} {version:?}: {reply:?}");
                assert!(
                    reply.as_of == version.position() || !matches!(version, PageRead::AsOf(_)),
                    "{page} {version:?}: {reply:?}"
                );
                assert!(reply.as_of <= self.model.durable, "{page}: {reply:?} is not durable");
                let expected = self.model.as_of(page, reply.as_of);
                let expected = expected.unwrap_or_else(|| panic!("{page} is gone: {reply:?}"));
                assert_eq!((reply.lsn, into.lsn()), (expected.lsn(), expected.lsn()), "{page}");
                assert!(is_same(into, expected), "{page} {version:?}: other bytes");
            }
            Err(PageStoreError::Absent(absent)) => {
                let latest = match version {
                    PageRead::Latest { .. } => self.model.durable,
                    PageRead::AsOf(position) => position,
                };
                let was_absent = |position| self.model.as_of(page, position).is_none();
                let may_be = was_absent(version.position()) || was_absent(latest);
                let is_held = self.is_held(version.position());
                let is_past = matches!(version, PageRead::AsOf(_));
                assert!(*absent == page && (may_be || (is_past && !is_held)), "{page} {version:?}");
            }
            Err(PageStoreError::TooOld { wanted, .. }) => {
                assert_eq!(version, PageRead::AsOf(*wanted), "{page}");
                let is_newest = *wanted >= self.model.newest_lsn(page) && self.model.is_live(page);
                let is_newest = is_newest && *wanted == self.model.durable;
                assert!(!self.is_held(*wanted) && !is_newest, "{page} as of {wanted}");
            }
            Err(error) => panic!("{page} {version:?}: {error}"),
        }
    }

    fn is_held(&self, position: Lsn) -> bool {
        self.leases.iter().any(|lease| lease.position() <= position)
    }

    // ---- leases ----

    fn change_leases(&mut self) {
        match self.below(4) {
            0 if !self.leases.is_empty() => {
                let index = self.below(self.leases.len() as u64) as usize;
                drop(self.leases.swap_remove(index));
            }
            1 if !self.leases.is_empty() => {
                let lease = &self.leases[self.below(self.leases.len() as u64) as usize];
                let to = self.any_position(lease.position());
                lease.advance(to);
                lease.advance(Lsn(0));
                assert_eq!(lease.position(), to);
            }
            _ if self.leases.len() < 3 => self.hold(),
            _ => {}
        }
    }

    fn hold(&mut self) {
        let recent = Lsn(self.model.durable.0.saturating_sub(2000)).max(Lsn::FIRST);
        let position = self.any_position(recent);
        match self.subject.store().hold("conformance", position) {
            Ok(lease) => {
                assert_eq!(lease.position(), position);
                self.leases.push(lease);
            }
            Err(PageStoreError::NotKept { kept_from, .. }) => {
                assert!(!self.is_held(position), "somebody holds {position}");
                assert!(position < kept_from && kept_from <= self.model.durable, "{kept_from}");
            }
            Err(error) => panic!("{position}: {error}"),
        }
    }

    // ---- what is covered, and restarts ----

    fn check_covered(&mut self) {
        let store = self.subject.store();
        for page in self.model.versions.keys() {
            let applied = store.applied_lsn(*page);
            let before = self.covered.insert(*page, applied).unwrap_or_default();
            assert!(before <= applied, "{page}: applied went from {before} back to {applied}");
            assert!(applied <= self.model.durable, "{page}: {applied} is not durable");
            let newest = self.model.newest_lsn(*page);
            assert_eq!(store.is_covered(*page, newest), newest <= store.applied_lsn(*page));
        }
    }

    fn restart(&mut self) {
        self.check_everything();
        self.leases.clear();
        let store = self.subject.store();
        let live = self.model.versions.keys().filter(|page| self.model.is_live(**page));
        let needed = live.map(|page| store.applied_lsn(*page)).min().unwrap_or_default();
        drop(store);
        self.subject.truncate_log(needed);
        self.subject.restart();
        self.covered.clear();
        self.check_everything();
    }

    fn check_everything(&mut self) {
        let at_least = self.model.durable;
        for page in self.model.versions.keys() {
            self.check_read(*page, PageRead::Latest { at_least });
            for lease in &self.leases {
                self.check_read(*page, PageRead::AsOf(lease.position()));
            }
        }
        self.check_covered();
    }
}

/// The buffers and replies of a batch.
struct Batch {
    buffers: Vec<Box<PageBuf>>,
    replies: Vec<Option<Result<PageVersion, PageStoreError>>>,
}

impl PageSink for Batch {
    fn page_mut(&mut self, index: usize) -> &mut PageBuf {
        assert!(self.replies[index].is_none(), "request {index} has ended");
        &mut self.buffers[index]
    }

    fn complete(&mut self, index: usize, reply: Result<PageVersion, PageStoreError>) {
        let before = self.replies[index].replace(reply);
        assert!(before.is_none(), "request {index} was completed twice");
    }
}

fn is_transient(reply: &Result<PageVersion, PageStoreError>) -> bool {
    reply.as_ref().is_err_and(PageStoreError::is_transient)
}

/// Whether the pages are equal except for their checksums, which a store may or may not set.
fn is_same(one: &PageBuf, other: &PageBuf) -> bool {
    let (mut one, mut other) = (one.clone(), other.clone());
    one.seal();
    other.seal();
    one.bytes() == other.bytes()
}
