//! What a front and a backend say to each other. `docs/formats/session_service.md` describes the
//! bytes.

mod bytes;
mod value;

use std::net::SocketAddr;

use firn_link::Payload;
use firn_wire::{
    CancelReason, Capabilities, CommittedAnswer, Credentials, CursorEnd, LastResults, ServerError,
    Status, WireError, auth,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use bytes::Bytes;
pub use value::{NamedValue, Value};

/// The version of the messages.
pub const VERSION: u8 = 5;

/// What a front asks for. The order of variants and fields is part of the format. Some are followed
/// by bytes that belong to them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Ask {
    /// A stream of [`Event`]s, as long as the front may have sessions.
    Attach { front: u64 },
    /// How a user proves who he is.
    Credentials { user: String, host: String },
    /// A user has tried to.
    Attempted { user: String, host: String, proved: bool },
    /// A session of a client that has logged in. The document to go on from follows, if there is
    /// one.
    Open { front: u64, login: LoginFacts, resumed: Option<Resumed> },
    /// A part of the next command's body follows.
    Part { front: u64, session: u32 },
    /// A command; its body, or the last part of it, follows.
    Run {
        front: u64,
        session: u32,
        /// Counts the commands of the session.
        number: u64,
        /// Prepared statements that the client has closed since the last command.
        closes: Vec<u32>,
        /// The results of the session's last statements, if it has run them elsewhere.
        last: Option<Last>,
        command: Command,
    },
    /// Content of a file that the running command has asked for follows.
    Content { front: u64, session: u32, is_end: bool },
    /// Interrupts a command.
    Cancel { front: u64, session: u32, number: u64, reason: Reason },
    /// Ends sessions.
    Close { front: u64, sessions: Vec<u32> },
    /// Whether a command of a session that is over has committed. `front` is the front's number
    /// when it sent the command.
    Committed { front: u64, session: u32, number: u64 },
}

/// A client's connection and login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginFacts {
    /// The connection's number, which is the session's.
    pub connection: u32,
    /// Where the client is; `None`: at the Unix socket.
    pub peer: Option<SocketAddr>,
    pub user: String,
    pub account: String,
    pub schema: Option<String>,
    pub collation: u16,
    pub capabilities: u32,
    pub attributes: Vec<(String, String)>,
    /// Version and cipher.
    pub tls: Option<(String, String)>,
}

/// A session that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    /// Whether a document follows; otherwise the login says all.
    pub has_document: bool,
    pub last: Last,
    /// Whether it had a transaction or something else that may have been handed over.
    pub has_left: bool,
}

/// [`LastResults`] as bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Last {
    pub last_insert_id: u64,
    pub insert_id: u64,
    pub row_count: i64,
    pub found_rows: u64,
    pub written: u64,
}

/// A command of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Command {
    /// The body is the text.
    Query {
        multi_statements: bool,
        attributes: Vec<NamedValue>,
    },
    /// The body is the text.
    Prepare {
        statement: u32,
    },
    /// The body is the parameters, a list of [`Value`].
    Execute {
        statement: u32,
        wants_cursor: bool,
        attributes: Vec<NamedValue>,
    },
    /// The body is the schema's name.
    InitDb,
    Reset,
    Statistics,
    Kill {
        connection: u32,
    },
    FieldList {
        table: Bytes,
        pattern: Bytes,
    },
    /// Asks for the open transaction, if that has only read and can go on elsewhere.
    Describe,
    /// Goes on with a transaction that another node has described. The body is what it has said.
    TakeUp,
}

/// [`CancelReason`] as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    KillQuery,
    KillConnection,
    Disconnected,
    Shutdown,
}

/// What happens at a backend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// The front may open sessions.
    Welcome,
    /// Somebody has ended the connection of a session.
    Killed { session: u32 },
    /// The sessions have to go on elsewhere.
    Leaving,
    /// Somebody has interrupted the statement of a session that runs none here.
    Interrupted { session: u32 },
    /// The node ends a session that has only read; its transaction can go on elsewhere.
    Described { session: u32, transaction: Bytes },
}

/// How a user proves who he is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Found {
    Nobody,
    Account {
        account: String,
        plugin: String,
        authentication: Bytes,
        requires_secure_transport: bool,
    },
    Refused(Fault),
}

/// What became of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fate {
    /// It has not committed, and never will.
    NotCommitted,
    /// It has, and this was its OK.
    Committed { affected_rows: u64, found_rows: u64, last_insert_id: u64, info: String },
    /// It cannot be found out.
    Refused(Fault),
}

/// The error of a statement or of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    pub code: u16,
    pub sqlstate: [u8; 5],
    pub message: String,
}

