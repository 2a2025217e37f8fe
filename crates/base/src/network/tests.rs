use std::io::Write;
use std::net::TcpStream;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use super::frame::{FRAME_VERSION, FrameError, FrameHeader, HEADER_BYTES};
use super::{
    Address, ClusterId, Connection, Delivery, Listener, MAX_MESSAGE_BYTES, Network, NetworkError,
    Role, Roles, SystemNetwork, identity,
};
use crate::task;

const PATIENCE: Duration = Duration::from_secs(60);
const MOMENT: Duration = Duration::from_millis(20);
/// Address of the second process of a test.
const PEER_VARIABLE: &str = "FIRN_TEST_PEER";

/// A listener over TCP and one over a Unix socket.
fn listeners(directory: &tempfile::TempDir) -> Vec<Box<dyn Listener>> {
    let unix = Address::Unix(directory.path().join("socket"));
    ["127.0.0.1:0".parse().unwrap(), unix]
        .iter()
        .map(|address| SystemNetwork.listen(address).unwrap())
        .collect()
}

fn connect(address: &Address) -> Arc<dyn Connection> {
    SystemNetwork.connect(address, Delivery::InOrder, PATIENCE).unwrap()
}

/// Two ends of one connection.
fn pair(listener: &dyn Listener) -> (Arc<dyn Connection>, Arc<dyn Connection>) {
    let here = connect(&listener.address());
    (here, listener.accept(Some(PATIENCE)).unwrap())
}

fn for_each_kind(test: impl Fn(&dyn Listener)) {
    let directory = tempfile::tempdir().unwrap();
    listeners(&directory).iter().for_each(|listener| test(&**listener));
}

fn received(connection: &dyn Connection) -> Vec<u8> {
    let mut message = Vec::new();
    connection.receive(&mut message, Some(PATIENCE)).unwrap();
    message
}

#[test]
fn addresses_are_read_as_they_are_written() {
    let named = "firn-0.firn.default.svc:7400";
    for text in ["127.0.0.1:3306", "[::1]:0", "unix:/run/firn/socket", named] {
        assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
    }
    assert_eq!(named.parse::<Address>().unwrap().port(), Some(7400));
    for text in ["", "unix:", "localhost", "127.0.0.1", "127.0.0:1", "a:b", "a:70000", "::1:80"] {
        let error = text.parse::<Address>().unwrap_err();
        assert!(error.to_string().contains("write IP:PORT"), "{error}");
    }
}

#[test]
fn identities_are_read_as_they_are_written() {
    let cluster = ClusterId(0xf1);
    assert_eq!(cluster.to_string().parse(), Ok(cluster));
    for text in ["", "f1", "+0000000000000000000000000000000", "x0000000000000000000000000000000"] {
        assert!(text.parse::<ClusterId>().is_err(), "{text}");
    }
    let roles = Roles::of(&[Role::Pages, Role::Log]);
    assert_eq!(roles.to_string(), "log+pages");
    assert_eq!("pages+log".parse(), Ok(roles));
    assert_eq!("".parse(), Ok(Roles(0)));
    assert!("log+".parse::<Roles>().is_err());
    assert!(identity::is_node_name("db-1.rack_2"));
    for text in ["", "-a", "a b", "a\"b", &"a".repeat(64)] {
        assert!(!identity::is_node_name(text), "{text}");
    }
}

#[test]
fn a_name_leads_to_the_process_that_listens_there() {
    let listener = SystemNetwork.listen(&"localhost:0".parse().unwrap()).unwrap();
    let port = listener.address().port().unwrap();
    let named: Address = format!("localhost:{port}").parse().unwrap();
    let here = connect(&named);
    assert_eq!(*here.peer(), named, "messages about the peer say its name");
    here.send(&[b"by name"], PATIENCE).unwrap();
    assert_eq!(received(&*listener.accept(Some(PATIENCE)).unwrap()), b"by name");
    drop(listener);
    let refused = SystemNetwork.connect(&named, Delivery::InOrder, PATIENCE).map(drop);
    assert!(matches!(refused, Err(NetworkError::Refused { .. })), "{refused:?}");
}

#[test]
fn a_name_that_leads_nowhere_is_named() {
    let address: Address = "nobody.invalid:7400".parse().unwrap();
    let failed = SystemNetwork.connect(&address, Delivery::InOrder, PATIENCE).map(drop);
    let error = failed.unwrap_err().to_string();
    assert!(error.starts_with("the name in nobody.invalid:7400 cannot be resolved: "), "{error}");
    assert!(SystemNetwork.listen(&address).is_err());
}

/// The golden bytes of `docs/formats/network-frame.md`.
#[test]
fn a_frame_has_these_bytes() {
    let header = FrameHeader::of(&[b"fi", b"rn"]).unwrap();
    #[rustfmt::skip]
    let golden: [u8; HEADER_BYTES] = [
        b'F', b'n',              // magic
        1,                       // version
        0,                       // zero
        4, 0, 0, 0,              // length of the payload
        0x83, 0x0d, 0x32, 0x1e,  // CRC-32C of the payload
        0x25, 0xf1, 0x68, 0xf3,  // CRC-32C of the twelve bytes above
    ];
    assert_eq!(header.encode(), golden, "{:02x?}", header.encode());
    assert_eq!(FrameHeader::decode(&golden), Ok(header));
    assert_eq!(header.check(b"firn"), Ok(()));
    assert_eq!(header.check(b"fern"), Err(FrameError::PayloadChecksum));
    assert_eq!(header.check(b"firn."), Err(FrameError::PayloadChecksum));
}

