//! The configuration of a process: one TOML file, `FIRN_*` variables and flags, merged and checked
//! before anything is opened.
//!
//! ```text
//!   default  <  file             <  variable            <  flag
//!   512M        buffer_pool="1G"    FIRN_BUFFER_POOL=2G    --buffer-pool 4G
//! ```
//!
//! Invariants:
//!
//! * a [`Configuration`] that exists is valid: every value is in its range, and the values fit each
//!   other;
//! * each value knows its [`Origin`], and a refusal names it: file and line, variable or flag;
//! * the text of a value means the same wherever it is written, because one parser reads them all.

mod asynchronous_commit;
mod lists;
mod node;
pub(crate) mod setting;
pub(crate) mod sources;
mod switch;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use tracing_subscriber::filter::LevelFilter;

use asynchronous_commit::AsynchronousCommit;
use firn_base::network::Address;
use firn_node::memory::MemoryPlan;
use firn_node::size::{Size, SizeError};
use firn_objects::ObjectUrl;
use lists::{AddressList, RoleList};
use setting::{
    ARCHIVE, ARCHIVE_INTERVAL_SECONDS, ARCHIVE_LOG_LIMIT, ARCHIVE_WINDOW_HOURS,
    ASYNCHRONOUS_COMMIT, ASYNCHRONOUS_ZONE, BUFFER_POOL, CLUSTER_ADDRESS, CLUSTER_CERTIFICATES,
    CLUSTER_LAYOUT, CLUSTER_LISTEN, DATA_DIR, HISTORY_WINDOW_SECONDS, JOIN, LISTEN, LOG_LEVEL,
    LOG_SEGMENT_SIZE, MATERIALISE_BEHIND_LIMIT, MAX_CONNECTIONS, MEMORY_BUDGET, METRICS_LISTEN,
    NODE_NAME, PAUSE_AFTER_IDLE_SECONDS, REPLICA_SNAPSHOT_SECONDS, ROLE, SECURE_FILE_PRIV,
    SETTINGS, SHUTDOWN_PATIENCE_SECONDS, SOCKET, TLS_CERTIFICATE, TLS_KEY, WRITER_WAIT_SECONDS,
    ZONE,
};
use sources::{Origin, Sources};
use switch::Switch;

/// The flag that names the settings file.
pub(crate) const CONFIGURATION_FLAG: &str = "config";
/// The variable that names the settings file.
pub(crate) const CONFIGURATION_VARIABLE: &str = "FIRN_CONFIG";

/// A smaller pool could not hold the path of one tree operation with room to spare.
const BUFFER_POOL_RANGE: RangeInclusive<Size> = Size(8 << 20)..=Size(1 << 44);
const MEMORY_BUDGET_RANGE: RangeInclusive<Size> = Size(0)..=Size(1 << 44);
const LOG_SEGMENT_SIZE_RANGE: RangeInclusive<Size> = Size(1 << 20)..=Size(16 << 30);
const MATERIALISE_BEHIND_LIMIT_RANGE: RangeInclusive<Size> = Size(2 << 20)..=Size(1 << 44);
/// At most ten years.
const HISTORY_WINDOW_RANGE: RangeInclusive<u64> = 0..=10 * 366 * 24 * 3600;
/// At most ten years.
const SNAPSHOT_LIMIT_RANGE: RangeInclusive<u64> = 0..=10 * 366 * 24 * 3600;
/// At most a year.
const PAUSE_RANGE: RangeInclusive<u64> = 0..=366 * 24 * 3600;
/// At most an hour.
const ARCHIVE_INTERVAL_RANGE: RangeInclusive<u64> = 1..=3600;
/// At most ten years.
const ARCHIVE_WINDOW_RANGE: RangeInclusive<u64> = 1..=10 * 366 * 24;
const ARCHIVE_LOG_LIMIT_RANGE: RangeInclusive<Size> = Size(64 << 20)..=Size(1 << 44);
/// At most a day.
const PATIENCE_RANGE: RangeInclusive<u64> = 0..=24 * 3600;
const MAX_CONNECTIONS_RANGE: RangeInclusive<u64> = 1..=100_000;
/// The size of a log file is a multiple of this.
const LOG_SEGMENT_GRANULE: Size = Size(4 << 10);

