//! What should happen, one story at a time.

use firn_base::task::sleep;
use firn_base::{Lsn, PageNo, SpaceId};
use firn_consensus::Role;
use firn_control::{Applied, Catalog, GroupId, Health, NodeId, NodeState, Proposal};
use firn_control_service::ProposeError;
use firn_testing::simulation::{LinkFaults, assert_replays, for_each_seed};

use crate::forgetful::Bug;
use crate::world::{Cluster, MS, SECOND, join, propose, propose_one, wait};

fn is_up(catalog: &Catalog, node: u64) -> bool {
    catalog
        .nodes()
        .values()
        .any(|known| known.name == format!("node-{node}") && known.health == Health::Up)
}

/// Starts three control nodes and `nodes` other ones.
fn start(cluster: &mut Cluster, nodes: u64) {
    cluster.start_controls();
    (1..=nodes).for_each(|number| cluster.start_node(number));
    cluster.wait_for("all nodes up", |catalog| (1..=nodes).all(|node| is_up(catalog, node)));
}

#[test]
fn nodes_join_fail_and_come_back() {
    for_each_seed(0..5, |world| {
        let mut cluster = Cluster::new(world, 3, Bug::None);
        start(&mut cluster, 2);
        let client = cluster.client(1);
        let id = client.node().expect("it is up");
        wait(|| client.catalog().filter(|catalog| is_up(catalog, 2)));
        cluster.stop_node(2);
        cluster.wait_for("node 2 down", |catalog| !is_up(catalog, 2));
        wait(|| client.catalog().filter(|catalog| !is_up(catalog, 2)));
        cluster.start_node(2);
        cluster.wait_for("node 2 back", |catalog| is_up(catalog, 2));
        assert_eq!(client.node(), Some(id));
        assert_eq!(cluster.catalog().nodes().len(), 5, "it came back as what it was");
        cluster.check_end();
    });
}

#[test]
fn a_cluster_is_founded_once_with_its_nodes() {
    for_each_seed(0..5, |world| {
        let mut cluster = Cluster::new(world, 3, Bug::None);
        cluster.is_founded = true;
        cluster.start_controls();
        let founded = |catalog: &Catalog| {
            let up =
                |id| catalog.nodes().get(&NodeId(id)).is_some_and(|node| node.health == Health::Up);
            (1..=3).all(up) && catalog.groups()[&GroupId::CONTROL].operation.is_none()
        };
        cluster.wait_for("the founders up", founded);
        let first = cluster.catalog();
        assert_eq!(first.nodes().len(), 4);
        assert_eq!(first.node_state(NodeId(9)), Some(NodeState::Joining));
        let leader = cluster.wait_for_leader();
        cluster.crash_control(leader);
        cluster.start_node(10);
        cluster.wait_for("a node that joins", |catalog| is_up(catalog, 10));
        cluster.start_control(leader);
        cluster.wait_for("all founders up", founded);
        let last = cluster.catalog();
        let absent = NodeId(9);
        assert_eq!(
            last.nodes()[&absent].address,
            first.nodes()[&absent].address,
            "no founding since"
        );
        assert_eq!(last.nodes().len(), 5);
        assert_eq!(cluster.facts.foundings(), 0, "the group was there from the beginning");
        cluster.check_end();
    });
}

#[test]
fn one_control_node_alone_is_a_group() {
    for_each_seed(0..3, |world| {
        let mut cluster = Cluster::new(world, 1, Bug::None);
        cluster.start_controls();
        sleep(10 * MS);
        assert_eq!(cluster.leader(), Some(1), "it has nobody to wait for");
        start(&mut cluster, 1);
        propose(&cluster.client(1), &cluster.facts, "alone", SECOND);
        assert_eq!(cluster.facts.count(), 1);
        sleep(SECOND);
        assert_eq!(cluster.facts.foundings(), 1, "the group is entered once");
        cluster.crash_control(1);
        cluster.start_control(1);
        cluster.wait_for_leader();
        cluster.check_end();
        propose_one(&cluster.client(1), &cluster.facts, "again");
    });
}

