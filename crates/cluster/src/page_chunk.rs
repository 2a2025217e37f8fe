//! A chunk of a process's page node: a task opens its pages once the log answers. It fills them
//! with those of other nodes, and deletes them, as control orders.
//!
//! ```text
//!   nothing ── copy: pages of others, then the log ──► held ── retire ──► nothing
//!           └─ copy a part of another chunk here ─────► │ ▲
//!                                                       │ └─ narrow: the chunk was cut in two
//!                                     open: answers readers, once the log answers
//! ```
//!
//! Whether the node has the chunk, and which pages of it, is in the process's record
//! ([`crate::record`]). It is written after pages were copied, and before some are dropped. A chunk
//! that is cut in two in the layout serves all that it had until the rest is in service as another
//! chunk ([`Layout::kept_part`](crate::layout::Layout)). Nobody orders that: a node that was away
//! finds it in the layout.
//!
//! A chunk that is opened needs a log that knows at least what its pages include. When a whole
//! cluster starts, or a majority is away, that takes as long as it takes: the task tries again
//! until then. Pages that cannot be used are given up. Control learns that from the node's reports,
//! and has them copied again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_api::{LogError, PageStoreError};
use firn_archive::ArchiveError;
use firn_base::disk::Disk;
use firn_base::network::NodeId;
use firn_base::{Environment, Lsn};
use firn_control::{ChunkId, ChunkReport, Epoch, OperationId, OrderNumber, Progress, narrowed};
use firn_format::page::PAGE_SIZE;
use firn_page_service::PageNodeLink;
use firn_storage::local::{DatabaseId, OpenError, PageStoreOptions};
use firn_storage::page_node::{PageNode, PageNodeOptions, ReceivedLogOptions};
use parking_lot::{Mutex, RwLock};

use crate::lag::Lag;
use crate::layout::Origin;
use crate::layout::parts::HeldPart;
use crate::message::PagesStatus;
use crate::node_log::{FollowedLog, NodeLog};
use crate::open_chunks::OpenChunks;
use crate::page_archive::{OpenArchive, PagesPlace};
use crate::page_copy::{CopyError, CopyPlace, CopySource, copy_pages};
use crate::page_order::{PageAct, PageOrder};
use crate::record::RecordFile;
use crate::task::{Stop, Task};
use crate::view::View;

/// The pause before the node is opened again, or a copy is tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// Where pages are kept, those of a node or of a chunk, and how.
#[derive(Clone)]
pub(crate) struct PagesOptions {
    pub(crate) path: PathBuf,
    pub(crate) database: DatabaseId,
    pub(crate) pages: PageStoreOptions,
    /// What a founder begins with, if that is not empty.
    pub(crate) origin: Option<Arc<Origin>>,
    pub(crate) open_archive: OpenArchive,
}

/// How a chunk is opened.
pub(crate) struct PageChunkOptions {
    pub(crate) chunk: ChunkId,
    /// Its pages that the node has, or gets.
    pub(crate) part: HeldPart,
    /// Its name among the log's readers.
    pub(crate) name: String,
    /// With its part of what the node has.
    pub(crate) kept: PagesOptions,
    /// Memory for log that it has received, in bytes.
    pub(crate) log_memory_bytes: usize,
}

/// Links to page nodes, as far as they are known.
pub(crate) type PageLinks = Box<dyn Fn(&[NodeId]) -> Vec<PageNodeLink> + Send + Sync>;

/// What the chunks of a page node need of the rest of the process.
pub(crate) struct PageParts {
    pub(crate) record: Arc<RecordFile>,
    pub(crate) view: Arc<View>,
    pub(crate) log: NodeLog,
    pub(crate) links: PageLinks,
    /// Whether another node has a chunk, as far as is known.
    pub(crate) others_have: Box<dyn Fn(ChunkId) -> bool + Send + Sync>,
    /// Held by engines of the process that read here, whichever chunks there are.
    pub(crate) user: Arc<()>,
    /// Tells control that an order is carried out.
    pub(crate) done: Arc<dyn Fn(OrderNumber, Lsn) + Send + Sync>,
    /// Where readers find it while it is open.
    pub(crate) open: Arc<OpenChunks>,
}

/// A chunk that the node has, gets or gives away.
pub(crate) struct PageChunk {
    shared: Arc<Shared>,
    task: Task,
}

