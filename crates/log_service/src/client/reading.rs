//! Reads of a range: one member after the other, until one has it.

use std::time::Duration;

use firn_api::{LogError, LogPiece, PageFilter};
use firn_base::Lsn;

use super::Shared;
use crate::message::{Reply, Request};

/// What came of asking one member.
enum Attempt {
    /// Log up to this position.
    Read(Lsn, Vec<u8>),
    /// The member does not have the position any more; its log begins here.
    Gone(Lsn),
    /// The member has nothing after the position, although it is durable.
    Behind,
    Failed(LogError),
}

impl Shared {
    /// See [`firn_api::LogStore::read`]. One answer has less than what is asked for if that is more
    /// than a member sends at once.
    pub(super) fn read(
        &self,
        from: Lsn,
        limit: usize,
        into: &mut Vec<u8>,
    ) -> Result<Lsn, LogError> {
        let deadline = self.now().saturating_add(self.options.patience);
        // A member other than those heard of last may have made the position durable.
        if from > self.durable() {
            self.wait_for_news(deadline);
        }
        if from >= self.durable() {
            return self.at_the_end(from);
        }
        loop {
            let (mut gone, mut error) = (Vec::new(), None);
            for member in self.order(from) {
                let left = deadline.saturating_sub(self.now());
                if left.is_zero() {
                    break;
                }
                match self.read_from(member, from, limit, left.min(self.options.attempt)) {
                    Attempt::Read(end, log) => {
                        into.extend_from_slice(&log);
                        return Ok(end);
                    }
                    Attempt::Gone(begin) => gone.push(begin),
                    Attempt::Behind => {}
                    Attempt::Failed(failure) => error = Some(failure),
                }
            }
            if gone.len() == self.state.lock().members.present().count() {
                gone.sort_unstable();
                return Err(LogError::OutOfRange {
                    position: from,
                    from: gone[0],
                    to: self.durable(),
                });
            }
            if self.is_closed() || self.now() >= deadline {
                return Err(match error {
                    Some(error @ (LogError::Damaged { .. } | LogError::Unreadable { .. })) => error,
                    _ => self.unavailable(&format!("no member has returned the log at {from}")),
                });
            }
            self.wait_for_news(deadline);
        }
    }

    /// A position at or after the durable end, as far as it is known.
    fn at_the_end(&self, from: Lsn) -> Result<Lsn, LogError> {
        let (to, begin) = (self.durable(), self.state.lock().members.truncated());
        match from > to {
            true => {
                let from_kept = begin.unwrap_or_default();
                Err(LogError::OutOfRange { position: from, from: from_kept, to })
            }
            false => Ok(from),
        }
    }

    /// Waits for a while, or until a member has answered.
    fn wait_for_news(&self, deadline: Duration) {
        let left = deadline.saturating_sub(self.now());
        let ticket = self.changed.listen();
        self.want_renewal();
        self.changed.wait(ticket, Some(left.min(self.options.renewal)));
    }

    fn read_from(&self, member: usize, from: Lsn, limit: usize, timeout: Duration) -> Attempt {
        let limit_bytes = u32::try_from(limit).unwrap_or(u32::MAX);
        let (end, log) = match self.ask(member, &Request::Read { from, limit_bytes }, timeout) {
            Ok((Reply::Log { positions, end }, log)) if end <= positions.durable => (end, log),
            Ok(_) => {
                let reason = "it answered something else than what was asked".to_owned();
                self.failed(member, &reason);
                return Attempt::Failed(LogError::Unavailable { reason });
            }
            Err(LogError::OutOfRange { from: begin, .. }) if begin > from => {
                return Attempt::Gone(begin);
            }
            Err(LogError::OutOfRange { .. }) => return Attempt::Behind,
            Err(error) => {
                self.failed(member, &error);
                return Attempt::Failed(error);
            }
        };
        match LogPiece::new(from, log, &PageFilter::All) {
            Ok(piece) if piece.to != end => {
                let what = format!("log up to {} came as log up to {end}", piece.to);
                self.failed(member, &what);
                Attempt::Failed(LogError::Damaged { at: format!("log position {from}"), what })
            }
            Ok(_) if end == from => Attempt::Behind,
            Ok(piece) => Attempt::Read(end, piece.into_bytes()),
            Err((at, damage)) => {
                self.failed(member, &damage);
                let at = format!("log position {at}");
                Attempt::Failed(LogError::Damaged { at, what: damage.to_string() })
            }
        }
    }
}