#[test]
fn orders_reach_nodes_and_what_a_dead_node_had_is_copied() {
    for_each_seed(0..5, |world| {
        let mut cluster = Cluster::new(world, 3, Bug::None);
        start(&mut cluster, 3);
        let client = cluster.client(1);
        let ids: Vec<NodeId> = (1..=3).map(|n| cluster.client(n).node().unwrap()).collect();
        let members = ids.iter().map(|id| (*id, Role::Voter)).collect();
        let found = Proposal::FoundGroup { members, wanted_voters: 3, wanted_loggers: 0 };
        cluster.wait_for("the control group", |c| c.groups().contains_key(&GroupId::CONTROL));
        assert_eq!(client.propose(found, SECOND), Ok(Applied::Group(GroupId(1))));
        let done = |catalog: &Catalog| catalog.operations().is_empty();
        cluster.wait_for("a group", done);
        let create = Proposal::CreateChunk {
            space: SpaceId(5),
            first: PageNo(0),
            end: PageNo(1000),
            group: GroupId(1),
            position: Lsn(8),
            nodes: ids[1..].iter().copied().collect(),
        };
        assert!(matches!(client.propose(create, SECOND), Ok(Applied::Chunk(_))));
        cluster.wait_for("a chunk", done);
        assert_eq!(cluster.nodes[&2].disk.chunks.lock().len(), 1);
        cluster.stop_node(3);
        let leader = cluster.wait_for_leader();
        cluster.crash_control(leader);
        cluster.wait_for("the chunk on nodes 1 and 2", |catalog| {
            let chunk = catalog.chunks().values().next().expect("nobody drops it");
            chunk.replicas.contains_key(&ids[0]) && !chunk.replicas.contains_key(&ids[2])
        });
        assert_eq!(cluster.nodes[&1].disk.chunks.lock().len(), 1);
        cluster.start_control(leader);
        cluster.check_end();
    });
}

#[test]
fn a_leader_that_is_cut_off_acts_no_more_and_another_one_goes_on() {
    for_each_seed(0..10, |world| {
        let mut cluster = Cluster::new(world, 3, Bug::None);
        start(&mut cluster, 2);
        let leader = cluster.wait_for_leader();
        let network = world.network();
        let client = cluster.client(1);
        cluster.separate(leader);
        // It is the one that the client asks, and it may have done it.
        let outcome = client.propose(join("lost"), 20 * SECOND);
        assert!(matches!(outcome, Err(ProposeError::Unknown(_))), "{outcome:?}");
        propose_one(&cluster.client(1), &cluster.facts, "during");
        let next = wait(|| cluster.leader().filter(|next| *next != leader));
        assert!(!cluster.controls[&leader].node().status().leads);
        network.heal();
        cluster.wait_for("both nodes up", |catalog| is_up(catalog, 1) && is_up(catalog, 2));
        wait(|| (cluster.facts.terms() >= 2).then_some(()));
        assert_ne!(next, leader);
        cluster.check_end();
    });
}

#[test]
fn a_leader_that_is_stopped_wakes_up_deposed() {
    for_each_seed(0..10, |world| {
        let mut cluster = Cluster::new(world, 3, Bug::None);
        start(&mut cluster, 2);
        let leader = cluster.wait_for_leader();
        cluster.controls[&leader].process.pause();
        sleep(10 * SECOND);
        propose_one(&cluster.client(1), &cluster.facts, "meanwhile");
        cluster.controls[&leader].process.resume();
        sleep(5 * SECOND);
        cluster.wait_for("both nodes up", |catalog| is_up(catalog, 1) && is_up(catalog, 2));
        cluster.check_end();
    });
}

