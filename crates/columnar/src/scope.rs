//! The state that all threads of one execution share: row-by-row evaluation of expressions, and the
//! count of readers, which must end before the session's snapshot does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use datafusion_execution::TaskContext;
use firn_api::rows::Transaction;
use firn_base::event::Event;
use firn_sql::execute::vectorised::RowEvaluator;
use firn_sql::execute::{Execution, MemoryBudget};
use firn_sql::types::EvaluationContext;
use futures::future::{Either, select};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::stop_reason::{Result, Stop, declined};

/// The shared state of one execution.
pub(crate) struct Scope {
    evaluator: RowEvaluator,
    /// Contexts that no thread uses at the moment; there is always one to copy.
    contexts: Mutex<Vec<EvaluationContext>>,
    template: Mutex<EvaluationContext>,
    pub(crate) memory: MemoryBudget,
    readers: AtomicUsize,
    reader_gone: Event,
    has_ended: AtomicBool,
    /// Without permits; closed when the run ends.
    end: Semaphore,
}

impl std::fmt::Debug for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scope")
    }
}

impl Scope {
    pub(crate) fn new(execution: &Execution<'_>) -> Arc<Scope> {
        Arc::new(Scope {
            evaluator: RowEvaluator::new(execution),
            contexts: Mutex::default(),
            template: Mutex::new(copy(execution.context)),
            memory: execution.memory().clone(),
            readers: AtomicUsize::new(0),
            reader_gone: Event::new(),
            has_ended: AtomicBool::new(false),
            end: Semaphore::new(0),
        })
    }

    /// The scope of the run that starts the calling operator.
    pub(crate) fn of(context: &TaskContext) -> Result<Arc<Scope>> {
        let scope = context.session_config().get_extension::<Scope>();
        scope.ok_or_else(|| Stop::Declined("a task has no scope".to_owned()))
    }

    /// Lends a frame and a context to `work`.
    pub(crate) fn with_frame<T>(
        &self,
        work: impl FnOnce(&mut Execution<'_>) -> firn_sql::error::Result<T>,
    ) -> Result<T> {
        let spare = self.contexts.lock().pop();
        let context = spare.unwrap_or_else(|| copy(&self.template.lock()));
        let done = self.evaluator.with_frame(&context, work);
        self.contexts.lock().push(context);
        Ok(done?)
    }

    /// Whether evaluation has left warnings.
    pub(crate) fn has_warned(&self) -> bool {
        self.contexts.lock().iter().any(|context| context.warning_count() > 0)
    }

    /// A reader that is counted until it is dropped.
    pub(crate) fn reader(self: &Arc<Scope>, inner: Box<dyn Transaction>) -> Reader {
        self.readers.fetch_add(1, Ordering::SeqCst);
        Reader { inner: Some(inner), scope: Arc::clone(self) }
    }

    /// Stops all tasks, and waits until all readers have ended.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
        self.end.close();
        self.reader_gone.wait_until(None, || self.readers.load(Ordering::SeqCst) == 0);
    }
}

impl Scope {
    /// Stops a task whose run has ended. Tasks call this between two batches: while their input is
    /// always ready, they would not notice otherwise.
    pub(crate) fn check(&self) -> Result<()> {
        match self.has_ended.load(Ordering::Relaxed) {
            true => declined("the run has ended"),
            false => Ok(()),
        }
    }

    /// Waits for something, but not beyond the end of the run.
    pub(crate) async fn until_end<T>(&self, awaited: impl Future<Output = T>) -> Option<T> {
        let (awaited, end) = (std::pin::pin!(awaited), std::pin::pin!(self.end.acquire()));
        match select(awaited, end).await {
            Either::Left((value, _)) => Some(value),
            Either::Right(_) => None,
        }
    }
}

/// A reader of the session's snapshot.
pub(crate) struct Reader {
    inner: Option<Box<dyn Transaction>>,
    scope: Arc<Scope>,
}

impl Reader {
    pub(crate) fn transaction(&mut self) -> &mut dyn Transaction {
        &mut **self.inner.as_mut().expect("a reader has its transaction until it is dropped")
    }

    pub(crate) fn scope(&self) -> &Arc<Scope> {
        &self.scope
    }

    pub(crate) fn shared(&self) -> &dyn Transaction {
        &**self.inner.as_ref().expect("a reader has its transaction until it is dropped")
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.inner = None;
        self.scope.readers.fetch_sub(1, Ordering::SeqCst);
        self.scope.reader_gone.notify_all();
    }
}

/// The same settings, without conditions.
fn copy(context: &EvaluationContext) -> EvaluationContext {
    EvaluationContext {
        sql_mode: context.sql_mode,
        time_zone: context.time_zone.clone(),
        statement_time_us: context.statement_time_us,
        div_precision_increment: context.div_precision_increment,
        group_concat_max_length_bytes: context.group_concat_max_length_bytes,
        max_allowed_packet_bytes: context.max_allowed_packet_bytes,
        connection_collation: context.connection_collation,
        default_week_format: context.default_week_format,
        statement_kind: context.statement_kind,
        session: Arc::clone(&context.session),
        max_error_count: context.max_error_count,
        ..EvaluationContext::default()
    }
}
