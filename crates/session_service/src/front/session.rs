//! A client's session, as its front has it: what it keeps of it, and the node where it is open.
//! [`super::reading`] has its second place, for statements that only read.
//!
//! ```text
//!   nowhere ── a command ──► open at a node ── the attachment is over ──► lost ──► nowhere
//!                                                 a transaction was open: 1213 ◄──┤
//!                                                 bound to the node: the end   ◄──┘
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use firn_wire::{
    CancelReason, Canceller, Carried, ColumnDefinition, ColumnFlags, ColumnType, CommandIdentity,
    CommittedAnswer, Completion, EncodedColumns, Execution, FieldDefinition, LastResults, Login,
    PeerAddress, Prepared, Query, Replies, ServerError, Session, Status, WireError,
};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::attachment::Attachment;
use super::local::{LocalPlace, LocalSessions};
use super::{
    Backend, LOGIN_TIMEOUT, Route, Shared, StatementClass, nobody, unreadable, was_not_executed,
};
use crate::SESSION_SERVICE;
use crate::message::{
    Ask, Bytes, Command, Done, Field, LoginFacts, NamedValue, Outcome, Reason, Resumed, Value,
    decode, encode,
};

/// How long the next writer is waited for to say what became of a command: longer than for a command
/// that can be sent again, because the client would have to find it out by itself.
const FATE_PATIENCE: Duration = Duration::from_secs(30);

/// What other threads use to interrupt the session's command.
#[derive(Default)]
pub(super) struct Interruption {
    /// Why the command is to end, as the number of a [`Reason`] plus one; 0: it is not.
    wanted: AtomicU8,
    /// The same, for what waits for the client's file.
    pub(super) is_wanted: Arc<AtomicBool>,
    /// What is running at another node, and where.
    running: Mutex<Option<Running>>,
    /// Those of its sessions in this process, by [`Side`].
    local: Mutex<[Option<Arc<dyn Canceller>>; 2]>,
}

/// The places of a session.
#[derive(Clone, Copy)]
pub(super) enum Side {
    /// Its home.
    Writer,
    Reader,
}

#[derive(Clone)]
pub(super) struct Running {
    pub(super) attachment: Arc<Attachment>,
    pub(super) session: u32,
    pub(super) number: u64,
}

const REASONS: [CancelReason; 4] = [
    CancelReason::KillQuery,
    CancelReason::KillConnection,
    CancelReason::Disconnected,
    CancelReason::Shutdown,
];

impl Canceller for Interruption {
    fn cancel(&self, reason: CancelReason) {
        let code = REASONS.iter().position(|one| *one == reason).unwrap_or(0) as u8 + 1;
        self.wanted.store(code, Ordering::SeqCst);
        self.is_wanted.store(true, Ordering::SeqCst);
        let local = self.local.lock().clone();
        // One that runs nothing is not disturbed.
        local.iter().flatten().for_each(|local| local.cancel(reason));
        self.tell();
    }

    fn is_confirming(&self) -> bool {
        let local = self.local.lock().clone();
        local.iter().flatten().any(|local| local.is_confirming())
    }
}

impl Interruption {
    /// A command of the client begins: an interruption that was meant for the last one has no
    /// effect on it.
    pub(super) fn begin(&self) {
        if self.wanted() == Some(CancelReason::KillQuery) {
            self.wanted.store(0, Ordering::SeqCst);
            self.is_wanted.store(false, Ordering::SeqCst);
        }
    }

    pub(super) fn wanted(&self) -> Option<CancelReason> {
        let code = self.wanted.load(Ordering::SeqCst);
        REASONS.get(usize::from(code.checked_sub(1)?)).copied()
    }

    /// A session in this process was opened or given up.
    pub(super) fn set_local(&self, side: Side, canceller: Option<Arc<dyn Canceller>>) {
        let before = std::mem::replace(&mut self.local.lock()[side as usize], canceller);
        drop(before);
    }

    pub(super) fn set_running(&self, running: Option<Running>) {
        let before = std::mem::replace(&mut *self.running.lock(), running);
        drop(before);
    }

