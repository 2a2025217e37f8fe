//! What a member's driver asks of the network.
//!
//! The driver calls [`Peers::send`] with its latch held, so that messages are queued in the order
//! in which the member made them, and then [`Peers::flush`] without it. Everything that may wait is
//! the work of the tasks of a [`Peers`]: they connect, read old log through [`Inbox::read`], send,
//! receive, and report.

use std::sync::Arc;

use firn_api::LogError;
use firn_base::Lsn;
use firn_consensus::{MemberId, Message};

/// Whole groups, the log of one entry.
pub type EntryBytes = Arc<Vec<u8>>;

/// The log bytes that go with a message: those on the disk, then those in memory.
#[derive(Debug, Clone, Default)]
pub struct EntryLog {
    /// From where to where log has to be read with [`Inbox::read`]: the receiver is far behind.
    pub stored: Option<(Lsn, Lsn)>,
    /// The log of the entries behind, in their order.
    pub kept: Vec<EntryBytes>,
}

/// A message on its way to another member.
#[derive(Debug, Clone)]
pub struct Outgoing {
    pub message: Message,
    pub log: EntryLog,
}

impl Outgoing {
    /// How many bytes of log go with the message.
    #[must_use]
    pub fn log_bytes(&self) -> u64 {
        let stored = self.log.stored.map_or(0, |(from, to)| to.since(from));
        stored + self.log.kept.iter().map(|entry| entry.len() as u64).sum::<u64>()
    }
}

/// The member's side of the network: what arrives goes here. Any thread may call it.
pub trait Inbox: Send + Sync {
    /// A message arrived: the encoded [`Message`] with the bytes of its entries behind, or with the
    /// watermarks that go with a base. Bytes that are not a message of this group, or whose
    /// checksums do not match, are dropped.
    fn receive(&self, bytes: &[u8]);

    /// A message to `member` was not sent, or a connection that had messages under way has ended.
    fn unreachable(&self, member: MemberId);

    /// Appends log bytes of this member to `into`. Blocks for I/O.
    ///
    /// # Errors
    /// If they are not kept, or cannot be read; the message is then not sent.
    fn read(&self, from: Lsn, to: Lsn, into: &mut Vec<u8>) -> Result<(), LogError>;

    /// Appends this member's watermarks: they go with the base at which another one begins again,
    /// which lacks the log before it. Blocks for I/O.
    ///
    /// # Errors
    /// If the log cannot be read; the message is then not sent.
    fn read_watermarks(&self, into: &mut Vec<u8>) -> Result<(), LogError>;
}

/// The other members of a group.
pub trait Peers: Send + Sync {
    /// Begins to listen and to send.
    fn start(&self, inbox: Arc<dyn Inbox>);

    /// Queues a message to the member that it names. Does not block. False if the queue is full,
    /// and the message was dropped.
    fn send(&self, outgoing: Outgoing) -> bool;

    /// Lets what was queued leave. Does not wait for other members: what cannot leave at once is
    /// left to the tasks.
    fn flush(&self);

    /// Stops; nothing is sent or received any more, and the inbox is let go of.
    fn close(&self);
}

/// For a group of one member.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPeers;

impl Peers for NoPeers {
    fn start(&self, _: Arc<dyn Inbox>) {}

    fn send(&self, _: Outgoing) -> bool {
        false
    }

    fn flush(&self) {}

    fn close(&self) {}
}
