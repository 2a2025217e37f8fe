//! Transactions, `XA`, table locks.

use firn_sql_types::error::Result;

use super::super::ast::{
    AccessMode, Begin, Completion, IsolationLevel, SetTransaction, Statement, TableLock,
    TableLockKind, TransactionScope, Xa, Xid,
};
use super::super::lexer::{Kind, unquote};
use super::Parser;

pub(super) fn transaction_statement(parser: &mut Parser<'_>) -> Result<Statement> {
    match parser.upper().as_str() {
        "BEGIN" => {
            parser.at += 1;
            parser.accept("WORK");
            Ok(Statement::Begin(Begin::default()))
        }
        "START" => start(parser),
        "COMMIT" => {
            parser.at += 1;
            parser.accept("WORK");
            completion(parser).map(Statement::Commit)
        }
        "ROLLBACK" => rollback(parser),
        "SAVEPOINT" => {
            parser.at += 1;
            parser.ident().map(Statement::Savepoint)
        }
        "RELEASE" => {
            parser.expect_all(&["RELEASE", "SAVEPOINT"])?;
            parser.ident().map(Statement::ReleaseSavepoint)
        }
        "XA" => xa(parser).map(Statement::Xa),
        "LOCK" => lock(parser),
        _ => unlock(parser),
    }
}

fn start(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("START")?;
    if parser.is_any(&["REPLICA", "SLAVE", "GROUP_REPLICATION"]) {
        return Ok(Statement::Unsupported { what: "START REPLICA" });
    }
    parser.expect("TRANSACTION")?;
    let mut begin = Begin::default();
    if parser.is("WITH") || parser.is("READ") {
        parser.list(|parser| characteristic(parser, &mut begin))?;
    }
    Ok(Statement::Begin(begin))
}

fn characteristic(parser: &mut Parser<'_>, begin: &mut Begin) -> Result<()> {
    if parser.accept("WITH") {
        begin.consistent_snapshot = true;
        return parser.expect_all(&["CONSISTENT", "SNAPSHOT"]);
    }
    begin.access = Some(access_mode(parser)?);
    Ok(())
}

fn access_mode(parser: &mut Parser<'_>) -> Result<AccessMode> {
    parser.expect("READ")?;
    Ok(match parser.expect_any(&["ONLY", "WRITE"])? {
        "ONLY" => AccessMode::ReadOnly,
        _ => AccessMode::ReadWrite,
    })
}

fn completion(parser: &mut Parser<'_>) -> Result<Completion> {
    let mut completion = Completion::default();
    if parser.accept("AND") {
        completion.chain = Some(!parser.accept("NO"));
        parser.expect("CHAIN")?;
    }
    if parser.are(&["NO", "RELEASE"]) || parser.is("RELEASE") {
        let release = !parser.accept("NO");
        if release && completion.chain == Some(true) {
            return parser.error();
        }
        completion.release = Some(release);
        parser.expect("RELEASE")?;
    }
    Ok(completion)
}

fn rollback(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("ROLLBACK")?;
    parser.accept("WORK");
    if parser.accept("TO") {
        parser.accept("SAVEPOINT");
        return parser.ident().map(Statement::RollbackTo);
    }
    completion(parser).map(Statement::Rollback)
}

/// After `SET [GLOBAL | SESSION] TRANSACTION`.
pub(super) fn set_transaction(
    parser: &mut Parser<'_>,
    scope: TransactionScope,
) -> Result<Statement> {
    let mut set = SetTransaction { scope, isolation: None, access: None };
    parser.list(|parser| {
        if parser.is("ISOLATION") && set.isolation.is_none() {
            parser.expect_all(&["ISOLATION", "LEVEL"])?;
            set.isolation = Some(isolation_level(parser)?);
        } else if parser.is("READ") && set.access.is_none() {
            set.access = Some(access_mode(parser)?);
        } else {
            return parser.error();
        }
        Ok(())
    })?;
    Ok(Statement::SetTransaction(set))
}

