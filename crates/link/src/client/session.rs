//! One connection of a client: the requests that are under way, and what comes back.
//!
//! Latch rule 3: the mutex of the requests under way, and that of a receiver, are leaves: neither
//! is held while another is taken, or across a send.

use std::sync::Arc;
use std::time::Duration;

use firn_base::clock::Clock;
use firn_base::network::Connection;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::inbox::{Inbox, Slot};
use super::lane::Lanes;
use crate::credit::{Credit, NoRoom};
use crate::error::{CallError, Refused, UNANSWERED};
use crate::handshake::Agreement;
use crate::item::{Item, Kind, Malformed};
use crate::payload::Payload;
use crate::sender::{Ended, Outgoing, Sender, SenderLimits};
use crate::statistics::Statistics;

/// Where the answer of a request goes.
#[derive(Debug, Clone)]
pub(super) enum Receiver {
    Call(Arc<Slot>),
    Follower(Arc<Inbox>),
    /// The caller has given up. The answer still gives the request's room back.
    Nobody,
}

struct Entry {
    /// What the request counts for credit.
    cost: u64,
    receiver: Receiver,
    began: Duration,
}

struct UnderWay {
    entries: FxHashMap<u64, Entry>,
    next_number: u64,
    has_ended: bool,
}

pub(super) struct Session {
    /// For errors: the peer's name and address.
    pub(super) name: Arc<str>,
    pub(super) agreement: Agreement,
    pub(super) sender: Sender,
    pub(super) credit: Credit,
    pub(super) lanes: Lanes,
    under_way: Mutex<UnderWay>,
    clock: Arc<dyn Clock>,
}

impl Session {
    pub(super) fn new(
        connection: Arc<dyn Connection>,
        agreement: Agreement,
        limits: SenderLimits,
        clock: Arc<dyn Clock>,
        statistics: Arc<Statistics>,
    ) -> Session {
        let identity = &agreement.peer.identity;
        let name = format!("node {} ({}) at {}", identity.node, identity.name, connection.peer());
        let credit = Credit::new(u64::from(agreement.peer.window_bytes));
        let sender = Sender::new(connection, limits, Arc::clone(&clock), statistics);
        let under_way =
            UnderWay { entries: FxHashMap::default(), next_number: 1, has_ended: false };
        let under_way = Mutex::new(under_way);
        let lanes = Lanes::default();
        Session { name: name.into(), agreement, sender, credit, lanes, under_way, clock }
    }

    pub(super) fn is_open(&self) -> bool {
        !self.sender.has_ended()
    }

    /// Takes room for a request. Blocks until there is some, at most for what `left` says.
    ///
    /// The server gives the room of requests without answers back a good deal at a time, so one
    /// that waits asks for what is left.
    pub(super) fn take_room(&self, cost: u64, left: impl Fn() -> Duration) -> Result<(), NoRoom> {
        let ask = || {
            // An end shows itself by the next attempt.
            let _ = self.sender.put([Outgoing::bare(Kind::Ping)]);
        };
        self.credit.take_asking(cost, left, ask)
    }

    /// Enters a request that has got its room; returns its number.
    ///
    /// # Errors
    /// The session has ended.
    pub(super) fn enter(&self, cost: u64, receiver: Receiver) -> Result<u64, Ended> {
        let began = self.clock.monotonic();
        let mut under_way = self.under_way.lock();
        if under_way.has_ended {
            return Err(Ended);
        }
        let number = under_way.next_number;
        under_way.next_number += 1;
        under_way.entries.insert(number, Entry { cost, receiver, began });
        Ok(number)
    }

    /// A number for a request that nothing answers.
    pub(super) fn next_number(&self) -> u64 {
        let mut under_way = self.under_way.lock();
        under_way.next_number += 1;
        under_way.next_number - 1
    }

    /// Removes a request that was not sent.
    pub(super) fn leave(&self, number: u64) {
        let entry = self.under_way.lock().entries.remove(&number);
        if let Some(entry) = entry {
            self.credit.give_back(entry.cost);
        }
    }

