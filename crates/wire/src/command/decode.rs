//! Decodes a payload into a command.

use super::CommandCode;
use crate::packet::{Malformed, PayloadReader};

/// A command whose parts borrow the payload.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Command<'a> {
    Quit,
    InitDb(&'a [u8]),
    /// Attributes come first, if the client can send them.
    Query(PayloadReader<'a>),
    FieldList {
        table: &'a [u8],
        pattern: &'a [u8],
    },
    Statistics,
    ProcessKill(u32),
    Ping,
    ChangeUser(&'a [u8]),
    Prepare(&'a [u8]),
    Execute {
        statement: u32,
        flags: u8,
        values: PayloadReader<'a>,
    },
    SendLongData {
        statement: u32,
        parameter: u16,
        data: &'a [u8],
    },
    Close(u32),
    ResetStatement(u32),
    SetOption(u16),
    Fetch {
        statement: u32,
        rows: u32,
    },
    ResetConnection,
}

impl<'a> Command<'a> {
    /// The command of that code with the rest of its payload.
    pub(crate) fn decode(code: CommandCode, rest: &'a [u8]) -> Result<Command<'a>, Malformed> {
        let mut reader = PayloadReader::new(rest);
        Ok(match code {
            CommandCode::Quit => Command::Quit,
            CommandCode::InitDb => Command::InitDb(rest),
            CommandCode::Query => Command::Query(reader),
            CommandCode::FieldList => {
                Command::FieldList { table: reader.zero_terminated()?, pattern: reader.take_all() }
            }
            CommandCode::Statistics => Command::Statistics,
            CommandCode::ProcessKill => Command::ProcessKill(reader.u32()?),
            CommandCode::Ping => Command::Ping,
            CommandCode::ChangeUser => Command::ChangeUser(rest),
            CommandCode::StatementPrepare => Command::Prepare(rest),
            CommandCode::StatementExecute => {
                let (statement, flags) = (reader.u32()?, reader.u8()?);
                // The iteration count, which is always 1.
                reader.u32()?;
                Command::Execute { statement, flags, values: reader }
            }
            CommandCode::StatementSendLongData => Command::SendLongData {
                statement: reader.u32()?,
                parameter: reader.u16()?,
                data: reader.take_all(),
            },
            CommandCode::StatementClose => Command::Close(reader.u32()?),
            CommandCode::StatementReset => Command::ResetStatement(reader.u32()?),
            CommandCode::SetOption => Command::SetOption(reader.u16()?),
            CommandCode::StatementFetch => {
                Command::Fetch { statement: reader.u32()?, rows: reader.u32()? }
            }
            CommandCode::ResetConnection => Command::ResetConnection,
        })
    }
}
