//! The figures of a server as a whole: sessions' counters, connections, and the node's report.

use firn_wire::{ConnectionStatistics, Connections};

use crate::instance::Instance;
use crate::status::{Figure, StatusCounts, node_figures};

/// Counters that monitors read and that never change here, because the feature does not exist.
const NEVER: [&str; 40] = [
    "Binlog_cache_disk_use",
    "Binlog_cache_use",
    "Created_tmp_disk_tables",
    "Created_tmp_files",
    "Delayed_errors",
    "Delayed_insert_threads",
    "Delayed_writes",
    "Flush_commands",
    "Handler_discover",
    "Handler_external_lock",
    "Handler_mrr_init",
    "Handler_prepare",
    "Handler_read_last",
    "Handler_read_prev",
    "Handler_read_rnd",
    "Handler_savepoint",
    "Handler_savepoint_rollback",
    "Key_blocks_not_flushed",
    "Key_blocks_unused",
    "Key_blocks_used",
    "Key_read_requests",
    "Key_reads",
    "Key_write_requests",
    "Key_writes",
    "Not_flushed_delayed_rows",
    "Open_files",
    "Open_streams",
    "Open_tables",
    "Opened_files",
    "Opened_tables",
    "Table_locks_immediate",
    "Threads_cached",
    "Com_stmt_fetch",
    "Select_range_check",
    "Com_stmt_reprepare",
    "Slow_launch_threads",
    "Table_locks_waited",
    "Table_open_cache_overflows",
    "Tc_log_page_waits",
    "Innodb_dblwr_writes",
];

impl Instance {
    /// All figures, for a metrics scrape. `connections` are the server's.
    #[must_use]
    pub fn figures(&self, connections: &Connections) -> Vec<Figure> {
        server_figures(self, connections, None)
    }
}

/// All figures of a server. `own` are the session's counts, which replace the totals where a
/// counter belongs to a session.
pub(crate) fn server_figures(
    instance: &Instance,
    connections: &Connections,
    own: Option<(&StatusCounts, (u64, u64))>,
) -> Vec<Figure> {
    let totals = instance.totals();
    let statistics = connections.statistics();
    let (counts, traffic) = match own {
        Some((counts, traffic)) => (counts, traffic),
        None => (&totals, (statistics.received_bytes, statistics.sent_bytes)),
    };
    let mut figures = counts.figures();
    figures.extend(traffic_figures(traffic));
    figures.extend(connection_figures(connections, &statistics));
    figures.extend(server(instance, counts, &totals));
    // The other figures are shown even if the database node cannot be reached.
    match instance.node.report() {
        Ok(report) => figures.extend(node_figures(&report)),
        Err(error) => tracing::warn!(%error, "the database node's figures are not shown"),
    }
    figures.extend(NEVER.map(|name| Figure::shown(name, 0)));
    figures
}

fn traffic_figures((received, sent): (u64, u64)) -> [Figure; 2] {
    let help = "Bytes between clients and the server";
    [
        Figure::counter("Bytes_received", received, "firn_network_bytes", help)
            .with_label("direction", "received"),
        Figure::counter("Bytes_sent", sent, "firn_network_bytes", help)
            .with_label("direction", "sent"),
    ]
}

fn connection_figures(connections: &Connections, counted: &ConnectionStatistics) -> [Figure; 8] {
    let list = connections.list();
    let running = list.iter().filter(|one| one.command.is_some()).count() as u64;
    let connected = list.len() as u64;
    [
        Figure::counter("Connections", counted.attempts, "firn_connections", "Attempts to connect"),
        Figure::counter(
            "Aborted_connects",
            counted.aborted_logins,
            "firn_connections_aborted_logins",
            "Connections that ended before the login was done",
        ),
        Figure::counter(
            "Aborted_clients",
            counted.aborted_clients,
            "firn_connections_aborted",
            "Connections whose client went without saying so, or that the server ended",
        ),
        Figure::counter(
            "Connection_errors_max_connections",
            counted.refused,
            "firn_connections_refused",
            "Clients that found max_connections others",
        ),
        Figure::gauge(
            "Max_used_connections",
            counted.most,
            "firn_connections_most",
            "Most clients that were connected at once",
        ),
        Figure::gauge("Threads_connected", connected, "firn_connections_open", "Clients connected"),
        Figure::gauge(
            "Threads_running",
            running,
            "firn_connections_active",
            "Clients whose statement runs",
        ),
        Figure::gauge(
            "Prepared_stmt_count",
            counted.prepared,
            "firn_prepared_statements",
            "Prepared statements that are open",
        ),
    ]
}

/// Figures that belong neither to a session nor to the node; and MySQL's other names for existing
/// counters.
fn server(instance: &Instance, counts: &StatusCounts, totals: &StatusCounts) -> Vec<Figure> {
    let uptime = instance.uptime_seconds();
    let examined =
        counts.handler_read_key + counts.handler_read_next + counts.handler_read_rnd_next;
    vec![
        Figure::gauge("Uptime", uptime, "firn_uptime_seconds", "Time since the start"),
        Figure::shown("Uptime_since_flush_status", instance.seconds_since_flush()),
        Figure::shown("Queries", counts.questions),
        Figure::shown("Firn_rows_examined", examined),
        Figure::shown(
            "Innodb_rows_read",
            totals.handler_read_next + totals.handler_read_rnd_next + totals.handler_read_key,
        ),
        Figure::shown("Innodb_rows_inserted", totals.handler_write),
        Figure::shown("Innodb_rows_updated", totals.handler_update),
        Figure::shown("Innodb_rows_deleted", totals.handler_delete),
        Figure::gauge(
            "Firn_plan_cache_plans",
            instance.plans.len() as u64,
            "firn_plan_cache_plans",
            "Plans in the cache",
        ),
        Figure::counter(
            "Firn_plan_cache_evictions",
            instance.plans.evictions(),
            "firn_plan_cache_evictions",
            "Plans that had to go",
        ),
    ]
}
