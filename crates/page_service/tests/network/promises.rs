//! The suite for page stores over the service: two page nodes of each chunk, a network that loses
//! and delays, nodes that die and come back, links that are cut.

use std::sync::Arc;

use firn_api::PageStore;
use firn_api::page_store::conformance::{Subject, check};
use firn_api::page_store::page_service::{Fault, SimulatedOptions, SimulatedPages};
use firn_base::network::NodeId;
use firn_base::random::{RandomSource, SplitMix};
use firn_base::{Lsn, PageId, PageNo, SpaceId};
use firn_page_service::{PlacedChunk, Placement, RemotePages, RemotePagesOptions};
use firn_testing::simulation::{LinkFaults, Process, Simulation, World, for_each_seed};
use parking_lot::Mutex;

use crate::support::{self, Log, MS, Serving, client_options, links};

/// Pages of a chunk: the suite's spaces have two chunks.
const CHUNK_PAGES: u32 = 32;
/// More spaces than the suite makes.
const SPACES: u32 = 40;

/// Two page nodes with the same pages.
struct Nodes<'w> {
    world: &'w World,
    log: Arc<Mutex<Log>>,
    stores: Vec<Arc<SimulatedPages>>,
    /// The second one may be down for a while.
    serving: Vec<Option<Serving>>,
    process: Process,
    pages: Arc<RemotePages>,
    random: SplitMix,
    options: RemotePagesOptions,
    has_chaos: bool,
}

/// Each chunk at both nodes.
fn placement(world: &World, process: &Process) -> Placement {
    let chunk = |space: u32, half: u32| {
        let first = PageId::new(SpaceId(space), PageNo(half * CHUNK_PAGES));
        let last = PageId::new(SpaceId(space), PageNo((half + 1) * CHUNK_PAGES - 1));
        PlacedChunk { pages: first..=last, nodes: vec![NodeId(1), NodeId(2)] }
    };
    let chunks = (1..SPACES).flat_map(|space| [chunk(space, 0), chunk(space, 1)]).collect();
    Placement::new(links(world, process, &[1, 2]), chunks).unwrap()
}

impl<'w> Nodes<'w> {
    fn new(world: &'w World, options: &SimulatedOptions, has_chaos: bool) -> Nodes<'w> {
        let log = Arc::new(Mutex::new(Log::default()));
        let store = |number: u64| {
            let of_store = Arc::clone(&log);
            let read = Box::new(move |from| of_store.lock().read(from));
            let options = SimulatedOptions { seed: options.seed * 2 + number, ..options.clone() };
            SimulatedPages::new(options, read)
        };
        let stores: Vec<Arc<SimulatedPages>> = vec![store(1), store(2)];
        let serving = (1..).zip(&stores);
        let serving = serving
            .map(|(number, store)| Some(support::serve(world, number, Arc::clone(store) as _)));
        let serving = serving.collect();
        let process = world.start("database", &world.new_disk());
        let client_options = client_options();
        let pages = RemotePages::open(
            &process.environment(),
            placement(world, &process),
            client_options.clone(),
        );
        Nodes {
            world,
            log,
            stores,
            serving,
            process,
            pages,
            random: SplitMix::new(options.seed),
            options: client_options,
            has_chaos,
        }
    }

    fn below(&self, limit: u64) -> u64 {
        self.random.next_u64() % limit
    }

    fn start(&mut self, index: usize) {
        if self.serving[index].is_none() {
            let store = Arc::clone(&self.stores[index]) as _;
            self.serving[index] = Some(support::serve(self.world, index as u64 + 1, store));
        }
    }

    fn kill(&mut self, index: usize) {
        if let Some(serving) = self.serving[index].take() {
            serving.process.kill();
            self.stores[index].restart();
        }
    }

    /// The first node keeps what is held; it may be slow or cut off for a while. The second one
    /// dies and comes back.
    fn make_trouble(&mut self) {
        let network = self.world.network();
        match self.below(6) {
            0 => self.kill(1),
            1 | 2 => self.start(1),
            3 if self.serving[1].is_some() => {
                network.cut("database", &support::host(1 + self.below(2)));
                let healer = self.world.network();
                let heals_after = MS * self.below(300) as u32;
                drop(self.process.spawn("healer", move |_| {
                    firn_base::task::sleep(heals_after);
                    healer.heal();
                }));
            }
            4 => {
                let slow =
                    LinkFaults { delay: 5 * MS..=40 * MS, loss: 0.05, ..LinkFaults::default() };
                network.set_link(&support::host(1 + self.below(2)), "database", slow);
            }
            _ => {
                network.set_faults(LinkFaults { loss: 0.02, ..LinkFaults::default() });
            }
        }
    }
}

impl Subject for Nodes<'_> {
    fn store(&self) -> Arc<dyn PageStore> {
        Arc::clone(&self.pages) as _
    }

