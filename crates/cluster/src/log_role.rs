//! The process's place in the log group: the member that it has, if it has one, and what control
//! orders about it.
//!
//! ```text
//!   nothing ── join: an empty log, which the leader fills ──► member ── leave ──► nothing
//!                                                              │ leads
//!                                                 set members · hand over
//! ```
//!
//! Which member the process has is in its record ([`crate::record`]) before that member does
//! anything, and after its log was made the log must be there: a member that has forgotten its
//! votes does not come back. A number that was given up is never taken again.
//!
//! A newcomer says that it has caught up once it lacks little of what is durable, and once nobody
//! needs log that it never got. Only then does control let it vote in the place of another member,
//! which takes its older log away with it.
//!
//! A task carries the orders out. What is not done yet is not acknowledged, and control repeats it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use firn_api::LogStore;
use firn_base::network::NodeId;
use firn_base::task::sleep;
use firn_base::{Environment, Lsn};
use firn_consensus::{MemberChange, MemberId, Members, MembersError, Refusal, Term};
use firn_control::{OrderNumber, OrderedMembers};
use firn_link::Caller;
use firn_storage::local::OpenError;
use parking_lot::{Mutex, RwLock};

use crate::database::{DatabaseRole, SWITCH_LIMIT, Successor};
use crate::durable_history::DurableHistory;
use crate::framed_file::delete_below;
use crate::layout::{Layout, NodeEntry};
use crate::links::Links;
use crate::log_keeper::LogKeeper;
use crate::log_member::{LogMember, MemberFiles};
use crate::record::{MemberPlace, RecordFile};
use crate::status;
use crate::task::{Stop, Task};
use crate::view::View;

/// A newcomer has caught up when it lacks no more log than this, in bytes.
const NEAR_BYTES: u64 = 4 << 20;
/// How long the leader has to say how far it is.
const TIMEOUT: Duration = Duration::from_millis(500);
/// How often somebody who waits for a switch looks.
const LOOK: Duration = Duration::from_millis(10);
/// How often the task looks for orders that it was not woken for.
const PAUSE: Duration = Duration::from_millis(200);

/// What a member needs in order to be opened.
pub(crate) struct LogRoleParts {
    pub(crate) environment: Environment,
    /// The process's directory.
    pub(crate) directory: PathBuf,
    pub(crate) record: Arc<RecordFile>,
    pub(crate) view: Arc<View>,
    /// To ask other nodes how far they are.
    pub(crate) links: Links,
    /// A link for messages of the group.
    pub(crate) link: Box<dyn Fn(&NodeEntry) -> Caller + Send + Sync>,
    pub(crate) open: OpenFiles,
    /// The member takes part, and others read from it, from now on.
    pub(crate) start: Box<dyn Fn(MemberFiles) -> Result<LogMember, OpenError> + Send + Sync>,
    /// Nobody reaches the member any more, and nothing in this process uses its log.
    pub(crate) end: Box<dyn Fn() + Send + Sync>,
    /// Tells control that an order is carried out.
    pub(crate) done: Arc<dyn Fn(OrderNumber, Lsn) + Send + Sync>,
}

/// Opens the log of a member.
pub(crate) type OpenFiles =
    Box<dyn Fn(&Layout, MemberPlace) -> Result<MemberFiles, OpenError> + Send + Sync>;

/// What a process does because it has a member.
pub(crate) struct Attendants {
    pub(crate) keeper: LogKeeper,
    /// If the process may run an engine.
    pub(crate) database: Option<DatabaseRole>,
}

pub(crate) type Attend = Box<dyn Fn(&LogMember) -> Attendants + Send + Sync>;

/// What control orders about the log group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LogOrder {
    Join {
        member: MemberId,
        members: OrderedMembers,
    },
    SetMembers {
        term: Term,
        members: OrderedMembers,
    },
    CatchUp {
        member: MemberId,
    },
    HandOver {
        term: Term,
        to: MemberId,
    },
    /// The same, acknowledged if the other member does not lead in the end.
    Switch {
        term: Term,
        to: MemberId,
    },
    Leave {
        member: MemberId,
    },
}

/// The member, while there is one, and the task that carries orders out.
pub(crate) struct LogRole {
    shared: Arc<Shared>,
    task: Task,
}

struct Shared {
    parts: LogRoleParts,
    attend: OnceLock<Attend>,
    member: RwLock<Option<Arc<LogMember>>>,
    attendants: Mutex<Option<Attendants>>,
    orders: Mutex<VecDeque<(OrderNumber, LogOrder)>>,
    known: Mutex<Known>,
    /// While the member leads.
    history: Mutex<DurableHistory>,
}

