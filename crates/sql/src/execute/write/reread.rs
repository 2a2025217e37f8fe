//! Rows that the statement itself may change between finding them and changing them.
//!
//! ```text
//!   UPDATE t x JOIN t y ON … SET x.a = 1, y.b = 2    one row in two roles
//!   DELETE FROM t                                    and a cascade that comes back to t
//! ```
//!
//! Such rows are read again before each change, so that the change builds on the row as it is then.
//! All others are locked from the moment they are found, and have not changed.

use firn_api::rows::{ReadMode, TableRef, WaitPolicy};
use firn_base::TableId;

use crate::error::Result;
use crate::logical::WriteTarget;

use super::super::Execution;
use super::super::error::from_rows;
use super::foreign_key::ForeignKeys;

/// Whether the statement has one of its tables in several roles.
pub(super) fn has_roles(targets: &[WriteTarget]) -> bool {
    let mut rest = targets;
    while let Some((first, others)) = rest.split_first() {
        if others.iter().any(|other| other.table.id == first.table.id) {
            return true;
        }
        rest = others;
    }
    false
}

/// Whether a change of a row of one target may, through foreign keys, change a row of any target.
pub(super) fn cascades_back<'k>(
    targets: &[WriteTarget],
    keys: impl Iterator<Item = &'k mut ForeignKeys>,
    execution: &Execution<'_>,
) -> Result<bool> {
    let is_target = |table: TableId| targets.iter().any(|target| target.table.id == table);
    for keys in keys {
        if keys.may_reach(&is_target, execution)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reads a row as it is now; false if it is gone.
pub(super) fn read_again(
    table: &TableRef,
    key: &[u8],
    payload: &mut Vec<u8>,
    execution: &mut Execution<'_>,
) -> Result<bool> {
    payload.clear();
    let mode = ReadMode::Update(WaitPolicy::Wait);
    execution.data.transaction.get(table, key, mode, payload).map_err(from_rows)
}
