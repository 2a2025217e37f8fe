//! Which nodes a cluster has.
//!
//! ```toml
//! cluster = "5f0c…"                      # 32 hexadecimal digits
//! page_chunks = 16                       # parts of all pages; 1 if it is not there
//! page_copies = 2                        # nodes of each part; all nodes with the role if not
//! page_bounds = [2147483647, …]          # instead of page_chunks: where parts begin ([`parts`])
//! page_nodes = [[1, 2], [1, 4], …]       # instead of page_copies: by number, those of each part
//! extent_pages = 4096                    # neighbouring pages that lie in one part
//! asynchronous_zones = ["west"]          # these follow, and no commit waits for them
//!
//! [[node]]
//! number = 1
//! name = "node-1"
//! address = "10.0.0.1:7400"              # where the other nodes reach it; a name or an IP
//! client_address = "10.0.0.1:3306"       # where clients reach it
//! roles = ["database", "log", "pages", "control"]
//! zone = "east"                          # what fails together; all nodes without one are in one
//! ```
//!
//! A cluster that begins with what an archive has says so too ([`Origin`]):
//!
//! ```toml
//! [origin]
//! archive = "file:///backup/firn"
//! position = 9827720000
//! transaction_ids = 102400               # all that were handed out by then are below
//! commit_timestamps = 81920
//! ```
//!
//! A node keeps its number for ever. The file says what a cluster begins with, and the founders of
//! its groups have the numbers of their nodes as members. Later layouts are those of control's
//! catalog (`catalog`), where nodes and members come and go.

pub(crate) mod catalog;
pub(crate) mod old;
pub(crate) mod origin;
pub(crate) mod parts;
#[cfg(test)]
pub(crate) mod zoned;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::Range;

use firn_api::Watermarks;
use firn_base::network::identity::is_node_name;
use firn_base::network::{Address, ClusterId, NodeId, NodeIdentity, Role, Roles};
use firn_base::{Cts, Extents, Lsn, PageNo, TrxId};
use firn_consensus::{MemberId, Members, Role as MemberRole};
use firn_control::{ChunkId, MOST_CHUNKS, equal_parts, spread};
use firn_page_service::client::MAX_COPIES;
use serde::{Deserialize, Serialize};
use toml::de::{DeTable, DeValue};

pub use origin::Origin;
use parts::{PAGE_BOUNDS, PAGE_NODES, parts_between};

/// The nodes of a cluster, and which of them are members of its groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    pub cluster: ClusterId,
    nodes: BTreeMap<NodeId, NodeEntry>,
    /// The members of the log group.
    log: BTreeMap<MemberId, LogEntry>,
    /// The members of the control group.
    control: BTreeMap<MemberId, NodeId>,
    /// How pages lie together, and the parts of them.
    pub(crate) extents: Extents,
    chunks: BTreeMap<ChunkId, PagePart>,
    /// What the cluster begins with; `None`: with nothing. Layouts of control's catalog do not say.
    #[serde(skip)]
    origin: Option<Origin>,
}

/// A part of all pages: the extents with places in `first..end`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PagePart {
    pub first: PageNo,
    pub end: PageNo,
    /// The nodes that have the part, and answer reads of it.
    pub nodes: BTreeSet<NodeId>,
}

/// How the pages of a new cluster are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageDivision {
    /// How many chunks there are. They are equal. Those that grow are cut in two later.
    pub chunks: u32,
    /// On how many nodes each chunk is; `None`: on all page nodes.
    pub copies: Option<u32>,
    /// How many neighbouring pages of a space lie in one chunk.
    pub extents: Extents,
}

/// The most chunks of a cluster.
pub const MAX_CHUNKS: u32 = MOST_CHUNKS as u32;
/// With one chunk, how pages lie together says nothing. Old clusters have this in their catalogs.
const ALL_TOGETHER: Extents = Extents { pages: u32::MAX / 2 };

/// The zone of nodes that do not say theirs.
pub const DEFAULT_ZONE: &str = "default";

/// Why a layout has no such origin.
const DIVIDED_ORIGIN: &str =
    "a cluster that begins with an archive has one chunk of all pages; leave page_chunks out";