/// The end of a command, or of the opening of a session. The rest of the answer's packets follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    pub outcome: Outcome,
    /// The session's status.
    pub status: u16,
    pub last: Last,
    /// What was set up in the session, if that has changed.
    pub document: Option<Bytes>,
    /// See [`firn_wire::Carried::is_bound`].
    pub is_bound: bool,
    /// See [`firn_wire::Carried::reads_at_home`].
    pub reads_at_home: bool,
    /// The connection ends after the answer.
    pub ends: bool,
    pub wait_timeout_ms: u64,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The packets are the answer.
    Answered,
    /// The packets are the answer, the rows before are those of a cursor.
    Cursor {
        status: u16,
        warnings: u16,
    },
    /// The columns of parameters and result, as packets.
    Prepared {
        parameters: Bytes,
        columns: Bytes,
        warnings: u16,
    },
    Fields(Vec<Field>),
    Line(String),
    /// An error follows the packets.
    Refused(Fault),
    /// An error follows, and the connection ends.
    Fatal(Fault),
    /// The connection ends.
    Lost,
    /// See [`Command::Describe`].
    Described(Option<Bytes>),
}

/// A column in the answer to `COM_FIELD_LIST`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Schema, table, original table, name, original name.
    pub names: [String; 5],
    pub collation: u16,
    pub length_bytes: u32,
    pub column_type: u8,
    pub flags: u16,
    pub decimals: u8,
    pub default: Option<Bytes>,
}

/// The kinds of pushes of a running command; the first byte of each.
pub mod push {
    /// Packets of the answer.
    pub const PACKETS: u8 = 1;
    /// Packets with the rows of a cursor.
    pub const ROWS: u8 = 2;
    /// The last packet asks for a file; [`super::Ask::Content`] brings it.
    pub const FILE: u8 = 3;
}

/// The bytes are not a message of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("bytes that are no message between a front and a backend; update the older node")]
pub struct NotAMessage;

pub fn encode(message: &impl Serialize) -> Vec<u8> {
    postcard::to_extend(message, vec![VERSION]).expect("a message is encodable")
}

/// A message at the beginning of `payload`, and what follows it.
///
/// # Errors
/// If the bytes are not a message of this version.
pub fn decode<T: DeserializeOwned>(payload: &Payload) -> Result<(T, Payload), NotAMessage> {
    let [VERSION, rest @ ..] = &payload[..] else { return Err(NotAMessage) };
    let (message, rest) = postcard::take_from_bytes(rest).map_err(|_| NotAMessage)?;
    let at = payload.len() - rest.len();
    Ok((message, payload.part(at..payload.len())))
}

impl From<&ServerError> for Fault {
    fn from(error: &ServerError) -> Fault {
        let message = error.message.to_string();
        Fault { code: error.code, sqlstate: error.sqlstate, message }
    }
}

impl From<Fault> for ServerError {
    fn from(fault: Fault) -> ServerError {
        ServerError::new(fault.code, &fault.sqlstate, fault.message)
    }
}

impl From<LastResults> for Last {
    fn from(last: LastResults) -> Last {
        let LastResults { last_insert_id, insert_id, row_count, found_rows, written } = last;
        Last { last_insert_id, insert_id, row_count, found_rows, written }
    }
}

impl From<Last> for LastResults {
    fn from(last: Last) -> LastResults {
        let Last { last_insert_id, insert_id, row_count, found_rows, written } = last;
        LastResults { last_insert_id, insert_id, row_count, found_rows, written }
    }
}

impl From<CancelReason> for Reason {
    fn from(reason: CancelReason) -> Reason {
        match reason {
            CancelReason::KillQuery => Reason::KillQuery,
            CancelReason::KillConnection => Reason::KillConnection,
            CancelReason::Disconnected => Reason::Disconnected,
            CancelReason::Shutdown => Reason::Shutdown,
        }
    }
}

impl From<Reason> for CancelReason {
    fn from(reason: Reason) -> CancelReason {
        match reason {
            Reason::KillQuery => CancelReason::KillQuery,
            Reason::KillConnection => CancelReason::KillConnection,
            Reason::Disconnected => CancelReason::Disconnected,
            Reason::Shutdown => CancelReason::Shutdown,
        }
    }
}

impl From<CursorEnd> for Outcome {
    fn from(end: CursorEnd) -> Outcome {
        Outcome::Cursor { status: end.status.bits(), warnings: end.warnings }
    }
}

impl Ask {
    /// Puts the address of a front on another machine in the place of its loopback addresses: a
    /// client there is not on this machine.
    pub(crate) fn see_from(&mut self, front: SocketAddr) {
        if front.ip().is_loopback() {
            return;
        }
        match self {
            Ask::Credentials { host, .. } | Ask::Attempted { host, .. }
                if matches!(host.as_str(), "localhost" | "127.0.0.1" | "::1") =>
            {
                *host = front.ip().to_canonical().to_string();
            }
            Ask::Open { login, .. }
                if login.peer.is_none_or(|peer| peer.ip().to_canonical().is_loopback()) =>
            {
                login.peer = Some(front);
            }
            _ => {}
        }
    }
}

