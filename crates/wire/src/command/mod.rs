//! Commands: a client's requests after login. The first byte of the payload is the code.

mod attributes;
mod decode;
mod parameters;
mod statements;

pub(crate) use attributes::{Attributes, take_attributes};
pub(crate) use decode::Command;
pub(crate) use statements::{Bound, Statement, Statements};

macro_rules! command_codes {
    ($($(#[$docs:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum CommandCode {
            $($(#[$docs])* $name = $code,)*
        }

        impl CommandCode {
            /// The command of that code, if it is one that this server knows.
            #[must_use]
            pub fn from_code(code: u8) -> Option<CommandCode> {
                match code {
                    $($code => Some(CommandCode::$name),)*
                    _ => None,
                }
            }

            /// The name that a process list shows.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(CommandCode::$name => $text,)*
                }
            }
        }
    };
}

command_codes! {
    /// The client disconnects.
    Quit = 0x01, "Quit";
    /// Choose a schema.
    InitDb = 0x02, "Init DB";
    /// Run a text.
    Query = 0x03, "Query";
    /// List a table's columns.
    FieldList = 0x04, "Field List";
    /// Return a line of statistics.
    Statistics = 0x09, "Statistics";
    /// End a connection.
    ProcessKill = 0x0c, "Kill";
    /// Check that the server responds.
    Ping = 0x0e, "Ping";
    /// Log in again.
    ChangeUser = 0x11, "Change user";
    /// Prepare a statement.
    StatementPrepare = 0x16, "Prepare";
    /// Run a prepared statement.
    StatementExecute = 0x17, "Execute";
    /// Add to a parameter's value.
    StatementSendLongData = 0x18, "Long Data";
    /// Drop a prepared statement.
    StatementClose = 0x19, "Close stmt";
    /// Forget long data and the cursor.
    StatementReset = 0x1a, "Reset stmt";
    /// Allow or forbid several statements in a text.
    SetOption = 0x1b, "Set option";
    /// Fetch rows from a cursor.
    StatementFetch = 0x1c, "Fetch";
    /// Reset the session without a new login.
    ResetConnection = 0x1f, "Reset Connection";
}

#[cfg(test)]
mod tests;
