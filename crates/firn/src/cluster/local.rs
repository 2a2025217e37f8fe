//! `firn cluster start`: a cluster of several processes on this machine.
//!
//! ```text
//!   DIR/cluster.toml      the nodes, made at the first start
//!   DIR/node-1/…          each node's files
//!   DIR/node-1.log        what its process logs
//! ```
//!
//! This process starts one process for each node, which say on the same standard output what
//! becomes of them. One that ends by itself is started again. The standard input of each is a pipe
//! from this process: a node ends when it does, so none outlives this process, however that ends.

#![allow(
    clippy::disallowed_methods,
    reason = "files and processes of the user who runs the binary"
)]

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::ArgMatches;
use firn_base::network::{ClusterId, NodeId, Role, Roles};
use firn_base::task::sleep;
use firn_base::{Environment, Extents};
use firn_cluster::{DEFAULT_ZONE, Layout, NodeEntry, Origin, PageDivision};

use super::elastic::{self, ElasticReplicas};
use super::ports::Ports;
use super::{
    ASYNCHRONOUS, ENDS_WITH_INPUT_FLAG, LAYOUT_FILE, ORIGIN_FLAG, USUAL_NODES, read_layout,
};
use crate::signals::listen;
use crate::{CommandError, backup};

/// The ports that a new cluster takes if they are free.
const FIRST_CLIENT_PORT: u16 = 3307;
const FIRST_PORT: u16 = 7401;

/// Chunks of a new cluster whose nodes do not have all pages each: every node has several, which
/// move one by one.
const CHUNKS: u32 = 16;

/// The pool of each node of a drill.
const DRILL_POOL: &str = "128M";

pub(super) const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// The pause before a node that ended by itself is started again.
const RESTART_PAUSE: Duration = Duration::from_secs(1);
/// How long nodes have to close.
const CLOSING: Duration = Duration::from_secs(30);
/// How long a cluster that is started again waits for its ports: nodes whose parent was killed take
/// a while to close.
const PORTS_ARE_FREE: Duration = Duration::from_secs(10);

/// The processes of a cluster.
pub(super) struct Processes {
    commands: NodeCommands,
    /// Further flags of each node.
    flags: Vec<String>,
    nodes: Vec<Process>,
    /// Those of the nodes, which no other cluster takes meanwhile.
    _ports: Ports,
}

/// What the commands of all nodes have in common.
#[derive(Clone)]
pub(super) struct NodeCommands {
    pub(super) directory: PathBuf,
    buffer_pool: String,
}

struct Process {
    node: NodeEntry,
    child: Option<Child>,
    /// When it is started again.
    due: Option<Instant>,
}

/// Runs the cluster until SIGINT or SIGTERM.
///
/// # Errors
/// If the directory cannot be used, or a process cannot be started.
pub(super) fn run(matches: &ArgMatches, out: &mut dyn Write) -> Result<(), CommandError> {
    let mut signals = listen()?;
    let directory: &PathBuf = matches.get_one("dir").expect("clap requires it");
    let shape = shape(matches);
    let elastic_settings = elastic::settings(matches)?;
    let has_layout = directory.join(LAYOUT_FILE).exists();
    if has_layout && matches.get_one::<String>(ORIGIN_FLAG).is_some() {
        return Err(CommandError::Usage(format!(
            "{} has a cluster already; give a new directory, or leave --{ORIGIN_FLAG} out",
            directory.display()
        )));
    }
    let division = division(&shape, matches);
    let origin = backup::origin(matches, ORIGIN_FLAG, out)?;
    let (layout, ports) = match has_layout {
        true => existing_layout(directory, out)?,
        false => new_layout(directory, shape, division, origin)?,
    };
    let buffer_pool = matches.get_one::<String>("buffer_pool").expect("it has a default");
    let flags = ["archive", "archive_interval_seconds", "pause_after_idle_seconds"]
        .into_iter()
        .flat_map(|name| {
            let value = matches.get_one::<String>(name);
            value
                .into_iter()
                .flat_map(move |value| [format!("--{}", name.replace('_', "-")), value.clone()])
        });
    let mut processes = Processes::new(directory, (&layout, ports), buffer_pool, flags.collect());
    writeln!(out, "{}", how_to_use(directory, &layout))?;
    out.flush()?;
    let mut replicas = None;
    let outcome = processes.start_all().and_then(|()| {
        if let Some(settings) = elastic_settings {
            let commands = processes.commands.clone();
            replicas = Some(ElasticReplicas::start(commands, &layout, settings)?);
        }
        while signals.pending().next().is_none() {
            processes.look_after(out)?;
            if let Some(replicas) = &replicas {
                replicas.tell(out)?;
            }
            sleep(LOOK_INTERVAL);
        }
        Ok(())
    });
    if let Some(replicas) = &replicas {
        replicas.begin_ending();
    }
    writeln!(out, "firn: the nodes are closing")?;
    out.flush()?;
    processes.end_all();
    if let Some(replicas) = replicas {
        replicas.join();
    }
    writeln!(
        out,
        "firn: the cluster has ended; firn cluster start --dir {} goes on",
        directory.display()
    )?;
    outcome
}

