//! Replies: a session's answers to commands, encoded straight into the connection's output.
//!
//! ```text
//!   replies.ok(..)                                 one OK packet
//!   replies.columns(..) → ResultSet                column count, definitions, (EOF)
//!        .row() → Row  .int(1) .text(b"x") .end()  a row, field by field
//!        .finish(..)                               EOF, or OK in its place
//!   replies.local_infile(..) → LocalInfile         asks the client for a file; an OK or error follows
//!   Err(WireError::Refused(..)) from the session   an ERR packet, even after some rows
//! ```
//!
//! A command is answered by one result; a text of several statements and a procedure are answered
//! by several. If another result follows, call [`Replies::set_more_results`] **before** the result
//! that it follows; the flag holds until it is changed.
//!
//! Output is sent when 64 KiB have been gathered and when the command has been answered. A client
//! that does not read blocks the writer (for `net_write_timeout` at most).
//!
//! Invariants: a packet is sent whole or not at all (an abandoned row leaves no trace); a session
//! that returns `Ok` has answered, and its last result set is finished.

#![allow(clippy::disallowed_types, reason = "replies that are recorded, which no clock concerns")]

#[cfg(test)]
pub(crate) mod annotate;
mod column;
mod completion;
mod local_infile;
mod number;
mod relay;
mod result_set;
mod row;
mod temporal;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use firn_base::clock::SystemClock;
use parking_lot::Mutex;

use crate::channel::{Channel, MemoryStream, OutputMark};
use crate::error::{ServerError, WireError};
use crate::flags::{Capabilities, Status};

pub(crate) use column::put_definition;
pub use column::{ColumnDefinition, EncodedColumns, NotColumns};
pub use completion::{Completion, SessionChange};
pub(crate) use completion::{put_completion, put_end_of_rows, put_error};
pub use local_infile::LocalInfile;
use relay::Arriving;
pub use relay::{CursorEnd, RelayChannel, RelayStream, RelayedRows};
pub(crate) use result_set::CursorRows;
pub use result_set::ResultSet;
pub use row::Row;

/// Encoding of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowFormat {
    /// As text: the answer to a query.
    Text,
    /// In binary: the answer to an executed statement.
    Binary,
}

/// The state of the answer to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// No result was sent, or another one was announced.
    Owed,
    /// A result set has begun.
    InRows,
    /// Every result was sent.
    Answered,
}

/// The place where a session writes its answer to a command.
pub struct Replies<'a> {
    channel: &'a mut Channel,
    format: RowFormat,
    more_results: bool,
    /// The session's last reported status, for the EOF that follows column definitions.
    status: Status,
    progress: Progress,
    /// Where rows go if the client asked for a cursor.
    cursor: Option<&'a mut Option<CursorRows>>,
    /// The packet of a relayed answer that has arrived in part.
    arriving: Arriving,
    /// Where the answer begins in the output.
    begins_at: OutputMark,
}

impl<'a> Replies<'a> {
    pub(crate) fn new(channel: &'a mut Channel, format: RowFormat) -> Replies<'a> {
        let begins_at = channel.output.mark();
        Replies {
            channel,
            format,
            more_results: false,
            status: Status::AUTOCOMMIT,
            progress: Progress::Owed,
            cursor: None,
            arriving: Arriving::default(),
            begins_at,
        }
    }

    /// Keeps the first result set's rows in `cursor` instead of sending them.
    pub(crate) fn with_cursor(mut self, cursor: &'a mut Option<CursorRows>) -> Replies<'a> {
        self.cursor = Some(cursor);
        self
    }

    /// Sets whether another result follows the next one. False at the beginning of each command.
    pub fn set_more_results(&mut self, more: bool) {
        self.more_results = more;
    }

    /// Whether the client takes several results of one command; if not, a procedure's are refused.
    #[must_use]
    pub fn takes_several_results(&self) -> bool {
        self.channel.capabilities.contains(match self.format {
            RowFormat::Text => Capabilities::MULTI_RESULTS,
            RowFormat::Binary => Capabilities::PS_MULTI_RESULTS,
        })
    }

    /// Whether the client tracks the session's state; otherwise changes need not be gathered.
    #[must_use]
    pub fn tracks_session(&self) -> bool {
        self.channel.capabilities.contains(Capabilities::SESSION_TRACK)
    }

    /// Whether `affected_rows` counts the rows found instead of those changed.
    #[must_use]
    pub fn counts_found_rows(&self) -> bool {
        self.channel.capabilities.contains(Capabilities::FOUND_ROWS)
    }

    /// Whether the answer to the running command can wait for the confirmation of its effects, see
    /// [`ConnectionControl::promise_confirmation`](crate::ConnectionControl::promise_confirmation):
    /// it is the command's only one, and goes out as it is.
    #[must_use]
    pub fn can_be_late(&self) -> bool {
        self.progress == Progress::Owed
            && !self.more_results
            && self.cursor.is_none()
            && self.channel.can_answer_late()
    }

    /// Whether a part of the answer was given: the command cannot be run again elsewhere.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.progress != Progress::Owed
    }

    /// Drops the answer so far, so that the command can be answered again. False if a part of it
    /// has been sent to the client.
    #[must_use]
    pub fn take_back(&mut self) -> bool {
        if !self.channel.output.go_back(&self.begins_at) {
            return false;
        }
        self.more_results = false;
        self.progress = Progress::Owed;
        self.arriving = Arriving::default();
        if let Some(cursor) = self.cursor.as_deref_mut() {
            *cursor = None;
        }
        true
    }

    /// How rows will be encoded.
    #[must_use]
    pub fn format(&self) -> RowFormat {
        self.format
    }

    /// Answers without rows.
    ///
    /// # Errors
    /// [`WireError::Lost`] if output had to be sent and could not be.
    pub fn ok(&mut self, completion: &Completion<'_>) -> Result<(), WireError> {
        self.expect_owed();
        let status = self.complete(completion.status);
        let capabilities = self.channel.capabilities;
        put_completion(self.channel.output.begin(), 0, completion, status, capabilities);
        self.channel.output.commit();
        self.channel.flush_if_full()
    }

    /// Begins a result set.
    ///
    /// # Errors
    /// [`WireError::Lost`] if output had to be sent and could not be.
    pub fn columns(
        &mut self,
        columns: &[ColumnDefinition],
    ) -> Result<ResultSet<'_, 'a>, WireError> {
        self.encoded_columns(&EncodedColumns::new(columns))
    }

    /// Begins a result set whose columns were encoded before: one copy for any number of columns.
    ///
    /// # Errors
    /// [`WireError::Lost`] if output had to be sent and could not be.
    pub fn encoded_columns(
        &mut self,
        columns: &EncodedColumns,
    ) -> Result<ResultSet<'_, 'a>, WireError> {
        self.expect_owed();
        ResultSet::begin(self, columns)
    }

    /// Asks the client for its file of that name. Read it to its end or drop it, then answer.
    ///
    /// # Errors
    /// [`WireError::Refused`] if the client sends no files, [`WireError::Lost`] if it cannot be
    /// asked.
    pub fn local_infile(&mut self, name: &[u8]) -> Result<LocalInfile<'_>, WireError> {
        self.expect_owed();
        if !self.channel.capabilities.contains(Capabilities::LOCAL_FILES) {
            return Err(ServerError::local_infile_disabled().into());
        }
        LocalInfile::request(self.channel, name)
    }

