use super::InProcessFabric;
use crate::conformance::obeys_the_contract;
use crate::epoch::Epoch;
use crate::error::FabricError;
use crate::region::Fabric;
use crate::words::Ordering;

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
