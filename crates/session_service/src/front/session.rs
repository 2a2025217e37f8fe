//! A client's session, as its front has it: what it keeps of it, and the node where it is open.
//! [`super::reading`] has its second place, for statements that only read.
//!
//! ```text
//!   nowhere ── a command ──► open at a node ── the attachment is over ──► lost ──► nowhere
//!      ▲                       │                  a transaction was open: 1213 ◄──┤
//!      └── the node hands over ┘                  bound to the node: the end   ◄──┘
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use firn_wire::{
    CancelReason, Canceller, Carried, ColumnDefinition, ColumnFlags, ColumnType, EncodedColumns,
    Execution, FieldDefinition, LastResults, Login, Prepared, Query, Replies, ServerError, Session,
    Status, WireError,
};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::attachment::Attachment;
use super::local::LocalSessions;
use super::outcome::{Kind, rolled_back};
use super::place::{Kept, Known, NotOpened, Place, PreparedText, open_at};
use super::reading::{Reading, ReadingPlace};
use super::run::{Answered, Lost, News, Unknown};
use super::transactions::Habit;
use super::{Backend, Route, Shared, nobody, unreadable};
use crate::message::{
    Ask, Bytes, Command, Done, Fault, Field, NamedValue, Outcome, Reason, Value, encode,
};

/// The pause before a session that a node does not open is opened again.
const PAUSE: Duration = Duration::from_millis(2);

/// What other threads use to interrupt the session's command.
#[derive(Default)]
pub(super) struct Interruption {
    /// Why the command has to end, as the number of a [`Reason`] plus one; 0: it need not.
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

