//! The packets that end a result: OK, EOF, ERR.

use crate::error::ServerError;
use crate::flags::{Capabilities, Status};
use crate::packet::PayloadWriter;

/// The content of the packet at the end of a result.
#[derive(Debug, Clone, Copy, Default)]
pub struct Completion<'a> {
    /// Rows changed (or found, see [`super::Replies::counts_found_rows`]).
    pub affected_rows: u64,
    /// The first value that `AUTO_INCREMENT` gave.
    pub last_insert_id: u64,
    /// The session's status after the statement.
    pub status: Status,
    /// How many warnings `SHOW WARNINGS` would show.
    pub warnings: u16,
    /// A line for the user, such as `Rows matched: 1  Changed: 0  Warnings: 0`.
    pub info: &'a str,
    /// Changes of the session's state, if the client tracks them.
    pub changes: &'a [SessionChange<'a>],
}

/// A change of the session's state that a client can follow (`session_track_…`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionChange<'a> {
    /// A system variable was set.
    SystemVariable {
        name: &'a str,
        /// Its new value as text.
        value: &'a [u8],
    },
    /// Another default schema was chosen.
    Schema(&'a str),
    /// Some state of the session has changed (`session_track_state_change`).
    State,
    /// Global transaction identifiers, as text.
    Gtids(&'a str),
    /// How to begin the open transaction again: its `SET` and `START TRANSACTION` statements.
    TransactionCharacteristics(&'a str),
    /// Eight characters that tell what the open transaction has done, such as `T_______`.
    TransactionState(&'a str),
}

impl SessionChange<'_> {
    fn put(&self, buffer: &mut Vec<u8>) {
        let (code, data) = match self {
            SessionChange::SystemVariable { name, value } => {
                let mut data = Vec::with_capacity(name.len() + value.len() + 2);
                data.put_length_encoded_bytes(name.as_bytes());
                data.put_length_encoded_bytes(value);
                (0, data)
            }
            SessionChange::Schema(name) => (1, length_encoded(name)),
            SessionChange::State => (2, length_encoded("1")),
            SessionChange::Gtids(gtids) => {
                let mut data = vec![0];
                data.put_length_encoded_bytes(gtids.as_bytes());
                (3, data)
            }
            SessionChange::TransactionCharacteristics(text) => (4, length_encoded(text)),
            SessionChange::TransactionState(text) => (5, length_encoded(text)),
        };
        buffer.put_u8(code);
        buffer.put_length_encoded_bytes(&data);
    }
}

fn length_encoded(text: &str) -> Vec<u8> {
    let mut data = Vec::with_capacity(text.len() + 1);
    data.put_length_encoded_bytes(text.as_bytes());
    data
}

/// An OK packet's payload. `header` is 0, or 0xfe if the packet replaces an EOF.
pub(crate) fn put_completion(
    buffer: &mut Vec<u8>,
    header: u8,
    completion: &Completion<'_>,
    mut status: Status,
    capabilities: Capabilities,
) {
    let tracks = capabilities.contains(Capabilities::SESSION_TRACK);
    let has_changes = tracks && !completion.changes.is_empty();
    status.set(Status::SESSION_STATE_CHANGED, has_changes);
    buffer.put_u8(header);
    buffer.put_length_encoded_integer(completion.affected_rows);
    buffer.put_length_encoded_integer(completion.last_insert_id);
    buffer.put_u16(status.bits());
    buffer.put_u16(completion.warnings);
    // MySQL sends the length prefix also to clients that do not track the session.
    if has_changes || !completion.info.is_empty() {
        buffer.put_length_encoded_bytes(completion.info.as_bytes());
    }
    if has_changes {
        let mut changes = Vec::new();
        completion.changes.iter().for_each(|change| change.put(&mut changes));
        buffer.put_length_encoded_bytes(&changes);
    }
}

/// The payload after the last row: EOF, or OK for a client that deprecates it.
pub(crate) fn put_end_of_rows(
    buffer: &mut Vec<u8>,
    completion: &Completion<'_>,
    status: Status,
    capabilities: Capabilities,
) {
    if capabilities.contains(Capabilities::DEPRECATE_EOF) {
        put_completion(buffer, 0xfe, completion, status, capabilities);
    } else {
        buffer.put_u8(0xfe);
        buffer.put_u16(completion.warnings);
        buffer.put_u16(status.bits());
    }
}

/// An ERR packet's payload. It has no SQLSTATE until the client has announced protocol 4.1.
pub(crate) fn put_error(buffer: &mut Vec<u8>, error: &ServerError, with_sqlstate: bool) {
    buffer.put_u8(0xff);
    buffer.put_u16(error.code);
    if with_sqlstate {
        buffer.put_u8(b'#');
        buffer.put(&error.sqlstate);
    }
    buffer.put(error.message.as_bytes());
}