/// Where members are, as far as messages have to reach them.
#[derive(Default)]
struct Known {
    nodes: BTreeMap<MemberId, NodeId>,
    /// Members that an order has named, and the layout may not have yet.
    ordered: BTreeSet<MemberId>,
}

impl LogRole {
    /// Opens the member that the record names, if it names one. Blocks for I/O.
    ///
    /// # Errors
    /// If its log cannot be opened.
    pub(crate) fn open(parts: LogRoleParts) -> Result<LogRole, OpenError> {
        let environment = parts.environment.clone();
        let shared = Arc::new(Shared {
            parts,
            attend: OnceLock::new(),
            member: RwLock::new(None),
            attendants: Mutex::new(None),
            orders: Mutex::default(),
            known: Mutex::default(),
            history: Mutex::default(),
        });
        if let Some(place) = shared.parts.record.log_member() {
            shared.open_member(place)?;
        }
        let own = Arc::clone(&shared);
        let task = Task::start(&environment, "log-role", move |stop| own.run(stop));
        Ok(LogRole { shared, task })
    }

    /// The rest of the process is there: what the member's presence leads to begins.
    pub(crate) fn attend(&self, attend: Attend) {
        let is_first = self.shared.attend.set(attend).is_ok();
        assert!(is_first, "a member is attended by one process");
        self.shared.begin_attending();
    }

    pub(crate) fn member(&self) -> Option<Arc<LogMember>> {
        self.shared.member()
    }

    /// How many milliseconds ago the log was durable up to where, if the member leads.
    pub(crate) fn durable_history(&self) -> Vec<(u64, Lsn)> {
        let now = self.shared.parts.environment.clock.monotonic();
        self.shared.history.lock().told(now)
    }

    /// Looks at the member now and then, without keeping it.
    pub(crate) fn watch(&self) -> impl Fn() -> Option<Arc<LogMember>> + Send + Sync + use<> {
        let shared = Arc::downgrade(&self.shared);
        move || shared.upgrade()?.member()
    }

    /// What the process's engine does, if it may run one.
    pub(crate) fn with_database<T>(&self, look: impl FnOnce(&DatabaseRole) -> T) -> Option<T> {
        self.shared.attendants.lock().as_ref()?.database.as_ref().map(look)
    }

    /// The view has another layout. Does not block.
    pub(crate) fn layout_changed(&self) {
        let layout = self.shared.parts.view.layout();
        let own = self.member().map(|member| member.member);
        if layout.log_members().any(|(member, _)| Some(member) == own) {
            // Orders go on to name what the layout lacks.
            self.shared.known.lock().ordered.clear();
        }
        self.shared.reach();
    }

    /// Takes an order. It is carried out later.
    pub(crate) fn order(&self, number: OrderNumber, order: LogOrder) {
        let order = (number, order);
        let mut orders = self.shared.orders.lock();
        if !orders.contains(&order) {
            orders.push_back(order);
        }
        drop(orders);
        self.task.wake();
    }

    /// If the member leads and another one can, lets that one lead, with a planned switch. Blocks
    /// until it does, or has not in time.
    pub(crate) fn give_office_up(&self) {
        let Some(member) = self.member() else { return };
        let layout = self.shared.parts.view.layout();
        let is_near = |id: MemberId| !self.shared.is_apart(&layout, id);
        let Some(to) = member.store.successor(is_near) else { return };
        let to = Successor { member: to, refused: None };
        self.with_database(|database| database.hand_over(to));
        let clock = &self.shared.parts.environment.clock;
        let end = clock.monotonic() + SWITCH_LIMIT;
        let serves = || self.with_database(DatabaseRole::is_in_office).unwrap_or(false);
        while serves() && clock.monotonic() < end {
            sleep(LOOK);
        }
    }

    /// Closes the member's engine in order, if it runs one.
    pub(crate) fn close_database(&self) {
        self.task.close();
        let database = self.shared.attendants.lock().as_mut().and_then(|all| all.database.take());
        if let Some(database) = database {
            database.close();
        }
    }

    /// Closes the member and what it led to. Blocks.
    pub(crate) fn close(&self) {
        self.task.close();
        self.shared.close_member();
    }
}

impl Shared {
    fn member(&self) -> Option<Arc<LogMember>> {
        self.member.read().clone()
    }

    /// Whether a member is in another zone than this process.
    fn is_apart(&self, layout: &Layout, member: MemberId) -> bool {
        let own = self.parts.record.number();
        let node = layout.node_of_member(member);
        own.zip(node).is_some_and(|(own, node)| layout.are_apart(own, node.number))
    }

    /// Members in the zone of the one that leads are elected first when it dies: where the log is
    /// written, its clients are.
    fn prefer_zone(&self, member: &LogMember) {
        if let Some(leader) = member.store.leader() {
            let is_apart = self.is_apart(&self.parts.view.layout(), leader);
            member.store.set_priority(u8::from(is_apart));
        }
    }

