//! The ports of a cluster on this machine, which belong to it for as long as it runs.
//!
//! A node listens only while its process runs, and it may be started again at any time. So the
//! process that starts the nodes keeps a socket bound to each of their ports, which never listens.
//!
//! ```text
//!   this process      bound, does not listen        7401  7402  7403
//!   a node            bound, listens                7401        7403      7402 is down: clients
//!   another cluster   looks for ports of its own     ✗     ✗     ✗        are refused at once
//! ```
//!
//! Linux lets several sockets be bound to a port if all of them say `SO_REUSEADDR` and none
//! listens, or one does. Nodes say it. Who looks for a port does not, and so finds only those that
//! nobody has; it says it afterwards, and lets its node listen.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use firn_base::network::Address;
use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with};

/// Ports that no other cluster of this machine takes until this is dropped.
#[derive(Default)]
pub(super) struct Ports {
    sockets: Vec<OwnedFd>,
}

impl Ports {
    /// An address of this machine with this port, or with any free one.
    ///
    /// # Errors
    /// If the system has none.
    pub(super) fn choose(&mut self, wanted: u16) -> io::Result<Address> {
        let at = |port| -> io::Result<(OwnedFd, Address)> {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let socket = new_socket(address)?;
            bind(&socket, &address)?;
            let address = SocketAddr::try_from(getsockname(&socket)?)?;
            Ok((socket, Address::Tcp(address)))
        };
        let (socket, address) = at(wanted).or_else(|_| at(0))?;
        set_socket_reuseaddr(&socket, true)?;
        self.sockets.push(socket);
        Ok(address)
    }

    /// Keeps the port of this address. Says whether it is free: nobody listens there, and no other
    /// cluster has chosen it. An address that this machine does not have counts as free: the node
    /// reports it when it starts.
    ///
    /// # Errors
    /// If the system has no sockets.
    pub(super) fn keep(&mut self, address: &Address) -> io::Result<bool> {
        let &Address::Tcp(address) = address else { return Ok(true) };
        let socket = new_socket(address)?;
        set_socket_reuseaddr(&socket, true)?;
        match bind(&socket, &address) {
            Ok(()) => self.sockets.push(socket),
            Err(rustix::io::Errno::ADDRINUSE) => return Ok(false),
            // The node finds out, and says it.
            Err(_) => {}
        }
        Ok(true)
    }
}

/// A socket that processes started by this one do not get.
fn new_socket(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    Ok(socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn at(address: &Address) -> SocketAddr {
        let &Address::Tcp(address) = address else { panic!("not an address of TCP: {address}") };
        address
    }

    /// What nodes of the cluster may do, and others may not, while it runs.
    #[test]
    fn a_port_belongs_to_its_cluster_while_no_node_listens() {
        let (mut one, mut other) = (Ports::default(), Ports::default());
        let address = one.choose(0).unwrap();
        let port = address.port().unwrap();
        assert_ne!(other.choose(port).unwrap(), address);
        for start in 1..=2 {
            TcpStream::connect(at(&address)).expect_err("nobody listens");
            let node = TcpListener::bind(at(&address)).unwrap();
            TcpStream::connect(at(&address)).unwrap();
            assert_ne!(other.choose(port).unwrap(), address, "start {start}");
            assert!(!other.keep(&address).unwrap(), "start {start}");
            drop(node);
        }
    }

    #[test]
    fn a_cluster_that_is_started_again_keeps_its_ports() {
        let (mut one, mut other) = (Ports::default(), Ports::default());
        let address = one.choose(0).unwrap();
        drop(one);
        let mut again = Ports::default();
        assert!(again.keep(&address).unwrap());
        assert_ne!(other.choose(address.port().unwrap()).unwrap(), address);
        drop(TcpListener::bind(at(&address)).expect("its node listens"));
    }
}
