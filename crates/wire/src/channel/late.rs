//! An answer that waits for the confirmation of its commit, while the connection's thread waits for
//! the next command.
//!
//! ```text
//!   connection's thread            thread that confirms        stage
//!   promise ─────────────────────────────────────────────────► Promised
//!   encodes the answer, offer ───────────────────────────────► Offered
//!   receives …                     confirm: sends the bytes ─► Sending ─► Nothing
//!
//!   promise ─────────────────────────────────────────────────► Promised
//!   encodes the answer …           confirm ──────────────────► Confirmed
//!   offer: sends the bytes itself ───────────────────────────► Nothing
//! ```
//!
//! Rules, cited by number:
//!
//! 1. The mutex is held to look and to change, never while something is sent or waited for. The
//!    stage `Sending` gives the bytes and the socket's sending half to the thread that confirms.
//! 2. That thread never waits for the client: what the socket does not take at once stays, as stage
//!    `Rest`, to the connection's thread.
//! 3. The connection's thread sends nothing before the stage is `Nothing`, so answers stay in their
//!    order, and begins no command while one is `Offered`, so a command that the client sends early
//!    runs after the confirmation of the one before it.
//! 4. The socket stays open as long as this exists, so its descriptor is not another socket's.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use firn_base::event::Event;
use parking_lot::Mutex;

use super::socket::Socket;
use crate::packet::HEADER_LENGTH;

/// Bytes of memory that are kept between answers; nearly every answer is this short.
const KEPT_BYTES: usize = 1 << 10;

/// How far an answer has come.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stage {
    /// There is no late answer.
    Nothing,
    /// A confirmation will come; the answer is being made.
    Promised,
    /// The confirmation came before the answer: an error replaces it.
    Confirmed(Confirmed),
    /// The answer waits for its confirmation.
    Offered,
    /// The confirming thread sends the answer.
    Sending,
    /// The bytes before this one were sent.
    Rest(usize),
}

/// `Err` has the payload of an error packet.
pub(crate) type Confirmed = Result<(), Vec<u8>>;

/// Where the answer is made.
#[derive(Debug)]
struct State {
    stage: Stage,
    /// The answer, from `Offered` on.
    bytes: Vec<u8>,
}

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct LateAnswer {
    socket: Arc<Socket>,
    state: Mutex<State>,
    /// Notified when the stage has changed and the connection's thread may wait for that.
    changed: Event,
    /// Whether the stage may be another than `Nothing`. Only the connection's thread uses it.
    is_in_use: AtomicBool,
}

/// What the connection's thread has to do with an answer that it has made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// Nothing: it is sent when the confirmation arrives.
    Left,
    /// It is confirmed already.
    Send(Confirmed),
}

impl LateAnswer {
    pub(crate) fn new(socket: Arc<Socket>) -> LateAnswer {
        let state = Mutex::new(State { stage: Stage::Nothing, bytes: Vec::new() });
        LateAnswer { socket, state, changed: Event::new(), is_in_use: AtomicBool::new(false) }
    }

    /// Whether the connection's thread has to look at the stage.
    #[inline]
    pub(crate) fn is_in_use(&self) -> bool {
        self.is_in_use.load(Ordering::Relaxed)
    }

    /// Announces that [`LateAnswer::confirm`] will be called. False if the client has not taken the
    /// answer before it. Waits while that is being sent.
    pub(crate) fn promise(&self) -> bool {
        if self.is_in_use() {
            let is_sent = || self.state.lock().stage != Stage::Sending;
            self.changed.wait_until(None, is_sent);
        }
        let mut state = self.state.lock();
        if state.stage != Stage::Nothing {
            return false;
        }
        state.stage = Stage::Promised;
        self.is_in_use.store(true, Ordering::Relaxed);
        true
    }

    /// Takes the promise back: nobody will confirm.
    pub(crate) fn withdraw(&self) {
        self.state.lock().stage = Stage::Nothing;
        self.is_in_use.store(false, Ordering::Relaxed);
    }

    /// Whether the running command has a promise.
    pub(crate) fn is_promised(&self) -> bool {
        matches!(self.state.lock().stage, Stage::Promised | Stage::Confirmed(_))
    }

