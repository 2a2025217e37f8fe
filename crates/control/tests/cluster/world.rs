//! A cluster: the control group's log, its controllers, the other nodes, and what is under way
//! between them.

use std::collections::{BTreeMap, BTreeSet};

use firn_base::random::{RandomSource, SplitMix};
use firn_base::{PageId, PageNo, SpaceId};
use firn_consensus::{MemberId, Role, Term};
use firn_control::{
    Action, Applied, Catalog, ChunkId, ChunkRange, ChunkReport, ClusterId, Command, ControlMessage,
    Controller, DirectoryId, EVERY_SPACE, GroupId, GroupMember, Heartbeat, Join, NodeId,
    NodeMessage, NodeRole, Order, Proposal, Protocols, Refusal, Release, Settings, Started,
    ToControl, ToNode,
};

use crate::checker::{Checker, Violation};
use crate::node::{Done, Node, POSITION, unreachable};

pub(crate) type Outcome = Result<(), Violation>;

const CLUSTER: ClusterId = ClusterId(0xf1);
const PAGE_BYTES: u64 = 16 << 10;
/// How many bytes a node fetches in a tick.
const FETCHED: u64 = 40 * PAGE_BYTES;

/// A bug that is put in on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    None,
    /// Nodes carry out orders of older epochs and terms.
    NoFence,
    /// Nodes acknowledge a copy when they begin it, and serve what they have of it.
    CopyAcknowledgedAtOnce,
    /// A learner says that it has caught up when it has not.
    CaughtUpAtOnce,
    /// A control node loses an entry of the log.
    EntrySkipped,
    /// A node says that it has heard of entries that it has not.
    HeardTooMuch,
    /// A node drops the upper part of a chunk as soon as it has it as another chunk.
    NarrowedEarly,
    /// A node believes that it has a part of a chunk as soon as it is told to copy it.
    PartAcknowledgedAtOnce,
}

/// What happens to messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Network {
    /// One message in `faulty` is lost, and one doubled; 0: none.
    pub(crate) faulty: u64,
    /// The most ticks that a faulty one is late.
    pub(crate) late: u64,
}

/// A log group as its members have it.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) members: BTreeMap<MemberId, GroupMember>,
    pub(crate) term: u64,
    pub(crate) leader: Option<MemberId>,
    /// When each member had the whole log.
    pub(crate) caught_up: BTreeSet<MemberId>,
    learning: BTreeMap<MemberId, u64>,
}

enum Parcel {
    ToControl(Vec<u8>),
    ToNode(NodeId, Vec<u8>),
    Append(Term, Vec<u8>),
}

pub(crate) struct Control {
    pub(crate) controller: Controller,
    pub(crate) applied: usize,
}

pub(crate) struct World {
    pub(crate) random: SplitMix,
    pub(crate) now: u64,
    pub(crate) controls: Vec<Control>,
    pub(crate) log: Vec<Proposal>,
    pub(crate) leader: usize,
    pub(crate) term: u64,
    /// The leader before, which does not know yet that it is replaced.
    deposed: Option<usize>,
    pub(crate) nodes: BTreeMap<NodeId, Node>,
    pub(crate) groups: BTreeMap<GroupId, Group>,
    /// How many pages of a space are in use.
    pub(crate) pages: BTreeMap<SpaceId, u32>,
    under_way: BTreeMap<(u64, u64), Parcel>,
    sent: u64,
    pub(crate) network: Network,
    pub(crate) bug: Bug,
    pub(crate) checker: Checker,
    /// What happened, for scenarios.
    pub(crate) events: Vec<String>,
    pub(crate) fetched_bytes: u64,
    /// The upper chunks of those that were cut in two.
    pub(crate) divided: BTreeSet<ChunkId>,
    next_number: u8,
}

pub(crate) fn release(minor: u16) -> Release {
    let protocols = Protocols { oldest: minor, newest: minor + 1 };
    Release { major: 0, minor, patch: 0, protocols }
}

pub(crate) fn settings() -> Settings {
    Settings { chunk_pages: 1_000, ..Settings::default() }
}

/// With small extents, so that chunks of all spaces can be cut often.
pub(crate) fn spread_settings() -> Settings {
    Settings { chunk_pages: 50, ..Settings::default() }
}

