//! Between the types of this crate and those of the library `raft`, which no other crate names.
//!
//! Nothing here decodes protobuf from the network: messages have their own encoding, and the
//! library's values are made of decoded ones.

use firn_base::Lsn;
use raft::prelude::{
    ConfChangeSingle, ConfChangeType, ConfChangeV2, ConfState, EntryType, MessageType, Snapshot,
};

use crate::entry::{Base, Batch, Content, Entry, Index, Term};
use crate::members::{MemberChange, MemberId, Members, Role};
use crate::message::{Message, MessageKind};

type LibraryEntry = raft::prelude::Entry;
type LibraryMessage = raft::prelude::Message;

/// The kinds of both sides. The library has others, which never leave a member.
const KINDS: [(MessageKind, MessageType); 12] = [
    (MessageKind::Append, MessageType::MsgAppend),
    (MessageKind::AppendAnswer, MessageType::MsgAppendResponse),
    (MessageKind::AskVote, MessageType::MsgRequestVote),
    (MessageKind::VoteAnswer, MessageType::MsgRequestVoteResponse),
    (MessageKind::AskPreVote, MessageType::MsgRequestPreVote),
    (MessageKind::PreVoteAnswer, MessageType::MsgRequestPreVoteResponse),
    (MessageKind::Heartbeat, MessageType::MsgHeartbeat),
    (MessageKind::HeartbeatAnswer, MessageType::MsgHeartbeatResponse),
    (MessageKind::Restart, MessageType::MsgSnapshot),
    (MessageKind::HandOver, MessageType::MsgTimeoutNow),
    (MessageKind::AskRead, MessageType::MsgReadIndex),
    (MessageKind::ReadAnswer, MessageType::MsgReadIndexResp),
];

/// Members in force; with those before within a change.
pub(crate) fn conf_state(members: &Members, before: Option<&Members>) -> ConfState {
    let voted = |id| before.and_then(|before| before.role(id)).is_some_and(Role::votes);
    let mut state = ConfState { auto_leave: before.is_some(), ..Default::default() };
    for (id, role) in members.iter() {
        let place = if role.votes() {
            state.mut_voters()
        } else if voted(id) {
            state.mut_learners_next()
        } else {
            state.mut_learners()
        };
        place.push(id.0);
    }
    for (id, role) in before.into_iter().flat_map(Members::iter) {
        if role.votes() {
            state.mut_voters_outgoing().push(id.0);
        }
    }
    state
}

pub(crate) fn conf_change(changes: &[MemberChange]) -> ConfChangeV2 {
    let mut whole = ConfChangeV2::default();
    for change in changes {
        let mut single = ConfChangeSingle { node_id: change.member().0, ..Default::default() };
        single.set_change_type(match change {
            MemberChange::Set(_, Role::Learner) => ConfChangeType::AddLearnerNode,
            MemberChange::Set(..) => ConfChangeType::AddNode,
            MemberChange::Remove(_) => ConfChangeType::RemoveNode,
        });
        whole.mut_changes().push(single);
    }
    whole
}

/// Entries for a proposal. The leader fills in index and term.
pub(crate) fn proposed_batch(batch: &Batch) -> LibraryEntry {
    let content = Content::Log { bytes: batch.end.since(batch.start), checksum: batch.checksum };
    with_content(LibraryEntry::default(), &content)
}

/// A change of members as the library takes it, with the context that its entry carries.
pub(crate) fn proposed_change(changes: &[MemberChange]) -> (Vec<u8>, ConfChangeV2) {
    (content_bytes(&Content::Members(changes.to_vec())), conf_change(changes))
}

/// An entry without its content.
pub(crate) fn bare_entry(entry: &Entry) -> LibraryEntry {
    let mut bare = LibraryEntry { index: entry.index.0, term: entry.term.0, ..Default::default() };
    if matches!(entry.content, Content::Members(_)) {
        bare.set_entry_type(EntryType::EntryConfChangeV2);
    }
    bare
}

