//! The end at which sessions run. See [`crate`] for the rules.
//!
//! Latch rules: the mutexes of the serving state, of the list of sessions, of a front's events and
//! of a file's content are leaves. A session's own mutex is held while it runs a command: only the
//! thread that runs it, and those that end it, take it. What interrupts a command does not.

mod held;
mod outlet;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_base::Environment;
use firn_base::event::Event;
use firn_base::network::Address;
use firn_base::task::TaskHandle;
use firn_link::{
    FIRST_SERVICE_CODE, Offer, Payload, Peer, Placement, Request, Responder, Service, ServiceId,
};
use firn_wire::{
    CancelReason, CommandIdentity, Connections, LastResults, PeerAddress, ServerError,
};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use self::held::Held;
use crate::message::{self, Ask, Done, Fate, Fault, Found, LoginFacts, Resumed, decode, encode};
use crate::workers::Workers;
use crate::{Activity, READING_SERVICE};

/// The request is not a message of this version.
pub(crate) const REFUSED_DAMAGED: u16 = FIRST_SERVICE_CODE;
/// The process runs no sessions, or not this one. Nothing was executed.
pub(crate) const REFUSED_NOT_HERE: u16 = FIRST_SERVICE_CODE + 1;
/// The process takes no session more (S7).
pub(crate) const REFUSED_LEAVING: u16 = FIRST_SERVICE_CODE + 2;

/// The process is paused (S11). Nothing was executed.
pub(crate) const REFUSED_PAUSED: u16 = FIRST_SERVICE_CODE + 3;

/// How often the task looks for fronts that have gone.
const LOOK: Duration = Duration::from_millis(50);
/// How long sessions may take to end after they were told to.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// Runs sessions of clients that other processes have, while there is a service for them. Dropping
/// it ends its task without waiting for it.
pub struct SessionService {
    shared: Arc<Shared>,
    task: Mutex<Option<Box<dyn TaskHandle>>>,
}

struct Shared {
    id: ServiceId,
    environment: Environment,
    workers: Arc<Workers>,
    serving: Mutex<Option<Arc<Serving>>>,
    /// See S11.
    is_paused: AtomicBool,
    is_closing: AtomicBool,
    wake: Event,
}

/// One service, from its beginning to its end.
pub(crate) struct Serving {
    service: Arc<dyn firn_wire::Service>,
    /// Whether it only reads, so that its sessions' transactions can move (S10).
    only_reads: bool,
    connections: Arc<Connections>,
    fronts: Mutex<FxHashMap<u64, Arc<FrontDesk>>>,
    sessions: Mutex<FxHashMap<(u64, u32), Arc<Held>>>,
    /// See S7.
    is_leaving: AtomicBool,
    hands_over: AtomicBool,
    /// How many sessions were opened, and how many commands have begun in those that have ended.
    past: AtomicU64,
    /// Notified when a session has ended; while sessions are leaving, also after each command and
    /// when one was opened.
    ended: Event,
}

/// A front that has attached.
pub(crate) struct FrontDesk {
    events: Mutex<Option<Responder>>,
}

impl FrontDesk {
    /// Tells the front, if it has room for it. A front that is not told of a killed session learns
    /// it with the session's next command.
    fn tell(&self, event: &message::Event) {
        if let Some(events) = &*self.events.lock() {
            let _ = events.push(encode(event), Duration::ZERO);
        }
    }

    fn has_gone(&self) -> bool {
        self.events.lock().as_ref().is_none_or(Responder::is_cancelled)
    }

    fn dismiss(&self) {
        let events = self.events.lock().take();
        if let Some(events) = events {
            events.reply(Vec::new());
        }
    }
}

impl SessionService {
    /// A service of that number that runs no sessions yet. Register [`SessionService::offer`] in a
    /// link's server.
    #[must_use]
    pub fn new(environment: &Environment, id: ServiceId) -> Arc<SessionService> {
        let shared = Arc::new(Shared {
            id,
            environment: environment.clone(),
            workers: Workers::new(environment),
            serving: Mutex::default(),
            is_paused: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            wake: Event::new(),
        });
        let of_task = Arc::clone(&shared);
        let task = environment.spawner.spawn("sessions", Box::new(move || of_task.look_after()));
        Arc::new(SessionService { shared, task: Mutex::new(Some(task)) })
    }

