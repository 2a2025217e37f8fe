//! How a member is set up.

use crate::members::MemberId;

/// The settings of a member. Those of one group should agree but for `id`, `priority` and `seed`.
#[derive(Debug, Clone)]
pub struct Options {
    pub id: MemberId,
    /// Ticks between two heartbeats of a leader.
    pub heartbeat_ticks: u32,
    /// Ticks without a word from the leader after which a member asks for an election. At least
    /// eight, and more than twice `heartbeat_ticks`.
    pub election_ticks: u32,
    /// 0 for members that should lead. Each step up lets a member wait one more `election_ticks`
    /// before it asks for votes, so that members with lower numbers are elected first.
    pub priority: u8,
    /// Seeds the member's draws of election timeouts. Different for each member.
    pub seed: u64,
    /// The most messages with entries that are under way to one member.
    pub messages_in_flight: usize,
    /// About how many bytes of log one message carries while a member catches up.
    pub message_bytes: u64,
    /// The most bytes of log that may be proposed and not durable yet.
    pub undurable_bytes: u64,
    /// Where a member begins again that lacks entries which are not kept any more.
    pub restart_at: RestartAt,
}

/// Where a member begins again that lacks entries which are not kept any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartAt {
    /// At the first kept entry, or where its membership begins. It gets as much log as can be:
    /// readers may need any of it, and the other members may be gone before they have read it.
    KeptLog,
    /// At the newest durable entry: the process sends what the entries have led to.
    NewestEntry,
}

/// The settings contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct OptionsError {
    what: &'static str,
}

impl Options {
    /// Settings for ticks of about 100 ms, or of about 10 ms within one datacentre.
    #[must_use]
    pub fn new(id: MemberId, seed: u64) -> Options {
        Options {
            id,
            heartbeat_ticks: 2,
            election_ticks: 10,
            priority: 0,
            seed,
            messages_in_flight: 64,
            message_bytes: 1 << 20,
            undurable_bytes: 64 << 20,
            restart_at: RestartAt::KeptLog,
        }
    }

    /// # Errors
    /// If the settings contradict each other.
    pub fn check(&self) -> Result<(), OptionsError> {
        let refuse = |what| Err(OptionsError { what });
        if self.id.0 == 0 {
            return refuse("member id 0 is reserved; choose another id");
        }
        if self.heartbeat_ticks == 0 || self.messages_in_flight == 0 || self.message_bytes == 0 {
            return refuse("heartbeats, messages in flight and bytes of a message must be above 0");
        }
        if self.election_ticks < 8 || self.election_ticks <= 2 * self.heartbeat_ticks {
            return refuse("an election takes at least 8 ticks and more than two heartbeats");
        }
        Ok(())
    }

    /// How long a leader may rely on an answer of a member, in ticks after it asked. The member
    /// votes for nobody else for `election_ticks` of its own, of which the first and the last may
    /// be short. The rest allows for clocks whose rates differ by a quarter.
    pub(crate) fn lease_ticks(&self) -> u64 {
        u64::from(self.election_ticks - self.election_ticks / 4 - 2)
    }
}
