//! A node of the cluster: it does at once what it is told, and remembers the chunks that it has.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};

use firn_base::Lsn;
use firn_consensus::Term;
use firn_control::{
    Action, Catalog, ChunkId, ChunkReport, Epoch, Fence, GroupId, Heartbeat, NodeId, Order,
};
use firn_control_service::{ControlClient, ControlSeat, ControlledNode, SeatRecord, SeatState};
use parking_lot::Mutex;

use crate::checker::Facts;

/// What the node's disk has, over all its lives.
#[derive(Default)]
pub(crate) struct NodeDisk {
    pub(crate) chunks: Mutex<BTreeMap<ChunkId, Epoch>>,
    pub(crate) id: Mutex<Option<NodeId>>,
}

/// One life of a node.
pub(crate) struct TestNode {
    pub(crate) disk: Arc<NodeDisk>,
    pub(crate) facts: Arc<Facts>,
    pub(crate) client: OnceLock<Weak<ControlClient>>,
    fence: Mutex<Fence>,
    /// The entries of the newest catalog.
    newest: Mutex<u64>,
    pub(crate) refusals: Mutex<Vec<String>>,
}

impl TestNode {
    pub(crate) fn new(disk: &Arc<NodeDisk>, facts: &Arc<Facts>) -> Arc<TestNode> {
        let mut fence = Fence::default();
        disk.chunks.lock().iter().for_each(|(chunk, epoch)| fence.has_chunk(*chunk, *epoch));
        Arc::new(TestNode {
            disk: Arc::clone(disk),
            facts: Arc::clone(facts),
            client: OnceLock::new(),
            fence: Mutex::new(fence),
            newest: Mutex::new(0),
            refusals: Mutex::default(),
        })
    }

    fn admits(&self, term: Term, order: &Order) -> bool {
        self.fence.lock().admits(term, order)
    }

    fn carry_out(&self, action: &Action) {
        let mut chunks = self.disk.chunks.lock();
        match action {
            Action::CreateChunk { chunk, epoch, .. }
            | Action::CopyChunk { chunk, epoch, .. }
            | Action::ServeChunk { chunk, epoch } => drop(chunks.insert(*chunk, *epoch)),
            Action::RetireChunk { chunk, .. } => drop(chunks.remove(chunk)),
            _ => {}
        }
    }
}

impl ControlledNode for TestNode {
    fn joined(&self, node: NodeId) {
        let before = self.disk.id.lock().replace(node);
        assert!(before.is_none_or(|before| before == node), "it got another number");
    }

    fn report(&self) -> Heartbeat {
        let position = Lsn(8);
        let report = |epoch: &Epoch| ChunkReport { epoch: *epoch, position, bytes: 0, pages: 0 };
        let chunks = self.disk.chunks.lock();
        let chunks = chunks.iter().map(|(chunk, epoch)| (*chunk, report(epoch))).collect();
        Heartbeat { chunks, ..Heartbeat::default() }
    }

    fn catalog(&self, catalog: &Arc<Catalog>) {
        self.facts.see_catalog(catalog);
        let mut newest = self.newest.lock();
        assert!(catalog.entries() > *newest, "a catalog is not newer than the one before");
        *newest = catalog.entries();
    }

    fn order(&self, term: Term, order: Order) {
        if !self.admits(term, &order) {
            return;
        }
        self.carry_out(&order.action);
        if let Some(client) = self.client.get().and_then(Weak::upgrade) {
            client.acknowledge(order.number, Lsn(8));
        }
    }

    fn refused(&self, reason: &str) {
        self.refusals.lock().push(reason.to_owned());
    }
}

/// What a process has noted of its place in the control group, over all its lives.
#[derive(Default)]
pub(crate) struct SeatNotes(pub(crate) Mutex<SeatState>);

impl SeatRecord for SeatNotes {
    fn get(&self) -> SeatState {
        *self.0.lock()
    }

    fn set(&self, state: SeatState) -> Result<(), String> {
        *self.0.lock() = state;
        Ok(())
    }
}

/// A node that may have a control node.
pub(crate) struct SeatedNode {
    pub(crate) seat: Arc<ControlSeat>,
    pub(crate) rest: Arc<TestNode>,
}

impl ControlledNode for SeatedNode {
    fn joined(&self, node: NodeId) {
        self.rest.joined(node);
    }

    fn report(&self) -> Heartbeat {
        let mut report = self.rest.report();
        let status = self.seat.node().map(|node| node.status());
        if let Some(status) = status.filter(|status| status.leads) {
            report.leads.insert(GroupId::CONTROL, (status.term, status.member));
        }
        report
    }

    fn catalog(&self, catalog: &Arc<Catalog>) {
        self.rest.catalog(catalog);
        self.seat.follow(catalog);
    }

    fn order(&self, term: Term, order: Order) {
        match order.action.group() {
            Some(GroupId::CONTROL) if self.rest.admits(term, &order) => {
                self.seat.order(order.number, order.action);
            }
            Some(GroupId::CONTROL) => {}
            _ => self.rest.order(term, order),
        }
    }

    fn refused(&self, reason: &str) {
        self.rest.refused(reason);
    }
}
