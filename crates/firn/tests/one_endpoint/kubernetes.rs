//! Replicas that are pods: `firn cluster scale` sets how many there are by their load.

use std::io::{BufRead, BufReader};

use super::elastic::{BUSY, make_tables, read_much};
use super::stateful_set::{NAME, StatefulSet};
use super::*;

/// `firn cluster scale`, and the lines that it has written.
struct Scaler {
    process: Child,
    lines: std::sync::Arc<Mutex<Vec<String>>>,
}

impl Scaler {
    fn start(cluster: &Cluster, account: &Path, port: u16, arguments: &[&str]) -> Scaler {
        let mut process = Command::new(env!("CARGO_BIN_EXE_firn"))
            .args(["cluster", "scale", "--stateful-set", NAME, "--service-account"])
            .arg(account)
            .arg("--layout")
            .arg(cluster.directory.join("cluster.toml"))
            .args(arguments)
            .env("KUBERNETES_SERVICE_HOST", "127.0.0.1")
            .env("KUBERNETES_SERVICE_PORT", port.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let output = BufReader::new(process.stdout.take().unwrap());
        let lines = std::sync::Arc::<Mutex<Vec<String>>>::default();
        let own = std::sync::Arc::clone(&lines);
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                own.lock().unwrap().push(line);
            }
        });
        Scaler { process, lines }
    }

    /// Waits until it has written a line that begins so.
    fn wait_until(&self, says: &str, cluster: &Cluster) {
        let until = Instant::now() + PATIENCE;
        let has_it =
            |line: &String| line.strip_prefix("firn: ").is_some_and(|it| it.starts_with(says));
        while !self.lines.lock().unwrap().iter().any(has_it) {
            let lines = self.lines.lock().unwrap().join("\n");
            assert!(Instant::now() < until, "not '{says}':\n{lines}\n{}", cluster.status());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn end(mut self) {
        let _ = Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status();
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Scaler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts the process of a pod, which has what its volume has.
fn start_pod(directory: &Path, control: &str, name: &str) -> Child {
    joining(directory, control, name, "replica")
        .args(["--buffer-pool", "64M", "--shutdown-patience-seconds", "5"])
        .spawn()
        .expect("the binary runs")
}

#[test]
fn a_stateful_set_has_as_many_pods_as_the_load_wants() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(directory.path(), &["--nodes", "1", "--proxies", "1"]);
    make_tables(&mut cluster.proxy());
    let control = cluster.control();
    let account = tempfile::tempdir().unwrap();
    let pods = directory.path().to_owned();
    let set = StatefulSet::start(account.path(), move |name| start_pod(&pods, &control, name));
    let limits = ["--most-replicas", "2", "--replica-processor-percent", "20"];
    let times = ["--scale-up-seconds", "2", "--scale-down-seconds", "6"];
    let flags = [limits, times].concat();
    let scaler = Scaler::start(&cluster, account.path(), set.port, &flags);
    scaler.wait_until("looks after the replicas of firn-replica", &cluster);

    let is_quiet = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _quiet = StopAtEnd(&is_quiet);
        let (cluster, is_quiet) = (&cluster, &is_quiet);
        cluster.wait_until_up(3);
        let busy: Vec<_> =
            (0..BUSY).map(|_| scope.spawn(|| read_much(cluster.proxy(), is_quiet))).collect();
        scaler.wait_until("firn-replica-1 starts: processors were busy", cluster);
        for name in ["firn-replica-0", "firn-replica-1"] {
            cluster.wait_until_it_reads(name);
        }
        is_quiet.store(true, Ordering::Relaxed);
        busy.into_iter().for_each(|client| assert!(client.join().unwrap() > 0));
    });
    scaler.wait_until("firn-replica-1 leaves: ", &cluster);
    scaler.wait_until("firn-replica-1 is removed: it has left", &cluster);
    assert_eq!(set.wanted(), 1);
    let text = cluster.status();
    assert!(!text.lines().any(|line| line.starts_with("firn-replica-1 ")), "{text}");

    // What is not known is no reason to change anything.
    set.break_down(true);
    scaler.wait_until(
        "the API of Kubernetes refuses the scale of firn-replica with status 500: etcd",
        &cluster,
    );
    std::thread::sleep(Duration::from_secs(2));
    assert!(cluster.status().contains("firn-replica-0 "));
    set.break_down(false);

    // The scaler removes a pod that hangs, and the set starts another one of its name.
    let before = set.stop_process(0);
    scaler.wait_until("firn-replica-0 is killed: it has not answered for 3", &cluster);
    let until = Instant::now() + PATIENCE;
    while set.process(0) == before {
        assert!(Instant::now() < until, "no new pod takes the place of the old one");
        std::thread::sleep(Duration::from_millis(100));
    }
    cluster.wait_until_up(3);
    scaler.end();
    assert!(cluster.status().contains("firn-replica-0 "), "it goes on without the scaler");
    drop(set);
    cluster.end();
}

#[test]
fn a_process_that_is_no_pod_looks_after_no_set() {
    let directory = tempfile::tempdir().unwrap();
    let scale = |variables: &[(&str, &str)], account: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_firn"))
            .args(["cluster", "scale", "--stateful-set", NAME, "--most-replicas", "2"])
            .args(["--service-account", account, "--layout", "none.toml"])
            .current_dir(directory.path())
            .env_remove("KUBERNETES_SERVICE_HOST")
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let text = scale(&[], "account");
    assert!(text.contains("KUBERNETES_SERVICE_HOST is not set: this is no pod"), "{text}");
    let api = [("KUBERNETES_SERVICE_HOST", "127.0.0.1"), ("KUBERNETES_SERVICE_PORT", "1")];
    let text = scale(&api, "account");
    assert!(text.contains("account/ca.crt cannot be read"), "{text}");
}
