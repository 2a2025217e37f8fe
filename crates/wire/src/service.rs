//! The seam to the session layer: this crate's requirements of a SQL implementation.
//!
//! ```text
//!   client          this crate                     the session layer
//!   connects ─────► greeting, TLS, password   ───► Service::credentials
//!                   password is right          ───► Service::open → Session
//!   COM_QUERY ────► decoded                    ───► Session::query(.., replies)
//!   COM_STMT_… ───► types, long data, cursors  ───► Session::prepare / execute / close_statement
//!   disconnects,    watched                    ───► Canceller::cancel, then the Session is dropped
//!   KILL
//! ```
//!
//! One thread at a time uses a session, not always the same one: an idle connection releases its
//! thread. All methods may block; while one runs, any thread can call [`Canceller::cancel`].
//!
//! A method that panics ends its connection: the session is dropped, the others continue.

use std::sync::Arc;

use crate::auth::Credentials;
use crate::cancellation::Canceller;
use crate::channel::{PeerAddress, TlsInformation};
use crate::connections::{ConnectionControl, Connections};
use crate::error::{ServerError, WireError};
use crate::flags::{Capabilities, Status};
use crate::reply::{ColumnDefinition, EncodedColumns, Replies};
use crate::value::{Attribute, Parameter};

/// Opens sessions. One for all connections of a server.
pub trait Service: Send + Sync {
    /// The account of a user who connects from `host` (an address, or `localhost`), and its
    /// authentication. For a user without an account return [`Credentials::nobody`]: the client
    /// then sees the same exchange as with a wrong password. May block.
    ///
    /// # Errors
    /// The client is told and the connection closed: for faults that are not the client's.
    fn credentials(&self, user: &str, host: &str) -> Result<Credentials, ServerError>;

    /// Reports that a user with an account has tried to log in, with the right password or not.
    ///
    /// # Errors
    /// The client is told and the connection closed, even if the password was right: too many
    /// attempts have failed.
    fn attempted(&self, _user: &str, _host: &str, _proved: bool) -> Result<(), ServerError> {
        Ok(())
    }

    /// Begins a session that goes on as one that another server had, whose [`Session::carried`]
    /// this is: `document` is the newest that it gave, `None` if it never gave one. `login` is that
    /// of the client.
    ///
    /// # Errors
    /// If the service cannot do that, or as [`Service::open`].
    fn resume(
        &self,
        login: Login,
        document: Option<&[u8]>,
        last: &LastResults,
    ) -> Result<Box<dyn Session>, ServerError> {
        let _ = (login, document, last);
        Err(ServerError::new(1235, b"42000", "This server takes no sessions of others up"))
    }

    /// The client of a connection is gone while no session had what the one before has left
    /// ([`Session::take_left`]). May block.
    fn abandon_session(&self, connection: u32) {
        let _ = connection;
    }

    /// What the command answered, if it has committed a transaction; `None` if it has not, and
    /// never will. Asked once the session that ran it has ended here, or can commit nothing any
    /// more elsewhere. True only of commands that commit at most one transaction, with
    /// [`Session::identify`]. May block.
    ///
    /// # Errors
    /// If it cannot be found out.
    fn committed(&self, command: CommandIdentity) -> Result<Option<CommittedAnswer>, ServerError> {
        let _ = command;
        Err(ServerError::new(1235, b"42000", "This server keeps no outcomes of commands"))
    }

    /// Begins a session for a client whose password was right. Also called for `COM_CHANGE_USER`,
    /// after the connection's former session was dropped.
    ///
    /// # Errors
    /// The client is told and the connection closed: an unknown schema, a locked account, too many
    /// connections of the user.
    fn open(&self, login: Login) -> Result<Box<dyn Session>, ServerError>;
}

