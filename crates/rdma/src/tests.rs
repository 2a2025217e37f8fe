//! Owners and peers over UCX's own transports: messages in shared memory, and TCP. Both ends of a
//! test lie in one process, or in two that the test starts.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use firn_base::random::SplitMix;
use firn_base::task::{ThreadSpawner, monotonic, sleep};
use firn_fabric::conformance::obeys_the_contract;
use firn_fabric::{Batch, Epoch, Fabric, FabricError, OwnedRegion, Peer, SharedMemoryFabric};
use tempfile::TempDir;

use crate::message::{OwnerAddress, decode, encode};
use crate::{RdmaOwner, RdmaPeer, RdmaSettings, SettingsError};

const PATIENCE: Duration = Duration::from_secs(60);
const MOMENT: Duration = Duration::from_millis(5);
/// How long a batch may take in tests of owners that have gone.
const TIMEOUT: Duration = Duration::from_millis(500);
/// The last are those of [`RdmaSettings::new`]; hardware is used where there is any.
const TRANSPORTS: [&str; 3] = ["posix", "tcp", "ib,posix,tcp"];
const TRANSPORT_VARIABLE: &str = "FIRN_TEST_RDMA_TRANSPORT";
const EPOCH_VARIABLE: &str = "FIRN_TEST_RDMA_EPOCH";
const OWNER_VARIABLE: &str = "FIRN_TEST_RDMA_OWNER";
/// What each side of the test with two processes adds to one word.
const ROUNDS: u64 = 2_000;

fn settings(transport: &str, timeout: Duration) -> RdmaSettings {
    RdmaSettings::new(timeout).with_transports(transport).unwrap()
}

/// The owner of an epoch in this process.
struct Owner {
    rdma: RdmaOwner,
    fabric: Arc<SharedMemoryFabric>,
    _directory: TempDir,
}

impl Owner {
    fn begin(transport: &str, epoch: u64) -> Owner {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("fabric");
        let fabric = SharedMemoryFabric::serve(&path, Epoch(epoch), &ThreadSpawner).unwrap();
        let fabric = Arc::new(fabric);
        let settings = settings(transport, PATIENCE);
        let rdma = RdmaOwner::serve(Arc::clone(&fabric), &settings, &ThreadSpawner).unwrap();
        Owner { rdma, fabric, _directory: directory }
    }

    fn peer(&self, transport: &str, timeout: Duration) -> RdmaPeer {
        peer(self.rdma.address(), transport, timeout)
    }
}

fn peer(owner: &OwnerAddress, transport: &str, timeout: Duration) -> RdmaPeer {
    let settings = settings(transport, timeout);
    RdmaPeer::new(owner, &settings, &ThreadSpawner, &SplitMix::from_entropy()).unwrap()
}

/// A process of this test binary, with a pipe to it and one from it.
struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: Box<dyn BufRead>,
}

