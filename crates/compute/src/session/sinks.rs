//! Where the rows of a statement go that are not sent.

use firn_format::value::ValueRef;
use firn_sql::error::Result;
use firn_sql::execute::ResultSink;
use firn_sql::plan::OutputColumn;
use firn_sql::types::{Datum, SqlType, TimeZone};

/// Takes the rows of a statement that has none.
pub(super) struct NoRows;

impl ResultSink for NoRows {
    fn columns(&mut self, _: &[OutputColumn]) -> Result<()> {
        Ok(())
    }
    fn begin_row(&mut self) -> Result<()> {
        Ok(())
    }
    fn stored(&mut self, _: ValueRef<'_>, _: &SqlType) -> Result<()> {
        Ok(())
    }
    fn datum(&mut self, _: &Datum, _: &SqlType) -> Result<()> {
        Ok(())
    }
    fn end_row(&mut self) -> Result<()> {
        Ok(())
    }
    fn restart(&mut self) -> bool {
        true
    }
}

/// Keeps a result's rows.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) types: Vec<SqlType>,
    pub(super) names: Vec<String>,
    pub(super) rows: Vec<Vec<Datum>>,
    time_zone: TimeZone,
}

impl Gathered {
    pub(super) fn new(time_zone: TimeZone) -> Gathered {
        Gathered { time_zone, ..Gathered::default() }
    }
}

impl ResultSink for Gathered {
    fn columns(&mut self, columns: &[OutputColumn]) -> Result<()> {
        self.types = columns.iter().map(|column| column.value.ty.clone()).collect();
        self.names = columns.iter().map(|column| column.name.to_string()).collect();
        Ok(())
    }
    fn begin_row(&mut self) -> Result<()> {
        self.rows.push(Vec::with_capacity(self.types.len()));
        Ok(())
    }
    fn stored(&mut self, value: ValueRef<'_>, ty: &SqlType) -> Result<()> {
        let datum =
            Datum::from_value_ref(value, ty, &self.time_zone).map_err(firn_sql::error::damaged)?;
        self.datum(&datum, ty)
    }
    fn datum(&mut self, value: &Datum, _: &SqlType) -> Result<()> {
        if let Some(row) = self.rows.last_mut() {
            row.push(value.clone());
        }
        Ok(())
    }
    fn end_row(&mut self) -> Result<()> {
        Ok(())
    }
    fn restart(&mut self) -> bool {
        self.rows.clear();
        true
    }
}
