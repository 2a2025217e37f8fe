//! What a control node answers to calls of one's own: no client asks another control node, or asks
//! again.

use std::sync::Arc;
use std::time::Duration;

use firn_base::network::Role;
use firn_consensus::Term;
use firn_control::{Heartbeat, NodeMessage, Proposal, ToControl};
use firn_control_service::message::{Reply, Request, Unheard, Watcher};
use firn_control_service::{CONTROL, CONTROL_GROUP};
use firn_link::{Caller, CallerSettings};
use firn_testing::simulation::{Process, for_each_seed};

use crate::forgetful::Bug;
use crate::world::{Cluster, SECOND, identity, join, wait};

/// A link to one control node.
pub(crate) struct Raw {
    pub(crate) process: Process,
    caller: Arc<Caller>,
}

impl Raw {
    fn to(cluster: &Cluster, id: u64, role: Role) -> Raw {
        let process = cluster.world.start("raw", &cluster.world.new_disk());
        let settings = CallerSettings::new(cluster.address(id));
        let local = identity("raw", 77, role);
        let caller = Arc::new(Caller::new(&process.environment(), local, settings));
        Raw { process, caller }
    }

    fn ask(&self, request: &Request, timeout: Duration) -> Reply {
        let reply = self.caller.call(CONTROL, request.encode(), timeout).expect("an answer");
        Reply::decode(&reply).expect("a reply")
    }
}

fn watch(entries: u64, patience: u32) -> Request {
    Request::Watch { watcher: None, entries, patience }
}

#[test]
fn followers_name_the_leader_and_a_deposed_one_answers_whoever_waits() {
    for_each_seed(0..10, |world| {
        let mut cluster = Cluster::new(world, 3, Bug::None);
        cluster.start_controls();
        let leader = cluster.wait_for_leader();
        let follower = cluster.ids().into_iter().find(|id| *id != leader).unwrap();
        let to_follower = Raw::to(&cluster, follower, Role::Compute);
        let address = Some(cluster.address(leader).to_string());
        let named = Reply::NotLeader { leader: address };
        assert_eq!(to_follower.ask(&Request::Propose(join("one")), SECOND), named);
        assert_eq!(to_follower.ask(&watch(0, 1000), SECOND), named);
        // The leader is cut off with a proposal and a watch under way.
        let to_leader = Raw::to(&cluster, leader, Role::Compute);
        let reply = to_leader.ask(&Request::Propose(join("two")), SECOND);
        assert!(matches!(reply, Reply::Applied(_)), "{reply:?}");
        cluster.separate(leader);
        let entries = cluster.controls[&leader].node().catalog().entries();
        let began = world.clock().monotonic();
        let caller = Arc::clone(&to_leader.caller);
        let waits = to_leader.process.spawn("watch", move |_| {
            let payload = caller.call(CONTROL, watch(entries, 50_000).encode(), 60 * SECOND);
            Reply::decode(&payload.expect("an answer")).expect("a reply")
        });
        let reply = to_leader.ask(&Request::Propose(join("three")), 60 * SECOND);
        assert_eq!(reply, Reply::Unknown);
        assert_eq!(waits.join(), Ok(Reply::NotLeader { leader: None }));
        assert!(world.clock().monotonic() - began < 5 * SECOND, "within an election's time");
        let (cluster_id, node) = (firn_control::ClusterId(0xf1), firn_control::NodeId(1));
        let body = NodeMessage::Heartbeat(Heartbeat::default());
        let beat = ToControl { cluster: cluster_id, node, incarnation: 1, body };
        let reply = to_leader.ask(&Request::Tell(beat), SECOND);
        assert!(matches!(reply, Reply::NotLeader { .. }), "{reply:?}");
        let next = wait(|| cluster.leader().filter(|next| *next != leader));
        world.network().heal();
        let address = Some(cluster.address(next).to_string());
        wait(|| {
            let reply = to_leader.ask(&Request::Propose(join("four")), SECOND);
            (reply == Reply::NotLeader { leader: address.clone() }).then_some(())
        });
    });
}

