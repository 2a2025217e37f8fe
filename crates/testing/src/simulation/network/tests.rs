use std::sync::Arc;
use std::time::Duration;

use firn_base::Environment;
use firn_base::network::{
    Address, Connection, Delivery, Listener, MAX_MESSAGE_BYTES, NetworkError, NetworkResult,
};
use firn_base::task::sleep;
use parking_lot::Mutex;

use super::{LinkFaults, NetworkCounters};
use crate::simulation::{Process, Simulation, World, assert_replays, first_failure, for_each_seed};

const MS: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_secs(60);
const PORT: u16 = 7000;

/// Two processes, `a` and `b`, each on its own host.
fn two(world: &World) -> (Process, Process) {
    let start = |name| world.start(name, &world.new_disk());
    (start("a"), start("b"))
}

fn listen(environment: &Environment, address: &Address) -> Box<dyn Listener> {
    environment.network.listen(address).unwrap()
}

fn connect(
    environment: &Environment,
    address: &Address,
    delivery: Delivery,
) -> NetworkResult<Arc<dyn Connection>> {
    environment.network.connect(address, delivery, PATIENCE)
}

/// A connection from `a` to `b`: both ends. The tasks of this module may use either.
fn joined(
    a: &Process,
    b: &Process,
    delivery: Delivery,
) -> (Arc<dyn Connection>, Arc<dyn Connection>) {
    let address = b.address(PORT);
    let listener = listen(&b.environment(), &address);
    let here = connect(&a.environment(), &address, delivery).unwrap();
    (here, listener.accept(Some(PATIENCE)).unwrap())
}

fn number(message: &[u8]) -> u64 {
    u64::from_le_bytes(message.try_into().unwrap())
}

fn send(connection: &dyn Connection, number: u64) -> NetworkResult<()> {
    connection.send(&[&number.to_le_bytes()], PATIENCE)
}

fn receive(connection: &dyn Connection, timeout: Duration) -> NetworkResult<u64> {
    let mut message = Vec::new();
    connection.receive(&mut message, Some(timeout)).map(|()| number(&message))
}

/// All numbers that arrive, until none has come for a while or the connection ends.
fn receive_all(connection: &dyn Connection) -> Vec<u64> {
    std::iter::from_fn(|| receive(connection, PATIENCE).ok()).collect()
}

fn is_timeout<T>(result: &NetworkResult<T>) -> bool {
    matches!(result, Err(NetworkError::TimedOut { .. }))
}

fn is_end<T>(result: &NetworkResult<T>) -> bool {
    matches!(result, Err(NetworkError::Ended { .. }))
}

/// Two processes that exchange messages: `b` answers each number with its double.
fn exchange(world: &World) -> NetworkCounters {
    let (a, b) = two(world);
    let address = b.address(PORT);
    let server = b.spawn("server", {
        let address = address.clone();
        move |environment| {
            let listener = listen(environment, &address);
            let connection = listener.accept(None).unwrap();
            while let Ok(number) = receive(&*connection, PATIENCE) {
                send(&*connection, 2 * number).unwrap();
            }
        }
    });
    // The connection is refused until there is a listener.
    let connection = std::iter::repeat_with(|| {
        sleep(MS);
        connect(&a.environment(), &address, Delivery::InOrder)
    });
    let connection = connection.into_iter().find_map(Result::ok).unwrap();
    for asked in 0..50 {
        send(&*connection, asked).unwrap();
        assert_eq!(receive(&*connection, PATIENCE).unwrap(), 2 * asked);
    }
    connection.close();
    server.join().unwrap();
    world.network().counters()
}

#[test]
fn two_processes_exchange_messages() {
    for_each_seed(0..50, |world| {
        let counters = exchange(world);
        assert_eq!((counters.sent, counters.received, counters.lost), (100, 100, 0));
    });
}

#[test]
fn runs_with_a_network_replay_from_their_seeds() {
    assert_replays(0..20, |world| {
        world.network().set_faults(LinkFaults { loss: 0.2, ..LinkFaults::default() });
        exchange(world);
    });
}

