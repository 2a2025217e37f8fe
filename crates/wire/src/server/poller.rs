//! The thread that holds idle connections and accepts new ones.
//!
//! ```text
//!   listener readable   → accept, greeting, park (the client has until connect_timeout to log in)
//!   connection readable → a worker serves it
//!   deadline passed     → a worker tells the client, or it is just closed if it has not logged in
//! ```
//!
//! A parked connection costs its state and nothing more: no thread, no buffers. A client that
//! connects and sends nothing waits in the same way.
//!
//! Rule 4: the mutex is held only to insert, remove or list. A connection is inserted before epoll
//! watches it, so an event always finds its connection.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::task;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};

use super::accept::accept_all;
use super::connection::Connection;
use super::shared::Shared;
use super::workers::discard;
use crate::channel::Listener;

/// How often deadlines are checked.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };

/// How long to wait when the process has no descriptors left for new connections.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The key of the wake-up descriptor in epoll. Connections use their numbers, which have 32 bits.
const WAKE: u64 = u64::MAX;

/// The key of a listener in epoll is this plus its place in the list.
const LISTENER: u64 = 1 << 32;

/// One event for each time that a connection is parked.
const ONCE: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ONESHOT);

/// Idle connections, and the epoll instance that watches them.
pub(super) struct Poller {
    epoll: OwnedFd,
    wake: OwnedFd,
    parked: Mutex<FxHashMap<u32, Box<Connection>>>,
    stopping: AtomicBool,
}

impl Poller {
    pub(super) fn new() -> io::Result<Poller> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        let parked = Mutex::new(FxHashMap::default());
        Ok(Poller { epoll, wake, parked, stopping: AtomicBool::new(false) })
    }

    /// Holds a connection until its client sends something.
    pub(super) fn park(&self, shared: &Arc<Shared>, mut connection: Box<Connection>) {
        let control = connection.control().clone();
        let Some(socket) = control.socket() else { return };
        let known = connection.prepare_to_park(shared.environment.clock.monotonic());
        self.parked.lock().insert(control.id(), connection);
        let data = EventData::new_u64(u64::from(control.id()));
        let told = match known {
            true => epoll::modify(&self.epoll, socket, data, ONCE),
            false => epoll::add(&self.epoll, socket, data, ONCE),
        };
        if let Err(error) = &told {
            tracing::error!(connection = control.id(), %error, "an idle connection cannot be held");
        }
        // The thread has ended, so it would never remove the connection.
        if told.is_err() || self.stopping.load(Ordering::SeqCst) {
            self.take(control.id()).into_iter().for_each(discard);
        }
    }

    fn take(&self, id: u32) -> Option<Box<Connection>> {
        self.parked.lock().remove(&id)
    }

    /// How many connections are parked.
    pub(super) fn parked(&self) -> usize {
        self.parked.lock().len()
    }

    /// Wakes the thread, which then checks whether it must end.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Makes the thread check for work at once.
    pub(super) fn wake(&self) {
        // Fails only when so many wake-ups are pending that another one does not matter.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Body of the thread.
    pub(super) fn run(&self, shared: &Arc<Shared>, mut listeners: Vec<Listener>) {
        for (place, listener) in listeners.iter().enumerate() {
            let data = EventData::new_u64(LISTENER + place as u64);
            if let Err(error) = epoll::add(&self.epoll, listener, data, EventFlags::IN) {
                tracing::error!(%error, "cannot wait for connections");
            }
        }
        let mut next_look = Duration::ZERO;
        while !self.stopping.load(Ordering::SeqCst) {
            self.one_round(shared, &listeners);
            let now = shared.environment.clock.monotonic();
            if shared.is_stopping() {
                // Closed listeners accept no more connections.
                listeners.clear();
                self.give_up(shared, |_| true);
            }
            if now >= next_look {
                next_look = now + Duration::from_millis(500);
                self.give_up(shared, |connection| connection.is_expired(now));
            }
        }
        let left = std::mem::take(&mut *self.parked.lock());
        left.into_values().for_each(discard);
    }

    fn one_round(&self, shared: &Arc<Shared>, listeners: &[Listener]) {
        let mut space = [MaybeUninit::<Event>::uninit(); 256];
        let events = match epoll::wait(&self.epoll, &mut space, Some(&TICK)) {
            Ok((events, _)) => events,
            Err(rustix::io::Errno::INTR) => return,
            Err(error) => {
                tracing::error!(%error, "cannot wait for idle connections");
                return task::sleep(ACCEPT_PAUSE);
            }
        };
        for event in events.iter() {
            match event.data.u64() {
                WAKE => self.hear_wake(),
                listener @ LISTENER.. => {
                    let listener = listeners.get((listener - LISTENER) as usize);
                    let out_of_descriptors =
                        listener.is_some_and(|listener| accept_all(shared, listener).is_err());
                    if out_of_descriptors {
                        task::sleep(ACCEPT_PAUSE);
                    }
                }
                id => {
                    if let Some(connection) = self.take(id as u32) {
                        shared.workers.submit(shared, connection);
                    }
                }
            }
        }
    }

    fn hear_wake(&self) {
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
    }

    /// Closes the chosen connections; those that have logged in are told first.
    fn give_up(&self, shared: &Arc<Shared>, shall: impl Fn(&Connection) -> bool) {
        let given_up: Vec<_> = {
            let mut parked = self.parked.lock();
            parked.extract_if(|_, connection| shall(connection)).collect()
        };
        for (_, mut connection) in given_up {
            if connection.expire() {
                shared.workers.submit(shared, connection);
            } else {
                discard(connection);
            }
        }
    }
}
