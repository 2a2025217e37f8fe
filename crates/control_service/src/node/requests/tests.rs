//! Whom a peer with a certificate speaks for.

use firn_base::network::{Address, ClusterId, NodeIdentity, Roles};
use firn_consensus::{Member, MemberId, Members, Options, Role as MemberRole};
use firn_control::{DirectoryId, Join, NodeRole, Protocols, Release, Settings, Started};
use firn_link::Hello;

use super::*;
use crate::file::Whole;

const CLUSTER: ClusterId = ClusterId(7);

fn peer(name: &str, is_certified: bool) -> Peer {
    let (node, name) = (NodeId(70), name.to_owned());
    let identity = NodeIdentity { cluster: CLUSTER, node, name, roles: Roles::default() };
    let hello = Hello::new(identity, 0, 1024);
    Peer { hello, version: 1, is_certified, address: Address::Unix("peer".into()) }
}

fn release() -> Release {
    Release { major: 0, minor: 1, patch: 0, protocols: Protocols { oldest: 1, newest: 1 } }
}

fn join(name: &str) -> Proposal {
    Proposal::Join(Join {
        cluster: Some(CLUSTER),
        name: name.to_owned(),
        directory: DirectoryId(1),
        address: "host:1".to_owned(),
        client_address: None,
        roles: [NodeRole::Compute].into(),
        zone: "z".to_owned(),
        capacity: 0,
        release: release(),
        number: None,
    })
}

/// A core whose catalog has node 1, with the name `a`.
fn core() -> Core {
    let mut catalog = Catalog::new(CLUSTER, Settings::default()).unwrap();
    catalog.apply(&join("a")).unwrap();
    let members = Members::new([(MemberId(1), MemberRole::Voter)]).unwrap();
    let whole = Whole::founding(members, &catalog);
    let member = Member::start(Options::new(MemberId(1), 1), whole.saved()).unwrap();
    Core::new(member, catalog, whole)
}

#[test]
fn a_certificate_speaks_for_the_node_of_its_name_alone() {
    let core = core();
    let started = Proposal::Started(Started {
        cluster: CLUSTER,
        node: NodeId(1),
        directory: DirectoryId(1),
        incarnation: 1,
        address: "host:1".to_owned(),
        client_address: None,
        release: release(),
    });
    let watcher = Watcher { node: NodeId(1), incarnation: 0 };
    let is_taken = |peer: &Peer| {
        let proposals = [&join("a"), &started];
        let taken = proposals.map(|proposal| objection(&core, peer, proposal).is_none());
        let watches = check_watcher(&core, peer, watcher).is_none();
        (taken, speaks_for(&core, peer, NodeId(1)), watches)
    };
    assert_eq!(is_taken(&peer("a", true)), ([true, true], true, true));
    assert_eq!(is_taken(&peer("b", true)), ([false, false], false, false));
    assert_eq!(is_taken(&peer("b", false)), ([true, true], true, true), "without certificates");
}

#[test]
fn a_watch_is_of_the_start_that_the_catalog_has() {
    let (core, peer) = (core(), peer("a", true));
    let watch = |node, incarnation| {
        check_watcher(&core, &peer, Watcher { node: NodeId(node), incarnation })
    };
    assert_eq!(watch(1, 0), None);
    for (node, incarnation) in [(1, 1), (2, 0)] {
        let reply = watch(node, incarnation);
        let unregistered = Some(Unheard::Unregistered);
        let why = reply.map(|reply| match reply {
            Reply::Unheard { why, .. } => why,
            other => panic!("{other:?}"),
        });
        assert_eq!(why, unregistered, "node {node}, start {incarnation}");
    }
}

#[test]
fn the_leader_alone_proposes_what_it_finds_out() {
    let (core, peer) = (core(), peer("a", true));
    let (node, operation) = (NodeId(1), firn_control::OperationId(1));
    let epoch = firn_control::Epoch(1);
    let chunk = firn_control::ChunkId(1);
    let own = [
        Proposal::Health { node, incarnation: 0, health: firn_control::Health::Up, flaps: 0 },
        Proposal::Led {
            group: firn_control::GroupId(1),
            term: firn_consensus::Term(1),
            member: MemberId(1),
        },
        Proposal::Measured { chunk, bytes: 1, pages: 1 },
        Proposal::Lost { chunk, node, epoch },
        Proposal::StopUpgrade { operation },
        Proposal::Acknowledge { operation, step: 1, node, position: Lsn(8) },
    ];
    for proposal in own {
        assert!(objection(&core, &peer, &proposal).is_some(), "{proposal:?}");
    }
    assert_eq!(objection(&core, &peer, &Proposal::Remove { node }), None);
}
