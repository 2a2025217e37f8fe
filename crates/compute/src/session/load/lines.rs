//! The lines of a file as rows for an `INSERT`: each field is a text.

use std::io::BufRead;

use firn_sql::collation::Charset;
use firn_sql::error::{Result, SqlError};
use firn_sql::execute::GivenRows;
use firn_sql::types::{Datum, EvaluationContext, SqlType};

use super::fields::{FieldReader, Line};
use super::reading;

pub(super) struct LineRows<R> {
    pub(super) reader: FieldReader<R>,
    /// The current one.
    pub(super) line: Line,
    /// The character set of the file.
    pub(super) charset: Charset,
    /// The type of each field.
    pub(super) ty: SqlType,
    /// A line with the wrong number of fields is an error.
    pub(super) is_strict: bool,
    /// For each expected field: whether it goes to a column.
    pub(super) to_columns: Vec<bool>,
    /// Lines so far.
    pub(super) read: u64,
}

impl<R: BufRead> LineRows<R> {
    fn decode(&mut self) -> Result<()> {
        if self.charset.is_utf8() || self.charset == Charset::Binary {
            return Ok(());
        }
        let mut decoded = Line::default();
        for number in 0..self.line.len() {
            let field = self.line.field(number);
            let text = field.map(|field| self.charset.decode(field).ok_or_else(|| self.invalid()));
            decoded.push(text.transpose()?.as_deref());
        }
        self.line = decoded;
        Ok(())
    }

    fn invalid(&self) -> SqlError {
        SqlError::new(1300, format!("Invalid {} character string", self.charset.name()))
    }

    /// Whether nothing follows the mark that ends the last expected field.
    fn ends_with_mark(&self) -> bool {
        let wanted = self.to_columns.len();
        let is_empty = self.line.field(wanted).is_some_and(<[u8]>::is_empty);
        self.line.len() == wanted + 1 && is_empty
    }

    /// Reports lines that are too short, for each column, or too long.
    pub(super) fn check_length(&self, context: &EvaluationContext) -> Result<()> {
        let (given, row) = (self.line.len(), self.read);
        let missing = self.to_columns.iter().skip(given).filter(|to_column| **to_column);
        for _ in missing {
            self.report(1261, format!("Row {row} doesn't contain data for all columns"), context)?;
        }
        if given > self.to_columns.len() && !self.ends_with_mark() {
            let why = "it contained more data than there were input columns";
            self.report(1262, format!("Row {row} was truncated; {why}"), context)?;
        }
        Ok(())
    }

    fn report(&self, code: u16, message: String, context: &EvaluationContext) -> Result<()> {
        if self.is_strict {
            return Err(SqlError::new(code, message));
        }
        context.warn(code, || message);
        Ok(())
    }
}

impl<R: BufRead> GivenRows for LineRows<R> {
    fn advance(&mut self, _: &EvaluationContext) -> Result<bool> {
        if !self.reader.read_line(&mut self.line).map_err(reading)? {
            return Ok(false);
        }
        self.read += 1;
        self.decode()?;
        Ok(true)
    }

    fn is_missing(&self, column: usize) -> bool {
        column >= self.line.len()
    }

    fn are_of_file(&self) -> bool {
        true
    }

    fn converted(&self, context: &EvaluationContext) -> Result<()> {
        self.check_length(context)
    }

    fn take(&mut self, column: usize) -> Datum {
        self.line.field(column).map_or(Datum::Null, Datum::text)
    }

    fn ty(&self, _: usize) -> &SqlType {
        &self.ty
    }

    fn count(&self) -> u64 {
        0
    }
}
