//! How the system's allocator is used.
//!
//! It keeps memory that was freed in *arenas*, eight for each core unless told otherwise, and threads are
//! spread over them. What one thread takes another frees here all the time (a batch of log, an answer), so
//! each arena keeps some of everything; a few arenas keep less and are hardly less quick.

/// Arenas of the allocator.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ARENAS: libc::c_int = 4;

/// Limits what the allocator keeps. To be called first in `main`: arenas that are there stay.
pub(crate) fn limit_arenas() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: `mallopt` sets a number of the allocator under its own lock. Refusal costs memory only.
        let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, ARENAS) };
    }
}
