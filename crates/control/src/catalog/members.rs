//! Members of log groups: added, replaced, removed. One change at a time for each group.
//!
//! A newcomer first learns: it gets the log and does not vote. When it has caught up, it gets its
//! role and the other member leaves, in one step of the group. So the group never has fewer votes
//! than before.

use firn_consensus::{MemberId, Members, Role};

use super::Catalog;
use crate::group::GroupMember;
use crate::identifiers::{Epoch, GroupId, NodeId, OperationId};
use crate::node::NodeRole;
use crate::operation::{MemberMove, MemberPhase, NewMember, OperationKind, Outcome, Reason};
use crate::refusal::Refusal;

impl MemberMove {
    pub(super) fn can_be_undone(&self) -> bool {
        matches!(self.phase, MemberPhase::Learn | MemberPhase::CatchUp | MemberPhase::Change)
    }
}

impl Catalog {
    pub(super) fn change_member(
        &mut self,
        id: GroupId,
        epoch: Epoch,
        add: Option<(NodeId, Role)>,
        remove: Option<MemberId>,
        reason: Reason,
    ) -> Result<OperationId, Refusal> {
        self.check_change(id, epoch, add, remove)?;
        let group = self.groups.get_mut(&id).expect("checked above");
        let member = MemberId(group.next_member);
        let add = add.map(|(node, role)| NewMember { member, node, role });
        let phase = if add.is_some() { MemberPhase::Learn } else { MemberPhase::Change };
        let one = MemberMove { group: id, add, remove, phase };
        Members::new(one.members_after(group).iter().map(|(id, member)| (*id, member.role)))?;
        group.next_member += u64::from(add.is_some());
        group.epoch = group.epoch.next();
        let operation = self.begin(OperationKind::ChangeMember(one), reason);
        self.groups.get_mut(&id).expect("checked above").operation = Some(operation);
        Ok(operation)
    }

    fn check_change(
        &self,
        id: GroupId,
        epoch: Epoch,
        add: Option<(NodeId, Role)>,
        remove: Option<MemberId>,
    ) -> Result<(), Refusal> {
        let group = self.group(id)?;
        if let Some(operation) = group.operation {
            return Err(Refusal::Busy(operation));
        }
        if group.epoch != epoch {
            return Err(Refusal::OldEpoch { epoch, newest: group.epoch });
        }
        if group.writer.is_none() {
            return Err(Refusal::NoLeader(id));
        }
        if let Some(member) = remove.filter(|member| !group.members.contains_key(member)) {
            return Err(firn_consensus::MembersError::Absent(member).into());
        }
        let Some((node, role)) = add else {
            return self.check_majority_without(id, remove);
        };
        let known = self.node(node)?;
        if !known.takes_more() {
            return Err(Refusal::NotReady { name: known.name.clone(), state: known.state() });
        }
        if role == Role::Learner && !known.has(NodeRole::Standby) {
            return Err(Refusal::LearnerAsked);
        }
        self.check_may_be_member(id, node, role)?;
        if group.member_on(node).is_some() {
            return Err(Refusal::NodeTwice(node));
        }
        Ok(())
    }

    /// Without the member, a majority of the voters has to be up.
    fn check_majority_without(&self, id: GroupId, remove: Option<MemberId>) -> Result<(), Refusal> {
        let Some(remove) = remove else {
            return Err(firn_consensus::MembersError::Nothing.into());
        };
        let group = self.group(id)?;
        let rest = || {
            let voters = group.members.iter().filter(|(_, member)| member.role.votes());
            voters.filter(|(id, _)| **id != remove)
        };
        let up = rest().filter(|(_, member)| self.is_up(member.node)).count();
        if up * 2 > rest().count() { Ok(()) } else { Err(Refusal::NoMajority(id)) }
    }

    /// One step of a change is done.
    pub(super) fn member_changed(&mut self, id: OperationId, mut one: MemberMove, node: NodeId) {
        let Some(group) = self.groups.get_mut(&one.group) else { return };
        let new = one.add.filter(|new| new.node == node);
        match one.phase {
            // Any member may have led, and have told so before another one was elected.
            MemberPhase::Learn if new.is_none() => {
                let Some(new) = one.add else { return };
                let learner = GroupMember { node: new.node, role: Role::Learner };
                group.members.insert(new.member, learner);
                group.epoch = group.epoch.next();
                one.phase = MemberPhase::CatchUp;
                self.go_on(id, OperationKind::ChangeMember(one));
            }
            MemberPhase::CatchUp if new.is_some() => {
                one.phase = MemberPhase::Change;
                self.go_on(id, OperationKind::ChangeMember(one));
            }
            MemberPhase::Change => {
                let left =
                    one.remove.and_then(|member| Some((member, group.members.get(&member)?)));
                let left = left.map(|(member, known)| (member, known.node));
                group.members = one.members_after(group);
                self.members_are_set(id, one, left);
            }
            MemberPhase::Undo => {
                let left = one.add.map(|new| (new.member, new.node));
                if let Some((member, _)) = left {
                    group.members.remove(&member);
                }
                self.members_are_set(id, one, left);
            }
            MemberPhase::Leave { node: leaving, .. } if leaving == node => {
                self.end(id, outcome(&one));
            }
            MemberPhase::Learn | MemberPhase::CatchUp | MemberPhase::Leave { .. } => {}
        }
    }

    /// The group has its new members. The one that left deletes its log.
    fn members_are_set(
        &mut self,
        id: OperationId,
        mut one: MemberMove,
        left: Option<(MemberId, NodeId)>,
    ) {
        let group = self.groups.get_mut(&one.group).expect("the caller has it");
        group.epoch = group.epoch.next();
        group.writer = group.writer.filter(|writer| group.members.contains_key(writer));
        match left {
            Some((member, node)) => {
                one.phase = MemberPhase::Leave { member, node };
                self.go_on(id, OperationKind::ChangeMember(one));
            }
            None => {
                let undone = one.phase == MemberPhase::Undo;
                self.end(id, if undone { Outcome::Cancelled } else { Outcome::Done });
            }
        }
    }

    /// Begins to give the group its old members again. The new epoch makes earlier orders stale.
    pub(super) fn undo_change(&mut self, id: OperationId, mut one: MemberMove) {
        if let Some(group) = self.groups.get_mut(&one.group) {
            group.epoch = group.epoch.next();
        }
        one.phase = MemberPhase::Undo;
        self.go_on(id, OperationKind::ChangeMember(one));
    }

    pub(super) fn settle_member(&mut self, id: OperationId, one: MemberMove) -> bool {
        match one.phase {
            MemberPhase::Learn | MemberPhase::CatchUp => {
                let lost = one.add.is_some_and(|new| self.is_down(new.node));
                if lost {
                    self.undo_change(id, one);
                }
                lost
            }
            MemberPhase::Leave { node, .. } if self.is_down(node) => {
                self.end(id, outcome(&one));
                true
            }
            MemberPhase::Change | MemberPhase::Undo | MemberPhase::Leave { .. } => false,
        }
    }
}

/// What a change has led to when somebody leaves: if it is the newcomer, it was undone.
fn outcome(one: &MemberMove) -> Outcome {
    match (one.phase, one.add) {
        (MemberPhase::Leave { member, .. }, Some(new)) if member == new.member => {
            Outcome::Cancelled
        }
        _ => Outcome::Done,
    }
}
