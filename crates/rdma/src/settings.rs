//! Which transports are used, and how long is waited.

use std::time::Duration;

/// Settings of an owner or a peer. Both ends need a transport in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RdmaSettings {
    transports: String,
    /// How long a batch or a question takes at most.
    pub timeout: Duration,
}

/// Transports that were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error(
        "the transport {0} may not be used: it reaches memory of processes that have ended, or is \
         not known; choose among {known}",
        known = KNOWN.join(", ")
    )]
    Refused(String),
}

/// Transports of UCX that keep D3, from the fastest: hardware, then messages between processes of a
/// machine, then TCP. Not among them are `cma`, `knem`, `xpmem`, `self`, and the names that stand
/// for groups with these.
const KNOWN: [&str; 10] = ["ib", "rc", "rc_v", "rc_x", "dc", "dc_x", "ud", "posix", "sysv", "tcp"];
const DEFAULT: &str = "ib,posix,tcp";
const HARDWARE: &str = "ib";

impl RdmaSettings {
    /// With all transports that may be used.
    #[must_use]
    pub fn new(timeout: Duration) -> RdmaSettings {
        RdmaSettings { transports: DEFAULT.to_owned(), timeout }
    }

    /// With hardware alone. Where there is none, nothing can be served or reached.
    #[must_use]
    pub fn hardware(timeout: Duration) -> RdmaSettings {
        RdmaSettings { transports: HARDWARE.to_owned(), timeout }
    }

    /// Limits the transports to these, named as UCX does in `UCX_TLS` and separated by commas.
    ///
    /// # Errors
    /// If one is not known to keep rule D3.
    pub fn with_transports(self, transports: &str) -> Result<RdmaSettings, SettingsError> {
        match transports.split(',').find(|name| !KNOWN.contains(name)) {
            Some(name) => Err(SettingsError::Refused(name.to_owned())),
            None => Ok(RdmaSettings { transports: transports.to_owned(), ..self }),
        }
    }

    pub(crate) fn transports(&self) -> &str {
        &self.transports
    }
}