    /// Tells the node that the command is to end, if that needs no wait. The thread that waits for
    /// the answer repeats it.
    pub(super) fn tell(&self) {
        let running = self.running.lock().clone();
        if let (Some(reason), Some(running)) = (self.wanted(), running) {
            let Running { attachment, session, number } = running;
            let reason = Reason::from(reason);
            let ask = Ask::Cancel { front: attachment.front, session, number, reason };
            attachment.links.control.cast_at_once(SESSION_SERVICE, encode(&ask).into());
        }
    }
}

/// See the module documentation.
pub(super) struct FrontSession {
    pub(super) shared: Arc<Shared>,
    pub(super) login: Login,
    pub(super) place: Option<Place>,
    /// What the place knows of the session.
    pub(super) known: Known,
    /// Commands that were sent to places before: two of a session never have the same number, so
    /// that what became of one can be found out.
    commands: u64,
    /// Where statements run that only read.
    pub(super) reading: Option<Reading>,
    /// Until then no place for reading is looked for, because one has refused the session.
    pub(super) reads_at_home_until: Duration,
    pub(super) interruption: Arc<Interruption>,
    pub(super) kept: Kept,
    /// Prepared statements that the client has closed since the last command.
    pub(super) closes: Vec<u32>,
    /// The texts of prepared statements, by their numbers.
    pub(super) texts: FxHashMap<u32, PreparedText>,
}

/// Where statements run that only read.
pub(super) struct Reading {
    pub(super) place: LocalPlace,
    pub(super) known: Known,
    /// Whether the last statement has run here.
    pub(super) was_last: bool,
}

/// A prepared statement.
#[derive(Clone)]
pub(super) struct PreparedText {
    pub(super) text: Arc<[u8]>,
    pub(super) route: Route,
}

/// Where the session is open.
pub(super) enum Place {
    Local(LocalPlace),
    Remote {
        attachment: Arc<Attachment>,
        /// The number of the last command.
        number: u64,
    },
}

impl Place {
    fn is_over(&self) -> bool {
        match self {
            Place::Local(place) => place.is_over(),
            Place::Remote { attachment, .. } => attachment.is_over(),
        }
    }

    /// Whether the node wants sessions to go on elsewhere (S7).
    fn is_leaving(&self) -> bool {
        match self {
            Place::Local(place) => place.all.is_leaving(),
            Place::Remote { attachment, .. } => attachment.is_leaving(),
        }
    }
}

/// What the front keeps of the session (S3).
pub(super) struct Kept {
    pub(super) status: Status,
    pub(super) document: Option<Vec<u8>>,
    /// Counts the documents.
    pub(super) version: u64,
    pub(super) last: LastResults,
    pub(super) is_bound: bool,
    pub(super) sees_server: bool,
}

/// How much of what is kept a place knows.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Known {
    /// That of the document.
    pub(super) version: u64,
    pub(super) last: LastResults,
}

/// What became of a command that a node was given.
pub(super) enum Lost {
    /// The node has not executed it.
    NotExecuted,
    /// It may have. `has_answered`: the client has a part of the answer.
    Unknown { reason: String, has_answered: bool },
    /// The client is gone, or what came is no answer.
    Broken(WireError),
}

impl FrontSession {
    /// Opens a session at a node. Blocks.
    ///
    /// # Errors
    /// The node's, or 1429 if there is none in time.
    pub(super) fn open(
        shared: &Arc<Shared>,
        login: Login,
        document: Option<Vec<u8>>,
        last: LastResults,
    ) -> Result<FrontSession, ServerError> {
        let kept = Kept {
            status: Status::AUTOCOMMIT,
            document,
            version: 0,
            last,
            is_bound: false,
            sees_server: false,
        };
        let mut session = FrontSession {
            shared: Arc::clone(shared),
            login,
            place: None,
            known: Known::default(),
            commands: 0,
            reading: None,
            reads_at_home_until: Duration::ZERO,
            interruption: Arc::default(),
            kept,
            closes: Vec::new(),
            texts: FxHashMap::default(),
        };
        if shared.live().is_none() && session.open_reading().is_some() {
            return Ok(session);
        }
        let deadline = shared.deadline();
        match session.settle(deadline) {
            Ok(()) => Ok(session),
            Err(WireError::Refused(error) | WireError::Fatal(error)) => Err(error),
            Err(WireError::Lost(_)) => Err(nobody()),
        }
    }

