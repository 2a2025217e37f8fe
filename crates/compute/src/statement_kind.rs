//! The kinds of statements that have a plan.

/// The kind of a plan's statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementKind {
    /// `SELECT` and the like.
    Select,
    /// `SELECT … FOR UPDATE`: a read that locks as for a change.
    LockingSelect,
    Insert,
    Replace,
    Update,
    Delete,
}

impl StatementKind {
    #[must_use]
    pub fn writes(self) -> bool {
        !matches!(self, StatementKind::Select | StatementKind::LockingSelect)
    }

    /// Whether the client learns an `AUTO_INCREMENT` value.
    #[must_use]
    pub fn tells_ids(self) -> bool {
        matches!(self, StatementKind::Insert | StatementKind::Replace | StatementKind::Update)
    }

    fn word(self) -> &'static str {
        match self {
            StatementKind::Select | StatementKind::LockingSelect => "SELECT",
            StatementKind::Insert => "INSERT",
            StatementKind::Replace => "REPLACE",
            StatementKind::Update => "UPDATE",
            StatementKind::Delete => "DELETE",
        }
    }
}

impl std::fmt::Display for StatementKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}
