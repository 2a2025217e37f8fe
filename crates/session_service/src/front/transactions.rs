//! Transactions that begin at the place for reading, and move home (S10).
//!
//! ```text
//!   BEGIN ─┬─► the place for reading ── only reads ──────────────────────► COMMIT there
//!          │              └── anything else: described ──► taken up at home ──► COMMIT at home
//!          └─► home, if the session's transactions have lately written
//! ```
//!
//! What moves is the snapshot and what was read from it. It stays open where it was until the
//! home has it, so that the rows that it sees are kept. A place that ends describes its
//! transactions first ([`Event::Described`](crate::message::Event::Described)).

use std::sync::Arc;
use std::time::Duration;

use firn_wire::{Status, WireError};

use super::attachment::Attachment;
use super::outcome::rolled_back;
use super::place::Place;
use super::reading::Reading;
use super::run::{Answered, Lost, News};
use super::session::FrontSession;
use super::{Route, nobody};
use crate::message::{Command, Outcome};

/// How long a place that ends has to say what its transactions are.
const DESCRIBED_WITHIN: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(2);

/// What the transactions of a session have lately done: it says where the next one begins.
#[derive(Debug, Default)]
pub(super) struct Habit {
    /// 0 to 3; from 2 on they write.
    writing: u8,
    /// Whether the open one does not only read.
    has_written: bool,
}

impl Habit {
    pub(super) fn expects_reads(&self) -> bool {
        self.writing < 2
    }

    /// A statement has run at home. `was_open`, `is_open`: whether a transaction was and is.
    fn note(&mut self, route: Route, was_open: bool, is_open: bool) {
        self.has_written &= was_open;
        self.has_written |= (was_open || is_open) && route == Route::Writer;
        if was_open && !is_open {
            self.end();
        }
    }

    /// The open transaction has ended.
    pub(super) fn end(&mut self) {
        let has_written = std::mem::take(&mut self.has_written);
        self.writing = match has_written {
            true => (self.writing + 1).min(3),
            false => self.writing.saturating_sub(1),
        };
    }
}

impl FrontSession {
    /// Whether the open transaction is at the place for reading.
    pub(super) fn reads_in_transaction(&self) -> bool {
        self.reading.as_ref().is_some_and(|reading| reading.has_transaction)
    }

    /// A statement was sent home, which had that status before.
    pub(super) fn note_habit(&mut self, route: Route, before: Status) {
        let [was_open, is_open] =
            [before, self.kept.status].map(|status| status.contains(Status::IN_TRANSACTION));
        self.habit.note(route, was_open, is_open);
    }

    /// Has the transaction go on at home, if it is at the place for reading.
    ///
    /// # Errors
    /// 1213 if it is lost; 1429 if there is no home, and it stays where it is.
    pub(super) fn bring_home(&mut self) -> Result<(), WireError> {
        if !self.reads_in_transaction() {
            return Ok(());
        }
        let Some(described) = self.describe() else {
            self.leave_reading();
            return Err(rolled_back().into());
        };
        let status = self.kept.status;
        self.kept.end_transaction();
        let taken = match self.take_up(&described) {
            Err(NotTaken::NoHome(error)) => {
                self.kept.status = status;
                return Err(error);
            }
            Err(NotTaken::Refused(error)) => Err(error),
            Ok(status) => Ok(status),
        };
        // It is somewhere else now, or lost.
        self.leave_reading();
        self.kept.status = taken?;
        Ok(())
    }

    /// The transaction at the place for reading, or at one that has ended.
    fn describe(&mut self) -> Option<Vec<u8>> {
        let Reading { place, .. } = self.reading.as_ref()?;
        match place {
            Place::Local(place) => place
                .with(|session| session.describe_transaction())
                .unwrap_or_else(|| place.take_described()),
            Place::Remote(attachment) => {
                let attachment = Arc::clone(attachment);
                let asked =
                    self.run_at(&attachment, News::default(), &Command::Describe, &[], None);
                match asked {
                    Ok(answered) => match answered.done.outcome {
                        Outcome::Described(described) => described.map(|bytes| bytes.0),
                        _ => None,
                    },
                    Err(_) => self.described_by(&attachment),
                }
            }
        }
    }

    /// What a node has said that has ended the session.
    fn described_by(&self, attachment: &Attachment) -> Option<Vec<u8>> {
        let until = self.shared.now().saturating_add(DESCRIBED_WITHIN);
        loop {
            // It is over after everything that it has said has been taken.
            let is_last = attachment.is_over() || self.shared.now() >= until;
            let described = attachment.take_described(self.login.connection.id());
            if described.is_some() || is_last {
                return described;
            }
            firn_base::task::sleep(LOOK);
        }
    }

    /// Goes on at home with a transaction; returns the session's status there.
    fn take_up(&mut self, described: &[u8]) -> Result<Status, NotTaken> {
        let deadline = self.shared.deadline();
        loop {
            self.settle(deadline).map_err(NotTaken::NoHome)?;
            let taken = match &self.place {
                Some(Place::Local(place)) => place.with(|session| {
                    let taken = session.take_up_transaction(described);
                    taken.map(|()| session.status()).map_err(WireError::from)
                }),
                Some(Place::Remote(attachment)) => {
                    let attachment = Arc::clone(attachment);
                    self.take_up_at(&attachment, described)
                }
                None => None,
            };
            if let Some(taken) = taken {
                return taken.map_err(NotTaken::Refused);
            }
            if self.shared.now() >= deadline {
                return Err(NotTaken::NoHome(nobody().into()));
            }
        }
    }

    /// The same at another node. `None` if that one does not have the session any more.
    fn take_up_at(
        &mut self,
        attachment: &Arc<Attachment>,
        described: &[u8],
    ) -> Option<Result<Status, WireError>> {
        let asked = self.run_at(attachment, News::default(), &Command::TakeUp, described, None);
        match asked {
            Ok(Answered { done, .. }) => {
                let status = done.status();
                Some(match done.outcome {
                    Outcome::Answered => Ok(status),
                    outcome if outcome.lost_with_node().is_some() => Err(rolled_back().into()),
                    outcome => outcome.into_result().and_then(|_| Err(rolled_back().into())),
                })
            }
            Err(Lost::NotExecuted) => {
                attachment.begin_leaving();
                None
            }
            // It may be open there, where it ends with the session.
            Err(Lost::Unknown(_) | Lost::Broken(_)) => {
                self.leave();
                None
            }
        }
    }
}

/// Why a transaction is not at home.
enum NotTaken {
    /// There is none, so that it stays where it is.
    NoHome(WireError),
    /// It is lost.
    Refused(WireError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_begin_where_the_last_ones_have_ended() {
        let mut habit = Habit::default();
        let mut end = |route| {
            habit.note(Route::Begins, false, true);
            habit.note(route, true, true);
            habit.note(Route::Ends, true, false);
            habit.expects_reads()
        };
        assert!(end(Route::Writer), "one alone says little");
        assert!(!end(Route::Writer));
        assert!(!end(Route::Writer));
        assert!(!end(Route::Ends));
        assert!(end(Route::Reads));
        assert!(!end(Route::Writer));
    }
}
