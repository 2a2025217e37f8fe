//! The page nodes of a cluster under the simulator: whole processes, as `firn cluster start` runs
//! them, under the orders of a control node that is another one. They copy chunks, cut them in two
//! and delete them, while they follow a log that is elsewhere, and die and come back at any time.
//!
//! ```text
//!   log-1, 2, 3     members of the log group: part of the test, with engines
//!   pages-4 … 7     page nodes, two of which have each chunk      ◄── orders, catalog ──┐
//!   control-8       the control node ───────────────────────────────────────────────────┘
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_api::{PageRead, PageRequest, PageSink, PageStore, PageStoreError, PageVersion};
use firn_base::network::{ClusterId, NodeId, Role, Roles};
use firn_base::task::sleep;
use firn_base::{Environment, Extents, Lsn, PageId, PageNo, SpaceId};
use firn_cluster::simulation::FollowedPages;
use firn_cluster::{
    DEFAULT_ZONE, Layout, NodeEntry, PageDivision, PagesStatus, ProcessOptions, RunningProcess,
    Surveyor,
};
use firn_control::{Catalog, ChunkId, Proposal, Reason, ReplicaState, plan};
use firn_format::page::PageBuf;
use firn_node::endpoint::EndpointOptions;
use firn_node::node::NodeOptions;
use firn_page_service::{RemotePages, RemotePagesOptions};
use firn_testing::random::Random;
use firn_testing::simulation::{Faults, FileFilter, Process, SimulatedDisk, World};
use parking_lot::Mutex;

use crate::members::{self, OpenPages};
use crate::page_machines::{self, MOST_PAGES, MS, PageLinks, page_store_options};

/// The members of the log group.
const LOG_NODES: [u64; 3] = [1, 2, 3];
/// The page nodes.
pub(crate) const PAGE_NODES: [u64; 4] = [4, 5, 6, 7];
const CONTROL_NODE: u64 = 8;
const CONTROL_PORT: u16 = 7_200;
/// On how many nodes each chunk is.
const COPIES: usize = 2;
/// Pages that are read at once when nodes are compared.
const BATCH: u32 = 64;

/// The host of a node of the cluster.
pub(crate) fn host(number: u64) -> String {
    match number {
        CONTROL_NODE => format!("control-{number}"),
        number if LOG_NODES.contains(&number) => members::host(number),
        number => page_machines::host(number),
    }
}

/// A node: its disk, and its process while it runs.
struct Machine {
    number: u64,
    disk: SimulatedDisk,
    /// The longest time of a call of its disk.
    latency: Duration,
    process: Option<Process>,
    /// Why its process ended or did not start, last.
    failure: Arc<Mutex<Option<String>>>,
}

impl Machine {
    fn usual_faults(&self) -> Faults {
        Faults { max_latency: self.latency, ..Faults::default() }
    }

    /// The disk often does not take what the node notes of itself.
    fn record_faults(&self) -> Faults {
        let is_record = |path: &Path| path.to_string_lossy().contains("node.record");
        let files = Some(Arc::new(is_record) as FileFilter);
        Faults { write_failure: 0.5, files, ..self.usual_faults() }
    }
}

/// See the module's page.
pub(crate) struct ChunkMachines {
    world: World,
    random: Random,
    layout: Layout,
    /// The page nodes, in the order of their numbers, and the control node.
    machines: Vec<Machine>,
    administrator: Process,
    /// What was asked of control and has no answer yet.
    asking: Arc<AtomicU64>,
}

fn layout(world: &World, division: PageDivision) -> Layout {
    let network = world.network();
    let node = |number: u64, port: u16, roles: &[Role]| {
        let is_database = roles.contains(&Role::Database);
        NodeEntry {
            number: NodeId(number),
            name: host(number),
            address: network.address(&host(number), port),
            client_address: is_database.then(|| network.address(&host(number), 3306)),
            roles: Roles::of(roles),
            zone: DEFAULT_ZONE.to_owned(),
            is_standby: false,
        }
    };
    let log = LOG_NODES.map(|number| node(number, members::PORT, &[Role::Database, Role::Log]));
    let pages = PAGE_NODES.map(|number| node(number, page_machines::PORT, &[Role::Pages]));
    let control = node(CONTROL_NODE, CONTROL_PORT, &[Role::Control]);
    let nodes = log.into_iter().chain(pages).chain([control]);
    Layout::new(ClusterId(1), nodes, division).expect("a possible cluster")
}

