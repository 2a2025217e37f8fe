//! A cluster: control nodes, other nodes, and what can happen to them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use firn_base::Lsn;
use firn_base::network::{Address, ClusterId, NodeId, NodeIdentity, Role as ProcessRole, Roles};
use firn_base::task::sleep;
use firn_consensus::{MemberId, Role};
use firn_control::{
    Applied, Catalog, DirectoryId, Founding, GroupId, GroupMember, Join, NodeRole, Proposal,
    Protocols, Release, Settings,
};
use firn_control_service::{
    ClientOptions, ControlClient, ControlMembers, ControlNode, ControlOptions, ControlSeat, Place,
    ProposeError, SeatParts, SeatRecord, SeatState, SelfDescription,
};
use firn_link::{LocalNode, Server, ServerSettings};
use firn_testing::simulation::{Process, SimulatedDisk, World};

use crate::checker::{Facts, MemberObserver};
use crate::forgetful::{Bug, ForgetfulDisk};
use crate::node::{NodeDisk, SeatNotes, SeatedNode, TestNode};

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);
const CLUSTER: ClusterId = ClusterId(0xf1);
const PORT: u16 = 7100;

pub(crate) struct Cluster {
    pub(crate) world: World,
    pub(crate) facts: Arc<Facts>,
    pub(crate) bug: Bug,
    disks: BTreeMap<u64, SimulatedDisk>,
    pub(crate) controls: BTreeMap<u64, Control>,
    pub(crate) nodes: BTreeMap<u64, Node>,
    pub(crate) file_bytes: u64,
    pub(crate) kept_entries: usize,
    /// Nodes are down soon.
    pub(crate) is_impatient: bool,
    /// Those with higher numbers may become control nodes later.
    founders: u64,
    notes: BTreeMap<u64, Arc<SeatNotes>>,
    /// How often each process has lost its directory.
    losses: BTreeMap<u64, u128>,
    /// The control nodes know from the beginning which nodes the cluster has. Each believes in an
    /// address of its own for a node that nobody starts.
    pub(crate) is_founded: bool,
}

pub(crate) struct Control {
    pub(crate) process: Process,
    pub(crate) seat: Arc<ControlSeat>,
    _server: Arc<Server>,
    _client: Arc<ControlClient>,
}

impl Control {
    pub(crate) fn node(&self) -> Arc<ControlNode> {
        self.seat.node().expect("it is a control node")
    }
}

/// The directory of a control node as a node of the cluster: those of the others are small.
const CONTROL_DIRECTORY: u128 = 1 << 100;

/// Another node of the cluster.
pub(crate) struct Node {
    pub(crate) disk: Arc<NodeDisk>,
    directory: u128,
    incarnation: u64,
    pub(crate) running: Option<Running>,
}

pub(crate) struct Running {
    pub(crate) process: Process,
    pub(crate) client: Arc<ControlClient>,
    pub(crate) node: Arc<TestNode>,
}

pub(crate) fn release() -> Release {
    Release { major: 0, minor: 1, patch: 0, protocols: Protocols { oldest: 1, newest: 1 } }
}

fn host(id: u64) -> String {
    format!("control-{id}")
}

pub(crate) fn identity(name: &str, node: u64, role: ProcessRole) -> Arc<LocalNode> {
    let (cluster, node) = (CLUSTER, NodeId(node));
    let identity = NodeIdentity { cluster, node, name: name.to_owned(), roles: Roles::of(&[role]) };
    Arc::new(LocalNode::new(identity, 0))
}

impl Cluster {
    /// A cluster of `controls` control nodes, none of which runs.
    pub(crate) fn new(world: &World, controls: u64, bug: Bug) -> Cluster {
        Cluster::with_spares(world, controls, 0, bug)
    }

    /// The same, with `spares` nodes that may become control nodes. The cluster is founded.
    pub(crate) fn with_spares(world: &World, controls: u64, spares: u64, bug: Bug) -> Cluster {
        let ids = 1..=controls + spares;
        Cluster {
            world: world.clone(),
            facts: Arc::default(),
            bug,
            disks: ids.clone().map(|id| (id, world.new_disk())).collect(),
            controls: BTreeMap::new(),
            nodes: BTreeMap::new(),
            file_bytes: 4096,
            kept_entries: 20,
            is_impatient: false,
            founders: controls,
            notes: ids.map(|id| (id, Arc::default())).collect(),
            losses: BTreeMap::new(),
            is_founded: spares > 0,
        }
    }

