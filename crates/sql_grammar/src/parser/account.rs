//! Accounts, roles, privileges.

use firn_sql_types::error::Result;

use super::super::ast::{
    Account, AlterUser, Authentication, CreateUser, Grant, Privilege, PrivilegeLevel, Privileges,
    Proof, Revoke, Statement, TableName, TlsRequirement, UserDefinition, UserOptions,
};
use super::super::lexer::Kind;
use super::{Parser, admin, session, transaction};

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

/// `'user'@'host'`, `user`, `CURRENT_USER`.
pub(super) fn account(parser: &mut Parser<'_>) -> Result<Account> {
    if parser.accept("CURRENT_USER") {
        if parser.take(Kind::LeftParen) {
            parser.need(Kind::RightParen)?;
        }
        return Ok(Account::Current);
    }
    let user = match parser.kind() {
        Kind::Text => {
            let token = parser.advance();
            super::unquote(parser.text_of(token), !parser.mode.no_backslash_escapes)
        }
        _ => parser.ident()?,
    };
    let host = match parser.kind() {
        Kind::UserVariable => host(parser)?,
        _ => "%".to_owned(),
    };
    Ok(Account::Named { user, host })
}

/// The host after `@`, which the lexer reads as a variable; a string may be separated from it.
fn host(parser: &mut Parser<'_>) -> Result<String> {
    let host = parser.variable()?;
    if host.is_empty() {
        return parser.ident_or_text().map(|host| host.to_ascii_lowercase());
    }
    Ok(host.to_ascii_lowercase())
}

pub(super) fn create_user(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("USER")?;
    let if_not_exists = parser.if_not_exists();
    let users = parser.list(user_definition)?;
    let default_roles = match parser.accept_all(&["DEFAULT", "ROLE"]) {
        true => parser.list(account)?,
        false => Vec::new(),
    };
    let options = user_options(parser)?;
    let create = CreateUser { if_not_exists, users, default_roles, options };
    Ok(Statement::CreateUser(Box::new(create)))
}

pub(super) fn alter_user(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("USER")?;
    let if_exists = parser.if_exists();
    let mut users = vec![altered_user(parser)?];
    let mut default_role = None;
    if parser.accept_all(&["DEFAULT", "ROLE"]) {
        default_role = Some(session::role_choice(parser)?);
    }
    while default_role.is_none() && parser.take(Kind::Comma) {
        users.push(altered_user(parser)?);
    }
    let options = user_options(parser)?;
    let alter = AlterUser { if_exists, users, default_role, options };
    Ok(Statement::AlterUser(Box::new(alter)))
}

/// `USER()` also names the current account here.
fn altered_user(parser: &mut Parser<'_>) -> Result<UserDefinition> {
    if parser.is("USER") && parser.kind_at(1) == Kind::LeftParen {
        parser.at += 2;
        parser.need(Kind::RightParen)?;
        return user_definition_of(parser, Account::Current);
    }
    user_definition(parser)
}

fn user_definition(parser: &mut Parser<'_>) -> Result<UserDefinition> {
    let account = account(parser)?;
    user_definition_of(parser, account)
}

fn user_definition_of(parser: &mut Parser<'_>, account: Account) -> Result<UserDefinition> {
    let first = match parser.accept("IDENTIFIED") {
        true => Some(authentication(parser)?),
        false => None,
    };
    while parser.accept("AND") {
        parser.expect("IDENTIFIED")?;
        authentication(parser)?;
    }
    let discard_old_password = parser.accept_all(&["DISCARD", "OLD", "PASSWORD"]);
    Ok(UserDefinition { account, authentication: first, discard_old_password })
}

fn authentication(parser: &mut Parser<'_>) -> Result<Authentication> {
    let mut authentication = Authentication::default();
    if parser.accept("WITH") {
        authentication.plugin = Some(parser.ident_or_text()?);
    }
    authentication.proof = if parser.accept("BY") {
        match parser.accept_all(&["RANDOM", "PASSWORD"]) {
            true => Proof::RandomPassword,
            false => Proof::Password(parser.string()?),
        }
    } else if parser.accept("AS") {
        Proof::Hash(transaction::byte_string(parser)?)
    } else if authentication.plugin.is_none() {
        return parser.error();
    } else {
        Proof::None
    };
    if parser.accept("REPLACE") {
        authentication.current_password = Some(parser.string()?);
    }
    authentication.retain_current = parser.accept_all(&["RETAIN", "CURRENT", "PASSWORD"]);
    Ok(authentication)
}

