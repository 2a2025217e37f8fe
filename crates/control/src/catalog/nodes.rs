//! Nodes that join, start, fail and leave.

use std::collections::BTreeSet;

use super::Catalog;
use crate::chunk::ReplicaState;
use crate::identifiers::{DirectoryId, NodeId};
use crate::node::{Health, Node, NodeRole, Release};
use crate::proposal::{Join, Started};
use crate::refusal::{NextStep, Refusal};

/// The most bytes of a name, a zone or an address.
const TEXT_BYTES: usize = 255;
/// Numbers of nodes are below this one.
const MOST_NUMBER: u64 = 1 << 32;

impl Catalog {
    pub(super) fn join(&mut self, join: &Join) -> Result<NodeId, Refusal> {
        self.check_join(join)?;
        let same_name = self.nodes.iter().find(|(_, node)| node.name == join.name);
        if let Some((id, node)) = same_name {
            // The answer to the first request was lost.
            if node.directory == join.directory {
                return Ok(*id);
            }
            let (name, address) = (node.name.clone(), node.address.clone());
            return Err(Refusal::NameTaken { name, node: *id, address });
        }
        self.check_directory_is_free(join.directory)?;
        let votes = |node: &Node| node.zone == join.zone && !node.has(NodeRole::Standby);
        if join.roles.contains(&NodeRole::Standby) && self.nodes.values().any(votes) {
            return Err(Refusal::ZoneVotes { zone: join.zone.clone() });
        }
        let id = self.add_node(join)?;
        // A standby is one as a whole.
        if self.is_standby_zone(&join.zone) {
            let node = self.nodes.get_mut(&id).expect("just added");
            node.roles.insert(NodeRole::Standby);
        }
        Ok(id)
    }

    /// Whether the zone follows the others.
    fn is_standby_zone(&self, zone: &str) -> bool {
        let mut nodes = self.nodes.values();
        nodes.any(|node| node.zone == zone && node.has(NodeRole::Standby))
    }

    /// A node more, under the number that it wants or the next one. A number that was given before
    /// and is free is given to who wants it, because a certificate has it for good: a node that was
    /// removed may join again with an empty directory.
    pub(super) fn add_node(&mut self, join: &Join) -> Result<NodeId, Refusal> {
        let id = join.number.unwrap_or(NodeId(self.next_node));
        if id.0 >= MOST_NUMBER {
            return Err(Refusal::Setting("nodes have numbers below 2^32"));
        }
        if let Some(known) = self.nodes.get(&id) {
            return Err(Refusal::NumberTaken { number: id, name: known.name.clone() });
        }
        self.next_node = self.next_node.max(id.0 + 1);
        self.nodes.insert(id, new_node(join));
        Ok(id)
    }

    fn check_directory_is_free(&self, directory: DirectoryId) -> Result<(), Refusal> {
        if directory == DirectoryId::UNKNOWN {
            let (value, rule) = ("0".to_owned(), "a node draws a number for it");
            return Err(Refusal::Malformed { what: "the directory", value, rule });
        }
        match self.nodes.values().find(|node| node.directory == directory) {
            Some(node) => Err(Refusal::OtherDirectory { name: node.name.clone() }),
            None => Ok(()),
        }
    }

    pub(super) fn check_join(&self, join: &Join) -> Result<(), Refusal> {
        if let Some(theirs) = join.cluster.filter(|theirs| *theirs != self.cluster) {
            let (name, ours) = (join.name.clone(), self.cluster);
            return Err(Refusal::OtherCluster { name, theirs, ours });
        }
        check_name("the name", &join.name)?;
        check_name("the zone", &join.zone)?;
        check_address(&join.address)?;
        join.client_address.as_deref().map_or(Ok(()), check_address)?;
        if join.roles.is_empty() {
            let (value, rule) = (String::new(), "a node has at least one role");
            return Err(Refusal::Malformed { what: "the roles", value, rule });
        }
        if join.roles.contains(&NodeRole::Page) && join.capacity == 0 {
            let (value, rule) = ("0".to_owned(), "a page node has room for pages, in bytes");
            return Err(Refusal::Malformed { what: "the capacity", value, rule });
        }
        self.check_release(&join.release, None)
    }

    /// Whether all nodes but `except` understand `release`.
    pub(super) fn check_release(
        &self,
        release: &Release,
        except: Option<NodeId>,
    ) -> Result<(), Refusal> {
        let theirs = release.protocols;
        if theirs.oldest > theirs.newest {
            let (value, rule) = (theirs.to_string(), "the oldest comes first");
            return Err(Refusal::Malformed { what: "the protocols", value, rule });
        }
        let other = self
            .nodes
            .iter()
            .find(|(id, node)| Some(**id) != except && !node.release.protocols.overlaps(theirs));
        other.map_or(Ok(()), |(_, node)| {
            Err(Refusal::Protocols {
                release: *release,
                theirs,
                name: node.name.clone(),
                other: node.release,
                ours: node.release.protocols,
            })
        })
    }