    pub(crate) fn ids(&self) -> Vec<u64> {
        self.disks.keys().copied().collect()
    }

    fn members(&self) -> ControlMembers {
        (1..=self.founders).map(|id| (MemberId(id), self.address(id))).collect()
    }

    /// The process of that number believes that it has had a control node before.
    pub(crate) fn has_had_control(&self, id: u64) {
        let place = Place { member: MemberId(id), is_founder: true, is_made: true };
        *self.notes[&id].0.lock() = SeatState { place: Some(place), left: None };
    }

    /// A process that does not run loses its directory.
    pub(crate) fn lose_directory(&mut self, id: u64) {
        self.disks.insert(id, self.world.new_disk());
        self.notes.insert(id, Arc::default());
        *self.losses.entry(id).or_default() += 1;
        self.facts.forget_votes(MemberId(id));
    }

    /// The numbers of the processes with the members of the control group, if nobody changes them.
    pub(crate) fn settled_controls(catalog: &Catalog) -> Option<Vec<String>> {
        let group = catalog.groups().get(&GroupId::CONTROL)?;
        let nodes = group.members.values().map(|member| catalog.nodes()[&member.node].name.clone());
        let mut names: Vec<String> = nodes.collect();
        names.sort();
        group.operation.is_none().then_some(names)
    }

    /// What control node `teller` was told of the cluster: the control nodes and one more.
    fn founding(&self, teller: u64) -> Founding {
        let node = |number: u64, name: String, address: String| Join {
            cluster: Some(CLUSTER),
            name,
            directory: DirectoryId::UNKNOWN,
            address,
            client_address: None,
            roles: [NodeRole::Control].into(),
            zone: "z".to_owned(),
            capacity: 0,
            release: release(),
            number: Some(NodeId(number)),
        };
        let controls = 1..=self.founders;
        let mut nodes: Vec<Join> =
            controls.clone().map(|id| node(id, host(id), self.address(id).to_string())).collect();
        nodes.push(node(9, "absent".to_owned(), format!("told-by-{teller}:1")));
        let member = |id: u64| GroupMember { node: NodeId(id), role: Role::Voter };
        let members = controls.map(|id| (MemberId(id), member(id))).collect();
        Founding { nodes, groups: vec![members], chunks: Vec::new() }
    }

    /// Every other node is reached by the name of its host.
    pub(crate) fn address(&self, id: u64) -> Address {
        match id % 2 {
            0 => self.world.network().address(&host(id), PORT),
            _ => format!("{}:{PORT}", host(id)).parse().expect("hosts have names"),
        }
    }

    pub(crate) fn disk(&self, id: u64) -> &SimulatedDisk {
        &self.disks[&id]
    }

    pub(crate) fn start_controls(&mut self) {
        for id in self.ids() {
            self.start_control(id);
        }
    }

    /// Starts a control node, unless it runs.
    pub(crate) fn start_control(&mut self, id: u64) {
        if self.controls.contains_key(&id) {
            return;
        }
        let started = self.try_start_control(id);
        self.controls.insert(id, started.unwrap_or_else(|error| panic!("{error}")));
    }

