//! Maintenance of tables and of the server.

use firn_sql_types::error::Result;

use super::super::ast::{
    Flush, Histogram, MaintenanceOperation, PurgeLogs, Statement, TableMaintenance,
};
use super::super::lexer::Kind;
use super::Parser;

impl Parser<'_> {
    pub(super) fn maintenance(&mut self) -> Result<Statement> {
        let operation =
            match self.expect_any(&["ANALYZE", "CHECK", "CHECKSUM", "OPTIMIZE", "REPAIR"])? {
                "ANALYZE" => MaintenanceOperation::Analyze,
                "CHECK" => MaintenanceOperation::Check,
                "CHECKSUM" => MaintenanceOperation::Checksum,
                "OPTIMIZE" => MaintenanceOperation::Optimize,
                _ => MaintenanceOperation::Repair,
            };
        let local = self.accept_any(&["LOCAL", "NO_WRITE_TO_BINLOG"]).is_some();
        self.expect_any(&["TABLE", "TABLES"])?;
        let tables = self.list(Self::table_name)?;
        let histogram = self.histogram()?;
        let options = self.maintenance_options()?;
        let maintenance = TableMaintenance { operation, local, tables, options, histogram };
        Ok(Statement::TableMaintenance(maintenance))
    }

    fn maintenance_options(&mut self) -> Result<Vec<String>> {
        let mut options = Vec::new();
        let words = ["QUICK", "FAST", "MEDIUM", "EXTENDED", "CHANGED", "USE_FRM"];
        loop {
            if self.accept_all(&["FOR", "UPGRADE"]) {
                options.push("FOR UPGRADE".to_owned());
            } else if let Some(word) = self.accept_any(&words) {
                options.push(word.to_owned());
            } else {
                return Ok(options);
            }
        }
    }

    fn histogram(&mut self) -> Result<Option<Histogram>> {
        let drop = match self.accept_any(&["UPDATE", "DROP"]) {
            Some(word) => word == "DROP",
            None => return Ok(None),
        };
        self.expect_all(&["HISTOGRAM", "ON"])?;
        let columns = self.list(Self::ident)?;
        let mut buckets = None;
        if !drop && self.accept("WITH") {
            buckets = Some(self.integer()?);
            self.expect("BUCKETS")?;
        }
        if !drop && self.accept_any(&["MANUAL", "AUTO"]).is_some() {
            self.expect("UPDATE")?;
        }
        Ok(Some(Histogram { drop, columns, buckets }))
    }

    pub(super) fn flush(&mut self) -> Result<Statement> {
        self.expect("FLUSH")?;
        let _ = self.accept_any(&["LOCAL", "NO_WRITE_TO_BINLOG"]);
        if self.accept_any(&["TABLES", "TABLE"]).is_some() {
            let named = self.is_ident_at(0);
            let tables = if named { self.list(Self::table_name)? } else { Vec::new() };
            let with_read_lock = self.accept_all(&["WITH", "READ", "LOCK"]);
            let for_export = self.accept_all(&["FOR", "EXPORT"]);
            return Ok(Statement::Flush(vec![Flush::Tables {
                tables,
                with_read_lock,
                for_export,
            }]));
        }
        self.list(Self::flushed).map(Statement::Flush)
    }

    fn flushed(&mut self) -> Result<Flush> {
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
        let mut name = self.expect_any(&words)?.to_owned();
        if matches!(name.as_str(), "BINARY" | "ENGINE" | "ERROR" | "GENERAL" | "RELAY" | "SLOW") {
            self.expect("LOGS")?;
            name.push_str(" LOGS");
        }
        if self.accept_all(&["FOR", "CHANNEL"]) {
            self.ident_or_text()?;
        }
        Ok(Flush::Other(name))
    }

    pub(super) fn reset(&mut self) -> Result<Statement> {
        self.expect("RESET")?;
        if self.accept("PERSIST") {
            let if_exists = self.if_exists();
            let named = if_exists || self.is_ident_at(0);
            let variable = if named { Some(self.ident()?.to_ascii_lowercase()) } else { None };
            return Ok(Statement::ResetPersist { if_exists, variable });
        }
        let items = self.list(|p| {
            if p.accept_all(&["BINARY", "LOGS", "AND", "GTIDS"]) {
                return Ok("BINARY LOGS AND GTIDS".to_owned());
            }
            let word = p.expect_any(&["MASTER", "REPLICA", "SLAVE"])?;
            p.accept("ALL");
            Ok(word.to_owned())
        })?;
        Ok(Statement::Reset(items))
    }

    pub(super) fn purge(&mut self) -> Result<Statement> {
        self.expect("PURGE")?;
        self.expect_any(&["BINARY", "MASTER"])?;
        self.expect("LOGS")?;
        Ok(Statement::PurgeBinaryLogs(match self.expect_any(&["TO", "BEFORE"])? {
            "TO" => PurgeLogs::To(self.string()?),
            _ => PurgeLogs::Before(self.expression()?),
        }))
    }

    /// Whether the statement ends here.
    pub(super) fn at_end(&self) -> bool {
        matches!(self.kind(), Kind::End | Kind::Semicolon)
    }
}