#[test]
fn order_is_kept_where_it_is_promised_whatever_is_lost_on_the_way() {
    for_each_seed(0..50, |world| {
        let (a, b) = two(world);
        let delay = Duration::ZERO..=20 * MS;
        let faults = LinkFaults { delay, loss: 0.3, duplication: 0.3, ..LinkFaults::default() };
        world.network().set_faults(faults);
        let (here, there) = joined(&a, &b, Delivery::InOrder);
        (0..100).for_each(|number| send(&*here, number).unwrap());
        here.close();
        assert_eq!(receive_all(&*there), (0..100).collect::<Vec<_>>());
        assert!(world.network().counters().repeated > 0);
    });
}

#[test]
fn loose_messages_are_lost_doubled_and_overtaken() {
    let seen = Arc::new(Mutex::new((false, false, false)));
    let all = Arc::clone(&seen);
    for_each_seed(0..20, move |world| {
        let (a, b) = two(world);
        let delay = Duration::ZERO..=20 * MS;
        let faults = LinkFaults { delay, loss: 0.1, duplication: 0.1, ..LinkFaults::default() };
        world.network().set_faults(faults);
        let (here, there) = joined(&a, &b, Delivery::Loose);
        (0..100).for_each(|number| send(&*here, number).unwrap());
        let received = receive_all(&*there);
        let counters = world.network().counters();
        assert_eq!(received.len() as u64, 100 - counters.lost + counters.doubled);
        let mut distinct = received.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert!(distinct.iter().all(|number| *number < 100));
        let mut all = all.lock();
        all.0 |= distinct.len() < 100;
        all.1 |= distinct.len() < received.len();
        all.2 |= !received.is_sorted();
    });
    assert_eq!(*seen.lock(), (true, true, true));
}

#[test]
fn a_cut_in_one_direction_leaves_the_other() {
    for_each_seed(0..20, |world| {
        let (a, b) = two(world);
        let network = world.network();
        let (here, there) = joined(&a, &b, Delivery::InOrder);
        send(&*here, 1).unwrap();
        network.cut("a", "b");
        send(&*here, 2).unwrap();
        send(&*there, 3).unwrap();
        assert_eq!(receive(&*here, PATIENCE).unwrap(), 3);
        assert!(is_timeout(&receive(&*there, PATIENCE)), "1 was under way");
        let again = connect(&a.environment(), &b.address(PORT), Delivery::InOrder).map(drop);
        assert!(is_timeout(&again), "{again:?}");
        network.heal();
        assert_eq!(receive_all(&*there), [1, 2]);
    });
}

#[test]
fn a_connection_that_is_reset_has_delivered_a_prefix() {
    let lengths = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&lengths);
    for_each_seed(0..50, move |world| {
        let (a, b) = two(world);
        world.network().set_faults(LinkFaults { reset: 0.05, ..LinkFaults::default() });
        let (here, there) = joined(&a, &b, Delivery::InOrder);
        let sender = world.spawn("sender", move || {
            (0..100).take_while(|number| send(&*here, *number).is_ok()).count()
        });
        let received = receive_all(&*there);
        let sent = sender.join().unwrap();
        assert_eq!(received, (0..received.len() as u64).collect::<Vec<_>>());
        assert!(received.len() <= sent);
        all.lock().push((received.len(), sent));
    });
    let lengths = lengths.lock();
    assert!(lengths.iter().any(|(received, sent)| received < sent), "something was lost");
    assert!(lengths.iter().any(|(_, sent)| *sent < 100), "a sender was told");
}

#[test]
fn the_peers_of_a_killed_process_are_told() {
    for_each_seed(0..20, |world| {
        let (a, b) = two(world);
        let (here, there) = joined(&a, &b, Delivery::InOrder);
        let waiting = world.spawn("receiver", move || receive(&*here, PATIENCE));
        sleep(MS);
        b.kill();
        assert!(is_end(&waiting.join().unwrap()));
        assert!(is_end(&send(&*there, 1)), "a dead process sends nothing");
        let refused = connect(&a.environment(), &b.address(PORT), Delivery::InOrder).map(drop);
        assert!(matches!(refused, Err(NetworkError::Refused { .. })), "{refused:?}");
    });
}

#[test]
fn nobody_tells_the_peers_of_a_machine_without_power_until_it_is_back() {
    for_each_seed(0..20, |world| {
        let (a, b) = two(world);
        let (here, _there) = joined(&a, &b, Delivery::InOrder);
        b.crash();
        send(&*here, 1).unwrap();
        assert!(is_timeout(&receive(&*here, PATIENCE)));
        let silent = connect(&a.environment(), &b.address(PORT), Delivery::InOrder).map(drop);
        assert!(is_timeout(&silent), "{silent:?}");
        let b = world.start("b", &world.new_disk());
        send(&*here, 2).unwrap();
        assert!(is_end(&receive(&*here, PATIENCE)));
        let (here, there) = joined(&a, &b, Delivery::InOrder);
        send(&*here, 3).unwrap();
        assert_eq!(receive(&*there, PATIENCE).unwrap(), 3);
    });
}

