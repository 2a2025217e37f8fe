//! The database node's end. See [`crate`] for the rules.
//!
//! Latch rules:
//! 1. Every mutex is a leaf: nothing is called, sent or waited for under it.
//! 2. A read runs on its caller's thread alone, and waits for all its nodes on one event.
//! 3. One task refreshes what is known of the nodes: applied positions, and leases (P5).

mod choice;
mod gathering;
mod leases;
mod node;
mod placement;
mod refresh;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use firn_api::{
    PageLease, PageRead, PageRequest, PageSink, PageStore, PageStoreError, PageVersion,
};
use firn_base::event::Event;
use firn_base::task::TaskHandle;
use firn_base::{Environment, Lsn, PageId, SpaceId};
use firn_format::page::PageBuf;
use firn_link::{Call, Payload};
use parking_lot::{Mutex, RwLock};

use self::gathering::Gathering;
use self::leases::LeaseBook;
use self::node::Node;
use self::placement::Map;
pub use self::placement::{
    MAX_COPIES, PageNodeLink, PlacedChunk, PlacedPart, Placement, PlacementError,
};
use crate::PAGE_SERVICE;

/// How a client of page nodes works.
#[derive(Debug, Clone)]
pub struct RemotePagesOptions {
    /// The longest that a read or a lease waits for any node to answer well.
    pub patience: Duration,
    /// Another node is asked after twice the time that nodes usually need, but not before this.
    pub least_hedge_delay: Duration,
    /// Nor after this, which also holds while no node has answered yet.
    pub most_hedge_delay: Duration,
    /// Pages of one request to a node; larger batches become several, which the node's workers read
    /// at the same time.
    pub ask_pages: usize,
    /// How often applied positions are asked for, and leases renewed.
    pub refresh: Duration,
    /// Leases end when a node hears nothing for this long. Several times `refresh`.
    pub lease_timeout: Duration,
    /// How long a new lease waits for all nodes to take it. After that, one of each chunk is
    /// enough.
    pub hold_grace: Duration,
}

impl Default for RemotePagesOptions {
    fn default() -> RemotePagesOptions {
        RemotePagesOptions {
            patience: Duration::from_secs(10),
            least_hedge_delay: Duration::from_millis(2),
            most_hedge_delay: Duration::from_millis(50),
            ask_pages: 32,
            refresh: Duration::from_millis(500),
            lease_timeout: Duration::from_secs(20),
            hold_grace: Duration::from_secs(1),
        }
    }
}

/// Counters since the client was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RemotePagesStatistics {
    /// Pages that were read.
    pub pages: u64,
    /// Requests to nodes; each has several pages.
    pub asks: u64,
    /// Pages that a further node was asked for because the ones before were slow.
    pub hedged: u64,
    /// Of these, pages that the further node gave first.
    pub hedges_won: u64,
    /// Answers that were not used: failures of nodes, and images that failed their check.
    pub failures: u64,
    /// Images that failed their check.
    pub damaged: u64,
}

/// The pages of the page nodes. Dropping it ends its task without waiting for it.
pub struct RemotePages {
    shared: Arc<Shared>,
    task: Mutex<Option<Box<dyn TaskHandle>>>,
}

struct Shared {
    environment: Environment,
    options: RemotePagesOptions,
    map: RwLock<Arc<Map>>,
    leases: Arc<LeaseBook>,
    counters: Counters,
    budget: HedgeBudget,
    /// Notified of a new placement, and at the end.
    changed: Event,
    is_closing: AtomicBool,
}

#[derive(Default)]
struct Counters {
    pages: AtomicU64,
    asks: AtomicU64,
    hedged: AtomicU64,
    hedges_won: AtomicU64,
    failures: AtomicU64,
    damaged: AtomicU64,
}

fn count(counter: &AtomicU64, more: usize) {
    counter.fetch_add(more as u64, Ordering::Relaxed);
}

/// Bounds hedging to a tenth of the pages: nodes may be slow because they have too much to do.
struct HedgeBudget(AtomicI64);

impl HedgeBudget {
    const COST: i64 = 10;
    const MOST: i64 = 256 * HedgeBudget::COST;

    fn new() -> HedgeBudget {
        HedgeBudget(AtomicI64::new(HedgeBudget::MOST))
    }

    fn earn(&self, pages: usize) {
        let add = |budget: i64| Some((budget + pages as i64).min(HedgeBudget::MOST));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    fn try_spend(&self) -> bool {
        let spend = |budget: i64| (budget >= HedgeBudget::COST).then(|| budget - HedgeBudget::COST);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).is_ok()
    }

    /// Gives back what requests cost that were not sent.
    fn give_back(&self, pages: usize) {
        self.0.fetch_add(pages as i64 * HedgeBudget::COST, Ordering::Relaxed);
    }
}

