//! Work that only the session's own thread can do, as sources of batches: operators of the row
//! executor, and expressions that need the session.
//!
//! ```text
//!   task ──Want n──────────► inbox ──► session: rows of feed n ──batch──► task
//!        ──Input n, batch──► inbox ──► session: the feed's work over the batch
//!        ──Result, batch───► inbox ──► session: to the client
//! ```
//!
//! A feed returns one batch for each `Want`, so a slow task delays only itself. Feeds share the
//! statement's frame: between two batches, a feed saves the content of its slots.

use firn_sql::execute::Evaluate;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result as LibraryResult;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use firn_base::event::Event;
use firn_sql::execute::Execution;
use firn_sql::execute::vectorised::RowSource;
use firn_sql::expression::{Expression, Slot};
use firn_sql::plan::JoinKind;
use firn_sql::types::Datum;
use futures::StreamExt;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::batch::batch_of;
use crate::operator::{leaf, properties, schema_of};
use crate::stop_reason::{Result, caught};
use crate::value::{Builder, Field};

/// Rows of a batch that a feed gives.
const FEED_ROWS: usize = 4096;
/// The most batches of an input that wait for the session.
const INPUTS_AHEAD: usize = 2;

/// Messages of tasks to the session.
pub(crate) enum Message {
    /// A task waits for a batch of a feed.
    Want(usize),
    /// A batch for a feed to work on; `None` at the end.
    Input(usize, Option<RecordBatch>),
    /// Rows of the result.
    Result(RecordBatch),
    /// The result is complete, or will not be.
    End(Result<()>),
}

/// Where the session finds the messages of tasks.
#[derive(Default)]
pub(crate) struct Inbox {
    messages: Mutex<VecDeque<Message>>,
    pub(crate) event: Event,
}

impl Inbox {
    pub(crate) fn push(&self, message: Message) {
        self.messages.lock().push_back(message);
        self.event.notify_all();
    }

    pub(crate) fn pop(&self) -> Option<Message> {
        self.messages.lock().pop_front()
    }
}

/// The source of a feed's batches.
pub(crate) enum Source<'p> {
    /// Operators of the row executor.
    Rows {
        rows: RowSource<'p>,
        is_open: bool,
        /// Slots that the operators fill, and their values since the last batch.
        filled: Vec<Slot>,
        saved: Vec<Datum>,
    },
    /// Work over each row of an input.
    Work {
        fields: Vec<Field>,
        pending: VecDeque<RecordBatch>,
        has_ended: bool,
        permits: Arc<Semaphore>,
        work: Work<'p>,
    },
}

/// The work on each row of an input.
pub(crate) enum Work<'p> {
    Filter(&'p [Expression]),
    Compute(&'p [(Slot, Expression)]),
    /// For each row, the rows of operators that read its slots.
    Join {
        right: RowSource<'p>,
        join: JoinKind,
        conditions: &'p [Expression],
        right_slots: &'p [Slot],
    },
}

/// A source of batches at the session.
pub(crate) struct Feed<'p> {
    sender: UnboundedSender<Option<RecordBatch>>,
    schema: SchemaRef,
    fields: Vec<Field>,
    source: Source<'p>,
    wanted: usize,
    has_ended: bool,
}

impl<'p> Feed<'p> {
    /// A feed, with the leaf through which plans read it.
    pub(crate) fn new(
        number: usize,
        fields: &[Field],
        source: Source<'p>,
        input: Option<Arc<dyn ExecutionPlan>>,
        inbox: &Arc<Inbox>,
    ) -> (Feed<'p>, FeedLeaf) {
        let (sender, receiver) = unbounded_channel();
        let schema = schema_of(fields);
        let input = match (&source, input) {
            (Source::Work { permits, .. }, Some(input)) => Some((input, Arc::clone(permits))),
            _ => None,
        };
        let leaf = FeedLeaf {
            number,
            inbox: Arc::clone(inbox),
            receiver: Mutex::new(Some(receiver)),
            input,
            properties: properties(Arc::clone(&schema), 1),
        };
        let fields = fields.to_vec();
        (Feed { sender, schema, fields, source, wanted: 0, has_ended: false }, leaf)
    }