/// Puts what the entry adds to the log into its context, where the library does not look.
fn with_content(mut entry: LibraryEntry, content: &Content) -> LibraryEntry {
    if !matches!(content, Content::Mark) {
        entry.context = content_bytes(content).into();
    }
    entry
}

fn content_bytes(content: &Content) -> Vec<u8> {
    postcard::to_allocvec(content).expect("plain fields can always be encoded")
}

/// An entry that the library asks to be written, whose predecessor ends at `start`.
pub(crate) fn written_entry(entry: &LibraryEntry, start: Lsn) -> Entry {
    let content = if !entry.context.is_empty() {
        postcard::from_bytes(&entry.context).expect("written by this module")
    } else if entry.get_entry_type() == EntryType::EntryConfChangeV2 {
        // The library ends a joint change itself.
        Content::Members(Vec::new())
    } else {
        Content::Mark
    };
    Entry { index: Index(entry.index), term: Term(entry.term), start, content }
}

pub(crate) fn snapshot(base: &Base) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let metadata = snapshot.mut_metadata();
    metadata.index = base.index.0;
    metadata.term = base.term.0;
    metadata.set_conf_state(conf_state(&base.members, base.before.as_ref()));
    let bytes = postcard::to_allocvec(base).expect("plain fields can always be encoded");
    snapshot.data = bytes.into();
    snapshot
}

pub(crate) fn base(snapshot: &Snapshot) -> Base {
    postcard::from_bytes(&snapshot.data).expect("written by this module")
}

/// A message of the library as it is sent. Its entries are those that `whole` returns, with their
/// content. `None` for messages that no other member understands.
pub(crate) fn sent(
    message: &LibraryMessage,
    whole: impl Fn(Index) -> Option<Entry>,
    stamp: u64,
) -> Option<Message> {
    let (kind, _) = *KINDS.iter().find(|(_, kind)| *kind == message.get_msg_type())?;
    let (context, entries) = match kind {
        // What identifies the read travels as an entry.
        MessageKind::AskRead | MessageKind::ReadAnswer => {
            (message.entries.first()?.data.to_vec(), Vec::new())
        }
        _ => {
            let entries = message.entries.iter().map(|entry| whole(Index(entry.index)));
            (message.context.to_vec(), entries.collect::<Option<Vec<_>>>()?)
        }
    };
    let restart = kind == MessageKind::Restart;
    Some(Message {
        kind,
        from: MemberId(message.from),
        to: MemberId(message.to),
        term: Term(message.term),
        stamp,
        index: Index(message.index),
        log_term: Term(message.log_term),
        durable: Index(message.commit),
        durable_term: Term(message.commit_term),
        refused: message.reject,
        hint: Index(message.reject_hint),
        base: restart.then(|| base(message.get_snapshot())),
        entries,
        context,
    })
}

/// A message as the library takes it.
pub(crate) fn received(message: &Message) -> LibraryMessage {
    let mut received = LibraryMessage {
        from: message.from.0,
        term: message.term.0,
        index: message.index.0,
        log_term: message.log_term.0,
        commit: message.durable.0,
        commit_term: message.durable_term.0,
        reject: message.refused,
        reject_hint: message.hint.0,
        ..Default::default()
    };
    let kind = KINDS.iter().find(|(kind, _)| *kind == message.kind);
    received.set_msg_type(kind.expect("the table has every kind").1);
    if let Some(base) = &message.base {
        received.set_snapshot(snapshot(base));
    }
    if matches!(message.kind, MessageKind::AskRead | MessageKind::ReadAnswer) {
        received.mut_entries().push(read_entry(&message.context));
    } else {
        received.context = message.context.clone().into();
        let entries = message.entries.iter().map(|e| with_content(bare_entry(e), &e.content));
        received.set_entries(entries.collect::<Vec<_>>().into());
    }
    received
}

fn read_entry(context: &[u8]) -> LibraryEntry {
    LibraryEntry { data: context.to_vec().into(), ..Default::default() }
}
