//! An archive, as a reader sees it: which moments it covers, and what a restore to one takes.

use std::sync::Arc;

use firn_base::Lsn;
use firn_objects::ObjectStore;

use crate::error::ArchiveError;
use crate::format::{
    FRAME_BYTES, FormatError, ImageSet, LogEntry, LogHead, LogObject, Manifest, Mark, ObjectKind,
    SetEntry, head_length,
};
use crate::names;

/// The part of an object that is read first, in bytes: most heads are shorter.
const FIRST_READ_BYTES: u64 = 64 << 10;

/// The moment to restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The end of the archive.
    Newest,
    /// The last moment at or before this time, in milliseconds since the Unix epoch.
    Time(u64),
    /// The last group that ends at or before this position.
    Lsn(Lsn),
}

/// Moments without a gap between them, any of which can be restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coverage {
    pub from: Mark,
    pub to: Mark,
}

/// What a restore takes.
#[derive(Debug, Clone)]
pub struct RestorePlan {
    /// The log from the base's start up to here is restored.
    pub target: Lsn,
    /// The last time at which the log had not grown beyond the target, if the archive knows it.
    pub time_ms: Option<u64>,
    /// The sets that hold the base's images, from a full one on.
    pub sets: Vec<SetEntry>,
    /// The log objects between the base's start and the target.
    pub log: Vec<LogEntry>,
}

impl RestorePlan {
    /// The newest set.
    ///
    /// # Panics
    /// Never: a plan has at least one set.
    #[must_use]
    pub fn base(&self) -> &SetEntry {
        self.sets.last().expect("a plan has a set")
    }
}

/// An archive as its newest manifest describes it.
#[derive(Clone)]
pub struct Archive {
    store: Arc<dyn ObjectStore>,
    manifest: Arc<Manifest>,
    /// Manifests that cannot be read, with what is wrong; newer than the one that is used.
    pub(crate) damaged: Vec<(String, FormatError)>,
    /// The highest number that a manifest has.
    pub(crate) highest: u64,
}

impl Archive {
    /// Reads the newest manifest. Blocks for I/O.
    ///
    /// # Errors
    /// [`ArchiveError::Empty`] if there is none, or an error of the store.
    pub fn open(store: &Arc<dyn ObjectStore>) -> Result<Archive, ArchiveError> {
        let names = store.list(names::MANIFESTS)?;
        let mut numbers: Vec<u64> =
            names.iter().filter_map(|name| names::manifest_number(name)).collect();
        numbers.sort_unstable();
        let highest = numbers.last().copied().unwrap_or(0);
        let mut damaged = Vec::new();
        for number in numbers.into_iter().rev() {
            let name = names::manifest(number);
            let bytes = match store.get(&name) {
                // The writer has removed it meanwhile; it keeps newer ones.
                Err(error) if error.is_not_found() => continue,
                other => other?,
            };
            match Manifest::decode(&bytes) {
                Ok(manifest) if manifest.number == number => {
                    let (store, manifest) = (Arc::clone(store), Arc::new(manifest));
                    return Ok(Archive { store, manifest, damaged, highest });
                }
                Ok(_) => damaged.push((name, FormatError::Invalid)),
                Err(error) => damaged.push((name, error)),
            }
        }
        let location = store.location().to_owned();
        match damaged.pop() {
            Some((name, error)) => Err(ArchiveError::damaged(&location, &name, error)),
            None => Err(ArchiveError::Empty { location }),
        }
    }

    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    #[must_use]
    pub fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// The stretches of moments that can be restored, oldest first.
    #[must_use]
    pub fn coverage(&self) -> Vec<Coverage> {
        let mut found: Vec<Coverage> = Vec::new();
        for (from, to) in stretches(&self.manifest) {
            let base = self
                .manifest
                .sets
                .iter()
                .find(|set| set.start >= from && set.end <= to && self.chain(set).is_some());
            let Some(base) = base else { continue };
            let last = self.manifest.log.iter().rfind(|entry| entry.to <= to);
            let is_newest = Some(to) == self.manifest.log_end();
            let time_ms = match (is_newest, last) {
                (true, _) => self.manifest.as_of_ms,
                (false, Some(entry)) => entry.time_ms,
                (false, None) => base.time_ms,
            };
            let from = Mark { time_ms: base.time_ms, lsn: base.end };
            found.push(Coverage { from, to: Mark { time_ms, lsn: to } });
        }
        found
    }

