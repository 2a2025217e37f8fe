//! The processes of a group, and what can happen to them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use firn_base::network::Address;
use firn_base::{Environment, Lsn, task};
use firn_consensus::{
    Base, MemberChange, MemberId, Members, MembersError, Options, Refusal, Role, Term,
};
use firn_storage::group::{GroupOptions, GroupStore, NetworkPeers, NoPeers, Peers};
use parking_lot::Mutex;

use super::disk::{DiskFault, MemberDisk};
use super::peer_fault::{FaultyPeers, PeerFault};
use crate::random::Random;
use crate::simulation::{Process, SimulatedDisk, SimulatedNetwork, World};

/// The port at which every member listens.
const PORT: u16 = 7_000;

/// How the members behave.
#[derive(Debug, Clone)]
pub struct GroupSettings {
    /// How many voters the group is founded with.
    pub members: u64,
    /// The longest time that a sync takes.
    pub max_sync: Duration,
    pub tick: Duration,
    pub patience: Duration,
    pub round_bytes: usize,
    /// The most log that may be proposed and not durable yet, in bytes.
    pub undurable_bytes: u64,
    /// How much longer than the member before it each member waits before it stands for election,
    /// in steps of an election's time.
    pub priority_step: u8,
    /// How much log stays in memory for members that are behind, in bytes.
    pub recent_bytes: usize,
    /// How far each process's clock may be from the true rate, in parts per million.
    pub drift_ppm: u32,
    /// A rule that all members break when they read messages.
    pub peer_fault: Option<PeerFault>,
    /// What clients are told about where each member is.
    pub names: BTreeMap<u64, String>,
}

impl GroupSettings {
    #[must_use]
    pub fn new(members: u64) -> GroupSettings {
        GroupSettings {
            members,
            max_sync: Duration::from_micros(500),
            tick: Duration::from_millis(5),
            patience: Duration::from_millis(300),
            round_bytes: 4_000,
            undurable_bytes: 100_000,
            priority_step: 10,
            recent_bytes: 10_000,
            drift_ppm: 0,
            peer_fault: None,
            names: (1..=members).map(|id| (id, format!("log-{id}"))).collect(),
        }
    }
}

type Opened = (Arc<GroupStore>, Option<Arc<NetworkPeers>>);

/// A group. Clones are the same one.
#[derive(Clone)]
pub struct GroupCluster {
    world: World,
    settings: Arc<GroupSettings>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Of every member, and of those that will join.
    disks: BTreeMap<u64, MemberDisk>,
    /// What else each of them keeps.
    files: BTreeMap<u64, SimulatedDisk>,
    running: BTreeMap<u64, Running>,
    /// Members that no other one reaches.
    cut: BTreeSet<u64>,
}

struct Running {
    process: Arc<Process>,
    store: Arc<GroupStore>,
    /// `None` in a group that begins with one member.
    peers: Option<Arc<NetworkPeers>>,
}

impl GroupCluster {
    /// A group with an empty log, none of whose members runs.
    #[must_use]
    pub fn new(world: &World, settings: GroupSettings) -> GroupCluster {
        let members = (1..=settings.members).map(|id| (MemberId(id), Role::Voter));
        let members = Members::new(members).expect("voters");
        let disk = |id| {
            let base = Base::founding(Term(1), Lsn::FIRST, members.clone());
            (id, MemberDisk::new(base, world.random(), settings.max_sync))
        };
        let disks = (1..=settings.members).map(disk).collect();
        let state = State { disks, ..State::default() };
        let (world, settings) = (world.clone(), Arc::new(settings));
        GroupCluster { world, settings, state: Arc::new(Mutex::new(state)) }
    }

    /// The ids of the members, and of those that will join.
    pub fn ids(&self) -> impl Iterator<Item = u64> + use<> {
        let ids: Vec<u64> = self.state.lock().disks.keys().copied().collect();
        ids.into_iter()
    }

    /// The disk of a member.
    ///
    /// # Panics
    /// If there is no such member.
    #[must_use]
    pub fn disk(&self, id: u64) -> MemberDisk {
        self.state.lock().disks[&id].clone()
    }

    /// Starts a process with an empty log that will join the group under this id. All others reach
    /// it.
    pub fn add(&self, id: u64) {
        let disk = MemberDisk::new(Base::joining(), self.random(), self.settings.max_sync);
        let before = self.state.lock().disks.insert(id, disk);
        assert!(before.is_none(), "ids are not used again");
        self.introduce();
        self.start(id);
    }

