//! Layouts of releases in which each page node had all pages, as they stand in records.

use std::collections::{BTreeMap, BTreeSet};

use firn_base::PageNo;
use firn_base::network::{ClusterId, NodeId};
use firn_consensus::MemberId;
use firn_control::ChunkId;
use serde::{Deserialize, Serialize};

use super::{ALL_TOGETHER, Layout, LogEntry, NodeEntry, PagePart};

/// See [`Layout`] for the fields.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OldLayout {
    cluster: ClusterId,
    nodes: BTreeMap<NodeId, NodeEntry>,
    log: BTreeMap<MemberId, LogEntry>,
    control: BTreeMap<MemberId, NodeId>,
    pages: BTreeSet<NodeId>,
}

impl OldLayout {
    /// The layout, whose pages are one chunk.
    pub(crate) fn current(self) -> Layout {
        let OldLayout { cluster, nodes, log, control, pages } = self;
        let part = PagePart { first: PageNo(0), end: PageNo::NONE, nodes: pages };
        let chunks = BTreeMap::from([(ChunkId(1), part)]);
        Layout { cluster, nodes, log, control, extents: ALL_TOGETHER, chunks, origin: None }
    }
}