#[test]
fn a_damaged_header_is_refused() {
    let bytes = FrameHeader::of(&[b"payload"]).unwrap().encode();
    for bit in 0..HEADER_BYTES * 8 {
        let mut damaged = bytes;
        damaged[bit / 8] ^= 1 << (bit % 8);
        let found = FrameHeader::decode(&damaged).expect_err("a bit was flipped");
        let expected = match bit / 8 {
            0 | 1 => FrameError::Foreign,
            2 => FrameError::Version { theirs: damaged[2] },
            _ => FrameError::HeaderChecksum,
        };
        assert_eq!(found, expected, "bit {bit}");
    }
    assert!(FrameHeader::of(&[&vec![0; MAX_MESSAGE_BYTES + 1]]).is_none());
}

#[test]
fn messages_of_all_lengths_go_both_ways_in_order() {
    for_each_kind(|listener| {
        let (here, there) = pair(listener);
        let lengths = [0, 1, 15, 16, 100_000, 3, (1 << 20) + 7, 0, 65_536 - HEADER_BYTES, 9];
        let message = |length: usize| (0..length).map(|at| (at * 7) as u8).collect::<Vec<u8>>();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for length in lengths {
                    let sent = message(length);
                    let (head, tail) = sent.split_at(length / 3);
                    here.send(&[head, b"", tail], PATIENCE).unwrap();
                }
                assert_eq!(received(&*here), b"all");
            });
            lengths.iter().for_each(|length| assert_eq!(received(&*there), message(*length)));
            there.send(&[b"all"], PATIENCE).unwrap();
        });
    });
}

#[test]
fn threads_that_send_at_once_do_not_mix_their_messages() {
    for_each_kind(|listener| {
        let (here, there) = pair(listener);
        std::thread::scope(|scope| {
            for number in 0..4_u8 {
                let here = &here;
                scope.spawn(move || {
                    for _ in 0..50 {
                        here.send(&[&[number], &vec![number; 30_000]], PATIENCE).unwrap();
                    }
                });
            }
            for _ in 0..200 {
                let message = received(&*there);
                assert_eq!(message.len(), 30_001);
                assert!(message.iter().all(|byte| *byte == message[0]));
            }
        });
    });
}

#[test]
fn a_wait_ends_by_its_timeout_and_can_be_made_again() {
    for_each_kind(|listener| {
        let nobody = listener.accept(Some(MOMENT));
        assert!(matches!(nobody, Err(NetworkError::TimedOut { .. })));
        let (here, there) = pair(listener);
        let mut message = b"old".to_vec();
        let nothing = there.receive(&mut message, Some(MOMENT));
        assert!(matches!(nothing, Err(NetworkError::TimedOut { .. })) && message.is_empty());
        here.send(&[b"late"], PATIENCE).unwrap();
        assert_eq!(received(&*there), b"late");
    });
}

#[test]
fn a_peer_that_does_not_read_holds_up_the_sender_until_its_timeout() {
    for_each_kind(|listener| {
        let (here, there) = pair(listener);
        let large = vec![7; 4 << 20];
        let sent = (0..100).try_for_each(|_| here.send(&[&large], MOMENT));
        assert!(matches!(sent, Err(NetworkError::TimedOut { .. })), "{sent:?}");
        // Part of the message was sent, so no other message can follow it.
        assert!(matches!(here.send(&[b"more"], PATIENCE), Err(NetworkError::Ended { .. })));
        let mut message = Vec::new();
        let end = std::iter::from_fn(|| Some(there.receive(&mut message, Some(PATIENCE))));
        let end = end.into_iter().find_map(Result::err);
        let incomplete = FrameError::Incomplete;
        assert!(
            matches!(&end, Some(NetworkError::Damaged { reason, .. }) if *reason == incomplete),
            "{end:?}"
        );
    });
}

#[test]
fn a_message_that_comes_in_pieces_survives_a_timeout() {
    let listener = SystemNetwork.listen(&"127.0.0.1:0".parse().unwrap()).unwrap();
    let Address::Tcp(address) = listener.address() else { unreachable!("it is a TCP address") };
    let mut raw = TcpStream::connect(address).unwrap();
    let there = listener.accept(Some(PATIENCE)).unwrap();
    let payload = vec![42; 200_000];
    let mut bytes = FrameHeader::of(&[&payload]).unwrap().encode().to_vec();
    bytes.extend_from_slice(&payload);
    let mut message = Vec::new();
    for piece in [&bytes[..10], &bytes[10..20], &bytes[20..150_000]] {
        raw.write_all(piece).unwrap();
        let early = there.receive(&mut message, Some(MOMENT));
        assert!(matches!(early, Err(NetworkError::TimedOut { .. })), "{early:?}");
    }
    raw.write_all(&bytes[150_000..]).unwrap();
    assert_eq!(received(&*there), payload);
}

