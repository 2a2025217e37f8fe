//! A process's page node: a task opens it once its log answers, and serves it. It fills the node
//! with the pages of others, and deletes them, as control orders.
//!
//! ```text
//!   nothing ── copy: pages of others, then the log ──► held ── retire ──► nothing
//!                                                       │
//!                                     open: answers readers, once the log answers
//! ```
//!
//! Whether the node has pages is in the process's record ([`crate::record`]). A page node that
//! starts needs a log that knows at least what its pages include. When a whole cluster starts, or a
//! majority is away, that takes as long as it takes: the task tries again until then. Pages that
//! cannot be used are given up. Control learns that from the node's reports, and has them copied
//! again.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use firn_api::{LogError, LogStore, PageStore, PageStoreError};
use firn_base::network::NodeId;
use firn_base::{Environment, Lsn};
use firn_control::{ChunkId, ChunkReport, Epoch, OperationId, OrderNumber, Progress};
use firn_format::page::PAGE_SIZE;
use firn_link::{Caller, Service};
use firn_log_service::{RemoteLog, RemoteLogOptions};
use firn_page_service::{PageNodeLink, PageService, PageServiceOptions};
use firn_storage::local::{DatabaseId, OpenError, PageStoreOptions};
use firn_storage::page_node::{PageNode, PageNodeOptions, ReceivedLogOptions};
use parking_lot::{Mutex, RwLock};

use crate::lag::Lag;
use crate::late::LateService;
use crate::message::PagesStatus;
use crate::page_copy::{CopyError, CopyPlace, copy_pages};
use crate::page_list::PageListService;
use crate::record::RecordFile;
use crate::task::{Stop, Task};

/// The node's pages are in this directory below the process's own.
pub(crate) const DIRECTORY: &str = "page-node";
/// How long log gathers before it is sent to a page node. A push costs about as much as a commit's
/// message to a member, and a page is hardly ever read so soon after it has changed.
const GATHER: Duration = Duration::from_millis(4);
/// The pause before the node is opened again, or a copy is tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// Where a page node's log comes from.
pub(crate) enum LogSource {
    /// A member of the group in this process.
    Own(Arc<dyn LogStore>),
    /// The members of the group, elsewhere.
    Remote(Box<dyn Fn() -> Vec<Arc<Caller>> + Send + Sync>),
}

/// How a page node is opened.
pub(crate) struct PageRoleOptions {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) database: DatabaseId,
    pub(crate) pages: PageStoreOptions,
}

/// Links to page nodes, as far as they are known.
pub(crate) type PageLinks = Box<dyn Fn(&[NodeId]) -> Vec<PageNodeLink> + Send + Sync>;

/// What a page node needs of the rest of the process.
pub(crate) struct PageRoleParts {
    pub(crate) record: Arc<RecordFile>,
    pub(crate) log: LogSource,
    pub(crate) links: PageLinks,
    /// Whether another node has the pages, as far as is known.
    pub(crate) others_have_pages: Box<dyn Fn() -> bool + Send + Sync>,
    /// Tells control that an order is carried out.
    pub(crate) done: Box<dyn Fn(OrderNumber, Lsn) + Send + Sync>,
    pub(crate) doors: PageDoors,
}

/// The services of a page node.
#[derive(Clone, Default)]
pub(crate) struct PageDoors {
    pub(crate) pages: Arc<LateService>,
    pub(crate) list: Arc<LateService>,
}

/// What control orders about the node's pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageOrder {
    pub(crate) number: OrderNumber,
    pub(crate) chunk: ChunkId,
    pub(crate) epoch: Epoch,
    pub(crate) act: PageAct,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PageAct {
    /// Get the pages from these nodes.
    Copy(Vec<NodeId>),
    /// Readers come from now on.
    Serve,
    /// Delete the pages.
    Retire,
}

/// The page node, while it is open.
pub(crate) struct PageRole {
    shared: Arc<Shared>,
    task: Task,
}

struct Shared {
    environment: Environment,
    options: PageRoleOptions,
    parts: PageRoleParts,
    opened: RwLock<Option<Opened>>,
    /// What is to be done, and what is being done.
    orders: Mutex<Orders>,
    /// Why the node is not open.
    obstacle: Mutex<String>,
    /// What is wrong with the node's directory.
    failure: Mutex<Option<Arc<OpenError>>>,
    lag: Mutex<Lag>,
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
    log: Arc<dyn LogStore>,
    node: Arc<PageNode>,
    service: Arc<PageService>,
    /// Kept because the node's log comes through it.
    remote: Option<Arc<RemoteLog>>,
    /// Held by the process's engine while it reads here.
    user: Arc<()>,
}

