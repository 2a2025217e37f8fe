//! A batch of pages that is being answered.

use std::sync::atomic::Ordering;
use std::time::Duration;

use firn_api::{PageRead, PageRequest, PageSink, PageStoreError, PageVersion};
use firn_format::page::{PAGE_SIZE, PageBuf};
use firn_link::Responder;
use parking_lot::Mutex;

use super::Shared;
use crate::message::{Failure, PagesWriter, ReadRequest};

/// The longest that an answer waits for a client that does not read. The client's window takes a
/// whole batch, so this is for clients that break the protocol.
const PUSH_TIMEOUT: Duration = Duration::from_secs(5);
/// Buffers that are kept for later reads.
const SPARE_BUFFERS: usize = 256;

pub(super) struct Batch {
    responder: Responder,
    /// The client.
    holder: u64,
    requests: Vec<PageRequest>,
    /// The requests without an answer, by index.
    open: Vec<usize>,
    /// When the rest is answered with a failure.
    deadline: Duration,
    has_waited: bool,
}

impl Batch {
    pub(super) fn new(responder: Responder, request: ReadRequest, deadline: Duration) -> Batch {
        let ReadRequest { holder, pages: requests, .. } = request;
        let open = (0..requests.len()).collect();
        Batch { responder, holder, requests, open, deadline, has_waited: false }
    }

    /// The open request whose log will arrive first.
    pub(super) fn earliest(&self) -> Option<PageRequest> {
        let open = self.open.iter().map(|index| self.requests[*index]);
        open.min_by_key(|request| request.version.position())
    }
}

/// What has become of a batch.
pub(super) enum Advanced {
    /// It was answered, or its client has gone.
    Over,
    /// Some of it was answered.
    Further(Batch),
    /// Nothing was ready.
    Not(Batch),
}

impl Shared {
    /// Answers what is ready, on a worker, and keeps the rest for the attendants.
    pub(super) fn advance_or_keep(&self, batch: Batch) {
        match self.advance(batch) {
            Advanced::Over => {}
            Advanced::Further(batch) | Advanced::Not(batch) => {
                let late = batch.open.len() as u64;
                self.counters.late_pages.fetch_add(late, Ordering::Relaxed);
                self.waiting.put(Batch { has_waited: true, ..batch });
                if self.is_closing() {
                    drop(self.waiting.take_all());
                }
            }
        }
    }

    /// Answers what is ready.
    pub(super) fn advance(&self, mut batch: Batch) -> Advanced {
        if batch.responder.is_cancelled() {
            return Advanced::Over;
        }
        let is_late = |index: &usize| {
            let PageRequest { page, version } = batch.requests[*index];
            !self.store.wait_until_ready(page, version, Duration::ZERO)
        };
        let (late, ready): (Vec<usize>, Vec<usize>) = batch.open.iter().partition(|i| is_late(i));
        batch.open = late;
        if batch.open.is_empty() {
            self.answer(batch, &ready);
            return Advanced::Over;
        }
        if self.now() >= batch.deadline {
            self.give_up(batch, &ready);
            return Advanced::Over;
        }
        if ready.is_empty() {
            return Advanced::Not(batch);
        }
        match self.push(&batch, &ready) {
            true => Advanced::Further(batch),
            false => Advanced::Over,
        }
    }

    /// Sends these pages, the last ones as the reply.
    fn answer(&self, batch: Batch, ready: &[usize]) {
        let (before, last) =
            ready.split_at(ready.len().saturating_sub(1) / self.at_once() * self.at_once());
        if self.push(&batch, before) {
            let message = self.read(&batch, last).finish();
            batch.responder.reply(message);
        }
    }

    /// Sends these pages, and that the log of the others has not arrived.
    fn give_up(&self, batch: Batch, ready: &[usize]) {
        if !self.push(&batch, ready) {
            return;
        }
        let mut writer = PagesWriter::new(true, 0);
        for index in &batch.open {
            let position = batch.requests[*index].version.position();
            let reason = format!("log up to {position} has not arrived");
            writer.put_failure(*index, &Failure::Unavailable { reason });
        }
        self.counters.failures.fetch_add(batch.open.len() as u64, Ordering::Relaxed);
        batch.responder.reply(writer.finish());
    }

    /// Pushes these pages; false if the client does not want them any more.
    fn push(&self, batch: &Batch, indices: &[usize]) -> bool {
        indices.chunks(self.at_once()).all(|some| {
            !batch.responder.is_cancelled() && {
                let message = self.read(batch, some).finish();
                batch.responder.push(message, PUSH_TIMEOUT).is_ok()
            }
        })
    }

    /// Pages of a message.
    fn at_once(&self) -> usize {
        (self.options.message_bytes / PAGE_SIZE).max(1)
    }

    fn read(&self, batch: &Batch, indices: &[usize]) -> PagesWriter {
        let requests: Vec<PageRequest> =
            indices.iter().map(|index| batch.requests[*index]).collect();
        let capacity = indices.len() * (PAGE_SIZE + 16);
        let mut answering = Answering {
            shared: self,
            batch,
            indices,
            buffers: indices.iter().map(|_| None).collect(),
            writer: PagesWriter::new(batch.has_waited, capacity),
        };
        self.store.read_many(&requests, &mut answering);
        answering.writer
    }
}

/// Writes what the store returns into a message.
struct Answering<'a> {
    shared: &'a Shared,
    batch: &'a Batch,
    /// The places of the requests in the client's batch.
    indices: &'a [usize],
    buffers: Vec<Option<Box<PageBuf>>>,
    writer: PagesWriter,
}

impl Answering<'_> {
    fn failure(&self, place: usize, error: &PageStoreError) -> Failure {
        match (Failure::of(error), self.batch.requests[place].version) {
            (Failure::Absent, PageRead::AsOf(position))
                if !self.shared.leases.holds(self.batch.holder, position) =>
            {
                Failure::AbsentUnheld
            }
            (failure, _) => failure,
        }
    }
}

impl PageSink for Answering<'_> {
    fn page_mut(&mut self, index: usize) -> &mut PageBuf {
        self.buffers[index].get_or_insert_with(|| self.shared.spare.take())
    }

    fn complete(&mut self, index: usize, reply: Result<PageVersion, PageStoreError>) {
        let buffer = self.buffers[index].take();
        let place = self.indices[index];
        match (reply, buffer) {
            (Ok(version), Some(mut buffer)) => {
                buffer.seal();
                self.writer.put_image(place, version.as_of, buffer.bytes());
                self.shared.spare.give_back(buffer);
                self.shared.counters.pages_sent.fetch_add(1, Ordering::Relaxed);
            }
            (Ok(_), None) => {
                let reason = "the store returned no image".to_owned();
                self.writer.put_failure(place, &Failure::Unavailable { reason });
            }
            (Err(error), buffer) => {
                buffer.into_iter().for_each(|buffer| self.shared.spare.give_back(buffer));
                self.writer.put_failure(place, &self.failure(place, &error));
                self.shared.counters.failures.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Buffers between two reads, so that a read does not clear memory that it fills.
#[derive(Default)]
pub(super) struct SpareBuffers(Mutex<Vec<Box<PageBuf>>>);

impl SpareBuffers {
    fn take(&self) -> Box<PageBuf> {
        let spare = self.0.lock().pop();
        spare.unwrap_or_else(PageBuf::boxed)
    }

    fn give_back(&self, buffer: Box<PageBuf>) {
        let mut spare = self.0.lock();
        if spare.len() < SPARE_BUFFERS {
            spare.push(buffer);
        }
    }
}
