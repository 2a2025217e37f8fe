//! The MySQL port of a process whose clients' sessions run here at times, and at other nodes at
//! others: it listens as long as the process lives.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use firn_base::Environment;
use firn_base::network::Address;
use firn_wire::{Connections, Limits, Server, Service};

use super::{EndpointOptions, limit_values, server_options};

/// A listening port. Dropping it ends it without waiting for statements.
pub struct ClientDoor {
    server: Server,
    limits: Arc<Limits>,
}

impl ClientDoor {
    /// Listens where the options say, and at the same port of 127.0.0.1, for clients whose sessions
    /// `service` opens: an account without a password can log in there alone. Connections get
    /// numbers of `ids`.
    ///
    /// # Errors
    /// If the process cannot listen there, or cannot read the certificate.
    pub fn start(
        environment: &Environment,
        options: &EndpointOptions,
        ids: RangeInclusive<u32>,
        service: Arc<dyn Service>,
    ) -> io::Result<ClientDoor> {
        let limits = Arc::new(Limits::new(&limit_values(options)));
        let listening = server_options(options, Arc::clone(&limits), ids);
        let start = |listening| Server::start(environment.clone(), listening, Arc::clone(&service));
        let mut with_loopback = listening.clone();
        with_loopback.listen.extend(options.listen.and_then(loopback_beside).map(Address::Tcp));
        // Another process may have the port there.
        let server = start(with_loopback).or_else(|_| start(listening))?;
        Ok(ClientDoor { server, limits })
    }

    /// The TCP address at which clients connect.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        tcp_address(&self.server)
    }

    #[must_use]
    pub fn connections(&self) -> &Arc<Connections> {
        self.server.connections()
    }

    pub(super) fn limits(&self) -> &Arc<Limits> {
        &self.limits
    }

    /// Accepts no more statements, waits up to `patience` for running ones, then interrupts them.
    pub fn shutdown(&self, patience: Duration) -> bool {
        self.server.shutdown(patience)
    }
}

/// The address of this machine alone with the same port, if listening at `address` does not include
/// it.
fn loopback_beside(address: SocketAddr) -> Option<SocketAddr> {
    let has_none = !address.ip().is_loopback() && !address.ip().is_unspecified();
    (has_none && address.port() != 0)
        .then(|| SocketAddr::from((Ipv4Addr::LOCALHOST, address.port())))
}

/// Where a server listens at TCP.
pub(super) fn tcp_address(server: &Server) -> Option<SocketAddr> {
    server.addresses().iter().find_map(|address| match address {
        Address::Tcp(address) => Some(*address),
        Address::Named(..) | Address::Unix(_) => None,
    })
}
