//! The values of expressions outside queries, such as those of `SET` and `KILL`.

use firn_sql::error::{Result, SqlError};
use firn_sql::grammar::ast::{Expr, Statement};
use firn_sql::types::{Datum, SqlType};

use super::arguments::Arguments;
use super::runner::StatementRunner;
use super::sinks::Gathered;

impl StatementRunner {
    /// The value of an expression outside a query. Its warnings are dropped.
    ///
    /// # Errors
    /// Errors of binding and evaluation.
    pub(super) fn evaluate(&mut self, expression: &Expr) -> Result<(Datum, SqlType)> {
        let arguments = Arguments::default();
        let plan = self.plan(&Statement::Do(vec![expression.clone()]), &arguments)?;
        let mut sink = Gathered::new(self.settings.presentation.time_zone.clone());
        let ran = self.execute_apart(&plan, &arguments, None, &mut sink);
        self.evaluation.take_conditions();
        ran?;
        let value = sink.rows.pop().and_then(|mut row| row.pop()).unwrap_or(Datum::Null);
        let ty = sink.types.pop().unwrap_or_else(SqlType::null);
        Ok((value, ty))
    }
}

/// The value of an expression that is a number.
///
/// # Errors
/// 1210 for another value, errors of binding and evaluation.
pub(super) fn evaluate_number(runner: &mut StatementRunner, expression: &Expr) -> Result<u64> {
    match runner.evaluate(expression)?.0 {
        Datum::Int(number) => {
            u64::try_from(number).map_err(|_| SqlError::new(1210, "Incorrect arguments"))
        }
        Datum::UInt(number) => Ok(number),
        _ => Err(SqlError::new(1210, "Incorrect arguments")),
    }
}
