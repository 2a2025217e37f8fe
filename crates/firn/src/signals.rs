//! The signals that end the process.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

/// Handles the signals that end the process. The second one ends it at once.
pub(crate) fn listen() -> std::io::Result<Signals> {
    let is_ending = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The order matters: the first signal must find the flag unset.
        flag::register_conditional_shutdown(signal, 1, Arc::clone(&is_ending))?;
        flag::register(signal, Arc::clone(&is_ending))?;
    }
    Signals::new([SIGINT, SIGTERM])
}
