//! Decides how much log a member keeps: what every page node has made pages of may go.
//!
//! A page node holds log by a lease as well, but only at the member that it follows, and leases end
//! with a process. So each member asks all nodes that have the pages where their log begins. It
//! lets nothing go before each one has answered once. What an absent one needs stays, until control
//! has given its pages to another node.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use firn_base::network::NodeId;
use firn_base::{Environment, Lsn};
use firn_storage::group::GroupStore;

use crate::layout::Layout;
use crate::links::Links;
use crate::page_role::PageRole;
use crate::status;
use crate::task::{Stop, Task};
use crate::view::View;

/// How often page nodes are asked.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long a page node has to answer.
const TIMEOUT: Duration = Duration::from_millis(500);

/// The task that lets log go.
pub(crate) struct LogKeeper {
    task: Task,
}

/// What the task works with.
pub(crate) struct Keeping {
    pub(crate) store: Arc<GroupStore>,
    pub(crate) own_number: NodeId,
    pub(crate) own: Option<Arc<PageRole>>,
    pub(crate) view: Arc<View>,
    pub(crate) links: Links,
}

impl LogKeeper {
    pub(crate) fn start(environment: &Environment, keeping: Keeping) -> LogKeeper {
        let body = move |stop: &Stop| keeping.run(stop);
        LogKeeper { task: Task::start(environment, "log-keeper", body) }
    }

    pub(crate) fn close(&self) {
        self.task.close();
    }
}

impl Keeping {
    fn run(&self, stop: &Stop) {
        let mut needed = BTreeMap::new();
        while !stop.pause(INTERVAL) {
            let layout = self.view.layout();
            self.ask(&layout, &mut needed);
            let nodes = layout.page_nodes().map(|node| needed.get(&node.number).copied());
            if let Some(lowest) = lowest(nodes) {
                self.store.let_go(lowest);
            }
        }
    }

    /// Notes from where on each node needs the log. What is known of one that does not answer
    /// stays.
    fn ask(&self, layout: &Layout, needed: &mut BTreeMap<NodeId, Lsn>) {
        let has_pages = |number: &NodeId| layout.page_nodes().any(|node| node.number == *number);
        needed.retain(|number, _| has_pages(number));
        self.links.keep(|number| has_pages(&number));
        for node in layout.page_nodes() {
            let from = match node.number == self.own_number {
                true => self.own.as_ref().and_then(|own| own.kept_from()),
                false => {
                    let answer = status::ask(&self.links.to(node), TIMEOUT).ok();
                    let pages = answer.and_then(|status| status.pages);
                    pages.filter(|pages| pages.is_open).map(|pages| pages.kept_from)
                }
            };
            if let Some(from) = from {
                needed.insert(node.number, from);
            }
        }
    }
}

/// The lowest of positions that are all known; `None` if there are none, or one is not known.
fn lowest(positions: impl Iterator<Item = Option<Lsn>>) -> Option<Lsn> {
    positions.collect::<Option<Vec<Lsn>>>()?.into_iter().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_goes_while_a_position_is_not_known() {
        assert_eq!(lowest([Some(Lsn(9)), Some(Lsn(8))].into_iter()), Some(Lsn(8)));
        assert_eq!(lowest([Some(Lsn(9)), None].into_iter()), None);
        assert_eq!(lowest([].into_iter()), None);
    }
}