#[test]
fn a_paused_peer_goes_on_where_it_stood() {
    for_each_seed(0..20, |world| {
        let (a, b) = two(world);
        let address = b.address(PORT);
        let server = b.spawn("server", {
            let address = address.clone();
            move |environment| {
                let connection = listen(environment, &address).accept(None).unwrap();
                let number = receive(&*connection, PATIENCE * 2).unwrap();
                send(&*connection, number + 1).unwrap();
                drop(receive(&*connection, PATIENCE));
            }
        });
        sleep(MS);
        let here = connect(&a.environment(), &address, Delivery::InOrder).unwrap();
        sleep(MS);
        b.pause();
        send(&*here, 1).unwrap();
        assert!(is_timeout(&receive(&*here, PATIENCE)));
        b.resume();
        assert_eq!(receive(&*here, PATIENCE).unwrap(), 2);
        b.pause();
        b.kill();
        assert!(server.join().is_err(), "a paused process can be killed");
    });
}

#[test]
fn a_slow_receiver_holds_up_the_sender() {
    for_each_seed(0..10, |world| {
        let (a, b) = two(world);
        let (here, there) = joined(&a, &b, Delivery::InOrder);
        let large = vec![1; 300 << 10];
        let clock = world.clock();
        let before = clock.monotonic();
        let sent = (0..10).take_while(|_| here.send(&[&large], MS).is_ok()).count();
        assert_eq!(sent, 3, "more than a window of 1 MiB");
        assert!(clock.monotonic() - before >= MS);
        assert!(is_end(&send(&*here, 1)), "a message that was given up ends the connection");
        assert!(there.receive(&mut Vec::new(), Some(PATIENCE)).is_ok());
    });
}

#[test]
fn a_narrow_link_takes_its_time() {
    for_each_seed(0..10, |world| {
        let (a, b) = two(world);
        let (here, there) = joined(&a, &b, Delivery::InOrder);
        let faults = LinkFaults { bytes_per_second: Some(1 << 20), ..LinkFaults::default() };
        world.network().set_link("a", "b", faults);
        let before = world.clock().monotonic();
        for _ in 0..2 {
            here.send(&[&vec![0; 256 << 10]], PATIENCE).unwrap();
        }
        let mut message = Vec::new();
        (0..2).for_each(|_| there.receive(&mut message, Some(PATIENCE)).unwrap());
        let took = world.clock().monotonic() - before;
        assert!(took >= 500 * MS && took < 510 * MS, "{took:?}");
    });
}

/// A protocol with an error that only the network reveals: a message that is repeated over a new
/// connection may be counted twice.
fn count_to_ten(world: &World) {
    let (a, b) = two(world);
    world.network().set_faults(LinkFaults { reset: 0.05, ..LinkFaults::default() });
    let total = Arc::new(Mutex::new(0));
    let (counter, address) = (Arc::clone(&total), b.address(PORT));
    b.spawn("server", move |environment| {
        let listener = listen(environment, &address);
        loop {
            let connection = listener.accept(None).unwrap();
            while let Ok(number) = receive(&*connection, PATIENCE) {
                *counter.lock() += number;
                if send(&*connection, number).is_err() {
                    break;
                }
            }
        }
    });
    sleep(MS);
    for _ in 0..10 {
        let add_one = || {
            let connection = connect(&a.environment(), &b.address(PORT), Delivery::InOrder)?;
            send(&*connection, 1)?;
            receive(&*connection, PATIENCE)
        };
        while add_one().is_err() {}
    }
    assert_eq!(*total.lock(), 10, "a message was counted twice");
}

#[test]
fn a_message_that_is_repeated_without_need_is_found() {
    let failure = first_failure(0..200, count_to_ten).expect("a seed loses an answer");
    assert!(failure.cause.is_panic_with("counted twice"), "{failure}");
}

