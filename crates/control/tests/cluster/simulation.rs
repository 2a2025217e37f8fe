//! A seeded run: nodes join, stop, lose their disks, are cut off and drained; messages are lost,
//! late, doubled; the control group changes its leader. Then all is healed, and every operation has
//! to end.

use std::collections::BTreeSet;

use firn_base::SpaceId;
use firn_consensus::Role;
use firn_control::{
    Chunk, EVERY_SPACE, GroupId, Health, NodeId, NodeRole, OperationKind, Proposal, Reason,
    ReplicaState, equal_parts, place_chunk,
};

use crate::checker::Violation;
use crate::node::{Node, POSITION};
use crate::world::{Bug, Network, Outcome, World, settings, spread_settings, whole_space};

/// How many spaces there are, and in how many chunks their pages are if chunks have parts of all.
const SPACES: u32 = 4;
const PARTS: u32 = 8;
/// Parts of all spaces with more bytes are cut.
const SPLIT_ABOVE: u64 = 16 << 20;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) bug: Bug,
    pub(crate) nodes: u64,
    pub(crate) zones: u64,
    /// How many ticks faults happen.
    pub(crate) faulty: u64,
    /// Chunks have parts of all spaces.
    pub(crate) is_spread: bool,
}

/// What a run did, to see that it did something.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) operations: u64,
    pub(crate) deletions: u64,
    pub(crate) member_changes: u64,
    pub(crate) leaders: u64,
    pub(crate) destroyed: u64,
    pub(crate) entries: u64,
    pub(crate) splits: u64,
}

impl Summary {
    pub(crate) fn add(&mut self, other: Summary) {
        self.operations += other.operations;
        self.deletions += other.deletions;
        self.member_changes += other.member_changes;
        self.leaders += other.leaders;
        self.destroyed += other.destroyed;
        self.entries += other.entries;
        self.splits += other.splits;
    }

    pub(crate) fn has_everything(&self) -> bool {
        let each = [
            self.operations,
            self.deletions,
            self.member_changes,
            self.leaders,
            self.destroyed,
            self.splits,
        ];
        !each.contains(&0)
    }
}

pub(crate) struct Simulation {
    pub(crate) world: World,
    plan: Plan,
    summary: Summary,
}

pub(crate) const ALL_ROLES: [NodeRole; 5] =
    [NodeRole::Database, NodeRole::LogMember, NodeRole::Logger, NodeRole::Page, NodeRole::Control];

impl Simulation {
    pub(crate) fn new(seed: u64, plan: Plan) -> Simulation {
        let settings = if plan.is_spread { spread_settings() } else { settings() };
        let world = World::new(seed, settings, plan.bug);
        Simulation { world, plan, summary: Summary::default() }
    }

    pub(crate) fn run(mut self) -> Result<Summary, Violation> {
        self.begin()?;
        self.world.network = Network { faulty: 20, late: 60 };
        let end = self.world.now + self.plan.faulty;
        while self.world.now < end {
            if self.world.below(25) == 0 {
                self.fault();
            }
            self.world.tick()?;
        }
        self.heal();
        self.finish()?;
        self.summary.operations = self.world.catalog().ended().last().map_or(0, |e| e.operation.0);
        self.summary.deletions = self.world.checker.deletions;
        self.summary.member_changes = self.world.checker.member_changes;
        self.summary.entries = self.world.log.len() as u64;
        Ok(self.summary)
    }

    /// Nodes in zones, a log group and a few spaces.
    fn begin(&mut self) -> Outcome {
        for number in 0..self.plan.nodes {
            self.join(number);
        }
        self.ticks(20)?;
        for third in [Role::Voter, Role::Logger] {
            let roles = [Role::Voter, Role::Voter, third];
            let members = (1..).map(NodeId).zip(roles).collect();
            let wanted_loggers = u8::from(third == Role::Logger);
            let wanted_voters = 3 - wanted_loggers;
            let found = Proposal::FoundGroup { members, wanted_voters, wanted_loggers };
            self.world.request(found).map_err(|error| error.to_string())?;
        }
        match self.plan.is_spread {
            true => self.spread(),
            false => (1..=SPACES).for_each(|space| self.create(space)),
        }
        self.ticks(60)
    }

