use std::collections::BTreeSet;
use std::sync::Arc;

use expect_test::expect;
use firn_api::Incarnation;
use firn_api::server::ServerState;
use firn_base::Cts;
use firn_sql::error::{Result, SqlError};
use firn_sql::grammar::{self, ast::Statement};
use parking_lot::Mutex;

use crate::server::LocalServerState;

use super::account::matches_pattern;
use super::book::StoreError;
use super::{
    Account, AccountBook, AccountContext, AccountName, AccountStore, PolicyDefaults, Privilege,
    UsageBook, document,
};

/// Keeps documents in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<std::collections::BTreeMap<AccountName, Vec<u8>>>>);

impl AccountStore for Memory {
    fn load(&self, _since: Cts) -> std::result::Result<Vec<Vec<u8>>, StoreError> {
        Ok(self.0.lock().values().cloned().collect())
    }

    fn store(
        &self,
        changes: &[(AccountName, Option<Vec<u8>>)],
    ) -> std::result::Result<Cts, StoreError> {
        for (name, document) in changes {
            match document {
                Some(document) => self.0.lock().insert(name.clone(), document.clone()),
                None => self.0.lock().remove(name),
            };
        }
        Ok(Cts(0))
    }
}

fn hash(plugin: &str, password: &str) -> Option<String> {
    let known = matches!(plugin, "caching_sha2_password" | "mysql_native_password");
    known.then(|| format!("hash of {password}"))
}

fn run_as(book: &AccountBook, user: &str, text: &str) -> Result<()> {
    let account = book.find(user, "localhost").expect("an account");
    let grants = book.effective(&account, &account.default_roles);
    let current = account.name.clone();
    let mut context = AccountContext {
        book,
        current: &current,
        grants: &grants,
        host: "localhost",
        schema: Some("shop"),
        hash: &hash,
        proves: &|plugin, password, kept| hash(plugin, password).as_deref() == Some(kept),
        defaults: PolicyDefaults::default(),
        now_s: 1_795_285_539,
        random: &|| 7,
        password_length: 20,
        made: std::cell::RefCell::default(),
        conditions: Vec::new(),
    };
    match grammar::parse(text, grammar::Mode::default())?.statement {
        Statement::CreateUser(statement) => context.create_user(&statement),
        Statement::AlterUser(statement) => context.alter_user(&statement),
        Statement::DropUser { if_exists, users } => {
            context.drop_accounts("DROP USER", if_exists, &users)
        }
        Statement::RenameUser(pairs) => context.rename_user(&pairs),
        Statement::CreateRole { if_not_exists, roles } => {
            context.create_role(if_not_exists, &roles)
        }
        Statement::Grant(statement) => context.grant(&statement),
        Statement::Revoke(statement) => context.revoke(&statement),
        Statement::GrantRoles { roles, to, with_admin_option } => {
            context.grant_roles(&roles, &to, with_admin_option)
        }
        Statement::SetDefaultRole { roles, to } => context.set_default_role(&roles, &to),
        other => panic!("{other:?}"),
    }
}

fn run(book: &AccountBook, text: &str) -> Result<()> {
    run_as(book, "root", text)
}

fn book() -> AccountBook {
    open(&Memory::default())
}

/// The book of the only compute node of a server.
fn open(memory: &Memory) -> AccountBook {
    let server = Arc::new(LocalServerState::of_one_node());
    let node = Incarnation::default();
    server.join(node).unwrap();
    AccountBook::open(Box::new(memory.clone()), server, node).unwrap()
}

#[test]
fn a_change_of_another_compute_node_is_read_when_it_is_told() {
    let memory = Memory::default();
    let (one, other) = (open(&memory), open(&memory));
    run(&one, "CREATE USER app@localhost").unwrap();
    assert!(other.find("app", "localhost").is_none());
    let version = other.version();
    other.have_changed(Cts(0));
    assert_ne!(other.version(), version, "sessions work their rights out again");
    assert!(other.find("app", "localhost").is_some());
    run(&one, "GRANT SELECT ON s.* TO app@localhost").unwrap();
    other.have_changed(Cts(0));
    run(&other, "GRANT INSERT ON s.* TO app@localhost").unwrap();
    let account = other.find("app", "localhost").unwrap();
    let shown = account.grants.shown(&account.name).join("\n");
    assert!(shown.contains("SELECT, INSERT"), "{shown}");
    one.have_changed(Cts(0));
    assert_eq!(one.all(), other.all());
}

fn shown(book: &AccountBook, user: &str) -> String {
    let account = book.find(user, "10.0.0.1").unwrap();
    account.grants.shown(&account.name).join("\n")
}

#[test]
fn a_new_book_has_root_for_loopback_only() {
    let book = book();
    assert!(book.find("root", "127.0.0.1").is_some());
    assert!(book.find("root", "10.0.0.1").is_none());
    assert!(book.find("", "127.0.0.1").is_none());
    assert!(!book.has_remote_account());
}

