//! Replicas of a cluster of this machine that start and leave by themselves.
//!
//! ```text
//!   DIR/elastic-1/…       the files of a replica, while there is one of that number
//!   DIR/elastic-1.log     what its process logs
//!   DIR/elastic.status    what there is and why, for firn cluster status
//! ```
//!
//! The process of `firn cluster start` has the replicas' processes, as it has those of the other
//! nodes, and a thread that looks at them ([`Scaler`]). A replica joins by itself, at a free port,
//! and has no port for clients: it reads for those of the other nodes, so nobody is connected to it
//! when it leaves.

#![allow(
    clippy::disallowed_methods,
    reason = "files and processes of the user who runs the binary"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::Environment;
use firn_base::network::Role;
use firn_base::task::TaskHandle;
use firn_cluster::{
    DEFAULT_ZONE, Layout, PoolError, PoolProcess, ReplicaNames, ReplicaPool, Scaler, Surveyor,
};
use firn_control::elastic::ElasticSettings;
use parking_lot::Mutex;

use super::look_after;
use crate::CommandError;
use crate::cluster::environment;
use crate::cluster::local::{NodeCommands, end_all};

/// The prefix of the replicas' names.
const NAME: &str = "elastic";
/// In the directory of the cluster.
const STATUS_FILE: &str = "elastic.status";
/// What a cluster of this machine tells of such replicas, if it has any.
pub(in crate::cluster) fn status(directory: &Path) -> Option<String> {
    let text = fs::read_to_string(directory.join(STATUS_FILE)).ok()?;
    Some(format!("elastic: {text}"))
}

/// The thread that looks at the replicas.
pub(in crate::cluster) struct ElasticReplicas {
    shared: Arc<Shared>,
    task: Box<dyn TaskHandle>,
}

#[derive(Default)]
struct Shared {
    is_ending: AtomicBool,
    /// What was done and not told yet.
    done: Mutex<Vec<String>>,
}

impl ElasticReplicas {
    /// Starts the replicas that the directory has, and goes on with what the settings want.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub(in crate::cluster) fn start(
        commands: NodeCommands,
        layout: &Layout,
        settings: ElasticSettings,
    ) -> Result<ElasticReplicas, CommandError> {
        let (environment, _) = environment(None)?;
        let directory = commands.directory.clone();
        let surveyor = Surveyor::new(&environment, layout.clone(), None);
        let pool = LocalPool::begin(commands, layout, settings.drain_limit)?;
        let mut scaler = Scaler::new(surveyor, settings, pool);
        let shared = Arc::<Shared>::default();
        let (own, clock) = (Arc::clone(&shared), Arc::clone(&environment.clock));
        let body = move || {
            let file = directory.join(STATUS_FILE);
            let mut told = String::new();
            let tell = |scaler: &Scaler<LocalPool>, done| {
                own.done.lock().extend(done);
                let summary = scaler.summary(clock.monotonic());
                if summary == told {
                    return;
                }
                if let Err(error) = write(&file, &format!("{summary}\n")) {
                    tracing::warn!(%error, "{} cannot be written", file.display());
                }
                told = summary;
            };
            look_after(&mut scaler, &*clock, || own.is_ending(), tell);
            scaler.into_pool().end();
            // A file that stays tells of what was, until the next start.
            let _ = fs::remove_file(&file);
        };
        let task = Environment::system().spawner.spawn("elastic", Box::new(body));
        Ok(ElasticReplicas { shared, task })
    }

    /// Tells what was done.
    pub(in crate::cluster) fn tell(&self, out: &mut dyn Write) -> io::Result<()> {
        let done = std::mem::take(&mut *self.shared.done.lock());
        for line in &done {
            writeln!(out, "firn: {line}")?;
        }
        if done.is_empty() { Ok(()) } else { out.flush() }
    }

    /// Has the replicas end in order; [`ElasticReplicas::join`] waits for that.
    pub(in crate::cluster) fn begin_ending(&self) {
        self.shared.is_ending.store(true, Ordering::Relaxed);
    }

    pub(in crate::cluster) fn join(self) {
        self.task.join();
    }
}

impl Shared {
    fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }
}

/// Writes a file as a whole, for readers at any time.
fn write(file: &Path, text: &str) -> io::Result<()> {
    let new = file.with_extension("new");
    fs::write(&new, text)?;
    fs::rename(&new, file)
}

