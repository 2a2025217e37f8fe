//! Calls and casts, one property at a time.

use std::sync::Arc;
use std::time::Duration;

use firn_base::task::{self, sleep};
use firn_link::{
    Body, CallError, Caller, CallerSettings, FIRST_SERVICE_CODE, MAX_PAYLOAD_BYTES, ServiceId,
};
use firn_testing::simulation::{LinkFaults, assert_replays, for_each_seed};

use crate::support::{
    MS, PORT, Record, SECOND, SHORT, WINDOW, WORK, node, request, serve, start_client,
    start_server, word,
};

#[test]
fn replies_come_in_any_order_and_find_their_calls() {
    for_each_seed(0..30, |world| {
        let record = Record::default();
        let (_b, server) = start_server(world, &record);
        let (_a, caller) = start_client(world);
        let calls: Vec<_> = (0..40)
            .map(|number| {
                let takes = MS * (number as u32 * 7 % 5);
                caller.begin(WORK, request(number + 100, takes), 60 * SECOND).unwrap()
            })
            .collect();
        for (number, call) in calls.into_iter().enumerate().rev() {
            assert_eq!(word(&call.wait().unwrap(), 0), number as u64 + 100);
        }
        let refused = caller.call(WORK, request(13, Duration::ZERO), SECOND).unwrap_err();
        assert!(
            matches!(&refused, CallError::Refused { refused, .. } if refused.code == FIRST_SERVICE_CODE)
        );
        assert!(refused.to_string().contains("node 2 (b) at 10.0."), "{refused}");
        let unknown = caller.call(ServiceId(99), Body::default(), SECOND).unwrap_err();
        assert!(unknown.was_not_executed() && unknown.to_string().contains("service 99"));
        let statistics = caller.statistics();
        assert_eq!((statistics.calls, statistics.failures, statistics.connections), (40, 2, 1));
        assert_eq!(statistics.latencies.iter().sum::<u64>(), 40);
        let served = &server.peers()[0];
        assert_eq!(served.peer.hello.identity.name, "a");
        assert_eq!(served.statistics.bytes_received, statistics.bytes_sent);
    });
}

#[test]
fn several_calls_leave_in_one_write() {
    for_each_seed(0..10, |world| {
        let record = Record::default();
        let (_b, server) = start_server(world, &record);
        let (_a, caller) = start_client(world);
        assert!(caller.wait_until_up(SECOND));
        let before = caller.statistics().writes;
        let bodies = |count: u64| (100..100 + count).map(|number| Body::from(request(number, MS)));
        let calls = caller.begin_all(SHORT, bodies(20), 60 * SECOND);
        assert_eq!(caller.statistics().writes - before, 1);
        for (number, call) in calls.into_iter().enumerate() {
            assert_eq!(word(&call.unwrap().wait().unwrap(), 0), number as u64 + 100);
        }
        assert_eq!(server.peers()[0].statistics.writes, 1, "so do their answers");
        // More than the window has: the rest follows as the first are answered.
        let calls = caller.begin_all(SHORT, bodies(500), 60 * SECOND);
        for (number, call) in calls.into_iter().enumerate() {
            assert_eq!(word(&call.unwrap().wait().unwrap(), 0), number as u64 + 100);
        }
    });
}

