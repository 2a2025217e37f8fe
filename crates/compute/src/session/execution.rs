//! Plans run in the session's transaction.
//!
//! ```text
//!   plan ─► may it run? ─► lock its tables ─► transaction ─► execute ─► commit, if it does not last
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use firn_base::clock::Clock;
use firn_sql::error::{ErrorKind, Result, SqlError};
use firn_sql::execute::{Execution, ExecutionContext, GivenRows, Outcome, ResultSink};
use firn_sql::plan::{Counters, PlannedLock, PreparedPlan, StatementPlan};
use firn_wire::{CommittedAnswer, Replies};

use super::answers::{Answered, Answers};
use super::arguments::Arguments;
use super::definition_locks::DefinitionLocks;
use super::executor;
use super::permission::Permission;
use super::runner::StatementRunner;
use super::sinks::NoRows;
use super::transaction::{BeforeStatement, UsedTable};
use crate::plan_cache::{CachedPlan, ChosenExecutor};
use crate::statement_kind::StatementKind;
use crate::wire_rows::WireSink;

#[derive(Clone, Copy)]
pub(super) struct Input<'i> {
    pub(super) plan: &'i PreparedPlan,
    pub(super) executor: &'i ChosenExecutor,
    pub(super) arguments: &'i Arguments,
    /// The deadline, if its time is limited.
    pub(super) deadline: Option<Duration>,
}

