//! The engine.
//!
//! A statement first runs with its groups and the smaller sides of its joins in hash tables. If its
//! memory does not suffice, it starts again with sorts instead, which spill to disk
//! ([`Way::Disk`]). If that fails too, the row executor runs the statement.

use std::sync::Arc;

use arrow::array::RecordBatch;
use firn_base::{memory, task};
use firn_sql::error::{ErrorKind, SqlError};
use firn_sql::execute::vectorised::{Attempt, Unsupported, VectorisedEngine};
use firn_sql::execute::{Execution, Outcome, ResultSink};
use firn_sql::plan::{PreparedPlan, QueryPlan, StatementPlan};

use crate::cache::ColumnCache;
use crate::resources::Resources;
use crate::stop_reason::{Result, Stop, declined};
use crate::threads::Threads;
use crate::translate::{self, Answer, Way};

/// Bytes of a result that are held back until the attempt can no longer be abandoned.
const HELD_BYTES: usize = 16 << 20;

/// The vectorised engine of a process.
#[derive(Debug)]
pub struct Engine {
    resources: Resources,
}

impl Engine {
    /// An engine with this many threads, which start with the first statement.
    #[must_use]
    pub fn new(threads: usize) -> Engine {
        let threads = Threads::new(threads);
        Engine { resources: Resources { threads, column_cache: None } }
    }

    /// The engine with memory for columns that it keeps between statements.
    #[must_use]
    pub fn with_column_cache(mut self, limit_bytes: u64) -> Engine {
        let cache = Arc::new(ColumnCache::new(limit_bytes));
        memory::register_cache(&(Arc::clone(&cache) as Arc<dyn memory::Cache>));
        self.resources.column_cache = Some(cache);
        self
    }

    /// The memory of the columns that are kept between statements.
    #[must_use]
    pub fn column_cache_bytes(&self) -> u64 {
        self.resources.column_cache.as_ref().map_or(0, |cache| cache.used_bytes())
    }
}

impl VectorisedEngine for Engine {
    fn check(&self, plan: &PreparedPlan) -> std::result::Result<(), Unsupported> {
        if task::is_simulated() {
            let why = "the simulator runs no threads of the library's";
            return Err(Unsupported(why.to_owned()));
        }
        translate::check(plan).map_err(Unsupported::from)
    }

    fn run(
        &self,
        plan: &PreparedPlan,
        execution: &mut Execution<'_>,
        sink: &mut dyn ResultSink,
    ) -> firn_sql::error::Result<Attempt> {
        let StatementPlan::Query(query) = &plan.statement else {
            return Ok(Attempt::Declined(Unsupported("it is no query".to_owned())));
        };
        let mut result = Held::new(query, sink, execution.limits.select_rows);
        let mut ran = self.attempt(plan, query, Way::Memory, execution, &mut result);
        if execution.workspace.spill.is_some()
            && !result.has_begun
            && ran.as_ref().is_err_and(Stop::is_memory)
        {
            result.forget();
            ran = self.attempt(plan, query, Way::Disk, execution, &mut result);
        }
        match ran {
            Ok(given) => {
                execution.found_rows.get_or_insert(given);
                let warnings = execution.context.warning_count();
                Ok(Attempt::Done(Outcome {
                    affected: given,
                    found: given,
                    warnings,
                    ..Outcome::default()
                }))
            }
            Err(Stop::Sql(error)) if result.has_begun || error.kind == ErrorKind::Interrupted => {
                Err(error)
            }
            Err(stop) if result.has_begun => Err(SqlError::new(1105, stop.to_string())),
            Err(stop) => Ok(Attempt::Declined(stop.into())),
        }
    }
}

impl Engine {
    fn attempt<'x>(
        &self,
        plan: &PreparedPlan,
        query: &QueryPlan,
        way: Way,
        execution: &mut Execution<'x>,
        result: &mut Held<'_>,
    ) -> Result<u64> {
        let mut take = |execution: &mut Execution<'x>, answer: &Answer, batch| {
            result.take(execution, answer, batch)
        };
        let warned = translate::answer(&self.resources, way, plan, query, execution, &mut take)?;
        match warned && !result.has_begun {
            true => declined("it warns"),
            false => result.finish(execution),
        }
    }
}

/// The result: held back at first, then passed on.
struct Held<'r> {
    query: &'r QueryPlan,
    sink: &'r mut dyn ResultSink,
    batches: Vec<RecordBatch>,
    held_bytes: usize,
    answer: Option<Answer>,
    limit: u64,
    given: u64,
    has_begun: bool,
}

impl<'r> Held<'r> {
    fn new(query: &'r QueryPlan, sink: &'r mut dyn ResultSink, select_rows: u64) -> Held<'r> {
        let is_limited = matches!(query.root.kind, firn_sql::plan::NodeKind::Limit { .. });
        Held {
            query,
            sink,
            batches: Vec::new(),
            held_bytes: 0,
            answer: None,
            limit: if is_limited { u64::MAX } else { select_rows },
            given: 0,
            has_begun: false,
        }
    }

    /// Nothing has been taken yet.
    fn forget(&mut self) {
        self.batches.clear();
        self.held_bytes = 0;
        self.answer = None;
    }

    fn take(
        &mut self,
        execution: &mut Execution<'_>,
        answer: &Answer,
        batch: RecordBatch,
    ) -> Result<bool> {
        self.answer.get_or_insert_with(|| answer.clone());
        self.held_bytes += batch.get_array_memory_size();
        self.batches.push(batch);
        if self.held_bytes > HELD_BYTES {
            self.pass_on(execution)?;
        }
        Ok(self.given < self.limit)
    }

    fn begin(&mut self) -> Result<()> {
        if !self.has_begun {
            self.has_begun = true;
            self.sink.columns(&self.query.columns)?;
        }
        Ok(())
    }

    fn pass_on(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        self.begin()?;
        let Some(answer) = self.answer.clone() else { return Ok(()) };
        self.held_bytes = 0;
        for batch in std::mem::take(&mut self.batches) {
            for row in 0..batch.num_rows() {
                if self.given == self.limit {
                    return Ok(());
                }
                execution.check_cancelled()?;
                self.sink.begin_row()?;
                answer.pass_row(self.query, &batch, row, execution, self.sink)?;
                self.sink.end_row()?;
                self.given += 1;
            }
        }
        Ok(())
    }

    fn finish(&mut self, execution: &mut Execution<'_>) -> Result<u64> {
        self.pass_on(execution)?;
        self.begin()?;
        Ok(self.given)
    }
}
