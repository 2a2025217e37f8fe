//! The serving side of links.

mod desk;
mod pool;
mod reader;
mod request;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::Environment;
use firn_base::event::Event;
use firn_base::network::{Address, Connection, Listener, NetworkError, NetworkResult};
use firn_base::task::{TaskHandle, sleep};
use parking_lot::Mutex;

use self::desk::Desk;
pub use self::desk::Peer;
use self::pool::Pool;
pub use self::reader::Offer;
use self::reader::{Hall, Reading};
pub use self::request::{Placement, PushError, Request, RequestKind, Responder, Service};
use crate::handshake::receive_introduction;
use crate::local::LocalNode;
use crate::sender::{Sender, SenderLimits};
use crate::statistics::{LinkStatistics, Statistics};

/// Pause after a connection could not be accepted, for instance for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Refusals that a server remembers.
const REMEMBERED_REFUSALS: usize = 32;

#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// Threads that execute what services do not do on the readers.
    pub workers: usize,
    /// Bytes of requests that one client may have under way.
    pub window_bytes: u32,
    /// Answers wait for room while more bytes than this wait for one client.
    pub queue_bytes: u64,
    /// Further connections are closed at once.
    pub most_connections: usize,
    pub handshake_timeout: Duration,
    /// A connection ends when one write takes longer.
    pub send_timeout: Duration,
    /// A connection ends when nothing has come for this long. Longer than three times the interval
    /// of the clients' pings.
    pub silence: Duration,
}

impl Default for ServerSettings {
    fn default() -> ServerSettings {
        ServerSettings {
            workers: 4,
            window_bytes: 4 << 20,
            queue_bytes: 4 << 20,
            most_connections: 1024,
            handshake_timeout: Duration::from_secs(5),
            send_timeout: Duration::from_secs(5),
            silence: Duration::from_secs(10),
        }
    }
}

/// Serves links at one address. Dropping it closes them without waiting.
pub struct Server {
    shared: Arc<Shared>,
    tasks: Mutex<Vec<Box<dyn TaskHandle>>>,
}

struct Shared {
    hall: Hall,
    settings: ServerSettings,
    listener: Box<dyn Listener>,
    is_closed: AtomicBool,
    /// Latch rule 9: the mutex is a leaf.
    live: Mutex<Live>,
    /// Notified when a connection has gone.
    gone: Event,
}

#[derive(Default)]
struct Live {
    connections: BTreeMap<u64, LiveConnection>,
    next: u64,
    /// Why connections came to nothing, the newest last.
    refusals: VecDeque<String>,
}

struct LiveConnection {
    connection: Arc<dyn Connection>,
    /// Once both sides have agreed.
    desk: Option<Arc<Desk>>,
}

/// A connection of a server, for metrics.
#[derive(Debug, Clone)]
pub struct PeerStatistics {
    pub peer: Peer,
    pub statistics: LinkStatistics,
}

impl Server {
    /// Listens and serves until [`Server::close`].
    ///
    /// # Errors
    /// If the process cannot listen at the address.
    pub fn start(
        environment: &Environment,
        local: Arc<LocalNode>,
        address: &Address,
        settings: ServerSettings,
        offers: Vec<Offer>,
    ) -> NetworkResult<Server> {
        let listener = environment.network.listen(address)?;
        let services = offers.into_iter().map(|offer| (offer.id, offer)).collect();
        let environment = environment.clone();
        let hall = Hall { environment, local, services, pool: Pool::new() };
        let workers = settings.workers;
        let shared = Arc::new(Shared {
            hall,
            settings,
            listener,
            is_closed: AtomicBool::new(false),
            live: Mutex::default(),
            gone: Event::new(),
        });
        let spawner = &shared.hall.environment.spawner;
        let mut tasks = Vec::with_capacity(1 + workers);
        let of_task = Arc::clone(&shared);
        tasks.push(spawner.spawn("link-accept", Box::new(move || of_task.accept())));
        for _ in 0..workers {
            let of_task = Arc::clone(&shared);
            let body = move || of_task.hall.pool.run(|work| of_task.hall.execute(work));
            tasks.push(spawner.spawn("link-worker", Box::new(body)));
        }
        Ok(Server { shared, tasks: Mutex::new(tasks) })
    }

    /// The address, with the port that the system chose.
    #[must_use]
    pub fn address(&self) -> Address {
        self.shared.listener.address()
    }

    /// The connections that both sides have agreed on.
    #[must_use]
    pub fn peers(&self) -> Vec<PeerStatistics> {
        let live = self.shared.live.lock();
        let desks = live.connections.values().filter_map(|live| live.desk.as_ref());
        let read = |desk: &Arc<Desk>| PeerStatistics {
            peer: desk.peer.clone(),
            statistics: desk.sender.statistics().read(),
        };
        desks.map(read).collect()
    }