impl Default for PageDivision {
    fn default() -> PageDivision {
        PageDivision { chunks: 1, copies: None, extents: Extents::DEFAULT }
    }
}

/// What a layout says of its parts in particular.
#[derive(Default)]
struct Places {
    /// Where all but the first begin, if they are not equal.
    bounds: Option<Vec<u32>>,
    /// The nodes of each, if they are not spread.
    nodes: Option<Vec<BTreeSet<NodeId>>>,
}

/// A member of the log group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogEntry {
    pub node: NodeId,
    pub role: MemberRole,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeEntry {
    pub number: NodeId,
    pub name: String,
    /// Where the other nodes reach it: a port of TCP.
    pub address: Address,
    /// Where clients reach it. Every node with the role `database`, `replica` or `proxy` has one.
    pub client_address: Option<Address>,
    pub roles: Roles,
    /// What fails together, such as a data centre.
    pub zone: String,
    /// Its zone follows the others: no commit waits for it, and its members of the log only learn.
    pub is_standby: bool,
}

/// What is wrong with a layout, and in which line of its text, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct LayoutError {
    pub line: usize,
    pub reason: String,
}

impl NodeEntry {
    #[must_use]
    pub fn has(&self, role: Role) -> bool {
        self.roles.has(role)
    }

    /// What the node may be in the log group. Only a node that can run an engine may lead.
    #[must_use]
    pub fn member_role(&self) -> Option<MemberRole> {
        match (self.has(Role::Log), self.has(Role::Database)) {
            (false, _) => None,
            (true, _) if self.is_standby => Some(MemberRole::Learner),
            (true, true) => Some(MemberRole::Voter),
            (true, false) => Some(MemberRole::Logger),
        }
    }
}

