//! Followers, while members die, are cut off, and lose messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_api::{FollowOptions, Followed, LogError, LogStore, PageFilter};
use firn_base::{Lsn, PageId, task};
use firn_log_service::RemoteLogOptions;
use firn_testing::simulation::{LinkFaults, World, for_each_seed};
use parking_lot::Mutex;

use crate::support::{Group, MS, SECOND, client_options, follow_options, group, next_piece, page};

/// What a follower has got.
#[derive(Default)]
struct Received {
    /// The groups: where each begins and ends, and its records' pages.
    groups: Vec<(Lsn, Lsn, Vec<PageId>)>,
    end: Lsn,
}

/// Follows in a process of its own until `end` says where to stop.
struct Following {
    received: Arc<Mutex<Received>>,
    task: firn_testing::simulation::Task<()>,
}

fn start_following(
    group: &Group,
    name: &str,
    pages: PageFilter,
    end: &Arc<Mutex<Option<Lsn>>>,
    options: RemoteLogOptions,
) -> Following {
    let (process, log) = group.reader_with(name, options);
    let received = Arc::new(Mutex::new(Received { end: Lsn::FIRST, ..Received::default() }));
    let (own, end, group) = (Arc::clone(&received), Arc::clone(end), group.clone());
    let options = FollowOptions { pages, ..follow_options(name, Lsn::FIRST) };
    let random = group.world.random();
    let task = process.spawn("follow", move |_| {
        let mut follower = log.follow(options).expect("all log is kept");
        let mut durable = Lsn(0);
        loop {
            let position = follower.position();
            if end.lock().is_some_and(|end| position >= end) {
                return;
            }
            let known = log.durable_lsn();
            assert!(known >= durable, "the durable position went back");
            durable = known;
            let next = follower.next(*random.pick(&[1, 1_000, 50_000]), 20 * MS);
            let piece = match next {
                Ok(Followed::Piece(piece)) => piece,
                Ok(Followed::Nothing) | Err(LogError::Unavailable { .. }) => continue,
                other => panic!("a follower got {other:?}"),
            };
            assert_eq!(piece.from, position, "pieces follow each other");
            let durable_log = group.durable_log();
            let durable = Lsn::FIRST.advance(durable_log.len() as u64);
            assert!(piece.to <= durable, "a follower got log before it was durable");
            let mut received = own.lock();
            for group in piece.groups() {
                let records = group.group.records().map(|record| record.expect("good").page);
                received.groups.push((group.start, group.end, records.collect()));
            }
            received.end = piece.to;
            drop(received);
            follower.release(piece.to);
            if random.chance(0.1) {
                task::sleep(Duration::from_micros(random.below(30_000)));
            }
        }
    });
    Following { received, task }
}

/// Commits groups while something happens between them; returns the end of the log.
pub(crate) fn write(group: &Group, count: u32, mut between: impl FnMut(u32)) -> Lsn {
    let random = group.world.random();
    let mut log = group.open();
    let mut number = 0;
    while number < count {
        between(number);
        let end = log.append(&self::group(number, random.below(900) as usize));
        match log.writer.wait_durable(end) {
            Ok(()) => number += 1,
            // Its member may have died, or be cut off for as long as nobody else writes.
            Err(_) => log = group.open(),
        }
    }
    log.tail.end.max(log.durable())
}

/// The groups of the log that is durable, as [`Received`] has them.
fn groups_of(log: &[u8], filter: &PageFilter) -> Vec<(Lsn, Lsn, Vec<PageId>)> {
    let piece = firn_api::LogPiece::new(Lsn::FIRST, log.to_vec(), filter).expect("good log");
    let pages = |group: firn_api::FollowedGroup<'_>| {
        let records = group.group.records().map(|record| record.expect("good").page);
        (group.start, group.end, records.collect())
    };
    piece.groups().map(pages).collect()
}

fn faults(world: &World) -> LinkFaults {
    let random = world.random();
    LinkFaults {
        loss: *random.pick(&[0.0, 0.01]),
        reset: *random.pick(&[0.0, 0.002]),
        ..LinkFaults::default()
    }
}

/// Members crash and return, one at a time.
fn with_crashes(group: &Group) -> impl FnMut(u32) + use<> {
    let (group, random) = (group.clone(), group.world.random());
    let mut down = None;
    move |_| {
        if !random.chance(0.05) {
            return;
        }
        match down.take() {
            Some(id) => group.start(id),
            None => {
                let id = 1 + random.below(3);
                group.crash(id);
                down = Some(id);
            }
        }
    }
}