    /// Tells the node that the command has to end, if that needs no wait. The thread that waits for
    /// the answer repeats it.
    pub(super) fn tell(&self) {
        let running = self.running.lock().clone();
        if let (Some(reason), Some(running)) = (self.wanted(), running) {
            let Running { attachment, session, number } = running;
            let reason = Reason::from(reason);
            let ask = Ask::Cancel { front: attachment.front, session, number, reason };
            attachment.links.control.cast_at_once(attachment.service, encode(&ask).into());
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
    /// Commands that were sent to other nodes: two of a session never have the same number, so that
    /// what became of one can be found out.
    pub(super) commands: u64,
    /// Where statements run that only read.
    pub(super) reading: Option<Reading>,
    /// Until then no place for reading is looked for, because one has refused the session.
    pub(super) reads_at_home_until: Duration,
    /// Since when the command has failed in this process because that does not write any more.
    fails_since: Option<Duration>,
    /// Where transactions begin.
    pub(super) habit: Habit,
    pub(super) interruption: Arc<Interruption>,
    pub(super) kept: Kept,
    /// Prepared statements that the client has closed since the last command.
    pub(super) closes: Vec<u32>,
    /// The texts of prepared statements, by their numbers.
    pub(super) texts: FxHashMap<u32, PreparedText>,
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
        let mut session = FrontSession {
            shared: Arc::clone(shared),
            login,
            place: None,
            known: Known::default(),
            commands: 0,
            reading: None,
            reads_at_home_until: Duration::ZERO,
            fails_since: None,
            habit: Habit::default(),
            interruption: Arc::default(),
            kept: Kept::new(document, last),
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
    pub(super) fn settle(&mut self, deadline: Duration) -> Result<(), WireError> {
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
        let (had_transaction, was_bound) = (self.kept.in_transaction(), self.kept.is_bound);
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
                Backend::Remote(attachment) => self.open_elsewhere(attachment)?,
            };
            match is_open {
                true => {
                    self.known = self.kept.known();
                    if was_bound && !self.kept.is_bound {
                        self.leave();
                        return Err(ended_with_node());
                    }
                    let has_it = self.kept.in_transaction();
                    return if had_transaction && !has_it {
                        Err(rolled_back().into())
                    } else {
                        Ok(())
                    };
                }
                false if self.shared.now() >= deadline => return Err(nobody().into()),
                // The node may not know yet that it does not write any more.
                false => firn_base::task::sleep(PAUSE),
            }
        }
    }

    /// The session is not at its node any more. If the node was leaving, what the session had was
    /// handed over, or the next node knows that it was not (S7).
    fn move_on(&mut self) -> Result<(), WireError> {
        match &self.place {
            Some(place) if place.is_leaving() => {
                self.part();
                Ok(())
            }
            _ => self.lose(),
        }
    }

    /// The node of the session is gone.
    pub(super) fn lose(&mut self) -> Result<(), WireError> {
        self.leave();
        if self.kept.is_bound {
            return Err(ended_with_node());
        }
        if self.kept.in_transaction() {
            self.kept.end_transaction();
            return Err(rolled_back().into());
        }
        Ok(())
    }

    /// Forgets where the session was. The node is not told that the session has ended: it would end
    /// what the session has left, too.
    fn part(&mut self) {
        match self.place.take() {
            Some(Place::Remote(attachment)) => attachment.forget(self.login.connection.id()),
            Some(Place::Local(_)) => self.interruption.set_local(Side::Writer, None),
            None => {}
        }
    }

    /// Gives the session up where it is.
    pub(super) fn leave(&mut self) {
        if let Some(place) = self.place.take() {
            self.interruption.set_local(Side::Writer, None);
            place.leave(self.login.connection.id());
        }
    }

    /// The client is gone. What its session has left may have been handed over to a node where the
    /// session was not opened.
    fn abandon_session(&self) {
        if self.kept.may_leave() {
            return;
        }
        let connection = self.login.connection.id();
        match self.shared.live() {
            Some(Backend::Local(local)) => {
                if let Some(service) = local.service() {
                    service.abandon_session(connection);
                }
            }
            Some(Backend::Remote(attachment)) => attachment.leave(connection),
            None => {}
        }
    }

    /// Opens the session in this process; false if it does not run sessions any more.
    fn open_here(&mut self, local: &Arc<LocalSessions>) -> Result<bool, WireError> {
        let Some(service) = local.service() else { return Ok(false) };
        let Kept { document, last, .. } = &self.kept;
        let login = self.login.clone();
        let opened = match self.kept.is_new() {
            true => service.open(login),
            false => service.resume(login, document.as_deref(), last),
        };
        let mut session = match opened {
            Ok(session) => session,
            Err(error) if local.is_over() || Fault::from(&error).did_nothing() => return Ok(false),
            Err(error) => return Err(WireError::Fatal(error)),
        };
        if !self.kept.may_leave() {
            session.take_left();
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

    /// A command of the client begins.
    fn begin_command(&mut self) {
        self.interruption.begin();
        self.fails_since = None;
    }

    /// Runs a command in this process that has no answer of its own. `None` if the session is not
    /// here, or not any more.
    fn here<T>(
        &mut self,
        kind: Kind<'_>,
        run: impl FnOnce(&mut dyn Session) -> Result<T, WireError>,
    ) -> Option<Result<T, WireError>> {
        let before = self.kept.status;
        let ran = self.ran_here(run)?;
        self.unless_lost(kind, before, ran, |_| true)
    }

    /// Runs a command in this process. `None` if the session is not here, or not any more.
    fn answered_here(
        &mut self,
        kind: Kind<'_>,
        replies: &mut Replies<'_>,
        run: impl FnOnce(&mut dyn Session, &mut Replies<'_>) -> Result<(), WireError>,
    ) -> Option<Result<(), WireError>> {
        let before = self.kept.status;
        let ran = self.ran_here(|session| run(session, &mut *replies))?;
        self.unless_lost(kind, before, ran, |is_one| {
            !replies.has_begun() || (is_one && take_back(replies))
        })
    }

    fn ran_here<T>(
        &mut self,
        run: impl FnOnce(&mut dyn Session) -> Result<T, WireError>,
    ) -> Option<Result<T, WireError>> {
        if self.known.version != self.kept.version || self.reads_in_transaction() {
            return None;
        }
        let last = self.last_for(&self.known);
        let FrontSession { place, known, kept, .. } = self;
        let Some(Place::Local(place)) = place else { return None };
        let ran = place.with(|session| {
            if let Some(last) = last {
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
        ran.flatten()
    }

    /// What a command of this process has answered, before which the session had that status;
    /// `None` if it has to be run again elsewhere. `take_back` drops its answer so far, if that is
    /// possible, and is told whether it is one statement.
    fn unless_lost<T>(
        &mut self,
        kind: Kind<'_>,
        before: Status,
        done: Result<T, WireError>,
        take_back: impl FnOnce(bool) -> bool,
    ) -> Option<Result<T, WireError>> {
        let fault = match &done {
            Err(WireError::Refused(error)) => self.lost_here(error),
            _ => None,
        };
        let Some(fault) = fault else { return Some(done) };
        if !take_back(kind.is_one_statement(&self.shared.options.judge)) {
            return Some(done);
        }
        // The transaction was lost with the node, and did not end by the command.
        self.kept.status = before;
        match self.resolve(kind, &Unknown::of(fault)) {
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// Whether an error of this process only says that it does not write any more.
    fn lost_here(&mut self, error: &ServerError) -> Option<Fault> {
        let mut fault = Fault::from(error);
        let has_ended = self.place.as_ref().is_some_and(Place::is_over);
        if has_ended && fault.is_interruption() && self.interruption.wanted().is_none() {
            fault = Fault::shutdown();
        }
        let now = self.shared.now();
        let since = *self.fails_since.get_or_insert(now);
        let is_patient = now.saturating_sub(since) < self.shared.options.patience;
        (fault.did_nothing() && is_patient).then_some(fault)
    }

    /// The results of the last statements, if a place does not know them that knows so much.
    pub(super) fn last_for(&self, known: &Known) -> Option<LastResults> {
        (known.last != self.kept.last).then_some(self.kept.last)
    }

    /// Opens the session at a node; false if the node cannot be asked.
    fn open_elsewhere(&mut self, attachment: Arc<Attachment>) -> Result<bool, WireError> {
        let resumed = (!self.kept.is_new()).then(|| self.kept.resumed());
        match open_at(&attachment, &self.login, &self.kept, resumed) {
            Ok(done) => {
                self.place = Some(Place::Remote(attachment));
                self.keep(&done);
                self.known = self.kept.known();
                Ok(true)
            }
            Err(NotOpened::Refused(error)) => Err(WireError::Fatal(error)),
            Err(NotOpened::Unanswered) => Ok(false),
        }
    }

    /// Keeps what an answer says of the session.
    pub(super) fn keep(&mut self, done: &Done) {
        self.kept.take_answer(done);
        let control = &self.login.connection;
        if done.wait_timeout_ms != u64::MAX {
            control.set_wait_timeout(Duration::from_millis(done.wait_timeout_ms));
        }
        if done.ends {
            control.end_after_answer();
        }
    }

    /// Runs a command at the node, at another one if the first is gone and that does no harm (S4).
    /// `None`: the session is open in this process now, and the command has to be run there.
    fn command(
        &mut self,
        command: &Command,
        body: &[u8],
        kind: Kind<'_>,
        mut replies: Option<&mut Replies<'_>>,
    ) -> Result<Option<Outcome>, WireError> {
        self.bring_home()?;
        let mut deadline = self.shared.deadline();
        loop {
            self.settle(deadline)?;
            let Some(Place::Remote(attachment)) = &self.place else { return Ok(None) };
            let attachment = Arc::clone(attachment);
            let began = self.shared.now();
            let last = self.last_for(&self.known).map(Into::into);
            let news = News { last, closes: self.closes.clone() };
            let ran = self.run_at(&attachment, news, command, body, replies.as_deref_mut());
            let lost = match ran {
                Ok(answered) => match answered.done.outcome.lost_with_node() {
                    Some(fault) if self.can_run_again(kind, &answered) => {
                        Lost::Unknown(Unknown::of(fault.clone()))
                    }
                    _ => {
                        answered.pass_on(replies.as_deref_mut())?;
                        self.closes.clear();
                        self.keep(&answered.done);
                        self.known = self.kept.known();
                        self.ran_at_home();
                        return answered.done.outcome.into_result().map(Some);
                    }
                },
                Err(lost) => lost,
            };
            match lost {
                Lost::Broken(error) => return Err(error),
                Lost::NotExecuted => {
                    let now = self.shared.now();
                    if attachment.is_leaving() {
                        // How long it ran before it was cut (S9) is not a wait for a node.
                        deadline = deadline.saturating_add(now.saturating_sub(began));
                    }
                    self.move_on()?;
                    if now >= deadline {
                        return Err(nobody().into());
                    }
                }
                Lost::Unknown(unknown) => {
                    if let Some(committed) = self.resolve(kind, &unknown)? {
                        let replies = replies.as_deref_mut().ok_or_else(nobody)?;
                        return self.answer_late(&committed, replies).map(Some);
                    }
                    if self.shared.now() >= deadline {
                        return Err(nobody().into());
                    }
                }
            }
        }
    }

    /// Whether the client has nothing of an answer, and what it would get of it is of one
    /// statement.
    fn can_run_again(&self, kind: Kind<'_>, answered: &Answered) -> bool {
        let is_one = || kind.is_one_statement(&self.shared.options.judge);
        !answered.has_answered && (answered.rest.is_empty() || is_one())
    }

    /// Runs a statement of that route at home.
    fn at_home(
        &mut self,
        route: Route,
        run: impl FnOnce(&mut FrontSession) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        let before = self.kept.status;
        let done = run(self);
        self.note_habit(route, before);
        done
    }

    /// Runs a command that has an answer; false if it has to be run in this process.
    fn answered(
        &mut self,
        command: &Command,
        body: &[u8],
        kind: Kind<'_>,
        replies: &mut Replies<'_>,
    ) -> Result<bool, WireError> {
        let outcome = self.command(command, body, kind, Some(&mut *replies))?;
        let Some(outcome) = outcome else { return Ok(false) };
        end_relay(outcome, replies);
        Ok(true)
    }
}

impl Drop for FrontSession {
    fn drop(&mut self) {
        self.leave_reading();
        self.leave();
        self.abandon_session();
    }
}

/// What the session had has ended with its node, and it cannot go on without.
fn ended_with_node() -> WireError {
    let message = "The node that ran this session is gone, and with it the session's temporary \
                   tables and locks; connect again";
    WireError::Fatal(ServerError::new(1053, b"08S01", message))
}

pub(super) fn interrupted() -> ServerError {
    ServerError::new(1317, b"70100", "Query execution was interrupted")
}

/// Drops the answer so far; false if the client has a part of it.
fn take_back(replies: &mut Replies<'_>) -> bool {
    !replies.has_begun() || replies.take_back()
}

/// The answer of another node is complete.
pub(super) fn end_relay(outcome: Outcome, replies: &mut Replies<'_>) {
    let cursor = match outcome {
        Outcome::Cursor { status, warnings } => {
            let status = Status::from_bits_truncate(status);
            Some(firn_wire::CursorEnd { status, warnings })
        }
        _ => None,
    };
    replies.end_relay(cursor);
}

impl Session for FrontSession {
    fn query(&mut self, query: Query<'_>, replies: &mut Replies<'_>) -> Result<(), WireError> {
        self.begin_command();
        let command = || Command::Query {
            multi_statements: query.multi_statements,
            attributes: query.attributes.iter().map(NamedValue::from).collect(),
        };
        let run =
            |session: &mut dyn Session, replies: &mut Replies<'_>| session.query(query, replies);
        let route = self.route(query.text);
        let apart = match self.reading_place(route) {
            Some(ReadingPlace::Here) => self.read_here(replies, run, take_back),
            Some(ReadingPlace::Elsewhere) => {
                self.read_elsewhere(&command(), query.text, Some(&mut *replies)).map(|outcome| {
                    end_relay(outcome?, replies);
                    Ok(())
                })
            }
            None => None,
        };
        if let Some(done) = apart {
            return done;
        }
        let kind = Kind::Statement(Some(query.text));
        self.at_home(route, |own| {
            loop {
                if let Some(done) = own.answered_here(kind, replies, run) {
                    return done;
                }
                if own.answered(&command(), query.text, kind, replies)? {
                    return Ok(());
                }
            }
        })
    }

    fn prepare(&mut self, statement: u32, text: &[u8]) -> Result<Prepared, WireError> {
        self.begin_command();
        let route = self.route(text);
        let command = Command::Prepare { statement };
        let run = |session: &mut dyn Session| session.prepare(statement, text);
        let apart = match self.reading_place(route) {
            Some(ReadingPlace::Here) => {
                self.read_here(&mut (), |session, ()| run(session), |()| true)
            }
            Some(ReadingPlace::Elsewhere) => {
                self.read_elsewhere(&command, text, None).map(|outcome| prepared(outcome?))
            }
            None => None,
        };
        if let Some(done) = apart {
            return done.inspect(|_| self.was_prepared(statement, text, route));
        }
        loop {
            if let Some(done) = self.here(Kind::Harmless, run) {
                return done.inspect(|_| self.was_prepared(statement, text, route));
            }
            if let Some(outcome) = self.command(&command, text, Kind::Harmless, None)? {
                return prepared(outcome).inspect(|_| self.was_prepared(statement, text, route));
            }
        }
    }

    fn execute(
        &mut self,
        execution: Execution<'_>,
        replies: &mut Replies<'_>,
    ) -> Result<(), WireError> {
        self.begin_command();
        let prepared = self.texts.get(&execution.statement);
        let (text, route) = match prepared {
            Some(PreparedText { text, route }) => (Some(Arc::clone(text)), *route),
            None => (None, Route::Writer),
        };
        let run = |session: &mut dyn Session, replies: &mut Replies<'_>| {
            session.execute(execution, replies)
        };
        let apart = match self.reading_place(route) {
            Some(ReadingPlace::Here) => self.read_here(replies, run, take_back),
            Some(ReadingPlace::Elsewhere) => {
                let (command, body) = execution_message(&execution, replies)?;
                self.read_elsewhere(&command, &body, Some(&mut *replies)).map(|outcome| {
                    end_relay(outcome?, replies);
                    Ok(())
                })
            }
            None => None,
        };
        if let Some(done) = apart {
            return done;
        }
        let kind = Kind::Statement(text.as_deref());
        self.at_home(route, |own| {
            loop {
                if let Some(done) = own.answered_here(kind, replies, run) {
                    return done;
                }
                let (command, body) = execution_message(&execution, replies)?;
                if own.answered(&command, &body, kind, replies)? {
                    return Ok(());
                }
            }
        })
    }

    fn close_statement(&mut self, statement: u32) {
        self.texts.remove(&statement);
        self.closes.push(statement);
        self.close_here();
        self.close_reading(statement);
    }

    fn init_db(&mut self, schema: &[u8], replies: &mut Replies<'_>) -> Result<(), WireError> {
        self.begin_command();
        loop {
            let run = |session: &mut dyn Session, replies: &mut Replies<'_>| {
                session.init_db(schema, replies)
            };
            if let Some(done) = self.answered_here(Kind::Harmless, replies, run) {
                return done;
            }
            if self.answered(&Command::InitDb, schema, Kind::Harmless, replies)? {
                return Ok(());
            }
        }
    }

    fn reset(&mut self, replies: &mut Replies<'_>) -> Result<(), WireError> {
        self.begin_command();
        self.texts.clear();
        self.closes.clear();
        // A transaction there ends with it.
        self.leave_reading();
        loop {
            let run = |session: &mut dyn Session, replies: &mut Replies<'_>| session.reset(replies);
            if let Some(done) = self.answered_here(Kind::Other, replies, run) {
                return done;
            }
            if self.answered(&Command::Reset, &[], Kind::Other, replies)? {
                return Ok(());
            }
        }
    }

    fn status(&self) -> Status {
        self.kept.status
    }

    fn statistics(&mut self) -> String {
        self.begin_command();
        loop {
            let line = self.here(Kind::Harmless, |session| Ok(session.statistics()));
            if let Some(Ok(line)) = line {
                return line;
            }
            match self.command(&Command::Statistics, &[], Kind::Harmless, None) {
                Ok(None) => {}
                Ok(Some(Outcome::Line(line))) => return line,
                // The protocol has no error here; the next command finds it.
                _ => return "Uptime: 0".to_owned(),
            }
        }
    }

    fn kill(&mut self, connection: u32) -> Result<(), WireError> {
        self.begin_command();
        loop {
            let done = self.here(Kind::Other, |session| session.kill(connection));
            if let Some(done) = done {
                return done;
            }
            if self.command(&Command::Kill { connection }, &[], Kind::Other, None)?.is_some() {
                return Ok(());
            }
        }
    }

    fn field_list(
        &mut self,
        table: &[u8],
        pattern: &[u8],
    ) -> Result<Vec<FieldDefinition>, WireError> {
        self.begin_command();
        loop {
            let run = |session: &mut dyn Session| session.field_list(table, pattern);
            if let Some(done) = self.here(Kind::Harmless, run) {
                return done;
            }
            let command = Command::FieldList { table: table.into(), pattern: pattern.into() };
            match self.command(&command, &[], Kind::Harmless, None)? {
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
        let Kept { document, last, is_bound, reads_at_home, .. } = &self.kept;
        let (last, is_bound, reads_at_home) = (*last, *is_bound, *reads_at_home);
        Carried { document: document.clone(), last, is_bound, reads_at_home }
    }

    fn canceller(&self) -> Arc<dyn Canceller> {
        Arc::clone(&self.interruption) as _
    }
}

/// The description of a prepared statement by another node.
fn prepared(outcome: Outcome) -> Result<Prepared, WireError> {
    let Outcome::Prepared { parameters, columns, warnings } = outcome else {
        return Err(unreadable(&"a statement is not described").into());
    };
    let (parameters, columns) = (columns_of(parameters)?, columns_of(columns)?);
    Ok(Prepared { parameters, columns, warnings })
}

/// The execution of a prepared statement as a command, and its body.
fn execution_message(
    execution: &Execution<'_>,
    replies: &Replies<'_>,
) -> Result<(Command, Vec<u8>), WireError> {
    let parameters: Vec<Value> = execution.parameters.iter().map(Value::from).collect();
    let command = Command::Execute {
        statement: execution.statement,
        wants_cursor: replies.wants_cursor(),
        attributes: execution.attributes.iter().map(NamedValue::from).collect(),
    };
    let body = postcard::to_allocvec(&parameters).map_err(|error| unreadable(&error))?;
    Ok((command, body))
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
