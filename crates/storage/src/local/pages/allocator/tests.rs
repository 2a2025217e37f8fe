use proptest::prelude::*;

use super::*;

fn run(first: u32, slots: u32) -> Run {
    Run { first: SlotNo(first), slots }
}

#[test]
fn adjacent_slots_are_found_behind_the_cursor_first_and_then_before_it() {
    let mut slots = SlotAllocator::new(200);
    assert_eq!(slots.take_adjacent(100), Some(run(0, 100)));
    assert_eq!(slots.take_adjacent(100), Some(run(100, 100)));
    assert_eq!(slots.take_adjacent(1), None);
    (60..70).for_each(|slot| slots.release(SlotNo(slot)));
    assert_eq!(slots.take_adjacent(11), None);
    assert_eq!(slots.take_adjacent(10), Some(run(60, 10)));
    assert_eq!(slots.free(), 0);
}

#[test]
fn scattered_slots_fill_holes() {
    let mut slots = SlotAllocator::new(130);
    slots.take_adjacent(130);
    [3, 64, 65, 129].into_iter().for_each(|slot| slots.release(SlotNo(slot)));
    assert_eq!(slots.take_scattered(5), None);
    assert_eq!(slots.take_scattered(4), Some(vec![run(3, 1), run(64, 2), run(129, 1)]));
}

#[test]
fn no_run_crosses_the_end_of_a_file() {
    let mut slots = SlotAllocator::new(SLOTS_PER_FILE + 10);
    assert_eq!(slots.take_adjacent(SLOTS_PER_FILE - 4), Some(run(0, SLOTS_PER_FILE - 4)));
    assert_eq!(slots.take_adjacent(8), Some(run(SLOTS_PER_FILE, 8)));
    assert_eq!(
        slots.take_scattered(6),
        Some(vec![run(SLOTS_PER_FILE + 8, 2), run(SLOTS_PER_FILE - 4, 4)])
    );
}

#[test]
#[should_panic(expected = "freed twice")]
fn a_slot_is_freed_once() {
    SlotAllocator::new(10).release(SlotNo(3));
}

proptest! {
    #[test]
    fn no_slot_is_given_out_twice(requests in proptest::collection::vec((0u32..40, any::<bool>()), 1..40)) {
        let mut slots = SlotAllocator::new(300);
        let mut held: Vec<u32> = Vec::new();
        for (count, give_back) in requests {
            if give_back {
                for slot in held.split_off(held.len().saturating_sub(count as usize)) {
                    slots.release(SlotNo(slot));
                }
            } else if let Some(runs) = slots.take_scattered(count) {
                held.extend(runs.iter().flat_map(|run| run.first.0..run.first.0 + run.slots));
            }
            let mut sorted = held.clone();
            sorted.sort_unstable();
            sorted.dedup();
            prop_assert_eq!(sorted.len(), held.len());
            prop_assert_eq!(slots.free() as usize, 300 - held.len());
        }
    }
}
