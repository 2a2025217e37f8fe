//! The timestamp up to which all commits are durable: what peers and replicas may see, and the
//! limit of purge.
//!
//! ```text
//!   visible here                    500                        600
//!   log                 … │ 480 │ 500 │ prepared 7 │ 600 │ end
//!                                   ▲ durable      7 is COMMITTING, perhaps at 550
//! ```
//!
//! The log does not contain timestamps in their order, so its durable position says this only by a
//! detour: each commit is in the log before it is visible. So all commits that are visible now are
//! durable once the log is durable up to its present end.
//!
//! That does not cover a prepared transaction whose coordinator chooses the timestamp. Later
//! commits become visible meanwhile, and the transaction's own marker comes later and has a lower
//! timestamp. So the horizon stays below the lowest timestamp that each COMMITTING transaction may
//! get. If a coordinator has set COMMITTING through the region, this node does not know that
//! timestamp. But it is above everything that was visible when the transaction was last found not
//! to be COMMITTING.
//!
//! Invariant: every commit with a timestamp up to `reached`, now or later, is in the durable log.

use firn_base::{Cts, Lsn, TrxId};
use rustc_hash::FxHashMap;

use crate::transaction::system::TransactionSystem;

/// See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct DurableCommits {
    reached: Cts,
    /// The next timestamp, reached when the log is durable up to this position.
    next: (Cts, Lsn),
    /// What was visible when `next` was determined.
    looked_at: Cts,
    /// The transactions that were COMMITTING then. Each commits above its timestamp here.
    committing: FxHashMap<TrxId, Cts>,
}

impl DurableCommits {
    /// The present horizon. Never goes back. Does not block.
    pub(crate) fn advance(&mut self, system: &TransactionSystem) -> Cts {
        let log = &system.pages().log;
        if log.durable_lsn() >= self.next.1 {
            self.reached = self.next.0;
            // In this order. A transaction that is set to COMMITTING after the second line commits
            // above `visible`, and a commit that the second line missed is before the end of the
            // log.
            let visible = system.order().max_committed();
            let limit = self.limit(&system.committing()).min(visible);
            self.next = (limit, log.end_lsn());
            self.looked_at = visible;
        }
        self.reached
    }

    /// The timestamp above which all of these transactions commit.
    fn limit(&mut self, committing: &[TrxId]) -> Cts {
        self.committing.retain(|trx, _| committing.contains(trx));
        for trx in committing {
            self.committing.entry(*trx).or_insert(self.looked_at);
        }
        self.committing.values().copied().min().unwrap_or(Cts(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use firn_api::{LogError, Timestamps};

    use super::*;
    use crate::test_support::{HybridClock, Node, Oracle, Refusals};
    use crate::transaction::remote::RemoteTransactions;
    use crate::transaction::{IsolationLevel, Prepared, Transaction, TransactionOptions};

    fn nodes() -> [Node; 3] {
        let options = || TransactionOptions { table_slots: 64, ..Default::default() };
        let oracle = Timestamps::Shared(Arc::new(Oracle::new(100)));
        let clock = Timestamps::Shared(Arc::new(HybridClock::default()));
        [Timestamps::Local, oracle, clock].map(|source| Node::with_timestamps(options(), &source))
    }

    fn hold_back() -> Refusals {
        let reason = "held back".to_owned();
        Refusals { durability: Some(LogError::Unavailable { reason }), ..Refusals::default() }
    }

    fn insert(node: &Node, key: &[u8]) -> Transaction {
        let mut trx = Transaction::begin(&node.system, IsolationLevel::ReadCommitted).unwrap();
        trx.insert(node.index, key, b"row").unwrap();
        trx
    }

    fn prepare(node: &Node, key: &[u8]) -> Prepared {
        insert(node, key).prepare(key, None).unwrap()
    }

    /// The horizon once the log is durable.
    fn settled(durable: &mut DurableCommits, node: &Node) -> Cts {
        let log = &node.system.pages().log;
        for _ in 0..3 {
            log.wait_durable(log.end_lsn()).unwrap();
            durable.advance(&node.system);
        }
        durable.advance(&node.system)
    }

    #[test]
    fn a_log_that_is_held_back_holds_the_horizon_back() {
        for node in nodes() {
            let mut durable = DurableCommits::default();
            insert(&node, b"a").commit().unwrap();
            let first = node.system.order().max_committed();
            assert_eq!(settled(&mut durable, &node), first);
            node.log.refuse(hold_back());
            insert(&node, b"b").commit().unwrap_err();
            let second = node.system.order().max_committed();
            assert!(second > first, "it is visible here");
            for _ in 0..5 {
                assert_eq!(durable.advance(&node.system), first);
            }
            node.log.refuse(Refusals::default());
            assert_eq!(settled(&mut durable, &node), second);
        }
    }

    #[test]
    fn a_commit_that_is_being_decided_holds_the_horizon_below_it() {
        let [_, oracle, clock] = nodes();
        for (node, is_elsewhere) in [(oracle, false), (clock, true)] {
            let mut durable = DurableCommits::default();
            insert(&node, b"a").commit().unwrap();
            let prepared = prepare(&node, b"xid");
            insert(&node, b"b").commit().unwrap();
            let before = node.system.order().max_committed();
            assert_eq!(settled(&mut durable, &node), before, "it is ACTIVE");
            let remote = RemoteTransactions::connect(node.fabric.peer()).unwrap();
            let lowest = match is_elsewhere {
                true => remote.set_committing(prepared.trx).unwrap().unwrap(),
                false => node.system.set_committing(b"xid").unwrap(),
            };
            insert(&node, b"c").commit().unwrap();
            let later = node.system.order().max_committed();
            assert!(later > lowest);
            assert_eq!(settled(&mut durable, &node), before);
            node.log.refuse(hold_back());
            node.system.commit_prepared(b"xid", Some(lowest)).unwrap_err();
            for _ in 0..5 {
                assert_eq!(durable.advance(&node.system), before, "its commit is not durable");
            }
            node.log.refuse(Refusals::default());
            assert_eq!(settled(&mut durable, &node), later);
        }
    }

    #[test]
    fn the_horizon_moves_on_while_one_transaction_after_the_other_is_being_decided() {
        let [_, node, _] = nodes();
        let mut durable = DurableCommits::default();
        let mut last = (None, settled(&mut durable, &node));
        for number in 0..10_u8 {
            prepare(&node, &[number]);
            let lowest = node.system.set_committing(&[number]).unwrap();
            let horizon = settled(&mut durable, &node);
            assert!(horizon < lowest);
            if let (Some((xid, at)), before) = last {
                node.system.commit_prepared(&[xid], Some(at)).unwrap();
                let after = settled(&mut durable, &node);
                assert!(number < 2 || after > before, "{after} after {before}");
            }
            last = (Some((number, lowest)), horizon);
        }
    }
}
