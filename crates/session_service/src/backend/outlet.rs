//! The way of a running command's answer to its front, and of a file's content from there.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use firn_base::event::Event;
use firn_link::{Body, Payload, PushError, Responder};
use firn_wire::RelayStream;
use parking_lot::Mutex;

use crate::message::{Done, encode, push};

/// Bytes of an answer that are pushed at a time; a shorter answer comes with its end.
const PUSH_BYTES: usize = 32 << 10;
/// How long one wait for room, or for content, lasts.
const SLICE: Duration = Duration::from_millis(100);
/// Content that waits to be read; then its sender waits for the answer.
const MOST_CONTENT_BYTES: usize = 1 << 20;

/// Content of the file that the running command reads.
#[derive(Default)]
pub(crate) struct Content {
    state: Mutex<ContentState>,
    changed: Event,
}

#[derive(Default)]
struct ContentState {
    arrived: VecDeque<Payload>,
    bytes: usize,
    /// How much of the first one was read.
    read: usize,
    is_complete: bool,
    /// Nobody brings more.
    has_ended: bool,
    /// Answered once there is room.
    waiting: Option<Responder>,
}

impl Content {
    /// A command begins.
    pub(super) fn begin(&self) {
        let before = std::mem::take(&mut *self.state.lock());
        drop(before);
    }

    /// Content has arrived. Its sender is answered when there is room for more; at once if nobody
    /// reads it any more.
    pub(super) fn add(&self, content: Payload, is_end: bool, responder: Responder) {
        let answered = {
            let mut state = self.state.lock();
            state.is_complete |= is_end;
            if !content.is_empty() && !state.has_ended {
                state.bytes += content.len();
                state.arrived.push_back(content);
            }
            match state.bytes < MOST_CONTENT_BYTES || state.has_ended {
                true => Some(responder),
                false => state.waiting.replace(responder),
            }
        };
        self.changed.notify_all();
        if let Some(responder) = answered {
            responder.reply(Vec::new());
        }
    }

    /// Ends the waits for content, and for room for it.
    pub(super) fn end(&self) {
        let waiting = {
            let mut state = self.state.lock();
            state.has_ended = true;
            state.waiting.take()
        };
        self.changed.notify_all();
        if let Some(responder) = waiting {
            responder.reply(Vec::new());
        }
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut found = None;
        let mut waiting = None;
        self.changed.wait_until(Some(SLICE), || {
            let mut state = self.state.lock();
            (found, waiting) = state.take(buffer);
            found.is_some()
        });
        if let Some(responder) = waiting {
            responder.reply(Vec::new());
        }
        found.unwrap_or_else(|| Err(io::ErrorKind::WouldBlock.into()))
    }
}

impl ContentState {
    /// Bytes that have arrived, and who is answered now that there is room.
    fn take(&mut self, buffer: &mut [u8]) -> (Option<io::Result<usize>>, Option<Responder>) {
        let Some(first) = self.arrived.front() else {
            let end = match (self.is_complete, self.has_ended) {
                (true, _) => Some(Ok(0)),
                (false, true) => Some(Err(io::ErrorKind::ConnectionAborted.into())),
                (false, false) => None,
            };
            return (end, None);
        };
        let rest = &first[self.read..];
        let taken = rest.len().min(buffer.len());
        buffer[..taken].copy_from_slice(&rest[..taken]);
        self.read += taken;
        self.bytes -= taken;
        if self.read == first.len() {
            self.arrived.pop_front();
            self.read = 0;
        }
        let has_room = self.bytes < MOST_CONTENT_BYTES;
        (Some(Ok(taken)), if has_room { self.waiting.take() } else { None })
    }
}

/// Where a running command answers.
pub(super) struct Outlet {
    state: Mutex<OutletState>,
    content: Arc<Content>,
}

struct OutletState {
    responder: Option<Responder>,
    kind: u8,
    /// Gathered, without the byte of the kind.
    gathered: Vec<u8>,
    /// To be pushed before anything else.
    pending: Option<Body>,
    /// Whether there was ever something to be pushed.
    has_packed: bool,
    has_asked_for_file: bool,
}

impl Outlet {
    pub(super) fn new(responder: Responder, content: &Arc<Content>) -> Outlet {
        let state = OutletState {
            responder: Some(responder),
            kind: push::PACKETS,
            gathered: Vec::new(),
            pending: None,
            has_packed: false,
            has_asked_for_file: false,
        };
        Outlet { state: Mutex::new(state), content: Arc::clone(content) }
    }

    /// What is written from here on are rows of a cursor.
    pub(super) fn begin_rows(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        state.pack();
        while !state.push(SLICE)? {}
        state.kind = push::ROWS;
        Ok(())
    }

    /// Gives up answering the command, of whose answer nothing has been gathered or pushed. `None`
    /// otherwise.
    pub(super) fn give_back(&self) -> Option<Responder> {
        let mut state = self.state.lock();
        let is_untouched = state.gathered.is_empty() && !state.has_packed;
        if is_untouched { state.responder.take() } else { None }
    }

    /// Answers the command. What was gathered and not pushed goes with it. Nothing else follows.
    pub(super) fn finish(&self, done: &Done) {
        let mut state = self.state.lock();
        if state.kind == push::ROWS {
            state.pack();
        }
        while let Ok(false) = state.push(SLICE) {}
        let rest = std::mem::take(&mut state.gathered);
        let responder = state.responder.take();
        drop(state);
        if let Some(responder) = responder {
            let mut body = Body::from(encode(done));
            body.push(rest);
            responder.reply(body);
        }
    }
}

impl OutletState {
    /// Makes a message of what was gathered.
    fn pack(&mut self) {
        if self.pending.is_none() && !self.gathered.is_empty() {
            let mut body = Body::from(vec![self.kind]);
            body.push(std::mem::take(&mut self.gathered));
            self.pending = Some(body);
            self.has_packed = true;
        }
    }

    /// Pushes the message that waits. False if there was no room for it in that time.
    fn push(&mut self, timeout: Duration) -> io::Result<bool> {
        let (Some(body), Some(responder)) = (&self.pending, &self.responder) else {
            return Ok(true);
        };
        match responder.push(body.clone(), timeout) {
            Ok(()) => {
                self.pending = None;
                Ok(true)
            }
            Err(PushError::TimedOut) => Ok(false),
            Err(error) => Err(io::Error::new(io::ErrorKind::BrokenPipe, error)),
        }
    }
}

/// The end of an outlet that a session writes to.
pub(super) struct Inlet(pub(super) Arc<Outlet>);

impl RelayStream for Inlet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.state.lock();
        if !state.push(SLICE)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        // A message has a bounded length, so long values go in pieces.
        let taken = bytes.len().min(8 * PUSH_BYTES);
        state.gathered.extend_from_slice(&bytes[..taken]);
        if state.gathered.len() >= PUSH_BYTES {
            state.pack();
            state.push(Duration::ZERO)?;
        }
        Ok(taken)
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.0.state.lock();
        if !std::mem::replace(&mut state.has_asked_for_file, true) {
            state.pack();
            while !state.push(SLICE)? {}
            state.pending = Some(Body::from(vec![push::FILE]));
            state.has_packed = true;
        }
        if !state.push(SLICE)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        drop(state);
        self.0.content.read(buffer)
    }
}
