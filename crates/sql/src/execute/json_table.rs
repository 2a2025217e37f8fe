//! Rows of `JSON_TABLE`: a document's values, level by level.

use crate::error::{Result, SqlError};
use crate::execute::Evaluate;
use crate::expression::{Expression, Slot};
use crate::functions::JsonPath;
use crate::logical::json_table::{JsonColumn, JsonColumnSource, JsonLevel, Otherwise};
use crate::types::cast::{self, Source, Target};
use crate::types::cast::{fitting_context, fitting_value};
use crate::types::json::JsonValue;
use crate::types::{Datum, EvaluationContext, SqlType};

use super::Execution;
use super::memory::{Reservation, size_of_values};
use super::operator::Operator;

/// Makes the rows of a document when it is opened.
pub(crate) struct JsonTable<'p> {
    document: &'p Expression,
    level: &'p JsonLevel,
    slots: &'p [Slot],
    rows: std::vec::IntoIter<Box<[Datum]>>,
    held: Option<Reservation>,
}

impl<'p> JsonTable<'p> {
    pub(crate) fn new(
        document: &'p Expression,
        level: &'p JsonLevel,
        slots: &'p [Slot],
    ) -> JsonTable<'p> {
        JsonTable { document, level, slots, rows: Vec::new().into_iter(), held: None }
    }
}

impl Operator for JsonTable<'_> {
    fn open(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        self.rows = Vec::new().into_iter();
        self.held = None;
        let Datum::Json(document) = self.document.evaluate(execution)? else { return Ok(()) };
        let mut rows = Rows {
            row: vec![Datum::Null; self.slots.len()],
            made: Vec::new(),
            held: execution.memory().reservation(),
            context: fitting_context(execution.context),
        };
        rows.add_level(self.level, &document, execution)?;
        self.rows = rows.made.into_iter();
        self.held = Some(rows.held);
        Ok(())
    }

    fn next(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        let Some(row) = self.rows.next() else { return Ok(false) };
        for (slot, value) in self.slots.iter().zip(row) {
            execution.frame.set(*slot, value);
        }
        Ok(true)
    }
}

struct Rows {
    /// The current row: columns of outer levels have their values.
    row: Vec<Datum>,
    made: Vec<Box<[Datum]>>,
    held: Reservation,
    context: EvaluationContext,
}

impl Rows {
    /// Adds the rows of a level below a value; returns whether there were any.
    fn add_level(
        &mut self,
        level: &JsonLevel,
        around: &JsonValue,
        execution: &Execution<'_>,
    ) -> Result<bool> {
        let found = level.path.find(around);
        for (at, value) in found.iter().enumerate() {
            execution.check_cancelled()?;
            for column in &level.columns {
                self.row[column.number] = self.value_of(column, value, at)?;
            }
            let mut has_below = false;
            for nested in &level.nested {
                has_below |= self.add_level(nested, value, execution)?;
            }
            if !has_below {
                self.held.require(size_of_values(&self.row))?;
                self.made.push(self.row.clone().into());
            }
        }
        level.columns.iter().for_each(|column| self.row[column.number] = Datum::Null);
        Ok(!found.is_empty())
    }

    fn value_of(&self, column: &JsonColumn, value: &JsonValue, at: usize) -> Result<Datum> {
        match &column.source {
            JsonColumnSource::Ordinality => Ok(Datum::UInt(at as u64 + 1)),
            JsonColumnSource::Exists(path) => {
                let exists = i64::from(path.find_first(value).is_some());
                let target = Target {
                    ty: &column.ty,
                    column: &column.name,
                    row: 1,
                    ctx: &self.context,
                    source: Source::Expression,
                };
                cast::assign(&Datum::Int(exists), &SqlType::bigint(), target)
            }
            JsonColumnSource::Value { path, on_empty, on_error } => {
                self.found_value(column, path, value, on_empty, on_error)
            }
        }
    }

    fn found_value(
        &self,
        column: &JsonColumn,
        path: &JsonPath,
        value: &JsonValue,
        on_empty: &Otherwise,
        on_error: &Otherwise,
    ) -> Result<Datum> {
        let name = &column.name;
        let found = path.find(value);
        let fitting = match found.as_slice() {
            [] => {
                let missing = format!("Missing value for JSON_TABLE column '{name}'");
                return on_empty.instead_of(SqlError::new(3665, missing));
            }
            [one] => fitting_value(one, &column.ty, name, &self.context),
            several => {
                let all = several.iter().map(|one| (*one).clone()).collect();
                fitting_value(&JsonValue::Array(all), &column.ty, name, &self.context)
            }
        };
        fitting.or_else(|error| on_error.instead_of(error))
    }
}
