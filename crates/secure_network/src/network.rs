//! The system's network, for nodes that trust only each other.

use std::sync::Arc;
use std::time::Duration;

use firn_base::network::framed::{Deadline, FramedConnection};
use firn_base::network::system::{PlainStream, SocketListener, connect, not_connected};
use firn_base::network::{
    Address, Connection, Delivery, Listener, Network, NetworkError, NetworkResult, sockets,
};

use crate::authority::CertificateError;
use crate::credentials::Credentials;
use crate::stream::TlsStream;

/// See [`crate`].
#[derive(Debug, Clone)]
pub struct SecureNetwork {
    credentials: Option<Arc<Credentials>>,
}

impl SecureNetwork {
    /// TLS on all TCP connections.
    #[must_use]
    pub fn new(credentials: Arc<Credentials>) -> SecureNetwork {
        SecureNetwork { credentials: Some(credentials) }
    }

    /// Without certificates: loopback addresses and Unix sockets alone.
    #[must_use]
    pub fn of_this_machine() -> SecureNetwork {
        SecureNetwork { credentials: None }
    }

    /// The credentials for connections with an address, which leads to these addresses; `None` if
    /// it needs none.
    fn credentials(
        &self,
        address: &Address,
        found: &[Address],
    ) -> NetworkResult<Option<Arc<Credentials>>> {
        let is_of_this_machine = |found: &Address| match found {
            Address::Unix(_) => true,
            Address::Tcp(tcp) => tcp.ip().is_loopback(),
            Address::Named(..) => false,
        };
        match (address, &self.credentials) {
            (Address::Unix(_), _) => Ok(None),
            (_, Some(credentials)) => Ok(Some(Arc::clone(credentials))),
            (_, None) if found.iter().all(is_of_this_machine) => Ok(None),
            (_, None) => {
                let reason = "nodes without certificates talk over loopback addresses and Unix \
                              sockets alone; make certificates by `firn admin certificates`";
                Err(untrusted(address, reason))
            }
        }
    }
}

fn untrusted(peer: &Address, reason: &str) -> NetworkError {
    NetworkError::Untrusted { peer: peer.clone(), reason: reason.to_owned() }
}

fn not_usable(peer: &Address) -> impl FnOnce(CertificateError) -> NetworkError {
    let peer = peer.clone();
    move |error| untrusted(&peer, &error.to_string())
}

impl Network for SecureNetwork {
    fn listen(&self, address: &Address) -> NetworkResult<Box<dyn Listener>> {
        let found = sockets::resolve(address, sockets::LISTENING_NAME_TIMEOUT)?;
        let credentials = self.credentials(address, &found)?;
        let sockets = SocketListener::bind_first(address, &found)?;
        match credentials {
            None => Ok(Box::new(sockets)),
            Some(credentials) => Ok(Box::new(TlsListener { sockets, credentials })),
        }
    }

    fn connect(
        &self,
        peer: &Address,
        _: Delivery,
        timeout: Duration,
    ) -> NetworkResult<Arc<dyn Connection>> {
        let deadline = Deadline::after(Some(timeout));
        let found = sockets::resolve(peer, timeout)?;
        let credentials = self.credentials(peer, &found)?;
        let tls = credentials.map(|own| own.client().map_err(not_usable(peer))).transpose()?;
        let stream = connect(peer, &found, deadline)?;
        let Some(tls) = tls else {
            return Ok(Arc::new(FramedConnection::over(stream, peer.clone())));
        };
        let stream = TlsStream::new(stream, tls);
        match stream.complete(deadline) {
            Ok(()) => Ok(Arc::new(FramedConnection::over(stream, peer.clone()))),
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                Err(untrusted(peer, &error.to_string()))
            }
            Err(error) => Err(not_connected(peer, error)),
        }
    }
}

struct TlsListener {
    sockets: SocketListener,
    credentials: Arc<Credentials>,
}

impl Listener for TlsListener {
    fn address(&self) -> Address {
        self.sockets.address()
    }

    /// Does not wait for the handshake: the first calls of the connection perform it.
    fn accept(&self, timeout: Option<Duration>) -> NetworkResult<Arc<dyn Connection>> {
        let (socket, peer) = self.sockets.accept_socket(timeout)?;
        let refused = |source| NetworkError::System { peer: self.sockets.address(), source };
        let tls = self.credentials.server().map_err(not_usable(&peer))?;
        let stream = TlsStream::new(PlainStream::open(socket).map_err(refused)?, tls);
        Ok(Arc::new(FramedConnection::over(stream, peer)))
    }

    fn close(&self) {
        self.sockets.close();
    }
}

#[cfg(test)]
mod tests;
