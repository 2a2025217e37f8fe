//! Everything at once, from seeds: control nodes lose power, are killed, stopped and cut off; nodes
//! come and go; clients propose all the while.

use std::sync::Arc;
use std::time::Duration;

use firn_base::task::sleep;
use firn_control::{GroupId, Proposal};
use firn_control_service::ControlClient;
use firn_testing::random::Random;
use firn_testing::simulation::{LinkFaults, World, for_each_seed};
use parking_lot::Mutex;

use crate::checker::Facts;
use crate::forgetful::Bug;
use crate::world::{Cluster, Control, MS, SECOND, propose, propose_one};

/// Nodes that a proposer leaves in the catalog.
const MOST_ABSENT: u64 = 2;
const STEPS: u32 = 40;

/// What a run did, for the test that all of it happens.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    pub(crate) acknowledged: usize,
    pub(crate) terms: usize,
    /// Changes of the control group's members, in steps.
    pub(crate) changes: u64,
}

pub(crate) fn run(world: &World, controls: u64, bug: Bug) -> Tally {
    run_with_spares(world, controls, 0, bug)
}

/// The same with nodes that become control nodes when others are down.
fn run_with_spares(world: &World, controls: u64, spares: u64, bug: Bug) -> Tally {
    let random = world.random();
    let delay = Duration::ZERO..=5 * MS;
    let faults = LinkFaults { delay, loss: 0.01, reset: 0.002, ..LinkFaults::default() };
    world.network().set_faults(faults);
    let mut cluster = Cluster::with_spares(world, controls, spares, bug);
    cluster.is_impatient = spares > 0;
    cluster.start_controls();
    (1..=3).for_each(|number| cluster.start_node(number));
    let is_over = Arc::new(Mutex::new(false));
    let proposers: Vec<_> = (0..2)
        .map(|task| {
            let facts = Arc::clone(&cluster.facts);
            let (client, random) = (cluster.client(3), world.random());
            let is_over = Arc::clone(&is_over);
            world.spawn("proposer", move || {
                let mut number = 0;
                while !*is_over.lock() {
                    number += 1;
                    let patience = SECOND * (1 + random.below(5) as u32);
                    let prefix = format!("p{task}-");
                    if number > MOST_ABSENT {
                        remove_older(&client, &facts, &prefix, number - MOST_ABSENT);
                    }
                    propose(&client, &facts, &format!("{prefix}{number}"), patience);
                    sleep(MS * random.below(500) as u32);
                }
            })
        })
        .collect();
    for _ in 0..STEPS {
        sleep(MS * random.below(1500) as u32);
        disturb(&mut cluster, &random);
    }
    *is_over.lock() = true;
    end(&mut cluster, proposers)
}

/// Removes nodes that were proposed before this one. They never start: most nodes would be down.
fn remove_older(client: &ControlClient, facts: &Facts, prefix: &str, first: u64) {
    let Some(catalog) = client.catalog() else { return };
    let is_older = |name: &str| {
        let number = name.strip_prefix(prefix).and_then(|number| number.parse::<u64>().ok());
        number.is_some_and(|number| number < first)
    };
    for (node, _) in catalog.nodes().iter().filter(|(_, known)| is_older(&known.name)) {
        facts.forget(&catalog.nodes()[node].name);
        let _ = client.propose(Proposal::Remove { node: *node }, SECOND);
    }
}

/// Heals everything, and checks that nothing is lost.
fn end(cluster: &mut Cluster, proposers: Vec<firn_testing::simulation::Task<()>>) -> Tally {
    cluster.world.network().heal();
    cluster.world.network().set_faults(LinkFaults::default());
    cluster.start_controls();
    (1..=3).for_each(|number| cluster.start_node(number));
    proposers.into_iter().for_each(|task| task.join().expect("nobody kills it"));
    let facts = Arc::clone(&cluster.facts);
    propose_one(&cluster.client(3), &facts, "last");
    cluster.check_end();
    let changes = cluster.catalog().groups()[&GroupId::CONTROL].epoch.0 - 1;
    Tally { acknowledged: facts.count(), terms: facts.terms(), changes }
}

fn disturb(cluster: &mut Cluster, random: &Random) {
    let ids = cluster.ids();
    let one = *random.pick(&ids);
    let other = *random.pick(&ids);
    let network = cluster.world.network();
    match random.below(14) {
        0 => network.cut(&format!("control-{one}"), &format!("control-{other}")),
        1 => {
            let node = format!("node-{}", 1 + random.below(3));
            network.cut(&node, &format!("control-{one}"));
        }
        2 | 3 => network.heal(),
        4 => cluster.crash_control(one),
        5 => cluster.kill_control(one),
        6 => ids.iter().for_each(|id| cluster.crash_control(*id)),
        7 => crash_next_voter(cluster, random),
        8 => pause(cluster, one, random),
        9 => cluster.stop_node(1 + random.below(2)),
        10 => (1..=2).for_each(|number| cluster.start_node(number)),
        _ => ids.iter().for_each(|id| cluster.start_control(*id)),
    }
}

/// Crashes a control node at the moment when it has voted.
fn crash_next_voter(cluster: &mut Cluster, random: &Random) {
    cluster.facts.take_voter();
    if let Some(leader) = cluster.leader() {
        cluster.kill_control(leader);
    }
    let facts = Arc::clone(&cluster.facts);
    let mut voter = None;
    facts.voted.wait_until(Some(5 * SECOND), || {
        voter = voter.or(facts.take_voter());
        voter.is_some()
    });
    let is_voter =
        |control: &Control| control.seat.node().is_some_and(|node| Some(node.member()) == voter);
    let found = cluster.controls.iter().find(|(_, control)| is_voter(control));
    if let Some(id) = found.map(|(id, _)| *id) {
        cluster.crash_control(id);
        sleep(MS * random.below(50) as u32);
        cluster.start_control(id);
    }
}

fn pause(cluster: &Cluster, id: u64, random: &Random) {
    let Some(control) = cluster.controls.get(&id) else { return };
    control.process.pause();
    sleep(MS * random.below(8000) as u32);
    control.process.resume();
}

#[test]
fn nothing_acknowledged_is_lost_and_two_leaders_never_act() {
    let all = Arc::new(Mutex::new(Tally::default()));
    let sum = Arc::clone(&all);
    for_each_seed(0..12, move |world| {
        let tally = run(world, 3, Bug::None);
        let mut sum = sum.lock();
        sum.acknowledged += tally.acknowledged;
        sum.terms += tally.terms;
    });
    let all = *all.lock();
    println!("{all:?}");
    assert!(all.acknowledged > 60 && all.terms > 24, "{all:?}");
}

#[test]
fn nothing_is_lost_while_control_nodes_are_replaced() {
    let changes = Arc::new(Mutex::new(0));
    let sum = Arc::clone(&changes);
    for_each_seed(0..12, move |world| {
        *sum.lock() += run_with_spares(world, 3, 2, Bug::None).changes;
    });
    let changes = *changes.lock();
    println!("{changes} steps of changes");
    assert!(changes > 40, "{changes}");
}

#[test]
fn a_group_of_five_and_a_group_of_one_lose_nothing_either() {
    for_each_seed(0..3, |world| {
        run(world, 5, Bug::None);
    });
    for_each_seed(0..3, |world| {
        run(world, 1, Bug::None);
    });
}