fn user_options(parser: &mut Parser<'_>) -> Result<UserOptions> {
    let mut options = UserOptions::default();
    while !admin::at_end(parser) {
        match parser.upper().as_str() {
            "REQUIRE" => options.require = Some(tls_requirement(parser)?),
            "WITH" => {
                parser.at += 1;
                while parser.is_any(&LIMITS) {
                    let name = parser.expect_any(&LIMITS)?.to_owned();
                    options.limits.push((name, parser.integer()?));
                }
            }
            "ACCOUNT" => {
                parser.at += 1;
                options.locked = Some(parser.expect_any(&["LOCK", "UNLOCK"])? == "LOCK");
            }
            "PASSWORD" => {
                let policy = password_policy(parser)?;
                options.password_policies.push(policy);
            }
            "FAILED_LOGIN_ATTEMPTS" => {
                parser.at += 1;
                options.failed_login_attempts = Some(parser.integer()?);
            }
            "PASSWORD_LOCK_TIME" => {
                parser.at += 1;
                let days = if parser.accept("UNBOUNDED") { None } else { Some(parser.integer()?) };
                options.password_lock_days = Some(days);
            }
            "COMMENT" => {
                parser.at += 1;
                options.comment = Some(parser.string()?);
            }
            "ATTRIBUTE" => {
                parser.at += 1;
                options.attribute = Some(parser.string()?);
            }
            _ => return parser.error(),
        }
    }
    Ok(options)
}

fn tls_requirement(parser: &mut Parser<'_>) -> Result<TlsRequirement> {
    parser.expect("REQUIRE")?;
    if parser.accept("NONE") {
        return Ok(TlsRequirement::None);
    }
    if parser.accept("SSL") {
        return Ok(TlsRequirement::Ssl);
    }
    if parser.accept("X509") {
        return Ok(TlsRequirement::X509);
    }
    let mut specified = Vec::new();
    while let Some(word) = parser.accept_any(&["CIPHER", "ISSUER", "SUBJECT"]) {
        specified.push((word.to_owned(), parser.string()?));
        parser.accept("AND");
    }
    if specified.is_empty() { parser.error() } else { Ok(TlsRequirement::Specified(specified)) }
}

/// `PASSWORD …` as its words; all of them are accepted.
fn password_policy(parser: &mut Parser<'_>) -> Result<String> {
    parser.expect("PASSWORD")?;
    let mut policy = parser.expect_any(&["EXPIRE", "HISTORY", "REUSE", "REQUIRE"])?.to_owned();
    let words = ["DEFAULT", "NEVER", "INTERVAL", "CURRENT", "OPTIONAL", "DAY"];
    loop {
        if parser.kind() == Kind::Integer {
            let token = parser.advance();
            policy.push(' ');
            policy.push_str(parser.text_of(token));
        } else if let Some(word) = parser.accept_any(&words) {
            policy.push(' ');
            policy.push_str(word);
        } else {
            return Ok(policy);
        }
    }
}

pub(super) fn drop_user(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("USER")?;
    let if_exists = parser.if_exists();
    Ok(Statement::DropUser { if_exists, users: parser.list(account)? })
}

pub(super) fn rename_user(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("USER")?;
    let pairs = parser.list(|parser| {
        let from = account(parser)?;
        parser.expect("TO")?;
        Ok((from, account(parser)?))
    })?;
    Ok(Statement::RenameUser(pairs))
}

pub(super) fn create_role(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("ROLE")?;
    let if_not_exists = parser.if_not_exists();
    Ok(Statement::CreateRole { if_not_exists, roles: parser.list(account)? })
}

pub(super) fn drop_role(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("ROLE")?;
    let if_exists = parser.if_exists();
    Ok(Statement::DropRole { if_exists, roles: parser.list(account)? })
}

pub(super) fn grant(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("GRANT")?;
    if parser.accept("PROXY") {
        parser.expect("ON")?;
        let level = PrivilegeLevel::Proxy(account(parser)?);
        return grant_to(parser, Privileges::These(vec![proxy()]), level);
    }
    if names_roles(parser) {
        let roles = parser.list(account)?;
        parser.expect("TO")?;
        let to = parser.list(account)?;
        let with_admin_option = parser.accept_all(&["WITH", "ADMIN", "OPTION"]);
        return Ok(Statement::GrantRoles { roles, to, with_admin_option });
    }
    let privileges = privileges(parser)?;
    parser.expect("ON")?;
    let level = privilege_level(parser)?;
    grant_to(parser, privileges, level)
}