fn process_options(random: &Random) -> ProcessOptions {
    let mut node = NodeOptions::default();
    node.storage.pages = page_store_options(random);
    ProcessOptions {
        directory: PathBuf::from("/node"),
        node,
        replica_snapshot_limit: None,
        writer_wait: Duration::from_secs(1),
        archive: None,
        open_archive: Arc::new(|_| unreachable!("the cluster begins empty")),
        endpoint: EndpointOptions::default(),
        listen: None,
        patience: Duration::from_secs(1),
        pause_after: None,
        on_state: Arc::new(|_| {}),
    }
}

/// The body of a machine: runs its process, and starts it again when it has ended, until the
/// machine dies.
fn run(
    environment: &Environment,
    (layout, number): (&Layout, u64),
    options: &ProcessOptions,
    failure: &Mutex<Option<String>>,
) {
    loop {
        match RunningProcess::start(environment, Some((layout, NodeId(number))), options) {
            Ok(running) => {
                let why = loop {
                    match running.failure() {
                        Some(why) => break why,
                        None => sleep(20 * MS),
                    }
                };
                *failure.lock() = Some(why.to_string());
                running.close();
            }
            // Its disk is full, for instance.
            Err(error) => *failure.lock() = Some(error.to_string()),
        }
        sleep(50 * MS);
    }
}

impl ChunkMachines {
    /// Founds the cluster.
    pub(crate) fn start(world: &World, random: Random) -> ChunkMachines {
        let (chunks, extents) = *random.pick(&[
            (1, Extents::DEFAULT),
            (1, Extents { pages: 4 }),
            (2, Extents { pages: 1 }),
            (3, Extents { pages: 8 }),
        ]);
        let division = PageDivision { chunks, copies: Some(COPIES as u32), extents };
        let machine = |number: u64| {
            let (disk, failure) = (world.new_disk(), Arc::default());
            // Copies over slow disks take long enough for much log.
            let latency = *random.pick(&[0, 1, 5]) * MS;
            Machine { number, disk, latency, process: None, failure }
        };
        let numbers = PAGE_NODES.into_iter().chain([CONTROL_NODE]);
        let mut machines = ChunkMachines {
            world: world.clone(),
            layout: layout(world, division),
            machines: numbers.map(machine).collect(),
            random: random.fork(),
            administrator: world.start("administrator", &world.new_disk()),
            asking: Arc::default(),
        };
        machines.heal();
        machines.start_all();
        machines.configure();
        machines
    }

    /// Nodes that are silent are soon down, and nothing moves only for the sake of balance.
    fn configure(&self) {
        let configured = self.ask(|surveyor| {
            for _ in 0..100 {
                if let Ok(catalog) = surveyor.catalog() {
                    let mut settings = catalog.settings().clone();
                    (settings.suspect_ticks, settings.down_ticks) = (13, 20);
                    (settings.stable_ticks, settings.calm_ticks) = (5, 50);
                    settings.tolerance_percent = 100_000;
                    if surveyor.propose(Proposal::Configure(settings)).is_ok() {
                        return true;
                    }
                }
                sleep(50 * MS);
            }
            false
        });
        assert!(configured, "control does not answer");
    }