    /// What a restore to `moment` takes. Blocks for I/O if the moment is a time.
    ///
    /// # Errors
    /// [`ArchiveError::NotCovered`]; an error of the store, or damage.
    pub fn plan(&self, moment: Moment) -> Result<RestorePlan, ArchiveError> {
        let newest = self.manifest.log_end().or(self.manifest.sets.last().map(|set| set.end));
        let newest = newest.unwrap_or(Lsn::FIRST);
        let as_of = self.manifest.as_of_ms;
        let (target, time_ms) = match moment {
            Moment::Newest => (newest, Some(as_of)),
            Moment::Lsn(lsn) if lsn > newest => {
                return Err(self.not_covered(moment, "it is later than the archive's end"));
            }
            Moment::Lsn(lsn) => (lsn, None),
            Moment::Time(time) if time > as_of => {
                return Err(self.not_covered(moment, "it is later than the archive's end"));
            }
            Moment::Time(time) => {
                let mark = self.mark_at(time)?;
                let mark = mark.ok_or_else(|| self.not_covered(moment, BEFORE))?;
                (mark.lsn, Some(mark.time_ms))
            }
        };
        self.plan_to(moment, target, time_ms)
    }

    fn plan_to(
        &self,
        moment: Moment,
        target: Lsn,
        time_ms: Option<u64>,
    ) -> Result<RestorePlan, ArchiveError> {
        let in_gap = |gap: &&crate::format::Gap| target > gap.from && target < gap.to;
        if let Some(gap) = self.manifest.gaps.iter().find(in_gap) {
            let reason = format!("log {} to {} was not archived", gap.from, gap.to);
            return Err(self.not_covered(moment, &reason));
        }
        for set in self.manifest.sets.iter().rev().filter(|set| set.end <= target) {
            let Some(log) = self.log_between(set.start, target) else { continue };
            if let Some(sets) = self.chain(set) {
                return Ok(RestorePlan { target, time_ms, sets, log });
            }
        }
        Err(self.not_covered(moment, BEFORE))
    }

    fn not_covered(&self, moment: Moment, reason: &str) -> ArchiveError {
        let wanted = match moment {
            Moment::Newest => "its end".to_owned(),
            Moment::Time(time) => format!("time {time} ms"),
            Moment::Lsn(lsn) => format!("position {lsn}"),
        };
        let location = self.store.location().to_owned();
        ArchiveError::NotCovered { location, wanted, reason: reason.to_owned() }
    }

    /// The sets that a restore with `set` as its base reads, from a full one on. `None` if they are
    /// not all there.
    fn chain(&self, set: &SetEntry) -> Option<Vec<SetEntry>> {
        let sets = &self.manifest.sets;
        let last = sets.iter().position(|other| other.start == set.start)?;
        let first = sets[..=last].iter().rposition(|set| set.is_full)?;
        let (from, to) = (sets[first].start, set.start);
        // Changes within a gap are in no later set but a full one.
        let is_torn = self.manifest.gaps.iter().any(|gap| gap.to > from && gap.from < to);
        (!is_torn).then(|| sets[first..=last].to_vec())
    }

    /// The log objects from `from` on that reach `to`; `None` if there is a hole.
    fn log_between(&self, from: Lsn, to: Lsn) -> Option<Vec<LogEntry>> {
        let overlaps = |entry: &&LogEntry| entry.to > from && entry.from < to;
        let entries: Vec<LogEntry> = self.manifest.log.iter().filter(overlaps).copied().collect();
        let mut position = from;
        for entry in &entries {
            if entry.from > position {
                return None;
            }
            position = entry.to;
        }
        (position >= to).then_some(entries)
    }