struct Shared {
    environment: Environment,
    options: PageChunkOptions,
    parts: Arc<PageParts>,
    /// The pages of the chunk that the node has, or gets.
    part: Mutex<HeldPart>,
    /// It was cut in two since it was opened.
    has_narrowed: AtomicBool,
    opened: RwLock<Option<Opened>>,
    /// The orders that wait, and the one under way.
    orders: Mutex<Orders>,
    /// Why the node is not open.
    obstacle: Mutex<String>,
    /// What is wrong with the node's directory.
    failure: Mutex<Option<Arc<OpenError>>>,
    lag: Mutex<Lag>,
    /// The task must open the node again over another log.
    changes_log: AtomicBool,
    /// The log's members let go of what the node held, or its pages were just copied; see
    /// [`ReceivedLogOptions::only_needed`].
    only_needed: AtomicBool,
}

#[derive(Default)]
struct Orders {
    next: Option<PageOrder>,
    current: Option<PageOrder>,
    /// How far the copy under way is.
    copied: Option<(OperationId, Progress)>,
}

#[derive(Clone)]
struct Opened {
    log: Arc<FollowedLog>,
    node: Arc<PageNode>,
}

/// A chunk of this process that an engine reads from.
pub(crate) struct OwnChunk {
    pub(crate) node: Arc<PageNode>,
    _user: Arc<()>,
}

impl PageChunk {
    /// Begins to open the chunk, if the node has it.
    pub(crate) fn start(
        environment: &Environment,
        options: PageChunkOptions,
        parts: &Arc<PageParts>,
    ) -> PageChunk {
        let shared = Arc::new(Shared {
            environment: environment.clone(),
            part: Mutex::new(options.part),
            has_narrowed: AtomicBool::new(false),
            options,
            parts: Arc::clone(parts),
            opened: RwLock::new(None),
            orders: Mutex::default(),
            obstacle: Mutex::new("it is being opened".to_owned()),
            failure: Mutex::new(None),
            lag: Mutex::default(),
            changes_log: AtomicBool::new(false),
            only_needed: AtomicBool::new(false),
        });
        let own = Arc::clone(&shared);
        let task = Task::start(environment, "page-node", move |stop| own.run(stop));
        PageChunk { shared, task }
    }

    /// Whether the node has the chunk, open or not, and nobody has ordered it to delete it.
    pub(crate) fn stays(&self) -> bool {
        let is_retired = |order: &Option<PageOrder>| {
            order.as_ref().is_some_and(|order| order.act == PageAct::Retire)
        };
        let orders = self.shared.orders.lock();
        let leaves = is_retired(&orders.next) || is_retired(&orders.current);
        drop(orders);
        !leaves && self.is_held()
    }

    /// Whether the node has the chunk, open or not.
    pub(crate) fn is_held(&self) -> bool {
        self.shared.epoch().is_some()
    }

    /// Whether there is nothing to do about the chunk: the node does not have it.
    pub(crate) fn is_idle(&self) -> bool {
        let orders = self.shared.orders.lock();
        orders.next.is_none() && orders.current.is_none() && !self.is_held()
    }

    /// The chunk, if it is open, for an engine. No chunk is given away while the engine has it.
    pub(crate) fn own(&self) -> Option<OwnChunk> {
        let opened = self.shared.opened.read();
        let opened = opened.as_ref()?;
        Some(OwnChunk {
            node: Arc::clone(&opened.node),
            _user: Arc::clone(&self.shared.parts.user),
        })
    }

    /// Opens the node again, if it is open: the log that it follows goes.
    pub(crate) fn change_log(&self) {
        self.shared.changes_log.store(true, Ordering::SeqCst);
        self.task.wake();
    }

    /// Takes an order. One that is under way already, or is the same, changes nothing.
    pub(crate) fn order(&self, order: PageOrder) {
        let mut orders = self.shared.orders.lock();
        if orders.current.as_ref() != Some(&order) {
            orders.next = Some(order);
        }
        drop(orders);
        self.task.wake();
    }