    /// Whether an error was confirmed.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.state.lock().stage, Stage::Confirmed(Err(_)))
    }

    /// Whether the confirmation has not come yet.
    pub(crate) fn is_unconfirmed(&self) -> bool {
        matches!(self.state.lock().stage, Stage::Promised | Stage::Offered)
    }

    /// Leaves the answer to the thread that confirms, unless it has done so already. `bytes` are
    /// whole packets; they are exchanged for an empty buffer if they are left.
    pub(crate) fn offer(&self, bytes: &mut Vec<u8>) -> Offer {
        let mut state = self.state.lock();
        match std::mem::replace(&mut state.stage, Stage::Nothing) {
            Stage::Promised => {
                std::mem::swap(&mut state.bytes, bytes);
                state.stage = Stage::Offered;
                Offer::Left
            }
            Stage::Confirmed(outcome) => {
                self.is_in_use.store(false, Ordering::Relaxed);
                Offer::Send(outcome)
            }
            other => unreachable!("an answer that was not promised is offered: {other:?}"),
        }
    }

    /// The outcome of the command is known: sends the answer if it is made. `before_sending` is
    /// called if it is sent here, with the mutex held: before the next command can begin. Any
    /// thread may call this, once for each promise. Does not wait.
    pub(crate) fn confirm(&self, outcome: Confirmed, before_sending: impl FnOnce()) {
        let mut bytes = {
            let mut state = self.state.lock();
            if state.stage != Stage::Offered {
                state.stage = Stage::Confirmed(outcome);
                drop(state);
                self.changed.notify_all();
                return;
            }
            before_sending();
            state.stage = Stage::Sending;
            std::mem::take(&mut state.bytes)
        };
        if let Err(payload) = outcome {
            replace_by_error(&mut bytes, &payload);
        }
        let sent = self.socket.send_at_once(&bytes);
        let mut state = self.state.lock();
        // An error is found by the connection's thread, too, when it receives or sends.
        state.stage = match sent {
            Ok(sent) if sent < bytes.len() => Stage::Rest(sent),
            _ => Stage::Nothing,
        };
        if state.stage == Stage::Nothing {
            bytes.clear();
            bytes.shrink_to(KEPT_BYTES);
        }
        state.bytes = bytes;
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until a command may begin: the answer before it is confirmed. Blocks.
    pub(crate) fn wait_for_confirmation(&self) {
        if self.is_in_use() {
            self.changed.wait_until(None, || self.state.lock().stage != Stage::Offered);
        }
    }

    /// Waits until the confirmation has come and the answer is sent, if it was offered. Returns the
    /// bytes of it that are still to be sent. Blocks.
    pub(crate) fn wait_until_sent(&self) -> Option<Vec<u8>> {
        if !self.is_in_use() {
            return None;
        }
        let mut rest = None;
        self.changed.wait_until(None, || {
            let mut state = self.state.lock();
            match state.stage {
                Stage::Nothing => self.is_in_use.store(false, Ordering::Relaxed),
                Stage::Confirmed(_) => {}
                Stage::Rest(sent) => {
                    rest = Some(state.bytes.split_off(sent));
                    state.stage = Stage::Nothing;
                    self.is_in_use.store(false, Ordering::Relaxed);
                }
                Stage::Promised | Stage::Offered | Stage::Sending => return false,
            }
            true
        });
        rest
    }

    /// Forgets an answer that was promised and confirmed but never made.
    pub(crate) fn forget(&self) {
        let mut state = self.state.lock();
        if matches!(state.stage, Stage::Confirmed(_)) {
            state.stage = Stage::Nothing;
            self.is_in_use.store(false, Ordering::Relaxed);
        }
    }
}

/// Puts an error packet in the place of an answer.
pub(crate) fn replace_by_error(bytes: &mut Vec<u8>, payload: &[u8]) {
    let sequence = bytes.get(HEADER_LENGTH - 1).copied().unwrap_or(1);
    let [a, b, c, ..] = (payload.len() as u32).to_le_bytes();
    bytes.clear();
    bytes.extend_from_slice(&[a, b, c, sequence]);
    bytes.extend_from_slice(payload);
}

impl Socket {
    /// Sends what the system takes at once; returns how much that is.
    fn send_at_once(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.try_send(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                sent => return sent,
            }
        }
    }
}

#[cfg(test)]
mod tests;
