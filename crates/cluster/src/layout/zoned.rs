//! Layouts of nodes in zones, for tests.

use firn_base::network::NodeId;

use super::Layout;

pub(crate) const ALL: &str = "\"database\", \"log\", \"pages\", \"control\"";

/// A layout of nodes `n1`, `n2` and so on, each with its zone and roles. Those of zone `far` are
/// standbys.
pub(crate) fn zoned<'a>(nodes: impl IntoIterator<Item = (&'a str, &'a str)>) -> Layout {
    let (mut text, mut follows) = (String::new(), "");
    for (number, (zone, roles)) in (1..).zip(nodes) {
        if zone == "far" {
            follows = "asynchronous_zones = [\"far\"]\n";
        }
        text += &format!(
            "[[node]]\nnumber = {number}\nname = \"n{number}\"\nzone = \"{zone}\"\n\
             address = \"10.0.0.{number}:7400\"\nclient_address = \"10.0.0.{number}:3306\"\n\
             roles = [{roles}]\n"
        );
    }
    let cluster = "cluster = \"0000000000000000000000000000000a\"\n";
    Layout::parse(&format!("{cluster}{follows}{text}")).unwrap()
}

/// The layout before the node has got its pages.
pub(crate) fn without_pages(mut layout: Layout, node: NodeId) -> Layout {
    layout.chunks.values_mut().for_each(|part| _ = part.nodes.remove(&node));
    layout
}
