//! Layouts of earlier releases, as they stand in records.

use std::collections::{BTreeMap, BTreeSet};

use firn_base::network::{Address, ClusterId, NodeId, Roles};
use firn_base::{Extents, PageNo};
use firn_consensus::MemberId;
use firn_control::ChunkId;
use serde::{Deserialize, Serialize};

use super::{ALL_TOGETHER, DEFAULT_ZONE, Layout, LogEntry, NodeEntry, PagePart};

/// A node of a time without zones. See [`NodeEntry`] for the fields.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct NodeWithoutZone {
    number: NodeId,
    name: String,
    address: Address,
    client_address: Option<Address>,
    roles: Roles,
}

/// A layout of a time without zones. See [`Layout`] for the fields.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LayoutWithoutZones {
    cluster: ClusterId,
    nodes: BTreeMap<NodeId, NodeWithoutZone>,
    log: BTreeMap<MemberId, LogEntry>,
    control: BTreeMap<MemberId, NodeId>,
    extents: Extents,
    chunks: BTreeMap<ChunkId, PagePart>,
}

/// A layout of a time in which each page node had all pages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LayoutOfOneChunk {
    cluster: ClusterId,
    nodes: BTreeMap<NodeId, NodeWithoutZone>,
    log: BTreeMap<MemberId, LogEntry>,
    control: BTreeMap<MemberId, NodeId>,
    pages: BTreeSet<NodeId>,
}

impl From<NodeWithoutZone> for NodeEntry {
    fn from(old: NodeWithoutZone) -> NodeEntry {
        let NodeWithoutZone { number, name, address, client_address, roles } = old;
        let zone = DEFAULT_ZONE.to_owned();
        NodeEntry { number, name, address, client_address, roles, zone, is_standby: false }
    }
}

impl From<LayoutWithoutZones> for Layout {
    fn from(old: LayoutWithoutZones) -> Layout {
        let LayoutWithoutZones { cluster, nodes, log, control, extents, chunks } = old;
        let nodes = nodes.into_iter().map(|(number, node)| (number, node.into())).collect();
        Layout { cluster, nodes, log, control, extents, chunks, origin: None }
    }
}

impl From<LayoutOfOneChunk> for Layout {
    fn from(old: LayoutOfOneChunk) -> Layout {
        let LayoutOfOneChunk { cluster, nodes, log, control, pages } = old;
        let part = PagePart { first: PageNo(0), end: PageNo::NONE, nodes: pages };
        let chunks = BTreeMap::from([(ChunkId(1), part)]);
        LayoutWithoutZones { cluster, nodes, log, control, extents: ALL_TOGETHER, chunks }.into()
    }
}