    /// What the node has, for control.
    pub(crate) fn report(&self) -> Option<ChunkReport> {
        let epoch = self.shared.epoch()?;
        let status = self.shared.opened.read().as_ref().map(|opened| opened.node.status().pages);
        let (position, pages) = status.map_or((Lsn(0), 0), |status| {
            (status.applied_lsn, status.slots.saturating_sub(status.free_slots))
        });
        let pages = self.shared.own_share(pages);
        let bytes = pages * PAGE_SIZE as u64;
        let pages = u32::try_from(pages).unwrap_or(u32::MAX);
        Some(ChunkReport { epoch, position, bytes, pages })
    }

    /// How far the copy under way is.
    pub(crate) fn copied(&self) -> Option<(OperationId, Progress)> {
        self.shared.orders.lock().copied
    }

    /// Why the process must end: the node's directory cannot be used.
    pub(crate) fn failure(&self) -> Option<Arc<OpenError>> {
        self.shared.failure.lock().clone()
    }

    /// Notes how far the log and the node are now. Called at a steady rate.
    pub(crate) fn sample(&self) {
        if let Some(opened) = &*self.shared.opened.read() {
            let (end, applied) =
                (opened.log.store.durable_lsn(), opened.node.status().pages.applied_lsn);
            self.shared.lag.lock().sample(self.shared.now(), end, applied);
        }
    }

    /// The node's state. `None` if it has no pages, and gets none.
    pub(crate) fn status(&self) -> Option<PagesStatus> {
        let opened = self.shared.opened.read().clone();
        let Some(Opened { node, .. }) = opened else {
            let is_idle = !self.is_held() && self.copied().is_none();
            let failure = Some(self.shared.obstacle.lock().clone());
            return (!is_idle).then(|| PagesStatus { failure, ..PagesStatus::default() });
        };
        let status = node.status();
        let behind = self.shared.lag.lock().age(self.shared.now(), status.pages.applied_lsn);
        Some(PagesStatus {
            is_open: true,
            kept_from: status.log.kept_from,
            received: status.log.indexed,
            applied: status.pages.applied_lsn,
            behind_ms: behind.as_millis() as u64,
            images_per_second: status.pages.images_per_second,
            failure: status.log.failure.map(|error| error.to_string()),
        })
    }

    /// Closes the node. Blocks until its I/O is done.
    pub(crate) fn close(&self) {
        self.task.close();
        self.shared.close_node();
    }
}

impl Shared {
    fn now(&self) -> Duration {
        self.environment.clock.monotonic()
    }

    /// The epoch of the chunk, if the node has it.
    fn epoch(&self) -> Option<Epoch> {
        self.parts.record.held_epoch(self.options.chunk)
    }

    fn run(&self, stop: &Stop) {
        while !stop.is_set() {
            let order = {
                let mut orders = self.orders.lock();
                orders.current = orders.next.take();
                orders.current.clone()
            };
            if let Some(order) = order {
                self.carry_out(&order, stop);
                self.orders.lock().current = None;
                continue;
            }
            if self.has_lost_its_place() {
                self.only_needed.store(true, Ordering::SeqCst);
                self.close_node();
            }
            if self.changes_log.swap(false, Ordering::SeqCst) {
                self.close_node();
            }
            if self.epoch().is_some() && self.opened.read().is_none() {
                self.try_open();
            }
            self.narrow_if_due();
            self.parts.log.follow_members();
            stop.pause_or_wake(PAUSE);
        }
    }

    /// Whether the log's members let go of what the open node held there. After a restart it holds
    /// what was last written down of it, which may be more than it needs, and more than members
    /// that came since then have. Opened again, it begins where its pages need the log, and says if
    /// that is gone.
    fn has_lost_its_place(&self) -> bool {
        let opened = self.opened.read();
        let failure = opened.as_ref().and_then(|opened| opened.node.status().log.failure);
        matches!(failure, Some(LogError::ReaderDropped { .. }))
    }

    /// Makes the pages that a founder begins with, if it has none yet.
    fn begin(&self) -> Result<(), ArchiveError> {
        let options = &self.options.kept;
        let Some(origin) = &options.origin else { return Ok(()) };
        let place = PagesPlace {
            environment: &self.environment,
            path: &options.path,
            database: options.database,
        };
        if place.is_empty() {
            let mut tell = |how_far: String| *self.obstacle.lock() = how_far;
            place.restore(&options.open_archive, origin, &mut tell)?;
        }
        Ok(())
    }

