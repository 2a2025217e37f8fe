//! The members and the messages between them and the writers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_api::{LogEpoch, LogError, Watermarks};
use firn_base::event::Event;
use firn_base::{Lsn, task};
use firn_format::redo::Group;
use firn_storage::leases::Leases;
use parking_lot::{Mutex, MutexGuard};

use super::member::{Member, Rounds, end_of};
use super::options::{Fault, QuorumOptions};
use crate::random::Random;

/// Identifies a writer, whatever its epoch.
pub(super) type WriterId = u64;

/// Everything that outlives the processes.
pub(super) struct Cluster {
    state: Mutex<State>,
    durable: AtomicU64,
    /// Notified when more log is durable, and when a writer has ended.
    pub(super) advanced: Event,
    pub(super) leases: Leases,
    pub(super) options: QuorumOptions,
}

/// The members, the messages under way, and what the members can reach.
pub(super) struct State {
    pub(super) options: QuorumOptions,
    pub(super) random: Random,
    pub(super) members: Vec<Member>,
    /// Processes that reach no member.
    pub(super) isolated: BTreeSet<String>,
    /// The only process whose log is taken; `None`: any.
    pub(super) leader: Option<String>,
    pub(super) is_held_back: bool,
    pub(super) writers: BTreeMap<WriterId, Flight>,
    pub(super) next_writer: WriterId,
    messages: BTreeMap<(Duration, u64), Message>,
    next_message: u64,
    /// The log before this position is gone.
    pub(super) floor: Lsn,
    /// The highest watermarks of the truncated log.
    pub(super) watermarks: Watermarks,
}

/// A writer, as the messages know it.
pub(super) struct Flight {
    pub(super) node: Arc<str>,
    pub(super) epoch: LogEpoch,
    /// The log with which it has opened.
    pub(super) base: Arc<Rounds>,
    /// Rounds that are not durable, in order.
    pub(super) rounds: VecDeque<InFlight>,
    pub(super) durable: Lsn,
    pub(super) failure: Option<LogError>,
    /// The writer was dropped or its process has lost power. It sends nothing again.
    pub(super) is_dead: bool,
}

/// A round on its way to a majority.
pub(super) struct InFlight {
    pub(super) start: Lsn,
    pub(super) bytes: Arc<[u8]>,
    acknowledged: BTreeSet<usize>,
}

/// A message about a round of a writer.
#[derive(Debug, Clone)]
struct Message {
    writer: WriterId,
    member: usize,
    start: Lsn,
    bytes: Arc<[u8]>,
    step: Step,
}

/// What happens when a message is due.
#[derive(Debug, Clone)]
enum Step {
    /// The member has received the round.
    Arrived,
    /// The member has synced the round.
    Synced,
    /// The writer hears that the member has it.
    Acknowledged,
    /// The writer hears that no member takes its log any more.
    Refused(LogError),
}

impl Cluster {
    pub(super) fn new(options: QuorumOptions) -> Cluster {
        let members = (0..options.members).map(|_| Member::default()).collect();
        let state = State {
            random: Random::new(options.seed),
            options: options.clone(),
            members,
            isolated: BTreeSet::new(),
            leader: None,
            is_held_back: false,
            writers: BTreeMap::new(),
            next_writer: 0,
            messages: BTreeMap::new(),
            next_message: 0,
            floor: Lsn::FIRST,
            watermarks: Watermarks::default(),
        };
        Cluster {
            state: Mutex::new(state),
            durable: AtomicU64::new(Lsn::FIRST.0),
            advanced: Event::new(),
            leases: Leases::new(Lsn::FIRST),
            options,
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The end of the log that a writer has known to be durable.
    pub(super) fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::SeqCst))
    }

    /// A writer knows that the log up to here is durable.
    pub(super) fn advance(&self, durable: Lsn) {
        if self.durable.fetch_max(durable.0, Ordering::SeqCst) < durable.0 {
            self.advanced.notify_all();
        }
    }

    /// See [`super::QuorumMembers::let_go`].
    pub(super) fn truncate(&self, wanted: Lsn) {
        let durable = self.durable();
        let held = self.leases.raise_floor(wanted, durable);
        let is_careless = self.options.fault == Some(Fault::LeaseIgnored);
        let mut state = self.lock();
        state.truncate(if is_careless { wanted.min(durable) } else { held });
    }
}