    /// The last mark at or before a time. Blocks for I/O.
    fn mark_at(&self, time_ms: u64) -> Result<Option<Mark>, ArchiveError> {
        let log = &self.manifest.log;
        let next = log.partition_point(|entry| entry.time_ms <= time_ms);
        let end = log.len().min(next + 1);
        for entry in log[..end].iter().rev() {
            let head = self.log_head(entry)?;
            if let Some(mark) = head.marks.iter().rev().find(|mark| mark.time_ms <= time_ms) {
                return Ok(Some(*mark));
            }
        }
        let set = self.manifest.sets.iter().rfind(|set| set.time_ms <= time_ms);
        Ok(set.map(|set| Mark { time_ms: set.time_ms, lsn: set.end }))
    }

    /// The head of a log object. Blocks for I/O.
    pub(crate) fn log_head(&self, entry: &LogEntry) -> Result<LogHead, ArchiveError> {
        let name = names::log(entry);
        let bytes = read_head(self.store.as_ref(), ObjectKind::Log, &name)?;
        let head = LogHead::decode(&bytes);
        let head = head.map_err(|error| self.damaged(&name, error))?;
        self.check_log(&name, entry, &head)?;
        Ok(head)
    }

    /// A log object. Blocks for I/O.
    pub(crate) fn log_object(&self, entry: &LogEntry) -> Result<LogObject, ArchiveError> {
        let name = names::log(entry);
        let object = LogObject::decode(&self.store.get(&name)?);
        let object = object.map_err(|error| self.damaged(&name, error))?;
        self.check_log(&name, entry, &object.head)?;
        Ok(object)
    }

    fn check_log(&self, name: &str, entry: &LogEntry, head: &LogHead) -> Result<(), ArchiveError> {
        let is_it =
            (head.database, head.from, head.to) == (self.manifest.database, entry.from, entry.to);
        if is_it { Ok(()) } else { Err(self.damaged(name, FormatError::Invalid)) }
    }

    /// A set of images. Blocks for I/O.
    pub(crate) fn image_set(&self, entry: &SetEntry) -> Result<ImageSet, ArchiveError> {
        let name = names::set_of(entry);
        let set = ImageSet::decode(&self.store.get(&name)?);
        let set = set.map_err(|error| self.damaged(&name, error))?;
        let is_it = (set.database, set.start, set.writer)
            == (self.manifest.database, entry.start, entry.writer);
        if is_it { Ok(set) } else { Err(self.damaged(&name, FormatError::Invalid)) }
    }

    pub(crate) fn damaged(&self, name: &str, error: FormatError) -> ArchiveError {
        ArchiveError::damaged(self.store.location(), name, error)
    }
}

const BEFORE: &str = "there are no images from before it";

/// The stretches of log without a gap, oldest first. A set without log after it is one too.
fn stretches(manifest: &Manifest) -> Vec<(Lsn, Lsn)> {
    let mut found: Vec<(Lsn, Lsn)> = Vec::new();
    for entry in &manifest.log {
        match found.last_mut() {
            Some((_, to)) if *to == entry.from => *to = entry.to,
            _ => found.push((entry.from, entry.to)),
        }
    }
    let last = manifest.sets.last().filter(|_| found.is_empty());
    found.extend(last.map(|set| (set.start, set.end)));
    found
}

/// Frame and head of an object, without its body. Blocks for I/O.
pub(crate) fn read_head(
    store: &dyn ObjectStore,
    kind: ObjectKind,
    name: &str,
) -> Result<Vec<u8>, ArchiveError> {
    let mut bytes = store.get_range(name, 0..FIRST_READ_BYTES)?;
    let length = head_length(kind, &bytes);
    let length = length.map_err(|error| ArchiveError::damaged(store.location(), name, error))?;
    let end = FRAME_BYTES + length;
    if bytes.len() < end {
        bytes.extend(store.get_range(name, bytes.len() as u64..end as u64)?);
    }
    bytes.truncate(end);
    Ok(bytes)
}
