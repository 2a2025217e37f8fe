//! Accounts, roles, privileges.

use firn_sql_types::error::Result;

use super::super::ast::{
    Account, AlterUser, Authentication, CreateUser, Grant, Privilege, PrivilegeLevel, Privileges,
    Proof, Revoke, Statement, TableName, TlsRequirement, UserDefinition, UserOptions,
};
use super::super::lexer::Kind;
use super::Parser;

/// Words that may follow the first in a privilege of several words.
const PRIVILEGE_WORDS: &[&str] = &[
    "CLIENT",
    "DATABASES",
    "OPTION",
    "ROLE",
    "ROUTINE",
    "SLAVE",
    "TABLES",
    "TABLESPACE",
    "TEMPORARY",
    "USER",
    "VIEW",
];

impl Parser<'_> {
    /// `'user'@'host'`, `user`, `CURRENT_USER`.
    pub(super) fn account(&mut self) -> Result<Account> {
        if self.accept("CURRENT_USER") {
            if self.take(Kind::LeftParen) {
                self.need(Kind::RightParen)?;
            }
            return Ok(Account::Current);
        }
        let user = match self.kind() {
            Kind::Text => {
                let token = self.advance();
                super::unquote(self.text_of(token), !self.mode.no_backslash_escapes)
            }
            _ => self.ident()?,
        };
        let host = match self.kind() {
            Kind::UserVariable => self.host()?,
            _ => "%".to_owned(),
        };
        Ok(Account::Named { user, host })
    }

    /// The host after `@`, which the lexer reads as a variable; a string may be separated from it.
    fn host(&mut self) -> Result<String> {
        let host = self.variable()?;
        if host.is_empty() {
            return self.ident_or_text().map(|host| host.to_ascii_lowercase());
        }
        Ok(host.to_ascii_lowercase())
    }

    pub(super) fn create_user(&mut self) -> Result<Statement> {
        self.expect("USER")?;
        let if_not_exists = self.if_not_exists();
        let users = self.list(Self::user_definition)?;
        let default_roles = match self.accept_all(&["DEFAULT", "ROLE"]) {
            true => self.list(Self::account)?,
            false => Vec::new(),
        };
        let options = self.user_options()?;
        let create = CreateUser { if_not_exists, users, default_roles, options };
        Ok(Statement::CreateUser(Box::new(create)))
    }

    pub(super) fn alter_user(&mut self) -> Result<Statement> {
        self.expect("USER")?;
        let if_exists = self.if_exists();
        let mut users = vec![self.altered_user()?];
        let mut default_role = None;
        if self.accept_all(&["DEFAULT", "ROLE"]) {
            default_role = Some(self.role_choice()?);
        }
        while default_role.is_none() && self.take(Kind::Comma) {
            users.push(self.altered_user()?);
        }
        let options = self.user_options()?;
        let alter = AlterUser { if_exists, users, default_role, options };
        Ok(Statement::AlterUser(Box::new(alter)))
    }

    /// `USER()` also names the current account here.
    fn altered_user(&mut self) -> Result<UserDefinition> {
        if self.is("USER") && self.kind_at(1) == Kind::LeftParen {
            self.at += 2;
            self.need(Kind::RightParen)?;
            return self.user_definition_of(Account::Current);
        }
        self.user_definition()
    }

    fn user_definition(&mut self) -> Result<UserDefinition> {
        let account = self.account()?;
        self.user_definition_of(account)
    }

    fn user_definition_of(&mut self, account: Account) -> Result<UserDefinition> {
        let authentication = match self.accept("IDENTIFIED") {
            true => Some(self.authentication()?),
            false => None,
        };
        while self.accept("AND") {
            self.expect("IDENTIFIED")?;
            self.authentication()?;
        }
        let discard_old_password = self.accept_all(&["DISCARD", "OLD", "PASSWORD"]);
        Ok(UserDefinition { account, authentication, discard_old_password })
    }

    fn authentication(&mut self) -> Result<Authentication> {
        let mut authentication = Authentication::default();
        if self.accept("WITH") {
            authentication.plugin = Some(self.ident_or_text()?);
        }
        authentication.proof = if self.accept("BY") {
            match self.accept_all(&["RANDOM", "PASSWORD"]) {
                true => Proof::RandomPassword,
                false => Proof::Password(self.string()?),
            }
        } else if self.accept("AS") {
            Proof::Hash(self.byte_string()?)
        } else if authentication.plugin.is_none() {
            return self.error();
        } else {
            Proof::None
        };
        if self.accept("REPLACE") {
            authentication.current_password = Some(self.string()?);
        }
        authentication.retain_current = self.accept_all(&["RETAIN", "CURRENT", "PASSWORD"]);
        Ok(authentication)
    }

    fn user_options(&mut self) -> Result<UserOptions> {
        let mut options = UserOptions::default();
        while !self.at_end() {
            match self.upper().as_str() {
                "REQUIRE" => options.require = Some(self.tls_requirement()?),
                "WITH" => {
                    self.at += 1;
                    while self.is_any(&LIMITS) {
                        let name = self.expect_any(&LIMITS)?.to_owned();
                        options.limits.push((name, self.integer()?));
                    }
                }
                "ACCOUNT" => {
                    self.at += 1;
                    options.locked = Some(self.expect_any(&["LOCK", "UNLOCK"])? == "LOCK");
                }
                "PASSWORD" => {
                    let policy = self.password_policy()?;
                    options.password_policies.push(policy);
                }
                "FAILED_LOGIN_ATTEMPTS" => {
                    self.at += 1;
                    options.failed_login_attempts = Some(self.integer()?);
                }
                "PASSWORD_LOCK_TIME" => {
                    self.at += 1;
                    let days = if self.accept("UNBOUNDED") { None } else { Some(self.integer()?) };
                    options.password_lock_days = Some(days);
                }
                "COMMENT" => {
                    self.at += 1;
                    options.comment = Some(self.string()?);
                }
                "ATTRIBUTE" => {
                    self.at += 1;
                    options.attribute = Some(self.string()?);
                }
                _ => return self.error(),
            }
        }
        Ok(options)
    }

    fn tls_requirement(&mut self) -> Result<TlsRequirement> {
        self.expect("REQUIRE")?;
        if self.accept("NONE") {
            return Ok(TlsRequirement::None);
        }
        if self.accept("SSL") {
            return Ok(TlsRequirement::Ssl);
        }
        if self.accept("X509") {
            return Ok(TlsRequirement::X509);
        }
        let mut specified = Vec::new();
        while let Some(word) = self.accept_any(&["CIPHER", "ISSUER", "SUBJECT"]) {
            specified.push((word.to_owned(), self.string()?));
            self.accept("AND");
        }
        if specified.is_empty() { self.error() } else { Ok(TlsRequirement::Specified(specified)) }
    }

    /// `PASSWORD …` as its words; all of them are accepted.
    fn password_policy(&mut self) -> Result<String> {
        self.expect("PASSWORD")?;
        let mut policy = self.expect_any(&["EXPIRE", "HISTORY", "REUSE", "REQUIRE"])?.to_owned();
        let words = ["DEFAULT", "NEVER", "INTERVAL", "CURRENT", "OPTIONAL", "DAY"];
        loop {
            if self.kind() == Kind::Integer {
                let token = self.advance();
                policy.push(' ');
                policy.push_str(self.text_of(token));
            } else if let Some(word) = self.accept_any(&words) {
                policy.push(' ');
                policy.push_str(word);
            } else {
                return Ok(policy);
            }
        }
    }

    pub(super) fn drop_user(&mut self) -> Result<Statement> {
        self.expect("USER")?;
        let if_exists = self.if_exists();
        Ok(Statement::DropUser { if_exists, users: self.list(Self::account)? })
    }

    pub(super) fn rename_user(&mut self) -> Result<Statement> {
        self.expect("USER")?;
        let pairs = self.list(|p| {
            let from = p.account()?;
            p.expect("TO")?;
            Ok((from, p.account()?))
        })?;
        Ok(Statement::RenameUser(pairs))
    }

    pub(super) fn create_role(&mut self) -> Result<Statement> {
        self.expect("ROLE")?;
        let if_not_exists = self.if_not_exists();
        Ok(Statement::CreateRole { if_not_exists, roles: self.list(Self::account)? })
    }

    pub(super) fn drop_role(&mut self) -> Result<Statement> {
        self.expect("ROLE")?;
        let if_exists = self.if_exists();
        Ok(Statement::DropRole { if_exists, roles: self.list(Self::account)? })
    }

    pub(super) fn grant(&mut self) -> Result<Statement> {
        self.expect("GRANT")?;
        if self.accept("PROXY") {
            self.expect("ON")?;
            let level = PrivilegeLevel::Proxy(self.account()?);
            return self.grant_to(Privileges::These(vec![proxy()]), level);
        }
        if self.names_roles() {
            let roles = self.list(Self::account)?;
            self.expect("TO")?;
            let to = self.list(Self::account)?;
            let with_admin_option = self.accept_all(&["WITH", "ADMIN", "OPTION"]);
            return Ok(Statement::GrantRoles { roles, to, with_admin_option });
        }
        let privileges = self.privileges()?;
        self.expect("ON")?;
        let level = self.privilege_level()?;
        self.grant_to(privileges, level)
    }

    fn grant_to(&mut self, privileges: Privileges, level: PrivilegeLevel) -> Result<Statement> {
        self.expect("TO")?;
        let to = self.list(Self::account)?;
        let with_grant_option = self.accept_all(&["WITH", "GRANT", "OPTION"]);
        if self.accept("AS") {
            self.account()?;
            if self.accept_all(&["WITH", "ROLE"]) {
                self.role_choice()?;
            }
        }
        Ok(Statement::Grant(Box::new(Grant { privileges, level, to, with_grant_option })))
    }

    /// Whether roles are listed here and not privileges: there is no `ON` before `TO` or `FROM`.
    fn names_roles(&self) -> bool {
        let mut ahead = 0;
        loop {
            match self.upper_at(ahead).as_str() {
                "ON" => return false,
                "TO" | "FROM" => return true,
                _ if self.kind_at(ahead) == Kind::End => return false,
                _ => ahead += 1,
            }
        }
    }

    fn privileges(&mut self) -> Result<Privileges> {
        if self.accept("ALL") {
            self.accept("PRIVILEGES");
            return Ok(Privileges::All);
        }
        self.list(Self::privilege).map(Privileges::These)
    }

    fn privilege(&mut self) -> Result<Privilege> {
        if self.kind() != Kind::Word || self.is("ON") {
            return self.error();
        }
        let mut name = self.upper();
        self.at += 1;
        while let Some(word) = self.accept_any(PRIVILEGE_WORDS) {
            name = format!("{name} {word}");
        }
        let columns = match self.kind() {
            Kind::LeftParen => self.parens_list(Self::ident)?,
            _ => Vec::new(),
        };
        Ok(Privilege { name, columns })
    }

    fn privilege_level(&mut self) -> Result<PrivilegeLevel> {
        let next_names = self.kind_at(1) == Kind::Word || self.kind_at(1) == Kind::Quoted;
        match self.upper().as_str() {
            "FUNCTION" => {
                self.at += 1;
                return self.table_name().map(PrivilegeLevel::Function);
            }
            "PROCEDURE" => {
                self.at += 1;
                return self.table_name().map(PrivilegeLevel::Procedure);
            }
            "TABLE" if next_names || self.kind_at(1) == Kind::Star => self.at += 1,
            _ => {}
        }
        if self.take(Kind::Star) {
            if self.take(Kind::Dot) {
                self.need(Kind::Star)?;
                return Ok(PrivilegeLevel::Global);
            }
            return Ok(PrivilegeLevel::CurrentDatabase);
        }
        let first = self.ident()?;
        if !self.take(Kind::Dot) {
            return Ok(PrivilegeLevel::Table(TableName { schema: None, name: first }));
        }
        if self.take(Kind::Star) {
            return Ok(PrivilegeLevel::Database(first));
        }
        let table = TableName { schema: Some(first), name: self.any_ident()? };
        Ok(PrivilegeLevel::Table(table))
    }

    pub(super) fn revoke(&mut self) -> Result<Statement> {
        self.expect("REVOKE")?;
        let if_exists = self.if_exists();
        let mut revoke = Revoke {
            if_exists,
            privileges: Privileges::All,
            grant_option: false,
            level: None,
            from: Vec::new(),
            ignore_unknown_user: false,
        };
        if self.accept("PROXY") {
            self.expect("ON")?;
            revoke.privileges = Privileges::These(vec![proxy()]);
            revoke.level = Some(PrivilegeLevel::Proxy(self.account()?));
        } else if self.is("ALL") {
            self.privileges()?;
            if self.take(Kind::Comma) {
                self.expect_all(&["GRANT", "OPTION"])?;
                revoke.grant_option = true;
            } else {
                self.expect("ON")?;
                revoke.level = Some(self.privilege_level()?);
            }
        } else if self.names_roles() {
            return self.revoke_roles(if_exists);
        } else {
            revoke.privileges = self.privileges()?;
            self.expect("ON")?;
            revoke.level = Some(self.privilege_level()?);
        }
        self.expect("FROM")?;
        revoke.from = self.list(Self::account)?;
        revoke.ignore_unknown_user = self.accept_all(&["IGNORE", "UNKNOWN", "USER"]);
        Ok(Statement::Revoke(Box::new(revoke)))
    }

    fn revoke_roles(&mut self, if_exists: bool) -> Result<Statement> {
        let roles = self.list(Self::account)?;
        self.expect("FROM")?;
        let from = self.list(Self::account)?;
        let ignore_unknown_user = self.accept_all(&["IGNORE", "UNKNOWN", "USER"]);
        Ok(Statement::RevokeRoles { if_exists, roles, from, ignore_unknown_user })
    }
}

/// Resource limits of an account.
const LIMITS: [&str; 4] = [
    "MAX_QUERIES_PER_HOUR",
    "MAX_UPDATES_PER_HOUR",
    "MAX_CONNECTIONS_PER_HOUR",
    "MAX_USER_CONNECTIONS",
];

fn proxy() -> Privilege {
    Privilege { name: "PROXY".to_owned(), columns: Vec::new() }
}
