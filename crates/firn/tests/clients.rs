//! Many clients at once, and clients that stop in the middle of a packet.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests look at the clock")]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use support::Server;

/// A client that can only log in and send queries.
struct Client(TcpStream);

impl Client {
    fn connect(port: u16) -> Client {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        Client(stream)
    }

    fn read(&mut self) -> Vec<u8> {
        let mut header = [0; 4];
        self.0.read_exact(&mut header).unwrap();
        let mut payload =
            vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
        self.0.read_exact(&mut payload).unwrap();
        payload
    }

    fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = (payload.len() as u32).to_le_bytes().to_vec();
        packet[3] = sequence;
        packet.extend_from_slice(payload);
        packet
    }

    fn send_login(&mut self) {
        const PROTOCOL_41: u32 = 0x200;
        const SECURE_CONNECTION: u32 = 0x8000;
        const PLUGIN_AUTH: u32 = 0x8_0000;
        const DEPRECATE_EOF: u32 = 0x100_0000;
        let capabilities = PROTOCOL_41 | SECURE_CONNECTION | PLUGIN_AUTH | DEPRECATE_EOF;
        let mut response = capabilities.to_le_bytes().to_vec();
        response.extend_from_slice(&(1u32 << 24).to_le_bytes());
        response.push(45);
        response.extend_from_slice(&[0; 23]);
        response.extend_from_slice(b"root\0\0caching_sha2_password\0");
        self.0.write_all(&Client::packet(1, &response)).unwrap();
    }

    fn log_in(port: u16) -> Client {
        let mut client = Client::connect(port);
        client.read();
        client.send_login();
        assert_eq!(client.read()[0], 0, "logged in");
        client
    }
}

#[test]
fn thousands_of_clients_that_come_at_once_are_all_served() {
    const CLIENTS: usize = 3000;
    let server = Server::start(&[], &[]);
    // This process may open as many files as the limit says, and each client is one.
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let files: usize = files.split_whitespace().next().unwrap().parse().unwrap_or(CLIENTS * 2);
    let count = CLIENTS.min(files - 100);
    let mut clients: Vec<_> = (0..count).map(|_| Client::connect(server.port())).collect();
    for client in &mut clients {
        assert_eq!(client.read()[0], 10, "the greeting");
    }
    clients.iter_mut().for_each(Client::send_login);
    for client in &mut clients {
        assert_eq!(client.read()[0], 0, "logged in");
    }
    for client in &mut clients {
        client.0.write_all(&Client::packet(0, b"\x03DO 1")).unwrap();
    }
    for client in &mut clients {
        assert_eq!(client.read()[0], 0, "answered");
    }
}

#[test]
fn clients_that_stop_in_the_midst_of_a_packet_hold_no_threads() {
    const CLIENTS: usize = 200;
    let server = Server::start(&[], &[]);
    let mut connection = server.connect();
    let before = server.threads();
    let mut packet = Client::packet(0, b"\x03DO 1");
    let rest = packet.split_off(6);
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| Client::log_in(server.port())).collect();
    clients.iter_mut().for_each(|client| client.0.write_all(&packet).unwrap());
    // These clients send only half of a login.
    let mut strangers: Vec<_> = (0..CLIENTS).map(|_| Client::connect(server.port())).collect();
    strangers.iter_mut().for_each(|client| client.0.write_all(&[60, 0, 0, 1, 0]).unwrap());
    // A thread without a connection waits ten seconds for another one.
    let end = Instant::now() + Duration::from_secs(120);
    while server.threads() > before + 20 {
        let one: Option<u64> = connection.query_first("SELECT 1").unwrap();
        assert_eq!(one, Some(1));
        assert!(Instant::now() < end, "{} threads instead of {before}", server.threads());
        std::thread::sleep(Duration::from_millis(50));
    }
    for client in &mut clients {
        client.0.write_all(&rest).unwrap();
    }
    for client in &mut clients {
        assert_eq!(client.read()[0], 0, "answered");
    }
}

#[test]
fn a_packet_that_does_not_go_on_ends_its_connection_after_net_read_timeout() {
    let server = Server::start(&[], &[]);
    server.connect().query_drop("SET GLOBAL net_read_timeout = 1").unwrap();
    let mut client = Client::log_in(server.port());
    let began = Instant::now();
    client.0.write_all(&[9, 0, 0, 0, 3]).unwrap();
    let error = client.read();
    assert_eq!((error[0], u16::from_le_bytes([error[1], error[2]])), (0xff, 1159));
    assert_eq!(client.0.read(&mut [0]).unwrap(), 0, "closed");
    // Another limit is `net_read_timeout` of 30 s, which nobody has set here.
    let took = began.elapsed();
    assert!(took > Duration::from_millis(800) && took < Duration::from_secs(25), "{took:?}");
}
