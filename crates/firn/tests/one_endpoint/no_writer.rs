//! No node writes any more: clients are told so after the time that is set, and are served again
//! once there is one.

use super::*;

/// Shorter than the default.
const WAIT: Duration = Duration::from_secs(2);

#[test]
fn clients_wait_for_a_writer_as_long_as_is_set() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let wait = WAIT.as_secs().to_string();
    let settings = [("FIRN_WRITER_WAIT_SECONDS", wait.as_str())];
    let nodes = ["--nodes", "3", "--proxies", "1"];
    let cluster = Cluster::start_with(directory.path(), &nodes, &settings);
    let mut client = cluster.proxy();
    client.query_drop("CREATE DATABASE kept").unwrap();
    client.query_drop("CREATE TABLE kept.t (n BIGINT PRIMARY KEY)").unwrap();
    let nodes: Vec<String> = cluster.ports(Role::Database).into_keys().collect();
    nodes.iter().for_each(|name| cluster.signal("STOP", name));
    // The first one may be sent before the proxy knows.
    assert!(client.query_drop("SELECT * FROM kept.t").is_err());
    let began = Instant::now();
    let refused = client.query_drop("INSERT INTO kept.t VALUES (1)").unwrap_err();
    assert_eq!(code(refused), 1429);
    let waited = began.elapsed();
    assert!(waited >= WAIT && waited < 4 * WAIT, "{waited:?}");
    nodes.iter().for_each(|name| cluster.signal("CONT", name));
    let until = Instant::now() + PATIENCE;
    while let Err(error) = client.query_drop("INSERT INTO kept.t VALUES (1)") {
        assert!(Instant::now() < until, "{error}");
    }
    cluster.end();
}
