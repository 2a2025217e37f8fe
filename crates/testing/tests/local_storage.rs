//! The local log and the local page store together, over the simulated disk. After kills and power
//! losses, everything that was acknowledged exists, and every page has a version that it really
//! had, never older than the reader requested.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use firn_api::{LogStore, PageRead, PageStore, PageStoreError, WriterEpoch};
use firn_base::{Environment, Lsn, PageId, PageNo, SpaceId};
use firn_engine::log::writer::Purpose;
use firn_engine::log::{Completion, RedoLog, RedoLogOptions};
use firn_format::page::{PAGE_HEADER_BYTES, PAGE_SIZE, PageBuf, PageKind};
use firn_format::redo::{Change, GroupBuilder};
use firn_storage::local::pages::{LocalPages, PageStoreOptions};
use firn_storage::local::{LocalDirectory, LocalLog, LogOptions};
use firn_testing::random::Random;
use firn_testing::simulation::{
    Faults, World, assert_replays, for_each_crash_point, for_each_seed,
};
use parking_lot::Mutex;

const PAGES: u32 = 12;
const DIRECTORY: &str = "/db";

/// What an outside observer knows over the lives of the process.
#[derive(Default)]
struct Model {
    /// End positions of the groups that changed a page, and the values that they wrote.
    versions: BTreeMap<PageId, Vec<(Lsn, u64)>>,
    acknowledged: Lsn,
    next_value: u64,
}

impl Model {
    /// Notes that the log of the last life ended at `end`: nothing beyond it has happened.
    fn forget_after(&mut self, end: Lsn) {
        assert!(end >= self.acknowledged, "the log ends at {end}, before {}", self.acknowledged);
        for versions in self.versions.values_mut() {
            versions.retain(|(lsn, _)| *lsn <= end);
        }
        self.versions.retain(|_, versions| !versions.is_empty());
    }

    fn newest_at(&self, page: PageId, lsn: Lsn) -> Option<Lsn> {
        let versions = self.versions.get(&page)?;
        versions.iter().rev().map(|(end, _)| *end).find(|end| *end <= lsn)
    }
}

/// A process's log and pages. The pages are dropped before the log that they follow.
struct Node {
    pages: Arc<LocalPages>,
    log: Arc<LocalLog>,
    redo: Arc<RedoLog>,
}

fn open(environment: &Environment) -> Result<Node, String> {
    let directory = LocalDirectory::open(environment, Path::new(DIRECTORY))
        .map_err(|error| error.to_string())?;
    let log_options = LogOptions { segment_size_bytes: 4096 + 64 * 512, ..LogOptions::default() };
    let log = LocalLog::open(&directory, log_options).map_err(|error| error.to_string())?;
    let page_options = PageStoreOptions {
        batch_pages: 4,
        queue_bytes: 6 * PAGE_SIZE,
        grow_bytes: 8 * PAGE_SIZE as u64,
        reserve_bytes: 8 * PAGE_SIZE as u64,
        behind_limit_bytes: 64 * 1024,
        retry_delay_ms: 1,
        ..PageStoreOptions::default()
    };
    let pages = LocalPages::open(&directory, page_options, Arc::clone(&log) as _);
    let pages = pages.map_err(|error| error.to_string())?;
    let opened = log.open(WriterEpoch::Next).map_err(|error| error.to_string())?;
    let options = RedoLogOptions { buffer_bytes: 512 << 10, ..RedoLogOptions::default() };
    Ok(Node { pages, log, redo: RedoLog::start(opened, options, Box::new(|_| {})) })
}

/// A group that writes the next value into some pages, with these pages.
fn draw_group(random: &Random, model: &mut Model) -> (Vec<u8>, Vec<PageId>, u64) {
    let mut group = GroupBuilder::new();
    let mut changed = Vec::new();
    model.next_value += 1;
    let value = model.next_value;
    for _ in 0..random.between(1, 3) {
        let page = PageId::new(SpaceId(1), PageNo(random.below(u64::from(PAGES)) as u32));
        if changed.contains(&page) {
            continue;
        }
        if !model.versions.contains_key(&page) || random.chance(0.1) {
            Change::Format { kind: PageKind::SpaceHeader }.encode(page, &mut group);
        }
        let bytes = value.to_le_bytes().repeat(random.between(1, 60) as usize);
        Change::WriteBytes { at: PAGE_HEADER_BYTES as u16, bytes: &bytes }.encode(page, &mut group);
        changed.push(page);
    }
    (group.finish().to_vec(), changed, value)
}

/// Appends, and waits for some groups, until the log takes no more.
fn write(node: &Node, random: &Random, model: &Mutex<Model>, rounds: u32) {
    for _ in 0..rounds {
        let start = node.redo.end_lsn();
        let (group, changed, value) = draw_group(random, &mut model.lock());
        let end = start.advance(group.len() as u64);
        // The model knows it before the append: a crash may leave it in the log.
        for page in changed {
            model.lock().versions.entry(page).or_default().push((end, value));
        }
        let Ok(admission) = node.redo.admit(group.len(), Purpose::Completion) else { return };
        assert_eq!(node.redo.append(admission, &group).end, end);
        if random.chance(0.3) {
            if node.redo.wait_durable(end).is_err() {
                return;
            }
            model.lock().acknowledged = end;
        } else if random.chance(0.3) {
            // The log's task writes it at some time, and some crashes tear it.
            node.redo.when_durable(end, Completion::new(Arc::new(|_, _| {}), 0));
        }
    }
}

