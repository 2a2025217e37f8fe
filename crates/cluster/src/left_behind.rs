//! Whether the cluster has gone on without this node: a zone has taken over ([`crate::take_over`])
//! while the node was down or cut off.
//!
//! Such a node would go on as the cluster was before, with others like it. So it asks the members
//! of the log group for their generation, before it opens anything and then again and again, and
//! ends when one has a later one. While the zones cannot reach each other nobody can know: that is
//! why a person decides to take over.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_base::Environment;
use firn_base::network::NodeId;
use firn_link::LocalNode;

use crate::layout::NodeEntry;
use crate::links::Links;
use crate::status;
use crate::task::{Stop, Task};
use crate::view::View;

/// How often members are asked.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long one has to answer.
const TIMEOUT: Duration = Duration::from_millis(500);

/// See the module's page.
pub(crate) struct LeftBehind {
    own: NodeId,
    generation: u64,
    view: Arc<View>,
    links: Links,
    /// The latest generation that a node has told.
    heard: AtomicU64,
}

impl LeftBehind {
    pub(crate) fn new(
        environment: &Environment,
        local: &Arc<LocalNode>,
        (own, generation): (NodeId, u64),
        view: &Arc<View>,
    ) -> LeftBehind {
        let (view, links) = (Arc::clone(view), Links::new(environment, local));
        LeftBehind { own, generation, view, links, heard: AtomicU64::new(generation) }
    }

    /// Asks the members in other zones once. Blocks for their answers.
    pub(crate) fn look(&self) {
        let layout = self.view.layout();
        self.ask(|node| layout.are_apart(self.own, node.number));
    }

    fn ask(&self, is_asked: impl Fn(&NodeEntry) -> bool) {
        let layout = self.view.layout();
        self.links.keep(|node| layout.node(node).is_some());
        let members = layout.log_members().map(|(_, node)| node);
        for node in members.filter(|node| node.number != self.own && is_asked(node)) {
            if let Ok(told) = status::ask(&self.links.to(node), TIMEOUT) {
                self.heard.fetch_max(told.generation, Ordering::Relaxed);
            }
        }
    }

    /// The generation of this process's cluster.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The generation of the cluster that has gone on, if it has.
    pub(crate) fn heard(&self) -> Option<u64> {
        Some(self.heard.load(Ordering::Relaxed)).filter(|heard| *heard > self.generation)
    }

    /// Asks again and again, in a cluster of several zones.
    pub(crate) fn watch(self: &Arc<LeftBehind>, environment: &Environment) -> Task {
        let own = Arc::clone(self);
        let body = move |stop: &Stop| {
            while !stop.pause(INTERVAL) {
                if own.view.layout().has_zones() {
                    own.ask(|_| true);
                }
            }
        };
        Task::start(environment, "left-behind", body)
    }
}