    fn sample(&self, member: &LogMember) {
        let mut history = self.history.lock();
        match member.store.leads() {
            Some(_) => {
                let now = self.parts.environment.clock.monotonic();
                history.sample(now, member.store.durable_lsn());
            }
            None => history.forget(),
        }
    }

    fn run(&self, stop: &Stop) {
        while !stop.is_set() {
            if let Some(member) = self.member() {
                self.prefer_zone(&member);
                self.sample(&member);
            }
            let next = self.orders.lock().pop_front();
            match next {
                Some((number, order)) => {
                    if let Some(position) = self.carry_out(number, &order) {
                        (self.parts.done)(number, position);
                    }
                }
                None => stop.pause_or_wake(PAUSE),
            }
        }
    }

    fn begin_attending(&self) {
        if let (Some(attend), Some(member)) = (self.attend.get(), self.member()) {
            *self.attendants.lock() = Some(attend(&member));
        }
    }

    fn open_member(&self, place: MemberPlace) -> Result<(), OpenError> {
        let files = (self.parts.open)(&self.parts.view.layout(), place)?;
        if !place.is_made {
            let made = MemberPlace { is_made: true, ..place };
            let noted = self.parts.record.change(|record| record.log_member = Some(made));
            noted.map_err(|error| OpenError::Io {
                place: self.parts.directory.display().to_string(),
                reason: error.to_string(),
            })?;
        }
        let member = (self.parts.start)(files)?;
        *self.member.write() = Some(Arc::new(member));
        self.reach();
        Ok(())
    }

    /// Sees to it that messages reach the members of the layout, those of orders, and those that
    /// are in force: until a change is durable everywhere, a member that leaves may be needed.
    fn reach(&self) {
        let Some(member) = self.member() else { return };
        let layout = self.parts.view.layout();
        let in_layout: BTreeMap<_, _> =
            layout.log_members().map(|(member, node)| (member, node.number)).collect();
        let in_force = member.store.members();
        let nodes = {
            let mut known = self.known.lock();
            let Known { nodes, ordered } = &mut *known;
            nodes.extend(&in_layout);
            nodes.retain(|id, _| {
                in_layout.contains_key(id) || ordered.contains(id) || in_force.role(*id).is_some()
            });
            nodes.clone()
        };
        member.reach(&layout, &nodes, &*self.parts.link);
    }

    fn note_ordered(&self, members: &OrderedMembers) {
        {
            let mut known = self.known.lock();
            known.ordered = members.keys().copied().collect();
            known.nodes.extend(members.iter().map(|(id, member)| (*id, member.node)));
        }
        self.reach();
    }

    fn carry_out(&self, number: OrderNumber, order: &LogOrder) -> Option<Lsn> {
        match order {
            LogOrder::Join { member, members } => {
                self.join(*member, members);
                None
            }
            LogOrder::SetMembers { term, members } => self.set_members(*term, members),
            LogOrder::CatchUp { member } => self.catch_up(*member),
            LogOrder::HandOver { term, to } => {
                self.hand_over(*term, Successor { member: *to, refused: None });
                None
            }
            LogOrder::Switch { term, to } => {
                let done = Arc::clone(&self.parts.done);
                let refused = move || done(number, Lsn(0));
                let refused: Option<Box<dyn FnOnce() + Send>> = Some(Box::new(refused));
                self.hand_over(*term, Successor { member: *to, refused });
                None
            }
            LogOrder::Leave { member } => self.leave(*member),
        }
    }

    /// Makes an empty log, and waits for the leader. Control hears of it from the leader.
    fn join(&self, number: MemberId, members: &OrderedMembers) {
        let record = self.parts.record.get();
        if record.left.is_some_and(|left| left >= number) {
            return;
        }
        if let Some(before) = record.log_member.filter(|before| before.member != number) {
            // Control gave that member up while this node was down.
            let is_over = before.member < number && !members.contains_key(&before.member);
            if !is_over || !self.give_up(before) {
                return;
            }
        }
        if self.member().is_none() {
            let new = MemberPlace { member: number, is_founder: false, is_made: false };
            let place = record.log_member.filter(|place| place.member == number).unwrap_or(new);
            let noted = self.parts.record.change(|record| record.log_member = Some(place));
            let opened = noted.map_err(|error| error.to_string());
            let opened =
                opened.and_then(|()| self.open_member(place).map_err(|error| error.to_string()));
            if let Err(reason) = opened {
                tracing::error!(reason, "this node does not become a member of the log group yet");
                return;
            }
            tracing::info!(member = %number, "this node is becoming a member of the log group");
            self.begin_attending();
        }
        self.note_ordered(members);
    }

