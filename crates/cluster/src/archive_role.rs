//! A process's archiver: it runs while the process is the one that archives the cluster.
//!
//! ```text
//!   standby ── chosen, and the page node is open ──► archiving ── another one is chosen ──► standby
//! ```
//!
//! The archiver reads the log as any reader does, and images from the process's page node, or from
//! all page nodes if that one has only a part of the pages. The log
//! that the archive lacks is kept by the log's members ([`crate::log_keeper`]), not by the archiver
//! alone: so the process that is chosen after it goes on where it ended.
//!
//! Architecture invariant: of the processes that believe to be chosen, the archive takes the one
//! with the newest choice ([`crate::choice`]). The others stop at their next write, which has no
//! effect.

use std::sync::Arc;
use std::time::Duration;

use firn_api::report::ArchiveProgress;
use firn_api::{LogError, LogStore, PageRead, PageStore, PageStoreError};
use firn_archive::{ArchiveSource, ArchiveStatus, ArchivedPages, Archiver, TakenOver};
use firn_base::network::NodeId;
use firn_base::{Environment, Lsn, PageId};
use firn_format::page::PageBuf;
use firn_log_service::{RemoteLog, RemoteLogOptions};
use firn_node::archived::ArchivePlace;
use firn_page_service::RemotePages;
use firn_storage::local::DatabaseId;
use parking_lot::Mutex;

use crate::choice::Choice;
use crate::engine_pages::EnginePages;
use crate::message::ArchivingStatus;
use crate::moments::ClusterWriter;
use crate::node_log::{CurrentLog, LogSource};
use crate::page_role::{OwnPages, PageRole};
use crate::task::{Stop, Task};
use crate::view::View;

/// How often the task looks whether the process is chosen.
const LOOK: Duration = Duration::from_millis(200);
/// The pause before an archiver that has stopped is started again in the same choice.
const PAUSE: Duration = Duration::from_secs(10);
/// Pages that are listed at once.
const LISTED: usize = 65_536;

/// What an archiver needs of the rest of the process.
pub(crate) struct ArchiveParts {
    pub(crate) place: ArchivePlace,
    pub(crate) own_number: NodeId,
    /// If the cluster has been taken over.
    pub(crate) taken_over: Option<TakenOver>,
    pub(crate) database: DatabaseId,
    pub(crate) log: CurrentLog,
    pub(crate) pages: Arc<PageRole>,
    /// The pages at all page nodes.
    pub(crate) elsewhere: Arc<EnginePages>,
    pub(crate) writer: Arc<ClusterWriter>,
    pub(crate) view: Arc<View>,
}

/// The archiver, while it runs.
pub(crate) struct ArchiveRole {
    shared: Arc<Shared>,
    task: Task,
}

struct Shared {
    environment: Environment,
    parts: ArchiveParts,
    running: Mutex<Option<Running>>,
    /// Why the archiver does not run, though the process is chosen.
    obstacle: Mutex<Option<String>>,
}

struct Running {
    epoch: u64,
    began: Duration,
    archiver: Archiver,
    /// The log, if its members are elsewhere, and the nodes of those.
    remote: Option<(Arc<RemoteLog>, Vec<NodeId>)>,
}

impl Running {
    fn close(&self) {
        self.archiver.close();
        if let Some((remote, _)) = &self.remote {
            remote.close();
        }
    }
}

impl ArchiveRole {
    pub(crate) fn start(environment: &Environment, parts: ArchiveParts) -> ArchiveRole {
        let shared = Arc::new(Shared {
            environment: environment.clone(),
            parts,
            running: Mutex::new(None),
            obstacle: Mutex::new(None),
        });
        let own = Arc::clone(&shared);
        let task = Task::start(environment, "archive", move |stop| own.run(stop));
        ArchiveRole { shared, task }
    }

    /// The state, for other processes and for people. Does not block.
    pub(crate) fn status(&self) -> ArchivingStatus {
        let shared = &self.shared;
        let choice = shared.parts.view.choice();
        let is_chosen = choice.is_some_and(|choice| choice.node == shared.parts.own_number);
        let running = shared.running.lock();
        let Some(running) = &*running else {
            let error = shared.obstacle.lock().clone();
            let progress = ArchiveProgress { error, ..ArchiveProgress::default() };
            return ArchivingStatus { is_chosen, progress, ..ArchivingStatus::default() };
        };
        let ArchiveStatus { archived, progress, .. } = running.archiver.status();
        ArchivingStatus { is_chosen, epoch: running.epoch, archived, progress }
    }

    /// Sends the rest of the log, if the archiver runs and the store takes it at once, and ends.
    /// Blocks.
    pub(crate) fn close(&self) {
        self.task.close();
        self.shared.parts.elsewhere.close();
    }
}

impl Shared {
    fn now(&self) -> Duration {
        self.environment.clock.monotonic()
    }

    fn run(&self, stop: &Stop) {
        while !stop.pause(LOOK) {
            match self.parts.view.choice() {
                Some(choice) if choice.node == self.parts.own_number => self.serve(choice),
                Some(_) => self.end(),
                // An archiver that runs goes on until another process is chosen.
                None => {}
            }
        }
        self.end();
    }

    /// Has an archiver run.
    fn serve(&self, choice: Choice) {
        if self.has_ended(choice) || self.lacks_log() {
            self.end();
        }
        self.follow_members();
        self.parts.elsewhere.follow(&self.parts.view.layout());
        if self.running.lock().is_some() {
            return;
        }
        let started = self.start(choice);
        *self.obstacle.lock() = started.as_ref().err().cloned();
        if let Ok(started) = started {
            *self.running.lock() = Some(started);
        }
    }

