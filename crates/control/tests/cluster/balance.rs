//! How much is moved, and where everything is then, compared with the least that is possible.

use std::collections::BTreeMap;

use firn_base::SpaceId;
use firn_consensus::Role;
use firn_control::{
    EVERY_SPACE, GroupId, NodeId, Proposal, ReplicaState, Settings, equal_parts, place_chunk,
    spread,
};

use crate::node::POSITION;
use crate::simulation::ALL_ROLES;
use crate::world::{Bug, World, settings, whole_space};

/// A cluster with chunks of different sizes, its nodes spread over the zones.
fn cluster(nodes: u64, zones: u64, chunks: u32) -> World {
    let settings = Settings { moves_per_node: 4, ..settings() };
    let mut world = World::new(1, settings, Bug::None);
    for number in 0..nodes {
        world.join(&format!("z{}", number % zones), &ALL_ROLES, 1 << 36);
    }
    run(&mut world, 20);
    let members = (1..=3).map(|node| (NodeId(node), Role::Voter)).collect::<Vec<_>>();
    for _ in 0..2 {
        let members = members.clone();
        let found = Proposal::FoundGroup { members, wanted_voters: 3, wanted_loggers: 0 };
        world.request(found).expect("the group can be founded");
    }
    for space in 1..=chunks {
        let nodes = place_chunk(world.catalog()).into_iter().collect();
        let (first, end) = whole_space();
        world.pages.insert(SpaceId(space), 100 + (space * 37) % 800);
        let group = firn_control::GroupId(1);
        let (space, position) = (SpaceId(space), POSITION);
        let create = Proposal::CreateChunk { space, first, end, group, position, nodes };
        world.request(create).expect("the chunk can be made");
        run(&mut world, 8);
    }
    rest(&mut world);
    world
}

fn run(world: &mut World, ticks: u64) {
    for _ in 0..ticks {
        world.tick().expect("everything holds");
    }
}

/// Runs until nothing moves any more.
fn rest(world: &mut World) {
    let mut quiet = 0;
    for _ in 0..200 {
        run(world, 50);
        quiet = if world.catalog().operations().is_empty() { quiet + 1 } else { 0 };
        if quiet == 4 {
            return;
        }
    }
    panic!("it does not come to rest: {:#?}", world.catalog().operations());
}

fn bytes_on(world: &World) -> BTreeMap<NodeId, u64> {
    let catalog = world.catalog();
    let nodes = catalog.nodes().keys();
    let bytes = |node: NodeId| catalog.chunks_on(node).map(|(_, chunk)| chunk.bytes).sum();
    nodes.map(|node| (*node, bytes(*node))).collect()
}

fn all_bytes(world: &World) -> u64 {
    bytes_on(world).values().sum()
}

/// No node has more than the average by a quarter, and none less.
fn is_even(world: &World) {
    let bytes = bytes_on(world);
    let takers = bytes.iter().filter(|(node, _)| world.catalog().nodes()[node].takes_more());
    let takers: Vec<_> = takers.map(|(_, bytes)| *bytes).collect();
    let average = takers.iter().sum::<u64>() / takers.len() as u64;
    for one in &takers {
        let far = one.abs_diff(average) * 4 > average;
        assert!(!far, "{one} of {average} bytes on average: {bytes:?}");
    }
}

#[test]
fn a_new_node_gets_its_share_and_no_more_is_moved() {
    let mut world = cluster(6, 1, 60);
    is_even(&world);
    let before = world.fetched_bytes;
    world.join("z0", &ALL_ROLES, 1 << 36);
    rest(&mut world);
    is_even(&world);
    let (moved, least) = (world.fetched_bytes - before, all_bytes(&world) / 7);
    println!("moved {moved} bytes; an even share is {least}");
    assert!(moved > 0 && moved <= least + least / 4, "{moved} of {least}");
}

#[test]
fn what_a_dead_node_had_is_copied_once() {
    for zones in [1, 3] {
        let world = cluster(6, zones, 60);
        copied_once(world, zones == 1);
    }
}

fn copied_once(mut world: World, evenly: bool) {
    let (before, had) = (world.fetched_bytes, bytes_on(&world)[&NodeId(5)]);
    world.nodes.get_mut(&NodeId(5)).unwrap().stop();
    rest(&mut world);
    let moved = world.fetched_bytes - before;
    println!("moved {moved} bytes; the node had {had}");
    assert!(moved >= had && moved <= had + had / 4, "{moved} of {had}");
    let three = |world: &World| {
        let chunks = world.catalog().chunks();
        chunks.values().all(|chunk| chunk.nodes_in(ReplicaState::InService).count() == 3)
    };
    assert!(three(&world));
    assert_eq!(bytes_on(&world)[&NodeId(5)], 0);
    if evenly {
        is_even(&world);
    }
}

