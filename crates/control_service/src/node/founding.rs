//! The control group as the catalog has it.
//!
//! The group exists before its catalog. Its leader enters it as group 0, so that
//! `firn cluster status` shows it and other groups can be founded: at once, with all nodes that the
//! cluster begins with, or once all of its members have joined as nodes.

use firn_consensus::{MemberId, Role};
use firn_control::{Catalog, GroupId, NodeId, NodeRole, Proposal};

use super::core::Core;
use super::shared::Shared;
use crate::options::ControlMembers;

impl Shared {
    /// Lets the cluster begin, if it has not. Whatever an earlier leader proposed for that is
    /// applied when this one leads, and what nodes ask of this one comes after it.
    pub(super) fn found_cluster(&self, core: &mut Core) {
        let catalog = core.controller.catalog();
        let is_new = catalog.nodes().is_empty() && catalog.groups().is_empty();
        if let Some(founding) = self.options.founding.as_ref().filter(|_| is_new)
            && let Err(error) = core.propose(founding)
        {
            tracing::warn!(?error, "the cluster is founded when a control node leads again");
        }
    }

    /// Enters the group, if it is not there and all members are. A leader asks once: whatever an
    /// earlier one asked for is applied or gone when this one leads.
    pub(super) fn enter_group(&self, core: &mut Core) {
        let Some(term) = core.acts().filter(|term| core.entered_in != Some(*term)) else { return };
        let catalog = core.controller.catalog();
        if catalog.groups().contains_key(&GroupId::CONTROL) {
            core.entered_in = Some(term);
            return;
        }
        let Some(members) = member_nodes(catalog, &self.addresses.read()) else { return };
        let wanted_voters = members.len() as u8;
        let found = Proposal::FoundGroup { members, wanted_voters, wanted_loggers: 0 };
        if core.propose(&found).is_ok() {
            core.entered_in = Some(term);
        }
    }
}

/// The nodes at the members' addresses, in the order of the members. `None` if one has not joined,
/// or if the catalog would number the members otherwise.
fn member_nodes(catalog: &Catalog, members: &ControlMembers) -> Option<Vec<(NodeId, Role)>> {
    if !members.keys().copied().eq((1..=members.len() as u64).map(MemberId)) {
        return None;
    }
    let node_at = |address: String| {
        let mut nodes = catalog.nodes().iter();
        let at = nodes.find(|(_, node)| node.address == address && node.has(NodeRole::Control));
        at.map(|(id, _)| (*id, Role::Voter))
    };
    members.values().map(|address| node_at(address.to_string())).collect()
}
