//! Opening the log for a writer: promises of a majority, the log that it has, and that log at a
//! majority.

use std::sync::Arc;
use std::time::Duration;

use firn_api::{LogEpoch, LogError, Tail, WriterEpoch};
use firn_base::task;

use super::cluster::{Cluster, State, raise};
use super::member::{Rounds, end_before_gap};
use super::options::Fault;

/// The longest pause between two attempts with an epoch that the store chooses.
const PAUSE: Duration = Duration::from_micros(500);

/// A writer that opens with an epoch.
pub(super) struct Opening<'a> {
    cluster: &'a Cluster,
    node: &'a str,
    wanted: WriterEpoch,
    epoch: LogEpoch,
}

/// How an attempt ended that did not fail for good.
enum Attempt {
    Settled(Tail, Arc<Rounds>),
    /// A member has promised a higher epoch meanwhile.
    Overtaken(LogEpoch),
}

impl<'a> Opening<'a> {
    /// Chooses the epoch.
    ///
    /// # Errors
    /// [`LogError::Fenced`] if the wanted epoch is not above those that the members know,
    /// [`LogError::NotLeader`] or [`LogError::Unavailable`].
    pub(super) fn decide(
        cluster: &'a Cluster,
        node: &'a str,
        wanted: WriterEpoch,
    ) -> Result<Opening<'a>, LogError> {
        let state = cluster.lock();
        state.check_leader(node)?;
        state.check_majority(node)?;
        let known = state.highest_promise(node);
        let epoch = match wanted {
            WriterEpoch::Next => LogEpoch(known.0 + 1),
            WriterEpoch::Exactly(epoch) => epoch,
        };
        if epoch <= known && !state.is_faulty(Fault::OldEpochAccepted) {
            return Err(LogError::Fenced { by: known });
        }
        drop(state);
        Ok(Opening { cluster, node, wanted, epoch })
    }

    /// Collects the promises, and brings the log that they bring along to a majority. Blocks.
    ///
    /// # Errors
    /// As [`Opening::decide`].
    pub(super) fn settle(mut self) -> Result<(Tail, Arc<Rounds>), LogError> {
        loop {
            match (self.attempt()?, self.wanted) {
                (Attempt::Settled(tail, base), _) => return Ok((tail, base)),
                (Attempt::Overtaken(by), WriterEpoch::Exactly(_)) => {
                    return Err(LogError::Fenced { by });
                }
                (Attempt::Overtaken(by), WriterEpoch::Next) => self.epoch = LogEpoch(by.0 + 1),
            }
            let pause = self.cluster.lock().random.below(PAUSE.as_nanos() as u64);
            task::sleep(Duration::from_nanos(pause));
        }
    }

    fn attempt(&self) -> Result<Attempt, LogError> {
        let mut found = Vec::new();
        let order = self.cluster.lock().shuffled();
        for member in order {
            let mut state = self.arrive()?;
            if !state.reaches(self.node, member) {
                continue;
            }
            let promised = state.members[member].promised;
            if promised >= self.epoch && !state.is_faulty(Fault::OldEpochAccepted) {
                return Ok(Attempt::Overtaken(promised));
            }
            let copy = &mut state.members[member];
            copy.promised = copy.promised.max(self.epoch);
            found.push((copy.accepted, copy.rounds.clone()));
            if found.len() == state.majority() || state.is_faulty(Fault::OpenedFromOne) {
                drop(state);
                return self.write(found);
            }
        }
        Err(self.cluster.lock().too_few(found.len()))
    }

    /// Makes one log of the copies, and has a majority accept it.
    fn write(&self, found: Vec<(LogEpoch, Rounds)>) -> Result<Attempt, LogError> {
        let newest = found.iter().map(|(accepted, _)| *accepted).max().unwrap_or_default();
        let found = found.into_iter().filter(|(accepted, _)| *accepted == newest);
        let mut log: Rounds = found.flat_map(|(_, rounds)| rounds).collect();
        let (end, watermarks) = {
            let state = self.cluster.lock();
            // Some may have been truncated since it was found.
            log = log.split_off(&state.floor);
            let end = end_before_gap(&log, state.floor);
            log.split_off(&end);
            let mut watermarks = state.watermarks;
            log.values().for_each(|bytes| raise(&mut watermarks, bytes));
            (end, watermarks)
        };
        let (tail, base) = (Tail { epoch: self.epoch, end, watermarks }, Arc::new(log));
        if self.cluster.lock().is_faulty(Fault::TailNotWritten) {
            self.cluster.advance(end);
            return Ok(Attempt::Settled(tail, base));
        }
        let mut written = 0;
        let order = self.cluster.lock().shuffled();
        for member in order {
            let mut state = self.arrive()?;
            if !state.reaches(self.node, member) {
                continue;
            }
            let promised = state.members[member].promised;
            if promised > self.epoch && !state.is_faulty(Fault::OldEpochAccepted) {
                return Ok(Attempt::Overtaken(promised));
            }
            let floor = state.floor;
            state.members[member].accept(self.epoch, &base, floor);
            written += 1;
            if written == state.majority() {
                drop(state);
                self.cluster.advance(end);
                return Ok(Attempt::Settled(tail, base));
            }
        }
        Err(self.cluster.lock().too_few(written))
    }

    /// A request is on its way to a member for a while. Returns the state once it has arrived.
    fn arrive(&self) -> Result<parking_lot::MutexGuard<'a, State>, LogError> {
        let delay = self.cluster.lock().delay();
        task::sleep(delay);
        let mut state = self.cluster.lock();
        state.deliver();
        state.check_leader(self.node)?;
        Ok(state)
    }
}

impl State {
    /// The highest epoch that a member has promised which the process can ask.
    fn highest_promise(&self, node: &str) -> LogEpoch {
        let reached = (0..self.members.len()).filter(|member| self.reaches(node, *member));
        reached.map(|member| self.members[member].promised).max().unwrap_or_default()
    }

    fn too_few(&self, answered: usize) -> LogError {
        let all = self.members.len();
        LogError::Unavailable { reason: format!("{answered} of {all} copies answer") }
    }
}
