//! Measures the protocol alone: `point_selects CLIENTS SECONDS` prepares a fixed point select in
//! each client, all in one process with the server, and prints how many are answered in a second.

#[path = "../tests/support/client.rs"]
#[allow(dead_code, reason = "a benchmark says little")]
mod client;
#[path = "../tests/support/echo.rs"]
mod echo;

use firn_base::network::Address;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_base::{Environment, task};
use firn_wire::{Server, ServerOptions};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let mut argument = |default| arguments.next().and_then(Result::ok).unwrap_or(default);
    let (clients, seconds) = (argument(16), argument(5));
    let options = ServerOptions {
        listen: vec![Address::Tcp(([127, 0, 0, 1], 0).into())],
        ..ServerOptions::default()
    };
    options.limits.set_max_connections(10_000);
    let service = Arc::new(echo::EchoService::new());
    let server = Server::start(Environment::system(), options, service).expect("cannot start");
    let Address::Tcp(address) = server.addresses()[0].clone() else { return };
    let (stop, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| run_client(address.port(), &stop, &answered));
        }
        task::sleep(Duration::from_secs(1));
        let before = answered.load(Ordering::Relaxed);
        task::sleep(Duration::from_secs(seconds));
        let count = answered.load(Ordering::Relaxed) - before;
        println!("{clients} clients: {} point selects a second", count / seconds);
        stop.store(true, Ordering::Relaxed);
    });
}

/// Executes `one ?` over and over: one write, one read, no decoding.
fn run_client(port: u16, stop: &AtomicBool, answered: &AtomicU64) {
    let mut client = client::Client::connect(port);
    client.log_in();
    client.command(0x16, b"one ?");
    (0..3).for_each(|_| drop(client.read()));
    let execute = b"\x13\0\0\0\x17\x01\0\0\0\0\x01\0\0\0\0\x01\x08\0\x07\0\0\0\0\0\0\0";
    let mut packet = execute.to_vec();
    packet[0] = (packet.len() - 4) as u8;
    let mut stream = &client.stream;
    let mut reply = [0; 4096];
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..100 {
            stream.write_all(&packet).expect("the server listens");
            // The reply arrives in one piece, because the server writes it in one.
            let length = stream.read(&mut reply).expect("the server answers");
            assert!(length > 50, "a whole reply");
        }
        answered.fetch_add(100, Ordering::Relaxed);
    }
}
