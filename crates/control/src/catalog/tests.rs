//! What the catalog takes and what it refuses, with the words that people read.

use std::collections::BTreeSet;

use expect_test::{Expect, expect};
use firn_base::{Lsn, PageId, PageNo, SpaceId};
use firn_consensus::{MemberId, Role, Term};

use super::*;
use crate::chunk::ReplicaState;
use crate::group::{GroupMember, OrderedMembers};
use crate::identifiers::{DirectoryId, Epoch};
use crate::node::{Health, NodeRole, Protocols, Release};
use crate::operation::{Outcome, Reason};
use crate::proposal::{FoundedChunk, Founding, Join, Started};

const CLUSTER: ClusterId = ClusterId(7);

pub(crate) fn release(minor: u16) -> Release {
    let protocols = Protocols { oldest: minor, newest: minor + 1 };
    Release { major: 0, minor, patch: 0, protocols }
}

/// A node that may do everything.
pub(crate) fn join(number: u8) -> Join {
    let roles = [NodeRole::Database, NodeRole::Logger, NodeRole::Page, NodeRole::Control];
    Join {
        cluster: Some(CLUSTER),
        name: format!("n{number}"),
        directory: DirectoryId(u128::from(number)),
        address: format!("host{number}:4000"),
        client_address: None,
        roles: roles.into(),
        zone: format!("z{}", number % 3),
        capacity: 1 << 30,
        release: release(1),
        number: None,
    }
}

/// A cluster of three nodes that are up, with a log group and a chunk.
pub(crate) fn example() -> Catalog {
    let mut catalog = Catalog::new(CLUSTER, Settings::default()).unwrap();
    for number in 1..=3 {
        catalog.apply(&Proposal::Join(join(number))).unwrap();
        catalog.apply(&health(number.into(), Health::Up)).unwrap();
    }
    catalog.apply(&found(&[(1, Role::Voter), (2, Role::Voter), (3, Role::Voter)])).unwrap();
    catalog.apply(&found(&[(1, Role::Voter), (2, Role::Voter), (3, Role::Logger)])).unwrap();
    catalog.apply(&led(1, 2, 1)).unwrap();
    catalog.apply(&create(5, 0, u32::MAX)).unwrap();
    catalog
}

pub(crate) fn health(node: u64, health: Health) -> Proposal {
    Proposal::Health { node: NodeId(node), incarnation: 0, health, flaps: 0 }
}

pub(crate) fn found(members: &[(u64, Role)]) -> Proposal {
    let members = members.iter().map(|(node, role)| (NodeId(*node), *role)).collect();
    Proposal::FoundGroup { members, wanted_voters: 2, wanted_loggers: 1 }
}

fn led(group: u32, term: u64, member: u64) -> Proposal {
    Proposal::Led { group: GroupId(group), term: Term(term), member: MemberId(member) }
}

pub(crate) fn create(space: u32, first: u32, end: u32) -> Proposal {
    Proposal::CreateChunk {
        space: SpaceId(space),
        first: PageNo(first),
        end: PageNo(end),
        group: GroupId(1),
        position: Lsn(8),
        nodes: BTreeSet::from([1, 2, 3].map(NodeId)),
    }
}

fn started(node: u64, incarnation: u64) -> Started {
    let Join { directory, address, client_address, release, .. } = join(node as u8);
    let node = NodeId(node);
    Started { cluster: CLUSTER, node, directory, incarnation, address, client_address, release }
}

/// The proposal is refused with these words, and changes nothing but the count.
fn refuses(proposal: Proposal, words: Expect) {
    let mut catalog = example();
    let refusal = catalog.apply(&proposal).expect_err("it is refused");
    words.assert_eq(&refusal.to_string());
    catalog.entries -= 1;
    assert_eq!(catalog, example());
}

#[test]
fn a_node_joins_once() {
    let mut catalog = example();
    assert_eq!(catalog.apply(&Proposal::Join(join(4))), Ok(Applied::Node(NodeId(4))));
    assert_eq!(catalog.apply(&Proposal::Join(join(4))), Ok(Applied::Node(NodeId(4))));
    assert_eq!(catalog.node_state(NodeId(4)), Some(NodeState::Joining));
    assert_eq!(catalog.check(), None);
    refuses(
        Proposal::Join(Join { directory: DirectoryId(9), ..join(3) }),
        expect![
            "the name n3 belongs to node 3 at host3:4000. Choose another name, or remove that node first: firn cluster remove n3"
        ],
    );
    refuses(
        Proposal::Join(Join { name: "n9".to_owned(), ..join(3) }),
        expect![
            "the directory is not that of node n3. Two processes must not use one node's identity; stop one of them, and let it join with an empty directory"
        ],
    );
}

