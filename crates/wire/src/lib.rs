//! The MySQL protocol, server side: packets, handshake, passwords, TLS, compression, commands,
//! results, and the threads that serve connections.
//!
//! Architecture invariant: this crate knows no SQL. Texts reach the session layer unchanged,
//! through [`Service`] and [`Session`]; answers come back through [`Replies`].
//!
//! Input from a client is never trusted: any bytes lead to an answer, an error or a closed
//! connection.

pub mod auth;
mod cancellation;
mod channel;
mod command;
mod connections;
#[doc(hidden)]
pub mod decoding;
mod error;
mod flags;
mod handshake;
mod packet;
mod reply;
mod server;
mod service;
mod value;

pub use auth::Credentials;
pub use cancellation::{CancelReason, Canceller};
pub use channel::{CompressionAlgorithm, PeerAddress, TlsFiles, TlsInformation, TlsMode};
pub use command::CommandCode;
pub use connections::{ConnectionControl, ConnectionState, ConnectionStatistics, Connections};
pub use error::{ServerError, WireError};
pub use flags::{Capabilities, ColumnFlags, Status};
pub use reply::{
    ColumnDefinition, Completion, CursorEnd, EncodedColumns, LocalInfile, NotColumns, RelayChannel,
    RelayStream, RelayedRows, Replies, ReplyRecorder, ResultSet, Row, RowFormat, SessionChange,
};
pub use server::{LimitValues, Limits, Server, ServerOptions};
pub use service::{
    Carried, CommandIdentity, CommittedAnswer, Execution, FieldDefinition, LastResults, Login,
    Prepared, Query, Service, Session,
};
pub use value::{Attribute, ColumnType, Date, DateTime, Parameter, Time};