impl Process {
    fn start(test: &str, variables: &[(&str, &str)]) -> Process {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("tests::{test}"), "--ignored", "--nocapture"])
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        Process { child, input, output: Box::new(BufReader::new(output)) }
    }

    /// Starts an owner. Returns where it is found.
    fn start_owner(transport: &str, epoch: u64) -> (Process, OwnerAddress) {
        let epoch = epoch.to_string();
        let variables = [(TRANSPORT_VARIABLE, transport), (EPOCH_VARIABLE, &epoch)];
        let mut process = Process::start("owner_process", &variables);
        let mut line = String::new();
        let address = loop {
            line.clear();
            assert!(process.output.read_line(&mut line).unwrap() > 0, "the owner has ended");
            if let Some(address) = line.trim_end().split("owner at ").nth(1) {
                break from_hex(address);
            }
        };
        (process, decode(&address).unwrap())
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it, and waits until it has ended without a failure.
    fn end(mut self) {
        drop(self.input.take());
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.output, &mut rest).unwrap();
        assert!(self.child.wait().unwrap().success(), "{rest}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().map(|digit| digit.to_digit(16).unwrap()).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

/// The owner's process: it has a region of four words, of which the first is its epoch.
#[test]
#[ignore = "started by the tests with two processes"]
fn owner_process() {
    let transport = std::env::var(TRANSPORT_VARIABLE).unwrap();
    let epoch = std::env::var(EPOCH_VARIABLE).unwrap().parse().unwrap();
    let owner = Owner::begin(&transport, epoch);
    let region = owner.fabric.register("words", 4).unwrap();
    region.words()[0].store(epoch, Ordering::SeqCst);
    println!("owner at {}", hex(&encode(owner.rdma.address())));
    std::io::stdout().flush().unwrap();
    // Until the test closes the pipe.
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
}

/// The peer's process of the test below.
#[test]
#[ignore = "started by two_processes_change_the_same_words"]
fn peer_process() {
    let transport = std::env::var(TRANSPORT_VARIABLE).unwrap();
    let owner = decode(&from_hex(&std::env::var(OWNER_VARIABLE).unwrap())).unwrap();
    let peer = peer(&owner, &transport, PATIENCE);
    let region = peer.connect("counter").unwrap();
    region.write(1, &[1]).unwrap();
    for _ in 0..ROUNDS {
        region.fetch_add(0, 1).unwrap();
        let mut seen = [0];
        region.read(2, &mut seen).unwrap();
        while let found = region.compare_and_swap(2, seen[0], seen[0] + 1).unwrap()
            && found != seen[0]
        {
            seen[0] = found;
        }
    }
    let mut batch = Batch::new();
    batch.write(3, vec![4, 5]);
    batch.fetch_add(1, 1);
    region.submit(batch).wait(PATIENCE).unwrap();
}

#[test]
fn regions_reached_by_rdma_obey_the_contract() {
    for transport in TRANSPORTS {
        let owner = Owner::begin(transport, 5);
        let peer = owner.peer(transport, PATIENCE);
        obeys_the_contract(&*owner.fabric, &peer);
        let long = "n".repeat(1000);
        assert!(matches!(peer.connect(&long).map(drop), Err(FabricError::Unknown(_))));
        let others = owner.peer(transport, PATIENCE);
        let region = others.connect("other").unwrap();
        assert_eq!(region.fetch_add(0, 1), Ok(1));
        drop(others);
        assert!(matches!(region.read(0, &mut [0]), Err(FabricError::Unreachable { .. })));
        let mut word = [0];
        peer.connect("other").unwrap().read(0, &mut word).unwrap();
        assert_eq!(word, [2]);
    }
}

#[test]
fn two_processes_change_the_same_words() {
    for transport in TRANSPORTS {
        let owner = Owner::begin(transport, 5);
        let region = owner.fabric.register("counter", 16).unwrap();
        let words = region.words();
        let address = hex(&encode(owner.rdma.address()));
        let variables = [(TRANSPORT_VARIABLE, transport), (OWNER_VARIABLE, &address)];
        let mut peer = Process::start("peer_process", &variables);
        while words[1].load(Ordering::Acquire) == 0 {
            assert!(peer.child.try_wait().unwrap().is_none(), "the peer has ended too early");
            sleep(MOMENT);
        }
        for _ in 0..ROUNDS {
            words[0].fetch_add(1, Ordering::AcqRel);
            words[2].fetch_add(1, Ordering::AcqRel);
            std::hint::spin_loop();
        }
        peer.end();
        let found: Vec<u64> = words[..5].iter().map(|word| word.load(Ordering::Acquire)).collect();
        assert_eq!(found, [2 * ROUNDS, 2, 2 * ROUNDS, 4, 5]);
    }
}

/// Threads of a peer, whose batches meet in one queue.
#[test]
fn threads_of_a_peer_change_words_one_after_the_other() {
    for transport in TRANSPORTS {
        let owner = Owner::begin(transport, 5);
        let words = owner.fabric.register("words", 4).unwrap();
        let peer = owner.peer(transport, PATIENCE);
        let region = peer.connect("words").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        region.fetch_add(0, 1).unwrap();
                        let mut batch = Batch::new();
                        let (one, two) = (batch.fetch_add(1, 1), batch.read(1, 1));
                        let answers = region.run(batch).unwrap();
                        assert_eq!(answers.word(one) + 1, answers.word(two));
                    }
                });
            }
        });
        assert_eq!(words.words()[0].load(Ordering::SeqCst), 800);
        assert_eq!(words.words()[1].load(Ordering::SeqCst), 800);
    }
}

fn is_stale<T>(answered: &Result<T, FabricError>) -> bool {
    matches!(answered, Err(FabricError::Stale { epoch: Epoch(1) }))
}

