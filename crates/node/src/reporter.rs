//! What a node answers when SQL asks for its figures or for its status text.

use std::sync::{Arc, Weak};

use firn_api::report::{NodeReport, Reporter};

use crate::node::Node;
use crate::{engine_status, report};

/// Reports a node for as long as it is open: it does not keep the node from being closed.
pub(crate) struct NodeReporter {
    node: Weak<Node>,
}

impl NodeReporter {
    pub(crate) fn of(node: &Arc<Node>) -> NodeReporter {
        NodeReporter { node: Arc::downgrade(node) }
    }
}

impl Reporter for NodeReporter {
    fn report(&self) -> NodeReport {
        self.node.upgrade().map_or_else(NodeReport::default, |node| report::of(&node))
    }

    fn status_text(&self) -> String {
        self.node.upgrade().map_or_else(String::new, |node| engine_status::of(&node))
    }
}