impl Layout {
    /// Reads a layout.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Layout, LayoutError> {
        Reader { text }.layout()
    }

    /// The text of the layout that a cluster begins with, as [`Layout::parse`] reads it.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("cluster = \"{}\"\n", self.cluster);
        let division = self.division();
        if let Some(parts) = self.bounds_text() {
            let _ = writeln!(text, "{parts}");
        }
        if division.chunks > 1 || ![ALL_TOGETHER, Extents::DEFAULT].contains(&self.extents) {
            let _ = writeln!(text, "extent_pages = {}", division.extents.pages);
        }
        if !self.is_spread() {
            let _ = writeln!(text, "{PAGE_NODES} = [{}]", self.places_text());
        } else if let Some(copies) = division.copies {
            let _ = writeln!(text, "page_copies = {copies}");
        }
        let standbys: Vec<_> =
            self.standby_zones().iter().map(|zone| format!("\"{zone}\"")).collect();
        if !standbys.is_empty() {
            let _ = writeln!(text, "asynchronous_zones = [{}]", standbys.join(", "));
        }
        if let Some(origin) = &self.origin {
            text += &format!("\n[origin]\n{}", origin.to_text());
        }
        for node in self.nodes.values() {
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                "\n[[node]]\nnumber = {}\nname = \"{}\"\naddress = \"{}\"\n",
                node.number, node.name, node.address
            );
            if let Some(address) = &node.client_address {
                let _ = writeln!(text, "client_address = \"{address}\"");
            }
            let roles: Vec<_> = Role::ALL.into_iter().filter(|role| node.has(*role)).collect();
            let roles: Vec<_> = roles.iter().map(|role| format!("\"{}\"", role.name())).collect();
            let _ = writeln!(text, "roles = [{}]", roles.join(", "));
            if node.zone != DEFAULT_ZONE {
                let _ = writeln!(text, "zone = \"{}\"", node.zone);
            }
        }
        text
    }

    /// A layout of these nodes.
    ///
    /// # Errors
    /// If nodes contradict each other, or no cluster can be made of them. The line is 0.
    pub fn new(
        cluster: ClusterId,
        nodes: impl IntoIterator<Item = NodeEntry>,
        division: PageDivision,
    ) -> Result<Layout, LayoutError> {
        let mut layout = Layout::empty(cluster);
        let refuse = |reason| LayoutError { line: 0, reason };
        for node in nodes {
            layout.add(node).map_err(refuse)?;
        }
        layout.found(division, Places::default()).map_err(refuse)?;
        Ok(layout)
    }

    fn empty(cluster: ClusterId) -> Layout {
        Layout {
            cluster,
            nodes: BTreeMap::new(),
            log: BTreeMap::new(),
            control: BTreeMap::new(),
            extents: ALL_TOGETHER,
            chunks: BTreeMap::new(),
            origin: None,
        }
    }

    /// The same nodes, which begin with what an archive has.
    ///
    /// # Errors
    /// If the pages are divided: an archive is taken as a whole. The line is 0.
    pub fn beginning_with(self, origin: Origin) -> Result<Layout, LayoutError> {
        match self.chunks.len() {
            1 => Ok(Layout { origin: Some(origin), ..self }),
            _ => Err(LayoutError { line: 0, reason: DIVIDED_ORIGIN.to_owned() }),
        }
    }

    /// What the cluster begins with, if it is not empty.
    #[must_use]
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    fn add(&mut self, node: NodeEntry) -> Result<(), String> {
        let NodeEntry { number, name, address, .. } = &node;
        if let Some(problem) = node_problem(&node) {
            return Err(problem);
        }
        for other in self.nodes.values() {
            if other.number == *number || other.name == *name || other.address == *address {
                let other = &other.name;
                return Err(format!("'{name}' has the number, name or address of '{other}'"));
            }
        }
        self.nodes.insert(node.number, node);
        Ok(())
    }

    /// All nodes are there: those with the roles for it become the members of the groups.
    fn found(&mut self, division: PageDivision, places: Places) -> Result<(), String> {
        for role in [Role::Database, Role::Pages, Role::Control] {
            if !self.with_role(role).any(|node| !node.is_standby) {
                return Err(format!("no node has the role {}", role.name()));
            }
            let lacks = |zone: &&&str| !self.with_role(role).any(|node| node.zone == **zone);
            if let Some(zone) = self.standby_zones().iter().find(lacks) {
                return Err(format!("no node of zone '{zone}' has the role {}", role.name()));
            }
        }
        let nodes = || self.nodes.values().map(|node| (MemberId(node.number.0), node));
        let log = nodes().filter_map(|(member, node)| {
            Some((member, LogEntry { node: node.number, role: node.member_role()? }))
        });
        // Those of a standby become control nodes when it takes over.
        let control = nodes().filter(|(_, node)| node.has(Role::Control) && !node.is_standby);
        let control = control.map(|(member, node)| (member, node.number)).collect();
        (self.log, self.control) = (log.collect(), control);
        self.divide(division, places)
    }

    /// Gives each part of the pages its nodes: those of `places`, if they are given.
    fn divide(&mut self, division: PageDivision, places: Places) -> Result<(), String> {
        let PageDivision { chunks, extents, .. } = division;
        if !(1..=MAX_CHUNKS).contains(&chunks) || extents.pages == 0 {
            return Err(format!("page_chunks is 1 to {MAX_CHUNKS}, and extent_pages is above 0"));
        }
        if places.nodes.is_some() && division.copies.is_some() {
            return Err(format!("{PAGE_NODES} says where each part is; leave page_copies out"));
        }
        let nodes = match places.nodes {
            Some(nodes) => self.check_places(nodes, chunks)?,
            None => self.spread_places(division)?,
        };
        let is_open = chunks == 1 && extents == Extents::DEFAULT;
        self.extents = if is_open { ALL_TOGETHER } else { extents };
        if let Some(bounds) =
            places.bounds.as_ref().filter(|bounds| bounds.len() + 1 != chunks as usize)
        {
            let count = bounds.len() + 1;
            return Err(format!("{PAGE_BOUNDS} has {count} parts, and page_chunks is {chunks}"));
        }
        let between = places.bounds.as_deref().and_then(parts_between);
        let parts = between.unwrap_or_else(|| equal_parts(chunks)).into_iter().zip(nodes);
        let parts = parts.map(|((first, end), nodes)| PagePart { first, end, nodes });
        self.chunks = (1..).map(ChunkId).zip(parts).collect();
        self.check_copies()
    }

    /// Spreads the parts over the page nodes.
    fn spread_places(&self, division: PageDivision) -> Result<Vec<BTreeSet<NodeId>>, String> {
        let nodes: BTreeSet<NodeId> = self.with_role(Role::Pages).map(|node| node.number).collect();
        let copies = division.copies.map_or(nodes.len(), |copies| copies as usize);
        if copies == 0 || copies > nodes.len() {
            let count = nodes.len();
            return Err(format!("page_copies is 1 to {count}: so many nodes have the role pages"));
        }
        if copies > MAX_COPIES {
            return Err(format!(
                "{copies} nodes would have the same pages, at most {MAX_COPIES} may; set page_copies"
            ));
        }
        Ok(spread(&nodes, division.chunks as usize, copies))
    }

    /// Checks that `places` has a list for each chunk, of page nodes alone.
    fn check_places(
        &self,
        places: Vec<BTreeSet<NodeId>>,
        chunks: u32,
    ) -> Result<Vec<BTreeSet<NodeId>>, String> {
        if places.len() != chunks as usize {
            let count = places.len();
            return Err(format!("{PAGE_NODES} has {count} lists, and page_chunks is {chunks}"));
        }
        if let Some(place) = places.iter().find(|place| !(1..=MAX_COPIES).contains(&place.len())) {
            let count = place.len();
            return Err(format!(
                "{PAGE_NODES} has {count} nodes in a list; 1 to {MAX_COPIES} may be"
            ));
        }
        let has_pages =
            |number: &NodeId| self.nodes.get(number).is_some_and(|node| node.has(Role::Pages));
        match places.iter().flatten().find(|number| !has_pages(number)) {
            Some(number) => Err(format!("{PAGE_NODES} has {number}, which is no page node")),
            None => Ok(places),
        }
    }

    /// Whether the pages lie as they are spread when a cluster begins.
    fn is_spread(&self) -> bool {
        let places = self.in_order().into_iter().map(|part| &part.nodes);
        self.spread_places(self.division()).is_ok_and(|spread| places.eq(&spread))
    }

    /// Every standby has all pages, and so have the other zones together.
    fn check_copies(&self) -> Result<(), String> {
        let standbys = self.standby_zones().into_iter().map(Some);
        for zone in standbys.chain([None]) {
            let is_there =
                |node: &NodeEntry| zone.map_or(!node.is_standby, |zone| node.zone == zone);
            if self.chunks_missing_on(is_there) > 0 {
                let which = zone.map_or_else(
                    || "the zones that vote".to_owned(),
                    |zone| format!("zone '{zone}'"),
                );
                return Err(format!(
                    "{which} would have no copy of some pages; leave page_copies out, or make it larger"
                ));
            }
        }
        Ok(())
    }

    /// How the pages were divided when the cluster began.
    fn division(&self) -> PageDivision {
        let all = self.with_role(Role::Pages).count();
        let copies = self.chunks.values().map(|part| part.nodes.len()).max().unwrap_or(all);
        let copies = Some(copies as u32).filter(|_| copies != all);
        PageDivision { chunks: self.chunks.len() as u32, copies, extents: self.extents }
    }

    /// All nodes, by number.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeEntry> {
        self.nodes.values()
    }

    /// The nodes with a role, by number.
    pub fn with_role(&self, role: Role) -> impl Iterator<Item = &NodeEntry> {
        self.nodes.values().filter(move |node| node.has(role))
    }

    #[must_use]
    pub fn node(&self, number: NodeId) -> Option<&NodeEntry> {
        self.nodes.get(&number)
    }

    #[must_use]
    pub fn named(&self, name: &str) -> Option<&NodeEntry> {
        self.nodes.values().find(|node| node.name == name)
    }

    /// The members of the log group.
    #[must_use]
    pub fn members(&self) -> Members {
        let members = self.log.iter().map(|(member, one)| (*member, one.role));
        Members::new(members).expect("a group has a voter")
    }

    /// The members of the log group, with their nodes.
    pub fn log_members(&self) -> impl Iterator<Item = (MemberId, &NodeEntry)> {
        self.log.iter().filter_map(|(member, one)| Some((*member, self.nodes.get(&one.node)?)))
    }

    /// The node of a member of the log group.
    pub(crate) fn node_of_member(&self, member: MemberId) -> Option<&NodeEntry> {
        self.nodes.get(&self.log.get(&member)?.node)
    }

    /// The nodes that keep the log and vote.
    pub(crate) fn log_voters(&self) -> impl Iterator<Item = &NodeEntry> {
        let voters = self.log.values().filter(|one| one.role.votes());
        voters.filter_map(|one| self.nodes.get(&one.node))
    }

    /// Where clients find the members of the log group.
    pub(crate) fn log_member_names(&self) -> BTreeMap<MemberId, String> {
        let members = self.log_members();
        members
            .filter_map(|(id, node)| Some((id, node.client_address.as_ref()?.to_string())))
            .collect()
    }

    /// The member of the log group that runs on a node.
    #[must_use]
    pub fn log_member_on(&self, node: NodeId) -> Option<MemberId> {
        self.log.iter().find(|(_, one)| one.node == node).map(|(member, _)| *member)
    }

    /// The parts of the pages.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (ChunkId, &PagePart)> {
        self.chunks.iter().map(|(id, part)| (*id, part))
    }

    /// The chunks that are in service on a node.
    pub(crate) fn chunks_on(&self, node: NodeId) -> impl Iterator<Item = ChunkId> + '_ {
        let parts = self.chunks.iter().filter(move |(_, part)| part.nodes.contains(&node));
        parts.map(|(id, _)| *id)
    }

    /// How many chunks have no copy in service on such nodes.
    pub(crate) fn chunks_missing_on(&self, is_there: impl Fn(&NodeEntry) -> bool) -> usize {
        let is_there = |node: &NodeId| self.nodes.get(node).is_some_and(&is_there);
        self.chunks.values().filter(|part| !part.nodes.iter().any(is_there)).count()
    }

    /// The nodes that have pages, by number.
    pub fn page_nodes(&self) -> impl Iterator<Item = &NodeEntry> {
        let parts = self.chunks.values();
        let nodes: BTreeSet<NodeId> = parts.flat_map(|part| &part.nodes).copied().collect();
        nodes.into_iter().filter_map(|node| self.nodes.get(&node))
    }

    /// The members of the control group, with their nodes.
    pub fn control_members(&self) -> impl Iterator<Item = (MemberId, &NodeEntry)> {
        self.control.iter().filter_map(|(member, node)| Some((*member, self.nodes.get(node)?)))
    }

    /// The cluster of these nodes alone, all of which vote. Its members of the log group have
    /// numbers that were never given.
    ///
    /// # Errors
    /// What none of the nodes has.
    pub(crate) fn of_these(&self, nodes: &BTreeSet<NodeId>) -> Result<Layout, &'static str> {
        let mut layout = Layout { extents: self.extents, ..Layout::empty(self.cluster) };
        let kept = self.nodes.values().filter(|node| nodes.contains(&node.number));
        let kept = kept.map(|node| NodeEntry { is_standby: false, ..node.clone() });
        layout.nodes = kept.map(|node| (node.number, node)).collect();
        let last = self.log.keys().next_back().map_or(0, |member| member.0);
        let log = layout
            .nodes
            .values()
            .filter_map(|node| Some(LogEntry { node: node.number, role: node.member_role()? }));
        layout.log = (last + 1..).map(MemberId).zip(log).collect();
        if !layout.log.values().any(|one| one.role == MemberRole::Voter) {
            return Err("the log and can run an engine");
        }
        let control = layout.with_role(Role::Control).map(|node| node.number);
        layout.control = control.map(|number| (MemberId(number.0), number)).collect();
        if layout.control.is_empty() {
            return Err("the role control");
        }
        for (id, part) in &self.chunks {
            let nodes: BTreeSet<NodeId> = part.nodes.intersection(nodes).copied().collect();
            if nodes.is_empty() {
                return Err("a copy of some pages");
            }
            layout.chunks.insert(*id, PagePart { nodes, ..part.clone() });
        }
        Ok(layout)
    }

    /// Whether two nodes are in different zones.
    pub(crate) fn are_apart(&self, one: NodeId, other: NodeId) -> bool {
        let zone = |node: NodeId| self.nodes.get(&node).map(|node| &node.zone);
        zone(one) != zone(other)
    }

    /// Whether the nodes are in several zones.
    pub(crate) fn has_zones(&self) -> bool {
        let mut zones = self.nodes.values().map(|node| &node.zone);
        let first = zones.next();
        zones.any(|zone| Some(zone) != first)
    }

    /// The zones that follow the others, in order.
    #[must_use]
    pub fn standby_zones(&self) -> BTreeSet<&str> {
        let standbys = self.nodes.values().filter(|node| node.is_standby);
        standbys.map(|node| node.zone.as_str()).collect()
    }

    /// The members whose log a node reads. A standby has only what its own zone has: what else it
    /// got would be ahead of the log with which it takes over. A zone without a member cannot take
    /// over.
    pub(crate) fn log_read_by(&self, reader: NodeId) -> Vec<NodeEntry> {
        let own = self.nodes.get(&reader).filter(|node| node.is_standby);
        let members = self.log_members().map(|(_, node)| node);
        let is_near = |node: &&NodeEntry| own.is_some_and(|own| own.zone == node.zone);
        let near: Vec<NodeEntry> = members.filter(is_near).cloned().collect();
        if near.is_empty() { self.log_voters().cloned().collect() } else { near }
    }

    /// The nodes whose pages need the log of a member on this node: see [`Layout::log_read_by`].
    pub(crate) fn page_nodes_behind(&self, member: NodeId) -> impl Iterator<Item = &NodeEntry> {
        let standby = self.nodes.get(&member).filter(|node| node.is_standby);
        self.page_nodes().filter(move |node| match standby {
            Some(own) => node.zone == own.zone,
            None => !node.is_standby,
        })
    }

    /// How a node introduces itself.
    #[must_use]
    pub fn identity(&self, node: &NodeEntry) -> NodeIdentity {
        NodeIdentity {
            cluster: self.cluster,
            node: node.number,
            name: node.name.clone(),
            roles: node.roles,
        }
    }
}