fn how_to_use(directory: &Path, layout: &Layout) -> String {
    let clients = |role| {
        let nodes = layout.with_role(role);
        let addresses = nodes.filter_map(|node| Some(node.client_address.as_ref()?.to_string()));
        addresses.collect::<Vec<_>>()
    };
    let replicas = match clients(Role::Replica) {
        replicas if replicas.is_empty() => String::new(),
        replicas => format!("firn: reads are answered at {} too\n", replicas.join(", ")),
    };
    let mut endpoints = clients(Role::Proxy);
    endpoints.extend(clients(Role::Database));
    format!(
        "firn: a cluster of {} nodes in {}; clients are answered at {}\n\
         {replicas}firn: firn cluster status --dir {} shows its state; Ctrl-C ends it",
        layout.nodes().count(),
        directory.display(),
        endpoints.join(", "),
        directory.display(),
    )
}

/// The nodes of a new cluster.
type Shape = Vec<Shaped>;

/// A node of a new cluster.
struct Shaped {
    name: String,
    roles: Roles,
    zone: &'static str,
    is_standby: bool,
}

/// The zones of a cluster with a standby.
pub(super) const MAIN_ZONE: &str = "main";
pub(super) const STANDBY_ZONE: &str = "standby";
/// The zone of a logger that makes a majority with either of the others.
const WITNESS_ZONE: &str = "witness";

fn shape(matches: &ArgMatches) -> Shape {
    let number = |name| *matches.get_one::<u64>(name).expect("it has a default");
    let standby = matches.get_one::<String>("standby").map(String::as_str);
    let mut shape = match standby {
        Some(kind) => with_standby(kind, matches.get_one("nodes").copied()),
        None if matches.get_flag("separate") => {
            separate(*matches.get_one("page_nodes").expect("it has a default"))
        }
        None => alike(matches.get_one("nodes").copied().unwrap_or(USUAL_NODES)),
    };
    let several = |count: u64, prefix: &str, role, zone, is_standby| {
        let node = |number| Shaped {
            name: format!("{prefix}-{number}"),
            roles: Roles::of(&[role]),
            zone,
            is_standby,
        };
        (1..=count).map(node).collect::<Shape>()
    };
    let zone = if standby.is_some() { MAIN_ZONE } else { DEFAULT_ZONE };
    let follows = standby == Some(ASYNCHRONOUS);
    shape.extend(several(number("replicas"), "replica", Role::Replica, zone, false));
    shape.extend(several(
        number("standby_replicas"),
        "standby-replica",
        Role::Replica,
        STANDBY_ZONE,
        follows,
    ));
    shape.extend(several(number("proxies"), "proxy", Role::Proxy, zone, false));
    shape
}

/// Nodes in one zone, and as many in another one that goes on without it: by itself, with the vote
/// of a logger in a third zone, or when it is told to take over.
fn with_standby(kind: &str, nodes: Option<u64>) -> Shape {
    let everything = Roles::of(&[Role::Database, Role::Log, Role::Pages, Role::Control]);
    let follows = kind == ASYNCHRONOUS;
    let standby = |number| Shaped {
        name: format!("standby-{number}"),
        roles: everything,
        zone: STANDBY_ZONE,
        is_standby: follows,
    };
    let in_main = |node: Shaped| Shaped { zone: MAIN_ZONE, ..node };
    if follows {
        let main = alike(nodes.unwrap_or(USUAL_NODES)).into_iter().map(in_main);
        return main.chain([standby(1)]).collect();
    }
    let nodes = nodes.unwrap_or(1);
    let main = (1..=nodes).map(|number| Shaped {
        name: format!("node-{number}"),
        roles: everything,
        zone: MAIN_ZONE,
        is_standby: false,
    });
    let logger = Shaped {
        name: "logger-1".to_owned(),
        roles: Roles::of(&[Role::Log, Role::Control]),
        zone: WITNESS_ZONE,
        is_standby: false,
    };
    main.chain((1..=nodes).map(standby)).chain([logger]).collect()
}

/// A node of a cluster without zones.
fn shaped(name: String, roles: Roles) -> Shaped {
    Shaped { name, roles, zone: DEFAULT_ZONE, is_standby: false }
}

