//! The time to open a long log. Run by hand: `cargo test --release -p firn-storage timing --
//! --ignored --nocapture`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests use the machine as it is"
)]

use std::time::Duration;

use super::*;
use firn_base::clock::{Clock, SystemClock};

struct Counter(Mutex<(u64, Lsn)>);

impl PageLogListener for Counter {
    fn page_changed(&self, _: PageId, _: Lsn, _: Lsn) {
        self.0.lock().0 += 1;
    }

    fn space_dropped(&self, _: firn_base::SpaceId, _: Lsn) {}

    fn told_up_to(&self, end: Lsn) {
        self.0.lock().1 = end;
    }
}

/// 2 MiB of groups of about 300 bytes, each with a change of a row and an undo record, on 50,000
/// different pages.
fn batch(random: &mut u64) -> Vec<u8> {
    let mut groups = Vec::new();
    let mut builder = GroupBuilder::new();
    while groups.len() < 2 << 20 {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let pages = [(*random >> 33) as u32 % 50_000, 60_000 + (*random >> 50) as u32 % 500];
        builder.clear();
        for page in pages {
            let page = PageId::new(SpaceId(1), PageNo(page));
            builder.push(1, page, |body| body.extend([7; 130]));
        }
        groups.extend_from_slice(builder.finish());
    }
    groups
}

fn timed<T>(what: &str, body: impl FnOnce() -> T) -> T {
    let before = SystemClock.monotonic();
    let result = body();
    println!("{what}: {:?}", SystemClock.monotonic() - before);
    result
}

fn open_and_tell(directory: &Arc<LocalDirectory>) {
    let log = timed("  open", || LocalLog::open(directory, LogOptions::default()).unwrap());
    let counter = Arc::new(Counter(Mutex::default()));
    timed("  tell the listener", || {
        PageLog::follow(&*log, counter.clone());
        log.wait_until_indexed(log.end_lsn()).unwrap();
    });
    let page = PageId::new(SpaceId(1), PageNo(4711));
    let mut records = 0;
    let mut visit = || {
        records = 0;
        log.visit_records(page, log.truncated_lsn(), log.end_lsn(), &mut |_, _, _| {
            records += 1;
            Ok(())
        })
    };
    timed("  visit a page, footers not cached", &mut visit).unwrap();
    timed("  visit a page, footers cached", &mut visit).unwrap();
    println!("  {records} records of the page, {} calls of the listener", counter.0.lock().0);
}

#[test]
#[ignore = "writes 1 GiB and prints times"]
fn opening_a_gibibyte_of_log() {
    let place = tempfile::tempdir().unwrap();
    let directory = LocalDirectory::open(&Environment::system(), place.path()).unwrap();
    let log = open_writer(&directory, LogOptions::default()).unwrap();
    let mut random = 1;
    timed("append and sync 1 GiB", || {
        while log.end_lsn() < Lsn(1 << 30) {
            log.append(log.end_lsn(), &batch(&mut random)).unwrap();
            log.sync().unwrap();
        }
    });
    let group = group(1, 280);
    timed("1000 commits", || {
        for _ in 0..1000 {
            log.append(log.end_lsn(), &group).unwrap();
            log.sync().unwrap();
        }
    });
    timed("index to the end", || log.wait_until_indexed(log.end_lsn()).unwrap());
    timed("write the footers", || {
        while log.shared.segments.lock().begun().iter().any(|segment| {
            segment.end() <= log.end_lsn()
                && matches!(*segment.index.lock(), segment::SegmentIndex::Memory(_))
        }) {
            firn_base::task::sleep(Duration::from_millis(5));
        }
    });
    drop(log);
    println!("with footers");
    open_and_tell(&directory);
    for entry in std::fs::read_dir(place.path().join("log")).unwrap() {
        let path = entry.unwrap().path();
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        let length = file.metadata().unwrap().len();
        let footer = segment::payload_end_offset(segment::blocks_in(64 << 20));
        println!("  {} has a footer of {} bytes", path.display(), length - footer);
        file.set_len(footer).unwrap();
    }
    println!("without footers");
    open_and_tell(&directory);
}
