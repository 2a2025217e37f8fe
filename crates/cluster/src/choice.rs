//! Which process writes the cluster's archive: a pure decision that every process makes for itself,
//! from the catalog that control gives to all.
//!
//! It is a node with all pages that is not down. One that does not write the log is better, so that
//! commits do not share their disk and processor with the archiver, and one in a zone that follows
//! the others is worse: its log is older. Of equals, the one with the
//! lowest number archives.
//!
//! The choice has the number of entries in the catalog as its epoch. Two processes with different
//! catalogs may both believe that they are chosen. The archive then takes the one with the newer
//! catalog, and refuses the other one until its catalog is as new.

use firn_base::network::NodeId;
use firn_control::{Catalog, NodeRole, NodeState, ReplicaState};

use crate::layout::catalog::LOG_GROUP;

/// Who archives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) node: NodeId,
    /// Later choices have higher ones. Never 0.
    pub(crate) epoch: u64,
}

/// A take-over begins a new catalog. Its choices have higher epochs than those of the catalog
/// before, which has fewer entries than 2 to the power of this.
const GENERATION_BITS: u32 = 40;

/// The lowest epoch of choices in a cluster that has been taken over `generation` times.
pub(crate) fn first_epoch(generation: u64) -> u64 {
    generation << GENERATION_BITS
}

/// The process that archives, if there is one that can.
pub(crate) fn choose(catalog: &Catalog, generation: u64) -> Option<Choice> {
    let writer = catalog.groups().get(&LOG_GROUP).and_then(|group| group.writer_node());
    let with_pages =
        catalog.chunks().values().flat_map(|chunk| chunk.nodes_in(ReplicaState::InService));
    let is_there = |node: &NodeId| {
        let state = catalog.node_state(*node);
        matches!(state, Some(NodeState::Up | NodeState::Suspected | NodeState::Draining))
    };
    let is_standby = |node: &NodeId| catalog.nodes()[node].has(NodeRole::Standby);
    let rank = |node: &NodeId| (is_standby(node), Some(*node) == writer, *node);
    let node = with_pages.filter(is_there).min_by_key(rank)?;
    Some(Choice { node, epoch: first_epoch(generation) + catalog.entries() })
}

#[cfg(test)]
mod tests {
    use firn_consensus::{MemberId, Term};
    use firn_control::{Health, Proposal, Settings};

    use super::*;
    use crate::layout::Layout;

    const TEXT: &str = r#"cluster = "000102030405060708090a0b0c0d0e0f"
[[node]]
number = 1
name = "a"
address = "127.0.0.1:7401"
client_address = "127.0.0.1:3307"
roles = ["database", "log", "pages", "control"]
[[node]]
number = 2
name = "b"
address = "127.0.0.1:7402"
client_address = "127.0.0.1:3308"
roles = ["database", "log", "pages"]
[[node]]
number = 3
name = "c"
address = "127.0.0.1:7403"
roles = ["log"]
"#;

    fn catalog() -> Catalog {
        let layout = Layout::parse(TEXT).unwrap();
        let mut catalog = Catalog::new(layout.cluster, Settings::default()).unwrap();
        catalog.apply(&layout.founds()).unwrap();
        catalog
    }

    fn set(catalog: &mut Catalog, node: u64, health: Health) {
        let incarnation = catalog.nodes()[&NodeId(node)].incarnation;
        let proposal = Proposal::Health { node: NodeId(node), incarnation, health, flaps: 0 };
        catalog.apply(&proposal).unwrap();
    }

    fn led(catalog: &mut Catalog, member: u64, term: u64) {
        let (member, term) = (MemberId(member), Term(term));
        catalog.apply(&Proposal::Led { group: LOG_GROUP, term, member }).unwrap();
    }

    fn chosen(catalog: &Catalog) -> Option<u64> {
        choose(catalog, 0).map(|choice| choice.node.0)
    }

    #[test]
    fn a_node_with_pages_that_does_not_write_archives() {
        let mut catalog = catalog();
        assert_eq!(chosen(&catalog), None, "nobody was heard yet");
        for node in [1, 2, 3] {
            set(&mut catalog, node, Health::Up);
        }
        assert_eq!(chosen(&catalog), Some(1));
        led(&mut catalog, 1, 2);
        assert_eq!(chosen(&catalog), Some(2));
        led(&mut catalog, 2, 3);
        assert_eq!(chosen(&catalog), Some(1));
    }

    #[test]
    fn the_writer_archives_if_nobody_else_can() {
        let mut catalog = catalog();
        set(&mut catalog, 1, Health::Up);
        set(&mut catalog, 2, Health::Up);
        led(&mut catalog, 1, 2);
        let before = choose(&catalog, 0).unwrap();
        set(&mut catalog, 2, Health::Suspected);
        assert_eq!(chosen(&catalog), Some(2), "it may be back in a moment");
        set(&mut catalog, 2, Health::Down);
        let after = choose(&catalog, 0).unwrap();
        assert_eq!((before.node, after.node), (NodeId(2), NodeId(1)));
        assert!(after.epoch > before.epoch);
        let taken_over = choose(&catalog, 1).unwrap();
        assert!(taken_over.epoch > first_epoch(1) && after.epoch < first_epoch(1));
        set(&mut catalog, 1, Health::Down);
        assert_eq!(chosen(&catalog), None, "a logger has no pages");
    }
}