    pub(crate) fn try_start_control(&self, id: u64) -> Result<Control, String> {
        let process = self.world.start(&host(id), &self.disks[&id]);
        let members = self.members();
        let is_founder = id <= self.founders;
        let lost = self.losses.get(&id).copied().unwrap_or(0);
        let directory = DirectoryId(CONTROL_DIRECTORY + u128::from(id) + (lost << 50));
        let address = self.address(id);
        let mut options = ControlOptions::new(CLUSTER, MemberId(0));
        options.settings = Settings { replicas: 2, ..Settings::default() };
        if self.is_impatient {
            options.settings.suspect_ticks = 5;
            options.settings.down_ticks = 15;
        }
        options.founding = self.is_founded.then(|| Proposal::Found(self.founding(id)));
        options.file_bytes = self.file_bytes;
        options.kept_entries = self.kept_entries;
        options.observer = Some(Arc::new(MemberObserver::new(&self.facts)));
        let bug = self.bug;
        let of_client = TestNode::new(&Arc::default(), &self.facts);
        let addresses: Vec<Address> = members.values().cloned().collect();
        let parts = SeatParts {
            directory: "/".into(),
            record: Arc::clone(&self.notes[&id]) as Arc<dyn SeatRecord>,
            founds: is_founder.then_some(MemberId(id)),
            identity: (self.is_founded && is_founder).then_some((NodeId(id), directory)),
            members,
            options,
        };
        let description = SelfDescription {
            node: (self.is_founded && is_founder).then_some(NodeId(id)),
            directory,
            // Later lives begin later.
            incarnation: self.world.clock().monotonic().as_nanos() as u64,
            address: address.to_string(),
            client_address: None,
            roles: [NodeRole::Control].into(),
            zone: "z".to_owned(),
            capacity: 0,
            release: release(),
        };
        let started = process.run(move |environment| {
            let mut environment = environment.clone();
            environment.disk = Arc::new(ForgetfulDisk { inner: environment.disk, bug });
            let local = identity(&host(id), 1000 + id, ProcessRole::Control);
            let seat = ControlSeat::open(&environment, &local, parts);
            let seat = Arc::new(seat.map_err(|error| error.to_string())?);
            let settings = ServerSettings { workers: 2, ..ServerSettings::default() };
            let server =
                Server::start(&environment, Arc::clone(&local), &address, settings, seat.offers());
            let server = server.map_err(|error| error.to_string())?;
            let node = Arc::new(SeatedNode { seat: Arc::clone(&seat), rest: of_client });
            let client = ControlClient::open(
                &environment,
                local,
                &addresses,
                description,
                node,
                ClientOptions::default(),
            );
            let client = Arc::new(client);
            let told = Arc::downgrade(&client);
            seat.tell(move |number| {
                if let Some(client) = told.upgrade() {
                    client.acknowledge(number, Lsn(0));
                }
            });
            Ok::<_, String>((seat, Arc::new(server), client))
        });
        let (seat, server, client) = started.expect("nobody kills it")?;
        Ok(Control { process, seat, _server: server, _client: client })
    }

    /// The machine of a control node loses power.
    pub(crate) fn crash_control(&mut self, id: u64) {
        if let Some(control) = self.controls.remove(&id) {
            control.process.crash();
        }
    }

    pub(crate) fn kill_control(&mut self, id: u64) {
        if let Some(control) = self.controls.remove(&id) {
            control.process.kill();
        }
    }

    /// Cuts a control node off from the others. Nodes still reach it.
    pub(crate) fn separate(&self, id: u64) {
        let others: Vec<String> =
            self.ids().into_iter().filter(|one| *one != id).map(host).collect();
        let others: Vec<&str> = others.iter().map(String::as_str).collect();
        self.world.network().separate(&[&host(id)], &others);
    }

    /// The control node that leads, as it says itself.
    pub(crate) fn leader(&self) -> Option<u64> {
        let leads = self.controls.iter().filter_map(|(id, control)| {
            let status = control.seat.node()?.status();
            status.leads.then_some((status.term, *id))
        });
        leads.max().map(|(_, id)| id)
    }

    pub(crate) fn wait_for_leader(&self) -> u64 {
        wait(|| self.leader())
    }

    /// Starts a node, which joins or comes back.
    pub(crate) fn start_node(&mut self, number: u64) {
        let disk = || Node {
            disk: Arc::default(),
            directory: u128::from(number),
            incarnation: 0,
            running: None,
        };
        let known = self.nodes.entry(number).or_insert_with(disk);
        if known.running.is_some() {
            return;
        }
        known.incarnation += 1;
        let (directory, incarnation) = (known.directory, known.incarnation);
        let disk = Arc::clone(&known.disk);
        let name = format!("node-{number}");
        let process = self.world.start(&name, &self.world.new_disk());
        let node = TestNode::new(&disk, &self.facts);
        let description = SelfDescription {
            node: *disk.id.lock(),
            directory: DirectoryId(directory),
            incarnation,
            address: format!("{name}:4000"),
            client_address: None,
            roles: [NodeRole::Database, NodeRole::LogMember, NodeRole::Page].into(),
            zone: "z".to_owned(),
            capacity: 1 << 40,
            release: release(),
        };
        let addresses: Vec<Address> = self.members().into_values().collect();
        let of_task = Arc::clone(&node);
        let client = process.run(move |environment| {
            let local = identity(&name, number, ProcessRole::Database);
            let options = ClientOptions::default();
            let client =
                ControlClient::open(environment, local, &addresses, description, of_task, options);
            Arc::new(client)
        });
        let client = client.expect("nobody kills it");
        let _ = node.client.set(Arc::downgrade(&client));
        let running = Running { process, client, node };
        self.nodes.get_mut(&number).expect("added above").running = Some(running);
    }

