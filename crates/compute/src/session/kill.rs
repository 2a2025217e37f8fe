//! `KILL`.

use firn_api::server::KillScope;
use firn_sql::error::{Result, SqlError};

use super::rights::Rights;
use crate::accounts::{AccountName, Privilege};
use crate::instance::Instance;

/// Ends another connection, or just its statement.
///
/// # Errors
/// 1094 if there is no such connection, 1095 if it belongs to another account.
pub(super) fn kill(instance: &Instance, rights: &Rights, id: u64, scope: KillScope) -> Result<()> {
    let unknown = || SqlError::new(1094, format!("Unknown thread id: {id}"));
    let victim = instance.server.process(id).ok_or_else(unknown)?;
    let (user, host) = &victim.account;
    let victim = AccountName::new(user, host);
    let may = rights.grants.global.contains(Privilege::SUPER)
        || rights.grants.has_dynamic("CONNECTION_ADMIN");
    let account = instance.accounts.get(&victim);
    let is_above =
        account.is_some_and(|account| account.grants.is_system()) && !rights.grants.is_system();
    if (!may || is_above) && victim != rights.account.name {
        return Err(SqlError::new(1095, format!("You are not owner of thread {id}")));
    }
    if instance.server.kill(id, scope) { Ok(()) } else { Err(unknown()) }
}
