//! One connection of a server: the requests that are under way, and what goes back.
//!
//! Latch rule 7: the mutex of the requests under way is a leaf: it is not held across a send or a
//! notification.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::network::NetworkError;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::credit::Credit;
use crate::hello::Hello;
use crate::item::{Items, Kind, Malformed};
use crate::payload::Body;
use crate::sender::{Outgoing, Sender};
use crate::statistics::Statistics;

/// The client of a connection.
#[derive(Debug, Clone)]
pub struct Peer {
    /// What it said of itself: identity, epoch.
    pub hello: Hello,
    /// The protocol version that both sides speak.
    pub version: u16,
    /// Whether a certificate proves the identity.
    pub is_certified: bool,
    /// Where it called from.
    pub address: firn_base::network::Address,
}

/// A request under way, as its service and the connection see it.
pub(super) struct OpenCall {
    is_cancelled: AtomicBool,
    /// Room for pushes, of a request that asked for a stream.
    pub(super) pushes: Option<Credit>,
}

impl OpenCall {
    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::SeqCst)
    }

    fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::SeqCst);
        if let Some(pushes) = &self.pushes {
            pushes.end();
        }
    }
}

pub(super) struct Desk {
    pub(super) peer: Peer,
    /// The epoch that the connection speaks for; 0: none.
    pub(super) epoch: u64,
    pub(super) sender: Sender,
    /// Most bytes of requests under way, except for a single longer one.
    window: u64,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    /// Requests that get an answer.
    calls: FxHashMap<u64, Arc<OpenCall>>,
    used: u64,
    /// Of finished requests without an answer: not yet given back to the client.
    owed: u64,
    /// The client waits for room, and wants all of it once nothing is under way.
    is_asked: bool,
    has_ended: bool,
}

impl Open {
    /// What to give back to the client now: a quarter of the window at a time, and all of it to a
    /// client that has asked, when nothing is under way: it may be waiting for an empty window.
    fn take_owed(&mut self, window: u64) -> Option<Outgoing> {
        let is_wanted = self.is_asked && self.used == 0;
        self.is_asked &= !is_wanted;
        if self.owed == 0 || (self.owed < window / 4 && !is_wanted) {
            return None;
        }
        let bytes = std::mem::take(&mut self.owed);
        Some(Outgoing::bare(Kind::Credit { number: 0, bytes }))
    }
}

impl Desk {
    pub(super) fn new(peer: Peer, epoch: u64, sender: Sender, window: u64) -> Desk {
        Desk { peer, epoch, sender, window, open: Mutex::default() }
    }

    /// Takes a request of a client, which must have room for it and use each number once.
    pub(super) fn admit(&self, kind: Kind, cost: u64) -> Result<Arc<OpenCall>, Malformed> {
        let pushes = match kind {
            Kind::Follow { window, .. } | Kind::Exchange { window, .. } => {
                Some(Credit::new(window))
            }
            _ => None,
        };
        let mut open = self.open.lock();
        if matches!(kind, Kind::Exchange { .. }) && !open.calls.is_empty() {
            return Err(Malformed);
        }
        let call = Arc::new(OpenCall { is_cancelled: AtomicBool::new(open.has_ended), pushes });
        let used = open.used.saturating_add(cost);
        let is_alone = open.used == 0 && open.owed == 0;
        if !is_alone && used.saturating_add(open.owed) > self.window {
            return Err(Malformed);
        }
        if let Kind::Call { number, .. }
        | Kind::Follow { number, .. }
        | Kind::Exchange { number, .. } = kind
            && open.calls.insert(number, Arc::clone(&call)).is_some()
        {
            return Err(Malformed);
        }
        open.used = used;
        Ok(call)
    }

    /// Answers a request. Blocks while many answers wait for the client to read them.
    pub(super) fn answer(&self, number: u64, cost: u64, kind: Kind, body: Body, took: Duration) {
        self.sender.statistics().count_call(took);
        // The end of the connection has answered the client otherwise.
        let _ = self.sender.wait_for_room();
        let owed = {
            let mut open = self.open.lock();
            open.calls.remove(&number);
            open.used = open.used.saturating_sub(cost);
            open.take_owed(self.window)
        };
        let _ = self.sender.put([Outgoing { kind, body }].into_iter().chain(owed));
    }

    /// Gives the room of a request without an answer back.
    pub(super) fn finish_cast(&self, cost: u64) {
        Statistics::add(&self.sender.statistics().casts, 1);
        let owed = {
            let mut open = self.open.lock();
            open.used = open.used.saturating_sub(cost);
            open.owed += cost;
            open.take_owed(self.window)
        };
        if let Some(credit) = owed {
            let _ = self.sender.put([credit]);
        }
    }

    /// Answers a ping. A client also sends one when it waits for room.
    fn pong(&self) {
        let owed = {
            let mut open = self.open.lock();
            open.is_asked = true;
            open.take_owed(self.window)
        };
        let _ = self.sender.put([Outgoing::bare(Kind::Pong)].into_iter().chain(owed));
    }

    fn call(&self, number: u64) -> Option<Arc<OpenCall>> {
        self.open.lock().calls.get(&number).cloned()
    }

    /// The client no longer wants the answer. It may have come already.
    fn cancel(&self, number: u64) {
        if let Some(call) = self.call(number) {
            call.cancel();
        }
    }

    /// The client has taken pushed messages of a stream, which may have ended meanwhile.
    fn add_credit(&self, number: u64, bytes: u64) {
        if let Some(pushes) = self.call(number).as_ref().and_then(|call| call.pushes.as_ref()) {
            pushes.give_back(bytes);
        }
    }

    /// Takes an item that is no request.
    pub(super) fn take_aside(&self, kind: Kind) -> Result<(), Malformed> {
        match kind {
            Kind::Cancel { number } => self.cancel(number),
            Kind::Credit { number, bytes } => self.add_credit(number, bytes),
            Kind::Ping => self.pong(),
            _ => return Err(Malformed),
        }
        Ok(())
    }

    /// Reads what the client of an exchange says beside it. Blocks for `timeout` at most. Ends the
    /// connection if that has ended, or if the client sends something else.
    pub(super) fn read_aside(&self, timeout: Duration) {
        let mut message = Vec::new();
        let received = self.sender.connection().receive(&mut message, Some(timeout));
        let is_sound = match received {
            Ok(()) => Items::of(message).try_for_each(|item| self.take_aside(item?.kind)).is_ok(),
            Err(error) => matches!(error, NetworkError::TimedOut { .. }),
        };
        if !is_sound {
            self.end();
        }
    }

    /// Ends the connection; services that still work for it see that their call was cancelled.
    pub(super) fn end(&self) {
        self.sender.end();
        let calls = {
            let mut open = self.open.lock();
            open.has_ended = true;
            std::mem::take(&mut open.calls)
        };
        let mut calls: Vec<_> = calls.into_iter().collect();
        calls.sort_unstable_by_key(|(number, _)| *number);
        calls.iter().for_each(|(_, call)| call.cancel());
    }
}
