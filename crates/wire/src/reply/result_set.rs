//! A result set: column definitions, rows, an end.

use firn_base::memory::{self, NoRoom};

use crate::channel::Output;
use crate::error::{ServerError, WireError};
use crate::flags::{Capabilities, Status};
use crate::packet::PayloadWriter;

use super::column::{ColumnKinds, EncodedColumns};
use super::completion::{Completion, put_end_of_rows};
use super::row::Row;
use super::{Progress, Replies, RowFormat};

/// Memory that a cursor asks for at a time.
const GRANT_BYTES: usize = 1 << 20;

/// Rows that wait for the client to fetch them: whole payloads, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct CursorRows {
    payloads: Vec<u8>,
    /// End offset of each payload.
    ends: Vec<usize>,
    /// How many have been fetched.
    fetched: usize,
    /// Room that the memory budget has granted.
    granted_bytes: usize,
    /// Set when the memory budget had no room for a row.
    pub(super) refusal: Option<NoRoom>,
    /// The status at the end of the statement.
    pub(crate) status: Status,
    pub(crate) warnings: u16,
}

impl CursorRows {
    pub(super) fn push(&mut self, payload: &[u8]) {
        let missing = (self.size_bytes() + payload.len()).saturating_sub(self.granted_bytes);
        if missing > 0 {
            let granted_bytes = missing.max(GRANT_BYTES);
            match memory::ask(granted_bytes) {
                Ok(_promise) => self.granted_bytes += granted_bytes,
                Err(no_room) => self.refusal = Some(no_room),
            }
        }
        if self.refusal.is_none() {
            self.payloads.extend_from_slice(payload);
            self.ends.push(self.payloads.len());
        }
    }

    fn size_bytes(&self) -> usize {
        self.payloads.len() + size_of_val(&self.ends[..])
    }

    /// The next row's payload.
    pub(crate) fn fetch(&mut self) -> Option<&[u8]> {
        let end = *self.ends.get(self.fetched)?;
        let start = self.fetched.checked_sub(1).map_or(0, |previous| self.ends[previous]);
        self.fetched += 1;
        Some(&self.payloads[start..end])
    }

    /// Whether every row has been fetched.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.fetched == self.ends.len()
    }
}

/// A result set under construction. It must be finished, unless the session returns an error.
pub struct ResultSet<'r, 'a> {
    replies: &'r mut Replies<'a>,
    /// A copy: all executions of the statement share the columns, and a reference count would
    /// contend.
    kinds: ColumnKinds,
    /// Fields of the current row that have been written.
    column: usize,
}

impl<'r, 'a> ResultSet<'r, 'a> {
    pub(super) fn begin(
        replies: &'r mut Replies<'a>,
        columns: &EncodedColumns,
    ) -> Result<ResultSet<'r, 'a>, WireError> {
        replies.progress = Progress::InRows;
        let channel = &mut *replies.channel;
        channel.output.append_packets(columns.packets(), columns.len() + 1);
        match &mut replies.cursor {
            // The terminator that announces the cursor is sent when the cursor's rows are known.
            Some(cursor) => **cursor = Some(CursorRows::default()),
            None if !channel.capabilities.contains(Capabilities::DEPRECATE_EOF) => {
                let buffer = channel.output.begin();
                buffer.put_u8(0xfe);
                buffer.put_u16(0);
                buffer.put_u16(replies.status.bits());
                channel.output.commit();
            }
            None => {}
        }
        Ok(ResultSet { replies, kinds: ColumnKinds::from_slice(columns.kinds()), column: 0 })
    }

    /// How many columns a row has.
    #[must_use]
    pub fn column_count(&self) -> usize {
        self.kinds.len()
    }

    #[must_use]
    pub fn format(&self) -> RowFormat {
        self.replies.format
    }

    /// Whether the next row begins with sending what was gathered.
    #[inline]
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.replies.channel.is_full()
    }

    /// Begins the next row. Blocks while much output is waiting for the client.
    ///
    /// # Errors
    /// [`WireError::Lost`] if output had to be sent and could not be: end the statement then.
    #[inline]
    pub fn row(&mut self) -> Result<Row<'_>, WireError> {
        self.replies.channel.flush_if_full()?;
        let output: &mut Output = &mut self.replies.channel.output;
        let cursor = self.replies.cursor.as_deref_mut().and_then(Option::as_mut);
        if let Some(CursorRows { refusal: Some(no_room), .. }) = cursor {
            return Err(ServerError::out_of_memory(*no_room).into());
        }
        let (kinds, format) = (&self.kinds[..], self.replies.format);
        Ok(Row::begin(output, kinds, format, cursor, &mut self.column))
    }

    /// The row that was begun last, after its last field: for callers that cannot keep a [`Row`]
    /// between its fields. The result set must not have been used in between.
    #[inline]
    pub fn same_row(&mut self) -> Row<'_> {
        let output: &mut Output = &mut self.replies.channel.output;
        let cursor = self.replies.cursor.as_deref_mut().and_then(Option::as_mut);
        let (kinds, format) = (&self.kinds[..], self.replies.format);
        Row::resume(output, kinds, format, cursor, &mut self.column)
    }

    /// Ends the result set.
    ///
    /// # Errors
    /// [`WireError::Lost`] if output had to be sent and could not be.
    pub fn finish(self, completion: &Completion<'_>) -> Result<(), WireError> {
        if let Some(Some(CursorRows { refusal: Some(no_room), .. })) = &self.replies.cursor {
            return Err(ServerError::out_of_memory(*no_room).into());
        }
        let mut status = self.replies.complete(completion.status);
        if let Some(Some(cursor)) = self.replies.cursor.take() {
            cursor.status = completion.status;
            cursor.warnings = completion.warnings;
            status |= Status::CURSOR_EXISTS;
        }
        let channel = &mut *self.replies.channel;
        let capabilities = channel.capabilities;
        put_end_of_rows(channel.output.begin(), completion, status, capabilities);
        channel.output.commit();
        channel.flush_if_full()
    }
}
