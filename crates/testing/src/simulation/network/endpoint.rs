//! One process's access to the network: listeners, connections, waiting calls.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use firn_base::event::{Event, Ticket};
use firn_base::network::{
    Address, Connection, Delivery, Listener, MAX_MESSAGE_BYTES, Network, NetworkError,
    NetworkResult,
};
use parking_lot::{Mutex, MutexGuard};

use super::pipe::{Found, Item, Pipe, PipeId};
use super::{Accepted, Backlog, Endpoint, HostId, Life, SimulatedNetwork, State, ip};
use crate::simulation::state::ProcessId;

/// Most bytes by which a sender may be ahead of the receiver.
const WINDOW_BYTES: usize = 1 << 20;

/// One process's access to the network, until the process dies.
pub(in crate::simulation) struct HostNetwork {
    network: SimulatedNetwork,
    process: ProcessId,
    host: HostId,
}

impl HostNetwork {
    pub(super) fn new(network: SimulatedNetwork, process: ProcessId, host: HostId) -> HostNetwork {
        HostNetwork { network, process, host }
    }

    /// Kills the process: its machine tells its peers.
    pub(in crate::simulation) fn kill(&self) {
        self.network.end(self.process, Life::Killed);
    }

    /// Cuts the power of the machine: no peer is told.
    pub(in crate::simulation) fn lose_power(&self) {
        self.network.end(self.process, Life::Lost);
    }

    /// An address of this host.
    pub(in crate::simulation) fn address(&self, port: u16) -> Address {
        Address::Tcp(std::net::SocketAddr::new(ip(self.host), port))
    }

    /// The host of an address, and the endpoint on it.
    fn resolve(&self, address: &Address, state: &State) -> (Option<HostId>, Endpoint) {
        match address {
            Address::Unix(path) => (Some(self.host), Endpoint::Path(path.clone())),
            Address::Tcp(address) => {
                let is_own = address.ip().is_loopback() || address.ip().is_unspecified();
                let known = || (0..state.hosts.len()).find(|host| ip(*host) == address.ip());
                let host = if is_own { Some(self.host) } else { known() };
                (host, Endpoint::Port(address.port()))
            }
            Address::Named(name, port) => (state.host_of_name(name), Endpoint::Port(*port)),
        }
    }

    /// The listener at an address, if the link to it is open.
    fn find(&self, peer: &Address) -> NetworkResult<Option<(HostId, Arc<Mutex<Backlog>>)>> {
        let state = self.network.enter();
        let (host, endpoint) = self.resolve(peer, &state);
        if let (Address::Named(..), None) = (peer, host) {
            let reason = "no host has it".to_owned();
            return Err(NetworkError::Unresolved { peer: peer.clone(), reason });
        }
        let Some(host) = host.filter(|host| {
            let is_cut = |from, to| state.links.is_cut(from, to);
            state.is_up(*host) && !is_cut(self.host, *host) && !is_cut(*host, self.host)
        }) else {
            return Ok(None);
        };
        match state.listeners.get(&(host, endpoint)) {
            Some(backlog) => Ok(Some((host, Arc::clone(backlog)))),
            None => Err(NetworkError::Refused { peer: peer.clone() }),
        }
    }

    /// The time of a request and its answer.
    fn draw_round_trip(&self, host: HostId) -> Duration {
        let state = self.network.enter();
        let there = state.links.faults(self.host, host).draw_delay(state.random());
        there + state.links.faults(host, self.host).draw_delay(state.random())
    }

    fn join(
        &self,
        backlog: &Mutex<Backlog>,
        peer: &Address,
        delivery: Delivery,
    ) -> Option<SimulatedConnection> {
        let mut state = self.network.enter();
        let mut backlog = backlog.lock();
        if backlog.is_closed || !state.is_alive(backlog.process) || !state.is_alive(self.process) {
            return None;
        }
        let (outgoing, incoming) = (state.next_pipe, state.next_pipe + 1);
        state.next_pipe += 2;
        state.next_port = state.next_port.checked_add(1).unwrap_or(super::FIRST_FREE_PORT);
        let (here, there) = (self.process, backlog.process);
        state.pipes.insert(outgoing, Pipe::new(here, there, incoming, delivery));
        state.pipes.insert(incoming, Pipe::new(there, here, outgoing, delivery));
        let from = match peer {
            Address::Tcp(_) | Address::Named(..) => self.address(state.next_port),
            Address::Unix(path) => Address::Unix(path.clone()),
        };
        backlog.waiting.push_back(Accepted { outgoing: incoming, incoming: outgoing, peer: from });
        backlog.arrived.notify_all();
        Some(SimulatedConnection {
            network: self.network.clone(),
            process: self.process,
            outgoing,
            incoming,
            peer: peer.clone(),
        })
    }
}

impl SimulatedNetwork {
    /// Begins the effect of a call, after the call's switch point.
    fn enter(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock();
        state.begin(&self.core);
        state
    }