#[test]
fn grants_are_shown_as_they_were_given() {
    let book = book();
    run(&book, "CREATE USER app@'%' IDENTIFIED BY 'secret'").unwrap();
    run(&book, "GRANT SELECT, INSERT ON shop.* TO app WITH GRANT OPTION").unwrap();
    run(&book, "GRANT UPDATE (price, stock), DELETE ON shop.item TO app").unwrap();
    run(&book, "GRANT ALL ON log.* TO app").unwrap();
    run(&book, "GRANT PROCESS, BACKUP_ADMIN ON *.* TO app").unwrap();
    run(&book, "REVOKE INSERT ON shop.* FROM app").unwrap();
    expect![[r#"
        GRANT PROCESS ON *.* TO `app`@`%`
        GRANT BACKUP_ADMIN ON *.* TO `app`@`%`
        GRANT ALL PRIVILEGES ON `log`.* TO `app`@`%`
        GRANT SELECT ON `shop`.* TO `app`@`%` WITH GRANT OPTION
        GRANT UPDATE (`price`, `stock`), DELETE ON `shop`.`item` TO `app`@`%`"#]]
    .assert_eq(&shown(&book, "app"));
}

#[test]
fn accounts_survive_a_restart_unchanged() {
    let memory = Memory::default();
    let book = open(&memory);
    run(&book, "CREATE ROLE reader").unwrap();
    run(&book, "GRANT SELECT ON *.* TO reader").unwrap();
    run(&book, "CREATE USER 'a b'@'10.%' IDENTIFIED WITH mysql_native_password BY 'x'").unwrap();
    run(&book, "GRANT UPDATE (c) ON s.t TO 'a b'@'10.%'").unwrap();
    run(&book, "GRANT reader TO 'a b'@'10.%' WITH ADMIN OPTION").unwrap();
    let again = open(&memory);
    assert_eq!(again.all(), book.all());
}

#[test]
fn roles_give_what_they_have_when_they_are_on() {
    let book = book();
    for text in [
        "CREATE ROLE reader, writer",
        "GRANT SELECT ON shop.* TO reader",
        "GRANT INSERT ON shop.* TO writer",
        "GRANT reader TO writer",
        "CREATE USER app",
        "GRANT writer TO app",
    ] {
        run(&book, text).unwrap();
    }
    let app = book.find("app", "h").unwrap();
    assert!(book.effective(&app, &BTreeSet::new()).on_schema("shop").is_empty());
    let given = book.effective(&app, &app.roles).on_schema("shop");
    assert!(given.contains(Privilege::SELECT) && given.contains(Privilege::INSERT));
    let code = |result: Result<()>| result.map_err(|error| error.code);
    assert_eq!(code(run(&book, "GRANT writer TO reader")), Err(3573), "a circle");
    run(&book, "DROP USER writer").unwrap();
    assert!(book.find("app", "h").unwrap().roles.is_empty());
}

#[test]
fn who_has_not_cannot_give() {
    let book = book();
    run(&book, "CREATE USER app@localhost").unwrap();
    run(&book, "GRANT SELECT ON shop.* TO app@localhost").unwrap();
    let code = |result: std::result::Result<(), SqlError>| result.map_err(|error| error.code);
    assert_eq!(code(run_as(&book, "app", "GRANT SELECT ON shop.* TO app@localhost")), Err(1044));
    assert_eq!(code(run_as(&book, "app", "GRANT ALL ON *.* TO app@localhost")), Err(1045));
    assert_eq!(code(run_as(&book, "app", "GRANT BACKUP_ADMIN ON *.* TO app@localhost")), Err(1227));
    assert_eq!(code(run_as(&book, "app", "CREATE USER b")), Err(1227));
    assert_eq!(code(run_as(&book, "app", "ALTER USER app@localhost IDENTIFIED BY 'n'")), Ok(()));
    assert_eq!(code(run(&book, "CREATE USER app@localhost")), Err(1396));
    assert_eq!(code(run(&book, "GRANT SELECT ON *.* TO nobody")), Err(1410));
    assert_eq!(code(run(&book, "GRANT PROCESS ON shop.* TO app@localhost")), Err(1221));
    assert_eq!(code(run(&book, "DROP USER nobody")), Err(1396));
    assert_eq!(code(run(&book, "DROP USER IF EXISTS nobody")), Ok(()));
}

#[test]
fn the_most_specific_host_wins() {
    let book = book();
    for host in ["%", "10.0.%", "10.0.0.7"] {
        run(&book, &format!("CREATE USER app@'{host}'")).unwrap();
    }
    let found = |host| book.find("app", host).unwrap().name.host.clone();
    assert_eq!(found("10.0.0.7"), "10.0.0.7");
    assert_eq!(found("10.0.9.9"), "10.0.%");
    assert_eq!(found("192.168.0.1"), "%");
}

#[test]
fn patterns_match_as_like_does() {
    for (pattern, name, matches) in [
        ("%", "", true),
        ("a%c", "abbbc", true),
        ("a_c", "abc", true),
        ("a_c", "abbc", false),
        (r"a\_c", "abc", false),
        (r"a\_c", "a_c", true),
        ("%b%b%", "abab", true),
        ("abc", "ABC", true),
    ] {
        assert_eq!(matches_pattern(pattern, name), matches, "{pattern} {name}");
    }
}

#[test]
fn a_document_of_another_version_is_refused() {
    let document = document::encode(&Account::new(AccountName::new("a", "%")));
    let text = String::from_utf8(document).unwrap();
    assert!(document::decode(text.replace("\"version\":2", "\"version\":3").as_bytes()).is_err());
    assert!(document::decode(b"{}").is_err());
    assert!(document::decode(&[0xff]).is_err());
}

#[test]
fn an_account_of_the_first_version_has_no_policy() {
    let mut account = Account::new(AccountName::new("a", "%"));
    account.authentication = "kept".to_owned();
    let text = String::from_utf8(document::encode(&account)).unwrap();
    let mut old: serde_json::Value = serde_json::from_str(&text).unwrap();
    old["version"] = 1.into();
    old.as_object_mut().unwrap().remove("policy");
    assert_eq!(document::decode(old.to_string().as_bytes()).unwrap(), account);
}

#[test]
fn policies_are_kept_and_hold() {
    let memory = Memory::default();
    let book = open(&memory);
    run(
        &book,
        "CREATE USER app@localhost IDENTIFIED BY 'a' WITH MAX_USER_CONNECTIONS 3 PASSWORD EXPIRE INTERVAL 5 DAY \
         PASSWORD HISTORY 2 PASSWORD REQUIRE CURRENT FAILED_LOGIN_ATTEMPTS 2 PASSWORD_LOCK_TIME 3",
    )
    .unwrap();
    let code = |text: &str, user: &str| run_as(&book, user, text).map_err(|error| error.code);
    let own = "ALTER USER app@localhost IDENTIFIED BY";
    assert_eq!(code(&format!("{own} 'b'"), "app"), Err(3892));
    assert_eq!(code(&format!("{own} 'b' REPLACE 'x'"), "app"), Err(3891));
    assert_eq!(code(&format!("{own} 'a' REPLACE 'a'"), "app"), Err(3638));
    assert_eq!(code(&format!("{own} 'b' REPLACE 'a'"), "app"), Ok(()));
    assert_eq!(code(&format!("{own} 'a'"), "root"), Err(3638), "one of the last two");
    assert_eq!(code(&format!("{own} 'c'"), "root"), Ok(()));
    assert_eq!(code(&format!("{own} 'a'"), "root"), Ok(()), "no longer");
    let again = open(&memory);
    assert_eq!(again.all(), book.all());
    let policy = &again.find("app", "localhost").unwrap().policy;
    assert_eq!(policy.limits.user_connections, 3);
    let changed_s = policy.changed_s.unwrap();
    assert!(!policy.is_outlived(0, changed_s + 5 * 86_400 - 1));
    assert!(policy.is_outlived(0, changed_s + 5 * 86_400));
}

#[test]
fn failed_logins_block_an_account_for_some_days() {
    let book = book();
    run(&book, "CREATE USER app FAILED_LOGIN_ATTEMPTS 2 PASSWORD_LOCK_TIME 1").unwrap();
    let (app, usage) = (book.find("app", "h").unwrap(), UsageBook::default());
    assert!(usage.attempted(&app, false, 100).is_ok());
    assert!(usage.attempted(&app, true, 101).is_ok(), "a login that succeeds resets the count");
    assert!(usage.attempted(&app, false, 102).is_ok());
    let blocked = usage.attempted(&app, false, 103).unwrap_err();
    assert_eq!((blocked.days, blocked.days_left, blocked.attempts), (Some(1), 1, 2));
    assert!(usage.attempted(&app, true, 104).is_err());
    assert!(usage.attempted(&app, true, 103 + 86_400).is_ok());
}

#[test]
fn system_accounts_are_changed_by_their_like_only() {
    let book = book();
    for text in [
        "CREATE USER boss@localhost",
        "GRANT SYSTEM_USER ON *.* TO boss@localhost",
        "CREATE USER clerk@localhost",
        "GRANT CREATE USER, DROP ROLE ON *.* TO clerk@localhost",
        "CREATE USER plain@localhost",
    ] {
        run(&book, text).unwrap();
    }
    let code = |text: &str| run_as(&book, "clerk", text).map_err(|error| error.code);
    for text in [
        "ALTER USER boss@localhost IDENTIFIED BY 'x'",
        "ALTER USER root@localhost IDENTIFIED BY 'x'",
        "DROP USER boss@localhost",
        "RENAME USER boss@localhost TO b",
        "REVOKE ALL PRIVILEGES, GRANT OPTION FROM boss@localhost",
        "SET DEFAULT ROLE NONE TO boss@localhost",
    ] {
        assert_eq!(code(text), Err(1227), "{text}");
    }
    assert_eq!(code("ALTER USER plain@localhost IDENTIFIED BY 'x'"), Ok(()));
}
