//! Layouts and control's catalog: what a cluster begins with, and what it is now.

use std::collections::BTreeMap;

use firn_base::network::{Address, ClusterId, NodeId, Role, Roles};
use firn_control::{
    Catalog, ChunkId, DirectoryId, EVERY_SPACE, Epoch, FoundedChunk, Founding, GroupId,
    GroupMember, Join, Node, NodeRole, OrderedMembers, Proposal, Protocols, Release, ReplicaState,
    Settings,
};

use super::{Layout, LogEntry, NodeEntry, PagePart};

/// The most copies of pages that control keeps.
const MOST_REPLICAS: usize = 7;
/// The one log group of a cluster. Group 0 is that of the control nodes.
pub const LOG_GROUP: GroupId = GroupId(1);
/// The epoch of each chunk when a cluster begins.
pub(crate) const FOUNDED_EPOCH: Epoch = Epoch(1);
/// How much a page node takes, in bytes. All count the same.
pub(crate) const CAPACITY: u64 = 1 << 40;

/// This build, as nodes tell it to control.
pub(crate) fn release() -> Release {
    let number = |text: &str| text.parse().expect("cargo gives a number");
    Release {
        major: number(env!("CARGO_PKG_VERSION_MAJOR")),
        minor: number(env!("CARGO_PKG_VERSION_MINOR")),
        patch: number(env!("CARGO_PKG_VERSION_PATCH")),
        protocols: Protocols { oldest: 1, newest: 1 },
    }
}

impl Layout {
    /// What the leader of a new cluster's control group enters into its catalog. Chunks keep their
    /// numbers: a standby that takes over has them on its disks.
    pub(crate) fn founds(&self) -> Proposal {
        let (founding, numbers) = (self.founding(), self.chunks.keys().copied());
        match numbers.clone().eq((1..).map(ChunkId).take(self.chunks.len())) {
            true => Proposal::Found(founding),
            false => Proposal::FoundNumbered { founding, chunks: numbers.collect() },
        }
    }

    fn founding(&self) -> Founding {
        let unknown = DirectoryId::UNKNOWN;
        let nodes = self.nodes().map(|node| join_request(self.cluster, node, unknown)).collect();
        let control = self.control.iter();
        let voter = |node: NodeId| GroupMember { node, role: firn_consensus::Role::Voter };
        let control: OrderedMembers =
            control.map(|(member, node)| (*member, voter(*node))).collect();
        let member = |one: &LogEntry| GroupMember { node: one.node, role: one.role };
        let log = self.log.iter().map(|(id, one)| (*id, member(one))).collect();
        // Control numbers them in this order.
        let chunks = self.chunks.values().map(|part| FoundedChunk {
            space: EVERY_SPACE,
            first: part.first,
            end: part.end,
            group: LOG_GROUP,
            nodes: part.nodes.clone(),
        });
        Founding { nodes, groups: vec![control, log], chunks: chunks.collect() }
    }

    /// The settings of the catalog of a new cluster.
    pub(crate) fn settings(&self) -> Settings {
        let copies = self.chunks.values().map(|part| part.nodes.len()).max();
        let replicas = copies.unwrap_or(1).clamp(1, MOST_REPLICAS) as u8;
        Settings { replicas, chunk_pages: self.extents.pages, ..Settings::default() }
    }

    /// The layout that a catalog describes. `None` if it has no log group yet.
    #[must_use]
    pub fn of_catalog(catalog: &Catalog) -> Option<Layout> {
        let nodes = catalog.nodes().iter().filter_map(|(id, node)| entry(*id, node));
        let nodes: BTreeMap<_, _> = nodes.map(|node| (node.number, node)).collect();
        let members = |group| Some(catalog.groups().get(&group)?.members.iter());
        let control = members(GroupId::CONTROL)?.map(|(member, one)| (*member, one.node));
        let log = members(LOG_GROUP)?
            .map(|(member, one)| (*member, LogEntry { node: one.node, role: one.role }));
        let (log, control) = (log.collect(), control.collect());
        let chunks = catalog.chunks().iter().map(|(id, chunk)| {
            let nodes = chunk.nodes_in(ReplicaState::InService).collect();
            (*id, PagePart { first: chunk.first, end: chunk.end, nodes })
        });
        let (cluster, extents) = (catalog.cluster(), catalog.extents());
        let chunks = chunks.collect();
        Some(Layout { cluster, nodes, log, control, extents, chunks, origin: None })
    }
}

/// What a node says of itself when it comes into the cluster. With number 0 it gets one.
pub(crate) fn join_request(cluster: ClusterId, node: &NodeEntry, directory: DirectoryId) -> Join {
    Join {
        cluster: Some(cluster),
        name: node.name.clone(),
        directory,
        address: node.address.to_string(),
        client_address: node.client_address.as_ref().map(Address::to_string),
        roles: all_roles(node).collect(),
        zone: node.zone.clone(),
        capacity: CAPACITY,
        release: release(),
        number: Some(node.number).filter(|number| number.0 != 0),
    }
}

