//! A session that runs here, of a client that a front has.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_base::Environment;
use firn_base::memory::{self, NoRoom};
use firn_link::{Payload, Responder};
use firn_wire::{
    CancelReason, Canceller, Carried, CommandCode, CommandIdentity, ConnectionControl, Connections,
    Execution, FieldDefinition, LastResults, Login, Query, RelayChannel, Replies, RowFormat,
    ServerError, Session, Status, TlsInformation, WireError,
};
use parking_lot::{Mutex, MutexGuard};

use super::outlet::{Content, Inlet, Outlet};
use super::{FrontDesk, REFUSED_DAMAGED, peer};
use crate::message::{
    Bytes, Command, Done, Event, Fault, Field, Last, LoginFacts, NamedValue, Outcome, Value,
};

pub(crate) struct Held {
    pub(super) front: u64,
    pub(super) control: Arc<ConnectionControl>,
    canceller: Mutex<Option<Arc<dyn Canceller>>>,
    /// The command that runs, and what was told to interrupt.
    running: Arc<Mutex<Running>>,
    /// Content of a file of the client.
    pub(super) content: Arc<Content>,
    /// The parts of the next command's body, or why there is no memory for them.
    parts: Mutex<Result<Vec<u8>, NoRoom>>,
    inside: Mutex<Inside>,
    /// How many commands have begun.
    commands: AtomicU64,
    /// Whether it cannot go on elsewhere, as of its last command.
    is_bound: AtomicBool,
    /// Whether its command was told to end because this node ends the session.
    is_shut_down: AtomicBool,
}

#[derive(Default)]
struct Running {
    number: u64,
    is_running: bool,
    /// A command that was interrupted before it began.
    early: Option<(u64, CancelReason)>,
}

/// What only the thread that runs a command uses.
struct Inside {
    session: Option<Box<dyn Session>>,
    channel: RelayChannel,
}

/// Tells the front when somebody ends the connection, or interrupts a statement that runs
/// elsewhere.
struct KillWatch {
    inner: Arc<dyn Canceller>,
    running: Arc<Mutex<Running>>,
    desk: Arc<FrontDesk>,
    session: u32,
}

impl Canceller for KillWatch {
    fn cancel(&self, reason: CancelReason) {
        // Looked at before the statement ends by this: the front would interrupt the next one.
        let was_running = self.running.lock().is_running;
        self.inner.cancel(reason);
        let session = self.session;
        match reason {
            CancelReason::KillConnection => self.desk.tell(&Event::Killed { session }),
            CancelReason::KillQuery if !was_running => {
                self.desk.tell(&Event::Interrupted { session });
            }
            _ => {}
        }
    }

    fn is_confirming(&self) -> bool {
        self.inner.is_confirming()
    }
}

impl Held {
    pub(super) fn new(front: u64, login: &LoginFacts, environment: &Environment) -> Held {
        let control = Arc::new(ConnectionControl::relayed(login.connection, peer(login)));
        control.idle_since(environment.clock.monotonic());
        let clock = Arc::clone(&environment.clock);
        let channel = RelayChannel::new(control.closing(), login.capabilities(), clock);
        Held {
            front,
            canceller: Mutex::default(),
            running: Arc::default(),
            content: Arc::default(),
            parts: Mutex::new(Ok(Vec::new())),
            inside: Mutex::new(Inside { session: None, channel }),
            commands: AtomicU64::new(0),
            is_bound: AtomicBool::new(false),
            is_shut_down: AtomicBool::new(false),
            control,
        }
    }

    /// The login as the service takes it.
    pub(super) fn login(&self, login: &LoginFacts, connections: &Arc<Connections>) -> Login {
        let tls = login.tls.as_ref().map(|(version, cipher)| TlsInformation {
            version: if version == "TLSv1.2" { "TLSv1.2" } else { "TLSv1.3" },
            cipher: cipher.clone(),
        });
        Login {
            connection: Arc::clone(&self.control),
            connections: Arc::clone(connections),
            user: login.user.clone(),
            account: login.account.clone(),
            schema: login.schema.clone(),
            collation: login.collation,
            capabilities: login.capabilities(),
            attributes: login.attributes.clone(),
            tls,
        }
    }

    /// The session is open.
    pub(super) fn begin(&self, mut session: Box<dyn Session>, desk: &Arc<FrontDesk>) -> Done {
        let inner = session.canceller();
        *self.canceller.lock() = Some(Arc::clone(&inner));
        let (desk, number) = (Arc::clone(desk), self.control.id());
        let running = Arc::clone(&self.running);
        let watch = KillWatch { inner, running, desk, session: number };
        self.control.set_canceller(Some(Arc::new(watch)));
        let done = self.done(&mut *session, Outcome::Answered);
        self.inside.lock().session = Some(session);
        done
    }

