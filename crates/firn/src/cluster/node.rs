//! One node of a cluster, as a process: `firn start` with a layout, with the addresses of a cluster
//! to join, or with the directory of a node.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use firn_base::Environment;
use firn_base::network::{NodeId, NodeIdentity, Role};
use firn_base::task::sleep;
use firn_cluster::{
    DatabaseState, JoinRequest, Layout, ProcessError, ProcessOptions, RunningProcess,
};
use parking_lot::Mutex;
use signal_hook::iterator::Signals;
use signal_hook::low_level::signal_name;

use super::{environment, read_layout};
use crate::configuration::Configuration;
use crate::configuration::sources::Origin;
use crate::logging::Verbosity;
use crate::signals::listen;
use crate::{CommandError, archived};

/// How often the process looks whether it must end.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Runs a node of a cluster until SIGINT or SIGTERM.
///
/// # Errors
/// If the node cannot be opened, or its disk fails.
pub(crate) fn run_node(
    configuration: &Configuration,
    verbosity: Verbosity,
    ends_with_input: bool,
    out: &mut dyn Write,
) -> Result<(), CommandError> {
    let mut signals = listen()?;
    let input = Arc::<Input>::default();
    if ends_with_input {
        input.watch();
    }
    let certificates = &configuration.cluster_certificates.value;
    let certificates = (!certificates.is_empty()).then(|| Path::new(certificates));
    let (environment, certified) = environment(certificates)?;
    let seed = seed(configuration, certified.as_ref())?;
    if let Some(request) = join_request(configuration, certified) {
        firn_cluster::join(&environment, &configuration.data_dir.value, &request)?;
    }
    let (tell, states) = mpsc::channel();
    let mut options = options(configuration, verbosity, tell);
    options.archive = archived::archive_place(&environment, configuration)?;
    let mut seed = seed;
    loop {
        let known = seed.as_ref().map(|(layout, number)| (layout, *number));
        let process = RunningProcess::start(&environment, known, &options)?;
        match run(&process, (&mut signals, &input), &states, out)? {
            End::StartsAgain => seed = None,
            end => {
                let name = &process.node().name;
                writeln!(out, "firn: node {name} closed after {end}")?;
                return Ok(());
            }
        }
    }
}

/// Looks after a process until it ends, and closes it.
fn run(
    process: &RunningProcess,
    (signals, input): (&mut Signals, &Input),
    states: &mpsc::Receiver<DatabaseState>,
    out: &mut dyn Write,
) -> Result<End, CommandError> {
    let node = process.node();
    let name = &node.name;
    writeln!(
        out,
        "firn: node {name} ({}) of cluster {} is at {}; Ctrl-C or SIGTERM ends it",
        node.roles,
        process.cluster(),
        node.address
    )?;
    out.flush()?;
    let part = if node.has(Role::Replica) { "replica" } else { "engine" };
    let mut tell = |state: &DatabaseState| {
        let line = line_about(name, part, state);
        writeln!(out, "{line}").and_then(|()| out.flush())
    };
    let ended = wait_for_end(process, signals, input, &mut || {
        states.try_iter().try_for_each(|state| tell(&state))
    });
    // The end of the input is the end of the whole cluster: nobody is left to write.
    if matches!(ended, Ok(End::Signal(_))) {
        process.give_office_up();
    }
    process.close();
    if let Ok(End::StartsAgain) = ended {
        writeln!(out, "firn: {name} goes on without other zones, and starts again")?;
        out.flush()?;
    }
    ended
}

/// The layout that the settings name, and which of its nodes the process is.
fn seed(
    configuration: &Configuration,
    certified: Option<&NodeIdentity>,
) -> Result<Option<(Layout, NodeId)>, CommandError> {
    let path = Path::new(&configuration.cluster_layout.value);
    if path.as_os_str().is_empty() {
        return Ok(None);
    }
    let layout = read_layout(path)?;
    let name = &configuration.node_name.value;
    let node = layout.named(name).ok_or_else(|| {
        CommandError::Usage(format!("{}: there is no node '{name}'", path.display()))
    })?;
    let own = layout.identity(node);
    if let Some(certified) = certified.filter(|certified| **certified != own) {
        return Err(CommandError::Usage(format!(
            "the layout has {own} with the roles {}, the certificate is of {certified} with the roles \
             {}; make another certificate (firn admin certificates node)",
            own.roles, certified.roles
        )));
    }
    let number = node.number;
    Ok(Some((layout, number)))
}

