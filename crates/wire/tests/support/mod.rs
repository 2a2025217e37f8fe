//! What the tests of a running server share: the echo service, and a client that shows packets.

#![allow(dead_code, reason = "each test uses what it needs")]

pub(crate) mod client;
pub(crate) mod echo;

use firn_base::network::Address;
use std::sync::Arc;
use std::time::Duration;

use firn_base::Environment;
use firn_base::event::Event;
use firn_base::task::monotonic;
use firn_wire::{LimitValues, Limits, Server, ServerOptions};

pub(crate) use client::Client;
pub(crate) use echo::EchoService;

/// A server on a free port, with its service.
pub(crate) struct Running {
    pub(crate) server: Server,
    pub(crate) service: Arc<EchoService>,
}

impl Running {
    pub(crate) fn new() -> Running {
        Running::with(|_| ())
    }

    pub(crate) fn with(change: impl FnOnce(&mut LimitValues)) -> Running {
        // On a busy machine, the key of a server takes long to make: a login may wait for it.
        let connect_timeout = Duration::from_secs(600);
        let mut limits = LimitValues { connect_timeout, ..LimitValues::default() };
        change(&mut limits);
        Running::of(ServerOptions {
            listen: vec![Address::Tcp(([127, 0, 0, 1], 0).into())],
            limits: Arc::new(Limits::new(&limits)),
            ..ServerOptions::default()
        })
    }

    pub(crate) fn of(options: ServerOptions) -> Running {
        let service = Arc::new(EchoService::new());
        let server = Server::start(Environment::system(), options, service.clone()).unwrap();
        Running { server, service }
    }

    pub(crate) fn port(&self) -> u16 {
        match &self.server.addresses()[0] {
            Address::Tcp(address) => address.port(),
            Address::Named(..) | Address::Unix(_) => panic!("the first address is TCP"),
        }
    }

    /// A client that has connected and not yet logged in.
    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.port())
    }

    /// A client that has logged in as `root`.
    pub(crate) fn log_in(&self) -> Client {
        let mut client = self.connect();
        client.log_in();
        client
    }
}

/// Waits until `holds` returns true; panics after a minute.
#[track_caller]
pub(crate) fn soon(what: &str, mut holds: impl FnMut() -> bool) {
    let end = monotonic() + Duration::from_secs(60);
    while !holds() {
        assert!(monotonic() < end, "not soon: {what}");
        Event::new().wait_until(Some(Duration::from_millis(10)), || false);
    }
}
