//! Control nodes that are lost are replaced by nodes that joined later.

use std::collections::BTreeSet;

use firn_base::Environment;
use firn_cluster::Surveyor;
use firn_control::{Catalog, GroupId};

use super::*;

impl Cluster {
    /// What control has of the cluster, once it answers.
    fn catalog(&self) -> Catalog {
        let layout = fs::read_to_string(self.directory.join("cluster.toml")).unwrap();
        let layout = Layout::parse(&layout).unwrap();
        let surveyor = Surveyor::new(&Environment::system(), layout, None);
        let until = Instant::now() + PATIENCE;
        loop {
            match surveyor.catalog() {
                Ok(catalog) => return catalog,
                Err(error) => assert!(Instant::now() < until, "{error}"),
            }
        }
    }

    /// Waits until these are the control nodes, and nobody changes them.
    fn wait_for_controls(&self, names: &[&str]) {
        let until = Instant::now() + PATIENCE;
        loop {
            let catalog = self.catalog();
            let group = &catalog.groups()[&GroupId::CONTROL];
            let found: BTreeSet<&str> = group
                .members
                .values()
                .map(|member| catalog.nodes()[&member.node].name.as_str())
                .collect();
            if group.operation.is_none() && found.iter().eq(names) {
                return;
            }
            assert!(Instant::now() < until, "{found:?} and not {names:?}\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

#[test]
fn lost_control_nodes_are_replaced_by_one_that_joined() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(directory.path(), &["--nodes", "3"]);
    cluster.create();
    let refused = cluster.command(&["remove", "node-3"]).output().unwrap();
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains("no other node can take its place"), "{text}");
    let mut joined = cluster.join("control-4", "control");
    cluster.wait_for_status(|text| text.matches(" up ").count() == 4);
    cluster.wait_for_controls(&["node-1", "node-2", "node-3"]);

    // It is silent, and nobody asks for a replacement.
    cluster.signal("node-3", "STOP");
    cluster.wait_for_controls(&["control-4", "node-1", "node-2"]);
    // One of the founders is left, and control goes on.
    cluster.signal("node-2", "STOP");
    assert!(cluster.command(&["controls", "3"]).status().unwrap().success());
    // It comes back as one in reserve, and is needed.
    cluster.signal("node-3", "CONT");
    cluster.wait_for_controls(&["control-4", "node-1", "node-3"]);
    cluster.signal("node-2", "CONT");
    cluster.wait_for_status(|text| text.matches(" up ").count() == 4);

    // A founder that has lost its disk is one that is lost.
    cluster.signal("node-1", "STOP");
    fs::remove_dir_all(directory.path().join("node-1")).unwrap();
    cluster.signal("node-1", "KILL");
    cluster.wait_for_controls(&["control-4", "node-2", "node-3"]);

    // A newcomer comes back with its directory alone, and leaves when it is told to.
    signal("KILL", &joined.id().to_string());
    joined.wait().unwrap();
    joined = cluster.start_again("control-4");
    cluster.wait_for_status(|text| text.matches(" up ").count() == 3);
    // Two are enough if two are wanted, and then one can leave.
    assert!(cluster.command(&["controls", "2"]).status().unwrap().success());
    assert!(cluster.command(&["remove", "control-4"]).status().unwrap().success());
    cluster.wait_for_controls(&["node-2", "node-3"]);
    let rows: Vec<u64> = cluster.rows(Role::Database, "SELECT COUNT(*) FROM kept.t");
    assert_eq!(rows, [0]);
    drop(joined.stdin.take());
    joined.wait().unwrap();
    cluster.end();
}
