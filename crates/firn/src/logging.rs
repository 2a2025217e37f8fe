//! Logging: events of all crates to standard error, one line each, as fields.

use tracing_subscriber::filter::LevelFilter;

/// Sends what is at least as important as `level` to standard error, from now on. Called once, before
/// anything is opened.
pub(crate) fn start(level: LevelFilter) {
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .init();
}
