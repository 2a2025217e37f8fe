//! The log under a simulator that kills the process and cuts the power at any point. Acknowledged
//! log must be there again, unchanged, and nothing else that was not appended.

use std::path::Path;
use std::time::Duration;

use firn_base::random::RandomSource;
use firn_base::{Cts, TrxId};
use firn_format::redo::Change;
use firn_testing::simulation::{Faults, for_each_seed};

use super::*;

/// What an outside observer knows of the log over all its lives.
#[derive(Default)]
struct Known {
    /// All bytes given to the log, except bytes that were lost before they were acknowledged.
    bytes: Vec<u8>,
    acknowledged: u64,
    watermark: u64,
}

impl Known {
    fn between(&self, from: Lsn, to: Lsn) -> &[u8] {
        &self.bytes[from.since(Lsn::FIRST) as usize..to.since(Lsn::FIRST) as usize]
    }
}

struct Deaf;

impl PageLogListener for Deaf {
    fn page_changed(&self, _: PageId, _: Lsn, _: Lsn) {}
    fn space_dropped(&self, _: SpaceId, _: Lsn) {}
    fn told_up_to(&self, _: Lsn) {}
}

fn check_after_restart(log: &LocalLog, known: &mut Known) {
    let (from, end) = (log.truncated_lsn(), log.end_lsn());
    assert!(end.0 >= known.acknowledged, "{end} is before {}", known.acknowledged);
    assert_eq!(log.durable_lsn(), end);
    assert!(read_all(log) == known.between(from, end), "other bytes came back");
    assert!(log.watermarks().trx_id_limit.0 >= known.watermark);
    known.bytes.truncate(end.since(Lsn::FIRST) as usize);
    known.acknowledged = end.0;
}

fn random_groups(environment: &Environment, watermark: u64) -> Vec<u8> {
    let random = || environment.random.next_u64();
    let mut groups = Vec::new();
    for _ in 0..=random() % 3 {
        let length = if random() % 20 == 0 { 9000 } else { random() as usize % 700 };
        groups.extend(group((random() % 10) as u32, length));
    }
    let mut builder = GroupBuilder::new();
    Change::Watermark { trx_id_limit: TrxId(watermark), cts_limit: Cts(1) }
        .encode(PageId::new(SpaceId(0), PageNo::NONE), &mut builder);
    groups.extend_from_slice(builder.finish());
    groups
}

/// Uses the log until the process is killed or the log fails.
fn live(environment: &Environment, known: &Mutex<Known>) {
    let directory = LocalDirectory::open(environment, Path::new("/db")).unwrap();
    let log = match open_writer(&directory, small()) {
        Err(OpenError::Io { .. }) => return,
        log => log.unwrap(),
    };
    check_after_restart(&log, &mut known.lock());
    if environment.random.next_u64().is_multiple_of(2) {
        PageLog::follow(&*log, Arc::new(Deaf));
    }
    for round in 0u64.. {
        let watermark = known.lock().watermark + 1;
        let groups = random_groups(environment, watermark);
        let start = log.end_lsn();
        // From here on a crash may leave these bytes in the log.
        known.lock().bytes.extend_from_slice(&groups);
        match log.append(start, &groups) {
            Ok(()) => {}
            // The next file could not be made; nothing was taken.
            Err(LogError::NoRoom { .. }) => {
                known.lock().bytes.truncate(start.since(Lsn::FIRST) as usize);
                firn_base::task::sleep(Duration::from_millis(1));
                continue;
            }
            Err(_) => break,
        }
        if environment.random.next_u64().is_multiple_of(4) {
            let Ok(durable) = log.sync() else { break };
            let mut known = known.lock();
            assert_eq!(durable, log.end_lsn());
            known.acknowledged = durable.0;
            known.watermark = watermark;
        }
        if round % 16 == 15 {
            let end = log.durable_lsn();
            if log.wait_until_indexed(end).is_err() {
                break;
            }
            assert!(log.watermarks().trx_id_limit.0 >= known.lock().watermark);
            let page = PageId::new(SpaceId(1), PageNo(3));
            log.visit_records(page, log.truncated_lsn(), end, &mut |_, _, _| Ok(())).unwrap();
            log.release_before(Lsn(end.0.saturating_sub(30_000)));
        }
    }
    assert!(log.append(log.end_lsn(), &group(1, 1)).is_err(), "a failed log takes nothing");
    assert!(log.sync().is_err());
}

