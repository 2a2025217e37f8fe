use super::table::DEFINITIONS;
use super::{GlobalVariables, Setting, find};

#[test]
fn the_table_is_sorted_and_its_defaults_are_values() {
    for pair in DEFINITIONS.windows(2) {
        assert!(pair[0].name < pair[1].name, "{} {}", pair[0].name, pair[1].name);
    }
    for definition in DEFINITIONS.iter() {
        let initial = definition.initial();
        assert_eq!(definition.check(&initial), Ok((initial, false)), "{}", definition.name);
    }
}

#[test]
fn a_session_keeps_the_global_values_that_it_began_with() {
    let global = GlobalVariables::default();
    let mut early = global.session();
    let (five, _) = global.checked("wait_timeout", Some(&Setting::Number(5))).unwrap();
    assert!(global.take_over("wait_timeout", five, 2));
    assert!(!global.take_over("wait_timeout", Setting::Number(6), 1), "it was overtaken");
    assert_eq!(early.known("wait_timeout").number(), 28_800);
    assert_eq!(global.session().known("wait_timeout").number(), 5);
    early.set("wait_timeout", None, &global).unwrap();
    assert_eq!(early.known("wait_timeout").number(), 5, "DEFAULT is the global value");
}

#[test]
fn values_are_checked_as_mysql_checks_them() {
    let global = GlobalVariables::default();
    let mut session = global.session();
    let code = |result: firn_sql::error::Result<bool>| result.map_err(|error| error.code);
    assert_eq!(code(session.set("nope", None, &global)), Err(1193));
    assert_eq!(code(session.set("port", None, &global)), Err(1238));
    assert_eq!(code(session.set("max_connections", None, &global)), Err(1229));
    assert_eq!(code(global.checked("insert_id", None).map(|(_, moved)| moved)), Err(1228));
    assert_eq!(code(session.set("autocommit", Some(&Setting::text("maybe")), &global)), Err(1231));
    assert_eq!(code(session.set("wait_timeout", Some(&Setting::text("x")), &global)), Err(1232));
    assert_eq!(code(session.set("wait_timeout", Some(&Setting::Number(0)), &global)), Ok(true));
    assert_eq!(session.known("wait_timeout").number(), 1, "moved to the least");
    session.set("autocommit", Some(&Setting::text("off")), &global).unwrap();
    assert!(!session.known("autocommit").is_on());
    let isolation = Setting::text("read-committed");
    session.set("transaction_isolation", Some(&isolation), &global).unwrap();
    assert_eq!(session.known("transaction_isolation").as_text(), "READ-COMMITTED");
    assert_eq!(find("autocommit").unwrap().shown(session.known("autocommit")), "OFF");
}