    /// The service as a link's server takes it. It takes requests on the threads that read, and
    /// runs them on its own.
    #[must_use]
    pub fn offer(self: &Arc<Self>) -> Offer {
        let service = Arc::clone(self) as _;
        Offer { id: self.shared.id, placement: Placement::Reader, service }
    }

    /// From now on fronts may attach and open sessions of `service`. Their connections are entered
    /// in `connections`.
    pub fn begin(&self, service: Arc<dyn firn_wire::Service>, connections: Arc<Connections>) {
        let serving = Serving {
            service,
            only_reads: self.shared.id == READING_SERVICE,
            connections,
            fronts: Mutex::default(),
            sessions: Mutex::default(),
            is_leaving: AtomicBool::new(false),
            hands_over: AtomicBool::new(false),
            past: AtomicU64::new(0),
            ended: Event::new(),
        };
        let before = self.shared.serving.lock().replace(Arc::new(serving));
        drop(before);
    }

    /// Has all sessions go on elsewhere (S7). Does not wait.
    pub fn begin_leaving(&self) {
        let Some(serving) = self.shared.serving.lock().clone() else { return };
        serving.is_leaving.store(true, Ordering::SeqCst);
        let desks: Vec<_> = serving.fronts.lock().values().cloned().collect();
        desks.iter().for_each(|desk| desk.tell(&message::Event::Leaving));
        for held in serving.all() {
            self.shared.end_if_left(&serving, &held);
        }
    }

    /// Keeps the sessions that have not left yet. Fronts that were told to leave attach again.
    pub fn stay(&self) {
        if let Some(serving) = self.shared.serving.lock().clone() {
            serving.hands_over.store(false, Ordering::SeqCst);
            serving.is_leaving.store(false, Ordering::SeqCst);
        }
    }

    /// Says whether the process is paused (S11).
    pub fn set_paused(&self, is_paused: bool) {
        self.shared.is_paused.store(is_paused, Ordering::SeqCst);
    }

    #[must_use]
    pub fn activity(&self) -> Activity {
        let serving = self.shared.serving.lock().clone();
        serving.map_or_else(Activity::default, |serving| serving.activity())
    }

    /// Has sessions go on elsewhere in the middle of transactions, too (S7). Does not wait.
    pub fn begin_handing_over(&self) {
        let Some(serving) = self.shared.serving.lock().clone() else { return };
        serving.hands_over.store(true, Ordering::SeqCst);
        for held in serving.all() {
            self.shared.end_if_left(&serving, &held);
        }
    }

    /// Waits until no session is left, for `limit` at most. False: some are left.
    pub fn wait_until_left(&self, limit: Duration) -> bool {
        let Some(serving) = self.shared.serving.lock().clone() else { return true };
        serving.ended.wait_until(Some(limit), || serving.sessions.lock().is_empty())
    }

    /// Waits until no command runs, for `limit` at most. False: some run. Sessions that are left
    /// after that cannot go on elsewhere.
    pub fn wait_until_idle(&self, limit: Duration) -> bool {
        let Some(serving) = self.shared.serving.lock().clone() else { return true };
        serving.ended.wait_until(Some(limit), || serving.end_idle())
    }

    /// Has running commands end as if they had not been run, where that is possible, so that their
    /// sessions go on elsewhere and run them there (S9). Does not wait. Some may be cut only later.
    pub fn cut(&self) {
        let Some(serving) = self.shared.serving.lock().clone() else { return };
        if serving.hands_over.load(Ordering::SeqCst) {
            serving.all().iter().for_each(|held| held.cut());
        }
    }

    /// Takes no more commands, waits for running ones, for `patience` at most, interrupts them
    /// then, and ends all sessions. False if some have not ended within a few seconds after that.
    pub fn end(&self, patience: Duration) -> bool {
        let Some(serving) = self.shared.serving.lock().take() else { return true };
        if !serving.only_reads {
            serving.dismiss_fronts();
        }
        for held in serving.all() {
            self.shared.end_session(&serving, &held, Ending::ByService);
        }
        let all_ended = |timeout| {
            serving.ended.wait_until(Some(timeout), || serving.sessions.lock().is_empty())
        };
        let mut have_ended = all_ended(patience);
        if !have_ended {
            serving.all().iter().for_each(|held| held.cancel(CancelReason::Shutdown));
            have_ended = all_ended(LAST_WAIT);
        }
        // Until here they are told of transactions (S10).
        serving.dismiss_fronts();
        have_ended
    }