#[test]
fn a_node_may_bring_its_number() {
    let mut catalog = example();
    let wanting =
        |name: u8, number| Proposal::Join(Join { number: Some(NodeId(number)), ..join(name) });
    assert_eq!(catalog.apply(&wanting(4, 7)), Ok(Applied::Node(NodeId(7))));
    assert_eq!(catalog.apply(&wanting(4, 7)), Ok(Applied::Node(NodeId(7))), "asked twice");
    assert_eq!(catalog.apply(&Proposal::Join(join(5))), Ok(Applied::Node(NodeId(8))));
    assert_eq!(catalog.check(), None);
    refuses(
        wanting(6, 3),
        expect![
            "number 3 is that of node n3; make a certificate with another number (firn admin certificates node)"
        ],
    );
    // Certificates have numbers in the order in which they were made, and nodes join in any order.
    assert_eq!(catalog.apply(&wanting(6, 5)), Ok(Applied::Node(NodeId(5))));
    assert_eq!(catalog.apply(&Proposal::Remove { node: NodeId(7) }), Ok(Applied::Done));
    let again = Join { directory: DirectoryId(44), number: Some(NodeId(7)), ..join(4) };
    assert_eq!(catalog.apply(&Proposal::Join(again)), Ok(Applied::Node(NodeId(7))));
    assert_eq!(catalog.apply(&Proposal::Join(join(7))), Ok(Applied::Node(NodeId(9))));
    assert_eq!(catalog.check(), None);
}

/// Nodes 2, 5 and 6, of which the first two have control and log.
pub(crate) fn founding() -> Founding {
    let node = |number: u8| Join {
        directory: DirectoryId::UNKNOWN,
        number: Some(NodeId(number.into())),
        ..join(number)
    };
    let member = |node| (MemberId(node), GroupMember { node: NodeId(node), role: Role::Voter });
    let members: OrderedMembers = [member(2), member(5)].into();
    let chunk = FoundedChunk {
        space: EVERY_SPACE,
        first: PageNo(0),
        end: PageNo::NONE,
        group: GroupId(1),
        nodes: [NodeId(2), NodeId(6)].into(),
    };
    Founding {
        nodes: vec![node(2), node(5), node(6)],
        groups: vec![members.clone(), members],
        chunks: vec![chunk],
    }
}

#[test]
fn a_cluster_begins_with_what_its_founders_were_told() {
    let mut catalog = Catalog::new(CLUSTER, Settings::default()).unwrap();
    assert_eq!(catalog.apply(&Proposal::Found(founding())), Ok(Applied::Done));
    assert_eq!(catalog.check(), None);
    assert_eq!(Catalog::restore(&catalog.snapshot()).as_ref(), Ok(&catalog));
    let numbers: Vec<_> = catalog.nodes().keys().map(|id| id.0).collect();
    assert_eq!(numbers, [2, 5, 6]);
    assert_eq!(catalog.groups()[&GroupId(1)].members.len(), 2);
    assert!(catalog.operations().is_empty(), "the groups are there already");
    assert_eq!(catalog.chunk_of(PageId::new(SpaceId(77), PageNo(3))), Some(ChunkId(1)));
    let mut beside = create(5, 0, 10);
    if let Proposal::CreateChunk { nodes, .. } = &mut beside {
        *nodes = [NodeId(2)].into();
    }
    let taken = catalog.clone().apply(&beside);
    assert_eq!(taken, Err(Refusal::PagesTaken { space: SpaceId(5), chunk: ChunkId(1) }));
    let mut refused = catalog.clone();
    let again = refused.apply(&Proposal::Found(founding()));
    assert_eq!(again, Err(Refusal::Founded), "only once");
    // The first start of a founder tells its directory.
    assert_eq!(catalog.apply(&Proposal::Started(started(5, 1))), Ok(Applied::Done));
    let stranger = Started { directory: DirectoryId(99), ..started(5, 2) };
    let refusal = catalog.apply(&Proposal::Started(stranger));
    assert_eq!(refusal, Err(Refusal::OtherDirectory { name: "n5".to_owned() }));
    let thief = Started { directory: DirectoryId(5), ..started(6, 1) };
    let refusal = catalog.apply(&Proposal::Started(thief));
    assert_eq!(refusal, Err(Refusal::OtherDirectory { name: "n5".to_owned() }));
    assert_eq!(catalog.apply(&led(1, 2, 5)), Ok(Applied::Done));
    assert_eq!(catalog.apply(&Proposal::Join(join(7))), Ok(Applied::Node(NodeId(7))));
    assert_eq!(catalog.check(), None);
}

