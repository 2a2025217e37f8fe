//! What the compute nodes of one server share.
//!
//! Clients see one server, however many compute nodes answer them. Whatever belongs to the server,
//! and not to a connection or to a database node, is behind [`ServerState`]. Each compute node is a
//! [`ServerMember`] of it.
//!
//! ```text
//!   compute node 0 ─┐  set a variable, change accounts,    ┌─────────────┐
//!   compute node 1 ─┼─ lock, kill, list, FLUSH TABLES … ──►│ ServerState │
//!   compute node 2 ─┘                                      └──────┬──────┘
//!         ▲                                                       │
//!         └── changed, set, kill, list, close the gate ◄──────────┘ ServerMember
//! ```
//!
//! Accounts, persisted variables and statistics are rows of the database node: a member that hears
//! of a change reads them again, at a snapshot that has it: its database node may be one that
//! follows the log and has not come so far. Global variables that are not persisted, user locks and
//! the global read lock live as long as the server state.
//!
//! Invariants that every implementation keeps:
//! * **S1** A call that changes something returns after every member knows of it or has ended. A
//!   statement that begins after that sees the change on any node.
//! * **S2** A member that has ended holds no lock and is never called again.
//! * **S3** While a session holds the global read lock, the gates of all members are closed,
//!   including members that attach meanwhile. Each close is followed by one open.
//! * **S4** No two running members share a connection id.
//! * **S5** Members are called without any lock of the implementation held.

use std::fmt;
use std::str::FromStr;
use std::sync::Weak;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use firn_base::{Cts, TableId};

/// One life of a compute node: its identity, and a number that distinguishes this start from
/// earlier ones. Objects that must not outlive it, such as temporary tables, carry it in their
/// names.
///
/// As text: two numbers of 16 hexadecimal digits with a hyphen between them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation {
    /// The compute node; the same after a restart.
    pub node: u64,
    /// Differs between the starts of a node.
    pub start: u64,
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{:016x}", self.node, self.start)
    }
}

/// The text is not an [`Incarnation`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an incarnation is two numbers of 16 hexadecimal digits with a hyphen between them")]
pub struct NoIncarnation;

impl FromStr for Incarnation {
    type Err = NoIncarnation;

    fn from_str(text: &str) -> Result<Incarnation, NoIncarnation> {
        let number = |digits: &str| match digits.len() {
            16 if digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) => {
                u64::from_str_radix(digits, 16).map_err(|_| NoIncarnation)
            }
            _ => Err(NoIncarnation),
        };
        let (node, start) = text.split_once('-').ok_or(NoIncarnation)?;
        Ok(Incarnation { node: number(node)?, start: number(start)? })
    }
}

/// The ids that a member assigns to its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionIds {
    pub first: u32,
    /// Included in the range.
    pub last: u32,
}

impl ConnectionIds {
    /// Whether a connection's id is in this range.
    #[must_use]
    pub fn contains(self, connection: u64) -> bool {
        (u64::from(self.first)..=u64::from(self.last)).contains(&connection)
    }
}

/// A compute node's place in the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Membership {
    /// The lowest number that no other member has.
    pub number: u16,
    pub connection_ids: ConnectionIds,
}

/// Why the server state did not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerStateError {
    /// The timeout passed. A retry may succeed.
    #[error("the wait for other sessions of the server took too long")]
    TimedOut,
    #[error("the wait for other sessions of the server was cancelled")]
    Cancelled,
    /// The server considers this node dead, or it never joined. It must start again.
    #[error("the compute node {0} is no member of the server")]
    NotAMember(Incarnation),
    /// The server has as many members as it can have.
    #[error("the server has {0} compute nodes and can have no more")]
    Full(usize),
    /// The state cannot be reached. It is unknown whether the call had an effect; it may be
    /// repeated.
    #[error("the state of the server cannot be reached: {0}")]
    Unavailable(String),
}

/// How long a statement waits for others.
#[derive(Debug, Clone, Copy)]
pub struct Patience<'a> {
    /// At most this long; `None`: for ever.
    pub timeout: Option<Duration>,
    /// The wait ends soon after this becomes true.
    pub cancelled: &'a AtomicBool,
}

/// The result of a wait for a user lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockAnswer {
    Granted,
    /// Another session held it for too long.
    TimedOut,
    Killed,
    /// The owner waits for a lock of this session.
    Deadlock,
}

/// A connection, as `SHOW PROCESSLIST` lists it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    pub id: u64,
    /// The name that the client gave.
    pub user: String,
    /// Where the client comes from.
    pub host: String,
    /// The account it was authenticated as: user and host pattern.
    pub account: (String, String),
    pub schema: Option<String>,
    /// `Query`, `Sleep`, …
    pub command: String,
    /// How long the command has run, or the connection has slept, in seconds.
    pub time_s: u64,
    /// What the statement is doing; empty for an idle connection.
    pub state: String,
    /// The statement, without passwords.
    pub info: Option<String>,
}

/// What `KILL` ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillScope {
    Statement,
    /// The connection with its statement.
    Connection,
}

/// A global variable that was set after the server started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedVariable {
    /// Its name, in lower case.
    pub name: String,
    /// The value, encoded as persisted variables are.
    pub value: Vec<u8>,
    /// Grows with every change of any variable. Of two values of a variable, the later one has the
    /// higher version.
    pub version: u64,
}

/// The state that the compute nodes of a server share. Calls block for the network, if there is
/// one, and where they say so.
pub trait ServerState: Send + Sync {
    /// Makes a compute node a member. It gets calls from [`ServerState::attach`] on.
    ///
    /// # Errors
    /// [`ServerStateError::Full`], [`ServerStateError::Unavailable`].
    fn join(&self, node: Incarnation) -> Result<Membership, ServerStateError>;