impl RemotePages {
    /// A client of the placement's nodes. Does not wait for them.
    #[must_use]
    pub fn open(
        environment: &Environment,
        placement: Placement,
        options: RemotePagesOptions,
    ) -> Arc<RemotePages> {
        let holder = environment.random.next_u64();
        let shared = Arc::new(Shared {
            environment: environment.clone(),
            options,
            map: RwLock::new(Arc::new(Map::new(placement, None))),
            leases: Arc::new(LeaseBook::new(holder)),
            counters: Counters::default(),
            budget: HedgeBudget::new(),
            changed: Event::new(),
            is_closing: AtomicBool::new(false),
        });
        let of_task = Arc::clone(&shared);
        let body = Box::new(move || of_task.refresh_until_closed());
        let task = environment.spawner.spawn("page-refresh", body);
        Arc::new(RemotePages { shared, task: Mutex::new(Some(task)) })
    }

    /// Replaces the placement. Reads under way go on with the nodes that they have asked, and see
    /// the new ones when they ask again. A node that joins a chunk has at least what the chunk's
    /// nodes had durable together: it was copied from one of them.
    pub fn set_placement(&self, placement: Placement) {
        let shared = &self.shared;
        {
            let mut map = shared.map.write();
            *map = Arc::new(Map::new(placement, Some(&map)));
        }
        shared.changed.notify_all();
    }

    #[must_use]
    pub fn statistics(&self) -> RemotePagesStatistics {
        let counters = &self.shared.counters;
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RemotePagesStatistics {
            pages: value(&counters.pages),
            asks: value(&counters.asks),
            hedged: value(&counters.hedged),
            hedges_won: value(&counters.hedges_won),
            failures: value(&counters.failures),
            damaged: value(&counters.damaged),
        }
    }

    /// Ends the client: reads fail, leases end by their time-out. Waits for its task.
    pub fn close(&self) {
        self.shared.close();
        let task = self.task.lock().take();
        if let Some(task) = task {
            task.join();
        }
    }
}

impl Drop for RemotePages {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl Shared {
    fn now(&self) -> Duration {
        self.environment.clock.monotonic()
    }

    fn map(&self) -> Arc<Map> {
        Arc::clone(&self.map.read())
    }

    fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst)
    }

    fn close(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
        self.changed.notify_all();
    }

    /// Sends a call to a node, if it is connected.
    fn begin(&self, node: &Node, payload: Payload) -> Option<Call> {
        let timeout = self.options.refresh;
        // Not connected is as good as no answer; the next round asks again.
        node.caller.peer()?;
        node.caller.begin(PAGE_SERVICE, payload, timeout).ok()
    }
}

/// Nodes in an error.
fn names(nodes: &[Arc<Node>]) -> String {
    let names: Vec<String> = nodes.iter().map(|node| node.name()).collect();
    names.join(", ")
}

/// A batch of one page.
struct One<'a> {
    into: &'a mut PageBuf,
    reply: Option<Result<PageVersion, PageStoreError>>,
}

impl PageSink for One<'_> {
    fn page_mut(&mut self, _: usize) -> &mut PageBuf {
        self.into
    }

    fn complete(&mut self, _: usize, reply: Result<PageVersion, PageStoreError>) {
        self.reply = Some(reply);
    }
}

impl PageStore for RemotePages {
    fn read(
        &self,
        page: PageId,
        version: PageRead,
        into: &mut PageBuf,
    ) -> Result<PageVersion, PageStoreError> {
        let mut one = One { into, reply: None };
        self.read_many(&[PageRequest { page, version }], &mut one);
        one.reply.expect("every request of a batch is completed")
    }

    fn read_many(&self, requests: &[PageRequest], sink: &mut dyn PageSink) {
        Gathering::new(&self.shared, requests, sink).run();
    }

    fn hold(&self, reader: &str, position: Lsn) -> Result<Arc<dyn PageLease>, PageStoreError> {
        self.shared.hold(reader, position)
    }

    /// The position that every node of the chunk has reached, as far as they have said so (P6).
    fn applied_lsn(&self, page: PageId) -> Lsn {
        self.shared.map().chunk(page).map_or(Lsn(0), |chunk| chunk.covered())
    }

    /// Those of all nodes that answer. Blocks for their answers.
    fn spaces(&self) -> Vec<SpaceId> {
        self.shared.spaces()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_page_of_ten_may_be_hedged() {
        let budget = HedgeBudget::new();
        let spent = (0..10_000).filter(|_| budget.try_spend()).count();
        assert_eq!(spent, 256, "at first, a few at once");
        budget.earn(1000);
        let spent = (0..10_000).filter(|_| budget.try_spend()).count();
        assert_eq!(spent, 100);
        budget.give_back(3);
        assert!(budget.try_spend() && budget.try_spend() && budget.try_spend());
        assert!(!budget.try_spend());
    }
}
