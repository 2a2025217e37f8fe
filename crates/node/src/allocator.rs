//! How the system's allocator is used.
//!
//! It keeps memory that was freed in *arenas*, eight for each core unless told otherwise, and
//! threads are spread over them. What one thread takes another frees here all the time (a batch of
//! log, an answer), so each arena keeps some of everything; a few arenas keep less and are hardly
//! less quick.
//!
//! Small pieces that are freed it puts on lists without joining them to their neighbours, and some
//! time later joins all of them at once, with the arena locked. After a statement with millions of
//! values that takes longer than a statement that is killed may take to end, so each is joined when
//! it is freed.
//!
//! Left to itself, it moves the length from which on a piece is mapped for itself up to 32 MiB, and
//! keeps twice as much at the end of each arena. Long values then stay as holes in the arenas. So
//! both lengths are fixed: a long value goes back when it is freed, and is not copied when it
//! grows. Neither is shorter than the batches of an analytic statement, for which the system would
//! otherwise clear fresh pages again and again: at 1 MiB and 4 MiB, joins took a fifth longer.

/// Arenas of the allocator.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ARENAS: libc::c_int = 4;

/// From this length on a piece is mapped for itself.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAPPED_BYTES: libc::c_int = 8 << 20;

/// More than this is not kept at the end of an arena.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_BYTES: libc::c_int = 16 << 20;

/// Limits what the allocator keeps, and for how long it may work at once. To be called first in
/// `main`: arenas that are there stay.
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
            // SAFETY: `mallopt` sets a number of the allocator under its own lock. Refusal costs
            // memory or time only.
            let _ = unsafe { libc::mallopt(setting, value) };
        }
    }
}

/// Gives memory that was freed, and that the allocator keeps, back to the system.
pub fn release_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: it takes the allocator's own locks and touches only memory that nobody has.
        let _ = unsafe { libc::malloc_trim(0) };
    }
}