#[test]
fn log_gathers_for_a_follower_that_is_not_in_a_hurry() {
    for_each_seed(0..5, |world| {
        let group = Group::of_three(world);
        let messages = |name: &str, gather| {
            let (process, log) =
                group.reader_with(name, RemoteLogOptions { gather, ..client_options() });
            let start = Lsn::FIRST.advance(group.durable_log().len() as u64);
            let options = follow_options(name, start);
            let end = Arc::new(Mutex::new(None));
            let until = Arc::clone(&end);
            let pieces = process.spawn("follow", move |_| {
                let mut follower = log.follow(options).expect("all log is kept");
                let mut pieces = 0;
                while until.lock().is_none_or(|end| follower.position() < end) {
                    if let Ok(Followed::Piece(piece)) = follower.next(usize::MAX, 20 * MS) {
                        follower.release(piece.to);
                        pieces += 1;
                    }
                }
                pieces
            });
            let written = write(&group, 100, |_| task::sleep(2 * MS));
            *end.lock() = Some(written);
            pieces.join().expect("nobody kills it")
        };
        let (at_once, gathered) =
            (messages("at-once", Duration::ZERO), messages("gathered", 30 * MS));
        assert!(gathered * 4 < at_once, "{gathered} messages, and {at_once} without gathering");
    });
}

#[test]
fn each_durable_group_comes_once_while_members_die() {
    for_each_seed(0..10, |world| {
        let group = Group::of_three(world);
        world.network().set_faults(faults(world));
        let end = Arc::new(Mutex::new(None));
        let some = PageFilter::Ranges(vec![page(10)..=page(19), page(40)..=page(40)]);
        let none = PageFilter::Ranges(Vec::new());
        let filters = [PageFilter::All, some, none];
        let readers: Vec<_> = filters
            .iter()
            .enumerate()
            .map(|(number, filter)| {
                let name = format!("reader-{number}");
                start_following(&group, &name, filter.clone(), &end, client_options())
            })
            .collect();
        let written = write(&group, 100, with_crashes(&group));
        group.start_all();
        *end.lock() = Some(written);
        for (reader, filter) in readers.into_iter().zip(&filters) {
            reader.task.join().expect("nobody kills it");
            let received = reader.received.lock();
            assert!(received.end >= written);
            let log = group.durable_log();
            let log = &log[..received.end.since(Lsn::FIRST) as usize];
            assert_eq!(received.groups, groups_of(log, filter));
        }
    });
}

#[test]
fn a_member_that_is_cut_off_is_left() {
    for_each_seed(0..10, |world| {
        let group = Group::of_three(world);
        let (reader, log) = group.reader("reader");
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let task = reader.spawn("follow", move |environment| {
            let mut follower = log.follow(follow_options("reader", Lsn::FIRST)).unwrap();
            let mut longest = Duration::ZERO;
            while !over.load(Ordering::SeqCst) {
                let begun = environment.clock.monotonic();
                next_piece(&mut *follower, 10_000);
                longest = longest.max(environment.clock.monotonic().saturating_sub(begun));
            }
            longest
        });
        let cluster = group.cluster.clone();
        write(&group, 150, |number| {
            // Another member is cut off, by the others and the reader, and returns.
            let victim = u64::from(number / 30 % 3) + 1;
            match number % 30 {
                10 if number < 140 => {
                    let host = format!("log-{victim}");
                    cluster.cut([victim]);
                    world.network().separate(&[&host], &["reader"]);
                }
                25 => cluster.heal(),
                _ => {}
            }
            task::sleep(20 * MS);
        });
        is_over.store(true, Ordering::SeqCst);
        // Something to end the last wait.
        write(&group, 1, |_| {});
        let longest = task.join().expect("nobody kills it");
        assert!(longest < 3 * SECOND, "a follower stood still for {longest:?}");
    });
}