    /// Asks control, or changes something.
    fn ask<T: Send + 'static>(&self, body: impl FnOnce(&Surveyor) -> T + Send + 'static) -> T {
        let layout = self.layout.clone();
        let asked = self
            .administrator
            .run(move |environment| body(&Surveyor::new(environment, layout, None)));
        asked.expect("nobody kills it")
    }

    /// The same, without waiting for it.
    fn ask_later(&self, body: impl FnOnce(&Surveyor) + Send + 'static) {
        let (layout, asking) = (self.layout.clone(), Arc::clone(&self.asking));
        asking.fetch_add(1, Ordering::SeqCst);
        drop(self.administrator.spawn("ask", move |environment| {
            body(&Surveyor::new(environment, layout, None));
            asking.fetch_sub(1, Ordering::SeqCst);
        }));
    }

    /// Somebody has a chunk cut in two.
    pub(crate) fn divide(&self) {
        let choice = self.random.fork();
        self.ask_later(move |surveyor| {
            let Ok(catalog) = surveyor.catalog() else { return };
            let chunks: Vec<_> = catalog.chunks().iter().collect();
            let (chunk, one) = *choice.pick(&chunks);
            let (chunk, epoch, reason) = (*chunk, one.epoch, Reason::Asked);
            // Refused while the chunk changes, or a node of it is down.
            let _ = surveyor.propose(Proposal::Divide { chunk, epoch, reason });
        });
    }

    /// Somebody has a chunk moved.
    pub(crate) fn move_chunk(&self) {
        let choice = self.random.fork();
        self.ask_later(move |surveyor| {
            let Ok(catalog) = surveyor.catalog() else { return };
            let chunks: Vec<_> = catalog.chunks().iter().collect();
            let (chunk, one) = *choice.pick(&chunks);
            let nodes: Vec<NodeId> = one.replicas.keys().copied().collect();
            let others = PAGE_NODES.map(NodeId).into_iter().filter(|node| !nodes.contains(node));
            let others: Vec<NodeId> = others.collect();
            let (from, to) = (Some(*choice.pick(&nodes)), *choice.pick(&others));
            let (chunk, epoch, reason) = (*chunk, one.epoch, Reason::Asked);
            let _ = surveyor.propose(Proposal::MoveReplica { chunk, epoch, from, to, reason });
        });
    }

    fn start_machine(&mut self, index: usize) {
        let machine = &self.machines[index];
        let process = self.world.start(&host(machine.number), &machine.disk);
        process.drift(self.random.between(0, 20_000) as i32 - 10_000);
        let options = process_options(&self.random);
        let (layout, number) = (self.layout.clone(), machine.number);
        let failure = Arc::clone(&machine.failure);
        drop(process.spawn("node", move |environment| {
            run(environment, (&layout, number), &options, &failure);
        }));
        self.machines[index].process = Some(process);
    }

    /// Starts the nodes that do not run.
    pub(crate) fn start_all(&mut self) {
        for index in 0..self.machines.len() {
            if self.machines[index].process.is_none() {
                self.start_machine(index);
            }
        }
    }

    /// Some node, the control node included.
    fn some(&self) -> usize {
        self.random.index(self.machines.len())
    }

    /// A node dies, and stays away.
    pub(crate) fn stop_one(&mut self) {
        let index = self.some();
        if let Some(process) = self.machines[index].process.take() {
            match self.random.chance(0.7) {
                true => process.crash(),
                false => process.kill(),
            }
        }
    }

    /// A node dies and is started again.
    pub(crate) fn restart_one(&mut self) {
        self.stop_one();
        self.world.sleep(Duration::from_micros(self.random.between(0, 50_000)));
        self.start_all();
    }

    /// The machines of all nodes lose power.
    pub(crate) fn crash_all(&mut self) {
        for machine in &mut self.machines {
            if let Some(process) = machine.process.take() {
                process.crash();
            }
        }
        self.start_all();
    }

    /// The disk of a node takes no more, or not what the node notes of itself.
    pub(crate) fn fill_disk(&self) {
        let machine = &self.machines[self.some()];
        let disk = &machine.disk;
        if self.random.chance(0.5) {
            return disk.set_space_bytes(Some(disk.used_bytes()));
        }
        disk.set_faults(machine.record_faults());
    }

    /// No node reliably notes what it has, or what control says.
    pub(crate) fn spoil_records(&self) {
        for machine in &self.machines {
            machine.disk.set_faults(machine.record_faults());
        }
    }

    /// All nodes lose power, and control stays away.
    pub(crate) fn restart_without_control(&mut self) {
        self.crash_all();
        self.heal();
        let control = self.machines.last_mut().and_then(|machine| machine.process.take());
        control.expect("it was just started").crash();
    }

    /// The clock of a node jumps.
    pub(crate) fn jump(&self) {
        let hours = self.random.between(0, 100) as i64 - 50;
        if let Some(process) = &self.machines[self.some()].process {
            process.jump(hours * 3_600_000);
        }
    }

    /// The host of some node.
    pub(crate) fn some_host(&self) -> String {
        host(self.machines[self.some()].number)
    }

    /// Nothing is wrong with the disks any more.
    pub(crate) fn heal(&self) {
        for machine in &self.machines {
            machine.disk.set_space_bytes(None);
            machine.disk.set_faults(machine.usual_faults());
        }
    }

    /// Waits until nothing is under way, and returns the catalog. Nothing disturbs the nodes.
    ///
    /// # Panics
    /// If that takes too long.
    pub(crate) fn settle(&mut self) -> Catalog {
        self.start_all();
        let mut last = (None, BTreeMap::new());
        for _ in 0..600 {
            let is_asking = self.asking.load(Ordering::SeqCst) > 0;
            last = self.ask(|surveyor| {
                let survey = surveyor.look_at(|node| node.has(Role::Pages));
                let nodes = survey.nodes.into_iter();
                let pages = nodes.map(|one| (one.node.number, one.status.ok().map(|it| it.pages)));
                (survey.control.ok().map(|control| control.catalog), pages.collect())
            });
            match &last {
                (Some(catalog), pages) if !is_asking && is_quiet(catalog, pages) => {
                    return catalog.clone();
                }
                _ => self.world.sleep(100 * MS),
            }
        }
        let failures = self.machines.iter().map(|one| (one.number, one.failure.lock().clone()));
        let failures: BTreeMap<_, _> = failures.collect();
        let (catalog, pages) = last;
        panic!("the cluster does not come to rest: {failures:?}, {pages:?}, {catalog:#?}");
    }

    /// How many chunks there are.
    pub(crate) fn chunks(&self) -> usize {
        self.ask(|surveyor| surveyor.catalog().map_or(0, |catalog| catalog.chunks().len()))
    }

    /// How the engine at a member reads the pages.
    pub(crate) fn open_pages(&self) -> OpenPages {
        let (layout, starts) = (self.layout.clone(), AtomicU64::new(1));
        Arc::new(move |environment, id| {
            let start = starts.fetch_add(1, Ordering::SeqCst);
            let followed = FollowedPages::start(environment, &layout, NodeId(id), start);
            let pages = followed.store().expect("the layout has page nodes");
            let store = Arc::clone(&pages);
            let follow = move || {
                // Of these, one is the engine's.
                while Arc::strong_count(&pages) > 2 {
                    sleep(20 * MS);
                }
                followed.close();
            };
            environment.spawner.spawn("follow", Box::new(follow));
            store
        })
    }

    /// Begins to read pages at all nodes, which is to go well at any time: see [`probe`].
    pub(crate) fn begin_probing(&self, reference: u64) {
        let links = PageLinks::new(&self.world, PAGE_NODES.into_iter().chain([reference]));
        let prober = self.world.start("prober", &self.world.new_disk());
        let random = self.random.fork();
        drop(prober.spawn("probe", move |environment| {
            probe(environment, &links, reference, &random);
        }));
    }

    /// No node gives another answer than `reference`, which has all pages, for a page that is
    /// there: it gives the page, or says that it does not have it, or nothing. The log is durable
    /// up to `at_least`.
    ///
    /// # Panics
    /// If one does.
    pub(crate) fn check_answers(&self, reference: u64, at_least: Lsn) {
        let links = PageLinks::new(&self.world, PAGE_NODES.into_iter().chain([reference]));
        let observer = self.world.start("observer", &self.world.new_disk());
        let checked = observer.run(move |environment| {
            check_answers(environment, &links, reference, at_least);
        });
        checked.expect("nobody kills it");
        observer.kill();
    }

    /// Every page is the same on all nodes that have its chunk, and on `reference`, which has all
    /// pages; and other nodes do not have it. All have applied the log up to `at_least`.
    ///
    /// # Panics
    /// If one is not.
    pub(crate) fn compare(&self, catalog: &Catalog, reference: u64, at_least: Lsn) {
        let links = PageLinks::new(&self.world, PAGE_NODES.into_iter().chain([reference]));
        let observer = self.world.start("observer", &self.world.new_disk());
        let catalog = catalog.clone();
        let compared = observer.run(move |environment| {
            compare(environment, &links, &catalog, (reference, at_least));
        });
        compared.expect("nobody kills it");
        observer.kill();
    }
}