    /// Makes sure that the session is open at a node.
    ///
    /// # Errors
    /// 1213 if the session's transaction is lost, 1053 if the session is, 1429 if there is no node.
    fn settle(&mut self, deadline: Duration) -> Result<(), WireError> {
        if let Some(place) = &self.place {
            let stays = !place.is_leaving() || !self.kept.may_leave();
            let knows_all = self.known.version == self.kept.version;
            if stays && knows_all && !place.is_over() {
                return Ok(());
            }
            match place.is_over() {
                true => self.move_on()?,
                // It is opened again with what was set up elsewhere.
                false => self.leave(),
            }
        }
        let had_transaction = self.kept.status.contains(Status::IN_TRANSACTION);
        loop {
            let gives_up = || self.interruption.wanted().is_some();
            let Some(backend) = self.shared.backend(deadline, gives_up) else {
                return Err(match self.interruption.wanted() {
                    Some(CancelReason::KillQuery) => interrupted().into(),
                    Some(_) => WireError::Lost(std::io::ErrorKind::ConnectionAborted.into()),
                    None => nobody().into(),
                });
            };
            let is_open = match backend {
                Backend::Local(local) => self.open_here(&local)?,
                Backend::Remote(attachment) => self.open_at(&attachment)?,
            };
            match is_open {
                true => {
                    self.known = self.kept.known();
                    let has_it = self.kept.status.contains(Status::IN_TRANSACTION);
                    return if had_transaction && !has_it {
                        Err(rolled_back().into())
                    } else {
                        Ok(())
                    };
                }
                false if self.shared.now() >= deadline => return Err(nobody().into()),
                false => {}
            }
        }
    }

    /// The session is not at its node any more. If the node was leaving, the session's transaction
    /// was handed over, or the next node knows that it was not (S7).
    fn move_on(&mut self) -> Result<(), WireError> {
        match &self.place {
            Some(place) if place.is_leaving() && !self.kept.is_bound => {
                self.part();
                Ok(())
            }
            _ => self.lose(),
        }
    }

    /// The node of the session is gone.
    fn lose(&mut self) -> Result<(), WireError> {
        self.leave();
        if self.kept.is_bound {
            let message = "The node that ran this session is gone, and with it the session's \
                           temporary tables and locks; connect again";
            return Err(WireError::Fatal(ServerError::new(1053, b"08S01", message)));
        }
        if self.kept.status.contains(Status::IN_TRANSACTION) {
            self.kept.status.remove(Status::IN_TRANSACTION | Status::IN_TRANSACTION_READONLY);
            return Err(rolled_back().into());
        }
        Ok(())
    }

    /// Forgets where the session was. The node is not told that the session has ended: it would end
    /// the transaction, too.
    fn part(&mut self) {
        match self.place.take() {
            Some(Place::Remote { attachment, number }) => {
                self.commands = number;
                attachment.forget(self.login.connection.id());
            }
            Some(Place::Local(_)) => self.interruption.set_local(Side::Writer, None),
            None => {}
        }
    }

    /// Gives the session up where it is.
    fn leave(&mut self) {
        match self.place.take() {
            Some(Place::Remote { attachment, number }) => {
                self.commands = number;
                attachment.leave(self.login.connection.id());
            }
            Some(Place::Local(place)) => {
                self.interruption.set_local(Side::Writer, None);
                place.leave();
            }
            None => {}
        }
    }

    /// The client is gone. Its transaction may have been handed over to a node where its session was
    /// not opened.
    fn abandon_transaction(&self) {
        if !self.kept.status.contains(Status::IN_TRANSACTION) {
            return;
        }
        let connection = self.login.connection.id();
        match self.shared.live() {
            Some(Backend::Local(local)) => local.service.abandon_transaction(connection),
            Some(Backend::Remote(attachment)) => attachment.leave(connection),
            None => {}
        }
    }

