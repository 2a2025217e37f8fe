//! A connection's prepared statements: the number of parameters of each, their bound types, long
//! data that has arrived, and an open cursor.
//!
//! ```text
//!   COM_STMT_EXECUTE, after the number of runs:
//!   count* | NULL bits | types follow? | type, name* | … | value | value | …
//! ```
//! Fields marked * are sent by clients with query attributes; values beyond the statement's own
//! parameters are attributes. A parameter with long data has no value here.

use firn_base::memory;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::attributes::{Attributes, is_null};
use super::parameters::ParameterType;
use crate::error::ServerError;
use crate::packet::{Malformed, PayloadReader};
use crate::reply::CursorRows;
use crate::value::{Attribute, Parameter};

/// `COM_STMT_EXECUTE` has a count of parameters even if the statement has none.
const FLAG_COUNT_AVAILABLE: u8 = 0x08;

/// `COM_STMT_EXECUTE` asks for a cursor of some kind.
const FLAGS_CURSOR: u8 = 0x07;

/// The values of an execution.
#[derive(Default)]
pub(crate) struct Bound<'a> {
    pub(crate) parameters: SmallVec<[Parameter<'a>; 8]>,
    pub(crate) attributes: Attributes<'a>,
}

/// A connection's prepared statements by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    open: FxHashMap<u32, Statement>,
    last: u32,
}

impl Statements {
    /// A number that no open statement has.
    pub(crate) fn next_number(&mut self) -> u32 {
        loop {
            self.last = self.last.wrapping_add(1);
            if self.last != 0 && !self.open.contains_key(&self.last) {
                return self.last;
            }
        }
    }

    pub(crate) fn insert(&mut self, number: u32, parameters: usize) {
        self.open.insert(number, Statement::new(parameters));
    }

    pub(crate) fn get(
        &mut self,
        number: u32,
        command: &str,
    ) -> Result<&mut Statement, ServerError> {
        self.open.get_mut(&number).ok_or_else(|| ServerError::unknown_statement(number, command))
    }

    /// True if it was open.
    pub(crate) fn remove(&mut self, number: u32) -> bool {
        self.open.remove(&number).is_some()
    }

    /// Drops all statements; returns how many there were.
    pub(crate) fn clear(&mut self) -> usize {
        std::mem::take(&mut self.open).len()
    }
}

/// The protocol's state of a prepared statement.
#[derive(Debug)]
pub(crate) struct Statement {
    parameters: usize,
    /// The types that were bound last; empty before the first execution.
    types: Vec<ParameterType>,
    /// By parameter; empty if the statement has none.
    long_data: Vec<Option<Vec<u8>>>,
    /// The error of a long-data command, which has no answer.
    long_data_error: Option<ServerError>,
    /// Rows that wait to be fetched.
    pub(crate) cursor: Option<CursorRows>,
}

impl Statement {
    fn new(parameters: usize) -> Statement {
        Statement {
            parameters,
            types: Vec::new(),
            long_data: Vec::new(),
            long_data_error: None,
            cursor: None,
        }
    }

    /// Whether the flags of an execution ask for a cursor.
    pub(crate) fn wants_cursor(flags: u8) -> bool {
        flags & FLAGS_CURSOR != 0
    }

    /// Appends to a parameter's value. An error is reported when the statement is executed.
    pub(crate) fn add_long_data(&mut self, parameter: u16, data: &[u8], limit: usize) {
        let parameter = usize::from(parameter);
        if parameter >= self.parameters {
            self.long_data_error = Some(ServerError::wrong_arguments("mysqld_stmt_send_long_data"));
            return;
        }
        self.long_data.resize(self.parameters, None);
        let gathered = self.long_data[parameter].get_or_insert_default();
        if gathered.len() + data.len() > limit {
            let message = "Parameter of prepared statement which is set through \
                           mysql_send_long_data() is longer than 'max_allowed_packet' bytes";
            self.long_data_error = Some(ServerError::new(1153, b"08S01", message));
            return;
        }
        // The data moves when it outgrows its allocation.
        let grown =
            if gathered.capacity() - gathered.len() < data.len() { gathered.len() } else { 0 };
        match memory::ask(data.len() + grown) {
            Ok(_promise) => gathered.extend_from_slice(data),
            Err(no_room) => self.refuse_long_data(ServerError::out_of_memory(no_room)),
        }
    }

    /// Drops long data that could not be kept. The error is reported when the statement is
    /// executed.
    pub(crate) fn refuse_long_data(&mut self, error: ServerError) {
        self.long_data.clear();
        self.long_data_error = Some(error);
    }

    /// Forgets long data and the cursor.
    pub(crate) fn reset(&mut self) {
        self.forget_long_data();
        self.cursor = None;
    }

    /// Drops long data: one execution uses it up.
    pub(crate) fn forget_long_data(&mut self) {
        self.long_data.clear();
        self.long_data_error = None;
    }

    /// The error of a long-data command since the last execution.
    pub(crate) fn take_long_data_error(&mut self) -> Option<ServerError> {
        self.long_data_error.take()
    }

    /// Takes the values of an execution into `into`, which is empty, and binds types if there are
    /// new ones. `long_data` is what [`Statement::take_long_data`] has returned.
    pub(crate) fn bind<'a>(
        &mut self,
        reader: &mut PayloadReader<'a>,
        flags: u8,
        has_attributes: bool,
        long_data: &'a [Option<Vec<u8>>],
        into: &mut Bound<'a>,
    ) -> Result<(), Malformed> {
        let Bound { parameters, attributes } = into;
        let counted = has_attributes && flags & FLAG_COUNT_AVAILABLE != 0;
        if self.parameters == 0 && !counted {
            return Ok(());
        }
        let mut count = self.parameters;
        if has_attributes {
            count = usize::try_from(reader.length_encoded_integer()?).map_err(|_| Malformed)?;
        }
        if count < self.parameters {
            return Err(Malformed);
        }
        if count == 0 {
            return Ok(());
        }
        let nulls = reader.take(count.div_ceil(8))?;
        if reader.u8()? == 1 {
            self.bind_types(reader, count, has_attributes, attributes)?;
        }
        for number in 0..count {
            let bound = *self.types.get(number).ok_or(Malformed)?;
            let value = match long_data.get(number) {
                Some(Some(data)) => bound.bytes(data),
                _ if is_null(nulls, number) => Parameter::Null,
                _ => bound.value(reader)?,
            };
            match number.checked_sub(self.parameters) {
                None => parameters.push(value),
                Some(extra) => match attributes.get_mut(extra) {
                    Some(attribute) => attribute.value = value,
                    // The type was bound before; the name was not kept.
                    None => attributes.push(Attribute { name: b"", value }),
                },
            }
        }
        Ok(())
    }

    /// Reads each type and, where there are names, each name. Names of parameters have no meaning.
    fn bind_types<'a>(
        &mut self,
        reader: &mut PayloadReader<'a>,
        count: usize,
        has_names: bool,
        attributes: &mut Attributes<'a>,
    ) -> Result<(), Malformed> {
        self.types.clear();
        for number in 0..count {
            self.types.push(ParameterType::decode(reader)?);
            let name = if has_names { reader.length_encoded_bytes()? } else { b"" };
            if number >= self.parameters {
                attributes.push(Attribute { name, value: Parameter::Null });
            }
        }
        Ok(())
    }

    /// The long data that has arrived, by parameter.
    pub(crate) fn take_long_data(&mut self) -> Vec<Option<Vec<u8>>> {
        std::mem::take(&mut self.long_data)
    }
}