fn grant_to(
    parser: &mut Parser<'_>,
    privileges: Privileges,
    level: PrivilegeLevel,
) -> Result<Statement> {
    parser.expect("TO")?;
    let to = parser.list(account)?;
    let with_grant_option = parser.accept_all(&["WITH", "GRANT", "OPTION"]);
    if parser.accept("AS") {
        account(parser)?;
        if parser.accept_all(&["WITH", "ROLE"]) {
            session::role_choice(parser)?;
        }
    }
    Ok(Statement::Grant(Box::new(Grant { privileges, level, to, with_grant_option })))
}

/// Whether roles are listed here and not privileges: there is no `ON` before `TO` or `FROM`.
fn names_roles(parser: &Parser<'_>) -> bool {
    let mut ahead = 0;
    loop {
        match parser.upper_at(ahead).as_str() {
            "ON" => return false,
            "TO" | "FROM" => return true,
            _ if parser.kind_at(ahead) == Kind::End => return false,
            _ => ahead += 1,
        }
    }
}

fn privileges(parser: &mut Parser<'_>) -> Result<Privileges> {
    if parser.accept("ALL") {
        parser.accept("PRIVILEGES");
        return Ok(Privileges::All);
    }
    parser.list(privilege).map(Privileges::These)
}

fn privilege(parser: &mut Parser<'_>) -> Result<Privilege> {
    if parser.kind() != Kind::Word || parser.is("ON") {
        return parser.error();
    }
    let mut name = parser.upper();
    parser.at += 1;
    while let Some(word) = parser.accept_any(PRIVILEGE_WORDS) {
        name = format!("{name} {word}");
    }
    let columns = match parser.kind() {
        Kind::LeftParen => parser.parens_list(Parser::ident)?,
        _ => Vec::new(),
    };
    Ok(Privilege { name, columns })
}

fn privilege_level(parser: &mut Parser<'_>) -> Result<PrivilegeLevel> {
    let next_names = parser.kind_at(1) == Kind::Word || parser.kind_at(1) == Kind::Quoted;
    match parser.upper().as_str() {
        "FUNCTION" => {
            parser.at += 1;
            return parser.table_name().map(PrivilegeLevel::Function);
        }
        "PROCEDURE" => {
            parser.at += 1;
            return parser.table_name().map(PrivilegeLevel::Procedure);
        }
        "TABLE" if next_names || parser.kind_at(1) == Kind::Star => parser.at += 1,
        _ => {}
    }
    if parser.take(Kind::Star) {
        if parser.take(Kind::Dot) {
            parser.need(Kind::Star)?;
            return Ok(PrivilegeLevel::Global);
        }
        return Ok(PrivilegeLevel::CurrentDatabase);
    }
    let first = parser.ident()?;
    if !parser.take(Kind::Dot) {
        return Ok(PrivilegeLevel::Table(TableName { schema: None, name: first }));
    }
    if parser.take(Kind::Star) {
        return Ok(PrivilegeLevel::Database(first));
    }
    let table = TableName { schema: Some(first), name: parser.any_ident()? };
    Ok(PrivilegeLevel::Table(table))
}

pub(super) fn revoke(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("REVOKE")?;
    let if_exists = parser.if_exists();
    let mut revoke = Revoke {
        if_exists,
        privileges: Privileges::All,
        grant_option: false,
        level: None,
        from: Vec::new(),
        ignore_unknown_user: false,
    };
    if parser.accept("PROXY") {
        parser.expect("ON")?;
        revoke.privileges = Privileges::These(vec![proxy()]);
        revoke.level = Some(PrivilegeLevel::Proxy(account(parser)?));
    } else if parser.is("ALL") {
        privileges(parser)?;
        if parser.take(Kind::Comma) {
            parser.expect_all(&["GRANT", "OPTION"])?;
            revoke.grant_option = true;
        } else {
            parser.expect("ON")?;
            revoke.level = Some(privilege_level(parser)?);
        }
    } else if names_roles(parser) {
        return revoke_roles(parser, if_exists);
    } else {
        revoke.privileges = privileges(parser)?;
        parser.expect("ON")?;
        revoke.level = Some(privilege_level(parser)?);
    }
    parser.expect("FROM")?;
    revoke.from = parser.list(account)?;
    revoke.ignore_unknown_user = parser.accept_all(&["IGNORE", "UNKNOWN", "USER"]);
    Ok(Statement::Revoke(Box::new(revoke)))
}

fn revoke_roles(parser: &mut Parser<'_>, if_exists: bool) -> Result<Statement> {
    let roles = parser.list(account)?;
    parser.expect("FROM")?;
    let from = parser.list(account)?;
    let ignore_unknown_user = parser.accept_all(&["IGNORE", "UNKNOWN", "USER"]);
    Ok(Statement::RevokeRoles { if_exists, roles, from, ignore_unknown_user })
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
