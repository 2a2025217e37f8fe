//! Owners and peers with a link over a Unix socket beside UCX.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use firn_base::Environment;
use firn_base::network::{Address, ClusterId, NodeId, NodeIdentity, Role, Roles};
use firn_base::task::ThreadSpawner;
use firn_fabric::conformance::obeys_the_contract;
use firn_fabric::{Batch, Epoch, Fabric, FabricError, Peer, SharedMemoryFabric};
use firn_link::{Caller, CallerSettings, LocalNode, Server, ServerSettings};
use firn_region_service::RegionService;
use tempfile::TempDir;

use super::{FarPeer, announce};
use crate::owner::RdmaOwner;
use crate::settings::RdmaSettings;

const PATIENCE: Duration = Duration::from_secs(60);
const TRANSPORTS: [&str; 2] = ["posix", "tcp"];

fn settings(transports: &str) -> RdmaSettings {
    RdmaSettings::new(PATIENCE).with_transports(transports).unwrap()
}

fn node(number: u64) -> Arc<LocalNode> {
    let (cluster, node, name) = (ClusterId(1), NodeId(number), format!("node-{number}"));
    let roles = Roles::of(&[Role::Database]);
    Arc::new(LocalNode::new(NodeIdentity { cluster, node, name, roles }, 0))
}

/// An owner with a link to it.
struct Owner {
    fabric: Arc<SharedMemoryFabric>,
    rdma: Option<RdmaOwner>,
    service: Arc<RegionService>,
    caller: Arc<Caller>,
    _server: Server,
    _directory: TempDir,
}

impl Owner {
    fn begin(epoch: u64, transports: Option<&str>) -> Owner {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("fabric");
        let fabric = SharedMemoryFabric::serve(&path, Epoch(epoch), &ThreadSpawner).unwrap();
        let fabric = Arc::new(fabric);
        let service = RegionService::new();
        service.begin(Epoch(epoch), fabric.peer());
        let rdma = transports.map(|transports| {
            let fabric = Arc::clone(&fabric);
            let owner = RdmaOwner::serve(fabric, &settings(transports), &ThreadSpawner).unwrap();
            announce(&owner, &service);
            owner
        });
        let environment = Environment::system();
        let address = Address::Unix(directory.path().join("link"));
        let offers = vec![service.offer()];
        let server =
            Server::start(&environment, node(2), &address, ServerSettings::default(), offers);
        let caller = Caller::new(&environment, node(1), CallerSettings::new(address));
        assert!(caller.wait_until_up(PATIENCE));
        let (caller, _server) = (Arc::new(caller), server.unwrap());
        Owner { fabric, rdma, service, caller, _server, _directory: directory }
    }

    fn peer(&self, transports: &str) -> FarPeer {
        let (caller, epoch) = (Arc::clone(&self.caller), self.fabric.epoch());
        let settings = settings(transports);
        FarPeer::reach(&Environment::system(), caller, epoch, PATIENCE, &settings)
    }
}

#[test]
fn regions_reached_by_either_way_obey_the_contract() {
    for transports in TRANSPORTS {
        let owner = Owner::begin(5, Some(transports));
        let peer = owner.peer(transports);
        assert!(peer.uses_rdma());
        obeys_the_contract(&*owner.fabric, &peer);
        assert!(peer.uses_rdma());
        // A region holds on to the way that it needs.
        let region = peer.connect("other").unwrap();
        drop(peer);
        assert_eq!(region.fetch_add(0, 1), Ok(1));
    }
    let owner = Owner::begin(5, None);
    let peer = owner.peer("tcp");
    assert!(!peer.uses_rdma(), "the owner offers none");
    obeys_the_contract(&*owner.fabric, &peer);
}

/// Messages then say what the words are, and whether the epoch has ended.
#[test]
fn what_reads_goes_on_by_messages_when_rdma_ends() {
    for transports in TRANSPORTS {
        let mut owner = Owner::begin(5, Some(transports));
        let words = owner.fabric.register("words", 4).unwrap();
        let peer = owner.peer(transports);
        let region = peer.connect("words").unwrap();
        region.write(0, &[7]).unwrap();
        let mut batch = Batch::new();
        let place = batch.read(0, 1);
        drop(owner.rdma.take());
        words.words()[0].store(8, Ordering::SeqCst);
        let answers = region.submit(batch).wait(PATIENCE).unwrap();
        assert_eq!(answers.word(place), 8);
        assert!(!peer.uses_rdma());
        let mut word = [0];
        region.read(0, &mut word).unwrap();
        assert_eq!(word, [8]);
        assert!(region.fetch_add(0, 1).is_err(), "what changes words is not repeated");
        assert_eq!(words.words()[0].load(Ordering::SeqCst), 8);
        assert_eq!(peer.connect("words").unwrap().fetch_add(0, 1), Ok(8), "it has connected again");
        owner.service.end();
        let stale = Err(FabricError::Stale { epoch: Epoch(5) });
        assert_eq!(region.read(0, &mut word), stale);
    }
}

#[test]
fn without_a_transport_in_common_messages_are_used() {
    let owner = Owner::begin(5, Some("posix"));
    let peer = owner.peer("tcp");
    assert!(!peer.uses_rdma());
    obeys_the_contract(&*owner.fabric, &peer);
    // This machine need not have hardware.
    let hardware = RdmaSettings::hardware(PATIENCE);
    match RdmaOwner::serve(Arc::clone(&owner.fabric), &hardware, &ThreadSpawner) {
        Ok(served) => drop(served),
        Err(error) => assert!(matches!(error, FabricError::Unreachable { .. }), "{error}"),
    }
}
