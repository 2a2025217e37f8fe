//! `DELETE`.

use std::collections::VecDeque;

use firn_api::rows::TableRef;
use firn_base::TableId;

use crate::error::Result;
use crate::logical::WriteTarget;
use crate::plan::DeletePlan;
use crate::types::Datum;

use super::super::error::from_rows;
use super::super::memory::Reservation;
use super::super::operator::build;
use super::super::seen::SeenKeys;
use super::super::{Execution, Outcome};
use super::batch::{BatchedWrite, WriteBatch, Written, may_run_ahead, write_all};
use super::foreign_key::ForeignKeys;
use super::is_ignorable;
use super::point::Point;
use super::reread::{cascades_back, read_again};

/// Deletes a row, and does what its children's foreign keys require.
fn delete_row(
    table: &TableRef,
    keys: &mut ForeignKeys,
    key: &[u8],
    payload: &[u8],
    execution: &mut Execution<'_>,
) -> Result<()> {
    execution.data.transaction.delete(table, key, payload).map_err(from_rows)?;
    execution.measures.rows.deleted += 1;
    keys.after_delete(table, payload, None, execution)
}

/// A row's key and its bytes.
type KeyAndPayload = (Box<[u8]>, Box<[u8]>);

/// A `DELETE` at work.
struct Deleter<'p> {
    plan: &'p DeletePlan,
    targets: Vec<Target<'p>>,
    /// For each table, the rows that the source has returned in any role; empty if rows are not
    /// collected first.
    seen: Vec<(TableId, SeenKeys)>,
    gathers: bool,
    /// Whether rows may change between being found and being deleted.
    rereads: bool,
    affected: u64,
}

struct Target<'p> {
    plan: &'p WriteTarget,
    table: TableRef,
    keys: ForeignKeys,
    /// Keys and bytes of rows that are deleted once all have been collected.
    pending: VecDeque<KeyAndPayload>,
    held: Reservation,
    /// Deletions that wait for others; `None` if each is made at once.
    batch: Option<WriteBatch>,
}

/// Deletes the rows of a plan.
pub(crate) fn delete(plan: &DeletePlan, execution: &mut Execution<'_>) -> Result<Outcome> {
    let mut targets = Vec::with_capacity(plan.targets.len());
    for target in &plan.targets {
        targets.push(Target {
            plan: target,
            table: execution.table(&target.table, true)?,
            keys: ForeignKeys::of(&target.table, execution)?,
            pending: VecDeque::new(),
            held: execution.memory().reservation(),
            batch: None,
        });
    }
    let gathers = plan.gather_first || plan.targets.len() > 1;
    let keys = targets.iter_mut().map(|target| &mut target.keys);
    let rereads = cascades_back(&plan.targets, keys, execution)?;
    let seen = Vec::new();
    let mut deleter = Deleter { plan, targets, seen, gathers, rereads, affected: 0 };
    match Point::of(&plan.source, execution) {
        Some(point) => {
            let table = deleter.targets[0].table.clone();
            point.visit(&table, execution, |row, execution| {
                deleter.delete(0, &row.key, &row.payload, execution)
            })?;
        }
        None => {
            deleter.batch_writes(execution)?;
            if let Err(error) = deleter.delete_source(execution) {
                // The error of an earlier row, not yet deleted, comes first.
                let goes_on = !error.ends_transaction() && execution.check_cancelled().is_ok();
                if !deleter.gathers && goes_on {
                    deleter.delete_pending(execution)?;
                }
                return Err(error);
            }
        }
    }
    deleter.delete_pending(execution)?;
    Ok(Outcome { affected: deleter.affected, found: deleter.affected, ..Outcome::default() })
}