/// Processes of this machine.
struct LocalPool {
    commands: NodeCommands,
    /// The control nodes, as `--join` takes them.
    controls: String,
    zone: String,
    drain_seconds: u64,
    names: ReplicaNames,
    replicas: BTreeMap<u32, Replica>,
}

struct Replica {
    /// `None`: it could not be started.
    child: Option<Child>,
    is_leaving: bool,
}

impl LocalPool {
    /// The pool of a cluster's directory, with the replicas that it had when it ended.
    fn begin(
        commands: NodeCommands,
        layout: &Layout,
        drain_limit: Duration,
    ) -> Result<LocalPool, CommandError> {
        let controls: Vec<String> =
            layout.control_members().map(|(_, node)| node.address.to_string()).collect();
        // Where the cluster is meant to write.
        let home = layout.with_role(Role::Database).next();
        let zone = home.map_or(DEFAULT_ZONE, |node| &node.zone).to_owned();
        let names = ReplicaNames::new(NAME, 1);
        let mut found = Vec::new();
        for entry in fs::read_dir(&commands.directory)? {
            let name = entry?.file_name();
            found.extend(name.to_str().and_then(|name| names.number(name)));
        }
        let mut pool = LocalPool {
            commands,
            controls: controls.join(","),
            zone,
            drain_seconds: drain_limit.as_secs(),
            names,
            replicas: BTreeMap::new(),
        };
        found.into_iter().for_each(|number| pool.start_replica(number));
        Ok(pool)
    }

    fn files(&self, number: u32) -> PathBuf {
        self.commands.directory.join(self.names.name(number))
    }

    fn start_process(&self, number: u32) -> Result<Child, CommandError> {
        // Another process may take the port before the replica does: then it ends, and another one
        // is started.
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let mut command = self.commands.of(&self.names.name(number))?;
        command
            .args(["--join", &self.controls, "--role", "replica", "--zone", &self.zone])
            .args(["--cluster-listen", &address.to_string()])
            .args(["--shutdown-patience-seconds", &self.drain_seconds.to_string()]);
        Ok(command.spawn()?)
    }

    fn start_replica(&mut self, number: u32) {
        let child = self.start_process(number).inspect_err(|error| {
            tracing::warn!(%error, "{} cannot be started", self.names.name(number));
        });
        self.replicas.insert(number, Replica { child: child.ok(), is_leaving: false });
    }

    /// Has all end in order, and waits for them.
    fn end(mut self) {
        let children = self.replicas.values_mut().filter_map(|replica| replica.child.as_mut());
        end_all(children.collect());
    }
}

impl ReplicaPool for LocalPool {
    fn names(&self) -> ReplicaNames {
        self.names.clone()
    }

    fn replicas(&mut self) -> Result<BTreeMap<u32, PoolProcess>, PoolError> {
        let replicas = self.replicas.iter_mut().map(|(number, replica)| {
            let runs = replica.child.as_mut().is_some_and(|child| {
                // One whose state cannot be read is not replaced while it may run.
                child.try_wait().map_or(true, |status| status.is_none())
            });
            let process = match runs {
                true if replica.is_leaving => PoolProcess::Leaves,
                true => PoolProcess::Runs,
                false => PoolProcess::HasEnded,
            };
            (*number, process)
        });
        Ok(replicas.collect())
    }

    fn start(&mut self, number: u32) -> Result<(), PoolError> {
        self.start_replica(number);
        Ok(())
    }

    fn drain(&mut self, number: u32) -> Result<(), PoolError> {
        if let Some(replica) = self.replicas.get_mut(&number) {
            replica.is_leaving = true;
            // The process ends in order when its input does.
            drop(replica.child.as_mut().and_then(|child| child.stdin.take()));
        }
        Ok(())
    }

    fn kill(&mut self, number: u32) -> Result<(), PoolError> {
        if let Some(child) = self.replicas.get_mut(&number).and_then(|one| one.child.as_mut()) {
            // Has no effect on one that has ended.
            let _ = child.kill();
        }
        Ok(())
    }

    fn forget(&mut self, number: u32) {
        let files = self.files(number);
        match fs::remove_dir_all(&files) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, "{} cannot be removed", files.display());
            }
            _ => {}
        }
        self.replicas.remove(&number);
    }
}