    /// Whether the archiver that was started should be another one.
    fn has_ended(&self, choice: Choice) -> bool {
        let running = self.running.lock();
        let Some(running) = &*running else { return false };
        let is_due = choice.epoch > running.epoch || self.now() >= running.began + PAUSE;
        is_due && running.archiver.status().has_stopped
    }

    /// Has the archiver read the log of the members that there are now.
    fn follow_members(&self) {
        let (mut running, members) = (self.running.lock(), self.members());
        if let Some(Running { remote: Some((remote, nodes)), .. }) = &mut *running
            && *nodes != members
            && let Some(LogSource::Remote(links)) = (self.parts.log)()
        {
            remote.set_members(&links);
            *nodes = members;
        }
    }

    /// Whether the archiver reads the log of a member of this process that is not followed any
    /// more.
    fn lacks_log(&self) -> bool {
        let reads_own = self.running.lock().as_ref().is_some_and(|one| one.remote.is_none());
        reads_own && matches!((self.parts.log)(), Some(LogSource::Remote(_)))
    }

    /// The nodes of the log's members that vote.
    fn members(&self) -> Vec<NodeId> {
        self.parts.view.layout().log_voters().map(|node| node.number).collect()
    }

    /// Starts an archiver, or says what it waits for.
    fn start(&self, choice: Choice) -> Result<Running, String> {
        let parts = &self.parts;
        let pages =
            ClusterPages { own: Arc::clone(&parts.pages), elsewhere: Arc::clone(&parts.elsewhere) };
        if !pages.is_whole() {
            return Err("the pages of this node are not open yet".to_owned());
        }
        let (log, remote) = self.open_log().map_err(|error| error.to_string())?;
        let source = ArchiveSource {
            database: parts.database,
            epoch: choice.epoch,
            taken_over: parts.taken_over,
            log,
            pages: Arc::new(pages),
            writer: Arc::clone(&parts.writer) as _,
            hold: None,
        };
        tracing::info!(epoch = choice.epoch, "this node archives the cluster");
        let (store, options) = (Arc::clone(&parts.place.store), parts.place.options.clone());
        let archiver = Archiver::start(&self.environment, store, source, options);
        Ok(Running { epoch: choice.epoch, began: self.now(), archiver, remote })
    }

    fn open_log(&self) -> Result<OpenedLog, LogError> {
        let nodes = self.members();
        let unknown = || "nobody knows where the log is".to_owned();
        match (self.parts.log)().ok_or_else(|| LogError::Unavailable { reason: unknown() })? {
            LogSource::Own(log) => Ok((log, None)),
            LogSource::Remote(links) => {
                let options = RemoteLogOptions::default();
                let remote = RemoteLog::open(&self.environment, links, options)?;
                Ok((Arc::clone(&remote) as Arc<dyn LogStore>, Some((remote, nodes))))
            }
        }
    }

    fn end(&self) {
        let running = self.running.lock().take();
        if let Some(running) = running {
            running.close();
        }
    }
}

/// A log, and what it comes through if its members are elsewhere.
type OpenedLog = (Arc<dyn LogStore>, Option<(Arc<RemoteLog>, Vec<NodeId>)>);

/// The pages of the process's page node, whichever is open; those of all page nodes if it has only
/// a part of them.
struct ClusterPages {
    own: Arc<PageRole>,
    elsewhere: Arc<EnginePages>,
}

/// Where pages are read.
enum Found {
    Own(OwnPages),
    Elsewhere(Arc<RemotePages>),
}

impl ClusterPages {
    fn find(&self) -> Option<Found> {
        if let Some(own) = self.own.own_pages() {
            return Some(Found::Own(own));
        }
        self.elsewhere.divided().map(Found::Elsewhere)
    }

    fn open(&self, page: PageId) -> Result<Found, PageStoreError> {
        self.find().ok_or_else(|| unavailable(page, "its pages are not open".to_owned()))
    }
}

fn unavailable(page: PageId, reason: String) -> PageStoreError {
    PageStoreError::Unavailable { page, place: "this node".to_owned(), reason }
}

impl ArchivedPages for ClusterPages {
    fn read(&self, page: PageId, at_least: Lsn, into: &mut PageBuf) -> Result<(), PageStoreError> {
        let version = PageRead::Latest { at_least };
        match self.open(page)? {
            Found::Own(own) => own.store.read(page, version, into).map(drop),
            Found::Elsewhere(pages) => pages.read(page, version, into).map(drop),
        }
    }

    fn pages_after(
        &self,
        position: Lsn,
        after: Option<PageId>,
        limit: usize,
    ) -> Result<Vec<PageId>, PageStoreError> {
        let first = after.unwrap_or(PageId::from_u64(0));
        match self.open(first)? {
            Found::Own(own) => {
                own.materialise_up_to(position)?;
                let cut = || unavailable(first, "a chunk was just cut in two".to_owned());
                own.stored_pages(after, limit.max(LISTED)).ok_or_else(cut)
            }
            Found::Elsewhere(_) => {
                let listed = self.elsewhere.list(position, after);
                listed.map_err(|error| unavailable(first, error.to_string()))
            }
        }
    }

    fn is_whole(&self) -> bool {
        self.find().is_some()
    }
}
