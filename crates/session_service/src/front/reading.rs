//! The second place of a session: statements that only read run in this process, over a node that
//! follows the one that writes (S8).
//!
//! ```text
//!   a statement ── reads, and nothing keeps it at home ──► the place for reading
//!        │                                    │ it cannot answer, and has given nothing
//!        └── anything else ──► home ◄─────────┘
//! ```
//!
//! No read costs a message. The place is opened at the first read, and again after something was
//! set up at home.

use std::sync::Arc;
use std::time::Duration;

use firn_wire::{Status, WireError};

use super::Route;
use super::session::{FrontSession, PreparedText, Reading, Side};

/// How long a session reads at home after a place for reading has refused it: an account that is
/// new at home may not be known there yet.
const REFUSED_FOR: Duration = Duration::from_secs(1);
/// Errors of a node that cannot answer what another one can: it does not write, it is not as new as
/// the statement wants, it has not kept what the statement's snapshot sees.
const NOT_THERE: [u16; 3] = [1290, 1412, 1429];

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

    /// Runs a statement at the place for reading, and says whether the client has a part of its
    /// answer. `None`: it has to run at home.
    pub(super) fn read_apart<T>(
        &mut self,
        route: Route,
        run: impl FnOnce(&mut dyn firn_wire::Session) -> (Result<T, WireError>, bool),
    ) -> Option<Result<T, WireError>> {
        if !self.may_read_apart(route) {
            return None;
        }
        self.open_reading()?;
        let FrontSession { reading, kept, interruption, .. } = self;
        let reading = reading.as_mut()?;
        let (last, knows) = (kept.last, reading.known.last);
        let ran = reading.place.with(|session| {
            if knows != last {
                session.take_last(&last);
            }
            let (done, has_begun) = run(session);
            (done, has_begun, session.status(), session.carried())
        });
        let Some((done, has_begun, status, carried)) = ran else {
            self.leave_reading();
            return None;
        };
        let has_ended = reading.place.all.is_over();
        let cannot_answer = match &done {
            Err(WireError::Refused(error)) => has_ended || NOT_THERE.contains(&error.code),
            Err(WireError::Fatal(_)) => has_ended,
            Ok(_) | Err(WireError::Lost(_)) => false,
        };
        if cannot_answer && !has_begun && interruption.wanted().is_none() {
            // What the session has learnt there is forgotten.
            self.leave_reading();
            return None;
        }
        kept.status = status;
        kept.take_over(carried);
        reading.known = kept.known();
        reading.was_last = true;
        Some(done)
    }

    /// Whether nothing keeps a statement at home.
    fn may_read_apart(&self, route: Route) -> bool {
        let may = match route {
            Route::Reads => true,
            Route::Follows => self.reading.as_ref().is_some_and(|reading| reading.was_last),
            Route::Writer => false,
        };
        let kept = &self.kept;
        let is_in_transaction = kept.status.contains(Status::IN_TRANSACTION)
            || !kept.status.contains(Status::AUTOCOMMIT);
        may && !is_in_transaction && !kept.is_bound && !kept.sees_server
    }

    /// Makes sure that the place for reading is open and knows the session. `None`: there is none.
    pub(super) fn open_reading(&mut self) -> Option<()> {
        if let Some(reading) = &self.reading {
            let knows_all = reading.known.version == self.kept.version;
            if knows_all && !reading.place.all.is_over() {
                return Some(());
            }
            self.leave_reading();
        }
        let now = self.shared.now();
        if now < self.reads_at_home_until {
            return None;
        }
        let reader = self.shared.reader()?;
        let (document, last) = (self.kept.document.as_deref(), &self.kept.last);
        let opened = reader.service.resume(self.login.clone(), document, last);
        let mut session = match opened {
            Ok(session) => session,
            Err(error) => {
                tracing::debug!(%error, "a session reads at the node that writes");
                self.reads_at_home_until = now.saturating_add(REFUSED_FOR);
                return None;
            }
        };
        // What it was opened with is known.
        session.carried();
        let place = reader.enter(session);
        let canceller = Arc::clone(&place.session.canceller);
        self.interruption.set_local(Side::Reader, Some(canceller));
        self.reading = Some(Reading { place, known: self.kept.known(), was_last: false });
        Some(())
    }

    /// A statement has run at home.
    pub(super) fn ran_at_home(&mut self) {
        if let Some(reading) = &mut self.reading {
            reading.was_last = false;
        }
    }

    pub(super) fn close_reading(&mut self, statement: u32) {
        if let Some(reading) = &self.reading {
            reading.place.with(|session| session.close_statement(statement));
        }
    }

    /// Gives up the place for reading.
    pub(super) fn leave_reading(&mut self) {
        if let Some(reading) = self.reading.take() {
            self.interruption.set_local(Side::Reader, None);
            reading.place.leave();
        }
    }
}
