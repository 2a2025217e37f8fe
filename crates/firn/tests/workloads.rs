//! Each workload of `firn bench`, in small, over a node in this process: its load and its run leave
//! consistent data.

use std::sync::Arc;
use std::time::Duration;

use firn_base::Environment;
use firn_bench::client::{Mode, Target};
use firn_bench::load::{LoadBy, LoadOptions};
use firn_bench::measure::Measured;
use firn_bench::run::{RunOptions, run};
use firn_bench::sysbench::{Distribution, Shape, Sysbench};
use firn_bench::tatp::Tatp;
use firn_bench::tpcc::{MIX, Scale, Tpcc};
use firn_bench::tpch::Tpch;
use firn_bench::workload::Suite;
use firn_bench::ycsb::Ycsb;
use firn_node::endpoint::{Endpoint, EndpointOptions};
use firn_node::node::{Node, NodeOptions};

/// A node with its port. Fields are dropped in this order.
struct Served {
    endpoint: Endpoint,
    _node: Arc<Node>,
    _directory: tempfile::TempDir,
}

fn serve() -> Served {
    let directory = tempfile::tempdir().unwrap();
    let environment = Environment::system();
    let mut options = NodeOptions::default();
    options.engine.buffer_pool_bytes = 64 << 20;
    options.storage.log.segment_size_bytes = 8 << 20;
    let node = Arc::new(Node::open(&environment, directory.path(), &options).unwrap());
    let options = EndpointOptions {
        listen: Some("127.0.0.1:0".parse().unwrap()),
        data_dir: directory.path().to_owned(),
        ..EndpointOptions::default()
    };
    let endpoint = Endpoint::start(&environment, &node, &options).unwrap();
    Served { endpoint, _node: node, _directory: directory }
}

impl Served {
    fn target(&self, suite: &dyn Suite) -> Target {
        let url = format!("mysql://root@{}", self.endpoint.address().unwrap());
        Target::parse(&url, suite.name()).unwrap()
    }
}

fn load_options(by: LoadBy) -> LoadOptions {
    LoadOptions { connections: 2, by, reports_progress: false }
}

fn check(suite: &dyn Suite, target: &Target) {
    let conditions = suite.check(target).unwrap();
    let violated: Vec<_> =
        conditions.iter().filter(|condition| condition.violation.is_some()).collect();
    assert!(!conditions.is_empty() && violated.is_empty(), "{violated:?}");
}

/// Loads, checks, runs each case for a short time, checks again and cleans up. A case that has not
/// done `enough` in its time is run again for longer: the machine may be slow.
fn exercise(
    suite: &dyn Suite,
    by: LoadBy,
    mode: Mode,
    enough: impl Fn(&Measured) -> bool,
) -> Vec<Measured> {
    let served = serve();
    let target = served.target(suite).with_mode(mode);
    assert!(suite.prepare(&target, &load_options(by)).unwrap() > 0);
    check(suite, &target);
    let options = |times: u32| RunOptions {
        connections: 3,
        duration: Duration::from_millis(700) * times,
        warm_up: Duration::from_millis(50),
        seed: 3,
    };
    let cases = suite.cases();
    let runs = cases.iter().map(|case| {
        let once = |times: u32| run(&**case, &target, &options(times), &mut ()).unwrap();
        let found = [1, 4, 16, 64].into_iter().map(once).find(&enough);
        found.unwrap_or_else(|| panic!("{} does not do enough", case.label()))
    });
    let runs = runs.collect();
    check(suite, &target);
    suite.cleanup(&target).unwrap();
    assert!(target.connect().unwrap().ask("SHOW TABLES").unwrap().is_empty());
    runs
}

fn something(run: &Measured) -> bool {
    run.total().transactions() > 0
}

fn tpcc(warehouses: i64) -> Tpcc {
    let scale = Scale { warehouses, items: 200, customers: 30 };
    Tpcc { scale, mix: MIX, thinks: false, seed: 1 }
}

#[test]
fn tpcc_stays_consistent() {
    let each_kind = |run: &Measured| run.kinds.iter().all(|kind| kind.transactions() > 0);
    exercise(&tpcc(2), LoadBy::Insert, Mode::Prepared, each_kind);
}

