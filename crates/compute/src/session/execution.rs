//! Planning and running queries and statements that write.
//!
//! ```text
//!   text ─normalise─► key, literals ─► cached plan ───────┐
//!                        └─miss─► parse ─► new plan ──────┴─► transaction ─► execute ─► commit
//! ```
//!
//! A text is normalised, parsed and planned once. Its literals are parameters of its plan even if
//! the plan cannot be kept for other literals. Only a statement that was refused is parsed and
//! planned once more, as written: its error speaks of the literals.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use firn_base::clock::Clock;
use firn_base::memory;
use firn_sql::error::{ErrorKind, Result, SqlError};
use firn_sql::execute::{Execution, ExecutionContext, GivenRows, Outcome, ResultSink};
use firn_sql::grammar::ast::{LockStrength, Statement};
use firn_sql::grammar::{self, LiteralValue};
use firn_sql::plan::{Counters, PlanContext, PreparedPlan, StatementPlan};
use firn_sql::prepare::plan_statement;
use firn_sql::types::{Datum, Decimal, SqlType, TypeKind};
use firn_sql::watch::Watch;
use firn_wire::{Completion, Replies, WireError};

use super::buffers::StatementBuffers;
use super::select_into::SelectIntoStatements;
use super::settings::Settings;
use super::{SqlSession, executor, wire_error};
use crate::accounts::need;
use crate::columns;
use crate::plan_cache::{CachedPlan, ChosenExecutor};
use crate::statement_kind::StatementKind;
use crate::status::{Command, count};
use crate::wire_rows::WireSink;

type Answered = std::result::Result<(), WireError>;

/// Parameters for which a plan was found or made.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub(super) values: Vec<Datum>,
    pub(super) types: Vec<SqlType>,
}

/// Where a statement's parameters come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParameterSource {
    /// The client binds them.
    Client,
    /// They are literals of the text.
    Literals,
}

/// A text that was parsed with its literals as parameters.
pub(super) struct LiftedText<'t> {
    pub(super) text: &'t str,
    /// The literals.
    pub(super) arguments: Arguments,
    /// Whether a column's name has a literal's text: the plan is not one for other literals.
    pub(super) names_show_literals: bool,
}

/// The execution's input.
#[derive(Clone, Copy)]
pub(super) struct Input<'i> {
    pub(super) plan: &'i PreparedPlan,
    pub(super) executor: &'i ChosenExecutor,
    pub(super) arguments: &'i Arguments,
    /// The deadline, if its time is limited.
    pub(super) deadline: Option<std::time::Duration>,
}

impl SqlSession {
    /// Runs a statement by its text: with a plan from the cache, or else with a new one.
    pub(super) fn run_statement_text(&mut self, text: &str, replies: &mut Replies<'_>) -> Answered {
        let Some(arguments) = self.lift_literals(text) else {
            return self.parse_and_run(text, None, replies);
        };
        match self.run_recent(&arguments, replies) {
            Some(answered) => {
                self.keep_arguments(arguments);
                answered
            }
            None => self.parse_and_run(text, Some(arguments), replies),
        }
    }

    /// The literals of a text whose plan may be in the cache; its key is then in the buffers.
    /// `None`: the text is not one that is cached, or its literals have to be in its tree.
    fn lift_literals(&mut self, text: &str) -> Option<Arguments> {
        count(&self.facts.status.texts_normalised);
        if !grammar::normalise(text, self.grammar_mode(), &mut self.buffers.normalised) {
            return None;
        }
        if self.rights.refresh().is_err() || self.rights.sandboxed || !self.shares_plans() {
            return None;
        }
        let arguments = self.literal_arguments(text)?;
        self.write_key(&arguments);
        Some(arguments)
    }

    /// Parses a text with its lifted literals as parameters.
    ///
    /// # Errors
    /// Errors of the grammar.
    pub(super) fn parse(&self, text: &str, is_lifted: bool) -> Result<grammar::Parsed> {
        count(&self.facts.status.texts_parsed);
        let literals = if is_lifted { self.buffers.normalised.literals() } else { &[] };
        grammar::parse_lifted(text, self.grammar_mode(), literals, &self.watch(true))
    }

