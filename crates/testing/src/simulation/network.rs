//! A network in memory that keeps exactly the contract of [`firn_base::network`]. The seed decides
//! everything that the contract leaves open.
//!
//! ```text
//!   let network = world.network();
//!   network.set_faults(LinkFaults { loss: 0.1, ..LinkFaults::default() });   // of all links
//!   network.cut("a", "b");            // what a sends to b does not arrive; b to a still does
//!   network.separate(&["a"], &["b", "c"]);
//!   network.heal();
//! ```
//!
//! Every process lives on the host with its name, which keeps its address when the process is
//! started again. An address may name a host instead; other names can move from host to host. Two
//! directed *links* join each pair of hosts, and each link has its own faults. The effect of a
//! fault depends on the connection's promise:
//!
//! ```text
//!                  Delivery::InOrder                            Delivery::Loose
//!   delay          later; nobody overtakes                      later; others overtake
//!   loss           sent again after a while, all others wait    lost
//!   duplication    -                                            arrives twice
//!   reset          the connection ends, what is under way is    the same
//!                  lost or not
//!   cut            waits until the link is healed               lost
//! ```
//!
//! A killed process ends its connections, and its peers are told. A machine that loses power tells
//! no peer: its peers wait until a process on the same host answers that it does not know their
//! connections.
//!
//! Rule: the one mutex is held only for the effect of a call, never across its switch point.

mod endpoint;
mod links;
mod pipe;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use firn_base::event::Event;
use firn_base::network::{Address, HostName};
use parking_lot::Mutex;

pub(super) use self::endpoint::HostNetwork;
use self::links::Links;
use self::pipe::{Pipe, PipeId};
use super::scheduler::Core;
use super::state::ProcessId;
use crate::random::Random;

/// A machine of the simulated cluster.
type HostId = usize;

/// The first port for a process that asks for any port.
const FIRST_FREE_PORT: u16 = 40_000;

/// Faults of a link. Probabilities are per message; the default is a fast link without faults.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkFaults {
    /// Time that a message is under way.
    pub delay: RangeInclusive<Duration>,
    /// Probability that it is lost.
    pub loss: f64,
    /// Probability that it arrives twice.
    pub duplication: f64,
    /// Probability that the connection ends instead.
    pub reset: f64,
    /// Bytes per second; `None`: no limit.
    pub bytes_per_second: Option<u64>,
}

impl Default for LinkFaults {
    fn default() -> LinkFaults {
        let (least, most) = (Duration::from_micros(50), Duration::from_micros(150));
        LinkFaults {
            delay: least..=most,
            loss: 0.0,
            duplication: 0.0,
            reset: 0.0,
            bytes_per_second: None,
        }
    }
}

/// Counts of messages and faults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NetworkCounters {
    /// Messages that were handed over to the network.
    pub sent: u64,
    /// Messages that a process has received.
    pub received: u64,
    /// Messages that were lost for good.
    pub lost: u64,
    /// Messages that had to be sent again.
    pub repeated: u64,
    /// Messages that arrive twice.
    pub doubled: u64,
    /// Connections that were ended.
    pub resets: u64,
}

/// The network of a run. All clones refer to the same network.
#[derive(Clone)]
pub struct SimulatedNetwork {
    core: Arc<Core>,
    state: Arc<Mutex<State>>,
    /// Notified of links that are healed, and of processes that start or listen.
    changed: Arc<Event>,
}

struct State {
    /// Forked from the run's choices at the first use, so that runs without a network are
    /// unaffected.
    random: Option<Random>,
    links: Links,
    hosts: Vec<Arc<str>>,
    /// Names that were given to hosts, beside their own.
    names: BTreeMap<HostName, HostId>,
    processes: BTreeMap<ProcessId, ProcessNetwork>,
    listeners: BTreeMap<(HostId, Endpoint), Arc<Mutex<Backlog>>>,
    pipes: BTreeMap<PipeId, Pipe>,
    next_pipe: PipeId,
    next_port: u16,
    counters: NetworkCounters,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Alive,
    /// Killed; its machine's system has told its peers, or tells them when they ask.
    Killed,
    /// Its machine lost power.
    Lost,
}

struct ProcessNetwork {
    host: HostId,
    life: Life,
}

/// A listening address on a host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Endpoint {
    Port(u16),
    Path(std::path::PathBuf),
}

/// Connections that were not accepted yet.
struct Backlog {
    process: ProcessId,
    waiting: std::collections::VecDeque<Accepted>,
    is_closed: bool,
    arrived: Arc<Event>,
}

/// A connection from the listener's side.
struct Accepted {
    outgoing: PipeId,
    incoming: PipeId,
    peer: Address,
}

impl SimulatedNetwork {
    pub(super) fn new(core: &Arc<Core>) -> SimulatedNetwork {
        let state = State {
            random: None,
            links: Links::default(),
            hosts: Vec::new(),
            names: BTreeMap::new(),
            processes: BTreeMap::new(),
            listeners: BTreeMap::new(),
            pipes: BTreeMap::new(),
            next_pipe: 0,
            next_port: FIRST_FREE_PORT,
            counters: NetworkCounters::default(),
        };
        SimulatedNetwork {
            core: Arc::clone(core),
            state: Arc::new(Mutex::new(state)),
            changed: Arc::new(Event::new()),
        }
    }

