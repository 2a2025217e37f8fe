//! The second place of a session: statements that only read run over a node that follows the one
//! that writes (S8).
//!
//! ```text
//!   a statement ── reads, and nothing keeps it at home ──► the place for reading
//!        │                                    │ it cannot answer, and has given nothing
//!        └── anything else ──► home ◄─────────┘
//! ```
//!
//! In a process with a replica the place is there, and no read costs a message. Otherwise it is at
//! another node ([`super::readers`]), if the home is, too: a read costs one message in any case
//! then. The place is opened at the first read, and again after something was set up at home.

use std::sync::Arc;
use std::time::Duration;

use firn_wire::{Replies, Status, WireError};

use super::Route;
use super::attachment::Attachment;
use super::outcome::cut_off;
use super::place::{Known, NotOpened, Place, PreparedText, open_at};
use super::run::{Answered, Lost, News, Unknown};
use super::session::{FrontSession, Side};
use crate::message::{Command, Outcome};

/// How long a session reads at home after a place for reading has refused it: an account that is
/// new at home may not be known there yet.
const REFUSED_FOR: Duration = Duration::from_secs(1);

/// Why a place for reading refuses a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// Another node can answer it: this one does not write, is not as new as the statement wants,
    /// or has not kept what the statement's snapshot sees.
    NotThere,
    /// The account has not the right, or has just got it: a node that follows learns of it a moment
    /// later.
    Rights,
    /// As every node would.
    Statement,
}

impl Refusal {
    fn of(code: u16) -> Refusal {
        match code {
            1290 | 1412 | 1429 => Refusal::NotThere,
            1044 | 1142 | 1143 | 1227 | 1370 => Refusal::Rights,
            _ => Refusal::Statement,
        }
    }
}

/// Where statements run that only read.
pub(super) struct Reading {
    pub(super) place: Place,
    pub(super) known: Known,
    /// Whether the session's transaction is here (S10).
    pub(super) has_transaction: bool,
    /// Whether the last statement has run here.
    was_last: bool,
    /// Prepared statements that the client has closed since the last command here.
    closes: Vec<u32>,
}

/// Which process has the place for reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadingPlace {
    /// This one.
    Here,
    Elsewhere,
}

impl FrontSession {
    /// Where a text may run.
    pub(super) fn route(&self, text: &[u8]) -> Route {
        match self.shared.may_read() {
            true => (self.shared.options.router)(text),
            false => Route::Writer,
        }
    }

    pub(super) fn was_prepared(&mut self, statement: u32, text: &[u8], route: Route) {
        self.texts.insert(statement, PreparedText { text: text.into(), route });
    }

    /// Opens the place for reading, if a statement may run there. `None`: it has to run at home.
    pub(super) fn reading_place(&mut self, route: Route) -> Option<ReadingPlace> {
        if !self.may_read_apart(route) {
            return None;
        }
        self.open_reading()
    }

    /// Runs a statement at the place for reading in this process. `None`: it has to run at home.
    /// `take_back` drops the answer so far, if the client has nothing of it.
    pub(super) fn read_here<A, T>(
        &mut self,
        answer: &mut A,
        run: impl FnOnce(&mut dyn firn_wire::Session, &mut A) -> Result<T, WireError>,
        take_back: impl FnOnce(&mut A) -> bool,
    ) -> Option<Result<T, WireError>> {
        let FrontSession { reading, kept, interruption, .. } = self;
        let reading = reading.as_mut()?;
        let Place::Local(place) = &reading.place else { return None };
        let (last, knows) = (kept.last, reading.known.last);
        let ran = place.with(|session| {
            if knows != last {
                session.take_last(&last);
            }
            (run(session, answer), session.status(), session.carried())
        });
        let Some((done, status, carried)) = ran else {
            self.give_up_reading();
            return None;
        };
        let has_ended = place.all.is_over();
        let refusal = match &done {
            Err(WireError::Refused(error)) if !has_ended => Refusal::of(error.code),
            Err(WireError::Refused(_) | WireError::Fatal(_)) if has_ended => Refusal::NotThere,
            Ok(_) | Err(_) => Refusal::Statement,
        };
        let runs_at_home =
            refusal != Refusal::Statement && interruption.wanted().is_none() && take_back(answer);
        if runs_at_home {
            if refusal == Refusal::NotThere {
                // What the session has learnt there is forgotten.
                self.give_up_reading();
            }
            return None;
        }
        kept.status = status;
        kept.take_over(carried);
        self.ran_reading();
        Some(done)
    }

