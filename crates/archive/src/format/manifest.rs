//! The manifest: everything that an archive has, as of one moment. The one with the highest number
//! counts. What it does not name is not part of the archive.

use firn_api::Watermarks;
use firn_base::{Cts, Lsn, TrxId};
use firn_storage::local::DatabaseId;

use super::{
    ARCHIVE_VERSION, CLUSTER_MANIFEST_VERSION, FieldReader, FieldWriter, FormatError, ObjectKind,
    framed_as, read_database, unframed, version,
};

/// A log object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEntry {
    pub from: Lsn,
    pub to: Lsn,
    /// The writer that made the object: a part of its name.
    pub writer: u32,
    /// The size of the object, in bytes.
    pub size_bytes: u64,
    /// The last moment in the object or before it, in milliseconds since the Unix epoch.
    pub time_ms: u64,
}

/// A set of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetEntry {
    /// Every log group that ends here or before is in the set's images or those before it.
    pub start: Lsn,
    /// No image is newer, and no page is missing because its space was dropped behind this
    /// position. A restore to this position or a later one can begin with this set.
    pub end: Lsn,
    /// Whether the set has all pages, and needs no set before it.
    pub is_full: bool,
    /// The writer that made the object: a part of its name.
    pub writer: u32,
    /// The number of images, and the size of all packs in bytes.
    pub images: u64,
    pub size_bytes: u64,
    /// A moment at or after which the log had grown to `end`.
    pub time_ms: u64,
    /// Upper bounds of the ids in the log up to `start`.
    pub watermarks: Watermarks,
}

/// Log that was not archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    pub from: Lsn,
    pub to: Lsn,
    pub from_ms: u64,
    pub to_ms: u64,
}

/// What an archive has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    pub database: DatabaseId,
    /// The manifest's number, as in its name.
    pub number: u64,
    /// The writer that made it.
    pub writer: u32,
    /// In which choice of a cluster's archiver the writer was chosen; 0 for a standalone server. A
    /// process that was chosen earlier does not take the archive over.
    pub epoch: u64,
    /// How far back moments are kept, in milliseconds.
    pub window_ms: u64,
    /// Everything that was acknowledged by this time is in the archived log. Milliseconds since the
    /// Unix epoch.
    pub as_of_ms: u64,
    /// Sorted, without overlap; they follow each other except at gaps.
    pub log: Vec<LogEntry>,
    /// Sorted by position.
    pub sets: Vec<SetEntry>,
    /// Sorted by position.
    pub gaps: Vec<Gap>,
}

impl Manifest {
    /// The manifest of an empty archive; it was never written.
    #[must_use]
    pub fn new(database: DatabaseId, writer: u32, window_ms: u64) -> Manifest {
        Manifest {
            database,
            number: 0,
            writer,
            epoch: 0,
            window_ms,
            as_of_ms: 0,
            log: Vec::new(),
            sets: Vec::new(),
            gaps: Vec::new(),
        }
    }

    /// The end of the archived log.
    #[must_use]
    pub fn log_end(&self) -> Option<Lsn> {
        self.log.last().map(|entry| entry.to)
    }

