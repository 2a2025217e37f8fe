//! Pages per second over loopback, read by several threads in batches of several sizes, and what a
//! page costs both ends together. Run by
//! `cargo test --release -p firn-page-service --test speed -- --ignored --nocapture`.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a measurement takes the machine's time"
)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_api::log_store::conformance::Appender;
use firn_api::page_store::conformance::PositionLease;
use firn_api::{
    PageLease, PageRead, PageRequest, PageSink, PageStore, PageStoreError, PageVersion, WriterEpoch,
};
use firn_base::network::{Address, ClusterId, NodeId, NodeIdentity, Role, Roles};
use firn_base::random::{RandomSource, SplitMix};
use firn_base::{Environment, Lsn, PageId, PageNo, SpaceId};
use firn_format::page::{PageBuf, PageKind};
use firn_format::redo::{Change, GroupBuilder};
use firn_link::{Caller, CallerSettings, LocalNode, Server, ServerSettings};
use firn_page_service::{
    PageNodeLink, PageService, PageServiceOptions, Placement, RemotePages, RemotePagesOptions,
};
use firn_storage::local::{DatabaseId, LocalDirectory, LocalLog, LogOptions};
use firn_storage::page_node::{PageNode, PageNodeOptions};

const PAGES: u32 = 16_384;
const TIME: Duration = Duration::from_secs(2);
const DATABASE: DatabaseId = DatabaseId(*b"database of test");

/// A store whose reads cost nothing but the copy of the page.
struct Memory(Vec<Box<PageBuf>>);

impl PageStore for Memory {
    fn read(
        &self,
        page: PageId,
        version: PageRead,
        into: &mut PageBuf,
    ) -> Result<PageVersion, PageStoreError> {
        let image = &self.0[page.page_no.0 as usize % self.0.len()];
        into.bytes_mut().copy_from_slice(image.bytes());
        into.format(page, PageKind::Undo);
        Ok(PageVersion { lsn: into.lsn(), as_of: version.position() })
    }

    fn hold(&self, _: &str, position: Lsn) -> Result<Arc<dyn PageLease>, PageStoreError> {
        Ok(Arc::new(PositionLease::new(position)))
    }

    fn applied_lsn(&self, _: PageId) -> Lsn {
        Lsn(0)
    }

    fn spaces(&self) -> Vec<SpaceId> {
        Vec::new()
    }
}

/// A page node that has made all pages from a log, and stored them.
fn page_node(place: &Path) -> Arc<PageNode> {
    let environment = Environment::system();
    let directory = LocalDirectory::open_for(&environment, &place.join("log"), DATABASE).unwrap();
    let log = LocalLog::open(&directory, LogOptions::default()).unwrap();
    let options = PageNodeOptions::default();
    let node = PageNode::open(
        &environment,
        &place.join("pages"),
        DATABASE,
        Arc::clone(&log) as _,
        options,
    )
    .unwrap();
    let appender = Appender::open(log.as_ref(), WriterEpoch::Next).unwrap();
    let mut end = Lsn::FIRST;
    for some in (0..PAGES).collect::<Vec<_>>().chunks(64) {
        let mut group = GroupBuilder::new();
        for number in some {
            let page = PageId::new(SpaceId(1), PageNo(*number));
            Change::Format { kind: PageKind::SpaceHeader }.encode(page, &mut group);
        }
        end = appender.commit(group.finish()).unwrap();
    }
    node.materialise_up_to(end).unwrap();
    node
}

fn local(node: u64, role: Role) -> Arc<LocalNode> {
    let (cluster, roles) = (ClusterId(1), Roles::of(&[role]));
    let name = format!("n{node}");
    Arc::new(LocalNode::new(NodeIdentity { cluster, node: NodeId(node), name, roles }, 0))
}

/// Buffers of a batch.
struct Batch(Vec<Box<PageBuf>>);

impl PageSink for Batch {
    fn page_mut(&mut self, index: usize) -> &mut PageBuf {
        &mut self.0[index]
    }

