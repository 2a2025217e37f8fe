//! Groups under faults, drawn from seeds; and bugs that these runs find.
//!
//! `FIRN_SEED=7` replays one seed, `FIRN_SEEDS=0..5000` runs more than usual.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use firn_consensus::Role;

use crate::checker::Violation;
use crate::simulation::{Bug, Plan, Simulation, Summary};

const USUAL_SEEDS: Range<u64> = 0..60;

fn seeds() -> Range<u64> {
    let number = |text: &str| text.parse::<u64>().expect("seeds are numbers");
    if let Ok(seed) = std::env::var("FIRN_SEED") {
        return number(&seed)..number(&seed) + 1;
    }
    let Ok(range) = std::env::var("FIRN_SEEDS") else { return USUAL_SEEDS };
    let (from, to) = range.split_once("..").expect("write FROM..TO");
    number(from)..number(to)
}

fn plan(roles: &[Role]) -> Plan {
    let roles = roles.to_vec();
    Plan { roles, faulty_ms: 20_000, bug: Bug::None, late_ms: 2_000, changes: false }
}

/// Panics of the library are violations too.
fn run(seed: u64, plan: &Plan) -> Result<Summary, Violation> {
    let simulation = || Simulation::new(seed, plan.clone()).run();
    match catch_unwind(AssertUnwindSafe(simulation)) {
        Ok(outcome) => outcome,
        Err(payload) => {
            let text = payload.downcast_ref::<String>().cloned();
            Err(format!("a panic: {}", text.unwrap_or_default()))
        }
    }
}

fn all_hold(plan: &Plan) -> Summary {
    let mut total = Summary::default();
    for seed in seeds() {
        let summary = run(seed, plan).unwrap_or_else(|what| panic!("FIRN_SEED={seed}: {what}"));
        total.add(summary);
    }
    total
}

#[test]
fn three_voters() {
    let total = all_hold(&plan(&[Role::Voter; 3]));
    assert!(total.has_everything_but_changes(), "{total:?}");
}

#[test]
fn five_voters() {
    let total = all_hold(&plan(&[Role::Voter; 5]));
    assert!(total.has_everything_but_changes(), "{total:?}");
}

#[test]
fn two_voters_and_a_logger() {
    let total = all_hold(&plan(&[Role::Voter, Role::Voter, Role::Logger]));
    assert!(total.has_everything_but_changes(), "{total:?}");
}

#[test]
fn members_come_and_go() {
    let total = all_hold(&Plan { changes: true, ..plan(&[Role::Voter; 3]) });
    assert!(total.has_everything_but_changes() && total.changes > 0, "{total:?}");
}

/// The library draws from the system's randomness and hashes ids; neither may decide anything.
#[test]
fn runs_replay_from_their_seeds() {
    let plan = Plan { changes: true, ..plan(&[Role::Voter; 3]) };
    for seed in 0..10 {
        assert_eq!(run(seed, &plan), run(seed, &plan), "seed {seed}");
    }
}

/// Some seed finds the bug. The first seed is near one that does, to save time.
fn is_found(first_seed: u64, plan: &Plan) {
    let bug = plan.bug;
    let found = (first_seed..first_seed + 500)
        .find_map(|seed| run(seed, plan).err().map(|what| (seed, what)));
    let (seed, what) = found.unwrap_or_else(|| panic!("{bug:?} was not found"));
    println!("{bug:?} is found by seed {seed}: {what}");
}

#[test]
fn a_vote_that_is_sent_before_it_is_synced_is_found() {
    is_found(160, &Plan { bug: Bug::VoteSentBeforeItIsSynced, ..plan(&[Role::Voter; 3]) });
}

#[test]
fn an_entry_that_counts_before_it_is_synced_is_found() {
    is_found(0, &Plan { bug: Bug::CountedBeforeItIsSynced, ..plan(&[Role::Voter; 3]) });
}

#[test]
fn a_term_that_is_not_checked_is_found() {
    is_found(385, &Plan { bug: Bug::TermNotChecked, late_ms: 6_000, ..plan(&[Role::Voter; 3]) });
}

#[test]
fn a_durable_index_that_is_forgotten_is_found() {
    let bug = Bug::DurableIndexForgotten;
    is_found(45, &Plan { bug, changes: true, ..plan(&[Role::Voter; 3]) });
}

#[test]
fn ticks_that_are_missed_are_found() {
    is_found(60, &Plan { bug: Bug::TicksMissed, ..plan(&[Role::Voter; 3]) });
}