#[test]
fn threads_that_call_at_once_share_writes() {
    let all = Arc::new(parking_lot::Mutex::new((0, 0)));
    let seen = Arc::clone(&all);
    for_each_seed(0..20, move |world| {
        let record = Record::default();
        let (_b, _server) = start_server(world, &record);
        let (a, caller) = start_client(world);
        let tasks: Vec<_> = (0..8)
            .map(|task| {
                let caller = Arc::clone(&caller);
                a.spawn("caller", move |_| {
                    for number in 0..10 {
                        let number = 1000 * task + number + 100;
                        let reply =
                            caller.call(SHORT, request(number, Duration::ZERO), 60 * SECOND);
                        assert_eq!(word(&reply.unwrap(), 0), number);
                    }
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
        let statistics = caller.statistics();
        assert_eq!((statistics.items_sent, statistics.calls), (80, 80));
        let mut all = seen.lock();
        all.0 += statistics.writes;
        all.1 += statistics.items_sent;
    });
    let (writes, items) = *all.lock();
    assert!(writes < items, "{writes} writes for {items} items");
}

#[test]
fn casts_keep_their_order_and_give_their_room_back() {
    for_each_seed(0..30, |world| {
        for service in [WORK, SHORT] {
            let record = Record::default();
            let (b, _server) = start_server(world, &record);
            let (a, caller) = start_client(world);
            // Many times the window.
            for number in 0..600 {
                let takes = if number % 50 == 0 { MS } else { Duration::ZERO };
                caller.cast(service, request(number, takes), 60 * SECOND).unwrap();
            }
            let reply = caller.call(SHORT, request(700, Duration::ZERO), 60 * SECOND);
            assert_eq!(word(&reply.unwrap(), 0), 700);
            sleep(SECOND);
            assert_eq!(record.lock().casts, (0..600).collect::<Vec<_>>());
            b.kill();
            a.kill();
        }
    });
}

#[test]
fn room_of_casts_comes_back_in_few_messages_and_at_once_when_it_is_missed() {
    for_each_seed(0..30, |world| {
        let record = Record::default();
        let (_b, server) = start_server(world, &record);
        let (_a, caller) = start_client(world);
        for number in 0..600 {
            caller.cast(SHORT, request(number, Duration::ZERO), 60 * SECOND).unwrap();
            sleep(MS);
        }
        // A request counts for 16 bytes and its header, and a quarter of the window comes back.
        let writes = server.peers()[0].statistics.writes;
        assert!((1..100).contains(&writes), "{writes} messages for the room of 600 casts");
        // What is left of the window would not do.
        let mut long = request(600, Duration::ZERO);
        long.resize(WINDOW as usize - 64, 0);
        let began = task::monotonic();
        caller.cast(SHORT, long, 60 * SECOND).unwrap();
        assert!(task::monotonic() - began < SECOND, "it waited for the casts before it");
    });
}

#[test]
fn a_cast_at_once_is_sent_or_refused_without_a_wait() {
    for_each_seed(0..30, |world| {
        let (_a, caller) = start_client(world);
        let cast = |number| caller.cast_at_once(SHORT, request(number, Duration::ZERO).into());
        assert!(!cast(1), "there is no connection");
        let record = Record::default();
        let (_b, _server) = start_server(world, &record);
        assert!(caller.wait_until_up(60 * SECOND));
        let sent: Vec<_> = (0..1_000).filter(|number| cast(*number)).collect();
        assert!(!sent.is_empty() && sent.len() < 1_000, "the window is not for all of them");
        sleep(SECOND);
        assert_eq!(record.lock().casts, sent);
    });
}

#[test]
fn a_link_that_sends_only_casts_stays_up() {
    for_each_seed(0..3, |world| {
        let record = Record::default();
        let (_b, _server) = start_server(world, &record);
        let (_a, caller) = start_client(world);
        // The server has nothing to say for longer than the silence that ends a link.
        for number in 0..20 {
            caller.cast(SHORT, request(number, Duration::ZERO), 60 * SECOND).unwrap();
            sleep(SECOND);
        }
        assert_eq!(caller.connections(), 1);
        assert_eq!(record.lock().casts, (0..20).collect::<Vec<_>>());
    });
}

#[test]
fn a_slow_server_slows_its_callers_and_not_its_memory_up() {
    for_each_seed(0..20, |world| {
        let record = Record::default();
        let (_b, server) = start_server(world, &record);
        let (a, caller) = start_client(world);
        let tasks: Vec<_> = (0..6)
            .map(|task: u64| {
                let caller = Arc::clone(&caller);
                a.spawn("caller", move |_| {
                    for number in 0..6 {
                        let mut body = request(100 * (task + 1) + number, 5 * MS);
                        body.resize(1000, 0);
                        caller.call(WORK, body, 60 * SECOND).unwrap();
                    }
                })
            })
            .collect();
        let mut most = 0;
        while record.lock().calls.len() < 36 {
            sleep(MS);
            let received = server.peers().first().map_or(0, |peer| peer.statistics.bytes_received);
            // Less what is executed or was: 1,024 bytes each.
            let waiting = received.saturating_sub(1024 * record.lock().calls.len() as u64);
            most = most.max(waiting);
        }
        tasks.into_iter().for_each(|task| task.join().unwrap());
        assert!(most <= u64::from(WINDOW), "{most} bytes waited in the server");
    });
}

#[test]
fn a_request_longer_than_the_window_is_sent_alone() {
    for_each_seed(0..10, |world| {
        let record = Record::default();
        let (_b, _server) = start_server(world, &record);
        let (_a, caller) = start_client(world);
        let first = caller.begin(WORK, request(1, 20 * MS), SECOND).unwrap();
        let mut long = request(2, Duration::ZERO);
        long.resize(100_000, 7);
        let early = caller.call(WORK, long.clone(), 5 * MS).unwrap_err();
        assert!(matches!(early, CallError::NotSent { .. }), "{early}");
        assert_eq!(word(&caller.call(WORK, long, SECOND).unwrap(), 0), 2);
        assert_eq!(word(&first.wait().unwrap(), 0), 1);
        let too_long = caller.call(WORK, vec![0; MAX_PAYLOAD_BYTES + 1], SECOND).unwrap_err();
        assert!(too_long.to_string().contains("exceed the limit"), "{too_long}");
    });
}

#[test]
fn what_nobody_waits_for_any_more_is_not_executed() {
    for_each_seed(0..30, |world| {
        let record = Record::default();
        let (_b, _server) = start_server(world, &record);
        let (_a, caller) = start_client(world);
        // Both workers are busy for a while.
        let busy: Vec<_> =
            (1..3).map(|n| caller.begin(WORK, request(n, 50 * MS), SECOND).unwrap()).collect();
        let late = caller.call(WORK, request(3, Duration::ZERO), 10 * MS).unwrap_err();
        assert!(matches!(late, CallError::Unknown { .. }), "{late}");
        drop(caller.begin(WORK, request(4, Duration::ZERO), SECOND).unwrap());
        busy.into_iter().for_each(|call| drop(call.wait().unwrap()));
        assert_eq!(word(&caller.call(WORK, request(5, MS), SECOND).unwrap(), 0), 5);
        let record = record.lock();
        let mut calls = record.calls.clone();
        calls.sort_unstable();
        assert_eq!(calls, [1, 2, 5]);
    });
}

#[test]
fn a_service_that_works_long_sees_that_its_caller_has_left() {
    for_each_seed(0..10, |world| {
        let record = Record::default();
        let (_b, _server) = start_server(world, &record);
        let (_a, caller) = start_client(world);
        let left = caller.call(WORK, request(1, 50 * MS), 20 * MS).unwrap_err();
        assert!(matches!(left, CallError::Unknown { .. }) && !left.was_not_executed());
        sleep(100 * MS);
        assert_eq!(record.lock().cancelled, 1);
    });
}

#[test]
fn without_a_server_a_call_ends_by_its_deadline_and_was_not_sent() {
    for_each_seed(0..10, |world| {
        let (a, caller) = start_client(world);
        let began = a.environment().clock.monotonic();
        let error = caller.call(WORK, request(1, MS), 300 * MS).unwrap_err();
        let took = a.environment().clock.monotonic() - began;
        assert!(matches!(error, CallError::NotSent { .. }), "{error}");
        assert!((300 * MS..310 * MS).contains(&took), "{took:?}");
        assert!(caller.cast(WORK, request(1, MS), Duration::ZERO).is_err());
        // A server that starts later is found.
        let record = Record::default();
        let (_b, _server) = start_server(world, &record);
        assert_eq!(word(&caller.call(WORK, request(2, MS), 60 * SECOND).unwrap(), 0), 2);
        assert_eq!(record.lock().calls, [2]);
    });
}

#[test]
fn a_peer_without_power_is_noticed_by_its_silence() {
    for_each_seed(0..10, |world| {
        let record = Record::default();
        let (b, _server) = start_server(world, &record);
        let (_a, caller) = start_client(world);
        caller.call(WORK, request(1, MS), SECOND).unwrap();
        let call = caller.begin(WORK, request(2, 3600 * SECOND), 3600 * SECOND).unwrap();
        b.crash();
        let error = call.wait().unwrap_err();
        assert!(matches!(error, CallError::Unknown { .. }), "{error}");
        let (_b, _server) = start_server(world, &record);
        assert_eq!(word(&caller.call(WORK, request(3, MS), 60 * SECOND).unwrap(), 0), 3);
        assert_eq!(caller.statistics().connections, 2);
    });
}

#[test]
fn a_link_to_a_name_finds_the_host_that_has_it_now() {
    for_each_seed(0..10, |world| {
        let record = Record::default();
        let client = world.start("a", &world.new_disk());
        let mut settings = CallerSettings::new(format!("database:{PORT}").parse().unwrap());
        settings.connect_timeout = SECOND;
        let caller = Caller::new(&client.environment(), node(1, 1, "a", 0), settings);
        let unknown = caller.call(WORK, request(0, MS), 300 * MS).unwrap_err();
        assert!(matches!(unknown, CallError::NotSent { .. }), "{unknown}");
        assert!(unknown.to_string().contains("database:7000 cannot be resolved"), "{unknown}");
        for (number, host) in [(1, "b"), (2, "c"), (3, "b")] {
            let process = world.start(host, &world.new_disk());
            let _server = serve(&process, node(1, 2, "database", 0), &record);
            world.network().give_name("database", host);
            let answer = caller.call(WORK, request(number, MS), 60 * SECOND).unwrap();
            assert_eq!(word(&answer, 0), number);
            process.crash();
            // The machine tells nobody; the link notices by its silence.
            let lost = caller.call(WORK, request(9, MS), 60 * SECOND).unwrap_err();
            assert!(matches!(lost, CallError::Unknown { .. }), "{lost}");
        }
        assert_eq!(record.lock().calls, [1, 2, 3]);
    });
}

#[test]
fn an_idle_link_stays() {
    for_each_seed(0..5, |world| {
        let record = Record::default();
        let (_b, _server) = start_server(world, &record);
        let (_a, caller) = start_client(world);
        caller.call(WORK, request(1, MS), SECOND).unwrap();
        // A call that takes long keeps the connection as well.
        let long = caller.begin(WORK, request(2, 200 * SECOND), 3600 * SECOND).unwrap();
        assert_eq!(word(&long.wait().unwrap(), 0), 2);
        sleep(300 * SECOND);
        assert_eq!(caller.statistics().connections, 1);
    });
}

#[test]
fn closing_ends_the_calls_and_the_tasks() {
    for_each_seed(0..20, |world| {
        let record = Record::default();
        let (_b, server) = start_server(world, &record);
        let (_a, caller) = start_client(world);
        let call = caller.begin(WORK, request(1, 20 * MS), 60 * SECOND).unwrap();
        sleep(5 * MS);
        caller.close();
        assert!(matches!(call.wait(), Err(CallError::Unknown { .. })));
        let closed = caller.call(WORK, request(2, MS), 60 * SECOND).unwrap_err();
        assert!(matches!(closed, CallError::NotSent { .. }), "{closed}");
        let (_c, other) = start_client(world);
        let call = other.begin(WORK, request(3, 20 * MS), 60 * SECOND).unwrap();
        sleep(5 * MS);
        server.close();
        assert!(matches!(call.wait(), Err(CallError::Unknown { .. })));
        assert!(server.peers().is_empty());
    });
}

#[test]
fn runs_with_links_replay_from_their_seeds() {
    assert_replays(0..10, |world| {
        world.network().set_faults(LinkFaults { reset: 0.02, loss: 0.1, ..LinkFaults::default() });
        let record = Record::default();
        let (_b, _server) = start_server(world, &record);
        let (a, caller) = start_client(world);
        let tasks: Vec<_> = (0..3)
            .map(|task| {
                let caller = Arc::clone(&caller);
                a.spawn("caller", move |_| {
                    for number in 0..20 {
                        let _ = caller.call(WORK, request(100 * task + number, MS), SECOND);
                    }
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
    });
}
