//! New connections: counted, greeted, and parked until the client sends its response.

use std::io;
use std::sync::Arc;

use super::connection::Connection;
use super::shared::Shared;
use crate::channel::{ByteStream, Listener, PeerAddress, Socket};
use crate::error::ServerError;
use crate::packet::HEADER_LENGTH;
use crate::reply::put_error;

/// Most connections accepted from one listener before the next listener's turn.
const BATCH: usize = 64;

/// Accepts the waiting clients. An error means that the process cannot take more for now.
pub(super) fn accept_all(shared: &Arc<Shared>, listener: &Listener) -> io::Result<()> {
    for _ in 0..BATCH {
        match listener.accept() {
            Ok((socket, peer)) => greet(shared, socket, peer),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if is_of_one_client(&error) => {}
            Err(error) => {
                tracing::error!(%error, "cannot accept connections");
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Whether an error concerns one client only, which was gone before it was accepted.
fn is_of_one_client(error: &io::Error) -> bool {
    use io::ErrorKind::*;
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionReset | Interrupted | InvalidInput | NotConnected
    )
}

fn greet(shared: &Arc<Shared>, socket: Socket, peer: PeerAddress) {
    let socket = Arc::new(socket);
    if shared.connections.logged_in() >= shared.limits.max_connections() {
        shared.connections.count_refused();
        return refuse(socket, &ServerError::too_many_connections());
    }
    shared.connections.make_room(shared.limits.max_pending_logins());
    let mut connection = Box::new(Connection::new(shared, socket, peer));
    if connection.greet().is_ok() {
        shared.poller.park(shared, connection);
    }
}

/// Refuses a client with an error. A new connection's socket buffer has room for it.
fn refuse(mut socket: Arc<Socket>, error: &ServerError) {
    let mut packet = vec![0; HEADER_LENGTH];
    put_error(&mut packet, error, false);
    packet[0] = (packet.len() - HEADER_LENGTH) as u8;
    // If this fails, the client is gone and misses nothing.
    let _ = socket.write(&packet);
    socket.shut_down();
}