    fn try_open(&self) {
        if let Err(error) = self.begin() {
            let what = format!("its pages cannot be taken from the archive: {error}");
            let before = std::mem::replace(&mut *self.obstacle.lock(), what.clone());
            if before != what {
                tracing::error!("{what}");
            }
            return;
        }
        match self.open() {
            Ok(()) => {}
            Err(error) if waits_for_log(&error) => *self.obstacle.lock() = error.to_string(),
            Err(error) if are_lost(&error) && self.may_be_given_up() => {
                tracing::error!(%error, "this node's pages cannot be used; it gets others");
                *self.obstacle.lock() = error.to_string();
                self.hold(None);
            }
            Err(error) => *self.failure.lock() = Some(Arc::new(error)),
        }
    }

    /// Whether other nodes have the pages, as far as is known, or the chunk is one that is still
    /// being made of another one.
    fn may_be_given_up(&self) -> bool {
        let chunk = self.options.chunk;
        let is_unknown = self.parts.view.layout().held_part(chunk).is_none();
        is_unknown || (self.parts.others_have)(chunk)
    }

    fn part(&self) -> HeldPart {
        *self.part.lock()
    }

    /// Notes whether the node has the chunk. Whether that is on the disk.
    fn hold(&self, epoch: Option<Epoch>) -> bool {
        let (chunk, part) = (self.options.chunk, self.part());
        let noted = self.parts.record.change(|record| match epoch {
            Some(epoch) => {
                record.held.insert(chunk, epoch);
                record.parts.insert(chunk, part);
            }
            None => {
                record.held.remove(&chunk);
                record.parts.remove(&chunk);
            }
        });
        if let Err(error) = &noted {
            tracing::warn!(%error, "what the node has is not noted; it is found out later");
        }
        noted.is_ok()
    }

    /// As [`Shared::hold`], for what control is told once it is on the disk.
    fn note(&self, epoch: Option<Epoch>) -> Result<(), CopyError> {
        match self.hold(epoch) {
            true => Ok(()),
            false => Err(CopyError::NotNoted),
        }
    }

    /// Drops the pages that are in service as another chunk, if the chunk was cut in two.
    fn narrow_if_due(&self) {
        let (chunk, before) = (self.options.chunk, self.part());
        let opened = self.opened.read().clone();
        let Some((opened, epoch)) = opened.zip(self.epoch()) else { return };
        let Some(kept) = self.parts.view.layout().kept_part(chunk, &before) else { return };
        if self.has_engine() && !self.are_elsewhere_here(&before, &kept) {
            // The engine is opened again, and reads elsewhere.
            return;
        }
        *self.part.lock() = kept;
        if !self.hold(Some(epoch)) {
            *self.part.lock() = before;
            return;
        }
        tracing::info!(
            chunk = chunk.0,
            "the chunk was cut in two; the rest of its pages is dropped"
        );
        self.has_narrowed.store(true, Ordering::SeqCst);
        self.parts.open.narrowed(chunk, &kept.filter());
        opened.node.narrow(&kept.filter());
        // It followed the log by itself while there was no other chunk.
        opened.node.share_log(opened.log.shared(&self.environment));
    }

    /// Whether an engine of this process reads the node's chunks.
    fn has_engine(&self) -> bool {
        Arc::strong_count(&self.parts.user) > 1
    }

    /// Whether other chunks of this node have what the chunk had and does not keep.
    fn are_elsewhere_here(&self, before: &HeldPart, kept: &HeldPart) -> bool {
        let others = self.parts.record.parts_beside(self.options.chunk);
        let others = others.iter().map(HeldPart::places);
        narrowed(&before.places(), &kept.places(), others).is_some()
    }

    /// How many of the chunk's pages are its own: not those that the node has as another chunk too,
    /// because this one is being cut.
    fn own_share(&self, pages: u64) -> u64 {
        let part = self.part();
        let opened = self.opened.read();
        let is_narrowing = self.has_narrowed.load(Ordering::SeqCst)
            && opened.as_ref().is_some_and(|opened| opened.node.is_narrowing());
        let others = self.parts.record.parts_beside(self.options.chunk);
        let within = others.iter().filter(|other| part.covers(other)).map(HeldPart::width).sum();
        match (is_narrowing, part.width()) {
            // It has about twice as much as it keeps.
            (true, _) => pages / 2,
            (_, 0) => pages,
            (_, width) => {
                let own = u128::from(width.saturating_sub(within));
                (u128::from(pages) * own / u128::from(width)) as u64
            }
        }
    }

