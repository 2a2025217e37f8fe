//! Usage of accounts: failed logins in a row, and hourly counts against limits. Kept only in
//! memory, as in MySQL: a restart forgets it.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::account::{Account, AccountName};
use super::policy::Block;

const HOUR_S: u64 = 3600;
const DAY_S: u64 = 86_400;

/// A limit that was reached: its name in messages, and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded {
    /// Such as `max_questions`.
    pub resource: &'static str,
    pub limit: u64,
}

/// An account that failed logins have blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocked {
    /// For how many days; `None`: until it is unlocked.
    pub days: Option<u64>,
    /// How many days are left.
    pub days_left: u64,
    /// After how many failed logins.
    pub attempts: u64,
}

#[derive(Debug, Default)]
struct Usage {
    failed: u64,
    blocked_s: Option<u64>,
    hour_began_s: u64,
    questions: u64,
    updates: u64,
    connections: u64,
}

#[derive(Debug, Default)]
pub struct UsageBook {
    accounts: Mutex<BTreeMap<AccountName, Usage>>,
}

impl UsageBook {
    /// Notes a login attempt, with the correct password or not.
    ///
    /// # Errors
    /// If failed logins have blocked the account.
    pub fn attempted(&self, account: &Account, proved: bool, now_s: u64) -> Result<(), Blocked> {
        let policy = &account.policy;
        if policy.failed_attempts == 0 || policy.block == Block::Days(0) {
            return Ok(());
        }
        let mut accounts = self.accounts.lock();
        let usage = accounts.entry(account.name.clone()).or_default();
        let ends = |since: u64| match policy.block {
            Block::Days(days) => Some(since.saturating_add(days.saturating_mul(DAY_S))),
            Block::Unbounded => None,
        };
        if usage.blocked_s.and_then(ends).is_some_and(|end| end <= now_s) {
            (usage.failed, usage.blocked_s) = (0, None);
        }
        if usage.blocked_s.is_none() {
            usage.failed = if proved { 0 } else { usage.failed + 1 };
            if usage.failed >= policy.failed_attempts {
                usage.blocked_s = Some(now_s);
            }
        }
        let Some(since) = usage.blocked_s else { return Ok(()) };
        let left_s = ends(since).map_or(0, |end| end.saturating_sub(now_s));
        Err(Blocked {
            days: match policy.block {
                Block::Days(days) => Some(days),
                Block::Unbounded => None,
            },
            days_left: left_s.div_ceil(DAY_S),
            attempts: policy.failed_attempts,
        })
    }

    /// Counts a login.
    ///
    /// # Errors
    /// If the account has reached its limit for this hour.
    pub fn connected(&self, account: &Account, now_s: u64) -> Result<(), Exceeded> {
        let limit = account.policy.limits.connections;
        if limit == 0 {
            return Ok(());
        }
        self.count(account, now_s, limit, "max_connections_per_hour", |usage| {
            &mut usage.connections
        })
    }

    /// Counts a statement.
    ///
    /// # Errors
    /// If the account has reached its limit for this hour.
    pub fn asked(&self, account: &Account, now_s: u64) -> Result<(), Exceeded> {
        let limit = account.policy.limits.questions;
        match limit {
            0 => Ok(()),
            _ => self.count(account, now_s, limit, "max_questions", |usage| &mut usage.questions),
        }
    }

    /// Counts a statement that changes something.
    ///
    /// # Errors
    /// If the account has reached its limit for this hour.
    pub fn updated(&self, account: &Account, now_s: u64) -> Result<(), Exceeded> {
        let limit = account.policy.limits.updates;
        match limit {
            0 => Ok(()),
            _ => self.count(account, now_s, limit, "max_updates", |usage| &mut usage.updates),
        }
    }

    fn count(
        &self,
        account: &Account,
        now_s: u64,
        limit: u64,
        resource: &'static str,
        counter: impl Fn(&mut Usage) -> &mut u64,
    ) -> Result<(), Exceeded> {
        let mut accounts = self.accounts.lock();
        let usage = accounts.entry(account.name.clone()).or_default();
        if now_s.saturating_sub(usage.hour_began_s) >= HOUR_S {
            usage.hour_began_s = now_s;
            (usage.questions, usage.updates, usage.connections) = (0, 0, 0);
        }
        let count = counter(usage);
        if *count >= limit {
            return Err(Exceeded { resource, limit });
        }
        *count += 1;
        Ok(())
    }

    /// Forgets failed logins: the account was unlocked or replaced.
    pub fn forgive(&self, account: &AccountName) {
        if let Some(usage) = self.accounts.lock().get_mut(account) {
            (usage.failed, usage.blocked_s) = (0, None);
        }
    }

    /// `FLUSH USER_RESOURCES`: the counts of this hour restart at zero.
    pub fn forget_hours(&self) {
        for usage in self.accounts.lock().values_mut() {
            (usage.questions, usage.updates, usage.connections) = (0, 0, 0);
        }
    }
}
