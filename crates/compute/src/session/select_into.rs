//! `SELECT … INTO`: the rows of a query go into variables or a file instead of to the client.

use firn_sql::error::{Result, SqlError};
use firn_sql::execute::SessionState;
use firn_sql::grammar::ast::{Into, Select};
use firn_sql::types::{Datum, SqlType};
use firn_wire::Replies;

use super::answers::{Answered, Answers};
use super::arguments::Arguments;
use super::runner::StatementRunner;
use super::sinks::Gathered;
use crate::plan_cache::CachedPlan;

/// Runs `SELECT … INTO` in a session.
pub(super) struct SelectIntoStatements<'s> {
    pub(super) runner: &'s mut StatementRunner,
}

impl SelectIntoStatements<'_> {
    /// `SELECT … INTO @a, @b`
    pub(super) fn run(
        &mut self,
        select: &Select,
        plan: &CachedPlan,
        arguments: &Arguments,
        replies: &mut Replies<'_>,
    ) -> Answered {
        let done = self.select_into(select, plan, arguments);
        match done {
            Ok(rows) => Answers::of(self.runner).affected(rows, 0, "", replies),
            Err(error) => Err(self.runner.refused(error)),
        }
    }

    fn select_into(
        &mut self,
        select: &Select,
        plan: &CachedPlan,
        arguments: &Arguments,
    ) -> Result<u64> {
        let names = match &select.into {
            Some(Into::Variables(names)) => names,
            Some(file) => return self.select_into_file(file, plan, arguments),
            None => return Ok(0),
        };
        let mut sink = Gathered::new(self.runner.settings.presentation.time_zone.clone());
        self.runner.execute_whole(plan, arguments, None, &mut sink)?;
        if sink.types.len() != names.len() {
            let why = "The used SELECT statements have a different number of columns";
            return Err(SqlError::new(1222, why));
        }
        match sink.rows.as_slice() {
            [] => {
                self.runner.evaluation.warn(1329, || {
                    "No data - zero rows fetched, selected, or processed".to_owned()
                });
                self.runner.state.diagnostics.keep(&self.runner.evaluation);
                Ok(0)
            }
            [row] => {
                self.keep_in_variables(names, row, &sink.types)?;
                Ok(1)
            }
            [first, ..] => {
                self.keep_in_variables(names, first, &sink.types)?;
                Err(SqlError::new(1172, "Result consisted of more than one row"))
            }
        }
    }

    fn keep_in_variables(
        &mut self,
        names: &[String],
        row: &[Datum],
        types: &[SqlType],
    ) -> Result<()> {
        for ((name, value), ty) in names.iter().zip(row).zip(types) {
            self.runner.state.set_user_variable(&name.to_lowercase(), value.try_clone()?, ty);
        }
        Ok(())
    }
}
