//! Streams of pushed messages.

use std::sync::Arc;
use std::time::Duration;

use firn_base::task::sleep;
use firn_link::{CallError, Follower, Next};
use firn_testing::simulation::{LinkFaults, for_each_seed};

use crate::support::{MS, Record, SECOND, WORK, start_client, start_server, word};

/// Asks for `count` numbers, each with `bytes` further bytes.
pub(crate) fn ask(count: u64, bytes: u64) -> Vec<u8> {
    [count.to_le_bytes(), bytes.to_le_bytes()].concat()
}

/// The numbers that arrive, and how it ends.
pub(crate) fn take_all(follower: &Follower, pause: Duration) -> (Vec<u64>, Result<u64, CallError>) {
    let mut numbers = Vec::new();
    loop {
        match follower.next(Some(60 * SECOND)) {
            Ok(Next::Message(message)) => numbers.push(word(&message, 0)),
            Ok(Next::End(last)) => return (numbers, Ok(word(&last, 0))),
            Ok(Next::Nothing) => panic!("the stream stopped after {numbers:?}"),
            Err(error) => return (numbers, Err(error)),
        }
        sleep(pause);
    }
}

#[test]
fn a_stream_comes_whole_and_in_order_and_its_follower_sets_the_pace() {
    for_each_seed(0..20, |world| {
        let record = Record::default();
        let (_b, server) = start_server(world, &record);
        let (_a, caller) = start_client(world);
        let follower = caller.follow(WORK, ask(100, 100), 1000, SECOND).unwrap();
        sleep(100 * MS);
        let sent = server.peers()[0].statistics.bytes_sent;
        assert!(sent <= 1000, "{sent} bytes ahead of the follower");
        let (numbers, end) = take_all(&follower, 100 * Duration::from_micros(1));
        assert_eq!(numbers, (0..100).collect::<Vec<_>>());
        assert_eq!(end, Ok(100));
        assert!(matches!(follower.next(None), Ok(Next::End(_))));
    });
}

#[test]
fn messages_longer_than_the_window_come_one_at_a_time() {
    for_each_seed(0..10, |world| {
        let (_b, _server) = start_server(world, &Record::default());
        let (_a, caller) = start_client(world);
        let follower = caller.follow(WORK, ask(10, 5000), 1000, SECOND).unwrap();
        assert_eq!(take_all(&follower, MS), ((0..10).collect(), Ok(10)));
    });
}

#[test]
fn calls_go_on_while_a_stream_waits_for_its_follower() {
    for_each_seed(0..10, |world| {
        let (_b, _server) = start_server(world, &Record::default());
        let (_a, caller) = start_client(world);
        let follower = caller.follow(WORK, ask(100, 100), 500, SECOND).unwrap();
        sleep(10 * MS);
        for number in 100..120 {
            let body = crate::support::request(number, MS);
            assert_eq!(word(&caller.call(WORK, body, SECOND).unwrap(), 0), number);
        }
        drop(follower);
        sleep(10 * MS);
        // Both workers are free again.
        let calls = [1, 2].map(|number| {
            caller.begin(WORK, crate::support::request(number, 20 * MS), 30 * MS).unwrap()
        });
        calls.into_iter().for_each(|call| drop(call.wait().unwrap()));
    });
}

#[test]
fn a_stream_that_breaks_was_whole_up_to_there_and_says_so() {
    let broken = Arc::new(parking_lot::Mutex::new(0));
    let count = Arc::clone(&broken);
    for_each_seed(0..30, move |world| {
        world.network().set_faults(LinkFaults { reset: 0.01, ..LinkFaults::default() });
        let (_b, _server) = start_server(world, &Record::default());
        let (_a, caller) = start_client(world);
        let Ok(follower) = caller.follow(WORK, ask(50, 100), 1000, 60 * SECOND) else { return };
        let (numbers, end) = take_all(&follower, MS);
        assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
        match end {
            Ok(last) => assert_eq!((numbers.len(), last), (50, 50)),
            Err(error) => {
                assert!(matches!(error, CallError::Unknown { .. } | CallError::NotSent { .. }));
                *count.lock() += 1;
            }
        }
    });
    assert!(*broken.lock() > 0, "no stream was broken");
}
