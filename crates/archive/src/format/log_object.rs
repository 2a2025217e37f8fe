//! A stretch of log: whole groups, with the moments at which the log had grown so far, and the
//! pages that they change.

use firn_api::Watermarks;
use firn_base::{Cts, Lsn, PageId, SpaceId, TrxId};
use firn_storage::local::DatabaseId;

use super::{FieldReader, FieldWriter, FormatError, ObjectKind, framed, read_database, unframed};

/// The longest stretch of log in one object, in bytes. A reader allocates no more.
const MAX_LOG_BYTES: u64 = 256 << 20;
const COMPRESSION_LEVEL: i32 = 1;

/// At this time, the durable log ended here: commits that were acknowledged by then are before that
/// position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Milliseconds since the Unix epoch.
    pub time_ms: u64,
    pub lsn: Lsn,
}

/// What a log object says of its stretch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogHead {
    pub database: DatabaseId,
    /// Where the first group begins.
    pub from: Lsn,
    /// Where the last group ends.
    pub to: Lsn,
    /// Upper bounds of the ids in the log up to here.
    pub watermarks: Watermarks,
    /// Ascending in both time and position; the positions are in `from..=to`.
    pub marks: Vec<Mark>,
    /// The pages that the groups change, sorted.
    pub pages: Vec<PageId>,
    /// The spaces that the groups drop, sorted.
    pub dropped: Vec<SpaceId>,
    body_bytes: u64,
    body_checksum: u32,
}

/// A log object in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogObject {
    pub head: LogHead,
    /// Whole groups, from `head.from` to `head.to`.
    pub groups: Vec<u8>,
}

impl LogHead {
    /// A head for groups that are not compressed yet.
    #[must_use]
    pub fn new(database: DatabaseId, from: Lsn, to: Lsn, watermarks: Watermarks) -> LogHead {
        LogHead {
            database,
            from,
            to,
            watermarks,
            marks: Vec::new(),
            pages: Vec::new(),
            dropped: Vec::new(),
            body_bytes: 0,
            body_checksum: 0,
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut fields = FieldWriter::default();
        fields.bytes(&self.database.0);
        fields.u64(self.from.0);
        fields.u64(self.to.0);
        fields.u64(self.watermarks.trx_id_limit.0);
        fields.u64(self.watermarks.cts_limit.0);
        fields.u64(self.body_bytes);
        fields.u32(self.body_checksum);
        fields.u32(self.marks.len() as u32);
        fields.u32(self.pages.len() as u32);
        fields.u32(self.dropped.len() as u32);
        let mut before = Mark { time_ms: 0, lsn: self.from };
        for mark in &self.marks {
            fields.number(mark.time_ms - before.time_ms);
            fields.number(mark.lsn.since(before.lsn));
            before = *mark;
        }
        let mut before = 0;
        for page in &self.pages {
            fields.number(page.to_u64() - before);
            before = page.to_u64();
        }
        let mut before = 0;
        for space in &self.dropped {
            fields.number(u64::from(space.0) - before);
            before = u64::from(space.0);
        }
        framed(ObjectKind::Log, &fields.0)
    }

    /// The head at the front of an object's bytes; the body need not be there.
    ///
    /// # Errors
    /// If the bytes are not such an object.
    pub fn decode(bytes: &[u8]) -> Result<LogHead, FormatError> {
        let (head, _) = unframed(ObjectKind::Log, bytes)?;
        let mut fields = FieldReader::new(head);
        let mut found = LogHead {
            database: read_database(&mut fields)?,
            from: Lsn(fields.u64()?),
            to: Lsn(fields.u64()?),
            watermarks: Watermarks {
                trx_id_limit: TrxId(fields.u64()?),
                cts_limit: Cts(fields.u64()?),
            },
            marks: Vec::new(),
            pages: Vec::new(),
            dropped: Vec::new(),
            body_bytes: fields.u64()?,
            body_checksum: fields.u32()?,
        };
        // The three lists follow their counts.
        let (marks, pages, dropped) = (fields.count(2)?, fields.count(1)?, fields.count(1)?);
        if found.from >= found.to || found.to.since(found.from) > MAX_LOG_BYTES {
            return Err(FormatError::Invalid);
        }
        found.read_marks(&mut fields, marks)?;
        let mut before = 0;
        for number in 0..pages {
            before = next(&mut fields, before, number)?;
            found.pages.push(PageId::from_u64(before));
        }
        let mut before = 0;
        for number in 0..dropped {
            before = next(&mut fields, before, number)?;
            found.dropped.push(SpaceId(u32::try_from(before).map_err(|_| FormatError::Invalid)?));
        }
        fields.end()?;
        Ok(found)
    }

    fn read_marks(
        &mut self,
        fields: &mut FieldReader<'_>,
        count: usize,
    ) -> Result<(), FormatError> {
        let mut before = Mark { time_ms: 0, lsn: self.from };
        for _ in 0..count {
            let (time, lsn) = (fields.number()?, fields.number()?);
            let time_ms = before.time_ms.checked_add(time).ok_or(FormatError::Invalid)?;
            let lsn = before.lsn.0.checked_add(lsn).ok_or(FormatError::Invalid)?;
            if lsn > self.to.0 {
                return Err(FormatError::Invalid);
            }
            before = Mark { time_ms, lsn: Lsn(lsn) };
            self.marks.push(before);
        }
        Ok(())
    }
}

/// The next number of an ascending list; only the first may be 0.
fn next(fields: &mut FieldReader<'_>, before: u64, number: usize) -> Result<u64, FormatError> {
    let step = fields.number()?;
    if step == 0 && number > 0 {
        return Err(FormatError::Invalid);
    }
    before.checked_add(step).ok_or(FormatError::Invalid)
}

impl LogObject {
    /// The object's bytes.
    ///
    /// # Panics
    /// If the groups are too long for an object, or not as long as the head says.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        assert_eq!(self.groups.len() as u64, self.head.to.since(self.head.from), "whole groups");
        let body = zstd::bulk::compress(&self.groups, COMPRESSION_LEVEL)
            .expect("memory takes any bytes compressed");
        let mut head = self.head.clone();
        head.body_bytes = body.len() as u64;
        head.body_checksum = crc32c::crc32c(&body);
        let mut bytes = head.encode();
        bytes.extend_from_slice(&body);
        bytes
    }

    /// Reads an object.
    ///
    /// # Errors
    /// If the bytes are not such an object, as a whole.
    pub fn decode(bytes: &[u8]) -> Result<LogObject, FormatError> {
        let head = LogHead::decode(bytes)?;
        let (_, body) = unframed(ObjectKind::Log, bytes)?;
        if body.len() as u64 != head.body_bytes {
            return Err(FormatError::Short);
        }
        if crc32c::crc32c(body) != head.body_checksum {
            return Err(FormatError::Checksum);
        }
        let length = head.to.since(head.from) as usize;
        let groups = zstd::bulk::decompress(body, length).map_err(|_| FormatError::Invalid)?;
        if groups.len() != length {
            return Err(FormatError::Invalid);
        }
        Ok(LogObject { head, groups })
    }
}
