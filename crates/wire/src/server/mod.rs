//! The threads that serve connections.
//!
//! ```text
//!   poller thread   accepts, greets, holds idle connections (epoll), drops those that wait too long
//!   worker threads  one for each active connection; blocking I/O; kept for a while for the next one
//!   watch thread    notices clients that go away while their statement runs
//! ```
//!
//! An active connection's thread reads a command with one system call and answers it with one.
//! After 100 ms without a command, the poller gets the connection, and the thread serves another
//! one.
//!
//! The latch rules are numbered in the files: 1 the registry (`crate::connections`), 2 workers,
//! 3 watch, 4 poller. No two of their mutexes are ever held at once.

mod accept;
mod connection;
mod dispatch;
mod login;
mod options;
mod poller;
mod shared;
mod watch;
mod workers;

use firn_base::network::Address;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use firn_base::Environment;
use firn_base::task::TaskHandle;
use parking_lot::Mutex;

use crate::cancellation::CancelReason;
use crate::channel::{Listener, TlsAcceptor};
use crate::connections::Connections;
use crate::service::Service;

pub use options::{LimitValues, Limits, ServerOptions};
use poller::Poller;
use shared::Shared;

/// Time for connections to end after the server has told them to.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// A running server. Dropping it shuts it down without waiting for statements.
pub struct Server {
    shared: Arc<Shared>,
    addresses: Vec<Address>,
    threads: Mutex<Vec<Box<dyn TaskHandle>>>,
}

impl Server {
    /// Listens and serves clients until [`Server::shutdown`].
    ///
    /// # Errors
    /// If the server cannot listen at an address, or cannot read a certificate.
    pub fn start(
        environment: Environment,
        options: ServerOptions,
        service: Arc<dyn Service>,
    ) -> io::Result<Server> {
        let tls = TlsAcceptor::new(&options.tls)?;
        let listeners = options.listen.iter().map(bind).collect::<io::Result<Vec<_>>>()?;
        let addresses = listeners.iter().map(Listener::address).collect::<io::Result<_>>()?;
        let shared = Arc::new(Shared::new(environment, options, service, tls, Poller::new()?));
        let spawner = shared.environment.spawner.clone();
        let (for_poller, for_watch) = (shared.clone(), shared.clone());
        let threads = vec![
            spawner.spawn(
                "wire-poller",
                Box::new(move || for_poller.poller.run(&for_poller, listeners)),
            ),
            spawner.spawn("wire-watch", Box::new(move || for_watch.watch.run())),
        ];
        Ok(Server { shared, addresses, threads: Mutex::new(threads) })
    }

    /// Where the server listens, in the order of the options, with the ports that were found.
    #[must_use]
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    #[must_use]
    pub fn connections(&self) -> &Arc<Connections> {
        &self.shared.connections
    }

    /// The limits, which can be changed.
    #[must_use]
    pub fn limits(&self) -> &Arc<Limits> {
        &self.shared.limits
    }

    /// How many connections are idle and have no thread.
    #[must_use]
    pub fn parked_connections(&self) -> usize {
        self.shared.poller.parked()
    }

    /// Accepts no more connections and commands, closes idle connections, waits up to `patience`
    /// for running statements, then interrupts them. Returns when all connections have ended, or
    /// false if some have not ended within a few seconds after they were told to. A second call has
    /// no effect.
    pub fn shutdown(&self, patience: Duration) -> bool {
        let connections = &self.shared.connections;
        self.shared.stop();
        // The poller closes the parked connections; connections that wait with a thread end their
        // wait.
        self.shared.poller.wake();
        for connection in connections.all() {
            if connection.running().is_none() {
                connection.stop_reading();
            }
        }
        let all_ended =
            |timeout| connections.ended.wait_until(Some(timeout), || connections.is_empty());
        let mut ended = all_ended(patience);
        if !ended {
            connections.all().iter().for_each(|one| one.end(CancelReason::Shutdown));
            ended = all_ended(LAST_WAIT);
        }
        if !ended {
            connections.all().iter().for_each(|one| one.disconnect());
            ended = all_ended(LAST_WAIT);
        }
        self.shared.poller.stop();
        self.shared.watch.stop();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            thread.join();
        }
        self.shared.workers.stop(LAST_WAIT) && ended
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shutdown(Duration::ZERO);
    }
}

fn bind(address: &Address) -> io::Result<Listener> {
    Listener::bind(address).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot listen at {address}: {error}"))
    })
}

#[cfg(test)]
mod tests;
