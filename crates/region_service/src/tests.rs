//! Peers and owners in simulated processes, over a network that delays, resets and cuts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_base::network::{ClusterId, NodeId, NodeIdentity, Role, Roles};
use firn_base::task::sleep;
use firn_fabric::conformance::obeys_the_contract;
use firn_fabric::{Batch, Epoch, Fabric, FabricError, InProcessFabric, OwnedRegion, Peer};
use firn_link::{Caller, CallerSettings, LocalNode, Server, ServerSettings};
use firn_testing::simulation::{LinkFaults, Process, World, for_each_seed};

use crate::message::{Answer, Ask, Change, MOST_WORDS, Run, SentAct, decode, encode};
use crate::{MOST_PEERS, REGION_SERVICE, RegionService, RemotePeer};

const MS: Duration = Duration::from_millis(1);
const TIMEOUT: Duration = Duration::from_millis(200);
const PORT: u16 = 7000;

/// The owner's process.
struct Owner {
    process: Process,
    service: Arc<RegionService>,
    /// Ends with this value.
    _server: Server,
}

fn node(number: u64, name: &str) -> Arc<LocalNode> {
    let (cluster, node) = (ClusterId(1), NodeId(number));
    let roles = Roles::of(&[Role::Database]);
    Arc::new(LocalNode::new(NodeIdentity { cluster, node, name: name.to_owned(), roles }, 0))
}

fn start_owner(world: &World) -> Owner {
    let process = world.start("b", &world.new_disk());
    let service = RegionService::new();
    let server = Server::start(
        &process.environment(),
        node(2, "b"),
        &process.address(PORT),
        ServerSettings::default(),
        vec![service.offer()],
    );
    Owner { process, service, _server: server.unwrap() }
}

impl Owner {
    /// Begins an epoch with a region of four words.
    fn begin(&self, epoch: u64) -> (InProcessFabric, OwnedRegion) {
        let fabric = InProcessFabric::new(Epoch(epoch));
        let region = fabric.register("words", 4).unwrap();
        self.service.begin(Epoch(epoch), fabric.peer());
        (fabric, region)
    }
}

fn start_caller(world: &World) -> (Process, Arc<Caller>) {
    let process = world.start("a", &world.new_disk());
    let address = world.network().address("b", PORT);
    let settings = CallerSettings { silence: 3 * TIMEOUT, ..CallerSettings::new(address) };
    let caller = Caller::new(&process.environment(), node(1, "a"), settings);
    assert!(caller.wait_until_up(100 * TIMEOUT));
    (process, Arc::new(caller))
}

fn peer(process: &Process, caller: &Arc<Caller>, epoch: u64) -> RemotePeer {
    let random = process.environment().random;
    RemotePeer::new(Arc::clone(caller), Epoch(epoch), TIMEOUT, &*random)
}

fn is_stale<T>(answered: &Result<T, FabricError>) -> bool {
    matches!(answered, Err(FabricError::Stale { epoch: Epoch(1) }))
}

#[test]
fn regions_of_another_machine_obey_the_contract() {
    for_each_seed(0..20, |world| {
        let owner = start_owner(world);
        let fabric = InProcessFabric::new(Epoch(5));
        owner.service.begin(Epoch(5), fabric.peer());
        let (process, caller) = start_caller(world);
        let peer = peer(&process, &caller, 5);
        obeys_the_contract(&fabric, &peer);
        let long = peer.connect(&"n".repeat(1000)).map(drop);
        assert!(matches!(long, Err(FabricError::Unknown(_))));
        let region = fabric.register("large", MOST_WORDS + 1).unwrap();
        let seen = peer.connect("large").unwrap();
        assert_eq!(
            seen.read(0, &mut vec![0; MOST_WORDS + 1]),
            Err(FabricError::TooLarge { most: MOST_WORDS })
        );
        region.words()[MOST_WORDS].store(3, Ordering::SeqCst);
        let mut words = vec![0; 1000];
        seen.read(MOST_WORDS - 999, &mut words).unwrap();
        assert_eq!(words[999], 3);
    });
}

