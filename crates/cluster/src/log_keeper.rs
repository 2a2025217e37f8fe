//! Decides how much log a member keeps: what every page node has made pages of may go.
//!
//! A page node holds log by a lease as well, but only at the member that it follows, and leases end
//! with a process. So each member asks all page nodes of the layout where their log begins. It lets
//! nothing go before each one has answered once, and what an absent one needs stays.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::event::Event;
use firn_base::task::TaskHandle;
use firn_base::{Environment, Lsn};
use firn_link::Caller;
use firn_storage::group::GroupStore;
use parking_lot::Mutex;

use crate::page_role::PageRole;
use crate::status;

/// How often page nodes are asked.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long a page node has to answer.
const TIMEOUT: Duration = Duration::from_millis(500);

/// The task that lets log go.
pub(crate) struct LogKeeper {
    shared: Arc<Shared>,
    task: Mutex<Option<Box<dyn TaskHandle>>>,
}

struct Shared {
    store: Arc<GroupStore>,
    own: Option<Arc<PageRole>>,
    others: Vec<Arc<Caller>>,
    is_stopping: AtomicBool,
    wake: Event,
}

impl LogKeeper {
    pub(crate) fn start(
        environment: &Environment,
        store: Arc<GroupStore>,
        own: Option<Arc<PageRole>>,
        others: Vec<Arc<Caller>>,
    ) -> LogKeeper {
        let is_stopping = AtomicBool::new(false);
        let shared = Arc::new(Shared { store, own, others, is_stopping, wake: Event::new() });
        let keeper = Arc::clone(&shared);
        let task = environment.spawner.spawn("log-keeper", Box::new(move || keeper.run()));
        LogKeeper { shared, task: Mutex::new(Some(task)) }
    }

    pub(crate) fn close(&self) {
        self.shared.is_stopping.store(true, Ordering::SeqCst);
        self.shared.wake.notify_all();
        let task = self.task.lock().take();
        if let Some(task) = task {
            task.join();
        }
    }
}

impl Shared {
    fn run(&self) {
        let mut needed = vec![None; self.others.len()];
        let is_stopping = || self.is_stopping.load(Ordering::SeqCst);
        while !self.wake.wait_until(Some(INTERVAL), is_stopping) {
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
