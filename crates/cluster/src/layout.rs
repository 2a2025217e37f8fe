//! Which nodes a cluster has.
//!
//! ```toml
//! cluster = "5f0c…"                      # 32 hexadecimal digits
//!
//! [[node]]
//! number = 1
//! name = "node-1"
//! address = "10.0.0.1:7400"              # where the other nodes reach it
//! client_address = "10.0.0.1:3306"       # where clients reach it, while its engine runs
//! roles = ["database", "log", "pages", "control"]
//! ```
//!
//! A node keeps its number for ever. The file says what a cluster begins with, and the founders of
//! its groups have the numbers of their nodes as members. Later layouts are those of control's
//! catalog (`catalog`), where nodes and members come and go.

pub(crate) mod catalog;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::net::SocketAddr;
use std::ops::Range;

use firn_base::network::identity::is_node_name;
use firn_base::network::{ClusterId, NodeId, NodeIdentity, Role, Roles};
use firn_consensus::{MemberId, Members, Role as MemberRole};
use firn_page_service::client::MAX_COPIES;
use serde::{Deserialize, Serialize};
use toml::de::{DeTable, DeValue};

/// The nodes of a cluster, and which of them are members of its groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    pub cluster: ClusterId,
    nodes: BTreeMap<NodeId, NodeEntry>,
    /// The members of the log group.
    log: BTreeMap<MemberId, LogEntry>,
    /// The members of the control group.
    control: BTreeMap<MemberId, NodeId>,
    /// The nodes that have all pages, and answer reads of them.
    pages: BTreeSet<NodeId>,
}