#[test]
fn nobody_reads_what_a_former_epoch_left_behind() {
    for_each_seed(0..20, |world| {
        let owner = start_owner(world);
        let (process, caller) = start_caller(world);
        let peer_of = |epoch| peer(&process, &caller, epoch);
        assert!(is_stale(&peer_of(1).connect("words")), "there is no owner yet");
        let first = owner.begin(1);
        let seen = peer_of(1).connect("words").unwrap();
        seen.write(0, &[7]).unwrap();
        drop(first);
        assert!(is_stale(&seen.read(0, &mut [0])), "the owner has taken leave");
        let _second = owner.begin(2);
        assert!(is_stale(&seen.read(0, &mut [0])), "another one has begun");
        assert!(is_stale(&seen.fetch_add(0, 1)));
        assert!(is_stale(&peer_of(1).connect("words")));
        let mut words = [9; 4];
        peer_of(2).connect("words").unwrap().read(0, &mut words).unwrap();
        assert_eq!(words, [0; 4]);
        owner.service.end();
        assert!(is_stale(&seen.read(0, &mut [0])));
    });
}

/// For fabrics that reach the memory itself.
#[test]
fn the_address_of_the_memory_is_that_of_one_epoch() {
    for_each_seed(0..3, |world| {
        let owner = start_owner(world);
        let (process, caller) = start_caller(world);
        let ask = |epoch| peer(&process, &caller, epoch).memory_address();
        assert!(is_stale(&ask(1)), "there is no owner yet");
        let first = owner.begin(1);
        assert_eq!(ask(1), Ok(None));
        owner.service.set_memory_address(Epoch(2), vec![2]);
        assert_eq!(ask(1), Ok(None), "the address is of another epoch");
        owner.service.set_memory_address(Epoch(1), vec![1]);
        assert_eq!(ask(1), Ok(Some(vec![1])));
        drop(first);
        let _second = owner.begin(2);
        assert!(is_stale(&ask(1)));
        assert_eq!(ask(2), Ok(None), "it was that of the first epoch");
    });
}

#[test]
fn an_owner_that_is_cut_off_or_dead_is_an_error_in_time() {
    for_each_seed(0..20, |world| {
        let owner = start_owner(world);
        let (_fabric, words) = owner.begin(1);
        let (process, caller) = start_caller(world);
        let seen = peer(&process, &caller, 1).connect("words").unwrap();
        let clock = process.environment().clock;
        let fails_in_time = || {
            let began = clock.monotonic();
            let failed = seen.read(0, &mut [0]).and_then(|()| seen.fetch_add(1, 1));
            let took = clock.monotonic() - began;
            assert!(took <= 2 * TIMEOUT, "{took:?}");
            failed.unwrap_err()
        };
        seen.read(0, &mut [0]).unwrap();
        for (from, to) in [("a", "b"), ("b", "a")] {
            world.network().cut(from, to);
            let error = fails_in_time();
            let is_known =
                matches!(error, FabricError::TimedOut { .. } | FabricError::Unreachable { .. });
            assert!(is_known, "{error}");
            words.words()[0].fetch_add(1, Ordering::SeqCst);
            world.network().heal();
            assert!(caller.wait_until_up(100 * TIMEOUT));
            let mut word = [0];
            while seen.read(0, &mut word).is_err() {
                sleep(MS);
            }
            assert_eq!(word[0], words.words()[0].load(Ordering::SeqCst), "an old value");
        }
        owner.process.kill();
        let error = fails_in_time();
        assert!(matches!(error, FabricError::Unreachable { .. }), "{error}");
    });
}