impl Deleter<'_> {
    /// Lets deletions wait for others where that saves messages and changes nothing else.
    fn batch_writes(&mut self, execution: &Execution<'_>) -> Result<()> {
        if !execution.data.is_remote || self.rereads {
            return Ok(());
        }
        for target in &mut self.targets {
            let in_order =
                self.gathers || !self.plan.ignore && may_run_ahead(&self.plan.source, target.plan);
            if in_order && !target.keys.follow_delete(execution)? {
                target.batch = Some(WriteBatch::default());
            }
        }
        Ok(())
    }

    fn delete_source(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        execution.data.scans_row_by_row = self.rereads && !self.gathers;
        let mut source = build(&self.plan.source, execution);
        source.open(execution)?;
        while source.next(execution)? {
            execution.check_cancelled()?;
            for number in 0..self.targets.len() {
                self.visit(number, execution)?;
            }
        }
        Ok(())
    }

    /// Processes a target's row in the frame.
    fn visit(&mut self, number: usize, execution: &mut Execution<'_>) -> Result<()> {
        let plan = self.targets[number].plan;
        // NULL: the row of an outer join that matched nothing.
        let Datum::Text(key) = execution.frame.get(plan.row_key).clone() else { return Ok(()) };
        let Datum::Text(payload) = execution.frame.get(plan.row_payload).clone() else {
            return Ok(());
        };
        if !self.gathers {
            return self.delete_present(number, &key, &payload, execution);
        }
        if !self.seen_of(plan.table.id, execution).add(&key)? {
            return Ok(());
        }
        let target = &mut self.targets[number];
        target.held.require(key.len() + payload.len() + 32)?;
        target.pending.push_back(((*key).into(), (*payload).into()));
        Ok(())
    }

    /// The rows of a table that were already returned.
    fn seen_of(&mut self, table: TableId, execution: &Execution<'_>) -> &mut SeenKeys {
        let place = self.seen.iter().position(|(of, _)| *of == table).unwrap_or_else(|| {
            self.seen.push((table, SeenKeys::new(execution)));
            self.seen.len() - 1
        });
        &mut self.seen[place].1
    }

    /// Makes all deletions that have not been made yet.
    fn delete_pending(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        for number in 0..self.targets.len() {
            while let Some((key, payload)) = self.targets[number].pending.pop_front() {
                execution.check_cancelled()?;
                self.delete_present(number, &key, &payload, execution)?;
            }
            self.delete_batch(number, execution)?;
        }
        Ok(())
    }

    /// Deletes a row that had these bytes when it was found.
    fn delete_present(
        &mut self,
        number: usize,
        key: &[u8],
        payload: &[u8],
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        if !self.rereads {
            return self.delete(number, key, payload, execution);
        }
        let mut present = Vec::new();
        match read_again(&self.targets[number].table, key, &mut present, execution)? {
            true => self.delete(number, key, &present, execution),
            false => Ok(()),
        }
    }

    /// Deletes a row, or puts its deletion in the batch.
    fn delete(
        &mut self,
        number: usize,
        key: &[u8],
        payload: &[u8],
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        let Some(batch) = &mut self.targets[number].batch else {
            return self.delete_alone(number, key, payload, execution);
        };
        let write = BatchedWrite::new(key, payload, None, execution);
        if batch.add(write) { self.delete_batch(number, execution) } else { Ok(()) }
    }

    /// Makes the deletions in a target's batch.
    fn delete_batch(&mut self, number: usize, execution: &mut Execution<'_>) -> Result<()> {
        let target = &mut self.targets[number];
        let rows = target.batch.as_mut().map(WriteBatch::take).unwrap_or_default();
        if rows.is_empty() {
            return Ok(());
        }
        match write_all(&rows, &target.table, execution)? {
            Written::All => {
                self.affected += rows.len() as u64;
                execution.measures.rows.deleted += rows.len() as u64;
            }
            Written::None => {
                // More of them may follow.
                target.batch = None;
                for row in &rows {
                    let deleted = self.delete_alone(number, &row.key, &row.payload, execution);
                    if deleted.is_err() && !self.gathers {
                        row.forget_later_conditions(execution);
                    }
                    deleted?;
                }
            }
        }
        Ok(())
    }

    fn delete_alone(
        &mut self,
        number: usize,
        key: &[u8],
        payload: &[u8],
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        let Target { table, keys, .. } = &mut self.targets[number];
        let before = self.plan.ignore.then(|| execution.data.transaction.savepoint());
        match (delete_row(table, keys, key, payload, execution), before) {
            (Ok(()), _) => self.affected += 1,
            (Err(error), Some(before)) if is_ignorable(&error) => {
                execution.data.transaction.rollback_to(before).map_err(from_rows)?;
                execution.context.warn(error.code, || error.message.clone());
            }
            (Err(error), _) => return Err(error),
        }
        Ok(())
    }
}