    /// The bytes of all objects that it names, without set objects and manifests.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        let log: u64 = self.log.iter().map(|entry| entry.size_bytes).sum();
        log + self.sets.iter().map(|set| set.size_bytes).sum::<u64>()
    }

    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = FieldWriter::default();
        fields.bytes(&self.database.0);
        fields.u64(self.number);
        fields.u32(self.writer);
        fields.u64(self.window_ms);
        fields.u64(self.as_of_ms);
        fields.u32(self.log.len() as u32);
        fields.u32(self.sets.len() as u32);
        fields.u32(self.gaps.len() as u32);
        for entry in &self.log {
            fields.u64(entry.from.0);
            fields.u64(entry.to.0);
            fields.u32(entry.writer);
            fields.u64(entry.size_bytes);
            fields.u64(entry.time_ms);
        }
        for set in &self.sets {
            fields.u64(set.start.0);
            fields.u64(set.end.0);
            fields.u32(u32::from(set.is_full));
            fields.u32(set.writer);
            fields.u64(set.images);
            fields.u64(set.size_bytes);
            fields.u64(set.time_ms);
            fields.u64(set.watermarks.trx_id_limit.0);
            fields.u64(set.watermarks.cts_limit.0);
        }
        for gap in &self.gaps {
            fields.u64(gap.from.0);
            fields.u64(gap.to.0);
            fields.u64(gap.from_ms);
            fields.u64(gap.to_ms);
        }
        let version = match self.epoch {
            0 => ARCHIVE_VERSION,
            epoch => {
                fields.u64(epoch);
                CLUSTER_MANIFEST_VERSION
            }
        };
        framed_as(ObjectKind::Manifest, version, &fields.0)
    }

    /// Reads an object.
    ///
    /// # Errors
    /// If the bytes are not such an object, as a whole.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, FormatError> {
        let (head, body) = unframed(ObjectKind::Manifest, bytes)?;
        let mut fields = FieldReader::new(head);
        let mut manifest = Manifest::new(read_database(&mut fields)?, 0, 0);
        manifest.number = fields.u64()?;
        manifest.writer = fields.u32()?;
        manifest.window_ms = fields.u64()?;
        manifest.as_of_ms = fields.u64()?;
        let (log, sets, gaps) = (fields.count(36)?, fields.count(64)?, fields.count(32)?);
        for _ in 0..log {
            manifest.log.push(read_log(&mut fields)?);
        }
        for _ in 0..sets {
            manifest.sets.push(read_set(&mut fields)?);
        }
        for _ in 0..gaps {
            let (from, to) = (Lsn(fields.u64()?), Lsn(fields.u64()?));
            manifest.gaps.push(Gap { from, to, from_ms: fields.u64()?, to_ms: fields.u64()? });
        }
        let is_of_cluster = bytes.first_chunk().map(version) == Some(CLUSTER_MANIFEST_VERSION);
        if is_of_cluster {
            manifest.epoch = fields.u64()?;
        }
        fields.end()?;
        let has_epoch = manifest.epoch != 0;
        let follow = manifest.log.windows(2).all(|pair| pair[0].to <= pair[1].from);
        let ascend = manifest.sets.windows(2).all(|pair| pair[0].start < pair[1].start);
        let forward = manifest.gaps.iter().all(|gap| gap.from <= gap.to);
        if body.is_empty() && follow && ascend && forward && has_epoch == is_of_cluster {
            Ok(manifest)
        } else {
            Err(FormatError::Invalid)
        }
    }
}

fn read_log(fields: &mut FieldReader<'_>) -> Result<LogEntry, FormatError> {
    let entry = LogEntry {
        from: Lsn(fields.u64()?),
        to: Lsn(fields.u64()?),
        writer: fields.u32()?,
        size_bytes: fields.u64()?,
        time_ms: fields.u64()?,
    };
    if entry.from < entry.to { Ok(entry) } else { Err(FormatError::Invalid) }
}

fn read_set(fields: &mut FieldReader<'_>) -> Result<SetEntry, FormatError> {
    let (start, end) = (Lsn(fields.u64()?), Lsn(fields.u64()?));
    let is_full = match fields.u32()? {
        0 => false,
        1 => true,
        _ => return Err(FormatError::Invalid),
    };
    let set = SetEntry {
        start,
        end,
        is_full,
        writer: fields.u32()?,
        images: fields.u64()?,
        size_bytes: fields.u64()?,
        time_ms: fields.u64()?,
        watermarks: Watermarks {
            trx_id_limit: TrxId(fields.u64()?),
            cts_limit: Cts(fields.u64()?),
        },
    };
    if start <= end { Ok(set) } else { Err(FormatError::Invalid) }
}
