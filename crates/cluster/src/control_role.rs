//! What connects a process with control: its client, and its control node if it has one, now or
//! later ([`ControlSeat`]).
//!
//! The client tells control that the process lives and which groups it leads, and takes the catalog
//! from it. The layout that the catalog describes is this process's [`View`], and is kept in its
//! [`RecordFile`]: a process that starts again needs no answer of control.
//!
//! A node that starts for the first time makes nothing before control has taken it with this
//! directory. So a node that has lost its directory, and with it its votes and its log, does not
//! come back under its old number as if it had never had any.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use firn_base::clock::Clock;
use firn_base::network::{Address, NodeId, Role};
use firn_base::{Environment, Lsn};
use firn_consensus::{MemberId, Term};
use firn_control::{Action, Catalog, ChunkReport, Fence, GroupId, Heartbeat, Order, OrderNumber};
use firn_control_service::{
    ClientOptions, ControlClient, ControlMembers, ControlOptions, ControlSeat, ControlledNode,
    OpenError, Place, SeatParts, SeatRecord, SeatState, SelfDescription,
};
use firn_link::{LocalNode, Offer};
use parking_lot::Mutex;

use crate::choice::choose;
use crate::engine_pages::EnginePages;
use crate::layout::Layout;
use crate::layout::catalog::{CAPACITY, LOG_GROUP, node_roles, release};
use crate::log_role::{LogOrder, LogRole};
use crate::page_order::page_order;
use crate::page_role::PageRole;
use crate::record::{MemberPlace, RecordFile};
use crate::view::View;

/// The process's place in the control group, before its server listens.
pub(crate) struct ControlPart {
    known: Arc<Known>,
}

/// The process under control.
pub(crate) struct ControlRole {
    part: ControlPart,
    client: Arc<ControlClient>,
}

/// The parts of a process that control hears of and tells what to do.
pub(crate) struct Governed {
    pub(crate) log: Arc<LogRole>,
    pub(crate) pages: Option<Arc<PageRole>>,
    pub(crate) engine_pages: Option<Arc<EnginePages>>,
}

/// Tells control that an order is carried out, and up to which position of the log.
pub(crate) type Done = Arc<dyn Fn(OrderNumber, Lsn) + Send + Sync>;

/// What control is told, and what it has told.
struct Known {
    clock: Arc<dyn Clock>,
    record: Arc<RecordFile>,
    view: Arc<View>,
    /// Of a process that may have a control node.
    seat: Option<ControlSeat>,
    /// The parts of the process, once they are open.
    parts: OnceLock<Governed>,
    fence: Mutex<Fence>,
    /// Why control does not take the node, if it does not.
    refusal: Mutex<Option<String>>,
}

impl ControlPart {
    /// Opens the control node of the process, or founds it, if the process should have one. Blocks
    /// for I/O.
    ///
    /// # Errors
    /// If its files cannot be used.
    pub(crate) fn open(
        environment: &Environment,
        local: &Arc<LocalNode>,
        directory: &Path,
        record: &Arc<RecordFile>,
        view: &Arc<View>,
    ) -> Result<ControlPart, OpenError> {
        let (layout, own) = (view.layout(), record.get());
        let founder = layout.control_members().find(|(_, node)| Some(node.number) == own.number);
        let open = || {
            let mut options = ControlOptions::new(layout.cluster, MemberId(0));
            options.founding = Some(layout.founds());
            options.settings = layout.settings();
            let parts = SeatParts {
                directory: directory.to_owned(),
                record: Arc::new(SeatNotes(Arc::clone(record))),
                founds: founder.map(|(member, _)| member),
                identity: own.number.map(|number| (number, own.directory)),
                members: members(&layout),
                options,
            };
            ControlSeat::open(environment, local, parts)
        };
        let seat = own.roles.has(Role::Control).then(open).transpose()?;
        let mut fence = Fence::default();
        for (chunk, epoch) in own.held {
            fence.has_chunk(chunk, epoch);
        }
        let known = Known {
            clock: Arc::clone(&environment.clock),
            record: Arc::clone(record),
            view: Arc::clone(view),
            seat,
            parts: OnceLock::new(),
            fence: Mutex::new(fence),
            refusal: Mutex::new(None),
        };
        Ok(ControlPart { known: Arc::new(known) })
    }

