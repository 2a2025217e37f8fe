//! One script, one story. `UPDATE_EXPECT=1 cargo test -p firn-consensus` writes the output again.

use std::path::Path;

use expect_test::expect_file;

use crate::scenario;

fn check(story: &str) {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/group/scenarios");
    let path = scripts.join(format!("{story}.txt"));
    #[expect(clippy::disallowed_methods, reason = "the script is a file of the sources")]
    let script = std::fs::read_to_string(&path).expect("the script is there");
    expect_file![path].assert_eq(&scenario::run(&script));
}

#[test]
fn election() {
    check("election");
}

#[test]
fn one_round_trip() {
    check("one_round_trip");
}

#[test]
fn lost_messages() {
    check("lost_messages");
}

#[test]
fn deposed_leader() {
    check("deposed_leader");
}

#[test]
fn logger_does_not_lead() {
    check("logger_does_not_lead");
}

#[test]
fn logger_with_the_only_copy() {
    check("logger_with_the_only_copy");
}

#[test]
fn member_added() {
    check("member_added");
}

#[test]
fn member_removed() {
    check("member_removed");
}

#[test]
fn leader_removed() {
    check("leader_removed");
}

#[test]
fn away_for_too_long() {
    check("away_for_too_long");
}

#[test]
fn slow_disk() {
    check("slow_disk");
}

#[test]
fn time_with_a_slow_disk() {
    check("time_with_a_slow_disk");
}

#[test]
fn votes_are_synced() {
    check("votes_are_synced");
}

#[test]
fn refused_candidate() {
    check("refused_candidate");
}

#[test]
fn promise_without_log() {
    check("promise_without_log");
}

#[test]
fn reads() {
    check("reads");
}

#[test]
fn reads_after_a_hand_over() {
    check("reads_after_a_hand_over");
}

#[test]
fn fenced_writer() {
    check("fenced_writer");
}

#[test]
fn hand_over() {
    check("hand_over");
}

#[test]
fn one_member() {
    check("one_member");
}

#[test]
fn pipelined() {
    check("pipelined");
}

#[test]
fn leads_again() {
    check("leads_again");
}

#[test]
fn taken_over() {
    check("taken_over");
}
