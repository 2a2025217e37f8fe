//! `DELETE`.

use std::collections::VecDeque;

use firn_api::rows::{ReadMode, TableRef, WaitPolicy};
use rustc_hash::FxHashSet;

use crate::error::Result;
use crate::plan::{DeletePlan, WriteTarget};
use crate::types::Datum;

use super::super::error::from_rows;
use super::super::memory::Reservation;
use super::super::operator::build;
use super::super::{Execution, Outcome};
use super::foreign_key::ForeignKeys;
use super::is_ignorable;
use super::point::Point;

/// Deletes a row, and does what its children's foreign keys say.
pub(super) fn delete_row(
    table: &TableRef,
    keys: &mut ForeignKeys,
    key: &[u8],
    payload: &[u8],
    execution: &mut Execution<'_>,
) -> Result<()> {
    execution.transaction.delete(table, key, payload).map_err(from_rows)?;
    execution.rows.deleted += 1;
    keys.after_delete(table, payload, 0, execution)
}

/// A row's key and its bytes.
type KeyAndPayload = (Box<[u8]>, Box<[u8]>);

struct Target<'p> {
    plan: &'p WriteTarget,
    table: TableRef,
    keys: ForeignKeys,
    seen: Option<FxHashSet<Box<[u8]>>>,
    /// Keys and bytes of rows that are deleted when all have been gathered.
    pending: VecDeque<KeyAndPayload>,
    held: Reservation,
}

/// Deletes the rows of a plan.
pub(crate) fn delete(plan: &DeletePlan, execution: &mut Execution<'_>) -> Result<Outcome> {
    let mut targets = Vec::with_capacity(plan.targets.len());
    for target in &plan.targets {
        targets.push(Target {
            plan: target,
            table: execution.table(&target.table, true)?,
            keys: ForeignKeys::of(&target.table, execution)?,
            seen: (plan.targets.len() > 1 || plan.gather_first).then(FxHashSet::default),
            pending: VecDeque::new(),
            held: execution.memory().reservation(),
        });
    }
    let mut affected = 0;
    match Point::of(&plan.source, execution) {
        Some(point) => {
            let target = &mut targets[0];
            let table = target.table.clone();
            point.visit(&table, execution, |row, execution| {
                affected += target.delete(plan, &row.key, &row.payload, execution)?;
                Ok(())
            })?;
        }
        None => delete_source(plan, &mut targets, &mut affected, execution)?,
    }
    for target in &mut targets {
        while let Some((key, payload)) = target.pending.pop_front() {
            execution.check_cancelled()?;
            affected += target.delete_pending(plan, &key, &payload, execution)?;
        }
    }
    Ok(Outcome { affected, found: affected, ..Outcome::default() })
}

fn delete_source(
    plan: &DeletePlan,
    targets: &mut [Target<'_>],
    affected: &mut u64,
    execution: &mut Execution<'_>,
) -> Result<()> {
    let mut source = build(&plan.source, execution);
    source.open(execution)?;
    while source.next(execution)? {
        execution.check_cancelled()?;
        for target in &mut *targets {
            *affected += target.visit(plan, execution)?;
        }
    }
    Ok(())
}

impl Target<'_> {
    /// Looks at the target's row in the frame; answers how many rows were deleted.
    fn visit(&mut self, plan: &DeletePlan, execution: &mut Execution<'_>) -> Result<u64> {
        // NULL: the row of an outer join that matched nothing.
        let Datum::Text(key) = execution.get(self.plan.row_key).clone() else { return Ok(0) };
        let Datum::Text(payload) = execution.get(self.plan.row_payload).clone() else {
            return Ok(0);
        };
        if let Some(seen) = &mut self.seen {
            if seen.contains(&key[..]) {
                return Ok(0);
            }
            self.held.require(key.len() + 32)?;
            seen.insert((*key).into());
        }
        if self.seen.is_none() {
            return self.delete(plan, &key, &payload, execution);
        }
        self.held.require(key.len() + payload.len() + 32)?;
        self.pending.push_back(((*key).into(), (*payload).into()));
        Ok(0)
    }

    fn delete_pending(
        &mut self,
        plan: &DeletePlan,
        key: &[u8],
        payload: &[u8],
        execution: &mut Execution<'_>,
    ) -> Result<u64> {
        if !self.keys.may_cascade(execution)? {
            return self.delete(plan, key, payload, execution);
        }
        // An earlier row's cascade may have changed or deleted this one.
        let mut present = Vec::new();
        let mode = ReadMode::Update(WaitPolicy::Wait);
        let found = execution.transaction.get(&self.table, key, mode, &mut present);
        if !found.map_err(from_rows)? {
            return Ok(0);
        }
        self.delete(plan, key, &present, execution)
    }

    fn delete(
        &mut self,
        plan: &DeletePlan,
        key: &[u8],
        payload: &[u8],
        execution: &mut Execution<'_>,
    ) -> Result<u64> {
        let before = plan.ignore.then(|| execution.transaction.savepoint());
        match (delete_row(&self.table, &mut self.keys, key, payload, execution), before) {
            (Ok(()), _) => Ok(1),
            (Err(error), Some(before)) if is_ignorable(&error) => {
                execution.transaction.rollback_to(before).map_err(from_rows)?;
                execution.context.warn(error.code, || error.message.clone());
                Ok(0)
            }
            (Err(error), _) => Err(error),
        }
    }
}