    /// Runs the plan for the session's key, if there is one. The session remembers the plans that
    /// it found last, because all cores share the reference counts in the cache.
    fn run_recent(&mut self, arguments: &Arguments, replies: &mut Replies<'_>) -> Option<Answered> {
        let mut recent = std::mem::take(&mut self.buffers.recent);
        let plan = recent.find(&self.buffers.key, self.catalog.shared(), &self.instance.plans);
        let plan = plan.filter(|plan| plan.plan.holds_for(&arguments.values, &self.evaluation));
        let answered = plan.map(|plan| {
            count(&self.facts.status.plan_cache_hits);
            self.conditions.clear();
            self.tell_conditions(plan);
            self.run_plan(plan, arguments, replies)
        });
        self.buffers.recent = recent;
        answered
    }

    /// Takes back the memory of used arguments.
    pub(super) fn keep_arguments(&mut self, mut arguments: Arguments) {
        arguments.values.clear();
        arguments.types.clear();
        self.buffers.arguments = arguments;
    }

    /// The literals that were lifted out of the text. `None`: it has placeholders, which a text
    /// that is run directly cannot have.
    fn literal_arguments(&mut self, text: &str) -> Option<Arguments> {
        let (collation, mode) = (self.settings.connection_collation, self.grammar_mode());
        // Without memory for them, the statement is planned in full, which reports the error.
        let lifted = |literal: &grammar::Literal| literal.range().len();
        let lifted_bytes = self.buffers.normalised.literals().iter().map(lifted).sum();
        let _promise = memory::ask(lifted_bytes).ok()?;
        let mut arguments = std::mem::take(&mut self.buffers.arguments);
        for literal in self.buffers.normalised.literals() {
            let (value, ty) = literal_value(literal.value(text, mode), collation)?;
            arguments.values.push(value);
            arguments.types.push(ty);
        }
        Some(arguments)
    }

    /// The key for the plan cache: everything that the plan depends on besides the definitions.
    fn write_key(&mut self, arguments: &Arguments) {
        let StatementBuffers { key, normalised, .. } = &mut self.buffers;
        let schema = self.state.connection.schema.as_deref();
        write_key(key, normalised.text(), schema, &self.settings, arguments);
    }

    pub(super) fn write_key_of(&mut self, text: &str, arguments: &Arguments) {
        let schema = self.state.connection.schema.as_deref();
        write_key(&mut self.buffers.key, text, schema, &self.settings, arguments);
    }

    /// Whether names mean the same to this session as to all others: it has had no temporary
    /// tables.
    pub(super) fn shares_plans(&self) -> bool {
        self.catalog.temporary_version() == 0
    }

    /// Plans and runs a statement that was just parsed.
    pub(super) fn run_planned(
        &mut self,
        statement: &Statement,
        lifted: Option<LiftedText<'_>>,
        replies: &mut Replies<'_>,
    ) -> Answered {
        let planned = self.plan_text(statement, lifted);
        match planned {
            Ok((plan, arguments)) => {
                self.tell_conditions(&plan);
                let answered = match statement {
                    Statement::Select(select) if select.into.is_some() => {
                        let mut into = SelectIntoStatements { session: self };
                        into.run(select, &plan, &arguments, replies)
                    }
                    _ => self.run_plan(&plan, &arguments, replies),
                };
                self.keep_arguments(arguments);
                answered
            }
            Err(error) => {
                self.keep_error(&error);
                Err(wire_error(error))
            }
        }
    }

    /// A plan for a statement, cached for the next time if possible.
    fn plan_text(
        &mut self,
        statement: &Statement,
        lifted: Option<LiftedText<'_>>,
    ) -> Result<(Arc<CachedPlan>, Arguments)> {
        count(&self.facts.status.plan_cache_misses);
        let Some(LiftedText { text, arguments, names_show_literals }) = lifted else {
            let arguments = Arguments::default();
            return Ok((Arc::new(self.plan(statement, &arguments)?), arguments));
        };
        let literals = ParameterSource::Literals;
        let plan = match self.plan_described(statement, &arguments, literals) {
            Ok((plan, _)) => Arc::new(plan),
            Err(error) if arguments.values.is_empty() || is_limit(&error) => return Err(error),
            Err(_) => return self.plan_as_written(text),
        };
        if plan.plan.is_cacheable && !names_show_literals {
            self.instance.plans.put(&self.buffers.key, Arc::clone(&plan));
        }
        Ok((plan, arguments))
    }