impl World {
    pub(crate) fn new(seed: u64, settings: Settings, bug: Bug) -> World {
        let catalog = Catalog::new(CLUSTER, settings).expect("the settings are possible");
        let control = || Control { controller: Controller::new(catalog.clone()), applied: 0 };
        let mut world = World {
            random: SplitMix::new(seed),
            now: 0,
            controls: (0..3).map(|_| control()).collect(),
            log: Vec::new(),
            leader: 0,
            term: 1,
            deposed: None,
            nodes: BTreeMap::new(),
            groups: BTreeMap::new(),
            pages: BTreeMap::new(),
            under_way: BTreeMap::new(),
            sent: 0,
            network: Network { faulty: 0, late: 0 },
            bug,
            checker: Checker::default(),
            events: Vec::new(),
            fetched_bytes: 0,
            divided: BTreeSet::new(),
            next_number: 1,
        };
        world.controls[0].controller.lead(Term(1));
        world
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        self.controls[self.leader].controller.catalog()
    }

    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    /// A new node asks to join.
    pub(crate) fn join(&mut self, zone: &str, roles: &[NodeRole], capacity: u64) -> NodeId {
        let number = self.next_number;
        self.next_number += 1;
        let join = Join {
            cluster: Some(CLUSTER),
            name: format!("n{number}"),
            directory: DirectoryId(u128::from(number)),
            address: format!("host{number}:4000"),
            client_address: None,
            roles: roles.iter().copied().collect(),
            zone: zone.to_owned(),
            capacity,
            release: release(1),
            number: None,
        };
        let Ok(Applied::Node(id)) = self.request(Proposal::Join(join)) else {
            panic!("a node of that name cannot join");
        };
        self.nodes.insert(id, Node::new(id, number, release(1)));
        id
    }

    /// Somebody asks the leader, which appends it at once.
    pub(crate) fn request(&mut self, proposal: Proposal) -> Result<Applied, Refusal> {
        self.log.push(proposal);
        let (mut last, leader) = (Ok(Applied::Done), self.leader);
        while self.controls[leader].applied < self.log.len() {
            last = self.apply_one(leader);
        }
        last
    }

    /// One tick of the whole cluster.
    pub(crate) fn tick(&mut self) -> Outcome {
        self.now += 1;
        self.deliver()?;
        let leader = self.leader;
        while self.controls[leader].applied < self.log.len() {
            let _ = self.apply_one(leader);
            self.check()?;
        }
        self.followers_apply();
        for index in 0..self.controls.len() {
            self.controls[index].controller.tick();
            self.carry_out(index);
        }
        for id in self.nodes.keys().copied().collect::<Vec<_>>() {
            self.node_tick(id)?;
        }
        self.elect();
        self.check()
    }

    fn check(&mut self) -> Outcome {
        let catalog = self.controls[self.leader].controller.catalog();
        self.checker.check(catalog, &self.nodes)
    }

    /// Applies the next entry at one control node.
    fn apply_one(&mut self, index: usize) -> Result<Applied, Refusal> {
        let control = &mut self.controls[index];
        let entry = self.log[control.applied].clone();
        let before = control.controller.catalog().clone();
        let skipped = self.bug == Bug::EntrySkipped && control.applied % 40 == 39 && index == 1;
        control.applied += 1;
        let outcome = if skipped { Ok(Applied::Done) } else { control.controller.apply(&entry) };
        if index == self.leader {
            let after = control.controller.catalog();
            self.divided.extend(cut(&before, after));
            self.events.extend(differences(&before, after));
        }
        let (applied, bytes) = (control.applied, control.controller.catalog().snapshot());
        self.checker.note_catalog(applied, &bytes);
        self.carry_out(index);
        outcome
    }

    fn followers_apply(&mut self) {
        for index in 0..self.controls.len() {
            let behind = self.log.len() - self.controls[index].applied;
            if index != self.leader && self.deposed != Some(index) && behind > 0 {
                for _ in 0..=self.below(behind as u64) {
                    let _ = self.apply_one(index);
                }
            }
        }
    }

    /// Another control node leads. The one before learns of it later.
    pub(crate) fn change_leader(&mut self, to: usize) {
        if to == self.leader {
            return;
        }
        self.end_deposed();
        if self.deposed.is_none() {
            self.deposed = Some(self.leader);
        }
        (self.leader, self.term) = (to, self.term + 1);
        while self.controls[to].applied < self.log.len() {
            let _ = self.apply_one(to);
        }
        self.controls[to].controller.lead(Term(self.term));
        self.carry_out(to);
    }

