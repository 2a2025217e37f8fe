//! The turn: the right to take log from the writer's source and to use the member's disk. One
//! thread has it at a time.
//!
//! ```text
//!   take ──► propose ──► messages leave ──► write, sync ──► synced     (one round)
//!                             └── the others write and sync meanwhile ──► durable
//! ```
//!
//! A committer that finds the turn free takes it and works until its log is durable, so that a lone
//! commit is not handed to another thread. Others wait, and so does the committer while the members
//! answer. The next round begins when this member's disk is free, and need not wait for a majority:
//! as many rounds are in flight as fit into a round trip. What nobody works for is done by the task
//! `group-log`: writes of a member that follows, log of committers that came while the turn was
//! taken, and log that nobody waits for.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use firn_api::LogError;
use firn_base::Lsn;
use firn_consensus::{Batch, Entry, Refusal, Role};

use super::driver::{Core, Queued, Shared};
use super::writing::Writing;

/// How long the holder waits before it tries again to find room on the disk.
const ROOM_RETRY: Duration = Duration::from_millis(50);
/// How long the task waits for a group that is being copied into the source's buffer.
const HOLE_RETRY: Duration = Duration::from_micros(200);

/// The turn, in the hands of a thread. Dropping it returns it, and wakes the task if there is work.
pub(super) struct Turn<'a> {
    shared: &'a Shared,
    is_working: bool,
}

/// What a holder of the turn did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Worked {
    /// A round, or writes of the member.
    Something,
    Nothing,
    /// The disk is full.
    NoRoom,
}

impl Shared {
    /// Takes the turn, if it is free. Does not block.
    pub(super) fn try_turn(&self) -> Option<Turn<'_>> {
        if self.turn.load(Ordering::SeqCst) || self.turn.swap(true, Ordering::SeqCst) {
            return None;
        }
        Some(Turn { shared: self, is_working: false })
    }

    fn is_pending(&self) -> bool {
        let core = self.core.lock();
        !core.queue.is_empty() || core.may_propose(self.limit_bytes())
    }

    /// Whether the writer has log that can be proposed at once.
    pub(super) fn may_propose(&self) -> bool {
        self.core.lock().may_propose(self.limit_bytes())
    }

    /// What the task `group-log` does.
    pub(super) fn run(&self) {
        let mut has_lain_idle = false;
        while !self.is_stopped() {
            let ticket = self.work.listen();
            self.tell_sources();
            let worked = self.try_turn().map(|mut turn| {
                let worked = turn.work(has_lain_idle);
                turn.release();
                worked
            });
            has_lain_idle = match worked {
                Some(Worked::Something) => false,
                Some(Worked::NoRoom) => {
                    self.step_back();
                    self.pause(ROOM_RETRY)
                }
                Some(Worked::Nothing) if self.is_pending() => self.pause(HOLE_RETRY),
                Some(Worked::Nothing) if self.is_drained() => false,
                // The holder notifies when it returns the turn and there is work.
                Some(Worked::Nothing) | None => {
                    !self.work.wait(ticket, Some(self.options.idle_flush))
                }
            };
        }
        self.tell_failure();
    }

    /// A pause before the task tries the same again, which must not end at once because the task
    /// has itself just returned the turn. Returns false: the log was not idle.
    fn pause(&self, duration: Duration) -> bool {
        self.work.wait(self.work.listen(), Some(duration));
        false
    }

    fn is_drained(&self) -> bool {
        let core = self.core.lock();
        core.writer.as_ref().is_some_and(|writer| writer.is_closing() && writer.is_drained())
    }

    /// A leader whose disk is full lets another voter lead.
    fn step_back(&self) {
        self.event(|core| {
            let Some(term) = core.member.leads() else { return };
            let own = self.options.member.id;
            let voters = core.member.members().iter().filter(|(_, role)| *role == Role::Voter);
            let others: Vec<_> = voters.map(|(id, _)| id).filter(|id| *id != own).collect();
            // Another one each time, until one of them leads.
            let turn = (self.clock.monotonic().as_nanos() / ROOM_RETRY.as_nanos()) as usize;
            let Some(to) = others.get(turn % others.len().max(1)) else { return };
            if core.member.hand_over(term, *to).is_ok() {
                tracing::warn!(%to, "the disk of this copy of the log is full; another one leads");
                core.is_handing_over = true;
            }
        });
    }

    /// Informs the sources of what is durable, and of their ends.
    fn tell_sources(&self) {
        let writer = self.core.lock().writer.clone();
        if let Some(writer) = writer {
            writer.tell();
            if writer.is_closing() {
                self.go_on_closing(&writer);
            }
        }
        let ended = std::mem::take(&mut self.core.lock().ended);
        if !ended.is_empty() {
            ended.iter().for_each(|writer| writer.tell_end());
            self.advanced.notify_all();
        }
    }

    /// Ends a writer that is being closed, or has the next round take what is left.
    fn go_on_closing(&self, writer: &Arc<Writing>) {
        if writer.is_drained() {
            self.end_if_current(writer, closed());
        } else {
            writer.want_all();
        }
    }

    /// The last word of a member that has stopped.
    fn tell_failure(&self) {
        let error = self.failure.get().cloned().unwrap_or_else(closed);
        let mut core = self.core.lock();
        self.end_writer(&mut core, error);
        drop(core);
        self.tell_sources();
        self.advanced.notify_all();
    }
}

pub(super) fn closed() -> LogError {
    LogError::Failed { place: "this node".to_owned(), reason: "the engine is closed".to_owned() }
}

