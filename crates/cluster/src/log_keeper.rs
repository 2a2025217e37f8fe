//! Decides how much log a member keeps: what every page node has made pages of may go.
//!
//! A page node holds log by a lease as well, but only at the member that it follows, and leases end
//! with a process. So each member asks all page nodes of the layout where their log begins. It lets
//! nothing go before each one has answered once, and what an absent one needs stays.

use std::sync::Arc;
use std::time::Duration;

use firn_base::{Environment, Lsn};
use firn_link::Caller;
use firn_storage::group::GroupStore;

use crate::page_role::PageRole;
use crate::status;
use crate::task::{Stop, Task};

/// How often page nodes are asked.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long a page node has to answer.
const TIMEOUT: Duration = Duration::from_millis(500);

/// The task that lets log go.
pub(crate) struct LogKeeper {
    task: Task,
}

struct Keeping {
    store: Arc<GroupStore>,
    own: Option<Arc<PageRole>>,
    others: Vec<Arc<Caller>>,
}

impl LogKeeper {
    pub(crate) fn start(
        environment: &Environment,
        store: Arc<GroupStore>,
        own: Option<Arc<PageRole>>,
        others: Vec<Arc<Caller>>,
    ) -> LogKeeper {
        let keeping = Keeping { store, own, others };
        let body = move |stop: &Stop| keeping.run(stop);
        LogKeeper { task: Task::start(environment, "log-keeper", body) }
    }

    pub(crate) fn close(&self) {
        self.task.close();
    }
}

impl Keeping {
    fn run(&self, stop: &Stop) {
        let mut needed = vec![None; self.others.len()];
        while !stop.pause(INTERVAL) {
            for (other, needed) in self.others.iter().zip(&mut needed) {
                let answer = status::ask(other, TIMEOUT).ok().and_then(|status| status.pages);
                let open = answer.filter(|pages| pages.is_open);
                *needed = open.map(|pages| pages.kept_from).or(*needed);
            }
            let kept_from = |node: &PageRole| Some(node.node()?.status().log.kept_from);
            let own = self.own.as_ref().map(|own| kept_from(own));
            let all = needed.iter().copied().chain(own);
            if let Some(Some(lowest)) = lowest(all) {
                self.store.let_go(lowest);
            }
        }
    }
}

/// The lowest of positions that are all known; `None` if there are none.
fn lowest(mut positions: impl Iterator<Item = Option<Lsn>>) -> Option<Option<Lsn>> {
    let first = positions.next()?;
    Some(positions.fold(first, |lowest, next| Some(lowest?.min(next?))))
}
