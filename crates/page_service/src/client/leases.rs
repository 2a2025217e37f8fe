//! The leases of this process, and what becomes of them at the page nodes (P5).
//!
//! A lease is taken at every node of every chunk: a read as of its position may then go to any of
//! them, and one may die. Nodes that do not answer for a while get the lease with a later list; one
//! node of each chunk must keep it, and others may be unable to.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use firn_api::{PageLease, PageStoreError};
use firn_base::Lsn;
use firn_base::network::NodeId;
use firn_link::Call;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::Shared;
use super::placement::{Chunk, Map};
use crate::message::{HoldRequest, LeaseAnswer, LeaseRequest, MAX_LEASES, Request, decode_held};

/// The longest pause between two tries to take a lease.
const PAUSE: Duration = Duration::from_millis(20);

/// All leases. Latch rule 1: the mutex is a leaf.
pub(super) struct LeaseBook {
    /// See [`HoldRequest::holder`].
    pub(super) holder: u64,
    content: Mutex<Content>,
}

#[derive(Default)]
struct Content {
    /// Reader and position by number.
    leases: BTreeMap<u64, (String, Lsn)>,
    next_number: u64,
    round: u64,
    /// Whether nodes may have leases that have ended here.
    is_changed: bool,
}

impl LeaseBook {
    pub(super) fn new(holder: u64) -> LeaseBook {
        LeaseBook { holder, content: Mutex::default() }
    }

    fn add(&self, reader: &str, position: Lsn) -> u64 {
        let mut content = self.content.lock();
        content.next_number += 1;
        let number = content.next_number;
        content.leases.insert(number, (reader.to_owned(), position));
        number
    }

    fn remove(&self, number: u64) {
        let mut content = self.content.lock();
        content.leases.remove(&number);
        content.is_changed = true;
    }

    fn position(&self, number: u64) -> Option<Lsn> {
        self.content.lock().leases.get(&number).map(|(_, position)| *position)
    }

    fn advance(&self, number: u64, to: Lsn) {
        if let Some((_, position)) = self.content.lock().leases.get_mut(&number) {
            *position = to.max(*position);
        }
    }

    /// Whether versions at `position` are held.
    pub(super) fn holds(&self, position: Lsn) -> bool {
        self.content.lock().leases.values().any(|(_, held)| *held <= position)
    }

    /// The whole list as a request; `None` if there is nothing to say.
    pub(super) fn list(&self, timeout: Duration) -> Option<Request> {
        let mut content = self.content.lock();
        if content.leases.is_empty() && !std::mem::take(&mut content.is_changed) {
            return None;
        }
        content.round += 1;
        let leases = content.leases.iter().take(MAX_LEASES);
        let lease = |(number, (reader, position)): (&u64, &(String, Lsn))| LeaseRequest {
            number: *number,
            position: *position,
            reader: reader.clone(),
        };
        let leases = leases.map(lease).collect();
        let (holder, round) = (self.holder, content.round);
        Some(Request::Hold(HoldRequest { holder, round, timeout, leases }))
    }
}

/// A lease as its holder has it.
struct RemoteLease {
    book: Weak<LeaseBook>,
    number: u64,
    /// Where the lease was when the client was closed, or before.
    last: Mutex<Lsn>,
}

impl PageLease for RemoteLease {
    fn position(&self) -> Lsn {
        let current = self.book.upgrade().and_then(|book| book.position(self.number));
        let mut last = self.last.lock();
        *last = current.unwrap_or(*last).max(*last);
        *last
    }

    fn advance(&self, to: Lsn) {
        if let Some(book) = self.book.upgrade() {
            book.advance(self.number, to);
        }
        let mut last = self.last.lock();
        *last = to.max(*last);
    }
}

impl Drop for RemoteLease {
    fn drop(&mut self) {
        if let Some(book) = self.book.upgrade() {
            book.remove(self.number);
        }
    }
}

/// What the nodes said to a new lease.
#[derive(Default)]
struct Said {
    /// `None`: it is kept.
    by_node: FxHashMap<NodeId, Option<Lsn>>,
}

enum Verdict {
    Kept,
    /// A chunk has no node that can hold the position.
    NotKept(Lsn),
    /// No node of a chunk answers.
    Unknown(Arc<Chunk>),
}

impl Said {
    fn is_complete(&self, map: &Map) -> bool {
        map.nodes.iter().all(|node| self.by_node.contains_key(&node.id))
    }

    /// Nodes that have said nothing do not count.
    fn verdict(&self, map: &Map) -> Verdict {
        let mut verdict = Verdict::Kept;
        for chunk in map.chunks() {
            let said = || chunk.nodes.iter().filter_map(|node| self.by_node.get(&node.id));
            if said().any(Option::is_none) {
                continue;
            }
            let Some(kept_from) = said().filter_map(|refused| *refused).min() else {
                return Verdict::Unknown(Arc::clone(chunk));
            };
            verdict = match verdict {
                Verdict::NotKept(other) => Verdict::NotKept(other.max(kept_from)),
                _ => Verdict::NotKept(kept_from),
            };
        }
        verdict
    }
}

impl Shared {
    pub(super) fn hold(
        &self,
        reader: &str,
        position: Lsn,
    ) -> Result<Arc<dyn PageLease>, PageStoreError> {
        let number = self.leases.add(reader, position);
        // Dropped with an error, it leaves the list again.
        let lease =
            RemoteLease { book: Arc::downgrade(&self.leases), number, last: Mutex::new(position) };
        let began = self.now();
        let deadline = began + self.options.patience;
        let grace = began + self.options.hold_grace;
        loop {
            let map = self.map();
            let said = self.ask_to_hold(&map, number);
            let is_over = said.is_complete(&map) || self.now() >= grace;
            match said.verdict(&map) {
                Verdict::Kept if is_over => return Ok(Arc::new(lease)),
                Verdict::NotKept(kept_from) if is_over => {
                    return Err(PageStoreError::NotKept { position, kept_from });
                }
                Verdict::Unknown(chunk) if self.now() >= deadline || self.is_closing() => {
                    let page = chunk.sample();
                    let place = super::names(&chunk.nodes);
                    let reason = "it does not say that it holds the position".to_owned();
                    return Err(PageStoreError::Unavailable { page, place, reason });
                }
                _ => _ = self.changed.wait_until(Some(PAUSE), || self.is_closing()),
            }
        }
    }

    /// Sends the list to all nodes that are connected, and returns what they say to one lease.
    fn ask_to_hold(&self, map: &Map, number: u64) -> Said {
        let calls = self.send_leases(map);
        let mut said = Said::default();
        for (node, answers) in
            calls.into_iter().filter_map(|(node, call)| Some((node, held(call)?)))
        {
            if let Some(answer) = answers.iter().find(|answer| answer.number == number) {
                said.by_node.insert(node, answer.refused);
            }
        }
        said
    }

    /// Sends the list to all nodes that are connected.
    pub(super) fn send_leases(&self, map: &Map) -> Vec<(NodeId, Call)> {
        let Some(list) = self.leases.list(self.options.lease_timeout) else { return Vec::new() };
        let bytes = Arc::new(list.encode());
        let begin = |node: &Arc<super::node::Node>| {
            let payload = firn_link::Payload::from(Arc::clone(&bytes));
            self.begin(node, payload).map(|call| (node.id, call))
        };
        map.nodes.iter().filter_map(begin).collect()
    }
}

/// What a node said to a list; `None` if it said nothing.
fn held(call: Call) -> Option<Vec<LeaseAnswer>> {
    decode_held(&call.wait().ok()?).ok()
}