/// A log, and what it comes through if its members are elsewhere.
type OpenedLog = (Arc<dyn LogStore>, Option<Arc<RemoteLog>>);

/// A page node of this process that an engine reads from.
pub(crate) struct OwnPages {
    pub(crate) node: Arc<PageNode>,
    _user: Arc<()>,
}

impl PageRole {
    /// Begins to open the node, if it has pages; requests that come in at the doors are answered
    /// once it is open.
    pub(crate) fn start(
        environment: &Environment,
        options: PageRoleOptions,
        parts: PageRoleParts,
    ) -> PageRole {
        let shared = Arc::new(Shared {
            environment: environment.clone(),
            options,
            parts,
            opened: RwLock::new(None),
            orders: Mutex::default(),
            obstacle: Mutex::new("it is being opened".to_owned()),
            failure: Mutex::new(None),
            lag: Mutex::default(),
        });
        let own = Arc::clone(&shared);
        let task = Task::start(environment, "page-node", move |stop| own.run(stop));
        PageRole { shared, task }
    }

    /// Whether the node has pages, open or not, and nobody has ordered it to delete them.
    pub(crate) fn has_pages(&self) -> bool {
        let is_retired = |order: &Option<PageOrder>| {
            order.as_ref().is_some_and(|order| order.act == PageAct::Retire)
        };
        let orders = self.shared.orders.lock();
        let leaves = is_retired(&orders.next) || is_retired(&orders.current);
        drop(orders);
        !leaves && self.shared.parts.record.held().is_some()
    }

    /// The node, if it is open, for an engine. It is not closed while the engine has it.
    pub(crate) fn own_pages(&self) -> Option<OwnPages> {
        let opened = self.shared.opened.read();
        let opened = opened.as_ref()?;
        Some(OwnPages { node: Arc::clone(&opened.node), _user: Arc::clone(&opened.user) })
    }

    /// From where on the node needs the log, if it is open.
    pub(crate) fn kept_from(&self) -> Option<Lsn> {
        let opened = self.shared.opened.read();
        opened.as_ref().map(|opened| opened.node.status().log.kept_from)
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
    pub(crate) fn report(&self) -> Option<(ChunkId, ChunkReport)> {
        let (chunk, epoch) = self.shared.parts.record.held()?;
        let status = self.shared.opened.read().as_ref().map(|opened| opened.node.status().pages);
        let (position, pages) = status.map_or((Lsn(0), 0), |status| {
            (status.applied_lsn, status.slots.saturating_sub(status.free_slots))
        });
        let bytes = pages * PAGE_SIZE as u64;
        let pages = u32::try_from(pages).unwrap_or(u32::MAX);
        Some((chunk, ChunkReport { epoch, position, bytes, pages }))
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
            let (end, applied) = (opened.log.durable_lsn(), opened.node.status().pages.applied_lsn);
            self.shared.lag.lock().sample(self.shared.now(), end, applied);
        }
    }

    /// The node's state. `None` if it has no pages, and gets none.
    pub(crate) fn status(&self) -> Option<PagesStatus> {
        let opened = self.shared.opened.read().clone();
        let Some(Opened { node, .. }) = opened else {
            let is_idle = self.shared.parts.record.held().is_none() && self.copied().is_none();
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
            if self.parts.record.held().is_some() && self.opened.read().is_none() {
                self.try_open();
            }
            stop.pause_or_wake(PAUSE);
        }
    }

    fn try_open(&self) {
        match self.open() {
            Ok(()) => {}
            Err(error) if waits_for_log(&error) => *self.obstacle.lock() = error.to_string(),
            Err(error) if are_lost(&error) && (self.parts.others_have_pages)() => {
                tracing::error!(%error, "this node's pages cannot be used; it gets others");
                *self.obstacle.lock() = error.to_string();
                self.hold(None);
            }
            Err(error) => *self.failure.lock() = Some(Arc::new(error)),
        }
    }

    /// Notes which pages the node has.
    fn hold(&self, held: Option<(ChunkId, Epoch)>) {
        if let Err(error) = self.parts.record.change(|record| record.held = held) {
            tracing::warn!(%error, "what the node has is not noted; it is found out later");
        }
    }

