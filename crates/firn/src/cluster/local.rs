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
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::ArgMatches;
use firn_base::Environment;
use firn_base::network::{ClusterId, NodeId, Role, Roles};
use firn_base::task::sleep;
use firn_cluster::{Layout, NodeEntry};

use super::{ENDS_WITH_INPUT_FLAG, LAYOUT_FILE, read_layout};
use crate::CommandError;
use crate::signals::listen;

/// The ports that a new cluster takes if they are free.
const FIRST_CLIENT_PORT: u16 = 3307;
const FIRST_PORT: u16 = 7401;

const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// The pause before a node that ended by itself is started again.
const RESTART_PAUSE: Duration = Duration::from_secs(1);
/// How long nodes have to close.
const CLOSING: Duration = Duration::from_secs(30);

/// The processes of a cluster.
struct Processes {
    directory: PathBuf,
    buffer_pool: String,
    nodes: Vec<Process>,
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
    let mut shape = match matches.get_flag("separate") {
        true => separate(),
        false => alike(*matches.get_one("nodes").expect("it has a default")),
    };
    let replicas: u64 = *matches.get_one("replicas").expect("it has a default");
    let replica = |number| (format!("replica-{number}"), Roles::of(&[Role::Replica]));
    shape.extend((1..=replicas).map(replica));
    let layout = layout(directory, shape)?;
    let buffer_pool = matches.get_one::<String>("buffer_pool").expect("it has a default");
    let nodes = layout.nodes().map(|node| Process { node: node.clone(), child: None, due: None });
    let mut processes = Processes {
        directory: directory.clone(),
        buffer_pool: buffer_pool.clone(),
        nodes: nodes.collect(),
    };
    writeln!(out, "{}", how_to_use(directory, &layout))?;
    out.flush()?;
    let outcome = processes.start_all().and_then(|()| {
        while signals.pending().next().is_none() {
            processes.look_after(out)?;
            sleep(LOOK_INTERVAL);
        }
        Ok(())
    });
    writeln!(out, "firn: the nodes are closing")?;
    out.flush()?;
    processes.end_all();
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
        let addresses = nodes.filter_map(|node| Some(node.client_address?.to_string()));
        addresses.collect::<Vec<_>>()
    };
    let replicas = match clients(Role::Replica) {
        replicas if replicas.is_empty() => String::new(),
        replicas => format!("firn: reads are answered at {} too\n", replicas.join(", ")),
    };
    format!(
        "firn: a cluster of {} nodes in {}; one of them leads and answers at {}\n\
         {replicas}firn: firn cluster status --dir {} shows its state; Ctrl-C ends it",
        layout.nodes().count(),
        directory.display(),
        clients(Role::Database).join(" or "),
        directory.display(),
    )
}

/// Names and roles of the nodes of a new cluster.
type Shape = Vec<(String, Roles)>;

/// Nodes that do everything. Three of them are control nodes, or one if there are fewer: two could
/// do nothing without each other.
fn alike(nodes: u64) -> Shape {
    let controls = if nodes < 3 { 1 } else { 3 };
    let roles = |number| match number <= controls {
        true => Roles::of(&[Role::Database, Role::Log, Role::Pages, Role::Control]),
        false => Roles::of(&[Role::Database, Role::Log, Role::Pages]),
    };
    (1..=nodes).map(|number| (format!("node-{number}"), roles(number))).collect()
}

/// A process for each part. The three that keep the log are the control nodes.
fn separate() -> Shape {
    let database = Roles::of(&[Role::Database, Role::Log, Role::Control]);
    let logger = Roles::of(&[Role::Log, Role::Control]);
    let pages = Roles::of(&[Role::Pages]);
    [
        ("database-1", database),
        ("database-2", database),
        ("logger-1", logger),
        ("pages-1", pages),
        ("pages-2", pages),
    ]
    .map(|(name, roles)| (name.to_owned(), roles))
    .into()
}