    /// Opens the session in this process; false if it does not run sessions any more.
    fn open_here(&mut self, local: &Arc<LocalSessions>) -> Result<bool, WireError> {
        let Kept { document, last, status, .. } = &self.kept;
        let login = self.login.clone();
        let opened = match self.kept.is_new() {
            true => local.service.open(login),
            false => local.service.resume(login, document.as_deref(), last),
        };
        let mut session = match opened {
            Ok(session) => session,
            Err(_) if local.is_over() => return Ok(false),
            Err(error) => return Err(WireError::Fatal(error)),
        };
        if status.contains(Status::IN_TRANSACTION) {
            session.take_transaction();
        }
        self.kept.take(&mut *session);
        let place = local.enter(session);
        place.set_bound(self.kept.is_bound);
        let canceller = Arc::clone(&place.session.canceller);
        self.interruption.set_local(Side::Writer, Some(canceller));
        self.place = Some(Place::Local(place));
        self.close_here();
        Ok(true)
    }

    /// Closes prepared statements that the client has closed while the session was nowhere.
    fn close_here(&mut self) {
        let FrontSession { place, closes, .. } = self;
        if let Some(Place::Local(place)) = place {
            let close = |session: &mut dyn Session| {
                closes.drain(..).for_each(|statement| session.close_statement(statement));
            };
            place.with(close);
        }
    }

    /// Runs a command in this process; `None` if the session is not here.
    fn here<T>(
        &mut self,
        run: impl FnOnce(&mut dyn Session) -> Result<T, WireError>,
    ) -> Option<Result<T, WireError>> {
        if self.known.version != self.kept.version {
            return None;
        }
        let news = self.news();
        let FrontSession { place, known, kept, .. } = self;
        let Some(Place::Local(place)) = place else { return None };
        let done = place.with(|session| {
            if let Some(last) = news {
                session.take_last(&last);
            }
            let done = run(session);
            if done.is_err() && session.was_cut() {
                // It runs where the session goes on, from what is kept (S9).
                return None;
            }
            kept.take(session);
            place.set_bound(kept.is_bound);
            *known = kept.known();
            Some(done)
        });
        self.ran_at_home();
        done.flatten()
    }

    /// The results of the last statements, if the place does not know them.
    pub(super) fn news(&self) -> Option<LastResults> {
        (self.known.last != self.kept.last).then_some(self.kept.last)
    }

    /// Opens the session at a node; false if the node cannot be asked.
    fn open_at(&mut self, attachment: &Arc<Attachment>) -> Result<bool, WireError> {
        let Kept { document, last, status, .. } = &self.kept;
        let resumed = (!self.kept.is_new()).then(|| Resumed {
            has_document: document.is_some(),
            last: (*last).into(),
            has_transaction: status.contains(Status::IN_TRANSACTION),
        });
        let ask = Ask::Open { front: attachment.front, login: facts(&self.login), resumed };
        let mut body = firn_link::Body::from(encode(&ask));
        if let Some(document) = document {
            body.push(document.clone());
        }
        let asked = attachment.links.commands.call(SESSION_SERVICE, body, LOGIN_TIMEOUT);
        let answer = match asked {
            Ok(answer) => answer,
            Err(error) => {
                tracing::debug!(%error, "a session could not be opened");
                attachment.doubt(&error);
                // It may be open all the same. If not, its transaction waits for where it will be.
                if !was_not_executed(&error) {
                    attachment.leave(self.login.connection.id());
                }
                return Ok(false);
            }
        };
        let (done, _) = decode::<Done>(&answer).map_err(|error| unreadable(&error))?;
        if let Outcome::Refused(fault) | Outcome::Fatal(fault) = done.outcome {
            return Err(WireError::Fatal(fault.into()));
        }
        attachment.enter(&self.login.connection);
        let number = self.commands;
        self.place = Some(Place::Remote { attachment: Arc::clone(attachment), number });
        self.keep(&done);
        Ok(true)
    }

