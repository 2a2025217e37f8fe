use firn_base::Environment;
use firn_base::network::Role;
use firn_consensus::{Base, Member, MemberId, Members, Options, Term};
use firn_control::{ChunkId, Epoch};
use firn_storage::group::{GroupLog, MemberLog};
use firn_storage::local::{LocalDirectory, LogOptions};

use super::*;
use crate::framed_file::HEADER_BYTES;
use crate::log_member::database_of;
use crate::record::{MemberPlace, Record, RecordFile};

const TEXT: &str = r#"cluster = "0000000000000000000000000000000a"
asynchronous_zones = ["w"]
[[node]]
number = 1
name = "a"
address = "10.0.0.1:258"
client_address = "10.0.0.1:3306"
roles = ["database", "log", "pages", "control"]
[[node]]
number = 2
name = "b"
zone = "w"
address = "10.0.0.2:258"
client_address = "10.0.0.2:3306"
roles = ["database", "log", "pages", "control"]
[[node]]
number = 3
name = "c"
zone = "w"
address = "10.0.0.3:258"
roles = ["log"]
"#;

fn order() -> TakeOverOrder {
    let layout = Layout::parse(TEXT).unwrap();
    let nodes = [2, 3].map(NodeId).into();
    let layout = layout.of_these(&nodes).unwrap();
    TakeOverOrder { generation: 4, layout, leader: NodeId(2), position: Lsn(300) }
}

#[test]
fn a_zone_that_goes_on_has_members_of_its_own() {
    let layout = order().layout;
    let members: Vec<_> = layout.members().iter().collect();
    let (voter, logger) = (firn_consensus::Role::Voter, firn_consensus::Role::Logger);
    assert_eq!(members, [(MemberId(4), voter), (MemberId(5), logger)]);
    assert_eq!(layout.log_member_on(NodeId(2)), Some(MemberId(4)));
    assert!(layout.standby_zones().is_empty());
    assert_eq!(layout.control_members().count(), 1);
    assert_eq!(layout.chunks_on(NodeId(2)).collect::<Vec<_>>(), [ChunkId(1)]);
    let whole = Layout::parse(TEXT).unwrap();
    let lacks =
        |nodes: &[u64]| whole.of_these(&nodes.iter().copied().map(NodeId).collect()).unwrap_err();
    assert_eq!(lacks(&[3]), "the log and can run an engine");
}

#[test]
fn messages_have_these_bytes() {
    let node = |number: u8, name: u8, roles: u8, clients: bool| {
        let mut bytes = vec![number, number, 1, name, 12];
        bytes.extend(format!("10.0.0.{number}:258").as_bytes());
        bytes.push(u8::from(clients));
        if clients {
            bytes.push(13);
            bytes.extend(format!("10.0.0.{number}:3306").as_bytes());
        }
        bytes.extend([roles, 1, b'w', 0]);
        bytes
    };
    let layout = [
        &[10, 2][..],
        &node(2, b'b', 30, true),
        &node(3, b'c', 4, false),
        &[2, 4, 2, 0, 5, 3, 1],                       // members 4 and 5
        &[1, 2, 2],                                   // control member 2
        &[0xff, 0xff, 0xff, 0xff, 7],                 // how many pages lie together
        &[1, 1, 0, 0xff, 0xff, 0xff, 0xff, 15, 1, 2], // chunk 1 at node 2
    ]
    .concat();
    let taken = [&[4][..], &layout, &[2, 0xac, 2]].concat();
    let ask = Ask::TakeOver(Box::new(order()));
    assert_eq!(encode(VERSION, &ask), [&[1, 1][..], &taken].concat());
    assert_eq!(encode(VERSION, &Ask::Layout), [1, 0]);
    let reply = Reply::Layout(Box::new(order().layout));
    assert_eq!(encode(VERSION, &reply), [&[1, 0][..], &layout].concat());
    assert_eq!(encode(VERSION, &Reply::Taken), [1, 1]);
    assert_eq!(encode(VERSION, &Reply::Refused("a".to_owned())), [1, 2, 1, b'a']);
    assert_eq!(decode::<Ask>(VERSION, &encode(VERSION, &ask)), Some(ask));
    let file = framed_file::frame(MAGIC, VERSION, &order());
    assert_eq!(file[..5], *b"FnTo\x01");
    assert_eq!(file[HEADER_BYTES..], taken);
}

