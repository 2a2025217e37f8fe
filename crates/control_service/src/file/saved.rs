//! What the frames of the file say.

use firn_base::Lsn;
use firn_consensus::{Base, Content, Entry, Index, MemberId, Members, Saved, Term, Vote, Write};
use firn_control::Catalog;
use serde::{Deserialize, Serialize};

use super::frame::{Frame, FrameKind, NoFrame, has_frame};

/// An entry of the control group's log with its bytes, which are an encoded proposal or none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredEntry {
    pub entry: Entry,
    pub bytes: Vec<u8>,
}

/// A write that a member asked for, but for one that begins the log again: that makes the file
/// again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredWrite {
    /// Term and member, 0 for none.
    pub vote: Option<(Term, u64)>,
    /// The first entry that is no part of the log any more.
    pub truncate: Option<Index>,
    pub append: Vec<StoredEntry>,
    /// The last entry that is known to be durable in the group.
    pub durable: Index,
}

/// Everything that a member has to keep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whole {
    /// Term and member, 0 for none.
    pub vote: (Term, u64),
    /// The entry that the catalog includes last.
    pub base: Base,
    pub durable: Index,
    /// A snapshot of the catalog.
    pub catalog: Vec<u8>,
    /// The entries after the base.
    pub entries: Vec<StoredEntry>,
}

impl StoredEntry {
    /// Whether the bytes are those of the entry.
    fn is_sound(&self) -> bool {
        match self.entry.content {
            Content::Log { bytes, checksum } => {
                bytes == self.bytes.len() as u64
                    && bytes > 0
                    && checksum == crc32c::crc32c(&self.bytes)
            }
            Content::Mark | Content::Members(_) => self.bytes.is_empty(),
        }
    }
}

impl StoredWrite {
    pub(crate) fn new(write: &Write, append: Vec<StoredEntry>) -> StoredWrite {
        StoredWrite {
            vote: write.vote.map(plain_vote),
            truncate: write.truncate.map(|(index, _)| index),
            append,
            durable: write.durable,
        }
    }
}

fn plain_vote(vote: Vote) -> (Term, u64) {
    (vote.term, vote.member.map_or(0, |id| id.0))
}

impl Whole {
    /// What a founder begins with.
    pub(crate) fn founding(members: Members, catalog: &Catalog) -> Whole {
        Whole::beginning(Base::founding(Term(1), Lsn::FIRST, members), catalog)
    }

    /// What a member begins with that knows nothing of its group.
    pub(crate) fn joining(catalog: &Catalog) -> Whole {
        Whole::beginning(Base::joining(), catalog)
    }

    fn beginning(base: Base, catalog: &Catalog) -> Whole {
        Whole {
            vote: (base.term, 0),
            durable: base.index,
            base,
            catalog: catalog.snapshot(),
            entries: Vec::new(),
        }
    }

    /// What a member starts from.
    #[must_use]
    pub fn saved(&self) -> Saved {
        let (term, member) = self.vote;
        let member = Some(MemberId(member)).filter(|id| id.0 != 0);
        Saved {
            vote: Vote { term, member },
            base: self.base.clone(),
            entries: self.entries.iter().map(|one| one.entry.clone()).collect(),
            durable: self.durable,
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// What is damaged.
    pub(super) fn of_frames(bytes: &[u8]) -> Result<Whole, String> {
        let (first, mut at) = Frame::read(bytes).map_err(|error| match error {
            NoFrame::Torn => "its first frame is not whole".to_owned(),
            NoFrame::Version(found) => version_text(found),
        })?;
        let whole = (first.kind == FrameKind::Whole && first.sequence == 1).then(|| first.value());
        let whole: Option<Whole> = whole.flatten();
        let mut whole = whole.ok_or("its first frame is not one that a control node writes")?;
        let mut sequence = 1;
        while at < bytes.len() {
            match Frame::read(&bytes[at..]) {
                Ok((frame, length)) => {
                    sequence += 1;
                    whole.take(&frame, sequence)?;
                    at += length;
                }
                Err(NoFrame::Version(found)) => return Err(version_text(found)),
                Err(NoFrame::Torn) if has_frame(&bytes[at..]) => {
                    return Err(format!("a synced frame at {at} is not whole"));
                }
                Err(NoFrame::Torn) => break,
            }
        }
        whole.check()?;
        Ok(whole)
    }

    fn take(&mut self, frame: &Frame<'_>, sequence: u64) -> Result<(), String> {
        let is_next = frame.kind == FrameKind::Writes && frame.sequence == sequence;
        let writes: Option<Vec<StoredWrite>> = is_next.then(|| frame.value()).flatten();
        let foreign = || format!("frame {sequence} is not one that a control node writes");
        for write in writes.ok_or_else(foreign)? {
            self.take_write(write).ok_or_else(foreign)?;
        }
        Ok(())
    }

    fn take_write(&mut self, write: StoredWrite) -> Option<()> {
        self.vote = write.vote.unwrap_or(self.vote);
        if let Some(index) = write.truncate {
            let kept = index.0.checked_sub(self.base.index.0 + 1)?;
            self.entries.truncate(usize::try_from(kept).ok()?);
        }
        self.entries.extend(write.append);
        self.durable = self.durable.max(write.durable);
        Some(())
    }

    /// What the member itself does not check when it starts.
    fn check(&self) -> Result<(), String> {
        match self.entries.iter().find(|one| !one.is_sound()) {
            Some(one) => Err(format!("entry {} does not match its checksum", one.entry.index)),
            None => Ok(()),
        }
    }
}

fn version_text(found: u16) -> String {
    format!("it has version {found}, and this build reads 1; update Firn on this node")
}

/// For the fuzz target: any bytes are refused, or are a file.
pub(crate) fn check_any_bytes(bytes: &[u8]) {
    if let Ok(whole) = Whole::of_frames(bytes) {
        let again = Frame::of(FrameKind::Whole, 1, &whole);
        assert_eq!(Whole::of_frames(&again), Ok(whole));
    }
}
