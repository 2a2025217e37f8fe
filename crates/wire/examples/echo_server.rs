//! A server of the tests' echo service, for trying real clients: `echo_server PORT SOCKET`.

#[path = "../tests/support/echo.rs"]
mod echo;

use firn_base::network::Address;
use std::sync::Arc;

use firn_base::Environment;
use firn_base::event::Event;
use firn_wire::{Server, ServerOptions};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let port: u16 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(3307);
    let socket = arguments.next().unwrap_or_else(|| "/tmp/firn-echo.sock".to_owned());
    let options = ServerOptions {
        listen: vec![Address::Tcp(([127, 0, 0, 1], port).into()), Address::Unix(socket.into())],
        ..ServerOptions::default()
    };
    options.limits.set_max_connections(20_000);
    let service = Arc::new(echo::EchoService::new());
    let server = Server::start(Environment::system(), options, service).expect("cannot start");
    println!("listening at {:?}", server.addresses());
    Event::new().wait_until(None, || false);
}
