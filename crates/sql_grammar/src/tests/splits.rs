//! Texts of several statements.

use super::super::{Mode, split};

fn parts(text: &str) -> Vec<&str> {
    split(text, Mode::default()).collect()
}

#[test]
fn semicolons_separate_statements() {
    assert_eq!(parts("SELECT 1; SELECT 2"), ["SELECT 1", "SELECT 2"]);
    assert_eq!(parts("SELECT 1;"), ["SELECT 1"]);
    assert_eq!(parts("SELECT 1; \n-- done\n"), ["SELECT 1"]);
    assert_eq!(parts("a;;b"), ["a", "", "b"]);
    assert_eq!(parts(""), [""]);
}

#[test]
fn semicolons_in_quotes_and_comments_do_not() {
    let text = "SELECT ';', \"a;\\\";b\", `c;d` /* ; */ -- ;\n# ;\n+ 1; SELECT 2";
    assert_eq!(parts(text).len(), 2);
    let ansi = Mode { no_backslash_escapes: true, ..Mode::default() };
    assert_eq!(split("SELECT '\\'; SELECT 2", ansi).count(), 2);
    assert_eq!(parts("SELECT '\\'; SELECT 2").len(), 1);
}

#[test]
fn a_stored_program_takes_the_rest() {
    let text = "DO 1; CREATE DEFINER=`a`@`b` PROCEDURE p() BEGIN SELECT 1; SELECT 2; END";
    assert_eq!(parts(text).len(), 2);
    assert_eq!(parts("CREATE TRIGGER t BEGIN DO 1; DO 2; END").len(), 1);
    assert_eq!(parts("CREATE TABLE event (a INT); DO 1").len(), 2);
    assert_eq!(parts("CREATE DEFINER=a VIEW v AS SELECT 1; DO 1").len(), 2);
}
