//! The clients of a process with the role `database`, `replica` or `proxy`. It answers them at its
//! port as long as it lives: their sessions run in its own engine while that writes, and at the
//! node that writes otherwise. Statements that only read run in its own replica while that is open;
//! in a process without a role `replica`, they run at other nodes' replicas while another node
//! writes.
//!
//! ```text
//!   clients ──► door ──► front ──┬─► endpoint of the own engine     while it writes
//!                                ├─► sessions at the other nodes    otherwise
//!                                ├─► endpoint of the own replica    what only reads, while it is open
//!                                └─► replicas of other nodes        what only reads, otherwise
//! ```

use std::io;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use firn_base::Environment;
use firn_base::clock::Clock;
use firn_base::network::{NodeId, Role};
use firn_node::endpoint::{ClientDoor, Endpoint, EndpointOptions};
use firn_node::statement_effect::{StatementEffect, effect_of};
use firn_node::statement_route::{StatementRoute, StatementRoutes};
use firn_session_service::{
    Activity, BackendLinks, Backends, Front, FrontOptions, Route, SessionService, StatementClass,
};

use crate::links::Links;
use crate::pause::{self, PauseSeat};
use crate::view::View;

/// How often a switch looks whether statements have ended.
const CUT_LOOK: Duration = Duration::from_millis(5);
/// How many connections a node has at most, so that no two nodes give the same number.
const CONNECTIONS_OF_A_NODE: u32 = 1 << 20;

/// The clients of this process.
pub(crate) struct Clients {
    front: Arc<Front>,
    door: Arc<ClientDoor>,
    /// Runs sessions of other nodes' clients while the engine is open.
    sessions: Arc<SessionService>,
    /// Runs what they only read while the replica is open.
    readings: Arc<SessionService>,
    clock: Arc<dyn Clock>,
}

/// The nodes that may run sessions, with two links to each.
pub(crate) struct SessionNodes {
    pub(crate) own: NodeId,
    /// Whether this process has a replica of its own.
    pub(crate) reads_here: bool,
    pub(crate) view: Arc<View>,
    pub(crate) commands: Links,
    pub(crate) control: Links,
    /// What this process knows of the pause, if it may write.
    pub(crate) pause: Arc<PauseSeat>,
}

impl SessionNodes {
    /// Links to the other nodes with a role.
    fn others(&self, role: Role) -> Vec<BackendLinks> {
        let layout = self.view.layout();
        self.commands.keep(|node| layout.node(node).is_some());
        self.control.keep(|node| layout.node(node).is_some());
        let others = layout.with_role(role).filter(|node| node.number != self.own);
        let links = others.map(|node| BackendLinks {
            commands: self.commands.to(node),
            control: self.control.to(node),
            is_far: layout.are_apart(self.own, node.number),
        });
        links.collect()
    }
}

impl Backends for SessionNodes {
    fn links(&self) -> Vec<BackendLinks> {
        self.others(Role::Database)
    }

    fn readers(&self) -> Vec<BackendLinks> {
        if self.reads_here { Vec::new() } else { self.others(Role::Replica) }
    }

    fn is_paused_here(&self) -> bool {
        self.pause.is_resting()
    }

    fn wake(&self) {
        self.pause.wake();
        let others: Vec<_> =
            self.others(Role::Database).into_iter().map(|links| links.commands).collect();
        pause::wake(&others);
    }
}

impl Clients {
    /// Listens where the options say. Clients wait for `patience` while no node writes.
    pub(crate) fn start(
        environment: &Environment,
        nodes: SessionNodes,
        options: &EndpointOptions,
        patience: Duration,
        [sessions, readings]: [&Arc<SessionService>; 2],
    ) -> io::Result<Clients> {
        let ids = connection_ids(nodes.own);
        let routes = StatementRoutes::default();
        let front_options = FrontOptions {
            patience,
            judge: Arc::new(class_of),
            router: Arc::new(move |text| route_of(&routes, text)),
        };
        let front = Front::new(environment, Arc::new(nodes), front_options);
        let door = ClientDoor::start(environment, options, ids, Arc::clone(&front) as _)?;
        let clock = Arc::clone(&environment.clock);
        let (sessions, readings) = (Arc::clone(sessions), Arc::clone(readings));
        Ok(Clients { front, door: Arc::new(door), sessions, readings, clock })
    }

    pub(crate) fn door(&self) -> &Arc<ClientDoor> {
        &self.door
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.door.address()
    }

    /// Whether statements can be run somewhere now.
    pub(crate) fn has_writer(&self) -> bool {
        self.front.is_attached()
    }

    /// The process's engine runs sessions from now on: those of its own clients and of others'.
    pub(crate) fn begin(&self, endpoint: &Endpoint) {
        self.front.begin_local(Arc::clone(endpoint.service()) as _);
        let connections = Arc::clone(endpoint.connections());
        self.sessions.begin(Arc::clone(endpoint.service()) as _, connections);
    }

    /// Has all sessions go on at another node, as soon as one writes; those in a transaction at its
    /// end, see [`Clients::hand_over`]. Waits until none is left here, for `limit` at most, and
    /// returns whether that is so.
    pub(crate) fn leave(&self, limit: Duration) -> bool {
        // Both at once, so that no front sends the other's sessions here.
        self.sessions.begin_leaving();
        self.front.begin_leaving();
        self.sessions.wait_until_left(limit) && self.front.wait_until_left(limit)
    }

