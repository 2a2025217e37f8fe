//! The rules for an account's password and its use: `PASSWORD EXPIRE`, `PASSWORD HISTORY`,
//! `FAILED_LOGIN_ATTEMPTS`, `MAX_USER_CONNECTIONS` and the like.

use std::fmt::Write;

use firn_sql::grammar::ast::UserOptions;

const DAY_S: u64 = 86_400;

/// The rules for an account. `None` means that the server's variables decide.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// Days after which the password expires; 0: never.
    pub lifetime_days: Option<u64>,
    /// How many of the last passwords cannot be reused.
    pub history: Option<u64>,
    /// For how many days a password cannot be reused.
    pub reuse_days: Option<u64>,
    /// Whether changing the password requires the current one.
    pub requires_current: Option<bool>,
    /// How many failed logins in a row block the account; 0: none do.
    pub failed_attempts: u64,
    /// How long they block it.
    pub block: Block,
    pub limits: Limits,
    /// When the password was set, in seconds since 1970, if known.
    pub changed_s: Option<u64>,
    /// Earlier passwords, as their plugins keep them, the latest first.
    pub former: Vec<FormerPassword>,
}

/// How long failed logins block an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Block {
    /// This many days; 0: not at all.
    Days(u64),
    /// Until it is unlocked.
    Unbounded,
}

impl Default for Block {
    fn default() -> Block {
        Block::Days(0)
    }
}

/// Limits of an account's use; 0: unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Statements per hour.
    pub questions: u64,
    /// Statements that change something, per hour.
    pub updates: u64,
    /// Logins per hour.
    pub connections: u64,
    /// Simultaneous connections.
    pub user_connections: u64,
}

impl Limits {
    /// Whether statements have to be counted.
    #[inline]
    #[must_use]
    pub fn counts_statements(&self) -> bool {
        self.questions | self.updates != 0
    }
}

/// A password that was in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormerPassword {
    /// The plugin that stored it.
    pub plugin: String,
    /// The plugin's stored form.
    pub authentication: String,
    /// When it was set, in seconds since 1970.
    pub changed_s: u64,
}

/// The rules if the account has none: the server's variables.
#[derive(Debug, Clone, Copy, Default)]
pub struct PolicyDefaults {
    /// `password_history`
    pub history: u64,
    /// `password_reuse_interval`
    pub reuse_days: u64,
    /// `password_require_current`
    pub requires_current: bool,
}

impl Policy {
    /// Whether the password is too old.
    #[must_use]
    pub fn is_outlived(&self, default_lifetime_days: u64, now_s: u64) -> bool {
        let days = self.lifetime_days.unwrap_or(default_lifetime_days);
        let ends = |changed: u64| changed.saturating_add(days.saturating_mul(DAY_S));
        days > 0 && self.changed_s.is_some_and(|changed| ends(changed) <= now_s)
    }

    /// The former passwords that cannot be reused, counting the current one in the history.
    pub fn barred(
        &self,
        defaults: PolicyDefaults,
        now_s: u64,
    ) -> impl Iterator<Item = &FormerPassword> {
        let history = self.history.unwrap_or(defaults.history);
        let days = self.reuse_days.unwrap_or(defaults.reuse_days);
        let is_barred = move |(number, former): &(usize, &FormerPassword)| {
            let age_s = now_s.saturating_sub(former.changed_s);
            (*number as u64) + 1 < history || age_s < days.saturating_mul(DAY_S)
        };
        self.former.iter().enumerate().filter(is_barred).map(|(_, former)| former)
    }

    /// Whether the current password cannot be reused.
    #[must_use]
    pub fn bars_present(&self, defaults: PolicyDefaults, now_s: u64) -> bool {
        let days = self.reuse_days.unwrap_or(defaults.reuse_days);
        let age_s = self.changed_s.map_or(0, |changed| now_s.saturating_sub(changed));
        self.history.unwrap_or(defaults.history) > 0 || age_s < days.saturating_mul(DAY_S)
    }

