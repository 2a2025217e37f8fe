//! A cluster that nobody uses closes its engine and its replicas, and the next client of any
//! endpoint has them opened again, without an error.

use super::*;

/// A generous limit: how long it takes is printed, and measured elsewhere.
const WAKING: Duration = Duration::from_secs(20);
const ROWS: u64 = 4000;

/// What a process has.
#[derive(Debug, Clone, Copy)]
struct Usage {
    resident_kib: u64,
    processor: Duration,
    threads: u64,
}

impl Cluster {
    /// Waits until the node that leads says that it is paused; returns its name.
    fn wait_until_paused(&self) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let text = self.status();
            if let Some(name) = paused_leader(&text) {
                return name;
            }
            assert!(Instant::now() < until, "it does not pause:\n{text}\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn is_paused(&self) -> bool {
        paused_leader(&self.status()).is_some()
    }

    fn usage(&self, name: &str) -> Usage {
        let id = self.process_of(name).unwrap_or_else(|| panic!("no process of {name}"));
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let number = |key: &str| {
            let line = status.lines().find(|line| line.starts_with(key)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
        };
        let text = fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
        let fields: Vec<_> = text.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum();
        Usage {
            resident_kib: number("VmRSS:"),
            processor: Duration::from_millis(ticks * 10),
            threads: number("Threads:"),
        }
    }

    fn port(&self, name: &str) -> Option<u16> {
        let roles = [Role::Database, Role::Replica, Role::Proxy];
        roles.into_iter().find_map(|role| self.ports(role).get(name).copied())
    }

    /// How often the engine was closed because nobody used it.
    fn pauses(&self) -> usize {
        self.logs().matches("the engine is closed until somebody does").count()
    }
}

/// The node that leads, if it is paused.
fn paused_leader(status: &str) -> Option<String> {
    let mut lines = status.lines();
    let line = lines.find(|line| line.contains("leads, term") && line.contains(", paused"))?;
    line.split_whitespace().next().map(ToOwned::to_owned)
}

/// Has a client do something, which wakes the cluster, and prints how long that takes.
fn wakes<T>(cluster: &Cluster, what: &str, act: impl FnOnce() -> T) -> T {
    cluster.wait_until_paused();
    let begin = Instant::now();
    let done = act();
    let took = begin.elapsed();
    println!("woken by {what}: {} ms until its answer", took.as_millis());
    assert!(took < WAKING, "{}", cluster.logs());
    done
}

fn count(client: &mut Conn) -> u64 {
    let text = "SELECT COUNT(*), @mine, @@GLOBAL.default_week_format FROM kept.t";
    let (count, mine, global): (u64, u64, u64) = client.query_first(text).unwrap().unwrap();
    assert_eq!((mine, global), (42, 3), "what was set is as it was");
    count
}

#[test]
fn an_idle_cluster_pauses_and_every_endpoint_wakes_it() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let shape = ["--nodes", "3", "--replicas", "1", "--proxies", "1"];
    let pause = ["--pause-after-idle-seconds", "2"];
    let cluster = Cluster::start(directory.path(), &[&shape[..], &pause].concat());
    let mut first = cluster.proxy();
    cluster.wait_until_up(5);
    for text in [
        "CREATE DATABASE kept",
        "CREATE TABLE kept.t (n BIGINT PRIMARY KEY, filler VARCHAR(10000))",
        "SET GLOBAL default_week_format = 3",
    ] {
        first.query_drop(text).unwrap();
    }
    for begin in (0..ROWS).step_by(100) {
        let row = |number: u64| format!("({number}, REPEAT('x', 10000))");
        let rows: Vec<String> = (begin..begin + 100).map(row).collect();
        first.query_drop(format!("INSERT INTO kept.t VALUES {}", rows.join(", "))).unwrap();
    }
    let leader = cluster.leader();
    let other = cluster.ports(Role::Database).into_keys().find(|name| *name != leader).unwrap();
    let endpoints = [leader.as_str(), &other, "replica-1", "proxy-1"];
    let mut clients: Vec<Conn> =
        endpoints.map(|name| cluster.connect(|| cluster.port(name))).into();
    clients.iter_mut().for_each(|client| client.query_drop("SET @mine = 42").unwrap());

    let _: Option<String> = clients[0].query_first("SELECT MAX(filler) FROM kept.t").unwrap();
    let awake = cluster.usage(&leader);
    assert_eq!(cluster.wait_until_paused(), leader);
    let (paused, until) = (cluster.usage(&leader), Instant::now() + Duration::from_secs(3));
    while Instant::now() < until {
        assert!(cluster.is_paused(), "questions about the state wake nobody");
        clients.iter_mut().for_each(|client| client.ping().unwrap());
        std::thread::sleep(Duration::from_millis(300));
    }
    let later = cluster.usage(&leader);
    println!(
        "{leader} awake: {awake:?}, paused: {paused:?}; {} ms of a processor in the next 3 s",
        (later.processor - paused.processor).as_millis()
    );
    assert!(later.resident_kib + 20_000 < awake.resident_kib, "it gives memory back");
    assert!(later.threads < awake.threads, "it gives threads back");
    assert!(cluster.status().contains("paused"), "{}", cluster.status());

    for (client, name) in clients.iter_mut().zip(endpoints) {
        assert_eq!(wakes(&cluster, &format!("a client of {name}"), || count(client)), ROWS);
    }
    for name in endpoints {
        let connect = || cluster.connect(|| cluster.port(name)).query_first("SELECT 1").unwrap();
        let one: Option<u64> = wakes(&cluster, &format!("a login at {name}"), connect);
        assert_eq!(one, Some(1));
    }
    what_is_open_keeps_it_awake(&cluster, &mut clients);
    drop((first, clients));
    cluster.end();
}