impl State {
    pub(super) fn majority(&self) -> usize {
        self.members.len() / 2 + 1
    }

    pub(super) fn is_faulty(&self, fault: Fault) -> bool {
        self.options.fault == Some(fault)
    }

    /// How many members have to sync a round.
    fn needed(&self) -> usize {
        if self.is_faulty(Fault::OneMemberIsEnough) { 1 } else { self.majority() }
    }

    pub(super) fn delay(&self) -> Duration {
        let most = self.options.max_delay.as_nanos() as u64;
        Duration::from_nanos(self.random.below(most + 1))
    }

    /// The members' numbers in a random order.
    pub(super) fn shuffled(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.members.len()).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, self.random.index(last + 1));
        }
        order
    }

    /// Whether messages between the process and the member arrive.
    pub(super) fn reaches(&self, node: &str, member: usize) -> bool {
        !self.members[member].is_lost && !self.isolated.contains(node)
    }

    /// The error if fewer than a majority can answer the process.
    pub(super) fn check_majority(&self, node: &str) -> Result<(), LogError> {
        let all = self.members.len();
        let reached = (0..all).filter(|member| self.reaches(node, *member)).count();
        if reached >= self.majority() {
            return Ok(());
        }
        Err(LogError::Unavailable { reason: format!("{reached} of {all} copies answer") })
    }

    /// The error if another process leads.
    pub(super) fn check_leader(&self, node: &str) -> Result<(), LogError> {
        match &self.leader {
            Some(leader) if leader != node => {
                Err(LogError::NotLeader { hint: Some(leader.clone()) })
            }
            _ => Ok(()),
        }
    }

    // ---- what goes wrong ----

    pub(super) fn lose(&mut self, majority: bool) {
        let minority = (self.members.len() - 1) / 2;
        let lost = if majority { self.majority() } else { minority };
        for (count, member) in self.shuffled().into_iter().enumerate() {
            self.members[member].is_lost = count < lost;
        }
    }

    pub(super) fn heal(&mut self) {
        self.members.iter_mut().for_each(|member| member.is_lost = false);
        self.isolated.clear();
        self.leader = None;
        self.is_held_back = false;
    }

    /// Some of the messages under way are lost, and nobody sends them again.
    pub(super) fn lose_messages(&mut self) {
        let random = self.random.fork();
        self.messages.retain(|_, _| random.chance(0.5));
        self.writers.values_mut().for_each(|flight| flight.is_dead = true);
    }

    // ---- messages ----

    fn send(&mut self, now: Duration, message: Message) {
        let due = now + self.delay();
        self.messages.insert((due, self.next_message), message);
        self.next_message += 1;
    }

    /// Sends a round of a writer to every member.
    pub(super) fn send_round(&mut self, now: Duration, writer: WriterId, round: (Lsn, Arc<[u8]>)) {
        let (start, bytes) = round;
        if let Some(flight) = self.writers.get_mut(&writer) {
            let acknowledged = BTreeSet::new();
            let bytes = Arc::clone(&bytes);
            flight.rounds.push_back(InFlight { start, bytes, acknowledged });
        }
        for member in 0..self.members.len() {
            let (bytes, step) = (Arc::clone(&bytes), Step::Arrived);
            self.send(now, Message { writer, member, start, bytes, step });
        }
    }

    /// When the next message is due.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.messages.first_key_value().map(|((due, _), _)| *due)
    }

    /// Handles all messages that are due.
    pub(super) fn deliver(&mut self) {
        let now = task::monotonic();
        while let Some(entry) = self.messages.first_entry() {
            if entry.key().0 > now {
                return;
            }
            let message = entry.remove();
            self.handle(now, message);
        }
    }

    fn handle(&mut self, now: Duration, message: Message) {
        let Some(flight) = self.writers.get_mut(&message.writer) else { return };
        if let Step::Refused(error) = &message.step {
            flight.failure.get_or_insert_with(|| error.clone());
            return;
        }
        let node = Arc::clone(&flight.node);
        let is_silent = !self.reaches(&node, message.member)
            || (self.is_held_back && matches!(message.step, Step::Arrived));
        match message.step {
            _ if is_silent => self.send_again(now, message),
            Step::Arrived => self.arrive(now, message),
            Step::Synced => self.sync(now, message),
            _ => self.acknowledge(&message),
        }
    }

    /// The message was lost. Its writer, if it still lives, sends the round again.
    fn send_again(&mut self, now: Duration, message: Message) {
        if self.writers.get(&message.writer).is_none_or(|flight| flight.is_dead) {
            return;
        }
        let step = match self.is_faulty(Fault::SilenceEndsWriter) {
            true => Step::Refused(LogError::Failed {
                place: format!("copy {}", message.member),
                reason: "it does not answer".to_owned(),
            }),
            false => Step::Arrived,
        };
        self.send(now + self.options.max_delay, Message { step, ..message });
    }

    fn arrive(&mut self, now: Duration, message: Message) {
        if let Err(error) = self.check_epoch(&message) {
            return self.send(now, Message { step: Step::Refused(error), ..message });
        }
        if self.is_faulty(Fault::AcknowledgedBeforeSync) {
            self.send(now, Message { step: Step::Acknowledged, ..message.clone() });
        }
        self.send(now, Message { step: Step::Synced, ..message });
    }

    /// The error if the member takes no log of the message's writer.
    fn check_epoch(&self, message: &Message) -> Result<(), LogError> {
        let Some(flight) = self.writers.get(&message.writer) else { return Ok(()) };
        let promised = self.members[message.member].promised;
        if promised > flight.epoch && !self.is_faulty(Fault::OldEpochAccepted) {
            return Err(LogError::Fenced { by: promised });
        }
        self.check_leader(&flight.node)
    }

    /// The member has synced the round, unless it has promised not to meanwhile.
    fn sync(&mut self, now: Duration, message: Message) {
        let Some(flight) = self.writers.get(&message.writer) else { return };
        let (epoch, base, floor) = (flight.epoch, Arc::clone(&flight.base), self.floor);
        if let Err(error) = self.check_epoch(&message) {
            return self.send(now, Message { step: Step::Refused(error), ..message });
        }
        let member = &mut self.members[message.member];
        member.accept(epoch, &base, floor);
        member.sync(message.start, &message.bytes, floor);
        self.send(now, Message { step: Step::Acknowledged, ..message });
    }

    fn acknowledge(&mut self, message: &Message) {
        let (needed, ignores_gaps) = (self.needed(), self.is_faulty(Fault::GapIgnored));
        let Some(flight) = self.writers.get_mut(&message.writer) else { return };
        let round = flight.rounds.iter_mut().find(|round| round.start == message.start);
        let Some(round) = round else { return };
        round.acknowledged.insert(message.member);
        if ignores_gaps && round.acknowledged.len() >= needed {
            flight.durable = flight.durable.max(end_of(round.start, &round.bytes));
        }
        while let Some(first) = flight.rounds.front()
            && first.acknowledged.len() >= needed
        {
            flight.durable = flight.durable.max(end_of(first.start, &first.bytes));
            flight.rounds.pop_front();
        }
    }

    // ---- truncation ----

    /// Drops the rounds that end at or before `wanted`, which is durable.
    fn truncate(&mut self, wanted: Lsn) {
        while let Some(bytes) = self.newest_round(self.floor) {
            let end = end_of(self.floor, &bytes);
            if end > wanted {
                break;
            }
            raise(&mut self.watermarks, &bytes);
            self.floor = end;
        }
        let floor = self.floor;
        self.members.iter_mut().for_each(|member| member.truncate(floor));
    }

    /// The durable round that begins at `start`, of the member with the newest log.
    fn newest_round(&self, start: Lsn) -> Option<Arc<[u8]>> {
        let with = self.members.iter().filter(|member| member.rounds.contains_key(&start));
        with.max_by_key(|member| member.accepted).map(|member| Arc::clone(&member.rounds[&start]))
    }
}

/// Raises to the watermarks in `bytes`.
pub(super) fn raise(watermarks: &mut Watermarks, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let group = Group::parse(bytes).expect("whole groups were taken");
        watermarks.raise_by_group(&group).expect("the groups are good");
        bytes = &bytes[group.length_bytes() as usize..];
    }
}
