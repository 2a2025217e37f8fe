//! A group of three whose members serve their log, somebody who writes it, and readers elsewhere.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use firn_api::log_store::conformance::Appender;
use firn_api::{
    FollowOptions, Followed, LogError, LogFollower, LogPiece, LogStore, PageFilter, WriterEpoch,
};
use firn_base::network::{ClusterId, NodeId, NodeIdentity, Role, Roles};
use firn_base::{Environment, Lsn, PageId, PageNo, SpaceId, task};
use firn_consensus::{MemberChange, MemberId, Role as MemberRole};
use firn_format::redo::GroupBuilder;
use firn_link::{Caller, CallerSettings, LocalNode, Server, ServerSettings};
use firn_log_service::{LogService, LogServiceOptions, RemoteLog, RemoteLogOptions};
use firn_testing::group_log::{GroupCluster, GroupSettings};
use firn_testing::simulation::{Process, SimulatedDisk, World};
use parking_lot::Mutex;

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// The port of the members' servers.
const PORT: u16 = 7_100;

pub(crate) fn node(number: u64, name: &str) -> Arc<LocalNode> {
    let identity = NodeIdentity {
        cluster: ClusterId(1),
        node: NodeId(number),
        name: name.to_owned(),
        roles: Roles::of(&[Role::Log]),
    };
    Arc::new(LocalNode::new(identity, 0))
}

pub(crate) fn page(number: u32) -> PageId {
    PageId::new(SpaceId(1), PageNo(number % 50))
}

/// A group of one record about page `number % 50`.
pub(crate) fn group(number: u32, length: usize) -> Vec<u8> {
    let mut builder = GroupBuilder::new();
    let pattern = number.to_le_bytes();
    builder.push(1, page(number), |body| body.extend(pattern.iter().cycle().take(length)));
    builder.finish().to_vec()
}

/// How services and clients behave in tests.
pub(crate) fn service_options() -> LogServiceOptions {
    LogServiceOptions { lease: 2 * SECOND, heartbeat: 50 * MS, ..LogServiceOptions::default() }
}

pub(crate) fn client_options() -> RemoteLogOptions {
    RemoteLogOptions {
        patience: 5 * SECOND,
        attempt: 200 * MS,
        renewal: 10 * MS,
        behind: 100 * MS,
        silence: 300 * MS,
        window_bytes: 20_000,
        piece_bytes: 4_000,
        ..RemoteLogOptions::default()
    }
}

type Wrap = dyn Fn(Arc<dyn LogStore>) -> Arc<dyn LogStore> + Send + Sync;

/// A group whose members serve their log. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Group {
    pub(crate) world: World,
    pub(crate) cluster: GroupCluster,
    serving: Arc<Mutex<BTreeMap<u64, Serving>>>,
    /// Where the members keep their readers; they outlive the processes.
    disks: Arc<Mutex<BTreeMap<u64, SimulatedDisk>>>,
    /// The store that a member serves, made of its log.
    wrap: Arc<Wrap>,
}

/// What a member's process has besides its store.
struct Serving {
    service: Arc<LogService>,
    _server: Server,
    /// Has the disk.
    mount: Process,
}

impl Group {
    pub(crate) fn new(world: &World, settings: GroupSettings) -> Group {
        let cluster = GroupCluster::new(world, settings);
        let disks = cluster.ids().map(|id| (id, world.new_disk())).collect();
        Group {
            world: world.clone(),
            cluster,
            serving: Arc::default(),
            disks: Arc::new(Mutex::new(disks)),
            wrap: Arc::new(|store| store),
        }
    }

    /// A group of three that runs.
    pub(crate) fn of_three(world: &World) -> Group {
        Group::of_three_with(world, |store| store)
    }

    /// A group of three that runs and serves what `wrap` makes of its stores.
    pub(crate) fn of_three_with(
        world: &World,
        wrap: impl Fn(Arc<dyn LogStore>) -> Arc<dyn LogStore> + Send + Sync + 'static,
    ) -> Group {
        let random = world.random();
        let settings = GroupSettings {
            max_sync: Duration::from_micros(*random.pick(&[50, 500, 3_000])),
            ..GroupSettings::new(3)
        };
        let mut group = Group::new(world, settings);
        group.wrap = Arc::new(wrap);
        group.start_all();
        group
    }

    pub(crate) fn start_all(&self) {
        self.cluster.ids().for_each(|id| self.start(id));
    }

    /// Starts a member and its service, unless it runs.
    pub(crate) fn start(&self, id: u64) {
        self.cluster.start(id);
        if self.serving.lock().contains_key(&id) {
            return;
        }
        let process = self.cluster.process(id).expect("it was started");
        let store = self.cluster.store(id).expect("it was started") as Arc<dyn LogStore>;
        let store = (self.wrap)(store);
        let address = process.address(PORT);
        let mut disks = self.disks.lock();
        let disk = disks.entry(id).or_insert_with(|| self.world.new_disk()).clone();
        drop(disks);
        let mount = self.world.start(&format!("disk-{id}"), &disk);
        let disk = mount.environment().disk;
        let started = process.run(move |environment| {
            let mut options = service_options();
            options.leader = Some(Arc::new(|| Some("10.1.2.3:4407".to_owned())));
            let with_disk = Environment { disk, ..environment.clone() };
            let service = LogService::open(&with_disk, store, Path::new("/readers"), options);
            let service = service.expect("a good list of readers");
            let local = node(id, &format!("log-{id}"));
            let (settings, offers) = (ServerSettings::default(), vec![service.offer()]);
            let server = Server::start(environment, local, &address, settings, offers);
            let server = server.expect("nobody else listens there");
            (service, server)
        });
        let (service, server) = started.expect("nobody kills it");
        self.serving.lock().insert(id, Serving { service, _server: server, mount });
    }