    pub(crate) fn stop_node(&mut self, number: u64) {
        if let Some(running) = self.nodes.get_mut(&number).and_then(|node| node.running.take()) {
            running.process.crash();
        }
    }

    pub(crate) fn client(&self, number: u64) -> Arc<ControlClient> {
        let running = self.nodes[&number].running.as_ref().expect("it runs");
        Arc::clone(&running.client)
    }

    /// The catalog of the leader, once there is one.
    pub(crate) fn catalog(&self) -> Catalog {
        let leader = self.wait_for_leader();
        self.controls[&leader].node().catalog()
    }

    /// Waits until the catalog is as wanted.
    pub(crate) fn wait_for(&self, what: &str, is_so: impl Fn(&Catalog) -> bool) {
        for _ in 0..3000 {
            if self.leader().is_some_and(|id| is_so(&self.controls[&id].node().catalog())) {
                return;
            }
            sleep(20 * MS);
        }
        panic!("the catalog never has {what}: {:#?}", self.catalog());
    }

    /// Checks what must hold at the end, when everything runs and is healed.
    pub(crate) fn check_end(&self) {
        let newest = self.catalog();
        self.facts.check_end(&newest);
        for (id, control) in &self.controls {
            assert_eq!(control.seat.failure(), None, "control node {id} has failed");
            if control.seat.node().is_none() {
                continue;
            }
            let has_all = || {
                // One that has been replaced gets no more.
                let Some(node) = control.seat.node() else { return Some(newest.clone()) };
                let catalog = node.catalog();
                (catalog.entries() >= newest.entries()).then_some(catalog)
            };
            self.facts.see_catalog(&wait(has_all));
        }
    }
}

/// Waits for something that has to come.
pub(crate) fn wait<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    for _ in 0..3000 {
        match attempt() {
            Some(value) => return value,
            None => sleep(20 * MS),
        }
    }
    panic!("what was waited for never comes");
}

/// A change of the catalog that can be found again: a node of that name joins.
pub(crate) fn join(name: &str) -> Proposal {
    let directory = name.bytes().fold(1_u128, |sum, byte| sum * 257 + u128::from(byte));
    Proposal::Join(Join {
        cluster: Some(CLUSTER),
        name: name.to_owned(),
        directory: DirectoryId(directory),
        address: "nowhere:1".to_owned(),
        client_address: None,
        roles: [NodeRole::Compute].into(),
        zone: "z".to_owned(),
        capacity: 0,
        release: release(),
        number: None,
    })
}

/// Proposes a node of that name, and notes what was answered.
pub(crate) fn propose(client: &ControlClient, facts: &Facts, name: &str, patience: Duration) {
    match client.propose(join(name), patience) {
        Ok(Applied::Node(node)) => facts.acknowledge(name, node),
        Ok(other) => panic!("a join led to {other:?}"),
        Err(ProposeError::Unknown(_)) => {}
        Err(ProposeError::NoLeader(_)) => facts.deny(name),
        Err(ProposeError::Refused(text)) => panic!("{name} is refused: {text}"),
    }
}

/// Proposes nodes of names that begin so, until one is acknowledged. An answer may be lost where
/// a control node has just gone.
pub(crate) fn propose_one(client: &ControlClient, facts: &Facts, name: &str) {
    let before = facts.count();
    let mut number = 0;
    wait(|| {
        number += 1;
        propose(client, facts, &format!("{name}-{number}"), 5 * SECOND);
        (facts.count() > before).then_some(())
    });
}
