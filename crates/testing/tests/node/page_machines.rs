//! Page nodes in separate processes, under the simulator: they follow a log that is elsewhere, die
//! and come back, and answer readers over links.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_api::{LogError, LogStore, PageRead, PageStore, PageStoreError};
use firn_base::network::{Address, ClusterId, NodeId, NodeIdentity, Role, Roles};
use firn_base::task::sleep;
use firn_base::{Environment, Lsn, PageId, PageNo};
use firn_format::page::PageBuf;
use firn_link::{Caller, CallerSettings, LocalNode, Server, ServerSettings};
use firn_page_service::{
    PageNodeLink, PageService, PageServiceOptions, Placement, RemotePages, RemotePagesOptions,
};
use firn_storage::local::{DatabaseId, OpenError, PageStoreOptions};
use firn_storage::page_node::{PageNode, PageNodeOptions, ReceivedLogOptions};
use firn_testing::random::Random;
use firn_testing::simulation::{Process, SimulatedDisk, World};

const DATABASE: DatabaseId = DatabaseId(*b"database of test");
pub(crate) const PORT: u16 = 7000;
/// The numbers of the page nodes.
pub(crate) const NODES: [u64; 2] = [1, 2];
pub(crate) const MS: Duration = Duration::from_millis(1);
/// More pages than a space has here.
pub(crate) const MOST_PAGES: u32 = 1500;

/// The log for the page node of this name, which may not answer yet.
pub(crate) type PageNodeLog =
    Arc<dyn Fn(&Environment, &str) -> Result<Arc<dyn LogStore>, LogError> + Send + Sync>;

/// The host of a page node, and its name among the log's readers.
pub(crate) fn host(number: u64) -> String {
    format!("pages-{number}")
}

pub(crate) fn local(node: u64, name: &str, role: Role) -> Arc<LocalNode> {
    let (cluster, node) = (ClusterId(1), NodeId(node));
    let identity = NodeIdentity { cluster, node, name: name.to_owned(), roles: Roles::of(&[role]) };
    Arc::new(LocalNode::new(identity, 0))
}

/// A page node: its disk, and its process while it runs.
struct Machine {
    number: u64,
    disk: SimulatedDisk,
    process: Process,
    /// Its pages need no log before this.
    needs_from: Arc<AtomicU64>,
}

/// Page nodes with all pages each.
pub(crate) struct PageMachines {
    world: World,
    log: PageNodeLog,
    machines: Vec<Machine>,
    random: Random,
}

fn page_node_options(random: &Random, number: u64) -> PageNodeOptions {
    let log = ReceivedLogOptions {
        name: host(number),
        memory_bytes: *random.pick(&[4 << 10, 256 << 10]),
        ..ReceivedLogOptions::default()
    };
    PageNodeOptions { log, pages: page_store_options(random) }
}

/// Small stores, which are quick to be behind.
pub(crate) fn page_store_options(random: &Random) -> PageStoreOptions {
    PageStoreOptions {
        behind_limit_bytes: *random.pick(&[64 << 10, 512 << 10]),
        batch_pages: *random.pick(&[2, 16]),
        grow_bytes: 256 << 10,
        reserve_bytes: 0,
        retry_delay_ms: 2,
        ..PageStoreOptions::default()
    }
}

/// The body of a page node's process: serves until it is killed.
fn serve(
    environment: &Environment,
    log: &PageNodeLog,
    options: &PageNodeOptions,
    (number, address): (u64, Address),
    needs_from: &AtomicU64,
) {
    let mut options = options.clone();
    loop {
        let node = open(environment, log, &options, number);
        options.log.only_needed = false;
        let pages = Arc::clone(&node) as Arc<dyn PageStore>;
        let service = PageService::new(environment, pages, PageServiceOptions::default());
        let settings = ServerSettings { workers: 2, ..ServerSettings::default() };
        let local = local(number, &host(number), Role::Pages);
        let server = Server::start(environment, local, &address, settings, vec![service.offer()]);
        let server = server.expect("the port is free");
        // The log's members may let go of more than the node needs; then it looks again.
        while !matches!(node.status().log.failure, Some(LogError::ReaderDropped { .. })) {
            needs_from.store(node.status().log.kept_from.0, Ordering::SeqCst);
            sleep(20 * MS);
        }
        server.close();
        node.close();
        options.log.only_needed = true;
    }
}

/// Opens a page node as soon as the log answers.
fn open(
    environment: &Environment,
    log: &PageNodeLog,
    options: &PageNodeOptions,
    number: u64,
) -> Arc<PageNode> {
    let path = Path::new("/pages");
    loop {
        let opened = log(environment, &host(number)).map_err(OpenError::from);
        let opened = opened
            .and_then(|log| PageNode::open(environment, path, DATABASE, log, options.clone()));
        match opened {
            Ok(node) => return node,
            Err(OpenError::Log(_)) => sleep(5 * MS),
            Err(error) => panic!("{error}"),
        }
    }
}

