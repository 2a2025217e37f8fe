//! A person orders a zone to take over.

use super::{TakeOver, TakeOverError, layout_of, order};
use crate::survey::Surveyor;

impl Surveyor {
    /// Takes the cluster as a node of the zone knows it, of those that answer: nodes may have come
    /// and gone since the layout was written. Blocks for the answers.
    pub fn learn_from(&self, zone: &str) {
        let known = self.known();
        let mut nodes = known.nodes().filter(|node| node.zone == zone);
        if let Some(layout) = nodes.find_map(|node| layout_of(&self.link_to(node)).ok()) {
            self.set_known(layout);
        }
    }

    /// Tells the nodes of a zone to go on without the others. After that they start again, and this
    /// surveyor's cluster is no more: see [`Surveyor::of_taken`]. Blocks for their answers.
    ///
    /// # Errors
    /// The first node that was not told, and why. Nodes before it were told: tell them again, with
    /// a new plan.
    pub fn take_over(&self, plan: &TakeOver) -> Result<(), (String, TakeOverError)> {
        // The one that leads last: without it nothing goes on.
        let (leader, others): (Vec<_>, Vec<_>) =
            plan.layout().nodes().partition(|node| node.number == plan.order.leader);
        for node in others.into_iter().chain(leader) {
            let told = order(&self.link_to(node), &plan.order);
            told.map_err(|error| (node.name.clone(), error))?;
        }
        Ok(())
    }

    /// Asks the cluster that a zone makes by taking over.
    #[must_use]
    pub fn of_taken(&self, plan: &TakeOver) -> Surveyor {
        self.of_cluster(plan.layout().clone())
    }
}
