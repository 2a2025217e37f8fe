//! Transactions, `XA`, table locks.

use firn_sql_types::error::Result;

use super::super::ast::{
    AccessMode, Begin, Completion, IsolationLevel, SetTransaction, Statement, TableLock,
    TableLockKind, TransactionScope, Xa, Xid,
};
use super::super::lexer::{Kind, unquote};
use super::Parser;

impl Parser<'_> {
    pub(super) fn transaction_statement(&mut self) -> Result<Statement> {
        match self.upper().as_str() {
            "BEGIN" => {
                self.at += 1;
                self.accept("WORK");
                Ok(Statement::Begin(Begin::default()))
            }
            "START" => self.start(),
            "COMMIT" => {
                self.at += 1;
                self.accept("WORK");
                self.completion().map(Statement::Commit)
            }
            "ROLLBACK" => self.rollback(),
            "SAVEPOINT" => {
                self.at += 1;
                self.ident().map(Statement::Savepoint)
            }
            "RELEASE" => {
                self.expect_all(&["RELEASE", "SAVEPOINT"])?;
                self.ident().map(Statement::ReleaseSavepoint)
            }
            "XA" => self.xa().map(Statement::Xa),
            "LOCK" => self.lock(),
            _ => self.unlock(),
        }
    }

    fn start(&mut self) -> Result<Statement> {
        self.expect("START")?;
        if self.is_any(&["REPLICA", "SLAVE", "GROUP_REPLICATION"]) {
            return Ok(Statement::Unsupported { what: "START REPLICA" });
        }
        self.expect("TRANSACTION")?;
        let mut begin = Begin::default();
        if self.is("WITH") || self.is("READ") {
            self.list(|p| p.characteristic(&mut begin))?;
        }
        Ok(Statement::Begin(begin))
    }

    fn characteristic(&mut self, begin: &mut Begin) -> Result<()> {
        if self.accept("WITH") {
            begin.consistent_snapshot = true;
            return self.expect_all(&["CONSISTENT", "SNAPSHOT"]);
        }
        begin.access = Some(self.access_mode()?);
        Ok(())
    }

    fn access_mode(&mut self) -> Result<AccessMode> {
        self.expect("READ")?;
        Ok(match self.expect_any(&["ONLY", "WRITE"])? {
            "ONLY" => AccessMode::ReadOnly,
            _ => AccessMode::ReadWrite,
        })
    }

    fn completion(&mut self) -> Result<Completion> {
        let mut completion = Completion::default();
        if self.accept("AND") {
            completion.chain = Some(!self.accept("NO"));
            self.expect("CHAIN")?;
        }
        if self.are(&["NO", "RELEASE"]) || self.is("RELEASE") {
            let release = !self.accept("NO");
            if release && completion.chain == Some(true) {
                return self.error();
            }
            completion.release = Some(release);
            self.expect("RELEASE")?;
        }
        Ok(completion)
    }

    fn rollback(&mut self) -> Result<Statement> {
        self.expect("ROLLBACK")?;
        self.accept("WORK");
        if self.accept("TO") {
            self.accept("SAVEPOINT");
            return self.ident().map(Statement::RollbackTo);
        }
        self.completion().map(Statement::Rollback)
    }

    /// After `SET [GLOBAL | SESSION] TRANSACTION`.
    pub(super) fn set_transaction(&mut self, scope: TransactionScope) -> Result<Statement> {
        let mut set = SetTransaction { scope, isolation: None, access: None };
        self.list(|p| {
            if p.is("ISOLATION") && set.isolation.is_none() {
                p.expect_all(&["ISOLATION", "LEVEL"])?;
                set.isolation = Some(p.isolation_level()?);
            } else if p.is("READ") && set.access.is_none() {
                set.access = Some(p.access_mode()?);
            } else {
                return p.error();
            }
            Ok(())
        })?;
        Ok(Statement::SetTransaction(set))
    }

    fn isolation_level(&mut self) -> Result<IsolationLevel> {
        if self.accept("SERIALIZABLE") {
            return Ok(IsolationLevel::Serializable);
        }
        if self.accept("REPEATABLE") {
            return self.expect("READ").map(|()| IsolationLevel::RepeatableRead);
        }
        self.expect("READ")?;
        Ok(match self.expect_any(&["COMMITTED", "UNCOMMITTED"])? {
            "COMMITTED" => IsolationLevel::ReadCommitted,
            _ => IsolationLevel::ReadUncommitted,
        })
    }

    fn xa(&mut self) -> Result<Xa> {
        self.expect("XA")?;
        let words = ["START", "BEGIN", "END", "PREPARE", "COMMIT", "ROLLBACK", "RECOVER"];
        let word = self.expect_any(&words)?;
        if word == "RECOVER" {
            let convert_xid = self.accept_all(&["CONVERT", "XID"]);
            return Ok(Xa::Recover { convert_xid });
        }
        let xid = self.xid()?;
        Ok(match word {
            "END" => {
                let suspend = self.accept("SUSPEND");
                let for_migrate = suspend && self.accept_all(&["FOR", "MIGRATE"]);
                Xa::End { xid, suspend, for_migrate }
            }
            "PREPARE" => Xa::Prepare(xid),
            "COMMIT" => Xa::Commit { xid, one_phase: self.accept_all(&["ONE", "PHASE"]) },
            "ROLLBACK" => Xa::Rollback(xid),
            _ => {
                let join = self.accept("JOIN");
                Xa::Start { xid, join, resume: !join && self.accept("RESUME") }
            }
        })
    }

    fn xid(&mut self) -> Result<Xid> {
        let global = self.byte_string()?;
        let mut xid = Xid { global, branch: Vec::new(), format: 1 };
        if self.take(Kind::Comma) {
            xid.branch = self.byte_string()?;
            if self.take(Kind::Comma) {
                xid.format = self.format_of_xid()?;
            }
        }
        Ok(xid)
    }

    /// A number, in hexadecimal too.
    fn format_of_xid(&mut self) -> Result<u64> {
        if self.kind() != Kind::Hex {
            return self.integer();
        }
        let bytes = self.byte_string()?;
        let number = bytes.iter().try_fold(0_u64, |number, byte| {
            number.checked_mul(256).map(|number| number | u64::from(*byte))
        });
        number.map_or_else(|| self.error(), Ok)
    }

    /// A string, or bytes in hexadecimal or binary.
    pub(super) fn byte_string(&mut self) -> Result<Vec<u8>> {
        let token = self.token(0);
        let written = self.text_of(token);
        let bytes = match token.kind {
            Kind::Text => unquote(written, !self.mode.no_backslash_escapes).into_bytes(),
            Kind::Hex => digits(written, 16, 2),
            Kind::Bits => digits(written, 2, 8),
            _ => return self.error(),
        };
        self.at += 1;
        Ok(bytes)
    }

    fn lock(&mut self) -> Result<Statement> {
        self.expect("LOCK")?;
        if self.accept_all(&["INSTANCE", "FOR", "BACKUP"]) {
            return Ok(Statement::LockInstance);
        }
        self.expect_any(&["TABLES", "TABLE"])?;
        self.list(Self::table_lock).map(Statement::LockTables)
    }

    fn table_lock(&mut self) -> Result<TableLock> {
        let table = self.table_name()?;
        let named = self.accept("AS") || self.is_ident_at(0);
        let alias = if named { Some(self.ident()?) } else { None };
        let low_priority = self.accept("LOW_PRIORITY");
        let kind = match self.expect_any(&["READ", "WRITE"])? {
            "READ" if low_priority => return self.error(),
            "READ" if self.accept("LOCAL") => TableLockKind::ReadLocal,
            "READ" => TableLockKind::Read,
            _ => TableLockKind::Write,
        };
        Ok(TableLock { table, alias, kind })
    }

    fn unlock(&mut self) -> Result<Statement> {
        self.expect("UNLOCK")?;
        if self.accept("INSTANCE") {
            return Ok(Statement::UnlockInstance);
        }
        self.expect_any(&["TABLES", "TABLE"])?;
        Ok(Statement::UnlockTables)
    }
}

/// The bytes of `0x…`, `x'…'`, `0b…` or `b'…'`; missing digits are leading zeros.
fn digits(written: &str, radix: u32, per_byte: usize) -> Vec<u8> {
    let digits = written[2..].trim_end_matches('\'').as_bytes();
    let bytes = digits.rchunks(per_byte).map(|chunk| {
        let value = chunk.iter().filter_map(|digit| char::from(*digit).to_digit(radix));
        value.fold(0, |byte, digit| byte * radix + digit) as u8
    });
    let mut bytes: Vec<u8> = bytes.collect();
    bytes.reverse();
    bytes
}
