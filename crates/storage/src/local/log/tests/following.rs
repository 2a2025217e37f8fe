//! Readers that follow the local log.

use std::time::Duration;

use firn_api::{FollowOptions, Followed, LogError, LogFollower, LogStore, PageFilter};
use firn_base::{Lsn, PageId, PageNo, SpaceId};

use super::{group, open, place};
use crate::local::LocalLog;
use crate::local::page_log::PageLog;

const SOON: Duration = Duration::from_millis(1);

fn follow(log: &LocalLog, name: &str, from: Lsn, limit: u64) -> Box<dyn LogFollower> {
    let options = FollowOptions {
        name: name.to_owned(),
        from,
        until: None,
        pages: PageFilter::All,
        hold_limit_bytes: limit,
    };
    LogStore::follow(log, options).unwrap()
}

/// Appends and syncs groups of about 500 bytes for pages 0 to `groups`.
fn fill(log: &LocalLog, groups: u32) {
    (0..groups).for_each(|number| log.append(log.end_lsn(), &group(number, 480)).unwrap());
    let end = log.sync().unwrap();
    log.wait_until_indexed(end).unwrap();
}

fn position_after(reader: &mut dyn LogFollower, limit: usize) -> Lsn {
    match reader.next(limit, SOON).unwrap() {
        Followed::Piece(piece) => piece.to,
        other => panic!("{other:?} instead of groups"),
    }
}

#[test]
fn a_reader_gets_what_is_durable_and_then_waits() {
    let place = place();
    let log = open(place.path()).unwrap();
    let mut reader = follow(&log, "reader", Lsn::FIRST, u64::MAX);
    assert_eq!(reader.next(1 << 20, SOON).unwrap(), Followed::Nothing);
    log.append(log.end_lsn(), &group(1, 100)).unwrap();
    assert_eq!(reader.next(1 << 20, SOON).unwrap(), Followed::Nothing, "it is not durable");
    std::thread::scope(|scope| {
        let woken = scope.spawn(|| position_after(&mut *reader, 1 << 20));
        log.sync().unwrap();
        // The reader was woken long before; otherwise its timeout would have failed the test.
        assert_eq!(woken.join().unwrap(), log.durable_lsn());
    });
}

#[test]
fn a_reader_holds_the_log_up_to_its_limit() {
    let place = place();
    let log = open(place.path()).unwrap();
    fill(&log, 100);
    let durable = log.durable_lsn();
    let mut slow = follow(&log, "slow", Lsn::FIRST, u64::MAX);
    let mut limited = follow(&log, "limited", Lsn::FIRST, 30_000);
    log.release_before(durable);
    assert_eq!(log.truncated_lsn(), Lsn::FIRST, "held by the slow one");
    assert!(matches!(limited.next(1000, SOON), Err(LogError::ReaderDropped { .. })));
    let position = position_after(&mut *slow, 20_000);
    slow.release(position);
    log.release_before(durable);
    let truncated = log.truncated_lsn();
    assert!(Lsn::FIRST < truncated && truncated <= position, "{truncated} of {position}");
    assert_eq!(log.readers().len(), 1);
    drop(slow);
    log.release_before(durable);
    assert!(log.truncated_lsn() > position);
    assert!(matches!(
        LogStore::follow(
            &*log,
            FollowOptions {
                name: "late".to_owned(),
                from: position,
                until: None,
                pages: PageFilter::All,
                hold_limit_bytes: 0,
            }
        ),
        Err(LogError::OutOfRange { .. })
    ));
}

#[test]
fn the_stream_ends_where_it_was_asked_to_or_with_the_store() {
    let place = place();
    let log = open(place.path()).unwrap();
    fill(&log, 10);
    let page = |number| PageId::new(SpaceId(1), PageNo(number));
    let options = FollowOptions {
        name: "bounded".to_owned(),
        from: Lsn::FIRST,
        until: Some(Lsn::FIRST.advance(1500)),
        pages: PageFilter::Ranges(vec![page(1)..=page(1)]),
        hold_limit_bytes: 0,
    };
    let mut reader = LogStore::follow(&*log, options).unwrap();
    let mut found = Vec::new();
    while let Followed::Piece(piece) = reader.next(600, SOON).unwrap() {
        found.extend(piece.groups().map(|group| group.start));
    }
    assert_eq!(found, [Lsn::FIRST.advance(group(0, 480).len() as u64)]);
    assert!(reader.position() >= Lsn::FIRST.advance(1500));
    assert!(reader.position() < log.durable_lsn());
    let mut endless = follow(&log, "endless", log.durable_lsn(), u64::MAX);
    log.close();
    assert_eq!(endless.next(600, Duration::from_secs(60)).unwrap(), Followed::End);
}
