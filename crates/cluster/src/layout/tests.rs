use super::*;

const TEXT: &str = r#"cluster = "000102030405060708090a0b0c0d0e0f"

[[node]]
number = 1
name = "node-1"
address = "127.0.0.1:7401"
client_address = "127.0.0.1:3307"
roles = ["database", "log", "pages", "control"]

[[node]]
number = 2
name = "node-2"
address = "127.0.0.1:7402"
roles = ["log"]
"#;

#[test]
fn a_layout_is_read_and_written() {
    let layout = Layout::parse(TEXT).unwrap();
    assert_eq!(layout.to_text(), TEXT);
    let roles: Vec<_> = layout.members().iter().collect();
    assert_eq!(
        roles,
        [(MemberId(1), MemberRole::Voter), (MemberId(2), MemberRole::Logger)],
        "a node that runs no engine never leads"
    );
    assert_eq!(layout.named("node-2").unwrap().number, NodeId(2));
}

#[track_caller]
fn refuse(from: &str, to: &str, line: usize, reason: &str) {
    assert!(TEXT.contains(from), "{from}");
    let error = Layout::parse(&TEXT.replace(from, to)).expect_err(to);
    assert_eq!(error.line, line, "{error}");
    assert!(error.reason.contains(reason), "{error}");
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    refuse("number = 2", "number = 1", 10, "has the number, name or address of 'node-1'");
    refuse("name = \"node-2\"", "name = \"-\"", 10, "no name of a node");
    refuse("127.0.0.1:7402", "localhost", 13, "is an address");
    refuse("roles = [\"log\"]", "roles = [\"logs\"]", 14, "roles is a list of");
    refuse("number = 2", "numero = 2", 11, "'numero' is none of");
    refuse("client_address = \"127.0.0.1:3307\"\n", "", 3, "needs a client_address");
    refuse("\"database\", \"log\"", "\"database\"", 3, "needs the role log as well");
    let all = r#"["database", "log", "pages", "control"]"#;
    refuse(all, r#"["log"]"#, 1, "no node has the role database");
    refuse(", \"control\"", "", 1, "no node has the role control");
    refuse("000102", "", 1, "cluster id");
}
