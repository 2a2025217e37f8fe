//! Requests with a connection of their own.

use std::sync::Arc;
use std::time::Duration;

use firn_base::task::sleep;
use firn_link::{CallError, Caller, Next};
use firn_testing::simulation::{LinkFaults, for_each_seed};
use parking_lot::Mutex;

use crate::streams::{ask, take_all};
use crate::support::{
    MS, ONCE, Record, SECOND, WORK, caller_settings, node, request, start_client, start_server,
    word,
};

#[test]
fn exchanges_use_one_connection_after_the_other_has_left_it() {
    for_each_seed(0..20, |world| {
        let record = Record::default();
        let (_b, server) = start_server(world, &record);
        let (_a, caller) = start_client(world);
        for _ in 0..3 {
            let exchange = caller.exchange(WORK, ask(100, 100), 1000, SECOND).unwrap();
            assert_eq!(take_all(&exchange, Duration::ZERO), ((0..100).collect(), Ok(100)));
        }
        assert_eq!(record.lock().alone, 3);
        assert_eq!(server.peers().len(), 2, "the shared connection, and one more");
        let both = [1, 2].map(|_| caller.exchange(WORK, ask(10, 100), 500, SECOND).unwrap());
        for exchange in both {
            assert_eq!(take_all(&exchange, MS), ((0..10).collect(), Ok(10)));
        }
        assert_eq!(server.peers().len(), 3);
        sleep(30 * SECOND);
        assert_eq!(server.peers().len(), 1, "those that nobody uses are closed");
        let exchange = caller.exchange(WORK, ask(1, 1), 500, SECOND).unwrap();
        assert_eq!(take_all(&exchange, MS), (vec![0], Ok(1)));
    });
}

#[test]
fn the_follower_of_an_exchange_sets_its_pace() {
    for_each_seed(0..20, |world| {
        let (_b, server) = start_server(world, &Record::default());
        let (_a, caller) = start_client(world);
        let exchange = caller.exchange(WORK, ask(100, 100), 1000, SECOND).unwrap();
        sleep(100 * MS);
        let sent: Vec<_> = server.peers().iter().map(|peer| peer.statistics.bytes_sent).collect();
        assert!(sent.iter().all(|sent| *sent <= 1000), "{sent:?} bytes ahead of the follower");
        assert_eq!(take_all(&exchange, MS), ((0..100).collect(), Ok(100)));
        let longer = caller.exchange(WORK, ask(10, 5000), 1000, SECOND).unwrap();
        assert_eq!(take_all(&longer, MS), ((0..10).collect(), Ok(10)));
    });
}

#[test]
fn what_finds_no_connection_of_its_own_goes_over_the_shared_one() {
    for_each_seed(0..20, |world| {
        let record = Record::default();
        let (_b, server) = start_server(world, &record);
        let a = world.start("a", &world.new_disk());
        let mut settings = caller_settings(world);
        settings.most_lanes = 2;
        let caller = Arc::new(Caller::new(&a.environment(), node(1, 1, "a", 0), settings));
        let tasks: Vec<_> = (0..6)
            .map(|_| {
                let caller = Arc::clone(&caller);
                a.spawn("caller", move |_| {
                    for number in 100..105 {
                        let body = request(number, MS);
                        let exchange = caller.exchange(ONCE, body, 1000, SECOND).unwrap();
                        let end = exchange.next(Some(SECOND));
                        assert!(matches!(end, Ok(Next::End(end)) if word(&end, 0) == number));
                    }
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
        assert_eq!(record.lock().calls.len(), 30);
        assert!((1..30).contains(&record.lock().alone));
        assert!(server.peers().len() <= 3);
    });
}

#[test]
fn an_exchange_that_is_dropped_ends_at_its_next_push() {
    for_each_seed(0..10, |world| {
        let record = Record::default();
        let (_b, server) = start_server(world, &record);
        let (_a, caller) = start_client(world);
        let exchange = caller.exchange(WORK, ask(100, 100), 500, SECOND).unwrap();
        assert!(matches!(exchange.next(Some(SECOND)), Ok(Next::Message(_))));
        drop(exchange);
        sleep(100 * MS);
        assert_eq!(server.peers().len(), 1);
        let refused = caller.exchange(ONCE, request(13, MS), 500, SECOND).unwrap();
        assert!(matches!(refused.next(Some(SECOND)), Err(CallError::Refused { .. })));
        let next = caller.exchange(WORK, ask(3, 100), 500, SECOND).unwrap();
        assert_eq!(take_all(&next, MS), ((0..3).collect(), Ok(3)));
        assert_eq!(server.peers().len(), 2, "a refusal leaves the connection as it was");
    });
}

#[test]
fn an_exchange_breaks_when_its_server_is_gone() {
    for_each_seed(0..10, |world| {
        let record = Record::default();
        let (b, _server) = start_server(world, &record);
        let (a, caller) = start_client(world);
        let begin = || caller.exchange(ONCE, request(100, 3600 * SECOND), 500, SECOND).unwrap();
        let of_killed = begin();
        sleep(10 * MS);
        b.kill();
        assert!(matches!(of_killed.next(None), Err(CallError::Unknown { .. })));
        let (_b, _server) = start_server(world, &record);
        assert!(caller.wait_until_up(10 * SECOND));
        let of_cut = begin();
        sleep(10 * MS);
        world.network().cut("a", "b");
        world.network().cut("b", "a");
        let clock = a.environment().clock;
        let before = clock.monotonic();
        assert!(matches!(of_cut.next(None), Err(CallError::Unknown { .. })));
        assert!(clock.monotonic() - before < 10 * SECOND);
    });
}

#[test]
fn an_exchange_that_breaks_was_whole_up_to_there_and_says_so() {
    let broken = Arc::new(Mutex::new(0));
    let count = Arc::clone(&broken);
    for_each_seed(0..30, move |world| {
        world.network().set_faults(LinkFaults { reset: 0.01, ..LinkFaults::default() });
        let (_b, _server) = start_server(world, &Record::default());
        let (_a, caller) = start_client(world);
        let begun = caller.exchange(WORK, ask(50, 100), 1000, 60 * SECOND);
        let Ok(exchange) = begun else { return };
        let (numbers, end) = take_all(&exchange, MS);
        assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
        match end {
            Ok(last) => assert_eq!((numbers.len(), last), (50, 50)),
            Err(error) => {
                assert!(matches!(error, CallError::Unknown { .. } | CallError::NotSent { .. }));
                *count.lock() += 1;
            }
        }
    });
    assert!(*broken.lock() > 0, "no exchange was broken");
}
