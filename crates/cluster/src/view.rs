//! The cluster as this process knows it now.

use std::collections::BTreeMap;
use std::sync::Arc;

use firn_api::report::ArchiveReport;
use firn_base::network::NodeId;
use firn_control::{Catalog, NodeState};
use parking_lot::RwLock;

use crate::choice::Choice;
use crate::layout::Layout;
use crate::message::ArchivingStatus;

/// The newest layout, and who archives. Parts of the process look at it now and then.
pub(crate) struct View {
    layout: RwLock<Arc<Layout>>,
    choice: RwLock<Option<Choice>>,
    /// The node that archives and its state, as far as this process has heard.
    archive: RwLock<Option<(NodeId, ArchivingStatus)>>,
    /// What control makes of each node, and since when this process has known it, in milliseconds
    /// since the Unix epoch.
    states: RwLock<BTreeMap<NodeId, (NodeState, u64)>>,
}

impl View {
    pub(crate) fn new(layout: Layout) -> View {
        View {
            layout: RwLock::new(Arc::new(layout)),
            choice: RwLock::new(None),
            archive: RwLock::new(None),
            states: RwLock::default(),
        }
    }

    pub(crate) fn layout(&self) -> Arc<Layout> {
        Arc::clone(&self.layout.read())
    }

    pub(crate) fn set(&self, layout: Layout) {
        *self.layout.write() = Arc::new(layout);
    }

    /// Notes what control makes of the nodes, at a time in milliseconds since the Unix epoch.
    pub(crate) fn note_states(&self, catalog: &Catalog, time_ms: u64) {
        let mut states = self.states.write();
        states.retain(|node, _| catalog.nodes().contains_key(node));
        for (number, node) in catalog.nodes() {
            let state = node.state();
            if states.get(number).is_none_or(|(before, _)| *before != state) {
                states.insert(*number, (state, time_ms));
            }
        }
    }

    /// Since when this process has known the state that a node has, in milliseconds since the Unix
    /// epoch. `None` while control has not said anything.
    pub(crate) fn state_since(&self, node: NodeId) -> Option<u64> {
        self.states.read().get(&node).map(|(_, since)| *since)
    }

    /// What the node that archives says of itself.
    pub(crate) fn heard_of_archive(&self, node: NodeId, status: ArchivingStatus) {
        *self.archive.write() = Some((node, status));
    }

    /// The state of the archive; `None` while nobody has said anything.
    pub(crate) fn archive_report(&self) -> Option<ArchiveReport> {
        let archive = self.archive.read();
        let (node, status) = archive.as_ref()?;
        let name = self.layout().node(*node).map(|node| node.name.clone());
        Some(ArchiveReport {
            node: name.unwrap_or_else(|| node.to_string()),
            archived: status.archived.unwrap_or_default(),
            progress: status.progress.clone(),
        })
    }

    /// Who archives; `None` while control has not said anything, or no node can.
    pub(crate) fn choice(&self) -> Option<Choice> {
        *self.choice.read()
    }

    pub(crate) fn set_choice(&self, choice: Option<Choice>) {
        *self.choice.write() = choice;
    }
}
