//! Leases at page nodes: taken everywhere, renewed, moved, ended.

use std::sync::Arc;

use firn_api::{PageStore, PageStoreError};
use firn_base::Lsn;
use firn_page_service::RemotePagesOptions;
use firn_testing::simulation::for_each_seed;

use crate::shelf::Shelf;
use crate::support::{MS, SECOND, client_options, open, serve};

fn held(position: u64) -> Vec<(String, u64)> {
    vec![("replica of database".to_owned(), position)]
}

#[test]
fn leases_last_as_long_as_their_holder() {
    for_each_seed(0..10, |world| {
        let shelves = [Shelf::with_log(1000), Shelf::with_log(1000)];
        let nodes: Vec<_> = (1..)
            .zip(&shelves)
            .map(|(number, shelf)| serve(world, number, Arc::clone(shelf) as _))
            .collect();
        let client = world.start("database", &world.new_disk());
        let options = RemotePagesOptions { lease_timeout: SECOND, ..client_options() };
        let pages = open(world, &client, &[1, 2], options);
        let lease = pages.hold("replica", Lsn(80)).unwrap();
        assert_eq!((shelves[0].held(), shelves[1].held()), (held(80), held(80)));
        lease.advance(Lsn(96));
        lease.advance(Lsn(88));
        assert_eq!(lease.position(), Lsn(96));
        world.sleep(5 * SECOND);
        assert_eq!((shelves[0].held(), shelves[1].held()), (held(96), held(96)));
        drop(lease);
        world.sleep(200 * MS);
        assert_eq!((shelves[0].held(), shelves[1].held()), (vec![], vec![]));
        // A holder that dies says nothing more.
        let other = pages.hold("replica", Lsn(104)).unwrap();
        client.crash();
        world.sleep(800 * MS);
        assert_eq!(shelves[0].held(), held(104), "it may come back");
        world.sleep(SECOND);
        assert_eq!((shelves[0].held(), shelves[1].held()), (vec![], vec![]));
        assert_eq!(nodes[0].service.status().holders, 0);
        assert_eq!(other.position(), Lsn(104));
    });
}

#[test]
fn a_node_that_comes_back_gets_the_leases_again() {
    for_each_seed(0..10, |world| {
        let shelves = [Shelf::with_log(1000), Shelf::with_log(1000)];
        let _first = serve(world, 1, Arc::clone(&shelves[0]) as _);
        let client = world.start("database", &world.new_disk());
        let pages = open(world, &client, &[1, 2], client_options());
        let clock = world.clock();
        let began = clock.monotonic();
        let lease = pages.hold("replica", Lsn(80)).unwrap();
        let took = clock.monotonic() - began;
        assert!((SECOND..2 * SECOND).contains(&took), "it waits for the second node: {took:?}");
        let second = serve(world, 2, Arc::clone(&shelves[1]) as _);
        world.sleep(3 * SECOND);
        assert_eq!(shelves[1].held(), held(80));
        second.process.kill();
        drop(second);
        assert_eq!(shelves[1].held(), vec![]);
        let _second = serve(world, 2, Arc::clone(&shelves[1]) as _);
        world.sleep(SECOND);
        assert_eq!(shelves[1].held(), held(80));
        drop(lease);
    });
}

#[test]
fn a_position_that_no_node_can_hold_is_refused() {
    for_each_seed(0..10, |world| {
        let shelves = [Shelf::with_log(1000), Shelf::with_log(1000)];
        let first = serve(world, 1, Arc::clone(&shelves[0]) as _);
        let second = serve(world, 2, Arc::clone(&shelves[1]) as _);
        let client = world.start("database", &world.new_disk());
        let options = RemotePagesOptions { patience: 3 * SECOND, ..client_options() };
        let pages = open(world, &client, &[1, 2], options);
        shelves[0].state.lock().kept_from = Lsn(160);
        shelves[1].state.lock().kept_from = Lsn(200);
        let refused = pages.hold("replica", Lsn(152)).map(drop).unwrap_err();
        let PageStoreError::NotKept { position, kept_from } = refused else { panic!("{refused}") };
        assert_eq!((position, kept_from), (Lsn(152), Lsn(160)), "the first node keeps more");
        let lease = pages.hold("replica", Lsn(160)).unwrap();
        assert_eq!((shelves[0].held(), shelves[1].held()), (held(160), vec![]));
        drop(lease);
        second.process.crash();
        drop(pages.hold("replica", Lsn(200)).unwrap());
        first.process.crash();
        let error = pages.hold("replica", Lsn(200)).map(drop).unwrap_err();
        assert!(error.is_transient(), "{error}");
    });
}