/// R2. Requests lie in connections that have ended while later ones are done.
#[test]
fn what_was_done_is_not_undone_by_an_earlier_batch() {
    let late = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&late);
    for_each_seed(0..8, move |world| {
        let owner = start_owner(world);
        let (_fabric, words) = owner.begin(1);
        let (process, caller) = start_caller(world);
        let seen = peer(&process, &caller, 1).connect("words").unwrap();
        let network = world.network();
        network.set_faults(LinkFaults { delay: MS..=300 * MS, ..LinkFaults::default() });
        let (done, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (acknowledged, is_over) = (Arc::clone(&done), Arc::clone(&stop));
        let watching = owner.process.spawn("watcher", move |_| {
            while !is_over.load(Ordering::SeqCst) {
                let least = acknowledged.load(Ordering::SeqCst);
                let found = words.words()[0].load(Ordering::SeqCst);
                assert!(found >= least, "{found} after {least} was done");
                sleep(MS);
            }
        });
        for number in 1..6 {
            // What is sent now arrives after the link has another connection.
            network.cut("a", "b");
            count.fetch_add(u64::from(seen.write(0, &[2 * number - 1]).is_err()), Ordering::SeqCst);
            let connections = caller.connections();
            while caller.peer().is_some() {
                sleep(MS);
            }
            network.heal();
            while caller.connections() == connections || seen.write(0, &[2 * number]).is_err() {
                sleep(MS);
            }
            done.store(2 * number, Ordering::SeqCst);
        }
        sleep(5 * TIMEOUT);
        stop.store(true, Ordering::SeqCst);
        watching.join().unwrap();
    });
    assert_eq!(late.load(Ordering::SeqCst), 8 * 5, "nothing was late");
}

#[test]
fn threads_of_a_peer_change_words_one_after_the_other() {
    for_each_seed(0..20, |world| {
        let owner = start_owner(world);
        let (_fabric, words) = owner.begin(1);
        let (process, caller) = start_caller(world);
        let seen = peer(&process, &caller, 1).connect("words").unwrap();
        let tasks: Vec<_> = (0..4)
            .map(|_| {
                let seen = Arc::clone(&seen);
                process.spawn("adder", move |_| {
                    for _ in 0..20 {
                        seen.fetch_add(0, 1).unwrap();
                        seen.read(0, &mut [0]).unwrap();
                        let mut batch = Batch::new();
                        let (one, two) = (batch.fetch_add(1, 1), batch.read(1, 1));
                        let answers = seen.run(batch).unwrap();
                        assert_eq!(answers.word(one) + 1, answers.word(two));
                    }
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
        assert_eq!(words.words()[0].load(Ordering::SeqCst), 80);
        assert_eq!(words.words()[1].load(Ordering::SeqCst), 80);
    });
}

/// What a peer of this crate does not send.
#[test]
fn requests_that_do_not_fit_change_nothing() {
    for_each_seed(0..3, |world| {
        let owner = start_owner(world);
        let (_fabric, words) = owner.begin(1);
        let (_process, caller) = start_caller(world);
        let ask = |ask: &Ask| -> Answer {
            let reply = caller.call(REGION_SERVICE, encode(ask), TIMEOUT);
            decode(&reply.unwrap()).unwrap()
        };
        let connect = |peer| ask(&Ask::Connect { epoch: 1, peer, name: "words".to_owned() });
        let add = |region, change: Option<(u64, u64)>| {
            let change = change.map(|(peer, number)| Change { peer, number });
            let acts = vec![SentAct::FetchAdd { word: 0, amount: 1 }];
            ask(&Ask::Run(Run { epoch: 1, region, change, acts }))
        };
        assert_eq!(add(0, Some((1, 1))), Answer::Stale, "nobody has connected");
        assert_eq!(connect(1), Answer::Region { region: 0, length_words: 4 });
        assert_eq!(add(1, Some((1, 1))), Answer::Stale, "no such region");
        assert_eq!(add(0, Some((2, 1))), Answer::Stale, "no such peer");
        assert_eq!(add(0, None), Answer::Superseded, "a change without a number");
        assert_eq!(add(0, Some((1, 5))), Answer::Words(vec![0]));
        assert_eq!(add(0, Some((1, 5))), Answer::Superseded, "the same once more");
        assert_eq!(add(0, Some((1, 4))), Answer::Superseded, "an earlier one");
        for peer in 2..MOST_PEERS as u64 + 2 {
            connect(peer);
        }
        assert_eq!(add(0, Some((1, 6))), Answer::Stale, "the owner has forgotten it");
        let beyond = vec![SentAct::Read { start: 4, length: 1 }];
        let beyond = Run { epoch: 1, region: 0, change: None, acts: beyond };
        assert_eq!(ask(&Ask::Run(beyond)), Answer::OutOfBounds { start: 4, end: 5, length: 4 });
        let damaged = caller.call(REGION_SERVICE, vec![9], TIMEOUT);
        assert!(damaged.is_err());
        assert_eq!(words.words()[0].load(Ordering::SeqCst), 1);
    });
}