    pub(crate) fn end_deposed(&mut self) {
        if let Some(index) = self.deposed.take() {
            self.controls[index].controller.follow();
        }
    }

    /// A control node starts again from a snapshot.
    pub(crate) fn restart_control(&mut self, index: usize) {
        if index == self.leader || self.deposed == Some(index) {
            return;
        }
        let bytes = self.controls[index].controller.catalog().snapshot();
        let catalog = Catalog::restore(&bytes).expect("a snapshot can be read");
        self.controls[index].controller = Controller::new(catalog);
    }

    fn carry_out(&mut self, index: usize) {
        for command in self.controls[index].controller.take_commands() {
            match command {
                Command::Propose(proposal) => {
                    if index == self.leader {
                        let bytes = proposal.encode();
                        self.send(Parcel::Append(Term(self.term), bytes));
                    }
                }
                Command::Send(node, message) => {
                    self.send(Parcel::ToNode(node, message.encode()));
                }
            }
        }
    }

    fn send(&mut self, parcel: Parcel) {
        let Network { faulty, late } = self.network;
        let is_message = !matches!(parcel, Parcel::Append(..));
        let hit = |world: &World| faulty > 0 && world.below(faulty) == 0;
        if hit(self) {
            return;
        }
        let delay = if hit(self) { 1 + self.below(late.max(1)) } else { 1 };
        if is_message && hit(self) {
            let after = 1 + self.below(late.max(1));
            let again = match &parcel {
                Parcel::ToControl(bytes) => Parcel::ToControl(bytes.clone()),
                Parcel::ToNode(node, bytes) => Parcel::ToNode(*node, bytes.clone()),
                Parcel::Append(term, bytes) => Parcel::Append(*term, bytes.clone()),
            };
            self.sent += 1;
            self.under_way.insert((self.now + after, self.sent), again);
        }
        self.sent += 1;
        self.under_way.insert((self.now + delay, self.sent), parcel);
    }

    fn deliver(&mut self) -> Outcome {
        let later = self.under_way.split_off(&(self.now + 1, 0));
        let due = std::mem::replace(&mut self.under_way, later);
        for (_, parcel) in due {
            match parcel {
                Parcel::Append(term, bytes) if term.0 == self.term => {
                    self.log.push(Proposal::decode(&bytes).map_err(|error| error.to_string())?);
                }
                Parcel::Append(..) => {}
                Parcel::ToControl(bytes) => self.reach_control(&bytes)?,
                Parcel::ToNode(node, bytes) => self.reach_node(node, &bytes)?,
            }
        }
        Ok(())
    }

    fn reach_control(&mut self, bytes: &[u8]) -> Outcome {
        let message = ToControl::decode(bytes).map_err(|error| error.to_string())?;
        if self.nodes.get(&message.node).is_none_or(|node| node.is_cut) {
            return Ok(());
        }
        // A node may still believe the leader of before.
        let index = match self.deposed {
            Some(deposed) if self.below(3) == 0 => deposed,
            _ => self.leader,
        };
        let _ = self.controls[index].controller.receive(&message);
        self.carry_out(index);
        Ok(())
    }

    fn reach_node(&mut self, id: NodeId, bytes: &[u8]) -> Outcome {
        let ToNode { term, body, .. } = ToNode::decode(bytes).map_err(|error| error.to_string())?;
        let no_fence = self.bug == Bug::NoFence;
        let Some(node) = self.nodes.get_mut(&id).filter(|node| node.is_alive && !node.is_cut)
        else {
            return Ok(());
        };
        match body {
            ControlMessage::Heard { entries } => {
                node.entries = node.entries.max(entries);
                Ok(())
            }
            ControlMessage::Order(order) if no_fence || node.fence.admits(term, &order) => {
                self.obey(id, &order)
            }
            ControlMessage::Order(_) => Ok(()),
        }
    }

