//! Sessions that run in the front's own process, while it has an engine: they answer their clients
//! directly, and are lost and opened elsewhere like those at other nodes.
//!
//! Latch rule: a session's mutex is held while it runs a command, as that of a backend's session.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_base::event::Event;
use firn_wire::{CancelReason, Canceller, Service, Session, Status};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::Activity;

/// How long sessions may take to end after they were told to.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// The sessions of one life of the process's engine.
pub(super) struct LocalSessions {
    /// `None` once they have to end: a client that sends nothing keeps its place, and must not keep
    /// the engine's memory.
    service: Mutex<Option<Arc<dyn Service>>>,
    /// Whether they only read, so that their transactions can move (S10).
    only_read: bool,
    is_over: AtomicBool,
    /// See S7.
    is_leaving: AtomicBool,
    hands_over: AtomicBool,
    sessions: Mutex<FxHashMap<u64, Arc<LocalSession>>>,
    next: AtomicU64,
    /// How many commands have begun in sessions that have ended.
    past_commands: AtomicU64,
    /// Notified when a session has ended.
    ended: Event,
}

pub(super) struct LocalSession {
    number: u64,
    pub(super) canceller: Arc<dyn Canceller>,
    /// See [`firn_wire::Carried::is_bound`]; as of its last command.
    is_bound: AtomicBool,
    has_ended: AtomicBool,
    /// How many commands have begun in it.
    commands: AtomicU64,
    /// The transaction that it had when it was ended here, if that can move (S10).
    described: Mutex<Option<Vec<u8>>>,
    inside: Mutex<Option<Box<dyn Session>>>,
}

impl LocalSession {
    /// Whether a command runs, or the session has what ends with it here.
    fn is_busy(&self) -> bool {
        let Some(mut inside) = self.inside.try_lock() else { return true };
        let in_transaction =
            |session: &mut Box<dyn Session>| session.status().contains(Status::IN_TRANSACTION);
        self.is_bound.load(Ordering::SeqCst) || inside.as_mut().is_some_and(in_transaction)
    }

    /// Whether it may go on elsewhere, outside of a command; with what it has left here, if that is
    /// handed over.
    fn may_leave(&self, session: &mut dyn Session, hands_over: bool) -> bool {
        let has_something = self.is_bound.load(Ordering::SeqCst)
            || session.status().contains(Status::IN_TRANSACTION);
        !has_something || (hands_over && session.leave_session())
    }
}

/// A session and those that it belongs to.
pub(super) struct LocalPlace {
    pub(super) all: Arc<LocalSessions>,
    pub(super) session: Arc<LocalSession>,
}

impl LocalSessions {
    pub(super) fn new(service: Arc<dyn Service>) -> Arc<LocalSessions> {
        LocalSessions::of(service, false)
    }

    /// Those that only read.
    pub(super) fn of_reader(service: Arc<dyn Service>) -> Arc<LocalSessions> {
        LocalSessions::of(service, true)
    }

    fn of(service: Arc<dyn Service>, only_read: bool) -> Arc<LocalSessions> {
        Arc::new(LocalSessions {
            service: Mutex::new(Some(service)),
            only_read,
            is_over: AtomicBool::new(false),
            is_leaving: AtomicBool::new(false),
            hands_over: AtomicBool::new(false),
            sessions: Mutex::default(),
            next: AtomicU64::new(0),
            past_commands: AtomicU64::new(0),
            ended: Event::new(),
        })
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// What opens sessions here; `None` if it does so no more.
    pub(super) fn service(&self) -> Option<Arc<dyn Service>> {
        self.service.lock().clone()
    }

    /// Takes a session that was opened.
    pub(super) fn enter(self: &Arc<Self>, session: Box<dyn Session>) -> LocalPlace {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let canceller = session.canceller();
        let session = Arc::new(LocalSession {
            number,
            canceller,
            is_bound: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            commands: AtomicU64::new(0),
            described: Mutex::default(),
            inside: Mutex::new(Some(session)),
        });
        self.sessions.lock().insert(number, Arc::clone(&session));
        LocalPlace { all: Arc::clone(self), session }
    }

    /// Has the sessions go on elsewhere (S7). Does not wait.
    pub(super) fn begin_leaving(&self) {
        self.is_leaving.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::SeqCst)
    }

    /// Has sessions go on elsewhere in the middle of transactions, too (S7). Does not wait.
    pub(super) fn begin_handing_over(&self) {
        self.hands_over.store(true, Ordering::SeqCst);
    }

    /// Has running commands end as if they had not been run, where that is possible (S9). Does not
    /// wait. Some may be cut only later.
    pub(super) fn cut(&self) {
        if !self.hands_over.load(Ordering::SeqCst) {
            return;
        }
        let all: Vec<_> = self.sessions.lock().values().cloned().collect();
        all.iter().for_each(|session| session.canceller.cut());
    }

    /// Whether a session that is leaving has nothing to do here any more.
    fn has_left(&self, session: &LocalSession, inside: &mut dyn Session) -> bool {
        self.is_leaving() && session.may_leave(inside, self.hands_over.load(Ordering::SeqCst))
    }

