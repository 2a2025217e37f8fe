//! The protocol's bit sets: capabilities of both ends, state of the session, properties of a
//! column.

use bitflags::bitflags;

bitflags! {
    /// Capabilities of an end of the connection. Both sides announce theirs; the intersection
    /// applies.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Capabilities: u32 {
        /// Has passwords of version 4.1's length; always set.
        const LONG_PASSWORD = 1;
        /// An `UPDATE` reports the rows it found, not those it changed.
        const FOUND_ROWS = 1 << 1;
        /// Column flags take two bytes.
        const LONG_FLAG = 1 << 2;
        /// The handshake response names a schema.
        const CONNECT_WITH_DB = 1 << 3;
        /// `schema.table.column` is refused.
        const NO_SCHEMA = 1 << 4;
        /// zlib compression.
        const COMPRESS = 1 << 5;
        /// The client speaks through ODBC; no meaning for the server.
        const ODBC = 1 << 6;
        /// `LOAD DATA LOCAL INFILE`.
        const LOCAL_FILES = 1 << 7;
        /// Spaces may stand before `(` in function calls.
        const IGNORE_SPACE = 1 << 8;
        /// Protocol 4.1; required.
        const PROTOCOL_41 = 1 << 9;
        /// `interactive_timeout` holds in place of `wait_timeout`.
        const INTERACTIVE = 1 << 10;
        /// TLS.
        const SSL = 1 << 11;
        /// No meaning for the server.
        const IGNORE_SIGPIPE = 1 << 12;
        /// OK packets carry the session's status.
        const TRANSACTIONS = 1 << 13;
        /// Formerly protocol 4.1.
        const RESERVED = 1 << 14;
        /// The authentication response is not terminated by zero.
        const SECURE_CONNECTION = 1 << 15;
        /// Several statements in one text.
        const MULTI_STATEMENTS = 1 << 16;
        /// Several results of one text.
        const MULTI_RESULTS = 1 << 17;
        /// Several results of one prepared statement.
        const PS_MULTI_RESULTS = 1 << 18;
        /// Authentication plugins are named.
        const PLUGIN_AUTH = 1 << 19;
        /// Connection attributes.
        const CONNECT_ATTRS = 1 << 20;
        /// The authentication response has a length-encoded length.
        const PLUGIN_AUTH_LENENC_DATA = 1 << 21;
        /// Sessions with expired passwords are possible.
        const EXPIRED_PASSWORDS = 1 << 22;
        /// OK packets carry session state changes.
        const SESSION_TRACK = 1 << 23;
        /// OK in place of EOF.
        const DEPRECATE_EOF = 1 << 24;
        /// Result sets can come without metadata.
        const OPTIONAL_METADATA = 1 << 25;
        /// zstd compression.
        const COMPRESS_ZSTD = 1 << 26;
        const QUERY_ATTRIBUTES = 1 << 27;
        /// More than one factor of authentication.
        const MULTI_FACTOR = 1 << 28;
        /// Reserved for more capabilities.
        const EXTENSION = 1 << 29;
        /// The client checks the server's certificate.
        const SSL_VERIFY_SERVER_CERT = 1 << 30;
        /// The client remembers options after a failed connect.
        const REMEMBER_OPTIONS = 1 << 31;
    }
}

bitflags! {
    /// The session's state as OK and EOF packets tell it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Status: u16 {
        /// A transaction is open.
        const IN_TRANSACTION = 1;
        /// Autocommit is on.
        const AUTOCOMMIT = 1 << 1;
        /// Another result follows. Set by [`crate::Replies`], never by a session.
        const MORE_RESULTS = 1 << 3;
        /// The statement used no good index.
        const NO_GOOD_INDEX_USED = 1 << 4;
        /// The statement used no index.
        const NO_INDEX_USED = 1 << 5;
        /// A cursor is open. Set by this crate.
        const CURSOR_EXISTS = 1 << 6;
        /// The cursor's last row has been sent. Set by this crate.
        const LAST_ROW_SENT = 1 << 7;
        /// A schema was dropped.
        const SCHEMA_DROPPED = 1 << 8;
        /// `NO_BACKSLASH_ESCAPES` is in `sql_mode`.
        const NO_BACKSLASH_ESCAPES = 1 << 9;
        /// A prepared statement was prepared again and its columns have changed.
        const METADATA_CHANGED = 1 << 10;
        /// The statement was slow.
        const QUERY_WAS_SLOW = 1 << 11;
        /// The result set is the OUT parameters of a procedure.
        const PS_OUT_PARAMS = 1 << 12;
        /// The open transaction is read-only.
        const IN_TRANSACTION_READONLY = 1 << 13;
        /// Session state changes follow. Set by this crate.
        const SESSION_STATE_CHANGED = 1 << 14;
    }
}

bitflags! {
    /// Properties of a column beside its type.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct ColumnFlags: u16 {
        /// Cannot be `NULL`.
        const NOT_NULL = 1;
        /// Part of the primary key.
        const PRIMARY_KEY = 1 << 1;
        /// Part of a unique key.
        const UNIQUE_KEY = 1 << 2;
        /// Part of a key that is not unique.
        const MULTIPLE_KEY = 1 << 3;
        /// `BLOB` or `TEXT`.
        const BLOB = 1 << 4;
        /// Without sign.
        const UNSIGNED = 1 << 5;
        /// Shown with leading zeros.
        const ZEROFILL = 1 << 6;
        /// Of a binary collation.
        const BINARY = 1 << 7;
        const ENUM = 1 << 8;
        const AUTO_INCREMENT = 1 << 9;
        /// `TIMESTAMP` that sets itself.
        const TIMESTAMP = 1 << 10;
        const SET = 1 << 11;
        /// Has no default.
        const NO_DEFAULT_VALUE = 1 << 12;
        /// Set to the current time by an update.
        const ON_UPDATE_NOW = 1 << 13;
        /// Part of some key.
        const PART_KEY = 1 << 14;
        const NUMBER = 1 << 15;
    }
}