    /// Ends the session if it may go on elsewhere (S7), leaving what it has if that is handed over;
    /// whether it did. Waits until its command has ended.
    pub(super) fn end_if_left(&self, hands_over: bool) -> bool {
        self.leave(self.inside.lock(), hands_over)
    }

    /// The same without waiting; `None` if a command runs, or the session is being opened or ended.
    pub(super) fn try_end_if_left(&self, hands_over: bool) -> Option<bool> {
        let inside = self.inside.try_lock().filter(|inside| inside.session.is_some())?;
        Some(self.leave(inside, hands_over))
    }

    fn leave(&self, mut inside: MutexGuard<'_, Inside>, hands_over: bool) -> bool {
        let may_leave = |session: &mut Box<dyn Session>| {
            let has_something = self.is_bound.load(Ordering::SeqCst)
                || session.status().contains(Status::IN_TRANSACTION);
            !has_something || (hands_over && session.leave_session())
        };
        let ended = inside.session.as_mut().is_some_and(may_leave);
        let ended = ended.then(|| inside.session.take());
        drop(inside);
        if ended.is_some() {
            self.end();
        }
        ended.is_some()
    }

    /// How many commands have begun in it.
    pub(super) fn commands(&self) -> u64 {
        self.commands.load(Ordering::Relaxed)
    }

    /// Whether a command runs, the session is being opened, or it has what ends with it here.
    pub(super) fn is_busy(&self) -> bool {
        let Some(mut inside) = self.inside.try_lock() else { return true };
        let in_transaction =
            |session: &mut Box<dyn Session>| session.status().contains(Status::IN_TRANSACTION);
        self.is_bound.load(Ordering::SeqCst) || inside.session.as_mut().is_none_or(in_transaction)
    }

    /// The session's transaction, if it can go on elsewhere (S10). Waits until its command has
    /// ended.
    pub(super) fn describe(&self) -> Option<Vec<u8>> {
        self.inside.lock().session.as_mut()?.describe_transaction()
    }

    /// Ends the session. Waits until its command has ended.
    pub(super) fn end(&self) {
        self.content.end();
        let session = self.inside.lock().session.take();
        self.control.set_canceller(None);
        *self.canceller.lock() = None;
        drop(session);
    }

    pub(super) fn add_part(&self, part: &[u8]) {
        let mut parts = self.parts.lock();
        match (memory::ask(part.len()), &mut *parts) {
            (Ok(_promise), Ok(bytes)) => bytes.extend_from_slice(part),
            (Err(no_room), _) => *parts = Err(no_room),
            (Ok(_), Err(_)) => {}
        }
    }

    /// The session has run its last statements elsewhere.
    pub(super) fn take_last(&self, last: &LastResults) {
        if let Some(session) = self.inside.lock().session.as_deref_mut() {
            session.take_last(last);
        }
    }

    /// Interrupts what runs.
    pub(super) fn cancel(&self, reason: CancelReason) {
        if reason == CancelReason::Shutdown {
            self.is_shut_down.store(true, Ordering::SeqCst);
        }
        self.content.end();
        let canceller = self.canceller.lock().clone();
        if let Some(canceller) = canceller {
            canceller.cancel(reason);
        }
    }

    /// Has the running command end as if it had not been run, if its session can go on elsewhere
    /// (S9).
    pub(super) fn cut(&self) {
        let canceller = self.canceller.lock().clone();
        if let Some(canceller) = canceller {
            canceller.cut();
        }
    }

    /// Interrupts one command: it may be the one that runs, or the next one.
    pub(super) fn cancel_command(&self, number: u64, reason: CancelReason) {
        let is_running = {
            let mut running = self.running.lock();
            if !running.is_running || running.number != number {
                running.early = Some((number, reason));
            }
            running.is_running && running.number == number
        };
        if is_running {
            self.cancel(reason);
        }
    }