    /// How many sessions there are.
    #[must_use]
    pub fn sessions(&self) -> usize {
        let serving = self.shared.serving.lock().clone();
        serving.map_or(0, |serving| serving.sessions.lock().len())
    }

    /// Ends the sessions and waits for the service's threads.
    pub fn close(&self) {
        self.end(Duration::ZERO);
        self.shared.close();
        let task = self.task.lock().take();
        if let Some(task) = task {
            task.join();
        }
        if !self.shared.workers.close(LAST_WAIT) {
            tracing::warn!("some commands of sessions did not end in time");
        }
    }
}

impl Drop for SessionService {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl Service for SessionService {
    fn serve(&self, peer: &Peer, request: Request, responder: Responder) {
        let Ok((mut ask, rest)) = decode::<Ask>(&request.payload) else {
            return responder.refuse(REFUSED_DAMAGED, &message::NotAMessage.to_string());
        };
        if let Address::Tcp(front) = peer.address {
            ask.see_from(front);
        }
        let serving = self.shared.serving.lock().clone();
        let is_alone = request.is_alone;
        match serving {
            Some(serving) => self.shared.answer(&serving, ask, rest, is_alone, responder),
            None if self.shared.is_paused.load(Ordering::SeqCst) => {
                responder.refuse(REFUSED_PAUSED, "this process is paused");
            }
            None => responder.refuse(REFUSED_NOT_HERE, "this process runs no sessions"),
        }
    }
}

impl Serving {
    fn all(&self) -> Vec<Arc<Held>> {
        self.sessions.lock().values().cloned().collect()
    }

    fn dismiss_fronts(&self) {
        let fronts = std::mem::take(&mut *self.fronts.lock());
        fronts.values().for_each(|front| front.dismiss());
    }

    fn session(&self, front: u64, session: u32) -> Option<Arc<Held>> {
        self.sessions.lock().get(&(front, session)).cloned()
    }

    fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::SeqCst)
    }

    /// Ends a session if it may go on elsewhere (S7), and returns whether that is so. Waits until
    /// its command has ended.
    fn end_if_left(&self, held: &Arc<Held>) -> bool {
        let has_left =
            self.is_leaving() && held.end_if_left(self.hands_over.load(Ordering::SeqCst));
        if has_left {
            self.forget(held);
        }
        has_left
    }

    /// Ends the sessions that run nothing and may go on elsewhere. True: no other one runs
    /// anything.
    fn end_idle(&self) -> bool {
        let hands_over = self.hands_over.load(Ordering::SeqCst);
        let mut are_idle = true;
        for held in self.all() {
            let has_left = held.try_end_if_left(hands_over);
            are_idle &= has_left.is_some();
            if has_left == Some(true) {
                self.forget(&held);
            }
        }
        are_idle
    }

    /// Ends a session, and tells its front of its transaction (S10). Waits until its command has
    /// ended.
    fn end_describing(&self, held: &Held) {
        let described = held.describe();
        let desk = self.fronts.lock().get(&held.front).cloned();
        if let (Some(transaction), Some(desk)) = (described, desk) {
            let session = held.control.id();
            let transaction = message::Bytes(transaction);
            let described = message::Event::Described { session, transaction };
            desk.tell(&described);
        }
        held.end();
    }

    /// Why a session is not here.
    fn absence(&self) -> u16 {
        if self.is_leaving() { REFUSED_LEAVING } else { REFUSED_NOT_HERE }
    }

    fn of_front(&self, front: u64) -> Vec<Arc<Held>> {
        let sessions = self.sessions.lock();
        sessions.values().filter(|held| held.front == front).cloned().collect()
    }

    /// What became of a command of a session that was here, or at an earlier writer. Blocks.
    fn fate(&self, command: CommandIdentity) -> Fate {
        // While the session ends, the command may still commit.
        let is_over = || self.session(command.front, command.session).is_none();
        if !self.ended.wait_until(Some(LAST_WAIT), is_over) {
            let running = ServerError::new(1105, b"HY000", "the command is still running");
            return Fate::Refused(Fault::from(&running));
        }
        self.service.committed(command).into()
    }

    fn activity(&self) -> Activity {
        // Read before the sessions: one that ends meanwhile changes the next mark.
        let past = self.past.load(Ordering::SeqCst);
        let all = self.all();
        Activity {
            mark: past.wrapping_add(all.iter().map(|held| held.commands()).sum::<u64>()),
            is_busy: all.iter().any(|held| held.is_busy()),
        }
    }

    fn forget(&self, held: &Held) {
        let number = (held.front, held.control.id());
        if self.sessions.lock().remove(&number).is_some() {
            self.past.fetch_add(held.commands(), Ordering::SeqCst);
        }
        self.connections.release(&held.control);
        self.ended.notify_all();
    }
}

