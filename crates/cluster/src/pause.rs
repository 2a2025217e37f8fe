//! The pause of an idle cluster, as its processes talk about it. [`firn_control::pause`] has the
//! rules.
//!
//! ```text
//!   front with a client that waits ── Wake ──────────────► the node that leads, and rests
//!   the node that leads, and is idle ── Idle?, Rest ─────► replicas
//!   a replica that rests ── is the engine open? ─────────► the nodes that may write
//! ```
//!
//! A replica that rests has closed, and looks now and then whether the node that writes is open. So
//! it needs nobody to wake it, and a message that is lost costs half a second.
//!
//! `docs/formats/cluster.md` describes the bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::Environment;
use firn_base::event::Event;
use firn_control::pause::{Pause, PauseCommand, PauseEvent, SessionsSeen};
use firn_link::{
    Caller, FIRST_SERVICE_CODE, Offer, Peer, Placement, Request, Responder, Service, ServiceId,
};
use firn_session_service::Activity;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::links::NodeLinks;
use crate::versioned::{decode, encode};

const SERVICE: ServiceId = ServiceId(0x0105);
const VERSION: u8 = 1;
/// How long a node has to answer.
const TIMEOUT: Duration = Duration::from_millis(500);

/// The order of the variants is part of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Ask {
    /// A client waits for the engine.
    Wake,
    IsOpen,
    /// For how long the replica has been idle.
    Idle,
    /// Rest, if the replica has been idle for this long.
    Rest {
        idle_ms: u64,
    },
}

/// The order of the variants is part of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Answer {
    Noted,
    State(WriterState),
    /// `None`: there is no open replica.
    Idle(Option<u64>),
    Rests(bool),
}

/// Whether a node writes. The order of the variants is part of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum WriterState {
    /// Another node does, or nobody.
    Away,
    Open,
    /// It is paused, or about to be.
    Resting,
}

/// A process's replica, as somebody asks it who wants to pause.
pub(crate) trait RestingReplica: Send + Sync {
    /// For how long it has been idle; `None` if it is not open.
    fn idle_for(&self) -> Option<Duration>;

    /// Has it rest from now on, if it has been idle for `idle_for`. False: it was not. Blocks for a
    /// moment until it is closed.
    fn rest(&self, idle_for: Duration) -> bool;
}

/// What a process knows of the pause: the machine of its engine, and its replica.
pub(crate) struct PauseSeat {
    environment: Environment,
    machine: Mutex<Pause>,
    /// Whether the engine answers clients.
    is_open: AtomicBool,
    /// A client waits for the engine, and the machine was not told.
    is_woken: AtomicBool,
    woken: Event,
    replica: Mutex<Option<Arc<dyn RestingReplica>>>,
}

impl PauseSeat {
    /// `after`: for how long nobody sends anything before the pause; `None`: there is none.
    pub(crate) fn new(environment: &Environment, after: Option<Duration>) -> Arc<PauseSeat> {
        Arc::new(PauseSeat {
            environment: environment.clone(),
            machine: Mutex::new(Pause::new(after)),
            is_open: AtomicBool::new(false),
            is_woken: AtomicBool::new(false),
            woken: Event::new(),
            replica: Mutex::default(),
        })
    }

    pub(crate) fn offer(self: &Arc<Self>) -> Offer {
        let service = Arc::clone(self) as _;
        Offer { id: SERVICE, placement: Placement::Workers, service }
    }

    /// The process has a replica.
    pub(crate) fn set_replica(&self, replica: Option<Arc<dyn RestingReplica>>) {
        let before = std::mem::replace(&mut *self.replica.lock(), replica);
        drop(before);
    }

    /// A client waits for the engine. Does not block.
    pub(crate) fn wake(&self) {
        if self.is_resting() {
            self.is_woken.store(true, Ordering::SeqCst);
            self.woken.notify_all();
        }
    }

    /// Waits for a client that wants the engine, for `limit` at most. False: none has come.
    pub(crate) fn wait_for_wake(&self, limit: Duration) -> bool {
        self.woken.wait_until(Some(limit), || self.is_woken.load(Ordering::SeqCst))
    }

