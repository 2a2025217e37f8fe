//! The members of a replicated log under the simulator, each with its log service, and an engine
//! at the one that leads, which reads pages elsewhere. The tests of the whole storage tier share
//! them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use firn_api::{LogError, LogStore, PageStore};
use firn_base::network::{Address, Role};
use firn_base::task::sleep;
use firn_base::{Environment, Lsn};
use firn_engine::{Engine, EngineError};
use firn_link::{Caller, CallerSettings, Server, ServerSettings};
use firn_log_service::{LogService, LogServiceOptions, RemoteLog, RemoteLogOptions};
use firn_testing::group_log::{GroupCluster, GroupSettings};
use firn_testing::random::Random;
use firn_testing::simulation::World;
use parking_lot::Mutex;

use crate::crowd::{Crowd, open_small_engine};
use crate::page_machines::{MS, PageNodeLog, local};
use crate::plan::Shape;

/// The port of the members' log services.
pub(crate) const PORT: u16 = 7_100;

/// The host of a member.
pub(crate) fn host(id: u64) -> String {
    format!("log-{id}")
}

/// The members that vote, as readers of the log are told.
pub(crate) type Voters = Arc<Mutex<Vec<u64>>>;

/// How a process reaches the log services of the members.
#[derive(Clone)]
pub(crate) struct LogLinks {
    world: World,
    voters: Voters,
}

impl LogLinks {
    pub(crate) fn new(world: &World, voters: &Voters) -> LogLinks {
        LogLinks { world: world.clone(), voters: Arc::clone(voters) }
    }

    /// Opens the log for page nodes.
    pub(crate) fn opener(self) -> PageNodeLog {
        Arc::new(move |environment, name| self.open(environment, name))
    }

    fn caller(&self, environment: &Environment, name: &str, id: u64) -> Arc<Caller> {
        let address: Address = self.world.network().address(&host(id), PORT);
        let mut settings = CallerSettings::new(address);
        (settings.connect_timeout, settings.most_delay) = (200 * MS, 50 * MS);
        (settings.silence, settings.least_delay) = (300 * MS, 5 * MS);
        Arc::new(Caller::new(environment, local(1000, name, Role::Pages), settings))
    }

    /// The log, for the page node of this name. Its members may be others later.
    fn open(&self, environment: &Environment, name: &str) -> Result<Arc<dyn LogStore>, LogError> {
        let mut callers = BTreeMap::new();
        let now = self.callers(environment, name, &mut callers);
        let options = RemoteLogOptions {
            stays: vec![name.to_owned()],
            attempt: 100 * MS,
            patience: 500 * MS,
            ..RemoteLogOptions::default()
        };
        let log = RemoteLog::open(environment, now, options)?;
        let (followed, own) = (Arc::downgrade(&log), self.clone());
        let (outside, name) = (environment.clone(), name.to_owned());
        let follow = move || {
            let mut before: Vec<u64> = callers.keys().copied().collect();
            while let Some(log) = followed.upgrade() {
                let now = own.voters.lock().clone();
                if now != before {
                    log.set_members(&own.callers(&outside, &name, &mut callers));
                    before = now;
                }
                drop(log);
                sleep(20 * MS);
            }
        };
        environment.spawner.spawn("members", Box::new(follow));
        Ok(log)
    }

    /// A caller of each member that votes; those that there are already are kept.
    fn callers(
        &self,
        environment: &Environment,
        name: &str,
        callers: &mut BTreeMap<u64, Arc<Caller>>,
    ) -> Vec<Arc<Caller>> {
        let voters = self.voters.lock().clone();
        callers.retain(|id, _| voters.contains(id));
        for id in voters {
            callers.entry(id).or_insert_with(|| self.caller(environment, name, id));
        }
        callers.values().cloned().collect()
    }
}

/// Where an engine at a member reads pages.
pub(crate) type OpenPages = Arc<dyn Fn(&Environment, u64) -> Arc<dyn PageStore> + Send + Sync>;

/// See the module's page. Clones are the same members.
#[derive(Clone)]
pub(crate) struct Members {
    pub(crate) cluster: GroupCluster,
    pages: OpenPages,
}

/// Settings of the group, by chance.
pub(crate) fn some_settings(random: &Random) -> GroupSettings {
    GroupSettings {
        max_sync: Duration::from_micros(*random.pick(&[50, 500, 2_000])),
        round_bytes: *random.pick(&[4_000, 40_000]),
        recent_bytes: *random.pick(&[0, 100_000]),
        undurable_bytes: 400_000,
        priority_step: 0,
        drift_ppm: *random.pick(&[0, 1_000, 100_000]),
        ..GroupSettings::new(3)
    }
}

