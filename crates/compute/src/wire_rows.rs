//! Rows of the executor as rows of the wire.
//!
//! ```text
//!   ResultSink::stored(ValueRef, type)  ──┐
//!   ResultSink::datum(Datum, type)      ──┴──► Row::int, text, datetime …, straight to the output
//! ```

use firn_base::memory;
use firn_format::value as stored;
use firn_format::value::{CollationId, ValueRef};
use firn_sql::collation::Charset;
use firn_sql::error::{Result, SqlError, damaged};
use firn_sql::execute::ResultSink;
use firn_sql::plan::OutputColumn;
use firn_sql::types::{ByteString, Datum, SqlType, TimeZone, TypeKind};
use firn_wire::{Completion, EncodedColumns, Replies, ResultSet, Row, WireError};

use crate::columns;
use crate::statement_cut::Cut;

/// How values are presented to a client.
#[derive(Debug, Clone)]
pub struct Presentation {
    /// `character_set_results`; `None`: as stored.
    pub charset: Option<Charset>,
    /// Its collation in column metadata: that of `SET NAMES` or of the handshake.
    pub collation: Option<CollationId>,
    /// The session's time zone, for timestamps.
    pub time_zone: TimeZone,
}

/// Writes a result to a client.
pub struct WireSink<'s, 'r, 'a> {
    replies: Option<&'r mut Replies<'a>>,
    /// The columns, if they have already been encoded.
    encoded: Option<&'s EncodedColumns>,
    presentation: &'s Presentation,
    /// Texts are sent in another character set than they are stored in.
    converts: bool,
    set: Option<ResultSet<'r, 'a>>,
    /// Why nothing more can be sent.
    broken: Option<WireError>,
    decimal: String,
    /// Rows that were begun.
    rows: u64,
    /// The statement, while nothing of the result has been sent.
    cut: Option<&'s Cut>,
}

impl<'s, 'r, 'a> WireSink<'s, 'r, 'a> {
    /// A sink of one result.
    pub fn new(
        replies: &'r mut Replies<'a>,
        presentation: &'s Presentation,
        encoded: Option<&'s EncodedColumns>,
    ) -> WireSink<'s, 'r, 'a> {
        WireSink {
            replies: Some(replies),
            encoded,
            presentation,
            converts: presentation.charset.is_some_and(|charset| !charset.is_utf8()),
            set: None,
            broken: None,
            decimal: String::new(),
            rows: 0,
            cut: None,
        }
    }

    /// The rows are those of a statement that can be cut until some of them are sent.
    pub(crate) fn of_statement(mut self, cut: &'s Cut) -> WireSink<'s, 'r, 'a> {
        self.cut = Some(cut);
        self
    }

    /// How many rows were written.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Ends the result set, if there was one.
    ///
    /// # Errors
    /// If the client is gone.
    pub fn finish(self, completion: &Completion<'_>) -> std::result::Result<(), WireError> {
        match (self.broken, self.set, self.replies) {
            (Some(broken), ..) => Err(broken),
            (None, Some(set), _) => set.finish(completion),
            (None, None, Some(replies)) => replies.ok(completion),
            (None, None, None) => Ok(()),
        }
    }

    /// Why nothing more could be sent.
    pub fn into_broken(self) -> Option<WireError> {
        self.broken
    }

    /// Counts a row that begins. From the first one on before which rows are sent, the statement
    /// cannot be cut.
    #[inline]
    fn count_row(&mut self) -> Result<()> {
        self.rows += 1;
        let sends = || self.set.as_ref().is_some_and(ResultSet::is_full);
        match self.cut {
            Some(cut) if sends() => {
                self.cut = None;
                if cut.may_go_on() { Ok(()) } else { Err(SqlError::interrupted()) }
            }
            _ => Ok(()),
        }
    }

    fn keep<T>(&mut self, sent: std::result::Result<T, WireError>) -> Result<T> {
        sent.or_else(|error| broken(&mut self.broken, error))
    }

    fn unsigned(&mut self, number: u64, kind: &TypeKind) {
        let charset = self.presentation.charset;
        match kind {
            TypeKind::Bit { bits } => put_bits(&mut self.row(), number, *bits),
            TypeKind::Enum { members, .. } => {
                put_text(&mut self.row(), members.name_of(number).as_bytes(), charset);
            }
            TypeKind::Set { members, .. } => {
                put_text(&mut self.row(), members.names_of(number).as_bytes(), charset);
            }
            _ => self.row().uint(number),
        }
    }

    fn bytes(&mut self, bytes: &[u8], kind: &TypeKind) -> Result<()> {
        let _promise = memory::ask(if self.converts { 2 * bytes.len() } else { bytes.len() })?;
        match kind.is_text() {
            true => {
                let charset = self.presentation.charset;
                put_text(&mut self.row(), bytes, charset);
            }
            false => self.row().bytes(bytes),
        }
        Ok(())
    }

    #[inline]
    fn row(&mut self) -> Row<'_> {
        self.set.as_mut().expect("a row is in a result set").same_row()
    }
}