#[test]
fn a_watch_ends_with_news_or_with_its_patience() {
    for_each_seed(0..5, |world| {
        let mut cluster = Cluster::new(world, 1, Bug::None);
        cluster.start_controls();
        let raw = Raw::to(&cluster, cluster.wait_for_leader(), Role::Compute);
        let Reply::Applied(_) = raw.ask(&Request::Propose(join("one")), SECOND) else {
            panic!("it leads");
        };
        let newest = cluster.catalog().entries();
        let Reply::News { catalog: Some(bytes), messages } = raw.ask(&watch(0, 1000), SECOND)
        else {
            panic!("there is news");
        };
        assert_eq!((bytes, messages), (cluster.catalog().snapshot(), Vec::new()));
        let began = world.clock().monotonic();
        let nothing = Reply::News { catalog: None, messages: Vec::new() };
        // Nodes that never beat are down after a while, which is news; this is long before.
        assert_eq!(raw.ask(&watch(newest + 100, 1000), 5 * SECOND), nothing);
        let took = world.clock().monotonic() - began;
        assert!(took >= SECOND && took < SECOND + SECOND / 5, "{took:?}");
        let stranger = Some(Watcher { node: firn_control::NodeId(99), incarnation: 1 });
        let request = Request::Watch { watcher: stranger, entries: 0, patience: 1000 };
        let reply = raw.ask(&request, SECOND);
        assert!(matches!(reply, Reply::Unheard { why: Unheard::Unregistered, .. }), "{reply:?}");
    });
}

#[test]
fn bytes_that_are_no_messages_are_refused_and_change_nothing() {
    for_each_seed(0..5, |world| {
        let mut cluster = Cluster::new(world, 3, Bug::None);
        cluster.start_controls();
        let leader = cluster.wait_for_leader();
        let raw = Raw::to(&cluster, leader, Role::Control);
        let random = world.random();
        let before = cluster.controls[&leader].node().status();
        for length in 0..100 {
            let bytes: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
            raw.caller.cast(CONTROL_GROUP, bytes.clone(), SECOND).unwrap();
            let bytes = [vec![1], bytes].concat();
            raw.caller.cast(CONTROL_GROUP, bytes, SECOND).unwrap();
        }
        let reply = raw.caller.call(CONTROL, vec![9, 3], SECOND).unwrap();
        let reply = Reply::decode(&reply).unwrap();
        assert!(matches!(&reply, Reply::Failed(text) if text.contains("version 9")), "{reply:?}");
        let own =
            Request::Propose(Proposal::StopUpgrade { operation: firn_control::OperationId(1) });
        assert!(matches!(raw.ask(&own, SECOND), Reply::Refused(_)));
        let after = cluster.controls[&leader].node().status();
        assert_eq!((after.term, after.leads, after.entries), (before.term, true, before.entries));
        assert!(after.term > Term(0));
    });
}

#[test]
fn a_node_that_is_closed_answers_and_can_be_opened_again() {
    for_each_seed(0..5, |world| {
        let mut cluster = Cluster::new(world, 3, Bug::None);
        cluster.start_controls();
        let leader = cluster.wait_for_leader();
        let raw = Raw::to(&cluster, leader, Role::Compute);
        let entries = cluster.controls[&leader].node().catalog().entries() + 100;
        let caller = Arc::clone(&raw.caller);
        let waits = raw.process.spawn("watch", move |_| {
            let payload = caller.call(CONTROL, watch(entries, 50_000).encode(), 60 * SECOND);
            Reply::decode(&payload.expect("an answer")).expect("a reply")
        });
        firn_base::task::sleep(SECOND / 10);
        let node = cluster.controls[&leader].node();
        cluster.controls[&leader].process.run(move |_| node.close()).unwrap();
        assert_eq!(waits.join(), Ok(Reply::NotLeader { leader: None }));
        cluster.kill_control(leader);
        cluster.start_control(leader);
        cluster.wait_for_leader();
        cluster.check_end();
    });
}