/// Reads a page and compares it with the model; false if the disk refused.
fn check_page(node: &Node, model: &Mutex<Model>, page: PageId) -> bool {
    let at_least = node.log.durable_lsn();
    let expected = model.lock().newest_at(page, at_least);
    let mut found = PageBuf::zeroed();
    match node.pages.read(page, PageRead::Latest { at_least }, &mut found) {
        Ok(_) => {}
        Err(PageStoreError::Absent(_)) if expected.is_none() => return true,
        Err(PageStoreError::Io { .. } | PageStoreError::Log(_)) => return false,
        Err(error) => panic!("{page}: {error}"),
    }
    let (lsn, value) = (found.lsn(), found.get_u64(PAGE_HEADER_BYTES));
    assert!(Some(lsn) >= expected, "{page} as of {lsn}, but {expected:?} was asked for");
    let versions = model.lock().versions.get(&page).cloned().unwrap_or_default();
    assert!(versions.contains(&(lsn, value)), "{page} never was {value} at {lsn}: {versions:?}");
    true
}

fn page(number: u32) -> PageId {
    PageId::new(SpaceId(1), PageNo(number))
}

/// One life: a writer and a reader, until they are stopped or `rounds` are over.
fn live(environment: &Environment, random: &Random, model: &Arc<Mutex<Model>>, rounds: u32) {
    // A bad disk may refuse even that. The verifier has a good disk and checks for damage.
    let Ok(node) = open(environment).map(Arc::new) else { return };
    model.lock().forget_after(node.log.end_lsn());
    let reader = {
        let (node, model, random) = (Arc::clone(&node), Arc::clone(model), random.fork());
        let body = move || {
            for _ in 0..rounds / 2 {
                check_page(&node, &model, page(random.below(u64::from(PAGES)) as u32));
                firn_base::task::sleep(Duration::from_micros(random.below(300)));
            }
        };
        environment.spawner.spawn("reader", Box::new(body))
    };
    write(&node, random, model, rounds);
    reader.join();
}

/// Every page exists, in its last version.
fn verify(environment: &Environment, model: &Mutex<Model>) {
    let node = open(environment).expect("nothing is wrong with the disk");
    let end = node.log.end_lsn();
    model.lock().forget_after(end);
    for number in 0..PAGES {
        assert!(check_page(&node, model, page(number)), "nothing is wrong with the disk");
    }
    node.pages.materialise_up_to(end).expect("nothing is wrong with the disk");
    node.pages.verify_all(&mut |_| {}).expect("every stored image is good");
    for number in 0..PAGES {
        assert!(check_page(&node, model, page(number)), "nothing is wrong with the disk");
    }
    // Its task holds the directory until it has ended.
    node.redo.close().expect("nothing is wrong with the disk");
}

fn lives(world: &World, faults: &Faults) {
    let disk = world.new_disk();
    let random = world.random();
    let model = Arc::new(Mutex::new(Model::default()));
    for _ in 0..4 {
        disk.set_faults(faults.clone());
        let node = world.start("node", &disk);
        let (shared, own) = (Arc::clone(&model), random.fork());
        node.spawn("live", move |environment| live(environment, &own, &shared, 400));
        world.sleep(Duration::from_micros(random.between(1, 30_000)));
        if random.chance(0.3) {
            node.kill()
        } else {
            node.crash()
        }
        disk.set_faults(Faults::default());
        let shared = Arc::clone(&model);
        let verified = world.start("verifier", &disk).run(move |own| verify(own, &shared));
        verified.expect("nobody kills the verifier");
    }
}

const LATENCY: Duration = Duration::from_micros(50);

#[test]
fn crashes_lose_nothing_that_was_acknowledged() {
    for_each_seed(0..60, |world| {
        lives(world, &Faults { max_latency: LATENCY, ..Faults::default() });
    });
}

#[test]
fn nor_do_page_files_that_fail_to_sync() {
    for_each_seed(1000..1040, |world| {
        let faults = Faults {
            sync_failure: 0.1,
            write_failure: 0.02,
            read_failure: 0.02,
            max_latency: LATENCY,
            files: Some(Arc::new(|path| path.starts_with("/db/pages"))),
            ..Faults::default()
        };
        lives(world, &faults);
    });
}

#[test]
fn nor_does_a_log_that_fails_to_sync() {
    for_each_seed(2000..2040, |world| {
        let faults = Faults {
            sync_failure: 0.02,
            write_failure: 0.005,
            max_latency: LATENCY,
            files: Some(Arc::new(|path| path.starts_with("/db/log"))),
            ..Faults::default()
        };
        lives(world, &faults);
    });
}

#[test]
fn a_crash_at_any_switch_point_of_a_young_database_is_borne() {
    for_each_crash_point(0..1, |world, point| {
        let disk = world.new_disk();
        let random = world.random();
        let model = Arc::new(Mutex::new(Model::default()));
        let node = world.start("node", &disk);
        let shared = Arc::clone(&model);
        let life = node.spawn("live", move |environment| live(environment, &random, &shared, 20));
        let reached = node.wait_for_switches(point);
        node.crash();
        let verified = world.start("verifier", &disk).run(move |own| verify(own, &model));
        verified.expect("nobody kills the verifier");
        // Background tasks never end; the life's own work is done when the life is.
        reached && life.join().is_err()
    });
}

#[test]
fn runs_replay_from_their_seeds() {
    assert_replays(0..10, |world| {
        lives(world, &Faults { max_latency: LATENCY, ..Faults::default() });
    });
}