#[test]
fn nobody_reads_what_a_former_epoch_left_behind() {
    for transport in TRANSPORTS {
        let first = Owner::begin(transport, 1);
        let words: OwnedRegion = first.fabric.register("words", 4).unwrap();
        let peer_of_first = first.peer(transport, PATIENCE);
        let seen = peer_of_first.connect("words").unwrap();
        seen.write(0, &[7]).unwrap();
        // The memory stays, as when an engine still has it.
        let Owner { rdma, fabric, _directory } = first;
        drop(rdma);
        assert!(is_stale(&seen.read(0, &mut [0])), "the owner has taken leave");
        assert!(is_stale(&seen.fetch_add(0, 1)));
        assert!(is_stale(&peer_of_first.connect("words").map(drop)));
        assert_eq!(words.words()[0].load(Ordering::SeqCst), 7);
        drop(fabric);

        let second = Owner::begin(transport, 2);
        let words = second.fabric.register("words", 4).unwrap();
        assert!(is_stale(&seen.write(0, &[8])), "another one has begun");
        // One that expects the first epoch at the second's address.
        let wrong = OwnerAddress { epoch: 1, ..second.rdma.address().clone() };
        assert!(is_stale(&peer(&wrong, transport, PATIENCE).connect("words").map(drop)));
        let peer_of_second = second.peer(transport, PATIENCE);
        let mut found = [9; 4];
        peer_of_second.connect("words").unwrap().read(0, &mut found).unwrap();
        assert_eq!(found, [0; 4]);
        assert_eq!(words.words()[0].load(Ordering::SeqCst), 0);
    }
}

#[test]
fn a_killed_owner_is_an_error_in_time_and_its_successor_another_owner() {
    for transport in TRANSPORTS {
        let (first, address) = Process::start_owner(transport, 1);
        let peer_of_first = peer(&address, transport, TIMEOUT);
        let seen = retried(|| peer_of_first.connect("words"));
        let mut word = [0];
        retried(|| seen.read(0, &mut word));
        assert_eq!(word, [1]);
        first.kill();
        let fails_in_time = |what: &str| {
            let began = monotonic();
            let failed = seen.read(0, &mut [0]).and_then(|()| seen.fetch_add(1, 1).map(drop));
            let took = monotonic() - began;
            // It waits no longer than it may; the rest is this machine's.
            assert!(took < 20 * TIMEOUT, "{transport}, {what}: {took:?}");
            let error = failed.expect_err(what);
            let is_clear =
                matches!(error, FabricError::TimedOut { .. } | FabricError::Unreachable { .. });
            assert!(is_clear, "{transport}, {what}: {error}");
        };
        fails_in_time("after the owner's death");

        let (second, address) = Process::start_owner(transport, 2);
        let peer_of_second = peer(&address, transport, PATIENCE);
        let found = peer_of_second.connect("words").unwrap();
        found.write(1, &[5]).unwrap();
        fails_in_time("beside its successor");
        assert!(peer_of_first.connect("words").is_err());
        let mut words = [9; 4];
        found.read(0, &mut words).unwrap();
        assert_eq!(words, [2, 5, 0, 0], "nothing of the former peer has reached it");
        second.end();
        let ended = std::iter::repeat_with(|| found.read(0, &mut [0])).find_map(Result::err);
        // A farewell may get lost with the connection.
        let is_clear = matches!(
            ended,
            Some(FabricError::Stale { epoch: Epoch(2) } | FabricError::Unreachable { .. })
        );
        assert!(is_clear, "{transport}, after it has taken leave: {ended:?}");
    }
}

/// An owner that is paused answers later: nothing is done twice or out of order.
#[test]
fn a_paused_owner_is_an_error_in_time_and_goes_on_later() {
    let (owner, address) = Process::start_owner("posix", 1);
    let peer = peer(&address, "posix", TIMEOUT);
    let seen = retried(|| peer.connect("words"));
    retried(|| seen.write(1, &[1]));
    signal(&owner, "STOP");
    // It may still do a few.
    let mut done = 1;
    let failed = loop {
        match seen.fetch_add(1, 1) {
            Ok(before) => {
                assert_eq!(before, done);
                done += 1;
            }
            Err(error) => break error,
        }
    };
    let timed_out = FabricError::TimedOut { timeout: TIMEOUT };
    assert_eq!(failed, timed_out);
    // It has not begun, and is withdrawn.
    assert_eq!(seen.write(1, &[100]), Err(timed_out));
    signal(&owner, "CONT");
    let mut word = [0];
    retried(|| seen.read(1, &mut word));
    assert_eq!(word, [done + 1]);
    owner.end();
}

/// Until it succeeds: a slow machine may take longer than the timeout of these tests.
fn retried<T>(mut run: impl FnMut() -> Result<T, FabricError>) -> T {
    let until = monotonic() + PATIENCE;
    loop {
        match run() {
            Ok(value) => return value,
            Err(error) => assert!(monotonic() < until, "{error}"),
        }
    }
}

fn signal(process: &Process, name: &str) {
    let number = process.child.id().to_string();
    let sent = Command::new("kill").args([&format!("-{name}"), &number]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn transports_that_reach_memory_of_the_dead_are_refused() {
    for refused in ["cma", "all", "posix,self", "^tcp", "", "shm"] {
        let settings = RdmaSettings::new(PATIENCE).with_transports(refused);
        assert!(matches!(settings, Err(SettingsError::Refused(_))), "{refused}");
    }
}