    /// A process ends, its log is deleted, and nobody reaches it any more.
    pub fn remove(&self, id: u64) {
        self.crash(id);
        let mut state = self.state.lock();
        state.disks.remove(&id);
        state.files.remove(&id);
        drop(state);
        self.introduce();
    }

    /// A member loses its log and its votes, and comes back under its id as if it had never had
    /// any. Nothing allows that.
    pub fn forget_log(&self, id: u64) {
        self.crash(id);
        let disk = MemberDisk::new(Base::joining(), self.random(), self.settings.max_sync);
        self.state.lock().disks.insert(id, disk);
        self.start(id);
    }

    /// Tells the processes that run which others there are.
    fn introduce(&self) {
        for id in self.ids() {
            let state = self.state.lock();
            let running = state.running.get(&id);
            let running = running
                .and_then(|one| Some((Arc::clone(&one.process), Arc::clone(one.peers.as_ref()?))));
            drop(state);
            if let Some((process, peers)) = running {
                let others = self.others(id);
                process.run(move |_| peers.set_members(others)).expect("nobody kills it");
            }
        }
    }

    fn others(&self, id: u64) -> Vec<(MemberId, Address)> {
        let others = self.ids().filter(|other| *other != id);
        others.map(|other| (MemberId(other), self.address(other))).collect()
    }

    /// Changes the members, at the one that leads. Blocks until the change is in force there.
    /// Returns false if it does not come into force within ten seconds.
    #[must_use]
    pub fn change_members(&self, changes: &[MemberChange]) -> bool {
        for _ in 0..5_000 {
            let leader = self.leader().and_then(|id| self.store(id));
            if let Some(store) = leader.filter(|store| store.leads().is_some()) {
                let term = store.leads().unwrap_or_default();
                let now = store.members();
                let after = changes.iter().filter(|change| match change {
                    MemberChange::Set(id, role) => now.role(*id) != Some(*role),
                    MemberChange::Remove(id) => now.role(*id).is_some(),
                });
                let after: Vec<_> = after.copied().collect();
                // Other refusals pass: a change is under way, or another one is about to lead.
                let nothing = Err(Refusal::Members(MembersError::Nothing));
                if store.change_members(term, &after) == nothing {
                    return true;
                }
            }
            task::sleep(Duration::from_millis(2));
        }
        false
    }

    fn disks(&self) -> Vec<MemberDisk> {
        self.state.lock().disks.values().cloned().collect()
    }

    fn network(&self) -> SimulatedNetwork {
        self.world.network()
    }

    fn address(&self, id: u64) -> Address {
        self.network().address(&host(id), PORT)
    }

    /// Starts the members that do not run.
    pub fn start_all(&self) {
        self.ids().for_each(|id| self.start(id));
    }

    /// Starts a member, unless it runs.
    pub fn start(&self, id: u64) {
        if self.state.lock().running.contains_key(&id) {
            return;
        }
        let files = self.state.lock().files.get(&id).cloned();
        let files = files.unwrap_or_else(|| self.world.new_disk());
        self.state.lock().files.insert(id, files.clone());
        let process = Arc::new(self.world.start(&host(id), &files));
        let drift_ppm = self.settings.drift_ppm as i32;
        if drift_ppm > 0 {
            let drift = self.random().between(0, 2 * u64::from(self.settings.drift_ppm));
            process.drift(drift as i32 - drift_ppm);
        }
        let own = self.clone();
        let opened = process.run(move |environment| own.new_store(environment, id));
        let (store, peers) = opened.expect("nobody kills it");
        self.state.lock().running.insert(id, Running { process, store, peers });
    }

