//! Bugs that are put in on purpose are found.

use firn_testing::simulation::first_failure;

use crate::faults::run;
use crate::forgetful::Bug;

#[test]
fn a_vote_that_is_not_synced_is_found() {
    let failure = first_failure(0..40, |world| {
        run(world, 3, Bug::VoteNotSynced);
    });
    let failure = failure.expect("no seed finds it");
    println!("seed {}: {}", failure.seed, failure.cause);
    assert!(failure.cause.is_panic_with("forgot its vote"), "{failure}");
}

#[test]
fn entries_that_are_not_synced_are_found() {
    let failure = first_failure(0..40, |world| {
        run(world, 3, Bug::EntriesNotSynced);
    });
    let failure = failure.expect("no seed finds it");
    println!("seed {}: {}", failure.seed, failure.cause);
}