impl StatementRunner {
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
            self.transactions.may_leave_commit(replies.can_be_late());
            let done = self.execute_whole(plan, arguments, None, &mut NoRows);
            self.transactions.may_leave_commit(false);
            return match done {
                Ok(outcome) => {
                    Answers::of(self).written(plan.kind, &outcome, counts_found, replies)
                }
                Err(error) => Err(self.refused(error)),
            };
        }
        let facts = Arc::clone(&self.facts);
        let sink = WireSink::new(replies, &presentation, plan.columns.as_ref());
        let mut sink = sink.of_statement(&facts.cut);
        match self.execute_whole(plan, arguments, None, &mut sink) {
            Ok(_) => {
                self.measured.rows_sent += sink.rows();
                sink.finish(&Answers::of(self).completion())
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

    /// As [`StatementRunner::execute_given`], for a plan that is all that its statement does, and
    /// that leaves nothing with the server but what its transaction has: it can be cut.
    ///
    /// # Errors
    /// As [`StatementRunner::execute`].
    pub(super) fn execute_whole(
        &mut self,
        plan: &CachedPlan,
        arguments: &Arguments,
        given: Option<&mut dyn GivenRows>,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome> {
        self.begin_cutting();
        let executed = self.execute_given(plan, arguments, given, sink);
        if let Err(error) = &executed {
            self.was_cut_by(error);
        }
        executed
    }

    /// From here on the running statement can be cut, if its command can be run elsewhere.
    pub(super) fn begin_cutting(&mut self) {
        if self.cutting.is_possible {
            self.cutting.user_locks = self.facts.user_locks();
            self.facts.cut.open();
        }
    }

    /// Ends the time in which the running statement can be cut. True: it was cut, and this error
    /// comes from that.
    pub(super) fn was_cut_by(&mut self, error: &SqlError) -> bool {
        let was_cut = self.facts.cut.close() && error.code == SqlError::interrupted().code;
        if was_cut {
            self.facts.release_locks_but(&self.cutting.user_locks);
        }
        self.cutting.was_cut |= was_cut;
        was_cut
    }

    /// Ends that time for a statement that has done its work. If it was cut, it did not see that.
    pub(super) fn outlive_cut(&self) {
        if self.facts.cut.close() {
            self.facts.outlive_cut();
        }
    }

    /// Ends a statement that failed.
    fn end_failed(&mut self, error: &SqlError, before: BeforeStatement) {
        match self.was_cut_by(error) {
            true => self.transactions.statement_cut(before),
            false => self.transactions.statement_failed(error),
        }
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

    /// As [`StatementRunner::execute`]; an `INSERT` that takes rows gets these.
    ///
    /// # Errors
    /// As [`StatementRunner::execute`].
    pub(super) fn execute_given(
        &mut self,
        plan: &CachedPlan,
        arguments: &Arguments,
        given: Option<&mut dyn GivenRows>,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome> {
        let executed = self.execute_apart(plan, arguments, given, sink);
        self.state.diagnostics.keep(&self.evaluation);
        self.state.diagnostics.count();
        executed
    }

    /// As [`StatementRunner::execute_given`]; the warnings stay in the evaluation.
    ///
    /// # Errors
    /// As [`StatementRunner::execute`].
    pub(super) fn execute_apart(
        &mut self,
        plan: &CachedPlan,
        arguments: &Arguments,
        given: Option<&mut dyn GivenRows>,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome> {
        self.rights.check_needs(&plan.needs)?;
        let permission = Permission::of(self);
        permission.judge_plan(plan)?;
        if plan.kind.writes() {
            permission.refuse_read_only_plan(plan)?;
            self.rights.count_update()?;
        }
        let writes = plan.kind.writes() || plan.kind == StatementKind::LockingSelect;
        let _writing = if writes { Permission::of(self).begin_writing()? } else { None };
        self.facts.has_given_id.store(false, Ordering::Relaxed);
        let deadline = self.deadline(plan);
        let before = self.transactions.before_statement();
        let has_to_confirm = self.has_to_confirm(plan);
        let begun = self.lock_definitions(plan, deadline).and_then(|()| self.begin_execution(plan));
        if let Err(error) = begun {
            self.end_failed(&error, before);
            return Err(self.late(error, deadline));
        }
        if let Some(deadline) = deadline {
            let left = deadline.saturating_sub(self.instance.facts.environment.clock.monotonic());
            let timeout = left.min(self.settings.lock_wait_timeout);
            self.transactions.set_lock_wait_timeout(timeout);
        }
        self.facts.set_deadline(deadline);
        let input = Input { plan: &plan.plan, executor: &plan.executor, arguments, deadline };
        let ran = self.execute_renewing(&input, given, sink).and_then(|outcome| {
            // What has written is confirmed by its commit.
            let has_read = !plan.kind.writes() || outcome.affected == 0;
            if has_to_confirm && has_read { self.confirm() } else { Ok(()) }.map(|()| outcome)
        });
        let ran = match ran {
            Ok(mut outcome) => {
                self.outlive_cut();
                self.complete_id(plan, &mut outcome);
                self.transactions.will_answer(|| answer_of(plan.kind, &outcome));
                self.transactions.statement_succeeded().map(|()| outcome)
            }
            Err(error) => {
                let error = self.late(error, deadline);
                self.end_failed(&error, before);
                Err(error)
            }
        };
        if deadline.is_some() {
            self.transactions.set_lock_wait_timeout(self.settings.lock_wait_timeout);
        }
        let outcome = ran?;
        if let Some(id) = outcome.session_last_insert_id {
            self.facts.last_insert_id.store(id, Ordering::Relaxed);
        }
        if !plan.kind.writes() {
            self.facts.row_count.store(-1, Ordering::Relaxed);
        }
        Ok(outcome)
    }

    /// The client gets the argument of `LAST_INSERT_ID(x)`, unless a number was generated.
    fn complete_id(&self, plan: &CachedPlan, outcome: &mut Outcome) {
        if self.facts.has_given_id.load(Ordering::Relaxed)
            && outcome.session_last_insert_id.is_none()
            && plan.kind.tells_ids()
        {
            outcome.last_insert_id = self.facts.last_insert_id.load(Ordering::Relaxed);
        }
    }

    /// The deadline of a query, on the monotonic clock.
    fn deadline(&self, plan: &CachedPlan) -> Option<Duration> {
        if plan.kind != StatementKind::Select {
            return None;
        }
        let limit_ms =
            plan.plan.max_execution_time_ms.unwrap_or(self.settings.max_execution_time_ms);
        let now = || self.instance.facts.environment.clock.monotonic();
        (limit_ms > 0).then(|| now() + Duration::from_millis(limit_ms))
    }

    /// Takes the locks that a plan needs. Blocks.
    ///
    /// # Errors
    /// 1205, 1213, 1317, 3024; 1412 if the plan is no longer valid, see
    /// [`StatementRunner::plan_is_stale`].
    fn lock_definitions(&mut self, plan: &CachedPlan, deadline: Option<Duration>) -> Result<()> {
        if plan.plan.locks.is_empty() {
            return Ok(());
        }
        if DefinitionLocks::of(self).lock(plan, deadline)? {
            if self.instance.freshness.is_some() {
                self.transactions.use_tables(plan.plan.locks.iter().map(used_table));
            }
            return Ok(());
        }
        self.plan_is_stale = true;
        Err(SqlError::new(1412, "Table definition has changed, please retry transaction"))
    }

    /// The error of a wait that the deadline has ended.
    fn late(&self, error: SqlError, deadline: Option<Duration>) -> SqlError {
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
        let uses_tables = !plan.plan.tables.is_empty();
        let (settings, facts) = (&self.settings, &self.facts);
        let open = self.transactions.for_statement(node, settings, facts, uses_tables)?;
        if kind != StatementKind::Select && open.read_only {
            return Err(super::read_only::read_only_transaction());
        }
        if let Some(super::transaction::XaState::Idle(_)) = self.transactions.xa {
            return Err(self.transactions.wrong_xa_state());
        }
        if !Arc::ptr_eq(&self.state.grants, &self.rights.grants) {
            self.state.grants = Arc::clone(&self.rights.grants);
        }
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
        let scratch = self.scratch.take().unwrap_or_default();
        let clock = &*self.instance.facts.environment.clock;
        let mut execution = Execution::new(plan, context, scratch);
        if let Some(rows) = given {
            execution.given = Some(rows);
        }
        execution.limits = self.settings.limits.clone();
        execution.memory().set_limit_bytes(self.settings.statement_memory_bytes);
        execution.workspace.spill = self.instance.spill.clone();
        execution.interruption.deadline = deadline.map(|deadline| (clock as &dyn Clock, deadline));
        if counts {
            execution.measures.clock = Some(clock);
            execution.measures.operators = Some(Counters::default());
        }
        let (instance, status) = (&self.instance, &self.facts.status);
        let ran = executor::run(plan, executor, instance, status, &mut execution, sink);
        let found_rows = execution.found_rows;
        let counters = execution.measures.operators.take();
        self.measured.rows.add(&execution.measures.rows);
        self.scratch = Some(execution.into_scratch());
        if counts {
            self.state.counters = counters;
        }
        if let Some(found) = found_rows {
            self.facts.found_rows.store(found, Ordering::Relaxed);
        }
        ran
    }
}

fn used_table(lock: &PlannedLock) -> UsedTable {
    let version = lock.model.table.definition().schema_version;
    UsedTable { table: lock.model.id, version }
}

/// The answer of a statement that commits.
fn answer_of(kind: StatementKind, outcome: &Outcome) -> CommittedAnswer {
    let affected = if kind.writes() { outcome.affected } else { 0 };
    CommittedAnswer {
        affected_rows: affected,
        found_rows: if kind == StatementKind::Update { outcome.found } else { affected },
        last_insert_id: outcome.last_insert_id,
        info: outcome.info.clone(),
    }
}