/// What is wrong with a node, whatever others there are.
pub(crate) fn node_problem(node: &NodeEntry) -> Option<String> {
    let name = &node.name;
    if node.number.0 == 0 {
        return Some("number 0 is reserved; choose another number".to_owned());
    }
    if !is_node_name(name) {
        return Some(format!(
            "'{name}' is no name of a node: letters, digits, '.', '_' and '-', at most 63"
        ));
    }
    if !is_node_name(&node.zone) {
        let zone = &node.zone;
        return Some(format!(
            "'{zone}' is no name of a zone: letters, digits, '.', '_' and '-', at most 63"
        ));
    }
    for address in [Some(&node.address), node.client_address.as_ref()].into_iter().flatten() {
        if let Address::Unix(_) = address {
            return Some(format!("'{name}' has the address {address}, which others cannot reach"));
        }
    }
    if node.has(Role::Database) && !node.has(Role::Log) {
        return Some(format!("'{name}' has the role database and needs the role log as well"));
    }
    if node.has(Role::Database) && node.client_address.is_none() {
        return Some(format!("'{name}' has the role database and needs a client_address"));
    }
    if node.has(Role::Replica) && node.roles != Roles::of(&[Role::Replica]) {
        return Some(format!("'{name}' has the role replica and can have no other role"));
    }
    if node.has(Role::Proxy) && node.roles != Roles::of(&[Role::Proxy]) {
        return Some(format!("'{name}' has the role proxy and can have no other role"));
    }
    if node.has(Role::Proxy) && node.client_address.is_none() {
        return Some(format!("'{name}' has the role proxy and needs a client_address"));
    }
    None
}

