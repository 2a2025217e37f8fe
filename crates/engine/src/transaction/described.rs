//! Transactions that begin at a node that follows, and go on at the node that writes.
//!
//! ```text
//!   follower   snapshot S ─ read a ─ read b…d ─ describe ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄ end
//!                                                 └─► S, a, b…d
//!   writer                                              take_up: snapshot S ─ write e ─► renewed?
//! ```
//!
//! Both nodes have the same trees, so what was read there is checked here as if it had been read
//! here ([`super::renewal`]).
//!
//! Rules, cited by number:
//!
//! 1. The transaction at the follower stays open until [`Transaction::take_up`] has returned. Its
//!    place in the writer's registry holds the horizon at or below S, so nothing that S sees has
//!    been purged. If the writer has given that place up, or another node writes since, S is below
//!    the announced horizon and is refused.
//! 2. The trees that were read are those of the tables as they are defined now. The caller has
//!    ensured that, and locks the definitions: a dropped tree shows no change.
//! 3. A snapshot that must see more than the follower has applied is described as the newer one.
//!    All that was read is the same in both ([`super::behind`]).

use std::sync::Arc;

use firn_api::rows::{DescribedSnapshot, DescribedTransaction, IsolationLevel};

use crate::error::EngineError;
use crate::transaction::behind::Behind;
use crate::transaction::handle::Transaction;
use crate::transaction::read_transaction::ReadTransaction;
use crate::transaction::system::TransactionSystem;
use crate::transaction::versions::ReadView;

impl ReadTransaction {
    /// See [`firn_api::rows::Transaction::describe`]. Does not block.
    #[must_use]
    pub fn describe(&self) -> Option<DescribedTransaction> {
        if self.ended || self.own.is_some() || self.isolation == IsolationLevel::Serializable {
            return None;
        }
        let snapshot = match &self.view {
            None => None,
            Some(ReadView::ActiveList(_)) => return None,
            Some(ReadView::Timestamp(snapshot)) => {
                // Rule 3.
                let newer = self.behind.as_deref().map(Behind::snapshot_with_awaited);
                let at = newer.unwrap_or(*snapshot);
                Some(DescribedSnapshot { at, reads: self.reads.described() })
            }
        };
        Some(DescribedTransaction { isolation: self.isolation, snapshot })
    }
}

impl Transaction {
    /// Begins a transaction that goes on as one of a node that follows this one (rules 1 and 2).
    /// Blocks as [`Transaction::begin_at`].
    ///
    /// # Errors
    /// As there. [`EngineError::Invalid`] for a SERIALIZABLE transaction, whose reads would have
    /// been locks here.
    pub fn take_up(
        system: &Arc<TransactionSystem>,
        described: &DescribedTransaction,
    ) -> Result<Transaction, EngineError> {
        let isolation = described.isolation;
        if isolation == IsolationLevel::Serializable {
            let what = "a SERIALIZABLE transaction cannot go on at another node; begin it there";
            return Err(EngineError::Invalid(what.to_owned()));
        }
        let Some(DescribedSnapshot { at, reads }) = &described.snapshot else {
            return Transaction::begin(system, isolation);
        };
        let mut transaction = Transaction::begin_at(system, isolation, *at)?;
        if let Some(reads) = reads {
            transaction.reads.go_on_from(reads);
        }
        Ok(transaction)
    }
}

#[cfg(test)]
mod tests;