/// A value and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

/// The settings of a process. They are valid, see the module's invariants.
#[derive(Debug)]
pub(crate) struct Configuration {
    /// Directory of the node's files.
    pub(crate) data_dir: Placed<PathBuf>,
    /// Address for clients.
    pub(crate) listen: Placed<SocketAddr>,
    /// Path of a Unix socket; empty for none.
    pub(crate) socket: Placed<String>,
    /// How many clients can be connected at once.
    pub(crate) max_connections: Placed<u64>,
    /// Where metrics are scraped, if anywhere.
    pub(crate) metrics_listen: Placed<Option<SocketAddr>>,
    /// How long statements may run on after the process was told to end, in seconds.
    pub(crate) shutdown_patience_seconds: Placed<u64>,
    /// The certificate's file; empty for a self-signed one.
    pub(crate) tls_certificate: Placed<String>,
    /// The private key's file.
    pub(crate) tls_key: Placed<String>,
    /// Directory where statements may read and write files; empty for none.
    pub(crate) secure_file_priv: Placed<String>,
    /// Memory for cached pages.
    pub(crate) buffer_pool: Placed<Size>,
    /// Memory for the whole process; 0: as much as the buffer pool makes necessary.
    pub(crate) memory_budget: Placed<Size>,
    /// Size of one file of the log.
    pub(crate) log_segment_size: Placed<Size>,
    /// Whether sessions leave their commits to the log.
    pub(crate) asynchronous_commit: Placed<AsynchronousCommit>,
    /// How far back an earlier state stays available, in seconds.
    pub(crate) history_window_seconds: Placed<u64>,
    /// Log behind the last materialised point before writers are slowed down.
    pub(crate) materialise_behind_limit: Placed<Size>,
    /// The URL of the archive, if there is one.
    pub(crate) archive: Placed<String>,
    /// How long new log waits before it is archived, in seconds.
    pub(crate) archive_interval_seconds: Placed<u64>,
    /// How far back every moment can be restored, in hours.
    pub(crate) archive_window_hours: Placed<u64>,
    /// Log that is kept for an archive that is away.
    pub(crate) archive_log_limit: Placed<Size>,
    /// The file with the cluster's nodes; empty for a standalone server.
    pub(crate) cluster_layout: Placed<String>,
    /// The node of the layout that the process is.
    pub(crate) node_name: Placed<String>,
    /// Control nodes of the cluster that the process joins; empty for none.
    pub(crate) join: Placed<AddressList>,
    /// What a process that joins does.
    pub(crate) role: Placed<RoleList>,
    /// What fails together with a process that joins.
    pub(crate) zone: Placed<String>,
    /// Whether that zone follows the others.
    pub(crate) asynchronous_zone: Placed<Switch>,
    /// Where the process listens for the other nodes.
    pub(crate) cluster_listen: Placed<Option<SocketAddr>>,
    /// Where the other nodes reach a process that joins, if that is not where it listens.
    pub(crate) cluster_address: Placed<Option<Address>>,
    /// The directory of the node's certificates; empty for none.
    pub(crate) cluster_certificates: Placed<String>,
    /// How long snapshots of a replica may hold up the writer's purge, in seconds; 0: for ever.
    pub(crate) replica_snapshot_seconds: Placed<u64>,
    /// For how long nobody uses the cluster before its compute pauses, in seconds; 0: it never
    /// does.
    pub(crate) pause_after_idle_seconds: Placed<u64>,
    /// How long clients wait for a node that writes, in seconds.
    pub(crate) writer_wait_seconds: Placed<u64>,
    /// The least important events that are logged.
    pub(crate) log_level: Placed<LevelFilter>,
    /// Variables that begin with `FIRN_` and name no setting.
    pub(crate) unknown_variables: Vec<String>,
}