    /// Runs a command and answers it. Gives the responder back if the session has ended, or if the
    /// command was cut (S9). Blocks.
    pub(super) fn run(
        &self,
        environment: &Environment,
        number: u64,
        closes: &[u32],
        command: Command,
        rest: Payload,
        responder: Responder,
    ) -> Option<Responder> {
        let mut inside = self.inside.lock();
        let inside = &mut *inside;
        let Some(session) = inside.session.as_deref_mut() else {
            return Some(responder);
        };
        self.commands.fetch_add(1, Ordering::Relaxed);
        let parts = std::mem::replace(&mut *self.parts.lock(), Ok(Vec::new()));
        let (parts, refusal) = match parts {
            Ok(parts) => (parts, None),
            Err(no_room) => (Vec::new(), Some(no_room)),
        };
        let whole;
        let body = match parts.is_empty() {
            true => &rest[..],
            false => {
                whole = [&parts[..], &rest[..]].concat();
                &whole
            }
        };
        let body = match refusal {
            None => Body::of(&command, body),
            Some(_) => Ok(Body::default()),
        };
        let Ok(body) = body else {
            responder.refuse(REFUSED_DAMAGED, "the command is damaged");
            return None;
        };
        closes.iter().for_each(|statement| session.close_statement(*statement));
        session.identify(CommandIdentity { front: self.front, session: self.control.id(), number });
        let outlet = Arc::new(Outlet::new(responder, &self.content));
        let now = environment.clock.monotonic();
        self.control.begin_command(code(&command), now);
        let early = self.begin_command(number);
        let outcome = match (early, refusal) {
            (Some(_), _) => Outcome::Refused(interrupted()),
            (None, Some(no_room)) => Outcome::Refused(out_of_memory(no_room)),
            (None, None) if self.control.is_closing() => Outcome::Lost,
            (None, None) => execute(session, &mut inside.channel, &outlet, &command, &body),
        };
        self.running.lock().is_running = false;
        self.control.end_command();
        self.control.idle_since(environment.clock.monotonic());
        inside.channel.rest();
        if matches!(outcome, Outcome::Refused(_))
            && session.was_cut()
            && let Some(responder) = outlet.give_back()
        {
            return Some(responder);
        }
        let done = self.done(session, self.told(outcome));
        outlet.finish(&done);
        None
    }

    /// The outcome as the front is told of it: a command that ends because the node ends its
    /// session is not one that somebody has interrupted.
    fn told(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Refused(fault)
                if fault.is_interruption() && self.is_shut_down.load(Ordering::SeqCst) =>
            {
                Outcome::Refused(Fault::shutdown())
            }
            outcome => outcome,
        }
    }

    /// Marks the command as the running one; returns why it was interrupted before, if it was.
    fn begin_command(&self, number: u64) -> Option<CancelReason> {
        let mut running = self.running.lock();
        (running.number, running.is_running) = (number, true);
        self.content.begin();
        running.early.take().filter(|(early, _)| *early == number).map(|(_, reason)| reason)
    }

    fn done(&self, session: &mut dyn Session, outcome: Outcome) -> Done {
        let Carried { document, last, is_bound, reads_at_home } = session.carried();
        self.is_bound.store(is_bound, Ordering::SeqCst);
        let is_killed = self.control.is_closing();
        Done {
            outcome,
            status: session.status().bits(),
            last: last.into(),
            document: document.map(Bytes),
            is_bound,
            reads_at_home,
            ends: self.control.ends_after_answer() || is_killed,
            wait_timeout_ms: u64::try_from(self.control.wait_timeout().as_millis())
                .unwrap_or(u64::MAX),
        }
    }
}

impl Done {
    /// A session that was not opened.
    pub(super) fn refused(error: &ServerError) -> Done {
        Done {
            outcome: Outcome::Fatal(Fault::from(error)),
            status: 0,
            last: Last::default(),
            document: None,
            is_bound: false,
            reads_at_home: false,
            ends: true,
            wait_timeout_ms: Duration::MAX.as_millis() as u64,
        }
    }
}

fn interrupted() -> Fault {
    Fault::from(&ServerError::new(1317, b"70100", "Query execution was interrupted"))
}

fn out_of_memory(no_room: NoRoom) -> Fault {
    Fault::from(&ServerError::new(1041, b"HY000", no_room.to_string()))
}

/// The body of a command, decoded.
#[derive(Default)]
struct Body<'a> {
    bytes: &'a [u8],
    parameters: Vec<Value>,
}

