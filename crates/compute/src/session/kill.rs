//! `KILL`.

use firn_sql::error::{Result, SqlError};

use super::SqlSession;
use crate::accounts::Privilege;

impl SqlSession {
    /// Ends another connection, or just its statement.
    ///
    /// # Errors
    /// 1094 if there is no such connection, 1095 if it is another account's.
    pub(crate) fn kill_connection(&mut self, id: u64, query_only: bool) -> Result<()> {
        let unknown = || SqlError::new(1094, format!("Unknown thread id: {id}"));
        let number = u32::try_from(id).map_err(|_| unknown())?;
        let victim = self.instance.session(id).ok_or_else(unknown)?;
        let may = self.grants.global.contains(Privilege::SUPER)
            || self.grants.has_dynamic("CONNECTION_ADMIN");
        let account = self.instance.accounts.get(&victim.account);
        let is_above =
            account.is_some_and(|account| account.grants.is_system()) && !self.grants.is_system();
        if (!may || is_above) && victim.account != self.facts.account {
            return Err(SqlError::new(1095, format!("You are not owner of thread {id}")));
        }
        let found = match query_only {
            true => self.connections.kill_query(number),
            false => self.connections.kill(number),
        };
        if found { Ok(()) } else { Err(unknown()) }
    }
}
