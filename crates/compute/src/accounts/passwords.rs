//! New passwords: which users may choose them, and which are allowed.

use std::sync::Arc;

use firn_sql::error::{Result, SqlError};
use firn_sql::grammar::ast::{Authentication, Proof, SetPassword, UserDefinition};

use super::account::{Account, AccountName};
use super::policy::FormerPassword;
use super::privilege::Privilege;
use super::statements::AccountContext;

/// The characters of generated passwords.
const PASSWORD_SIGNS: &[u8] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&()*+,-./:;<=>?@[]^_{|}~";
/// The most former passwords that are kept.
const KEPT_PASSWORDS: usize = 1000;

impl AccountContext<'_> {
    /// Sets how an account is authenticated.
    pub(super) fn authenticate(&self, account: &mut Account, user: &UserDefinition) -> Result<()> {
        let Some(given) = &user.authentication else { return Ok(()) };
        if given.retain_current {
            return Err(SqlError::not_supported("RETAIN CURRENT PASSWORD"));
        }
        self.judge_current(account, given)?;
        let former = present(account, self.now_s);
        if let Some(plugin) = &given.plugin {
            account.plugin = plugin.to_ascii_lowercase();
        }
        if (self.hash)(&account.plugin, "").is_none() {
            let message = format!("Plugin '{}' is not loaded", account.plugin);
            return Err(SqlError::new(1524, message));
        }
        match &given.proof {
            Proof::None => account.authentication.clear(),
            Proof::Password(password) => self.set_password(account, password, former)?,
            Proof::RandomPassword => {
                let password = self.make_password(&account.name);
                self.set_password(account, &password, former)?;
            }
            Proof::Hash(hash) => {
                let hash = String::from_utf8(hash.clone());
                let hash = hash.map_err(|_| {
                    SqlError::new(1827, "The password hash doesn't have the expected format.")
                })?;
                account.authentication = hash;
            }
        }
        account.policy.changed_s = Some(self.now_s);
        account.expired = false;
        Ok(())
    }

    fn judge_current(&self, account: &Account, given: &Authentication) -> Result<()> {
        let is_password = matches!(given.proof, Proof::Password(_) | Proof::RandomPassword);
        match is_password || given.current_password.is_some() {
            true => self.judge_replaced(account, given.current_password.as_deref()),
            false => Ok(()),
        }
    }

    /// Whether the current password was given where it is required, and is correct.
    fn judge_replaced(&self, account: &Account, said: Option<&str>) -> Result<()> {
        if account.name != *self.current {
            return match said {
                None => Ok(()),
                Some(_) => Err(SqlError::new(
                    3893,
                    "Do not specify the current password while changing it for other users.",
                )),
            };
        }
        let administers = self.grants.global.contains(Privilege::CREATE_USER)
            || self.grants.on_schema("mysql").contains(Privilege::UPDATE);
        let required = account.policy.requires_current.unwrap_or(self.defaults.requires_current);
        match said {
            Some(said) if (self.proves)(&account.plugin, said, &account.authentication) => Ok(()),
            Some(_) => Err(SqlError::new(
                3891,
                "Incorrect current password. Specify the correct password which has to be replaced.",
            )),
            None if required && !administers && !account.authentication.is_empty() => {
                Err(SqlError::new(
                    3892,
                    "Current password needs to be specified in the REPLACE clause in order to change it.",
                ))
            }
            None => Ok(()),
        }
    }

    /// A password of random letters, digits and signs.
    fn make_password(&self, name: &AccountName) -> String {
        let sign = || loop {
            let number = (self.random)() as usize & 127;
            if let Some(sign) = PASSWORD_SIGNS.get(number) {
                return char::from(*sign);
            }
        };
        let password: String = (0..self.password_length).map(|_| sign()).collect();
        self.made.borrow_mut().push((name.clone(), password.clone()));
        password
    }

    /// Sets a password that is not one of the last ones.
    fn set_password(
        &self,
        account: &mut Account,
        password: &str,
        former: Option<FormerPassword>,
    ) -> Result<()> {
        let proves = |former: &FormerPassword| {
            (self.proves)(&former.plugin, password, &former.authentication)
        };
        let policy = &account.policy;
        let is_present =
            former.as_ref().is_some_and(proves) && policy.bars_present(self.defaults, self.now_s);
        if is_present || policy.barred(self.defaults, self.now_s).any(proves) {
            let message = format!(
                "Cannot use these credentials for '{}' because they contradict the password history policy",
                account.name
            );
            return Err(SqlError::new(3638, message));
        }
        let hashed = (self.hash)(&account.plugin, password);
        account.authentication = hashed.ok_or_else(|| {
            SqlError::new(1524, format!("Plugin '{}' is not loaded", account.plugin))
        })?;
        let keeps = |own: Option<u64>, default: u64| own.unwrap_or(default) > 0;
        let policy = &mut account.policy;
        if keeps(policy.history, self.defaults.history)
            || keeps(policy.reuse_days, self.defaults.reuse_days)
        {
            if let Some(former) = former {
                policy.former.insert(0, former);
            }
            policy.former.truncate(KEPT_PASSWORDS);
        }
        policy.changed_s = Some(self.now_s);
        account.expired = false;
        Ok(())
    }

    /// `SET PASSWORD`.
    ///
    /// # Errors
    /// 1133 for an unknown account, 1044 and 1227 without the privilege, 3638 and 3891 to 3893 for
    /// passwords.
    pub fn change_password(&mut self, statement: &SetPassword) -> Result<()> {
        let name = statement.account.as_ref().map_or(self.current.clone(), |name| self.name(name));
        if name != *self.current && !self.grants.on_schema("mysql").contains(Privilege::UPDATE) {
            return Err(self.schema_denied("mysql"));
        }
        if statement.retain_current {
            return Err(SqlError::not_supported("RETAIN CURRENT PASSWORD"));
        }
        let password = match &statement.password {
            Some(password) => password.clone(),
            None => self.make_password(&name),
        };
        self.book.change(|accounts| {
            let account = accounts.get_mut(&name).ok_or_else(|| {
                SqlError::new(1133, "Can't find any matching row in the user table")
            })?;
            self.refuse_system(account)?;
            let account = Arc::make_mut(account);
            self.judge_replaced(account, statement.current_password.as_deref())?;
            let former = present(account, self.now_s);
            self.set_password(account, &password, former)
        })
    }
}

/// The current password, as an entry for the former ones.
fn present(account: &Account, now_s: u64) -> Option<FormerPassword> {
    let is_there = !account.authentication.is_empty();
    is_there.then(|| FormerPassword {
        plugin: account.plugin.clone(),
        authentication: account.authentication.clone(),
        changed_s: account.policy.changed_s.unwrap_or(now_s),
    })
}