#[test]
fn calls_end_in_time_without_members() {
    for_each_seed(0..10, |world| {
        let group = Group::of_three(world);
        let end = write(&group, 10, |_| {});
        let (reader, log) = group.reader("reader");
        let group_of_task = group.clone();
        let task = reader.spawn("read", move |environment| {
            let now = || environment.clock.monotonic();
            let mut bytes = Vec::new();
            while log.read(Lsn::FIRST, 1 << 20, &mut bytes).unwrap() < end {
                bytes.clear();
            }
            let mut follower = log.follow(follow_options("reader", Lsn::FIRST)).unwrap();
            assert!(next_piece(&mut *follower, 1).is_some());
            let members: Vec<String> = (1..=3).map(|id| format!("log-{id}")).collect();
            let members: Vec<&str> = members.iter().map(String::as_str).collect();
            group_of_task.world.network().separate(&members, &["reader"]);
            let patience = client_options().patience;
            let check = |begun: Duration, error: LogError| {
                let took = now().saturating_sub(begun);
                assert!(matches!(error, LogError::Unavailable { .. }), "{error}");
                assert!(took >= patience && took < patience + SECOND, "it took {took:?}");
            };
            let begun = now();
            check(begun, log.read(Lsn::FIRST, 100, &mut Vec::new()).unwrap_err());
            let begun = now();
            check(begun, log.follow(follow_options("late", Lsn::FIRST)).err().unwrap());
            let begun = now();
            let error = loop {
                let asked = now();
                match follower.next(1 << 20, 50 * MS) {
                    Ok(Followed::Piece(_) | Followed::Nothing) => {}
                    Ok(Followed::End) => panic!("it has no end"),
                    Err(error) => break error,
                }
                assert!(now().saturating_sub(asked) < 300 * MS, "a call exceeds its time");
            };
            assert!(matches!(error, LogError::Unavailable { .. }), "{error}");
            let took = now().saturating_sub(begun);
            assert!(took < patience + 2 * SECOND, "it took {took:?}");
            assert_eq!(log.durable_lsn(), end, "what was known is known");
            group_of_task.world.network().heal();
            let mut position = follower.position();
            while position < end {
                position = next_piece(&mut *follower, 100).expect("the log is back").to;
            }
        });
        task.join().expect("nobody kills it");
    });
}

#[test]
fn a_follower_ends_where_it_was_asked_to() {
    for_each_seed(0..5, |world| {
        let group = Group::of_three(world);
        let ends: Vec<Lsn> = (1..=10).map(|count| write(&group, count, |_| {})).collect();
        let (reader, log) = group.reader("reader");
        let task = reader.spawn("read", move |_| {
            for until in [ends[0], ends[3].advance(8), Lsn::FIRST] {
                let options =
                    FollowOptions { until: Some(until), ..follow_options("bounded", Lsn::FIRST) };
                let mut follower = log.follow(options).unwrap();
                while next_piece(&mut *follower, 300).is_some() {}
                assert!(follower.position() >= until);
                let first = ends.iter().find(|end| **end >= until).unwrap();
                assert!(follower.position() <= *first, "it goes on beyond its end");
            }
            let beyond = log.follow(follow_options("beyond", ends[9].advance(8))).err().unwrap();
            assert!(matches!(beyond, LogError::OutOfRange { .. }), "{beyond}");
            log.close();
        });
        task.join().expect("nobody kills it");
    });
}

#[test]
fn a_member_that_lags_is_left() {
    for_each_seed(0..5, |world| {
        let group = Group::of_three(world);
        let (reader, log) = group.reader("reader");
        write(&group, 5, |_| {});
        let end = Arc::new(Mutex::new(Lsn::FIRST));
        let own = Arc::clone(&end);
        let task = reader.spawn("follow", move |_| {
            let mut follower = log.follow(follow_options("reader", Lsn::FIRST)).unwrap();
            while follower.position() < Lsn::MAX && next_piece(&mut *follower, 10_000).is_some() {
                *own.lock() = follower.position();
            }
        });
        for victim in 1..=3 {
            // The reader still reaches it, and it still says that nothing more is durable.
            group.cluster.cut([victim]);
            let written = write(&group, 5, |_| {});
            let has_come = (0..200).any(|_| {
                task::sleep(10 * MS);
                *end.lock() >= written
            });
            assert!(has_come, "a follower stays with member {victim}, which is cut off");
            group.cluster.heal();
            task::sleep(SECOND);
        }
        drop(task);
    });
}

#[test]
fn a_reader_does_not_begin_without_a_majority() {
    for_each_seed(0..5, |world| {
        let group = Group::of_three(world);
        write(&group, 5, |_| {});
        let (reader, log) = group.reader("reader");
        let task = reader.spawn("follow", move |_| {
            let network = group.world.network();
            network.separate(&["log-1", "log-3"], &["reader"]);
            let refused = log.follow(follow_options("reader", Lsn::FIRST)).err().unwrap();
            assert!(matches!(refused, LogError::Unavailable { .. }), "{refused}");
            network.heal_link("log-1", "reader");
            network.heal_link("reader", "log-1");
            let mut follower = log.follow(follow_options("reader", Lsn::FIRST)).unwrap();
            assert!(next_piece(&mut *follower, 100).is_some());
        });
        task.join().unwrap();
    });
}
