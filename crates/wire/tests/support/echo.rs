//! A service that knows a handful of words instead of SQL; each shows one thing of the protocol.
//!
//! ```text
//!   one              a row of one integer        rows N           N rows of a number and a text
//!   echo TEXT        a row of that text          big N            a row of one text of N bytes
//!   types            a row of every type         attributes       a row for each query attribute
//!   use SCHEMA, set  OK, with session changes    infile NAME      reads the client's file
//!   wait             runs until it is cancelled  panic, endbadly  panics; again when it is dropped
//!   refuse           an error                    partly           a row, then an error
//!   late TEXT        OK, once the test confirms  early            confirms before its OK
//!   failing          as early, with an error     lost             as late, without an answer
//!   A; B             several of these            anything else    error 1064
//! ```
//!
//! A prepared text with `?` answers with a row of its parameters as Rust prints them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use firn_base::event::Event;
use firn_wire::auth::AuthPlugin;
use firn_wire::{
    CancelReason, Canceller, ColumnDefinition, ColumnFlags, ColumnType, Completion,
    ConnectionControl, Credentials, EncodedColumns, Execution, FieldDefinition, Login, Parameter,
    Prepared, Query, Replies, ServerError, Service, Session, SessionChange, Status, WireError,
};
use parking_lot::Mutex;

/// Accounts: `root` without password, `native` and `sha2` with the password `secret`.
#[derive(Default)]
pub(crate) struct EchoService {
    sha2_password: String,
    /// How many statements have been interrupted.
    pub(crate) cancelled: Arc<AtomicU32>,
    /// How many sessions are open.
    pub(crate) sessions: Arc<AtomicU32>,
    /// The connections whose answers wait for the test's confirmation.
    pub(crate) late: LateConnections,
    /// How many statements have begun.
    pub(crate) begun: Arc<AtomicU32>,
}

/// Connections whose answers wait.
pub(crate) type LateConnections = Arc<Mutex<Vec<Arc<ConnectionControl>>>>;

impl EchoService {
    pub(crate) fn new() -> EchoService {
        let sha2_password = AuthPlugin::CachingSha2Password.authentication_string(b"secret");
        EchoService { sha2_password, ..EchoService::default() }
    }
}

impl Service for EchoService {
    fn credentials(&self, user: &str, _host: &str) -> Result<Credentials, ServerError> {
        let (plugin, string) = match user {
            "root" => (AuthPlugin::CachingSha2Password, String::new()),
            "sha2" => (AuthPlugin::CachingSha2Password, self.sha2_password.clone()),
            "native" => (
                AuthPlugin::NativePassword,
                AuthPlugin::NativePassword.authentication_string(b"secret"),
            ),
            _ => return Ok(Credentials::nobody()),
        };
        Ok(Credentials::new(format!("{user}@%"), plugin, string))
    }

    fn open(&self, login: Login) -> Result<Box<dyn Session>, ServerError> {
        if login.schema.as_deref() == Some("missing") {
            return Err(ServerError::new(1049, b"42000", "Unknown database 'missing'"));
        }
        self.sessions.fetch_add(1, Ordering::SeqCst);
        let canceller =
            Arc::new(EchoCanceller { cancelled: Event::new(), count: self.cancelled.clone() });
        Ok(Box::new(EchoSession {
            login,
            canceller,
            sessions: self.sessions.clone(),
            late: self.late.clone(),
            begun: self.begun.clone(),
            texts: Default::default(),
            one: EncodedColumns::new(&[ColumnDefinition::new("1", ColumnType::LongLong)]),
            ends_badly: false,
        }))
    }
}

struct EchoCanceller {
    cancelled: Event,
    count: Arc<AtomicU32>,
}

impl Canceller for EchoCanceller {
    fn cancel(&self, _reason: CancelReason) {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.cancelled.notify_all();
    }
}

struct EchoSession {
    login: Login,
    canceller: Arc<EchoCanceller>,
    sessions: Arc<AtomicU32>,
    late: LateConnections,
    begun: Arc<AtomicU32>,
    texts: std::collections::HashMap<u32, String>,
    one: EncodedColumns,
    ends_badly: bool,
}

impl Drop for EchoSession {
    fn drop(&mut self) {
        self.sessions.fetch_sub(1, Ordering::SeqCst);
        assert!(!self.ends_badly, "asked to");
    }
}

const DONE: Completion<'static> = Completion {
    affected_rows: 0,
    last_insert_id: 0,
    status: Status::AUTOCOMMIT,
    warnings: 0,
    info: "",
    changes: &[],
};

fn text_column(name: &str) -> ColumnDefinition {
    ColumnDefinition {
        collation: 255,
        length_bytes: 1024,
        ..ColumnDefinition::new(name, ColumnType::VarString)
    }
}