    /// Tells the machine what happened, and before that of a client that waits.
    pub(crate) fn tell(&self, event: PauseEvent) -> Option<PauseCommand> {
        let now = self.environment.clock.monotonic();
        let mut machine = self.machine.lock();
        if self.is_woken.swap(false, Ordering::SeqCst)
            && let Some(command) = machine.handle(now, PauseEvent::Woken)
        {
            return Some(command);
        }
        machine.handle(now, event)
    }

    /// The engine answers clients, or not any more.
    pub(crate) fn set_open(&self, is_open: bool) {
        self.is_open.store(is_open, Ordering::SeqCst);
    }

    /// Whether a client that wants the engine has to wake it.
    pub(crate) fn is_resting(&self) -> bool {
        self.machine.lock().is_resting()
    }

    /// Whether the engine is closed until somebody wakes it.
    pub(crate) fn is_paused(&self) -> bool {
        self.machine.lock().is_paused()
    }

    fn state(&self) -> WriterState {
        match (self.is_resting(), self.is_open.load(Ordering::SeqCst)) {
            (true, _) => WriterState::Resting,
            (false, true) => WriterState::Open,
            (false, false) => WriterState::Away,
        }
    }

    fn answer(&self, ask: Ask) -> Answer {
        let replica = || self.replica.lock().clone();
        match ask {
            Ask::Wake => {
                self.wake();
                Answer::Noted
            }
            Ask::IsOpen => Answer::State(self.state()),
            Ask::Idle => {
                let idle_for = replica().and_then(|replica| replica.idle_for());
                Answer::Idle(idle_for.map(|time| time.as_millis() as u64))
            }
            Ask::Rest { idle_ms } => {
                let rests =
                    |replica: Arc<dyn RestingReplica>| replica.rest(Duration::from_millis(idle_ms));
                Answer::Rests(replica().is_none_or(rests))
            }
        }
    }
}

impl Service for PauseSeat {
    fn serve(&self, _: &Peer, request: Request, responder: Responder) {
        match decode::<Ask>(VERSION, &request.payload) {
            Some(ask) => responder.reply(encode(VERSION, &self.answer(ask))),
            None => responder.refuse(FIRST_SERVICE_CODE, "the message is not one of this release"),
        }
    }
}

/// Wakes the nodes that may write, as far as that needs no wait.
pub(crate) fn wake(writers: &[Arc<Caller>]) {
    let message = encode(VERSION, &Ask::Wake);
    for writer in writers {
        writer.cast_at_once(SERVICE, message.clone().into());
    }
}

/// Whether a replica should rest: a node that may write rests, and no other one is open. Blocks for
/// a round trip.
pub(crate) fn writer_rests(writers: &[Arc<Caller>]) -> bool {
    let answers = ask_all(writers, Ask::IsOpen);
    let is = |state| answers.contains(&Answer::State(state));
    is(WriterState::Resting) && !is(WriterState::Open)
}

/// Has all replicas rest if each of them has been idle for `idle_for`. False: one was not. Those
/// that do not answer are left out. Blocks for two round trips.
pub(crate) fn have_replicas_rest(replicas: &NodeLinks, idle_for: Duration) -> bool {
    let (replicas, idle_ms) = (replicas(), idle_for.as_millis() as u64);
    // All are asked first: one that rests loses what it has in memory.
    let is_busy = |answer: &Answer| match answer {
        Answer::Idle(Some(time)) => *time < idle_ms,
        _ => false,
    };
    !ask_all(&replicas, Ask::Idle).iter().any(is_busy)
        && !ask_all(&replicas, Ask::Rest { idle_ms }).contains(&Answer::Rests(false))
}

/// Asks nodes at the same time; returns what was answered.
fn ask_all(nodes: &[Arc<Caller>], ask: Ask) -> Vec<Answer> {
    let calls = nodes.iter().filter_map(|caller| {
        caller.peer()?;
        caller.begin(SERVICE, encode(VERSION, &ask), TIMEOUT).ok()
    });
    let calls: Vec<_> = calls.collect();
    calls.into_iter().filter_map(|call| decode(VERSION, &call.wait().ok()?)).collect()
}

/// What sessions do, as the machine takes it.
pub(crate) fn seen(activity: Activity) -> SessionsSeen {
    SessionsSeen { mark: activity.mark, is_busy: activity.is_busy }
}

#[cfg(test)]
mod tests;
