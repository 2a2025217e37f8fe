//! Reads, one property at a time.

use std::sync::Arc;
use std::time::Duration;

use firn_api::{PageRead, PageRequest, PageSink, PageStore, PageStoreError, PageVersion};
use firn_base::clock::Clock;
use firn_base::network::NodeId;
use firn_base::{Extents, Lsn, PageId};
use firn_format::page::PageBuf;
use firn_page_service::{PlacedChunk, PlacedPart, Placement, RemotePages, RemotePagesOptions};
use firn_testing::simulation::{World, for_each_seed};

use crate::shelf::{Lie, Shelf, page};
use crate::support::{MS, SECOND, Serving, client_options, links, open, serve};

/// What a batch got, and when.
struct Batch {
    clock: Arc<dyn Clock>,
    began: Duration,
    buffers: Vec<Box<PageBuf>>,
    replies: Vec<Option<(Duration, Result<PageVersion, PageStoreError>)>>,
}

impl PageSink for Batch {
    fn page_mut(&mut self, index: usize) -> &mut PageBuf {
        assert!(self.replies[index].is_none(), "request {index} has ended");
        &mut self.buffers[index]
    }

    fn complete(&mut self, index: usize, reply: Result<PageVersion, PageStoreError>) {
        let took = self.clock.monotonic() - self.began;
        assert!(self.replies[index].replace((took, reply)).is_none(), "completed twice");
    }
}

fn newest(page: PageId, at_least: u64) -> PageRequest {
    PageRequest { page, version: PageRead::Latest { at_least: Lsn(at_least) } }
}

/// Reads a batch; returns how long each page took.
fn read_many(world: &World, pages: &RemotePages, requests: &[PageRequest]) -> Vec<Duration> {
    let clock = world.clock();
    let began = clock.monotonic();
    let buffers = requests.iter().map(|_| PageBuf::boxed()).collect();
    let replies = requests.iter().map(|_| None).collect();
    let mut batch = Batch { clock, began, buffers, replies };
    pages.read_many(requests, &mut batch);
    let replies = batch.replies.into_iter().map(|reply| reply.expect("it was not completed"));
    let mut took = Vec::new();
    for ((after, reply), (request, buffer)) in replies.zip(requests.iter().zip(&batch.buffers)) {
        reply.unwrap();
        assert_eq!(buffer.page_id(), request.page);
        took.push(after);
    }
    took
}

fn read(pages: &RemotePages, number: u32, at_least: u64) -> Result<PageVersion, PageStoreError> {
    let mut into = PageBuf::boxed();
    let request = newest(page(number), at_least);
    pages.read(request.page, request.version, &mut into)
}

struct Pair {
    shelves: [Arc<Shelf>; 2],
    serving: Vec<Serving>,
    pages: Arc<RemotePages>,
}

/// Two nodes that have all pages, and a client that is connected to both.
fn pair(world: &World, options: RemotePagesOptions) -> Pair {
    let shelves = [Shelf::with_log(1000), Shelf::with_log(1000)];
    let serve = |number: u64| serve(world, number, Arc::clone(&shelves[number as usize - 1]) as _);
    let serving = vec![serve(1), serve(2)];
    let client = world.start("database", &world.new_disk());
    let pages = open(world, &client, &[1, 2], options);
    // Pages of two stripes: both nodes are asked.
    for number in 0..128 {
        read(&pages, number, 0).unwrap();
    }
    Pair { shelves, serving, pages }
}

#[test]
fn pages_that_wait_for_log_delay_no_others() {
    for_each_seed(0..10, |world| {
        let shelf = Shelf::with_log(1000);
        let serving = serve(world, 1, Arc::clone(&shelf) as _);
        let client = world.start("database", &world.new_disk());
        let pages = open(world, &client, &[1], client_options());
        read(&pages, 0, 0).unwrap();
        let failures = pages.statistics().failures;
        let batch: Vec<PageRequest> =
            (0..10).map(|number| newest(page(number), [900, 2000][number as usize / 7])).collect();
        // More batches than the node has workers, and than it has attendants.
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let (pages, batch) = (Arc::clone(&pages), batch.clone());
                let world = world.clone();
                client.spawn("reader", move |_| read_many(&world, &pages, &batch))
            })
            .collect();
        world.sleep(50 * MS);
        assert_eq!(serving.service.status().waiting_batches, 8);
        let took = read_many(world, &pages, &batch[..7]);
        assert!(took.iter().all(|took| *took < 5 * MS), "{took:?}");
        shelf.add_log(2000);
        for task in tasks {
            let took = task.join().unwrap();
            assert!(took[..7].iter().all(|took| *took < 40 * MS), "{took:?}");
            assert!(took[7..].iter().all(|took| (50 * MS..80 * MS).contains(took)), "{took:?}");
        }
        let status = serving.service.status();
        assert_eq!((status.waiting_batches, status.late_pages), (0, 24));
        assert_eq!(pages.statistics().failures, failures);
    });
}