    /// Answers with an error. Usually a session returns it instead.
    ///
    /// # Errors
    /// [`WireError::Lost`] if output had to be sent and could not be.
    pub fn error(&mut self, error: &ServerError) -> Result<(), WireError> {
        self.progress = Progress::Answered;
        put_error(self.channel.output.begin(), error, true);
        self.channel.output.commit();
        self.channel.flush_if_full()
    }

    /// Sends the gathered output at once: for the first rows of a long statement.
    ///
    /// # Errors
    /// [`WireError::Lost`] if it could not be sent.
    pub fn flush(&mut self) -> Result<(), WireError> {
        self.channel.flush()
    }

    /// Whether a session that has returned has sent every result.
    pub(crate) fn is_answered(&self) -> bool {
        self.progress == Progress::Answered
    }

    /// Notes that one result is complete; returns the status to send.
    fn complete(&mut self, status: Status) -> Status {
        self.status = status;
        self.progress = if self.more_results { Progress::Owed } else { Progress::Answered };
        if self.more_results { status | Status::MORE_RESULTS } else { status }
    }

    fn expect_owed(&self) {
        assert_eq!(
            self.progress,
            Progress::Owed,
            "a command is answered once, a result set finished"
        );
    }
}

/// Records replies as bytes, without a connection: for tests and measurements of sessions.
///
/// ```
/// # use firn_wire::{Completion, RowFormat, ReplyRecorder};
/// let mut recorder = ReplyRecorder::new(RowFormat::Text);
/// recorder.replies().ok(&Completion::default()).unwrap();
/// assert_eq!(recorder.take(), [7, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
/// ```
pub struct ReplyRecorder {
    channel: Channel,
    format: RowFormat,
    sent: Arc<Mutex<Vec<u8>>>,
}

impl ReplyRecorder {
    /// Records replies in that format, as for a client with `DEPRECATE_EOF`, session tracking and
    /// several results.
    #[must_use]
    pub fn new(format: RowFormat) -> ReplyRecorder {
        let stream = MemoryStream::default();
        let sent = stream.output.clone();
        let closing = Arc::new(AtomicBool::new(false));
        let mut channel = Channel::new(Box::new(stream), Arc::new(SystemClock), closing);
        channel.capabilities = Capabilities::PROTOCOL_41
            | Capabilities::DEPRECATE_EOF
            | Capabilities::SESSION_TRACK
            | Capabilities::MULTI_RESULTS
            | Capabilities::PS_MULTI_RESULTS;
        ReplyRecorder { channel, format, sent }
    }

    /// Records replies as for a client with these capabilities.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> ReplyRecorder {
        self.channel.capabilities = capabilities;
        self
    }

    /// The replies of the next command.
    pub fn replies(&mut self) -> Replies<'_> {
        self.channel.output.sequence = 1;
        Replies::new(&mut self.channel, self.format)
    }

    /// The packets since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        self.channel.flush().expect("memory takes everything");
        std::mem::take(&mut *self.sent.lock())
    }
}

#[cfg(test)]
mod tests;