    fn append(&mut self, group: &[u8]) -> Lsn {
        self.log.lock().append(group)
    }

    fn work(&mut self) {
        self.stores.iter().for_each(|store| store.work());
        if self.has_chaos {
            self.make_trouble();
        }
        if self.below(2) == 0 {
            // The positions of the nodes become known.
            self.world.sleep(2 * self.options.refresh);
        }
    }

    fn truncate_log(&mut self, position: Lsn) {
        self.log.lock().truncate(position);
    }

    fn restart(&mut self) {
        (0..2).for_each(|index| self.kill(index));
        // Both have lost the versions before the same position, so that what only the second one is
        // able to hold does not exist.
        for store in &self.stores {
            store.work();
            store.restart();
        }
        if self.below(2) == 0 {
            self.pages.close();
            let placement = placement(self.world, &self.process);
            let environment = self.process.environment();
            self.pages = RemotePages::open(&environment, placement, self.options.clone());
        }
        (0..2).for_each(|index| self.start(index));
    }
}

fn options(seed: u64) -> SimulatedOptions {
    SimulatedOptions {
        chunk_pages: CHUNK_PAGES,
        max_delay: MS * [0, 3][seed as usize % 2],
        unavailable_percent: [0, 20][seed as usize / 2 % 2],
        history_bytes: [0, 5000][seed as usize / 4 % 2],
        ..SimulatedOptions::new(seed)
    }
}

#[test]
fn page_nodes_at_the_other_end_of_links_keep_the_promises() {
    for_each_seed(0..8, |world| {
        let seed = world.seed();
        check(&mut Nodes::new(world, &options(seed), false), seed, 300);
    });
}

#[test]
fn they_keep_them_while_one_dies_and_the_other_is_slow() {
    for_each_seed(0..24, |world| {
        let seed = world.seed();
        // The first node has all history, so that it is always able to hold what is asked for.
        let options = SimulatedOptions { history_bytes: 1 << 30, ..options(seed) };
        let mut nodes = Nodes::new(world, &options, true);
        check(&mut nodes, seed, 300);
        let statistics = nodes.pages.statistics();
        assert_eq!(statistics.damaged, 0, "{statistics:?}");
    });
}

/// How many of 4 seeds reveal a promise that the page nodes break.
fn noticed(fault: Fault) -> usize {
    let shows = |seed: &u64| {
        let options = SimulatedOptions { fault: Some(fault), ..options(*seed * 8) };
        let seed = *seed;
        let run = Simulation::new(seed).try_run(move |world| {
            check(&mut Nodes::new(world, &options, false), seed, 500);
        });
        run.is_err()
    };
    (0..4).filter(shows).count()
}

#[test]
fn promises_that_page_nodes_break_are_noticed() {
    let faults = [
        Fault::ReadBelowAtLeast,
        Fault::ReplyTooNew,
        Fault::LeaseIgnored,
        Fault::CoveredTooEarly,
        Fault::AsOfNewest,
    ];
    for fault in faults {
        assert!(noticed(fault) >= 3, "{fault:?}");
    }
}