    fn join(&mut self, number: u64) {
        let zone = format!("z{}", number % self.plan.zones);
        self.world.join(&zone, &ALL_ROLES, 1 << 36);
    }

    fn create(&mut self, space: u32) {
        let (first, end) = whole_space();
        let nodes: BTreeSet<NodeId> = place_chunk(self.world.catalog()).into_iter().collect();
        self.world.pages.insert(SpaceId(space), 300 * space);
        let (space, group, position) = (SpaceId(space), GroupId(1), POSITION);
        let create = Proposal::CreateChunk { space, first, end, group, position, nodes };
        let _ = self.world.request(create);
    }

    /// The pages of all spaces in parts.
    fn spread(&mut self) {
        (1..=SPACES).for_each(|space| _ = self.world.pages.insert(SpaceId(space), 300 * space));
        let _ = self.world.request(Proposal::SplitAbove { bytes: SPLIT_ABOVE });
        for (first, end) in equal_parts(PARTS) {
            let nodes = place_chunk(self.world.catalog()).into_iter().collect();
            let (space, group, position) = (EVERY_SPACE, GroupId(1), POSITION);
            let create = Proposal::CreateChunk { space, first, end, group, position, nodes };
            let _ = self.world.request(create);
        }
    }

    pub(crate) fn ticks(&mut self, count: u64) -> Outcome {
        for _ in 0..count {
            self.world.tick()?;
        }
        Ok(())
    }

    fn pick(&self) -> NodeId {
        let ids: Vec<NodeId> = self.world.catalog().nodes().keys().copied().collect();
        ids[self.world.below(ids.len() as u64) as usize]
    }

    fn node(&mut self, id: NodeId) -> &mut Node {
        self.world.nodes.get_mut(&id).expect("a node")
    }

    fn fault(&mut self) {
        let id = self.pick();
        match self.world.below(22) {
            0..=2 => self.node(id).stop(),
            3..=6 => self.start_one(),
            7 => self.node(id).is_cut = true,
            8 => self.node(id).is_isolated = true,
            9 | 10 => self.reconnect(),
            11 | 12 => self.change_leader(),
            13 => self.world.end_deposed(),
            14 => self.destroy(id),
            15 => self.drain(id),
            16 => self.grow(),
            17 => self.lose(id),
            18 => self.cancel(),
            19 => self.switch(id),
            20 => self.divide(),
            _ => self.restart_control(),
        }
        self.remove_destroyed();
    }

    /// People remove nodes that will not come back, as soon as that is possible.
    fn remove_destroyed(&mut self) {
        let destroyed: Vec<NodeId> = self
            .world
            .nodes
            .values()
            .filter(|node| node.is_destroyed && self.world.catalog().nodes().contains_key(&node.id))
            .map(|node| node.id)
            .collect();
        for node in destroyed {
            let _ = self.world.request(Proposal::Remove { node });
        }
    }

    fn start_one(&mut self) {
        let stopped: Vec<NodeId> =
            self.world.nodes.values().filter(|node| !node.is_alive).map(|node| node.id).collect();
        if !stopped.is_empty() {
            let id = stopped[self.world.below(stopped.len() as u64) as usize];
            self.world.start(id);
        }
    }

    fn reconnect(&mut self) {
        for node in self.world.nodes.values_mut() {
            (node.is_cut, node.is_isolated) = (false, false);
        }
    }

    fn change_leader(&mut self) {
        let to = self.world.below(3) as usize;
        self.world.change_leader(to);
        self.summary.leaders += 1;
    }

