use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use firn_api::server::{
    Incarnation, KillScope, LockAnswer, Patience, Process, ServerMember, ServerState,
    ServerStateError, SharedVariable,
};
use firn_base::{Cts, TableId};
use parking_lot::Mutex;

use super::{LocalServerState, WriteGate};

static ALIVE: AtomicBool = AtomicBool::new(false);
static KILLED: AtomicBool = AtomicBool::new(true);
const SHORT: Patience<'_> =
    Patience { timeout: Some(Duration::from_millis(20)), cancelled: &ALIVE };
const LONG: Patience<'_> = Patience { timeout: Some(Duration::from_secs(10)), cancelled: &ALIVE };
const KILL: Patience<'_> = Patience { timeout: None, cancelled: &KILLED };

/// A compute node that records the calls it gets.
struct Node {
    gate: Arc<WriteGate>,
    first_connection: u64,
    told: Mutex<Vec<String>>,
}

impl Node {
    fn tell(&self, what: String) {
        self.told.lock().push(what);
    }

    fn told(&self) -> Vec<String> {
        std::mem::take(&mut *self.told.lock())
    }
}

impl ServerMember for Node {
    fn accounts_changed(&self, since: Cts) {
        self.tell(format!("accounts as of {}", since.0));
    }
    fn statistics_changed(&self, table: TableId) {
        self.tell(format!("statistics of {}", table.0));
    }
    fn variable_set(&self, variable: &SharedVariable) {
        let value = String::from_utf8_lossy(&variable.value).into_owned();
        self.tell(format!("{}={value} {}", variable.name, variable.version));
    }
    fn close_gate(&self) {
        self.gate.close();
    }
    fn have_writers_ended(&self) -> bool {
        self.gate.have_writers_ended()
    }
    fn open_gate(&self) {
        self.gate.open();
    }
    fn processes(&self) -> Vec<Process> {
        vec![Process { id: self.first_connection, ..Process::default() }]
    }
    fn process(&self, connection: u64) -> Option<Process> {
        self.processes().into_iter().find(|process| process.id == connection)
    }
    fn kill(&self, connection: u64, scope: KillScope) -> bool {
        self.tell(format!("kill {scope:?}"));
        connection == self.first_connection
    }
    fn clean_up_after(&self, ended: Incarnation) {
        self.tell(format!("clean up after {}", ended.node));
    }
}

fn life(node: u64) -> Incarnation {
    Incarnation { node, start: 1 }
}

fn join(server: &Arc<LocalServerState>, node: u64) -> Arc<Node> {
    let ids = server.join(life(node)).unwrap().connection_ids;
    let gate = Arc::new(WriteGate::new(Arc::clone(server) as _));
    let first_connection = u64::from(ids.first);
    let node_of = Arc::new(Node { gate, first_connection, told: Mutex::default() });
    let weak: Weak<Node> = Arc::downgrade(&node_of);
    server.attach(life(node), weak).unwrap();
    node_of
}

fn two() -> (Arc<LocalServerState>, Arc<Node>, Arc<Node>) {
    let server = Arc::new(LocalServerState::of_nodes());
    let (one, other) = (join(&server, 1), join(&server, 2));
    (server, one, other)
}

#[test]
fn a_server_of_one_node_has_room_for_one_and_all_connection_ids() {
    let server = LocalServerState::of_one_node();
    let ids = server.join(life(1)).unwrap().connection_ids;
    assert_eq!((ids.first, ids.last), (1, u32::MAX));
    assert_eq!(server.join(life(2)), Err(ServerStateError::Full(1)));
    assert!(!server.has_ended(life(1)));
    server.leave(life(1));
    assert!(server.has_ended(life(1)));
    assert_eq!(server.join(life(2)).unwrap().number, 0);
}

#[test]
fn connection_ids_of_members_are_apart() {
    let server = LocalServerState::of_nodes();
    let mut before = 0;
    for node in 0..2048 {
        let ids = server.join(life(node)).unwrap().connection_ids;
        assert!(ids.first > before && ids.last > ids.first, "{ids:?}");
        before = ids.last;
    }
    assert_eq!(server.join(life(2048)), Err(ServerStateError::Full(2048)));
}