    /// Answers a task's request for a batch.
    pub(crate) fn want(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        self.wanted += 1;
        self.serve(execution)
    }

    /// The input has returned a batch, or has ended.
    pub(crate) fn input(
        &mut self,
        batch: Option<RecordBatch>,
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        if let Source::Work { pending, has_ended, .. } = &mut self.source {
            match batch {
                Some(batch) => pending.push_back(batch),
                None => *has_ended = true,
            }
        }
        self.serve(execution)
    }

    /// Returns batches as long as some are wanted and can be made.
    fn serve(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        while self.wanted > 0 && !self.has_ended {
            match self.produce(execution)? {
                Produced::Batch(batch) => {
                    self.wanted -= 1;
                    // The receiver may be gone.
                    let _ = self.sender.send(Some(batch));
                }
                Produced::Nothing => return Ok(()),
                Produced::End => {
                    self.has_ended = true;
                    let _ = self.sender.send(None);
                }
            }
        }
        Ok(())
    }

    fn produce(&mut self, execution: &mut Execution<'_>) -> Result<Produced> {
        let mut out: Vec<Builder> =
            self.fields.iter().map(|field| field.physical.builder(64)).collect();
        let count = match &mut self.source {
            Source::Rows { rows, is_open, filled, saved } => {
                if !std::mem::replace(is_open, true) {
                    rows.open(execution)?;
                } else {
                    for (slot, value) in filled.iter().zip(saved.drain(..)) {
                        execution.put(*slot, value);
                    }
                }
                let mut count = 0;
                while count < FEED_ROWS && rows.next(execution)? {
                    execution.check_cancelled()?;
                    append(&mut out, &self.fields, execution)?;
                    count += 1;
                }
                saved.extend(filled.iter().map(|slot| execution.value(*slot).clone()));
                if count == 0 {
                    return Ok(Produced::End);
                }
                count
            }
            Source::Work { fields, pending, has_ended, permits, work } => {
                let mut count = 0;
                while count == 0 {
                    let Some(batch) = pending.pop_front() else {
                        return Ok(if *has_ended { Produced::End } else { Produced::Nothing });
                    };
                    permits.add_permits(1);
                    count = work_over(&batch, fields, work, &mut out, &self.fields, execution)?;
                }
                count
            }
        };
        let columns = out.iter_mut().map(Builder::finish).collect();
        Ok(Produced::Batch(batch_of(Arc::clone(&self.schema), columns, count)?))
    }
}

enum Produced {
    Batch(RecordBatch),
    /// The input must deliver more first.
    Nothing,
    End,
}

/// Appends the row that is in the frame.
fn append(out: &mut [Builder], fields: &[Field], execution: &Execution<'_>) -> Result<()> {
    for (builder, field) in out.iter_mut().zip(fields) {
        builder.append(execution.value(field.slot))?;
    }
    Ok(())
}

fn work_over(
    batch: &RecordBatch,
    input: &[Field],
    work: &mut Work<'_>,
    out: &mut [Builder],
    fields: &[Field],
    execution: &mut Execution<'_>,
) -> Result<usize> {
    let mut count = 0;
    for row in 0..batch.num_rows() {
        execution.check_cancelled()?;
        for (number, field) in input.iter().enumerate() {
            execution.put(field.slot, field.physical.datum(&**batch.column(number), row));
        }
        match work {
            Work::Filter(conditions) => {
                if !all_true(conditions, execution)? {
                    continue;
                }
            }
            Work::Compute(outputs) => {
                for (slot, expression) in *outputs {
                    let value = expression.evaluate(execution)?;
                    execution.put(*slot, value);
                }
            }
            Work::Join { right, join, conditions, right_slots } => {
                count += join_row(right, *join, conditions, right_slots, out, fields, execution)?;
                continue;
            }
        }
        append(out, fields, execution)?;
        count += 1;
    }
    Ok(count)
}