/// The authenticated user, and the client's connection.
#[derive(Debug, Clone)]
pub struct Login {
    /// This connection: its id, its timeouts, its end.
    pub connection: Arc<ConnectionControl>,
    /// All connections of the server, for `KILL` and process lists.
    pub connections: Arc<Connections>,
    /// The name that the client gave.
    pub user: String,
    /// The account that the user has logged in to; see [`Credentials::account`].
    pub account: String,
    /// The schema to begin with.
    pub schema: Option<String>,
    /// The number of the client's collation, which sets `character_set_client`, `…_results` and
    /// `…_connection`.
    pub collation: u16,
    /// The capabilities that client and server share.
    pub capabilities: Capabilities,
    /// Connection attributes, such as `_client_name`.
    pub attributes: Vec<(String, String)>,
    /// Parameters of TLS, if the connection uses it.
    pub tls: Option<TlsInformation>,
}

impl Login {
    #[must_use]
    pub fn peer(&self) -> &PeerAddress {
        self.connection.peer()
    }
}

/// A text to run.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// One statement, or several if `multi_statements`.
    pub text: &'a [u8],
    pub attributes: &'a [Attribute<'a>],
    /// Whether several statements are allowed; otherwise a second one is a syntax error.
    pub multi_statements: bool,
}

/// A prepared statement to run.
#[derive(Debug, Clone, Copy)]
pub struct Execution<'a> {
    /// The statement's number, as passed to [`Session::prepare`].
    pub statement: u32,
    /// A value for each parameter.
    pub parameters: &'a [Parameter<'a>],
    pub attributes: &'a [Attribute<'a>],
}

/// The description of a prepared statement for the client.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Its parameters; the names are `?`.
    pub parameters: EncodedColumns,
    /// Its result's columns; none if it has no result set.
    pub columns: EncodedColumns,
    /// How many warnings preparing gave.
    pub warnings: u16,
}

/// A table's column in the answer to `COM_FIELD_LIST`.
#[derive(Debug, Clone)]
pub struct FieldDefinition {
    pub column: ColumnDefinition,
    /// Its default as text, if it has one.
    pub default: Option<Vec<u8>>,
}

/// Results of a session's last statements, which later ones can ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LastResults {
    /// `LAST_INSERT_ID()`
    pub last_insert_id: u64,
    /// `@@insert_id`
    pub insert_id: u64,
    /// `ROW_COUNT()`
    pub row_count: i64,
    /// `FOUND_ROWS()`
    pub found_rows: u64,
    /// A timestamp from which on a replica has everything that the session has written. 0 if its
    /// `firn_read_consistency` does not ask for that.
    pub written: u64,
}

/// A command, as the process that has the client numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandIdentity {
    /// The process, and its connection with the server.
    pub front: u64,
    /// The number of the client's connection.
    pub session: u32,
    /// Counts the commands of the session.
    pub number: u64,
}

/// The OK of a command that has committed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommittedAnswer {
    pub affected_rows: u64,
    /// The rows that the statement matched, changed or not.
    pub found_rows: u64,
    /// The first value that `AUTO_INCREMENT` gave.
    pub last_insert_id: u64,
    pub info: String,
}

/// What the process that serves a client keeps of its session, to go on with it at another server
/// when this one is gone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Carried {
    /// What was set up in the session, if that has changed since the last call.
    pub document: Option<Vec<u8>>,
    pub last: LastResults,
    /// The session has something that ends with its server unless it leaves it
    /// ([`Session::leave_session`]), besides an open transaction: temporary tables, user locks,
    /// locked or open tables.
    pub is_bound: bool,
    /// What only reads must run at the node that writes, too: the current schema is one of the
    /// server itself, so that reads show the state of the server at which they run, or
    /// transactions are serializable, so that reads lock.
    pub reads_at_home: bool,
}

/// One client's session.
///
/// Methods that take [`Replies`] write their answer there. [`WireError::Refused`] is sent as the
/// answer, also after some rows, and the connection continues. Errors of `replies` must be passed
/// on: the connection is lost, and the statement must end.
pub trait Session: Send {
    /// Runs a text and answers with a result for each statement in it.
    ///
    /// # Errors
    /// See the trait.
    fn query(&mut self, query: Query<'_>, replies: &mut Replies<'_>) -> Result<(), WireError>;

    /// Prepares a statement under the number `statement`, which no other open one has.
    ///
    /// # Errors
    /// [`WireError::Refused`] if it cannot be prepared; the number is free then.
    fn prepare(&mut self, statement: u32, text: &[u8]) -> Result<Prepared, WireError>;

