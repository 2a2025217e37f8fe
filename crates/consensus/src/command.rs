//! What a member asks of the process that drives it.

use firn_base::Lsn;

use crate::entry::{Base, Entry, Index, Term};
use crate::members::{MemberId, Members};
use crate::message::Message;

/// Numbers the writes of a member's life, in order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteNumber(pub u64);

/// Chosen by the caller, to find its read again. No other read of the member has the same, also
/// none of a life before whose answer may be under way. Those of other members may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadId(pub u64);

/// The highest term that a member has seen, and its vote there. A member that forgot a vote could
/// vote twice in one term.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Vote {
    pub term: Term,
    pub member: Option<MemberId>,
}

/// What has to be made durable. The parts are written in the order of the fields. Several writes
/// may be under way, as long as none becomes durable before an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    pub number: WriteNumber,
    pub vote: Option<Vote>,
    /// Throws the whole log away and begins again here. The process first takes pages that include
    /// everything before `lsn`, from another member; a logger has none to take.
    pub restart: Option<Base>,
    /// The first entry that is no part of the log any more, and its start. It and all later ones
    /// go. They were never durable.
    pub truncate: Option<(Index, Lsn)>,
    /// Entries for the end of the log. Their bytes came with the message that was received, or are
    /// those of the proposal.
    pub append: Vec<Entry>,
    /// The last durable entry that the member knows of, for [`crate::Saved::durable`]. It is
    /// written with the entries: a member that has the second half of a change of members on its
    /// disk has to know that the first half is durable, or it would ask the old members alone for
    /// votes after a restart.
    pub durable: Index,
}

/// An answer to [`crate::Member::read`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    pub id: ReadId,
    /// At or above everything that any member reported as durable before the read began. It is
    /// durable here.
    pub durable: Lsn,
}

/// Something that the process has to do, in the order of the commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Send to another member. The bytes of the message's entries go with it. May be lost.
    Send(Message),
    /// Make durable, then report it with [`crate::Member::synced`]. Messages that follow need not
    /// wait for it.
    Write(Write),
    /// A majority of the group and this member have everything before `lsn`. Commits up to there
    /// are done, and may be applied anywhere.
    Durable {
        index: Index,
        lsn: Lsn,
    },
    /// This member leads, and all log of earlier terms is durable. The engine may write from `end`
    /// on, with `term` as its epoch.
    Lead {
        term: Term,
        end: Lsn,
    },
    /// This member does not lead. An engine that writes here has to end.
    Follow {
        term: Term,
        leader: Option<MemberId>,
    },
    /// A change of members is in force.
    Members(Members),
    Read(Read),
}
