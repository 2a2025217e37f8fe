//! Where a caller finds what was answered.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use firn_base::event::Event;
use parking_lot::Mutex;

use crate::error::CallError;
use crate::item::{Malformed, cost};
use crate::payload::Payload;

/// The answer of one call.
#[derive(Debug, Default)]
pub(super) struct Slot {
    answer: Mutex<Option<Result<Payload, CallError>>>,
    filled: Event,
}

impl Slot {
    pub(super) fn fill(&self, answer: Result<Payload, CallError>) {
        *self.answer.lock() = Some(answer);
        self.filled.notify_all();
    }

    pub(super) fn is_filled(&self) -> bool {
        self.answer.lock().is_some()
    }

    /// Waits for the answer; `None` if it has not come in time.
    pub(super) fn take(&self, timeout: Option<Duration>) -> Option<Result<Payload, CallError>> {
        self.filled.wait_until(timeout, || self.is_filled());
        self.answer.lock().take()
    }
}

/// What a follower found.
#[derive(Debug)]
pub enum Next {
    /// The next message of the stream.
    Message(Payload),
    /// None has come in time.
    Nothing,
    /// The server has ended the stream with this.
    End(Payload),
}

/// The pushed messages that a follower has not taken.
#[derive(Debug)]
pub(super) struct Inbox {
    window: u64,
    content: Mutex<Content>,
    /// Several inboxes may share it.
    arrived: Arc<Event>,
}

#[derive(Debug, Default)]
struct Content {
    messages: VecDeque<Payload>,
    end: Option<Result<Payload, CallError>>,
    flow: Flow,
}

/// How much of the window of a stream is in use.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// What the server has used, as far as it was told.
    used: u64,
    /// The part of it that the follower has taken.
    taken: u64,
}

impl Inbox {
    pub(super) fn new(window: u64, arrived: Arc<Event>) -> Inbox {
        Inbox { window, content: Mutex::default(), arrived }
    }

    pub(super) fn push(&self, payload: Payload) -> Result<(), Malformed> {
        {
            let mut content = self.content.lock();
            content.flow.arrived(cost(payload.len()), self.window)?;
            content.messages.push_back(payload);
        }
        self.arrived.notify_all();
        Ok(())
    }

    pub(super) fn end(&self, answer: Result<Payload, CallError>) {
        self.content.lock().end = Some(answer);
        self.arrived.notify_all();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.content.lock().end.is_some()
    }

    /// Waits for what comes next; returns with it the bytes to give back to the server.
    pub(super) fn next(&self, timeout: Option<Duration>) -> (Result<Next, CallError>, u64) {
        let mut found = (Ok(Next::Nothing), 0);
        self.arrived.wait_until(timeout, || {
            let mut content = self.content.lock();
            if let Some(payload) = content.messages.pop_front() {
                let back = content.flow.taken(cost(payload.len()), self.window);
                found = (Ok(Next::Message(payload)), back);
                return true;
            }
            match &content.end {
                Some(answer) => found = (answer.clone().map(Next::End), 0),
                None => return false,
            }
            true
        });
        found
    }
}

impl Flow {
    /// A message has arrived. A server that sends more than it may is stopped before it fills the
    /// memory.
    pub(super) fn arrived(&mut self, cost: u64, window: u64) -> Result<(), Malformed> {
        let used = self.used.saturating_add(cost);
        if self.used != 0 && used > window {
            return Err(Malformed);
        }
        self.used = used;
        Ok(())
    }

    /// The follower has taken a message. Returns the bytes to give back to the server: half a
    /// window at a time; all of it if the server may be waiting for an empty window.
    pub(super) fn taken(&mut self, cost: u64, window: u64) -> u64 {
        self.taken += cost;
        if self.taken < window / 2 && self.taken < self.used {
            return 0;
        }
        let back = std::mem::take(&mut self.taken);
        self.used -= back;
        back
    }
}
