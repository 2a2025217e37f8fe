//! When the compute of an idle cluster pauses, and when it wakes.
//!
//! ```text
//!                  idle for long enough     replicas rest         sessions have left
//!   Away ── opened ──► Awake ────────► Asking ────────► Leaving ────────► Closing
//!     ▲                 ▲  ▲              │                │                 │ closed
//!     │ another leads   │  └── a replica is busy, a session stays, a wake    ▼
//!     └───── any        └───────────── opened ◄─── Opening ◄─── a wake ── Paused
//! ```
//!
//! The node that writes has the machine, from one closed engine to the next: it tells what happens,
//! and carries out what is answered. The machine has no clock and sends nothing.
//!
//! Rules, cited by number:
//!
//! * P1. *A pause is not noticed but by its length.* An engine is closed only after every session
//!   has left it at the end of a statement, with nothing that would end with the engine.
//! * P2. *A cluster is idle while no client sends anything.* Each statement and each login, at the
//!   node that writes or at a replica, starts the time again. The time does not run while a session
//!   has something that ends with the engine. Connected clients, heartbeats and questions about the
//!   state do not count.
//! * P3. *Replicas rest first*, so that none needs a node that is paused. One that is busy, or was
//!   within the time, refuses. One that does not answer is not waited for: it looks for the node
//!   that writes by itself.
//! * P4. *Wakes are one wake, and none is lost.* Before the engine is closed, a wake gives the
//!   pause up. While it closes, it is remembered. Of a paused node it has the engine opened. While
//!   the engine opens or is open, it has no effect.
//! * P5. *A pause ends with the leadership of its node.* Who begins to lead opens an engine, and
//!   pauses after its own time.
//! * P6. *A pause that was given up is not tried before the time has passed again.*

use std::time::Duration;

/// What happens at a node that leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseEvent {
    /// Its engine answers clients.
    Opened,
    /// What its sessions do; told at a steady rate while the engine is open.
    Seen(SessionsSeen),
    /// All replicas that have answered rest.
    ReplicasRest,
    /// A replica does not rest.
    ReplicaIsBusy,
    /// No session has anything at the engine, and none comes to it.
    SessionsHaveLeft,
    /// Some have not left in time.
    SessionsStay,
    /// The engine is closed.
    Closed,
    /// A client waits for the engine.
    Woken,
    /// The node leads no more, or its process ends.
    LostOffice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionsSeen {
    /// Changes with each command and each login.
    pub mark: u64,
    /// Whether a command runs, or something is open that ends with the engine.
    pub is_busy: bool,
}

/// What the node that writes does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseCommand {
    /// Ask the replicas to rest, if they have been idle for as long.
    AskReplicas {
        idle_for: Duration,
    },
    /// Have the sessions leave that can, and let none in.
    LetSessionsLeave,
    /// Let sessions and replicas go on as before.
    Stay,
    Close,
    Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Away,
    /// Since when nothing was seen, and the last mark.
    Awake {
        since: Duration,
        mark: Option<u64>,
    },
    Asking,
    Leaving,
    Closing {
        is_woken: bool,
    },
    Paused,
    Opening,
}

/// Decides when the compute of a cluster pauses. See the module's page.
#[derive(Debug)]
pub struct Pause {
    after: Option<Duration>,
    stage: Stage,
}

impl Pause {
    /// `after`: for how long nobody sends anything before the pause; `None`: it never pauses.
    #[must_use]
    pub fn new(after: Option<Duration>) -> Pause {
        Pause { after, stage: Stage::Away }
    }

    /// Whether a client that wants the engine has to wake the node: it is paused, or about to be.
    #[must_use]
    pub fn is_resting(&self) -> bool {
        matches!(self.stage, Stage::Asking | Stage::Leaving | Stage::Closing { .. } | Stage::Paused)
    }

    /// Whether the engine is closed until somebody wakes the node.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.stage == Stage::Paused
    }

    /// Takes what happened at `now`, a time that never goes back, and says what to do, if anything.
    /// What does not belong to the stage, such as an answer that comes late, has no effect.
    pub fn handle(&mut self, now: Duration, event: PauseEvent) -> Option<PauseCommand> {
        let awake = Stage::Awake { since: now, mark: None };
        let (stage, command) = match (self.stage, event) {
            // P5.
            (_, PauseEvent::LostOffice) => (Stage::Away, None),
            (Stage::Away | Stage::Opening, PauseEvent::Opened) => (awake, None),
            (Stage::Awake { since, mark }, PauseEvent::Seen(seen)) => {
                self.watch(now, since, mark, seen)?
            }
            (Stage::Asking, PauseEvent::ReplicasRest) => {
                (Stage::Leaving, Some(PauseCommand::LetSessionsLeave))
            }
            (Stage::Leaving, PauseEvent::SessionsHaveLeft) => {
                (Stage::Closing { is_woken: false }, Some(PauseCommand::Close))
            }
            // P4, P6.
            (Stage::Asking, PauseEvent::ReplicaIsBusy)
            | (Stage::Leaving, PauseEvent::SessionsStay)
            | (Stage::Asking | Stage::Leaving, PauseEvent::Woken) => {
                (awake, Some(PauseCommand::Stay))
            }
            (Stage::Closing { .. }, PauseEvent::Woken) => (Stage::Closing { is_woken: true }, None),
            (Stage::Closing { is_woken: false }, PauseEvent::Closed) => (Stage::Paused, None),
            (Stage::Closing { is_woken: true }, PauseEvent::Closed)
            | (Stage::Paused, PauseEvent::Woken) => (Stage::Opening, Some(PauseCommand::Open)),
            _ => return None,
        };
        self.stage = stage;
        command
    }

    /// P2.
    fn watch(
        &self,
        now: Duration,
        since: Duration,
        mark: Option<u64>,
        seen: SessionsSeen,
    ) -> Option<(Stage, Option<PauseCommand>)> {
        let after = self.after?;
        if seen.is_busy || mark != Some(seen.mark) {
            return Some((Stage::Awake { since: now, mark: Some(seen.mark) }, None));
        }
        let is_over = now.saturating_sub(since) >= after;
        is_over.then_some((Stage::Asking, Some(PauseCommand::AskReplicas { idle_for: after })))
    }
}

/// Says of sessions for how long they have been idle (P2), for a replica that is asked to rest.
#[derive(Debug, Default)]
pub struct Idleness {
    last: Option<(Duration, u64)>,
}

impl Idleness {
    /// Takes what was seen at `now`, and returns for how long nothing else has been.
    pub fn note(&mut self, now: Duration, seen: SessionsSeen) -> Duration {
        match self.last {
            Some((since, mark)) if !seen.is_busy && mark == seen.mark => now.saturating_sub(since),
            _ => {
                self.last = Some((now, seen.mark));
                Duration::ZERO
            }
        }
    }
}

#[cfg(test)]
mod tests;
