//! The end that has the clients. See [`crate`] for the rules.
//!
//! Latch rules: every mutex here is a leaf, and none is held across a wait, a call or a send.

mod attachment;
mod local;
mod outcome;
mod place;
mod readers;
mod reading;
mod run;
mod session;
mod transactions;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use firn_base::Environment;
use firn_base::event::Event;
use firn_base::task::TaskHandle;
use firn_link::{CallError, Caller, Follower};
use firn_wire::{
    CommandIdentity, CommittedAnswer, Credentials, LastResults, Login, ServerError, Service,
    Session,
};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use self::attachment::{Attachment, NotAttached};
use self::local::LocalSessions;
use self::readers::Readers;
use self::session::FrontSession;
use crate::message::{Ask, Fate, Fault, Found, decode, encode};
use crate::{Activity, SESSION_SERVICE};

/// How often nodes are asked while none runs sessions.
const ASK_AGAIN: Duration = Duration::from_millis(20);
/// How often paused nodes are asked while no client waits.
const ASK_PAUSED_AGAIN: Duration = Duration::from_millis(500);
/// How often the task looks at nodes that are leaving.
const LOOK: Duration = Duration::from_millis(100);
/// How long a node has to answer whether it runs sessions.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);
/// How long one question of a login may take.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(10);
/// How often nodes are asked what became of a command.
const FATE_INTERVAL: Duration = Duration::from_millis(50);

/// The links to a node that may run sessions.
#[derive(Clone)]
pub struct BackendLinks {
    /// For commands.
    pub commands: Arc<Caller>,
    /// For what interrupts and ends them (S5): another link to the same node.
    pub control: Arc<Caller>,
    /// Whether sessions read elsewhere if they can: it is in another zone.
    pub is_far: bool,
}

/// The nodes that may run sessions.
pub trait Backends: Send + Sync {
    /// Their links. Does not block.
    fn links(&self) -> Vec<BackendLinks>;

    /// Links to nodes that may run what only reads. A node that stays has the same ones each time.
    /// Does not block.
    fn readers(&self) -> Vec<BackendLinks> {
        Vec::new()
    }

    /// Whether this process would run sessions if it were not paused (S11).
    fn is_paused_here(&self) -> bool {
        false
    }

    /// A client waits for a paused backend. Called again and again while one does. Does not block.
    fn wake(&self) {}
}

/// What a statement does, as far as that matters when its outcome is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementClass {
    /// It only reads: run twice, it does no harm.
    Reads,
    /// It writes rows, and does not end a transaction that was begun before. Outside of one it is
    /// one itself.
    Writes,
    /// It does not end a transaction that was begun before.
    StaysInTransaction,
    /// It commits the open transaction, and does nothing else.
    Commits,
    /// It commits the open transaction and begins one; outside of one it does no harm twice.
    Begins,
    Other,
}

/// Says what a text does. It is asked only after a backend has been lost.
pub type Judge = Arc<dyn Fn(&[u8]) -> StatementClass + Send + Sync>;

/// Where a statement may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// Also at a node that only reads: it leaves nothing in the session but its last results.
    Reads,
    /// Where the statement before it has run.
    Follows,
    /// It begins a transaction, and does nothing else (S10).
    Begins,
    /// It ends the open transaction, and does nothing else.
    Ends,
    /// At the node that writes.
    Writer,
}

/// Says where a text may run. It is asked before each statement, while there are nodes that only
/// read.
pub type Router = Arc<dyn Fn(&[u8]) -> Route + Send + Sync>;

#[derive(Clone)]
pub struct FrontOptions {
    /// How long a client waits for a node that runs its session.
    pub patience: Duration,
    pub judge: Judge,
    pub router: Router,
}

/// Opens sessions at other nodes. Dropping it ends its tasks without waiting for them.
pub struct Front {
    shared: Arc<Shared>,
    tasks: Mutex<Vec<Box<dyn TaskHandle>>>,
}