    /// What the process's server serves for control.
    pub(crate) fn offers(&self) -> Vec<Offer> {
        self.known.seat.as_ref().map(ControlSeat::offers).unwrap_or_default()
    }

    /// Begins to tell control of the process, whose server listens.
    pub(crate) fn start(self, environment: &Environment, local: &Arc<LocalNode>) -> ControlRole {
        let own = self.known.record.get();
        let description = SelfDescription {
            node: own.number,
            directory: own.directory,
            incarnation: own.incarnation,
            address: own.address.to_string(),
            client_address: own.client_address.as_ref().map(Address::to_string),
            roles: node_roles(own.roles).into_iter().collect(),
            zone: own.zone,
            capacity: CAPACITY,
            release: release(),
        };
        let mut addresses: Vec<Address> =
            members(&self.known.view.layout()).into_values().collect();
        if addresses.is_empty() {
            addresses.extend(own.told);
        }
        let node = Arc::clone(&self.known) as Arc<dyn ControlledNode>;
        let (local, options) = (Arc::clone(local), ClientOptions::default());
        let client =
            ControlClient::open(environment, local, &addresses, description, node, options);
        let client = Arc::new(client);
        if let Some(seat) = &self.known.seat {
            let client = Arc::downgrade(&client);
            seat.tell(move |number| {
                if let Some(client) = client.upgrade() {
                    client.acknowledge(number, Lsn(0));
                }
            });
        }
        ControlRole { part: self, client }
    }
}

impl ControlRole {
    /// Whether the process may open its parts: control has taken it, now or in an earlier life, and
    /// has told it of the cluster.
    pub(crate) fn has_taken(&self) -> bool {
        let record = self.part.known.record.get();
        record.is_member && record.layout.is_some()
    }

    /// How parts of the process tell that they have done what was ordered.
    pub(crate) fn acknowledgements(&self) -> Done {
        let client = Arc::downgrade(&self.client);
        Arc::new(move |number: OrderNumber, position| {
            // Control does not wait for an order without an operation.
            if let Some(client) = client.upgrade().filter(|_| number.operation.0 != 0) {
                client.acknowledge(number, position);
            }
        })
    }

    /// The parts of the process are open. Heartbeats tell of them, and they get orders.
    pub(crate) fn set_parts(&self, parts: Governed) {
        let is_first = self.part.known.parts.set(parts).is_ok();
        assert!(is_first, "a process opens its parts once");
    }

    /// Why control does not take the node.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.part.known.refusal.lock().clone()
    }

    /// Why the control node takes no part any more.
    pub(crate) fn failure(&self) -> Option<String> {
        self.part.known.seat.as_ref().and_then(ControlSeat::failure)
    }

    pub(crate) fn close(&self) {
        self.client.close();
        if let Some(seat) = &self.part.known.seat {
            seat.close();
        }
    }
}

/// The record of a process, as far as it is about its control node.
struct SeatNotes(Arc<RecordFile>);

impl SeatRecord for SeatNotes {
    fn get(&self) -> SeatState {
        let record = self.0.get();
        SeatState { place: record.control_member.map(Place::from), left: record.control_left }
    }

    fn set(&self, state: SeatState) -> Result<(), String> {
        let changed = self.0.change(|record| {
            (record.control_member, record.control_left) =
                (state.place.map(MemberPlace::from), state.left);
        });
        changed.map_err(|error| error.to_string())
    }
}

impl From<MemberPlace> for Place {
    fn from(place: MemberPlace) -> Place {
        let MemberPlace { member, is_founder, is_made } = place;
        Place { member, is_founder, is_made }
    }
}

impl From<Place> for MemberPlace {
    fn from(place: Place) -> MemberPlace {
        let Place { member, is_founder, is_made } = place;
        MemberPlace { member, is_founder, is_made }
    }
}

fn members(layout: &Layout) -> ControlMembers {
    layout.control_members().map(|(member, node)| (member, node.address.clone())).collect()
}