    fn obey(&mut self, id: NodeId, order: &Order) -> Outcome {
        let node = self.nodes.get_mut(&id).expect("the caller has it");
        let done = match node.carry_out(order) {
            Done::Group => self.obey_in_group(id, order)?,
            other => other,
        };
        let at_once = match self.bug {
            Bug::CopyAcknowledgedAtOnce => {
                matches!(order.action, Action::CopyChunk { .. } | Action::ServeChunk { .. })
            }
            Bug::PartAcknowledgedAtOnce => matches!(order.action, Action::CopyPart { .. }),
            _ => false,
        };
        if at_once
            && let Action::CopyChunk { chunk, .. } | Action::CopyPart { chunk, .. } = &order.action
        {
            // The node believes it, too.
            let node = self.nodes.get_mut(&id).expect("the caller has it");
            node.fetches.remove(chunk);
        }
        if let Done::Deleted(chunk) = done {
            let catalog = self.controls[self.leader].controller.catalog();
            self.checker.deleted(chunk, id, catalog, &self.nodes)?;
        }
        if order.number.operation.0 != 0 && (at_once || done != Done::Later) {
            self.acknowledge(id, order);
        }
        Ok(())
    }

    fn acknowledge(&mut self, id: NodeId, order: &Order) {
        let body = NodeMessage::Acknowledgement { number: order.number, position: POSITION };
        self.say(id, body);
    }

    fn say(&mut self, id: NodeId, body: NodeMessage) {
        let incarnation = self.nodes[&id].incarnation;
        let message = ToControl { cluster: CLUSTER, node: id, incarnation, body };
        self.send(Parcel::ToControl(message.encode()));
    }

    fn node_tick(&mut self, id: NodeId) -> Outcome {
        let node = self.nodes.get_mut(&id).expect("the caller has it");
        if let Some(left) = &mut node.starts_in {
            *left -= 1;
            if *left == 0 {
                self.start(id);
            }
            return Ok(());
        }
        if !node.is_alive {
            return Ok(());
        }
        self.fetch(id);
        self.hear_of_catalog(id);
        if (self.now + id.0).is_multiple_of(3) {
            self.heartbeat(id);
        }
        Ok(())
    }

    /// Now and then, a node hears of the catalog of some control node, which may be late.
    fn hear_of_catalog(&mut self, id: NodeId) {
        if self.nodes[&id].is_cut || self.below(8) > 0 {
            return;
        }
        let index = self.below(self.controls.len() as u64) as usize;
        let catalog = self.controls[index].controller.catalog();
        self.nodes.get_mut(&id).expect("a node").narrow(catalog);
    }

    pub(crate) fn start(&mut self, id: NodeId) {
        let node = self.nodes.get_mut(&id).expect("a node");
        if node.is_alive || node.is_destroyed {
            return;
        }
        node.start();
        let number = node.number;
        let started = Started {
            cluster: CLUSTER,
            node: id,
            directory: DirectoryId(u128::from(number)),
            incarnation: node.incarnation,
            address: format!("host{number}:4000"),
            client_address: None,
            release: node.release,
        };
        let _ = self.request(Proposal::Started(started));
    }

    /// How many pages a range has.
    fn pages_in(&self, range: &ChunkRange) -> u32 {
        if range.space != EVERY_SPACE {
            let used = self.pages.get(&range.space).copied().unwrap_or(0);
            return used.min(range.end.0).saturating_sub(range.first.0);
        }
        let extents = self.catalog().extents();
        let of_space = |(space, used): (&SpaceId, &u32)| {
            let firsts = (0..*used).step_by(extents.pages as usize);
            let is_in = |first: &u32| {
                let place = extents.place(PageId::new(*space, PageNo(*first)));
                (range.first.0..range.end.0).contains(&place)
            };
            firsts.filter(is_in).map(|first| (used - first).min(extents.pages)).sum::<u32>()
        };
        self.pages.iter().map(of_space).sum()
    }

    fn heartbeat(&mut self, id: NodeId) {
        let node = &self.nodes[&id];
        let report = |range: &ChunkRange, epoch| {
            let pages = self.pages_in(range);
            let bytes = u64::from(pages) * PAGE_BYTES;
            ChunkReport { epoch, position: POSITION, bytes, pages }
        };
        let chunks = node
            .copies
            .iter()
            .map(|(chunk, copy)| (*chunk, report(&node.own_range(*chunk), copy.epoch)));
        let leads = self.groups.iter().filter_map(|(group, known)| {
            let leader = known.leader?;
            (known.members[&leader].node == id).then_some((*group, (Term(known.term), leader)))
        });
        let heartbeat = Heartbeat {
            entries: if self.bug == Bug::HeardTooMuch { u64::MAX } else { node.entries },
            unreachable: unreachable(&self.nodes, id),
            chunks: chunks.collect(),
            leads: leads.collect(),
            copies: node.fetching(),
        };
        self.say(id, NodeMessage::Heartbeat(heartbeat));
    }