    /// Keeps what an answer says of the session.
    fn keep(&mut self, done: &Done) {
        self.kept.status = done.status();
        self.kept.take_over(Carried {
            document: done.document.as_ref().map(|document| document.0.clone()),
            last: done.last.into(),
            is_bound: done.is_bound,
            sees_server: done.sees_server,
        });
        self.known = self.kept.known();
        let control = &self.login.connection;
        if done.wait_timeout_ms != u64::MAX {
            control.set_wait_timeout(Duration::from_millis(done.wait_timeout_ms));
        }
        if done.ends {
            control.end_after_answer();
        }
    }

    /// Runs a command at the node, at another one if the first is gone and that does no harm (S4).
    /// `text` is the statement's. `None`: the session is open in this process now, and the command
    /// has to be run there.
    fn command(
        &mut self,
        command: &Command,
        body: &[u8],
        text: Option<&[u8]>,
        mut replies: Option<&mut Replies<'_>>,
    ) -> Result<Option<Outcome>, WireError> {
        let mut deadline = self.shared.deadline();
        loop {
            self.settle(deadline)?;
            if let Some(Place::Local(_)) = &self.place {
                return Ok(None);
            }
            let began = self.shared.now();
            let error = match self.run(command, body, replies.as_deref_mut()) {
                Ok(done) => match done.outcome.unconfirmed() {
                    Some(reason) => {
                        Lost::Unknown { reason: reason.to_owned(), has_answered: false }
                    }
                    None => {
                        self.closes.clear();
                        self.keep(&done);
                        self.ran_at_home();
                        return self.outcome(done.outcome).map(Some);
                    }
                },
                Err(error) => error,
            };
            match error {
                Lost::Broken(error) => return Err(error),
                Lost::NotExecuted => {
                    let now = self.shared.now();
                    if self.place.as_ref().is_some_and(Place::is_leaving) {
                        // How long it ran before it was cut (S9) is not a wait for a node.
                        deadline = deadline.saturating_add(now.saturating_sub(began));
                    }
                    self.move_on()?;
                    if now >= deadline {
                        return Err(nobody().into());
                    }
                }
                Lost::Unknown { reason, has_answered } => {
                    let class = self.class(command, text);
                    if has_answered || !self.can_be_found_out(class) {
                        self.judge(class, has_answered, &reason)?;
                    } else if let Some(committed) = self.find_out(class, &reason)? {
                        let replies = replies.as_deref_mut().ok_or_else(nobody)?;
                        return self.answer_late(&committed, replies).map(Some);
                    }
                }
            }
        }
    }

    /// Whether the command is one transaction at most, whose commit leaves a note.
    fn can_be_found_out(&self, class: StatementClass) -> bool {
        let is_open = self.kept.status.contains(Status::IN_TRANSACTION);
        let is_one = match class {
            StatementClass::Writes => !is_open && self.kept.status.contains(Status::AUTOCOMMIT),
            StatementClass::Commits => is_open,
            _ => false,
        };
        // One that is bound to its node ends with it, whatever became of the command.
        is_one && !self.kept.is_bound
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
        let Some(Place::Remote { attachment, number }) = &self.place else {
            return Err(unknown(reason).into());
        };
        let (front, number) = (attachment.front, *number);
        let command = CommandIdentity { front, session: self.login.connection.id(), number };
        self.leave();
        self.kept.status.remove(Status::IN_TRANSACTION | Status::IN_TRANSACTION_READONLY);
        let fate = self.shared.fate(command, self.shared.now().saturating_add(FATE_PATIENCE));
        match fate {
            Ok(Some(committed)) => Ok(Some(committed)),
            Ok(None) if class == StatementClass::Commits => Err(rolled_back().into()),
            Ok(None) => Ok(None),
            Err(error) => {
                tracing::warn!(%error, "it cannot be found out whether a command was executed");
                Err(unknown(reason).into())
            }
        }
    }

