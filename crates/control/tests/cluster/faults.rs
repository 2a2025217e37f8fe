//! Clusters under faults, drawn from seeds; and bugs that these runs find.
//!
//! `FIRN_SEED=7` replays one seed, `FIRN_SEEDS=0..5000` runs more than usual.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::checker::Violation;
use crate::simulation::{Plan, Simulation, Summary};
use crate::world::Bug;

const USUAL_SEEDS: Range<u64> = 0..20;

fn seeds() -> Range<u64> {
    let number = |text: &str| text.parse::<u64>().expect("seeds are numbers");
    if let Ok(seed) = std::env::var("FIRN_SEED") {
        return number(&seed)..number(&seed) + 1;
    }
    let Ok(range) = std::env::var("FIRN_SEEDS") else { return USUAL_SEEDS };
    let (from, to) = range.split_once("..").expect("write FROM..TO");
    number(from)..number(to)
}

fn plan(nodes: u64, zones: u64) -> Plan {
    Plan { bug: Bug::None, nodes, zones, faulty: 3_000, is_spread: false }
}

/// Panics are violations too.
fn run(seed: u64, plan: Plan) -> Result<Summary, Violation> {
    let outcome = catch_unwind(AssertUnwindSafe(|| Simulation::new(seed, plan).run()));
    outcome.unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        Err(format!("a panic: {}", text.unwrap_or_default()))
    })
}

fn all_hold(plan: Plan) {
    let mut total = Summary::default();
    for seed in seeds() {
        total.add(run(seed, plan).unwrap_or_else(|what| panic!("FIRN_SEED={seed}: {what}")));
    }
    println!("{total:?}");
    assert!(total.has_everything(), "{total:?}");
}

#[test]
fn seven_nodes_with_parts_of_all_spaces() {
    all_hold(Plan { is_spread: true, ..plan(7, 2) });
}

#[test]
fn six_nodes_in_three_zones() {
    all_hold(plan(6, 3));
}

#[test]
fn five_nodes_in_two_zones() {
    all_hold(plan(5, 2));
}

#[test]
fn nine_nodes_in_one_zone() {
    all_hold(plan(9, 1));
}

#[test]
fn runs_replay_from_their_seeds() {
    for seed in 0..3 {
        assert_eq!(run(seed, plan(6, 3)), run(seed, plan(6, 3)), "seed {seed}");
    }
}

/// Some seed finds the bug.
fn is_found(bug: Bug) {
    is_found_in(Plan { bug, ..plan(6, 3) });
}

fn is_found_in(plan: Plan) {
    let bug = plan.bug;
    let found = (0..100).find_map(|seed| run(seed, plan).err().map(|what| (seed, what)));
    let (seed, what) = found.unwrap_or_else(|| panic!("{bug:?} was not found"));
    println!("{bug:?} is found by seed {seed}: {what}");
}

#[test]
fn orders_without_a_fence_are_found() {
    is_found(Bug::NoFence);
}

#[test]
fn a_copy_that_is_acknowledged_at_once_is_found() {
    is_found(Bug::CopyAcknowledgedAtOnce);
}

#[test]
fn a_part_that_is_acknowledged_at_once_is_found() {
    is_found_in(Plan { bug: Bug::PartAcknowledgedAtOnce, is_spread: true, ..plan(7, 2) });
}

#[test]
fn a_chunk_that_is_narrowed_before_the_upper_one_serves_is_found() {
    is_found_in(Plan { bug: Bug::NarrowedEarly, is_spread: true, ..plan(7, 2) });
}

#[test]
fn a_learner_that_has_not_caught_up_is_found() {
    is_found(Bug::CaughtUpAtOnce);
}

#[test]
fn a_control_node_that_skips_an_entry_is_found() {
    is_found(Bug::EntrySkipped);
}

#[test]
fn a_report_that_is_older_than_it_says_is_found() {
    is_found(Bug::HeardTooMuch);
}
