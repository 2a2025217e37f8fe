use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::Ordering;
use std::time::Duration;

use firn_base::task::{ThreadSpawner, sleep};

use super::packets::{PacketError, Reply, Request};
use super::{SharedMemoryFabric, SharedMemoryPeer};
use crate::batch::Batch;
use crate::conformance::obeys_the_contract;
use crate::epoch::Epoch;
use crate::error::FabricError;
use crate::region::{Fabric, Peer, Region};

const PATIENCE: Duration = Duration::from_secs(60);
const MOMENT: Duration = Duration::from_millis(5);
const SOCKET_VARIABLE: &str = "FIRN_TEST_FABRIC";
/// What each side of the test with two processes adds to one word.
const ROUNDS: u64 = 20_000;

fn serve(path: &Path, epoch: u64) -> SharedMemoryFabric {
    SharedMemoryFabric::serve(path, Epoch(epoch), &ThreadSpawner).unwrap()
}

fn connect(path: &Path) -> SharedMemoryPeer {
    SharedMemoryPeer::connect(path, PATIENCE, &ThreadSpawner).unwrap()
}

/// Waits until the region's owner is noticed to have gone.
fn await_stale(region: &dyn Region) {
    let is_stale = || matches!(region.read(0, &mut [0]), Err(FabricError::Stale { .. }));
    let tries = (PATIENCE.as_millis() / MOMENT.as_millis()) as u32;
    assert!(
        (0..tries).any(|_| is_stale() || {
            sleep(MOMENT);
            false
        }),
        "it was not noticed"
    );
}

/// The golden bytes of `docs/formats/shared-region.md`.
#[test]
fn packets_have_these_bytes() {
    #[rustfmt::skip]
    let cases = [
        (Request::Watch, &b"FnSM\x01\x00"[..]),
        (Request::Region("tit".to_owned()), &b"FnSM\x01\x01tit"[..]),
    ];
    for (request, golden) in cases {
        assert_eq!(request.encode(), golden);
        assert_eq!(Request::decode(golden), Ok(request));
    }
    let reply = Reply { epoch: Epoch(0x0102), is_known: true };
    let golden = b"FnSM\x01\x01\0\0\x02\x01\0\0\0\0\0\0";
    assert_eq!(reply.encode(), golden);
    assert_eq!(Reply::decode(golden), Ok(reply));
    for length in 0..golden.len() {
        assert_eq!(Reply::decode(&golden[..length]), Err(PacketError::Foreign));
    }
    let newer = b"FnSM\x02\x00";
    assert_eq!(Request::decode(newer), Err(PacketError::Version { theirs: 2 }));
    assert_eq!(Request::decode(b"FnSM\x01\x01\xff"), Err(PacketError::Foreign));
}

#[test]
fn shared_memory_obeys_the_contract() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fabric");
    let fabric = serve(&path, 5);
    obeys_the_contract(&fabric, &connect(&path));
    let within = serve(&directory.path().join("within"), 6);
    let peer = within.peer();
    obeys_the_contract(&within, &*peer);
    drop(within);
    assert!(matches!(peer.connect("timestamps").map(drop), Err(FabricError::Stale { .. })));
    let long = "n".repeat(1000);
    assert!(matches!(connect(&path).connect(&long), Err(FabricError::Unknown(_))));
}

#[test]
fn an_owner_that_takes_leave_leaves_nothing_to_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fabric");
    let missing = SharedMemoryPeer::connect(&path, PATIENCE, &ThreadSpawner).map(drop);
    assert!(matches!(missing, Err(FabricError::Unreachable { .. })), "{missing:?}");
    let fabric = serve(&path, 1);
    drop(fabric.register("a", 1).unwrap());
    let peer = connect(&path);
    let region = peer.connect("a").unwrap();
    drop(fabric);
    let stale = FabricError::Stale { epoch: Epoch(1) };
    assert_eq!(region.read(0, &mut [0]), Err(stale.clone()));
    // The next epoch at the same path is another owner.
    let fabric = serve(&path, 2);
    drop(fabric.register("a", 1).unwrap());
    assert_eq!(region.read(0, &mut [0]), Err(stale.clone()));
    assert_eq!(peer.connect("a").map(drop), Err(stale));
    assert_eq!(connect(&path).connect("a").unwrap().epoch(), Epoch(2));
}

/// The peer's process of the tests below, which start it.
#[test]
#[ignore = "started by the tests with two processes"]
fn peer_process() {
    let path = std::env::var_os(SOCKET_VARIABLE).unwrap();
    let peer = connect(path.as_ref());
    let region = peer.connect("counter").unwrap();
    region.write(1, &[1]).unwrap();
    for _ in 0..ROUNDS {
        // The sum follows by compare and swap, so that both kinds of acts meet the owner's.
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

/// The owner's process of the test below, which ends it.
#[test]
#[ignore = "started by a_killed_owner_is_noticed"]
fn owner_process() {
    let path = std::env::var_os(SOCKET_VARIABLE).unwrap();
    let fabric = serve(path.as_ref(), 8);
    let _region = fabric.register("a", 1).unwrap();
    sleep(PATIENCE);
}

fn start(name: &str, path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("shared_memory::tests::{name}"), "--ignored"])
        .env(SOCKET_VARIABLE, path)
        .spawn()
        .unwrap()
}

#[test]
fn two_processes_change_the_same_words() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fabric");
    let fabric = serve(&path, 5);
    let region = fabric.register("counter", 16).unwrap();
    let words = region.words();
    let mut child = start("peer_process", &path);
    while words[1].load(Ordering::Acquire) == 0 {
        assert!(child.try_wait().unwrap().is_none(), "the peer has ended too early");
        sleep(MOMENT);
    }
    for _ in 0..ROUNDS {
        words[0].fetch_add(1, Ordering::AcqRel);
        words[2].fetch_add(1, Ordering::AcqRel);
    }
    assert!(child.wait().unwrap().success());
    let found: Vec<u64> = words[..5].iter().map(|word| word.load(Ordering::Acquire)).collect();
    assert_eq!(found, [2 * ROUNDS, 2, 2 * ROUNDS, 4, 5]);
}

#[test]
fn a_killed_owner_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fabric");
    let mut child = start("owner_process", &path);
    let peer = std::iter::repeat_with(|| {
        sleep(MOMENT);
        SharedMemoryPeer::connect(&path, PATIENCE, &ThreadSpawner)
    });
    let peer = peer.into_iter().find_map(Result::ok).unwrap();
    let region = std::iter::repeat_with(|| peer.connect("a")).find_map(Result::ok).unwrap();
    region.write(0, &[7]).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    await_stale(&*region);
    assert_eq!(peer.connect("a").map(drop), Err(FabricError::Stale { epoch: Epoch(8) }));
}
