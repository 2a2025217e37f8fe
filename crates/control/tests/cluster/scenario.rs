//! Runs a scenario: a text of commands, each followed by what it led to.
//!
//! | command | effect |
//! |---|---|
//! | `join a page log …` | a node in zone `a` joins with these roles; `all` for every role |
//! | `group 1=voter 2=logger …` | a log group begins; as many members are wanted |
//! | `space 1 300` | a chunk for space 1, of which 300 pages are in use |
//! | `parts 2` | chunks for parts of all spaces |
//! | `divide 1`, `above 9` | somebody asks to cut chunk 1 in two; chunks with more than 9 MiB are cut |
//! | `grow 1 1500` | 1500 pages of space 1 are in use |
//! | `tick 50` | time passes |
//! | `quiet 50` | time passes, and what happens is not printed |
//! | `stop 2`, `start 2` | a node's process ends, and starts |
//! | `destroy 2` | it ends, and its disk is gone |
//! | `cut 2`, `isolate 2`, `heal` | a node reaches nobody; it reaches control alone; all is well |
//! | `lead 1` | control node 1 of 0 to 2 leads; the leader before still believes that it does |
//! | `deposed` | the leader before learns of it |
//! | `drain 2`, `undrain 2`, `remove 2` | requests about a node |
//! | `upgrade 2`, `cancel 7`, `replicas 2` | other requests: release 0.2.0, operation 7 |
//! | `resize 3 1` | group 1 gets three voters and a logger |
//! | `controls 3` | the control group gets three members |
//! | `show` | chunks and groups |
//! | `status` | the operations that are under way, as people see them |

use std::collections::BTreeSet;
use std::fmt::Write as _;

use firn_base::SpaceId;
use firn_consensus::Role;
use firn_control::{
    ChunkId, EVERY_SPACE, GroupId, NodeId, NodeRole, OperationId, Proposal, Reason, ReplicaState,
    Settings, equal_parts, place_chunk,
};

use crate::node::POSITION;
use crate::simulation::ALL_ROLES;
use crate::world::{Bug, World, release, settings, whole_space};

struct Scenario {
    world: World,
    output: String,
}

/// Runs the commands of `script` and returns it with the output that they have now.
pub(crate) fn run(script: &str) -> String {
    let world = World::new(1, settings(), Bug::None);
    let mut scenario = Scenario { world, output: String::new() };
    for line in script.lines() {
        if let Some(command) = line.strip_prefix("> ") {
            writeln!(scenario.output, "{line}").unwrap();
            let words: Vec<&str> = command.split_whitespace().collect();
            scenario.command(&words);
        } else if line.is_empty() || line.starts_with('#') {
            writeln!(scenario.output, "{line}").unwrap();
        }
    }
    scenario.output
}

fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("{word} is no number"))
}

fn node_role(word: &str) -> NodeRole {
    match word {
        "compute" => NodeRole::Compute,
        "database" => NodeRole::Database,
        "log" => NodeRole::LogMember,
        "logger" => NodeRole::Logger,
        "page" => NodeRole::Page,
        "control" => NodeRole::Control,
        "standby" => NodeRole::Standby,
        _ => panic!("{word} is no role"),
    }
}

impl Scenario {
    fn command(&mut self, words: &[&str]) {
        match words {
            ["join", zone, "all"] => drop(self.world.join(zone, &ALL_ROLES, 1 << 36)),
            ["join", zone, roles @ ..] => {
                let roles: Vec<_> = roles.iter().map(|word| node_role(word)).collect();
                self.world.join(zone, &roles, 1 << 36);
            }
            ["group", members @ ..] => self.group(members),
            ["space", space, pages] => self.space(number(space) as u32, number(pages) as u32),
            ["parts", count] => self.parts(number(count) as u32),
            ["grow", space, pages] => {
                let space = SpaceId(number(space) as u32);
                self.world.pages.insert(space, number(pages) as u32);
            }
            ["tick", count] => self.ticks(number(count)),
            ["quiet", count] => {
                self.ticks_quietly(number(count));
                self.world.events.clear();
            }
            ["stop", id] => self.node(id).stop(),
            ["start", id] => self.world.start(NodeId(number(id))),
            ["destroy", id] => {
                let node = self.node(id);
                node.stop();
                node.is_destroyed = true;
                node.copies.clear();
            }
            ["cut", id] => self.node(id).is_cut = true,
            ["isolate", id] => self.node(id).is_isolated = true,
            ["heal"] => {
                for node in self.world.nodes.values_mut() {
                    (node.is_cut, node.is_isolated) = (false, false);
                }
            }
            ["lead", index] => self.world.change_leader(number(index) as usize),
            ["deposed"] => self.world.end_deposed(),
            ["show"] => self.show(),
            ["status"] => self.status(),
            _ => self.request(words),
        }
        for event in std::mem::take(&mut self.world.events) {
            self.line(&event);
        }
    }