impl Done {
    #[must_use]
    pub fn status(&self) -> Status {
        Status::from_bits_truncate(self.status)
    }
}

impl LoginFacts {
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        Capabilities::from_bits_truncate(self.capabilities)
    }
}

impl From<Result<Option<CommittedAnswer>, ServerError>> for Fate {
    fn from(found: Result<Option<CommittedAnswer>, ServerError>) -> Fate {
        match found {
            Err(error) => Fate::Refused(Fault::from(&error)),
            Ok(None) => Fate::NotCommitted,
            Ok(Some(answer)) => {
                let CommittedAnswer { affected_rows, found_rows, last_insert_id, info } = answer;
                Fate::Committed { affected_rows, found_rows, last_insert_id, info }
            }
        }
    }
}

impl From<Result<Credentials, ServerError>> for Found {
    fn from(found: Result<Credentials, ServerError>) -> Found {
        match found {
            Err(error) => Found::Refused(Fault::from(&error)),
            Ok(credentials) if !credentials.exists() => Found::Nobody,
            Ok(credentials) => Found::Account {
                account: credentials.account,
                plugin: credentials.plugin.name().to_owned(),
                authentication: Bytes(credentials.authentication_string),
                requires_secure_transport: credentials.requires_secure_transport,
            },
        }
    }
}

impl Fate {
    /// # Errors
    /// If it cannot be found out.
    pub fn into_answer(self) -> Result<Option<CommittedAnswer>, ServerError> {
        match self {
            Fate::NotCommitted => Ok(None),
            Fate::Refused(fault) => Err(fault.into()),
            Fate::Committed { affected_rows, found_rows, last_insert_id, info } => {
                Ok(Some(CommittedAnswer { affected_rows, found_rows, last_insert_id, info }))
            }
        }
    }
}

/// `ER_SERVER_SHUTDOWN`
const SHUTDOWN: u16 = 1053;
/// `ER_ERROR_DURING_COMMIT`: the node does not know itself whether a commit is durable.
const UNCONFIRMED: u16 = 1180;
/// `ER_QUERY_INTERRUPTED`
const INTERRUPTED: u16 = 1317;
/// `ER_READ_ONLY_MODE`: another node writes.
const DOES_NOT_WRITE: u16 = 1836;

impl Fault {
    /// The node ends the session, and its running command.
    #[must_use]
    pub fn shutdown() -> Fault {
        Fault::from(&ServerError::new(SHUTDOWN, b"08S01", "Server shutdown in progress"))
    }

    /// Whether something has interrupted the statement.
    #[must_use]
    pub fn is_interruption(&self) -> bool {
        self.code == INTERRUPTED
    }

    /// Whether the node does not go on, and has taken back what the statement has done, if that is
    /// one transaction or a part of one.
    #[must_use]
    pub fn did_nothing(&self) -> bool {
        matches!(self.code, SHUTDOWN | DOES_NOT_WRITE)
    }
}

impl Outcome {
    /// The error of a command that another node may have to answer: this one does not write any
    /// more.
    #[must_use]
    pub fn lost_with_node(&self) -> Option<&Fault> {
        match self {
            Outcome::Refused(fault) if fault.did_nothing() || fault.code == UNCONFIRMED => {
                Some(fault)
            }
            _ => None,
        }
    }

    /// # Errors
    /// The one that it is.
    pub fn into_result(self) -> Result<Outcome, WireError> {
        match self {
            Outcome::Refused(fault) => Err(WireError::Refused(fault.into())),
            Outcome::Fatal(fault) => Err(WireError::Fatal(fault.into())),
            Outcome::Lost => Err(WireError::Lost(std::io::ErrorKind::ConnectionAborted.into())),
            outcome => Ok(outcome),
        }
    }
}

impl Found {
    /// # Errors
    /// The backend's.
    pub fn into_credentials(self) -> Result<Credentials, ServerError> {
        match self {
            Found::Nobody => Ok(Credentials::nobody()),
            Found::Refused(fault) => Err(fault.into()),
            Found::Account { account, plugin, authentication, requires_secure_transport } => {
                let Some(plugin) = auth::AuthPlugin::from_name(&plugin) else {
                    return Ok(Credentials::nobody());
                };
                let mut credentials = Credentials::new(account, plugin, authentication.0);
                credentials.requires_secure_transport = requires_secure_transport;
                Ok(credentials)
            }
        }
    }
}

#[cfg(test)]
mod tests;
