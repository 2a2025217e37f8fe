//! The limit of open files and sockets of the process.
//!
//! Shells and service managers set it to 1,024 by default, and let a process raise it up to a
//! higher limit. A server with thousands of clients needs that.

/// Raises the limit as far as the system allows. Call this before anything is opened.
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