/// The behaviour of every network without faults.
fn obeys_the_contract(a: &Environment, b: &Environment, address: &Address) {
    let refused = connect(a, address, Delivery::InOrder).map(drop);
    assert!(matches!(refused, Err(NetworkError::Refused { .. })), "{refused:?}");
    let listener = listen(b, address);
    assert_eq!(listener.address(), *address);
    assert!(is_timeout(&listener.accept(Some(MS)).map(drop)));
    for delivery in [Delivery::InOrder, Delivery::Loose] {
        let here = connect(a, address, delivery).unwrap();
        let there = listener.accept(Some(PATIENCE)).unwrap();
        assert_eq!(here.peer(), address);
        assert!(is_timeout(&receive(&*there, MS)));
        here.send(&[b"to", b"", b"gether"], PATIENCE).unwrap();
        let mut message = b"before".to_vec();
        there.receive(&mut message, Some(PATIENCE)).unwrap();
        assert_eq!(message, b"together");
        let long = vec![0; MAX_MESSAGE_BYTES / 2 + 1];
        let too_long = here.send(&[&long, &long], PATIENCE);
        assert!(matches!(too_long, Err(NetworkError::TooLong { .. })));
        send(&*there, 1).unwrap();
        send(&*there, 2).unwrap();
        there.close();
        let mut last = receive_all(&*here);
        last.sort_unstable();
        assert_eq!(last, [1, 2]);
        assert!(is_end(&receive(&*here, PATIENCE)) && is_end(&receive(&*there, PATIENCE)));
        assert!(is_end(&send(&*there, 3)));
    }
    assert!(matches!(b.network.listen(address).map(drop), Err(NetworkError::System { .. })));
    let unaccepted = connect(a, address, Delivery::InOrder).unwrap();
    listener.close();
    assert!(is_end(&listener.accept(None).map(drop)));
    drop(listener);
    assert!(is_end(&receive(&*unaccepted, PATIENCE)));
    drop(listen(b, address));
}

#[test]
fn the_simulated_network_and_the_systems_obey_one_contract() {
    let directory = tempfile::tempdir().unwrap();
    let path = Address::Unix(directory.path().join("socket"));
    let system = Environment::system();
    let free = listen(&system, &"127.0.0.1:0".parse().unwrap()).address();
    for address in [free, path.clone()] {
        obeys_the_contract(&system, &system, &address);
    }
    for_each_seed(0..20, move |world| {
        let (a, b) = two(world);
        obeys_the_contract(&a.environment(), &b.environment(), &b.address(PORT));
        obeys_the_contract(&a.environment(), &a.environment(), &path);
    });
}

#[test]
fn a_unix_socket_is_known_on_its_own_host_alone() {
    Simulation::new(1).run(|world| {
        let (a, b) = two(world);
        let address: Address = "unix:/run/firn".parse().unwrap();
        let listener = listen(&a.environment(), &address);
        drop(connect(&a.environment(), &address, Delivery::InOrder).unwrap());
        listener.accept(Some(PATIENCE)).unwrap();
        let elsewhere = connect(&b.environment(), &address, Delivery::InOrder).map(drop);
        assert!(matches!(elsewhere, Err(NetworkError::Refused { .. })));
        let taken = a.environment().network.listen(&address).map(drop);
        assert!(matches!(taken, Err(NetworkError::System { .. })));
    });
}

#[test]
fn a_name_leads_to_the_host_that_has_it_now() {
    Simulation::new(1).run(|world| {
        let (a, b) = two(world);
        let c = world.start("c", &world.new_disk());
        let listeners = [&b, &c].map(|process| {
            listen(&process.environment(), &format!("0.0.0.0:{PORT}").parse().unwrap())
        });
        let named = |name: &str| format!("{name}:{PORT}").parse::<Address>().unwrap();
        let connect = |name: &str| connect(&a.environment(), &named(name), Delivery::InOrder);
        let unknown = connect("database").map(drop);
        assert!(matches!(unknown, Err(NetworkError::Unresolved { .. })), "{unknown:?}");
        for (name, listener) in [("b", 0), ("database", 0), ("database", 1)] {
            world.network().give_name("database", ["b", "c"][listener]);
            let here = connect(name).unwrap();
            assert_eq!(*here.peer(), named(name));
            send(&*here, 7).unwrap();
            let there = listeners[listener].accept(Some(PATIENCE)).unwrap();
            assert_eq!(receive(&*there, PATIENCE).unwrap(), 7);
        }
    });
}
