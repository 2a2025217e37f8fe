//! Opening the stream for a writer: this member has to lead, in a term that no writer has had.
//!
//! A member that is cut off believes for a while that it leads, while another one is elected. So an
//! opening is granted after a confirmed read that began in the same term: by the lease, or by a
//! majority.

use std::sync::Arc;
use std::time::Duration;

use firn_api::{LogEpoch, LogError, OpenedLog, Tail, WriterEpoch};
use firn_base::Lsn;
use firn_base::task::monotonic;
use firn_consensus::{ReadId, Term};

use super::driver::{Core, Shared};
use super::writer::GroupWriter;
use super::writing::Writing;

/// How often a call looks again for what nobody reports, such as a write that is synced.
const RETRY: Duration = Duration::from_millis(2);

/// How long a confirmation may take before it is asked for again: its messages may be lost.
const CONFIRMATION: Duration = Duration::from_millis(50);

/// What an attempt to open came to.
enum Attempt {
    Granted(Term, Lsn, Arc<Writing>),
    Refused(LogError),
    /// There is no leader yet, or this member is not ready to lead.
    Later,
}

/// A confirmed read of an opening.
#[derive(Clone, Copy)]
struct Confirmation {
    read: u64,
    term: Term,
    asked_at: Duration,
}

/// Counts a call of `open`. While there is one, nothing is proposed: the end of the log stands
/// still.
struct OpeningMark<'a>(&'a Shared);

impl Drop for OpeningMark<'_> {
    fn drop(&mut self) {
        self.0.core.lock().openings -= 1;
        self.0.work.notify_all();
        self.0.advanced.notify_all();
    }
}

impl Shared {
    /// See [`firn_api::LogStore::open`].
    pub(super) fn open(self: &Arc<Shared>, epoch: WriterEpoch) -> Result<OpenedLog, LogError> {
        let deadline = monotonic().saturating_add(self.options.patience);
        self.core.lock().openings += 1;
        let mark = OpeningMark(self);
        let mut confirmation = None;
        let (term, end, writing) = loop {
            let ticket = self.advanced.listen();
            if let Some(failure) = self.failure.get() {
                return Err(failure.clone());
            }
            match self.event(|core| self.attempt(core, epoch, &mut confirmation)) {
                Attempt::Granted(term, end, writing) => break (term, end, writing),
                Attempt::Refused(error) => return Err(error),
                Attempt::Later => {}
            }
            let left = deadline.saturating_sub(monotonic());
            if left.is_zero() {
                return Err(self.unavailable());
            }
            self.advanced.wait(ticket, Some(left.min(RETRY)));
        };
        drop(mark);
        let watermarks = self.log.watermarks()?;
        let tail = Tail { epoch: LogEpoch(term.0), end, watermarks };
        let shared = Arc::clone(self);
        Ok(OpenedLog::new(tail, move |source| {
            Box::new(GroupWriter::start(shared, writing, source))
        }))
    }

    fn attempt(
        &self,
        core: &mut Core,
        epoch: WriterEpoch,
        confirmation: &mut Option<Confirmation>,
    ) -> Attempt {
        self.catch_up(core);
        let (leads, known) = (core.member.leads(), core.member.term());
        let unused = leads.filter(|term| *term > core.opened_in);
        let other = core.member.leader().filter(|leader| *leader != self.options.member.id);
        // This member may be about to lead in the term that it knows.
        let is_free = other.is_none() && core.opened_in < known;
        if let WriterEpoch::Exactly(wanted) = epoch
            && (wanted.0 < known.0 || (wanted.0 == known.0 && !is_free))
        {
            return Attempt::Refused(LogError::Fenced { by: LogEpoch(known.0) });
        }
        let Some(term) = leads else {
            return match other {
                Some(leader) => {
                    Attempt::Refused(LogError::NotLeader { hint: self.name_of(leader) })
                }
                None => Attempt::Later,
            };
        };
        let is_wanted = match epoch {
            WriterEpoch::Next => unused.is_some(),
            WriterEpoch::Exactly(wanted) => term.0 == wanted.0,
        };
        if !is_wanted {
            // Refused while a write is under way, or the office is handed over: later.
            let _ = core.member.lead_again(term);
            return Attempt::Later;
        }
        let end = core.member.end();
        if core.member.durable() < end || !self.is_confirmed(core, term, confirmation) {
            return Attempt::Later;
        }
        self.end_writer(core, LogError::Fenced { by: LogEpoch(term.0) });
        let writing = Arc::new(Writing::new(end));
        core.writer = Some(Arc::clone(&writing));
        core.opened_in = term;
        Attempt::Granted(term, end, writing)
    }

    /// Whether no other member led when the read was asked for, in the same term. Asks for one.
    fn is_confirmed(
        &self,
        core: &mut Core,
        term: Term,
        confirmation: &mut Option<Confirmation>,
    ) -> bool {
        let now = self.clock.monotonic();
        let current = confirmation.filter(|asked| {
            asked.term == term && now.saturating_sub(asked.asked_at) < CONFIRMATION
        });
        if let Some(asked) = current {
            return core.answered_read >= asked.read;
        }
        core.last_read += 1;
        let read = core.last_read;
        *confirmation = Some(Confirmation { read, term, asked_at: now });
        // Refused without a leader only; the next attempt asks again.
        let _ = core.member.read(ReadId(read));
        false
    }
}