impl ResultSink for WireSink<'_, '_, '_> {
    fn columns(&mut self, columns: &[OutputColumn]) -> Result<()> {
        if self.set.is_some() {
            return Ok(());
        }
        let replies = self.replies.take().expect("a result begins once");
        let set = match self.encoded {
            Some(encoded) => replies.encoded_columns(encoded),
            None => replies.encoded_columns(&columns::encode(columns, self.presentation.collation)),
        };
        self.set = Some(self.keep(set)?);
        Ok(())
    }

    #[inline]
    fn begin_row(&mut self) -> Result<()> {
        self.count_row()?;
        let begun = self.set.as_mut().expect("rows follow columns").row().map(|_| ());
        if begun.is_ok() { Ok(()) } else { self.keep(begun) }
    }

    #[inline]
    fn stored(&mut self, value: ValueRef<'_>, ty: &SqlType) -> Result<()> {
        match (value, &ty.kind) {
            (ValueRef::Null, _) => self.row().null(),
            (ValueRef::Int(number), _) => self.row().int(number),
            (ValueRef::UInt(number), kind) => self.unsigned(number, kind),
            (ValueRef::Float(number), _) => self.row().float(number),
            (ValueRef::Double(number), _) => self.row().double(number),
            (ValueRef::Bytes(bytes), _) if !self.converts => {
                let _promise = memory::ask(bytes.len())?;
                self.row().bytes(bytes);
            }
            (ValueRef::Bytes(bytes), kind) => self.bytes(bytes, kind)?,
            (ValueRef::Temporal(packed), TypeKind::Date) => {
                self.row().date(wire_date(stored::Date::unpack(packed)));
            }
            (ValueRef::Temporal(packed), TypeKind::Time { fsp }) => {
                self.row().time(wire_time(packed), *fsp);
            }
            (ValueRef::Temporal(packed), TypeKind::DateTime { fsp }) => {
                self.row().datetime(wire_datetime(packed), *fsp);
            }
            (ValueRef::Temporal(_) | ValueRef::Decimal(_), _) => {
                let datum = Datum::from_value_ref(value, ty, &self.presentation.time_zone);
                return self.datum(&datum.map_err(damaged)?, ty);
            }
        }
        Ok(())
    }

    fn stored_row(&mut self, row: &[(ValueRef<'_>, &SqlType)]) -> Result<()> {
        let converts = self.converts;
        let is_plain = |(value, _): &(ValueRef<'_>, &SqlType)| match value {
            ValueRef::Null | ValueRef::Int(_) => true,
            ValueRef::Bytes(_) => !converts,
            _ => false,
        };
        if !row.iter().all(is_plain) {
            self.begin_row()?;
            for (value, ty) in row {
                self.stored(*value, ty)?;
            }
            return self.end_row();
        }
        self.count_row()?;
        let set = self.set.as_mut().expect("rows follow columns");
        let mut fields = match set.row() {
            Ok(fields) => fields,
            Err(error) => return broken(&mut self.broken, error),
        };
        for (value, _) in row {
            match value {
                ValueRef::Int(number) => fields.int(*number),
                ValueRef::Bytes(bytes) => {
                    let _promise = memory::ask(bytes.len())?;
                    fields.bytes(bytes);
                }
                _ => fields.null(),
            }
        }
        fields.end();
        Ok(())
    }

    fn datum(&mut self, value: &Datum, ty: &SqlType) -> Result<()> {
        match (value, &ty.kind) {
            (Datum::Null, _) => self.row().null(),
            (Datum::Int(number), _) => self.row().int(*number),
            (Datum::UInt(number), kind) => self.unsigned(*number, kind),
            (Datum::Double(number), TypeKind::Float) => self.row().float(*number as f32),
            (Datum::Double(number), _) => self.row().double(*number),
            (Datum::Decimal(number), _) => {
                use std::fmt::Write;
                let mut text = std::mem::take(&mut self.decimal);
                text.clear();
                let _ = write!(text, "{number}");
                self.row().decimal(&text);
                self.decimal = text;
            }
            (Datum::Text(bytes), kind) => match bytes.shared() {
                Some(value) if !(self.converts && kind.is_text()) => self.row().shared(value),
                _ => self.bytes(bytes, kind)?,
            },
            (Datum::Date(packed), _) => self.row().date(wire_date(stored::Date::unpack(*packed))),
            (Datum::Time(packed), kind) => self.row().time(wire_time(*packed), kind.fsp()),
            (Datum::DateTime(packed), kind) => {
                self.row().datetime(wire_datetime(*packed), kind.fsp());
            }
            (Datum::Json(json), _) => {
                let text = ByteString::from(json.to_text());
                let charset = self.presentation.charset;
                match text.shared() {
                    Some(value) if !self.converts => self.row().shared(value),
                    _ => put_text(&mut self.row(), &text, charset),
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn end_row(&mut self) -> Result<()> {
        self.row().end();
        Ok(())
    }

    fn restart(&mut self) -> bool {
        self.rows == 0
    }
}

/// Remembers that the client is gone.
#[cold]
fn broken<T>(broken: &mut Option<WireError>, error: WireError) -> Result<T> {
    *broken = Some(error);
    Err(SqlError::new(1160, "Got an error writing communication packets"))
}

fn put_text(row: &mut Row<'_>, text: &[u8], charset: Option<Charset>) {
    match charset {
        Some(charset) if !charset.is_utf8() => row.bytes(&charset.encode(text)),
        _ => row.bytes(text),
    }
}

fn put_bits(row: &mut Row<'_>, number: u64, bits: u8) {
    let bytes = usize::from(bits).div_ceil(8).clamp(1, 8);
    row.bytes(&number.to_be_bytes()[8 - bytes..]);
}

fn wire_date(date: stored::Date) -> firn_wire::Date {
    firn_wire::Date { year: date.year, month: date.month, day: date.day }
}

fn wire_datetime(packed: i64) -> firn_wire::DateTime {
    let value = stored::DateTime::unpack(packed);
    firn_wire::DateTime {
        date: wire_date(value.date),
        hour: value.hour,
        minute: value.minute,
        second: value.second,
        microsecond: value.microsecond,
    }
}

fn wire_time(packed: i64) -> firn_wire::Time {
    let value = stored::Time::unpack(packed);
    firn_wire::Time {
        negative: value.negative,
        hours: u32::from(value.hours),
        minute: value.minutes,
        second: value.seconds,
        microsecond: value.microseconds,
    }
}