    pub(super) fn start(&mut self, started: &Started) -> Result<(), Refusal> {
        let id = started.node;
        if started.cluster != self.cluster {
            let (theirs, ours) = (started.cluster, self.cluster);
            return Err(Refusal::OtherCluster { name: id.to_string(), theirs, ours });
        }
        let node = self.node(id)?;
        match node.directory {
            DirectoryId::UNKNOWN => self.check_directory_is_free(started.directory)?,
            known if known == started.directory => {}
            _ => return Err(Refusal::OtherDirectory { name: node.name.clone() }),
        }
        if started.incarnation < node.incarnation {
            return Err(Refusal::OldIncarnation(id));
        }
        check_address(&started.address)?;
        started.client_address.as_deref().map_or(Ok(()), check_address)?;
        self.check_release(&started.release, Some(id))?;
        let node = self.nodes.get_mut(&id).expect("looked up above");
        node.directory = started.directory;
        node.incarnation = started.incarnation;
        node.address.clone_from(&started.address);
        node.client_address.clone_from(&started.client_address);
        node.release = started.release;
        Ok(())
    }

    pub(super) fn set_health(
        &mut self,
        id: NodeId,
        incarnation: u64,
        health: Health,
        flaps: u8,
    ) -> Result<(), Refusal> {
        // A report of the life before says nothing about this one.
        if self.node(id)?.incarnation != incarnation {
            return Err(Refusal::OldIncarnation(id));
        }
        let node = self.nodes.get_mut(&id).expect("looked up above");
        (node.health, node.flaps) = (health, flaps);
        Ok(())
    }

    pub(super) fn remove(&mut self, id: NodeId) -> Result<(), Refusal> {
        let node = self.node(id)?;
        let chunks = self.chunks_on(id).count();
        let groups = self.groups.values().filter(|group| group.member_on(id).is_some()).count();
        if chunks + groups > 0 {
            let next = match node.health {
                _ if self.has_only_replica(id) && !node.is_up() => NextStep::Restore,
                Health::Down => NextStep::WaitUntilCopied,
                _ => NextStep::Drain,
            };
            return Err(Refusal::NodeInUse { name: node.name.clone(), chunks, groups, next });
        }
        let coming = self.operations.iter().find(|(_, operation)| operation.kind.brings_to(id));
        if let Some((operation, _)) = coming {
            return Err(Refusal::Busy(*operation));
        }
        self.nodes.remove(&id);
        Ok(())
    }

    /// Whether some chunk is in service on this node alone.
    fn has_only_replica(&self, id: NodeId) -> bool {
        self.chunks.values().any(|chunk| chunk.nodes_in(ReplicaState::InService).eq([id]))
    }

    /// The known node with that id, if it has `role`.
    pub(super) fn node_with(&self, id: NodeId, role: NodeRole) -> Result<&Node, Refusal> {
        let node = self.node(id)?;
        if node.has(role) {
            return Ok(node);
        }
        Err(Refusal::LacksRole { name: node.name.clone(), role })
    }

    pub(super) fn check_nodes(&self) -> Option<&'static str> {
        let names: BTreeSet<_> = self.nodes.values().map(|node| &node.name).collect();
        let known = || {
            let directories = self.nodes.values().map(|node| node.directory);
            directories.filter(|directory| *directory != DirectoryId::UNKNOWN)
        };
        let directories: BTreeSet<_> = known().collect();
        let unique = names.len() == self.nodes.len() && directories.len() == known().count();
        (!unique).then_some("two nodes have one name or one directory")
    }
}

fn new_node(join: &Join) -> Node {
    Node {
        name: join.name.clone(),
        directory: join.directory,
        address: join.address.clone(),
        client_address: join.client_address.clone(),
        roles: join.roles.clone(),
        zone: join.zone.clone(),
        capacity: join.capacity,
        release: join.release,
        incarnation: 0,
        health: Health::Unknown,
        flaps: 0,
        draining: false,
    }
}

fn check_name(what: &'static str, name: &str) -> Result<(), Refusal> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if (1..=TEXT_BYTES).contains(&name.len()) && name.bytes().all(fits) {
        return Ok(());
    }
    let rule = "use 1 to 255 letters, digits, dots, hyphens and underscores";
    Err(Refusal::Malformed { what, value: name.to_owned(), rule })
}

fn check_address(address: &str) -> Result<(), Refusal> {
    let port = address.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    let has_port = port.is_some_and(|(_, port)| port.parse::<u16>().is_ok_and(|port| port != 0));
    if has_port && address.len() <= TEXT_BYTES {
        return Ok(());
    }
    let (value, rule) = (address.to_owned(), "write HOST:PORT");
    Err(Refusal::Malformed { what: "the address", value, rule })
}