/// What an order says about the log group, if it is about that.
fn log_order(action: Action) -> Result<LogOrder, Action> {
    match action {
        Action::JoinGroup { group: LOG_GROUP, member, members } => {
            Ok(LogOrder::Join { member, members })
        }
        Action::SetMembers { group: LOG_GROUP, term, members, .. } => {
            Ok(LogOrder::SetMembers { term, members })
        }
        Action::CatchUp { group: LOG_GROUP, member } => Ok(LogOrder::CatchUp { member }),
        Action::HandOver { group: LOG_GROUP, term, to } => Ok(LogOrder::HandOver { term, to }),
        Action::Switch { group: LOG_GROUP, term, to } => Ok(LogOrder::Switch { term, to }),
        Action::LeaveGroup { group: LOG_GROUP, member } => Ok(LogOrder::Leave { member }),
        other => Err(other),
    }
}

impl Known {
    fn keep(&self, change: impl FnOnce(&mut crate::record::Record)) {
        if let Err(error) = self.record.change(change) {
            tracing::warn!(%error, "what control says is not kept; it is asked for after a restart");
        }
    }
}

impl ControlledNode for Known {
    fn joined(&self, _: NodeId) {
        *self.refusal.lock() = None;
        self.keep(|record| record.is_member = true);
    }

    fn report(&self) -> Heartbeat {
        let mut report = Heartbeat::default();
        let parts = self.parts.get();
        if let Some(member) = parts.and_then(|parts| parts.log.member())
            && let Some(term) = member.store.leads()
        {
            report.leads.insert(LOG_GROUP, (term, member.member));
        }
        match parts.and_then(|parts| parts.pages.as_ref()) {
            Some(pages) => {
                report.chunks.extend(pages.report());
                report.copies.extend(pages.copied());
            }
            // What it has is not open yet.
            None => report.chunks.extend(self.record.held().into_iter().map(|(chunk, epoch)| {
                (chunk, ChunkReport { epoch, position: Lsn(0), bytes: 0, pages: 0 })
            })),
        }
        let control = self.seat.as_ref().and_then(ControlSeat::node);
        if let Some(status) = control.map(|node| node.status()).filter(|status| status.leads) {
            report.leads.insert(GroupId::CONTROL, (status.term, status.member));
        }
        report
    }

    fn catalog(&self, catalog: &Arc<Catalog>) {
        if let Some(seat) = &self.seat {
            seat.follow(catalog);
        }
        self.view.set_choice(choose(catalog, self.record.generation()));
        self.view.note_states(catalog, self.clock.wall_time_ms());
        let Some(layout) = Layout::of_catalog(catalog) else { return };
        if *self.view.layout() != layout || self.record.get().layout.is_none() {
            self.keep(|record| record.layout = Some(layout.clone()));
            self.view.set(layout.clone());
            let Some(parts) = self.parts.get() else { return };
            parts.log.layout_changed();
            if let Some(pages) = &parts.engine_pages {
                pages.follow(&layout);
            }
        }
    }

    fn order(&self, term: Term, order: Order) {
        if !self.fence.lock().admits(term, &order) {
            return;
        }
        if order.action.group() == Some(GroupId::CONTROL) {
            if let Some(seat) = &self.seat {
                seat.order(order.number, order.action);
            }
            return;
        }
        // A process whose parts are not open yet gets the order again.
        let Some(parts) = self.parts.get() else { return };
        let number = order.number;
        match page_order(number, order.action, &self.view.layout()) {
            Ok(order) => {
                if let Some((pages, order)) = parts.pages.as_ref().zip(order) {
                    pages.order(order);
                }
            }
            Err(action) => match log_order(action) {
                Ok(order) => parts.log.order(number, order),
                Err(action) => tracing::warn!(?action, "this release does not carry it out"),
            },
        }
    }

    fn refused(&self, reason: &str) {
        let before = self.refusal.lock().replace(reason.to_owned());
        if before.as_deref() != Some(reason) {
            tracing::warn!(reason, "control does not take this node");
        }
    }
}