#[test]
fn a_founding_that_contradicts_itself_changes_nothing() {
    let empty = Catalog::new(CLUSTER, Settings::default()).unwrap();
    let refused = |change: &dyn Fn(&mut Founding)| {
        let (mut founding, mut catalog) = (founding(), empty.clone());
        change(&mut founding);
        let refusal = catalog.apply(&Proposal::Found(founding)).expect_err("it is refused");
        assert_eq!(catalog.entries(), 1);
        catalog.entries = 0;
        assert_eq!(catalog, empty, "{refusal}");
    };
    refused(&|founding| founding.nodes[2].name = "n2".to_owned());
    refused(&|founding| founding.nodes[2].number = Some(NodeId(5)));
    refused(&|founding| founding.nodes[2].directory = DirectoryId(3));
    refused(&|founding| founding.chunks[0].nodes.clear());
    refused(&|founding| founding.chunks[0].group = GroupId(2));
    refused(&|founding| founding.groups[1].clear());
    refused(&|founding| founding.groups[1].values_mut().for_each(|one| one.node = NodeId(2)));
    refused(&|founding| founding.groups[1].values_mut().for_each(|one| one.node = NodeId(3)));
}

#[test]
fn a_node_of_another_cluster_is_refused() {
    refuses(
        Proposal::Join(Join { cluster: Some(ClusterId(8)), ..join(4) }),
        expect![
            "node n4 belongs to cluster 00000000000000000000000000000008, and this is cluster 00000000000000000000000000000007. Give it an empty directory to join this cluster, or the addresses of its own one"
        ],
    );
    let other = Started { cluster: ClusterId(8), ..started(1, 1) };
    assert!(matches!(
        example().apply(&Proposal::Started(other)),
        Err(Refusal::OtherCluster { .. })
    ));
    let any = Join { cluster: None, ..join(4) };
    assert_eq!(example().apply(&Proposal::Join(any)), Ok(Applied::Node(NodeId(4))));
}

