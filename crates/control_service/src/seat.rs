//! A process's place in the control group: the control node that it has, if it has one, and what
//! control orders about it.
//!
//! ```text
//!   nothing ── join: an empty member, which the leader fills ──► control node ── leave ──► nothing
//!                                                                 │ leads
//!                                                    set members · hand over
//! ```
//!
//! Which member the process has is in its record ([`SeatRecord`]) before that member does anything,
//! and after its file was made the file must be there: a member that has forgotten its votes does
//! not come back. A number that was given up is never taken again.
//!
//! A founder whose directory was lost looks like one that begins: both have none. The leader's
//! first messages show the loss: they name confirmed entries that are not there, or bring a catalog
//! that knows the node with another directory. Then the founder gives its member up.
//!
//! A member that was replaced while its process was down finds that in the first catalog that the
//! process gets: the catalog has given the member's number out, and has no such member. Until then
//! the others ignore it.
//!
//! A task carries the orders out. What is not done yet is not acknowledged, and control repeats it.
//!
//! Latch rule: the mutexes are leaves.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::Environment;
use firn_base::event::Event;
use firn_base::network::{Address, NodeId};
use firn_base::task::TaskHandle;
use firn_consensus::{MemberId, Members, Term};
use firn_control::{
    Action, Catalog, DirectoryId, GroupId, LogGroup, OperationKind, OrderNumber, OrderedMembers,
};
use firn_link::{LateService, LocalNode, Offer, Placement};
use parking_lot::{Mutex, RwLock};

use crate::file;
use crate::node::{CONTROL, CONTROL_GROUP, ControlNode, OpenError};
use crate::options::{Beginning, ControlMembers, ControlOptions};

/// A founder's files are in this directory below the process's own. Those of a member that joined
/// later have its number behind.
const DIRECTORY: &str = "control-node";
/// A newcomer has caught up when it lacks no more entries than this.
const NEAR_ENTRIES: u64 = 16;
/// How often the task looks at the members that are in force.
const PAUSE: Duration = Duration::from_millis(200);

/// Which member of the control group a process has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub member: MemberId,
    /// Whether the group was founded with it. Others begin with nothing.
    pub is_founder: bool,
    /// Its file was made. Without it the member has forgotten its votes, so it is not made again.
    pub is_made: bool,
}

/// What a process notes of its place in the control group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SeatState {
    pub place: Option<Place>,
    /// The last member that the process had and gave up. Orders about it, and about earlier ones,
    /// come late.
    pub left: Option<MemberId>,
}

/// Where a process notes it.
pub trait SeatRecord: Send + Sync {
    fn get(&self) -> SeatState;

    /// Notes it, on the disk when the call returns. Blocks for I/O.
    ///
    /// # Errors
    /// Why it is as before, for people.
    fn set(&self, state: SeatState) -> Result<(), String>;
}

/// What a seat is made of.
pub struct SeatParts {
    /// The process's directory.
    pub directory: PathBuf,
    pub record: Arc<dyn SeatRecord>,
    /// Which member a process founds that has never had one.
    pub founds: Option<MemberId>,
    /// The process as a node, and its directory, as control knows them of founders.
    pub identity: Option<(NodeId, DirectoryId)>,
    /// The members that the process knows of, with their addresses.
    pub members: ControlMembers,
    /// Of its control nodes, but for `id` and `beginning`.
    pub options: ControlOptions,
}

/// See the module documentation. Dropping it stops it without waiting.
pub struct ControlSeat {
    shared: Arc<Shared>,
    task: Mutex<Option<Box<dyn TaskHandle>>>,
}

/// Tells control that an order is carried out.
type Done = Box<dyn Fn(OrderNumber) + Send + Sync>;

struct Shared {
    environment: Environment,
    local: Arc<LocalNode>,
    parts: SeatParts,
    requests: Arc<LateService>,
    group: Arc<LateService>,
    node: RwLock<Option<Arc<ControlNode>>>,
    known: Mutex<Known>,
    orders: Mutex<VecDeque<(OrderNumber, Action)>>,
    done: RwLock<Option<Done>>,
    /// Control has not been seen to know the directory.
    is_unsure: AtomicBool,
    is_stopping: AtomicBool,
    /// The task waits here.
    changed: Event,
}

/// Where members are, as far as messages have to reach them.
#[derive(Default)]
struct Known {
    catalog: Option<Arc<Catalog>>,
    addresses: BTreeMap<MemberId, Address>,
    /// Members that an order has named, and the catalog may not have yet.
    ordered: BTreeMap<MemberId, NodeId>,
}