#[test]
fn log_that_does_not_come_is_an_error_after_the_patience() {
    for_each_seed(0..5, |world| {
        let options = RemotePagesOptions { patience: SECOND, ..client_options() };
        let pair = pair(world, options);
        let clock = world.clock();
        let began = clock.monotonic();
        let error = read(&pair.pages, 3, 5000).unwrap_err();
        assert!(error.is_transient(), "{error}");
        assert!(error.to_string().contains("page node 1 (pages-1), page node 2"), "{error}");
        let took = clock.monotonic() - began;
        assert!((900 * MS..1300 * MS).contains(&took), "{took:?}");
        // The nodes have forgotten it.
        world.sleep(SECOND);
        assert!(pair.serving.iter().all(|node| node.service.status().waiting_batches == 0));
    });
}

#[test]
fn a_slow_node_is_overtaken_and_then_avoided() {
    for_each_seed(0..10, |world| {
        let pair = pair(world, client_options());
        pair.shelves[0].state.lock().delay = 300 * MS;
        let batch: Vec<PageRequest> = (0..128).map(|number| newest(page(number), 0)).collect();
        let took = read_many(world, &pair.pages, &batch);
        assert!(took.iter().all(|took| *took < 60 * MS), "{took:?}");
        let statistics = pair.pages.statistics();
        assert_eq!((statistics.hedged, statistics.hedges_won), (64, 64), "{statistics:?}");
        let slow_reads = pair.shelves[0].state.lock().reads;
        for _ in 0..5 {
            read_many(world, &pair.pages, &batch);
        }
        assert_eq!(pair.shelves[0].state.lock().reads, slow_reads, "it was asked again");
    });
}

#[test]
fn a_node_that_hangs_or_dies_is_replaced_by_the_other() {
    for_each_seed(0..10, |world| {
        let options = RemotePagesOptions { patience: 2 * SECOND, ..client_options() };
        let mut pair = pair(world, options);
        let batch: Vec<PageRequest> = (0..128).map(|number| newest(page(number), 0)).collect();
        let check = |took: Vec<Duration>| {
            assert!(took.iter().all(|took| *took < 100 * MS), "{took:?}");
        };
        pair.serving[0].process.pause();
        check(read_many(world, &pair.pages, &batch));
        pair.serving[0].process.resume();
        world.sleep(SECOND);
        pair.serving[1].process.crash();
        check(read_many(world, &pair.pages, &batch));
        pair.serving[0].process.kill();
        let error = read(&pair.pages, 0, 0).unwrap_err();
        assert!(matches!(error, PageStoreError::Unavailable { .. }), "{error}");
        pair.serving.clear();
        pair.serving.push(serve(world, 1, Arc::clone(&pair.shelves[0]) as _));
        // The link looks again after a pause.
        let took = read_many(world, &pair.pages, &batch);
        assert!(took.iter().all(|took| *took < 300 * MS), "{took:?}");
    });
}

#[test]
fn an_answer_that_is_not_what_was_asked_for_is_not_used() {
    for_each_seed(0..4, |world| {
        for lie in [Lie::OtherPage, Lie::Older, Lie::OtherPosition] {
            let pair = pair(world, client_options());
            pair.shelves[0].state.lock().lie = Some(lie);
            let mut into = PageBuf::boxed();
            for version in [PageRead::Latest { at_least: Lsn(500) }, PageRead::AsOf(Lsn(500))] {
                let reply = pair.pages.read(page(1), version, &mut into).unwrap();
                assert!(reply.as_of >= Lsn(500) && into.page_id() == page(1), "{lie:?}");
            }
            let damaged = pair.pages.statistics().damaged;
            assert_eq!(damaged, if lie == Lie::OtherPosition { 1 } else { 2 }, "{lie:?}");
            // Without another node it is an error.
            pair.shelves[1].state.lock().lie = Some(lie);
            let error = pair.pages.read(page(1), PageRead::AsOf(Lsn(500)), &mut into).unwrap_err();
            assert!(matches!(error, PageStoreError::Damaged { .. }), "{error}");
            pair.serving.iter().for_each(|node| node.process.kill());
        }
    });
}

#[test]
fn a_chunk_that_moves_is_found_by_the_next_placement() {
    for_each_seed(0..10, |world| {
        let shelves = [Shelf::with_log(1000), Shelf::with_log(1000)];
        let _first = serve(world, 1, Arc::clone(&shelves[0]) as _);
        let _second = serve(world, 2, Arc::clone(&shelves[1]) as _);
        let client = world.start("database", &world.new_disk());
        let nodes = links(world, &client, &[1, 2]);
        let placed = |node: u64| {
            let chunk = PlacedChunk { pages: page(0)..=page(99), nodes: vec![NodeId(node)] };
            Placement::new(nodes.clone(), vec![chunk]).unwrap()
        };
        let options = RemotePagesOptions { patience: SECOND, ..client_options() };
        let pages = RemotePages::open(&client.environment(), placed(1), options);
        read(&pages, 5, 0).unwrap();
        shelves[0].state.lock().is_elsewhere = true;
        let reader = Arc::clone(&pages);
        let reading = client.spawn("reader", move |_| read(&reader, 5, 0));
        world.sleep(100 * MS);
        pages.set_placement(placed(2));
        reading.join().unwrap().unwrap();
        assert_eq!(shelves[1].state.lock().reads, 1);
        shelves[1].state.lock().is_elsewhere = true;
        let error = read(&pages, 5, 0).unwrap_err();
        assert!(matches!(error, PageStoreError::WrongChunk { .. }), "{error}");
        let error = read(&pages, 100, 0).unwrap_err();
        assert!(matches!(error, PageStoreError::Unavailable { .. }), "no chunk has it: {error}");
    });
}