    fn deadline(&self, timeout: Option<Duration>) -> Option<Duration> {
        timeout.and_then(|timeout| self.core.now().checked_add(timeout))
    }

    /// Waits for an event, until the deadline or until `at`; false if the deadline has passed.
    fn wait(
        &self,
        event: &Event,
        ticket: Ticket,
        deadline: Option<Duration>,
        at: Option<Duration>,
    ) -> bool {
        let now = self.core.now();
        if deadline.is_some_and(|deadline| now >= deadline) {
            return false;
        }
        let until = deadline.into_iter().chain(at).min();
        event.wait(ticket, until.map(|until| until.saturating_sub(now)));
        true
    }
}

impl Network for HostNetwork {
    fn listen(&self, address: &Address) -> NetworkResult<Box<dyn Listener>> {
        firn_base::task::yield_now();
        let mut state = self.network.enter();
        let refused = |kind: std::io::ErrorKind| NetworkError::System {
            peer: address.clone(),
            source: kind.into(),
        };
        let mut address = address.clone();
        if let Address::Tcp(tcp) = &mut address
            && tcp.port() == 0
        {
            state.next_port += 1;
            tcp.set_port(state.next_port);
        }
        let (host, endpoint) = self.resolve(&address, &state);
        if host != Some(self.host) || !state.is_alive(self.process) {
            return Err(refused(std::io::ErrorKind::AddrNotAvailable));
        }
        let key = (self.host, endpoint);
        if state.listeners.contains_key(&key) {
            return Err(refused(std::io::ErrorKind::AddrInUse));
        }
        let backlog = Arc::new(Mutex::new(Backlog {
            process: self.process,
            waiting: VecDeque::new(),
            is_closed: false,
            arrived: Arc::new(Event::new()),
        }));
        state.listeners.insert(key.clone(), Arc::clone(&backlog));
        drop(state);
        self.network.changed.notify_all();
        let (network, process) = (self.network.clone(), self.process);
        Ok(Box::new(SimulatedListener { network, process, address, key, backlog }))
    }

    fn connect(
        &self,
        peer: &Address,
        delivery: Delivery,
        timeout: Duration,
    ) -> NetworkResult<Arc<dyn Connection>> {
        firn_base::task::yield_now();
        let deadline = self.network.deadline(Some(timeout));
        let timed_out = || NetworkError::TimedOut { peer: peer.clone() };
        loop {
            let ticket = self.network.changed.listen();
            let found = self.find(peer);
            let Some((host, backlog)) = found.as_ref().ok().and_then(Option::as_ref) else {
                found?;
                if !self.network.wait(&self.network.changed, ticket, deadline, None) {
                    return Err(timed_out());
                }
                continue;
            };
            let round_trip = self.draw_round_trip(*host);
            let left = deadline.map(|deadline| deadline.saturating_sub(self.network.core.now()));
            let is_late = left.is_some_and(|left| round_trip > left);
            firn_base::task::sleep(if is_late { left.unwrap_or_default() } else { round_trip });
            // A listener that was closed meanwhile refuses at the next attempt.
            if let Some(connection) = self.join(backlog, peer, delivery) {
                // The peer accepted a connection that this side has given up; it is dropped here.
                return if is_late { Err(timed_out()) } else { Ok(Arc::new(connection)) };
            }
            if is_late {
                return Err(timed_out());
            }
        }
    }
}

struct SimulatedListener {
    network: SimulatedNetwork,
    process: ProcessId,
    address: Address,
    key: (HostId, Endpoint),
    backlog: Arc<Mutex<Backlog>>,
}

impl Listener for SimulatedListener {
    fn address(&self) -> Address {
        self.address.clone()
    }

    fn accept(&self, timeout: Option<Duration>) -> NetworkResult<Arc<dyn Connection>> {
        firn_base::task::yield_now();
        let deadline = self.network.deadline(timeout);
        let arrived = Arc::clone(&self.backlog.lock().arrived);
        loop {
            let ticket = arrived.listen();
            {
                let mut backlog = self.backlog.lock();
                if backlog.is_closed {
                    return Err(NetworkError::Ended { peer: self.address.clone() });
                }
                if let Some(accepted) = backlog.waiting.pop_front() {
                    return Ok(Arc::new(SimulatedConnection {
                        network: self.network.clone(),
                        process: self.process,
                        outgoing: accepted.outgoing,
                        incoming: accepted.incoming,
                        peer: accepted.peer,
                    }));
                }
            }
            if !self.network.wait(&arrived, ticket, deadline, None) {
                return Err(NetworkError::TimedOut { peer: self.address.clone() });
            }
        }
    }