    /// Why the last connections came to nothing, the newest last: for a log, and for status.
    #[must_use]
    pub fn refusals(&self) -> Vec<String> {
        self.shared.live.lock().refusals.iter().cloned().collect()
    }

    /// Ends all connections and waits for the server's tasks. A service that does not return holds
    /// it up.
    pub fn close(&self) {
        self.shared.close();
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for task in tasks {
            task.join();
        }
        self.shared.gone.wait_until(None, || self.shared.live.lock().connections.is_empty());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl Live {
    fn remember(&mut self, refusal: String) {
        if self.refusals.len() == REMEMBERED_REFUSALS {
            self.refusals.pop_front();
        }
        self.refusals.push_back(refusal);
    }
}

impl Shared {
    fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.listener.close();
        let (connections, desks): (Vec<_>, Vec<_>) = {
            let live = self.live.lock();
            let each = live.connections.values();
            each.map(|live| (Arc::clone(&live.connection), live.desk.clone())).unzip()
        };
        connections.iter().for_each(|connection| connection.close());
        desks.into_iter().flatten().for_each(|desk| desk.end());
        self.hall.pool.close();
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    fn accept(self: &Arc<Shared>) {
        while !self.is_closed() {
            match self.listener.accept(None) {
                Ok(connection) => self.begin(connection),
                Err(NetworkError::Ended { .. }) => return,
                Err(_) => sleep(ACCEPT_PAUSE),
            }
        }
    }

    /// Starts the reader of a connection.
    fn begin(self: &Arc<Shared>, connection: Arc<dyn Connection>) {
        let number = {
            let mut live = self.live.lock();
            // Read under the mutex: a thread that closes the server later finds the connection.
            if self.is_closed() || live.connections.len() >= self.settings.most_connections {
                return;
            }
            live.next += 1;
            let number = live.next;
            let of_list = LiveConnection { connection: Arc::clone(&connection), desk: None };
            live.connections.insert(number, of_list);
            number
        };
        let shared = Arc::clone(self);
        self.spawn_reader(move || match shared.agree(number, connection) {
            Some(desk) => shared.read(number, &desk),
            None => shared.forget(number),
        });
    }

    /// Starts a task of a connection. It ends with that; nobody needs its handle.
    fn spawn_reader(&self, body: impl FnOnce() + Send + 'static) {
        drop(self.hall.environment.spawner.spawn("link-server", Box::new(body)));
    }

    fn forget(&self, number: u64) {
        self.live.lock().connections.remove(&number);
        self.gone.notify_all();
    }

    /// Reads a connection until it ends, with one thread after the other.
    fn read(self: &Arc<Shared>, number: u64, desk: &Arc<Desk>) {
        match self.hall.read(desk, self.settings.silence) {
            Reading::HasEnded => self.forget(number),
            Reading::WasDeep => {
                let (shared, desk) = (Arc::clone(self), Arc::clone(desk));
                self.spawn_reader(move || shared.read(number, &desk));
            }
        }
    }

    /// Makes sure that both sides may talk; `None`: they do not.
    fn agree(&self, number: u64, connection: Arc<dyn Connection>) -> Option<Arc<Desk>> {
        let hello = self.hall.local.hello(self.settings.window_bytes);
        let introduced = receive_introduction(&*connection, hello, self.settings.handshake_timeout);
        let agreement = match introduced {
            Ok(agreement) => agreement,
            Err(error) => {
                let text = format!("{}: {error}", connection.peer());
                self.live.lock().remember(text);
                return None;
            }
        };
        let peer = Peer {
            version: agreement.version,
            is_certified: agreement.is_certified,
            address: connection.peer().clone(),
            hello: agreement.peer,
        };
        let statistics = Arc::<Statistics>::default();
        Statistics::add(&statistics.connections, 1);
        let limits = SenderLimits {
            send_timeout: self.settings.send_timeout,
            queue_bytes: self.settings.queue_bytes,
        };
        let clock = Arc::clone(&self.hall.environment.clock);
        let sender = Sender::new(connection, limits, clock, statistics);
        let window = u64::from(self.settings.window_bytes);
        let desk = Arc::new(Desk::new(peer, agreement.epoch, sender, window));
        if let Some(live) = self.live.lock().connections.get_mut(&number) {
            live.desk = Some(Arc::clone(&desk));
        }
        if self.is_closed() {
            desk.end();
            return None;
        }
        Some(desk)
    }
}
