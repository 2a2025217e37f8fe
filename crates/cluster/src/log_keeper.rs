//! Decides how much log a member keeps: what every page node has made pages of may go.
//!
//! The members of a zone that follows the others keep what its page nodes need, and the other
//! members do not: a zone that is cut off does not fill their disks.
//!
//! A page node holds log by a lease as well, but only at the member that it follows, and leases end
//! with a process. So each member asks all nodes that have the pages where their log begins. It
//! lets nothing go before each one has answered once. What an absent one needs stays, until control
//! has given its pages to another node.
//!
//! If the cluster is archived, log that the archive does not have stays too, up to a limit. The
//! node that archives tells how far it has come. Until that is known, all log up to the limit
//! stays.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use firn_api::LogStore;
use firn_base::network::NodeId;
use firn_base::{Environment, Lsn};
use firn_storage::group::GroupStore;
use parking_lot::Mutex;

use crate::archive_role::ArchiveRole;
use crate::layout::{Layout, NodeEntry};
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
    needed: Arc<Mutex<Option<Lsn>>>,
}

/// What the task works with.
pub(crate) struct Keeping {
    pub(crate) store: Arc<GroupStore>,
    pub(crate) own_number: NodeId,
    pub(crate) own: Option<Arc<PageRole>>,
    pub(crate) view: Arc<View>,
    pub(crate) links: Links,
    pub(crate) archive: Option<KeptForArchive>,
}

/// What is kept because the cluster is archived.
pub(crate) struct KeptForArchive {
    /// Log that is kept for the archive at most, in bytes.
    pub(crate) limit_bytes: u64,
    /// The archiver of this process, if it may have one.
    pub(crate) own: Option<Arc<ArchiveRole>>,
}

/// From where on others need the log.
#[derive(Default)]
struct Needed {
    /// What each page node needs.
    by_pages: BTreeMap<NodeId, Lsn>,
    by_archive: Option<Lsn>,
}

impl LogKeeper {
    pub(crate) fn start(environment: &Environment, keeping: Keeping) -> LogKeeper {
        let needed = Arc::<Mutex<Option<Lsn>>>::default();
        let own = Arc::clone(&needed);
        let body = move |stop: &Stop| keeping.run(&own, stop);
        LogKeeper { task: Task::start(environment, "log-keeper", body), needed }
    }

    /// Nobody needs log before this position. `None`: that is not known.
    pub(crate) fn needed_from(&self) -> Option<Lsn> {
        *self.needed.lock()
    }

    pub(crate) fn close(&self) {
        self.task.close();
    }
}

impl Keeping {
    fn run(&self, needed_from: &Mutex<Option<Lsn>>, stop: &Stop) {
        let mut needed = Needed::default();
        while !stop.pause(INTERVAL) {
            let layout = self.view.layout();
            self.ask(&layout, &mut needed);
            let by_pages = &needed.by_pages;
            let nodes = layout.page_nodes_behind(self.own_number);
            let nodes = nodes.map(|node| by_pages.get(&node.number).copied());
            let by_archive = self.archive.as_ref().map(|archive| {
                Some(archive.needs_from(needed.by_archive, self.store.durable_lsn()))
            });
            let lowest = lowest(nodes.chain(by_archive));
            *needed_from.lock() = lowest;
            if let Some(lowest) = lowest {
                self.store.let_go(lowest);
            }
        }
    }

    /// Notes from where on each node needs the log. What is known of one that does not answer
    /// stays.
    fn ask(&self, layout: &Layout, needed: &mut Needed) {
        let behind: Vec<&NodeEntry> = layout.page_nodes_behind(self.own_number).collect();
        let has_pages = |number: &NodeId| behind.iter().any(|node| node.number == *number);
        needed.by_pages.retain(|number, _| has_pages(number));
        self.links.keep(|number| has_pages(&number));
        for node in behind.iter().copied() {
            let (pages, archive) = match node.number == self.own_number {
                true => {
                    let archive = self.archive.as_ref().and_then(|archive| archive.own.as_ref());
                    let pages = self.own.as_ref().and_then(|own| own.kept_from());
                    (pages, archive.map(|archive| archive.status()))
                }
                false => {
                    let Ok(status) = status::ask(&self.links.to(node), TIMEOUT) else { continue };
                    let pages = status.pages.filter(|pages| pages.is_open);
                    (pages.map(|pages| pages.kept_from), status.archive)
                }
            };
            if let Some(from) = pages {
                needed.by_pages.insert(node.number, from);
            }
            // Of several that believe to archive, the one that has come further does.
            let archived = archive.as_ref().and_then(|archive| archive.archived);
            if let Some(archive) = archive.filter(|archive| archive.is_chosen) {
                self.view.heard_of_archive(node.number, archive);
            }
            needed.by_archive = needed.by_archive.max(archived);
        }
    }
}

impl KeptForArchive {
    /// From where on the log is kept, if it is durable up to `durable`.
    fn needs_from(&self, archived: Option<Lsn>, durable: Lsn) -> Lsn {
        let least = Lsn(durable.0.saturating_sub(self.limit_bytes));
        archived.map_or(least, |archived| archived.max(least))
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

    #[test]
    fn log_that_is_not_archived_stays_up_to_the_limit() {
        let kept = KeptForArchive { limit_bytes: 100, own: None };
        assert_eq!(kept.needs_from(None, Lsn(90)), Lsn(0), "nobody has said how far it is");
        assert_eq!(kept.needs_from(Some(Lsn(950)), Lsn(1000)), Lsn(950));
        assert_eq!(kept.needs_from(Some(Lsn(850)), Lsn(1000)), Lsn(900), "it is too far behind");
    }
}