    /// Runs a prepared statement. This crate decodes parameters, inserts long data, and implements
    /// cursors: it takes the rows of such a statement at once and returns them on request.
    ///
    /// # Errors
    /// See the trait.
    fn execute(
        &mut self,
        execution: Execution<'_>,
        replies: &mut Replies<'_>,
    ) -> Result<(), WireError>;

    /// Drops a prepared statement. Not called for statements that exist when the session is reset
    /// or ends.
    fn close_statement(&mut self, statement: u32);

    /// Chooses the default schema and answers OK.
    ///
    /// # Errors
    /// See the trait.
    fn init_db(&mut self, schema: &[u8], replies: &mut Replies<'_>) -> Result<(), WireError>;

    /// Restores the state that the session was opened with: rolls back; drops prepared statements,
    /// variables, temporary tables and locks. Answers OK.
    ///
    /// # Errors
    /// See the trait.
    fn reset(&mut self, replies: &mut Replies<'_>) -> Result<(), WireError>;

    /// The status in answers that this crate sends itself: to a login, a ping, a prepared
    /// statement.
    fn status(&self) -> Status {
        Status::AUTOCOMMIT
    }

    /// The line that `COM_STATISTICS` shows, such as `Uptime: 7  Threads: 1  Questions: 5 …`.
    fn statistics(&mut self) -> String;

    /// Ends another connection (`COM_PROCESS_KILL`), usually by [`Connections::kill`], if the user
    /// is allowed to.
    ///
    /// # Errors
    /// [`WireError::Refused`] if not, or if there is no such connection.
    fn kill(&mut self, connection: u32) -> Result<(), WireError>;

    /// The columns of a table whose names match a `LIKE` pattern (all, if it is empty).
    ///
    /// # Errors
    /// [`WireError::Refused`] if there is no such table.
    fn field_list(
        &mut self,
        table: &[u8],
        pattern: &[u8],
    ) -> Result<Vec<FieldDefinition>, WireError>;

    /// The next command is this one: if it commits a transaction, that can be found out later; see
    /// [`Service::committed`].
    fn identify(&mut self, _command: CommandIdentity) {}

    /// Whether the last command was ended by [`Canceller::cut`]: it has done nothing, its error
    /// says nothing, and its answer is empty. What the session has in memory may have changed; the
    /// transaction that was open before it is as it was. Asked once, after an error.
    fn was_cut(&mut self) -> bool {
        false
    }

    /// What another server needs to go on with the session; see [`Service::resume`]. Called between
    /// commands.
    fn carried(&mut self) -> Carried {
        Carried::default()
    }

    /// Leaves the open transaction, and what else ends with the server, to the session that goes on
    /// elsewhere, and is ended after that. False if it cannot go on. Called between commands.
    fn leave_session(&mut self) -> bool {
        false
    }

    /// Goes on with what the session of this connection has left, here before or at another server.
    /// False if nothing is here: a transaction was rolled back, or will be. What of it is here,
    /// [`Session::status`] and [`Carried::is_bound`] say. Called before the first command.
    fn take_left(&mut self) -> bool {
        false
    }

    /// Describes the open transaction, if it has only read and can go on elsewhere; see
    /// [`Session::take_up_transaction`]. It stays open and keeps what it sees readable; the caller
    /// ends it once it goes on there. Called between commands.
    fn describe_transaction(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// Begins a transaction that goes on as the one that a session of another server has described.
    /// Called between commands, while no transaction is open. May block.
    ///
    /// # Errors
    /// The bytes describe none, or the transaction cannot go on here; the client has to begin it
    /// again. None is open then.
    fn take_up_transaction(&mut self, described: &[u8]) -> Result<(), ServerError> {
        let _ = described;
        Err(ServerError::new(1235, b"42000", "This server takes no transactions of others up"))
    }

    /// The results of the session's last statements, which it has run at another server. Called
    /// between commands.
    fn take_last(&mut self, last: &LastResults) {
        let _ = last;
    }

    /// Interrupts the statement that this session runs. Called once, after the session was opened.
    fn canceller(&self) -> Arc<dyn Canceller>;
}
