//! The zone that writes is lost, and another one goes on: by itself with all that was acknowledged
//! if commits wait for it, and when it is told to with all that it got if it follows.

use super::*;

impl Cluster {
    /// The names of the nodes that begin so.
    fn named(&self, prefix: &str) -> Vec<String> {
        let layout = self.layout().expect("the cluster has a layout");
        let names = layout.nodes().map(|node| node.name.clone());
        names.filter(|name| name.starts_with(prefix)).collect()
    }

    /// The zone's line in `firn cluster status`, once it says that.
    fn wait_for_zone(&self, zone: &str, says: &str) {
        let until = Instant::now() + PATIENCE;
        loop {
            let text = self.status();
            let start = format!("zone {zone}: ");
            if text.lines().any(|line| line.starts_with(&start) && line.contains(says)) {
                return;
            }
            assert!(Instant::now() < until, "not '{says}':\n{text}\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// A connection to a node by its name.
    fn connect_to(&self, name: &str) -> Conn {
        let layout = self.layout().expect("the cluster has a layout");
        let port = layout.named(name).and_then(|node| node.client_address.as_ref()?.port());
        self.connect(|| port)
    }
}

/// Makes the table in which [`insert`] inserts.
fn create(client: &mut Conn) {
    client.query_drop("CREATE DATABASE kept").unwrap();
    client.query_drop("CREATE TABLE kept.t (n BIGINT PRIMARY KEY)").unwrap();
}

fn kept(client: &mut Conn) -> BTreeSet<u64> {
    client.query::<u64, _>("SELECT n FROM kept.t").unwrap().into_iter().collect()
}

/// Has writers insert at a node until its zone is stopped; `late` nodes get nothing of the end.
/// Returns what each writer was acknowledged.
fn write_until_stopped(
    cluster: &Cluster,
    at: &str,
    stopped: &[String],
    late: &[&str],
) -> Vec<Vec<u64>> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = StopAtEnd(&stop);
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (mut client, stop) = (cluster.connect_to(at), &stop);
                scope.spawn(move || {
                    let mut acknowledged = Vec::new();
                    let mut next = writer;
                    while !stop.load(Ordering::Relaxed) {
                        match insert_one(&mut client, next) {
                            Ok(()) => acknowledged.push(next),
                            Err(_) if stop.load(Ordering::Relaxed) => break,
                            Err(error) => panic!("writer {writer}: {error}"),
                        }
                        next += WRITERS;
                    }
                    acknowledged
                })
            })
            .collect();
        std::thread::sleep(Duration::from_secs(2));
        late.iter().for_each(|name| cluster.signal("STOP", name));
        std::thread::sleep(Duration::from_secs(2));
        stop.store(true, Ordering::Relaxed);
        let acknowledged = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        stopped.iter().for_each(|name| cluster.signal("STOP", name));
        late.iter().for_each(|name| cluster.signal("CONT", name));
        acknowledged
    })
}

#[test]
fn a_zone_that_follows_takes_over_when_it_is_told_to() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["--standby", "asynchronous", "--standby-replicas", "1"];
    let cluster = Cluster::start(directory.path(), &arguments);
    let mut client = cluster.connect(|| cluster.ports(Role::Database).get("node-1").copied());
    create(&mut client);
    cluster.wait_until_up(5);
    let refused = cluster.run(&["take-over", "standby", "--accept-loss"]);
    assert!(!refused.1, "the other zone writes: {}", refused.0);
    let main = cluster.named("node-");
    assert_eq!(main.len(), 3);

    let acknowledged = write_until_stopped(&cluster, "node-1", &main, &["standby-1"]);
    cluster.wait_for_zone("standby", "it is not known what it would lose");
    let unsure = cluster.run(&["take-over", "standby"]);
    assert!(!unsure.1, "nobody has accepted a loss: {}", unsure.0);
    let (text, has_taken) = cluster.run(&["take-over", "standby", "--accept-loss"]);
    assert!(has_taken, "{text}\n{}", cluster.logs());

    let mut client = cluster.connect_to("standby-1");
    let found = kept(&mut client);
    let (mut lost, mut all) = (0, 0);
    for writer in &acknowledged {
        let there = writer.iter().take_while(|number| found.contains(number)).count();
        let behind = writer[there..].iter().filter(|number| found.contains(number)).count();
        assert_eq!(behind, 0, "what is lost is the end of what was acknowledged");
        (lost, all) = (lost + writer.len() - there, all + writer.len());
    }
    println!("{lost} of {all} acknowledged inserts are lost\n{text}");
    insert_one(&mut client, 1_000_001).unwrap();
    let mut replica = cluster.connect_to("standby-replica-1");
    assert!(kept(&mut replica).contains(&1_000_001), "its replica reads what it writes");

    // The other zone comes back, and hears that the cluster has gone on.
    main.iter().for_each(|name| cluster.signal("CONT", name));
    let until = Instant::now() + PATIENCE;
    while main.iter().any(|name| cluster.process_of(name).is_some()) {
        assert!(Instant::now() < until, "a node goes on:\n{}", cluster.logs());
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(cluster.logs().contains("has taken the cluster over without this node"));
    insert_one(&mut client, 1_000_002).unwrap();
    let before = kept(&mut client);
    cluster.kill("standby-1");
    let after = kept(&mut cluster.connect_to("standby-1"));
    assert_eq!(before, after, "it goes on where it was");
    cluster.end();
}