#[test]
fn covered_is_what_every_node_has() {
    for_each_seed(0..10, |world| {
        let pair = pair(world, client_options());
        let covered = || {
            world.sleep(200 * MS);
            pair.pages.applied_lsn(page(7)).0
        };
        assert_eq!(covered(), 0);
        pair.shelves[0].state.lock().applied = Lsn(100);
        assert_eq!(covered(), 0, "the other node has nothing");
        pair.shelves[1].state.lock().applied = Lsn(50);
        assert_eq!(covered(), 50);
        assert!(
            pair.pages.is_covered(page(7), Lsn(50)) && !pair.pages.is_covered(page(7), Lsn(58))
        );
        pair.shelves[1].state.lock().applied = Lsn(200);
        assert_eq!(covered(), 100);
        pair.serving[1].process.kill();
        pair.shelves[0].state.lock().applied = Lsn(300);
        assert_eq!(covered(), 200, "what the dead node said last");
        // A third node takes its place.
        let third = Shelf::with_log(1000);
        let _third = serve(world, 3, Arc::clone(&third) as _);
        let client = world.start("database", &world.new_disk());
        let nodes = links(world, &client, &[1, 3]);
        pair.pages.set_placement(Placement::everywhere(nodes).unwrap());
        assert_eq!(pair.pages.applied_lsn(page(7)).0, 200, "it never goes back");
        third.state.lock().applied = Lsn(250);
        assert_eq!(covered(), 250);
        assert_eq!(pair.pages.spaces(), [page(0).space]);
    });
}

#[test]
fn pages_are_read_where_their_part_lies() {
    for_each_seed(0..10, |world| {
        let shelves = [Shelf::with_log(1000), Shelf::with_log(1000), Shelf::with_log(1000)];
        let numbered = (1..).zip(&shelves);
        let _serving: Vec<_> =
            numbered.map(|(number, shelf)| serve(world, number, Arc::clone(shelf) as _)).collect();
        let client = world.start("database", &world.new_disk());
        let nodes = links(world, &client, &[1, 2, 3]);
        let (extents, middle) = (Extents { pages: 8 }, u32::MAX / 2);
        let placed = |lower: &[u64], upper: &[u64]| {
            let part = |first, end, nodes: &[u64]| PlacedPart {
                first,
                end,
                nodes: nodes.iter().copied().map(NodeId).collect(),
            };
            let parts = vec![part(middle, u32::MAX, upper), part(0, middle, lower)];
            Placement::spread(nodes.clone(), extents, parts).unwrap()
        };
        let pages = RemotePages::open(&client.environment(), placed(&[1], &[2]), client_options());
        let is_lower = |number| extents.place(page(number)) < middle;
        (0..400).for_each(|number| _ = read(&pages, number, 0).unwrap());
        let reads = |shelf: usize| shelves[shelf].state.lock().reads;
        let lower = (0..400).filter(|number| is_lower(*number)).count() as u64;
        assert!((50..350).contains(&lower), "{lower}");
        assert_eq!((reads(0), reads(1), reads(2)), (lower, 400 - lower, 0));
        // What is covered is that of the part's nodes.
        shelves[0].state.lock().applied = Lsn(100);
        shelves[1].state.lock().applied = Lsn(50);
        world.sleep(200 * MS);
        for number in 0..400 {
            let covered = if is_lower(number) { Lsn(100) } else { Lsn(50) };
            assert_eq!(pages.applied_lsn(page(number)), covered);
        }
        // The upper part moves.
        pages.set_placement(placed(&[1], &[3]));
        let found = (0..400).find(|number| !is_lower(*number)).unwrap();
        assert_eq!(pages.applied_lsn(page(found)), Lsn(50), "it never goes back");
        read(&pages, found, 0).unwrap();
        assert_eq!((reads(1), reads(2)), (400 - lower, 1));
    });
}

#[test]
fn parts_that_overlap_are_no_placement() {
    let links = Vec::new();
    let part = |first, end| PlacedPart { first, end, nodes: vec![NodeId(1)] };
    let extents = Extents::DEFAULT;
    for parts in [vec![part(0, 0)], vec![part(0, 5)]] {
        assert!(Placement::spread(links.clone(), extents, parts).is_err());
    }
}