impl Place {
    fn founder(member: MemberId) -> Place {
        Place { member, is_founder: true, is_made: false }
    }

    fn newcomer(member: MemberId) -> Place {
        Place { member, is_founder: false, is_made: false }
    }

    /// The directory of its files below the process's own.
    #[must_use]
    pub fn directory(self, below: &Path) -> PathBuf {
        match self.is_founder {
            true => below.join(DIRECTORY),
            false => below.join(format!("{DIRECTORY}-{}", self.member)),
        }
    }

    fn beginning(self) -> Beginning {
        match (self.is_made, self.is_founder) {
            (true, _) => Beginning::Exists,
            (false, true) => Beginning::Founds,
            (false, false) => Beginning::Joins,
        }
    }
}

impl ControlSeat {
    /// Opens the control node that the record names, or founds one, if the process should have one.
    /// It takes part once [`ControlSeat::offers`] are served. Blocks for I/O.
    ///
    /// # Errors
    /// If the control node's files cannot be used.
    pub fn open(
        environment: &Environment,
        local: &Arc<LocalNode>,
        parts: SeatParts,
    ) -> Result<ControlSeat, OpenError> {
        let state = parts.record.get();
        let founds = parts.founds.filter(|member| state.left.is_none_or(|left| left < *member));
        let place = state.place.or(founds.map(Place::founder));
        let known = Known { addresses: parts.members.clone(), ..Known::default() };
        let shared = Arc::new(Shared {
            environment: environment.clone(),
            local: Arc::clone(local),
            parts,
            requests: Arc::default(),
            group: Arc::default(),
            node: RwLock::new(None),
            known: Mutex::new(known),
            orders: Mutex::default(),
            done: RwLock::new(None),
            is_unsure: AtomicBool::new(place.is_some_and(|place| place.is_founder)),
            is_stopping: AtomicBool::new(false),
            changed: Event::new(),
        });
        if let Some(place) = place {
            shared.open_node(place)?;
        }
        let own = Arc::clone(&shared);
        let task = environment.spawner.spawn("control-seat", Box::new(move || own.run()));
        Ok(ControlSeat { shared, task: Mutex::new(Some(task)) })
    }

    /// What the process's server serves, whether there is a control node or not.
    #[must_use]
    pub fn offers(&self) -> Vec<Offer> {
        vec![
            self.shared.requests.offer(CONTROL, Placement::Workers),
            // In the order in which they come.
            self.shared.group.offer(CONTROL_GROUP, Placement::Reader),
        ]
    }

    /// Orders that are carried out are told to `done` from now on.
    pub fn tell(&self, done: impl Fn(OrderNumber) + Send + Sync + 'static) {
        *self.shared.done.write() = Some(Box::new(done));
    }

    /// The control node that the process has.
    #[must_use]
    pub fn node(&self) -> Option<Arc<ControlNode>> {
        self.shared.node()
    }

    /// Why the control node takes no part any more.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.node()?.failure()
    }

    /// Takes an order about the control group. It is carried out later.
    pub fn order(&self, number: OrderNumber, action: Action) {
        self.shared.take_order(number, action);
    }

    /// Takes a newer catalog. Does not block.
    pub fn follow(&self, catalog: &Arc<Catalog>) {
        self.shared.follow(catalog);
    }

    /// Stops the control node and the task. Blocks until they have ended.
    pub fn close(&self) {
        self.shared.stop();
        let task = self.task.lock().take();
        if let Some(task) = task {
            task.join();
        }
        self.shared.close_node();
    }
}

impl Drop for ControlSeat {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl Shared {
    fn node(&self) -> Option<Arc<ControlNode>> {
        self.node.read().clone()
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.changed.notify_all();
    }

    fn run(&self) {
        while !self.is_stopping() {
            self.find_loss();
            self.reach();
            let next = self.orders.lock().pop_front();
            match next {
                Some((number, action)) => {
                    let is_awaited = number.operation.0 != 0;
                    if self.carry_out(action)
                        && let Some(done) = self.done.read().as_ref().filter(|_| is_awaited)
                    {
                        done(number);
                    }
                }
                None => {
                    let is_due = || self.is_stopping() || !self.orders.lock().is_empty();
                    self.changed.wait_until(Some(PAUSE), is_due);
                }
            }
        }
    }