    /// Fetches a part of each copy from the first source that has it and can be reached.
    fn fetch(&mut self, id: NodeId) {
        let fetches = self.nodes[&id].fetches.clone();
        for (chunk, mut fetch) in fetches {
            let has = |source: &NodeId| {
                self.nodes
                    .get(source)
                    .is_some_and(|node| node.is_reachable() && node.has_whole(chunk))
            };
            let range = self.nodes[&id].copies[&chunk].range;
            let is_there = match fetch.part_of {
                Some(of) => self.nodes[&id].has_part(of, &range),
                None => fetch.sources.iter().any(has) && self.nodes[&id].is_reachable(),
            };
            if !is_there {
                continue;
            }
            fetch.progress.total = u64::from(self.pages_in(&range)) * PAGE_BYTES;
            let part = FETCHED.min(fetch.progress.total.saturating_sub(fetch.progress.done));
            fetch.progress.done += part;
            self.fetched_bytes += part;
            let is_done = fetch.progress.done >= fetch.progress.total;
            let node = self.nodes.get_mut(&id).expect("a node");
            let number = fetch.number;
            if is_done {
                node.fetches.remove(&chunk);
                let copy = node.copies.get_mut(&chunk).expect("it fetches it");
                (copy.is_whole, copy.is_served) = (true, fetch.part_of.is_some());
                if let Some(of) = fetch.part_of.filter(|_| self.bug == Bug::NarrowedEarly) {
                    node.copies.get_mut(&of).expect("it has it").range.end = range.first;
                }
                self.say(id, NodeMessage::Acknowledgement { number, position: POSITION });
            } else {
                node.fetches.insert(chunk, fetch);
            }
        }
    }

    /// An order that changes a group, or needs one.
    fn obey_in_group(&mut self, id: NodeId, order: &Order) -> Result<Done, Violation> {
        match &order.action {
            Action::FoundGroup { group, member, members } => {
                let caught_up = members.keys().copied().collect();
                let (members, learning) = (members.clone(), BTreeMap::new());
                let fresh = Group { members, term: 0, leader: None, caught_up, learning };
                self.groups.entry(*group).or_insert(fresh);
                self.nodes.get_mut(&id).expect("a node").members.insert(*group, *member);
                Ok(Done::Yes)
            }
            Action::CatchUp { group, member } => {
                let (now, at_once) = (self.now, self.bug == Bug::CaughtUpAtOnce);
                let Some(known) = self.groups.get_mut(group) else { return Ok(Done::Later) };
                let learns = known.members.contains_key(member) && known.leader.is_some();
                let since = *known.learning.entry(*member).or_insert(now);
                if learns && now - since >= 5 {
                    known.caught_up.insert(*member);
                }
                let is_done = at_once || known.caught_up.contains(member);
                Ok(if is_done { Done::Yes } else { Done::Later })
            }
            Action::HandOver { group, term, to } => {
                self.hand_over(id, *group, *term, *to);
                Ok(Done::Yes)
            }
            Action::Switch { group, term, to } => {
                let leads = self.leads(id, *group, *term);
                let refuses = leads && !self.hand_over(id, *group, *term, *to);
                Ok(if refuses { Done::Yes } else { Done::Later })
            }
            Action::SetMembers { group, term, members, .. } => {
                if !self.leads(id, *group, *term) {
                    return Ok(Done::Later);
                }
                self.set_members(*group, members)
            }
            _ => Ok(Done::Later),
        }
    }

    /// Whether the other member leads now.
    fn hand_over(&mut self, id: NodeId, group: GroupId, term: Term, to: MemberId) -> bool {
        let up = |node: NodeId| self.nodes.get(&node).is_some_and(Node::is_reachable);
        let ready = self.leads(id, group, term)
            && self.groups[&group].members.get(&to).is_some_and(|member| up(member.node));
        if ready {
            let group = self.groups.get_mut(&group).expect("it leads it");
            (group.leader, group.term) = (Some(to), group.term + 1);
        }
        ready
    }

