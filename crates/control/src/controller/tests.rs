//! What a leader makes of reports, and whom it does not listen to.

use super::*;
use crate::catalog::tests::{health, settled};
use crate::identifiers::{ChunkId, Epoch};
use crate::message::{ChunkReport, Heartbeat};
use crate::order::Action;

fn leader(catalog: Catalog) -> Controller {
    let mut controller = Controller::new(catalog);
    controller.lead(Term(5));
    controller
}

/// A heartbeat of node 4, which has chunk 1 and should not.
fn stray() -> ToControl {
    let position = firn_base::Lsn(8);
    let report = ChunkReport { epoch: Epoch(1), position, bytes: 0, pages: 0 };
    let chunks = [(ChunkId(1), report)].into();
    let body = NodeMessage::Heartbeat(Heartbeat { chunks, ..Heartbeat::default() });
    ToControl { cluster: ClusterId(7), node: NodeId(4), incarnation: 0, body }
}

fn deletes(controller: &mut Controller) -> bool {
    controller.take_commands().iter().any(|command| match command {
        Command::Send(_, message) => match &message.body {
            ControlMessage::Order(order) => matches!(order.action, Action::RetireChunk { .. }),
            ControlMessage::Heard { .. } => false,
        },
        Command::Propose(_) => false,
    })
}

#[test]
fn a_stray_replica_is_deleted_unless_it_may_be_the_last() {
    let mut controller = leader(settled());
    controller.receive(&stray()).unwrap();
    assert!(deletes(&mut controller));
    for node in [1, 2, 3] {
        controller.apply(&health(node, Health::Down)).unwrap();
    }
    controller.receive(&stray()).unwrap();
    assert!(!deletes(&mut controller));
}

#[test]
fn strangers_are_told_why_they_are_not_heard() {
    let mut controller = leader(settled());
    let mut receive = |message: ToControl| controller.receive(&message).unwrap_err().to_string();
    let other = receive(ToControl { cluster: ClusterId(8), ..stray() });
    assert!(other.contains("0007") && other.contains("0008"), "both are named: {other}");
    let unknown = receive(ToControl { node: NodeId(99), ..stray() });
    assert_eq!(unknown, ReceiveError::Unknown(NodeId(99)).to_string());
    let old = receive(ToControl { incarnation: 9, ..stray() });
    assert_eq!(old, ReceiveError::OtherStart(9).to_string());
    controller.follow();
    assert_eq!(controller.receive(&stray()), Err(ReceiveError::NotLeader));
}
