//! The task that follows the catalog and takes orders.

use std::sync::Arc;

use firn_base::Lsn;
use firn_control::{Action, Catalog, ControlMessage, GroupId, NodeId, ToNode};

use super::Shared;
use crate::message::{Reply, Request, Watcher};
use crate::seat::control_addresses;

impl Shared {
    /// What the task `control-watch` does.
    pub(super) fn run_watch(&self) {
        while !self.is_stopped() {
            let ticket = self.changed.listen();
            let node = *self.registered.lock();
            match node {
                Some(node) => self.watch_once(node),
                None => drop(self.changed.wait(ticket, None)),
            }
        }
    }

    fn watch_once(&self, node: NodeId) {
        let entries = self.catalog.lock().as_ref().map_or(0, |catalog| catalog.entries());
        let watcher = Some(Watcher { node, incarnation: self.description.incarnation });
        let patience = self.options.watch.as_millis() as u32;
        let deadline = self.clock.monotonic() + self.options.watch + 2 * self.options.call_timeout;
        let request = Request::Watch { watcher, entries, patience };
        match self.leader.ask(&request, deadline, true) {
            Ok(Reply::News { catalog, messages }) => {
                if let Some(bytes) = catalog {
                    self.take_catalog(&bytes);
                }
                messages.into_iter().for_each(|message| self.take_order(message));
            }
            // The heartbeats find out what to do.
            Ok(_) => drop(self.changed.wait_until(Some(self.options.interval), || {
                self.is_stopped() || *self.registered.lock() != Some(node)
            })),
            Err(error) => tracing::debug!(?error, "the catalog is not followed"),
        }
    }

    fn take_catalog(&self, bytes: &[u8]) {
        let catalog = match Catalog::restore(bytes) {
            Ok(catalog) => Arc::new(catalog),
            Err(error) => return tracing::warn!(%error, "a catalog arrived that is not read"),
        };
        let mut newest = self.catalog.lock();
        if newest.as_ref().is_some_and(|known| known.entries() >= catalog.entries()) {
            return;
        }
        *newest = Some(Arc::clone(&catalog));
        drop(newest);
        self.leader.know(control_addresses(&catalog));
        self.node.catalog(&catalog);
    }

    fn take_order(&self, message: ToNode) {
        if !self.counts(message.term) {
            return;
        }
        let ControlMessage::Order(order) = message.body else { return };
        match order.action {
            // The control group was there before it was in the catalog.
            Action::FoundGroup { group: GroupId::CONTROL, .. } => {
                self.acknowledge(order.number, Lsn(0));
            }
            _ => self.node.order(message.term, order),
        }
    }
}