    /// Answers a command that has committed before its node was lost.
    fn answer_late(
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

    /// What a command does, as far as that matters when its outcome is not known.
    fn class(&self, command: &Command, text: Option<&[u8]>) -> StatementClass {
        match command {
            Command::Query { .. } | Command::Execute { .. } => {
                let judge = &self.shared.options.judge;
                text.map_or(StatementClass::Other, |text| judge(text))
            }
            // These change nothing that outlives the session.
            Command::Prepare { .. }
            | Command::Statistics
            | Command::FieldList { .. }
            | Command::InitDb => StatementClass::Reads,
            Command::Reset | Command::Kill { .. } => StatementClass::Other,
        }
    }

    /// The node of a running command is gone. Returns if the command can be run again (S4).
    fn judge(
        &mut self,
        class: StatementClass,
        has_answered: bool,
        reason: &str,
    ) -> Result<(), WireError> {
        let status = self.kept.status;
        let was_in_transaction = status.contains(Status::IN_TRANSACTION);
        let begins_one = !status.contains(Status::AUTOCOMMIT);
        let is_lost = match class {
            // The client has rows that it cannot get again.
            StatementClass::Reads => was_in_transaction || (has_answered && begins_one),
            StatementClass::Writes | StatementClass::StaysInTransaction => {
                was_in_transaction || begins_one
            }
            StatementClass::Commits | StatementClass::Begins | StatementClass::Other => false,
        };
        if is_lost {
            self.kept.status.insert(Status::IN_TRANSACTION);
            return self.lose();
        }
        self.kept.status.remove(Status::IN_TRANSACTION | Status::IN_TRANSACTION_READONLY);
        self.lose()?;
        match class {
            StatementClass::Reads if !has_answered => Ok(()),
            StatementClass::Begins if !has_answered && !was_in_transaction => Ok(()),
            StatementClass::Reads => Err(cut_off().into()),
            _ => Err(unknown(reason).into()),
        }
    }

    /// The outcome, or the error that it is.
    fn outcome(&mut self, outcome: Outcome) -> Result<Outcome, WireError> {
        match outcome {
            Outcome::Refused(fault) => Err(WireError::Refused(fault.into())),
            Outcome::Fatal(fault) => Err(WireError::Fatal(fault.into())),
            Outcome::Lost => Err(WireError::Lost(std::io::ErrorKind::ConnectionAborted.into())),
            outcome => Ok(outcome),
        }
    }

    /// Runs a command that has an answer; false if it has to be run in this process.
    fn answered(
        &mut self,
        command: &Command,
        body: &[u8],
        text: Option<&[u8]>,
        replies: &mut Replies<'_>,
    ) -> Result<bool, WireError> {
        let outcome = self.command(command, body, text, Some(&mut *replies))?;
        let Some(outcome) = outcome else { return Ok(false) };
        let cursor = match outcome {
            Outcome::Cursor { status, warnings } => {
                let status = Status::from_bits_truncate(status);
                Some(firn_wire::CursorEnd { status, warnings })
            }
            _ => None,
        };
        replies.end_relay(cursor);
        Ok(true)
    }
}

impl Kept {
    /// Whether the login says all.
    fn is_new(&self) -> bool {
        self.document.is_none()
            && self.last == LastResults::default()
            && !self.status.contains(Status::IN_TRANSACTION)
    }

    /// Whether the session can go on at another node as it is.
    fn may_leave(&self) -> bool {
        !self.status.contains(Status::IN_TRANSACTION) && !self.is_bound
    }

    /// Takes over what a session of this process tells.
    fn take(&mut self, session: &mut dyn Session) {
        self.status = session.status();
        self.take_over(session.carried());
    }

    pub(super) fn take_over(&mut self, carried: Carried) {
        let Carried { document, last, is_bound, sees_server } = carried;
        (self.last, self.is_bound, self.sees_server) = (last, is_bound, sees_server);
        if document.is_some() {
            self.document = document;
            self.version += 1;
        }
    }