    /// Plans a statement that was refused with its literals as parameters. The error should speak
    /// of the literals, and a few forms take literals only.
    #[cold]
    fn plan_as_written(&mut self, text: &str) -> Result<(Arc<CachedPlan>, Arguments)> {
        let parsed = self.parse(text, false)?;
        self.buffers.long_texts = parsed.long_texts;
        let arguments = Arguments::default();
        Ok((Arc::new(self.plan(&parsed.statement, &arguments)?), arguments))
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
    pub(super) fn plan(
        &mut self,
        statement: &Statement,
        arguments: &Arguments,
    ) -> Result<CachedPlan> {
        Ok(self.plan_described(statement, arguments, ParameterSource::Client)?.0)
    }

    /// A plan, and the binder's findings about parameters whose types are not given.
    ///
    /// # Errors
    /// Errors of binding and planning.
    pub(super) fn plan_described(
        &mut self,
        statement: &Statement,
        arguments: &Arguments,
        source: ParameterSource,
    ) -> Result<(CachedPlan, Vec<Option<SqlType>>)> {
        let generation = self.instance.plans.generation();
        let context = PlanContext {
            long_texts: &self.buffers.long_texts,
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
            let needs: Vec<_> =
                context.needs_of_refused.take().iter().map(super::tables::need).collect();
            match self.judges_view {
                true => self.rights.require_for_view(&needs)?,
                false => need::check_tables(&needs, &self.rights.who())?,
            }
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
        let needs = plan.needs.iter().map(super::tables::need).collect();
        let executor = executor::choose(&plan, &self.instance, &self.settings);
        let mut plan = CachedPlan::new(plan, columns, needs, kind, executor, generation);
        if matches!(statement, Statement::Do(_)) {
            plan.command = Some(Command::Do);
        }
        Ok((plan, parameter_types))
    }

    /// Adds the warnings of parsing a statement before those of its rows.
    pub(super) fn tell_conditions(&self, plan: &CachedPlan) {
        for condition in &plan.plan.conditions {
            let message = || condition.message.clone();
            self.evaluation.push(condition.level, condition.code, message);
        }
    }

    /// Runs a plan and sends the answer.
    pub(super) fn run_plan(
        &mut self,
        plan: &CachedPlan,
        arguments: &Arguments,
        replies: &mut Replies<'_>,
    ) -> Answered {
        self.note_plan(plan);
        let counts_found = replies.counts_found_rows();
        let presentation = Arc::clone(&self.settings.presentation);
        // `DO` is planned as a query whose row is discarded.
        if plan.columns.is_none() {
            let done = self.execute(plan, arguments, &mut NoRows);
            return match done {
                Ok(outcome) => self.answer_written(plan.kind, &outcome, counts_found, replies),
                Err(error) => Err(self.refused(error)),
            };
        }
        let mut sink = WireSink::new(replies, &presentation, plan.columns.as_ref());
        match self.execute(plan, arguments, &mut sink) {
            Ok(_) => {
                self.measured.rows_sent += sink.rows();
                let status = self.status();
                let warnings = self.warning_count();
                sink.finish(&Completion { status, warnings, ..Completion::default() })
            }
            Err(error) => Err(sink.into_broken().unwrap_or_else(|| self.refused(error))),
        }
    }

    /// Counts the plan that is about to run.
    pub(super) fn note_plan(&mut self, plan: &CachedPlan) {
        if let Some(command) = plan.command {
            self.facts.status.count_command(command);
        }
        self.measured.plan(plan);
    }

    pub(super) fn refused(&mut self, error: SqlError) -> WireError {
        self.keep_error(&error);
        wire_error(error)
    }

    pub(super) fn answer_written(
        &mut self,
        kind: StatementKind,
        outcome: &Outcome,
        counts_found: bool,
        replies: &mut Replies<'_>,
    ) -> Answered {
        let found = counts_found && kind == StatementKind::Update;
        let affected = match kind.writes() {
            true if found => outcome.found,
            true => outcome.affected,
            false => 0,
        };
        self.facts.row_count.store(affected as i64, Ordering::Relaxed);
        self.answer_affected(affected, outcome.last_insert_id, &outcome.info, replies)
    }

    /// Runs a plan in the session's transaction, which is committed if it does not last. Rows go to
    /// `sink`.
    ///
    /// # Errors
    /// Errors of the statement, the node or the commit.
    pub(super) fn execute(
        &mut self,
        plan: &CachedPlan,
        arguments: &Arguments,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome> {
        self.execute_given(plan, arguments, None, sink)
    }

    /// As [`SqlSession::execute`]; an `INSERT` that takes rows gets these.
    ///
    /// # Errors
    /// As [`SqlSession::execute`].
    pub(super) fn execute_given(
        &mut self,
        plan: &CachedPlan,
        arguments: &Arguments,
        given: Option<&mut dyn GivenRows>,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome> {
        self.rights.check_needs(&plan.needs)?;
        self.guard(plan)?;
        if plan.kind.writes() {
            self.refuse_read_only_plan(plan)?;
            self.rights.count_update()?;
        }
        let writes = plan.kind.writes() || plan.kind == StatementKind::LockingSelect;
        let _writing = if writes { self.begin_writing()? } else { None };
        self.facts.has_given_id.store(false, Ordering::Relaxed);
        let deadline = self.deadline(plan);
        let begun = self.lock_metadata(plan, deadline).and_then(|()| self.begin_execution(plan));
        if let Err(error) = begun {
            self.transactions.statement_failed(&error);
            return Err(self.late(error, deadline));
        }
        self.limit_lock_waits(deadline);
        self.facts.set_deadline(deadline);
        let input = Input { plan: &plan.plan, executor: &plan.executor, arguments, deadline };
        let ran = self.execute_renewing(&input, given, sink);
        let ran = match ran {
            Ok(outcome) => self.transactions.statement_succeeded().map(|()| outcome),
            Err(error) => {
                let error = self.late(error, deadline);
                self.transactions.statement_failed(&error);
                Err(error)
            }
        };
        if deadline.is_some() {
            self.restore_lock_waits();
        }
        self.conditions.extend(self.evaluation.take_conditions());
        self.count_conditions();
        let mut outcome = ran?;
        // The client gets the argument of `LAST_INSERT_ID(x)`, unless a number was generated.
        if self.facts.has_given_id.load(Ordering::Relaxed)
            && outcome.session_last_insert_id.is_none()
            && plan.kind.tells_ids()
        {
            outcome.last_insert_id = self.facts.last_insert_id.load(Ordering::Relaxed);
        }
        if let Some(id) = outcome.session_last_insert_id {
            self.facts.last_insert_id.store(id, Ordering::Relaxed);
        }
        if !plan.kind.writes() {
            self.facts.row_count.store(-1, Ordering::Relaxed);
        }
        Ok(outcome)
    }

    /// Limits waits for row locks to the deadline.
    fn limit_lock_waits(&mut self, deadline: Option<std::time::Duration>) {
        let Some(deadline) = deadline else { return };
        let left = deadline.saturating_sub(self.instance.facts.environment.clock.monotonic());
        if let Some(open) = &mut self.transactions.open {
            open.inner.set_lock_wait_timeout(left.min(self.settings.lock_wait_timeout));
        }
    }

    fn restore_lock_waits(&mut self) {
        if let Some(open) = &mut self.transactions.open {
            open.inner.set_lock_wait_timeout(self.settings.lock_wait_timeout);
        }
    }

    /// The error of a wait that the deadline has ended.
    fn late(&self, error: SqlError, deadline: Option<std::time::Duration>) -> SqlError {
        let now = || self.instance.facts.environment.clock.monotonic();
        let is_over = deadline.is_some_and(|deadline| now() >= deadline);
        match error.kind {
            ErrorKind::LockWaitTimeout | ErrorKind::Interrupted
                if is_over && !self.facts.is_cancelled() =>
            {
                SqlError::out_of_time()
            }
            _ => error,
        }
    }

    fn begin_execution(&mut self, plan: &CachedPlan) -> Result<()> {
        use firn_sql::types::StatementKind as Evaluated;
        let kind = plan.kind;
        let ignores = match &plan.plan.statement {
            StatementPlan::Query(_) => false,
            StatementPlan::Insert(insert) => insert.ignore,
            StatementPlan::Update(update) => update.ignore,
            StatementPlan::Delete(delete) => delete.ignore,
        };
        self.evaluation.statement_kind = match (kind.writes(), ignores) {
            (false, _) => Evaluated::Read,
            (true, false) => Evaluated::Write,
            (true, true) => Evaluated::WriteIgnore,
        };
        let node = &*self.instance.node;
        let open = self.transactions.for_statement(node, &self.settings, &self.facts)?;
        if kind != StatementKind::Select && open.read_only {
            return Err(super::read_only::read_only_transaction());
        }
        if let Some(super::transaction::XaState::Idle(_)) = self.transactions.xa {
            return Err(self.transactions.wrong_xa_state());
        }
        self.state.grants = Arc::clone(&self.rights.grants);
        Ok(())
    }

    pub(super) fn execute_in_transaction(
        &mut self,
        input: &Input<'_>,
        given: Option<&mut dyn GivenRows>,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome> {
        let Input { plan, executor, arguments, deadline } = *input;
        self.evaluation.random_sequences.restart();
        let open = self.transactions.open.as_mut().expect("a statement runs in a transaction");
        let counts = self.state.counts;
        let context = ExecutionContext {
            parameters: &arguments.values,
            transaction: &mut *open.inner,
            node: &*self.instance.node,
            context: &self.evaluation,
            catalog: &self.catalog,
            session: &mut self.state,
            cancelled: self.facts.cancelled.flag(),
        };
        let scratch = self.buffers.scratch.take().unwrap_or_default();
        let clock = Arc::clone(&self.instance.facts.environment.clock);
        let mut execution = Execution::new(plan, context, scratch);
        if let Some(rows) = given {
            execution.given = Some(rows);
        }
        execution.limits = self.settings.limits.clone();
        execution.memory().set_limit_bytes(self.settings.statement_memory_bytes);
        execution.spill = self.instance.spill.clone();
        execution.deadline = deadline.map(|deadline| (&*clock as &dyn Clock, deadline));
        if counts {
            execution.clock = Some(&*clock);
            execution.counters = Some(Counters::default());
        }
        let (instance, status) = (&self.instance, &self.facts.status);
        let ran = executor::run(plan, executor, instance, status, &mut execution, sink);
        let found_rows = execution.found_rows;
        let counters = execution.counters.take();
        self.measured.rows.add(&execution.rows);
        self.buffers.scratch = Some(execution.into_scratch());
        if counts {
            self.state.counters = counters;
        }
        if let Some(found) = found_rows {
            self.facts.found_rows.store(found, Ordering::Relaxed);
        }
        ran
    }
}

/// Whether a statement was cancelled or exceeds its limits: planning it again would cost as much.
fn is_limit(error: &SqlError) -> bool {
    use ErrorKind::{Interrupted, OutOfMemory, TooComplex};
    matches!(error.kind, OutOfMemory | Interrupted | TooComplex)
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

/// A lifted literal as a value with its type. The types have no lengths, so literals of all lengths
/// share a plan. `None` for a placeholder.
pub(super) fn literal_value(
    literal: LiteralValue<'_>,
    collation: firn_format::value::CollationId,
) -> Option<(Datum, SqlType)> {
    let (value, ty) = match literal {
        LiteralValue::Integer(number) => (Datum::Int(number), SqlType::bigint()),
        LiteralValue::Decimal(text) => return Some(number_value(text)),
        LiteralValue::Float(number) => (Datum::Double(number), SqlType::double()),
        LiteralValue::Text(text) => {
            let ty = SqlType::varchar(LONGEST_LITERAL, collation);
            let value = match text {
                Cow::Borrowed(text) => Datum::text(text),
                Cow::Owned(text) => Datum::text(text),
            };
            (value, ty)
        }
        LiteralValue::Bytes(bytes) => (Datum::text(bytes), SqlType::varbinary(LONGEST_LITERAL)),
        LiteralValue::Parameter => return None,
    };
    Some((value, ty.not_null()))
}

/// An exact number as written, with its type; all with the same digits after the point share a
/// type.
pub(super) fn number_value(text: &str) -> (Datum, SqlType) {
    match Decimal::parse(text) {
        Some(number) => {
            let ty = SqlType::decimal(65, number.scale());
            (Datum::Decimal(number), ty.not_null())
        }
        None => (Datum::Double(text.parse().unwrap_or(0.0)), SqlType::double().not_null()),
    }
}

fn write_key(
    key: &mut Vec<u8>,
    text: &str,
    schema: Option<&str>,
    settings: &Settings,
    arguments: &Arguments,
) {
    key.clear();
    key.extend_from_slice(text.as_bytes());
    key.push(0);
    key.extend_from_slice(schema.unwrap_or("").as_bytes());
    key.push(0);
    key.extend_from_slice(&settings.sql_mode.0.to_le_bytes());
    key.extend_from_slice(&settings.connection_collation.0.to_le_bytes());
    let results = settings.presentation.collation.map_or(0, |collation| collation.0);
    key.extend_from_slice(&results.to_le_bytes());
    key.push(settings.div_precision_increment);
    key.push(settings.executor.map_or(0, |executor| executor as u8 + 1));
    key.extend_from_slice(&settings.analytic_cost.to_le_bytes());
    for ty in &arguments.types {
        write_tag(&ty.kind, key);
    }
}

/// The part of a parameter's type on which a plan depends.
pub(super) fn write_tag(kind: &TypeKind, out: &mut Vec<u8>) {
    let tag = match kind {
        TypeKind::Null => 0,
        TypeKind::Integer { unsigned: false, .. } => 1,
        TypeKind::Integer { unsigned: true, .. } => 2,
        TypeKind::Float | TypeKind::Double => 3,
        TypeKind::Decimal { scale, .. } => {
            out.push(4);
            *scale
        }
        TypeKind::Date => 5,
        TypeKind::Time { .. } => 6,
        TypeKind::DateTime { .. } | TypeKind::Timestamp { .. } => 7,
        TypeKind::Binary { .. } | TypeKind::Varbinary { .. } | TypeKind::Blob { .. } => 8,
        TypeKind::Json => 9,
        _ => 10,
    };
    out.push(tag);
}

/// The length in the types of lifted strings.
const LONGEST_LITERAL: u32 = 65_535;

/// Takes the rows of a statement that has none.
pub(super) struct NoRows;

impl ResultSink for NoRows {
    fn columns(&mut self, _: &[firn_sql::plan::OutputColumn]) -> Result<()> {
        Ok(())
    }
    fn begin_row(&mut self) -> Result<()> {
        Ok(())
    }
    fn stored(&mut self, _: firn_format::value::ValueRef<'_>, _: &SqlType) -> Result<()> {
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
    time_zone: firn_sql::types::TimeZone,
}

impl Gathered {
    pub(super) fn new(time_zone: firn_sql::types::TimeZone) -> Gathered {
        Gathered { time_zone, ..Gathered::default() }
    }
}

impl ResultSink for Gathered {
    fn columns(&mut self, columns: &[firn_sql::plan::OutputColumn]) -> Result<()> {
        self.types = columns.iter().map(|column| column.value.ty.clone()).collect();
        self.names = columns.iter().map(|column| column.name.to_string()).collect();
        Ok(())
    }
    fn begin_row(&mut self) -> Result<()> {
        self.rows.push(Vec::with_capacity(self.types.len()));
        Ok(())
    }
    fn stored(&mut self, value: firn_format::value::ValueRef<'_>, ty: &SqlType) -> Result<()> {
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
