//! What sessions do, for somebody who waits until they do nothing.

/// The activity of some sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Activity {
    /// Changes with each command that begins, and with each session that is opened.
    pub mark: u64,
    /// Whether a command runs, or a session has an open transaction or what ends with it, such as
    /// temporary tables and locks.
    pub is_busy: bool,
}

impl Activity {
    /// The activity of these sessions and of others.
    #[must_use]
    pub fn and(self, other: Activity) -> Activity {
        Activity {
            mark: self.mark.wrapping_add(other.mark),
            is_busy: self.is_busy || other.is_busy,
        }
    }
}
