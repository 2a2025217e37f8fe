//! Settings of the system's allocator.
//!
//! The allocator keeps freed memory in *arenas*, eight for each core by default, and spreads
//! threads over them. Here one thread often frees what another has allocated (a batch of log, an
//! answer), so each arena keeps some of everything. A few arenas keep less and are hardly slower.
//!
//! By default, small freed pieces go to lists and stay apart from their neighbours. Some time later
//! the allocator joins all of them at once and locks the arena meanwhile. After a statement with
//! millions of values this takes longer than a killed statement may take to end, so each piece is
//! joined when it is freed.
//!
//! By default, the allocator raises the length from which on a piece is mapped for itself up to 32
//! MiB, and keeps twice as much at the end of each arena. Long values then stay as holes in the
//! arenas. With both lengths fixed, a long value goes back to the system when it is freed, and is
//! not copied when it grows. Neither length is shorter than the batches of an analytic statement:
//! with 1 MiB and 4 MiB, the system cleared fresh pages again and again, and joins took a fifth
//! longer.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ARENAS: libc::c_int = 4;

/// Pieces of at least this length are mapped for themselves.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAPPED_BYTES: libc::c_int = 8 << 20;

/// Most bytes that are kept at the end of an arena.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_BYTES: libc::c_int = 16 << 20;

/// At the end of an arena, at most the memory budget divided by this is kept.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_SHARE: u64 = 32;

/// Limits the memory that the allocator keeps and the time that it works at once. Call this first
/// in `main`: arenas that exist already stay.
pub fn tune() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let settings = [
            (libc::M_ARENA_MAX, ARENAS),
            (libc::M_MXFAST, 0),
            (libc::M_MMAP_THRESHOLD, MAPPED_BYTES),
            (libc::M_TRIM_THRESHOLD, KEPT_BYTES),
        ];
        for (setting, value) in settings {
            // SAFETY: `mallopt` sets a number of the allocator under its own lock. If it refuses,
            // that costs only memory or time.
            let _ = unsafe { libc::mallopt(setting, value) };
        }
    }
}

/// Has the allocator keep less of a small memory budget. [`release_free_memory`] does not free the
/// ends of the arenas.
pub fn limit_kept(budget_bytes: u64) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let kept_bytes = (budget_bytes / KEPT_SHARE).clamp(1 << 20, KEPT_BYTES as u64);
        // SAFETY: as in `tune`.
        let _ = unsafe { libc::mallopt(libc::M_TRIM_THRESHOLD, kept_bytes as libc::c_int) };
    }
}

/// Gives freed memory that the allocator keeps back to the system.
pub fn release_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: it takes the allocator's own locks and touches only free memory.
        let _ = unsafe { libc::malloc_trim(0) };
    }
}