fn one_text(replies: &mut Replies<'_>, name: &str, text: &[u8]) -> Result<(), WireError> {
    let mut rows = replies.columns(&[text_column(name)])?;
    let mut row = rows.row()?;
    row.bytes(text);
    row.end();
    rows.finish(&DONE)
}

impl EchoSession {
    fn run(&mut self, text: &str, replies: &mut Replies<'_>) -> Result<(), WireError> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        self.begun.fetch_add(1, Ordering::SeqCst);
        let number = || rest.parse::<usize>().unwrap_or(0);
        match word {
            "one" => {
                let mut rows = replies.encoded_columns(&self.one)?;
                let mut row = rows.row()?;
                row.int(1);
                row.end();
                rows.finish(&DONE)
            }
            "echo" => one_text(replies, "echo", rest.as_bytes()),
            "big" => one_text(replies, "big", &vec![b'x'; number()]),
            "rows" => many_rows(number(), replies),
            "types" => all_types(replies),
            "use" => {
                let changes = [
                    SessionChange::Schema(rest),
                    SessionChange::SystemVariable { name: "x", value: b"1" },
                ];
                replies.ok(&Completion { changes: &changes, info: "changed", ..DONE })
            }
            "set" | "SET" => replies.ok(&DONE),
            "infile" => read_file(rest, replies),
            "late" | "lost" | "early" | "failing" => self.answer_late(word, rest, replies),
            "wait" => self.wait(),
            "panic" => panic!("asked to"),
            "endbadly" => {
                self.ends_badly = true;
                panic!("asked to")
            }
            "refuse" => Err(ServerError::new(1146, b"42S02", "Table 'x' doesn't exist").into()),
            "partly" => {
                let mut rows = replies.encoded_columns(&self.one)?;
                let mut row = rows.row()?;
                row.int(1);
                row.end();
                // Begun and never ended: leaves no trace.
                rows.row()?.int(2);
                Err(ServerError::new(1317, b"70100", "Query execution was interrupted").into())
            }
            "who" => one_text(replies, "who", self.login.account.as_bytes()),
            "tls" => one_text(replies, "tls", format!("{:?}", self.login.tls).as_bytes()),
            "kill" | "KILL" => {
                self.login.connections.kill(number() as u32);
                replies.ok(&DONE)
            }
            "killquery" => {
                self.login.connections.kill_query(number() as u32);
                replies.ok(&DONE)
            }
            _ => Err(ServerError::new(1064, b"42000", format!("no such word: {word}")).into()),
        }
    }

    fn answer_late(
        &self,
        word: &str,
        info: &str,
        replies: &mut Replies<'_>,
    ) -> Result<(), WireError> {
        let connection = &self.login.connection;
        if !replies.can_be_late() || !connection.promise_confirmation() {
            return replies.ok(&Completion { info: "at once", ..DONE });
        }
        match word {
            "early" => connection.confirm(Ok(())),
            "failing" => connection.confirm(Err(unconfirmed())),
            _ => self.late.lock().push(Arc::clone(connection)),
        }
        match word {
            "lost" => Err(ServerError::new(1105, b"HY000", "no answer").into()),
            _ => replies.ok(&Completion { info, ..DONE }),
        }
    }

    fn wait(&self) -> Result<(), WireError> {
        let ticket = self.canceller.cancelled.listen();
        self.canceller.cancelled.wait(ticket, Some(Duration::from_secs(20)));
        Err(ServerError::new(1317, b"70100", "Query execution was interrupted").into())
    }
}

/// The error of a commit that the log does not confirm.
pub(crate) fn unconfirmed() -> ServerError {
    ServerError::new(1180, b"HY000", "Got error during COMMIT")
}

fn many_rows(count: usize, replies: &mut Replies<'_>) -> Result<(), WireError> {
    let number = ColumnDefinition::new("number", ColumnType::LongLong);
    let mut rows = replies.columns(&[number, text_column("text")])?;
    for number in 0..count {
        let mut row = rows.row()?;
        row.uint(number as u64);
        row.formatted(|text| text.extend_from_slice(format!("row {number}").as_bytes()));
        row.end();
    }
    rows.finish(&DONE)
}