/// Who wants a session to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    ByFront,
    ByService,
}

impl Shared {
    fn close(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
        self.wake.notify_all();
    }

    /// Ends the sessions of fronts that have gone (S2). The body of the task.
    fn look_after(self: &Arc<Shared>) {
        let is_closing = || self.is_closing.load(Ordering::SeqCst);
        while !self.wake.wait_until(Some(LOOK), is_closing) {
            let Some(serving) = self.serving.lock().clone() else { continue };
            let fronts: Vec<_> =
                serving.fronts.lock().iter().map(|(n, f)| (*n, Arc::clone(f))).collect();
            for (number, front) in fronts {
                if front.has_gone() {
                    serving.fronts.lock().remove(&number);
                    front.dismiss();
                    for held in serving.of_front(number) {
                        held.cancel(CancelReason::Disconnected);
                        self.end_session(&serving, &held, Ending::ByFront);
                    }
                }
            }
        }
    }

    /// Ends a session that runs nothing and may go on elsewhere.
    fn end_if_left(&self, serving: &Arc<Serving>, held: &Arc<Held>) {
        let (serving, held) = (Arc::clone(serving), Arc::clone(held));
        self.workers.submit(move || {
            serving.end_if_left(&held);
            serving.ended.notify_all();
        });
    }

    /// Ends a session once its running command has ended.
    fn end_session(&self, serving: &Arc<Serving>, held: &Arc<Held>, by: Ending) {
        let (serving, held) = (Arc::clone(serving), Arc::clone(held));
        self.workers.submit(move || {
            match by {
                Ending::ByService if serving.only_reads => serving.end_describing(&held),
                Ending::ByService | Ending::ByFront => held.end(),
            }
            serving.forget(&held);
        });
    }

    /// Takes a request. Does not block, except for a command with a connection of its own: what
    /// may block is left to a worker.
    fn answer(
        self: &Arc<Shared>,
        serving: &Arc<Serving>,
        ask: Ask,
        rest: Payload,
        is_alone: bool,
        responder: Responder,
    ) {
        match ask {
            Ask::Attach { .. } | Ask::Open { .. } if serving.is_leaving() => {
                responder.refuse(REFUSED_LEAVING, "this process takes no session more");
            }
            Ask::Attach { front } => attach(serving, front, responder),
            Ask::Credentials { user, host } => {
                let service = Arc::clone(&serving.service);
                self.workers.submit(move || {
                    let found = Found::from(service.credentials(&user, &host));
                    responder.reply(encode(&found));
                });
            }
            Ask::Attempted { user, host, proved } => {
                let service = Arc::clone(&serving.service);
                self.workers.submit(move || {
                    let noted = service.attempted(&user, &host, proved);
                    responder.reply(encode(&noted.err().as_ref().map(Fault::from)));
                });
            }
            Ask::Open { front, login, resumed } => {
                let (shared, serving) = (Arc::clone(self), Arc::clone(serving));
                self.workers.submit(move || {
                    shared.open(&serving, front, login, resumed, &rest, responder);
                });
            }
            Ask::Part { front, session } => match serving.session(front, session) {
                Some(held) => {
                    held.add_part(&rest);
                    responder.reply(Vec::new());
                }
                None => refuse_unknown(serving, responder),
            },
            Ask::Run { front, session, number, closes, last, command } => {
                let Some(held) = serving.session(front, session) else {
                    return refuse_unknown(serving, responder);
                };
                let (environment, serving) = (self.environment.clone(), Arc::clone(serving));
                let run = move || {
                    serving.end_if_left(&held);
                    if let Some(last) = last {
                        held.take_last(&last.into());
                    }
                    let ended = held.run(&environment, number, &closes, command, rest, responder);
                    // What it leaves is here before the front looks for it elsewhere.
                    if serving.is_leaving() {
                        serving.end_if_left(&held);
                        serving.ended.notify_all();
                    }
                    if let Some(responder) = ended {
                        refuse_unknown(&serving, responder);
                    }
                };
                match is_alone {
                    true => run(),
                    false => self.workers.submit(run),
                }
            }
            Ask::Content { front, session, is_end } => match serving.session(front, session) {
                Some(held) => held.content.add(rest, is_end, responder),
                None => refuse_unknown(serving, responder),
            },
            Ask::Cancel { front, session, number, reason } => {
                if let Some(held) = serving.session(front, session) {
                    held.cancel_command(number, reason.into());
                }
            }
            Ask::Committed { front, session, number } => {
                let serving = Arc::clone(serving);
                let command = CommandIdentity { front, session, number };
                self.workers.submit(move || {
                    responder.reply(encode(&serving.fate(command)));
                });
            }
            Ask::Close { front, sessions } => {
                for session in sessions {
                    match serving.session(front, session) {
                        Some(held) => {
                            held.cancel(CancelReason::Disconnected);
                            self.end_session(serving, &held, Ending::ByFront);
                        }
                        None => self.abandon_session(serving, session),
                    }
                }
            }
        }
    }