    /// Opens the node, and answers readers.
    fn open(&self) -> Result<(), OpenError> {
        let (environment, options) = (&self.environment, &self.options);
        let (log, remote) = self.open_log(Some(options.name.clone()))?;
        let node = PageNodeOptions {
            log: ReceivedLogOptions { name: options.name.clone(), ..ReceivedLogOptions::default() },
            pages: options.pages.clone(),
        };
        let (path, follows) = (&options.path, Arc::clone(&log));
        let node = PageNode::open(environment, path, options.database, follows, node)?;
        let store = Arc::clone(&node) as Arc<dyn PageStore>;
        let service = PageService::new(environment, store, PageServiceOptions::default());
        let list = Arc::new(PageListService(Arc::clone(&node)));
        *self.opened.write() =
            Some(Opened { log, node, service: Arc::clone(&service), remote, user: Arc::default() });
        self.parts.doors.pages.begin(service as Arc<dyn Service>);
        self.parts.doors.list.begin(list as Arc<dyn Service>);
        Ok(())
    }

    /// The log, through a reader that stays registered under a name when this process is gone.
    fn open_log(&self, stays: Option<String>) -> Result<OpenedLog, LogError> {
        match &self.parts.log {
            LogSource::Own(log) => Ok((Arc::clone(log), None)),
            LogSource::Remote(members) => {
                let readers =
                    RemoteLogOptions { stays, gather: GATHER, ..RemoteLogOptions::default() };
                let remote = RemoteLog::open(&self.environment, members(), readers)?;
                Ok((Arc::clone(&remote) as Arc<dyn LogStore>, Some(remote)))
            }
        }
    }

    fn close_node(&self) {
        self.parts.doors.pages.end();
        self.parts.doors.list.end();
        let opened = self.opened.write().take();
        if let Some(opened) = opened {
            opened.service.close();
            opened.node.close();
            if let Some(remote) = &opened.remote {
                remote.close();
            }
        }
    }

    fn carry_out(&self, order: &PageOrder, stop: &Stop) {
        let held = (order.chunk, order.epoch);
        let is_here = self.parts.record.held().is_some_and(|(chunk, _)| chunk == order.chunk);
        let outcome = match &order.act {
            PageAct::Copy(_) if is_here => self.catch_up(held),
            PageAct::Copy(sources) => self.copy(order, sources, stop).and_then(|()| {
                self.hold(Some(held));
                self.catch_up(held)
            }),
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

    /// Fills the directory. The log is held until the node follows it.
    fn copy(&self, order: &PageOrder, sources: &[NodeId], stop: &Stop) -> Result<(), CopyError> {
        self.close_node();
        *self.obstacle.lock() = "its pages are being copied".to_owned();
        let (log, remote) = self.open_log(None)?;
        let place = CopyPlace {
            environment: &self.environment,
            name: format!("{}-copy", self.options.name),
            path: &self.options.path,
            database: self.options.database,
        };
        let operation = order.number.operation;
        let mut go_on = |progress| {
            self.orders.lock().copied = Some((operation, progress));
            self.is_wanted(order, stop)
        };
        let copied = copy_pages(&place, &*log, (self.parts.links)(sources), &mut go_on);
        // What holds the log goes after the node follows it.
        let opened = copied.map(|kept| (self.open(), kept));
        let opened = opened.map(|(opened, kept)| {
            drop(kept);
            opened
        });
        if let Some(remote) = remote {
            remote.close();
        }
        Ok(opened??)
    }

    /// Waits until the node has all that is durable now in stored images, and notes the epoch.
    fn catch_up(&self, held: (ChunkId, Epoch)) -> Result<Lsn, CopyError> {
        if self.opened.read().is_none() {
            self.open()?;
        }
        let opened = self.opened.read().clone();
        let Some(Opened { log, node, .. }) = opened else { return Err(CopyError::GivenUp) };
        let position = log.durable_lsn();
        node.materialise_up_to(position)?;
        if self.parts.record.held() != Some(held) {
            self.hold(Some(held));
        }
        Ok(position)
    }

    /// Deletes the pages, once no engine of this process reads them.
    fn retire(&self, stop: &Stop) -> Result<Lsn, CopyError> {
        let is_used = || {
            let opened = self.opened.read();
            opened.as_ref().is_some_and(|opened| Arc::strong_count(&opened.user) > 1)
        };
        while is_used() {
            if stop.pause(PAUSE) {
                return Err(CopyError::GivenUp);
            }
        }
        let remote = self.opened.read().as_ref().and_then(|opened| opened.remote.clone());
        if let Some(remote) = remote {
            // A registration that stays is dropped when it holds back too much.
            if let Err(error) = remote.forget(&self.options.name) {
                tracing::warn!(%error, "the log is held for this node for a while");
            }
        }
        self.close_node();
        self.hold(None);
        let disk = &self.environment.disk;
        for name in disk.list(&self.options.path.join("pages")).unwrap_or_default() {
            if let Err(error) = disk.remove(&name) {
                tracing::warn!(%error, file = %name.display(), "a file of pages is left over");
            }
        }
        Ok(Lsn(0))
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