    /// The machine of a member loses power.
    pub(crate) fn crash(&self, id: u64) {
        self.cluster.crash(id);
        let served = self.serving.lock().remove(&id);
        if let Some(served) = served {
            served.mount.crash();
        }
    }

    pub(crate) fn crash_all(&self) {
        self.cluster.ids().for_each(|id| self.crash(id));
    }

    /// The names of the readers that hold log at a member.
    pub(crate) fn readers(&self, id: u64) -> Vec<String> {
        let service = Arc::clone(&self.serving.lock()[&id].service);
        service.readers().into_iter().map(|reader| reader.name).collect()
    }

    /// Lets the members truncate what no reader holds, and gives them time to.
    pub(crate) fn let_go_of_all(&self) {
        for _ in 0..20 {
            let stores = self.cluster.ids().filter_map(|id| self.cluster.store(id));
            stores.for_each(|store| store.let_go(store.durable_lsn()));
            task::sleep(10 * MS);
        }
    }

    /// Where the log of each member begins.
    pub(crate) fn truncated(&self) -> Vec<Lsn> {
        let stores = self.cluster.ids().map(|id| self.cluster.store(id).expect("it runs"));
        stores.map(|store| store.truncated_lsn()).collect()
    }

    /// A client of these members, in a process.
    pub(crate) fn client(
        &self,
        environment: &Environment,
        ids: impl IntoIterator<Item = u64>,
        options: RemoteLogOptions,
    ) -> Result<Arc<RemoteLog>, LogError> {
        let caller = |id: u64| self.caller(environment, id);
        RemoteLog::open(environment, ids.into_iter().map(caller).collect(), options)
    }

    /// A link to a member.
    pub(crate) fn caller(&self, environment: &Environment, id: u64) -> Arc<Caller> {
        let address = self.world.network().address(&format!("log-{id}"), PORT);
        let mut settings = CallerSettings::new(address);
        settings.connect_timeout = 200 * MS;
        settings.silence = SECOND;
        settings.most_delay = 100 * MS;
        Arc::new(Caller::new(environment, node(100, "reader"), settings))
    }

    /// A process joins the group as a learner, and serves its log.
    pub(crate) fn join(&self, id: u64) {
        self.cluster.add(id);
        self.start(id);
        let learner = MemberChange::Set(MemberId(id), MemberRole::Learner);
        assert!(self.cluster.change_members(&[learner]), "it is not taken");
    }

    /// `new`, which has the log, takes the place of `old`, whose process ends.
    pub(crate) fn replace(&self, old: u64, new: u64) {
        let voter = MemberChange::Set(MemberId(new), MemberRole::Voter);
        let changes = [voter, MemberChange::Remove(MemberId(old))];
        assert!(self.cluster.change_members(&changes), "the members are not changed");
        self.crash(old);
        self.cluster.remove(old);
    }

    /// A process with a client of all members.
    pub(crate) fn reader(&self, name: &str) -> (Process, Arc<RemoteLog>) {
        self.reader_with(name, client_options())
    }

    pub(crate) fn reader_with(
        &self,
        name: &str,
        options: RemoteLogOptions,
    ) -> (Process, Arc<RemoteLog>) {
        let process = self.world.start(name, &self.world.new_disk());
        let own = self.clone();
        let ids: Vec<u64> = self.cluster.ids().collect();
        let log = process.run(move |environment| own.client(environment, ids, options));
        (process, log.expect("nobody kills it").expect("a majority answers"))
    }

    /// Opens the log at the member that leads.
    pub(crate) fn open(&self) -> Appender {
        for _ in 0..1_000 {
            let leader = self.cluster.wait_for_leader_but(0);
            let store = self.cluster.store(leader).expect("it runs");
            if let Ok(log) = Appender::open(&*store, WriterEpoch::Next) {
                return log;
            }
            task::sleep(5 * MS);
        }
        panic!("no member leads");
    }

    /// What is durable in the group, as far as some member knows.
    pub(crate) fn durable_log(&self) -> Vec<u8> {
        self.cluster.durable_log(Lsn::FIRST).expect("nothing was released")
    }

    pub(crate) fn let_go(&self, lsn: Lsn) {
        let stores = self.cluster.ids().filter_map(|id| self.cluster.store(id));
        stores.for_each(|store| store.let_go(lsn));
    }
}

/// Options of a reader of everything.
pub(crate) fn follow_options(name: &str, from: Lsn) -> FollowOptions {
    FollowOptions {
        name: name.to_owned(),
        from,
        until: None,
        pages: PageFilter::All,
        hold_limit_bytes: u64::MAX,
    }
}

/// The next piece, while the log may be unavailable for some time.
pub(crate) fn next_piece(follower: &mut dyn LogFollower, limit_bytes: usize) -> Option<LogPiece> {
    for _ in 0..600 {
        match follower.next(limit_bytes, 100 * MS) {
            Ok(Followed::Piece(piece)) => return Some(piece),
            Ok(Followed::End) => return None,
            Ok(Followed::Nothing) | Err(LogError::Unavailable { .. }) => {}
            Err(error) => panic!("a follower ends with {error}"),
        }
    }
    panic!("nothing came for a long time");
}