    /// Has sessions that are leaving go on in the middle of transactions, too, which they leave
    /// with the engine's endpoint. Waits until no statement runs here, at most `limit`; whether
    /// none does. Those that run for longer than `grace` are cut where that is possible: they run
    /// at the next node, from their beginning.
    pub(crate) fn hand_over(&self, grace: Duration, limit: Duration) -> bool {
        self.sessions.begin_handing_over();
        self.front.begin_handing_over();
        let are_idle = |limit| {
            // Neither is left out: sessions that run nothing leave in it.
            let are_idle = self.sessions.wait_until_idle(limit);
            self.front.wait_until_idle(limit) && are_idle
        };
        let begin = self.clock.monotonic();
        let is_over = |time| self.clock.monotonic().saturating_sub(begin) >= time;
        loop {
            if are_idle(CUT_LOOK) {
                return true;
            }
            if is_over(limit) {
                return false;
            }
            // Again and again: a statement may be one that cannot be cut yet.
            if is_over(grace) {
                self.sessions.cut();
                self.front.cut();
            }
        }
    }

    /// Sessions that have not left yet go on here, and others may come.
    pub(crate) fn stay(&self) {
        self.sessions.stay();
        self.front.stay();
    }

    /// What sessions do that have their home in this process.
    pub(crate) fn activity(&self) -> Activity {
        self.sessions.activity().and(self.front.activity())
    }

    /// What sessions do that read in this process.
    pub(crate) fn reading_activity(&self) -> Activity {
        self.readings.activity().and(self.front.reading_activity())
    }

    /// Whether statements wait until a paused node is awake.
    pub(crate) fn are_paused(&self) -> bool {
        self.front.is_paused()
    }

    /// Says whether the process's engine would run sessions if it were not paused.
    pub(crate) fn set_paused(&self, is_paused: bool) {
        self.sessions.set_paused(is_paused);
    }

    /// The engine runs no sessions any more. Waits for running statements, for `patience` at most.
    pub(crate) fn end(&self, patience: Duration) -> bool {
        let of_others = self.sessions.end(patience);
        self.front.end_local(patience) && of_others
    }

    /// The process's replica answers what only reads from now on, of its own clients and of
    /// others'.
    pub(crate) fn begin_reading(&self, endpoint: &Endpoint) {
        self.front.begin_reading(Arc::clone(endpoint.service()) as _);
        let connections = Arc::clone(endpoint.connections());
        self.readings.begin(Arc::clone(endpoint.service()) as _, connections);
    }

    /// Has sessions of other nodes' clients read elsewhere, those in a transaction after its end:
    /// the rows that it sees are kept as long as this replica runs. Waits until none is left here,
    /// at most `limit`.
    pub(crate) fn leave_reading(&self, limit: Duration) {
        self.readings.begin_leaving();
        self.readings.wait_until_left(limit);
    }

    /// Has everybody read elsewhere, without waiting, if nobody has read here since `mark`. False:
    /// they go on as before.
    pub(crate) fn rest_reading(&self, mark: u64) -> bool {
        self.front.set_reading(false);
        self.readings.begin_leaving();
        // Looked at now that no statement begins here any more.
        let rests = self.reading_activity() == Activity { mark, is_busy: false };
        if !rests {
            self.readings.stay();
            self.front.set_reading(true);
        }
        rests
    }

    /// The replica answers nothing any more. Waits for running statements, for `patience` at most.
    pub(crate) fn end_reading(&self, patience: Duration) -> bool {
        let of_others = self.readings.end(patience);
        self.front.end_reading(patience) && of_others
    }

    /// Ends what runs sessions of other nodes' clients.
    pub(crate) fn close(&self) {
        self.sessions.close();
        self.readings.close();
    }

    /// Accepts no more statements, and waits for running ones, for `patience` at most.
    pub(crate) fn shut_down(&self, patience: Duration) {
        if !self.door.shutdown(patience) {
            tracing::warn!("some connections did not end in time");
        }
        self.front.close();
    }
}

/// The numbers of a node's connections: sessions of all nodes' clients may run at one node.
fn connection_ids(node: NodeId) -> RangeInclusive<u32> {
    let place = (node.0 % u64::from(u32::MAX / CONNECTIONS_OF_A_NODE)) as u32;
    let first = place * CONNECTIONS_OF_A_NODE;
    first + 1..=first + CONNECTIONS_OF_A_NODE
}

fn class_of(text: &[u8]) -> StatementClass {
    match effect_of(text) {
        StatementEffect::Reads => StatementClass::Reads,
        StatementEffect::Writes => StatementClass::Writes,
        StatementEffect::Commits => StatementClass::Commits,
        StatementEffect::StaysInTransaction => StatementClass::StaysInTransaction,
        StatementEffect::Begins => StatementClass::Begins,
        StatementEffect::Other => StatementClass::Other,
    }
}

fn route_of(routes: &StatementRoutes, text: &[u8]) -> Route {
    match routes.of(text) {
        StatementRoute::Reads => Route::Reads,
        StatementRoute::Follows => Route::Follows,
        StatementRoute::Begins => Route::Begins,
        StatementRoute::Ends => Route::Ends,
        StatementRoute::Writer => Route::Writer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_nodes_give_the_same_number() {
        let ids: Vec<_> = (1..=4094).map(|node| connection_ids(NodeId(node))).collect();
        assert!(ids.windows(2).all(|pair| pair[0].end() < pair[1].start()));
        assert!(ids.iter().all(|ids| *ids.start() > 0));
    }
}
