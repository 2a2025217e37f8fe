//! What a statement does to the transaction and the data, judged by its text alone: for those who
//! have lost the node that ran it, and want to know whether it may be run again.

use firn_sql::grammar::ast::{Completion, Statement};
use firn_sql::grammar::{self, Mode};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementEffect {
    /// It only reads: run twice, it does no harm.
    Reads,
    /// It may write rows, and does not commit a transaction that was begun before. Outside of one
    /// it is one itself.
    Writes,
    /// Anything else that does not commit a transaction that was begun before.
    StaysInTransaction,
    /// It commits the open transaction, and does nothing else.
    Commits,
    /// It commits the open transaction and begins one; outside of one it does no harm twice.
    Begins,
    /// Anything else, and what could not be parsed.
    Other,
}

/// The effect of a text. Several statements are [`StatementEffect::Other`].
#[must_use]
pub fn effect_of(text: &[u8]) -> StatementEffect {
    let parsed = std::str::from_utf8(text).ok();
    let parsed = parsed.and_then(|text| grammar::parse(text, Mode::default()).ok());
    match parsed.map(|parsed| parsed.statement) {
        Some(Statement::Select(select)) if select.into.is_none() => StatementEffect::Reads,
        Some(Statement::Show(_) | Statement::Describe { .. }) => StatementEffect::Reads,
        Some(Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_)) => {
            StatementEffect::Writes
        }
        Some(Statement::Commit(Completion {
            chain: None | Some(false),
            release: None | Some(false),
        })) => StatementEffect::Commits,
        Some(
            Statement::Select(_)
            | Statement::Savepoint(_)
            | Statement::RollbackTo(_)
            | Statement::ReleaseSavepoint(_)
            | Statement::Rollback(_),
        ) => StatementEffect::StaysInTransaction,
        Some(Statement::Begin { .. }) => StatementEffect::Begins,
        _ => StatementEffect::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_are_those_of_the_parsed_statement() {
        for (text, effect) in [
            ("SELECT 1", StatementEffect::Reads),
            ("/* DELETE */ select * from t where a = 'INSERT' for update", StatementEffect::Reads),
            ("WITH a AS (SELECT 1) SELECT * FROM a", StatementEffect::Reads),
            ("SHOW TABLES", StatementEffect::Reads),
            ("SELECT 1 INTO @a", StatementEffect::StaysInTransaction),
            ("INSERT INTO t VALUES (?, 'COMMIT')", StatementEffect::Writes),
            ("REPLACE t SELECT * FROM u", StatementEffect::Writes),
            ("WITH a AS (SELECT 1) DELETE FROM t", StatementEffect::Writes),
            ("ROLLBACK", StatementEffect::StaysInTransaction),
            ("COMMIT", StatementEffect::Commits),
            ("COMMIT AND CHAIN", StatementEffect::Other),
            ("COMMIT RELEASE", StatementEffect::Other),
            ("BEGIN", StatementEffect::Begins),
            ("SET autocommit = 1", StatementEffect::Other),
            ("CREATE TABLE t (a INT)", StatementEffect::Other),
            ("SELECT 1; DELETE FROM t", StatementEffect::Other),
            ("no statement", StatementEffect::Other),
        ] {
            assert_eq!(effect_of(text.as_bytes()), effect, "{text}");
        }
    }
}
