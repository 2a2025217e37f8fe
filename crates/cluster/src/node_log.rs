//! The log, as the chunks of a page node follow it: over one client, and together where they are
//! about as far.
//!
//! It is opened when the first chunk wants it, and once more when the log that it follows goes.
//! Each chunk is registered separately at the log's members, by which it finds its log after a
//! restart.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use firn_api::{LogError, LogStore};
use firn_base::Environment;
use firn_base::event::Event;
use firn_control::ChunkId;
use firn_link::Caller;
use firn_log_service::{RemoteLog, RemoteLogOptions};
use firn_storage::page_node::SharedReader;
use parking_lot::Mutex;

/// How long log gathers before it is sent to a page node. A push costs about as much as a commit's
/// message to a member, and a page is hardly ever read so soon after it has changed.
const GATHER: Duration = Duration::from_millis(4);
/// How often the members are looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Where a page node's log comes from, as of now.
pub(crate) enum LogSource {
    /// A member of the group in this process.
    Own(Arc<dyn LogStore>),
    /// The members of the group that vote, over links. There is at least one.
    Remote(Vec<Arc<Caller>>),
}

/// Where the log is now; `None` while that is not known.
pub(crate) type CurrentLog = Box<dyn Fn() -> Option<LogSource> + Send + Sync>;

/// See the module's page. The mutex is a leaf.
pub(crate) struct NodeLog {
    environment: Environment,
    source: CurrentLog,
    /// The node's name.
    name: String,
    state: Mutex<State>,
    /// Notified when the log is open, or cannot be opened.
    changed: Event,
}

#[derive(Default)]
struct State {
    opened: Option<Arc<FollowedLog>>,
    is_opening: bool,
    /// Why it could not be opened, and when that was.
    failed: Option<(Duration, LogError)>,
    looked_at: Duration,
}

/// A log that chunks follow. It is closed once none does.
pub(crate) struct FollowedLog {
    pub(crate) store: Arc<dyn LogStore>,
    /// By which several chunks follow, once there are several.
    reader: OnceLock<Arc<SharedReader>>,
    /// The node's name.
    name: String,
    remote: Option<Remote>,
}

/// A log whose members are elsewhere, and who they were when that was last looked at.
struct Remote {
    log: Arc<RemoteLog>,
    members: Mutex<Vec<Arc<Caller>>>,
}

/// What a caller that wants the log has to do.
enum Turn {
    Take(Result<Arc<FollowedLog>, LogError>),
    Open,
}

impl NodeLog {
    pub(crate) fn new(environment: &Environment, source: CurrentLog, name: &str) -> NodeLog {
        NodeLog {
            environment: environment.clone(),
            source,
            name: name.to_owned(),
            state: Mutex::default(),
            changed: Event::new(),
        }
    }

    /// The log. Blocks until its members have answered, if it is not open.
    ///
    /// # Errors
    /// [`LogError::Unavailable`] if they do not, or nobody knows them.
    pub(crate) fn get(&self) -> Result<Arc<FollowedLog>, LogError> {
        let began = self.now();
        let mut turn = None;
        self.changed.wait_until(None, || {
            turn = self.turn(began);
            turn.is_some()
        });
        if let Some(Turn::Take(result)) = turn {
            return result;
        }
        let opened = self.open().map(Arc::new);
        {
            let mut state = self.state.lock();
            state.is_opening = false;
            match &opened {
                Ok(log) => state.opened = Some(Arc::clone(log)),
                Err(error) => state.failed = Some((self.now(), error.clone())),
            }
        }
        self.changed.notify_all();
        opened
    }

    fn now(&self) -> Duration {
        self.environment.clock.monotonic()
    }

    /// What a caller does that has waited since `began`; `None` while another one opens the log.
    fn turn(&self, began: Duration) -> Option<Turn> {
        let mut state = self.state.lock();
        if let Some(log) = &state.opened {
            return Some(Turn::Take(Ok(Arc::clone(log))));
        }
        if let Some((at, error)) = &state.failed
            && *at > began
        {
            return Some(Turn::Take(Err(error.clone())));
        }
        if state.is_opening {
            return None;
        }
        state.is_opening = true;
        Some(Turn::Open)
    }

    fn open(&self) -> Result<FollowedLog, LogError> {
        let unknown = || LogError::Unavailable { reason: "nobody knows where the log is".into() };
        let (store, remote) = match (self.source)().ok_or_else(unknown)? {
            LogSource::Own(log) => (log, None),
            LogSource::Remote(members) => {
                let options = RemoteLogOptions {
                    stays: vec![self.name.clone()],
                    gather: GATHER,
                    ..RemoteLogOptions::default()
                };
                let log = RemoteLog::open(&self.environment, members.clone(), options)?;
                let store = Arc::clone(&log) as Arc<dyn LogStore>;
                (store, Some(Remote { log, members: Mutex::new(members) }))
            }
        };
        Ok(FollowedLog { store, reader: OnceLock::new(), name: self.name.clone(), remote })
    }

    /// The name among the log's readers of a chunk, which may be alone. No name of a node has a
    /// slash.
    pub(crate) fn chunk_name(&self, chunk: ChunkId, is_alone: bool) -> String {
        match is_alone {
            true => self.name.clone(),
            false => format!("{}/{chunk}", self.name),
        }
    }

    /// Chunks that are opened from now on follow the log that there is then.
    pub(crate) fn change(&self) {
        let before = self.state.lock().opened.take();
        drop(before);
    }

    /// Tells the log who its members are now. Called at a steady rate.
    pub(crate) fn follow_members(&self) {
        let opened = {
            let now = self.now();
            let mut state = self.state.lock();
            if now.saturating_sub(state.looked_at) < LOOK {
                return;
            }
            state.looked_at = now;
            state.opened.clone()
        };
        if let Some(Remote { log, members }) = opened.as_ref().and_then(|one| one.remote.as_ref())
            && let Some(LogSource::Remote(now)) = (self.source)()
        {
            let mut before = members.lock();
            if !before.iter().map(Arc::as_ptr).eq(now.iter().map(Arc::as_ptr)) {
                log.set_members(&now);
                *before = now;
            }
        }
    }

    /// Closes the log, once no chunk follows it. Blocks until its tasks have ended.
    pub(crate) fn close(&self) {
        let opened = self.state.lock().opened.take();
        if let Some(log) = opened {
            log.reader.get().into_iter().for_each(|reader| reader.close());
            log.remote.iter().for_each(|remote| remote.log.close());
        }
    }
}

impl FollowedLog {
    /// The reader by which several chunks of a node follow the log.
    pub(crate) fn shared(&self, environment: &Environment) -> &Arc<SharedReader> {
        let start = || SharedReader::start(environment, Arc::clone(&self.store), &self.name);
        self.reader.get_or_init(start)
    }

    /// The reader of this name does not come back: its log may go.
    pub(crate) fn forget(&self, reader: &str) {
        let Some(remote) = &self.remote else { return };
        // A registration that stays is dropped when it holds back too much.
        if let Err(error) = remote.log.forget(reader) {
            tracing::warn!(%error, reader, "the log is held for this node for a while");
        }
    }
}
