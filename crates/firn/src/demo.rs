//! `firn demo`: starts a node in this process, loads a TPC-C warehouse, and shows terminals at
//! work.

use std::io::{IsTerminal, Write, stdout};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use firn_base::Environment;
use firn_base::task::sleep;
use firn_bench::client::Target;
use firn_bench::live::{Figures, LiveView};
use firn_bench::load::{LoadBy, LoadOptions};
use firn_bench::report::{Report, readable};
use firn_bench::run::{RunOptions, run};
use firn_bench::summary::{check_report, run_report};
use firn_bench::tpcc::{MIX, Scale, Tpcc};
use firn_bench::workload::{Case, Suite};
use firn_node::endpoint::{Endpoint, EndpointOptions};
use firn_node::memory::MemoryPlan;
use firn_node::node::{Node, NodeOptions};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::CommandError;

const BUFFER_POOL_BYTES: u64 = 512 << 20;
const STATEMENT_PATIENCE: Duration = Duration::from_secs(2);
const WARM_UP: Duration = Duration::from_secs(1);

/// The command and its flags.
pub(crate) fn command() -> Command {
    let number = |name: &'static str, default: &'static str, help: &'static str| {
        let range = value_parser!(u64).range(1..=10_000);
        Arg::new(name)
            .long(name)
            .value_name("N")
            .value_parser(range)
            .default_value(default)
            .help(help)
    };
    Command::new("demo")
        .about("Start a node, load a TPC-C warehouse into it and show it at work")
        .arg(
            Arg::new("data-dir")
                .long("data-dir")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .help("Directory of the data, which is kept [default: one that is removed at the end]"),
        )
        .arg(
            Arg::new("listen")
                .long("listen")
                .value_name("HOST:PORT")
                .value_parser(value_parser!(SocketAddr))
                .default_value("127.0.0.1:0")
                .help("Where clients connect; port 0 takes a free one"),
        )
        .arg(number("warehouses", "1", "Warehouses of about 100 MB"))
        .arg(number("connections", "8", "Connections, each a terminal of TPC-C"))
        .arg(number("seconds", "30", "Length of the run"))
        .arg(
            Arg::new("stay")
                .long("stay")
                .action(ArgAction::SetTrue)
                .help("Keep the node until Ctrl-C even if the output is not a terminal"),
        )
        .arg(
            Arg::new("items")
                .long("items")
                .value_parser(value_parser!(u64).range(1..))
                .default_value("100000")
                .hide(true),
        )
        .arg(
            Arg::new("customers")
                .long("customers")
                .value_parser(value_parser!(u64).range(1..))
                .default_value("3000")
                .hide(true),
        )
}

/// The values of the flags.
struct Demo {
    data_dir: Option<PathBuf>,
    listen: SocketAddr,
    tpcc: Tpcc,
    connections: usize,
    duration: Duration,
    stays: bool,
}

impl Demo {
    fn from_matches(matches: &ArgMatches) -> Demo {
        let number = |name: &str| *matches.get_one::<u64>(name).expect("the flag has a default");
        let scale = Scale {
            warehouses: number("warehouses") as i64,
            items: number("items") as i64,
            customers: number("customers") as i64,
        };
        Demo {
            data_dir: matches.get_one("data-dir").cloned(),
            listen: *matches.get_one("listen").expect("the flag has a default"),
            tpcc: Tpcc { scale, mix: MIX, thinks: false, seed: 1 },
            connections: number("connections") as usize,
            duration: Duration::from_secs(number("seconds")),
            stays: matches.get_flag("stay") || stdout().is_terminal(),
        }
    }
}

/// Runs the demonstration. Blocks until it is over, or until Ctrl-C if the node is kept.
///
/// # Errors
/// If the node does not start, or the workload fails.
pub(crate) fn run_demo(matches: &ArgMatches, out: &mut dyn Write) -> Result<(), CommandError> {
    let demo = Demo::from_matches(matches);
    let temporary = match demo.data_dir {
        Some(_) => None,
        None => Some(tempfile::Builder::new().prefix("firn-demo-").tempdir()?),
    };
    let given = demo.data_dir.clone();
    let path = given.or_else(|| temporary.as_ref().map(|directory| directory.path().to_owned()));
    let path = path.expect("a directory was given or made");
    let environment = Environment::system();
    let mut options = NodeOptions::default();
    MemoryPlan::for_pool(BUFFER_POOL_BYTES).apply(&mut options);
    let node = Arc::new(Node::open(&environment, &path, &options)?);
    let endpoint = Endpoint::start(&environment, &node, &endpoint_options(&demo, &path))?;
    let outcome = present(&demo, &node, &endpoint, out);
    endpoint.shutdown(STATEMENT_PATIENCE);
    drop(endpoint);
    match Arc::try_unwrap(node) {
        Ok(node) => node.close()?,
        Err(_) => tracing::warn!("the node was not closed in order; the next start recovers it"),
    }
    outcome
}

