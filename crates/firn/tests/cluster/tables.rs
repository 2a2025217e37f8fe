//! What a cluster tells of itself in SQL, at the node that writes and at a replica, and to somebody
//! who watches.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use firn_base::network::Role;
use mysql::prelude::{FromRow, Queryable};

use super::server::Server;
use super::{Cluster, ONE_AT_A_TIME, PATIENCE, signal};

const TABLES: [&str; 5] = [
    "firn_nodes",
    "firn_cluster_lag",
    "firn_group_members",
    "firn_chunks",
    "firn_cluster_operations",
];

/// The rows of a query, once they are as expected.
fn wait_for_rows<T: FromRow + std::fmt::Debug>(
    cluster: &Cluster,
    role: Role,
    query: &str,
    is_expected: impl Fn(&[T]) -> bool,
) -> Vec<T> {
    let until = Instant::now() + PATIENCE;
    loop {
        let rows: Result<Vec<T>, _> = cluster.connect_to(role).query(query);
        match rows {
            Ok(rows) if is_expected(&rows) => return rows,
            rows => assert!(Instant::now() < until, "{query}: {rows:?}\n{}", cluster.logs()),
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

type NodeRow = (String, String, Option<String>, Option<String>, Option<u64>, Option<String>);

#[test]
fn the_state_of_a_cluster_is_in_sql_at_every_node() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(directory.path(), &["--separate", "--replicas", "1"]);
    let nodes = "select node, roles, version, state, state_since_unix_time_ms, error \
                 from information_schema.firn_nodes order by node_id";
    for role in [Role::Database, Role::Replica] {
        let rows = wait_for_rows(&cluster, role, nodes, |rows: &[NodeRow]| {
            rows.iter().filter(|row| row.3.as_deref() == Some("up") && row.5.is_none()).count() == 6
        });
        assert!(rows.iter().any(|row| row.0 == "logger-1" && row.1 == "log+control"), "{rows:?}");
        let versions: Vec<_> = rows.iter().filter_map(|row| row.2.as_deref()).collect();
        assert_eq!(versions, [env!("CARGO_PKG_VERSION"); 6]);
        assert!(rows.iter().all(|row| row.4.is_some_and(|since| since > 1_600_000_000_000)));

        // One row for each part that follows the log.
        let lag = "select part, count(*), count(position), max(lag_bytes) \
                   from information_schema.firn_cluster_lag group by part order by part";
        wait_for_rows(&cluster, role, lag, |rows: &[(String, u64, u64, Option<u64>)]| {
            let counts: Vec<_> = rows.iter().map(|row| (&*row.0, row.1, row.2)).collect();
            counts == [("log", 3, 3), ("pages", 2, 2), ("replica", 1, 1)]
                && rows.iter().all(|row| row.3.is_some_and(|bytes| bytes < 1 << 20))
        });
        let leads = "select node, role, leads_in_term is not null \
                     from information_schema.firn_group_members where group_id = 1";
        wait_for_rows(&cluster, role, leads, |rows: &[(String, String, bool)]| {
            rows.len() == 3 && rows.iter().filter(|row| row.2 && row.1 == "voter").count() == 1
        });
        let copies = "select count(*), count(distinct node), sum(state = 'in service'), \
                      count(position), sum(lag_bytes >= 0) from information_schema.firn_chunks \
                      where first_page = 0";
        wait_for_rows(&cluster, role, copies, |rows: &[(u64, u64, u64, u64, u64)]| {
            rows.iter().all(|row| row.1 == 2 && [row.2, row.3, row.4] == [row.0; 3])
        });
    }

    // The tables are there for those who may see what others do.
    let mut client = cluster.connect();
    client.query_drop("create user clerk identified by 'x'").unwrap();
    client.query_drop("grant select on *.* to clerk").unwrap();
    cluster.signal("pages-1", "STOP");
    wait_for_rows(&cluster, Role::Database, nodes, |rows: &[NodeRow]| {
        rows.iter().any(|row| row.0 == "pages-1" && row.3.as_deref() == Some("down"))
            && rows.iter().all(|row| (row.0 == "pages-1") == row.5.is_some())
    });
    cluster.signal("pages-1", "CONT");
    let mut clerk = cluster.connect_as("clerk", "x");
    for table in TABLES {
        let query = format!("select * from information_schema.{table}");
        assert_eq!(clerk.query::<mysql::Row, _>(query).unwrap().len(), 0, "{table}");
    }
    let operations = "select count(*) from information_schema.firn_cluster_operations";
    wait_for_rows(&cluster, Role::Database, operations, |rows: &[u64]| rows == [0]);
    watch(&cluster);
    cluster.end();
}

/// The state is shown again and again, until somebody has seen enough.
fn watch(cluster: &Cluster) {
    let mut watching =
        cluster.command(&["status", "--watch", "1"]).stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(watching.stdout.take().unwrap());
    let text = Mutex::new(String::new());
    let has = |part: &str, times: usize| text.lock().unwrap().matches(part).count() >= times;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for line in output.lines() {
                *text.lock().unwrap() += &(line.unwrap() + "\n");
            }
        });
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until && !(has("log group 1: ", 2) && has(" a second\n", 1)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        signal("INT", &watching.id().to_string());
        assert!(watching.wait().unwrap().success());
    });
    assert!(has("log group 1: ", 2) && has(" a second\n", 1), "{text:?}");
}

#[test]
fn a_server_of_its_own_has_the_tables_and_no_rows() {
    let server = Server::start(&[], &[]);
    let mut client = server.connect();
    for table in TABLES {
        let query = format!("select * from information_schema.{table}");
        assert_eq!(client.query::<mysql::Row, _>(query).unwrap().len(), 0, "{table}");
    }
}
