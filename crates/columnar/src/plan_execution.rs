//! Runs a plan: tasks compute, and the session feeds them, takes the result and checks whether to
//! stop.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use datafusion_execution::TaskContext;
use datafusion_execution::config::SessionConfig;
use datafusion_execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion_execution::runtime_env::RuntimeEnvBuilder;
use datafusion_physical_plan::{ExecutionPlan, execute_stream};
use firn_sql::execute::Execution;
use futures::StreamExt;
use tokio::sync::Semaphore;

use crate::batch::BATCH_ROWS;
use crate::memory::BudgetPool;
use crate::resources::Resources;
use crate::scope::Scope;
use crate::session_sources::{Feed, Inbox, Message};
use crate::spill;
use crate::stop_reason::{Result, caught};

/// How long the session waits before it checks again whether it was cancelled.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The most batches of the result that wait for the session.
const RESULTS_AHEAD: usize = 4;

/// Reserved by a sort for merging what it has spilled.
const MERGE_BYTES: usize = 8 << 20;

/// Takes batches of a result; false when it wants no more.
pub(crate) type Taker<'t, 'x> = dyn FnMut(&mut Execution<'x>, RecordBatch) -> Result<bool> + 't;

/// Runs a plan on the runtime's threads, and feeds it. When this returns no task of it is left.
pub(crate) fn drive<'x>(
    resources: &Resources,
    plan: Arc<dyn ExecutionPlan>,
    feeds: &mut [Feed<'_>],
    inbox: &Arc<Inbox>,
    scope: &Arc<Scope>,
    execution: &mut Execution<'x>,
    take: &mut Taker<'_, 'x>,
) -> Result<()> {
    let permits = Arc::new(Semaphore::new(RESULTS_AHEAD));
    let context = task_context(execution, scope)?;
    let runtime = resources.threads.handle()?;
    let root = runtime.spawn(root(plan, context, Arc::clone(inbox), Arc::clone(&permits)));
    let done = attend(feeds, inbox, &permits, execution, take);
    root.abort();
    scope.end();
    done
}

async fn root(
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    inbox: Arc<Inbox>,
    permits: Arc<Semaphore>,
) {
    let done = caught(pass_result(plan, context, &inbox, &permits)).await;
    inbox.push(Message::End(done));
}

async fn pass_result(
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    inbox: &Inbox,
    permits: &Semaphore,
) -> Result<()> {
    let mut stream = execute_stream(plan, context)?;
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        let Ok(permit) = permits.acquire().await else { return Ok(()) };
        permit.forget();
        inbox.push(Message::Result(batch));
    }
    Ok(())
}

fn attend<'x>(
    feeds: &mut [Feed<'_>],
    inbox: &Inbox,
    permits: &Semaphore,
    execution: &mut Execution<'x>,
    take: &mut Taker<'_, 'x>,
) -> Result<()> {
    loop {
        let ticket = inbox.event.listen();
        let Some(message) = inbox.pop() else {
            execution.check_cancelled()?;
            inbox.event.wait(ticket, Some(LOOK_EVERY));
            continue;
        };
        execution.check_cancelled()?;
        match message {
            Message::Want(number) => feeds[number].want(execution)?,
            Message::Input(number, batch) => feeds[number].input(batch, execution)?,
            Message::Result(batch) => {
                permits.add_permits(1);
                if !take(execution, batch)? {
                    return Ok(());
                }
            }
            Message::End(done) => return done,
        }
    }
}

/// The settings for the library's operators: batch size, memory, files.
fn task_context(execution: &Execution<'_>, scope: &Arc<Scope>) -> Result<Arc<TaskContext>> {
    let disk = match execution.workspace.spill_area() {
        Some(area) => spill::files(area),
        None => DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled),
    };
    let limit_bytes = usize::try_from(scope.memory.limit_bytes()).unwrap_or(usize::MAX);
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(BudgetPool(scope.memory.clone())))
        .with_disk_manager_builder(disk)
        .build_arc()?;
    let config = SessionConfig::new()
        .with_batch_size(BATCH_ROWS)
        .with_target_partitions(1)
        .with_sort_spill_reservation_bytes(MERGE_BYTES.min(limit_bytes / 8))
        .with_extension(Arc::clone(scope));
    let context = TaskContext::default().with_session_config(config).with_runtime(runtime);
    Ok(Arc::new(context))
}
