//! Three control nodes and a client over the sockets, files and threads of this machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use firn_base::Environment;
use firn_base::network::{Address, ClusterId, NodeId, NodeIdentity, Role, Roles};
use firn_base::task::{monotonic, sleep};
use firn_consensus::{MemberId, Term};
use firn_control::{
    Applied, Catalog, DirectoryId, Health, Heartbeat, NodeRole, Order, Proposal, Protocols,
    Release, Settings,
};
use firn_control_service::{
    Administrator, CONTROL, CONTROL_GROUP, ClientOptions, ControlClient, ControlMembers,
    ControlNode, ControlOptions, ControlledNode, SelfDescription,
};
use firn_link::{LocalNode, Offer, Placement, Server, ServerSettings};

const CLUSTER: ClusterId = ClusterId(1);
const PATIENCE: Duration = Duration::from_secs(120);

fn identity(node: u64, name: &str, role: Role) -> Arc<LocalNode> {
    let (name, roles) = (name.to_owned(), Roles::of(&[role]));
    let identity = NodeIdentity { cluster: CLUSTER, node: NodeId(node), name, roles };
    Arc::new(LocalNode::new(identity, 0))
}

fn start(directory: &Path, members: &ControlMembers, id: u64) -> (ControlNode, Server) {
    let environment = Environment::system();
    let local = identity(id, &format!("c{id}"), Role::Control);
    let mut options = ControlOptions::new(CLUSTER, MemberId(id));
    options.tick = Duration::from_millis(10);
    let own = directory.join(format!("c{id}"));
    let node = ControlNode::open(&environment, &local, &own, members.clone(), options).unwrap();
    let address = &members[&MemberId(id)];
    let settings = ServerSettings::default();
    let [requests, group] = node.services();
    let offers = vec![
        Offer { id: CONTROL, placement: Placement::Workers, service: requests },
        Offer { id: CONTROL_GROUP, placement: Placement::Reader, service: group },
    ];
    let server = Server::start(&environment, local, address, settings, offers).unwrap();
    (node, server)
}

struct Quiet;

impl ControlledNode for Quiet {
    fn joined(&self, _: NodeId) {}

    fn report(&self) -> Heartbeat {
        Heartbeat::default()
    }

    fn catalog(&self, _: &Arc<Catalog>) {}

    fn order(&self, _: Term, _: Order) {}

    fn refused(&self, reason: &str) {
        panic!("refused: {reason}");
    }
}

fn open_client(members: &ControlMembers) -> ControlClient {
    let description = SelfDescription {
        node: None,
        directory: DirectoryId(5),
        incarnation: 1,
        address: "localhost:4000".to_owned(),
        client_address: None,
        roles: [NodeRole::Compute].into(),
        zone: "z".to_owned(),
        capacity: 0,
        release: Release {
            major: 0,
            minor: 1,
            patch: 0,
            protocols: Protocols { oldest: 1, newest: 1 },
        },
    };
    let addresses: Vec<Address> = members.values().cloned().collect();
    let interval = Duration::from_millis(40);
    let options = ClientOptions { interval, ..ClientOptions::default() };
    let local = identity(9, "node", Role::Compute);
    let environment = Environment::system();
    ControlClient::open(&environment, local, &addresses, description, Arc::new(Quiet), options)
}

fn administrator(members: &ControlMembers) -> Administrator {
    let addresses: Vec<Address> = members.values().cloned().collect();
    let local = identity(0, "shell", Role::Compute);
    Administrator::new(&Environment::system(), &local, &addresses, &ClientOptions::default())
}

fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = monotonic() + PATIENCE;
    while !is_so() {
        assert!(monotonic() < end, "never: {what}");
        sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_cluster_on_this_machine_goes_on_without_its_leader() {
    let directory = tempfile::tempdir().unwrap();
    let address = |id: u64| Address::Unix(directory.path().join(format!("c{id}.socket")));
    let members: ControlMembers = (1..=3).map(|id| (MemberId(id), address(id))).collect();
    let mut running: BTreeMap<u64, (ControlNode, Server)> =
        (1..=3).map(|id| (id, start(directory.path(), &members, id))).collect();
    let client = open_client(&members);
    assert!(client.wait_until_registered(PATIENCE));
    let is_up = || {
        let catalog = client.catalog();
        catalog.is_some_and(|one| one.nodes().values().all(|node| node.health == Health::Up))
    };
    wait("the node is up", is_up);
    let administrator = administrator(&members);
    let replicas = |replicas| {
        let settings = Settings { replicas, ..Settings::default() };
        administrator.propose(Proposal::Configure(settings), PATIENCE)
    };
    assert_eq!(replicas(5), Ok(Applied::Done));
    let catalog = administrator.catalog(0, PATIENCE).unwrap();
    assert_eq!(catalog.settings().replicas, 5);
    let nothing = administrator.catalog(catalog.entries() + 1000, Duration::from_secs(1));
    assert!(nothing.is_err(), "there is no such entry");
    let leader = client.status(PATIENCE).unwrap().member.0;
    let (node, server) = running.remove(&leader).unwrap();
    node.close();
    server.close();
    wait("another one leads", || client.status(PATIENCE).is_ok_and(|one| one.member.0 != leader));
    assert_eq!(replicas(4), Ok(Applied::Done));
    running.insert(leader, start(directory.path(), &members, leader));
    // All of them stop and start again.
    running.values().for_each(|(node, _)| node.close());
    running.values().for_each(|(_, server)| server.close());
    running.clear();
    running.extend((1..=3).map(|id| (id, start(directory.path(), &members, id))));
    wait("they lead again", || client.status(PATIENCE).is_ok());
    wait("all have what was acknowledged", || {
        running.values().all(|(node, _)| node.catalog().settings().replicas == 4)
    });
    client.close();
    running.values().for_each(|(node, _)| node.close());
}