fn endpoint_options(demo: &Demo, path: &std::path::Path) -> EndpointOptions {
    EndpointOptions {
        listen: Some(demo.listen),
        data_dir: path.to_owned(),
        buffer_pool_bytes: BUFFER_POOL_BYTES,
        ..EndpointOptions::default()
    }
}

fn present(
    demo: &Demo,
    node: &Node,
    endpoint: &Endpoint,
    out: &mut dyn Write,
) -> Result<(), CommandError> {
    let address = endpoint.address().expect("the demonstration listens");
    let url = format!("mysql://root@127.0.0.1:{}", address.port());
    let target = Target::parse(&url, "tpcc").map_err(super::BenchError::from)?;
    writeln!(out, "firn demo: a node in this process listens at {address}; loading TPC-C …")?;
    out.flush()?;
    load(demo, &target, out)?;
    let report = work(demo, node, &target)?;
    let conditions = demo.tpcc.check(&target).map_err(super::BenchError::from)?;
    writeln!(out, "\n{}", report.to_text())?;
    match conditions.iter().filter(|condition| condition.violation.is_some()).count() {
        0 => writeln!(out, "All {} consistency conditions of TPC-C hold.", conditions.len())?,
        _ => writeln!(out, "{}", check_report(&demo.tpcc, &target, &conditions).to_text())?,
    }
    writeln!(out, "{}", how_to_go_on(demo, address.port()))?;
    out.flush()?;
    if demo.stays {
        wait_for_signal()?;
    }
    Ok(())
}

fn load(demo: &Demo, target: &Target, out: &mut dyn Write) -> Result<(), CommandError> {
    let clock = Environment::system().clock;
    let began = clock.monotonic();
    let options = LoadOptions { connections: 2, by: LoadBy::Insert, reports_progress: true };
    let rows = demo.tpcc.prepare(target, &options).map_err(super::BenchError::from)?;
    let seconds = clock.monotonic().saturating_sub(began).as_secs_f64();
    writeln!(
        out,
        "firn demo: {} rows loaded in {seconds:.1} s, {} rows/s",
        readable(rows as f64),
        readable(rows as f64 / seconds.max(1e-3))
    )?;
    Ok(out.flush()?)
}

/// Runs the terminals; Ctrl-C ends them early.
fn work(demo: &Demo, node: &Node, target: &Target) -> Result<Report, CommandError> {
    let stop = Arc::new(AtomicBool::new(false));
    let id = signal_hook::flag::register(SIGINT, Arc::clone(&stop))?;
    let title = format!(
        "Firn demo: TPC-C, warehouses: {}, terminals: {}",
        demo.tpcc.scale.warehouses, demo.connections
    );
    let mut view = LiveView::new(title, demo.duration, demo.tpcc.counted(), figures(node), stop);
    let options = RunOptions {
        connections: demo.connections,
        duration: demo.duration,
        warm_up: WARM_UP,
        seed: 1,
    };
    let measured = run(&demo.tpcc, target, &options, &mut view).map_err(super::BenchError::from);
    signal_hook::low_level::unregister(id);
    Ok(run_report(&demo.tpcc, &demo.tpcc, target, &options, &measured?))
}

/// The figures of the node that are free to read.
fn figures(node: &Node) -> Figures<'_> {
    let clock = Environment::system().clock;
    let mut last = (clock.monotonic(), node.engine().system().pages().log.end_lsn());
    Box::new(move || {
        let now = (clock.monotonic(), node.engine().system().pages().log.end_lsn());
        let seconds = now.0.saturating_sub(last.0).as_secs_f64().max(1e-3);
        let log = now.1.since(last.1) as f64 / seconds;
        last = now;
        let memory = node.memory();
        let mebibytes = |bytes: f64| readable(bytes / f64::from(1 << 20));
        vec![format!(
            "log {} MiB/s, buffer pool {} MiB, process {} MiB of {} MiB",
            mebibytes(log),
            mebibytes(memory.buffer_pool as f64),
            mebibytes(memory.resident as f64),
            mebibytes(memory.budget as f64),
        )]
    })
}

fn how_to_go_on(demo: &Demo, port: u16) -> String {
    let mut lines = Vec::new();
    if demo.stays {
        lines
            .push("The node runs until Ctrl-C. Look at the data with any MySQL client:".to_owned());
        lines.push(format!("    mysql -h 127.0.0.1 -P {port} -u root tpcc"));
        lines.push("Or put it under another load:".to_owned());
        lines.push(format!(
            "    firn bench tpcc run --url mysql://root@127.0.0.1:{port} --connections 32 --html tpcc.html"
        ));
    }
    match &demo.data_dir {
        Some(path) => {
            lines.push(format!("The data stays: firn start --data-dir {}", path.display()));
        }
        None => lines.push("The data is removed then; --data-dir DIR keeps it.".to_owned()),
    }
    lines.join("\n")
}

fn wait_for_signal() -> Result<(), CommandError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    while !stop.load(Ordering::Relaxed) {
        sleep(Duration::from_millis(100));
    }
    Ok(())
}