    /// Runs a command at the place for reading at another node. `None`: it has to run at home.
    pub(super) fn read_elsewhere(
        &mut self,
        command: &Command,
        body: &[u8],
        mut replies: Option<&mut Replies<'_>>,
    ) -> Option<Result<Outcome, WireError>> {
        let reading = self.reading.as_ref()?;
        let Place::Remote(attachment) = &reading.place else { return None };
        let attachment = Arc::clone(attachment);
        let last = self.last_for(&reading.known).map(Into::into);
        let news = News { last, closes: reading.closes.clone() };
        let ran = self.run_at(&attachment, news, command, body, replies.as_deref_mut());
        match ran.map(|answered| (self.refusal_of(&answered), answered)) {
            Ok((Refusal::Statement, answered)) => {
                if let Err(error) = answered.pass_on(replies) {
                    return Some(Err(error));
                }
                self.keep(&answered.done);
                self.ran_reading();
                if let Some(reading) = &mut self.reading {
                    reading.closes.clear();
                }
                Some(answered.done.outcome.into_result())
            }
            Ok((Refusal::Rights, _)) => None,
            Err(Lost::Broken(error)) => Some(Err(error)),
            Err(Lost::Unknown(Unknown { has_answered: true, .. })) => {
                self.give_up_reading();
                Some(Err(cut_off().into()))
            }
            Ok((Refusal::NotThere, _)) | Err(Lost::NotExecuted | Lost::Unknown(_)) => {
                // Other sessions ask it again in a while.
                let now = self.shared.now();
                attachment.rest_until(now.saturating_add(REFUSED_FOR));
                self.give_up_reading();
                None
            }
        }
    }

    /// What another node's answer says of that node. If the client has a part of it, it is the
    /// answer.
    fn refusal_of(&self, answered: &Answered) -> Refusal {
        match &answered.done.outcome {
            _ if answered.has_answered || self.interruption.wanted().is_some() => {
                Refusal::Statement
            }
            Outcome::Refused(fault) if fault.did_nothing() => Refusal::NotThere,
            Outcome::Refused(fault) => Refusal::of(fault.code),
            _ => Refusal::Statement,
        }
    }

    /// Whether nothing keeps a statement at home.
    fn may_read_apart(&self, route: Route) -> bool {
        let (kept, has_it) = (&self.kept, self.reads_in_transaction());
        let may = match route {
            Route::Reads => true,
            Route::Follows => self.reading.as_ref().is_some_and(|reading| reading.was_last),
            Route::Begins => has_it || self.habit.expects_reads(),
            Route::Ends => has_it,
            Route::Writer => false,
        };
        let is_at_home = kept.in_transaction() && !has_it;
        let begins_there =
            kept.status.contains(Status::AUTOCOMMIT) || has_it || self.habit.expects_reads();
        may && !is_at_home && begins_there && !kept.is_bound && !kept.reads_at_home
    }

    /// A statement has run at the place for reading.
    fn ran_reading(&mut self) {
        let FrontSession { reading, kept, habit, .. } = self;
        let Some(reading) = reading else { return };
        let had_transaction = reading.has_transaction;
        reading.has_transaction = kept.in_transaction();
        if had_transaction && !reading.has_transaction {
            habit.end();
        }
        (reading.known, reading.was_last) = (kept.known(), true);
    }

