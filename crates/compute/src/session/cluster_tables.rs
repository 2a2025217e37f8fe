//! The content of the virtual tables about the cluster. Their columns are in
//! `firn_sql_catalog::information_schema::cluster`, in the same order.

use firn_api::cluster::{
    ChunkCopy, ClusterMember, ClusterNode, ClusterOperation, ClusterPart, ClusterReport, PartKind,
};
use firn_sql::types::Datum;

/// Whether a table, with its name in capitals, is one about the cluster.
pub(super) fn is_one(table: &str) -> bool {
    let names = [
        "FIRN_NODES",
        "FIRN_CLUSTER_LAG",
        "FIRN_GROUP_MEMBERS",
        "FIRN_CHUNKS",
        "FIRN_CLUSTER_OPERATIONS",
    ];
    names.contains(&table)
}

/// The rows of one of the tables.
pub(super) fn rows(report: &ClusterReport, table: &str) -> Vec<Vec<Datum>> {
    match table {
        "FIRN_NODES" => report.nodes.iter().map(node).collect(),
        "FIRN_CLUSTER_LAG" => report.parts.iter().map(part).collect(),
        "FIRN_GROUP_MEMBERS" => report.members.iter().map(member).collect(),
        "FIRN_CHUNKS" => report.copies.iter().map(copy).collect(),
        _ => report.operations.iter().map(operation).collect(),
    }
}

fn text(text: &str) -> Datum {
    Datum::text(text.as_bytes())
}

fn maybe_text(value: Option<&String>) -> Datum {
    value.map_or(Datum::Null, |value| text(value))
}

fn maybe(value: Option<u64>) -> Datum {
    value.map_or(Datum::Null, Datum::UInt)
}

fn node(node: &ClusterNode) -> Vec<Datum> {
    vec![
        text(&node.name),
        Datum::UInt(node.number),
        text(&node.address),
        maybe_text(node.client_address.as_ref()),
        text(&node.roles),
        maybe_text(node.version.as_ref()),
        maybe_text(node.state.as_ref()),
        maybe(node.since_ms),
        maybe(node.starts),
        maybe_text(node.serves.as_ref()),
        maybe_text(node.error.as_ref()),
    ]
}

fn part(part: &ClusterPart) -> Vec<Datum> {
    vec![
        text(&part.node),
        text(match part.kind {
            PartKind::Log => "log",
            PartKind::Pages => "pages",
            PartKind::Replica => "replica",
            PartKind::Archive => "archive",
        }),
        maybe(part.position.map(|position| position.0)),
        maybe(part.lag_bytes),
        maybe(part.lag_ms),
        maybe(part.kept_from.map(|position| position.0)),
        maybe(part.epoch),
        maybe(part.images_per_second),
        maybe_text(part.error.as_ref()),
    ]
}

fn member(member: &ClusterMember) -> Vec<Datum> {
    vec![
        Datum::UInt(member.group),
        Datum::UInt(member.group_epoch),
        Datum::UInt(member.member),
        text(&member.node),
        text(member.role),
        maybe(member.leads_in),
    ]
}

fn copy(copy: &ChunkCopy) -> Vec<Datum> {
    vec![
        Datum::UInt(copy.chunk),
        Datum::UInt(copy.epoch),
        maybe(copy.space),
        Datum::UInt(copy.first_page),
        maybe(copy.end_page),
        Datum::UInt(copy.group),
        Datum::UInt(copy.bytes),
        Datum::UInt(copy.pages),
        text(&copy.node),
        text(copy.state),
        maybe(copy.position.map(|position| position.0)),
        maybe(copy.lag_bytes),
        maybe(copy.lag_ms),
    ]
}

fn operation(operation: &ClusterOperation) -> Vec<Datum> {
    vec![
        Datum::UInt(operation.number),
        text(&operation.text),
        text(operation.reason),
        maybe(operation.done_bytes),
        maybe(operation.total_bytes),
        maybe_text(operation.waits_for.as_ref()),
    ]
}
