//! Asks control and changes the catalog, without being a node of the cluster.

use std::sync::Arc;
use std::time::Duration;

use firn_base::Environment;
use firn_base::network::Address;
use firn_control::{Applied, Catalog, Proposal};
use firn_link::LocalNode;

use super::ClientOptions;
use super::leader::{AskError, Leader};
use crate::message::{Reply, Request, StatusReply};
use crate::seat::control_addresses;

/// Why a proposal has no outcome, or a question no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// The catalog refuses it, and is as before.
    #[error("{0}")]
    Refused(String),
    /// It may be in the catalog, or come into it: look there.
    #[error("it is unknown whether control took the change: {0}")]
    Unknown(String),
    /// It is not in the catalog.
    #[error("no control node leads: {0}. Check that a majority of them runs and is reached")]
    NoLeader(String),
}

/// A way to the control nodes for somebody who is no node: a command line, a test. Has no task of
/// its own. Dropping it closes its links.
pub struct Administrator {
    leader: Leader,
}

impl Administrator {
    /// # Panics
    /// Without an address.
    #[must_use]
    pub fn new(
        environment: &Environment,
        local: &Arc<LocalNode>,
        addresses: &[Address],
        options: &ClientOptions,
    ) -> Administrator {
        Administrator { leader: Leader::new(environment, local, addresses, options) }
    }

    /// As [`super::ControlClient::propose`].
    ///
    /// # Errors
    /// [`ProposeError`]
    pub fn propose(&self, proposal: Proposal, timeout: Duration) -> Result<Applied, ProposeError> {
        let deadline = self.leader.deadline(timeout);
        // A control node that hangs costs a short question, not the time that a change may take.
        self.leader.status(timeout)?;
        self.leader.propose(proposal, self.leader.left(deadline), false)
    }

    /// What the leader says of the cluster's control.
    ///
    /// # Errors
    /// [`ProposeError::NoLeader`]
    pub fn status(&self, timeout: Duration) -> Result<StatusReply, ProposeError> {
        self.leader.status(timeout)
    }

    /// The leader's catalog. If it has no more than `entries` of the log, waits for more.
    ///
    /// # Errors
    /// [`ProposeError::NoLeader`], also if there is nothing new within `timeout`.
    pub fn catalog(&self, entries: u64, timeout: Duration) -> Result<Catalog, ProposeError> {
        let catalog = self.leader.catalog(entries, timeout)?;
        self.leader.know(control_addresses(&catalog));
        Ok(catalog)
    }
}

impl Leader {
    /// Proposes. `may_repeat`: twice is the same as once.
    pub(super) fn propose(
        &self,
        proposal: Proposal,
        timeout: Duration,
        may_repeat: bool,
    ) -> Result<Applied, ProposeError> {
        let deadline = self.deadline(timeout);
        match self.ask(&Request::Propose(proposal), deadline, may_repeat)? {
            Reply::Applied(applied) => Ok(applied),
            Reply::Refused(text) => Err(ProposeError::Refused(text)),
            other => Err(ProposeError::Unknown(format!("the answer was {other:?}"))),
        }
    }

    pub(super) fn status(&self, timeout: Duration) -> Result<StatusReply, ProposeError> {
        match self.ask(&Request::Status, self.deadline(timeout), true)? {
            Reply::Status(status) => Ok(*status),
            other => Err(ProposeError::NoLeader(format!("{other:?} is no status"))),
        }
    }

    fn catalog(&self, entries: u64, timeout: Duration) -> Result<Catalog, ProposeError> {
        let deadline = self.deadline(timeout);
        loop {
            // Short, so that a leader which is gone is noticed.
            let request = Request::Watch { watcher: None, entries, patience: 1000 };
            let Reply::News { catalog, .. } = self.ask(&request, deadline, true)? else {
                return Err(ProposeError::NoLeader("the answer was no catalog".to_owned()));
            };
            if let Some(bytes) = catalog {
                let read = Catalog::restore(&bytes);
                return read.map_err(|error| ProposeError::NoLeader(error.to_string()));
            }
        }
    }
}

impl From<AskError> for ProposeError {
    fn from(error: AskError) -> ProposeError {
        match error {
            AskError::Unknown(text) => ProposeError::Unknown(text),
            AskError::NoLeader(text) => ProposeError::NoLeader(text),
        }
    }
}