impl Members {
    pub(crate) fn start(cluster: GroupCluster, pages: OpenPages) -> Members {
        let members = Members { cluster, pages };
        members.start_all();
        members
    }

    /// Starts the members that do not run, with their log services.
    pub(crate) fn start_all(&self) {
        for id in self.cluster.ids() {
            if self.cluster.store(id).is_none() {
                self.cluster.start(id);
                self.serve_log(id);
            }
        }
    }

    /// The member serves its log to readers elsewhere.
    pub(crate) fn serve_log(&self, id: u64) {
        let process = self.cluster.process(id).expect("it runs");
        let store = self.cluster.store(id).expect("it runs") as Arc<dyn LogStore>;
        let address = process.address(PORT);
        drop(process.spawn("serve-log", move |environment| {
            let options = LogServiceOptions::default();
            let service = LogService::open(environment, store, Path::new("/readers"), options);
            let service = service.expect("its list of readers can be read");
            let node = local(id, &host(id), Role::Log);
            let settings = ServerSettings { workers: 2, ..ServerSettings::default() };
            let server =
                Server::start(environment, node, &address, settings, vec![service.offer()]);
            let _server = server.expect("nobody else listens there");
            loop {
                sleep(Duration::from_secs(3600));
            }
        }));
    }

    /// An engine at a member. It keeps few pages, so it reads what it dropped.
    fn open(&self, environment: &Environment, id: u64) -> Result<Engine, EngineError> {
        let log = self.cluster.store(id).expect("its own process runs");
        open_small_engine(environment, log, (self.pages)(environment, id), 0)
    }

    /// Makes the trees of an empty database at the member that leads.
    pub(crate) fn create(&self, shape: &Shape) -> Crowd {
        self.cluster.lead_at(1);
        let (own, shape) = (self.clone(), shape.clone());
        let process = self.cluster.process(1).expect("it runs");
        let created = process.run(move |environment| {
            Crowd::create(own.open(environment, 1).expect("an empty log"), &shape)
        });
        created.expect("nobody kills it")
    }

    /// Begins one life of an engine at a member, which is to lead.
    pub(crate) fn begin_life(&self, home: u64, crowd: &Crowd, choices: Random) {
        self.cluster.lead_at(home);
        let (own, crowd) = (self.clone(), crowd.clone());
        let process = self.cluster.process(home).expect("it leads");
        process.spawn("live", move |environment| {
            // It may not even open: another member may lead by then.
            if let Ok(engine) = own.open(environment, home).map(Arc::new) {
                crowd.live(environment, &engine, &choices);
            }
        });
    }

    /// The engine's member loses power, or all do. Perhaps another member leads before that; `heal`
    /// joins it to the others again.
    pub(crate) fn end_life(&self, world: &World, random: &Random, home: u64, heal: impl Fn()) {
        // Where another member leads by now, the engine may still believe in itself: it is not
        // asked to stop before the log is checked elsewhere.
        if random.chance(0.3) {
            heal();
            self.cluster.cut([home]);
            self.start_all();
            self.cluster.wait_for_leader_but(home);
            heal();
            world.sleep(Duration::from_millis(random.between(1, 100)));
        }
        match random.chance(0.3) {
            true => self.cluster.crash_all(),
            false => self.cluster.crash(home),
        }
    }

    /// Opens an engine where the log is led, and compares it with everything that was acknowledged.
    /// Returns how far the log is durable. All members run.
    pub(crate) fn check(&self, world: &World, crowd: &Crowd) -> Lsn {
        for _ in 0..100 {
            let id = self.cluster.wait_for_leader_but(0);
            let (own, crowd) = (self.clone(), crowd.clone());
            let process = self.cluster.process(id).expect("it leads");
            let checked = process.run(move |environment| {
                // Another one may be elected meanwhile.
                let Ok(engine) = own.open(environment, id) else { return None };
                crowd.check(&engine);
                let pool = engine.system().pages().pool.statistics();
                assert_eq!(pool.evictions_offered, 0, "no page goes to a page node");
                engine.close().expect("a majority answers");
                Some(own.cluster.store(id).expect("its own process runs").durable_lsn())
            });
            if let Some(durable) = checked.expect("nobody kills it") {
                return durable;
            }
            world.sleep(20 * MS);
        }
        panic!("no member opens the log");
    }
}