#[test]
fn a_node_says_what_it_is() {
    refuses(
        Proposal::Join(Join { name: "a b".to_owned(), ..join(4) }),
        expect![[
            r#"the name "a b" is not possible: use 1 to 255 letters, digits, dots, hyphens and underscores"#
        ]],
    );
    refuses(
        Proposal::Join(Join { address: "host4".to_owned(), ..join(4) }),
        expect![[r#"the address "host4" is not possible: write HOST:PORT"#]],
    );
    refuses(
        Proposal::Join(Join { roles: BTreeSet::new(), ..join(4) }),
        expect![[r#"the roles "" is not possible: a node has at least one role"#]],
    );
}

#[test]
fn neighbouring_releases_understand_each_other() {
    let next = Join { release: release(2), ..join(4) };
    assert!(example().apply(&Proposal::Join(next)).is_ok());
    refuses(
        Proposal::Join(Join { release: release(3), ..join(4) }),
        expect![
            "release 0.3.0 speaks protocols 3 to 4, and node n1 with release 0.1.0 speaks 1 to 2. Upgrade one release at a time"
        ],
    );
    let mut catalog = example();
    assert!(
        catalog.apply(&Proposal::Started(Started { release: release(2), ..started(1, 1) })).is_ok()
    );
    assert!(
        catalog
            .apply(&Proposal::Started(Started { release: release(3), ..started(1, 2) }))
            .is_err()
    );
}

#[test]
fn reports_of_an_earlier_start_are_ignored() {
    let mut catalog = example();
    catalog.apply(&Proposal::Started(started(1, 4))).unwrap();
    let old = Err(Refusal::OldIncarnation(NodeId(1)));
    assert_eq!(catalog.apply(&health(1, Health::Down)), old);
    assert_eq!(catalog.apply(&Proposal::Started(started(1, 3))), old);
    assert_eq!(catalog.apply(&Proposal::Started(started(1, 4))), Ok(Applied::Done));
    assert_eq!(catalog.node_state(NodeId(1)), Some(NodeState::Up));
}

#[test]
fn a_node_that_has_something_is_not_removed() {
    refuses(
        Proposal::Remove { node: NodeId(1) },
        expect![
            "node n1 keeps 1 chunks and is in 2 log groups. Move them elsewhere first: firn cluster drain"
        ],
    );
    let mut catalog = example();
    catalog.apply(&Proposal::Join(join(4))).unwrap();
    assert_eq!(catalog.apply(&Proposal::Remove { node: NodeId(4) }), Ok(Applied::Done));
    assert_eq!(catalog.node_state(NodeId(4)), Some(NodeState::Removed));
    let removed = Err(Refusal::NodeRemoved(NodeId(4)));
    assert_eq!(catalog.apply(&Proposal::Started(started(4, 1))), removed);
    let none = Err(Refusal::NoNode(NodeId(9)));
    assert_eq!(catalog.apply(&Proposal::Remove { node: NodeId(9) }), none);
    let again = catalog.apply(&Proposal::Join(Join { directory: DirectoryId(40), ..join(4) }));
    assert_eq!(again, Ok(Applied::Node(NodeId(5))));
}

#[test]
fn the_newest_term_wins() {
    let mut catalog = example();
    catalog.apply(&led(1, 3, 2)).unwrap();
    let old = |term| Err(Refusal::OldTerm { term: Term(term), newest: Term(3) });
    assert_eq!(catalog.apply(&led(1, 2, 1)), old(2));
    assert_eq!(catalog.apply(&led(1, 3, 1)), old(3));
    assert_eq!(catalog.apply(&led(1, 3, 2)), Ok(Applied::Done));
    assert_eq!(catalog.groups()[&GroupId(1)].writer_node(), Some(NodeId(2)));
    // A logger never leads.
    let logger = catalog.apply(&led(1, 4, 3));
    assert_eq!(logger, Err(Refusal::CannotLead(GroupId(1))));
}

/// Node 4 learns in group 1, as member 4, and will have that role there instead of a member.
fn learns(role: Role, remove: u64) -> Catalog {
    let mut catalog = settled();
    let (group, reason) = (GroupId(1), Reason::Asked);
    let epoch = catalog.groups()[&group].epoch;
    let (add, remove) = (Some((NodeId(4), role)), Some(MemberId(remove)));
    catalog.apply(&Proposal::ChangeMember { group, epoch, add, remove, reason }).unwrap();
    let before = catalog.groups()[&group].clone();
    catalog.apply(&acknowledge(4, 1, 4)).unwrap();
    assert_eq!(catalog.groups()[&group], before, "a member says what the group has, no newcomer");
    catalog.apply(&acknowledge(4, 1, 1)).unwrap();
    assert_eq!(catalog.check(), None);
    catalog
}

#[test]
fn standbys_learn_and_no_others_do() {
    let mut catalog = settled();
    let roles = [NodeRole::Database, NodeRole::Standby].into();
    let zone = "far".to_owned();
    catalog.apply(&Proposal::Join(Join { roles, zone, ..join(5) })).unwrap();
    catalog.apply(&health(5, Health::Up)).unwrap();
    let add = |node: u64, role| {
        let (group, reason) = (GroupId(1), Reason::Asked);
        let epoch = catalog.groups()[&group].epoch;
        let add = Some((NodeId(node), role));
        let change = Proposal::ChangeMember { group, epoch, add, remove: None, reason };
        catalog.clone().apply(&change)
    };
    assert_eq!(add(5, Role::Learner), Ok(Applied::Operation(OperationId(4))));
    assert_eq!(add(4, Role::Learner), Err(Refusal::LearnerAsked));
    assert_eq!(add(5, Role::Voter), Err(Refusal::StandbyVotes { name: "n5".to_owned() }));
    assert_eq!(add(4, Role::Voter), Ok(Applied::Operation(OperationId(4))));
}

#[test]
fn the_newcomer_alone_says_that_it_has_caught_up() {
    let mut catalog = learns(Role::Voter, 2);
    let before = catalog.operations().clone();
    catalog.apply(&acknowledge(4, 2, 1)).unwrap();
    assert_eq!(catalog.operations(), &before);
    catalog.apply(&acknowledge(4, 2, 4)).unwrap();
    assert_ne!(catalog.operations(), &before);
}

/// The members of group 1, the operation that changes them, and how the last one ended.
fn change_of_members(catalog: &Catalog) -> (Vec<u64>, Option<OperationId>, Option<Outcome>) {
    let group = &catalog.groups()[&GroupId(1)];
    let members = group.members.keys().map(|member| member.0).collect();
    let ended = catalog.ended().iter().find(|one| one.operation == OperationId(4));
    (members, group.operation, ended.map(|one| one.outcome))
}

#[test]
fn a_change_of_members_ends_once_the_one_that_left_has_deleted_its_log() {
    let mut catalog = learns(Role::Voter, 2);
    catalog.apply(&acknowledge(4, 2, 4)).unwrap();
    let epoch = catalog.groups()[&GroupId(1)].epoch;
    catalog.apply(&acknowledge(4, 3, 1)).unwrap();
    assert!(catalog.groups()[&GroupId(1)].epoch > epoch, "earlier orders are stale");
    for other in [acknowledge(4, 4, 1), health(1, Health::Down), health(1, Health::Up)] {
        catalog.apply(&other).unwrap();
        assert_eq!(change_of_members(&catalog), (vec![1, 3, 4], Some(OperationId(4)), None));
    }
    assert!(catalog.clone().apply(&Proposal::Cancel { operation: OperationId(4) }).is_err());
    for last in [acknowledge(4, 4, 2), health(2, Health::Down)] {
        let mut catalog = catalog.clone();
        catalog.apply(&last).unwrap();
        let ended = (vec![1, 3, 4], None, Some(Outcome::Done));
        assert_eq!(change_of_members(&catalog), ended, "{last:?}");
    }
}

#[test]
fn a_change_of_members_is_undone_if_it_is_cancelled_or_the_newcomer_dies() {
    let mut catalog = learns(Role::Voter, 2);
    catalog.apply(&health(3, Health::Down)).unwrap();
    let epoch = catalog.groups()[&GroupId(1)].epoch;
    for end in [Proposal::Cancel { operation: OperationId(4) }, health(4, Health::Down)] {
        let mut catalog = catalog.clone();
        catalog.apply(&end).unwrap();
        assert!(catalog.groups()[&GroupId(1)].epoch > epoch, "earlier orders are stale");
        catalog.apply(&acknowledge(4, 3, 1)).unwrap();
        assert_eq!(change_of_members(&catalog).0, [1, 2, 3]);
        catalog.apply(&health(4, Health::Down)).unwrap();
        let ended = (vec![1, 2, 3], None, Some(Outcome::Cancelled));
        assert_eq!(change_of_members(&catalog), ended, "{end:?}");
    }
}

#[test]
fn a_member_that_only_leaves_can_stay_until_the_group_has_the_change() {
    let mut catalog = settled();
    let (group, reason) = (GroupId(1), Reason::Asked);
    let epoch = catalog.groups()[&group].epoch;
    let remove = Some(MemberId(3));
    catalog.apply(&Proposal::ChangeMember { group, epoch, add: None, remove, reason }).unwrap();
    catalog.apply(&Proposal::Cancel { operation: OperationId(4) }).unwrap();
    catalog.apply(&acknowledge(4, 2, 1)).unwrap();
    let ended = (vec![1, 2, 3], None, Some(Outcome::Cancelled));
    assert_eq!(change_of_members(&catalog), ended);
}

#[test]
fn a_newcomer_may_lead_before_the_catalog_hears_that_it_votes() {
    let cannot = Err(Refusal::CannotLead(GroupId(1)));
    let mut voter = learns(Role::Voter, 2);
    assert_eq!(voter.apply(&led(1, 3, 3)), cannot, "the logger is no newcomer");
    assert_eq!(voter.apply(&led(1, 3, 4)), Ok(Applied::Done));
    let mut logger = learns(Role::Logger, 3);
    assert_eq!(logger.apply(&led(1, 3, 4)), cannot);
}

#[test]
fn chunks_do_not_overlap() {
    refuses(create(5, 100, 200), expect!["pages of space 5 are in chunk 1 already"]);
    refuses(create(6, 100, 100), expect!["a chunk has at least one page and one node"]);
    let mut catalog = example();
    catalog.apply(&create(6, 0, 100)).unwrap();
    catalog.apply(&create(6, 100, 200)).unwrap();
    assert!(catalog.apply(&create(6, 99, 101)).is_err());
    let page = |number| PageId::new(SpaceId(6), PageNo(number));
    let found = [99, 100, 200].map(|number| catalog.chunk_of(page(number)));
    assert_eq!(found, [Some(ChunkId(2)), Some(ChunkId(3)), None]);
    assert_eq!(catalog.check(), None);
    catalog.apply(&Proposal::DropSpace { space: SpaceId(6) }).unwrap();
    assert_eq!(catalog.chunk_of(page(99)), None);
}

#[test]
fn settings_are_checked() {
    refuses(
        Proposal::Configure(Settings { replicas: 0, ..Settings::default() }),
        expect!["the setting is not possible: replicas is 1 to 7"],
    );
    let five = Settings { replicas: 5, ..Settings::default() };
    let mut catalog = example();
    catalog.apply(&Proposal::Configure(five.clone())).unwrap();
    assert_eq!(catalog.settings(), &five);
}

pub(crate) fn acknowledge(operation: u64, step: u32, node: u64) -> Proposal {
    let (operation, node) = (OperationId(operation), NodeId(node));
    Proposal::Acknowledge { operation, step, node, position: Lsn(100) }
}

/// The example with everything begun, a fourth node, and chunk 1 in service on 1, 2 and 3.
pub(crate) fn settled() -> Catalog {
    let mut catalog = example();
    for operation in 1..=3 {
        for node in 1..=3 {
            catalog.apply(&acknowledge(operation, 1, node)).unwrap();
        }
    }
    catalog.apply(&Proposal::Join(join(4))).unwrap();
    catalog.apply(&health(4, Health::Up)).unwrap();
    assert!(catalog.operations().is_empty(), "{:?}", catalog.operations());
    catalog
}

fn move_replica(catalog: &Catalog, from: u64, to: u64) -> Proposal {
    let (chunk, epoch) = (ChunkId(1), catalog.chunks()[&ChunkId(1)].epoch);
    let (from, to, reason) = (Some(NodeId(from)), NodeId(to), Reason::Asked);
    Proposal::MoveReplica { chunk, epoch, from, to, reason }
}

fn lost(catalog: &Catalog, node: u64) -> Proposal {
    let (chunk, epoch) = (ChunkId(1), catalog.chunks()[&ChunkId(1)].epoch);
    Proposal::Lost { chunk, node: NodeId(node), epoch }
}

fn states(catalog: &Catalog) -> Vec<(u64, ReplicaState)> {
    let replicas = catalog.chunks()[&ChunkId(1)].replicas.iter();
    replicas.map(|(node, replica)| (node.0, replica.state)).collect()
}

#[test]
fn acknowledgements_count_for_their_step_and_their_node() {
    let mut catalog = settled();
    catalog.apply(&move_replica(&catalog, 3, 4)).unwrap();
    let before = catalog.operations().clone();
    for wrong in [acknowledge(4, 2, 4), acknowledge(4, 1, 3), acknowledge(3, 1, 4)] {
        catalog.apply(&wrong).unwrap();
        assert_eq!(catalog.operations(), &before, "{wrong:?}");
    }
    catalog.apply(&acknowledge(4, 1, 4)).unwrap();
    catalog.apply(&acknowledge(4, 1, 4)).unwrap();
    assert_eq!(catalog.operations()[&OperationId(4)].step, 2, "a repeated one is no step");
    catalog.apply(&acknowledge(4, 2, 4)).unwrap();
    catalog.apply(&acknowledge(4, 3, 3)).unwrap();
    let served = [1, 2, 4].map(|node| (node, ReplicaState::InService));
    assert_eq!(states(&catalog), served);
    assert_eq!(catalog.ended().last().unwrap().outcome, Outcome::Done);
}

#[test]
fn each_change_of_a_chunk_raises_its_epoch() {
    let mut catalog = settled();
    let mut last = catalog.chunks()[&ChunkId(1)].epoch;
    let mut raises = |catalog: &Catalog, what: &str| {
        let epoch = catalog.chunks()[&ChunkId(1)].epoch;
        assert!(epoch > last, "{what}: {epoch} after {last}");
        last = epoch;
    };
    catalog.apply(&move_replica(&catalog, 3, 4)).unwrap();
    raises(&catalog, "a copy begins");
    catalog.apply(&Proposal::Cancel { operation: OperationId(4) }).unwrap();
    raises(&catalog, "it is given up");
    catalog.apply(&move_replica(&catalog, 3, 4)).unwrap();
    raises(&catalog, "another begins");
    catalog.apply(&acknowledge(5, 1, 4)).unwrap();
    catalog.apply(&acknowledge(5, 2, 4)).unwrap();
    raises(&catalog, "it is in service");
    catalog.apply(&acknowledge(5, 3, 3)).unwrap();
    raises(&catalog, "the old one is deleted");
    let (chunk, epoch, at) = (ChunkId(1), last, PageNo(100));
    catalog.apply(&Proposal::Split { chunk, epoch, at }).unwrap();
    let epoch = catalog.chunks()[&ChunkId(1)].epoch;
    assert!(epoch > last && catalog.chunks()[&ChunkId(2)].epoch == epoch, "both halves");
}

#[test]
fn a_copy_is_given_up_when_the_dead_node_is_back() {
    let mut catalog = settled();
    catalog.apply(&health(3, Health::Down)).unwrap();
    let Proposal::MoveReplica { chunk, epoch, from, to, .. } = move_replica(&catalog, 3, 4) else {
        panic!("it is a move");
    };
    let reason = Reason::NodeDown;
    catalog.apply(&Proposal::MoveReplica { chunk, epoch, from, to, reason }).unwrap();
    let mut copied = catalog.clone();
    copied.apply(&acknowledge(4, 1, 4)).unwrap();
    for catalog in [&mut catalog, &mut copied] {
        catalog.apply(&health(3, Health::Up)).unwrap();
    }
    assert_eq!(catalog.ended().last().unwrap().outcome, Outcome::Cancelled);
    assert_eq!(states(&catalog).len(), 3);
    assert_eq!(copied.operations().len(), 1, "a finished copy is used");
}

#[test]
fn a_move_that_is_late_is_refused() {
    let mut catalog = settled();
    let late = move_replica(&catalog, 3, 4);
    catalog.apply(&late).unwrap();
    assert_eq!(catalog.apply(&late), Err(Refusal::Busy(OperationId(4))));
    catalog.apply(&Proposal::Cancel { operation: OperationId(4) }).unwrap();
    assert!(matches!(catalog.apply(&late), Err(Refusal::OldEpoch { .. })));
    assert_eq!(states(&catalog).len(), 3);
}

#[test]
fn a_replica_that_is_lost_where_it_has_just_come_to_stays_where_it_was() {
    let mut catalog = settled();
    catalog.apply(&move_replica(&catalog, 3, 4)).unwrap();
    catalog.apply(&acknowledge(4, 1, 4)).unwrap();
    catalog.apply(&acknowledge(4, 2, 4)).unwrap();
    let mut alone = catalog.clone();
    catalog.apply(&lost(&catalog, 4)).unwrap();
    assert_eq!(states(&catalog)[2], (3, ReplicaState::Leaving), "others have it");
    assert_eq!(catalog.check(), None);
    for node in [1, 2] {
        alone.apply(&health(node, Health::Down)).unwrap();
    }
    alone.apply(&lost(&alone, 4)).unwrap();
    assert_eq!(states(&alone)[2], (3, ReplicaState::InService), "nobody else has it");
    assert!(alone.operations().is_empty());
    assert_eq!(alone.check(), None);
}

#[test]
fn nothing_is_deleted_while_nobody_else_is_known_to_have_it() {
    let mut catalog = settled();
    catalog.apply(&move_replica(&catalog, 3, 4)).unwrap();
    catalog.apply(&acknowledge(4, 1, 4)).unwrap();
    catalog.apply(&acknowledge(4, 2, 4)).unwrap();
    assert_eq!(crate::order::orders(&catalog).len(), 1, "node 3 is to delete it");
    for node in [1, 2, 4] {
        catalog.apply(&health(node, Health::Suspected)).unwrap();
    }
    assert_eq!(crate::order::orders(&catalog), []);
    catalog.apply(&health(4, Health::Up)).unwrap();
    assert_eq!(crate::order::orders(&catalog).len(), 1);
}

#[test]
fn members_change_while_a_majority_of_the_new_ones_is_up() {
    let mut catalog = learns(Role::Voter, 2);
    catalog.apply(&acknowledge(4, 2, 4)).unwrap();
    let is_ordered = |catalog: &Catalog| {
        let orders = crate::order::orders(catalog);
        orders.iter().any(|order| matches!(order.action, crate::Action::SetMembers { .. }))
    };
    assert!(is_ordered(&catalog));
    catalog.apply(&health(4, Health::Down)).unwrap();
    assert!(is_ordered(&catalog), "1 and 3 are a majority of 1, 3 and 4");
    catalog.apply(&health(3, Health::Suspected)).unwrap();
    assert!(!is_ordered(&catalog));
}

#[test]
fn the_last_replica_is_made_again_where_it_was() {
    let mut catalog = settled();
    for node in [3, 2, 1] {
        catalog.apply(&lost(&catalog, node)).unwrap();
    }
    assert_eq!(states(&catalog), [(1, ReplicaState::Copying)]);
    let orders = crate::order::orders(&catalog);
    let from_store = |order: &crate::Order| matches!(&order.action, crate::Action::CopyChunk { sources, .. } if sources.is_empty());
    assert!(orders.len() == 1 && from_store(&orders[0]), "{orders:?}");
}

#[test]
fn the_last_replica_keeps_its_node() {
    let mut catalog = settled();
    for node in [3, 2] {
        catalog.apply(&lost(&catalog, node)).unwrap();
    }
    catalog.apply(&health(1, Health::Down)).unwrap();
    let refusal = catalog.apply(&Proposal::Remove { node: NodeId(1) }).unwrap_err();
    expect![
        "node n1 keeps 1 chunks and is in 2 log groups. It has the only replica of some; start it again, or restore them from a backup"
    ]
    .assert_eq(&refusal.to_string());
    let refusal = catalog.apply(&move_replica(&catalog, 1, 4)).unwrap_err();
    assert_eq!(refusal, Refusal::NoSource(ChunkId(1)));
}

#[test]
fn a_group_keeps_a_majority() {
    let mut catalog = settled();
    let change = |catalog: &Catalog, remove: u64| {
        let (group, reason) = (GroupId(1), Reason::Asked);
        let epoch = catalog.groups()[&group].epoch;
        let remove = Some(MemberId(remove));
        Proposal::ChangeMember { group, epoch, add: None, remove, reason }
    };
    catalog.apply(&health(2, Health::Down)).unwrap();
    let refusal = catalog.apply(&change(&catalog, 3)).unwrap_err();
    assert_eq!(refusal, Refusal::NoMajority(GroupId(1)));
    assert!(catalog.apply(&change(&catalog, 2)).is_ok());
}

#[test]
fn pages_of_all_spaces_are_in_one_part_each() {
    let mut founding = founding();
    let parts = crate::equal_parts(3);
    founding.chunks = parts
        .iter()
        .map(|(first, end)| FoundedChunk { first: *first, end: *end, ..founding.chunks[0].clone() })
        .collect();
    let settings = Settings { chunk_pages: 16, ..Settings::default() };
    let mut catalog = Catalog::new(CLUSTER, settings.clone()).unwrap();
    assert_eq!(catalog.apply(&Proposal::Found(founding)), Ok(Applied::Done));
    assert_eq!((catalog.check(), catalog.chunks().len()), (None, 3));
    assert_eq!(Catalog::restore(&catalog.snapshot()).as_ref(), Ok(&catalog));
    let mut found = BTreeSet::new();
    for (space, extent) in (0..8).flat_map(|space| (0..8).map(move |extent| (space, extent))) {
        let page = |at: u32| PageId::new(SpaceId(space), PageNo(extent * 16 + at));
        let chunk = catalog.chunk_of(page(0)).unwrap();
        assert_eq!(catalog.chunk_of(page(15)), Some(chunk), "neighbours lie together");
        found.insert(chunk);
    }
    assert_eq!(found.len(), 3);
    let mut beside = create(5, 0, 10);
    if let Proposal::CreateChunk { nodes, .. } = &mut beside {
        *nodes = [NodeId(2)].into();
    }
    let taken = catalog.clone().apply(&beside);
    assert!(matches!(taken, Err(Refusal::PagesTaken { .. })), "{taken:?}");
    let split = Proposal::Split { chunk: ChunkId(2), epoch: Epoch(1), at: PageNo(u32::MAX / 2) };
    assert_eq!(catalog.clone().apply(&split), Err(Refusal::Spread(ChunkId(2))));
    let moved = Proposal::Configure(Settings { chunk_pages: 17, ..settings.clone() });
    assert!(matches!(catalog.apply(&moved), Err(Refusal::Setting(_))), "pages would be elsewhere");
    let fewer = Proposal::Configure(Settings { replicas: 1, ..settings });
    assert_eq!(catalog.apply(&fewer), Ok(Applied::Done));
}
