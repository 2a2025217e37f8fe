//! A log in memory, for stores in tests.

use firn_base::Lsn;
use firn_format::redo::Group;

use crate::log_store::{LogError, Watermarks};

/// Groups from a position on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptLog {
    from: Lsn,
    bytes: Vec<u8>,
    /// Of the truncated log.
    watermarks: Watermarks,
}

impl Default for KeptLog {
    fn default() -> KeptLog {
        KeptLog { from: Lsn::FIRST, bytes: Vec::new(), watermarks: Watermarks::default() }
    }
}

impl KeptLog {
    /// Where the first group begins.
    #[must_use]
    pub fn from(&self) -> Lsn {
        self.from
    }

    /// Where the last group ends.
    #[must_use]
    pub fn end(&self) -> Lsn {
        self.from.advance(self.bytes.len() as u64)
    }

    /// The bytes, to which whole groups may be appended.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Drops everything after `end`, a group boundary.
    pub fn cut(&mut self, end: Lsn) {
        self.bytes.truncate(end.since(self.from) as usize);
    }

    /// The highest watermarks, including those of truncated log.
    #[must_use]
    pub fn watermarks(&self) -> Watermarks {
        let mut watermarks = self.watermarks;
        self.groups(self.from).for_each(|(_, group)| raise(&mut watermarks, &group));
        watermarks
    }

    /// Drops the groups that end at or before `floor`.
    pub fn truncate(&mut self, floor: Lsn) {
        let (mut from, mut watermarks) = (self.from, self.watermarks);
        for (start, group) in self.groups(self.from) {
            let end = start.advance(group.length_bytes());
            if end > floor {
                break;
            }
            raise(&mut watermarks, &group);
            from = end;
        }
        self.bytes.drain(..from.since(self.from) as usize);
        (self.from, self.watermarks) = (from, watermarks);
    }

    /// As [`LogStore::read`](crate::LogStore::read), up to `durable`.
    ///
    /// # Errors
    /// [`LogError::OutOfRange`].
    pub fn read(
        &self,
        from: Lsn,
        durable: Lsn,
        limit_bytes: usize,
        into: &mut Vec<u8>,
    ) -> Result<Lsn, LogError> {
        if from < self.from || from > durable {
            return Err(LogError::OutOfRange { position: from, from: self.from, to: durable });
        }
        let mut end = from;
        for (start, group) in self.groups(from) {
            let next = start.advance(group.length_bytes());
            if next > durable || (end > from && next.since(from) > limit_bytes as u64) {
                break;
            }
            end = next;
        }
        let range = from.since(self.from) as usize..end.since(self.from) as usize;
        into.extend_from_slice(&self.bytes[range]);
        Ok(end)
    }

    /// The groups from the boundary `from` on, with the position of each.
    fn groups(&self, from: Lsn) -> impl Iterator<Item = (Lsn, Group<'_>)> {
        let mut position = from;
        std::iter::from_fn(move || {
            let rest = &self.bytes[position.since(self.from) as usize..];
            let group = Group::parse(rest).ok()?;
            let start = position;
            position = position.advance(group.length_bytes());
            Some((start, group))
        })
    }
}

fn raise(watermarks: &mut Watermarks, group: &Group<'_>) {
    watermarks.raise_by_group(group).expect("tests append good groups");
}