    /// Waits until no session is left, for `limit` at most. False: some are left.
    pub(super) fn wait_until_left(&self, limit: Duration) -> bool {
        self.ended.wait_until(Some(limit), || self.end_idle())
    }

    /// Waits until no command runs, for `limit` at most. False: some run. Sessions that are left
    /// after that cannot go on elsewhere.
    pub(super) fn wait_until_idle(&self, limit: Duration) -> bool {
        self.ended.wait_until(Some(limit), || {
            self.end_idle();
            let left = self.sessions.lock();
            left.values().all(|session| session.inside.try_lock().is_some())
        })
    }

    /// Runs no more commands, waits for running ones, for `patience` at most, interrupts them then,
    /// and ends all sessions. False if some have not ended within a few seconds after that.
    pub(super) fn end(&self, patience: Duration) -> bool {
        self.is_over.store(true, Ordering::SeqCst);
        let service = self.service.lock().take();
        drop(service);
        let all_ended = |timeout| self.ended.wait_until(Some(timeout), || self.end_idle());
        if all_ended(patience) {
            return true;
        }
        let left: Vec<_> = self.sessions.lock().values().cloned().collect();
        left.iter().for_each(|session| session.canceller.cancel(CancelReason::Shutdown));
        all_ended(LAST_WAIT)
    }

    /// Ends the sessions that run nothing. Returns whether none is left.
    fn end_idle(&self) -> bool {
        let all: Vec<_> = self.sessions.lock().values().cloned().collect();
        all.iter().for_each(|session| self.try_end(session));
        self.sessions.lock().is_empty()
    }

    fn try_end(&self, session: &LocalSession) {
        let Some(mut inside) = session.inside.try_lock() else { return };
        let ends =
            |inside: &mut Box<dyn Session>| self.is_over() || self.has_left(session, &mut **inside);
        if !inside.as_mut().is_none_or(ends) {
            return;
        }
        let mut ended = inside.take();
        if self.only_read
            && let Some(ended) = &mut ended
        {
            *session.described.lock() = ended.describe_transaction();
        }
        session.has_ended.store(true, Ordering::SeqCst);
        drop(inside);
        drop(ended);
        self.remove(session);
    }

    fn remove(&self, session: &LocalSession) {
        if self.sessions.lock().remove(&session.number).is_some() {
            self.past_commands
                .fetch_add(session.commands.load(Ordering::Relaxed), Ordering::SeqCst);
        }
    }

    /// Keeps the sessions that have not left yet.
    pub(super) fn stay(&self) {
        self.hands_over.store(false, Ordering::SeqCst);
        self.is_leaving.store(false, Ordering::SeqCst);
    }

    pub(super) fn activity(&self) -> Activity {
        // Read before the sessions: one that ends meanwhile changes the next mark.
        let past = self.past_commands.load(Ordering::SeqCst);
        let all: Vec<_> = self.sessions.lock().values().cloned().collect();
        let commands = all.iter().map(|one| one.commands.load(Ordering::Relaxed)).sum::<u64>();
        let opened = self.next.load(Ordering::Relaxed);
        Activity {
            mark: past.wrapping_add(commands).wrapping_add(opened),
            is_busy: all.iter().any(|session| session.is_busy()),
        }
    }
}

impl LocalPlace {
    /// Uses the session; `None` if it has ended.
    pub(super) fn with<T>(&self, run: impl FnOnce(&mut dyn Session) -> T) -> Option<T> {
        let mut inside = self.session.inside.lock();
        let has_left = match &mut *inside {
            Some(session) => self.all.has_left(&self.session, &mut **session),
            None => false,
        };
        // What it had may be gone from it: nothing more runs in it.
        let left = if has_left { inside.take() } else { None };
        let done = match &mut *inside {
            _ if self.all.is_over() => None,
            Some(session) => {
                // Only the holder of the session's mutex writes it.
                let commands = self.session.commands.load(Ordering::Relaxed);
                self.session.commands.store(commands + 1, Ordering::Relaxed);
                Some(run(&mut **session))
            }
            None => None,
        };
        drop(inside);
        drop(left);
        if self.all.is_over() || self.all.is_leaving() {
            self.all.try_end(&self.session);
            self.all.ended.notify_all();
        }
        done
    }

    /// The transaction that the session had when it was ended here (S10).
    pub(super) fn take_described(&self) -> Option<Vec<u8>> {
        self.session.described.lock().take()
    }

    /// Whether the session is not here any more.
    pub(super) fn is_over(&self) -> bool {
        self.all.is_over() || self.session.has_ended.load(Ordering::SeqCst)
    }

    /// Says whether the session has something that ends with its server.
    pub(super) fn set_bound(&self, is_bound: bool) {
        self.session.is_bound.store(is_bound, Ordering::SeqCst);
    }

    /// Ends the session.
    pub(super) fn leave(&self) {
        let ended = self.session.inside.lock().take();
        self.session.has_ended.store(true, Ordering::SeqCst);
        drop(ended);
        self.all.remove(&self.session);
        self.all.ended.notify_all();
    }
}
