use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::{ClientHello, HandshakeResponse, SUPPORTED, decode_change_user, put_greeting};
use crate::flags::Capabilities;
use crate::packet::Malformed;
use crate::reply::annotate::hex_dump;

fn check(payload: &[u8], expected: Expect) {
    expected.assert_eq(&hex_dump(payload));
}

#[test]
fn the_greeting() {
    let mut payload = Vec::new();
    put_greeting(&mut payload, "8.4.0-firn", 7, b"ABCDEFGHIJKLMNOPQRST", SUPPORTED, 255);
    check(
        &payload,
        expect![[r#"
        0a 38 2e 34 2e 30 2d 66 69 72 6e 00 07 00 00 00 |.8.4.0-firn.....
        41 42 43 44 45 46 47 48 00 ff f7 ff 02 00 ff 0d |ABCDEFGH........
        15 00 00 00 00 00 00 00 00 00 00 49 4a 4b 4c 4d |...........IJKLM
        4e 4f 50 51 52 53 54 00 63 61 63 68 69 6e 67 5f |NOPQRST.caching_
        73 68 61 32 5f 70 61 73 73 77 6f 72 64 00       |sha2_password.
    "#]],
    );
}

/// What the `mariadb` client 10.11 sends, with `--user=root` and a schema.
fn response_bytes() -> Vec<u8> {
    let mut bytes = Vec::new();
    let capabilities = Capabilities::PROTOCOL_41
        | Capabilities::SECURE_CONNECTION
        | Capabilities::PLUGIN_AUTH
        | Capabilities::CONNECT_WITH_DB
        | Capabilities::CONNECT_ATTRS
        | Capabilities::COMPRESS_ZSTD;
    bytes.extend_from_slice(&capabilities.bits().to_le_bytes());
    bytes.extend_from_slice(&(1u32 << 24).to_le_bytes());
    bytes.push(45);
    bytes.extend_from_slice(&[0; 23]);
    bytes.extend_from_slice(b"root\0\x03abcshop\0mysql_native_password\0");
    bytes.extend_from_slice(b"\x0a\x04name\x04firn\x07");
    bytes
}

#[test]
fn a_response_is_taken_apart() {
    let Ok(ClientHello::Response(response)) = ClientHello::decode(&response_bytes()) else {
        panic!("a response");
    };
    let expected = HandshakeResponse {
        capabilities: response.capabilities,
        collation: 45,
        user: "root".to_owned(),
        auth_response: b"abc".to_vec(),
        schema: Some("shop".to_owned()),
        plugin: Some("mysql_native_password".to_owned()),
        attributes: vec![("name".to_owned(), "firn".to_owned())],
        zstd_level: 7,
    };
    assert_eq!(response, expected);
}

#[test]
fn thirty_two_bytes_ask_for_tls() {
    let mut bytes = response_bytes();
    bytes[1] |= 1 << 3;
    assert_eq!(ClientHello::decode(&bytes[..32]), Ok(ClientHello::SslRequest));
    assert!(matches!(ClientHello::decode(&bytes), Ok(ClientHello::Response(_))));
}

#[test]
fn a_response_that_ends_early_is_refused_or_says_less() {
    let bytes = response_bytes();
    for length in 0..bytes.len() {
        let _ = ClientHello::decode(&bytes[..length]);
    }
    assert_eq!(ClientHello::decode(&bytes[..36]), Err(Malformed));
    assert_eq!(ClientHello::decode(&[0; 100]), Err(Malformed));
}

#[test]
fn change_user_says_who_and_where() {
    let capabilities = Capabilities::SECURE_CONNECTION | Capabilities::PLUGIN_AUTH;
    let payload = b"app\0\x02xyshop\0\x2d\0caching_sha2_password\0";
    let response = decode_change_user(payload, capabilities).unwrap();
    assert_eq!((response.user.as_str(), response.schema.as_deref()), ("app", Some("shop")));
    assert_eq!(response.plugin.as_deref(), Some("caching_sha2_password"));
    assert_eq!((response.auth_response.as_slice(), response.collation), (&b"xy"[..], 45));
    assert_eq!(decode_change_user(b"app", capabilities), Err(Malformed));
}

proptest! {
    #[test]
    fn any_bytes_are_a_response_or_refused(mut bytes: Vec<u8>, capabilities: u32) {
        let _ = ClientHello::decode(&bytes);
        let _ = decode_change_user(&bytes, Capabilities::from_bits_retain(capabilities));
        let mut response = (capabilities | 1 << 9).to_le_bytes().to_vec();
        response.append(&mut vec![0; 28]);
        response.append(&mut bytes);
        let _ = ClientHello::decode(&response);
    }
}
