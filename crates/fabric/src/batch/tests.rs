use std::time::Duration;

use super::{Answers, Batch, Completion};
use crate::error::FabricError;
use crate::words::AtomicU64;

const MOMENT: Duration = Duration::from_millis(10);

fn words(length: u64) -> Vec<AtomicU64> {
    (0..length).map(AtomicU64::new).collect()
}

#[test]
fn acts_of_a_batch_see_those_before_them() {
    let region = words(8);
    let mut batch = Batch::new();
    batch.write(2, vec![20, 30]);
    let written = batch.read(1, 3);
    let swapped = batch.compare_and_swap(2, 20, 21);
    let missed = batch.compare_and_swap(2, 20, 22);
    let added = batch.fetch_add(2, 9);
    batch.write_bytes(4, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let all = batch.read(0, 8);
    let answers = batch.run(&region).unwrap();
    assert_eq!(answers.words(written), [1, 20, 30]);
    assert_eq!((answers.word(swapped), answers.word(missed), answers.word(added)), (20, 21, 21));
    assert_eq!(answers.words(all), [0, 1, 30, 30, 0x0807_0605_0403_0201, 9, 6, 7]);
}

#[test]
fn a_batch_that_goes_past_the_end_does_nothing() {
    let region = words(4);
    for act in 0..4 {
        let mut batch = Batch::new();
        batch.write(0, vec![99]);
        match act {
            0 => drop(batch.read(3, 2)),
            1 => batch.write(usize::MAX, vec![1]),
            2 => drop(batch.compare_and_swap(4, 0, 1)),
            _ => drop(batch.fetch_add(4, 1)),
        }
        let refused = batch.run(&region);
        assert!(matches!(refused, Err(FabricError::OutOfBounds { length: 4, .. })));
        assert_eq!(region[0].load(crate::words::Ordering::Relaxed), 0);
    }
}

#[test]
fn a_completion_is_told_once_and_waits_no_longer_than_asked() {
    let (done, completer) = Completion::pending();
    assert!(!done.is_done());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| done.wait(Duration::from_secs(60)));
        completer.complete(Ok(Answers(vec![7])));
        assert_eq!(waiting.join().unwrap(), Ok(Answers(vec![7])));
    });
    let (late, completer) = Completion::pending();
    assert_eq!(late.wait(MOMENT), Err(FabricError::TimedOut { timeout: MOMENT }));
    completer.complete(Ok(Answers(Vec::new())));
    let (lost, completer) = Completion::pending();
    drop(completer);
    assert_eq!(lost.wait(MOMENT), Err(FabricError::TimedOut { timeout: MOMENT }));
}