    /// Makes sure that the place for reading is open and knows the session. `None`: there is none.
    pub(super) fn open_reading(&mut self) -> Option<ReadingPlace> {
        if let Some(reading) = &self.reading {
            if reading.has_transaction {
                return (!reading.place.is_over()).then(|| reading.place.process());
            }
            let knows_all = reading.known.version == self.kept.version;
            if knows_all && self.shared.stays(&reading.place) {
                return Some(reading.place.process());
            }
            self.leave_reading();
        }
        let now = self.shared.now();
        if now < self.reads_at_home_until {
            return None;
        }
        let opened = match self.shared.reader() {
            Some(_) => self.open_reading_here(),
            None => self.open_reading_elsewhere(now),
        };
        let place = match opened? {
            Ok(place) => place,
            Err(error) => {
                tracing::debug!(%error, "a session reads at the node that writes");
                self.reads_at_home_until = now.saturating_add(REFUSED_FOR);
                return None;
            }
        };
        let process = place.process();
        let known = self.kept.known();
        self.reading = Some(Reading {
            place,
            known,
            has_transaction: false,
            was_last: false,
            closes: Vec::new(),
        });
        Some(process)
    }

    fn open_reading_here(&mut self) -> Option<Result<Place, firn_wire::ServerError>> {
        let reader = self.shared.reader()?;
        let (document, last) = (self.kept.document.as_deref(), &self.kept.last);
        let opened = reader.service()?.resume(self.login.clone(), document, last);
        Some(opened.map(|mut session| {
            // What it was opened with is known.
            session.carried();
            let place = reader.enter(session);
            let canceller = Arc::clone(&place.session.canceller);
            self.interruption.set_local(Side::Reader, Some(canceller));
            Place::Local(place)
        }))
    }

    fn open_reading_elsewhere(
        &mut self,
        now: Duration,
    ) -> Option<Result<Place, firn_wire::ServerError>> {
        let attachment = self.shared.reader_elsewhere(now)?;
        match open_at(&attachment, &self.login, &self.kept, Some(self.kept.resumed())) {
            // What it was opened with is known.
            Ok(_) => Some(Ok(Place::Remote(attachment))),
            Err(NotOpened::Refused(error)) => Some(Err(error)),
            Err(NotOpened::Unanswered) => {
                attachment.rest_until(now.saturating_add(REFUSED_FOR));
                None
            }
        }
    }

    /// A statement has run at home.
    pub(super) fn ran_at_home(&mut self) {
        if let Some(reading) = &mut self.reading {
            reading.was_last = false;
        }
    }

    pub(super) fn close_reading(&mut self, statement: u32) {
        if let Some(reading) = &mut self.reading {
            match &reading.place {
                Place::Local(place) => {
                    place.with(|session| session.close_statement(statement));
                }
                Place::Remote(_) => reading.closes.push(statement),
            }
        }
    }

    /// The place for reading has not answered. A transaction there is brought home with the next
    /// command that runs there.
    fn give_up_reading(&mut self) {
        if !self.reads_in_transaction() {
            self.leave_reading();
        }
    }

    /// Gives up the place for reading; a transaction there ends.
    pub(super) fn leave_reading(&mut self) {
        if let Some(reading) = self.reading.take() {
            if reading.has_transaction {
                self.kept.end_transaction();
            }
            self.interruption.set_local(Side::Reader, None);
            reading.place.leave(self.login.connection.id());
        }
    }
}

impl Place {
    fn process(&self) -> ReadingPlace {
        match self {
            Place::Local(_) => ReadingPlace::Here,
            Place::Remote(_) => ReadingPlace::Elsewhere,
        }
    }
}

impl Attachment {
    /// Opens no more sessions there until then: it does not answer, or is not as new as wanted.
    fn rest_until(&self, time: Duration) {
        *self.rests_until.lock() = time;
    }
}
