//! How many files and sockets the process may have open.
//!
//! Shells and service managers allow 1,024 unless told otherwise, and let a process raise that up
//! to a limit of theirs. A server with thousands of clients needs it.

/// Raises the limit as far as the system lets the process. To be called before anything is opened.
pub fn raise_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls read or write the struct, which lives until they return. A refusal changes
    // nothing.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            let _ = libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}
