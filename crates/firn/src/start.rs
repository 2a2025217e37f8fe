//! Runs a node: opens it, reports what was recovered, waits for a signal, and closes it.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use firn_api::WriterEpoch;
use firn_base::Environment;
use firn_base::task::sleep;
use firn_node::endpoint::Endpoint;
use firn_node::node::Node;
use signal_hook::iterator::Signals;
use signal_hook::low_level::signal_name;

use crate::CommandError;
use crate::archived;
use crate::configuration::Configuration;
use crate::logging::Verbosity;
use crate::node_directory::refuse_node_directory;
use crate::signals::listen;
use firn_node::size::Size;

/// Runs a node until SIGINT or SIGTERM. A second signal while the node closes ends the process at
/// once. Nothing is lost then: what was acknowledged is in the log.
///
/// # Errors
/// If the node cannot be opened or closed.
pub(crate) fn run(
    configuration: &Configuration,
    verbosity: Verbosity,
    out: &mut dyn Write,
) -> Result<(), CommandError> {
    let mut signals = listen()?;
    let environment = Environment::system();
    let began = environment.clock.monotonic();
    let path = &configuration.data_dir.value;
    refuse_node_directory(path)?;
    let storage = archived::storage(&environment, configuration)?;
    // This process has the directory's lock, so it is the one that writes.
    let options = configuration.node_options();
    let node = Node::open_over(&environment, storage, WriterEpoch::Next, &options)?;
    let node = Arc::new(node);
    let opened_in = environment.clock.monotonic().saturating_sub(began);
    writeln!(out, "{}", what_was_recovered(configuration, &node, opened_in))?;
    let mut options = configuration.endpoint_options();
    options.set_verbosity = Some(Arc::new(move |level| verbosity.set(level)));
    let endpoint = Endpoint::start(&environment, &node, &options)?;
    writeln!(out, "{}", how_to_connect(configuration, &endpoint))?;
    out.flush()?;
    let ended = wait_for_end(&node, &mut signals);
    if let Ok(signal) = &ended {
        tracing::info!(signal, "closing");
    }
    let patience = Duration::from_secs(configuration.shutdown_patience_seconds.value);
    if !endpoint.shutdown(patience) {
        tracing::warn!("some connections did not end in time");
    }
    drop(endpoint);
    let signal = ended?;
    match Arc::try_unwrap(node) {
        Ok(node) => node.close()?,
        // Other threads still use the node. What was acknowledged is in the log, as after a crash.
        Err(_) => tracing::warn!("the node was not closed in order; the next start recovers it"),
    }
    writeln!(out, "firn: closed after {signal}")?;
    Ok(())
}

/// A few lines that tell the user how to connect.
fn how_to_connect(configuration: &Configuration, endpoint: &Endpoint) -> String {
    let mut lines = Vec::new();
    if let Some(address) = endpoint.address() {
        let host = match address.ip() {
            ip if ip.is_unspecified() => "127.0.0.1".to_owned(),
            ip => ip.to_string(),
        };
        lines.push(format!("firn: listening at {address}; connect with any MySQL client:"));
        lines.push(format!("        mysql -h {host} -P {} -u root", address.port()));
        lines.push(format!("        firn sql -h {host} -P {}", address.port()));
    }
    if !configuration.socket.value.is_empty() {
        lines.push(format!("        mysql -S {} -u root", configuration.socket.value));
    }
    if let Some(address) = endpoint.metrics_address() {
        lines.push(format!("firn: metrics at http://{address}/metrics"));
    }
    lines.push("firn: Ctrl-C or SIGTERM ends it".to_owned());
    lines.join("\n")
}

/// Waits for a signal; returns its name.
///
/// # Errors
/// The engine's failure: a node whose log has failed must end.
fn wait_for_end(node: &Node, signals: &mut Signals) -> Result<&'static str, CommandError> {
    loop {
        if let Some(signal) = signals.pending().next() {
            return Ok(signal_name(signal).unwrap_or("signal"));
        }
        if let Some(failure) = node.engine().failure() {
            return Err(failure.into());
        }
        sleep(LOOK_INTERVAL);
    }
}

/// How often the node checks whether it must end.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// One line about what was recovered.
fn what_was_recovered(configuration: &Configuration, node: &Node, opened_in: Duration) -> String {
    let log = node.storage().figures().log;
    let (from, to) = (log.truncated, log.end);
    let report = node.engine().recovery_report();
    format!(
        "firn {}: {} is open after {} ms: {} of log kept (LSN {from} to {to}), {} transactions to roll \
         back, {} prepared ones wait for their coordinator",
        env!("CARGO_PKG_VERSION"),
        configuration.data_dir.value.display(),
        opened_in.as_millis(),
        Size(to.since(from)),
        report.losers,
        report.prepared,
    )
}
