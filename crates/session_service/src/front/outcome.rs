//! What becomes of a command whose node was lost while it had it (S4).
//!
//! ```text
//!   no answer, or one that says that the node does not write any more
//!     ├─ nothing was done ───────────► outside of a transaction it runs at the next node
//!     ├─ it may have committed ──────► the next writer is asked for its note
//!     ├─ it only reads ──────────────► it runs again, if the client has nothing of the answer
//!     ├─ it stays in a transaction ──► error 1213
//!     └─ otherwise ──────────────────► the client is told that nobody knows
//! ```

use std::time::Duration;

use firn_wire::{
    CommandIdentity, CommittedAnswer, Completion, Replies, ServerError, Status, WireError,
};

use super::place::Place;
use super::run::Unknown;
use super::session::FrontSession;
use super::{ASK_AGAIN, Judge, StatementClass};
use crate::message::{Fault, Outcome};

/// How long the next writer is waited for to say what became of a command: longer than for a
/// command that can be sent again, because the client would have to find it out by itself.
const FATE_PATIENCE: Duration = Duration::from_secs(30);

/// What a command is, as far as that matters when its node is lost.
#[derive(Clone, Copy)]
pub(super) enum Kind<'a> {
    /// It runs a statement; `None`: an unknown one.
    Statement(Option<&'a [u8]>),
    /// It changes nothing that outlives the session.
    Harmless,
    Other,
}

impl Kind<'_> {
    fn class(self, judge: &Judge) -> StatementClass {
        match self {
            Kind::Statement(Some(text)) => judge(text),
            Kind::Harmless => StatementClass::Reads,
            Kind::Statement(None) | Kind::Other => StatementClass::Other,
        }
    }

    /// Whether it is one statement: what it has answered before an error counts for nothing.
    pub(super) fn is_one_statement(self, judge: &Judge) -> bool {
        self.class(judge) != StatementClass::Other
    }
}

impl FrontSession {
    /// The node of a command is lost. Returns the answer of one that has committed; `None`: it has
    /// not been executed, or does no harm twice; the caller runs it again.
    ///
    /// # Errors
    /// For the client.
    pub(super) fn resolve(
        &mut self,
        kind: Kind<'_>,
        unknown: &Unknown,
    ) -> Result<Option<CommittedAnswer>, WireError> {
        let class = kind.class(&self.shared.options.judge);
        if let Some(Place::Remote(attachment)) = &self.place
            && unknown.fault.is_some()
        {
            // It does not know yet that it does not write any more, or has just learnt it.
            attachment.begin_leaving();
        }
        let is_resolved = match unknown.has_answered || !self.can_be_found_out(class) {
            true => self.judge(class, unknown).map(|()| None),
            false if unknown.did_nothing() => self.begin_again(class).map(|()| None),
            false => self.find_out(class, &unknown.reason),
        };
        if unknown.fault.is_some() && matches!(is_resolved, Ok(None)) {
            firn_base::task::sleep(ASK_AGAIN);
        }
        is_resolved
    }

    /// Whether the command is one transaction at most, whose commit leaves a note.
    fn can_be_found_out(&self, class: StatementClass) -> bool {
        let is_open = self.kept.in_transaction();
        let is_one = match class {
            StatementClass::Writes => !is_open && self.kept.status.contains(Status::AUTOCOMMIT),
            StatementClass::Commits => is_open,
            _ => false,
        };
        // One that is bound to its node ends with it, whatever became of the command.
        is_one && !self.kept.is_bound
    }

    /// A command that is one transaction was not executed.
    fn begin_again(&mut self, class: StatementClass) -> Result<(), WireError> {
        self.leave();
        self.kept.end_transaction();
        match class {
            StatementClass::Commits => Err(rolled_back().into()),
            _ => Ok(()),
        }
    }