    /// Gives the member up if it has forgotten what it had promised.
    fn find_loss(&self) {
        let Some(node) = self.node() else { return };
        let has_lost = node.has_lost_entries() || self.is_of_other_directory(&node);
        drop(node);
        if let Some(place) = self.parts.record.get().place.filter(|_| has_lost) {
            tracing::error!(
                member = %place.member,
                "this control node has lost its disk, and with it its votes; let a new node join \
                 in its place, and remove this one (firn cluster remove)"
            );
            self.give_up(place);
        }
    }

    /// Whether the cluster is known to know a founder's node with another directory.
    fn is_of_other_directory(&self, node: &ControlNode) -> bool {
        let Some((number, own)) = self.parts.identity else { return false };
        if !self.is_unsure.load(Ordering::Relaxed) {
            return false;
        }
        let directory_of =
            |catalog: &Catalog| catalog.nodes().get(&number).map(|node| node.directory);
        let known = node.with_catalog(directory_of).filter(|one| *one != DirectoryId::UNKNOWN);
        self.is_unsure.store(known != Some(own), Ordering::Relaxed);
        known.is_some_and(|known| known != own)
    }

    fn take_order(&self, number: OrderNumber, action: Action) {
        let order = (number, action);
        let mut orders = self.orders.lock();
        if !orders.contains(&order) {
            orders.push_back(order);
        }
        drop(orders);
        self.changed.notify_all();
    }

    /// Carries an order out. Returns whether control may go on.
    fn carry_out(&self, action: Action) -> bool {
        match action {
            Action::JoinGroup { member, members, .. } => {
                self.join(member, &members);
                // Control hears of it from the leader.
                false
            }
            Action::SetMembers { term, members, .. } => self.set_members(term, &members),
            Action::CatchUp { member, .. } => self.has_caught_up(member),
            Action::HandOver { term, to, .. } => {
                let refused = self.node().and_then(|node| node.hand_over(term, to).err());
                if let Some(error) = refused {
                    tracing::info!(%error, "the control group keeps its leader for now");
                }
                // Control hears from the other member that it leads.
                false
            }
            Action::LeaveGroup { member, .. } => self.leave(member),
            other => {
                tracing::warn!(action = ?other, "this release does not carry it out");
                false
            }
        }
    }

    /// Makes an empty member, and waits for the leader.
    fn join(&self, number: MemberId, members: &OrderedMembers) {
        let state = self.parts.record.get();
        if state.left.is_some_and(|left| left >= number) {
            return;
        }
        if let Some(before) = state.place.filter(|before| before.member != number) {
            // Control gave that member up while this node was down.
            let is_over = before.member < number && !members.contains_key(&before.member);
            if !is_over || !self.give_up(before) {
                return;
            }
        }
        self.note_ordered(members);
        if self.node().is_some() {
            return;
        }
        let place = self.parts.record.get().place.unwrap_or(Place::newcomer(number));
        match self.open_node(place) {
            Ok(()) => tracing::info!(member = %number, "this node is becoming a control node"),
            Err(error) => tracing::error!(%error, "this node does not become a control node yet"),
        }
    }

    fn set_members(&self, term: Term, ordered: &OrderedMembers) -> bool {
        let Some(node) = self.node() else { return false };
        self.note_ordered(ordered);
        let wanted = Members::new(ordered.iter().map(|(id, one)| (*id, one.role)));
        let changed = wanted.map_err(firn_consensus::Refusal::Members);
        match changed.and_then(|wanted| node.set_members(term, &wanted)) {
            Ok(are_set) => are_set,
            Err(error) => {
                tracing::info!(%error, "the members of the control group are not changed yet");
                false
            }
        }
    }

    /// Whether the newcomer has what control has told this process of.
    fn has_caught_up(&self, number: MemberId) -> bool {
        let told = self.known.lock().catalog.as_ref().map_or(0, |catalog| catalog.entries());
        let node = self.node().filter(|node| node.member() == number);
        node.is_some_and(|node| {
            let entries = node.with_catalog(Catalog::entries);
            entries > 0 && entries + NEAR_ENTRIES >= told && node.members().role(number).is_some()
        })
    }

    fn leave(&self, number: MemberId) -> bool {
        let place = self.parts.record.get().place.filter(|place| place.member == number);
        place.is_none_or(|place| self.give_up(place))
    }

