//! The figures of rounds.

use super::round::{Round, Transaction};
use super::*;

fn at(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// A commit each 10 ms but from 1200 to 1700, and one each 20 ms until 2000.
fn interrupted() -> Vec<Transaction> {
    let ends =
        (1000..1200).step_by(10).chain((1700..2000).step_by(20)).chain((2000..3000).step_by(10));
    ends.map(|end| Transaction { began: at(end - 10), ended: at(end) }).collect()
}

#[test]
fn a_round_says_how_long_nothing_went_and_when_it_went_as_before() {
    let mut done = interrupted();
    done.push(Transaction { began: at(1190), ended: at(1710) });
    done.reverse();
    let round = Round::of(at(1000), at(300), false, 100.0, at(3000), done);
    let line = round.line(3, 9);
    assert!(line.starts_with("round 3 of 9: 510 ms without a commit"), "{line}");
    // The window from 1960 on has two commits too few, which is enough.
    assert!(line.contains("after 960 ms at 90 % of 100/s again"), "{line}");
    assert!(line.ends_with("longest transaction 520 ms"), "{line}");
}

#[test]
fn a_server_that_does_not_come_back_is_told() {
    let round = Round::of(at(1000), at(300), true, 100.0, at(4000), Vec::new());
    let line = round.line(1, 1);
    assert!(line.contains("3000 ms without a commit, not at 90 %"), "{line}");
    assert!(line.ends_with("the command failed"), "{line}");
}
