//! Who a process of a cluster is.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The length of the longest name of a node in bytes.
pub const MAX_NAME_BYTES: usize = 63;

/// A cluster, drawn at random when its first node is set up. 0 is no cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClusterId(pub u128);

/// A node of a cluster, unique within it for ever.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct NodeId(pub u64);

/// What a process does for its cluster. The number is the bit in [`Roles`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Serves clients and runs statements.
    Compute = 0,
    /// Runs the storage engine.
    Database = 1,
    /// Is a member of log groups.
    Log = 2,
    /// Makes pages of the log and serves them.
    Pages = 3,
    /// Decides who is in the cluster and what lies where.
    Control = 4,
    /// Follows the log and answers reads.
    Replica = 5,
    /// Has clients whose sessions other nodes run.
    Proxy = 6,
}

/// A set of roles. Bits that this release does not know are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Roles(pub u32);

/// Who a process says it is, or who its certificate says it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeIdentity {
    pub cluster: ClusterId,
    pub node: NodeId,
    /// For people; see [`is_node_name`].
    pub name: String,
    pub roles: Roles,
}

/// The text is not what its type is written as.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not {expected}")]
pub struct NotAnIdentity {
    pub text: String,
    pub expected: &'static str,
}

/// Whether a text can be the name of a node: 1 to 63 letters, digits, `.`, `_` and `-` of ASCII,
/// with a letter or digit in front.
#[must_use]
pub fn is_node_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    text.len() <= MAX_NAME_BYTES
        && text.bytes().all(allowed)
        && text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterId({self})")
    }
}

impl FromStr for ClusterId {
    type Err = NotAnIdentity;

    fn from_str(text: &str) -> Result<ClusterId, NotAnIdentity> {
        let is_hexadecimal = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = is_hexadecimal.then(|| u128::from_str_radix(text, 16).ok()).flatten();
        number.map(ClusterId).ok_or_else(|| NotAnIdentity {
            text: text.to_owned(),
            expected: "a cluster id of 32 hexadecimal digits",
        })
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Role {
    pub const ALL: [Role; 7] = [
        Role::Compute,
        Role::Database,
        Role::Log,
        Role::Pages,
        Role::Control,
        Role::Replica,
        Role::Proxy,
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Role::Compute => "compute",
            Role::Database => "database",
            Role::Log => "log",
            Role::Pages => "pages",
            Role::Control => "control",
            Role::Replica => "replica",
            Role::Proxy => "proxy",
        }
    }
}

impl Roles {
    #[must_use]
    pub fn of(roles: &[Role]) -> Roles {
        Roles(roles.iter().fold(0, |bits, role| bits | 1 << *role as u32))
    }

    #[must_use]
    pub fn has(self, role: Role) -> bool {
        self.0 & (1 << role as u32) != 0
    }
}

impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Role::ALL.into_iter().filter(|role| self.has(*role)).map(Role::name);
        f.write_str(&names.collect::<Vec<_>>().join("+"))
    }
}

impl FromStr for Roles {
    type Err = NotAnIdentity;

    fn from_str(text: &str) -> Result<Roles, NotAnIdentity> {
        let role = |name: &str| Role::ALL.into_iter().find(|role| role.name() == name);
        let roles = match text {
            "" => Some(Vec::new()),
            text => text.split('+').map(role).collect::<Option<Vec<_>>>(),
        };
        roles.map(|roles| Roles::of(&roles)).ok_or_else(|| NotAnIdentity {
            text: text.to_owned(),
            expected: "roles; join compute, database, log, pages, control, replica and proxy by '+'",
        })
    }
}

impl fmt::Display for NodeIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} ({}) of cluster {}", self.node, self.name, self.cluster)
    }
}