impl PageMachines {
    pub(crate) fn start(
        world: &World,
        random: Random,
        log: PageNodeLog,
        numbers: &[u64],
    ) -> PageMachines {
        let mut machines = PageMachines { world: world.clone(), log, machines: Vec::new(), random };
        for number in numbers.iter().copied() {
            let (disk, needs_from) = (world.new_disk(), Arc::default());
            let process = machines.start_one(number, &disk, &needs_from);
            machines.machines.push(Machine { number, disk, process, needs_from });
        }
        machines
    }

    fn start_one(&self, number: u64, disk: &SimulatedDisk, needs_from: &Arc<AtomicU64>) -> Process {
        let process = self.world.start(&host(number), disk);
        process.drift(self.world.random().between(0, 20_000) as i32 - 10_000);
        let (log, at) = (Arc::clone(&self.log), (number, process.address(PORT)));
        let options = page_node_options(&self.world.random(), number);
        let needs_from = Arc::clone(needs_from);
        drop(process.spawn("serve", move |environment| {
            serve(environment, &log, &options, at, &needs_from);
        }));
        process
    }

    /// A page node dies and is started again.
    pub(crate) fn restart(&mut self, index: usize) {
        match self.random.chance(0.5) {
            true => self.machines[index].process.crash(),
            false => self.machines[index].process.kill(),
        }
        self.world.sleep(Duration::from_micros(self.random.between(0, 20_000)));
        let Machine { number, disk, needs_from, .. } = &self.machines[index];
        let process = self.start_one(*number, disk, needs_from);
        self.machines[index].process = process;
    }

    /// No page node needs log before this.
    pub(crate) fn need_from(&self) -> Lsn {
        let each = self.machines.iter().map(|one| one.needs_from.load(Ordering::SeqCst));
        Lsn(each.min().unwrap_or_default())
    }

    pub(crate) fn links(&self) -> PageLinks {
        PageLinks::new(&self.world, self.machines.iter().map(|machine| machine.number))
    }

    /// Every page is the same on the two nodes, which have applied the log up to `at_least`.
    ///
    /// # Panics
    /// If one is not.
    pub(crate) fn compare(&self, at_least: Lsn) {
        let links = self.links();
        let observer = self.world.start("observer", &self.world.new_disk());
        let compared = observer.run(move |environment| compare(environment, &links, at_least));
        compared.expect("nobody kills it");
        observer.kill();
    }
}

/// How a process reaches page nodes.
#[derive(Clone)]
pub(crate) struct PageLinks {
    addresses: Vec<(u64, Address)>,
}

impl PageLinks {
    pub(crate) fn new(world: &World, numbers: impl IntoIterator<Item = u64>) -> PageLinks {
        let network = world.network();
        let address = |number: u64| (number, network.address(&host(number), PORT));
        PageLinks { addresses: numbers.into_iter().map(address).collect() }
    }

    /// The pages of these nodes, for a process.
    pub(crate) fn pages(&self, environment: &Environment, numbers: &[u64]) -> Arc<RemotePages> {
        self.pages_with(environment, numbers, RemotePagesOptions::default())
    }

    pub(crate) fn pages_with(
        &self,
        environment: &Environment,
        numbers: &[u64],
        options: RemotePagesOptions,
    ) -> Arc<RemotePages> {
        let database = local(1000, "database", Role::Database);
        let wanted = self.addresses.iter().filter(|(number, _)| numbers.contains(number));
        let links = wanted.map(|(number, address)| {
            let mut settings = CallerSettings::new(address.clone());
            (settings.connect_timeout, settings.most_delay) = (200 * MS, 50 * MS);
            let caller = Caller::new(environment, Arc::clone(&database), settings);
            PageNodeLink { node: NodeId(*number), caller: Arc::new(caller), is_far: false }
        });
        let placement = Placement::everywhere(links.collect()).expect("there are nodes");
        RemotePages::open(environment, placement, options)
    }
}

fn compare(environment: &Environment, links: &PageLinks, at_least: Lsn) {
    let [one, other] = NODES.map(|number| links.pages(environment, &[number]));
    let (mut of_one, mut of_other) = (PageBuf::boxed(), PageBuf::boxed());
    let mut pages = 0;
    let spaces = one.spaces();
    assert_eq!(spaces, other.spaces());
    let all = spaces
        .iter()
        .flat_map(|space| (0..MOST_PAGES).map(|number| PageId::new(*space, PageNo(number))));
    for page in all {
        let there = read(&one, page, at_least, &mut of_one);
        assert_eq!(there, read(&other, page, at_least, &mut of_other), "{page}");
        if !there {
            break;
        }
        assert!(of_one.bytes() == of_other.bytes(), "{page}");
        pages += 1;
    }
    assert!(pages > 0);
}

/// Whether the page is there. A node may need its time: one with little memory that was away, or
/// one that is opened again.
pub(crate) fn read(pages: &RemotePages, page: PageId, at_least: Lsn, into: &mut PageBuf) -> bool {
    const ATTEMPTS: usize = 12;
    let mut last = None;
    for _ in 0..ATTEMPTS {
        match pages.read(page, PageRead::Latest { at_least }, into) {
            Ok(_) => return true,
            Err(PageStoreError::Absent(_)) => return false,
            Err(error) => {
                last = Some(error);
                sleep(50 * MS);
            }
        }
    }
    panic!("{page} as of {at_least}: {last:?}");
}
