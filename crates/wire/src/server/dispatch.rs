//! Passes a command to the session, and the answer back.

use std::ops::ControlFlow;

use firn_base::memory::NoRoom;

use super::connection::Connection;
use crate::command::{Attributes, Bound, Command, CommandCode, Statement, take_attributes};
use crate::error::{ServerError, WireError};
use crate::flags::{Capabilities, Status};
use crate::packet::{Malformed, PayloadReader, PayloadWriter};
use crate::reply::{
    Completion, EncodedColumns, Replies, RowFormat, put_definition, put_end_of_rows, put_error,
};
use crate::service::{Execution, Prepared, Query, Session};

impl Connection {
    /// Runs the command and sends its answer. Breaks if the client has sent `COM_QUIT`.
    pub(super) fn answer(&mut self, payload: &[u8]) -> Result<ControlFlow<()>, WireError> {
        let result = self.dispatch(payload);
        match result {
            // The client does not expect an answer here, and would take one for that of its next
            // command.
            Ok(_) | Err(WireError::Refused(_)) if is_never_answered(payload) => {
                self.acknowledge();
                Ok(ControlFlow::Continue(()))
            }
            Ok(flow) => {
                self.is_answer_left = !self.channel.answer()?;
                Ok(flow)
            }
            Err(WireError::Refused(error)) => {
                put_error(self.channel.output.begin(), &error, true);
                self.channel.output.commit();
                self.is_answer_left = !self.channel.answer()?;
                Ok(ControlFlow::Continue(()))
            }
            Err(error) => Err(error),
        }
    }

    /// Refuses a command that was discarded for lack of memory. Its first bytes are known.
    pub(super) fn refuse_command(&mut self, no_room: NoRoom) -> Result<(), WireError> {
        let error = ServerError::out_of_memory(no_room);
        let beginning = std::mem::take(&mut self.command);
        if !is_never_answered(&beginning) {
            put_error(self.channel.output.begin(), &error, true);
            self.channel.output.commit();
            return self.channel.flush();
        }
        let decoded = beginning
            .split_first()
            .and_then(|(&code, rest)| Command::decode(CommandCode::from_code(code)?, rest).ok());
        if let Some(Command::SendLongData { statement, .. }) = decoded
            && let Ok(statement) = self.statements.get(statement, "mysqld_stmt_send_long_data")
        {
            statement.refuse_long_data(error);
        }
        self.acknowledge();
        Ok(())
    }

    /// Acknowledges a command to which there is no answer.
    fn acknowledge(&self) {
        if !self.channel.has_input()
            && let Some(socket) = self.control.socket()
        {
            socket.acknowledge();
        }
    }