    /// Opens the node, and answers readers.
    fn open(&self) -> Result<(), OpenError> {
        let (environment, options) = (&self.environment, &self.options);
        let (log, part) = (self.parts.log.get()?, self.part());
        let log_options = ReceivedLogOptions {
            name: options.name.clone(),
            pages: part.filter(),
            memory_bytes: options.log_memory_bytes,
            only_needed: self.only_needed.load(Ordering::SeqCst),
            ..ReceivedLogOptions::default()
        };
        let node = PageNodeOptions { log: log_options, pages: options.kept.pages.clone() };
        let (path, database) = (&options.kept.path, options.kept.database);
        let is_alone = part.is_alone && self.parts.view.layout().chunks().count() == 1;
        let node = match is_alone {
            true => PageNode::open(environment, path, database, Arc::clone(&log.store), node)?,
            false => {
                let reader = log.shared(environment);
                PageNode::open_sharing(environment, path, database, reader, node)?
            }
        };
        self.only_needed.store(false, Ordering::SeqCst);
        *self.opened.write() = Some(Opened { log, node: Arc::clone(&node) });
        self.parts.open.opened(options.chunk, part.filter(), &node);
        Ok(())
    }

    fn close_node(&self) {
        let opened = self.opened.write().take();
        if let Some(opened) = opened {
            self.parts.open.closed(self.options.chunk);
            opened.node.close();
        }
    }

    fn carry_out(&self, order: &PageOrder, stop: &Stop) {
        let (held, is_here) = (order.epoch, self.epoch().is_some());
        let outcome = match &order.act {
            PageAct::Copy { part, .. } | PageAct::CopyPart { part, .. } => {
                self.get(order, part, stop)
            }
            PageAct::Serve if is_here => self.catch_up(held),
            PageAct::Serve => Err(CopyError::GivenUp),
            PageAct::Retire if is_here => self.retire(stop),
            PageAct::Retire => Ok(Lsn(0)),
        };
        self.orders.lock().copied = None;
        match outcome {
            Ok(position) => (self.parts.done)(order.number, position),
            Err(error) => {
                // Control repeats the order.
                tracing::warn!(%error, ?order, "an order about pages is not carried out yet");
                *self.obstacle.lock() = error.to_string();
                stop.pause(PAUSE);
            }
        }
    }

    /// Whether the task goes on with an order.
    fn is_wanted(&self, order: &PageOrder, stop: &Stop) -> bool {
        let orders = self.orders.lock();
        !stop.is_set() && orders.next.as_ref().is_none_or(|next| next == order)
    }

    /// Gets pages, if they are not here.
    fn get(&self, order: &PageOrder, part: &HeldPart, stop: &Stop) -> Result<Lsn, CopyError> {
        if self.epoch().is_some() && self.part().covers(part) {
            let outcome = self.catch_up(order.epoch);
            if let Err(CopyError::Open(error)) = &outcome
                && are_lost(error)
            {
                // Nobody relies on a copy that control still orders.
                self.hold(None);
            }
            return outcome;
        }
        if self.epoch().is_some() && matches!(order.act, PageAct::CopyPart { .. }) {
            // It has been cut since: the order is late.
            return Err(CopyError::GivenUp);
        }
        self.source(&order.act)?;
        self.close_node();
        self.note(None)?;
        *self.part.lock() = HeldPart { is_alone: self.options.part.is_alone, ..*part };
        self.copy(order, stop)?;
        self.note(Some(order.epoch))?;
        self.catch_up(order.epoch)
    }

    fn source(&self, act: &PageAct) -> Result<CopySource, CopyError> {
        match act {
            PageAct::Copy { sources, .. } => match (self.parts.links)(sources) {
                links if links.is_empty() => Err(CopyError::NoSource),
                links => Ok(CopySource::Nodes(links)),
            },
            PageAct::CopyPart { part, of } => {
                let whole = self.parts.record.part(*of).filter(|whole| whole.covers(part));
                let whole = whole.ok_or(CopyError::NoSource)?;
                let node = self.parts.open.node(*of).ok_or(CopyError::NoSource)?;
                Ok(CopySource::Own(node, part.width() * 100 / whole.width().max(1)))
            }
            PageAct::Serve | PageAct::Retire => Err(CopyError::NoSource),
        }
    }