#[test]
fn a_control_node_that_was_away_for_long_gets_a_snapshot() {
    for_each_seed(0..5, |world| {
        let mut cluster = Cluster::new(world, 3, Bug::None);
        start(&mut cluster, 1);
        let leader = cluster.wait_for_leader();
        let away = cluster.ids().into_iter().find(|id| *id != leader).unwrap();
        cluster.crash_control(away);
        let client = cluster.client(1);
        for number in 0..60 {
            propose(&client, &cluster.facts, &format!("n{number}"), 20 * SECOND);
        }
        assert_eq!(cluster.facts.count(), 60);
        cluster.start_control(away);
        cluster.check_end();
        // What it has taken over is on its disk.
        cluster.crash_control(away);
        cluster.start_control(away);
        assert!(cluster.controls[&away].node().catalog().nodes().len() > 50);
        cluster.check_end();
    });
}

#[test]
fn a_full_disk_of_the_leader_lets_another_one_lead() {
    for_each_seed(0..5, |world| {
        let mut cluster = Cluster::new(world, 3, Bug::None);
        start(&mut cluster, 1);
        let leader = cluster.wait_for_leader();
        let used = cluster.disk(leader).used_bytes();
        cluster.disk(leader).set_space_bytes(Some(used));
        let client = cluster.client(1);
        for number in 0..20 {
            propose(&client, &cluster.facts, &format!("n{number}"), 20 * SECOND);
        }
        assert!(cluster.facts.count() >= 18, "{} of 20", cluster.facts.count());
        assert_ne!(cluster.wait_for_leader(), leader);
        cluster.disk(leader).set_space_bytes(None);
        sleep(2 * SECOND);
        cluster.check_end();
    });
}

#[test]
fn without_a_majority_a_proposal_ends_by_its_deadline() {
    for_each_seed(0..5, |world| {
        let mut cluster = Cluster::new(world, 3, Bug::None);
        start(&mut cluster, 1);
        cluster.crash_control(1);
        cluster.crash_control(2);
        let client = cluster.client(1);
        let began = world.clock().monotonic();
        assert!(client.propose(join("nobody"), 5 * SECOND).is_err());
        assert!(world.clock().monotonic() - began < 5 * SECOND + 100 * MS);
        cluster.start_controls();
        propose_one(&client, &cluster.facts, "somebody");
        cluster.check_end();
    });
}

#[test]
fn a_removed_node_is_told_so() {
    for_each_seed(0..3, |world| {
        let mut cluster = Cluster::new(world, 3, Bug::None);
        start(&mut cluster, 2);
        let id = cluster.client(2).node().unwrap();
        cluster.client(1).propose(Proposal::Remove { node: id }, SECOND).unwrap();
        let refusals = || {
            let running = cluster.nodes[&2].running.as_ref().unwrap();
            running.node.refusals.lock().first().cloned()
        };
        assert!(wait(refusals).contains("was removed"), "{:?}", refusals());
        let health = Proposal::Health { node: id, incarnation: 0, health: Health::Up, flaps: 0 };
        let refused = cluster.client(1).propose(health, SECOND).unwrap_err().to_string();
        assert!(refused.contains("only the leader"), "{refused}");
    });
}

#[test]
fn a_control_node_that_has_lost_its_directory_does_not_begin_again() {
    for_each_seed(0..3, |world| {
        let cluster = Cluster::new(world, 3, Bug::None);
        cluster.has_had_control(1);
        let lost = cluster.try_start_control(1).err().unwrap();
        assert!(lost.contains("do not found it again"), "{lost}");
    });
}

/// Whether the control nodes are these.
fn are_controls(catalog: &Catalog, ids: &[u64]) -> bool {
    let names: Vec<String> = ids.iter().map(|id| format!("control-{id}")).collect();
    Cluster::settled_controls(catalog).is_some_and(|settled| settled == names)
}