#[test]
fn a_zone_for_which_commits_wait_goes_on_by_itself() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["--standby", "synchronous", "--standby-replicas", "1"];
    let cluster = Cluster::start(directory.path(), &arguments);
    cluster.wait_until_up(4);
    let _ = cluster.switch(&["node-1"]);
    cluster.wait_for_zone("main", "writes");
    cluster.wait_for_zone("standby", "synchronous; it would lose nothing");
    let mut client = cluster.connect_to("node-1");
    create(&mut client);
    let main = cluster.named("node-");
    let acknowledged = write_until_stopped(&cluster, "node-1", &main, &[]);
    let mut client = cluster.connect_to("standby-1");
    let found = kept(&mut client);
    assert!(acknowledged.iter().flatten().all(|number| found.contains(number)), "none is lost");
    insert_one(&mut client, 1_000_001).unwrap();
    cluster.wait_for_zone("standby", "writes");
    cluster.signal("CONT", "node-1");
    cluster.wait_for_zone("main", "synchronous; it would lose nothing");
    cluster.end();
}

#[test]
fn a_drill_shows_what_a_loss_would_cost() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let drill = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_firn"));
        command.args(["cluster", "drill", "--standby", "synchronous", "--clients", "4"]);
        command.args(["--seconds", "2", "--dir"]).arg(directory.path().join("drill"));
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        (text.concat(), output.status.success())
    };
    let (text, has_ended_well) = drill();
    assert!(has_ended_well, "{text}");
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no '{name}' in {text}")).trim().to_owned()
    };
    assert!(value("acknowledged inserts").parse::<u64>().unwrap() > 0);
    assert_eq!(value("acknowledged and lost"), "0");
    let (again, has_begun) = drill();
    assert!(!has_begun && again.contains("a drill kills nodes"), "{again}");
}

#[test]
fn a_zone_that_follows_joins_a_cluster_that_runs() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(directory.path(), &["--nodes", "3"]);
    let mut client = cluster.connect(|| cluster.ports(Role::Database).get("node-1").copied());
    create(&mut client);
    insert_one(&mut client, 1).unwrap();
    let clients = free_port();
    let zone = ["--zone", "west", "--asynchronous-zone", "on", "--buffer-pool", "128M"];
    let mut west = cluster.join_with("west-1", "database+log+pages+control", clients, &zone);
    cluster.wait_until_up(4);
    // What is kept there is a copy more.
    assert!(cluster.run(&["copies", "4"]).1);
    cluster.wait_for_zone("west", "asynchronous; it would lose");
    insert_one(&mut client, 2).unwrap();
    let (text, is_told) = cluster.run(&["layout"]);
    assert!(is_told && text.contains("asynchronous_zones = [\"west\"]"), "{text}");
    let layout = directory.path().join("all.toml");
    fs::write(&layout, &text).unwrap();
    cluster.wait_for_zone("west", "it would lose nothing");

    cluster.named("node-").iter().for_each(|name| cluster.signal("STOP", name));
    let take_over = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_firn"));
        command.args(["cluster", "take-over", "west", "--accept-loss", "--layout"]);
        command.arg(&layout).output().unwrap()
    };
    let until = Instant::now() + PATIENCE;
    loop {
        let output = take_over();
        if output.status.success() {
            break;
        }
        // It waits until no node of the other zone can be thought to write.
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(Instant::now() < until, "{text}\n{}", cluster.logs());
    }
    let mut client = cluster.connect(|| Some(clients));
    assert_eq!(kept(&mut client), [1, 2].into());
    insert_one(&mut client, 4).unwrap();
    drop(west.stdin.take());
    west.wait().unwrap();
    cluster.named("node-").iter().for_each(|name| cluster.kill(name));
    drop(cluster);
}