    fn new_store(&self, environment: &Environment, id: u64) -> Opened {
        let settings = &*self.settings;
        let mut member = Options::new(MemberId(id), environment.random.next_u64());
        member.priority = ((id - 1) as u8).saturating_mul(settings.priority_step);
        member.undurable_bytes = settings.undurable_bytes;
        let mut options = GroupOptions::new(member);
        options.tick = settings.tick;
        options.patience = settings.patience;
        options.round_bytes = settings.round_bytes;
        options.idle_flush = Duration::from_millis(2);
        options.recent_bytes = settings.recent_bytes;
        options.names =
            settings.names.iter().map(|(id, name)| (MemberId(*id), name.clone())).collect();
        let network = (settings.members > 1).then(|| {
            let peers = NetworkPeers::listen(environment, &self.address(id), self.others(id));
            Arc::new(peers.expect("nobody else listens there"))
        });
        let peers: Arc<dyn Peers> = match (network.clone(), settings.peer_fault) {
            (Some(peers), Some(fault)) => Arc::new(FaultyPeers { peers, fault }),
            (Some(peers), None) => peers,
            (None, _) => Arc::new(NoPeers),
        };
        let log = Arc::new(self.disk(id));
        let store = GroupStore::start(environment, options, log, peers).expect("a good log");
        (Arc::new(store), network)
    }

    /// The store of a member that runs.
    #[must_use]
    pub fn store(&self, id: u64) -> Option<Arc<GroupStore>> {
        Some(Arc::clone(&self.state.lock().running.get(&id)?.store))
    }

    /// The process of a member that runs.
    #[must_use]
    pub fn process(&self, id: u64) -> Option<Arc<Process>> {
        Some(Arc::clone(&self.state.lock().running.get(&id)?.process))
    }

    /// The machine of a member loses power.
    pub fn crash(&self, id: u64) {
        let running = self.state.lock().running.remove(&id);
        if let Some(running) = running {
            running.process.crash();
            self.disk(id).lose_power();
            drop(running);
        }
    }

    /// All machines lose power.
    pub fn crash_all(&self) {
        self.ids().for_each(|id| self.crash(id));
    }

    /// The member that leads in the highest term, as the members think themselves.
    #[must_use]
    pub fn leader(&self) -> Option<u64> {
        let stores: Vec<_> = self.ids().filter_map(|id| Some((id, self.store(id)?))).collect();
        let leading = stores.iter().filter_map(|(id, store)| Some((store.leads()?, *id)));
        leading.max().map(|(_, id)| id)
    }

    /// Waits for a leader that is not `but`.
    pub fn wait_for_leader_but(&self, but: u64) -> u64 {
        for _ in 0..10_000 {
            if let Some(leader) = self.leader().filter(|leader| *leader != but) {
                return leader;
            }
            task::sleep(Duration::from_millis(2));
        }
        panic!("nobody is elected");
    }

    /// Lets a member lead that is reached. Blocks until it does.
    pub fn lead_at(&self, id: u64) {
        for _ in 0..10_000 {
            match self.leader() {
                Some(leader) if leader == id => return,
                Some(leader) => {
                    if let Some(store) = self.store(leader) {
                        // Refused while one is under way.
                        let _ = store.hand_over(MemberId(id));
                    }
                }
                None => {}
            }
            task::sleep(Duration::from_millis(2));
        }
        panic!("member {id} is not elected");
    }

    /// Nobody reaches these members, and each reaches itself alone; all others reach each other.
    pub fn cut(&self, members: impl IntoIterator<Item = u64>) {
        let cut: BTreeSet<u64> = members.into_iter().collect();
        self.network().heal();
        for id in &cut {
            let others: Vec<String> = self.ids().filter(|other| other != id).map(host).collect();
            let others: Vec<&str> = others.iter().map(String::as_str).collect();
            self.network().separate(&[&host(*id)], &others);
        }
        self.state.lock().cut = cut;
    }

    /// Whether others do not reach the member.
    #[must_use]
    pub fn is_cut(&self, id: u64) -> bool {
        self.state.lock().cut.contains(&id)
    }

    /// Ends cuts, stalls and full disks.
    pub fn heal(&self) {
        self.cut([]);
        for disk in self.disks() {
            disk.set_stalled(false);
            disk.set_full(false);
        }
    }

    /// All disks break this promise.
    pub fn set_disk_fault(&self, fault: Option<DiskFault>) {
        self.disks().iter().for_each(|disk| disk.set_fault(fault));
    }

    /// The log from `from` on that some member has reported as durable, as a page service gets it;
    /// `None` if it is released. Without a switch point.
    #[must_use]
    pub fn durable_log(&self, from: Lsn) -> Option<Vec<u8>> {
        let newest = self.disks().into_iter().max_by_key(MemberDisk::reported)?;
        newest.reported_log(from)
    }

    #[must_use]
    pub fn random(&self) -> Random {
        self.world.random()
    }
}

fn host(id: u64) -> String {
    format!("log-{id}")
}