#[test]
fn dead_control_nodes_are_replaced_and_find_out_when_they_come_back() {
    for_each_seed(0..10, |world| {
        let mut cluster = Cluster::with_spares(world, 3, 1, Bug::None);
        start(&mut cluster, 1);
        cluster.wait_for("the founders", |catalog| are_controls(catalog, &[1, 2, 3]));
        let client = cluster.client(1);
        cluster.crash_control(1);
        cluster.wait_for("4 in the place of 1", |catalog| are_controls(catalog, &[2, 3, 4]));
        // The two that are left were a minority of the founders.
        cluster.crash_control(2);
        propose_one(&client, &cluster.facts, "two-left");
        cluster.start_control(1);
        cluster.wait_for("1 in the place of 2", |catalog| are_controls(catalog, &[1, 3, 4]));
        cluster.start_control(2);
        wait(|| cluster.controls[&2].seat.node().is_none().then_some(()));
        cluster.crash_control(3);
        cluster.wait_for("2 in the place of 3", |catalog| are_controls(catalog, &[1, 2, 4]));
        propose_one(&client, &cluster.facts, "last");
        cluster.start_control(3);
        cluster.check_end();
    });
}

#[test]
fn a_founder_that_has_lost_its_directory_gives_its_vote_up_and_is_replaced() {
    for_each_seed(0..10, |world| {
        let mut cluster = Cluster::with_spares(world, 3, 1, Bug::None);
        start(&mut cluster, 1);
        cluster.wait_for("the founders up", |catalog| {
            let is_up = |id| catalog.nodes()[&NodeId(id)].health == Health::Up;
            are_controls(catalog, &[1, 2, 3]) && (1..=3).all(is_up)
        });
        cluster.crash_control(1);
        cluster.lose_directory(1);
        cluster.start_control(1);
        wait(|| cluster.controls[&1].seat.node().is_none().then_some(()));
        cluster.wait_for("4 in its place", |catalog| are_controls(catalog, &[2, 3, 4]));
        cluster.crash_control(2);
        propose_one(&cluster.client(1), &cluster.facts, "two-left");
        cluster.start_control(2);
        cluster.check_end();
    });
}

#[test]
fn control_nodes_grow_and_shrink() {
    for_each_seed(0..5, |world| {
        let mut cluster = Cluster::with_spares(world, 1, 2, Bug::None);
        start(&mut cluster, 1);
        let client = cluster.client(1);
        let resize = |voters| Proposal::Resize { group: GroupId::CONTROL, voters, loggers: 0 };
        client.propose(resize(3), SECOND).unwrap();
        cluster.wait_for("three control nodes", |catalog| are_controls(catalog, &[1, 2, 3]));
        cluster.crash_control(1);
        propose_one(&client, &cluster.facts, "no-founder");
        cluster.start_control(1);
        cluster.wait_for("all up", |catalog| {
            catalog.nodes().values().filter(|node| node.health == Health::Up).count() == 4
        });
        wait(|| client.propose(resize(1), SECOND).ok());
        cluster.wait_for("one control node", |catalog| {
            Cluster::settled_controls(catalog).is_some_and(|names| names.len() == 1)
        });
        wait(|| {
            let left = cluster.controls.values().filter(|one| one.seat.node().is_some());
            (left.count() == 1).then_some(())
        });
        let refused = client
            .propose(Proposal::Resize { group: GroupId::CONTROL, voters: 2, loggers: 1 }, SECOND);
        assert!(matches!(refused, Err(ProposeError::Refused(_))), "{refused:?}");
        propose_one(&client, &cluster.facts, "alone");
        cluster.check_end();
    });
}

#[test]
fn the_control_group_is_entered_once_however_slow_the_network_is() {
    for_each_seed(0..3, |world| {
        let delay = 70 * MS..=80 * MS;
        world.network().set_faults(LinkFaults { delay, ..LinkFaults::default() });
        let mut cluster = Cluster::new(world, 3, Bug::None);
        cluster.start_controls();
        cluster.wait_for("the group", |one| one.groups().contains_key(&GroupId::CONTROL));
        sleep(5 * SECOND);
        assert_eq!(cluster.facts.foundings(), 1);
        cluster.check_end();
    });
}

#[test]
fn runs_replay_from_their_seeds() {
    assert_replays(0..2, |world| {
        let mut cluster = Cluster::new(world, 3, Bug::None);
        start(&mut cluster, 2);
        let leader = cluster.wait_for_leader();
        cluster.crash_control(leader);
        propose(&cluster.client(1), &cluster.facts, "one", 20 * SECOND);
    });
}
