//! The sending half of a connection: the items of several threads in one write.
//!
//! A thread that finds nobody writing writes its item, and then all that others have queued
//! meanwhile. A thread that finds another one writing leaves its item in the queue and goes on. No
//! thread is needed for sending, and under load a write has many items.
//!
//! A reader that has several requests before it *collects*: their answers stay in the queue until
//! it releases them, or until they are enough for a write. The thread that finds this first writes
//! them.
//!
//! Latch rule 1: the queue's mutex is held for a few instructions, never across a write. The thread
//! that writes is known by a mark in the queue.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_base::clock::Clock;
use firn_base::event::Event;
use firn_base::network::{Connection, MAX_MESSAGE_BYTES};
use parking_lot::Mutex;

use crate::item::{ITEM_HEADER_BYTES, Kind, cost};
use crate::payload::Body;
use crate::statistics::Statistics;

/// The length of the longest payload in bytes.
pub const MAX_PAYLOAD_BYTES: usize = MAX_MESSAGE_BYTES - ITEM_HEADER_BYTES;
/// A write takes no further item beyond this length in bytes.
const BATCH_BYTES: u64 = 1 << 20;
/// The most items of a write.
const BATCH_ITEMS: usize = 256;

/// An item to send.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) kind: Kind,
    pub(crate) body: Body,
}

impl Outgoing {
    /// An item without a payload.
    pub(crate) fn bare(kind: Kind) -> Outgoing {
        Outgoing { kind, body: Body::default() }
    }

    fn cost(&self) -> u64 {
        cost(self.body.len())
    }

    /// The number of a request.
    fn request(&self) -> Option<u64> {
        match self.kind {
            Kind::Call { number, .. }
            | Kind::Cast { number, .. }
            | Kind::Follow { number, .. }
            | Kind::Exchange { number, .. } => Some(number),
            _ => None,
        }
    }
}

/// The connection has ended; nothing of the items was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended;

#[derive(Debug, Clone, Copy)]
pub(crate) struct SenderLimits {
    /// The connection ends when a write takes longer.
    pub(crate) send_timeout: Duration,
    /// [`Sender::wait_for_room`] waits while more bytes than this are queued.
    pub(crate) queue_bytes: u64,
}

pub(crate) struct Sender {
    connection: Arc<dyn Connection>,
    queue: Mutex<Queue>,
    /// Notified when the queue has become shorter, and at the end.
    room: Event,
    limits: SenderLimits,
    clock: Arc<dyn Clock>,
    /// The clock's microseconds at the last write.
    last_write_us: AtomicU64,
    statistics: Arc<Statistics>,
}

#[derive(Debug, Default)]
struct Queue {
    items: VecDeque<Outgoing>,
    bytes: u64,
    /// A thread writes, or items are being collected.
    is_writing: bool,
    /// No thread writes yet. The thread that clears this mark has to write.
    is_collecting: bool,
    has_ended: bool,
    /// Requests that were queued when the connection ended, and so were never written.
    unsent: BTreeSet<u64>,
}

impl Queue {
    /// Moves the items of the next write to `batch`.
    fn take(&mut self, batch: &mut Vec<Outgoing>) {
        let mut bytes = 0;
        while let Some(item) = self.items.front() {
            let with_it = bytes + item.cost();
            if !batch.is_empty() && (with_it > BATCH_BYTES || batch.len() == BATCH_ITEMS) {
                break;
            }
            bytes = with_it;
            batch.extend(self.items.pop_front());
        }
        self.bytes -= bytes;
    }
}

impl Sender {
    pub(crate) fn new(
        connection: Arc<dyn Connection>,
        limits: SenderLimits,
        clock: Arc<dyn Clock>,
        statistics: Arc<Statistics>,
    ) -> Sender {
        let sender = Sender {
            connection,
            queue: Mutex::new(Queue::default()),
            room: Event::new(),
            limits,
            clock,
            last_write_us: AtomicU64::new(0),
            statistics,
        };
        sender.note_write();
        sender
    }