    /// Opens the control node, and notes that its files are there.
    fn open_node(&self, place: Place) -> Result<(), OpenError> {
        let state = self.parts.record.get();
        let note = |place| {
            let noted = self.parts.record.set(SeatState { place: Some(place), ..state });
            noted.map_err(OpenError::Record)
        };
        note(place)?;
        let options = ControlOptions {
            id: place.member,
            beginning: place.beginning(),
            ..self.parts.options.clone()
        };
        let directory = place.directory(&self.parts.directory);
        let members = self.known.lock().addresses.clone();
        let node = ControlNode::open(&self.environment, &self.local, &directory, members, options)?;
        note(Place { is_made: true, ..place })?;
        // What the process was told of the others may be older than what the group had entered.
        self.known.lock().catalog.get_or_insert_with(|| Arc::new(node.catalog()));
        let [requests, group] = node.services();
        self.requests.begin(requests);
        self.group.begin(group);
        *self.node.write() = Some(Arc::new(node));
        self.reach();
        Ok(())
    }

    fn close_node(&self) {
        let node = self.node.write().take();
        if let Some(node) = node {
            self.requests.end();
            self.group.end();
            node.close();
        }
    }

    /// Closes a member that has left the group, and deletes its file. False: that failed; try
    /// again.
    fn give_up(&self, place: Place) -> bool {
        // First, so that a restart does not bring the member back.
        let state = SeatState { place: None, left: Some(place.member) };
        if let Err(error) = self.parts.record.set(state) {
            tracing::warn!(error, "the file of a control node that left is not deleted yet");
            return false;
        }
        tracing::info!(member = %place.member, "this node is no control node any more");
        self.close_node();
        let directory = place.directory(&self.parts.directory);
        if let Err(error) = file::forget(&*self.environment.disk, &directory) {
            let directory = directory.display();
            tracing::warn!(%error, %directory, "the file of a control node that left stays");
        }
        true
    }

    fn note_ordered(&self, members: &OrderedMembers) {
        let ordered = members.iter().map(|(id, member)| (*id, member.node));
        self.known.lock().ordered = ordered.collect();
        self.reach();
    }

    fn follow(&self, catalog: &Arc<Catalog>) {
        self.known.lock().catalog = Some(Arc::clone(catalog));
        let place = self.parts.record.get().place;
        let group = catalog.groups().get(&GroupId::CONTROL);
        if let (Some(place), Some(group)) = (place, group) {
            match has_given_up(catalog, group, place.member) {
                // Nobody waits for an answer to this one.
                true => self.take_order(OrderNumber::default(), leave_order(place.member)),
                false if group.members.contains_key(&place.member) => {
                    // Orders go on to name what the catalog lacks.
                    self.known.lock().ordered.clear();
                }
                false => {}
            }
        }
        self.reach();
    }

    /// Sees to it that messages reach the members of the catalog, those of orders, and those that
    /// are in force: until a change is durable everywhere, a member that leaves may be needed.
    fn reach(&self) {
        let Some(node) = self.node() else { return };
        let in_force = node.members();
        let addresses = {
            let mut known = self.known.lock();
            let Known { catalog, addresses, ordered } = &mut *known;
            if let Some(catalog) = catalog {
                let group = catalog.groups().get(&GroupId::CONTROL);
                let members = group.iter().flat_map(|group| &group.members);
                let nodes: BTreeMap<MemberId, NodeId> =
                    members.map(|(id, member)| (*id, member.node)).collect();
                let named: BTreeSet<MemberId> =
                    nodes.keys().chain(ordered.keys()).copied().collect();
                for (id, node) in nodes.iter().chain(&*ordered) {
                    if let Some(address) = address_of(catalog, *node) {
                        addresses.insert(*id, address);
                    }
                }
                addresses.retain(|id, _| named.contains(id) || in_force.role(*id).is_some());
            }
            addresses.clone()
        };
        node.reach(addresses);
    }
}

/// Whether control has taken the member out of the group.
fn has_given_up(catalog: &Catalog, group: &LogGroup, member: MemberId) -> bool {
    let operation = group.operation.and_then(|id| catalog.operations().get(&id));
    let comes = operation.is_some_and(|operation| match &operation.kind {
        OperationKind::ChangeMember(one) => one.add.is_some_and(|new| new.member == member),
        _ => false,
    });
    member.0 < group.next_member && !group.members.contains_key(&member) && !comes
}

fn leave_order(member: MemberId) -> Action {
    Action::LeaveGroup { group: GroupId::CONTROL, member }
}

fn address_of(catalog: &Catalog, node: NodeId) -> Option<Address> {
    catalog.nodes().get(&node)?.address.parse().ok()
}

/// Where the control nodes are.
pub(crate) fn control_addresses(catalog: &Catalog) -> Vec<Address> {
    let group = catalog.groups().get(&GroupId::CONTROL);
    let nodes = group.into_iter().flat_map(|group| group.members.values());
    nodes.filter_map(|member| address_of(catalog, member.node)).collect()
}