    /// Gives a request up: takes it back if it is still queued, otherwise cancels it. Returns what
    /// became of it, or nothing if its answer has come.
    pub(super) fn give_up(&self, number: u64, reason: &str) -> Option<CallError> {
        self.under_way.lock().entries.get_mut(&number)?.receiver = Receiver::Nobody;
        Statistics::add(&self.sender.statistics().failures, 1);
        let (peer, reason) = (Arc::clone(&self.name), Arc::from(reason));
        if self.sender.withdraw(number) {
            self.leave(number);
            return Some(CallError::NotSent { peer, reason });
        }
        // A connection that has ended needs no cancellation.
        let _ = self.sender.put([Outgoing::bare(Kind::Cancel { number })]);
        Some(CallError::Unknown { peer, reason })
    }

    /// Takes what the server sent.
    pub(super) fn receive(&self, item: Item, now: Duration) -> Result<(), Malformed> {
        match item.kind {
            Kind::Reply { number } => self.answer(number, Ok(item.payload), now),
            Kind::Refused { number, code } => {
                let text = String::from_utf8_lossy(&item.payload).into_owned();
                self.answer(number, Err(self.refusal(code, text)), now)
            }
            Kind::Push { number } => self.push(number, item.payload),
            Kind::Credit { number: 0, bytes } => {
                self.credit.give_back(bytes);
                Ok(())
            }
            Kind::Pong => Ok(()),
            _ => Err(Malformed),
        }
    }

    pub(super) fn refusal(&self, code: u16, text: String) -> CallError {
        let peer = Arc::clone(&self.name);
        match code {
            UNANSWERED => CallError::Unknown { peer, reason: text.into() },
            _ => CallError::Refused { peer, refused: Refused { code, text } },
        }
    }

    fn answer(
        &self,
        number: u64,
        answer: Result<Payload, CallError>,
        now: Duration,
    ) -> Result<(), Malformed> {
        let entry = self.under_way.lock().entries.remove(&number).ok_or(Malformed)?;
        self.credit.give_back(entry.cost);
        match answer {
            Ok(_) => self.sender.statistics().count_call(now.saturating_sub(entry.began)),
            Err(_) => Statistics::add(&self.sender.statistics().failures, 1),
        }
        deliver(&entry.receiver, answer);
        Ok(())
    }

    fn push(&self, number: u64, payload: Payload) -> Result<(), Malformed> {
        let receiver = {
            let under_way = self.under_way.lock();
            under_way.entries.get(&number).map(|entry| entry.receiver.clone())
        };
        match receiver {
            Some(Receiver::Follower(inbox)) => inbox.push(payload),
            Some(Receiver::Nobody) => Ok(()),
            _ => Err(Malformed),
        }
    }

    /// Ends the session: every request under way gets its error.
    pub(super) fn end(&self, reason: &Arc<str>) {
        self.sender.end();
        self.credit.end();
        self.lanes.end();
        let entries = {
            let mut under_way = self.under_way.lock();
            under_way.has_ended = true;
            std::mem::take(&mut under_way.entries)
        };
        let mut entries: Vec<(u64, Entry)> = entries.into_iter().collect();
        entries.sort_unstable_by_key(|(number, _)| *number);
        for (number, entry) in entries {
            let (peer, reason) = (Arc::clone(&self.name), Arc::clone(reason));
            let error = match self.sender.was_never_sent(number) {
                true => CallError::NotSent { peer, reason },
                false => CallError::Unknown { peer, reason },
            };
            Statistics::add(&self.sender.statistics().failures, 1);
            deliver(&entry.receiver, Err(error));
        }
    }
}

fn deliver(receiver: &Receiver, answer: Result<Payload, CallError>) {
    match receiver {
        Receiver::Call(slot) => slot.fill(answer),
        Receiver::Follower(inbox) => inbox.end(answer),
        Receiver::Nobody => {}
    }
}
