use super::*;

const IDLE: Load = Load { behind_bytes: 10, pending_pages: 1000, is_hurried: false };

fn at(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn a_store_that_is_far_behind_or_hurried_takes_whole_batches() {
    let mut pace = Pace::new(64, 1000, 10);
    assert_eq!(pace.pages(at(0), Load { behind_bytes: 501, ..IDLE }), 64);
    assert_eq!(pace.pages(at(0), Load { is_hurried: true, ..IDLE }), 64);
    assert_eq!(pace.pages(at(0), Load { behind_bytes: 500, ..IDLE }), 0);
}

#[test]
fn the_trickle_is_as_fast_as_it_was_set() {
    let mut pace = Pace::new(64, 1000, 100);
    let taken: usize = (0..100_000).step_by(50).map(|ms| pace.pages(at(ms), IDLE)).sum();
    assert!((9_700..=10_000).contains(&taken), "{taken}");
}

#[test]
fn a_long_rest_saves_up_for_one_batch() {
    let mut pace = Pace::new(64, 1000, 100);
    pace.pages(at(0), IDLE);
    assert_eq!(pace.pages(at(1_000_000), IDLE), 64);
    assert_eq!(pace.pages(at(1_000_010), IDLE), 0);
}

#[test]
fn a_few_pages_wait_as_long_as_a_batch_and_cost_what_they_are() {
    let mut pace = Pace::new(64, 1000, 64);
    let few = Load { pending_pages: 3, ..IDLE };
    pace.pages(at(0), few);
    assert_eq!(pace.pages(at(900), few), 0);
    assert_eq!(pace.pages(at(1000), few), 3);
    assert_eq!(pace.pages(at(1000), few), 0);
    assert_eq!(pace.pages(at(1047), few), 3);
    assert_eq!(pace.pages(at(2000), Load { pending_pages: 0, ..IDLE }), 0);
}
