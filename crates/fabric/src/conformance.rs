//! What callers see of any fabric, as a test for each of them.

use crate::batch::Batch;
use crate::error::FabricError;
use crate::region::{Fabric, Peer};
use crate::words::Ordering;

/// What callers see of any fabric. `peer` reaches what `fabric` registers.
///
/// # Panics
/// If it breaks a promise.
pub fn obeys_the_contract(fabric: &dyn Fabric, peer: &dyn Peer) {
    assert!(matches!(peer.connect("timestamps"), Err(FabricError::Unknown(_))));
    let owner = fabric.register("timestamps", 4).unwrap();
    assert_eq!(
        fabric.register("timestamps", 4).map(drop),
        Err(FabricError::Registered("timestamps".to_owned()))
    );
    let region = peer.connect("timestamps").unwrap();
    assert_eq!((region.length_words(), region.epoch()), (4, fabric.epoch()));
    owner.words()[1].store(7, Ordering::Release);
    let mut words = [9; 4];
    region.read(0, &mut words).unwrap();
    assert_eq!(words, [0, 7, 0, 0]);
    assert_eq!(region.fetch_add(1, 3), Ok(7));
    assert_eq!(region.compare_and_swap(1, 9, 1), Ok(10));
    assert_eq!(region.compare_and_swap(1, 10, 1), Ok(10));
    region.write(2, &[5]).unwrap();
    assert_eq!(owner.words()[1].load(Ordering::Acquire), 1);
    assert_eq!(owner.words()[2].load(Ordering::Acquire), 5);
    region.write_bytes(2, b"fire and ice").unwrap();
    let mut bytes = [0; 12];
    region.read_bytes(2, &mut bytes).unwrap();
    assert_eq!(&bytes, b"fire and ice");
    assert!(matches!(region.read(3, &mut [0; 2]), Err(FabricError::OutOfBounds { .. })));
    assert!(matches!(region.write(usize::MAX, &[0]), Err(FabricError::OutOfBounds { .. })));
    let mut batch = Batch::new();
    batch.write(0, vec![40, 50]);
    let former = batch.fetch_add(0, 2);
    let both = batch.read(0, 2);
    let done = region.submit(batch);
    assert_eq!(region.fetch_add(1, 1), Ok(50), "batches happen in their order");
    let answers = done.wait(region.timeout()).unwrap();
    assert_eq!((answers.word(former), answers.words(both)), (40, &[42, 50][..]));
    let mut forgotten = Batch::new();
    forgotten.write(3, vec![9]);
    drop(region.submit(forgotten));
    let mut word = [0];
    region.read(3, &mut word).unwrap();
    assert_eq!(word, [9], "also one whose end nobody waits for");
    let other = fabric.register("other", 1).unwrap();
    peer.connect("other").unwrap().write(0, &[1]).unwrap();
    assert_eq!(other.words()[0].load(Ordering::Acquire), 1);
}