    /// What a place knows that has told all of it.
    pub(super) fn known(&self) -> Known {
        Known { version: self.version, last: self.last }
    }
}

impl Drop for FrontSession {
    fn drop(&mut self) {
        self.leave_reading();
        self.leave();
        self.abandon_transaction();
    }
}

/// The transaction of the session is lost.
fn rolled_back() -> ServerError {
    let message = "The node that ran the transaction is gone, and the transaction was rolled back; \
                   try restarting transaction";
    ServerError::new(1213, b"40001", message)
}

/// The client has a part of the rows of a statement that only read.
fn cut_off() -> ServerError {
    let message = "The node that ran the statement is gone in the middle of its rows; run it again";
    ServerError::new(1105, b"HY000", message)
}

/// It is not known whether the command was executed.
fn unknown(reason: &str) -> ServerError {
    let message = format!(
        "It is unknown whether the statement was executed, because the node that ran it is gone; \
         look before you repeat it ({reason})"
    );
    ServerError::new(1105, b"HY000", message)
}

pub(super) fn interrupted() -> ServerError {
    ServerError::new(1317, b"70100", "Query execution was interrupted")
}

fn facts(login: &Login) -> LoginFacts {
    LoginFacts {
        connection: login.connection.id(),
        peer: match login.peer() {
            PeerAddress::Tcp(address) => Some(*address),
            PeerAddress::Unix => None,
        },
        user: login.user.clone(),
        account: login.account.clone(),
        schema: login.schema.clone(),
        collation: login.collation,
        capabilities: login.capabilities.bits(),
        attributes: login.attributes.clone(),
        tls: login.tls.as_ref().map(|tls| (tls.version.to_owned(), tls.cipher.clone())),
    }
}

impl Session for FrontSession {
    fn query(&mut self, query: Query<'_>, replies: &mut Replies<'_>) -> Result<(), WireError> {
        self.interruption.begin();
        let apart = self.read_apart(self.route(query.text), |session| {
            let done = session.query(query, &mut *replies);
            (done, replies.has_begun())
        });
        if let Some(done) = apart {
            return done;
        }
        loop {
            if let Some(done) = self.here(|session| session.query(query, &mut *replies)) {
                return done;
            }
            let attributes = query.attributes.iter().map(NamedValue::from).collect();
            let command = Command::Query { multi_statements: query.multi_statements, attributes };
            if self.answered(&command, query.text, Some(query.text), replies)? {
                return Ok(());
            }
        }
    }

    fn prepare(&mut self, statement: u32, text: &[u8]) -> Result<Prepared, WireError> {
        self.interruption.begin();
        let route = self.route(text);
        let apart = self.read_apart(route, |session| (session.prepare(statement, text), false));
        if let Some(done) = apart {
            return done.inspect(|_| self.was_prepared(statement, text, route));
        }
        loop {
            if let Some(done) = self.here(|session| session.prepare(statement, text)) {
                return done.inspect(|_| self.was_prepared(statement, text, route));
            }
            let command = Command::Prepare { statement };
            match self.command(&command, text, None, None)? {
                None => {}
                Some(Outcome::Prepared { parameters, columns, warnings }) => {
                    let (parameters, columns) = (columns_of(parameters)?, columns_of(columns)?);
                    self.was_prepared(statement, text, route);
                    return Ok(Prepared { parameters, columns, warnings });
                }
                Some(_) => return Err(unreadable(&"a statement is not described").into()),
            }
        }
    }

    fn execute(
        &mut self,
        execution: Execution<'_>,
        replies: &mut Replies<'_>,
    ) -> Result<(), WireError> {
        self.interruption.begin();
        let prepared = self.texts.get(&execution.statement);
        let (text, route) = match prepared {
            Some(PreparedText { text, route }) => (Some(Arc::clone(text)), *route),
            None => (None, Route::Writer),
        };
        let apart = self.read_apart(route, |session| {
            let done = session.execute(execution, &mut *replies);
            (done, replies.has_begun())
        });
        if let Some(done) = apart {
            return done;
        }
        loop {
            if let Some(done) = self.here(|session| session.execute(execution, &mut *replies)) {
                return done;
            }
            let parameters: Vec<Value> = execution.parameters.iter().map(Value::from).collect();
            let command = Command::Execute {
                statement: execution.statement,
                wants_cursor: replies.wants_cursor(),
                attributes: execution.attributes.iter().map(NamedValue::from).collect(),
            };
            let body = postcard::to_allocvec(&parameters).map_err(|error| unreadable(&error))?;
            if self.answered(&command, &body, text.as_deref(), replies)? {
                return Ok(());
            }
        }
    }

