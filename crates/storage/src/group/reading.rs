//! Readers of the durable log, at any member.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use firn_api::LogError;
use firn_base::Lsn;
use firn_base::event::Event;
use firn_format::redo::{Group, GroupDamage};

use super::driver::Shared;
use crate::follower::FollowedLog;
use crate::leases::Leases;

/// The least that is read at once.
const LEAST_BYTES: usize = 16 << 10;

/// The readers' side of a member.
pub(super) struct Reading(pub(super) Arc<Shared>);

impl FollowedLog for Reading {
    fn durable(&self) -> Lsn {
        self.0.durable()
    }

    fn advanced(&self) -> &Event {
        &self.0.advanced
    }

    fn is_closed(&self) -> Result<bool, LogError> {
        match self.0.failure.get() {
            Some(failure) => Err(failure.clone()),
            None => Ok(self.0.is_stopping.load(Ordering::SeqCst)),
        }
    }

    fn leases(&self) -> &Leases {
        &self.0.leases
    }

    fn read(&self, from: Lsn, limit_bytes: usize, into: &mut Vec<u8>) -> Result<Lsn, LogError> {
        self.0.read_groups(from, limit_bytes, into)
    }

    fn damaged(&self, at: Lsn, damage: &GroupDamage) -> LogError {
        damaged(at, damage)
    }
}

fn damaged(at: Lsn, damage: &GroupDamage) -> LogError {
    LogError::Damaged { at: format!("log position {at}"), what: damage.to_string() }
}

impl Shared {
    /// See [`firn_api::LogStore::read`].
    pub(super) fn read_groups(
        &self,
        from: Lsn,
        limit_bytes: usize,
        into: &mut Vec<u8>,
    ) -> Result<Lsn, LogError> {
        let (begin, durable) = (Lsn(self.truncated.load(Ordering::SeqCst)), self.durable());
        if from < begin || from > durable {
            return Err(LogError::OutOfRange { position: from, from: begin, to: durable });
        }
        let mut wanted = limit_bytes.max(LEAST_BYTES) as u64;
        let mut bytes = Vec::new();
        loop {
            let to = Lsn(from.0.saturating_add(wanted)).min(durable);
            bytes.clear();
            if to > from {
                self.log.read(from, to, &mut bytes)?;
            }
            let length = groups_within(&bytes, limit_bytes)
                .map_err(|(offset, damage)| damaged(from.advance(offset as u64), &damage))?;
            if length > 0 || to == durable {
                into.extend_from_slice(&bytes[..length]);
                return Ok(from.advance(length as u64));
            }
            // One group is longer than that.
            wanted *= 4;
        }
    }
}

/// The length of the first group and of those after it up to the limit.
fn groups_within(bytes: &[u8], limit_bytes: usize) -> Result<usize, (usize, GroupDamage)> {
    let mut length = 0;
    while length < bytes.len() {
        match Group::parse(&bytes[length..]) {
            Ok(group) => {
                let next = length + group.length_bytes() as usize;
                if length > 0 && next > limit_bytes {
                    break;
                }
                length = next;
            }
            Err(GroupDamage::Incomplete) => break,
            Err(damage) => return Err((length, damage)),
        }
    }
    Ok(length)
}
