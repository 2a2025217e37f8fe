//! `FLUSH`.

use firn_sql::error::Result;
use firn_sql::grammar::ast;

use super::permission::Permission;
use super::runner::StatementRunner;
use super::table_locks::TableLockStatements;

/// Runs `FLUSH` in a session.
pub(super) struct FlushStatements<'s> {
    pub(super) runner: &'s mut StatementRunner,
}

impl FlushStatements<'_> {
    /// `FLUSH`
    ///
    /// # Errors
    /// 1227 without the privilege, 1205 and 1317 for locks that were not granted.
    pub(super) fn run_flush(&mut self, what: &[ast::Flush]) -> Result<()> {
        for one in what {
            self.may_flush(one)?;
        }
        for one in what {
            match one {
                ast::Flush::Tables { tables, with_read_lock: true, .. } if tables.is_empty() => {
                    self.runner.transactions.commit()?;
                    return Permission::of(self.runner).take_read_lock();
                }
                ast::Flush::Tables { tables, with_read_lock, for_export }
                    if *with_read_lock || *for_export =>
                {
                    let lock = |table: &ast::TableName| ast::TableLock {
                        table: table.clone(),
                        alias: None,
                        kind: ast::TableLockKind::Read,
                    };
                    let locks: Vec<_> = tables.iter().map(lock).collect();
                    return TableLockStatements { runner: self.runner }.run_lock_tables(&locks);
                }
                ast::Flush::Tables { .. } => self.runner.instance.plans.clear(),
                ast::Flush::Other(what) => self.flush_other(what),
            }
        }
        self.runner.transactions.commit()
    }

    /// `RELOAD` lets an account flush anything; each other privilege is for one kind.
    fn may_flush(&self, what: &ast::Flush) -> Result<()> {
        let own = match what {
            ast::Flush::Tables { .. } => Some("FLUSH_TABLES"),
            ast::Flush::Other(what) => match what.as_str() {
                "STATUS" => Some("FLUSH_STATUS"),
                "PRIVILEGES" => Some("FLUSH_PRIVILEGES"),
                "USER_RESOURCES" => Some("FLUSH_USER_RESOURCES"),
                "OPTIMIZER_COSTS" => Some("FLUSH_OPTIMIZER_COSTS"),
                _ => None,
            },
        };
        match own {
            Some(own) => {
                self.runner.rights.require_one_of(&["RELOAD", own], &format!("RELOAD or {own}"))
            }
            None => self.runner.rights.require_one_of(&["RELOAD"], "RELOAD"),
        }
    }

    /// Objects other than tables that have an effect here.
    fn flush_other(&self, what: &str) {
        let StatementRunner { instance, facts, state, .. } = &*self.runner;
        match what {
            "USER_RESOURCES" => instance.usage.forget_hours(),
            "STATUS" => instance.flush_status(facts, state.connections()),
            what if what.ends_with("LOGS") => instance.logs.reopen(),
            _ => {}
        }
    }
}