    fn close_statement(&mut self, statement: u32) {
        self.texts.remove(&statement);
        self.closes.push(statement);
        self.close_here();
        self.close_reading(statement);
    }

    fn init_db(&mut self, schema: &[u8], replies: &mut Replies<'_>) -> Result<(), WireError> {
        self.interruption.begin();
        loop {
            if let Some(done) = self.here(|session| session.init_db(schema, &mut *replies)) {
                return done;
            }
            if self.answered(&Command::InitDb, schema, None, replies)? {
                return Ok(());
            }
        }
    }

    fn reset(&mut self, replies: &mut Replies<'_>) -> Result<(), WireError> {
        self.interruption.begin();
        self.texts.clear();
        self.closes.clear();
        self.leave_reading();
        loop {
            if let Some(done) = self.here(|session| session.reset(&mut *replies)) {
                return done;
            }
            if self.answered(&Command::Reset, &[], None, replies)? {
                return Ok(());
            }
        }
    }

    fn status(&self) -> Status {
        self.kept.status
    }

    fn statistics(&mut self) -> String {
        self.interruption.begin();
        loop {
            if let Some(Ok(line)) = self.here(|session| Ok(session.statistics())) {
                return line;
            }
            match self.command(&Command::Statistics, &[], None, None) {
                Ok(None) => {}
                Ok(Some(Outcome::Line(line))) => return line,
                // The protocol has no error here; the next command finds it.
                _ => return "Uptime: 0".to_owned(),
            }
        }
    }

    fn kill(&mut self, connection: u32) -> Result<(), WireError> {
        self.interruption.begin();
        loop {
            if let Some(done) = self.here(|session| session.kill(connection)) {
                return done;
            }
            if self.command(&Command::Kill { connection }, &[], None, None)?.is_some() {
                return Ok(());
            }
        }
    }

    fn field_list(
        &mut self,
        table: &[u8],
        pattern: &[u8],
    ) -> Result<Vec<FieldDefinition>, WireError> {
        self.interruption.begin();
        loop {
            if let Some(done) = self.here(|session| session.field_list(table, pattern)) {
                return done;
            }
            let command = Command::FieldList { table: table.into(), pattern: pattern.into() };
            match self.command(&command, &[], None, None)? {
                None => {}
                Some(Outcome::Fields(fields)) => {
                    let fields = fields.into_iter();
                    let definitions = fields.map(|field| Ok(field_definition(field)?));
                    return definitions.collect();
                }
                Some(_) => return Err(unreadable(&"columns are not described").into()),
            }
        }
    }

    fn carried(&mut self) -> Carried {
        let Kept { document, last, is_bound, sees_server, .. } = &self.kept;
        let (last, is_bound, sees_server) = (*last, *is_bound, *sees_server);
        Carried { document: document.clone(), last, is_bound, sees_server }
    }

    fn canceller(&self) -> Arc<dyn Canceller> {
        Arc::clone(&self.interruption) as _
    }
}

fn columns_of(packets: Bytes) -> Result<EncodedColumns, WireError> {
    Ok(EncodedColumns::from_packets(packets.0).map_err(|error| unreadable(&error))?)
}

fn field_definition(field: Field) -> Result<FieldDefinition, ServerError> {
    let unknown = || unreadable(&"a column has an unknown type");
    let [schema, table, original_table, name, original_name] = field.names;
    let column = ColumnDefinition {
        schema,
        table,
        original_table,
        name,
        original_name,
        collation: field.collation,
        length_bytes: field.length_bytes,
        column_type: ColumnType::from_code(field.column_type).ok_or_else(unknown)?,
        flags: ColumnFlags::from_bits_truncate(field.flags),
        decimals: field.decimals,
    };
    Ok(FieldDefinition { column, default: field.default.map(|bytes| bytes.0) })
}
