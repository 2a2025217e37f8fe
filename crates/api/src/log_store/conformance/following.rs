//! Readers that follow, and what they hold.

use std::sync::Arc;
use std::time::Duration;

use firn_base::Lsn;
use firn_base::task::sleep;

use super::appender::{LONG, group, page};
use super::{Appender, Lives, Node};
use crate::log_store::{
    FollowOptions, Followed, LogError, LogFollower, LogPiece, LogStore, PageFilter, WriterEpoch,
};

const GROUPS: u32 = 60;

pub(super) fn options(name: &str, from: Lsn) -> FollowOptions {
    FollowOptions {
        name: name.to_owned(),
        from,
        until: None,
        pages: PageFilter::All,
        hold_limit_bytes: u64::MAX,
    }
}

fn next(reader: &mut dyn LogFollower, limit_bytes: usize) -> Option<LogPiece> {
    match reader.next(limit_bytes, LONG).expect("a good store") {
        Followed::Piece(piece) => Some(piece),
        Followed::End => None,
        Followed::Nothing => panic!("nothing came for a long time"),
    }
}

/// Follows to the end of the stream and returns the positions of the groups.
fn follow(store: &dyn LogStore, options: FollowOptions) -> Vec<(Lsn, Lsn, usize)> {
    let mut reader = store.follow(options).expect("all log is kept");
    let mut found = Vec::new();
    let mut position = reader.position();
    while let Some(piece) = next(&mut *reader, 700) {
        assert_eq!(piece.from, position, "pieces follow each other");
        assert!(piece.to <= store.durable_lsn(), "a reader is ahead of what is durable");
        for group in piece.groups() {
            assert!(group.start >= position && group.end <= piece.to, "groups are in order");
            position = group.end;
            found.push((group.start, group.end, group.group.records().count()));
        }
        position = piece.to;
        assert_eq!(reader.position(), position);
    }
    found
}

pub(super) fn each_group_once(lives: &dyn Lives) {
    lives.live(Box::new(|node| {
        let store = node.store();
        let log = Appender::open(&*store, WriterEpoch::Next).expect("a good store");
        let lengths = (0..GROUPS).map(|number| (number as usize * 37) % 900);
        let groups: Vec<_> =
            (0..GROUPS).zip(lengths).map(|(number, length)| group(number, length)).collect();
        let end = Lsn::FIRST.advance(groups.iter().map(Vec::len).sum::<usize>() as u64);
        let mut places = Vec::new();
        let mut start = Lsn::FIRST;
        for group in &groups {
            places.push((start, start.advance(group.len() as u64), 1));
            start = start.advance(group.len() as u64);
        }
        let chosen = page(10)..=page(19);
        let of_chosen = places.iter().enumerate();
        let of_chosen = of_chosen.filter(|(number, _)| chosen.contains(&page(*number as u32)));
        let of_chosen: Vec<_> = of_chosen.map(|(_, place)| *place).collect();
        let filtered = PageFilter::Ranges(vec![chosen]);
        let readers =
            [(PageFilter::All, places), (filtered, of_chosen)].map(|(pages, expected)| {
                let store = Arc::clone(&store);
                let body = move || {
                    let bounded = options("bounded", Lsn::FIRST);
                    let found =
                        follow(&*store, FollowOptions { until: Some(end), pages, ..bounded });
                    assert_eq!(found, expected);
                };
                node.environment().spawner.spawn("reader", Box::new(body))
            });
        for group in &groups {
            log.commit(group).expect("nobody else writes");
        }
        assert!(readers.into_iter().all(|reader| reader.join()), "a reader failed");
        let mut late = store.follow(options("late", end)).expect("the end can be followed");
        let soon = Duration::from_millis(1);
        assert_eq!(late.next(1_000, soon).expect("a good store"), Followed::Nothing);
        let beyond = store.follow(options("beyond", end.advance(8)));
        assert!(matches!(beyond.err(), Some(LogError::OutOfRange { .. })));
    }));
}

/// Fills the log with more than a store keeps in one file.
fn fill(log: &Appender) {
    for number in 0..200 {
        log.commit(&group(number, 1_000)).expect("nobody else writes");
    }
}

/// Releases everything and gives the store time to truncate.
fn let_go_of_all(node: &dyn Node) {
    for _ in 0..20 {
        node.let_go(node.store().durable_lsn());
        sleep(Duration::from_millis(10));
    }
}

pub(super) fn leases_hold(lives: &dyn Lives) {
    lives.live(Box::new(|node| {
        let store = node.store();
        let log = Appender::open(&*store, WriterEpoch::Next).expect("a good store");
        let mut slow = store.follow(options("slow", Lsn::FIRST)).expect("all log is kept");
        let mut fast = store.follow(options("fast", Lsn::FIRST)).expect("all log is kept");
        fill(&log);
        let end = store.durable_lsn();
        while fast.position() < end {
            assert!(next(&mut *fast, 50_000).is_some(), "the stream goes on");
        }
        fast.release(end);
        let_go_of_all(node);
        assert_eq!(store.truncated_lsn(), Lsn::FIRST, "the slow reader holds everything");
        while slow.position() < Lsn::FIRST.advance(100_000) {
            assert!(next(&mut *slow, 10_000).is_some(), "the stream goes on");
        }
        let read = slow.position();
        // A reader releases what it has read, not more.
        slow.release(Lsn::FIRST.advance(60_000));
        let_go_of_all(node);
        let truncated = store.truncated_lsn();
        assert!(truncated <= Lsn::FIRST.advance(60_000), "{truncated} is held");
        assert!(truncated > Lsn::FIRST, "nothing was truncated");
        assert_eq!(next(&mut *slow, 10_000).expect("the stream goes on").from, read);
        slow.release(Lsn::MAX);
        let_go_of_all(node);
        assert!(store.truncated_lsn() <= slow.position(), "more than was read is let go");
        drop(slow);
        let_go_of_all(node);
        assert!(store.truncated_lsn() > read, "a reader that is gone holds the log");
        let gone = store.follow(options("gone", Lsn::FIRST));
        assert!(matches!(gone.err(), Some(LogError::OutOfRange { .. })));
    }));
}

pub(super) fn limit_drops(lives: &dyn Lives) {
    lives.live(Box::new(|node| {
        let store = node.store();
        let log = Appender::open(&*store, WriterEpoch::Next).expect("a good store");
        let limited = FollowOptions { hold_limit_bytes: 50_000, ..options("limited", Lsn::FIRST) };
        let mut limited = store.follow(limited).expect("all log is kept");
        assert!(matches!(
            limited.next(1_000, Duration::ZERO).expect("it is not behind"),
            Followed::Nothing
        ));
        fill(&log);
        let mut piece = limited.next(1_000, LONG).expect("nothing was truncated yet");
        assert!(matches!(piece, Followed::Piece(_)));
        let_go_of_all(node);
        let dropped = loop {
            match limited.next(1_000, LONG) {
                Ok(next) => piece = next,
                Err(error) => break error,
            }
            assert!(matches!(piece, Followed::Piece(_)), "it came to its end");
        };
        assert!(matches!(dropped, LogError::ReaderDropped { .. }), "{dropped}");
        assert!(store.truncated_lsn() > Lsn::FIRST, "the dropped reader still holds the log");
    }));
}