    fn set_members(&self, term: Term, ordered: &OrderedMembers) -> Option<Lsn> {
        let member = self.member()?;
        let store = &member.store;
        if store.leads() != Some(term) {
            return None;
        }
        self.note_ordered(ordered);
        let changed = changes(&store.members(), ordered).map_err(Refusal::Members);
        match changed.and_then(|changes| store.change_members(term, &changes)) {
            Err(Refusal::Members(MembersError::Nothing)) => Some(store.durable_lsn()),
            Err(error) => {
                tracing::info!(%error, "the members of the log group are not changed yet");
                None
            }
            Ok(()) => None,
        }
    }

    /// Compares the newcomer with what the leader says of itself, and with what readers need.
    fn catch_up(&self, number: MemberId) -> Option<Lsn> {
        let member = self.member().filter(|member| member.member == number)?;
        member.store.members().role(number)?;
        let needed_from = self.attendants.lock().as_ref()?.keeper.needed_from()?;
        if needed_from < member.store.truncated_lsn() {
            tracing::info!(%needed_from, "a page node needs log that this member never got");
            return None;
        }
        let layout = self.parts.view.layout();
        let leader = member.store.leader()?;
        let node = layout.node_of_member(leader)?;
        let theirs = status::ask(&self.parts.links.to(node), TIMEOUT).ok()?.log?.durable;
        let ours = member.store.durable_lsn();
        (ours.0.saturating_add(NEAR_BYTES) >= theirs.0 && ours > Lsn(0)).then_some(ours)
    }

    /// Control hears from the other member that it leads.
    fn hand_over(&self, term: Term, to: Successor) {
        let Some(member) = self.member().filter(|member| member.store.leads() == Some(term)) else {
            return;
        };
        let attendants = self.attendants.lock();
        match attendants.as_ref().and_then(|all| all.database.as_ref()) {
            Some(database) => database.hand_over(to),
            None => {
                if let Err(error) = member.store.hand_over(to.member) {
                    tracing::info!(%error, "the log group keeps its leader for now");
                    to.refuse();
                }
            }
        }
    }

    fn leave(&self, number: MemberId) -> Option<Lsn> {
        let place = self.parts.record.log_member();
        let is_gone = match place.filter(|place| place.member == number) {
            Some(place) => self.give_up(place),
            None => true,
        };
        is_gone.then_some(Lsn(0))
    }

    /// Closes a member that has left the group, and deletes its log. False: that failed; try again.
    fn give_up(&self, place: MemberPlace) -> bool {
        // First, so that a restart does not bring the member back.
        let noted = self.parts.record.change(|record| {
            (record.log_member, record.left) = (None, Some(place.member));
        });
        if let Err(error) = noted {
            tracing::warn!(%error, "the log of a member that left is not deleted yet");
            return false;
        }
        tracing::info!(member = %place.member, "this node's member of the log group has left");
        self.close_member();
        let disk = &*self.parts.environment.disk;
        for directory in place.directories(&self.parts.directory) {
            delete_below(disk, &directory);
        }
        true
    }

    fn close_member(&self) {
        let attendants = self.attendants.lock().take();
        if let Some(Attendants { keeper, database }) = attendants {
            if let Some(database) = database {
                database.close();
            }
            keeper.close();
        }
        let member = self.member.write().take();
        if let Some(member) = member {
            (self.parts.end)();
            member.close();
        }
    }
}

/// What makes the members those that were ordered.
fn changes(now: &Members, ordered: &OrderedMembers) -> Result<Vec<MemberChange>, MembersError> {
    let ordered = Members::new(ordered.iter().map(|(id, one)| (*id, one.role)))?;
    Ok(now.changes_to(&ordered))
}

#[cfg(test)]
mod tests {
    use firn_consensus::Role;
    use firn_control::GroupMember;

    use super::*;

    #[test]
    fn changes_lead_from_the_members_in_force_to_those_that_are_ordered() {
        let voters = [1, 2, 3].map(|id| (MemberId(id), Role::Voter));
        let learner = (MemberId(4), Role::Learner);
        let now = Members::new(voters.into_iter().chain([learner])).unwrap();
        let member = |id: u64, role| (MemberId(id), GroupMember { node: NodeId(id), role });
        let ordered: OrderedMembers = [1, 2, 4].map(|id| member(id, Role::Voter)).into();
        let set = MemberChange::Set(MemberId(4), Role::Voter);
        let changes = |now: &Members| changes(now, &ordered).unwrap();
        assert_eq!(changes(&now), [set, MemberChange::Remove(MemberId(3))]);
        let after = now.changed(&changes(&now)).unwrap();
        assert_eq!(changes(&after), []);
    }
}