    fn restart_control(&mut self) {
        let index = self.world.below(3) as usize;
        self.world.restart_control(index);
    }

    /// Whether two other nodes that run have every chunk of this one.
    fn is_spare(&self, id: NodeId) -> bool {
        self.world.catalog().chunks().iter().all(|(chunk, known)| {
            let others = known.nodes_in(ReplicaState::InService).filter(|other| {
                let node = &self.world.nodes[other];
                *other != id && node.is_alive && node.has_whole(*chunk)
            });
            others.count() >= 2 && known.operation.is_none()
        })
    }

    /// Whether no group has lost a member for good that was not replaced yet.
    fn groups_are_whole(&self) -> bool {
        let gone = |node: NodeId| self.world.nodes[&node].is_destroyed;
        let groups = self.world.groups.values();
        let mut members = groups.flat_map(|group| group.members.values());
        !members.any(|member| gone(member.node))
    }

    /// A node is lost with its disk, and another one joins.
    fn destroy(&mut self, id: NodeId) {
        if !self.is_spare(id) || !self.groups_are_whole() || self.node(id).is_destroyed {
            return;
        }
        let node = self.node(id);
        node.stop();
        node.is_destroyed = true;
        node.copies.clear();
        self.summary.destroyed += 1;
        let zone = self.world.below(self.plan.zones);
        self.join(zone);
    }

    fn drain(&mut self, id: NodeId) {
        let draining = self.world.catalog().nodes().iter().find(|(_, node)| node.draining);
        let request = match draining {
            Some((id, _)) => Proposal::Drain { node: *id, on: false },
            None => Proposal::Drain { node: id, on: true },
        };
        let _ = self.world.request(request);
    }

    fn switch(&mut self, to: NodeId) {
        let groups: Vec<_> = self.world.catalog().groups().keys().copied().collect();
        if !groups.is_empty() {
            let group = groups[self.world.below(groups.len() as u64) as usize];
            let to = (self.world.below(3) > 0).then_some(to);
            let _ = self.world.request(Proposal::Switch { group, to });
        }
    }

    /// Somebody asks for a chunk to be cut in two.
    fn divide(&mut self) {
        let chunks = self.world.catalog().chunks();
        let at = self.world.below(chunks.len().max(1) as u64) as usize;
        if let Some((chunk, known)) = chunks.iter().nth(at) {
            let (chunk, epoch, reason) = (*chunk, known.epoch, Reason::Asked);
            let _ = self.world.request(Proposal::Divide { chunk, epoch, reason });
        }
    }

    fn grow(&mut self) {
        let space = SpaceId(1 + self.world.below(4) as u32);
        let more = 200 + self.world.below(600) as u32;
        let used = self.world.pages.entry(space).or_default();
        *used = (*used + more).min(6_000);
    }

    /// A disk loses one chunk.
    fn lose(&mut self, id: NodeId) {
        if !self.is_spare(id) {
            return;
        }
        let copies = self.node(id).copies.iter();
        let first = copies.filter(|(_, copy)| copy.is_whole).map(|(chunk, _)| *chunk).next();
        if let Some(chunk) = first {
            self.node(id).copies.remove(&chunk);
            self.world.checker.loses(chunk, id);
        }
    }

    fn cancel(&mut self) {
        let running: Vec<_> = self.world.catalog().operations().keys().copied().collect();
        if !running.is_empty() {
            let operation = running[self.world.below(running.len() as u64) as usize];
            let _ = self.world.request(Proposal::Cancel { operation });
        }
    }

    fn heal(&mut self) {
        self.world.network = Network { faulty: 0, late: 0 };
        self.world.end_deposed();
        self.reconnect();
        let ids: Vec<NodeId> = self.world.nodes.keys().copied().collect();
        ids.into_iter().for_each(|id| self.world.start(id));
    }

