//! When nodes are suspected, down and up again.

use super::*;
use crate::catalog::tests::example;

/// The detector over a catalog that takes what it decides at once.
struct Run {
    detector: Detector,
    catalog: Catalog,
    now: u64,
}

impl Run {
    fn new() -> Run {
        let mut run = Run { detector: Detector::default(), catalog: example(), now: 0 };
        run.ticks(1, &[1, 2, 3]);
        run
    }

    /// Time passes while these nodes are heard.
    fn ticks(&mut self, count: u64, heard: &[u64]) {
        self.ticks_with(count, heard, &[]);
    }

    /// The same, while these nodes cannot reach those.
    fn ticks_with(&mut self, count: u64, heard: &[u64], accusations: &[(u64, u64)]) {
        for _ in 0..count {
            self.now += 1;
            for node in heard {
                let accused = accusations.iter().filter(|(witness, _)| witness == node);
                let unreachable = accused.map(|(_, node)| NodeId(*node)).collect();
                let settings = self.catalog.settings().clone();
                self.detector.heard(NodeId(*node), &unreachable, &settings, self.now);
            }
            for proposal in self.detector.decide(&self.catalog, self.now) {
                self.catalog.apply(&proposal).expect("it fits");
            }
        }
    }

    fn health(&self, node: u64) -> Health {
        self.catalog.nodes()[&NodeId(node)].health
    }

    fn flaps(&self, node: u64) -> u8 {
        self.catalog.nodes()[&NodeId(node)].flaps
    }

    /// How many ticks the node has to be heard until it is up.
    fn until_up(&mut self, node: u64) -> u64 {
        let before = self.now;
        while self.health(node) != Health::Up {
            self.ticks(1, &[1, 2, 3]);
        }
        self.now - before
    }
}

#[test]
fn a_silent_node_is_suspected_and_then_down() {
    let mut run = Run::new();
    let Settings { suspect_ticks, down_ticks, .. } = *run.catalog.settings();
    run.ticks(u64::from(suspect_ticks) - 1, &[1, 2]);
    assert_eq!(run.health(3), Health::Up);
    run.ticks(1, &[1, 2]);
    assert_eq!(run.health(3), Health::Suspected);
    run.ticks(u64::from(down_ticks - suspect_ticks) - 1, &[1, 2]);
    assert_eq!(run.health(3), Health::Suspected);
    run.ticks(1, &[1, 2]);
    assert_eq!((run.health(3), run.flaps(3)), (Health::Down, 1));
    assert_eq!((run.health(1), run.health(2)), (Health::Up, Health::Up));
}

#[test]
fn a_suspected_node_that_is_heard_is_up() {
    let mut run = Run::new();
    run.ticks(20, &[1, 2]);
    assert_eq!(run.health(3), Health::Suspected);
    run.ticks(1, &[1, 2, 3]);
    assert_eq!((run.health(3), run.flaps(3)), (Health::Up, 0));
}

#[test]
fn a_node_that_comes_and_goes_is_up_later_each_time() {
    let mut run = Run::new();
    let stable = u64::from(run.catalog.settings().stable_ticks);
    for doubled in [1, 2, 4, 8] {
        run.ticks(60, &[1, 2]);
        assert_eq!(run.health(3), Health::Down);
        assert_eq!(run.until_up(3), stable * doubled + 1);
    }
    for _ in 0..10 {
        run.ticks(60, &[1, 2]);
        let until_up = run.until_up(3);
        assert!(until_up <= stable * 64 + 1, "{until_up}");
    }
}

#[test]
fn a_gap_begins_the_wait_again() {
    let mut run = Run::new();
    run.ticks(60, &[1, 2]);
    run.ticks(15, &[1, 2, 3]);
    run.ticks(16, &[1, 2]);
    run.ticks(15, &[1, 2, 3]);
    assert_eq!(run.health(3), Health::Down);
    run.ticks(10, &[1, 2, 3]);
    assert_eq!(run.health(3), Health::Up);
}

#[test]
fn a_calm_node_is_forgiven() {
    let mut run = Run::new();
    let calm = u64::from(run.catalog.settings().calm_ticks);
    for _ in 0..2 {
        run.ticks(60, &[1, 2]);
        run.until_up(3);
    }
    assert_eq!(run.flaps(3), 2);
    run.ticks(calm - 1, &[1, 2, 3]);
    assert_eq!(run.flaps(3), 2);
    run.ticks(2, &[1, 2, 3]);
    assert_eq!(run.flaps(3), 1);
    run.ticks(calm, &[1, 2, 3]);
    assert_eq!(run.flaps(3), 0);
}

#[test]
fn a_node_that_the_others_cannot_reach_is_down() {
    let mut run = Run::new();
    run.ticks_with(49, &[1, 2, 3], &[(1, 3), (2, 3)]);
    assert_eq!(run.health(3), Health::Suspected);
    run.ticks_with(10, &[1, 2, 3], &[(1, 3), (2, 3)]);
    assert_eq!(run.health(3), Health::Down);
    // Hearing it again is not enough, as long as the others do not.
    run.ticks_with(50, &[1, 2, 3], &[(1, 3), (2, 3)]);
    assert_eq!(run.health(3), Health::Down);
    assert!(run.until_up(3) <= 21);
}

#[test]
fn one_witness_is_not_enough() {
    let mut run = Run::new();
    run.ticks_with(200, &[1, 2, 3], &[(1, 2), (1, 3)]);
    assert_eq!([1, 2, 3].map(|node| run.health(node)), [Health::Up; 3]);
}

#[test]
fn a_new_leader_gives_everybody_the_detection_time() {
    let mut run = Run::new();
    run.ticks(40, &[1, 2]);
    run.detector = Detector::default();
    run.ticks(40, &[1, 2]);
    assert_eq!(run.health(3), Health::Suspected);
    run.ticks(20, &[1, 2]);
    assert_eq!(run.health(3), Health::Down);
}
