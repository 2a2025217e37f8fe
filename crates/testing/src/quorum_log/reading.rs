//! Reading the durable log from the members.

use std::sync::Arc;

use firn_api::LogError;
use firn_base::Lsn;
use firn_base::event::Event;
use firn_format::redo::{Group, GroupDamage};
use firn_storage::follower::FollowedLog;
use firn_storage::leases::Leases;

use super::cluster::{Cluster, State};

/// The readers' side of the log.
pub(super) struct Reading {
    cluster: Arc<Cluster>,
}

impl Reading {
    pub(super) fn new(cluster: &Arc<Cluster>) -> Reading {
        Reading { cluster: Arc::clone(cluster) }
    }

    pub(super) fn cluster(&self) -> &Arc<Cluster> {
        &self.cluster
    }
}

impl FollowedLog for Reading {
    fn durable(&self) -> Lsn {
        self.cluster.durable()
    }

    fn advanced(&self) -> &Event {
        &self.cluster.advanced
    }

    fn is_closed(&self) -> Result<bool, LogError> {
        Ok(false)
    }

    fn leases(&self) -> &Leases {
        &self.cluster.leases
    }

    fn read(&self, from: Lsn, limit_bytes: usize, into: &mut Vec<u8>) -> Result<Lsn, LogError> {
        let state = self.cluster.lock();
        let durable = self.cluster.durable();
        if from < state.floor || from > durable {
            return Err(LogError::OutOfRange { position: from, from: state.floor, to: durable });
        }
        let mut position = from;
        while position < durable {
            let groups = state.groups_at(position)?;
            let (group, _) = groups.split_at(length_of_group(groups));
            let next = position.advance(group.len() as u64);
            if next > durable || (position > from && next.since(from) > limit_bytes as u64) {
                break;
            }
            into.extend_from_slice(group);
            position = next;
        }
        Ok(position)
    }

    fn damaged(&self, at: Lsn, damage: &GroupDamage) -> LogError {
        LogError::Damaged { at: format!("log position {at}"), what: damage.to_string() }
    }
}

fn length_of_group(groups: &[u8]) -> usize {
    let group = Group::parse(groups).expect("whole groups were taken");
    group.length_bytes() as usize
}

impl State {
    /// The bytes from the durable position `at` to the end of a round. Of two members that answer,
    /// the one with the newer log is right; a majority has one with the newest.
    fn groups_at(&self, at: Lsn) -> Result<&[u8], LogError> {
        let answering = self.members.iter().filter(|member| !member.is_lost);
        let answered = answering.clone().count();
        let newest = answering
            .filter_map(|member| Some((member.accepted, member.round_at(at)?)))
            .max_by_key(|(accepted, _)| *accepted)
            .filter(|_| answered >= self.majority());
        let (_, (start, bytes)) = newest.ok_or_else(|| LogError::Unavailable {
            reason: format!("{answered} of {} copies answer", self.members.len()),
        })?;
        Ok(&bytes[at.since(start) as usize..])
    }
}