/// Nodes that do everything. Three of them are control nodes, or one if there are fewer: two could
/// do nothing without each other.
fn alike(nodes: u64) -> Shape {
    let controls = if nodes < 3 { 1 } else { 3 };
    let roles = |number| match number <= controls {
        true => Roles::of(&[Role::Database, Role::Log, Role::Pages, Role::Control]),
        false => Roles::of(&[Role::Database, Role::Log, Role::Pages]),
    };
    (1..=nodes).map(|number| shaped(format!("node-{number}"), roles(number))).collect()
}

/// A process for each part. The three that keep the log are the control nodes.
fn separate(page_nodes: u32) -> Shape {
    let database = Roles::of(&[Role::Database, Role::Log, Role::Control]);
    let logger = Roles::of(&[Role::Log, Role::Control]);
    let keepers = [("database-1", database), ("database-2", database), ("logger-1", logger)];
    let keepers = keepers.map(|(name, roles)| shaped(name.to_owned(), roles));
    let pages = |number| shaped(format!("pages-{number}"), Roles::of(&[Role::Pages]));
    keepers.into_iter().chain((1..=page_nodes).map(pages)).collect()
}

/// How a new cluster of this shape has its pages.
fn division(shape: &Shape, matches: &ArgMatches) -> PageDivision {
    let nodes = shape.iter().filter(|node| node.roles.has(Role::Pages)).count();
    let number = |name: &str| matches.get_one::<u32>(name).copied();
    let copies = number("page_copies");
    // An archive is taken as a whole.
    let begins_empty = matches.get_one::<String>(ORIGIN_FLAG).is_none();
    let are_spread = begins_empty && copies.is_some_and(|copies| (copies as usize) < nodes);
    let usual = PageDivision::default();
    PageDivision {
        chunks: number("page_chunks").unwrap_or(if are_spread { CHUNKS } else { usual.chunks }),
        copies,
        extents: number("extent_pages").map_or(usual.extents, |pages| Extents { pages }),
    }
}

/// The layout of the directory and its ports. Waits for ports that another process has.
fn existing_layout(directory: &Path, out: &mut dyn Write) -> Result<(Layout, Ports), CommandError> {
    let path = directory.join(LAYOUT_FILE);
    let layout = read_layout(&path)?;
    let mut ports = Ports::default();
    let until = Instant::now() + PORTS_ARE_FREE;
    let addresses = layout.nodes().flat_map(|node| {
        let both = [Some(&node.address), node.client_address.as_ref()];
        both.into_iter().flatten().map(|address| (&node.name, address))
    });
    for (node, address) in addresses {
        let mut is_free = ports.keep(address)?;
        if !is_free {
            writeln!(out, "firn: {node} waits for {address}, which is taken")?;
            out.flush()?;
        }
        while !is_free && Instant::now() < until {
            sleep(LOOK_INTERVAL);
            is_free = ports.keep(address)?;
        }
        if !is_free {
            let (node, address) = (node.clone(), address.clone());
            return Err(CommandError::PortTaken { node, address, path });
        }
    }
    Ok((layout, ports))
}

/// Writes the layout of a new cluster, which begins with `origin`, and takes free ports for it.
fn new_layout(
    directory: &Path,
    shape: Shape,
    division: PageDivision,
    origin: Option<Origin>,
) -> Result<(Layout, Ports), CommandError> {
    let path = directory.join(LAYOUT_FILE);
    fs::create_dir_all(directory)?;
    let random = &Environment::system().random;
    let high = u128::from(random.next_u64());
    let cluster = ClusterId(high << 64 | u128::from(random.next_u64() | 1));
    let mut ports = Ports::default();
    let mut entries = Vec::new();
    for (place, Shaped { name, roles, zone, is_standby }) in (0..).zip(shape) {
        let client_address = [Role::Database, Role::Replica, Role::Proxy]
            .iter()
            .any(|role| roles.has(*role))
            .then(|| ports.choose(FIRST_CLIENT_PORT + place))
            .transpose()?;
        entries.push(NodeEntry {
            number: NodeId(u64::from(place) + 1),
            name,
            address: ports.choose(FIRST_PORT + place)?,
            client_address,
            roles,
            zone: zone.to_owned(),
            is_standby,
        });
    }
    let layout = Layout::new(cluster, entries, division)
        .map_err(|error| CommandError::Layout { path: path.clone(), error })?;
    let layout = match origin {
        Some(origin) => layout
            .beginning_with(origin)
            .map_err(|error| CommandError::Layout { path: path.clone(), error })?,
        None => layout,
    };
    let unfinished = path.with_extension("new");
    let mut file = File::create(&unfinished)?;
    file.write_all(layout.to_text().as_bytes())?;
    file.sync_all()?;
    fs::rename(&unfinished, &path)?;
    Ok((layout, ports))
}

