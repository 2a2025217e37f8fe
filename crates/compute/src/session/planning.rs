//! Trees of statements become plans, within the limits of memory and time that planning has.

use std::time::Duration;

use firn_base::clock::Clock;
use firn_sql::error::Result;
use firn_sql::grammar::ast::{LockStrength, Statement};
use firn_sql::grammar::{self, Literal};
use firn_sql::plan::{PlanContext, PreparedPlan, StatementPlan};
use firn_sql::prepare::plan_statement;
use firn_sql::types::{EvaluationContext, SqlType};
use firn_sql::watch::Watch;

use super::arguments::Arguments;
use super::executor;
use super::rights::Rights;
use super::runner::StatementRunner;
use super::tables;
use crate::accounts::need::{self, Need};
use crate::columns;
use crate::plan_cache::CachedPlan;
use crate::statement_kind::StatementKind;
use crate::status::{Command, count};

/// Where a statement's parameters come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParameterSource {
    /// The client binds them.
    Client,
    /// They are literals of the text.
    Literals,
}

impl StatementRunner {
    /// Parses a text with these literals as parameters.
    ///
    /// # Errors
    /// Errors of the grammar.
    pub(super) fn parse(&self, text: &str, literals: &[Literal]) -> Result<grammar::Parsed> {
        count(&self.facts.status.texts_parsed);
        grammar::parse_lifted(text, self.settings.grammar_mode(), literals, &self.watch(true))
    }

    /// The limits of parsing and planning the current statement. `reads`: `max_execution_time`
    /// applies to it.
    pub(super) fn watch(&self, reads: bool) -> Watch<'_> {
        let clock = &*self.instance.facts.environment.clock as &dyn Clock;
        let limit_ms = self.settings.max_execution_time_ms;
        let deadline = (reads && limit_ms > 0)
            .then(|| (clock, clock.monotonic() + Duration::from_millis(limit_ms)));
        Watch::new(self.facts.cancelled.flag())
            .with_deadline(deadline)
            .with_memory(self.settings.statement_memory_bytes)
    }

    /// Makes a plan.
    ///
    /// # Errors
    /// What binding refuses.
    pub(super) fn plan(&self, statement: &Statement, arguments: &Arguments) -> Result<CachedPlan> {
        Ok(self.plan_described(statement, arguments, ParameterSource::Client)?.0)
    }

    /// Makes the plan of the query of a view that is being created, which the session may not
    /// create over tables on which it has no privileges.
    ///
    /// # Errors
    /// What binding refuses; 1142 and 1143 without the privileges.
    pub(super) fn plan_for_view(&self, query: &Statement) -> Result<CachedPlan> {
        let arguments = Arguments::default();
        let judge = |rights: &Rights, needs: &[Need]| rights.require_for_view(needs);
        let planned = self.plan_judged(query, &arguments, ParameterSource::Client, judge);
        let plan = planned?.0;
        self.rights.require_for_view(&plan.needs)?;
        Ok(plan)
    }

    /// A plan, and the binder's findings about parameters whose types are not given.
    ///
    /// # Errors
    /// Errors of binding and planning.
    pub(super) fn plan_described(
        &self,
        statement: &Statement,
        arguments: &Arguments,
        source: ParameterSource,
    ) -> Result<(CachedPlan, Vec<Option<SqlType>>)> {
        let judge = |rights: &Rights, needs: &[Need]| need::check_tables(needs, &rights.who());
        self.plan_judged(statement, arguments, source, judge)
    }

    /// `judge`: finds an error about privileges that takes precedence over the one of the plan.
    fn plan_judged(
        &self,
        statement: &Statement,
        arguments: &Arguments,
        source: ParameterSource,
        judge: impl Fn(&Rights, &[Need]) -> Result<()>,
    ) -> Result<(CachedPlan, Vec<Option<SqlType>>)> {
        let generation = self.instance.plans.generation();
        let context = PlanContext {
            long_texts: &self.long_texts,
            parameters: &arguments.types,
            parameter_values: &arguments.values,
            parameters_are_literals: source == ParameterSource::Literals,
            variables: &self.state,
            watch: self.watch(matches!(statement, Statement::Select(_))),
            ..PlanContext::new(
                &self.catalog,
                self.state.connection.schema.as_deref(),
                &self.evaluation,
            )
        };
        count(&self.facts.status.statements_planned);
        let planned = plan_statement(statement, &context);
        if planned.is_err() {
            let needs: Vec<_> = context.needs_of_refused.take().iter().map(tables::need).collect();
            judge(&self.rights, &needs)?;
        }
        let plan = planned?;
        let parameter_types = context.parameter_types.take();
        let columns = match &plan.statement {
            StatementPlan::Query(_) if matches!(statement, Statement::Do(_)) => None,
            StatementPlan::Query(query) => {
                Some(columns::encode(&query.columns, self.settings.presentation.collation))
            }
            _ => None,
        };
        let kind = kind_of(statement, &plan);
        let needs = plan.needs.iter().map(tables::need).collect();
        let executor = executor::choose(&plan, &self.instance, &self.settings);
        let mut plan = CachedPlan::new(plan, columns, needs, kind, executor, generation);
        if matches!(statement, Statement::Do(_)) {
            plan.command = Some(Command::Do);
        }
        Ok((plan, parameter_types))
    }

    /// Runs something with the long literals of a statement, and brings back those of the statement
    /// around it.
    pub(super) fn with_long_texts<T>(
        &mut self,
        texts: grammar::LongTexts,
        run: impl FnOnce(&mut StatementRunner) -> T,
    ) -> T {
        let outer = std::mem::replace(&mut self.long_texts, texts);
        let done = run(self);
        self.long_texts = outer;
        done
    }
}

/// Adds the warnings of parsing a statement before those of its rows.
pub(super) fn tell_conditions(evaluation: &EvaluationContext, plan: &CachedPlan) {
    for condition in &plan.plan.conditions {
        let message = || condition.message.clone();
        evaluation.push(condition.level, condition.code, message);
    }
}

/// The kind of a planned statement.
fn kind_of(statement: &Statement, plan: &PreparedPlan) -> StatementKind {
    match (statement, &plan.statement) {
        (Statement::Insert(insert), _) if insert.replace => StatementKind::Replace,
        (_, StatementPlan::Insert(_)) => StatementKind::Insert,
        (_, StatementPlan::Update(_)) => StatementKind::Update,
        (_, StatementPlan::Delete(_)) => StatementKind::Delete,
        (Statement::Select(select), _)
            if select.query.locks.iter().any(|lock| lock.strength == LockStrength::Update) =>
        {
            StatementKind::LockingSelect
        }
        _ => StatementKind::Select,
    }
}
