//! A StatefulSet whose pods are processes of this machine, behind as much of the API of Kubernetes
//! as `firn cluster scale` uses: TLS, a token, the scale of the set, the removal of a pod.
//!
//! As in Kubernetes, pods have the numbers from 0, one whose process ends is started again, the one
//! with the highest number is asked to end when there are too many, and a change that rests on an
//! older version of the set is refused.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use super::*;

pub(super) const NAME: &str = "firn-replica";
const TOKEN: &str = "a-token-that-changes";

/// What starts the process of a pod.
type StartPod = dyn Fn(&str) -> Child + Send + Sync;

pub(super) struct StatefulSet {
    state: Arc<Mutex<State>>,
    pub(super) port: u16,
    stop: Arc<AtomicBool>,
}

#[derive(Default)]
struct State {
    wanted: u32,
    version: u64,
    pods: BTreeMap<u32, Pod>,
    /// Whether each request is answered with an error.
    is_broken: bool,
}

struct Pod {
    child: Child,
    is_leaving: bool,
}

impl StatefulSet {
    /// A set of one pod. `account` becomes the directory of a service account for it.
    pub(super) fn start(
        account: &Path,
        start_pod: impl Fn(&str) -> Child + Send + Sync + 'static,
    ) -> StatefulSet {
        let config = Arc::new(make_account(account));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State { wanted: 1, version: 1, ..State::default() }));
        let stop = Arc::new(AtomicBool::new(false));
        let (own, is_over) = (Arc::clone(&state), Arc::clone(&stop));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let (own, config) = (Arc::clone(&own), Arc::clone(&config));
                // A connection that is lost is the client's affair.
                std::thread::spawn(move || stream.and_then(|stream| serve(stream, config, &own)));
            }
        });
        let (own, is_over) = (Arc::clone(&state), Arc::clone(&stop));
        std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                own.lock().unwrap().bring_to_wanted(&start_pod);
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        StatefulSet { state, port, stop }
    }

    pub(super) fn wanted(&self) -> u32 {
        self.state.lock().unwrap().wanted
    }

    /// Whether each request is answered with an error from now on.
    pub(super) fn break_down(&self, is_broken: bool) {
        self.state.lock().unwrap().is_broken = is_broken;
    }

    /// Stops the process of a pod, as a machine that hangs does. Returns the process's number.
    pub(super) fn stop_process(&self, number: u32) -> u32 {
        let id = self.process(number);
        let _ = Command::new("kill").args(["-STOP", &id.to_string()]).status();
        id
    }

    pub(super) fn process(&self, number: u32) -> u32 {
        self.state.lock().unwrap().pods[&number].child.id()
    }
}

impl Drop for StatefulSet {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, mut pod) in std::mem::take(&mut state.pods) {
            let _ = pod.child.kill();
            let _ = pod.child.wait();
        }
    }
}

impl State {
    /// What the controller of such sets does.
    fn bring_to_wanted(&mut self, start_pod: &StartPod) {
        for number in 0..self.wanted {
            let start = || Pod { child: start_pod(&format!("{NAME}-{number}")), is_leaving: false };
            let pod = self.pods.entry(number).or_insert_with(start);
            // One that leaves is waited for before it is started again.
            if pod.child.try_wait().unwrap().is_some() {
                *pod = start();
            }
        }
        let wanted = self.wanted;
        for (_, pod) in self.pods.range_mut(wanted..).filter(|(_, pod)| !pod.is_leaving) {
            pod.is_leaving = true;
            let _ = Command::new("kill").args(["-TERM", &pod.child.id().to_string()]).status();
        }
        self.pods.retain(|number, pod| *number < wanted || pod.child.try_wait().unwrap().is_none());
    }

    /// The status and the text of an answer.
    fn answer(&mut self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let scale = format!("/apis/apps/v1/namespaces/firn/statefulsets/{NAME}/scale");
        let refuse = |status, message: &str| (status, json!({ "message": message }));
        if self.is_broken {
            return refuse(500, "etcd has no leader");
        }
        if path == scale && method == "PATCH" {
            let change: Value = serde_json::from_str(body).unwrap();
            let version = change["metadata"]["resourceVersion"].as_str();
            if version != Some(&self.version.to_string()) {
                return refuse(409, "the object has been modified");
            }
            self.wanted = change["spec"]["replicas"].as_u64().unwrap() as u32;
            self.version += 1;
        }
        if path == scale {
            let answer = json!({
                "kind": "Scale",
                "metadata": { "name": NAME, "resourceVersion": self.version.to_string() },
                "spec": { "replicas": self.wanted },
                "status": { "replicas": self.pods.len() },
            });
            return (200, answer);
        }
        let pods = format!("/api/v1/namespaces/firn/pods/{NAME}-");
        let pod =
            path.strip_prefix(&pods).and_then(|rest| rest.split_once("?gracePeriodSeconds=0"));
        match pod.and_then(|(number, _)| self.pods.get_mut(&number.parse().ok()?)) {
            Some(pod) if method == "DELETE" => {
                pod.child.kill().unwrap();
                pod.child.wait().unwrap();
                (200, json!({}))
            }
            _ => refuse(404, "not found"),
        }
    }
}

/// Makes the files that a pod has of its service account; returns what the API shows of itself.
fn make_account(account: &Path) -> ServerConfig {
    let certificates = account.join("certificates");
    let certify = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_firn"));
        command.args(["admin", "certificates"]).args(arguments).arg("--dir").arg(&certificates);
        assert!(command.output().unwrap().status.success());
    };
    certify(&["create"]);
    certify(&["node", "--name", "api", "--address", "127.0.0.1"]);
    let own = certificates.join("nodes/api");
    fs::copy(own.join("authority.pem"), account.join("ca.crt")).unwrap();
    fs::write(account.join("namespace"), "firn").unwrap();
    fs::write(account.join("token"), format!("{TOKEN}\n")).unwrap();
    let chain = CertificateDer::from_pem_file(own.join("certificate.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(own.join("key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    config.with_single_cert(vec![chain], key).unwrap()
}

/// Answers the requests of a connection until it is closed.
fn serve(stream: TcpStream, config: Arc<ServerConfig>, state: &Mutex<State>) -> io::Result<()> {
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = BufReader::new(StreamOwned::new(connection, stream));
    loop {
        let (mut lines, mut line) = (Vec::new(), String::new());
        while stream.read_line(&mut line)? > 0 && line != "\r\n" {
            lines.push(std::mem::take(&mut line).trim_end().to_owned());
        }
        let Some(first) = lines.first() else { return Ok(()) };
        let header = |name: &str| {
            let mut fields = lines.iter().filter_map(|line| line.split_once(": "));
            let found = fields.find(|(own, _)| own.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.to_owned())
        };
        let length = header("Content-Length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        let mut words = first.split(' ');
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let (status, answer) = match header("Authorization") {
            Some(token) if token == format!("Bearer {TOKEN}") => {
                let body = String::from_utf8(body).unwrap();
                state.lock().unwrap().answer(method, path, &body)
            }
            _ => (401, json!({ "message": "Unauthorized" })),
        };
        let answer = answer.to_string();
        let head = format!("HTTP/1.1 {status} is\r\nContent-Length: {}\r\n\r\n", answer.len());
        stream.get_mut().write_all(format!("{head}{answer}").as_bytes())?;
        stream.get_mut().flush()?;
    }
}
