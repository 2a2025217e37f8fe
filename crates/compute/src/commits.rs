//! Commits that can be found again: a command that another process has sent leaves a note of its
//! answer, in the same transaction. If the node is lost before the answer arrives, that process
//! asks the next writer for the note.
//!
//! ```text
//!   INSERT …  command 7 of session 12 ──► rows + note (12 → 7, "1 row") ──► one commit
//!                                          ▲
//!   the next writer: committed(12, 7)? ────┘ the note is that of 7: yes, 1 row
//!                                            an older one, or none: no
//! ```
//!
//! A session has one note, that of its last commit. The table is made with the first note, so a
//! server whose clients all connect to it itself has none. Notes older than [`KEPT_MS`] are removed
//! now and then: nobody asks for them any more. `docs/formats/commit-notes.md` describes the bytes.

use std::sync::Arc;

use firn_api::rows::{DatabaseNode, RowsResult, Transaction};
use firn_base::Cts;
use firn_wire::{CommandIdentity, CommittedAnswer};

use crate::system_table::SystemTable;

const TABLE: &str = "firn_commits";
/// The version of a note.
const VERSION: u8 = 1;
/// How long notes are kept, in milliseconds.
const KEPT_MS: u64 = 3600 * 1000;
/// How many notes are removed in one transaction.
const REMOVED_AT_ONCE: usize = 1000;

/// The notes of a node.
pub(crate) struct CommitNotes {
    table: SystemTable,
}

impl CommitNotes {
    pub(crate) fn new(node: Arc<dyn DatabaseNode>) -> CommitNotes {
        CommitNotes { table: SystemTable::later(node, TABLE) }
    }

    /// Notes the answer of a command in the transaction that it is about to commit. Blocks.
    ///
    /// # Errors
    /// If it cannot be written. Then the transaction must not commit.
    pub(crate) fn note(
        &self,
        transaction: &mut dyn Transaction,
        command: CommandIdentity,
        answer: &CommittedAnswer,
        now_ms: u64,
    ) -> RowsResult<()> {
        self.table.put(transaction, &key(command), &encode(command, answer, now_ms))
    }

    /// Removes notes that nobody asks for any more. Blocks.
    ///
    /// # Errors
    /// If they cannot be read or removed.
    pub(crate) fn forget_old(&self, now_ms: u64) -> RowsResult<()> {
        let is_old = |note: &[u8]| time_ms(note).is_none_or(|time| time + KEPT_MS < now_ms);
        let notes = self.table.load(Cts(0))?.into_iter();
        let old = notes.filter(|(_, note)| is_old(note)).map(|(key, _)| (key, None));
        let old: Vec<_> = old.collect();
        for some in old.chunks(REMOVED_AT_ONCE) {
            self.table.store(some)?;
        }
        Ok(())
    }

    /// The answer of a command that has committed. Blocks.
    ///
    /// A node that was replaced, and may not know it yet, can have a note of a commit that is lost,
    /// or lack one that is durable. So the node first commits something itself: one that can is the
    /// writer, and the log up to there is durable.
    ///
    /// # Errors
    /// If the node cannot commit, or the notes cannot be read.
    pub(crate) fn find(
        &self,
        command: CommandIdentity,
        now_ms: u64,
    ) -> RowsResult<Option<CommittedAnswer>> {
        let proof = encode(command, &CommittedAnswer::default(), now_ms);
        self.table.store(&[(proof_key(command), Some(proof))])?;
        let note = self.table.get(&key(command))?;
        Ok(note.and_then(|note| decode(command, &note)))
    }
}

/// Connections of all nodes have different numbers.
fn key(command: CommandIdentity) -> [u8; 4] {
    command.session.to_be_bytes()
}

/// The key of what a node commits before it looks for a note: no session's.
fn proof_key(command: CommandIdentity) -> Vec<u8> {
    [&key(command)[..], b"?"].concat()
}

/// Version, the time in milliseconds, front, number, affected rows, found rows, id (`u64`s,
/// little-endian), and the info.
fn encode(command: CommandIdentity, answer: &CommittedAnswer, now_ms: u64) -> Vec<u8> {
    let numbers = [
        now_ms,
        command.front,
        command.number,
        answer.affected_rows,
        answer.found_rows,
        answer.last_insert_id,
    ];
    let mut note = vec![VERSION];
    numbers.iter().for_each(|number| note.extend_from_slice(&number.to_le_bytes()));
    note.extend_from_slice(answer.info.as_bytes());
    note
}

/// The answer, if the note is that of the command.
fn decode(command: CommandIdentity, note: &[u8]) -> Option<CommittedAnswer> {
    let (numbers, info) = parts(note)?;
    let mut numbers = numbers.into_iter().skip(1);
    let mut next = || numbers.next();
    let is_it = next()? == command.front && next()? == command.number;
    let answer = CommittedAnswer {
        affected_rows: next()?,
        found_rows: next()?,
        last_insert_id: next()?,
        info: String::from_utf8_lossy(info).into_owned(),
    };
    is_it.then_some(answer)
}

fn time_ms(note: &[u8]) -> Option<u64> {
    parts(note).map(|(numbers, _)| numbers[0])
}

/// The numbers of a note, and its text.
fn parts(note: &[u8]) -> Option<([u64; 6], &[u8])> {
    let [VERSION, rest @ ..] = note else { return None };
    let (numbers, info) = rest.split_at_checked(6 * 8)?;
    let mut found = [0; 6];
    for (number, bytes) in found.iter_mut().zip(numbers.as_chunks::<8>().0) {
        *number = u64::from_le_bytes(*bytes);
    }
    Some((found, info))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_of_one_command() {
        let command = CommandIdentity { front: 0x0102, session: 3, number: 4 };
        let answer = CommittedAnswer {
            affected_rows: 5,
            found_rows: 6,
            last_insert_id: 7,
            info: "ok".to_owned(),
        };
        let note = encode(command, &answer, 9);
        let mut expected = vec![1];
        for number in [9, 0x0102_u64, 4, 5, 6, 7] {
            expected.extend_from_slice(&number.to_le_bytes());
        }
        expected.extend_from_slice(b"ok");
        assert_eq!(note, expected);
        assert_eq!(decode(command, &note), Some(answer));
        assert_eq!(time_ms(&note), Some(9));
        assert_eq!(decode(CommandIdentity { number: 5, ..command }, &note), None);
        assert_eq!(decode(CommandIdentity { front: 1, ..command }, &note), None);
        for length in 0..49 {
            assert_eq!(decode(command, &note[..length]), None);
        }
    }
}
