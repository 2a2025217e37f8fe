//! `KILL`.

use firn_api::server::KillScope;
use firn_sql::error::{Result, SqlError};

use super::SqlSession;
use crate::accounts::{AccountName, Privilege};

impl SqlSession {
    /// Ends another connection, or just its statement.
    ///
    /// # Errors
    /// 1094 if there is no such connection, 1095 if it belongs to another account.
    pub(crate) fn kill_connection(&mut self, id: u64, query_only: bool) -> Result<()> {
        let unknown = || SqlError::new(1094, format!("Unknown thread id: {id}"));
        let victim = self.instance.server.process(id).ok_or_else(unknown)?;
        let (user, host) = &victim.account;
        let victim = AccountName::new(user, host);
        let may = self.rights.grants.global.contains(Privilege::SUPER)
            || self.rights.grants.has_dynamic("CONNECTION_ADMIN");
        let account = self.instance.accounts.get(&victim);
        let is_above = account.is_some_and(|account| account.grants.is_system())
            && !self.rights.grants.is_system();
        if (!may || is_above) && victim != self.facts.account {
            return Err(SqlError::new(1095, format!("You are not owner of thread {id}")));
        }
        let scope = if query_only { KillScope::Statement } else { KillScope::Connection };
        if self.instance.server.kill(id, scope) { Ok(()) } else { Err(unknown()) }
    }
}
