//! Maintenance of tables and of the server.

use firn_sql_types::error::Result;

use super::super::ast::{
    Flush, Histogram, MaintenanceOperation, PurgeLogs, Statement, TableMaintenance,
};
use super::super::lexer::Kind;
use super::{Parser, expression};

pub(super) fn maintenance(parser: &mut Parser<'_>) -> Result<Statement> {
    let operation =
        match parser.expect_any(&["ANALYZE", "CHECK", "CHECKSUM", "OPTIMIZE", "REPAIR"])? {
            "ANALYZE" => MaintenanceOperation::Analyze,
            "CHECK" => MaintenanceOperation::Check,
            "CHECKSUM" => MaintenanceOperation::Checksum,
            "OPTIMIZE" => MaintenanceOperation::Optimize,
            _ => MaintenanceOperation::Repair,
        };
    let local = parser.accept_any(&["LOCAL", "NO_WRITE_TO_BINLOG"]).is_some();
    parser.expect_any(&["TABLE", "TABLES"])?;
    let tables = parser.list(Parser::table_name)?;
    let histogram = histogram(parser)?;
    let options = maintenance_options(parser)?;
    let maintenance = TableMaintenance { operation, local, tables, options, histogram };
    Ok(Statement::TableMaintenance(maintenance))
}

fn maintenance_options(parser: &mut Parser<'_>) -> Result<Vec<String>> {
    let mut options = Vec::new();
    let words = ["QUICK", "FAST", "MEDIUM", "EXTENDED", "CHANGED", "USE_FRM"];
    loop {
        if parser.accept_all(&["FOR", "UPGRADE"]) {
            options.push("FOR UPGRADE".to_owned());
        } else if let Some(word) = parser.accept_any(&words) {
            options.push(word.to_owned());
        } else {
            return Ok(options);
        }
    }
}

fn histogram(parser: &mut Parser<'_>) -> Result<Option<Histogram>> {
    let drop = match parser.accept_any(&["UPDATE", "DROP"]) {
        Some(word) => word == "DROP",
        None => return Ok(None),
    };
    parser.expect_all(&["HISTOGRAM", "ON"])?;
    let columns = parser.list(Parser::ident)?;
    let mut buckets = None;
    if !drop && parser.accept("WITH") {
        buckets = Some(parser.integer()?);
        parser.expect("BUCKETS")?;
    }
    if !drop && parser.accept_any(&["MANUAL", "AUTO"]).is_some() {
        parser.expect("UPDATE")?;
    }
    Ok(Some(Histogram { drop, columns, buckets }))
}

pub(super) fn flush(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("FLUSH")?;
    let _ = parser.accept_any(&["LOCAL", "NO_WRITE_TO_BINLOG"]);
    if parser.accept_any(&["TABLES", "TABLE"]).is_some() {
        let named = parser.is_ident_at(0);
        let tables = if named { parser.list(Parser::table_name)? } else { Vec::new() };
        let with_read_lock = parser.accept_all(&["WITH", "READ", "LOCK"]);
        let for_export = parser.accept_all(&["FOR", "EXPORT"]);
        return Ok(Statement::Flush(vec![Flush::Tables { tables, with_read_lock, for_export }]));
    }
    parser.list(flushed).map(Statement::Flush)
}

fn flushed(parser: &mut Parser<'_>) -> Result<Flush> {
    let words = [
        "BINARY",
        "ENGINE",
        "ERROR",
        "GENERAL",
        "RELAY",
        "SLOW",
        "LOGS",
        "OPTIMIZER_COSTS",
        "PRIVILEGES",
        "STATUS",
        "USER_RESOURCES",
    ];
    let mut name = parser.expect_any(&words)?.to_owned();
    if matches!(name.as_str(), "BINARY" | "ENGINE" | "ERROR" | "GENERAL" | "RELAY" | "SLOW") {
        parser.expect("LOGS")?;
        name.push_str(" LOGS");
    }
    if parser.accept_all(&["FOR", "CHANNEL"]) {
        parser.ident_or_text()?;
    }
    Ok(Flush::Other(name))
}

pub(super) fn reset(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("RESET")?;
    if parser.accept("PERSIST") {
        let if_exists = parser.if_exists();
        let named = if_exists || parser.is_ident_at(0);
        let variable = if named { Some(parser.ident()?.to_ascii_lowercase()) } else { None };
        return Ok(Statement::ResetPersist { if_exists, variable });
    }
    let items = parser.list(|parser| {
        if parser.accept_all(&["BINARY", "LOGS", "AND", "GTIDS"]) {
            return Ok("BINARY LOGS AND GTIDS".to_owned());
        }
        let word = parser.expect_any(&["MASTER", "REPLICA", "SLAVE"])?;
        parser.accept("ALL");
        Ok(word.to_owned())
    })?;
    Ok(Statement::Reset(items))
}

pub(super) fn purge(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("PURGE")?;
    parser.expect_any(&["BINARY", "MASTER"])?;
    parser.expect("LOGS")?;
    Ok(Statement::PurgeBinaryLogs(match parser.expect_any(&["TO", "BEFORE"])? {
        "TO" => PurgeLogs::To(parser.string()?),
        _ => PurgeLogs::Before(expression::expression(parser)?),
    }))
}

/// Whether the statement ends here.
pub(super) fn at_end(parser: &Parser<'_>) -> bool {
    matches!(parser.kind(), Kind::End | Kind::Semicolon)
}