/// The body of a process that reads pages at one node after the other, all the time. A node that
/// answers for a page gives what the node `reference` has, which has all pages.
fn probe(environment: &Environment, links: &PageLinks, reference: u64, random: &Random) {
    let options = || RemotePagesOptions { patience: 100 * MS, ..RemotePagesOptions::default() };
    let open = |number: u64| links.pages_with(environment, &[number], options());
    let (whole, nodes) = (open(reference), PAGE_NODES.map(open));
    let (mut expected, mut found) = (PageBuf::boxed(), PageBuf::boxed());
    loop {
        let spaces = whole.spaces();
        for _ in 0..100 {
            sleep(Duration::from_micros(random.between(1, 20_000)));
            if spaces.is_empty() {
                break;
            }
            let page = PageId::new(*random.pick(&spaces), PageNo(random.below(100) as u32));
            let now = PageRead::Latest { at_least: Lsn(0) };
            let Ok(version) = whole.read(page, now, &mut expected) else { continue };
            let index = random.index(nodes.len());
            let number = PAGE_NODES[index];
            let then = PageRead::Latest { at_least: version.as_of };
            match nodes[index].read(page, then, &mut found) {
                Ok(other) if other.lsn == version.lsn => {
                    assert!(expected.bytes() == found.bytes(), "{page} differs at node {number}");
                }
                Ok(other) => assert!(other.lsn > version.lsn, "{page} is old at node {number}"),
                Err(PageStoreError::Absent(_)) => panic!("{page} is missing at node {number}"),
                Err(_) => {}
            }
        }
    }
}