/// Looks for longer than the time until the pause.
fn stays_awake(cluster: &Cluster, what: &str) {
    let until = Instant::now() + Duration::from_secs(5);
    while Instant::now() < until {
        assert!(!cluster.is_paused(), "{what} is lost with the engine:\n{}", cluster.logs());
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn what_is_open_keeps_it_awake(cluster: &Cluster, clients: &mut [Conn]) {
    let client = &mut clients[3];
    for (begin, end) in [
        ("CREATE TEMPORARY TABLE kept.mine (n BIGINT)", "DROP TEMPORARY TABLE kept.mine"),
        ("DO GET_LOCK('mine', 1)", "DO RELEASE_LOCK('mine')"),
    ] {
        client.query_drop(begin).unwrap();
        stays_awake(cluster, begin);
        client.query_drop(end).unwrap();
    }
    client.query_drop("BEGIN").unwrap();
    client.query_drop("INSERT INTO kept.t VALUES (1000000, '')").unwrap();
    stays_awake(cluster, "a transaction");
    client.query_drop("ROLLBACK").unwrap();

    // At the replica alone.
    let (stop, reader) = (AtomicBool::new(false), &mut clients[2]);
    reader.query_drop("SET firn_read_consistency = 'STALE'").unwrap();
    std::thread::scope(|scope| {
        let _stop = StopAtEnd(&stop);
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _: Option<u64> = reader.query_first("SELECT MAX(n) FROM kept.t").unwrap();
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        stays_awake(cluster, "what a replica is read for");
    });
    reader.query_drop("BEGIN").unwrap();
    let _: Option<u64> = reader.query_first("SELECT MAX(n) FROM kept.t").unwrap();
    stays_awake(cluster, "a transaction at a replica");
    reader.query_drop("COMMIT").unwrap();
    cluster.wait_until_paused();
}

/// Counts up as somebody who comes when the cluster is about to pause, or just has. Returns how
/// often.
fn come_at_any_time(mut client: Conn, seed: u64, stop: &AtomicBool) -> u64 {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut counted = 0;
    while !stop.load(Ordering::Relaxed) {
        match counted % 3 {
            0 => client.query_drop("UPDATE kept.c SET v = v + 1").unwrap(),
            1 => {
                client.query_drop("BEGIN").unwrap();
                client.query_drop("UPDATE kept.c SET v = v + 1").unwrap();
                client.query_drop("COMMIT").unwrap();
            }
            _ => client.exec_drop("UPDATE kept.c SET v = v + ?", (1,)).unwrap(),
        }
        counted += 1;
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        std::thread::sleep(Duration::from_millis(900 + (random >> 33) % 1200));
    }
    counted
}

#[test]
fn a_paused_cluster_that_changes_answers_all_the_same() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let shape = ["--nodes", "3", "--proxies", "1", "--pause-after-idle-seconds", "1"];
    let cluster = Cluster::start(directory.path(), &shape);
    let mut client = cluster.proxy();
    cluster.wait_until_up(4);
    for text in [
        "CREATE DATABASE kept",
        "CREATE TABLE kept.c (n BIGINT PRIMARY KEY, v BIGINT)",
        "INSERT INTO kept.c VALUES (1, 0)",
    ] {
        client.query_drop(text).unwrap();
    }
    let value =
        |client: &mut Conn| -> u64 { client.query_first("SELECT v FROM kept.c").unwrap().unwrap() };

    let before = cluster.wait_until_paused();
    let (output, is_done) = cluster.switch(&[]);
    assert!(is_done, "{output}");
    assert_ne!(cluster.leader(), before);
    assert_eq!(wakes(&cluster, "a client after a switch", || value(&mut client)), 0);

    let killed = cluster.wait_until_paused();
    cluster.kill(&killed);
    let begin = Instant::now();
    client.query_drop("UPDATE kept.c SET v = v + 1").unwrap();
    println!("paused writer killed: {} ms until an answer", begin.elapsed().as_millis());
    cluster.wait_until_up(4);

    let others: Vec<Conn> = (0..8).map(|_| cluster.proxy()).collect();
    cluster.wait_until_paused();
    std::thread::scope(|scope| {
        for mut other in others {
            scope.spawn(move || other.query_drop("UPDATE kept.c SET v = v + 1").unwrap());
        }
    });
    assert_eq!(value(&mut client), 9);

    let (stop, pauses) = (AtomicBool::new(false), cluster.pauses());
    let counted = std::thread::scope(|scope| {
        let stopping = StopAtEnd(&stop);
        let ports = cluster.ports(Role::Database).into_values();
        let ports = ports.chain(cluster.ports(Role::Proxy).into_values());
        // One at a time would pause each time, all at once never would.
        let connections: Vec<_> =
            ports.take(2).map(|port| cluster.connect(|| Some(port))).collect();
        let stop = &stop;
        let clients: Vec<_> = (1..)
            .zip(connections)
            .map(|(seed, client)| scope.spawn(move || come_at_any_time(client, seed, stop)))
            .collect();
        let until = Instant::now() + PATIENCE;
        while cluster.pauses() < pauses + 3 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(500));
        }
        drop(stopping);
        clients.into_iter().map(|client| client.join().unwrap()).sum::<u64>()
    });
    println!("{counted} statements, {} pauses in between", cluster.pauses() - pauses);
    assert_eq!(value(&mut client), 9 + counted, "each is there once");
    drop(client);
    cluster.end();
}
