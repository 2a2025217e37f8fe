//! Errors of a connection, by the required reaction: tell the client and continue, tell the client
//! and close, or just close.

use std::borrow::Cow;
use std::io;

use firn_base::memory::NoRoom;

/// The content of an ERR packet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code} ({}): {message}", self.sqlstate_text())]
pub struct ServerError {
    /// MySQL's error number, such as 1064.
    pub code: u16,
    /// Five characters, such as `42000`.
    pub sqlstate: [u8; 5],
    /// The wording for the user.
    pub message: Cow<'static, str>,
}

impl ServerError {
    /// An error of the given number, SQLSTATE and wording.
    pub fn new(
        code: u16,
        sqlstate: &[u8; 5],
        message: impl Into<Cow<'static, str>>,
    ) -> ServerError {
        ServerError { code, sqlstate: *sqlstate, message: message.into() }
    }

    fn sqlstate_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.sqlstate)
    }

    pub(crate) fn out_of_memory(no_room: NoRoom) -> ServerError {
        ServerError::new(1041, b"HY000", no_room.to_string())
    }

    pub(crate) fn too_many_connections() -> ServerError {
        ServerError::new(1040, b"08004", "Too many connections")
    }

    pub(crate) fn bad_handshake() -> ServerError {
        ServerError::new(1043, b"08S01", "Bad handshake")
    }

    pub(crate) fn access_denied(user: &str, host: &str, using_password: bool) -> ServerError {
        let using = if using_password { "YES" } else { "NO" };
        let message = format!("Access denied for user '{user}'@'{host}' (using password: {using})");
        ServerError::new(1045, b"28000", message)
    }

    pub(crate) fn unknown_command() -> ServerError {
        ServerError::new(1047, b"08S01", "Unknown command")
    }

    pub(crate) fn server_shutdown() -> ServerError {
        ServerError::new(1053, b"08S01", "Server shutdown in progress")
    }

    pub(crate) fn packet_too_large() -> ServerError {
        ServerError::new(1153, b"08S01", "Got a packet bigger than 'max_allowed_packet' bytes")
    }

    pub(crate) fn packets_out_of_order() -> ServerError {
        ServerError::new(1156, b"08S01", "Got packets out of order")
    }

    pub(crate) fn cannot_uncompress() -> ServerError {
        ServerError::new(1157, b"08S01", "Couldn't uncompress communication packet")
    }

    pub(crate) fn read_timeout() -> ServerError {
        ServerError::new(1159, b"08S01", "Got timeout reading communication packets")
    }

    pub(crate) fn unknown_statement(id: u32, command: &str) -> ServerError {
        let message = format!("Unknown prepared statement handler ({id}) given to {command}");
        ServerError::new(1243, b"HY000", message)
    }

    pub(crate) fn wrong_arguments(command: &str) -> ServerError {
        ServerError::new(1210, b"HY000", format!("Incorrect arguments to {command}"))
    }

    pub(crate) fn too_many_placeholders() -> ServerError {
        ServerError::new(1390, b"HY000", "Prepared statement contains too many placeholders")
    }

    pub(crate) fn no_open_cursor(id: u32) -> ServerError {
        ServerError::new(1421, b"HY000", format!("The statement ({id}) has no open cursor."))
    }

    pub(crate) fn too_many_statements(limit: u64) -> ServerError {
        let message = format!(
            "Can't create more than max_prepared_stmt_count statements (current value: {limit})"
        );
        ServerError::new(1461, b"42000", message)
    }

    pub(crate) fn malformed_packet() -> ServerError {
        ServerError::new(1835, b"HY000", "Malformed communication packet.")
    }

    pub(crate) fn secure_transport_required() -> ServerError {
        let message = "Connections using insecure transport are prohibited while --require_secure_transport=ON.";
        ServerError::new(3159, b"HY000", message)
    }

    pub(crate) fn local_infile_disabled() -> ServerError {
        let message = "Loading local data is disabled; this must be enabled on both the client and server sides";
        ServerError::new(3948, b"42000", message)
    }

    pub(crate) fn idle_too_long() -> ServerError {
        let message = "The client was disconnected by the server because of inactivity. See \
                       wait_timeout and interactive_timeout for configuring this behavior.";
        ServerError::new(4031, b"HY000", message)
    }
}

/// Why a command or a connection could not go on.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The error of a statement: the client receives it, and the connection continues.
    #[error(transparent)]
    Refused(#[from] ServerError),
    /// The client receives the error, and the connection is closed: the stream can no longer be
    /// trusted.
    #[error("{0}; closing")]
    Fatal(ServerError),
    /// The connection is lost or was told to end. The client receives nothing.
    #[error("connection lost: {0}")]
    Lost(#[from] io::Error),
}

impl WireError {
    /// The connection has ended regularly.
    pub(crate) fn closed() -> WireError {
        WireError::Lost(io::ErrorKind::UnexpectedEof.into())
    }

    pub(crate) fn malformed() -> WireError {
        WireError::Refused(ServerError::malformed_packet())
    }
}