/// What page nodes say of themselves, if they answer.
type Statuses = BTreeMap<NodeId, Option<Option<PagesStatus>>>;

/// Whether nothing is under way, nothing is to begin, and the nodes answer for what they have.
fn is_quiet(catalog: &Catalog, pages: &Statuses) -> bool {
    let are_up = PAGE_NODES
        .into_iter()
        .all(|number| catalog.nodes().get(&NodeId(number)).is_some_and(|node| node.is_up()));
    let are_whole = catalog
        .chunks()
        .values()
        .all(|chunk| chunk.nodes_in(ReplicaState::InService).count() == COPIES);
    let is_open = |node: &NodeId| match pages.get(node) {
        Some(Some(status)) => status.as_ref().is_some_and(|status| status.is_open),
        _ => false,
    };
    let mut holders = catalog.chunks().values().flat_map(|chunk| chunk.replicas.keys());
    let is_founded = !catalog.chunks().is_empty();
    let is_idle = catalog.operations().is_empty() && plan(catalog).is_empty();
    is_founded && are_up && are_whole && is_idle && holders.all(is_open)
}

/// A page as a node gives it.
type Reply = Result<Box<PageBuf>, PageStoreError>;

/// Whether the node says whether there is such a page.
fn is_said(reply: &Reply) -> bool {
    matches!(reply, Ok(_) | Err(PageStoreError::Absent(_)))
}

struct Replies {
    buffers: Vec<Option<Box<PageBuf>>>,
    replies: Vec<Option<Reply>>,
}

impl PageSink for Replies {
    fn page_mut(&mut self, index: usize) -> &mut PageBuf {
        self.buffers[index].get_or_insert_with(PageBuf::boxed)
    }

    fn complete(&mut self, index: usize, reply: Result<PageVersion, PageStoreError>) {
        let buffer = self.buffers[index].take();
        self.replies[index] = Some(reply.map(|_| buffer.expect("an image was filled in")));
    }
}

fn read_once(store: &RemotePages, pages: &[PageId], at_least: Lsn) -> Vec<Reply> {
    let version = PageRead::Latest { at_least };
    let requests: Vec<_> = pages.iter().map(|page| PageRequest { page: *page, version }).collect();
    let none = |_: &PageId| None;
    let buffers = pages.iter().map(|_| None).collect();
    let mut replies = Replies { buffers, replies: pages.iter().map(none).collect() };
    store.read_many(&requests, &mut replies);
    replies.replies.into_iter().map(|reply| reply.expect("all are completed")).collect()
}

/// Reads pages until each one is there, or the node says that it is not. `may_end` says which
/// errors are an answer, too.
fn read_all(
    store: &RemotePages,
    pages: &[PageId],
    at_least: Lsn,
    may_end: impl Fn(&Reply) -> bool,
) -> Vec<Reply> {
    const ATTEMPTS: usize = 100;
    let mut replies = read_once(store, pages, at_least);
    for _ in 1..ATTEMPTS {
        let open: Vec<usize> = (0..pages.len()).filter(|at| !may_end(&replies[*at])).collect();
        if open.is_empty() {
            break;
        }
        sleep(50 * MS);
        let again: Vec<PageId> = open.iter().map(|at| pages[*at]).collect();
        for (at, reply) in open.into_iter().zip(read_once(store, &again, at_least)) {
            replies[at] = reply;
        }
    }
    replies
}