    fn complete(&mut self, _: usize, reply: Result<PageVersion, PageStoreError>) {
        reply.unwrap();
    }
}

/// Reads random pages until it is stopped; returns the times of the batches in microseconds.
fn read(pages: &RemotePages, seed: u64, batch: usize, stop: &AtomicBool) -> Vec<u32> {
    let clock = Environment::system().clock;
    let random = SplitMix::new(seed);
    let mut buffers = Batch((0..batch).map(|_| PageBuf::boxed()).collect());
    let mut times = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let page = || {
            let number = (random.next_u64() % u64::from(PAGES)) as u32;
            let page = PageId::new(SpaceId(1), PageNo(number));
            PageRequest { page, version: PageRead::Latest { at_least: Lsn(0) } }
        };
        let requests: Vec<PageRequest> = (0..batch).map(|_| page()).collect();
        let began = clock.monotonic();
        pages.read_many(&requests, &mut buffers);
        times.push((clock.monotonic() - began).as_micros() as u32);
    }
    times
}

/// The processor time of this process so far, in microseconds; of both ends.
fn processor_us() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks = |field: usize| fields[field].parse::<u64>().unwrap();
    (ticks(11) + ticks(12)) * 10_000
}

fn measure(name: &str, store: &Arc<dyn PageStore>) {
    let environment = Environment::system();
    let service = PageService::new(&environment, Arc::clone(store), PageServiceOptions::default());
    let any: Address = "127.0.0.1:0".parse().unwrap();
    let settings = ServerSettings::default();
    let server =
        Server::start(&environment, local(1, Role::Pages), &any, settings, vec![service.offer()]);
    let server = server.unwrap();
    let settings = CallerSettings::new(server.address());
    let caller = Arc::new(Caller::new(&environment, local(2, Role::Database), settings));
    let links = vec![PageNodeLink { node: NodeId(1), caller: Arc::clone(&caller), is_far: false }];
    let placement = Placement::everywhere(links).unwrap();
    let pages = RemotePages::open(&environment, placement, RemotePagesOptions::default());
    for (threads, batch) in
        [(1, 1), (1, 32), (1, 128), (2, 32), (4, 32), (4, 128), (16, 1), (64, 1)]
    {
        let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let times = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let tasks: Vec<_> = (0..threads)
            .map(|seed| {
                let (pages, stop) = (Arc::clone(&pages), Arc::clone(&stop));
                let (times, count) = (Arc::clone(&times), Arc::clone(&count));
                let body = move || {
                    let own = read(&pages, seed, batch, &stop);
                    count.fetch_add((own.len() * batch) as u64, Ordering::Relaxed);
                    times.lock().extend(own);
                };
                environment.spawner.spawn("reader", Box::new(body))
            })
            .collect();
        let before = processor_us();
        firn_base::task::sleep(TIME);
        stop.store(true, Ordering::Relaxed);
        tasks.into_iter().for_each(|task| assert!(task.join()));
        let used = processor_us() - before;
        let mut times = times.lock();
        times.sort_unstable();
        let at = |part: usize| times[times.len() * part / 100];
        let count = count.load(Ordering::Relaxed);
        let (per_second, cost) = (count / TIME.as_secs(), used as f64 / count as f64);
        println!(
            "{name:>9} {threads:>3} threads {batch:>4} pages: {per_second:>8} pages/s, P50 {:>6} us, P99 {:>6} us, {cost:>5.1} us of processor a page",
            at(50),
            at(99)
        );
    }
    println!("{name:>9} {:?}", pages.statistics());
    pages.close();
    caller.close();
    server.close();
    service.close();
}

#[test]
#[ignore = "a measurement"]
fn pages_per_second_over_loopback() {
    let images = (0..64).map(|_| PageBuf::boxed()).collect();
    measure("memory", &(Arc::new(Memory(images)) as Arc<dyn PageStore>));
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let node = page_node(place.path());
    measure("page node", &(Arc::clone(&node) as Arc<dyn PageStore>));
    node.close();
}
