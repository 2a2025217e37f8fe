//! The rules, shown in small stories.

use expect_test::{Expect, expect};

use super::scenario::play;

fn check(steps: &str, told: Expect) {
    told.assert_eq(&play(steps));
}

#[test]
fn readers_share_and_a_writer_waits_for_all_of_them() {
    check(
        "T1 S ant\n T2 S ant\n T3 X ant\n locks\n T1 ends\n T2 ends\n T1 S ant",
        expect![[r#"
        T1 S ant           granted
        T2 S ant           granted
        T3 X ant           waits
          | index 7 key ant  S T1
          | index 7 key ant  S T2
          | index 7 key ant  X T3 waits for T1 T2
        T1 ends
        T2 ends
            T3 gets index 7 key ant
        T1 S ant           waits
    "#]],
    );
}

#[test]
fn a_reader_queues_behind_a_waiting_writer_so_that_writers_do_not_starve() {
    check(
        "T1 S ant\n T2 X ant\n T3 S ant\n T4 S ant\n locks\n T1 ends\n T2 ends",
        expect![[r#"
        T1 S ant           granted
        T2 X ant           waits
        T3 S ant           waits
        T4 S ant           waits
          | index 7 key ant  S T1
          | index 7 key ant  X T2 waits for T1
          | index 7 key ant  S T3 waits for T2
          | index 7 key ant  S T4 waits for T2
        T1 ends
            T2 gets index 7 key ant
        T2 ends
            T3 gets index 7 key ant
            T4 gets index 7 key ant
    "#]],
    );
}

#[test]
fn asking_again_is_free() {
    check(
        "T1 X ant\n T1 S ant\n T1 X ant\n T2 try S ant",
        expect![[r#"
        T1 X ant           granted
        T1 S ant           held already
        T1 X ant           held already
        T2 try S ant       refused, T1 is in the way
    "#]],
    );
}

#[test]
fn an_upgrade_goes_ahead_of_waiters_but_waits_for_holders() {
    check(
        "T1 S ant\n T2 S ant\n T3 X ant\n T4 S ant\n T1 X ant\n locks\n T2 ends\n T1 ends\n T3 ends",
        expect![[r#"
            T1 S ant           granted
            T2 S ant           granted
            T3 X ant           waits
            T4 S ant           waits
            T1 X ant           waits
              | index 7 key ant  S T1
              | index 7 key ant  S T2
              | index 7 key ant  X T1 waits for T2
              | index 7 key ant  X T3 waits for T1
              | index 7 key ant  S T4 waits for T3
            T2 ends
                T1 gets index 7 key ant
            T1 ends
                T3 gets index 7 key ant
            T3 ends
                T4 gets index 7 key ant
        "#]],
    );
}

#[test]
fn two_upgrades_of_one_key_are_a_deadlock() {
    check(
        "T1 S ant\n T2 S ant\n T1 X ant\n T2 X ant\n T2 ends",
        expect![[r#"
        T1 S ant           granted
        T2 S ant           granted
        T1 X ant           waits
        T2 X ant           waits
            T2 is the victim of T2 > T1
        T2 ends
            T1 gets index 7 key ant
    "#]],
    );
}

#[test]
fn a_deadlock_of_two_costs_the_cheaper_transaction() {
    check(
        "T1 weighs 5\n T2 weighs 9\n T1 X ant\n T2 X bee\n T1 X bee\n T2 X ant\n T1 ends",
        expect![[r#"
            T1 weighs 5
            T2 weighs 9
            T1 X ant           granted
            T2 X bee           granted
            T1 X bee           waits
            T2 X ant           waits
                T1 is the victim of T2 > T1
            T1 ends
                T2 gets index 7 key ant
        "#]],
    );
}

#[test]
fn of_equals_the_one_that_began_to_wait_last_goes() {
    check(
        "T1 X ant\n T2 X bee\n T2 X ant\n T1 X bee\n T1 ends",
        expect![[r#"
            T1 X ant           granted
            T2 X bee           granted
            T2 X ant           waits
            T1 X bee           waits
                T1 is the victim of T1 > T2
            T1 ends
                T2 gets index 7 key ant
        "#]],
    );
}

#[test]
fn a_deadlock_of_three() {
    check(
        "T3 weighs 1\n T1 X ant\n T2 X bee\n T3 X cat\n T1 X bee\n T2 X cat\n T3 X ant\n T3 ends\n T2 ends",
        expect![[r#"
            T3 weighs 1
            T1 X ant           granted
            T2 X bee           granted
            T3 X cat           granted
            T1 X bee           waits
            T2 X cat           waits
            T3 X ant           waits
                T2 is the victim of T3 > T1 > T2
            T3 ends
            T2 ends
                T1 gets index 7 key bee
        "#]],
    );
}

#[test]
fn one_request_that_closes_two_circles() {
    check(
        "T1 weighs 9\n T1 X ant\n T2 S bee\n T3 S bee\n T2 S ant\n T3 S ant\n T1 X bee\n T2 ends\n T3 ends",
        expect![[r#"
            T1 weighs 9
            T1 X ant           granted
            T2 S bee           granted
            T3 S bee           granted
            T2 S ant           waits
            T3 S ant           waits
            T1 X bee           waits
                T2 is the victim of T1 > T2
                T3 is the victim of T1 > T3
            T2 ends
            T3 ends
                T1 gets index 7 key bee
        "#]],
    );
}

#[test]
fn a_deadlock_through_the_middle_of_a_queue_is_seen() {
    check(
        "T4 weighs 9\n T1 X ant\n T2 X ant\n T3 X ant\n T4 X bee\n T4 X ant\n T1 X bee\n T1 ends\n T2 ends\n T3 ends",
        expect![[r#"
            T4 weighs 9
            T1 X ant           granted
            T2 X ant           waits
            T3 X ant           waits
            T4 X bee           granted
            T4 X ant           waits
            T1 X bee           waits
                T1 is the victim of T1 > T4
            T1 ends
                T2 gets index 7 key ant
            T2 ends
                T3 gets index 7 key ant
            T3 ends
                T4 gets index 7 key ant
        "#]],
    );
}

#[test]
fn a_timeout_lets_those_behind_go_on() {
    check(
        "T1 S ant\n T2 X ant\n T3 S ant\n T2 times out\n locks",
        expect![[r#"
        T1 S ant           granted
        T2 X ant           waits
        T3 S ant           waits
        T2 times out
            T3 gets index 7 key ant
          | index 7 key ant  S T1
          | index 7 key ant  S T3
    "#]],
    );
}

#[test]
fn a_killed_waiter_keeps_what_it_has() {
    check(
        "T1 S ant\n T2 S ant\n T2 X ant\n T2 cancelled\n T2 cancelled\n locks",
        expect![[r#"
        T1 S ant           granted
        T2 S ant           granted
        T2 X ant           waits
        T2 cancelled       true
            T2 lock wait was cancelled
        T2 cancelled       false
          | index 7 key ant  S T1
          | index 7 key ant  S T2
    "#]],
    );
}

#[test]
fn a_reader_finds_an_implicit_writer() {
    check(
        "T1 writes ant\n T1 held ant\n T2 S ant\n locks\n T1 ends",
        expect![[r#"
        T1 writes ant      goes ahead
        T1 held ant        explicit now
        T2 S ant           waits
          | index 7 key ant  X T1
          | index 7 key ant  S T2 waits for T1
        T1 ends
            T2 gets index 7 key ant
    "#]],
    );
}

#[test]
fn a_writer_asks_when_somebody_waits_even_if_it_has_a_weaker_lock() {
    check(
        "T1 S ant\n T1 writes ant\n T2 X ant\n T1 writes ant\n T1 X ant\n T1 writes ant\n T1 ends",
        expect![[r#"
            T1 S ant           granted
            T1 writes ant      goes ahead
            T2 X ant           waits
            T1 writes ant      must ask
            T1 X ant           granted
            T1 writes ant      goes ahead
            T1 ends
                T2 gets index 7 key ant
        "#]],
    );
}

#[test]
fn a_range_keeps_phantoms_out() {
    check(
        "T1 S [b..d)\n T2 writes ant\n T2 writes bee\n T2 X bee\n T3 X dog\n T1 ends\n T2 ends",
        expect![[r#"
            T1 S [b..d)        granted
            T2 writes ant      goes ahead
            T2 writes bee      must ask
            T2 X bee           waits
            T3 X dog           granted
            T1 ends
                T2 gets index 7 key bee
            T2 ends
        "#]],
    );
}

#[test]
fn a_range_waits_for_keys_and_keys_queue_behind_it() {
    check(
        "T1 X bee\n T2 S [a..c]\n T3 X ant\n T4 S ant\n T5 X dog\n locks\n T1 ends\n T4 ends\n T2 ends",
        expect![[r#"
            T1 X bee           granted
            T2 S [a..c]        waits
            T3 X ant           waits
            T4 S ant           waits
            T5 X dog           granted
              | index 7 key ant  X T3 waits for T2
              | index 7 key ant  S T4 waits for T3
              | index 7 key bee  X T1
              | index 7 key dog  X T5
              | index 7 range [a..c]  S T2 waits for T1
            T1 ends
                T2 gets index 7 range [a..c]
            T4 ends
            T2 ends
                T3 gets index 7 key ant
        "#]],
    );
}

#[test]
fn a_range_that_gives_up_lets_the_keys_go_on() {
    check(
        "T1 S bee\n T2 X [a..c]\n T3 S bee\n T4 S ant\n T2 times out\n locks",
        expect![[r#"
        T1 S bee           granted
        T2 X [a..c]        waits
        T3 S bee           waits
        T4 S ant           waits
        T2 times out
            T3 gets index 7 key bee
            T4 gets index 7 key ant
          | index 7 key ant  S T4
          | index 7 key bee  S T1
          | index 7 key bee  S T3
    "#]],
    );
}

#[test]
fn ranges_meet_where_they_overlap() {
    check(
        "T1 X [a..f)\n T2 X [f..k)\n T3 S [e..g]\n T1 X [b..c]\n T1 S (a..b)\n T1 ends\n T2 ends",
        expect![[r#"
            T1 X [a..f)        granted
            T2 X [f..k)        granted
            T3 S [e..g]        waits
            T1 X [b..c]        held already
            T1 S (a..b)        held already
            T1 ends
            T2 ends
                T3 gets index 7 range [e..g]
        "#]],
    );
}

#[test]
fn a_range_without_keys_is_nothing() {
    check(
        "T1 X [d..b]\n T1 X (b..b)\n locks\n T2 X bee",
        expect![[r#"
        T1 X [d..b]        granted
        T1 X (b..b)        granted
        T2 X bee           granted
    "#]],
    );
}

#[test]
fn a_scan_meets_the_writer_who_came_before_its_range() {
    check(
        "T1 writes bee\n T2 S [a..c]\n T1 held bee\n T2 S bee\n locks\n T1 writes ant\n T1 X ant\n T1 ends",
        expect![[r#"
            T1 writes bee      goes ahead
            T2 S [a..c]        granted
            T1 held bee        explicit now
            T2 S bee           waits
              | index 7 key bee  X T1
              | index 7 key bee  S T2 waits for T1
              | index 7 range [a..c]  S T2
            T1 writes ant      must ask
            T1 X ant           waits
                T1 is the victim of T1 > T2
            T1 ends
                T2 gets index 7 key bee
        "#]],
    );
}

#[test]
fn who_has_a_key_goes_ahead_with_a_range_over_it() {
    check(
        "T1 S bee\n T2 X bee\n T1 S [a..c]\n T1 ends",
        expect![[r#"
        T1 S bee           granted
        T2 X bee           waits
        T1 S [a..c]        granted
        T1 ends
            T2 gets index 7 key bee
    "#]],
    );
}

#[test]
fn a_deadlock_between_a_range_and_a_key() {
    check(
        "T1 S [a..c]\n T2 X dog\n T2 X bee\n T1 X dog\n T1 ends",
        expect![[r#"
            T1 S [a..c]        granted
            T2 X dog           granted
            T2 X bee           waits
            T1 X dog           waits
                T1 is the victim of T1 > T2
            T1 ends
                T2 gets index 7 key bee
        "#]],
    );
}

#[test]
fn an_upgrade_that_stops_a_waiting_range_closes_a_circle() {
    check(
        "T1 S ant\n T2 S ant\n T3 X cow\n T4 X dog\n T4 S [a..c~]\n T2 X dog\n T1 X ant\n T1 ends\n T3 ends",
        expect![[r#"
            T1 S ant           granted
            T2 S ant           granted
            T3 X cow           granted
            T4 X dog           granted
            T4 S [a..c~]       waits
            T2 X dog           waits
            T1 X ant           waits
                T1 is the victim of T4 > T1 > T2
            T1 ends
            T3 ends
                T4 gets index 7 range [a..c~]
        "#]],
    );
}

#[test]
fn a_row_that_did_not_match_is_given_back() {
    check(
        "T1 X ant\n T1 X bee\n T2 X ant\n T1 gives back ant\n T2 X bee\n T1 ends",
        expect![[r#"
        T1 X ant           granted
        T1 X bee           granted
        T2 X ant           waits
        T1 gives back ant
            T2 gets index 7 key ant
        T2 X bee           waits
        T1 ends
            T2 gets index 7 key bee
    "#]],
    );
}

#[test]
fn tables_are_locked_as_a_whole() {
    check(
        "T1 S table\n T2 S table\n T3 X table\n T1 ends\n T2 ends",
        expect![[r#"
        T1 S table         granted
        T2 S table         granted
        T3 X table         waits
        T1 ends
        T2 ends
            T3 gets table 3
    "#]],
    );
}

#[test]
fn an_owner_that_ends_while_it_waits_leaves_nothing() {
    check(
        "T1 X ant\n T2 X ant\n T3 X ant\n T2 ends\n T1 ends",
        expect![[r#"
        T1 X ant           granted
        T2 X ant           waits
        T3 X ant           waits
        T2 ends
        T1 ends
            T3 gets index 7 key ant
    "#]],
    );
}
