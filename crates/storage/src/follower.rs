//! Readers that follow a log kept in one place, and their leases on it.

use std::sync::Arc;
use std::time::Duration;

use firn_api::{FollowOptions, Followed, LogError, LogFollower, LogPiece};
use firn_base::Lsn;
use firn_base::event::Event;
use firn_format::redo::GroupDamage;

use crate::leases::{Lease, Leases};

/// A log that can be followed.
pub trait FollowedLog: Send + Sync {
    /// The end of the durable log. Does not block.
    fn durable(&self) -> Lsn;

    /// Notified when more log is durable, and when no more will be.
    fn advanced(&self) -> &Event;

    /// Whether no more log will come because the store was closed.
    ///
    /// # Errors
    /// The other reason why no more log will come.
    fn is_closed(&self) -> Result<bool, LogError>;

    fn leases(&self) -> &Leases;

    /// See [`firn_api::LogStore::read`].
    ///
    /// # Errors
    /// As there.
    fn read(&self, from: Lsn, limit_bytes: usize, into: &mut Vec<u8>) -> Result<Lsn, LogError>;

    /// The error for a group that was read and is invalid.
    fn damaged(&self, at: Lsn, damage: &GroupDamage) -> LogError;
}

/// A reader and its lease.
pub struct Follower<L> {
    log: Arc<L>,
    lease: Lease,
    options: FollowOptions,
    position: Lsn,
}

impl<L: FollowedLog> Follower<L> {
    /// Registers a reader.
    ///
    /// # Errors
    /// [`LogError::OutOfRange`].
    pub fn new(log: Arc<L>, options: FollowOptions) -> Result<Follower<L>, LogError> {
        let (name, from, limit) = (&options.name, options.from, options.hold_limit_bytes);
        let lease = log.leases().take(name, from, limit, log.durable())?;
        Ok(Follower { log, lease, position: from, options })
    }

    fn is_at_end(&self) -> bool {
        self.options.until.is_some_and(|until| self.position >= until)
    }

    fn read(&mut self, limit_bytes: usize) -> Result<LogPiece, LogError> {
        let mut bytes = Vec::new();
        let left = self.options.until.map_or(u64::MAX, |until| until.since(self.position));
        let limit = limit_bytes.min(usize::try_from(left).unwrap_or(usize::MAX));
        let end = match self.log.read(self.position, limit, &mut bytes) {
            Ok(end) => end,
            // That the reader was dropped says more than that its log is gone.
            Err(error) => return Err(self.lease.check().err().unwrap_or(error)),
        };
        let piece = LogPiece::new(self.position, bytes, &self.options.pages);
        let piece = piece.map_err(|(at, damage)| self.log.damaged(at, &damage))?;
        self.position = end;
        Ok(piece)
    }
}

impl<L: FollowedLog> LogFollower for Follower<L> {
    fn next(&mut self, limit_bytes: usize, timeout: Duration) -> Result<Followed, LogError> {
        self.lease.check()?;
        if self.is_at_end() {
            return Ok(Followed::End);
        }
        let position = self.position;
        let has_news =
            || self.log.durable() > position || !matches!(self.log.is_closed(), Ok(false));
        self.log.advanced().wait_until(Some(timeout), has_news);
        if self.log.durable() > position {
            return self.read(limit_bytes).map(Followed::Piece);
        }
        Ok(if self.log.is_closed()? { Followed::End } else { Followed::Nothing })
    }

    fn position(&self) -> Lsn {
        self.position
    }

    fn skip_to(&mut self, lsn: Lsn) {
        self.position = self.position.max(lsn);
    }

    fn check(&self) -> Result<(), LogError> {
        self.lease.check()
    }

    fn release(&mut self, lsn: Lsn) {
        self.lease.release(lsn.min(self.position));
    }
}