/// What control knows a node to be.
fn all_roles(node: &NodeEntry) -> impl Iterator<Item = NodeRole> + '_ {
    let standby = node.is_standby.then_some(NodeRole::Standby);
    node_roles(node.roles).into_iter().chain(standby)
}

/// Roles as control has them. A node that keeps log and runs no engine is a logger.
pub(crate) fn node_roles(roles: Roles) -> Vec<NodeRole> {
    let control = |role: Role| match role {
        Role::Compute => NodeRole::Compute,
        Role::Database => NodeRole::Database,
        Role::Log if roles.has(Role::Database) => NodeRole::LogMember,
        Role::Log => NodeRole::Logger,
        Role::Pages => NodeRole::Page,
        Role::Control => NodeRole::Control,
        Role::Replica => NodeRole::Replica,
        Role::Proxy => NodeRole::Proxy,
    };
    Role::ALL.into_iter().filter(|role| roles.has(*role)).map(control).collect()
}

/// A node of the catalog. `None` if it cannot be reached by an address.
fn entry(number: NodeId, node: &Node) -> Option<NodeEntry> {
    let role = |role: &NodeRole| {
        Some(match role {
            NodeRole::Compute => Role::Compute,
            NodeRole::Database => Role::Database,
            NodeRole::LogMember | NodeRole::Logger => Role::Log,
            NodeRole::Page => Role::Pages,
            NodeRole::Control => Role::Control,
            NodeRole::Replica => Role::Replica,
            NodeRole::Proxy => Role::Proxy,
            NodeRole::Standby => return None,
        })
    };
    let roles: Vec<Role> = node.roles.iter().filter_map(role).collect();
    Some(NodeEntry {
        number,
        name: node.name.clone(),
        address: node.address.parse().ok()?,
        client_address: node.client_address.as_ref().and_then(|address| address.parse().ok()),
        roles: Roles::of(&roles),
        zone: node.zone.clone(),
        is_standby: node.has(NodeRole::Standby),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"cluster = "000102030405060708090a0b0c0d0e0f"
[[node]]
number = 3
name = "database-1"
address = "127.0.0.1:7401"
client_address = "127.0.0.1:3307"
roles = ["database", "log", "control"]
[[node]]
number = 5
name = "logger-1"
address = "127.0.0.1:7402"
roles = ["log"]
[[node]]
number = 7
name = "pages-1"
address = "127.0.0.1:7403"
roles = ["pages"]
"#;

    #[test]
    fn a_catalog_that_was_founded_with_a_layout_describes_it() {
        let layout = Layout::parse(TEXT).unwrap();
        let mut catalog = Catalog::new(layout.cluster, layout.settings()).unwrap();
        assert_eq!(Layout::of_catalog(&catalog), None);
        catalog.apply(&layout.founds()).unwrap();
        assert_eq!(Layout::of_catalog(&catalog), Some(layout));
        assert_eq!(catalog.chunks().len(), 1);
        assert_eq!(catalog.chunks()[&ChunkId(1)].epoch, FOUNDED_EPOCH);
    }

    #[test]
    fn a_catalog_with_parts_of_the_pages_describes_them() {
        let more = "page_chunks = 5\nextent_pages = 64\npage_copies = 1\n[[node]]\nnumber = 8\n\
                    name = \"pages-2\"\naddress = \"127.0.0.1:7404\"\nroles = [\"pages\"]\n[[node]]";
        let layout = Layout::parse(&TEXT.replacen("[[node]]", more, 1)).unwrap();
        assert_eq!(Layout::parse(&layout.to_text()).as_ref(), Ok(&layout));
        let mut catalog = Catalog::new(layout.cluster, layout.settings()).unwrap();
        catalog.apply(&layout.founds()).unwrap();
        assert_eq!(Layout::of_catalog(&catalog), Some(layout.clone()));
        assert_eq!((catalog.chunks().len(), catalog.replicas()), (5, 1));
        assert!(catalog.chunks().values().all(|chunk| chunk.epoch == FOUNDED_EPOCH));
        let (on_first, on_second) = (layout.chunks_on(NodeId(7)), layout.chunks_on(NodeId(8)));
        assert_eq!((on_first.count(), on_second.count()), (3, 2));
    }

    #[test]
    fn chunks_keep_their_numbers_when_a_cluster_is_founded_anew() {
        let more = "page_bounds = [1000]\nextent_pages = 64\n[[node]]";
        let mut layout = Layout::parse(&TEXT.replacen("[[node]]", more, 1)).unwrap();
        let upper = layout.chunks.remove(&ChunkId(2)).unwrap();
        layout.chunks.insert(ChunkId(7), upper);
        let mut catalog = Catalog::new(layout.cluster, layout.settings()).unwrap();
        catalog.apply(&layout.founds()).unwrap();
        assert_eq!(Layout::of_catalog(&catalog), Some(layout));
    }
}