    /// Gives a process access to the network.
    pub(super) fn join(&self, process: ProcessId, host: &str) -> Arc<HostNetwork> {
        let host = {
            let mut state = self.state.lock();
            let host = state.host(host);
            state.processes.insert(process, ProcessNetwork { host, life: Life::Alive });
            host
        };
        self.changed.notify_all();
        Arc::new(HostNetwork::new(self.clone(), process, host))
    }

    /// The address of a port of the host of this name.
    #[must_use]
    pub fn address(&self, host: &str, port: u16) -> Address {
        let host = self.state.lock().host(host);
        Address::Tcp(SocketAddr::new(ip(host), port))
    }

    /// From now on a name is that of this host. A host has its own name without this.
    ///
    /// # Panics
    /// If the text is not the name of a host.
    pub fn give_name(&self, name: &str, host: &str) {
        let mut state = self.state.lock();
        let host = state.host(host);
        state.names.insert(name.parse().expect("the name of a host"), host);
    }

    /// Sets the faults of all links that [`SimulatedNetwork::set_link`] does not name.
    pub fn set_faults(&self, faults: LinkFaults) {
        self.state.lock().links.default = faults;
    }

    /// Sets the faults of the link between two hosts.
    pub fn set_link(&self, from: &str, to: &str, faults: LinkFaults) {
        let mut state = self.state.lock();
        let link = (state.host(from), state.host(to));
        state.links.own.insert(link, faults);
    }

    /// Cuts a link: no message from the one host reaches the other, including those under way.
    pub fn cut(&self, from: &str, to: &str) {
        let mut state = self.state.lock();
        let link = (state.host(from), state.host(to));
        state.links.cuts.insert(link);
        let now = self.core.now();
        let on_link = state.pipes_of(link);
        on_link.iter().for_each(|pipe| state.hold(*pipe, now));
    }

    /// Cuts all links between the hosts of two groups.
    pub fn separate(&self, here: &[&str], there: &[&str]) {
        for one in here {
            for other in there {
                self.cut(one, other);
                self.cut(other, one);
            }
        }
    }

    /// Restores all links. Messages that wait on connections in order arrive.
    pub fn heal(&self) {
        let links = std::mem::take(&mut self.state.lock().links.cuts);
        self.join_again(links);
    }

    /// Like [`SimulatedNetwork::heal`], for one link.
    pub fn heal_link(&self, from: &str, to: &str) {
        let mut state = self.state.lock();
        let link = (state.host(from), state.host(to));
        let was_cut = state.links.cuts.remove(&link);
        drop(state);
        self.join_again(was_cut.then_some(link).into_iter().collect());
    }

    fn join_again(&self, links: BTreeSet<(HostId, HostId)>) {
        let mut state = self.state.lock();
        let now = self.core.now();
        for link in links {
            let on_link = state.pipes_of(link);
            on_link.iter().for_each(|pipe| state.release(*pipe, now));
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Operations on the network since the run began.
    #[must_use]
    pub fn counters(&self) -> NetworkCounters {
        self.state.lock().counters
    }

    /// Ends a process. Its peers are told if its machine lives on.
    fn end(&self, process: ProcessId, life: Life) {
        let mut state = self.state.lock();
        let now = self.core.now();
        state.begin(&self.core);
        if let Some(network) = state.processes.get_mut(&process) {
            network.life = life;
        }
        state.listeners.retain(|_, backlog| backlog.lock().process != process);
        let own: Vec<(PipeId, bool)> = state
            .pipes
            .iter()
            .filter(|(_, pipe)| pipe.from == process || pipe.to == process)
            .map(|(id, pipe)| (*id, pipe.from == process))
            .collect();
        for (pipe, is_from) in own {
            match is_from {
                true if life == Life::Killed => state.post_reset(pipe, now),
                true => {}
                false => state.forget(pipe),
            }
        }
    }
}

fn ip(host: HostId) -> IpAddr {
    let [high, low] = (host as u16 + 1).to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(10, 0, high, low))
}

impl State {
    /// The host with this name; it is added if there is none.
    fn host(&mut self, name: &str) -> HostId {
        self.hosts.iter().position(|host| &**host == name).unwrap_or_else(|| {
            self.hosts.push(name.into());
            self.hosts.len() - 1
        })
    }

    /// The host that has a name now.
    fn host_of_name(&self, name: &HostName) -> Option<HostId> {
        let own = || self.hosts.iter().position(|host| host.eq_ignore_ascii_case(name.as_str()));
        self.names.get(name).copied().or_else(own)
    }

    fn host_of(&self, process: ProcessId) -> HostId {
        self.processes[&process].host
    }

    fn is_alive(&self, process: ProcessId) -> bool {
        self.processes[&process].life == Life::Alive
    }

    /// Whether a machine answers: a process lives on it, or its system has survived one.
    fn is_up(&self, host: HostId) -> bool {
        let mut last = None;
        for process in self.processes.values().filter(|process| process.host == host) {
            match process.life {
                Life::Alive => return true,
                life => last = Some(life),
            }
        }
        last == Some(Life::Killed)
    }

    /// Forks the random choices.
    fn begin(&mut self, core: &Core) {
        self.random.get_or_insert_with(|| core.fork_random());
    }

    fn random(&self) -> &Random {
        self.random.as_ref().expect("every call begins by making the choices ready")
    }

    fn pipes_of(&self, (from, to): (HostId, HostId)) -> Vec<PipeId> {
        let on_link = |pipe: &Pipe| self.host_of(pipe.from) == from && self.host_of(pipe.to) == to;
        self.pipes.iter().filter(|(_, pipe)| on_link(pipe)).map(|(id, _)| *id).collect()
    }
}

#[cfg(test)]
mod tests;
