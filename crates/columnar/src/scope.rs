//! What all threads of one execution share: evaluation of expressions row by row, and the count of readers
//! that have to be gone before the session's snapshot may be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use firn_api::rows::Transaction;
use firn_base::event::Event;
use firn_sql::execute::vectorised::RowEvaluator;
use firn_sql::execute::{Execution, MemoryBudget};
use firn_sql::types::EvaluationContext;
use parking_lot::Mutex;

use crate::stop::Result;

/// See the module's page.
pub(crate) struct Scope {
    evaluator: RowEvaluator,
    /// Contexts that no thread uses at the moment; there is always one to copy.
    contexts: Mutex<Vec<EvaluationContext>>,
    template: Mutex<EvaluationContext>,
    pub(crate) memory: MemoryBudget,
    readers: AtomicUsize,
    reader_gone: Event,
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
        })
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

    /// Waits until all readers are gone.
    pub(crate) fn wait_for_readers(&self) {
        self.reader_gone.wait_until(None, || self.readers.load(Ordering::SeqCst) == 0);
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
