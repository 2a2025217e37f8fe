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
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Arg, ArgMatches, value_parser};
use firn_base::Environment;
use firn_base::clock::Clock;
use firn_base::network::Role;
use firn_base::task::{TaskHandle, sleep};
use firn_cluster::{
    DEFAULT_ZONE, Layout, PoolProcess, ReplicaPool, Scaler, Surveyor, replica_name, replica_number,
};
use firn_control::elastic::ElasticSettings;
use parking_lot::Mutex;

use super::environment;
use super::local::{LOOK_INTERVAL, NodeCommands, end_all};
use crate::CommandError;

/// In the directory of the cluster.
const STATUS_FILE: &str = "elastic.status";
/// How often the replicas are looked at.
const TURN: Duration = Duration::from_secs(1);
/// The flag that has replicas start and leave.
const MOST: &str = "most_replicas";
const LEAST: &str = "least_replicas";

/// The flags, of which the first one turns it on.
pub(super) fn flags() -> Vec<Arg> {
    let number = |name: &'static str, value_name: &'static str, range: RangeInclusive<u32>| {
        let range = i64::from(*range.start())..=i64::from(*range.end());
        let arg = Arg::new(name).long(name.replace('_', "-")).value_name(value_name);
        arg.value_parser(value_parser!(u32).range(range))
    };
    let further = |name, value_name, range, default: &'static str| {
        number(name, value_name, range).requires(MOST).default_value(default)
    };
    vec![
        number(MOST, "NUMBER", 1..=32).help(
            "Start and stop replicas by their load, up to so many, besides those of --replicas",
        ),
        further(LEAST, "NUMBER", 1..=32, "1").help("How many of these replicas there always are"),
        further("replica_processor_percent", "PERCENT", 1..=100, "60").help(
            "Start one more replica when they are busier than this, in percent of all processors",
        ),
        number("replica_latency_ms", "MILLISECONDS", 1..=60_000)
            .requires(MOST)
            .help("Start one more replica when a read takes longer than this in the mean"),
        further("scale_up_seconds", "SECONDS", 1..=3600, "5")
            .help("For how long that has to be so until one more is started"),
        further("scale_down_seconds", "SECONDS", 1..=86_400, "120")
            .help("For how long one less would have to be enough until one leaves"),
        further("replica_drain_seconds", "SECONDS", 0..=86_400, "30")
            .help("How long statements may run on at a replica that leaves"),
    ]
}

/// What the flags say, if replicas are to start and leave.
///
/// # Errors
/// If the least is above the most.
pub(super) fn settings(matches: &ArgMatches) -> Result<Option<ElasticSettings>, CommandError> {
    let number = |name: &str| matches.get_one::<u32>(name).copied();
    let Some(most) = number(MOST) else { return Ok(None) };
    let given = |name| number(name).expect("it has a default");
    let seconds = |name| Duration::from_secs(u64::from(given(name)));
    let least = given(LEAST);
    if least > most {
        return Err(CommandError::Usage(format!(
            "--least-replicas {least} is above --most-replicas {most}"
        )));
    }
    let latency = number("replica_latency_ms");
    Ok(Some(ElasticSettings {
        least,
        most,
        processor_percent: given("replica_processor_percent"),
        latency: latency.map(|latency| Duration::from_millis(u64::from(latency))),
        up_after: seconds("scale_up_seconds"),
        down_after: seconds("scale_down_seconds"),
        drain_limit: seconds("replica_drain_seconds"),
    }))
}

/// What a cluster of this machine tells of such replicas, if it has any.
pub(super) fn status(directory: &Path) -> Option<String> {
    let text = fs::read_to_string(directory.join(STATUS_FILE)).ok()?;
    Some(format!("elastic: {text}"))
}

/// The thread that looks at the replicas.
pub(super) struct ElasticReplicas {
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
    pub(super) fn start(
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
            own.look_after(&mut scaler, &*clock, &file);
            scaler.into_pool().end();
            // A file that stays tells of what was, until the next start.
            let _ = fs::remove_file(&file);
        };
        let task = Environment::system().spawner.spawn("elastic", Box::new(body));
        Ok(ElasticReplicas { shared, task })
    }

    /// Tells what was done.
    pub(super) fn tell(&self, out: &mut dyn Write) -> io::Result<()> {
        let done = std::mem::take(&mut *self.shared.done.lock());
        for line in &done {
            writeln!(out, "firn: {line}")?;
        }
        if done.is_empty() { Ok(()) } else { out.flush() }
    }

    /// Has the replicas end in order; [`ElasticReplicas::join`] waits for that.
    pub(super) fn begin_ending(&self) {
        self.shared.is_ending.store(true, Ordering::Relaxed);
    }

    pub(super) fn join(self) {
        self.task.join();
    }
}

impl Shared {
    fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    fn look_after(&self, scaler: &mut Scaler<LocalPool>, clock: &dyn Clock, file: &Path) {
        let mut told = String::new();
        while !self.is_ending() {
            let now = clock.monotonic();
            self.done.lock().extend(scaler.turn(now));
            let summary = format!("{}\n", scaler.summary(now));
            if summary != told {
                if let Err(error) = write(file, &summary) {
                    tracing::warn!(%error, "{} cannot be written", file.display());
                }
                told = summary;
            }
            while !self.is_ending() && clock.monotonic().saturating_sub(now) < TURN {
                sleep(LOOK_INTERVAL);
            }
        }
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
        let mut found = Vec::new();
        for entry in fs::read_dir(&commands.directory)? {
            let name = entry?.file_name();
            found.extend(name.to_str().and_then(replica_number));
        }
        let mut pool = LocalPool {
            commands,
            controls: controls.join(","),
            zone,
            drain_seconds: drain_limit.as_secs(),
            replicas: BTreeMap::new(),
        };
        found.into_iter().for_each(|number| pool.start(number));
        Ok(pool)
    }

    fn files(&self, number: u32) -> PathBuf {
        self.commands.directory.join(replica_name(number))
    }

    fn start_process(&self, number: u32) -> Result<Child, CommandError> {
        // Another process may take the port before the replica does: then it ends, and another one
        // is started.
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let mut command = self.commands.of(&replica_name(number))?;
        command
            .args(["--join", &self.controls, "--role", "replica", "--zone", &self.zone])
            .args(["--cluster-listen", &address.to_string()])
            .args(["--shutdown-patience-seconds", &self.drain_seconds.to_string()]);
        Ok(command.spawn()?)
    }

    /// Has all end in order, and waits for them.
    fn end(mut self) {
        let children = self.replicas.values_mut().filter_map(|replica| replica.child.as_mut());
        end_all(children.collect());
    }
}

impl ReplicaPool for LocalPool {
    fn replicas(&mut self) -> BTreeMap<u32, PoolProcess> {
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
        replicas.collect()
    }

    fn start(&mut self, number: u32) {
        let child = self.start_process(number).inspect_err(|error| {
            tracing::warn!(%error, "{} cannot be started", replica_name(number));
        });
        self.replicas.insert(number, Replica { child: child.ok(), is_leaving: false });
    }

    fn drain(&mut self, number: u32) {
        if let Some(replica) = self.replicas.get_mut(&number) {
            replica.is_leaving = true;
            // The process ends in order when its input does.
            drop(replica.child.as_mut().and_then(|child| child.stdin.take()));
        }
    }

    fn kill(&mut self, number: u32) {
        if let Some(child) = self.replicas.get_mut(&number).and_then(|one| one.child.as_mut()) {
            // Has no effect on one that has ended.
            let _ = child.kill();
        }
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
