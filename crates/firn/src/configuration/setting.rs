//! All settings. Each row of [`SETTINGS`] makes a key of the file, an environment variable and a
//! flag, so that all three have the same name by construction.

/// The description of a setting.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Its key in the file; the flag and the variable are derived from it.
    pub(crate) name: &'static str,
    /// The placeholder of the value in the help.
    pub(crate) value_name: &'static str,
    /// The value when no source gives one.
    pub(crate) default: &'static str,
    /// One line of help.
    pub(crate) help: &'static str,
}

impl Setting {
    /// `buffer_pool` → `buffer-pool`.
    pub(crate) fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    /// `buffer_pool` → `FIRN_BUFFER_POOL`.
    pub(crate) fn variable(&self) -> String {
        format!("{VARIABLE_PREFIX}{}", self.name.to_ascii_uppercase())
    }
}

/// The beginning of each environment variable of Firn.
pub(crate) const VARIABLE_PREFIX: &str = "FIRN_";

/// Where a node keeps its files.
pub(crate) const DATA_DIR: &str = "data_dir";
/// Where clients connect.
pub(crate) const LISTEN: &str = "listen";
/// A Unix socket for clients of this machine.
pub(crate) const SOCKET: &str = "socket";
/// Where metrics are scraped.
pub(crate) const METRICS_LISTEN: &str = "metrics_listen";
/// How long statements may run on after the process was told to end.
pub(crate) const SHUTDOWN_PATIENCE_SECONDS: &str = "shutdown_patience_seconds";
/// How many clients can be connected.
pub(crate) const MAX_CONNECTIONS: &str = "max_connections";
/// The certificate that the server shows.
pub(crate) const TLS_CERTIFICATE: &str = "tls_certificate";
/// The certificate's private key.
pub(crate) const TLS_KEY: &str = "tls_key";
/// Where statements may read and write files.
pub(crate) const SECURE_FILE_PRIV: &str = "secure_file_priv";
/// Memory for cached pages.
pub(crate) const BUFFER_POOL: &str = "buffer_pool";
/// Memory for the process as a whole.
pub(crate) const MEMORY_BUDGET: &str = "memory_budget";
/// Size of one file of the log.
pub(crate) const LOG_SEGMENT_SIZE: &str = "log_segment_size";
/// Whether sessions leave their commits to the log.
pub(crate) const ASYNCHRONOUS_COMMIT: &str = "asynchronous_commit";
/// How far back an earlier state stays available.
pub(crate) const HISTORY_WINDOW_SECONDS: &str = "history_window_seconds";
/// Log behind the last materialised point before writers are slowed down.
pub(crate) const MATERIALISE_BEHIND_LIMIT: &str = "materialise_behind_limit";
/// Where the database is archived.
pub(crate) const ARCHIVE: &str = "archive";
/// How long new log waits before it is archived.
pub(crate) const ARCHIVE_INTERVAL_SECONDS: &str = "archive_interval_seconds";
/// How far back moments of the archive are kept.
pub(crate) const ARCHIVE_WINDOW_HOURS: &str = "archive_window_hours";
/// Log that is kept while the archive is away.
pub(crate) const ARCHIVE_LOG_LIMIT: &str = "archive_log_limit";
/// The nodes of the cluster that the process belongs to.
pub(crate) const CLUSTER_LAYOUT: &str = "cluster_layout";
/// Which node of the cluster the process is.
pub(crate) const NODE_NAME: &str = "node_name";
/// Control nodes of a cluster that the process joins.
pub(crate) const JOIN: &str = "join";
/// What the process does for the cluster that it joins.
pub(crate) const ROLE: &str = "role";
/// What fails together with the process.
pub(crate) const ZONE: &str = "zone";
/// Whether the zone of the process follows the others.
pub(crate) const ASYNCHRONOUS_ZONE: &str = "asynchronous_zone";
/// Where the process listens for the other nodes of the cluster.
pub(crate) const CLUSTER_LISTEN: &str = "cluster_listen";
/// Where other nodes of the cluster reach a process that joins.
pub(crate) const CLUSTER_ADDRESS: &str = "cluster_address";
/// The node's certificates.
pub(crate) const CLUSTER_CERTIFICATES: &str = "cluster_certificates";
/// How long snapshots of a replica may hold up the writer's purge.
pub(crate) const REPLICA_SNAPSHOT_SECONDS: &str = "replica_snapshot_seconds";
/// For how long nobody uses a cluster before it pauses.
pub(crate) const PAUSE_AFTER_IDLE_SECONDS: &str = "pause_after_idle_seconds";
/// How long clients wait for a node that writes.
pub(crate) const WRITER_WAIT_SECONDS: &str = "writer_wait_seconds";
/// The least important events that are logged.
pub(crate) const LOG_LEVEL: &str = "log_level";

