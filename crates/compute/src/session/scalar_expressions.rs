//! The values of expressions outside queries, such as those of `SET` and `KILL`.

use firn_sql::error::{Result, SqlError};
use firn_sql::grammar::ast::{Expr, Statement};
use firn_sql::types::{Datum, SqlType};

use super::SqlSession;
use super::execution::{Arguments, Gathered};

impl SqlSession {
    /// The value of an expression outside a query.
    ///
    /// # Errors
    /// Errors of binding and evaluation.
    pub(super) fn evaluate(&mut self, expression: &Expr) -> Result<(Datum, SqlType)> {
        let arguments = Arguments::default();
        let plan = self.plan(&Statement::Do(vec![expression.clone()]), &arguments)?;
        let mut sink = Gathered::new(self.settings.presentation.time_zone.clone());
        let kept = std::mem::take(&mut self.conditions);
        let ran = self.execute(&plan, &arguments, &mut sink);
        self.conditions = kept;
        ran?;
        let value = sink.rows.pop().and_then(|mut row| row.pop()).unwrap_or(Datum::Null);
        let ty = sink.types.pop().unwrap_or_else(SqlType::null);
        Ok((value, ty))
    }

    pub(super) fn evaluate_number(&mut self, expression: &Expr) -> Result<u64> {
        match self.evaluate(expression)?.0 {
            Datum::Int(number) => {
                u64::try_from(number).map_err(|_| SqlError::new(1210, "Incorrect arguments"))
            }
            Datum::UInt(number) => Ok(number),
            _ => Err(SqlError::new(1210, "Incorrect arguments")),
        }
    }

    pub(super) fn evaluate_text(&mut self, expression: &Expr) -> Result<String> {
        Ok(self.evaluate(expression)?.0.plain_text())
    }
}
