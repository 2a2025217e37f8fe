//! What members send each other, with [its bytes](../../../docs/formats/consensus-message.md).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::entry::{Base, Entry, Index, Term};
use crate::members::MemberId;

/// The version of the encoding, the first byte of each message.
const VERSION: u8 = 1;

/// What a message asks or answers. The order of the variants is part of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MessageKind {
    /// Entries for the end of the log, or none: a probe of where the log ends.
    Append,
    AppendAnswer,
    /// Asks for a vote in the message's term.
    AskVote,
    VoteAnswer,
    /// Asks whether a vote would be granted. Changes nothing, so that a member which was away does
    /// not end the term of a leader that works.
    AskPreVote,
    PreVoteAnswer,
    Heartbeat,
    HeartbeatAnswer,
    /// The entries that the receiver needs are not kept: it restarts from a base.
    Restart,
    /// The leader hands over: the receiver asks for votes at once.
    HandOver,
    /// Asks the leader for a position that includes everything durable.
    AskRead,
    ReadAnswer,
}

/// A message of one member to another. The bytes of its entries travel behind it, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub(crate) kind: MessageKind,
    pub(crate) from: MemberId,
    pub(crate) to: MemberId,
    pub(crate) term: Term,
    /// From a leader: its ticks when it sent. To a leader: the highest such number that the sender
    /// has heard from it in this term.
    pub(crate) stamp: u64,
    /// The entry before those of the message, or the last entry that an answer or a vote is about.
    pub(crate) index: Index,
    /// The term of the entry at `index`.
    pub(crate) log_term: Term,
    /// The last durable entry that the sender knows of, or may tell the receiver of.
    pub(crate) durable: Index,
    /// The term of the entry at `durable`, in votes.
    pub(crate) durable_term: Term,
    pub(crate) refused: bool,
    /// Where a refused append should be tried next.
    pub(crate) hint: Index,
    pub(crate) base: Option<Base>,
    pub(crate) entries: Vec<Entry>,
    /// Identifies reads that the message confirms, and elections that a leader asked for.
    pub(crate) context: Vec<u8>,
}

/// The bytes are not a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    #[error("the message has version {0}, and this build knows {VERSION}; update the older member")]
    Version(u8),
    #[error("the bytes are not a message of a group member")]
    Malformed,
}

impl Message {
    #[must_use]
    pub fn kind(&self) -> MessageKind {
        self.kind
    }

    #[must_use]
    pub fn from(&self) -> MemberId {
        self.from
    }

    #[must_use]
    pub fn to(&self) -> MemberId {
        self.to
    }

    /// 0 in messages about reads.
    #[must_use]
    pub fn term(&self) -> Term {
        self.term
    }

    /// Whether the answer or the vote is a no.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        self.refused
    }

    /// Where the receiver's log begins again, in a [`MessageKind::Restart`] alone.
    #[must_use]
    pub fn base(&self) -> Option<&Base> {
        self.base.as_ref()
    }

    /// The entries whose bytes go with the message.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Appends the encoded message, without the bytes of its entries.
    ///
    /// # Panics
    /// Never: the encoding of these types has no failing case.
    pub fn encode(&self, into: &mut Vec<u8>) {
        into.push(VERSION);
        let bytes = postcard::to_allocvec(self).expect("plain fields can always be encoded");
        into.extend_from_slice(&bytes);
    }

    /// Reads a message. Returns it with the bytes behind it, which are those of its entries.
    ///
    /// # Errors
    /// If the bytes are not a message of this version.
    pub fn decode(bytes: &[u8]) -> Result<(Message, &[u8]), MessageError> {
        let (version, rest) = bytes.split_first().ok_or(MessageError::Malformed)?;
        if *version != VERSION {
            return Err(MessageError::Version(*version));
        }
        let (message, rest): (Message, _) =
            postcard::take_from_bytes(rest).map_err(|_| MessageError::Malformed)?;
        message.check()?;
        Ok((message, rest))
    }

    /// Whether the fields fit each other as they do in every message that a member sends.
    fn check(&self) -> Result<(), MessageError> {
        let numbered = self.from.0 != 0 && self.to.0 != 0;
        let with_base = (self.kind == MessageKind::Restart) == self.base.is_some();
        let with_term = matches!(self.kind, MessageKind::AskRead) == (self.term == Term(0));
        let in_range = self.index.0 <= u64::MAX / 2 && self.term.0 <= u64::MAX / 2;
        if numbered && with_base && with_term && in_range && self.entries_follow() {
            Ok(())
        } else {
            Err(MessageError::Malformed)
        }
    }

    fn entries_follow(&self) -> bool {
        if self.kind != MessageKind::Append {
            return self.entries.is_empty();
        }
        let (mut index, mut term, mut end) = (self.index.0, self.log_term, None);
        self.entries.iter().all(|entry| {
            let follows = entry.index.0 == index + 1
                && (term..=self.term).contains(&entry.term)
                && end.is_none_or(|end| end == entry.start)
                && entry.bytes().is_some_and(|bytes| entry.start.0.checked_add(bytes).is_some());
            if follows {
                (index, term, end) = (entry.index.0, entry.term, Some(entry.end()));
            }
            follows
        })
    }
}

/// For logs and tests: who says what to whom, without what is usual.
impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}, term {}: {}", self.from, self.to, self.term, self.kind.name())?;
        if self.refused {
            write!(f, " no")?;
        }
        if self.index.0 != 0 {
            write!(f, " at {}", self.index)?;
        }
        if let (Some(first), Some(last)) = (self.entries.first(), self.entries.last()) {
            write!(
                f,
                ", entries {} to {}, log {} to {}",
                first.index,
                last.index,
                first.start,
                last.end()
            )?;
        }
        if let Some(base) = &self.base {
            write!(f, ", base {} at {}", base.index, base.lsn)?;
        }
        if self.durable.0 != 0 {
            write!(f, ", durable {}", self.durable)?;
        }
        Ok(())
    }
}

impl MessageKind {
    fn name(self) -> &'static str {
        match self {
            MessageKind::Append => "append",
            MessageKind::AppendAnswer => "appended",
            MessageKind::AskVote => "vote?",
            MessageKind::VoteAnswer => "vote",
            MessageKind::AskPreVote => "pre-vote?",
            MessageKind::PreVoteAnswer => "pre-vote",
            MessageKind::Heartbeat => "heartbeat",
            MessageKind::HeartbeatAnswer => "heard",
            MessageKind::Restart => "restart",
            MessageKind::HandOver => "hand over",
            MessageKind::AskRead => "read?",
            MessageKind::ReadAnswer => "read",
        }
    }
}

#[cfg(test)]
mod tests;