#[test]
fn members_are_told_of_what_others_change() {
    let (server, one, other) = two();
    server.set_variable("a", b"1").unwrap();
    server.statistics_gathered(life(1), TableId(7));
    server.begin_account_change(life(2)).unwrap();
    server.end_account_change(life(2), Some(Cts(40)));
    server.begin_account_change(life(1)).unwrap();
    server.end_account_change(life(1), None);
    assert_eq!(one.told(), ["a=1 1", "accounts as of 40"]);
    assert_eq!(other.told(), ["a=1 1", "statistics of 7"]);
    assert_eq!(server.accounts_since(), Cts(40), "for members that join later");
    let late = server.variables().unwrap();
    assert_eq!(late.len(), 1, "members that join later read it");
}

#[test]
fn accounts_are_changed_by_one_member_at_a_time() {
    let (server, _one, _other) = two();
    server.begin_account_change(life(1)).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| server.begin_account_change(life(2)));
        firn_base::task::sleep(Duration::from_millis(20));
        assert!(!waiting.is_finished());
        server.leave(life(1));
        assert_eq!(waiting.join().unwrap(), Ok(()), "a member that has ended changes nothing");
    });
    let gone = server.begin_account_change(life(1));
    assert_eq!(gone, Err(ServerStateError::NotAMember(life(1))));
}

#[test]
fn processes_and_kills_reach_the_member_of_the_connection() {
    let (server, one, other) = two();
    let ids: Vec<u64> = server.processes().iter().map(|process| process.id).collect();
    assert_eq!(ids, [one.first_connection, other.first_connection]);
    assert!(server.process(other.first_connection).is_some());
    assert!(server.process(other.first_connection + 1).is_none());
    assert!(server.kill(other.first_connection, KillScope::Statement));
    assert!(!server.kill(0, KillScope::Connection));
    assert_eq!((one.told().len(), other.told()), (0, vec!["kill Statement".to_owned()]));
}

#[test]
fn nobody_writes_while_the_read_lock_is_held() {
    let (server, one, other) = two();
    let (a, b, c) = (one.first_connection, other.first_connection, other.first_connection + 1);
    let writing = one.gate.write(a, &SHORT).unwrap();
    assert_eq!(server.take_read_lock(b, &SHORT), Err(ServerStateError::TimedOut));
    drop(writing);
    server.take_read_lock(b, &SHORT).unwrap();
    assert_eq!(one.gate.write(a, &SHORT).unwrap_err().code, 1205);
    assert_eq!(other.gate.write(b, &SHORT).unwrap_err().code, 1223);
    assert_eq!(one.gate.write(a, &KILL).unwrap_err().code, 1317);
    server.take_read_lock(c, &SHORT).unwrap();
    server.release_read_lock(b);
    assert_eq!(one.gate.write(a, &SHORT).unwrap_err().code, 1205);
    let late = join(&server, 3);
    assert!(late.gate.try_write().is_none(), "its gate is closed from the start");
    server.release_read_lock(c);
    for node in [&one, &other, &late] {
        node.gate.write(9, &SHORT).unwrap();
    }
}

#[test]
fn a_member_that_ends_gives_its_locks_back_and_another_cleans_up() {
    let (server, one, other) = two();
    let (a, b) = (one.first_connection, other.first_connection);
    server.take_read_lock(b, &SHORT).unwrap();
    assert_eq!(server.take_user_lock(b, "x", &SHORT), LockAnswer::Granted);
    assert_eq!(server.take_user_lock(a, "x", &SHORT), LockAnswer::TimedOut);
    server.leave(life(2));
    assert_eq!(server.take_user_lock(a, "x", &SHORT), LockAnswer::Granted);
    one.gate.write(a, &SHORT).unwrap();
    assert_eq!(one.told(), ["clean up after 2"]);
    server.set_variable("a", b"1").unwrap();
    assert_eq!(other.told().len(), 0, "it is called no more");
}

#[test]
fn writers_and_holders_never_meet() {
    let (server, one, other) = two();
    let inside = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let (server, gate, inside) = (&server, [&one.gate, &other.gate][thread % 2], &inside);
            let connection = 10 + thread as u64;
            scope.spawn(move || {
                for _ in 0..200 {
                    match thread {
                        0 | 1 => {
                            server.take_read_lock(connection, &LONG).unwrap();
                            assert_eq!(inside.load(Ordering::SeqCst), 0);
                            server.release_read_lock(connection);
                        }
                        _ => {
                            let writing = gate.write(connection, &LONG).unwrap();
                            inside.fetch_add(1, Ordering::SeqCst);
                            inside.fetch_sub(1, Ordering::SeqCst);
                            drop(writing);
                        }
                    }
                }
            });
        }
    });
}