#[test]
fn tpcc_stays_consistent_as_text_loaded_from_files() {
    exercise(&tpcc(1), LoadBy::Infile, Mode::Text, something);
}

#[test]
fn a_damaged_warehouse_is_found() {
    let (suite, served) = (tpcc(1), serve());
    let target = served.target(&suite);
    suite.prepare(&target, &load_options(LoadBy::Insert)).unwrap();
    let mut session = target.connect().unwrap();
    for damage in [
        "UPDATE warehouse SET w_ytd = w_ytd + 1",
        "DELETE FROM new_order WHERE no_d_id = 3 AND no_o_id = 25",
        "UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_d_id = 4 AND o_id = 1",
        "UPDATE customer SET c_balance = c_balance - 1 WHERE c_d_id = 5 AND c_id = 1",
        "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_d_id = 6 AND ol_o_id = 1",
    ] {
        session.run(damage).unwrap();
    }
    let conditions = suite.check(&target).unwrap();
    let violated: Vec<&str> = conditions
        .iter()
        .filter(|condition| condition.violation.is_some())
        .map(|condition| condition.name.split(':').next().unwrap())
        .collect();
    assert_eq!(violated, ["1", "3", "4", "5", "6", "7", "8", "10", "11", "12"]);
}

fn sysbench() -> Sysbench {
    Sysbench {
        tables: 2,
        rows: 600,
        shapes: Shape::ALL.to_vec(),
        distribution: Distribution::named("zipfian", 600).unwrap(),
        seed: 1,
    }
}

#[test]
fn sysbench_shapes_keep_rows_and_indexes_together() {
    exercise(&sysbench(), LoadBy::Insert, Mode::Prepared, something);
}

#[test]
fn sysbench_shapes_run_as_text() {
    let suite = Sysbench { shapes: vec![Shape::ReadWrite], ..sysbench() };
    exercise(&suite, LoadBy::Infile, Mode::Text, something);
}

#[test]
fn tatp_comes_to_something_as_often_as_it_should() {
    // Shares of a few transactions say nothing.
    let many = |run: &Measured| run.kinds[..3].iter().all(|kind| kind.transactions() > 200);
    let suite = Tatp { subscribers: 500, seed: 1 };
    let runs = exercise(&suite, LoadBy::Insert, Mode::Prepared, many);
    let [data, destination, access, ..] = &runs[0].kinds[..] else { panic!("seven kinds") };
    assert_eq!(data.fruitless, 0);
    let share = |kind: &firn_bench::measure::Kind| {
        1.0 - kind.fruitless as f64 / kind.transactions().max(1) as f64
    };
    assert!((0.4..0.85).contains(&share(access)), "{}", share(access));
    assert!(share(destination) < 0.4, "{}", share(destination));
}

#[test]
fn ycsb_keeps_values_in_their_rows() {
    let letters = Ycsb::letters_of("all").unwrap();
    let suite = Ycsb { records: 300, letters, requests: None, seed: 1 };
    exercise(&suite, LoadBy::Insert, Mode::Prepared, something);
}

#[test]
fn tpch_queries_answer_the_same_however_the_rows_came() {
    let suite = |against: Option<String>| Tpch {
        scale: 0.001,
        numbers: (1..=22).collect(),
        passes: 1,
        against,
        answers: None,
        seed: 1,
    };
    let (one, two) = (serve(), serve());
    let (first, second) = (one.target(&suite(None)), two.target(&suite(None)));
    let loaded = suite(None).prepare(&first, &load_options(LoadBy::Insert)).unwrap();
    assert_eq!(suite(None).prepare(&second, &load_options(LoadBy::Infile)).unwrap(), loaded);
    let url = format!("mysql://root@{}", two.endpoint.address().unwrap());
    check(&suite(Some(url)), &first);
    let options =
        RunOptions { connections: 1, duration: Duration::ZERO, warm_up: Duration::ZERO, seed: 1 };
    let case = &suite(None).cases()[0];
    let measured = run(&**case, &first, &options, &mut ()).unwrap();
    assert!(measured.kinds.iter().all(|kind| kind.transactions() == 1));
    let missing = suite(None).check(&first);
    assert!(missing.is_err(), "nobody says what is right");
}