fn all_types(replies: &mut Replies<'_>) -> Result<(), WireError> {
    use ColumnType::*;
    let columns: Vec<_> = [
        Tiny, Short, Int24, Long, LongLong, Float, Double, NewDecimal, Date, DateTime, Time, Year,
        VarString, Blob, Null,
    ]
    .into_iter()
    .map(|kind| ColumnDefinition::new(&format!("{kind:?}").to_lowercase(), kind))
    .map(|column| match column.column_type {
        Long => ColumnDefinition { flags: ColumnFlags::UNSIGNED, ..column },
        VarString => ColumnDefinition { collation: 255, ..column },
        _ => column,
    })
    .collect();
    let mut rows = replies.columns(&columns)?;
    let date = firn_wire::Date { year: 2026, month: 11, day: 21 };
    let mut row = rows.row()?;
    row.int(-1);
    row.int(-300);
    row.int(-70_000);
    row.uint(4_000_000_000);
    row.int(i64::MIN);
    row.float(1.5);
    row.double(0.1);
    row.decimal("123.450");
    row.date(date);
    row.datetime(
        firn_wire::DateTime { date, hour: 15, minute: 8, second: 9, microsecond: 120_000 },
        3,
    );
    row.time(
        firn_wire::Time { negative: true, hours: 26, minute: 3, second: 4, microsecond: 0 },
        0,
    );
    row.int(2026);
    row.bytes("grün".as_bytes());
    row.bytes(&[0, 255]);
    row.null();
    row.end();
    rows.finish(&DONE)
}

fn read_file(name: &str, replies: &mut Replies<'_>) -> Result<(), WireError> {
    use std::io::Read;
    let mut content = Vec::new();
    replies.local_infile(name.as_bytes())?.read_to_end(&mut content)?;
    replies.ok(&Completion { affected_rows: content.len() as u64, ..DONE })
}

impl Session for EchoSession {
    fn query(&mut self, query: Query<'_>, replies: &mut Replies<'_>) -> Result<(), WireError> {
        let text = String::from_utf8_lossy(query.text).into_owned();
        if text == "attributes" {
            let mut rows = replies.columns(&[text_column("attribute")])?;
            for attribute in query.attributes {
                let mut row = rows.row()?;
                row.bytes(format!("{attribute:?}").as_bytes());
                row.end();
            }
            return rows.finish(&DONE);
        }
        let statements: Vec<_> = match query.multi_statements {
            true => text.split(';').map(str::trim).filter(|one| !one.is_empty()).collect(),
            false => vec![text.trim()],
        };
        for (number, statement) in statements.iter().enumerate() {
            replies.set_more_results(number + 1 < statements.len());
            self.run(statement, replies)?;
        }
        Ok(())
    }

    fn prepare(&mut self, statement: u32, text: &[u8]) -> Result<Prepared, WireError> {
        let text = String::from_utf8_lossy(text).into_owned();
        if text.starts_with("refuse") {
            return Err(ServerError::new(1064, b"42000", "refused").into());
        }
        let parameters = text.matches('?').count();
        let columns: Vec<_> =
            (0..parameters).map(|number| text_column(&number.to_string())).collect();
        let question = ColumnDefinition::new("?", ColumnType::VarString);
        self.texts.insert(statement, text);
        Ok(Prepared {
            parameters: EncodedColumns::new(&vec![question; parameters]),
            columns: EncodedColumns::new(&columns),
            warnings: 0,
        })
    }

    fn execute(
        &mut self,
        execution: Execution<'_>,
        replies: &mut Replies<'_>,
    ) -> Result<(), WireError> {
        let text = self.texts[&execution.statement].clone();
        if execution.parameters.is_empty() {
            return self.run(&text, replies);
        }
        if let ("one ?", [Parameter::Int(_)]) = (text.as_str(), execution.parameters) {
            return self.run("one", replies);
        }
        let names: Vec<_> = (0..execution.parameters.len())
            .map(|number| text_column(&number.to_string()))
            .collect();
        let mut rows = replies.columns(&names)?;
        let mut row = rows.row()?;
        for parameter in execution.parameters {
            row.bytes(format!("{parameter:?}").as_bytes());
        }
        row.end();
        rows.finish(&DONE)
    }

    fn close_statement(&mut self, statement: u32) {
        self.texts.remove(&statement);
    }

    fn init_db(&mut self, schema: &[u8], replies: &mut Replies<'_>) -> Result<(), WireError> {
        let schema = String::from_utf8_lossy(schema);
        replies.ok(&Completion { changes: &[SessionChange::Schema(&schema)], ..DONE })
    }

    fn reset(&mut self, replies: &mut Replies<'_>) -> Result<(), WireError> {
        self.texts.clear();
        replies.ok(&DONE)
    }

    fn statistics(&mut self) -> String {
        format!("Uptime: 1  Threads: {}", self.login.connections.len())
    }

    fn kill(&mut self, connection: u32) -> Result<(), WireError> {
        match self.login.connections.kill(connection) {
            true => Ok(()),
            false => {
                let message = format!("Unknown thread id: {connection}");
                Err(ServerError::new(1094, b"HY000", message).into())
            }
        }
    }

    fn field_list(&mut self, table: &[u8], _: &[u8]) -> Result<Vec<FieldDefinition>, WireError> {
        let name = String::from_utf8_lossy(table);
        Ok(vec![FieldDefinition { column: text_column(&name), default: Some(b"none".to_vec()) }])
    }

    fn canceller(&self) -> Arc<dyn Canceller> {
        self.canceller.clone()
    }
}