    /// Sends items, or leaves them to the thread that is writing. Blocks while it writes.
    ///
    /// # Errors
    /// The connection ended before.
    pub(crate) fn put(&self, items: impl IntoIterator<Item = Outgoing>) -> Result<(), Ended> {
        let mut queue = self.queue.lock();
        if queue.has_ended {
            return Err(Ended);
        }
        for item in items {
            queue.bytes += item.cost();
            queue.items.push_back(item);
        }
        let is_enough = queue.is_collecting && queue.bytes >= BATCH_BYTES;
        if std::mem::replace(&mut queue.is_writing, true) && !is_enough {
            return Ok(());
        }
        queue.is_collecting = false;
        drop(queue);
        self.write();
        Ok(())
    }

    /// Begins to collect items, unless a thread is writing.
    pub(crate) fn collect(&self) {
        let mut queue = self.queue.lock();
        if !queue.is_writing {
            (queue.is_writing, queue.is_collecting) = (true, true);
        }
    }

    /// Writes what was collected, if nobody has begun to.
    pub(crate) fn release(&self) {
        let is_mine = std::mem::take(&mut self.queue.lock().is_collecting);
        if is_mine {
            self.write();
        }
    }

    /// Writes until the queue is empty.
    fn write(&self) {
        let mut batch = Vec::new();
        loop {
            batch.clear();
            {
                let mut queue = self.queue.lock();
                if queue.items.is_empty() {
                    queue.is_writing = false;
                    return;
                }
                queue.take(&mut batch);
            }
            self.room.notify_all();
            if !self.write_batch(&batch) {
                self.end();
            }
        }
    }

    /// False if the connection has ended.
    fn write_batch(&self, batch: &[Outgoing]) -> bool {
        let headers: Vec<_> = batch.iter().map(|item| item.kind.header(&item.body)).collect();
        let mut parts: Vec<&[u8]> = Vec::with_capacity(3 * batch.len());
        for (item, header) in batch.iter().zip(&headers) {
            parts.push(header);
            parts.extend(item.body.parts().iter().map(|part| &**part));
        }
        let sent = self.connection.send(&parts, self.limits.send_timeout);
        self.note_write();
        let bytes = parts.iter().map(|part| part.len()).sum();
        Statistics::add(&self.statistics.bytes_sent, bytes);
        Statistics::add(&self.statistics.writes, 1);
        Statistics::add(&self.statistics.items_sent, batch.len());
        sent.is_ok()
    }

    fn note_write(&self) {
        self.last_write_us.store(self.clock.monotonic().as_micros() as u64, Ordering::Relaxed);
    }

    /// When something was written last, on the monotonic clock.
    pub(crate) fn last_write(&self) -> Duration {
        Duration::from_micros(self.last_write_us.load(Ordering::Relaxed))
    }

    /// Takes a request back. False if it is, or may be, on its way.
    pub(crate) fn withdraw(&self, number: u64) -> bool {
        let mut queue = self.queue.lock();
        let Some(at) = queue.items.iter().position(|item| item.request() == Some(number)) else {
            return queue.unsent.contains(&number);
        };
        let item = queue.items.remove(at).expect("its position was found");
        queue.bytes -= item.cost();
        true
    }

    /// Blocks while the queue is long.
    ///
    /// # Errors
    /// The connection has ended.
    pub(crate) fn wait_for_room(&self) -> Result<(), Ended> {
        loop {
            let ticket = self.room.listen();
            let is_collecting = {
                let queue = self.queue.lock();
                if queue.has_ended {
                    return Err(Ended);
                }
                if queue.bytes <= self.limits.queue_bytes {
                    return Ok(());
                }
                queue.is_collecting
            };
            match is_collecting {
                // Nobody else may come to write it: this may be the thread that collects.
                true => self.release(),
                false => drop(self.room.wait(ticket, None)),
            }
        }
    }

    /// Ends the connection. Requests that are still queued count as never sent.
    pub(crate) fn end(&self) {
        {
            let mut queue = self.queue.lock();
            queue.has_ended = true;
            let items = std::mem::take(&mut queue.items);
            queue.bytes = 0;
            queue.unsent.extend(items.iter().filter_map(Outgoing::request));
        }
        self.connection.close();
        self.room.notify_all();
    }

    /// Whether a request was never written. Only meaningful after [`Sender::end`].
    pub(crate) fn was_never_sent(&self, number: u64) -> bool {
        self.queue.lock().unsent.contains(&number)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.queue.lock().has_ended
    }

    pub(crate) fn connection(&self) -> &dyn Connection {
        &*self.connection
    }

    pub(crate) fn statistics(&self) -> &Arc<Statistics> {
        &self.statistics
    }
}
