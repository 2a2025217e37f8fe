//! A node's identity within its certificate: a URI among the subject's alternative names.
//!
//! ```text
//!   firn://CLUSTER/NODE/NAME/ROLES      of a node; ROLES are the bits in hexadecimal
//!   firn://CLUSTER                      of the cluster's authority
//! ```

use firn_base::network::{ClusterId, NodeId, NodeIdentity, Roles, identity::is_node_name};

/// A name that all nodes have: the library asks for one. Nodes are told apart by their identity.
pub(crate) const NODE_DNS_NAME: &str = "node.firn";

const SCHEME: &str = "firn://";

/// The URI of a node.
pub(crate) fn node_uri(identity: &NodeIdentity) -> String {
    let NodeIdentity { cluster, node, name, roles } = identity;
    format!("{SCHEME}{cluster}/{node}/{name}/{:x}", roles.0)
}

/// The URI of an authority.
pub(crate) fn cluster_uri(cluster: ClusterId) -> String {
    format!("{SCHEME}{cluster}")
}

/// Reads a node's URI; `None` for any other.
pub(crate) fn read_node(uri: &str) -> Option<NodeIdentity> {
    let mut parts = uri.strip_prefix(SCHEME)?.split('/');
    let cluster = parts.next()?.parse().ok()?;
    let node = NodeId(parts.next()?.parse().ok()?);
    let name = parts.next().filter(|name| is_node_name(name))?.to_owned();
    let roles = Roles(u32::from_str_radix(parts.next()?, 16).ok()?);
    let identity = NodeIdentity { cluster, node, name, roles };
    // One way of writing each, so that two certificates of one node look alike.
    (parts.next().is_none() && node_uri(&identity) == uri).then_some(identity)
}

/// Reads an authority's URI; `None` for any other.
pub(crate) fn read_cluster(uri: &str) -> Option<ClusterId> {
    uri.strip_prefix(SCHEME)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use firn_base::network::Role;

    use super::*;

    #[test]
    fn identities_are_read_as_they_are_written() {
        let cluster = ClusterId(0xc1);
        let roles = Roles(Roles::of(&[Role::Log, Role::Pages]).0 | 1 << 20);
        let identity = NodeIdentity { cluster, node: NodeId(7), name: "db-7".to_owned(), roles };
        let uri = node_uri(&identity);
        assert_eq!(uri, "firn://000000000000000000000000000000c1/7/db-7/10000c");
        assert_eq!(read_node(&uri), Some(identity));
        assert_eq!(read_cluster(&cluster_uri(cluster)), Some(cluster));
        assert_eq!(read_cluster(&uri), None);
        for other in [
            cluster_uri(cluster),
            uri.replace("/7/", "/07/"),
            uri.replace("db-7", "db 7"),
            format!("{uri}/more"),
            uri.replace("firn:", "http:"),
            uri.replace("10000c", "10000C"),
        ] {
            assert_eq!(read_node(&other), None, "{other}");
        }
    }
}