fn lives(seeds: std::ops::Range<u64>, faults: fn(&Path) -> bool, sync_failure: f64) {
    for_each_seed(seeds, move |world| {
        let disk = world.new_disk();
        let known = Arc::new(Mutex::new(Known::default()));
        let random = world.random();
        for life in 0..6u32 {
            let node = world.start("node", &disk);
            let (known, life_length) = (known.clone(), random.next_u64() % 60_000);
            let probability = if life % 2 == 1 { sync_failure } else { 0.0 };
            disk.set_faults(Faults {
                max_latency: Duration::from_micros(100),
                ..Faults::default()
            });
            let task = node.spawn("user", move |environment| live(environment, &known));
            world.sleep(Duration::from_micros(life_length / 2));
            disk.set_faults(Faults {
                max_latency: Duration::from_micros(100),
                sync_failure: probability,
                files: Some(Arc::new(faults)),
                ..Faults::default()
            });
            world.sleep(Duration::from_micros(life_length / 2));
            disk.set_faults(Faults::default());
            match random.next_u64() % 3 {
                0 => node.kill(),
                _ => node.crash(),
            }
            drop(task);
        }
        let node = world.start("node", &disk);
        let last = node.run(move |environment| {
            let directory = LocalDirectory::open(environment, Path::new("/db")).unwrap();
            let log = open_writer(&directory, small()).unwrap();
            check_after_restart(&log, &mut known.lock());
        });
        last.unwrap();
    });
}

#[test]
fn what_was_acknowledged_survives_crashes() {
    lives(0..150, |_| false, 0.0);
}

#[test]
fn a_failed_sync_ends_the_log_and_loses_nothing_acknowledged() {
    lives(1000..1200, |path| path.starts_with("/db/log"), 0.2);
}

#[test]
fn a_full_disk_is_told_early_and_left_again() {
    for_each_seed(0..20, |world| {
        let disk = world.new_disk();
        let node = world.start("node", &disk);
        let full_disk = disk.clone();
        node.run(move |environment| {
            let directory = LocalDirectory::open(environment, Path::new("/db")).unwrap();
            let log = open_writer(&directory, small()).unwrap();
            let groups = group(1, 3000);
            log.append(log.end_lsn(), &groups).unwrap();
            log.sync().unwrap();
            full_disk.set_space_bytes(Some(full_disk.used_bytes() + 50_000));
            let (mut left, mut was_low) = (0, false);
            let refused = loop {
                match log.append(log.end_lsn(), &groups) {
                    Ok(()) => {
                        left +=
                            if log.shared.room_left() != Room::Plenty { groups.len() } else { 0 }
                    }
                    Err(error) => break error,
                }
                was_low |= log.shared.room_left() != Room::Plenty;
                log.sync().unwrap();
            };
            assert!(matches!(refused, LogError::NoRoom { .. }), "{refused}");
            assert!(was_low && left >= 4000, "only {left} bytes were left when it was told");
            let end = log.end_lsn();
            assert_eq!(log.sync().unwrap(), end);
            log.append(end, &group(1, 16)).expect("the rest of the last file can be used");
            full_disk.set_space_bytes(None);
            firn_base::task::sleep(Duration::from_secs(1));
            assert_eq!(log.shared.room_left(), Room::Plenty);
            for _ in 0..20 {
                log.append(log.end_lsn(), &groups).unwrap();
            }
            // Releasing log makes room on a full disk too.
            full_disk.set_space_bytes(Some(full_disk.used_bytes()));
            log.sync().unwrap();
            while log.append(log.end_lsn(), &groups).is_ok() {
                log.sync().unwrap();
            }
            log.wait_until_indexed(log.end_lsn()).unwrap();
            log.release_before(log.end_lsn());
            firn_base::task::sleep(Duration::from_secs(1));
            for _ in 0..3 {
                log.append(log.end_lsn(), &groups).unwrap();
            }
            log.sync().unwrap();
        })
        .unwrap();
    });
}
