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
//! roles = ["database", "log", "pages"]
//! ```
//!
//! A node keeps its number for ever: it is the node's id in the log group.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::ops::Range;

use firn_base::network::identity::is_node_name;
use firn_base::network::{ClusterId, NodeId, NodeIdentity, Role, Roles};
use firn_consensus::{MemberId, Members, Role as MemberRole};
use firn_page_service::client::MAX_COPIES;
use toml::de::{DeTable, DeValue};

/// The nodes of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    pub cluster: ClusterId,
    nodes: BTreeMap<NodeId, NodeEntry>,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq)]
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

    /// The node's id in the log group.
    #[must_use]
    pub fn member(&self) -> MemberId {
        MemberId(self.number.0)
    }

    /// What the node is in the log group, if it is a member. Only a node that can run an engine may
    /// lead.
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
        let mut layout = Layout { cluster, nodes: BTreeMap::new() };
        let refuse = |reason| LayoutError { line: 0, reason };
        for node in nodes {
            layout.add(node).map_err(refuse)?;
        }
        layout.check().map_err(refuse)?;
        Ok(layout)
    }

    fn add(&mut self, node: NodeEntry) -> Result<(), String> {
        let NodeEntry { number, name, address, .. } = &node;
        if number.0 == 0 {
            return Err("number 0 is reserved; choose another number".to_owned());
        }
        if !is_node_name(name) {
            return Err(format!(
                "'{name}' is no name of a node: letters, digits, '.', '_' and '-', at most 63"
            ));
        }
        for other in self.nodes.values() {
            if other.number == *number || other.name == *name || other.address == *address {
                let other = &other.name;
                return Err(format!("'{name}' has the number, name or address of '{other}'"));
            }
        }
        if node.has(Role::Database) && !node.has(Role::Log) {
            return Err(format!("'{name}' has the role database and needs the role log as well"));
        }
        if node.has(Role::Database) && node.client_address.is_none() {
            return Err(format!("'{name}' has the role database and needs a client_address"));
        }
        if node.has(Role::Replica) && node.roles != Roles::of(&[Role::Replica]) {
            return Err(format!("'{name}' has the role replica and can have no other role"));
        }
        if node.has(Role::Replica) && node.client_address.is_none() {
            return Err(format!("'{name}' has the role replica and needs a client_address"));
        }
        self.nodes.insert(node.number, node);
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        for role in [Role::Database, Role::Pages] {
            if self.with_role(role).next().is_none() {
                return Err(format!("no node has the role {}", role.name()));
            }
        }
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

    /// The founders of the log group.
    #[must_use]
    pub fn members(&self) -> Members {
        let member = |node: &NodeEntry| Some((node.member(), node.member_role()?));
        Members::new(self.nodes.values().filter_map(member)).expect("a database node votes")
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
        let mut layout = Layout { cluster, nodes: BTreeMap::new() };
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
        layout.check().map_err(|reason| self.refuse(&whole, reason))?;
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