    fn close(&self) {
        let mut state = self.network.enter();
        let now = self.network.core.now();
        let waiting = {
            let mut backlog = self.backlog.lock();
            backlog.is_closed = true;
            backlog.arrived.notify_all();
            std::mem::take(&mut backlog.waiting)
        };
        if state.listeners.get(&self.key).is_some_and(|one| Arc::ptr_eq(one, &self.backlog)) {
            state.listeners.remove(&self.key);
        }
        for accepted in waiting {
            state.close(accepted.outgoing, accepted.incoming, now);
        }
    }
}

impl Drop for SimulatedListener {
    fn drop(&mut self) {
        self.close();
    }
}

struct SimulatedConnection {
    network: SimulatedNetwork,
    process: ProcessId,
    outgoing: PipeId,
    incoming: PipeId,
    peer: Address,
}

impl SimulatedConnection {
    fn ended(&self) -> NetworkError {
        NetworkError::Ended { peer: self.peer.clone() }
    }

    fn timed_out(&self) -> NetworkError {
        NetworkError::TimedOut { peer: self.peer.clone() }
    }

    /// Whether this side may still send: neither side has closed the connection, as far as this
    /// side knows.
    fn is_open(&self, state: &State) -> bool {
        let now = self.network.core.now();
        let incoming = state.pipes.get(&self.incoming);
        state.is_alive(self.process)
            && incoming.is_some_and(|pipe| !pipe.is_closed && !pipe.has_told_end(now))
    }
}

impl Connection for SimulatedConnection {
    fn peer(&self) -> &Address {
        &self.peer
    }

    fn send(&self, parts: &[&[u8]], timeout: Duration) -> NetworkResult<()> {
        let message = parts.concat();
        if message.len() > MAX_MESSAGE_BYTES {
            return Err(NetworkError::TooLong { bytes: message.len() });
        }
        firn_base::task::yield_now();
        let deadline = self.network.deadline(Some(timeout));
        loop {
            let (drained, ticket) = {
                let mut state = self.network.enter();
                let is_open = self.is_open(&state);
                let Some(pipe) = state.pipes.get(&self.outgoing).filter(|_| is_open) else {
                    return Err(self.ended());
                };
                if pipe.has_room(message.len(), WINDOW_BYTES) {
                    state.counters.sent += 1;
                    state.post(self.outgoing, Item::Message(message), self.network.core.now());
                    return Ok(());
                }
                let drained = Arc::clone(&pipe.drained);
                let ticket = drained.listen();
                (drained, ticket)
            };
            if !self.network.wait(&drained, ticket, deadline, None) {
                self.close();
                return Err(self.timed_out());
            }
        }
    }

    fn has_room(&self, bytes: usize) -> bool {
        let state = self.network.enter();
        let is_open = self.is_open(&state);
        let pipe = state.pipes.get(&self.outgoing).filter(|_| is_open);
        pipe.is_some_and(|pipe| pipe.has_room(bytes, WINDOW_BYTES))
    }

    fn receive(&self, message: &mut Vec<u8>, timeout: Option<Duration>) -> NetworkResult<()> {
        message.clear();
        firn_base::task::yield_now();
        let deadline = self.network.deadline(timeout);
        loop {
            let (arrived, ticket, next) = {
                let mut state = self.network.enter();
                let (now, is_alive) = (self.network.core.now(), state.is_alive(self.process));
                let pipe = state.pipes.get_mut(&self.incoming);
                let Some(pipe) = pipe.filter(|pipe| is_alive && !pipe.is_closed) else {
                    return Err(self.ended());
                };
                let arrived = Arc::clone(&pipe.arrived);
                let ticket = arrived.listen();
                match pipe.take(now) {
                    Found::End => return Err(self.ended()),
                    Found::Message(received) => {
                        *message = received;
                        state.counters.received += 1;
                        return Ok(());
                    }
                    Found::Nothing(next) => (arrived, ticket, next),
                }
            };
            if !self.network.wait(&arrived, ticket, deadline, next) {
                return Err(self.timed_out());
            }
        }
    }

    fn close(&self) {
        let mut state = self.network.enter();
        // A dead process has no further effect, whatever its destructors call.
        if state.is_alive(self.process) {
            state.close(self.outgoing, self.incoming, self.network.core.now());
        }
    }
}

impl Drop for SimulatedConnection {
    fn drop(&mut self) {
        self.close();
    }
}

impl State {
    /// Closes a connection from one side: the peer is told after all earlier messages, and messages
    /// of the peer are dropped.
    fn close(&mut self, outgoing: PipeId, incoming: PipeId, now: Duration) {
        let Some(pipe) = self.pipes.get_mut(&incoming).filter(|pipe| !pipe.is_closed) else {
            return;
        };
        pipe.is_closed = true;
        pipe.arrived.notify_all();
        self.forget(incoming);
        self.post(outgoing, Item::End, now);
        if self.pipes.get(&outgoing).is_some_and(|pipe| pipe.is_closed) {
            self.pipes.remove(&incoming);
            self.pipes.remove(&outgoing);
        }
    }
}
