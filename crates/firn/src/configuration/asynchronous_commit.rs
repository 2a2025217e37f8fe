//! When sessions leave their commits to the log.

use std::fmt;
use std::str::FromStr;

/// With fewer commits in a round, the threads that wait for it are as quick as one that answers for
/// all of them, and answer side by side.
const MANY_COMMITS: u64 = 16;

/// The values of the setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AsynchronousCommit {
    Off,
    /// When many commits share a round of the log.
    Auto,
    /// Whenever another session leads the round.
    On,
}

impl AsynchronousCommit {
    /// The size of a round from which on sessions leave their commits, if they ever do.
    pub(crate) fn leave_from(self) -> Option<u64> {
        match self {
            AsynchronousCommit::Off => None,
            AsynchronousCommit::Auto => Some(MANY_COMMITS),
            AsynchronousCommit::On => Some(1),
        }
    }
}

impl fmt::Display for AsynchronousCommit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AsynchronousCommit::Off => "off",
            AsynchronousCommit::Auto => "auto",
            AsynchronousCommit::On => "on",
        })
    }
}

impl FromStr for AsynchronousCommit {
    type Err = String;

    fn from_str(text: &str) -> Result<AsynchronousCommit, String> {
        match text {
            "off" => Ok(AsynchronousCommit::Off),
            "auto" => Ok(AsynchronousCommit::Auto),
            "on" => Ok(AsynchronousCommit::On),
            _ => Err("is none of off, auto and on".to_owned()),
        }
    }
}
