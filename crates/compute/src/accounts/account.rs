//! An account: its name, its authentication, its roles and grants.

use std::collections::BTreeSet;
use std::fmt;

use firn_sql::catalog::notation::identifier;

use super::{Grants, Policy};

/// A user's name and the hosts from which it may connect.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountName {
    /// The user, case-sensitive.
    pub user: String,
    /// A host, an address, or a pattern of them with `%` and `_`; lower case.
    pub host: String,
}

impl AccountName {
    /// `user` from `host`.
    #[must_use]
    pub fn new(user: &str, host: &str) -> AccountName {
        AccountName { user: user.to_owned(), host: host.to_ascii_lowercase() }
    }

    /// As `SHOW GRANTS` writes it.
    #[must_use]
    pub fn quoted(&self) -> String {
        format!("{}@{}", identifier(&self.user), identifier(&self.host))
    }

    /// As error messages write it.
    #[must_use]
    pub fn in_message(&self) -> String {
        format!("'{}'@'{}'", self.user, self.host)
    }

    /// Whether a client at this host or address matches the account.
    #[must_use]
    pub fn admits(&self, host: &str) -> bool {
        let is_loopback = matches!(host, "127.0.0.1" | "::1" | "localhost");
        matches_pattern(&self.host, host) || self.host == "localhost" && is_loopback
    }
}

impl fmt::Display for AccountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.user, self.host)
    }
}

/// `LIKE` over names: `%` any text, `_` any character, `\` makes the next one literal.
pub(super) fn matches_pattern(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.to_lowercase().chars().collect());
    let (mut at, mut in_name) = (0, 0);
    let mut last_star: Option<(usize, usize)> = None;
    while in_name < name.len() {
        let escaped = pattern.get(at) == Some(&'\\') && at + 1 < pattern.len();
        let (literal, width) =
            if escaped { (Some(pattern[at + 1]), 2) } else { (pattern.get(at).copied(), 1) };
        match literal {
            Some('%') if !escaped => {
                last_star = Some((at + 1, in_name));
                at += 1;
            }
            Some('_') if !escaped => (at, in_name) = (at + 1, in_name + 1),
            Some(letter) if letter.to_lowercase().eq(name[in_name].to_lowercase()) => {
                (at, in_name) = (at + width, in_name + 1);
            }
            _ => match last_star {
                Some((behind, tried)) => {
                    last_star = Some((behind, tried + 1));
                    (at, in_name) = (behind, tried + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|letter| *letter == '%')
}

/// An account or role.
#[derive(Debug, Clone, PartialEq)]
pub struct Account {
    pub name: AccountName,
    /// The authentication plugin.
    pub plugin: String,
    /// The plugin's stored form of the password; empty: none is set.
    pub authentication: String,
    /// Whether it may not connect; roles may not either.
    pub locked: bool,
    /// Whether the password has to be changed before anything else.
    pub expired: bool,
    /// Whether it may connect only over TLS.
    pub requires_tls: bool,
    pub grants: Grants,
    /// Roles that it may activate; it may grant those in `admin` to others.
    pub roles: BTreeSet<AccountName>,
    /// Roles that it may grant to others.
    pub admin: BTreeSet<AccountName>,
    /// Roles that are active when it connects.
    pub default_roles: BTreeSet<AccountName>,
    /// Rules for its password and limits of its use.
    pub policy: Policy,
    /// `ATTRIBUTE` and `COMMENT`, a JSON text.
    pub attribute: Option<String>,
}

impl Account {
    /// An account that may only connect.
    #[must_use]
    pub fn new(name: AccountName) -> Account {
        Account {
            name,
            plugin: "caching_sha2_password".to_owned(),
            authentication: String::new(),
            locked: false,
            expired: false,
            requires_tls: false,
            grants: Grants::default(),
            roles: BTreeSet::new(),
            admin: BTreeSet::new(),
            default_roles: BTreeSet::new(),
            policy: Policy::default(),
            attribute: None,
        }
    }
}