    fn dispatch(&mut self, payload: &[u8]) -> Result<ControlFlow<()>, WireError> {
        let (&code, rest) = payload.split_first().ok_or_else(WireError::malformed)?;
        let code = CommandCode::from_code(code).ok_or_else(ServerError::unknown_command)?;
        let command = Command::decode(code, rest).map_err(|Malformed| WireError::malformed())?;
        self.control.begin_command(code, self.channel.clock().monotonic());
        match command {
            Command::Quit => {
                self.control.say_good_bye();
                return Ok(ControlFlow::Break(()));
            }
            Command::InitDb(schema) => self.with_text(|session, to| session.init_db(schema, to))?,
            Command::Query(reader) => self.query(reader)?,
            Command::FieldList { table, pattern } => self.field_list(table, pattern)?,
            Command::Statistics => self.statistics()?,
            Command::ProcessKill(id) => {
                self.session()?.kill(id)?;
                self.say_ok()?;
            }
            Command::Ping => self.say_ok()?,
            Command::ChangeUser(rest) => self.change_user(rest)?,
            Command::Prepare(text) => self.prepare(text)?,
            Command::Execute { statement, flags, values } => {
                self.execute(statement, flags, values)?;
            }
            Command::SendLongData { statement, parameter, data } => {
                self.send_long_data(statement, parameter, data);
            }
            Command::Close(statement) => self.close_statement(statement)?,
            Command::ResetStatement(statement) => {
                self.statements.get(statement, "mysqld_stmt_reset")?.reset();
                self.say_ok()?;
            }
            Command::SetOption(option) => self.set_option(option)?,
            Command::Fetch { statement, rows } => self.fetch(statement, rows)?,
            Command::ResetConnection => {
                self.forget_statements();
                self.with_text(|session, replies| session.reset(replies))?;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn session(&mut self) -> Result<&mut dyn Session, WireError> {
        match &mut self.session {
            Some(session) => Ok(&mut **session),
            None => Err(WireError::closed()),
        }
    }

    fn with_text(
        &mut self,
        run: impl FnOnce(&mut dyn Session, &mut Replies<'_>) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        let session = self.session.as_deref_mut().ok_or_else(WireError::closed)?;
        let mut replies = Replies::new(&mut self.channel, RowFormat::Text);
        run(session, &mut replies)?;
        // A session that ends its connection leaves out what followed in the text.
        if !self.control.ends_after_answer() {
            expect_answered(&replies);
        }
        Ok(())
    }

    fn query(&mut self, mut reader: PayloadReader<'_>) -> Result<(), WireError> {
        let mut attributes = Attributes::new();
        if self.channel.capabilities.contains(Capabilities::QUERY_ATTRIBUTES) {
            attributes =
                take_attributes(&mut reader).map_err(|Malformed| WireError::malformed())?;
        }
        let query = Query {
            text: reader.take_all(),
            attributes: &attributes,
            multi_statements: self.multi_statements,
        };
        self.with_text(|session, replies| session.query(query, replies))
    }

    fn field_list(&mut self, table: &[u8], pattern: &[u8]) -> Result<(), WireError> {
        let session = self.session()?;
        let fields = session.field_list(table, pattern)?;
        let status = session.status();
        for field in fields {
            let buffer = self.channel.output.begin();
            put_definition(buffer, &field.column);
            match field.default {
                Some(default) => buffer.put_length_encoded_bytes(&default),
                None => buffer.put_u8(0xfb),
            }
            self.channel.output.commit();
            self.channel.flush_if_full()?;
        }
        self.end_of_rows(status, 0);
        Ok(())
    }

    fn statistics(&mut self) -> Result<(), WireError> {
        let line = self.session()?.statistics();
        self.channel.output.begin().put(line.as_bytes());
        self.channel.output.commit();
        Ok(())
    }

    fn set_option(&mut self, option: u16) -> Result<(), WireError> {
        self.multi_statements = match option {
            0 => true,
            1 => false,
            _ => return Err(ServerError::unknown_command().into()),
        };
        let status = self.session()?.status();
        self.end_of_rows(status, 0);
        Ok(())
    }

    fn end_of_rows(&mut self, status: Status, warnings: u16) {
        let completion = Completion { warnings, ..Completion::default() };
        let capabilities = self.channel.capabilities;
        put_end_of_rows(self.channel.output.begin(), &completion, status, capabilities);
        self.channel.output.commit();
    }

    fn prepare(&mut self, text: &[u8]) -> Result<(), WireError> {
        if !self.shared.reserve_statement() {
            let limit = self.shared.limits.max_prepared_stmt_count();
            return Err(ServerError::too_many_statements(limit).into());
        }
        let statement = self.statements.next_number();
        let prepared = self.session().and_then(|session| session.prepare(statement, text));
        let prepared = prepared.inspect_err(|_| self.shared.release_statements(1))?;
        if prepared.parameters.len() > usize::from(u16::MAX) {
            self.shared.release_statements(1);
            self.session()?.close_statement(statement);
            return Err(ServerError::too_many_placeholders().into());
        }
        self.statements.insert(statement, prepared.parameters.len());
        let status = self.session()?.status();
        let buffer = self.channel.output.begin();
        put_prepared(buffer, statement, &prepared);
        self.channel.output.commit();
        self.definitions(&prepared.parameters, status);
        self.definitions(&prepared.columns, status);
        Ok(())
    }

    /// Definitions without their number, and an EOF where the client expects one.
    fn definitions(&mut self, columns: &EncodedColumns, status: Status) {
        if columns.is_empty() {
            return;
        }
        self.channel.output.append_packets(columns.definitions(), columns.len());
        if !self.channel.capabilities.contains(Capabilities::DEPRECATE_EOF) {
            self.end_of_rows(status, 0);
        }
    }

    fn execute(
        &mut self,
        number: u32,
        flags: u8,
        values: PayloadReader<'_>,
    ) -> Result<(), WireError> {
        let statement = self.statements.get(number, "mysqld_stmt_execute")?;
        statement.cursor = None;
        let long_data = statement.take_long_data();
        let mut values = values;
        if let Some(error) = statement.take_long_data_error() {
            return Err(error.into());
        }
        let has_attributes = self.channel.capabilities.contains(Capabilities::QUERY_ATTRIBUTES);
        let mut bound = Bound::default();
        statement
            .bind(&mut values, flags, has_attributes, &long_data, &mut bound)
            .map_err(|Malformed| ServerError::wrong_arguments("mysqld_stmt_execute"))?;
        let Bound { parameters, attributes } = &bound;
        let execution = Execution { statement: number, parameters, attributes };
        let session = self.session.as_deref_mut().ok_or_else(WireError::closed)?;
        let mut cursor = None;
        let mut replies = Replies::new(&mut self.channel, RowFormat::Binary);
        if Statement::wants_cursor(flags) {
            replies = replies.with_cursor(&mut cursor);
        }
        session.execute(execution, &mut replies)?;
        expect_answered(&replies);
        statement.cursor = cursor;
        Ok(())
    }

    fn send_long_data(&mut self, number: u32, parameter: u16, data: &[u8]) {
        let limit = self.channel.max_packet_bytes;
        // This command is never answered, not even for a statement that does not exist.
        if let Ok(statement) = self.statements.get(number, "mysqld_stmt_send_long_data") {
            statement.add_long_data(parameter, data, limit);
        }
    }

    fn close_statement(&mut self, number: u32) -> Result<(), WireError> {
        if self.statements.remove(number) {
            self.shared.release_statements(1);
            self.session()?.close_statement(number);
        }
        Ok(())
    }

    fn fetch(&mut self, number: u32, rows: u32) -> Result<(), WireError> {
        let statement = self.statements.get(number, "mysqld_stmt_fetch")?;
        let cursor =
            statement.cursor.as_mut().ok_or_else(|| ServerError::no_open_cursor(number))?;
        for _ in 0..rows {
            let Some(payload) = cursor.fetch() else { break };
            self.channel.output.begin().put(payload);
            self.channel.output.commit();
            self.channel.flush_if_full()?;
        }
        let (mut status, warnings) = (cursor.status | Status::CURSOR_EXISTS, cursor.warnings);
        if cursor.is_exhausted() {
            status |= Status::LAST_ROW_SENT;
            statement.cursor = None;
        }
        self.end_of_rows(status, warnings);
        Ok(())
    }
}

fn is_never_answered(payload: &[u8]) -> bool {
    use CommandCode::{StatementClose, StatementSendLongData};
    let code = payload.first().and_then(|&code| CommandCode::from_code(code));
    matches!(code, Some(StatementClose | StatementSendLongData))
}

/// Without an answer the client would wait for ever.
fn expect_answered(replies: &Replies<'_>) {
    assert!(replies.is_answered(), "the session returned without having answered");
}

fn put_prepared(buffer: &mut Vec<u8>, statement: u32, prepared: &Prepared) {
    buffer.put_u8(0);
    buffer.put_u32(statement);
    buffer.put_u16(prepared.columns.len() as u16);
    buffer.put_u16(prepared.parameters.len() as u16);
    buffer.put_u8(0);
    buffer.put_u16(prepared.warnings);
}