    /// Begins to call a member. Changes before that are not reported to it.
    ///
    /// # Errors
    /// [`ServerStateError::NotAMember`], [`ServerStateError::Unavailable`].
    fn attach(
        &self,
        node: Incarnation,
        member: Weak<dyn ServerMember>,
    ) -> Result<(), ServerStateError>;

    /// Ends a membership: its sessions' locks are released, and another member cleans up after it.
    fn leave(&self, node: Incarnation);

    /// Whether a compute node has certainly ended: it runs nothing and never will.
    fn has_ended(&self, node: Incarnation) -> bool;

    /// Waits until no other member changes accounts. Blocks.
    ///
    /// # Errors
    /// [`ServerStateError::NotAMember`], [`ServerStateError::Unavailable`].
    fn begin_account_change(&self, node: Incarnation) -> Result<(), ServerStateError>;

    /// Ends what [`ServerState::begin_account_change`] began. If rows were changed, `since` is a
    /// snapshot that sees it, and the other members are told.
    fn end_account_change(&self, node: Incarnation, since: Option<Cts>);

    /// A snapshot that sees every change of accounts so far that this server state knows of.
    fn accounts_since(&self) -> Cts;

    /// Tells the other members that a table has new statistics.
    fn statistics_gathered(&self, node: Incarnation, table: TableId);

    /// Sets a global variable on all members, the caller's node included.
    ///
    /// # Errors
    /// [`ServerStateError::Unavailable`].
    fn set_variable(&self, name: &str, value: &[u8]) -> Result<(), ServerStateError>;

    /// The variables that were set with [`ServerState::set_variable`].
    ///
    /// # Errors
    /// [`ServerStateError::Unavailable`].
    fn variables(&self) -> Result<Vec<SharedVariable>, ServerStateError>;

    /// Takes a user lock for a connection, which may already hold it. Blocks.
    fn take_user_lock(&self, connection: u64, name: &str, patience: &Patience<'_>) -> LockAnswer;
    /// Releases a user lock once: `None` if no connection holds it, false if another connection
    /// does.
    fn release_user_lock(&self, connection: u64, name: &str) -> Option<bool>;
    /// Releases all user locks of a connection. Returns how often they had been taken in total.
    fn release_user_locks(&self, connection: u64) -> u64;
    /// The user locks of a connection, and how often each was taken.
    fn user_locks_of(&self, connection: u64) -> Vec<(String, u64)>;
    /// The connection that has a user lock.
    fn user_lock_owner(&self, name: &str) -> Option<u64>;

    /// Takes the global read lock for a connection: closes the gates of all members and waits until
    /// their writers have ended. Other connections may hold it too. Blocks.
    ///
    /// # Errors
    /// [`ServerStateError::TimedOut`], [`ServerStateError::Cancelled`]; the lock is not held then.
    fn take_read_lock(
        &self,
        connection: u64,
        patience: &Patience<'_>,
    ) -> Result<(), ServerStateError>;
    /// Releases a connection's global read lock, if it holds it.
    fn release_read_lock(&self, connection: u64);
    /// Whether a connection holds the global read lock.
    fn holds_read_lock(&self, connection: u64) -> bool;
    /// Called by a member whose gate is closed when it has no more writers.
    fn writers_ended(&self);

    /// The connections of all members that are logged in, by id.
    fn processes(&self) -> Vec<Process>;
    /// `None`: there is no such connection.
    fn process(&self, connection: u64) -> Option<Process>;
    /// Ends a connection or its statement. False if there is no such connection.
    fn kill(&self, connection: u64, scope: KillScope) -> bool;
}

/// A compute node, as the server state calls it. No call waits for a client's statement.
pub trait ServerMember: Send + Sync {
    /// Accounts have changed, which a snapshot at `since` sees: what is known of them is read again
    /// before it is used.
    fn accounts_changed(&self, since: Cts);
    /// A table has new statistics.
    fn statistics_changed(&self, table: TableId);
    /// A global variable was set. A version older than the last one set changes nothing.
    fn variable_set(&self, variable: &SharedVariable);

    /// Stops further statements from writing. Returns at once.
    fn close_gate(&self);
    fn have_writers_ended(&self) -> bool;
    /// Undoes one [`ServerMember::close_gate`].
    fn open_gate(&self);

    /// The node's connections that are logged in.
    fn processes(&self) -> Vec<Process>;
    /// `None`: there is no such connection.
    fn process(&self, connection: u64) -> Option<Process>;
    /// Ends one of its connections, or its statement. False if there is no such connection.
    fn kill(&self, connection: u64, scope: KillScope) -> bool;

    /// Another compute node has ended: removes its temporary tables and unfinished copies. Returns
    /// before that is done.
    fn clean_up_after(&self, ended: Incarnation);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incarnations_are_read_as_they_are_written() {
        let incarnation = Incarnation { node: 0x12_ab, start: u64::MAX };
        assert_eq!(incarnation.to_string(), "00000000000012ab-ffffffffffffffff");
        assert_eq!(incarnation.to_string().parse(), Ok(incarnation));
        let digits = "0".repeat(16);
        for damaged in [
            "",
            "7",
            "-",
            &digits,
            &format!("{digits}-7"),
            &format!("{digits}-+{}", &digits[1..]),
            &format!("{digits}-{}A", &digits[1..]),
            &format!("{digits}-{digits}-"),
        ] {
            assert_eq!(damaged.parse::<Incarnation>(), Err(NoIncarnation), "{damaged}");
        }
    }
}