impl<'a> Body<'a> {
    fn of(command: &Command, bytes: &'a [u8]) -> Result<Body<'a>, postcard::Error> {
        let parameters = match command {
            Command::Execute { .. } => postcard::from_bytes(bytes)?,
            _ => Vec::new(),
        };
        Ok(Body { bytes, parameters })
    }
}

fn code(command: &Command) -> CommandCode {
    match command {
        Command::Query { .. } => CommandCode::Query,
        Command::Prepare { .. } => CommandCode::StatementPrepare,
        Command::Execute { .. } => CommandCode::StatementExecute,
        Command::InitDb => CommandCode::InitDb,
        Command::Reset => CommandCode::ResetConnection,
        Command::Statistics => CommandCode::Statistics,
        Command::Kill { .. } => CommandCode::ProcessKill,
        Command::FieldList { .. } => CommandCode::FieldList,
        // No client sends them.
        Command::Describe | Command::TakeUp => CommandCode::Statistics,
    }
}

fn execute(
    session: &mut dyn Session,
    channel: &mut RelayChannel,
    outlet: &Arc<Outlet>,
    command: &Command,
    body: &Body<'_>,
) -> Outcome {
    let executed = match command {
        Command::Query { multi_statements, attributes } => {
            let attributes: Vec<_> = attributes.iter().map(NamedValue::attribute).collect();
            let query = Query {
                text: body.bytes,
                attributes: &attributes,
                multi_statements: *multi_statements,
            };
            answer(channel, outlet, |replies| session.query(query, replies))
        }
        Command::Execute { statement, wants_cursor, attributes } => {
            let attributes: Vec<_> = attributes.iter().map(NamedValue::attribute).collect();
            let parameters: Vec<_> = body.parameters.iter().map(Value::parameter).collect();
            let execution = Execution {
                statement: *statement,
                parameters: &parameters,
                attributes: &attributes,
            };
            execute_prepared(session, channel, outlet, execution, *wants_cursor)
        }
        Command::Prepare { statement } => {
            session.prepare(*statement, body.bytes).map(|prepared| Outcome::Prepared {
                parameters: prepared.parameters.packets().into(),
                columns: prepared.columns.packets().into(),
                warnings: prepared.warnings,
            })
        }
        Command::InitDb => answer(channel, outlet, |replies| session.init_db(body.bytes, replies)),
        Command::Reset => answer(channel, outlet, |replies| session.reset(replies)),
        Command::Statistics => Ok(Outcome::Line(session.statistics())),
        Command::Kill { connection } => session.kill(*connection).map(|()| Outcome::Answered),
        Command::FieldList { table, pattern } => session
            .field_list(table, pattern)
            .map(|fields| Outcome::Fields(fields.iter().map(Field::from).collect())),
        Command::Describe => Ok(Outcome::Described(session.describe_transaction().map(Bytes))),
        Command::TakeUp => match session.take_up_transaction(body.bytes) {
            Ok(()) => Ok(Outcome::Answered),
            Err(error) => Err(WireError::Refused(error)),
        },
    };
    executed.unwrap_or_else(|error| match error {
        WireError::Refused(error) => Outcome::Refused(Fault::from(&error)),
        WireError::Fatal(error) => Outcome::Fatal(Fault::from(&error)),
        WireError::Lost(_) => Outcome::Lost,
    })
}

fn answer(
    channel: &mut RelayChannel,
    outlet: &Arc<Outlet>,
    run: impl FnOnce(&mut Replies<'_>) -> Result<(), WireError>,
) -> Result<Outcome, WireError> {
    let stream = Box::new(Inlet(Arc::clone(outlet)));
    channel.answer(stream, RowFormat::Text, false, run).map(|_| Outcome::Answered)
}

fn execute_prepared(
    session: &mut dyn Session,
    channel: &mut RelayChannel,
    outlet: &Arc<Outlet>,
    execution: Execution<'_>,
    wants_cursor: bool,
) -> Result<Outcome, WireError> {
    let stream = Box::new(Inlet(Arc::clone(outlet)));
    let rows = channel.answer(stream, RowFormat::Binary, wants_cursor, |replies| {
        session.execute(execution, replies)
    })?;
    let Some(rows) = rows else { return Ok(Outcome::Answered) };
    let end = rows.end();
    outlet.begin_rows()?;
    channel.send_rows(rows)?;
    Ok(end.into())
}

impl From<&FieldDefinition> for Field {
    fn from(field: &FieldDefinition) -> Field {
        let column = &field.column;
        let names = [
            &column.schema,
            &column.table,
            &column.original_table,
            &column.name,
            &column.original_name,
        ];
        Field {
            names: names.map(Clone::clone),
            collation: column.collation,
            length_bytes: column.length_bytes,
            column_type: column.column_type as u8,
            flags: column.flags.bits(),
            decimals: column.decimals,
            default: field.default.as_deref().map(Bytes::from),
        }
    }
}