impl Turn<'_> {
    /// Takes and proposes a round, if it is wanted and there is credit, and brings everything that
    /// the member asks for to its disk. `is_idle`: take log that nobody waits for. Blocks for I/O.
    pub(super) fn work(&mut self, is_idle: bool) -> Worked {
        if self.shared.is_stopped() {
            return Worked::Nothing;
        }
        self.is_working = true;
        let proposed = self.propose_round(is_idle);
        let worked = match self.store() {
            Ok(Worked::Nothing) if proposed => Worked::Something,
            Ok(worked) => worked,
            Err(error) => {
                self.shared.fail(error);
                Worked::Nothing
            }
        };
        self.is_working = false;
        worked
    }

    /// The writer and how many bytes it may add, if it may propose.
    fn proposer(&self, is_idle: bool) -> Option<(Arc<Writing>, usize)> {
        let shared = self.shared;
        let core = shared.core.lock();
        let writer = Arc::clone(core.writer.as_ref()?);
        if is_idle {
            writer.want_all();
        }
        let credit = core.credit(shared.limit_bytes());
        let limit = credit.min(shared.options.round_bytes as u64) as usize;
        core.may_propose(shared.limit_bytes()).then_some((writer, limit))
    }

    /// Proposes the next round of the writer. False if nothing was proposed.
    fn propose_round(&mut self, is_idle: bool) -> bool {
        let Some((writer, limit_bytes)) = self.proposer(is_idle) else { return false };
        let Some((start, bytes)) = writer.take(limit_bytes) else { return false };
        let end = start.advance(bytes.len() as u64);
        let batch = Batch { start, end, checksum: crc32c::crc32c(&bytes) };
        let bytes = Arc::new(bytes);
        let log = vec![(start, Arc::clone(&bytes))];
        let proposed = self.shared.event_with_log(log, |core| propose(core, &writer, batch));
        if proposed.is_none() {
            // The member leads no more, or not yet: the log stays for its next term.
            writer.put_back(start, bytes);
        }
        proposed.is_some()
    }

    /// Writes what the member asked for, and syncs it. After the sync the member hears of it.
    fn store(&mut self) -> Result<Worked, LogError> {
        let shared = self.shared;
        let mut items = std::mem::take(&mut shared.core.lock().queue);
        let (mut last, mut end) = (None, None);
        let mut has_room = true;
        while has_room && let Some(item) = items.front() {
            let written = shared.log.write(&item.write, &joined(item));
            match written {
                Ok(()) => {
                    last = Some(item.write.number);
                    end = item.write.append.last().map(Entry::end).or(end);
                    items.pop_front();
                }
                Err(LogError::NoRoom { .. }) => has_room = false,
                Err(error) => return Err(error),
            }
        }
        if last.is_some() {
            shared.log.sync()?;
        }
        shared.event(|core| {
            put_back(core, items);
            let Some(number) = last else { return };
            core.stored = end.unwrap_or(core.stored);
            core.recent.trim(core.stored);
            core.member.synced(number);
        });
        Ok(match (has_room, last) {
            (false, _) => Worked::NoRoom,
            (true, Some(_)) => Worked::Something,
            (true, None) => Worked::Nothing,
        })
    }

    /// Releases log that neither the pages nor a reader needs. Blocks for I/O.
    fn release(&mut self) {
        let shared = self.shared;
        let wanted = Lsn(shared.let_go.load(Ordering::SeqCst));
        if wanted <= Lsn(shared.released.load(Ordering::SeqCst)) || shared.is_stopped() {
            return;
        }
        let floor = shared.leases.raise_floor(wanted, shared.durable());
        if shared.released.swap(floor.0, Ordering::SeqCst) == floor.0 {
            return;
        }
        let begin = shared.log.release(floor);
        shared.event(|core| core.member.release(begin));
        shared.truncated.fetch_max(begin.0, Ordering::SeqCst);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.is_working {
            // The log that it had taken exists nowhere else.
            self.shared.fail(LogError::Failed {
                place: "this node".to_owned(),
                reason: "the task that wrote the log has died".to_owned(),
            });
        }
        self.shared.turn.store(false, Ordering::SeqCst);
        if self.shared.is_pending() {
            self.shared.work.notify_all();
        }
    }
}

/// Proposes a batch of the writer, unless the writer has ended or its member does not lead.
fn propose(core: &mut Core, writer: &Arc<Writing>, batch: Batch) -> Option<()> {
    let is_current = core.writer.as_ref().is_some_and(|current| Arc::ptr_eq(current, writer));
    if !is_current || core.openings > 0 {
        return None;
    }
    let term = core.member.leads()?;
    match core.member.propose(term, &[batch]) {
        Ok(_) => {
            writer.rounds.begin(batch.end);
            Some(())
        }
        Err(Refusal::OutOfPlace { start, end }) => {
            unreachable!("the writer is at {start}, and no other one added log up to {end}")
        }
        Err(_) => None,
    }
}

/// The bytes of all entries of a write.
fn joined(item: &Queued) -> std::borrow::Cow<'_, [u8]> {
    match item.log.as_slice() {
        [one] => one.as_slice().into(),
        all => all.iter().flat_map(|bytes| bytes.iter().copied()).collect::<Vec<u8>>().into(),
    }
}

/// Puts writes that found no room before those that came meanwhile.
fn put_back(core: &mut Core, mut items: VecDeque<Queued>) {
    items.append(&mut core.queue);
    core.queue = items;
}