/// What the sessions share.
pub(crate) struct Shared {
    environment: Environment,
    backends: Arc<dyn Backends>,
    options: FrontOptions,
    current: Mutex<Option<Arc<Attachment>>>,
    /// Those of this process, while it runs sessions itself.
    local: Mutex<Option<Arc<LocalSessions>>>,
    /// Those of this process that have to go on elsewhere (S7).
    leaving: Mutex<Option<Arc<LocalSessions>>>,
    /// Whether there are any that are not to go on elsewhere.
    runs_here: AtomicBool,
    /// Those of this process that only read, while there are any.
    reading: Mutex<Option<Arc<LocalSessions>>>,
    may_read_here: AtomicBool,
    /// Other nodes that read.
    readers: Readers,
    /// Notified when sessions can be opened somewhere, and when a client begins to wait for that.
    attached: Event,
    /// How many clients wait for a node that runs sessions.
    waiting: AtomicUsize,
    /// Whether the node that would run sessions is paused, as it was last seen.
    is_paused: AtomicBool,
    is_closing: AtomicBool,
}

impl Front {
    #[must_use]
    pub fn new(
        environment: &Environment,
        backends: Arc<dyn Backends>,
        options: FrontOptions,
    ) -> Arc<Front> {
        let shared = Arc::new(Shared {
            environment: environment.clone(),
            backends,
            options,
            current: Mutex::default(),
            local: Mutex::default(),
            leaving: Mutex::default(),
            runs_here: AtomicBool::new(false),
            reading: Mutex::default(),
            may_read_here: AtomicBool::new(false),
            readers: Readers::default(),
            attached: Event::new(),
            waiting: AtomicUsize::new(0),
            is_paused: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
        });
        let (of_home, of_readers) = (Arc::clone(&shared), Arc::clone(&shared));
        let spawner = &environment.spawner;
        let tasks = vec![
            spawner.spawn("session-front", Box::new(move || of_home.run())),
            spawner.spawn("session-readers", Box::new(move || of_readers.attend_readers())),
        ];
        Arc::new(Front { shared, tasks: Mutex::new(tasks) })
    }