    /// Every operation ends, everything is where it should be, and then nothing moves any more.
    fn finish(&mut self) -> Outcome {
        let mut quiet = 0;
        for _ in 0..60 {
            self.ticks(100)?;
            self.remove_destroyed();
            let busy = |kind: &OperationKind| !matches!(kind, OperationKind::Drain { .. });
            let catalog = self.world.catalog();
            let busy = catalog.operations().values().any(|one| busy(&one.kind));
            quiet = if busy || !self.all_are_judged() { 0 } else { quiet + 1 };
            if quiet == 4 {
                return self.check_end();
            }
        }
        let operations = self.world.catalog().operations();
        Err(format!("it does not come to rest: {operations:#?}"))
    }

    /// Whether the catalog knows of each node whether it runs.
    fn all_are_judged(&self) -> bool {
        self.world.catalog().nodes().iter().all(|(id, node)| {
            let expected = if self.world.nodes[id].is_alive { Health::Up } else { Health::Down };
            node.health == expected
        })
    }

    fn check_end(&mut self) -> Outcome {
        let catalog = self.world.catalog();
        let up = |node: &NodeId| catalog.nodes()[node].is_up();
        let takers = catalog.nodes().values().filter(|node| node.takes_more()).count();
        let zones: BTreeSet<_> = catalog
            .nodes()
            .values()
            .filter(|node| node.takes_more())
            .map(|node| node.zone.clone())
            .collect();
        for (id, chunk) in catalog.chunks() {
            let live = chunk.nodes_in(ReplicaState::InService).filter(up).count();
            if live < catalog.replicas().min(takers) {
                return Err(format!("chunk {id} has {live} replicas at the end: {chunk:?}"));
            }
            let used: BTreeSet<_> =
                chunk.replicas.keys().map(|node| &catalog.nodes()[node].zone).collect();
            if used.len() < zones.len().min(chunk.replicas.len()) {
                return Err(format!("chunk {id} is in {} zones: {chunk:?}", used.len()));
            }
        }
        let able = catalog.nodes().values().filter(|node| node.takes_more()).count();
        for (id, group) in catalog.groups() {
            let live = group.members.values().filter(|member| up(&member.node)).count();
            if live < 3.min(able) || group.members.len() != live {
                return Err(format!("group {id} has {live} members at the end: {group:?}"));
            }
        }
        let begun = if self.plan.is_spread { PARTS } else { SPACES };
        self.summary.splits = catalog.chunks().len() as u64 - u64::from(begun);
        let divided = self.world.divided.len() as u64;
        if self.plan.is_spread && self.summary.splits != divided {
            return Err(format!("{} chunks more after {divided} cuts", self.summary.splits));
        }
        let used = catalog.settings().chunk_pages;
        let is_large = |chunk: &Chunk| match chunk.space {
            EVERY_SPACE => chunk.bytes > catalog.split_above(),
            _ => chunk.pages > used,
        };
        match catalog.chunks().iter().find(|(_, chunk)| is_large(chunk)) {
            Some((id, chunk)) => Err(format!("chunk {id} is not split: {chunk:?}")),
            None => self.check_that_nothing_is_left(),
        }
    }

    /// Nodes have what the catalog says, and nothing of chunks that are cut or were given up.
    fn check_that_nothing_is_left(&self) -> Outcome {
        let catalog = self.world.catalog();
        let running = self.world.nodes.values().filter(|node| node.is_alive);
        for (node, (id, copy)) in
            running.flat_map(|node| node.copies.iter().map(move |c| (node, c)))
        {
            let chunk = catalog.chunks().get(id).filter(|one| one.replicas.contains_key(&node.id));
            let range = (copy.range.first, copy.range.end);
            if chunk.is_none_or(|chunk| (chunk.first, chunk.end) != range) {
                return Err(format!("node {} has {copy:?} of chunk {id}: {chunk:?}", node.id));
            }
        }
        Ok(())
    }
}
