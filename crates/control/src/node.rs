//! A node of the cluster: where it is, what it may do, how it is.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::identifiers::DirectoryId;

/// What a node may be used for. The order of the variants is part of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum NodeRole {
    /// Answers clients.
    Compute,
    /// Runs an engine. Where it votes in a log group, it may lead and write.
    Database,
    /// Keeps log as a voter, with pages.
    LogMember,
    /// Keeps log as a voter, without pages; never leads.
    Logger,
    /// Keeps page chunks.
    Page,
    /// Is a member of the control group.
    Control,
    /// Follows the log and answers reads.
    Replica,
    /// Has clients whose sessions other nodes run.
    Proxy,
    /// Is in a zone that follows the others: has no vote, and becomes what it can be when its zone
    /// takes over.
    Standby,
}

/// Versions of messages and files that a release speaks, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Protocols {
    pub oldest: u16,
    pub newest: u16,
}

/// A build of Firn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Release {
    pub major: u16,
    pub minor: u16,
    pub patch: u16,
    pub protocols: Protocols,
}

/// Whether the cluster hears of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Health {
    /// It was not heard yet, or is not trusted yet.
    Unknown,
    Up,
    /// Silent for a while. Nothing new is placed there, and nothing is taken from it.
    Suspected,
    /// Silent for the detection time. What it had is copied elsewhere.
    Down,
}

/// How a node is, for people: its health, unless it is about to leave or has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeState {
    Joining,
    Up,
    Suspected,
    Down,
    /// It gives away what it has, and gets nothing new.
    Draining,
    Removed,
}

/// A node as the catalog has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub name: String,
    pub directory: DirectoryId,
    /// Where the other nodes reach it, as `HOST:PORT`.
    pub address: String,
    /// Where clients reach it, if it answers any.
    pub client_address: Option<String>,
    pub roles: BTreeSet<NodeRole>,
    /// What fails together, such as a rack or a datacentre.
    pub zone: String,
    /// How many bytes of pages it has room for.
    pub capacity: u64,
    pub release: Release,
    /// How often the node has started. Reports of an earlier life are ignored.
    pub incarnation: u64,
    pub health: Health,
    /// How often it went down lately. Each time, it has to be heard for longer before it is up.
    pub flaps: u8,
    /// It leaves: nothing new is placed there, and what it has is moved elsewhere.
    pub draining: bool,
}

impl Node {
    #[must_use]
    pub fn has(&self, role: NodeRole) -> bool {
        self.roles.contains(&role)
    }

    #[must_use]
    pub fn is_up(&self) -> bool {
        self.health == Health::Up
    }

    /// Whether something new may be placed here.
    #[must_use]
    pub fn takes_more(&self) -> bool {
        self.is_up() && !self.draining
    }

    #[must_use]
    pub fn state(&self) -> NodeState {
        match self.health {
            Health::Unknown => NodeState::Joining,
            Health::Suspected => NodeState::Suspected,
            Health::Down => NodeState::Down,
            Health::Up if self.draining => NodeState::Draining,
            Health::Up => NodeState::Up,
        }
    }
}

impl Protocols {
    #[must_use]
    pub fn overlaps(self, other: Protocols) -> bool {
        self.oldest <= other.newest && other.oldest <= self.newest
    }
}

impl fmt::Display for Protocols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.oldest, self.newest)
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl fmt::Display for NodeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NodeState::Joining => "joining",
            NodeState::Up => "up",
            NodeState::Suspected => "suspected",
            NodeState::Down => "down",
            NodeState::Draining => "draining",
            NodeState::Removed => "removed",
        })
    }
}

impl fmt::Display for NodeRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NodeRole::Compute => "compute",
            NodeRole::Database => "database",
            NodeRole::LogMember => "log",
            NodeRole::Logger => "logger",
            NodeRole::Page => "page",
            NodeRole::Control => "control",
            NodeRole::Replica => "replica",
            NodeRole::Proxy => "proxy",
            NodeRole::Standby => "standby",
        })
    }
}
