//! One command at the node where the session is open.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use firn_link::{Body, CallError, Follower, Next, Payload};
use firn_wire::{Replies, WireError};

use super::attachment::Attachment;
use super::session::{FrontSession, Running};
use super::{is_leaving, is_not_here, unreadable, was_not_executed};
use crate::message::{Ask, Command, Done, Fault, Last, decode, encode, push};

/// Bytes of answers that a node may be ahead of the client.
const WINDOW_BYTES: u64 = 512 << 10;
/// A longer body goes in parts before the command (S6).
const SHORT_BYTES: usize = 4 << 10;
const PART_BYTES: usize = 256 << 10;
/// How long a part may take.
const PART_TIMEOUT: Duration = Duration::from_secs(30);
/// How often an interruption is sent again while its command runs.
const SLICE: Duration = Duration::from_millis(50);
/// Content of a file that is sent at a time.
const CONTENT_BYTES: usize = 128 << 10;

/// What the node is told with a command.
#[derive(Default)]
pub(super) struct News {
    /// The results of the session's last statements, if it has run them elsewhere.
    pub(super) last: Option<Last>,
    /// Prepared statements that the client has closed since the last command there.
    pub(super) closes: Vec<u32>,
}

/// How a command ended at its node.
pub(super) struct Answered {
    pub(super) done: Done,
    /// Whether the client has a part of the answer.
    pub(super) has_answered: bool,
    /// The last packets of the answer, which the client does not have yet.
    pub(super) rest: Payload,
}

impl Answered {
    /// Passes the last packets on.
    pub(super) fn pass_on(&self, replies: Option<&mut Replies<'_>>) -> Result<(), WireError> {
        match replies {
            Some(replies) if !self.rest.is_empty() => replies.relay(&self.rest),
            _ => Ok(()),
        }
    }
}

/// What became of a command that a node was given and has not answered.
pub(super) enum Lost {
    /// The node has not executed it.
    NotExecuted,
    /// It may have.
    Unknown(Unknown),
    /// The client is gone, or what came is no answer.
    Broken(WireError),
}

/// A command of which the front does not know what became.
pub(super) struct Unknown {
    pub(super) reason: String,
    /// The error with which the node has answered, if it did.
    pub(super) fault: Option<Fault>,
    /// Whether the client has a part of the answer.
    pub(super) has_answered: bool,
}

impl FrontSession {
    /// Sends a command to a node where the session is open, and passes its answer on.
    pub(super) fn run_at(
        &mut self,
        attachment: &Arc<Attachment>,
        news: News,
        command: &Command,
        body: &[u8],
        replies: Option<&mut Replies<'_>>,
    ) -> Result<Answered, Lost> {
        let session = self.login.connection.id();
        self.commands += 1;
        let number = self.commands;
        let rest = self.send_parts(attachment, body)?;
        let ask = Ask::Run {
            front: attachment.front,
            session,
            number,
            closes: news.closes,
            last: news.last,
            command: command.clone(),
        };
        let mut message = Body::from(encode(&ask));
        message.push(rest.to_vec());
        let running = Running { attachment: Arc::clone(attachment), session, number };
        self.interruption.set_running(Some(running));
        let _busy = attachment.begin_command();
        let follower = attachment.links.commands.exchange(
            attachment.service,
            message,
            WINDOW_BYTES,
            self.shared.options.patience,
        );
        let answered = follower
            .map_err(|error| lost(attachment, &error, false))
            .and_then(|follower| self.take_answer(attachment, &follower, replies));
        self.interruption.set_running(None);
        answered
    }

    /// Sends the beginning of a long body; returns the rest.
    fn send_parts<'b>(&self, attachment: &Attachment, body: &'b [u8]) -> Result<&'b [u8], Lost> {
        let session = self.login.connection.id();
        let mut rest = body;
        while rest.len() > SHORT_BYTES {
            let (part, later) = rest.split_at(rest.len().min(PART_BYTES));
            let mut message = Body::from(encode(&Ask::Part { front: attachment.front, session }));
            message.push(part.to_vec());
            let sent = attachment.links.commands.call(attachment.service, message, PART_TIMEOUT);
            // The command itself was not sent.
            sent.map_err(|error| {
                let _ = lost(attachment, &error, false);
                Lost::NotExecuted
            })?;
            rest = later;
        }
        Ok(rest)
    }

    /// Takes the pushes and the end of an answer.
    fn take_answer(
        &self,
        attachment: &Attachment,
        follower: &Follower,
        mut replies: Option<&mut Replies<'_>>,
    ) -> Result<Answered, Lost> {
        let mut has_answered = false;
        loop {
            let next = follower.next(Some(SLICE));
            let next = next.map_err(|error| lost(attachment, &error, has_answered))?;
            match next {
                Next::Nothing => self.interruption.tell(),
                Next::Message(message) => {
                    has_answered = true;
                    let replies = replies.as_deref_mut().ok_or_else(no_answer)?;
                    self.take_push(attachment, &message, replies)?;
                }
                Next::End(message) => {
                    let (done, rest) = decode::<Done>(&message).map_err(|_| no_answer())?;
                    return Ok(Answered { done, has_answered, rest });
                }
            }
        }
    }

    fn take_push(
        &self,
        attachment: &Attachment,
        message: &Payload,
        replies: &mut Replies<'_>,
    ) -> Result<(), Lost> {
        let taken = match &message[..] {
            [push::PACKETS, packets @ ..] => replies.relay(packets),
            [push::ROWS, rows @ ..] => replies.relay_rows(rows),
            [push::FILE] => self.send_file(attachment, replies),
            _ => return Err(no_answer()),
        };
        taken.map_err(Lost::Broken)
    }

    /// Sends the client's file to the node, to its end.
    fn send_file(
        &self,
        attachment: &Attachment,
        replies: &mut Replies<'_>,
    ) -> Result<(), WireError> {
        let (front, session) = (attachment.front, self.login.connection.id());
        let is_wanted = Arc::clone(&self.interruption.is_wanted);
        let mut file = replies.relay_infile()?.until(is_wanted);
        let mut is_end = false;
        while !is_end {
            let mut content = Vec::with_capacity(CONTENT_BYTES);
            let read = file.by_ref().take(CONTENT_BYTES as u64).read_to_end(&mut content);
            is_end = match read {
                Ok(read) => read < CONTENT_BYTES,
                // The node is told to end the command, if it was not.
                Err(_) if self.interruption.wanted().is_some() => true,
                Err(error) => return Err(error.into()),
            };
            let mut message = Body::from(encode(&Ask::Content { front, session, is_end }));
            message.push(content);
            let commands = &attachment.links.commands;
            if commands.call(attachment.service, message, PART_TIMEOUT).is_err() {
                // The command's own answer says why. The rest of the file is read and dropped.
                return Ok(());
            }
        }
        Ok(())
    }
}

fn lost(attachment: &Attachment, error: &CallError, has_answered: bool) -> Lost {
    // The answer may come before the event that says so, from the node as it leaves or after that.
    match is_leaving(error) || is_not_here(error) {
        true => attachment.begin_leaving(),
        false => tracing::warn!(%error, "a command has no answer"),
    }
    match was_not_executed(error) && !has_answered {
        true => Lost::NotExecuted,
        false => Lost::Unknown(Unknown { reason: error.to_string(), fault: None, has_answered }),
    }
}

fn no_answer() -> Lost {
    Lost::Broken(unreadable(&"the node has answered with what is no answer").into())
}