fn isolation_level(parser: &mut Parser<'_>) -> Result<IsolationLevel> {
    if parser.accept("SERIALIZABLE") {
        return Ok(IsolationLevel::Serializable);
    }
    if parser.accept("REPEATABLE") {
        return parser.expect("READ").map(|()| IsolationLevel::RepeatableRead);
    }
    parser.expect("READ")?;
    Ok(match parser.expect_any(&["COMMITTED", "UNCOMMITTED"])? {
        "COMMITTED" => IsolationLevel::ReadCommitted,
        _ => IsolationLevel::ReadUncommitted,
    })
}

fn xa(parser: &mut Parser<'_>) -> Result<Xa> {
    parser.expect("XA")?;
    let words = ["START", "BEGIN", "END", "PREPARE", "COMMIT", "ROLLBACK", "RECOVER"];
    let word = parser.expect_any(&words)?;
    if word == "RECOVER" {
        let convert_xid = parser.accept_all(&["CONVERT", "XID"]);
        return Ok(Xa::Recover { convert_xid });
    }
    let xid = xid(parser)?;
    Ok(match word {
        "END" => {
            let suspend = parser.accept("SUSPEND");
            let for_migrate = suspend && parser.accept_all(&["FOR", "MIGRATE"]);
            Xa::End { xid, suspend, for_migrate }
        }
        "PREPARE" => Xa::Prepare(xid),
        "COMMIT" => Xa::Commit { xid, one_phase: parser.accept_all(&["ONE", "PHASE"]) },
        "ROLLBACK" => Xa::Rollback(xid),
        _ => {
            let join = parser.accept("JOIN");
            Xa::Start { xid, join, resume: !join && parser.accept("RESUME") }
        }
    })
}

fn xid(parser: &mut Parser<'_>) -> Result<Xid> {
    let global = byte_string(parser)?;
    let mut xid = Xid { global, branch: Vec::new(), format: 1 };
    if parser.take(Kind::Comma) {
        xid.branch = byte_string(parser)?;
        if parser.take(Kind::Comma) {
            xid.format = format_of_xid(parser)?;
        }
    }
    Ok(xid)
}

/// A number, in hexadecimal too.
fn format_of_xid(parser: &mut Parser<'_>) -> Result<u64> {
    if parser.kind() != Kind::Hex {
        return parser.integer();
    }
    let bytes = byte_string(parser)?;
    let number = bytes.iter().try_fold(0_u64, |number, byte| {
        number.checked_mul(256).map(|number| number | u64::from(*byte))
    });
    number.map_or_else(|| parser.error(), Ok)
}

/// A string, or bytes in hexadecimal or binary.
pub(super) fn byte_string(parser: &mut Parser<'_>) -> Result<Vec<u8>> {
    let token = parser.token(0);
    let written = parser.text_of(token);
    let bytes = match token.kind {
        Kind::Text => unquote(written, !parser.mode.no_backslash_escapes).into_bytes(),
        Kind::Hex => digits(written, 16, 2),
        Kind::Bits => digits(written, 2, 8),
        _ => return parser.error(),
    };
    parser.at += 1;
    Ok(bytes)
}

fn lock(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("LOCK")?;
    if parser.accept_all(&["INSTANCE", "FOR", "BACKUP"]) {
        return Ok(Statement::LockInstance);
    }
    parser.expect_any(&["TABLES", "TABLE"])?;
    parser.list(table_lock).map(Statement::LockTables)
}

fn table_lock(parser: &mut Parser<'_>) -> Result<TableLock> {
    let table = parser.table_name()?;
    let named = parser.accept("AS") || parser.is_ident_at(0);
    let alias = if named { Some(parser.ident()?) } else { None };
    let low_priority = parser.accept("LOW_PRIORITY");
    let kind = match parser.expect_any(&["READ", "WRITE"])? {
        "READ" if low_priority => return parser.error(),
        "READ" if parser.accept("LOCAL") => TableLockKind::ReadLocal,
        "READ" => TableLockKind::Read,
        _ => TableLockKind::Write,
    };
    Ok(TableLock { table, alias, kind })
}

fn unlock(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("UNLOCK")?;
    if parser.accept("INSTANCE") {
        return Ok(Statement::UnlockInstance);
    }
    parser.expect_any(&["TABLES", "TABLE"])?;
    Ok(Statement::UnlockTables)
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
