//! Reads everything that an archive has, and names what is damaged or missing.

use firn_base::Lsn;
use firn_format::page::PageBuf;
use firn_format::redo::{Change, Group};

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::format::{FormatError, ImageSet, LogEntry, PackEntry, PageHead, SetEntry, decompress};
use crate::names;

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The object.
    pub name: String,
    /// What is wrong with it.
    pub what: String,
}

/// What was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    pub objects: u64,
    pub bytes: u64,
    /// Groups of log.
    pub groups: u64,
    pub images: u64,
    pub findings: Vec<Finding>,
}

/// Reads and checks every object that the newest manifest names; calls `progress` after each with
/// the bytes so far and in all. Blocks for I/O.
///
/// # Errors
/// If the store does not answer. Damage is in the report.
pub fn verify(
    archive: &Archive,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<VerifyReport, ArchiveError> {
    let total = archive.manifest().size_bytes();
    let mut run = Run { archive, report: VerifyReport::default(), total, progress };
    for (name, error) in &archive.damaged {
        run.find(name, error);
    }
    for entry in &archive.manifest().log {
        run.log(entry)?;
    }
    for entry in &archive.manifest().sets {
        run.set(entry)?;
    }
    Ok(run.report)
}

struct Run<'a> {
    archive: &'a Archive,
    report: VerifyReport,
    total: u64,
    progress: &'a mut dyn FnMut(u64, u64),
}

impl Run<'_> {
    fn find(&mut self, name: &str, what: &dyn std::fmt::Display) {
        self.report.findings.push(Finding { name: name.to_owned(), what: what.to_string() });
    }

    fn count(&mut self, bytes: u64) {
        self.report.objects += 1;
        self.report.bytes += bytes;
        (self.progress)(self.report.bytes, self.total);
    }

    /// Turns damage into a finding; passes other errors on.
    fn found<T>(
        &mut self,
        name: &str,
        result: Result<T, ArchiveError>,
    ) -> Result<Option<T>, ArchiveError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(ArchiveError::Damaged { reason, .. }) => {
                self.find(name, &reason);
                Ok(None)
            }
            Err(ArchiveError::Objects(error)) if error.is_not_found() => {
                self.find(name, &"it is missing");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn log(&mut self, entry: &LogEntry) -> Result<(), ArchiveError> {
        let name = names::log(entry);
        let object = self.archive.log_object(entry);
        if let Some(object) = self.found(&name, object)? {
            match check_groups(entry.from, &object.groups) {
                Ok(groups) => self.report.groups += groups,
                Err(what) => self.find(&name, &what),
            }
        }
        self.count(entry.size_bytes);
        Ok(())
    }

    fn set(&mut self, entry: &SetEntry) -> Result<(), ArchiveError> {
        let name = names::set_of(entry);
        let set = self.archive.image_set(entry);
        let Some(set) = self.found(&name, set)? else { return Ok(()) };
        for (number, pack) in set.packs.iter().enumerate() {
            let name = names::pack(set.start, set.writer, number);
            let bytes = self.archive.store().get(&name).map_err(ArchiveError::from);
            if let Some(bytes) = self.found(&name, bytes)? {
                self.pack(&name, &set, (pack, entry.end), &bytes);
            }
            self.count(pack.size_bytes);
        }
        Ok(())
    }

    fn pack(&mut self, name: &str, set: &ImageSet, (pack, end): (&PackEntry, Lsn), bytes: &[u8]) {
        let head = match PageHead::decode(bytes) {
            Ok(head) => head,
            Err(error) => return self.find(name, &error),
        };
        let ends = head.images().first().zip(head.images().last());
        let is_it = (head.database, head.set) == (set.database, set.start)
            && head.images().len() == pack.images as usize
            && ends.is_some_and(|ends| (ends.0.page, ends.1.page) == (pack.first, pack.last));
        if !is_it {
            return self.find(name, &FormatError::Invalid);
        }
        let mut page = PageBuf::boxed();
        for entry in head.images() {
            let stored = head.image_range(entry).and_then(|range| bytes.get(range));
            let read = stored.ok_or(FormatError::Short);
            let read = read.and_then(|stored| decompress(stored, entry.page, &mut page));
            match read {
                Ok(()) if page.lsn() == entry.lsn && entry.lsn <= end => self.report.images += 1,
                Ok(()) => {
                    let what = format!("{}: the image is as of {}", entry.page, page.lsn());
                    self.find(name, &what);
                }
                Err(error) => self.find(name, &format!("{}: {error}", entry.page)),
            }
        }
    }
}

/// Counts the groups of an object, each of whose records must be valid.
fn check_groups(from: Lsn, groups: &[u8]) -> Result<u64, String> {
    let (mut rest, mut at, mut count) = (groups, from, 0);
    while !rest.is_empty() {
        let damaged = |what: &dyn std::fmt::Display| format!("log group at {at}: {what}");
        let group = Group::parse(rest).map_err(|damage| damaged(&damage))?;
        for record in group.records() {
            let record = record.map_err(|damage| damaged(&damage))?;
            Change::decode(&record).map_err(|damage| damaged(&damage))?;
        }
        rest = &rest[group.length_bytes() as usize..];
        at = at.advance(group.length_bytes());
        count += 1;
    }
    Ok(count)
}