    /// Whether a node runs the sessions of this front's clients now.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        self.shared.live().is_some()
    }

    /// Whether none does because the one that would is paused (S11).
    #[must_use]
    pub fn is_paused(&self) -> bool {
        !self.is_attached() && self.shared.is_paused.load(Ordering::Relaxed)
    }

    /// What the sessions do that have their home in this process.
    #[must_use]
    pub fn activity(&self) -> Activity {
        let local = self.shared.local.lock().clone();
        // Those that could not leave run here on.
        let leaving = self.shared.leaving.lock().clone();
        let all = local.into_iter().chain(leaving).map(|sessions| sessions.activity());
        all.fold(Activity::default(), Activity::and)
    }

    /// What the sessions do that read in this process.
    #[must_use]
    pub fn reading_activity(&self) -> Activity {
        self.shared.reader().map_or_else(Activity::default, |reading| reading.activity())
    }

    /// Whether statements that only read can run apart from the node that writes now.
    #[must_use]
    pub fn can_read(&self) -> bool {
        self.shared.may_read()
    }

    /// From now on sessions are opened in this process, by `service`. They answer directly.
    pub fn begin_local(&self, service: Arc<dyn Service>) {
        let before = self.shared.local.lock().replace(LocalSessions::new(service));
        drop(before);
        self.shared.runs_here.store(true, Ordering::SeqCst);
        self.shared.attached.notify_all();
    }

    /// Opens no more sessions in this process, and has those that are here go on elsewhere (S7).
    /// Does not wait.
    pub fn begin_leaving(&self) {
        let local = self.shared.take_local();
        if let Some(local) = local {
            local.begin_leaving();
            *self.shared.leaving.lock() = Some(local);
        }
        self.shared.attached.notify_all();
    }

    /// Keeps the sessions that have not left yet: they are opened in this process again.
    pub fn stay(&self) {
        let leaving = self.shared.leaving.lock().take();
        if let Some(leaving) = leaving {
            leaving.stay();
            *self.shared.local.lock() = Some(leaving);
            self.shared.runs_here.store(true, Ordering::SeqCst);
        }
        self.shared.attached.notify_all();
    }

    /// Has sessions go on elsewhere in the middle of transactions, too (S7). Does not wait.
    pub fn begin_handing_over(&self) {
        let leaving = self.shared.leaving.lock().clone();
        if let Some(leaving) = leaving {
            leaving.begin_handing_over();
        }
    }

    /// Waits until no session is left in this process, for `limit` at most. False: some are left.
    pub fn wait_until_left(&self, limit: Duration) -> bool {
        let leaving = self.shared.leaving.lock().clone();
        leaving.is_none_or(|leaving| leaving.wait_until_left(limit))
    }

    /// Waits until no command of a session that is leaving runs, for `limit` at most. False: some
    /// run.
    pub fn wait_until_idle(&self, limit: Duration) -> bool {
        let leaving = self.shared.leaving.lock().clone();
        leaving.is_none_or(|leaving| leaving.wait_until_idle(limit))
    }

    /// Has running commands of sessions that are leaving end as if they had not been run, where
    /// that is possible, so that they run elsewhere (S9). Does not wait. Some may be cut only
    /// later.
    pub fn cut(&self) {
        let leaving = self.shared.leaving.lock().clone();
        if let Some(leaving) = leaving {
            leaving.cut();
        }
    }

    /// Opens no more sessions in this process, waits for running commands, for `patience` at most,
    /// and ends the sessions here; their clients keep their connections. False if some have not
    /// ended within a few seconds after that.
    pub fn end_local(&self, patience: Duration) -> bool {
        let local = self.shared.take_local();
        let leaving = self.shared.leaving.lock().take();
        self.shared.attached.notify_all();
        let all = local.into_iter().chain(leaving);
        all.filter(|sessions| !sessions.end(patience)).count() == 0
    }

    /// From now on statements that only read run in this process, by `service`, unless something
    /// of their session is at the node that writes.
    pub fn begin_reading(&self, service: Arc<dyn Service>) {
        let before = self.shared.reading.lock().replace(LocalSessions::of_reader(service));
        drop(before);
        self.shared.may_read_here.store(true, Ordering::SeqCst);
    }

    /// Says whether statements that only read run in this process, while it has a service for them.
    pub fn set_reading(&self, may_read: bool) {
        let has_service = self.shared.reading.lock().is_some();
        self.shared.may_read_here.store(may_read && has_service, Ordering::SeqCst);
    }

    /// Statements that only read run at the node that writes again. Waits for running ones, for
    /// `patience` at most; those that have given nothing yet go on there. False if some have not
    /// ended within a few seconds after that.
    pub fn end_reading(&self, patience: Duration) -> bool {
        self.shared.may_read_here.store(false, Ordering::SeqCst);
        let reading = self.shared.reading.lock().take();
        reading.is_none_or(|reading| reading.end(patience))
    }

    /// Gives up the sessions, and waits for the front's task.
    pub fn close(&self) {
        self.shared.is_closing.store(true, Ordering::SeqCst);
        self.shared.attached.notify_all();
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for task in tasks {
            task.join();
        }
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.shared.is_closing.store(true, Ordering::SeqCst);
        self.shared.attached.notify_all();
    }
}

impl Shared {
    fn now(&self) -> Duration {
        self.environment.clock.monotonic()
    }

    fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst)
    }

    fn live(&self) -> Option<Backend> {
        if let Some(local) = &*self.local.lock() {
            return Some(Backend::Local(Arc::clone(local)));
        }
        let attachment = self.current.lock().clone();
        let takes = |one: &Arc<Attachment>| !one.is_over() && !one.is_leaving();
        attachment.filter(takes).map(Backend::Remote)
    }

    /// Whether statements that only read can run apart from the node that writes.
    fn may_read(&self) -> bool {
        self.may_read_here.load(Ordering::Relaxed)
            || (self.readers.are_there() && !self.runs_here())
    }

    /// Whether sessions have their home in this process.
    fn runs_here(&self) -> bool {
        self.runs_here.load(Ordering::SeqCst)
    }

    fn take_local(&self) -> Option<Arc<LocalSessions>> {
        self.runs_here.store(false, Ordering::SeqCst);
        self.local.lock().take()
    }

    fn reader(&self) -> Option<Arc<LocalSessions>> {
        self.reading.lock().clone()
    }

    /// Who knows the accounts: the node that writes; while there is none, one that reads.
    fn authority(&self, deadline: Duration) -> Option<Backend> {
        let here = || self.reader().map(Backend::Local);
        let elsewhere = || self.readers.choose(self.now()).map(Backend::Remote);
        let reader = || here().or_else(elsewhere);
        self.live().or_else(reader).or_else(|| self.backend(deadline, || false))
    }

    /// Who runs sessions, once somebody does. `None` at the deadline, or if `gives_up` says so.
    fn backend(&self, deadline: Duration, gives_up: impl Fn() -> bool) -> Option<Backend> {
        let mut found = self.live();
        if found.is_some() {
            return found;
        }
        let _waiting = Waiting::begin(self);
        while !gives_up() && !self.is_closing() {
            let left = deadline.saturating_sub(self.now());
            // A client that gives up is looked for now and then.
            let slice = left.min(Duration::from_millis(50));
            self.attached.wait_until(Some(slice), || {
                found = self.live();
                found.is_some() || self.is_closing()
            });
            if found.is_some() || left.is_zero() {
                break;
            }
        }
        found
    }

    fn is_waited_for(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// No node runs sessions: waits until it is time to ask them again.
    fn pause(&self, is_paused: bool) {
        self.is_paused.store(is_paused, Ordering::Relaxed);
        let is_waited_for = self.is_waited_for();
        if is_paused && is_waited_for {
            self.backends.wake();
        }
        let is_seldom = is_paused && !is_waited_for;
        let pause = if is_seldom { ASK_PAUSED_AGAIN } else { ASK_AGAIN };
        self.attached
            .wait_until(Some(pause), || self.is_closing() || (is_seldom && self.is_waited_for()));
    }

    /// Keeps the front attached. The body of the task.
    fn run(self: &Arc<Shared>) {
        // Attachments to nodes that are leaving, with what these tell.
        let mut left: Vec<(Arc<Attachment>, Follower)> = Vec::new();
        while !self.is_closing() {
            let is_needed = || self.is_closing() || self.local.lock().is_none();
            if !self.attached.wait_until(Some(LOOK), is_needed) {
                take_all(&mut left);
                continue;
            }
            let mut is_paused = self.backends.is_paused_here();
            let attached = self.backends.links().iter().find_map(|links| {
                let begun = Attachment::begin(self, links, SESSION_SERVICE);
                is_paused |= matches!(begun, Err(NotAttached::Paused));
                begun.ok()
            });
            let Some((attachment, events)) = attached else {
                self.pause(is_paused);
                take_all(&mut left);
                continue;
            };
            self.is_paused.store(false, Ordering::Relaxed);
            *self.current.lock() = Some(Arc::clone(&attachment));
            self.attached.notify_all();
            attachment.attend(&events, || {
                take_all(&mut left);
                !self.is_closing()
            });
            *self.current.lock() = None;
            if !attachment.is_over() {
                left.push((attachment, events));
            }
        }
        left.iter().for_each(|(attachment, _)| attachment.end());
    }

    /// Until when a client that asks now waits for a node.
    fn deadline(&self) -> Duration {
        self.now().saturating_add(self.options.patience)
    }

    /// Asks who knows the accounts. What was not answered is asked again, within the patience.
    fn ask<T: DeserializeOwned>(
        &self,
        ask: &Ask,
        locally: impl Fn(&dyn Service) -> Result<T, ServerError>,
    ) -> Result<T, ServerError> {
        let deadline = self.deadline();
        self.ask_one(ask, deadline, || self.authority(deadline), locally)
    }

    /// Asks the node that writes what became of a command at a node that is gone, or that does not
    /// have its session any more. One that only reads may not have the commit yet.
    fn fate(
        &self,
        command: CommandIdentity,
        deadline: Duration,
    ) -> Result<Option<CommittedAnswer>, ServerError> {
        let CommandIdentity { front, session, number } = command;
        let ask = Ask::Committed { front, session, number };
        let locally = |service: &dyn Service| Ok(Fate::from(service.committed(command)));
        loop {
            let fate =
                self.ask_one(&ask, deadline, || self.backend(deadline, || false), locally)?;
            match fate {
                // It may have been replaced; then another node will know.
                Fate::Refused(fault) if self.now() < deadline => {
                    tracing::debug!(
                        code = fault.code,
                        "a node cannot say what became of a command"
                    );
                    firn_base::task::sleep(FATE_INTERVAL);
                }
                fate => return fate.into_answer(),
            }
        }
    }

    /// Asks one node: in this process, or by a message. What was not answered is asked again, until
    /// the deadline.
    fn ask_one<T: DeserializeOwned>(
        &self,
        ask: &Ask,
        deadline: Duration,
        one: impl Fn() -> Option<Backend>,
        locally: impl Fn(&dyn Service) -> Result<T, ServerError>,
    ) -> Result<T, ServerError> {
        loop {
            let attachment = match one() {
                Some(Backend::Remote(attachment)) => attachment,
                Some(Backend::Local(local)) => match local.service() {
                    Some(service) => return locally(&*service),
                    None if self.now() < deadline => continue,
                    None => return Err(nobody()),
                },
                None => return Err(nobody()),
            };
            let asked =
                attachment.links.commands.call(attachment.service, encode(ask), LOGIN_TIMEOUT);
            match asked {
                Ok(answer) => {
                    let (answer, _) = decode(&answer).map_err(|error| unreadable(&error))?;
                    return Ok(answer);
                }
                Err(error) => attachment.doubt(&error),
            }
            if self.now() >= deadline {
                return Err(nobody());
            }
        }
    }
}

