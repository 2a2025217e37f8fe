//! How the members and the messages to them behave.

use std::time::Duration;

/// A promise that is broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A member acknowledges a round that it has received and not synced.
    AcknowledgedBeforeSync,
    /// A round counts as durable once one member has synced it.
    OneMemberIsEnough,
    /// A round counts as durable once a majority has it, whatever is missing before it.
    GapIgnored,
    /// Members take log of any epoch, and any epoch opens.
    OldEpochAccepted,
    /// A writer opens with the log of one member.
    OpenedFromOne,
    /// A writer that opens keeps what it has found to itself.
    TailNotWritten,
    /// Log that a reader holds is truncated.
    LeaseIgnored,
    /// A writer takes log for which the members have no room.
    TakenWithoutRoom,
    /// A member that takes no log ends the writer.
    SilenceEndsWriter,
}

/// How the members and the messages behave.
#[derive(Debug, Clone)]
pub struct QuorumOptions {
    /// The seed of all random choices.
    pub seed: u64,
    pub members: usize,
    /// The longest time that a message takes, and that a sync takes.
    pub max_delay: Duration,
    /// The most rounds that are in flight.
    pub window: usize,
    /// About how many bytes a round has at most.
    pub round_bytes: usize,
    /// How long a committer waits before the log counts as unavailable.
    pub patience: Duration,
    /// The promise that is broken.
    pub fault: Option<Fault>,
}

impl QuorumOptions {
    /// Three members that keep their promises.
    #[must_use]
    pub fn new(seed: u64) -> QuorumOptions {
        QuorumOptions {
            seed,
            members: 3,
            max_delay: Duration::from_micros(400),
            window: 6,
            round_bytes: 2_000,
            patience: Duration::from_millis(50),
            fault: None,
        }
    }
}