    /// Fills the directory. The log is held until the node follows it.
    fn copy(&self, order: &PageOrder, stop: &Stop) -> Result<(), CopyError> {
        *self.obstacle.lock() = "its pages are being copied".to_owned();
        let log = self.parts.log.get()?;
        let place = CopyPlace {
            environment: &self.environment,
            chunk: self.options.chunk,
            part: self.part(),
            name: format!("copy-of-{}", self.options.name),
            path: &self.options.kept.path,
            database: self.options.kept.database,
        };
        let operation = order.number.operation;
        let mut go_on = |progress| {
            self.orders.lock().copied = Some((operation, progress));
            self.is_wanted(order, stop)
        };
        let source = self.source(&order.act)?;
        let copied = copy_pages(&place, &*log.store, &source, &mut go_on);
        // A chunk of this node that was cut meanwhile lacks a part of what the copy needs.
        let copied = copied.and_then(|kept| self.source(&order.act).map(|_| kept));
        // The copy has no older versions, so it needs no log before its position.
        self.only_needed.store(true, Ordering::SeqCst);
        // What holds the log goes after the node follows it.
        let opened = copied.map(|kept| (self.open(), kept));
        let opened = opened.map(|(opened, kept)| {
            drop(kept);
            opened
        });
        Ok(opened??)
    }

    /// Waits until the node has all that is durable now in stored images, and notes the epoch.
    fn catch_up(&self, held: Epoch) -> Result<Lsn, CopyError> {
        if self.opened.read().is_none() {
            self.open()?;
        }
        let opened = self.opened.read().clone();
        let Some(Opened { log, node, .. }) = opened else { return Err(CopyError::GivenUp) };
        let position = log.store.durable_lsn();
        node.materialise_up_to(position)?;
        if self.epoch() != Some(held) {
            self.note(Some(held))?;
        }
        Ok(position)
    }

    /// Deletes the pages, once no engine of this process reads them.
    fn retire(&self, stop: &Stop) -> Result<Lsn, CopyError> {
        // An engine reads nothing of a chunk that the cluster does not have.
        let is_known = || self.parts.view.layout().held_part(self.options.chunk).is_some();
        let is_used = || self.has_engine() && is_known();
        while is_used() {
            if stop.pause(PAUSE) {
                return Err(CopyError::GivenUp);
            }
        }
        let log = self.opened.read().as_ref().map(|opened| Arc::clone(&opened.log));
        self.close_node();
        if let Some(log) = log.or_else(|| self.parts.log.get().ok()) {
            log.forget(&self.options.name);
        }
        self.note(None)?;
        remove_pages(&*self.environment.disk, &self.options.kept.path);
        Ok(Lsn(0))
    }
}

/// Removes the pages of a chunk's directory, which may get others later. What cannot be removed
/// stays. Blocks for I/O.
pub(crate) fn remove_pages(disk: &dyn Disk, path: &Path) {
    for name in disk.list(&path.join("pages")).unwrap_or_default() {
        if let Err(error) = disk.remove(&name) {
            tracing::warn!(%error, file = %name.display(), "a file of pages is left over");
        }
    }
}

/// The error of the log that keeps a page node from being opened, if it is one.
fn of_log(error: &OpenError) -> Option<&LogError> {
    match error {
        OpenError::Log(error) | OpenError::Pages(PageStoreError::Log(error)) => Some(error),
        _ => None,
    }
}

/// Whether the node can be opened later, when the log's members answer, or know again how far their
/// log is durable.
fn waits_for_log(error: &OpenError) -> bool {
    match of_log(error) {
        Some(LogError::Unavailable { .. }) => true,
        Some(LogError::OutOfRange { position, to, .. }) => position > to,
        _ => false,
    }
}

/// Whether the node's pages are of no use: they are damaged, or log that they need is gone.
fn are_lost(error: &OpenError) -> bool {
    match (of_log(error), error) {
        (Some(LogError::OutOfRange { position, from, .. }), _) => position < from,
        (Some(LogError::ReaderDropped { .. }), _) => true,
        (None, OpenError::Pages(error)) => {
            matches!(error, PageStoreError::StoreDamaged { .. } | PageStoreError::Damaged { .. })
        }
        _ => false,
    }
}
