//! A client that changes its row again and again, whatever its server says.

use std::time::Duration;

use firn_base::task::sleep;

use super::round::Transaction;
use super::{Commits, Shared, TABLE, now};
use crate::client::{Session, Target};
use crate::error::BenchError;

/// The pause before a client that has lost its server connects again.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) struct Client {
    target: Target,
    row: u64,
    session: Session,
    commits: Commits,
}

/// How a transaction ended that was not acknowledged.
struct Failed {
    error: BenchError,
    /// Whether it may have committed.
    is_unknown: bool,
}

impl Client {
    pub(super) fn open(target: &Target, row: u64) -> Result<Client, BenchError> {
        let session = target.connect()?;
        Ok(Client { target: target.clone(), row, session, commits: Commits::default() })
    }

    pub(super) fn commits(&self) -> Commits {
        self.commits
    }

    /// Runs transactions until the run ends.
    pub(super) fn run(&mut self, shared: &Shared) {
        while !shared.stops() {
            let began = now();
            match self.transaction() {
                Ok(()) => {
                    self.commits.acknowledged += 1;
                    shared.done.lock().push(Transaction { began, ended: now() });
                }
                Err(failed) => self.recover(failed, shared),
            }
        }
    }

    fn transaction(&mut self) -> Result<(), Failed> {
        let Client { session, row, .. } = self;
        let steps = [
            "BEGIN".to_owned(),
            format!("SELECT value FROM {TABLE} WHERE id = {row}"),
            format!("UPDATE {TABLE} SET value = value + 1 WHERE id = {row}"),
        ];
        for step in steps {
            session.ask(&step).map_err(|error| Failed { error, is_unknown: false })?;
        }
        session.run("COMMIT").map_err(|error| {
            // A conflict at the commit has rolled the transaction back.
            let is_unknown = error.conflict().is_none();
            Failed { error, is_unknown }
        })
    }

    /// Notes what the client was told, and gets a session without a transaction.
    fn recover(&mut self, failed: Failed, shared: &Shared) {
        self.commits.unknown += u64::from(failed.is_unknown);
        let at = if failed.is_unknown { " at COMMIT" } else { "" };
        match failed.error.code() {
            Some(code) => shared.trouble(format!("error {code}{at}")),
            None => shared.trouble(format!("the connection was lost{at}")),
        }
        let is_there = failed.error.code().is_some() && self.session.run("ROLLBACK").is_ok();
        while !is_there && !shared.stops() {
            match self.target.connect() {
                Ok(session) => {
                    self.session = session;
                    return;
                }
                Err(_) => sleep(PAUSE),
            }
        }
    }
}
