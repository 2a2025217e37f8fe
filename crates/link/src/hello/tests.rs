//! The bytes of first messages, and who may talk to whom.

use firn_base::network::Role;

use super::*;

fn hello(node: u64, name: &str) -> Hello {
    let identity = NodeIdentity {
        cluster: ClusterId(0xc1),
        node: NodeId(node),
        name: name.to_owned(),
        roles: Roles::of(&[Role::Log, Role::Pages]),
    };
    Hello::new(identity, 7, 0x10_0000)
}

/// The golden bytes of `docs/formats/link.md`.
#[test]
fn first_messages_have_these_bytes() {
    #[rustfmt::skip]
    let fields: &[&[u8]] = &[
        &[1, 0],                                          // oldest version
        &[2, 0],                                          // newest version
        &[0xc1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], // cluster
        &[3, 0, 0, 0, 0, 0, 0, 0],                        // node
        &[7, 0, 0, 0, 0, 0, 0, 0],                        // epoch
        &[0b1100, 0, 0, 0],                               // roles
        &[0, 0, 0x10, 0],                                 // window in bytes
        &[2],                                             // length of the name
        b"n3",                                            // name
    ];
    let golden = [b"FnHi", &fields.concat()[..]].concat();
    let hello = hello(3, "n3");
    assert_eq!(hello.encode(), golden);
    assert_eq!(Hello::decode(&golden), Ok(hello.clone()));

    let accepted = Answer { hello: hello.clone(), refusal: None };
    let golden = [b"FnHa", &fields.concat()[..], &[0]].concat();
    assert_eq!(accepted.encode(), golden);
    assert_eq!(Answer::decode(&golden), Ok(accepted));
    let refused = Answer { hello, refusal: Some("no".to_owned()) };
    let golden = [b"FnHa", &fields.concat()[..], &[1], b"no"].concat();
    assert_eq!(refused.encode(), golden);
    assert_eq!(Answer::decode(&golden), Ok(refused));
}

#[test]
fn damaged_first_messages_are_refused() {
    let whole = Answer { hello: hello(3, "n3"), refusal: Some("no".to_owned()) }.encode();
    for at in 0..whole.len() {
        check_any_bytes(&whole[..at]);
        for bit in 0..8 {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << bit;
            check_any_bytes(&damaged);
            damaged[..4].copy_from_slice(b"FnHi");
            check_any_bytes(&damaged);
        }
    }
    let mut versions = hello(3, "n3");
    (versions.oldest, versions.newest) = (3, 2);
    assert_eq!(Hello::decode(&versions.encode()), Err(NotAHello));
    let mut name = hello(3, "n3");
    name.identity.name = "n\n3".to_owned();
    assert_eq!(Hello::decode(&name.encode()), Err(NotAHello));
    let long = Answer { hello: hello(3, "n3"), refusal: Some("é".repeat(1000)) };
    let read = Answer::decode(&long.encode()).unwrap();
    assert_eq!(read.refusal.unwrap().len(), MAX_REASON_BYTES);
}

#[test]
fn both_sides_are_named_in_a_refusal() {
    let (client, server) = (hello(1, "one"), hello(2, "two"));
    assert_eq!(judge(&client, &server), Ok(2));
    let mut other = server.clone();
    other.identity.cluster = ClusterId(0xc2);
    let mut newer = server.clone();
    (newer.oldest, newer.newest) = (3, 4);
    let older = Hello { epoch: 6, ..server.clone() };
    for server in [other, newer, older] {
        let refusal = judge(&client, &server).unwrap_err().to_string();
        assert!(refusal.contains("node 1 (one) of cluster") && refusal.contains("node 2 (two)"));
        let turned = judge(&server, &client).unwrap_err().to_string();
        assert!(turned.contains("node 1 (one)") && turned.contains("node 2 (two)"), "{turned}");
    }
}

#[test]
fn neighbouring_releases_speak_the_older_version() {
    let (client, mut server) = (hello(1, "one"), hello(2, "two"));
    for (newest, spoken) in [(1, 1), (3, 2)] {
        (server.oldest, server.newest) = (1, newest);
        assert_eq!(judge(&client, &server), Ok(spoken));
        assert_eq!(judge(&server, &client), Ok(spoken));
    }
}

#[test]
fn who_speaks_for_no_epoch_is_not_refused_for_one() {
    let (client, server) = (hello(1, "one"), Hello { epoch: 0, ..hello(2, "two") });
    assert_eq!(judge(&client, &server), Ok(2));
    assert_eq!(judge(&server, &client), Ok(2));
}
