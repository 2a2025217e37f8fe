//! Everything at once, from seeds: control nodes lose power, are killed, stopped and cut off; nodes
//! come and go; clients propose all the while.

use std::sync::Arc;
use std::time::Duration;

use firn_base::task::sleep;
use firn_testing::random::Random;
use firn_testing::simulation::{LinkFaults, World, for_each_seed};
use parking_lot::Mutex;

use crate::forgetful::Bug;
use crate::world::{Cluster, MS, SECOND, propose, propose_one};

/// Steps of a run.
const STEPS: u32 = 40;

/// What a run did, for the test that all of it happens.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    pub(crate) acknowledged: usize,
    pub(crate) terms: usize,
}

pub(crate) fn run(world: &World, controls: u64, bug: Bug) -> Tally {
    let random = world.random();
    let delay = Duration::ZERO..=5 * MS;
    let faults = LinkFaults { delay, loss: 0.01, reset: 0.002, ..LinkFaults::default() };
    world.network().set_faults(faults);
    let mut cluster = Cluster::new(world, controls, bug);
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
                    propose(&client, &facts, &format!("p{task}-{number}"), patience);
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
    Tally { acknowledged: facts.count(), terms: facts.terms() }
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
    if let Some(voter) = voter {
        cluster.crash_control(voter.0);
        sleep(MS * random.below(50) as u32);
        cluster.start_control(voter.0);
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
fn a_group_of_five_and_a_group_of_one_lose_nothing_either() {
    for_each_seed(0..3, |world| {
        run(world, 5, Bug::None);
    });
    for_each_seed(0..3, |world| {
        run(world, 1, Bug::None);
    });
}
