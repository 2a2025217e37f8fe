//! Messages between members that are read wrongly on purpose.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use firn_api::LogError;
use firn_base::Lsn;
use firn_consensus::{MemberId, Message, MessageKind};
use firn_storage::group::{Inbox, NetworkPeers, Outgoing, Peers};

/// A rule that members break when they read a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerFault {
    /// A message of an older term is taken for one of the newest term that the member knows.
    TermNotChecked,
    /// What a member gets counts as durable.
    DurableTooEarly,
}

/// Where a message has its numbers: behind the version and the kind, each of as many bytes as it
/// needs.
#[derive(Clone, Copy)]
enum Field {
    Term = 2,
    Durable = 6,
}

/// The network of a member that breaks a rule.
pub(super) struct FaultyPeers {
    pub(super) peers: Arc<NetworkPeers>,
    pub(super) fault: PeerFault,
}

impl Peers for FaultyPeers {
    fn start(&self, inbox: Arc<dyn Inbox>) {
        let (fault, newest_term) = (self.fault, AtomicU64::new(0));
        self.peers.start(Arc::new(FaultyInbox { inbox, fault, newest_term }));
    }

    fn send(&self, outgoing: Outgoing) -> bool {
        self.peers.send(outgoing)
    }

    fn flush(&self) {
        self.peers.flush();
    }

    fn close(&self) {
        self.peers.close();
    }
}

struct FaultyInbox {
    inbox: Arc<dyn Inbox>,
    fault: PeerFault,
    /// The newest term of a message.
    newest_term: AtomicU64,
}

impl Inbox for FaultyInbox {
    fn receive(&self, bytes: &[u8]) {
        let Ok((message, _)) = Message::decode(bytes) else { return };
        let newest = self.newest_term.fetch_max(message.term().0, Ordering::SeqCst);
        let changed = match self.fault {
            PeerFault::TermNotChecked if (1..newest).contains(&message.term().0) => {
                with_field(bytes, Field::Term, newest)
            }
            PeerFault::DurableTooEarly if message.kind() == MessageKind::Append => {
                match message.entries().last() {
                    Some(last) => with_field(bytes, Field::Durable, last.index.0),
                    None => bytes.to_vec(),
                }
            }
            _ => bytes.to_vec(),
        };
        self.inbox.receive(&changed);
    }

    fn unreachable(&self, member: MemberId) {
        self.inbox.unreachable(member);
    }

    fn read(&self, from: Lsn, to: Lsn, into: &mut Vec<u8>) -> Result<(), LogError> {
        self.inbox.read(from, to, into)
    }

    fn read_watermarks(&self, into: &mut Vec<u8>) -> Result<(), LogError> {
        self.inbox.read_watermarks(into)
    }
}

/// An encoded message with another number in a field. Seven bits of a number go into each byte,
/// whose highest bit says that more follow.
fn with_field(bytes: &[u8], field: Field, value: u64) -> Vec<u8> {
    const NUMBERS_AT: usize = 2;
    let end_of = |from: usize| {
        let length = bytes[from..].iter().position(|byte| byte & 0x80 == 0);
        from + length.expect("the message was decoded") + 1
    };
    let start = (0..field as usize).fold(NUMBERS_AT, |at, _| end_of(at));
    let mut changed = bytes[..start].to_vec();
    let mut rest = value;
    while rest >= 0x80 {
        changed.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    changed.push(rest as u8);
    changed.extend_from_slice(&bytes[end_of(start)..]);
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_of_a_message_is_another_one() {
        let numbers: Vec<u64> = vec![5, 300, 7, 8, 9, 1 << 40, 11];
        let encoded = |numbers: &[u64]| {
            let mut bytes = vec![1, 0];
            for number in numbers {
                let mut rest = *number;
                while rest >= 0x80 {
                    bytes.push(rest as u8 | 0x80);
                    rest >>= 7;
                }
                bytes.push(rest as u8);
            }
            bytes.extend_from_slice(b"the rest");
            bytes
        };
        for (field, value) in [(Field::Term, 1 << 20), (Field::Durable, 3)] {
            let mut expected = numbers.clone();
            expected[field as usize] = value;
            assert_eq!(with_field(&encoded(&numbers), field, value), encoded(&expected));
        }
    }
}
