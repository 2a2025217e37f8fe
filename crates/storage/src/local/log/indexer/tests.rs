//! The index compared with a list of appended groups: live, after a restart with footers, and after
//! one without.

#![allow(clippy::disallowed_methods, reason = "tests use the machine as it is")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use firn_api::{LogStore, Watermarks};
use firn_base::{Cts, PageNo, TrxId};
use firn_format::redo::{Change, GroupBuilder};

use super::super::segment::SegmentHeader;
use super::super::tests::{group, open, open_writer, place, small};
use super::super::{LocalDirectory, LocalLog, LogOptions};
use super::*;
use crate::local::page_log::PageLog;

/// Records the reports it gets, as (page, start, end).
#[derive(Default)]
struct Recorder {
    pages: Mutex<Vec<(u64, Lsn, Lsn)>>,
    dropped: Mutex<Vec<(SpaceId, Lsn)>>,
    end: Mutex<Lsn>,
}

impl PageLogListener for Recorder {
    fn page_changed(&self, page: PageId, start: Lsn, end: Lsn) {
        assert!(*self.end.lock() <= start, "told of {start} too late");
        self.pages.lock().push((page.to_u64(), start, end));
    }

    fn space_dropped(&self, space: SpaceId, end: Lsn) {
        self.dropped.lock().push((space, end));
    }

    fn told_up_to(&self, end: Lsn) {
        assert!(*self.end.lock() <= end);
        *self.end.lock() = end;
    }
}

fn page(number: u32) -> PageId {
    PageId::new(SpaceId(1), PageNo(number))
}

/// The appended groups: page, start and end of each.
type Model = Vec<(u32, Lsn, Lsn)>;

fn append(log: &LocalLog, model: &mut Model, number: u32, length: usize) {
    let start = log.end_lsn();
    log.append(start, &group(number, length)).unwrap();
    model.push((number, start, log.end_lsn()));
}

fn fill(log: &LocalLog, model: &mut Model, groups: u32) {
    for number in 0..groups {
        append(log, model, number * number % 13, 40 + number as usize * 31 % 400);
        if number % 5 == 0 {
            log.sync().unwrap();
        }
    }
    log.sync().unwrap();
}

fn visited(log: &LocalLog, number: u32, from: Lsn, to: Lsn) -> Vec<(Lsn, Lsn)> {
    let mut found = Vec::new();
    log.visit_records(page(number), from, to, &mut |start, end, record| {
        assert_eq!(record.page, page(number));
        found.push((start, end));
        Ok(())
    })
    .unwrap();
    found
}

fn assert_visits(log: &LocalLog, model: &Model) {
    let (first, end) = (log.truncated_lsn(), log.end_lsn());
    let middle = model[model.len() / 2].1;
    for (from, to) in [(first, end), (first, middle), (middle, end), (middle, middle)] {
        for number in 0..14 {
            let expected = model.iter().filter(|(page, start, group_end)| {
                *page == number && *start >= from && *group_end <= to
            });
            let expected: Vec<_> = expected.map(|(_, start, end)| (*start, *end)).collect();
            assert_eq!(visited(log, number, from, to), expected, "page {number} in {from}..{to}");
        }
    }
}

fn wait_for(mut condition: impl FnMut() -> bool) {
    let never = Event::new();
    assert!(
        never.wait_until(Some(Duration::from_millis(1)), &mut condition)
            || (0..5000).any(|_| {
                firn_base::task::sleep(Duration::from_millis(2));
                condition()
            }),
        "waited in vain"
    );
}

/// Waits until all full segments have their footer.
fn wait_for_footers(log: &LocalLog) {
    log.wait_until_indexed(log.durable_lsn()).unwrap();
    let is_full = |segment: &Arc<Segment>| segment.end() <= log.durable_lsn();
    wait_for(|| {
        let mut segments = log.shared.segments.lock().begun();
        segments.retain(is_full);
        segments.iter().all(|segment| matches!(*segment.index.lock(), SegmentIndex::Footer(_)))
    });
}