#[test]
fn what_is_no_message_ends_the_connection() {
    let good = FrameHeader::of(&[b"good"]).unwrap().encode();
    let newer = [&good[..2], &[FRAME_VERSION + 1], &good[3..], b"good"].concat();
    let cases: [(&[u8], FrameError); 4] = [
        (b"GET / HTTP/1.1\r\n\r\n", FrameError::Foreign),
        (&newer, FrameError::Version { theirs: FRAME_VERSION + 1 }),
        (&[&good[..], b"evil"].concat(), FrameError::PayloadChecksum),
        (&[&good[..], b"go"].concat(), FrameError::Incomplete),
    ];
    let listener = SystemNetwork.listen(&"127.0.0.1:0".parse().unwrap()).unwrap();
    let Address::Tcp(address) = listener.address() else { unreachable!("it is a TCP address") };
    for (bytes, expected) in cases {
        let mut raw = TcpStream::connect(address).unwrap();
        raw.write_all(bytes).unwrap();
        drop(raw);
        let there = listener.accept(Some(PATIENCE)).unwrap();
        let found = there.receive(&mut Vec::new(), Some(PATIENCE));
        let Err(NetworkError::Damaged { reason, .. }) = found else { panic!("{found:?}") };
        assert_eq!(reason, expected);
        assert!(matches!(there.send(&[b"?"], PATIENCE), Err(NetworkError::Ended { .. })));
    }
}

#[test]
fn closing_ends_the_waits_of_both_sides() {
    for_each_kind(|listener| {
        let (here, there) = pair(listener);
        here.send(&[b"last"], PATIENCE).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| here.receive(&mut Vec::new(), None));
            task::sleep(MOMENT);
            here.close();
            assert!(matches!(waiting.join().unwrap(), Err(NetworkError::Ended { .. })));
        });
        assert_eq!(received(&*there), b"last");
        let end = there.receive(&mut Vec::new(), None);
        assert!(matches!(end, Err(NetworkError::Ended { .. })), "{end:?}");

        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| listener.accept(None).map(drop));
            task::sleep(MOMENT);
            listener.close();
            assert!(matches!(waiting.join().unwrap(), Err(NetworkError::Ended { .. })));
        });
    });
}

#[test]
fn where_nobody_listens_a_connection_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    // An address of its own: on that of the other tests, one of them may get the port as soon as it
    // is free.
    let own = ["127.0.0.2:0".parse().unwrap(), Address::Unix(directory.path().join("socket"))];
    for listener in own.map(|address| SystemNetwork.listen(&address).unwrap()) {
        let address = listener.address();
        let taken = SystemNetwork.listen(&address).map(drop);
        assert!(matches!(taken, Err(NetworkError::System { .. })));
        drop(listener);
        let refused = SystemNetwork.connect(&address, Delivery::InOrder, PATIENCE).map(drop);
        assert!(matches!(refused, Err(NetworkError::Refused { .. })), "{refused:?}");
        drop(SystemNetwork.listen(&address).unwrap());
    }
}

/// Answers every message with its bytes in reverse until the peer closes the connection.
fn answer_in_reverse(connection: &dyn Connection) -> usize {
    let (mut message, mut answered) = (Vec::new(), 0);
    while connection.receive(&mut message, Some(PATIENCE)).is_ok() {
        message.reverse();
        connection.send(&[&message], PATIENCE).unwrap();
        answered += 1;
    }
    answered
}

/// The second process of the test below, which starts it.
#[test]
#[ignore = "started by two_processes_exchange_messages"]
fn second_process() {
    let address: Address = std::env::var(PEER_VARIABLE).unwrap().parse().unwrap();
    assert_eq!(answer_in_reverse(&*connect(&address)), 100);
}

fn start_second_process(address: &Address) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "network::tests::second_process", "--ignored"])
        .env(PEER_VARIABLE, address.to_string())
        .spawn()
        .unwrap()
}

#[test]
fn two_processes_exchange_messages() {
    for_each_kind(|listener| {
        let mut child = start_second_process(&listener.address());
        let there = listener.accept(Some(PATIENCE)).unwrap();
        for number in 0..100_u32 {
            let mut message = number.to_le_bytes().repeat(1 + 100 * number as usize);
            there.send(&[&message], PATIENCE).unwrap();
            message.reverse();
            assert_eq!(received(&*there), message);
        }
        there.close();
        assert!(child.wait().unwrap().success());
    });
}

#[test]
fn a_process_that_is_killed_ends_its_connections() {
    for_each_kind(|listener| {
        let mut child = start_second_process(&listener.address());
        let there = listener.accept(Some(PATIENCE)).unwrap();
        there.send(&[b"ping"], PATIENCE).unwrap();
        assert_eq!(received(&*there), b"gnip");
        child.kill().unwrap();
        child.wait().unwrap();
        let end = there.receive(&mut Vec::new(), Some(PATIENCE));
        assert!(matches!(end, Err(NetworkError::Ended { .. })), "{end:?}");
    });
}