fn check_answers(environment: &Environment, links: &PageLinks, reference: u64, at_least: Lsn) {
    let options = || RemotePagesOptions { patience: 200 * MS, ..RemotePagesOptions::default() };
    let open = |number: u64| links.pages_with(environment, &[number], options());
    let (whole, nodes) = (open(reference), PAGE_NODES.map(|number| (number, open(number))));
    for space in whole.spaces() {
        let pages: Vec<PageId> =
            (0..BATCH).map(|number| PageId::new(space, PageNo(number))).collect();
        let expected = read_all(&whole, &pages, at_least, is_said);
        for (number, node) in &nodes {
            let found = read_once(node, &pages, at_least);
            for ((page, expected), found) in pages.iter().zip(&expected).zip(found) {
                match (expected, found) {
                    (Ok(expected), Ok(found)) => {
                        let are_equal = expected.bytes() == found.bytes();
                        assert!(are_equal, "{page} differs at node {number}");
                    }
                    (Ok(_), Err(PageStoreError::Absent(_))) => {
                        panic!("{page} is missing at node {number}")
                    }
                    _ => {}
                }
            }
        }
    }
}

fn compare(
    environment: &Environment,
    links: &PageLinks,
    catalog: &Catalog,
    (reference, at_least): (u64, Lsn),
) {
    let options = || RemotePagesOptions { patience: 200 * MS, ..RemotePagesOptions::default() };
    let open = |number: u64| links.pages_with(environment, &[number], options());
    let whole = open(reference);
    let nodes: Vec<_> = PAGE_NODES.into_iter().map(|number| (number, open(number))).collect();
    let spaces = whole.spaces();
    let mut compared = 0;
    for space in &spaces {
        for first in (0..MOST_PAGES).step_by(BATCH as usize) {
            let count = compare_some(&whole, &nodes, catalog, (*space, first, at_least));
            compared += count;
            // Some pages were given out, and not made.
            if count == 0 {
                break;
            }
        }
    }
    assert!(compared > 0);
    for (number, node) in &nodes {
        let more = node.spaces().into_iter().find(|space| !spaces.contains(space));
        assert_eq!(more, None, "node {number} has a space more");
    }
}

/// Compares some pages of a space. Returns how many there are.
fn compare_some(
    whole: &RemotePages,
    nodes: &[(u64, Arc<RemotePages>)],
    catalog: &Catalog,
    (space, first, at_least): (SpaceId, u32, Lsn),
) -> u32 {
    let all: Vec<PageId> =
        (first..first + BATCH).map(|number| PageId::new(space, PageNo(number))).collect();
    let expected = read_all(whole, &all, at_least, is_said);
    let count = expected.iter().filter(|reply| reply.is_ok()).count();
    let failure = expected.iter().find_map(|reply| match reply {
        Err(error) if !is_said(reply) => Some(error),
        _ => None,
    });
    assert!(failure.is_none(), "the reference does not give a page: {failure:?}");
    for (number, node) in nodes {
        let has = |chunk: &ChunkId| {
            let mut served = catalog.chunks()[chunk].nodes_in(ReplicaState::InService);
            served.any(|served| served == NodeId(*number))
        };
        let is_here = |page: PageId| has(&catalog.chunk_of(page).expect("a chunk of each page"));
        let (here, elsewhere): (Vec<PageId>, Vec<PageId>) =
            all.iter().copied().partition(|page| is_here(*page));
        for (page, reply) in here.iter().zip(read_all(node, &here, at_least, is_said)) {
            match (&expected[(page.page_no.0 - first) as usize], reply) {
                (Ok(expected), Ok(found)) => {
                    assert!(expected.bytes() == found.bytes(), "{page} differs at node {number}");
                }
                (Err(PageStoreError::Absent(_)), Err(PageStoreError::Absent(_))) => {}
                (expected, found) => {
                    let (expected, found) = (expected.as_ref().err(), found.as_ref().err());
                    panic!("{page} at node {number}: {found:?}, not {expected:?}");
                }
            }
        }
        // A node without a chunk does not answer.
        let has_some = catalog.chunks().keys().any(has);
        let is_refused = |reply: &Reply| match reply {
            Err(PageStoreError::WrongChunk { .. }) => true,
            Err(PageStoreError::Unavailable { .. }) => !has_some,
            _ => false,
        };
        let refused = read_all(node, &elsewhere, at_least, is_refused);
        for (page, reply) in elsewhere.iter().zip(refused) {
            let is_refused = is_refused(&reply);
            let reply = reply.map(|_| "it is there");
            assert!(is_refused, "{page} at node {number}, which does not have it: {reply:?}");
        }
    }
    count as u32
}