    /// Asks the next writer what became of the command whose node is gone. `None`: it was not
    /// executed, and can be run again.
    ///
    /// # Errors
    /// 1213 for a transaction that was not committed; 1105 if nobody knows.
    fn find_out(
        &mut self,
        class: StatementClass,
        reason: &str,
    ) -> Result<Option<CommittedAnswer>, WireError> {
        let Some(Place::Remote(attachment)) = &self.place else {
            return Err(nobody_knows(reason).into());
        };
        let (front, number) = (attachment.front, self.commands);
        let command = CommandIdentity { front, session: self.login.connection.id(), number };
        self.leave();
        self.kept.end_transaction();
        let fate = self.shared.fate(command, self.shared.now().saturating_add(FATE_PATIENCE));
        match fate {
            Ok(Some(committed)) => Ok(Some(committed)),
            Ok(None) if class == StatementClass::Commits => Err(rolled_back().into()),
            Ok(None) => Ok(None),
            Err(error) => {
                tracing::warn!(%error, "it cannot be found out whether a command was executed");
                Err(nobody_knows(reason).into())
            }
        }
    }

    /// The node of a running command is gone. Returns if the command can be run again (S4).
    fn judge(&mut self, class: StatementClass, unknown: &Unknown) -> Result<(), WireError> {
        let (status, has_answered) = (self.kept.status, unknown.has_answered);
        let was_in_transaction = self.kept.in_transaction();
        let begins_one = !status.contains(Status::AUTOCOMMIT);
        let is_lost = match class {
            // The client has rows that it cannot get again.
            StatementClass::Reads => was_in_transaction || (has_answered && begins_one),
            StatementClass::Writes | StatementClass::StaysInTransaction => {
                was_in_transaction || begins_one
            }
            StatementClass::Commits | StatementClass::Begins => {
                was_in_transaction && unknown.did_nothing()
            }
            StatementClass::Other => false,
        };
        if is_lost {
            self.kept.status.insert(Status::IN_TRANSACTION);
            return self.lose();
        }
        self.kept.end_transaction();
        self.lose()?;
        match class {
            StatementClass::Reads if !has_answered => Ok(()),
            StatementClass::Begins if !has_answered && !was_in_transaction => Ok(()),
            StatementClass::Reads => Err(cut_off().into()),
            _ => Err(match &unknown.fault {
                Some(fault) if !was_in_transaction => WireError::Refused(fault.clone().into()),
                _ => nobody_knows(&unknown.reason).into(),
            }),
        }
    }

    /// Answers a command that has committed before its node was lost.
    pub(super) fn answer_late(
        &mut self,
        committed: &CommittedAnswer,
        replies: &mut Replies<'_>,
    ) -> Result<Outcome, WireError> {
        let affected_rows = match replies.counts_found_rows() {
            true => committed.found_rows,
            false => committed.affected_rows,
        };
        self.kept.last.row_count = i64::try_from(affected_rows).unwrap_or(i64::MAX);
        if committed.last_insert_id != 0 {
            self.kept.last.last_insert_id = committed.last_insert_id;
        }
        replies.ok(&Completion {
            affected_rows,
            last_insert_id: committed.last_insert_id,
            status: self.kept.status,
            info: &committed.info,
            ..Completion::default()
        })?;
        Ok(Outcome::Answered)
    }
}

impl Unknown {
    /// What a node has answered that does not write any more.
    pub(super) fn of(fault: Fault) -> Unknown {
        Unknown { reason: fault.message.clone(), fault: Some(fault), has_answered: false }
    }

    /// Whether nothing was done of a statement that is one transaction.
    fn did_nothing(&self) -> bool {
        self.fault.as_ref().is_some_and(Fault::did_nothing)
    }
}

/// The transaction of the session is lost.
pub(super) fn rolled_back() -> ServerError {
    let message = "The node that ran the transaction is gone, and the transaction was rolled back; \
                   try restarting transaction";
    ServerError::new(1213, b"40001", message)
}

/// The client has a part of the rows of a statement that only read.
pub(super) fn cut_off() -> ServerError {
    let message = "The node that ran the statement is gone in the middle of its rows; run it again";
    ServerError::new(1105, b"HY000", message)
}

/// It is not known whether the command was executed.
fn nobody_knows(reason: &str) -> ServerError {
    let message = format!(
        "It is unknown whether the statement was executed, because the node that ran it is gone; \
         look before you repeat it ({reason})"
    );
    ServerError::new(1105, b"HY000", message)
}