/// A new cluster with a standby of that kind, whose processes are not started yet.
///
/// # Errors
/// If the directory cannot be used.
pub(super) fn standby_cluster(
    directory: &Path,
    kind: &str,
) -> Result<(Layout, Processes), CommandError> {
    let shape = with_standby(kind, None);
    let (layout, ports) = new_layout(directory, shape, PageDivision::default(), None)?;
    let processes = Processes::new(directory, (&layout, ports), DRILL_POOL, Vec::new());
    Ok((layout, processes))
}

impl Processes {
    fn new(
        directory: &Path,
        (layout, ports): (&Layout, Ports),
        buffer_pool: &str,
        flags: Vec<String>,
    ) -> Processes {
        let nodes = layout.nodes();
        let nodes = nodes.map(|node| Process { node: node.clone(), child: None, due: None });
        let buffer_pool = buffer_pool.to_owned();
        Processes {
            flags,
            commands: NodeCommands { directory: directory.to_owned(), buffer_pool },
            nodes: nodes.collect(),
            _ports: ports,
        }
    }

    /// Kills nodes, which are not started again.
    pub(super) fn kill(&mut self, which: impl Fn(&NodeEntry) -> bool) -> Result<(), CommandError> {
        let nodes = self.nodes.iter_mut().filter(|process| which(&process.node));
        let mut children: Vec<Child> = nodes.filter_map(|process| process.child.take()).collect();
        // All at once: they are waited for afterwards.
        for child in &mut children {
            child.kill()?;
        }
        for mut child in children {
            child.wait()?;
        }
        Ok(())
    }

    pub(super) fn start_all(&mut self) -> Result<(), CommandError> {
        for place in 0..self.nodes.len() {
            self.start(place)?;
        }
        Ok(())
    }

    fn start(&mut self, place: usize) -> Result<(), CommandError> {
        let mut command = self.commands.of(&self.nodes[place].node.name)?;
        command.arg("--cluster-layout").arg(self.commands.directory.join(LAYOUT_FILE));
        let child = command.args(&self.flags).spawn()?;
        self.nodes[place].child = Some(child);
        self.nodes[place].due = None;
        Ok(())
    }

    /// Starts again what has ended by itself.
    pub(super) fn look_after(&mut self, out: &mut dyn Write) -> Result<(), CommandError> {
        for place in 0..self.nodes.len() {
            let process = &mut self.nodes[place];
            if let Some(child) = &mut process.child
                && let Some(status) = child.try_wait()?
            {
                let name = &process.node.name;
                let log = self.commands.log(name);
                let is_left = status.code() == Some(i32::from(crate::LEFT_BEHIND));
                let after = match is_left {
                    true => "the cluster has gone on without it",
                    false => "it is started again",
                };
                writeln!(out, "firn: {name} has ended ({status}), see {}; {after}", log.display())?;
                out.flush()?;
                process.child = None;
                process.due = (!is_left).then(|| Instant::now() + RESTART_PAUSE);
            }
            if process.due.is_some_and(|due| due <= Instant::now()) {
                self.start(place)?;
            }
        }
        Ok(())
    }

    /// Tells all nodes to end, waits for them, and kills those that do not.
    pub(super) fn end_all(&mut self) {
        let children = self.nodes.iter_mut().filter_map(|process| process.child.as_mut());
        end_all(children.collect());
    }
}

impl NodeCommands {
    /// Where a node's process logs.
    fn log(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.log"))
    }

    /// The command of a node's process, which ends in order when its input does.
    pub(super) fn of(&self, name: &str) -> Result<Command, CommandError> {
        let log = File::options().create(true).append(true).open(self.log(name))?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["start", "--node-name", name, "--data-dir"])
            .arg(self.directory.join(name))
            .args(["--buffer-pool", &self.buffer_pool])
            .arg(format!("--{ENDS_WITH_INPUT_FLAG}"))
            .stdin(Stdio::piped())
            .stderr(log)
            // Ctrl-C in a terminal is for this process alone, which ends the others.
            .process_group(0);
        Ok(command)
    }
}

/// Tells processes to end, waits for them, and kills those that do not.
pub(super) fn end_all(mut children: Vec<&mut Child>) {
    for child in &mut children {
        drop(child.stdin.take());
    }
    let until = Instant::now() + CLOSING;
    for child in &mut children {
        while matches!(child.try_wait(), Ok(None)) && Instant::now() < until {
            sleep(LOOK_INTERVAL);
        }
        // Has no effect on one that has ended.
        let _ = child.kill();
        let _ = child.wait();
    }
}