fn join_row(
    right: &mut RowSource<'_>,
    join: JoinKind,
    conditions: &[Expression],
    right_slots: &[Slot],
    out: &mut [Builder],
    fields: &[Field],
    execution: &mut Execution<'_>,
) -> Result<usize> {
    let mut count = 0;
    right.open(execution)?;
    while right.next(execution)? {
        if !all_true(conditions, execution)? {
            continue;
        }
        count += 1;
        match join {
            JoinKind::Inner | JoinKind::Left => append(out, fields, execution)?,
            JoinKind::Semi | JoinKind::Anti => break,
        }
    }
    let gives_left = match join {
        JoinKind::Inner => false,
        JoinKind::Left | JoinKind::Anti => count == 0,
        JoinKind::Semi => count > 0,
    };
    if matches!(join, JoinKind::Semi | JoinKind::Anti) {
        count = 0;
    }
    if gives_left {
        right_slots.iter().for_each(|slot| execution.put(*slot, Datum::Null));
        append(out, fields, execution)?;
        count += 1;
    }
    Ok(count)
}

fn all_true(conditions: &[Expression], execution: &mut Execution<'_>) -> Result<bool> {
    for condition in conditions {
        if !condition.is_true(execution)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The leaf through which plans read a feed.
pub(crate) struct FeedLeaf {
    number: usize,
    inbox: Arc<Inbox>,
    receiver: Mutex<Option<UnboundedReceiver<Option<RecordBatch>>>>,
    input: Option<(Arc<dyn ExecutionPlan>, Arc<Semaphore>)>,
    properties: Arc<PlanProperties>,
}

impl FeedLeaf {
    /// How many batches of an input may wait for the session.
    pub(crate) fn permits() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(INPUTS_AHEAD))
    }
}

impl fmt::Debug for FeedLeaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FeedLeaf({})", self.number)
    }
}

impl DisplayAs for FeedLeaf {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Feed {}", self.number)
    }
}

/// A feed being read. Dropping it ends the task that reads the feed's input.
struct Reading {
    number: usize,
    inbox: Arc<Inbox>,
    receiver: UnboundedReceiver<Option<RecordBatch>>,
    _input: JoinSet<()>,
}

impl ExecutionPlan for FeedLeaf {
    leaf!("FeedLeaf");

    fn execute(
        &self,
        _: usize,
        context: Arc<TaskContext>,
    ) -> LibraryResult<SendableRecordBatchStream> {
        let receiver = self.receiver.lock().take();
        let receiver = receiver
            .ok_or_else(|| crate::stop_reason::Stop::Declined("a feed is read twice".to_owned()))?;
        let mut tasks = JoinSet::new();
        if let Some((input, permits)) = &self.input {
            let stream = input.execute(0, context)?;
            let (inbox, permits) = (Arc::clone(&self.inbox), Arc::clone(permits));
            tasks.spawn(pass_input(stream, self.number, inbox, permits));
        }
        let (number, inbox) = (self.number, Arc::clone(&self.inbox));
        let reading = Reading { number, inbox, receiver, _input: tasks };
        let stream = futures::stream::unfold(reading, |mut reading| async {
            reading.inbox.push(Message::Want(reading.number));
            let batch = reading.receiver.recv().await.flatten()?;
            Some((Ok(batch), reading))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream)))
    }
}

async fn pass_input(
    stream: SendableRecordBatchStream,
    number: usize,
    inbox: Arc<Inbox>,
    permits: Arc<Semaphore>,
) {
    match caught(pass_batches(stream, number, &inbox, &permits)).await {
        Ok(()) => inbox.push(Message::Input(number, None)),
        Err(stop) => inbox.push(Message::End(Err(stop))),
    }
}

async fn pass_batches(
    mut stream: SendableRecordBatchStream,
    number: usize,
    inbox: &Inbox,
    permits: &Semaphore,
) -> Result<()> {
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        // It is closed when the run has ended.
        let Ok(permit) = permits.acquire().await else { return Ok(()) };
        permit.forget();
        inbox.push(Message::Input(number, Some(batch)));
    }
    Ok(())
}
