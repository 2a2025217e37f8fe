//! The cluster that a server belongs to, as control and its nodes tell it. A standalone server has
//! no rows here. The session layer makes the rows, with these columns in the same order.

use super::server::fill_session;
use super::{MadeUp, VirtualColumn, long_text, number, schema_table, text};

pub(super) fn all() -> Vec<MadeUp> {
    vec![
        schema_table("FIRN_NODES", node_columns(), &[], |context, _, emit| {
            fill_session(context, "FIRN_NODES", emit)
        }),
        schema_table("FIRN_CLUSTER_LAG", lag_columns(), &[], |context, _, emit| {
            fill_session(context, "FIRN_CLUSTER_LAG", emit)
        }),
        schema_table("FIRN_GROUP_MEMBERS", member_columns(), &[], |context, _, emit| {
            fill_session(context, "FIRN_GROUP_MEMBERS", emit)
        }),
        schema_table("FIRN_CHUNKS", chunk_columns(), &[], |context, _, emit| {
            fill_session(context, "FIRN_CHUNKS", emit)
        }),
        schema_table("FIRN_CLUSTER_OPERATIONS", operation_columns(), &[], |context, _, emit| {
            fill_session(context, "FIRN_CLUSTER_OPERATIONS", emit)
        }),
    ]
}

fn node_columns() -> Vec<VirtualColumn> {
    vec![
        text("NODE", 64),
        number("NODE_ID"),
        text("ADDRESS", 300),
        text("CLIENT_ADDRESS", 300),
        text("ROLES", 64),
        text("VERSION", 32),
        text("STATE", 16),
        number("STATE_SINCE_UNIX_TIME_MS"),
        number("STARTS"),
        text("CLIENTS", 300),
        long_text("ERROR"),
    ]
}

fn lag_columns() -> Vec<VirtualColumn> {
    vec![
        text("NODE", 64),
        text("PART", 16),
        number("POSITION"),
        number("LAG_BYTES"),
        number("LAG_MS"),
        number("KEPT_FROM"),
        number("EPOCH"),
        number("IMAGES_PER_SECOND"),
        long_text("ERROR"),
    ]
}

fn member_columns() -> Vec<VirtualColumn> {
    vec![
        number("GROUP_ID"),
        number("GROUP_EPOCH"),
        number("MEMBER_ID"),
        text("NODE", 64),
        text("ROLE", 16),
        number("LEADS_IN_TERM"),
    ]
}

fn chunk_columns() -> Vec<VirtualColumn> {
    vec![
        number("CHUNK_ID"),
        number("CHUNK_EPOCH"),
        number("SPACE"),
        number("FIRST_PAGE"),
        number("END_PAGE"),
        number("GROUP_ID"),
        number("SIZE_BYTES"),
        number("PAGES"),
        text("NODE", 64),
        text("STATE", 16),
        number("POSITION"),
        number("LAG_BYTES"),
        number("LAG_MS"),
    ]
}

fn operation_columns() -> Vec<VirtualColumn> {
    vec![
        number("OPERATION_ID"),
        long_text("OPERATION"),
        text("REASON", 32),
        number("DONE_BYTES"),
        number("TOTAL_BYTES"),
        long_text("WAITS_FOR"),
    ]
}
