//! A process's page node: a task opens it once its log answers, and serves it.
//!
//! A page node that starts needs a log that knows at least what its pages include. When a whole
//! cluster starts, or a majority is away, that takes as long as it takes: the task tries again
//! until then. What is wrong with the node's own files ends the process.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use firn_api::{LogError, LogStore, PageStore, PageStoreError};
use firn_base::Environment;
use firn_link::{Caller, Service};
use firn_log_service::{RemoteLog, RemoteLogOptions};
use firn_page_service::{PageService, PageServiceOptions};
use firn_storage::local::{DatabaseId, OpenError, PageStoreOptions};
use firn_storage::page_node::{PageNode, PageNodeOptions, ReceivedLogOptions};
use parking_lot::Mutex;

use crate::late::LateService;
use crate::message::PagesStatus;
use crate::task::{Stop, Task};

/// The node's pages are in this directory below the process's own.
pub(crate) const DIRECTORY: &str = "page-node";
/// How long log gathers before it is sent to a page node. A push costs about as much as a commit's
/// message to a member, and a page is hardly ever read so soon after it has changed.
const GATHER: Duration = Duration::from_millis(4);
/// The pause before the node is opened again.
const PAUSE: Duration = Duration::from_millis(200);

/// Where a page node's log comes from.
pub(crate) enum LogSource {
    /// A member of the group in this process.
    Own(Arc<dyn LogStore>),
    /// The members of the group, elsewhere.
    Remote(Vec<Arc<Caller>>),
}

/// How a page node is opened.
pub(crate) struct PageRoleOptions {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) database: DatabaseId,
    pub(crate) pages: PageStoreOptions,
}

/// The page node, once it is open.
pub(crate) struct PageRole {
    shared: Arc<Shared>,
    task: Task,
}

struct Shared {
    environment: Environment,
    options: PageRoleOptions,
    source: LogSource,
    door: Arc<LateService>,
    opened: OnceLock<Opened>,
    /// Why the node is not open.
    obstacle: Mutex<String>,
    /// What is wrong with the node's own files.
    failure: OnceLock<Arc<OpenError>>,
}

struct Opened {
    node: Arc<PageNode>,
    service: Arc<PageService>,
    /// Kept because the node's log comes through it.
    remote: Option<Arc<RemoteLog>>,
}

impl PageRole {
    /// Begins to open the node; requests that come in at `door` are answered once it is open.
    pub(crate) fn start(
        environment: &Environment,
        options: PageRoleOptions,
        source: LogSource,
        door: Arc<LateService>,
    ) -> PageRole {
        let shared = Arc::new(Shared {
            environment: environment.clone(),
            options,
            source,
            door,
            opened: OnceLock::new(),
            obstacle: Mutex::new("it is being opened".to_owned()),
            failure: OnceLock::new(),
        });
        let own = Arc::clone(&shared);
        let task = Task::start(environment, "page-node", move |stop| own.run(stop));
        PageRole { shared, task }
    }

    /// The node, if it is open. Does not block.
    pub(crate) fn node(&self) -> Option<&Arc<PageNode>> {
        self.shared.opened.get().map(|opened| &opened.node)
    }

    /// Why the process must end: the node's files cannot be used.
    pub(crate) fn failure(&self) -> Option<Arc<OpenError>> {
        self.shared.failure.get().cloned()
    }

    pub(crate) fn status(&self) -> PagesStatus {
        let Some(node) = self.node() else {
            let failure = Some(self.shared.obstacle.lock().clone());
            return PagesStatus { failure, ..PagesStatus::default() };
        };
        let status = node.status();
        PagesStatus {
            is_open: true,
            kept_from: status.log.kept_from,
            received: status.log.indexed,
            applied: status.pages.applied_lsn,
            images_per_second: status.pages.images_per_second,
            failure: status.log.failure.map(|error| error.to_string()),
        }
    }

    /// Closes the node. Blocks until its I/O is done.
    pub(crate) fn close(&self) {
        self.task.close();
        if let Some(opened) = self.shared.opened.get() {
            opened.service.close();
            opened.node.close();
            if let Some(remote) = &opened.remote {
                remote.close();
            }
        }
    }
}

impl Shared {
    fn run(&self, stop: &Stop) {
        loop {
            match self.open() {
                Ok(opened) => {
                    self.door.begin(Arc::clone(&opened.service) as Arc<dyn Service>);
                    let _ = self.opened.set(opened);
                    return;
                }
                Err(error) if waits_for_log(&error) => *self.obstacle.lock() = error.to_string(),
                Err(error) => {
                    let _ = self.failure.set(Arc::new(error));
                    return;
                }
            }
            if stop.pause(PAUSE) {
                return;
            }
        }
    }

    fn open(&self) -> Result<Opened, OpenError> {
        let (environment, options) = (&self.environment, &self.options);
        let (log, remote) = match &self.source {
            LogSource::Own(log) => (Arc::clone(log), None),
            LogSource::Remote(members) => {
                let readers = RemoteLogOptions {
                    stays: Some(options.name.clone()),
                    gather: GATHER,
                    ..RemoteLogOptions::default()
                };
                let remote = RemoteLog::open(environment, members.clone(), readers)?;
                (Arc::clone(&remote) as Arc<dyn LogStore>, Some(remote))
            }
        };
        let node = PageNodeOptions {
            log: ReceivedLogOptions { name: options.name.clone(), ..ReceivedLogOptions::default() },
            pages: options.pages.clone(),
        };
        let node = PageNode::open(environment, &options.path, options.database, log, node)?;
        let store = Arc::clone(&node) as Arc<dyn PageStore>;
        let service = PageService::new(environment, store, PageServiceOptions::default());
        Ok(Opened { node, service, remote })
    }
}

/// Whether the node can be opened later, when the log's members answer.
fn waits_for_log(error: &OpenError) -> bool {
    matches!(
        error,
        OpenError::Log(LogError::Unavailable { .. })
            | OpenError::Pages(PageStoreError::Log(LogError::Unavailable { .. }))
    )
}