/// Why a configuration is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigurationError {
    /// The settings file cannot be read.
    #[error("{}: cannot be read: {error}", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    /// The settings file is not valid TOML.
    #[error("{origin}: {reason}")]
    Syntax {
        /// The place of the error.
        origin: Origin,
        /// The parser's message.
        reason: String,
    },
    /// A key of the file names no setting.
    #[error("{origin}: there is no setting '{name}'; there are: {known}")]
    UnknownSetting {
        /// Where the key is.
        origin: Origin,
        name: String,
        /// The names of all settings.
        known: String,
    },
    /// The value of a key has a type that no setting takes.
    #[error("{origin}: {setting}: is of type {kind}; write a string or a whole number")]
    WrongType {
        /// Where the key is.
        origin: Origin,
        setting: &'static str,
        /// TOML's name for the type.
        kind: &'static str,
    },
    /// A variable's value is not UTF-8.
    #[error("{origin}: is not valid UTF-8")]
    NotText { origin: Origin },
    /// A setting cannot have this value.
    #[error("{origin}: {setting}: '{value}' {reason}")]
    BadValue {
        /// Where the value is written.
        origin: Origin,
        setting: &'static str,
        /// The value, as written.
        value: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl ConfigurationError {
    fn unknown_setting(origin: Origin, name: &str) -> ConfigurationError {
        let known = SETTINGS.map(|setting| setting.name).join(", ");
        ConfigurationError::UnknownSetting { origin, name: name.to_owned(), known }
    }

    fn bad_value<T>(setting: &'static str, placed: &Placed<T>, reason: String) -> ConfigurationError
    where
        T: Display,
    {
        ConfigurationError::BadValue {
            origin: placed.origin.clone(),
            setting,
            value: placed.value.to_string(),
            reason,
        }
    }
}

impl Configuration {
    /// Merges all sources over the defaults, later ones over earlier ones, and checks the result.
    ///
    /// # Errors
    /// [`ConfigurationError`] for the first value that is not valid.
    pub(crate) fn merge(sources: &Sources) -> Result<Configuration, ConfigurationError> {
        let texts = Texts::merge(sources);
        let configuration = Configuration {
            data_dir: texts.path(DATA_DIR)?,
            listen: texts.address(LISTEN)?,
            socket: texts.text(SOCKET).clone(),
            max_connections: texts.in_range(MAX_CONNECTIONS, &MAX_CONNECTIONS_RANGE, |_| {
                "is not a whole number".to_owned()
            })?,
            metrics_listen: texts.optional_address(METRICS_LISTEN)?,
            shutdown_patience_seconds: texts.seconds(SHUTDOWN_PATIENCE_SECONDS, &PATIENCE_RANGE)?,
            tls_certificate: texts.text(TLS_CERTIFICATE).clone(),
            tls_key: texts.text(TLS_KEY).clone(),
            secure_file_priv: texts.text(SECURE_FILE_PRIV).clone(),
            buffer_pool: texts.size(BUFFER_POOL, &BUFFER_POOL_RANGE)?,
            memory_budget: texts.size(MEMORY_BUDGET, &MEMORY_BUDGET_RANGE)?,
            log_segment_size: texts.size(LOG_SEGMENT_SIZE, &LOG_SEGMENT_SIZE_RANGE)?,
            asynchronous_commit: texts.asynchronous_commit(ASYNCHRONOUS_COMMIT)?,
            history_window_seconds: texts.seconds(HISTORY_WINDOW_SECONDS, &HISTORY_WINDOW_RANGE)?,
            materialise_behind_limit: texts
                .size(MATERIALISE_BEHIND_LIMIT, &MATERIALISE_BEHIND_LIMIT_RANGE)?,
            archive: texts.archive(ARCHIVE)?,
            archive_interval_seconds: texts
                .seconds(ARCHIVE_INTERVAL_SECONDS, &ARCHIVE_INTERVAL_RANGE)?,
            archive_window_hours: texts.in_range(
                ARCHIVE_WINDOW_HOURS,
                &ARCHIVE_WINDOW_RANGE,
                |_| "is not a whole number of hours".to_owned(),
            )?,
            archive_log_limit: texts.size(ARCHIVE_LOG_LIMIT, &ARCHIVE_LOG_LIMIT_RANGE)?,
            cluster_layout: texts.text(CLUSTER_LAYOUT).clone(),
            node_name: texts.text(NODE_NAME).clone(),
            join: texts.addresses(JOIN)?,
            role: texts.roles(ROLE)?,
            zone: texts.text(ZONE).clone(),
            asynchronous_zone: texts.switch(ASYNCHRONOUS_ZONE)?,
            cluster_listen: texts.optional_address(CLUSTER_LISTEN)?,
            cluster_address: texts.address_of_node(CLUSTER_ADDRESS)?,
            cluster_certificates: texts.text(CLUSTER_CERTIFICATES).clone(),
            replica_snapshot_seconds: texts
                .seconds(REPLICA_SNAPSHOT_SECONDS, &SNAPSHOT_LIMIT_RANGE)?,
            pause_after_idle_seconds: texts.seconds(PAUSE_AFTER_IDLE_SECONDS, &PAUSE_RANGE)?,
            writer_wait_seconds: texts.seconds(WRITER_WAIT_SECONDS, &PATIENCE_RANGE)?,
            log_level: texts.level(LOG_LEVEL)?,
            unknown_variables: sources.unknown_variables.clone(),
        };
        configuration.validate()?;
        Ok(configuration)
    }

    /// Checks the rules between several settings.
    fn validate(&self) -> Result<(), ConfigurationError> {
        if self.tls_certificate.value.is_empty() != self.tls_key.value.is_empty() {
            let reason = format!("needs both {TLS_CERTIFICATE} and {TLS_KEY}");
            return Err(ConfigurationError::bad_value(
                TLS_CERTIFICATE,
                &self.tls_certificate,
                reason,
            ));
        }
        self.validate_cluster()?;
        let (budget, plan) = (&self.memory_budget, self.memory_plan());
        let least = MemoryPlan::for_pool(plan.buffer_pool_bytes.max(BUFFER_POOL_RANGE.start().0));
        if budget.value.0 != 0 && budget.value.0 < least.least_bytes() {
            let reason = format!(
                "is less than the {} that a node with {BUFFER_POOL} = {} needs",
                Size(least.least_bytes()),
                Size(least.buffer_pool_bytes)
            );
            return Err(ConfigurationError::bad_value(MEMORY_BUDGET, budget, reason));
        }
        let segment = &self.log_segment_size;
        if !segment.value.0.is_multiple_of(LOG_SEGMENT_GRANULE.0) {
            let reason = format!("is not a multiple of {LOG_SEGMENT_GRANULE}");
            return Err(ConfigurationError::bad_value(LOG_SEGMENT_SIZE, segment, reason));
        }
        let limit = &self.materialise_behind_limit;
        if limit.value.0 < segment.value.0.saturating_mul(2) {
            let reason = format!(
                "is less than two log files, which {LOG_SEGMENT_SIZE} = {} makes {}",
                segment.value,
                Size(segment.value.0 * 2)
            );
            return Err(ConfigurationError::bad_value(MATERIALISE_BEHIND_LIMIT, limit, reason));
        }
        Ok(())
    }

    /// A process is a node of a layout, or joins a cluster, or neither.
    fn validate_cluster(&self) -> Result<(), ConfigurationError> {
        let is_named = !self.node_name.value.is_empty();
        let (has_layout, joins) =
            (!self.cluster_layout.value.is_empty(), !self.join.value.0.is_empty());
        if is_named != (has_layout || joins) {
            let reason = format!("needs {NODE_NAME} with {CLUSTER_LAYOUT} or with {JOIN}");
            return Err(ConfigurationError::bad_value(NODE_NAME, &self.node_name, reason));
        }
        let is_whole = !self.role.value.0.is_empty() && self.joining_address().is_some();
        if joins && (has_layout || !is_whole) {
            let reason = format!("needs {ROLE} and {CLUSTER_LISTEN}, and no {CLUSTER_LAYOUT}");
            return Err(ConfigurationError::bad_value(JOIN, &self.join, reason));
        }
        let shown = |address: &Option<_>| address.as_ref().map(ToString::to_string);
        if let Some(value) = shown(&self.cluster_address.value).filter(|_| !joins) {
            let shown = Placed { value, origin: self.cluster_address.origin.clone() };
            let reason = format!("needs {JOIN}; the address of a node of a layout is there");
            return Err(ConfigurationError::bad_value(CLUSTER_ADDRESS, &shown, reason));
        }
        if let Some(Address::Tcp(address)) = self.joining_address().filter(|_| joins)
            && address.ip().is_unspecified()
        {
            let shown = Placed { value: address, origin: self.cluster_listen.origin.clone() };
            let reason = format!("is nowhere that others reach; give {CLUSTER_ADDRESS} as well");
            return Err(ConfigurationError::bad_value(CLUSTER_LISTEN, &shown, reason));
        }
        if !joins && self.zone.origin != Origin::Default {
            let reason = format!("needs {JOIN}; the zone of a node of a layout is there");
            return Err(ConfigurationError::bad_value(ZONE, &self.zone, reason));
        }
        let follows = &self.asynchronous_zone;
        if follows.value.is_on() && (!joins || self.zone.origin == Origin::Default) {
            let reason = format!("needs {JOIN} and {ZONE}");
            return Err(ConfigurationError::bad_value(ASYNCHRONOUS_ZONE, follows, reason));
        }
        if !joins && !self.role.value.0.is_empty() {
            let reason = format!("needs {JOIN}");
            return Err(ConfigurationError::bad_value(ROLE, &self.role, reason));
        }
        Ok(())
    }

    /// Where the other nodes reach a process that joins.
    pub(crate) fn joining_address(&self) -> Option<Address> {
        let listening = self.cluster_listen.value.map(Address::Tcp);
        self.cluster_address.value.clone().or(listening)
    }

    /// Each setting's name, value and origin, in the order of [`SETTINGS`].
    pub(crate) fn rows(&self) -> [(&'static str, String, &Origin); SETTINGS.len()] {
        fn row<'a, T: ToString>(
            name: &'static str,
            placed: &'a Placed<T>,
        ) -> (&'static str, String, &'a Origin) {
            (name, placed.value.to_string(), &placed.origin)
        }
        fn optional<'a, T: ToString>(
            name: &'static str,
            placed: &'a Placed<Option<T>>,
        ) -> (&'static str, String, &'a Origin) {
            let value = placed.value.as_ref().map(T::to_string).unwrap_or_default();
            (name, value, &placed.origin)
        }
        [
            (DATA_DIR, self.data_dir.value.display().to_string(), &self.data_dir.origin),
            row(LISTEN, &self.listen),
            row(SOCKET, &self.socket),
            row(MAX_CONNECTIONS, &self.max_connections),
            optional(METRICS_LISTEN, &self.metrics_listen),
            row(SHUTDOWN_PATIENCE_SECONDS, &self.shutdown_patience_seconds),
            row(TLS_CERTIFICATE, &self.tls_certificate),
            row(TLS_KEY, &self.tls_key),
            row(SECURE_FILE_PRIV, &self.secure_file_priv),
            row(BUFFER_POOL, &self.buffer_pool),
            row(MEMORY_BUDGET, &self.memory_budget),
            row(LOG_SEGMENT_SIZE, &self.log_segment_size),
            row(ASYNCHRONOUS_COMMIT, &self.asynchronous_commit),
            row(HISTORY_WINDOW_SECONDS, &self.history_window_seconds),
            row(MATERIALISE_BEHIND_LIMIT, &self.materialise_behind_limit),
            row(ARCHIVE, &self.archive),
            row(ARCHIVE_INTERVAL_SECONDS, &self.archive_interval_seconds),
            row(ARCHIVE_WINDOW_HOURS, &self.archive_window_hours),
            row(ARCHIVE_LOG_LIMIT, &self.archive_log_limit),
            row(CLUSTER_LAYOUT, &self.cluster_layout),
            row(NODE_NAME, &self.node_name),
            row(JOIN, &self.join),
            row(ROLE, &self.role),
            row(ZONE, &self.zone),
            row(ASYNCHRONOUS_ZONE, &self.asynchronous_zone),
            optional(CLUSTER_LISTEN, &self.cluster_listen),
            optional(CLUSTER_ADDRESS, &self.cluster_address),
            row(CLUSTER_CERTIFICATES, &self.cluster_certificates),
            row(REPLICA_SNAPSHOT_SECONDS, &self.replica_snapshot_seconds),
            row(PAUSE_AFTER_IDLE_SECONDS, &self.pause_after_idle_seconds),
            row(WRITER_WAIT_SECONDS, &self.writer_wait_seconds),
            row(LOG_LEVEL, &self.log_level),
        ]
    }
}

/// The final text of each setting.
struct Texts(BTreeMap<&'static str, Placed<String>>);

impl Texts {
    fn merge(sources: &Sources) -> Texts {
        let mut texts: BTreeMap<_, _> = SETTINGS
            .iter()
            .map(|setting| {
                let value = setting.default.to_owned();
                (setting.name, Placed { value, origin: Origin::Default })
            })
            .collect();
        for given in &sources.given {
            let placed = Placed { value: given.text.clone(), origin: given.origin.clone() };
            texts.insert(given.setting, placed);
        }
        Texts(texts)
    }

    fn text(&self, setting: &'static str) -> &Placed<String> {
        &self.0[setting]
    }

    fn path(&self, setting: &'static str) -> Result<Placed<PathBuf>, ConfigurationError> {
        let text = self.text(setting);
        if text.value.is_empty() {
            return Err(ConfigurationError::bad_value(setting, text, "is empty".to_owned()));
        }
        Ok(Placed { value: PathBuf::from(&text.value), origin: text.origin.clone() })
    }

    fn address(&self, setting: &'static str) -> Result<Placed<SocketAddr>, ConfigurationError> {
        let text = self.text(setting);
        let refuse = |reason| ConfigurationError::bad_value(setting, text, reason);
        let mut found = text.value.to_socket_addrs().map_err(|error| {
            refuse(format!("is not an address to listen at ({error}); write HOST:PORT"))
        })?;
        let value = found.next().ok_or_else(|| refuse("names no address".to_owned()))?;
        Ok(Placed { value, origin: text.origin.clone() })
    }

    fn optional_address(
        &self,
        setting: &'static str,
    ) -> Result<Placed<Option<SocketAddr>>, ConfigurationError> {
        let text = self.text(setting);
        if text.value.is_empty() {
            return Ok(Placed { value: None, origin: text.origin.clone() });
        }
        self.address(setting)
            .map(|placed| Placed { value: Some(placed.value), origin: placed.origin })
    }

    /// Where another node is reached, or nothing.
    fn address_of_node(
        &self,
        setting: &'static str,
    ) -> Result<Placed<Option<Address>>, ConfigurationError> {
        let text = self.text(setting);
        let value = lists::address_of_node(&text.value);
        if value.is_none() && !text.value.is_empty() {
            let reason = "is no address of a node; write HOST:PORT".to_owned();
            return Err(ConfigurationError::bad_value(setting, text, reason));
        }
        Ok(Placed { value, origin: text.origin.clone() })
    }

    /// The URL of an object store, or nothing.
    fn archive(&self, setting: &'static str) -> Result<Placed<String>, ConfigurationError> {
        let text = self.text(setting);
        if let (false, Err(error)) = (text.value.is_empty(), text.value.parse::<ObjectUrl>()) {
            // The value may have a password in it.
            let shown = Placed { value: String::from("…"), origin: text.origin.clone() };
            let reason = format!("is not an archive: {error}");
            return Err(ConfigurationError::bad_value(setting, &shown, reason));
        }
        Ok(text.clone())
    }

    fn addresses(&self, setting: &'static str) -> Result<Placed<AddressList>, ConfigurationError> {
        self.list(setting)
    }

    fn roles(&self, setting: &'static str) -> Result<Placed<RoleList>, ConfigurationError> {
        self.list(setting)
    }

    fn list<T: FromStr<Err = String>>(
        &self,
        setting: &'static str,
    ) -> Result<Placed<T>, ConfigurationError> {
        let text = self.text(setting);
        let refuse = |reason| ConfigurationError::bad_value(setting, text, reason);
        let value = text.value.parse().map_err(refuse)?;
        Ok(Placed { value, origin: text.origin.clone() })
    }

    fn size(
        &self,
        setting: &'static str,
        range: &RangeInclusive<Size>,
    ) -> Result<Placed<Size>, ConfigurationError> {
        self.in_range(setting, range, |error: SizeError| error.to_string())
    }

    fn seconds(
        &self,
        setting: &'static str,
        range: &RangeInclusive<u64>,
    ) -> Result<Placed<u64>, ConfigurationError> {
        self.in_range(setting, range, |_| "is not a whole number of seconds".to_owned())
    }

    fn in_range<T: FromStr + PartialOrd + Display>(
        &self,
        setting: &'static str,
        range: &RangeInclusive<T>,
        explain: impl FnOnce(T::Err) -> String,
    ) -> Result<Placed<T>, ConfigurationError> {
        let text = self.text(setting);
        let refuse = |reason| ConfigurationError::bad_value(setting, text, reason);
        let value: T = text.value.parse().map_err(|error| refuse(explain(error)))?;
        if !range.contains(&value) {
            return Err(refuse(format!("is not between {} and {}", range.start(), range.end())));
        }
        Ok(Placed { value, origin: text.origin.clone() })
    }

    fn asynchronous_commit(
        &self,
        setting: &'static str,
    ) -> Result<Placed<AsynchronousCommit>, ConfigurationError> {
        let text = self.text(setting);
        let refuse = |reason| ConfigurationError::bad_value(setting, text, reason);
        let value = text.value.parse().map_err(refuse)?;
        Ok(Placed { value, origin: text.origin.clone() })
    }

    fn switch(&self, setting: &'static str) -> Result<Placed<Switch>, ConfigurationError> {
        let text = self.text(setting);
        let value = match text.value.as_str() {
            "off" => Switch::Off,
            "on" => Switch::On,
            _ => {
                let reason = "is neither off nor on".to_owned();
                return Err(ConfigurationError::bad_value(setting, text, reason));
            }
        };
        Ok(Placed { value, origin: text.origin.clone() })
    }

    fn level(&self, setting: &'static str) -> Result<Placed<LevelFilter>, ConfigurationError> {
        let text = self.text(setting);
        let value = match text.value.as_str() {
            "off" => LevelFilter::OFF,
            "error" => LevelFilter::ERROR,
            "warn" => LevelFilter::WARN,
            "info" => LevelFilter::INFO,
            "debug" => LevelFilter::DEBUG,
            "trace" => LevelFilter::TRACE,
            _ => {
                let reason = "is none of off, error, warn, info, debug and trace".to_owned();
                return Err(ConfigurationError::bad_value(setting, text, reason));
            }
        };
        Ok(Placed { value, origin: text.origin.clone() })
    }
}

#[cfg(test)]
mod tests;