/// How the process joins a cluster, if it is to.
fn join_request(
    configuration: &Configuration,
    certified: Option<NodeIdentity>,
) -> Option<JoinRequest> {
    let told = configuration.join.value.0.clone();
    let address = configuration.joining_address().filter(|_| !told.is_empty())?;
    let roles = configuration.role.value.roles();
    Some(JoinRequest {
        told,
        name: configuration.node_name.value.clone(),
        roles,
        zone: configuration.zone.value.clone(),
        is_standby: configuration.asynchronous_zone.value.is_on(),
        address,
        client_address: has_clients(configuration).then_some(configuration.listen.value.into()),
        certified,
    })
}

/// Whether clients connect to the node. A replica may read for those of other nodes alone.
fn has_clients(configuration: &Configuration) -> bool {
    let roles = configuration.role.value.roles();
    let is_told = configuration.listen.origin != Origin::Default;
    roles.has(Role::Database) || roles.has(Role::Proxy) || (roles.has(Role::Replica) && is_told)
}

fn options(
    configuration: &Configuration,
    verbosity: Verbosity,
    states: mpsc::Sender<DatabaseState>,
) -> ProcessOptions {
    let mut endpoint = configuration.endpoint_options();
    if configuration.listen.origin == Origin::Default {
        endpoint.listen = None;
    }
    endpoint.set_verbosity = Some(Arc::new(move |level| verbosity.set(level)));
    let states = Mutex::new(states);
    ProcessOptions {
        directory: configuration.data_dir.value.clone(),
        node: configuration.node_options(),
        archive: None,
        open_archive: Arc::new(|url| archived::open_store(&Environment::system(), url)),
        endpoint,
        listen: configuration.cluster_listen.value,
        writer_wait: Duration::from_secs(configuration.writer_wait_seconds.value),
        replica_snapshot_limit: match configuration.replica_snapshot_seconds.value {
            0 => None,
            seconds => Some(Duration::from_secs(seconds)),
        },
        pause_after: match configuration.pause_after_idle_seconds.value {
            0 => None,
            seconds => Some(Duration::from_secs(seconds)),
        },
        patience: Duration::from_secs(configuration.shutdown_patience_seconds.value),
        on_state: Arc::new(move |state| {
            // At the end of the process nobody listens any more.
            let _ = states.lock().send(state.clone());
        }),
    }
}

/// What has become of the node's engine or replica, for people.
fn line_about(name: &str, part: &str, state: &DatabaseState) -> String {
    match state {
        DatabaseState::Standby => format!("firn: {name} stands by"),
        DatabaseState::Opening => format!("firn: {name} opens its {part}"),
        DatabaseState::Serving(None) => {
            format!("firn: {name} reads for the clients of other nodes")
        }
        DatabaseState::Serving(Some(address)) => format!(
            "firn: {name} answers clients: mysql -h {} -P {} -u root",
            address.ip(),
            address.port()
        ),
        DatabaseState::Paused => format!("firn: {name} is paused; the next client wakes it"),
        DatabaseState::Failing(reason) => format!("firn: {name} cannot open its {part}: {reason}"),
    }
}

/// Whether the standard input has ended.
#[derive(Default)]
struct Input(AtomicBool);

impl Input {
    /// Reads it, on a thread that ends with the process.
    fn watch(self: &Arc<Input>) {
        let input = Arc::clone(self);
        let read = move || {
            // Whatever comes is ignored; an error is an end.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            input.0.store(true, Ordering::Relaxed);
        };
        drop(Environment::system().spawner.spawn("input", Box::new(read)));
    }
}

/// What ended a process in order.
enum End {
    Input,
    Signal(&'static str),
    /// It goes on with another cluster.
    StartsAgain,
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            End::Input => f.write_str("the end of its input"),
            End::Signal(name) => f.write_str(name),
            End::StartsAgain => f.write_str("an order to start again"),
        }
    }
}

/// Waits for a signal or for the end of the input, and calls `look` meanwhile; returns what ended
/// it.
///
/// # Errors
/// The failure of the node's disk.
fn wait_for_end(
    process: &RunningProcess,
    signals: &mut Signals,
    input: &Input,
    look: &mut dyn FnMut() -> std::io::Result<()>,
) -> Result<End, CommandError> {
    loop {
        look()?;
        if input.0.load(Ordering::Relaxed) {
            return Ok(End::Input);
        }
        if let Some(signal) = signals.pending().next() {
            return Ok(End::Signal(signal_name(signal).unwrap_or("signal")));
        }
        match process.failure() {
            Some(ProcessError::StartsAgain) => return Ok(End::StartsAgain),
            Some(failure) => return Err(failure.into()),
            None => {}
        }
        sleep(LOOK_INTERVAL);
    }
}