/// The key that lists the zones which follow the others.
const ASYNCHRONOUS_ZONES: &str = "asynchronous_zones";

/// Reads the text of a layout.
struct Reader<'a> {
    text: &'a str,
}

impl Reader<'_> {
    fn layout(&self) -> Result<Layout, LayoutError> {
        let table = DeTable::parse(self.text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            self.refuse(&span, error.message().to_owned())
        })?;
        let whole = table.span();
        let table = table.into_inner();
        let division = ["page_chunks", PAGE_BOUNDS, "page_copies", PAGE_NODES, "extent_pages"];
        let known = [&["cluster", "origin", "node", ASYNCHRONOUS_ZONES][..], &division].concat();
        self.check_keys(&table, &known)?;
        let cluster = self.string(&table, &whole, "cluster")?;
        let cluster = cluster.parse().map_err(|error| self.refuse(&whole, format!("{error}")))?;
        let mut layout = Layout::empty(cluster);
        let Some((_, nodes)) = table.iter().find(|(key, _)| key.get_ref() == "node") else {
            return Err(self.refuse(&whole, "there is no [[node]]".to_owned()));
        };
        let DeValue::Array(nodes) = nodes.get_ref() else {
            return Err(self.refuse(&nodes.span(), "write [[node]] for each node".to_owned()));
        };
        let standbys = self.texts(&table, ASYNCHRONOUS_ZONES)?;
        for node in nodes {
            let DeValue::Table(fields) = node.get_ref() else {
                return Err(self.refuse(&node.span(), "write [[node]] for each node".to_owned()));
            };
            let mut entry = self.node(fields, &node.span())?;
            entry.is_standby = standbys.contains(&entry.zone);
            layout.add(entry).map_err(|reason| self.refuse(&node.span(), reason))?;
        }
        if let Some(zone) =
            standbys.iter().find(|zone| !layout.standby_zones().contains(zone.as_str()))
        {
            return Err(self.refuse(&whole, format!("no node is in zone '{zone}'")));
        }
        let (division, nodes) = (self.division(&table)?, self.places(&table)?);
        let places = Places { bounds: self.bounds(&table)?, nodes };
        layout.found(division, places).map_err(|reason| self.refuse(&whole, reason))?;
        layout.origin = match table.iter().find(|(key, _)| key.get_ref() == "origin") {
            None => None,
            Some((_, origin)) => match origin.get_ref() {
                DeValue::Table(fields) => Some(self.origin(fields, &origin.span())?),
                _ => return Err(self.refuse(&origin.span(), "origin is a table".to_owned())),
            },
        };
        if layout.origin.is_some() && layout.chunks.len() > 1 {
            return Err(self.refuse(&whole, DIVIDED_ORIGIN.to_owned()));
        }
        Ok(layout)
    }

    fn origin(&self, fields: &DeTable<'_>, span: &Range<usize>) -> Result<Origin, LayoutError> {
        self.check_keys(fields, &["archive", "position", "transaction_ids", "commit_timestamps"])?;
        Ok(Origin {
            archive: self.string(fields, span, "archive")?,
            position: Lsn(self.number(fields, span, "position")?),
            watermarks: Watermarks {
                trx_id_limit: TrxId(self.number(fields, span, "transaction_ids")?),
                cts_limit: Cts(self.number(fields, span, "commit_timestamps")?),
            },
        })
    }

    fn division(&self, table: &DeTable<'_>) -> Result<PageDivision, LayoutError> {
        let usual = PageDivision::default();
        let number = |key: &str| match table.iter().find(|(name, _)| name.get_ref() == key) {
            None => Ok(None),
            Some((_, value)) => match value.get_ref() {
                DeValue::Integer(digits) => Ok(digits.as_str().parse::<u32>().ok()),
                _ => Ok(None),
            }
            .and_then(|number| {
                let refused = || self.refuse(&value.span(), format!("{key} is a number"));
                number.map(Some).ok_or_else(refused)
            }),
        };
        let extents = number("extent_pages")?.map(|pages| Extents { pages });
        let bounds = self.bounds(table)?.map(|bounds| bounds.len() as u32 + 1);
        Ok(PageDivision {
            chunks: number("page_chunks")?.or(bounds).unwrap_or(usual.chunks),
            copies: number("page_copies")?,
            extents: extents.unwrap_or(usual.extents),
        })
    }

    fn node(&self, fields: &DeTable<'_>, span: &Range<usize>) -> Result<NodeEntry, LayoutError> {
        let known = ["number", "name", "address", "client_address", "roles", "zone"];
        self.check_keys(fields, &known)?;
        let has = |wanted: &str| fields.iter().any(|(key, _)| key.get_ref() == wanted);
        let has_clients = has("client_address");
        Ok(NodeEntry {
            number: NodeId(self.number(fields, span, "number")?),
            name: self.string(fields, span, "name")?,
            address: self.address(fields, span, "address")?,
            client_address: has_clients
                .then(|| self.address(fields, span, "client_address"))
                .transpose()?,
            roles: self.roles(fields, span)?,
            zone: match has("zone") {
                true => self.string(fields, span, "zone")?,
                false => DEFAULT_ZONE.to_owned(),
            },
            is_standby: false,
        })
    }

    fn check_keys(&self, table: &DeTable<'_>, known: &[&str]) -> Result<(), LayoutError> {
        match table.iter().find(|(key, _)| !known.contains(&key.get_ref().as_ref())) {
            None => Ok(()),
            Some((key, _)) => {
                let reason = format!("'{}' is none of {}", key.get_ref(), known.join(", "));
                Err(self.refuse(&key.span(), reason))
            }
        }
    }

    fn value<'t>(
        &self,
        table: &'t DeTable<'_>,
        whole: &Range<usize>,
        key: &str,
    ) -> Result<(&'t DeValue<'t>, Range<usize>), LayoutError> {
        let found = table.iter().find(|(name, _)| name.get_ref() == key);
        let (_, value) = found.ok_or_else(|| self.refuse(whole, format!("{key} is missing")))?;
        Ok((value.get_ref(), value.span()))
    }

    fn string(
        &self,
        table: &DeTable<'_>,
        whole: &Range<usize>,
        key: &str,
    ) -> Result<String, LayoutError> {
        match self.value(table, whole, key)? {
            (DeValue::String(text), _) => Ok(text.as_ref().to_owned()),
            (_, span) => Err(self.refuse(&span, format!("{key} is a text"))),
        }
    }

    fn address(
        &self,
        table: &DeTable<'_>,
        whole: &Range<usize>,
        key: &str,
    ) -> Result<Address, LayoutError> {
        let (_, span) = self.value(table, whole, key)?;
        let text = self.string(table, whole, key)?;
        let expected = |_| {
            let examples = "10.0.0.1:7400 or node-1.example:7400";
            self.refuse(&span, format!("{key} is an address such as {examples}"))
        };
        text.parse().map_err(expected)
    }

    fn number(
        &self,
        table: &DeTable<'_>,
        whole: &Range<usize>,
        key: &str,
    ) -> Result<u64, LayoutError> {
        let (value, span) = self.value(table, whole, key)?;
        let number = match value {
            DeValue::Integer(digits) => digits.as_str().parse().ok(),
            _ => None,
        };
        number.ok_or_else(|| self.refuse(&span, format!("{key} is a number")))
    }

    fn roles(&self, table: &DeTable<'_>, whole: &Range<usize>) -> Result<Roles, LayoutError> {
        let (value, span) = self.value(table, whole, "roles")?;
        let expected = || {
            let names: Vec<_> = Role::ALL.into_iter().map(Role::name).collect();
            self.refuse(&span, format!("roles is a list of {}", names.join(", ")))
        };
        let DeValue::Array(names) = value else { return Err(expected()) };
        let mut roles = Vec::new();
        for name in names {
            let DeValue::String(name) = name.get_ref() else { return Err(expected()) };
            let role = Role::ALL.into_iter().find(|role| role.name() == name.as_ref());
            roles.push(role.ok_or_else(expected)?);
        }
        Ok(Roles::of(&roles))
    }

    /// A list of texts, which may be missing.
    fn texts(&self, table: &DeTable<'_>, key: &str) -> Result<BTreeSet<String>, LayoutError> {
        let Some((_, value)) = table.iter().find(|(name, _)| name.get_ref() == key) else {
            return Ok(BTreeSet::new());
        };
        let texts = match value.get_ref() {
            DeValue::Array(texts) => texts.iter().map(|text| text.get_ref().as_str()).collect(),
            _ => None,
        };
        let texts: Option<Vec<&str>> = texts;
        let expected = || self.refuse(&value.span(), format!("{key} is a list of texts"));
        Ok(texts.ok_or_else(expected)?.into_iter().map(str::to_owned).collect())
    }

    fn refuse(&self, span: &Range<usize>, reason: String) -> LayoutError {
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        LayoutError { line, reason }
    }
}

#[cfg(test)]
mod tests;
