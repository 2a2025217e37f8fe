//! The replica's end: [`RemoteWriter`].

use std::sync::Arc;
use std::time::Duration;

use firn_api::{LogEpoch, WriterError, WriterNode, WriterPlace, WriterPositions};
use firn_base::{Cts, TrxId};
use firn_link::Caller;

use crate::WRITER_SERVICE;
use crate::message::{Answer, Ask, Positions, SharedRegions, decode, encode};

/// How long a question may take.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The writer at the other end of a link, in one epoch.
#[derive(Clone)]
pub struct RemoteWriter {
    caller: Arc<Caller>,
    epoch: LogEpoch,
}

/// A place there.
struct RemotePlace {
    writer: RemoteWriter,
    number: u64,
    snapshot: Cts,
    lease: Duration,
}

impl RemoteWriter {
    /// Asks all of these nodes, and returns the one that writes; `None` if none says that it
    /// surely leads. Blocks for a round trip each, and for `timeout` where nobody answers.
    #[must_use]
    pub fn find(callers: &[Arc<Caller>], timeout: Duration) -> Option<RemoteWriter> {
        let calls: Vec<_> = callers
            .iter()
            .map(|caller| {
                caller.peer()?;
                caller.begin(WRITER_SERVICE, encode(&Ask::Newest), timeout).ok()
            })
            .collect();
        let found = callers.iter().zip(calls).filter_map(|(caller, call)| {
            match decode(&call?.wait().ok()?) {
                Ok(Answer::Positions(positions)) => {
                    let (caller, epoch) = (Arc::clone(caller), LogEpoch(positions.epoch));
                    Some(RemoteWriter { caller, epoch })
                }
                _ => None,
            }
        });
        found.max_by_key(|writer| writer.epoch)
    }

    /// The epoch in which it writes the log.
    #[must_use]
    pub fn epoch(&self) -> LogEpoch {
        self.epoch
    }

    /// The link to it.
    #[must_use]
    pub fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    /// Where processes of the writer's machine find its regions. Blocks for a round trip.
    ///
    /// # Errors
    /// Also if the writer shares none.
    pub fn regions(&self) -> Result<SharedRegions, WriterError> {
        match self.ask(&Ask::Regions)? {
            Answer::Regions(regions) => Ok(regions),
            _ => Err(another_answer()),
        }
    }

    fn ask(&self, ask: &Ask) -> Result<Answer, WriterError> {
        let unreachable =
            |error: &dyn std::fmt::Display| WriterError::Unreachable { reason: error.to_string() };
        let answer = self
            .caller
            .call(WRITER_SERVICE, encode(ask), TIMEOUT)
            .map_err(|error| unreachable(&error))?;
        match decode(&answer).map_err(|damage| unreachable(&damage))? {
            Answer::NotHere { reason } => Err(WriterError::Unreachable { reason }),
            Answer::Gone { reason } => Err(WriterError::Ended { reason }),
            Answer::NoPlace => Err(WriterError::NoPlace),
            answer => Ok(answer),
        }
    }

    /// W3.
    fn check_epoch(&self, epoch: u64) -> Result<(), WriterError> {
        if epoch == self.epoch.0 {
            return Ok(());
        }
        let reason = format!("it writes in epoch {epoch} instead of {}", self.epoch);
        Err(WriterError::Ended { reason })
    }

    fn positions(&self, answer: Answer) -> Result<WriterPositions, WriterError> {
        match answer {
            Answer::Positions(positions) => {
                let Positions { epoch, .. } = positions;
                self.check_epoch(epoch)?;
                Ok(positions.into())
            }
            _ => Err(another_answer()),
        }
    }
}

fn another_answer() -> WriterError {
    let reason = "it answered something else than what was asked".to_owned();
    WriterError::Unreachable { reason }
}

impl WriterNode for RemoteWriter {
    /// Always: a node of a cluster numbers its commits itself.
    fn is_dense(&self) -> bool {
        true
    }

    fn take_place(&self, replica: &str) -> Result<Box<dyn WriterPlace>, WriterError> {
        match self.ask(&Ask::TakePlace { replica: replica.to_owned() })? {
            Answer::Place { place: number, snapshot, lease_ms, epoch } => {
                self.check_epoch(epoch)?;
                let (writer, lease) = (self.clone(), Answer::sure_lease(lease_ms));
                Ok(Box::new(RemotePlace { writer, number, snapshot, lease }))
            }
            _ => Err(another_answer()),
        }
    }

    fn newest(&self) -> Result<WriterPositions, WriterError> {
        self.positions(self.ask(&Ask::Newest)?)
    }

    fn is_committing(&self, _: TrxId) -> Result<bool, WriterError> {
        Ok(false)
    }
}

impl WriterPlace for RemotePlace {
    fn snapshot(&self) -> Cts {
        self.snapshot
    }

    fn lease(&self) -> Duration {
        self.lease
    }

    fn look(&mut self, needed: Cts) -> Result<WriterPositions, WriterError> {
        let needed = needed.max(self.snapshot);
        let answer = self.writer.ask(&Ask::Look { place: self.number, needed })?;
        let positions = self.writer.positions(answer)?;
        self.snapshot = needed;
        Ok(positions)
    }
}

impl Drop for RemotePlace {
    /// Gives the place back, if that needs no wait; otherwise it ends by its time.
    fn drop(&mut self) {
        let give_back = encode(&Ask::GiveBack { place: self.number });
        if self.writer.caller.peer().is_some() {
            // Whether it has arrived does not matter.
            let _ = self.writer.caller.call(WRITER_SERVICE, give_back, TIMEOUT);
        }
    }
}
