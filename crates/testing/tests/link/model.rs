//! The outcome of each request fits what the servers executed, whatever happens to connections and
//! processes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use firn_base::task::sleep;
use firn_link::{CallError, Caller, Next, Payload};
use firn_testing::random::Random;
use firn_testing::simulation::{LinkFaults, World, for_each_seed};
use parking_lot::Mutex;

use crate::support::{
    MS, ONCE, Record, SECOND, SHORT, WORK, request, start_client, start_server, word,
};

/// What a client knows of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Replied,
    NotExecuted,
    Unknown,
}

type Outcomes = Arc<Mutex<BTreeMap<u64, Outcome>>>;

/// As a call, with a connection of its own.
fn exchange(caller: &Caller, body: Vec<u8>, patience: Duration) -> Result<Payload, CallError> {
    match caller.exchange(ONCE, body, 1000, patience)?.next(Some(patience))? {
        Next::End(reply) => Ok(reply),
        Next::Message(_) => panic!("the service pushes nothing"),
        Next::Nothing => {
            Err(CallError::Unknown { peer: Arc::from("b"), reason: Arc::from("no answer in time") })
        }
    }
}

fn call(caller: &Caller, random: &Random, number: u64) -> Outcome {
    let service = if random.chance(0.5) { WORK } else { SHORT };
    let takes = MS * random.below(4) as u32;
    let patience = MS * (1 + random.below(60) as u32);
    let called = match random.chance(0.3) {
        true => exchange(caller, request(number, takes), patience),
        false => caller.call(service, request(number, takes), patience),
    };
    match called {
        Ok(reply) => {
            assert_eq!(word(&reply, 0), number, "the reply of another call");
            Outcome::Replied
        }
        Err(error) if error.was_not_executed() => Outcome::NotExecuted,
        Err(CallError::Unknown { .. }) => Outcome::Unknown,
        Err(error) => panic!("the service refuses only 13: {error}"),
    }
}

/// Cuts, heals, kills and starts again until the clients are done.
fn disturb(world: &World, random: &Random, record: &Record, is_done: impl Fn() -> bool) {
    let network = world.network();
    let (mut b, mut server) = start_server(world, record);
    while !is_done() {
        sleep(MS * (1 + random.below(30) as u32));
        match random.below(8) {
            0 => network.cut("a", "b"),
            1 => network.cut("b", "a"),
            2 | 3 => network.heal(),
            4 => {
                b.kill();
                (b, server) = start_server(world, record);
            }
            5 => {
                b.crash();
                (b, server) = start_server(world, record);
            }
            6 => {
                b.pause();
                sleep(MS * random.below(20) as u32);
                b.resume();
            }
            _ => {}
        }
    }
    network.heal();
    drop(server);
}

#[test]
fn every_outcome_fits_what_was_executed() {
    let seen = Arc::new(Mutex::new(BTreeMap::<Outcome, u64>::new()));
    let all = Arc::clone(&seen);
    for_each_seed(0..60, move |world| {
        let random = world.random();
        let delay = Duration::ZERO..=3 * MS;
        let faults = LinkFaults { delay, loss: 0.02, reset: 0.02, ..LinkFaults::default() };
        world.network().set_faults(faults);
        let record = Record::default();
        let (a, caller) = start_client(world);
        let outcomes = Outcomes::default();
        let running = Arc::new(Mutex::new(3));
        for task in 1..4_u64 {
            let (caller, outcomes) = (Arc::clone(&caller), Arc::clone(&outcomes));
            let (random, running) = (world.random(), Arc::clone(&running));
            a.spawn("caller", move |_| {
                for number in 0..30 {
                    let number = task * 1000 + number;
                    let outcome = call(&caller, &random, number);
                    outcomes.lock().insert(number, outcome);
                    if random.chance(0.3) {
                        let _ = caller.cast(WORK, request(number, Duration::ZERO), Duration::ZERO);
                    }
                }
                *running.lock() -= 1;
            });
        }
        disturb(world, &random, &record, || *running.lock() == 0);
        // What may still be on its way arrives.
        sleep(60 * SECOND);
        let record = record.lock();
        let times = |list: &[u64], number| list.iter().filter(|one| **one == number).count();
        for (number, outcome) in &*outcomes.lock() {
            let executed = times(&record.calls, *number);
            let fits = match outcome {
                Outcome::Replied => executed == 1,
                Outcome::NotExecuted => executed == 0,
                Outcome::Unknown => executed <= 1,
            };
            assert!(fits, "{number}: {outcome:?}, executed {executed} times");
            assert!(times(&record.casts, *number) <= 1, "a cast came twice");
            *all.lock().entry(*outcome).or_default() += 1;
        }
        assert_eq!(outcomes.lock().len(), 90);
    });
    let seen = seen.lock();
    assert_eq!(seen.len(), 3, "some outcome never came: {seen:?}");
}
