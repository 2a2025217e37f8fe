//! Links to the other nodes, by number. They follow the layout: a node that moves gets another one.

use std::collections::BTreeMap;
use std::sync::Arc;

use firn_base::Environment;
use firn_base::network::{Address, NodeId};
use firn_link::{Caller, CallerSettings, LocalNode};
use parking_lot::Mutex;

use crate::layout::NodeEntry;

/// Links to some of the nodes. A node that stays has the same link each time.
pub(crate) type NodeLinks = Box<dyn Fn() -> Vec<Arc<Caller>> + Send + Sync>;

/// The links of one part of a process.
pub(crate) struct Links {
    environment: Environment,
    local: Arc<LocalNode>,
    callers: Mutex<BTreeMap<NodeId, (Address, Arc<Caller>)>>,
}

impl Links {
    pub(crate) fn new(environment: &Environment, local: &Arc<LocalNode>) -> Links {
        let (environment, local) = (environment.clone(), Arc::clone(local));
        Links { environment, local, callers: Mutex::default() }
    }

    /// The link to a node. Does not wait for the node.
    pub(crate) fn to(&self, node: &NodeEntry) -> Arc<Caller> {
        let mut callers = self.callers.lock();
        if let Some((address, caller)) = callers.get(&node.number)
            && *address == node.address
        {
            return Arc::clone(caller);
        }
        let address = node.address.clone();
        let settings = CallerSettings { wanted: Some(node.number), ..CallerSettings::new(address) };
        let caller = Arc::new(Caller::new(&self.environment, Arc::clone(&self.local), settings));
        callers.insert(node.number, (node.address.clone(), Arc::clone(&caller)));
        caller
    }

    /// Gives up the links to all nodes but these.
    pub(crate) fn keep(&self, is_kept: impl Fn(NodeId) -> bool) {
        self.callers.lock().retain(|node, _| is_kept(*node));
    }
}