#[test]
fn a_drained_node_gives_away_what_it_has_and_no_more() {
    let mut world = cluster(7, 1, 60);
    let (before, had) = (world.fetched_bytes, bytes_on(&world)[&NodeId(4)]);
    world.request(Proposal::Drain { node: NodeId(4), on: true }).unwrap();
    rest(&mut world);
    let moved = world.fetched_bytes - before;
    println!("moved {moved} bytes; the node had {had}");
    assert!(moved >= had && moved <= had + had / 4, "{moved} of {had}");
    assert_eq!(bytes_on(&world)[&NodeId(4)], 0);
    is_even(&world);
    world.request(Proposal::Remove { node: NodeId(4) }).expect("it has nothing any more");
}

#[test]
fn a_node_with_twice_the_room_gets_twice_as_much() {
    let mut world = cluster(5, 1, 60);
    world.join("z0", &ALL_ROLES, 1 << 37);
    rest(&mut world);
    let bytes = bytes_on(&world);
    let others = (all_bytes(&world) - bytes[&NodeId(6)]) / 5;
    let large = bytes[&NodeId(6)];
    assert!(large > others * 8 / 5 && large < others * 12 / 5, "{bytes:?}");
}

/// Four nodes, and the pages of a few spaces in 64 parts with two copies each.
fn spread_cluster() -> World {
    let settings = Settings { replicas: 2, chunk_pages: 64, ..settings() };
    let mut world = World::new(1, settings, Bug::None);
    for _ in 0..4 {
        world.join("z0", &ALL_ROLES, 1 << 36);
    }
    run(&mut world, 20);
    let members = (1..=3).map(|node| (NodeId(node), Role::Voter)).collect::<Vec<_>>();
    for _ in 0..2 {
        let members = members.clone();
        let found = Proposal::FoundGroup { members, wanted_voters: 3, wanted_loggers: 0 };
        world.request(found).expect("the group can be founded");
    }
    for space in 1..=12 {
        world.pages.insert(SpaceId(space), 40 + space * space * 300);
    }
    let all = world.catalog().nodes().keys().copied().collect();
    for ((first, end), nodes) in equal_parts(64).into_iter().zip(spread(&all, 64, 2)) {
        let (space, position, group) = (EVERY_SPACE, POSITION, GroupId(1));
        let create = Proposal::CreateChunk { space, first, end, group, position, nodes };
        world.request(create).expect("the chunk can be made");
    }
    rest(&mut world);
    world
}

fn copies(world: &World) -> BTreeMap<NodeId, usize> {
    let count = |node: &NodeId| (*node, world.catalog().chunks_on(*node).count());
    world.catalog().nodes().keys().map(count).collect()
}

#[test]
fn four_nodes_with_two_copies_have_half_of_the_pages_each() {
    let world = spread_cluster();
    let counts = copies(&world);
    assert!(counts.values().all(|count| (28..=36).contains(count)), "{counts:?}");
    is_even(&world);
    let pages: u32 = world.pages.values().sum();
    assert_eq!(all_bytes(&world), 2 * u64::from(pages) * (16 << 10));
}

#[test]
fn parts_of_all_spaces_go_to_a_new_node_and_away_from_a_dead_one() {
    let mut world = spread_cluster();
    let before = world.fetched_bytes;
    world.join("z0", &ALL_ROLES, 1 << 36);
    rest(&mut world);
    is_even(&world);
    let (moved, least) = (world.fetched_bytes - before, all_bytes(&world) / 5);
    assert!(moved > 0 && moved <= least + least / 4, "{moved} of {least}");
    world.nodes.get_mut(&NodeId(2)).unwrap().stop();
    rest(&mut world);
    assert_eq!(bytes_on(&world)[&NodeId(2)], 0);
    is_even(&world);
    let chunks = world.catalog().chunks();
    assert!(chunks.values().all(|one| one.nodes_in(ReplicaState::InService).count() == 2));
}

#[test]
fn what_is_founded_is_spread_evenly_and_over_all_pairs_of_nodes() {
    for (nodes, copies) in [(1, 1), (2, 2), (3, 3), (4, 2), (5, 3), (8, 2), (9, 4), (3, 5)] {
        let all = (1..=nodes).map(NodeId).collect();
        let placed = spread(&all, 64, copies);
        assert_eq!(placed, spread(&all, 64, copies), "founders agree");
        let copies = copies.min(nodes as usize);
        assert!(placed.iter().all(|of_chunk| of_chunk.len() == copies));
        let on = |node: &NodeId| placed.iter().filter(|of_chunk| of_chunk.contains(node)).count();
        let counts: Vec<usize> = all.iter().map(on).collect();
        let even = 64 * copies / nodes as usize;
        assert!(counts.iter().all(|count| count.abs_diff(even) <= copies), "{counts:?}");
        let together =
            |a: &NodeId, b: &NodeId| placed.iter().any(|of| of.contains(a) && of.contains(b));
        assert!(copies < 2 || all.iter().all(|a| all.iter().all(|b| together(a, b))), "{nodes}");
    }
}

#[test]
fn parts_are_all_places_once() {
    for count in [1, 2, 16, 63] {
        let parts = equal_parts(count);
        assert_eq!(parts.len(), count as usize);
        assert_eq!((parts[0].0, parts[parts.len() - 1].1), whole_space());
        assert!(parts.windows(2).all(|two| two[0].1 == two[1].0));
        assert!(parts.iter().all(|(first, end)| first < end));
    }
}
