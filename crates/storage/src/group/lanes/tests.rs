use std::sync::atomic::AtomicUsize;

use firn_api::LogError;
use firn_base::Lsn;
use firn_consensus::{Base, Command, Member, Members, Message, Options, Role, Saved, Term};

use super::*;
use crate::group::peers::EntryLog;

/// Takes messages of one byte of log. May refuse to take any at once.
#[derive(Default)]
struct Sent {
    log: Mutex<Vec<u8>>,
    has_arrived: Event,
    is_full: AtomicBool,
    /// How many threads are within a call.
    callers: AtomicUsize,
}

impl Sent {
    fn wait_for(&self, bytes: &[u8]) {
        let arrived = || self.log.lock().len() >= bytes.len();
        assert!(self.has_arrived.wait_until(Some(Duration::from_secs(60)), arrived));
        assert_eq!(*self.log.lock(), bytes);
    }
}

impl Carrier for Arc<Sent> {
    fn carry(&self, _: MemberId, _: Vec<u8>, log: &[EntryBytes]) -> Result<(), String> {
        assert_eq!(self.callers.fetch_add(1, Ordering::SeqCst), 0, "one thread at a time sends");
        self.log.lock().extend(log.iter().flat_map(|entry| entry.iter()));
        self.has_arrived.notify_all();
        self.callers.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }

    fn carry_at_once(&self, member: MemberId, head: Vec<u8>, log: &[EntryBytes]) -> bool {
        !self.is_full.load(Ordering::SeqCst) && self.carry(member, head, log).is_ok()
    }
}

struct NoInbox;

impl Inbox for NoInbox {
    fn receive(&self, _: &[u8]) {}

    fn unreachable(&self, _: MemberId) {
        panic!("every message is taken");
    }

    fn read(&self, _: Lsn, _: Lsn, _: &mut Vec<u8>) -> Result<(), LogError> {
        panic!("no log is on a disk");
    }

    fn read_watermarks(&self, _: &mut Vec<u8>) -> Result<(), LogError> {
        panic!("no member begins at a base");
    }
}

/// A message to member 2.
fn message() -> Message {
    let members = Members::new([1, 2].map(|id| (MemberId(id), Role::Voter))).unwrap();
    let base = Base::founding(Term(1), Lsn::FIRST, members);
    let mut member = Member::start(Options::new(MemberId(1), 1), Saved::empty(base)).unwrap();
    for _ in 0..1_000 {
        member.tick();
        for command in member.take_commands() {
            if let Command::Send(message) = command {
                return message;
            }
        }
    }
    panic!("the member never asks the other one");
}

fn lanes() -> (Arc<Lanes<Arc<Sent>>>, Arc<Sent>) {
    let sent = Arc::<Sent>::default();
    (Lanes::new([MemberId(2)], Arc::clone(&sent)), sent)
}

fn outgoing(byte: u8) -> Outgoing {
    let log = EntryLog { stored: None, kept: vec![Arc::new(vec![byte])] };
    Outgoing { message: message(), log }
}

#[test]
fn a_message_leaves_on_the_thread_that_queued_it() {
    let (lanes, sent) = lanes();
    // No task was started.
    for byte in [1, 2] {
        assert!(lanes.send(outgoing(byte)));
    }
    assert!(sent.log.lock().is_empty());
    lanes.flush();
    assert_eq!(*sent.log.lock(), [1, 2]);
}

#[test]
fn the_task_sends_what_cannot_leave_at_once_and_the_order_stays() {
    let (lanes, sent) = lanes();
    sent.is_full.store(true, Ordering::SeqCst);
    for byte in [1, 2] {
        assert!(lanes.send(outgoing(byte)));
    }
    lanes.flush();
    assert!(sent.log.lock().is_empty());
    sent.is_full.store(false, Ordering::SeqCst);
    assert!(lanes.send(outgoing(3)));
    lanes.flush();
    assert_eq!(*sent.log.lock(), [1, 2, 3], "what waits longer goes first");
    sent.is_full.store(true, Ordering::SeqCst);
    assert!(lanes.send(outgoing(4)));
    lanes.flush();
    lanes.start(&Environment::system(), Arc::new(NoInbox));
    sent.wait_for(&[1, 2, 3, 4]);
    lanes.close();
}

#[test]
fn threads_that_flush_and_the_task_take_turns() {
    let (lanes, sent) = lanes();
    lanes.start(&Environment::system(), Arc::new(NoInbox));
    let (one, rounds) = (outgoing(0), 300_u32);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for round in 0..rounds {
                    sent.is_full.store(round % 3 == 0, Ordering::SeqCst);
                    assert!(lanes.send(one.clone()));
                    lanes.flush();
                }
            });
        }
    });
    lanes.flush();
    sent.wait_for(&vec![0; 3 * rounds as usize]);
    lanes.close();
}