    fn request(&mut self, words: &[&str]) {
        let node = |id: &str| NodeId(number(id));
        let proposal = match words {
            ["drain", id] => Proposal::Drain { node: node(id), on: true },
            ["undrain", id] => Proposal::Drain { node: node(id), on: false },
            ["remove", id] => Proposal::Remove { node: node(id) },
            ["upgrade", minor] => Proposal::Upgrade { release: release(number(minor) as u16) },
            ["switch", group, rest @ ..] => Proposal::Switch {
                group: GroupId(number(group) as u32),
                to: rest.first().map(|id| node(id)),
            },
            ["resize", voters, loggers] => Proposal::Resize {
                group: GroupId(1),
                voters: number(voters) as u8,
                loggers: number(loggers) as u8,
            },
            ["controls", voters] => Proposal::Resize {
                group: GroupId::CONTROL,
                voters: number(voters) as u8,
                loggers: 0,
            },
            ["divide", id] => {
                let chunk = ChunkId(number(id));
                let epoch = self.world.catalog().chunks()[&chunk].epoch;
                Proposal::Divide { chunk, epoch, reason: Reason::Asked }
            }
            ["above", mib] => Proposal::SplitAbove { bytes: number(mib) << 20 },
            ["cancel", id] => Proposal::Cancel { operation: OperationId(number(id)) },
            ["replicas", count] => {
                let before = self.world.catalog().settings().clone();
                Proposal::Configure(Settings { replicas: number(count) as u8, ..before })
            }
            _ => panic!("{words:?} is no command"),
        };
        if let Err(refusal) = self.world.request(proposal) {
            self.line(&format!("refused: {refusal}"));
        }
    }

    fn node(&mut self, id: &str) -> &mut crate::node::Node {
        self.world.nodes.get_mut(&NodeId(number(id))).expect("a node")
    }

    fn line(&mut self, text: &str) {
        writeln!(self.output, "{text}").unwrap();
    }

    fn ticks_quietly(&mut self, count: u64) {
        for _ in 0..count {
            self.world.tick().expect("everything holds");
        }
    }

    /// Prints what happens, with the number of ticks since the command.
    fn ticks(&mut self, count: u64) {
        for tick in 1..=count {
            self.ticks_quietly(1);
            for event in std::mem::take(&mut self.world.events) {
                self.line(&format!("{tick:>4} {event}"));
            }
        }
    }

    fn group(&mut self, words: &[&str]) {
        let members: Vec<(NodeId, Role)> = words
            .iter()
            .map(|word| {
                let (id, role) = word.split_once('=').expect("write NODE=ROLE");
                let role = if role == "logger" { Role::Logger } else { Role::Voter };
                (NodeId(number(id)), role)
            })
            .collect();
        let count = |wanted| members.iter().filter(|(_, role)| *role == wanted).count() as u8;
        let (wanted_voters, wanted_loggers) = (count(Role::Voter), count(Role::Logger));
        let found = Proposal::FoundGroup { members, wanted_voters, wanted_loggers };
        if let Err(refusal) = self.world.request(found) {
            self.line(&format!("refused: {refusal}"));
        }
    }

    fn space(&mut self, space: u32, pages: u32) {
        let (first, end) = whole_space();
        self.world.pages.insert(SpaceId(space), pages);
        let nodes: BTreeSet<NodeId> = place_chunk(self.world.catalog()).into_iter().collect();
        let group = GroupId(1);
        let (space, position) = (SpaceId(space), POSITION);
        let create = Proposal::CreateChunk { space, first, end, group, position, nodes };
        if let Err(refusal) = self.world.request(create) {
            self.line(&format!("refused: {refusal}"));
        }
    }

    fn parts(&mut self, count: u32) {
        for (first, end) in equal_parts(count) {
            let nodes: BTreeSet<NodeId> = place_chunk(self.world.catalog()).into_iter().collect();
            let (space, group, position) = (EVERY_SPACE, GroupId(1), POSITION);
            let create = Proposal::CreateChunk { space, first, end, group, position, nodes };
            if let Err(refusal) = self.world.request(create) {
                self.line(&format!("refused: {refusal}"));
            }
        }
    }

    fn show(&mut self) {
        let catalog = self.world.catalog();
        let mut lines = Vec::new();
        for (id, group) in catalog.groups() {
            let member = |(id, one): (&firn_consensus::MemberId, &firn_control::GroupMember)| {
                format!("{id}={:?} on {}", one.role, one.node)
            };
            let members: Vec<_> = group.members.iter().map(member).collect();
            let leader = group.writer.map_or("nobody".to_owned(), |writer| writer.to_string());
            lines.push(format!("group {id}: {}; {leader} leads", members.join(", ")));
        }
        for (id, chunk) in catalog.chunks() {
            let replica = |(node, one): (&NodeId, &firn_control::Replica)| match one.state {
                ReplicaState::InService => node.to_string(),
                other => format!("{node} {other:?}"),
            };
            let replicas: Vec<_> = chunk.replicas.iter().map(replica).collect();
            let end = if chunk.end == firn_base::PageNo::NONE {
                "end".to_owned()
            } else {
                chunk.end.to_string()
            };
            lines.push(format!(
                "chunk {id}: space {}, pages {} to {end}, on {}",
                chunk.space,
                chunk.first,
                replicas.join(", ")
            ));
        }
        lines.iter().for_each(|line| self.line(line));
    }

    fn status(&mut self) {
        let leader = &self.world.controls[self.world.leader].controller;
        for status in leader.operation_statuses() {
            let mut text = format!("{} ({:?}) {}", status.operation, status.reason, status.text);
            if let Some(progress) = status.progress {
                write!(text, ", {} of {} bytes", progress.done, progress.total).unwrap();
            }
            if let Some(reason) = status.waits_for {
                write!(text, ", waits: {reason}").unwrap();
            }
            self.line(&text);
        }
    }
}