/// All settings, in the order in which help and listings show them.
pub(crate) const SETTINGS: [Setting; 32] = [
    Setting {
        name: DATA_DIR,
        value_name: "DIR",
        default: "data",
        help: "Directory of the node's files; created if it does not exist",
    },
    Setting {
        name: LISTEN,
        value_name: "HOST:PORT",
        default: "127.0.0.1:3306",
        help: "Where MySQL clients connect; port 0 takes a free one",
    },
    Setting {
        name: SOCKET,
        value_name: "FILE",
        default: "",
        help: "Unix socket for clients of this machine; none if empty",
    },
    Setting {
        name: MAX_CONNECTIONS,
        value_name: "NUMBER",
        default: "10000",
        help: "How many clients can be connected at once",
    },
    Setting {
        name: METRICS_LISTEN,
        value_name: "HOST:PORT",
        default: "",
        help: "Where Prometheus scrapes /metrics, and probes ask /live and /ready; nowhere if empty",
    },
    Setting {
        name: SHUTDOWN_PATIENCE_SECONDS,
        value_name: "SECONDS",
        default: "10",
        help: "How long statements may run on after SIGTERM before they are interrupted",
    },
    Setting {
        name: TLS_CERTIFICATE,
        value_name: "FILE",
        default: "",
        help: "Certificate in PEM; a self-signed one is made at each start if empty",
    },
    Setting {
        name: TLS_KEY,
        value_name: "FILE",
        default: "",
        help: "Private key of the certificate, in PEM",
    },
    Setting {
        name: SECURE_FILE_PRIV,
        value_name: "DIR",
        default: "",
        help: "Directory below which SELECT … INTO OUTFILE writes and LOAD DATA reads; none if empty",
    },
    Setting {
        name: BUFFER_POOL,
        value_name: "SIZE",
        default: "512M",
        help: "Memory for cached pages",
    },
    Setting {
        name: MEMORY_BUDGET,
        value_name: "SIZE",
        default: "0",
        help: "Memory for the whole process; 0: the buffer pool and what the rest needs beside it",
    },
    Setting {
        name: LOG_SEGMENT_SIZE,
        value_name: "SIZE",
        default: "64M",
        help: "Size of one file of the log",
    },
    Setting {
        name: ASYNCHRONOUS_COMMIT,
        value_name: "WHEN",
        default: "off",
        help: "Whether sessions leave their commits to the log: off, on, or auto, when many commit",
    },
    Setting {
        name: HISTORY_WINDOW_SECONDS,
        value_name: "SECONDS",
        default: "0",
        help: "How far back an earlier state stays available; 0: only the current state",
    },
    Setting {
        name: MATERIALISE_BEHIND_LIMIT,
        value_name: "SIZE",
        default: "1G",
        help: "Log behind the last materialised point before writers are slowed down",
    },
    Setting {
        name: ARCHIVE,
        value_name: "URL",
        default: "",
        help: "Where log and pages are archived, such as file:///backup/firn; nowhere if empty",
    },
    Setting {
        name: ARCHIVE_INTERVAL_SECONDS,
        value_name: "SECONDS",
        default: "10",
        help: "How long new log waits before it is archived",
    },
    Setting {
        name: ARCHIVE_WINDOW_HOURS,
        value_name: "HOURS",
        default: "168",
        help: "How far back every moment can be restored from the archive",
    },
    Setting {
        name: ARCHIVE_LOG_LIMIT,
        value_name: "SIZE",
        default: "16G",
        help: "Log that is kept for an archive that is away; beyond it, the archive gets a gap",
    },
    Setting {
        name: CLUSTER_LAYOUT,
        value_name: "FILE",
        default: "",
        help: "Layout of the cluster that this process belongs to; it is a server of its own if empty",
    },
    Setting {
        name: NODE_NAME,
        value_name: "NAME",
        default: "",
        help: "Which node of the cluster this process is",
    },
    Setting {
        name: JOIN,
        value_name: "HOST:PORT,…",
        default: "",
        help: "Control nodes of a running cluster that this process joins; once is enough, the directory remembers it",
    },
    Setting {
        name: ROLE,
        value_name: "ROLE+…",
        default: "",
        help: "What a process that joins does: pages, log, database and control as database+log+pages, or replica or proxy alone",
    },
    Setting {
        name: ZONE,
        value_name: "NAME",
        default: "default",
        help: "What fails together with a process that joins, such as its data centre",
    },
    Setting {
        name: ASYNCHRONOUS_ZONE,
        value_name: "SWITCH",
        default: "off",
        help: "Whether a zone that begins with this process follows the others: off or on",
    },
    Setting {
        name: CLUSTER_LISTEN,
        value_name: "HOST:PORT",
        default: "",
        help: "Where the process listens for the other nodes of the cluster; where they reach it if empty",
    },
    Setting {
        name: CLUSTER_ADDRESS,
        value_name: "HOST:PORT",
        default: "",
        help: "Where the other nodes of the cluster reach a process that joins; where it listens if empty",
    },
    Setting {
        name: CLUSTER_CERTIFICATES,
        value_name: "DIR",
        default: "",
        help: "Directory of the node's certificates (firn admin certificates node); plaintext on this machine if empty",
    },
    Setting {
        name: REPLICA_SNAPSHOT_SECONDS,
        value_name: "SECONDS",
        default: "3600",
        help: "Older snapshots of a replica are refused, so that the writer can purge; 0: no limit",
    },
    Setting {
        name: PAUSE_AFTER_IDLE_SECONDS,
        value_name: "SECONDS",
        default: "0",
        help: "Close engine and replicas of a cluster that nobody has used for so long; 0: never",
    },
    Setting {
        name: WRITER_WAIT_SECONDS,
        value_name: "SECONDS",
        default: "10",
        help: "How long clients of a cluster's node wait while no node writes",
    },
    Setting {
        name: LOG_LEVEL,
        value_name: "LEVEL",
        default: "warn",
        help: "The least important events that are logged to standard error: off, error, warn, info, debug or trace",
    },
];

pub(crate) fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}
