//! Logging: events of all crates as lines of fields on standard error.

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt};

/// Changes what is logged while the process runs.
#[derive(Clone)]
pub(crate) struct Verbosity(Handle<LevelFilter, Registry>);

impl Verbosity {
    /// Applies MySQL's `log_error_verbosity`.
    pub(crate) fn set(&self, verbosity: u64) {
        let level = match verbosity {
            1 => LevelFilter::ERROR,
            2 => LevelFilter::WARN,
            _ => LevelFilter::INFO,
        };
        // This fails only after the subscriber is gone, when nothing is logged any more.
        let _ = self.0.modify(|filter| *filter = level);
    }
}

/// The value of `log_error_verbosity` with the same meaning as a level.
pub(crate) fn verbosity_of(level: LevelFilter) -> u64 {
    match level {
        LevelFilter::OFF | LevelFilter::ERROR => 1,
        LevelFilter::WARN => 2,
        _ => 3,
    }
}

/// Writes events that are at least as important as `level` to standard error. Called once, before
/// anything is opened.
pub(crate) fn start(level: LevelFilter) -> Verbosity {
    let (filter, handle) = reload::Layer::new(level);
    let lines = fmt::layer().with_ansi(false).with_writer(std::io::stderr);
    tracing_subscriber::registry().with(filter).with(lines).init();
    Verbosity(handle)
}