/// A directory of node 2, which has a record and no files besides.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let environment = Environment::system();
    let layout = Layout::parse(TEXT).unwrap();
    let node = layout.node(NodeId(2)).unwrap();
    let record = Record {
        control_member: Some(MemberPlace { member: MemberId(2), is_founder: true, is_made: true }),
        is_member: true,
        held: [(ChunkId(1), Epoch(9)), (ChunkId(2), Epoch(3))].into(),
        log_member: Some(MemberPlace { member: MemberId(2), is_founder: false, is_made: false }),
        layout: Some(layout.clone()),
        ..Record::new(&environment, layout.cluster, node)
    };
    drop(RecordFile::write(&environment.disk, directory.path(), record).unwrap());
    directory
}

#[test]
fn an_order_is_carried_out_once() {
    let directory = directory();
    let environment = Environment::system();
    let path = directory.path();
    let options = LogOptions::default();
    apply(&environment, path, options).unwrap();
    let before = RecordFile::read(&*environment.disk, path).unwrap().unwrap();
    assert_eq!(before.generation, 0, "there is no order");
    order().write(&*environment.disk, path).unwrap();
    apply(&environment, path, options).unwrap();
    let after = RecordFile::read(&*environment.disk, path).unwrap().unwrap();
    assert_eq!((after.generation, after.layout.as_ref()), (4, Some(&order().layout)));
    assert_eq!(after.held, [(ChunkId(1), Epoch(1))].into(), "control counts from the beginning");
    assert_eq!(after.log_member.map(|place| place.member), Some(MemberId(4)));
    assert_eq!((after.left, after.control_member), (Some(MemberId(2)), None));
    assert!(!after.entry().is_standby && after.entry().has(Role::Control));
    apply(&environment, path, options).unwrap();
    assert_eq!(RecordFile::read(&*environment.disk, path).unwrap(), Some(after));
}

/// The log of the node that leads, as that of the member that it has now. Returns its members.
fn members_in(path: &Path, place: MemberPlace) -> Members {
    let environment = Environment::system();
    let layout = Layout::parse(TEXT).unwrap();
    let [log, _] = place.directories(path);
    let files = LocalDirectory::open_for(&environment, &log, database_of(layout.cluster)).unwrap();
    let base = Base::founding(Term(1), Lsn::FIRST, layout.members());
    let options = LogOptions { segment_size_bytes: 1 << 20, ..LogOptions::default() };
    let log = GroupLog::open(&files, options, base).unwrap();
    let saved = log.saved();
    log.close();
    let id = saved.base.members.iter().next().map(|(id, _)| id).unwrap();
    Member::start(Options::new(id, 1), saved).unwrap().members().clone()
}

#[test]
fn the_log_goes_on_with_other_members_however_often_the_order_is_begun() {
    for is_founder in [true, false] {
        let directory = directory();
        let (environment, path) = (Environment::system(), directory.path());
        let before = MemberPlace { member: MemberId(2), is_founder, is_made: true };
        let record = RecordFile::read(&*environment.disk, path).unwrap().unwrap();
        let record = Record { log_member: Some(before), ..record };
        drop(RecordFile::write(&environment.disk, path, record.clone()).unwrap());
        assert_eq!(members_in(path, before), Layout::parse(TEXT).unwrap().members());
        order().write(&*environment.disk, path).unwrap();
        let options = LogOptions { segment_size_bytes: 1 << 20, ..LogOptions::default() };
        apply(&environment, path, options).unwrap();
        // The node died before the record had changed.
        drop(RecordFile::write(&environment.disk, path, record).unwrap());
        order().write(&*environment.disk, path).unwrap();
        apply(&environment, path, options).unwrap();
        let after = RecordFile::read(&*environment.disk, path).unwrap().unwrap();
        let after = after.log_member.unwrap();
        assert_eq!((after.member, after.is_founder), (MemberId(4), is_founder));
        assert_eq!(members_in(path, after), order().layout.members());
    }
}

#[test]
fn an_order_is_taken_by_who_has_not_heard_of_it() {
    let directory = directory();
    let disk = Environment::system().disk;
    let view = Arc::new(View::new(Layout::parse(TEXT).unwrap()));
    let service = |own, generation| {
        TakeOverService::new(&disk, directory.path(), (NodeId(own), generation), &view)
    };
    let ask = encode(VERSION, &Ask::TakeOver(Box::new(order())));
    let refused = |service: &TakeOverService| {
        assert!(matches!(service.answer(&ask), Reply::Refused(_)));
        assert!(!service.is_ordered());
    };
    refused(&service(2, 4));
    refused(&service(1, 0));
    assert_eq!(TakeOverOrder::read(&*disk, directory.path()).unwrap(), None);
    let taking = service(2, 3);
    assert_eq!(taking.answer(&ask), Reply::Taken);
    assert!(taking.is_ordered());
    assert_eq!(TakeOverOrder::read(&*disk, directory.path()).unwrap(), Some(order()));
}