    /// The client of a session that was on its way here is gone.
    fn abandon_session(&self, serving: &Arc<Serving>, session: u32) {
        let service = Arc::clone(&serving.service);
        self.workers.submit(move || service.abandon_session(session));
    }

    /// Opens a session. Blocks.
    fn open(
        &self,
        serving: &Arc<Serving>,
        front: u64,
        login: LoginFacts,
        resumed: Option<Resumed>,
        document: &[u8],
        responder: Responder,
    ) {
        let desk = serving.fronts.lock().get(&front).cloned();
        let Some(desk) = desk else { return refuse_unknown(serving, responder) };
        let held = Held::new(front, &login, &self.environment);
        // A session that the front has lost sight of may be ending.
        let adopt = || serving.connections.adopt(&held.control);
        if !serving.ended.wait_until(Some(LAST_WAIT), adopt) {
            let fault = ServerError::new(1040, b"08004", "Too many connections");
            return responder.reply(encode(&Done::refused(&fault)));
        }
        let held = Arc::new(held);
        serving.sessions.lock().insert((front, login.connection), Arc::clone(&held));
        serving.past.fetch_add(1, Ordering::SeqCst);
        let login = held.login(&login, &serving.connections);
        let opened = match resumed {
            None => serving.service.open(login),
            Some(Resumed { has_document, last, has_left }) => {
                let document = has_document.then_some(document);
                let resumed = serving.service.resume(login, document, &LastResults::from(last));
                resumed.map(|mut session| {
                    // The front sees what of it is here.
                    let _ = has_left && session.take_left();
                    session
                })
            }
        };
        match opened {
            Ok(session) => responder.reply(encode(&held.begin(session, &desk))),
            Err(error) => {
                serving.forget(&held);
                responder.reply(encode(&Done::refused(&error)));
            }
        }
        // The front may have gone meanwhile, or the service ended.
        if desk.has_gone() {
            self.end_session(serving, &held, Ending::ByFront);
        } else if serving.is_leaving() {
            self.end_if_left(serving, &held);
        }
    }
}

fn attach(serving: &Serving, front: u64, responder: Responder) {
    // Known before it is welcome: its first sessions may come at once.
    let desk = Arc::new(FrontDesk { events: Mutex::new(Some(responder)) });
    serving.fronts.lock().insert(front, Arc::clone(&desk));
    desk.tell(&message::Event::Welcome);
}

fn refuse_unknown(serving: &Serving, responder: Responder) {
    responder.refuse(serving.absence(), "this process has no such session");
}

/// Where the client of a session is.
fn peer(login: &LoginFacts) -> PeerAddress {
    login.peer.map_or(PeerAddress::Unix, PeerAddress::Tcp)
}