/// A member of the log group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogEntry {
    pub node: NodeId,
    pub role: MemberRole,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeEntry {
    pub number: NodeId,
    pub name: String,
    /// Where the other nodes reach it.
    pub address: SocketAddr,
    /// Where clients reach it while its engine runs. Every node with the role `database` or
    /// `replica` has one.
    pub client_address: Option<SocketAddr>,
    pub roles: Roles,
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

    /// The text of the layout, as [`Layout::parse`] reads it.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("cluster = \"{}\"\n", self.cluster);
        for node in self.nodes.values() {
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                "\n[[node]]\nnumber = {}\nname = \"{}\"\naddress = \"{}\"\n",
                node.number, node.name, node.address
            );
            if let Some(address) = node.client_address {
                let _ = writeln!(text, "client_address = \"{address}\"");
            }
            let roles: Vec<_> = Role::ALL.into_iter().filter(|role| node.has(*role)).collect();
            let roles: Vec<_> = roles.iter().map(|role| format!("\"{}\"", role.name())).collect();
            let _ = writeln!(text, "roles = [{}]", roles.join(", "));
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
    ) -> Result<Layout, LayoutError> {
        let mut layout = Layout::empty(cluster);
        let refuse = |reason| LayoutError { line: 0, reason };
        for node in nodes {
            layout.add(node).map_err(refuse)?;
        }
        layout.found().map_err(refuse)?;
        Ok(layout)
    }

    fn empty(cluster: ClusterId) -> Layout {
        let (nodes, log) = (BTreeMap::new(), BTreeMap::new());
        Layout { cluster, nodes, log, control: BTreeMap::new(), pages: BTreeSet::new() }
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
    fn found(&mut self) -> Result<(), String> {
        for role in [Role::Database, Role::Pages, Role::Control] {
            if self.with_role(role).next().is_none() {
                return Err(format!("no node has the role {}", role.name()));
            }
        }
        let nodes = || self.nodes.values().map(|node| (MemberId(node.number.0), node));
        let log = nodes().filter_map(|(member, node)| {
            Some((member, LogEntry { node: node.number, role: node.member_role()? }))
        });
        let control = nodes().filter(|(_, node)| node.has(Role::Control));
        let control = control.map(|(member, node)| (member, node.number)).collect();
        (self.log, self.control) = (log.collect(), control);
        self.pages = self.with_role(Role::Pages).map(|node| node.number).collect();
        let copies = self.with_role(Role::Pages).count();
        if copies > MAX_COPIES {
            return Err(format!("{copies} nodes have the role pages, at most {MAX_COPIES} may"));
        }
        Ok(())
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

    /// The node of this name.
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

    /// The member of the log group that runs on a node.
    #[must_use]
    pub fn log_member_on(&self, node: NodeId) -> Option<MemberId> {
        self.log.iter().find(|(_, one)| one.node == node).map(|(member, _)| *member)
    }

    /// Whether a node has all pages.
    #[must_use]
    pub fn has_pages(&self, node: NodeId) -> bool {
        self.pages.contains(&node)
    }

    /// The nodes that have all pages.
    pub fn page_nodes(&self) -> impl Iterator<Item = &NodeEntry> {
        self.pages.iter().filter_map(|node| self.nodes.get(node))
    }

    /// The members of the control group, with their nodes.
    pub fn control_members(&self) -> impl Iterator<Item = (MemberId, &NodeEntry)> {
        self.control.iter().filter_map(|(member, node)| Some((*member, self.nodes.get(node)?)))
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
    if node.has(Role::Database) && !node.has(Role::Log) {
        return Some(format!("'{name}' has the role database and needs the role log as well"));
    }
    if node.has(Role::Database) && node.client_address.is_none() {
        return Some(format!("'{name}' has the role database and needs a client_address"));
    }
    if node.has(Role::Replica) && node.roles != Roles::of(&[Role::Replica]) {
        return Some(format!("'{name}' has the role replica and can have no other role"));
    }
    if node.has(Role::Replica) && node.client_address.is_none() {
        return Some(format!("'{name}' has the role replica and needs a client_address"));
    }
    None
}

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
        self.check_keys(&table, &["cluster", "node"])?;
        let cluster = self.string(&table, &whole, "cluster")?;
        let cluster = cluster.parse().map_err(|error| self.refuse(&whole, format!("{error}")))?;
        let mut layout = Layout::empty(cluster);
        let Some((_, nodes)) = table.iter().find(|(key, _)| key.get_ref() == "node") else {
            return Err(self.refuse(&whole, "there is no [[node]]".to_owned()));
        };
        let DeValue::Array(nodes) = nodes.get_ref() else {
            return Err(self.refuse(&nodes.span(), "write [[node]] for each node".to_owned()));
        };
        for node in nodes {
            let DeValue::Table(fields) = node.get_ref() else {
                return Err(self.refuse(&node.span(), "write [[node]] for each node".to_owned()));
            };
            let entry = self.node(fields, &node.span())?;
            layout.add(entry).map_err(|reason| self.refuse(&node.span(), reason))?;
        }
        layout.found().map_err(|reason| self.refuse(&whole, reason))?;
        Ok(layout)
    }

    fn node(&self, fields: &DeTable<'_>, span: &Range<usize>) -> Result<NodeEntry, LayoutError> {
        self.check_keys(fields, &["number", "name", "address", "client_address", "roles"])?;
        let has_clients = fields.iter().any(|(key, _)| key.get_ref() == "client_address");
        Ok(NodeEntry {
            number: self.number(fields, span)?,
            name: self.string(fields, span, "name")?,
            address: self.address(fields, span, "address")?,
            client_address: has_clients
                .then(|| self.address(fields, span, "client_address"))
                .transpose()?,
            roles: self.roles(fields, span)?,
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
    ) -> Result<SocketAddr, LayoutError> {
        let (_, span) = self.value(table, whole, key)?;
        let text = self.string(table, whole, key)?;
        let expected = |_| self.refuse(&span, format!("{key} is an address such as 10.0.0.1:7400"));
        text.parse().map_err(expected)
    }

    fn number(&self, table: &DeTable<'_>, whole: &Range<usize>) -> Result<NodeId, LayoutError> {
        let (value, span) = self.value(table, whole, "number")?;
        let number = match value {
            DeValue::Integer(digits) => digits.as_str().parse().ok(),
            _ => None,
        };
        let number = number.ok_or_else(|| self.refuse(&span, "number is a number".to_owned()))?;
        Ok(NodeId(number))
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

    fn refuse(&self, span: &Range<usize>, reason: String) -> LayoutError {
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        LayoutError { line, reason }
    }
}

#[cfg(test)]
mod tests;
