//! Logins that hide the password: over TLS, over the Unix socket, encrypted with the server's key;
//! and what comes after a login: another user on the same connection.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests use the machine as it is"
)]

mod support;

use firn_base::network::Address;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use firn_wire::{Capabilities, ServerOptions, TlsMode};
use rsa::pkcs8::DecodePublicKey;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme};
use sha2::{Digest, Sha256};
use support::{Client, Running};

const PASSWORD: &[u8] = b"secret";

fn sha2_answer(challenge: &[u8]) -> Vec<u8> {
    let hash = Sha256::digest(PASSWORD);
    let mask = Sha256::new_with_prefix(Sha256::digest(hash)).chain_update(challenge).finalize();
    hash.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect()
}

fn masked(challenge: &[u8]) -> Vec<u8> {
    let terminated = [PASSWORD, b"\0"].concat();
    terminated.iter().zip(challenge).map(|(byte, mask)| byte ^ mask).collect()
}

/// Logs in over plain TCP with the server's public key.
fn log_in_with_key(client: &mut Client) {
    let answer = sha2_answer(&client.scramble.clone());
    let response = client.response("sha2", &answer, "caching_sha2_password");
    client.write(&response);
    assert_eq!(client.read(), [1, 4], "the password itself is needed");
    client.write(&[2]);
    let pem = client.read();
    let pem = std::str::from_utf8(&pem[1..]).unwrap();
    let key = rsa::RsaPublicKey::from_public_key_pem(pem).unwrap();
    let padding = rsa::Oaep::new::<sha1::Sha1>();
    let sent = key.encrypt(&mut rsa::rand_core::OsRng, padding, &masked(&client.scramble)).unwrap();
    client.write(&sent);
    assert_eq!(client.read()[0], 0);
}

#[test]
fn after_a_full_login_the_next_one_is_fast() {
    let running = Running::new();
    log_in_with_key(&mut running.connect());
    let mut client = running.connect();
    let answer = sha2_answer(&client.scramble.clone());
    let response = client.response("sha2", &answer, "caching_sha2_password");
    client.write(&response);
    assert_eq!(client.read(), [1, 3], "what the server remembers is enough");
    assert_eq!(client.read()[0], 0);
}

#[test]
fn another_user_begins_a_session_of_its_own() {
    let running = Running::new();
    let mut client = running.connect();
    log_in_with_key(&mut client);
    client.command(0x16, b"one");
    client.read();
    client.command(0x11, b"root\0\0\0\xff\0caching_sha2_password\0");
    let request = client.read();
    assert_eq!(&request[..23], b"\xfecaching_sha2_password\0");
    client.write(b"");
    assert_eq!(client.read()[0], 0);
    client.query("who");
    assert_eq!(client.read_result()[2], b"\x06root@%");
    client.command(0x17, b"\x01\0\0\0\0\x01\0\0\0");
    assert_eq!(client.read_error(), 1243, "the statement went with its session");
    // A client that fails to log in as another user is disconnected.
    client.command(0x11, b"native\0\0\0\xff\0mysql_native_password\0");
    client.read();
    client.write(&[1; 20]);
    assert_eq!(client.read_error(), 1045);
    assert!(client.is_closed());
}

#[test]
fn the_unix_socket_is_a_secure_transport_and_its_file_goes_with_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("firn.sock");
    let options =
        || ServerOptions { listen: vec![Address::Unix(path.clone())], ..ServerOptions::default() };
    let running = Running::of(options());
    let mut stream = UnixStream::connect(&path).unwrap();
    let mut greeting = [0; 512];
    assert!(stream.read(&mut greeting).unwrap() > 50);
    let tcp = Running::new().connect();
    // Any answer will do: the password itself follows.
    let response = tcp.response("sha2", &[7; 32], "caching_sha2_password");
    send(&mut stream, 1, &response);
    assert_eq!(receive(&mut stream), [1, 4]);
    send(&mut stream, 3, b"secret\0");
    assert_eq!(receive(&mut stream)[0], 0);
    drop(running);
    assert!(!path.exists());
    // A file that a server left behind is no obstacle.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    Running::of(options());
}

fn send(stream: &mut impl Write, number: u8, payload: &[u8]) {
    let mut packet = (payload.len() as u32).to_le_bytes().to_vec();
    packet[3] = number;
    packet.extend_from_slice(payload);
    stream.write_all(&packet).unwrap();
    stream.flush().unwrap();
}

fn receive(stream: &mut impl Read) -> Vec<u8> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).unwrap();
    let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload).unwrap();
    payload
}

/// Accepts any certificate, as clients do that have none to compare it with.
#[derive(Debug)]
struct Trusting(CryptoProvider);

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

fn tls_client() -> ClientConnection {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Trusting(ring::default_provider())))
        .with_no_client_auth();
    ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap()
}

/// The request for TLS: the first 32 bytes of a response.
fn ssl_request(client: &Client) -> Vec<u8> {
    let mut response = client.response("", b"", "");
    response[1] |= (Capabilities::SSL.bits() >> 8) as u8;
    response.truncate(32);
    response
}

#[test]
fn inside_tls_the_password_goes_as_it_is() {
    let running = Running::new();
    let mut client = running.connect();
    client.capabilities |= Capabilities::SSL;
    let mut tls = tls_client();
    // The request and the first message of TLS come in one piece.
    let mut first = vec![32, 0, 0, 1];
    first.extend(ssl_request(&client));
    tls.write_tls(&mut first).unwrap();
    client.stream.write_all(&first).unwrap();
    let response = client.response("sha2", &[7; 32], "caching_sha2_password");
    let mut stream = rustls::Stream::new(&mut tls, &mut client.stream);
    send(&mut stream, 2, &response);
    assert_eq!(receive(&mut stream), [1, 4]);
    send(&mut stream, 4, b"secret\0");
    assert_eq!(receive(&mut stream)[0], 0);
    send(&mut stream, 0, b"\x03tls");
    (0..2).for_each(|_| drop(receive(&mut stream)));
    let row = receive(&mut stream);
    assert!(String::from_utf8_lossy(&row).contains("TLSv1.3"), "{row:?}");
    receive(&mut stream);
    // No other thread may use the state of TLS.
    send(&mut stream, 0, b"\x03late first");
    assert!(receive(&mut stream).ends_with(b"at once"));
    // More than fits into one record, or into the sockets' buffers.
    send(&mut stream, 0, b"\x03big 12000000");
    let lengths: Vec<_> = (0..4).map(|_| receive(&mut stream).len()).collect();
    assert_eq!(lengths[2], 12_000_004);
}

#[test]
fn a_server_can_insist_on_tls_or_have_none() {
    let listen = vec![Address::Tcp(([127, 0, 0, 1], 0).into())];
    let insisting = Running::of(ServerOptions {
        listen: listen.clone(),
        require_secure_transport: true,
        ..ServerOptions::default()
    });
    let mut client = insisting.connect();
    let response = client.response("root", b"", "caching_sha2_password");
    client.write(&response);
    assert_eq!(client.read_error(), 3159);
    let without =
        Running::of(ServerOptions { listen, tls: TlsMode::Disabled, ..ServerOptions::default() });
    let mut client = without.connect();
    let request = ssl_request(&client);
    client.write(&request);
    assert_eq!(client.read_error(), 1043);
}
