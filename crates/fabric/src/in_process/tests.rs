use super::InProcessFabric;
use crate::epoch::Epoch;
use crate::error::FabricError;
use crate::region::Fabric;
use crate::words::Ordering;

/// What callers see of any fabric. `peer` reaches what `fabric` registers.
pub(crate) fn obeys_the_contract(fabric: &dyn Fabric, peer: &dyn crate::Peer) {
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
    let other = fabric.register("other", 1).unwrap();
    peer.connect("other").unwrap().write(0, &[1]).unwrap();
    assert_eq!(other.words()[0].load(Ordering::Acquire), 1);
}

#[test]
fn the_fabric_within_a_process_obeys_the_contract() {
    let fabric = InProcessFabric::new(Epoch(3));
    obeys_the_contract(&fabric, &*fabric.peer());
}

#[test]
fn nobody_is_told_what_an_owner_has_left_behind() {
    let fabric = InProcessFabric::new(Epoch(3));
    let (peer, owner) = (fabric.peer(), fabric.register("a", 1).unwrap());
    let region = peer.connect("a").unwrap();
    drop(fabric);
    owner.words()[0].store(1, Ordering::Release);
    let stale = FabricError::Stale { epoch: Epoch(3) };
    assert_eq!(region.read(0, &mut [0]), Err(stale.clone()));
    assert_eq!(peer.connect("a").map(drop), Err(stale));
}