    /// Applies the options of `CREATE USER` or `ALTER USER`.
    pub fn apply(&mut self, options: &UserOptions) {
        for policy in &options.password_policies {
            self.apply_password_policy(policy);
        }
        for (name, limit) in &options.limits {
            match name.as_str() {
                "MAX_QUERIES_PER_HOUR" => self.limits.questions = *limit,
                "MAX_UPDATES_PER_HOUR" => self.limits.updates = *limit,
                "MAX_CONNECTIONS_PER_HOUR" => self.limits.connections = *limit,
                _ => self.limits.user_connections = *limit,
            }
        }
        if let Some(attempts) = options.failed_login_attempts {
            self.failed_attempts = attempts;
        }
        if let Some(days) = options.password_lock_days {
            self.block = days.map_or(Block::Unbounded, Block::Days);
        }
    }

    /// Applies a policy, given as its words. `EXPIRE` alone belongs to the account, see
    /// [`Account::expired`](super::Account::expired).
    fn apply_password_policy(&mut self, policy: &str) {
        let words: Vec<&str> = policy.split_ascii_whitespace().collect();
        let number = |word: &&str| word.parse().ok();
        match words.as_slice() {
            ["EXPIRE", "DEFAULT"] => self.lifetime_days = None,
            ["EXPIRE", "NEVER"] => self.lifetime_days = Some(0),
            ["EXPIRE", "INTERVAL", days, "DAY"] => self.lifetime_days = number(days),
            ["HISTORY", last] => self.history = number(last),
            ["REUSE", "INTERVAL", "DEFAULT"] => self.reuse_days = None,
            ["REUSE", "INTERVAL", days, "DAY"] => self.reuse_days = number(days),
            ["REQUIRE", "CURRENT"] => self.requires_current = Some(true),
            ["REQUIRE", "CURRENT", "OPTIONAL"] => self.requires_current = Some(false),
            ["REQUIRE", "CURRENT", "DEFAULT"] => self.requires_current = None,
            _ => {}
        }
    }

    /// The limits in the form of `SHOW CREATE USER`, with a blank before each.
    #[must_use]
    pub fn shown_limits(&self) -> String {
        let Limits { questions, updates, connections, user_connections } = self.limits;
        let mut text = String::new();
        for (name, limit) in [
            ("MAX_QUERIES_PER_HOUR", questions),
            ("MAX_UPDATES_PER_HOUR", updates),
            ("MAX_CONNECTIONS_PER_HOUR", connections),
            ("MAX_USER_CONNECTIONS", user_connections),
        ] {
            if limit > 0 {
                let with = if text.is_empty() { " WITH" } else { "" };
                // Writing to a String cannot fail.
                let _ = write!(text, "{with} {name} {limit}");
            }
        }
        text
    }

    /// The password's lifetime in the form of `SHOW CREATE USER`.
    #[must_use]
    pub fn shown_lifetime(&self) -> String {
        match self.lifetime_days {
            None => "PASSWORD EXPIRE DEFAULT".to_owned(),
            Some(0) => "PASSWORD EXPIRE NEVER".to_owned(),
            Some(days) => format!("PASSWORD EXPIRE INTERVAL {days} DAY"),
        }
    }

    /// The rules for new passwords and for failed logins, in the form of `SHOW CREATE USER`.
    #[must_use]
    pub fn shown_rules(&self) -> String {
        let history = self.history.map_or("DEFAULT".to_owned(), |last| last.to_string());
        let reuse = self.reuse_days.map_or("DEFAULT".to_owned(), |days| format!("{days} DAY"));
        let current = match self.requires_current {
            None => " DEFAULT",
            Some(true) => "",
            Some(false) => " OPTIONAL",
        };
        let mut text = format!(
            "PASSWORD HISTORY {history} PASSWORD REUSE INTERVAL {reuse} PASSWORD REQUIRE CURRENT{current}"
        );
        if self.failed_attempts > 0 || self.block != Block::default() {
            let days = match self.block {
                Block::Days(days) => days.to_string(),
                Block::Unbounded => "UNBOUNDED".to_owned(),
            };
            let attempts = self.failed_attempts;
            // Writing to a String cannot fail.
            let _ = write!(text, " FAILED_LOGIN_ATTEMPTS {attempts} PASSWORD_LOCK_TIME {days}");
        }
        text
    }
}