/// The layout of the directory; a new one if there is none.
fn layout(directory: &Path, shape: Shape) -> Result<Layout, CommandError> {
    let path = directory.join(LAYOUT_FILE);
    if path.exists() {
        return read_layout(&path);
    }
    fs::create_dir_all(directory)?;
    let random = &Environment::system().random;
    let high = u128::from(random.next_u64());
    let cluster = ClusterId(high << 64 | u128::from(random.next_u64() | 1));
    let mut taken = Vec::new();
    let mut entries = Vec::new();
    for (place, (name, roles)) in (0..).zip(shape) {
        let client_address = (roles.has(Role::Database) || roles.has(Role::Replica))
            .then(|| free_address(FIRST_CLIENT_PORT + place, &mut taken))
            .transpose()?;
        entries.push(NodeEntry {
            number: NodeId(u64::from(place) + 1),
            name,
            address: free_address(FIRST_PORT + place, &mut taken)?,
            client_address,
            roles,
        });
    }
    let layout = Layout::new(cluster, entries)
        .map_err(|error| CommandError::Layout { path: path.clone(), error })?;
    let unfinished = path.with_extension("new");
    let mut file = File::create(&unfinished)?;
    file.write_all(layout.to_text().as_bytes())?;
    file.sync_all()?;
    fs::rename(&unfinished, &path)?;
    Ok(layout)
}

/// An address of this machine with this port, or with any free one. The listeners stay in `taken`,
/// so that no port is given twice.
fn free_address(wanted: u16, taken: &mut Vec<TcpListener>) -> Result<SocketAddr, CommandError> {
    let at = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let listener = at(wanted).or_else(|_| at(0))?;
    let address = listener.local_addr()?;
    taken.push(listener);
    Ok(address)
}

impl Processes {
    fn start_all(&mut self) -> Result<(), CommandError> {
        for place in 0..self.nodes.len() {
            self.start(place)?;
        }
        Ok(())
    }

    fn start(&mut self, place: usize) -> Result<(), CommandError> {
        let node = &self.nodes[place].node;
        let log = self.directory.join(format!("{}.log", node.name));
        let log = File::options().create(true).append(true).open(log)?;
        let child = Command::new(std::env::current_exe()?)
            .arg("start")
            .arg("--cluster-layout")
            .arg(self.directory.join(LAYOUT_FILE))
            .arg("--node-name")
            .arg(&node.name)
            .arg("--data-dir")
            .arg(self.directory.join(&node.name))
            .arg("--buffer-pool")
            .arg(&self.buffer_pool)
            .arg(format!("--{ENDS_WITH_INPUT_FLAG}"))
            .stdin(Stdio::piped())
            .stderr(log)
            .spawn()?;
        self.nodes[place].child = Some(child);
        self.nodes[place].due = None;
        Ok(())
    }

    /// Starts again what has ended by itself.
    fn look_after(&mut self, out: &mut dyn Write) -> Result<(), CommandError> {
        for place in 0..self.nodes.len() {
            let process = &mut self.nodes[place];
            if let Some(child) = &mut process.child
                && let Some(status) = child.try_wait()?
            {
                let name = &process.node.name;
                let log = self.directory.join(format!("{name}.log"));
                writeln!(
                    out,
                    "firn: {name} has ended ({status}), see {}; it is started again",
                    log.display()
                )?;
                out.flush()?;
                process.child = None;
                process.due = Some(Instant::now() + RESTART_PAUSE);
            }
            if process.due.is_some_and(|due| due <= Instant::now()) {
                self.start(place)?;
            }
        }
        Ok(())
    }

    /// Tells all nodes to end, waits for them, and kills those that do not.
    fn end_all(&mut self) {
        let children = self.nodes.iter_mut().filter_map(|process| process.child.as_mut());
        let mut children: Vec<_> = children.collect();
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
}