    fn leads(&self, id: NodeId, group: GroupId, term: Term) -> bool {
        self.groups.get(&group).is_some_and(|group| {
            let leader = group.leader.and_then(|leader| group.members.get(&leader));
            group.term == term.0 && leader.is_some_and(|member| member.node == id)
        })
    }

    fn set_members(
        &mut self,
        id: GroupId,
        members: &BTreeMap<MemberId, GroupMember>,
    ) -> Result<Done, Violation> {
        let group = &self.groups[&id];
        if group.members == *members {
            return Ok(Done::Yes);
        }
        let wanted = self.controls[self.leader].controller.catalog().groups().get(&id);
        self.checker.members_change(id, group, members, wanted)?;
        let (before, after) = (self.has_majority(&group.members), self.has_majority(members));
        if before && after {
            let group = self.groups.get_mut(&id).expect("looked up above");
            group.members = members.clone();
            if group.leader.is_some_and(|leader| !members.contains_key(&leader)) {
                group.leader = None;
            }
            return Ok(Done::Yes);
        }
        Ok(Done::Later)
    }

    /// Whether most of the voters can reach each other.
    pub(crate) fn has_majority(&self, members: &BTreeMap<MemberId, GroupMember>) -> bool {
        let voters: Vec<_> = members.values().filter(|member| member.role.votes()).collect();
        let up = voters.iter().filter(|member| self.nodes[&member.node].is_reachable()).count();
        up * 2 > voters.len()
    }

    /// Groups whose leader is gone elect another one.
    fn elect(&mut self) {
        for id in self.groups.keys().copied().collect::<Vec<_>>() {
            let group = &self.groups[&id];
            let able = |(_, member): &(&MemberId, &GroupMember)| {
                member.role == Role::Voter && self.nodes[&member.node].is_reachable()
            };
            let led = group.leader.is_some_and(|leader| {
                group.members.get(&leader).is_some_and(|member| able(&(&leader, member)))
            });
            if led {
                continue;
            }
            let next = group.members.iter().find(able).map(|(id, _)| *id);
            let next = next.filter(|_| self.has_majority(&group.members));
            let group = self.groups.get_mut(&id).expect("a group");
            if group.leader != next {
                group.leader = next;
                group.term += u64::from(next.is_some());
            }
        }
    }
}

/// The upper chunks of those that were cut in two.
fn cut<'a>(before: &'a Catalog, after: &'a Catalog) -> impl Iterator<Item = ChunkId> + 'a {
    let divisions = before.operations().values().filter_map(|one| one.kind.division());
    divisions.map(|one| one.upper).filter(|upper| after.chunks().contains_key(upper))
}

/// What has changed between two catalogs, in words.
fn differences(before: &Catalog, after: &Catalog) -> Vec<String> {
    let mut lines = Vec::new();
    for (id, node) in after.nodes() {
        let state = node.state();
        if before.nodes().get(id).is_none_or(|known| known.state() != state) {
            lines.push(format!("node {id} is {state}"));
        }
    }
    for id in before.nodes().keys().filter(|id| !after.nodes().contains_key(id)) {
        lines.push(format!("node {id} is removed"));
    }
    for (id, group) in after.groups() {
        if let Some(writer) = group.writer
            && before.groups().get(id).is_none_or(|known| known.term != group.term)
        {
            lines.push(format!("group {id}: {writer} leads in term {}", group.term));
        }
    }
    for (id, operation) in after.operations() {
        let step = before.operations().get(id).map(|known| known.step);
        if step.is_none() {
            lines.push(format!("operation {id} ({:?}) {}", operation.reason, operation.kind));
        } else if step != Some(operation.step) {
            lines.push(format!("operation {id} {}", operation.kind));
        }
    }
    for ended in after.ended() {
        if !before.ended().contains(ended) {
            lines.push(format!("operation {} ended: {:?}", ended.operation, ended.outcome));
        }
    }
    lines
}

/// The range of a whole space.
pub(crate) fn whole_space() -> (PageNo, PageNo) {
    (PageNo(0), PageNo::NONE)
}