/// Overwrites the footers, so that opening finds none.
fn remove_footers(place: &Path) {
    for entry in fs::read_dir(place.join("log")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        bytes.truncate(4096 + 16 * 512);
        fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn records_are_found_and_told_while_the_log_grows() {
    let place = place();
    let log = open(place.path()).unwrap();
    let recorder = Arc::new(Recorder::default());
    PageLog::follow(&*log, recorder.clone());
    let mut model = Model::new();
    for _ in 0..10 {
        fill(&log, &mut model, 20);
        log.wait_until_indexed(log.end_lsn()).unwrap();
        assert_eq!(log.indexed_lsn(), log.end_lsn());
        assert_visits(&log, &model);
    }
    let told: Vec<_> = recorder.pages.lock().clone();
    let expected: Vec<_> =
        model.iter().map(|(number, start, end)| (page(*number).to_u64(), *start, *end)).collect();
    assert_eq!(told, expected);
    assert_eq!(*recorder.end.lock(), log.end_lsn());
}

/// The first start and last end of each page, however the reports grouped them.
fn extents(log: &LocalLog) -> BTreeMap<u64, (Lsn, Lsn)> {
    let recorder = Arc::new(Recorder::default());
    PageLog::follow(log, recorder.clone());
    log.wait_until_indexed(log.end_lsn()).unwrap();
    assert_eq!(*recorder.end.lock(), log.end_lsn());
    let mut extents = BTreeMap::new();
    for (page, start, end) in recorder.pages.lock().iter() {
        extents.entry(*page).or_insert((*start, *end)).1 = *end;
    }
    extents
}

#[test]
fn a_restart_with_footers_is_a_restart_by_scan() {
    let place = place();
    let mut model = Model::new();
    {
        let log = open(place.path()).unwrap();
        fill(&log, &mut model, 300);
        append(&log, &mut model, 3, 20_000);
        fill(&log, &mut model, 30);
        wait_for_footers(&log);
    }
    let with_footers = {
        let log = open(place.path()).unwrap();
        let footers = log.shared.segments.lock().begun();
        let count = footers
            .iter()
            .filter(|segment| matches!(*segment.index.lock(), SegmentIndex::Footer(_)));
        assert!(count.count() > 10);
        assert_visits(&log, &model);
        extents(&log)
    };
    remove_footers(place.path());
    let log = open(place.path()).unwrap();
    assert_visits(&log, &model);
    assert_eq!(extents(&log), with_footers);
    wait_for_footers(&log);
    assert_visits(&log, &model);
    let mut expected = BTreeMap::new();
    for (number, start, end) in &model {
        expected.entry(page(*number).to_u64()).or_insert((*start, *end)).1 = *end;
    }
    assert_eq!(with_footers, expected);
}

#[test]
fn a_damaged_footer_is_built_again() {
    let place = place();
    let mut model = Model::new();
    {
        let log = open(place.path()).unwrap();
        fill(&log, &mut model, 200);
        wait_for_footers(&log);
    }
    for entry in fs::read_dir(place.path().join("log")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        if let Some(byte) = bytes.get_mut(4096 + 16 * 512 + 512 + 3) {
            *byte ^= 0x10;
            fs::write(&path, bytes).unwrap();
        }
    }
    let log = open(place.path()).unwrap();
    assert_eq!(extents(&log).len(), 13 - 6);
    assert_visits(&log, &model);
}

#[test]
fn damage_in_a_full_segment_is_found_when_it_is_read() {
    let place = place();
    let mut model = Model::new();
    {
        let log = open(place.path()).unwrap();
        fill(&log, &mut model, 200);
        wait_for_footers(&log);
    }
    let path = place.path().join("log/0000000000000008.log");
    let mut bytes = fs::read(&path).unwrap();
    bytes[4096 + 3 * 512 + 100] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let log = open(place.path()).unwrap();
    let error = log.read(Lsn::FIRST, 5000, &mut Vec::new()).unwrap_err();
    let damaged = format!("byte {} of {}", 4096 + 3 * 512, path.display());
    assert!(matches!(error, LogError::Damaged { at, .. } if at == damaged));
    drop(log);
    remove_footers(place.path());
    assert!(open(place.path()).is_err(), "without its footer the segment is read at once");
}

#[test]
fn released_segments_are_recycled_and_their_watermarks_stay() {
    let place = place();
    let log = open(place.path()).unwrap();
    let mut model = Model::new();
    let nowhere = PageId::new(SpaceId(0), PageNo::NONE);
    let high = Watermarks { trx_id_limit: TrxId(70), cts_limit: Cts(90) };
    let mut builder = GroupBuilder::new();
    Change::Watermark { trx_id_limit: high.trx_id_limit, cts_limit: high.cts_limit }
        .encode(nowhere, &mut builder);
    Change::SpaceDropped.encode(PageId::new(SpaceId(4), PageNo::NONE), &mut builder);
    log.append(log.end_lsn(), builder.finish()).unwrap();
    fill(&log, &mut model, 200);
    log.wait_until_indexed(log.end_lsn()).unwrap();
    assert_eq!(log.watermarks(), high);
    let target = model[150].1;
    log.release_before(target);
    let start = log.truncated_lsn();
    assert!(start > Lsn(20_000) && start <= target);
    assert!(model.iter().any(|(_, group, _)| *group == start), "the log begins with a group");
    let old = log.read(Lsn::FIRST, 1000, &mut Vec::new());
    assert!(matches!(old, Err(LogError::OutOfRange { .. })));
    let old = log.visit_records(page(1), Lsn::FIRST, target, &mut |_, _, _| Ok(()));
    assert!(matches!(old, Err(LogError::OutOfRange { .. })));
    model.retain(|(_, group, _)| *group >= start);
    assert_visits(&log, &model);
    wait_for(|| log.shared.segments.lock().next_released().is_none());
    // More log goes into the old files.
    fill(&log, &mut model, 300);
    log.wait_until_indexed(log.end_lsn()).unwrap();
    assert_visits(&log, &model);
    drop(log);
    let log = open(place.path()).unwrap();
    assert_eq!((log.truncated_lsn(), log.watermarks()), (start, high));
    assert_visits(&log, &model);
    log.release_before(log.end_lsn());
    wait_for(|| log.shared.segments.lock().next_released().is_none());
    let start = log.truncated_lsn();
    drop(log);
    let files = fs::read_dir(place.path().join("log")).unwrap().count();
    assert!(files <= 2 + 2 + small().spare_limit, "{files} files are left");
    let log = open(place.path()).unwrap();
    assert_eq!((log.truncated_lsn(), log.watermarks()), (start, high));
}

#[test]
fn a_segment_made_before_a_watermark_gets_it_when_the_watermark_is_released() {
    let place = place();
    let log = open(place.path()).unwrap();
    let mut model = Model::new();
    fill(&log, &mut model, 20);
    wait_for(|| log.shared.segments.lock().ahead() == 2);
    let next = log.shared.segments.lock().find(log.end_lsn()).unwrap().end();
    let mut builder = GroupBuilder::new();
    let high = Watermarks { trx_id_limit: TrxId(70), cts_limit: Cts(90) };
    Change::Watermark { trx_id_limit: high.trx_id_limit, cts_limit: high.cts_limit }
        .encode(PageId::new(SpaceId(0), PageNo::NONE), &mut builder);
    log.append(log.end_lsn(), builder.finish()).unwrap();
    while log.end_lsn() < next.advance(1000) {
        fill(&log, &mut model, 5);
    }
    log.wait_until_indexed(log.end_lsn()).unwrap();
    log.release_before(log.end_lsn());
    assert!(log.truncated_lsn() >= next, "the watermark is released");
    wait_for(|| log.shared.segments.lock().next_released().is_none());
    let oldest = log.shared.segments.lock().oldest();
    let header = fs::read(&oldest.path).unwrap()[..512].try_into().unwrap();
    assert_eq!(SegmentHeader::decode(&header).unwrap().watermarks, high);
}

#[test]
fn a_closed_log_lets_go_of_its_listener() {
    let place = place();
    let log = open(place.path()).unwrap();
    let recorder = Arc::new(Recorder::default());
    PageLog::follow(&*log, recorder.clone());
    log.wait_until_indexed(log.end_lsn()).unwrap();
    // The indexer may still be calling it, through its own reference.
    assert!(Arc::strong_count(&recorder) >= 2);
    log.close();
    assert_eq!(Arc::strong_count(&recorder), 1);
    assert!(log.append(log.end_lsn(), &group(1, 1)).is_err());
    assert!(log.wait_until_indexed(Lsn::MAX).is_err());
}

#[test]
fn nothing_is_released_that_is_not_told() {
    let place = place();
    let log = open(place.path()).unwrap();
    let mut model = Model::new();
    fill(&log, &mut model, 100);
    log.release_before(Lsn::MAX);
    assert!(log.truncated_lsn() <= log.indexed_lsn());
    log.wait_until_indexed(log.end_lsn()).unwrap();
    log.release_before(Lsn::MAX);
    let last = log.shared.segments.lock().find(log.truncated_lsn()).unwrap();
    assert!(last.end() > model[90].1, "all but the newest groups are gone");
    assert!(log.end_lsn() > log.truncated_lsn());
}

#[test]
fn footers_are_read_again_when_the_cache_is_small() {
    let place = place();
    let directory = LocalDirectory::open(&firn_base::Environment::system(), place.path()).unwrap();
    let log = open_writer(&directory, LogOptions { index_cache_bytes: 1, ..small() }).unwrap();
    let mut model = Model::new();
    fill(&log, &mut model, 200);
    wait_for_footers(&log);
    assert_visits(&log, &model);
}