/// A client waits for a node that runs sessions, until this is dropped.
struct Waiting<'a>(&'a Shared);

impl Waiting<'_> {
    fn begin(shared: &Shared) -> Waiting<'_> {
        shared.waiting.fetch_add(1, Ordering::SeqCst);
        shared.attached.notify_all();
        Waiting(shared)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Takes what nodes tell that are leaving, and forgets those that have no session any more.
fn take_all(left: &mut Vec<(Arc<Attachment>, Follower)>) {
    left.retain(|(attachment, events)| attachment.take(events, Duration::ZERO));
}

/// Who runs sessions.
enum Backend {
    Local(Arc<LocalSessions>),
    Remote(Arc<Attachment>),
}

/// No node runs sessions.
fn nobody() -> ServerError {
    let message = "No node of the cluster that can run this was found in time; try again later, \
                   and see firn cluster status";
    ServerError::new(1429, b"HY000", message)
}

fn unreadable(error: &dyn std::fmt::Display) -> ServerError {
    ServerError::new(1105, b"HY000", error.to_string())
}

/// Whether the node says that it does not have the session, or no sessions at all.
fn is_not_here(error: &CallError) -> bool {
    let code = crate::backend::REFUSED_NOT_HERE;
    let says_so = matches!(error, CallError::Refused { refused, .. } if refused.code == code);
    says_so || is_paused(error)
}

/// Whether the node says that it is paused.
fn is_paused(error: &CallError) -> bool {
    let code = crate::backend::REFUSED_PAUSED;
    matches!(error, CallError::Refused { refused, .. } if refused.code == code)
}

/// Whether the node says that it takes no session more.
fn is_leaving(error: &CallError) -> bool {
    let code = crate::backend::REFUSED_LEAVING;
    matches!(error, CallError::Refused { refused, .. } if refused.code == code)
}

/// Whether it is certain that nothing was executed.
fn was_not_executed(error: &CallError) -> bool {
    is_not_here(error) || is_leaving(error) || error.was_not_executed()
}

impl Service for Front {
    fn credentials(&self, user: &str, host: &str) -> Result<Credentials, ServerError> {
        let ask = Ask::Credentials { user: user.to_owned(), host: host.to_owned() };
        let locally = |service: &dyn Service| Ok(Found::from(service.credentials(user, host)));
        self.shared.ask(&ask, locally)?.into_credentials()
    }

    fn attempted(&self, user: &str, host: &str, proved: bool) -> Result<(), ServerError> {
        let ask = Ask::Attempted { user: user.to_owned(), host: host.to_owned(), proved };
        let locally = |service: &dyn Service| {
            Ok(service.attempted(user, host, proved).err().as_ref().map(Fault::from))
        };
        let fault: Option<Fault> = self.shared.ask(&ask, locally)?;
        fault.map_or(Ok(()), |fault| Err(fault.into()))
    }

    fn open(&self, login: Login) -> Result<Box<dyn Session>, ServerError> {
        Ok(Box::new(FrontSession::open(&self.shared, login, None, LastResults::default())?))
    }

    fn resume(
        &self,
        login: Login,
        document: Option<&[u8]>,
        last: &LastResults,
    ) -> Result<Box<dyn Session>, ServerError> {
        let document = document.map(<[u8]>::to_vec);
        Ok(Box::new(FrontSession::open(&self.shared, login, document, *last)?))
    }
}
