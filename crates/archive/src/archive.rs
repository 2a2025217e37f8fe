//! An archive, as a reader sees it: which moments it covers, and what a restore to one takes.

use std::sync::Arc;

use firn_api::Watermarks;
use firn_base::Lsn;
use firn_format::redo::Group;
use firn_objects::ObjectStore;

use crate::error::ArchiveError;
use crate::format::{
    FRAME_BYTES, FormatError, ImageSet, LogEntry, LogHead, LogObject, Manifest, Mark, ObjectKind,
    SetEntry, head_length,
};
use crate::names;

/// The part of an object that is read first, in bytes: most heads are shorter.
const FIRST_READ_BYTES: u64 = 64 << 10;

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

    /// Where a restore with this plan ends: the end of the last group at or before its target. And
    /// ids below which all were that the database had handed out by then. Blocks for I/O.
    ///
    /// # Errors
    /// An error of the store, or damage.
    pub fn end_of(&self, plan: &RestorePlan) -> Result<(Lsn, Watermarks), ArchiveError> {
        let mut watermarks = plan.base().watermarks;
        let Some((last, others)) = plan.log.split_last() else {
            return Ok((plan.base().start, watermarks));
        };
        for entry in others {
            watermarks.raise(self.log_head(entry)?.watermarks);
        }
        let object = self.log_object(last)?;
        watermarks.raise(object.head.watermarks);
        let (mut rest, mut end) = (object.groups.as_slice(), last.from);
        while !rest.is_empty() {
            let group = self.group(last, rest)?;
            let length = group.length_bytes();
            if end.advance(length) > plan.target {
                break;
            }
            end = end.advance(length);
            rest = &rest[length as usize..];
        }
        Ok((end.max(plan.base().start), watermarks))
    }

    /// The group at the front of bytes of a log object.
    pub(crate) fn group<'a>(
        &self,
        entry: &LogEntry,
        bytes: &'a [u8],
    ) -> Result<Group<'a>, ArchiveError> {
        Group::parse(bytes).map_err(|damage| ArchiveError::Damaged {
            location: self.store.location().to_owned(),
            name: names::log(entry),
            reason: damage.to_string(),
        })
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

    /// The last mark at or before a time, in the log or of a set. A set may know of a later one: an
    /// archiver that ends before it has sent the log up to the set's end takes the log's marks with
    /// it, and the next archiver reads that log without them. Blocks for I/O.
    fn mark_at(&self, time_ms: u64) -> Result<Option<Mark>, ArchiveError> {
        let newest = self.manifest.log_end().unwrap_or(Lsn::MAX);
        let sets = self.manifest.sets.iter();
        let set = sets.rev().find(|set| set.time_ms <= time_ms && set.end <= newest);
        let of_set = set.map(|set| Mark { time_ms: set.time_ms, lsn: set.end });
        let of_log = self.mark_of_log_at(time_ms)?;
        Ok(of_set.into_iter().chain(of_log).max_by_key(|mark| (mark.lsn, mark.time_ms)))
    }

    /// The last mark at or before a time in the log. Blocks for I/O.
    fn mark_of_log_at(&self, time_ms: u64) -> Result<Option<Mark>, ArchiveError> {
        let log = &self.manifest.log;
        let next = log.partition_point(|entry| entry.time_ms <= time_ms);
        let end = log.len().min(next + 1);
        for entry in log[..end].iter().rev() {
            let head = self.log_head(entry)?;
            let mark = head.marks.iter().rev().find(|mark| mark.time_ms <= time_ms);
            if mark.is_some() {
                return Ok(mark.copied());
            }
        }
        Ok(None)
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

#[cfg(test)]
mod tests {
    use super::*;
    use firn_base::{Cts, TrxId};
    use firn_objects::MemoryObjects;
    use firn_storage::local::DatabaseId;

    const DATABASE: DatabaseId = DatabaseId([7; 16]);

    fn watermarks() -> Watermarks {
        Watermarks { trx_id_limit: TrxId(0), cts_limit: Cts(0) }
    }

    fn put_log(store: &dyn ObjectStore, from: u64, marks: &[(u64, u64)], to: u64) -> LogEntry {
        let mut head = LogHead::new(DATABASE, Lsn(from), Lsn(to), watermarks());
        head.marks = marks.iter().map(|&(time_ms, lsn)| Mark { time_ms, lsn: Lsn(lsn) }).collect();
        let time_ms = marks.last().unwrap().0;
        let bytes = LogObject { head, groups: vec![0; (to - from) as usize] }.encode();
        let entry = LogEntry {
            from: Lsn(from),
            to: Lsn(to),
            writer: 1,
            size_bytes: bytes.len() as u64,
            time_ms,
        };
        store.put(&names::log(&entry), &bytes).unwrap();
        entry
    }

    fn set(end: u64, time_ms: u64) -> SetEntry {
        SetEntry {
            start: Lsn(64),
            end: Lsn(end),
            is_full: true,
            writer: 1,
            images: 0,
            size_bytes: 0,
            time_ms,
            watermarks: watermarks(),
        }
    }

    /// The archiver ended with the mark (300, 200) in memory and in its set; the next one saw the
    /// log up to 256 at 500.
    ///
    /// ```text
    ///  time      100        300          500
    ///  log   64──128──┬──────────────────256
    ///  set             ──────200
    /// ```
    #[test]
    fn a_set_knows_a_moment_that_the_log_does_not() {
        let store: Arc<dyn ObjectStore> = Arc::new(MemoryObjects::new(1));
        let mut manifest = Manifest::new(DATABASE, 1, 1000);
        manifest.as_of_ms = 500;
        manifest.log.push(put_log(&*store, 64, &[(100, 128)], 136));
        manifest.log.push(put_log(&*store, 136, &[(500, 256)], 256));
        manifest.sets.push(set(200, 300));
        let archive =
            Archive { store, manifest: Arc::new(manifest), damaged: Vec::new(), highest: 1 };
        let covered = archive.coverage();
        let from = Mark { time_ms: 300, lsn: Lsn(200) };
        assert_eq!(covered, [Coverage { from, to: Mark { time_ms: 500, lsn: Lsn(256) } }]);
        for (time_ms, target) in [(300, 200), (499, 200), (500, 256)] {
            let plan = archive.plan(Moment::Time(time_ms)).unwrap();
            assert_eq!(plan.target, Lsn(target), "at {time_ms}");
        }
        let error = archive.plan(Moment::Time(299)).unwrap_err();
        assert!(matches!(error, ArchiveError::NotCovered { .. }), "{error:?}");
    }
}
