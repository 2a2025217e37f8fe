//! The beginning of a cluster: the nodes and groups that its founders were told of.
//!
//! The control nodes and the members of the first log group exist before there is a catalog. They
//! come into it at once, by one entry, under the numbers that they have already.

use firn_base::Lsn;
use firn_consensus::Role;

use super::Catalog;
use super::groups::new_group;
use crate::chunk::{Replica, ReplicaState};
use crate::group::{LogGroup, OrderedMembers};
use crate::identifiers::{ChunkId, DirectoryId, GroupId};
use crate::proposal::Founding;
use crate::refusal::Refusal;

impl Catalog {
    /// `numbers`: those of the chunks, unless they are counted from 1 on.
    pub(super) fn found_cluster(
        &mut self,
        founding: &Founding,
        numbers: Option<&[ChunkId]>,
    ) -> Result<(), Refusal> {
        let is_new = self.next_node == 1 && self.next_group == 0;
        if !is_new {
            return Err(Refusal::Founded);
        }
        // The catalog has nothing that is worth a second look.
        let mut founded = self.clone();
        for join in &founding.nodes {
            founded.check_join(join)?;
            if join.directory != DirectoryId::UNKNOWN {
                let (value, rule) = (join.name.clone(), "a founder tells it when it starts");
                return Err(Refusal::Malformed { what: "the directory of node", value, rule });
            }
            if let Some((node, known)) =
                founded.nodes.iter().find(|(_, known)| known.name == join.name)
            {
                let (name, address) = (join.name.clone(), known.address.clone());
                return Err(Refusal::NameTaken { name, node: *node, address });
            }
            founded.add_node(join)?;
        }
        for members in &founding.groups {
            let id = GroupId(founded.next_group);
            let group = founded.founded_group(id, members)?;
            founded.groups.insert(id, group);
            founded.next_group += 1;
        }
        let mut numbers = numbers.map(|numbers| numbers.iter());
        for one in &founding.chunks {
            if let Some(numbers) = &mut numbers {
                founded.next_chunk = founded.number_of_founded(numbers.next().copied())?;
            }
            let (since, position) = (founded.entries, Lsn(0));
            let replica = Replica { state: ReplicaState::InService, since, position };
            founded.add_chunk(one.space, one.first..one.end, one.group, replica, &one.nodes)?;
        }
        *self = founded;
        Ok(())
    }

    /// The number of the next chunk: they go up, and each chunk has one.
    fn number_of_founded(&self, given: Option<ChunkId>) -> Result<u64, Refusal> {
        let last = given.map_or(0, |number| number.0);
        match last >= self.next_chunk && last < u64::MAX / 2 {
            true => Ok(last),
            false => {
                let rule = "each chunk has a number, and they go up";
                Err(Refusal::Malformed {
                    what: "the number of chunk",
                    value: last.to_string(),
                    rule,
                })
            }
        }
    }

    /// The group of these members, which wants as many as it has.
    fn founded_group(&self, id: GroupId, members: &OrderedMembers) -> Result<LogGroup, Refusal> {
        for (member, one) in members {
            self.check_may_be_member(id, one.node, one.role)?;
            let is_twice = |(other, known): (_, &crate::GroupMember)| {
                other != member && known.node == one.node
            };
            if members.iter().any(is_twice) {
                return Err(Refusal::NodeTwice(one.node));
            }
        }
        let count = |role: Role| members.values().filter(|member| member.role == role).count();
        let (voters, loggers) = (count(Role::Voter), count(Role::Logger));
        new_group(members.clone(), voters as u8, loggers as u8)
    }
}
